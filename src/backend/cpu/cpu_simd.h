#ifndef TELLERD_BACKEND_CPU_SIMD_H
#define TELLERD_BACKEND_CPU_SIMD_H

/*
 * vec16: 16 floats, in whatever registers the kernel set has.  Included once by each
 * cpu_kernels_<path>.c, which defines CPU_PATH_AVX512, CPU_PATH_AVX2 or neither.  Each lane of each
 * operation is the IEEE operation of one number, so kernels written in vec16 give the same bits for
 * the same lane whatever the others hold.  vec16_fma rounds once on AVX2 and AVX-512 and twice in
 * portable C: results agree within one path, not between paths.
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tellerd/backend/tensor.h"

/* the loops over a tile's sums, which must end up in registers */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define INLINE static inline __attribute__((always_inline, unused))

#if defined(CPU_PATH_AVX512) || defined(CPU_PATH_AVX2)
#include <immintrin.h>
#endif

#if defined(CPU_PATH_AVX512)
/* ---- AVX-512: one register --------------------------------------------------------------- */
struct vec16 {
    __m512 v;
};
#define VEC16(x)     ((struct vec16){x})
#define SIMD_PATH    "avx512"
#define SIMD_MAX_ROW 12 /* rows of a product tile: 12 x 2 accumulators of 32 registers */
#define SIMD_WIDE    1  /* two panels side by side also for many rows */

INLINE struct vec16 vec16_load(const float *p)
{
    return VEC16(_mm512_loadu_ps(p));
}
INLINE void vec16_store(float *p, struct vec16 a)
{
    _mm512_storeu_ps(p, a.v);
}
INLINE struct vec16 vec16_set(float x)
{
    return VEC16(_mm512_set1_ps(x));
}
INLINE struct vec16 vec16_add(struct vec16 a, struct vec16 b)
{
    return VEC16(_mm512_add_ps(a.v, b.v));
}
INLINE struct vec16 vec16_sub(struct vec16 a, struct vec16 b)
{
    return VEC16(_mm512_sub_ps(a.v, b.v));
}
INLINE struct vec16 vec16_mul(struct vec16 a, struct vec16 b)
{
    return VEC16(_mm512_mul_ps(a.v, b.v));
}
INLINE struct vec16 vec16_div(struct vec16 a, struct vec16 b)
{
    return VEC16(_mm512_div_ps(a.v, b.v));
}
INLINE struct vec16 vec16_fma(struct vec16 a, struct vec16 b, struct vec16 c)
{
    return VEC16(_mm512_fmadd_ps(a.v, b.v, c.v));
}
INLINE struct vec16 vec16_max(struct vec16 a, struct vec16 b)
{
    return VEC16(_mm512_max_ps(a.v, b.v));
}
INLINE struct vec16 vec16_min(struct vec16 a, struct vec16 b)
{
    return VEC16(_mm512_min_ps(a.v, b.v));
}
/* a < b ? x : y, lane by lane */
INLINE struct vec16 vec16_if_less(struct vec16 a, struct vec16 b, struct vec16 x, struct vec16 y)
{
    return VEC16(_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), y.v, x.v));
}
INLINE struct vec16 vec16_round(struct vec16 a)
{
    return VEC16(_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
/* 2^n for integers n of -126..127 */
INLINE struct vec16 vec16_exp2_int(struct vec16 n)
{
    __m512i i = _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127));
    return VEC16(_mm512_castsi512_ps(_mm512_slli_epi32(i, 23)));
}
INLINE struct vec16 vec16_from_f16(const uint8_t *p)
{
    return VEC16(_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)));
}
INLINE struct vec16 vec16_from_bf16(const uint8_t *p)
{
    __m512i i = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return VEC16(_mm512_castsi512_ps(_mm512_slli_epi32(i, 16)));
}
INLINE struct vec16 vec16_from_i8(const uint8_t *p)
{
    return VEC16(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p))));
}
INLINE struct vec16 vec16_from_u8(const uint8_t *p)
{
    return VEC16(_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p))));
}
INLINE void vec16_to_f16(uint8_t *p, struct vec16 a)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}

#elif defined(CPU_PATH_AVX2)
/* ---- AVX2, FMA, F16C: two registers -------------------------------------------------------- */
struct vec16 {
    __m256 a, b;
};
#define VEC16(x, y)  ((struct vec16){x, y})
#define SIMD_PATH    "avx2"
#define SIMD_MAX_ROW 6 /* rows of a product tile: 6 x 2 accumulators of 16 registers */
#define SIMD_WIDE    0

