#include "config.h"

#define CPU_PATH_PORTABLE 1
#define KERNELS           cpu_kernels_portable
#include "cpu_kernels_impl.h"
