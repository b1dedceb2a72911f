#include "config.h"

#define CPU_PATH_AVX512 1
#define KERNELS         cpu_kernels_avx512
#include "cpu_kernels_impl.h"