INLINE struct vec16 vec16_load(const float *p)
{
    return VEC16(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8));
}
INLINE void vec16_store(float *p, struct vec16 x)
{
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}
INLINE struct vec16 vec16_set(float x)
{
    return VEC16(_mm256_set1_ps(x), _mm256_set1_ps(x));
}
INLINE struct vec16 vec16_add(struct vec16 x, struct vec16 y)
{
    return VEC16(_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b));
}
INLINE struct vec16 vec16_sub(struct vec16 x, struct vec16 y)
{
    return VEC16(_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b));
}
INLINE struct vec16 vec16_mul(struct vec16 x, struct vec16 y)
{
    return VEC16(_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b));
}
INLINE struct vec16 vec16_div(struct vec16 x, struct vec16 y)
{
    return VEC16(_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b));
}
INLINE struct vec16 vec16_fma(struct vec16 x, struct vec16 y, struct vec16 z)
{
    return VEC16(_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b));
}
INLINE struct vec16 vec16_max(struct vec16 x, struct vec16 y)
{
    return VEC16(_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b));
}
INLINE struct vec16 vec16_min(struct vec16 x, struct vec16 y)
{
    return VEC16(_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b));
}
/* x < y ? p : q, lane by lane */
INLINE struct vec16 vec16_if_less(struct vec16 x, struct vec16 y, struct vec16 p, struct vec16 q)
{
    return VEC16(_mm256_blendv_ps(q.a, p.a, _mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ)),
                 _mm256_blendv_ps(q.b, p.b, _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)));
}
INLINE struct vec16 vec16_round(struct vec16 x)
{
    return VEC16(_mm256_round_ps(x.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                 _mm256_round_ps(x.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
/* 2^n for integers n of -126..127 */
INLINE struct vec16 vec16_exp2_int(struct vec16 n)
{
    __m256i bias = _mm256_set1_epi32(127);
    __m256i a = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n.a), bias), 23);
    __m256i b = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n.b), bias), 23);
    return VEC16(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
}
INLINE struct vec16 vec16_from_f16(const uint8_t *p)
{
    return VEC16(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
                 _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 16))));
}
INLINE struct vec16 vec16_from_bf16(const uint8_t *p)
{
    __m256i a = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    __m256i b = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p + 16)));
    return VEC16(_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)),
                 _mm256_castsi256_ps(_mm256_slli_epi32(b, 16)));
}
INLINE struct vec16 vec16_from_i8(const uint8_t *p)
{
    __m256i a = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p));
    __m256i b = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8)));
    return VEC16(_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b));
}
INLINE struct vec16 vec16_from_u8(const uint8_t *p)
{
    __m256i a = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
    __m256i b = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8)));
    return VEC16(_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b));
}
INLINE void vec16_to_f16(uint8_t *p, struct vec16 x)
{
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((__m128i *)(p + 16), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
}

#else
/* ---- portable: the compiler's vectors of 4 (SSE2, NEON, or plain code) ---------------------- */
typedef float vec4 __attribute__((vector_size(16)));
struct vec16 {
    vec4 q[4];
};
#define SIMD_PATH "portable"
#define SIMD_WIDE 0
#if defined(__aarch64__)
#define SIMD_MAX_ROW 6 /* 6 x 4 accumulators of 32 registers */
#else
#define SIMD_MAX_ROW 3 /* 3 x 4 accumulators of 16 registers */
#endif
#define VEC4_EACH(i) for (int i = 0; i < 4; i++)

INLINE struct vec16 vec16_load(const float *p)
{
    struct vec16 r;
    memcpy(&r, p, sizeof(r));
    return r;
}
INLINE void vec16_store(float *p, struct vec16 a)
{
    memcpy(p, &a, sizeof(a));
}
INLINE struct vec16 vec16_set(float x)
{
    vec4 v = {x, x, x, x};
    return (struct vec16){{v, v, v, v}};
}
#define VEC16_OPERATOR(name, op)                                                       \
    INLINE struct vec16 name(struct vec16 a, struct vec16 b)                           \
    {                                                                                  \
        return (struct vec16){                                                         \
            {a.q[0] op b.q[0], a.q[1] op b.q[1], a.q[2] op b.q[2], a.q[3] op b.q[3]}}; \
    }
VEC16_OPERATOR(vec16_add, +)
VEC16_OPERATOR(vec16_sub, -)
VEC16_OPERATOR(vec16_mul, *)
VEC16_OPERATOR(vec16_div, /)
INLINE struct vec16 vec16_fma(struct vec16 a, struct vec16 b, struct vec16 c)
{
    return vec16_add(vec16_mul(a, b), c);
}
/* a < b ? x : y, lane by lane */
INLINE struct vec16 vec16_if_less(struct vec16 a, struct vec16 b, struct vec16 x, struct vec16 y)
{
    typedef int32_t mask4 __attribute__((vector_size(16)));
    struct vec16 r;
    VEC4_EACH(i)
    {
        mask4 m = a.q[i] < b.q[i];
        r.q[i] = (vec4)((m & (mask4)x.q[i]) | (~m & (mask4)y.q[i]));
    }
    return r;
}
INLINE struct vec16 vec16_max(struct vec16 a, struct vec16 b)
{
    return vec16_if_less(b, a, a, b);
}
INLINE struct vec16 vec16_min(struct vec16 a, struct vec16 b)
{
    return vec16_if_less(a, b, a, b);
}
/* to nearest even, for magnitudes below 2^22: what is added moves the fraction out */
INLINE struct vec16 vec16_round(struct vec16 a)
{
    struct vec16 shift = vec16_set(0x1.8p23f);
    return vec16_sub(vec16_add(a, shift), shift);
}
/* 2^n for integers n of -126..127: adding 1.5 * 2^23 leaves n in the low bits */
INLINE struct vec16 vec16_exp2_int(struct vec16 n)
{
    typedef uint32_t word4 __attribute__((vector_size(16)));
    struct vec16 r = vec16_add(n, vec16_set(0x1.8p23f));
    VEC4_EACH(i)
    {
        r.q[i] = (vec4)(((word4)r.q[i] + 127) << 23);
    }
    return r;
}
#define VEC16_FROM(name, expression)           \
    INLINE struct vec16 name(const uint8_t *p) \
    {                                          \
        float x[16];                           \
        for (int i = 0; i < 16; i++)           \
            x[i] = expression;                 \
        return vec16_load(x);                  \
    }
VEC16_FROM(vec16_from_f16, tensor_f16_to_f32((uint16_t)(p[2 * i] | p[2 * i + 1] << 8)))
VEC16_FROM(vec16_from_bf16, tensor_bf16_to_f32((uint16_t)(p[2 * i] | p[2 * i + 1] << 8)))
VEC16_FROM(vec16_from_i8, (float)(int8_t)p[i])
VEC16_FROM(vec16_from_u8, (float)p[i])
INLINE void vec16_to_f16(uint8_t *p, struct vec16 a)
{
    float x[16];
    vec16_store(x, a);
    for (int i = 0; i < 16; i++) {
        uint16_t h = tensor_f32_to_f16(x[i]);
        memcpy(p + 2 * i, &h, 2);
    }
}
#endif

/* ---- what follows from the above ----------------------------------------------------------- */

INLINE struct vec16 vec16_zero(void)
{
    return vec16_set(0.0f);
}

/* n < 16 floats; the other lanes are 0 / not written. */
INLINE struct vec16 vec16_load_part(const float *p, uint32_t n)
{
    float x[16] = {0};
    memcpy(x, p, n * sizeof(float));
    return vec16_load(x);
}
INLINE void vec16_store_part(float *p, struct vec16 a, uint32_t n)
{
    float x[16];
    vec16_store(x, a);
    memcpy(p, x, n * sizeof(float));
}

/* Lanes added as a tree: always in this order. */
INLINE float vec16_sum(struct vec16 a)
{
    float x[16];
    vec16_store(x, a);
    for (int width = 8; width > 0; width /= 2) {
        for (int i = 0; i < width; i++)
            x[i] += x[i + width];
    }
    return x[0];
}
INLINE float vec16_greatest(struct vec16 a)
{
    float x[16];
    vec16_store(x, a);
    for (int width = 8; width > 0; width /= 2) {
        for (int i = 0; i < width; i++)
            x[i] = x[i] > x[i + width] ? x[i] : x[i + width];
    }
    return x[0];
}

#endif
