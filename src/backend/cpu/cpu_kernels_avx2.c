#include "config.h"

#define CPU_PATH_AVX2 1
#define KERNELS       cpu_kernels_avx2
#include "cpu_kernels_impl.h"
