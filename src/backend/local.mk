# layer backend: tensors and the operations of a step
libtellerd_a_SOURCES += \
	include/tellerd/backend/backend.h include/tellerd/backend/step.h include/tellerd/backend/tensor.h \
	src/backend/backend.c src/backend/backend_priv.h \
	src/backend/tensor.c src/backend/tensor_types.c src/backend/tensor_priv.h \
	src/backend/cpu/cpu_attention.c src/backend/cpu/cpu_backend.c src/backend/cpu/cpu_cache.c \
	src/backend/cpu/cpu_ops.c src/backend/cpu/cpu_panels.c src/backend/cpu/cpu_panels.h \
	src/backend/cpu/cpu_priv.h src/backend/cpu/cpu_threads.c src/backend/cpu/cpu_threads.h \
	src/backend/cpu/cpu_weights.c

# The kernels: one source, compiled once per instruction set and chosen at run time.
cpu_kernel_headers = src/backend/cpu/cpu_attention_impl.h src/backend/cpu/cpu_kernels.h \
	src/backend/cpu/cpu_kernels_impl.h src/backend/cpu/cpu_ops_impl.h \
	src/backend/cpu/cpu_panels_impl.h src/backend/cpu/cpu_product_impl.h \
	src/backend/cpu/cpu_product_int8_impl.h src/backend/cpu/cpu_simd.h \
	src/backend/cpu/cpu_simd_int8.h
libtellerd_a_SOURCES += src/backend/cpu/cpu_kernels_portable.c $(cpu_kernel_headers)
EXTRA_DIST += src/backend/cpu/cpu_kernels_avx2.c src/backend/cpu/cpu_kernels_avx512.c
if HAVE_AVX2
noinst_LIBRARIES += libtellerd-avx2.a
libtellerd_avx2_a_SOURCES = src/backend/cpu/cpu_kernels_avx2.c
libtellerd_avx2_a_CFLAGS = $(AM_CFLAGS) -mavx2 -mfma -mf16c
TELLERD_LIBS += libtellerd-avx2.a
endif
if HAVE_AVX512
noinst_LIBRARIES += libtellerd-avx512.a
libtellerd_avx512_a_SOURCES = src/backend/cpu/cpu_kernels_avx512.c
libtellerd_avx512_a_CFLAGS = $(AM_CFLAGS) -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -mf16c
TELLERD_LIBS += libtellerd-avx512.a
endif
