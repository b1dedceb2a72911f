#ifndef TELLERD_BACKEND_CPU_SIMD_INT8_H
#define TELLERD_BACKEND_CPU_SIMD_INT8_H

/*
 * bytes64: 16 lanes of 4 unsigned bytes, a quad of weight codes (cpu_panels.h).  sum16: 16 lanes of
 * int32.  Their operations are exact, so all kernel sets give the same integers.
 *
 * A dot adds to each lane the sum of 4 products of its bytes with the 4 signed bytes of one int32,
 * which lie in -127 .. 127.  sum16_dot: bytes of at most 127.  sum16_dot_biased: any bytes, each
 * standing for itself less 128; the sum must begin at sum16_start(-128 times the sum of all signed
 * bytes that follow).  Sets without the instruction may subtract at once and begin at 0.
 */
#include "cpu_simd.h"

#if defined(CPU_PATH_AVX512)
struct bytes64 {
    __m512i v;
};
struct sum16 {
    __m512i v;
};
#define BYTES64(x) ((struct bytes64){x})
#define SUM16(x)   ((struct sum16){x})

INLINE struct bytes64 bytes64_load(const uint8_t *p)
{
    return BYTES64(_mm512_loadu_si512(p));
}
INLINE void bytes64_store(uint8_t *p, struct bytes64 a)
{
    _mm512_storeu_si512(p, a.v);
}
INLINE struct bytes64 bytes64_or(struct bytes64 a, struct bytes64 b)
{
    return BYTES64(_mm512_or_si512(a.v, b.v));
}
/* Each byte shifted left (right when negative), then masked; no bit may pass from a byte to the
 * next within the mask.  Both are constants. */
INLINE struct bytes64 bytes64_field(struct bytes64 a, const int left, const int mask)
{
    __m512i v = left > 0   ? _mm512_slli_epi16(a.v, (unsigned)left)
                : left < 0 ? _mm512_srli_epi16(a.v, (unsigned)-left)
                           : a.v;
    return BYTES64(_mm512_and_si512(v, _mm512_set1_epi8((char)mask)));
}
/* Byte i (a constant) of each lane as a float. */
INLINE struct vec16 vec16_from_quad(struct bytes64 a, const int i)
{
    __m512i v =
        i < 3 ? _mm512_and_si512(_mm512_srli_epi32(a.v, (unsigned)(8 * i)), _mm512_set1_epi32(255))
              : _mm512_srli_epi32(a.v, 24);
    return VEC16(_mm512_cvtepi32_ps(v));
}

INLINE struct sum16 sum16_set(int32_t x)
{
    return SUM16(_mm512_set1_epi32(x));
}
INLINE struct sum16 sum16_start(int32_t x)
{
    return sum16_set(x);
}
INLINE struct sum16 sum16_dot(struct sum16 sum, struct bytes64 w, int32_t x)
{
    return SUM16(_mm512_dpbusd_epi32(sum.v, w.v, _mm512_set1_epi32(x)));
}
INLINE struct sum16 sum16_dot_biased(struct sum16 sum, struct bytes64 w, int32_t x)
{
    return sum16_dot(sum, w, x);
}
INLINE struct vec16 vec16_from_sum(struct sum16 sum)
{
    return VEC16(_mm512_cvtepi32_ps(sum.v));
}

/* The largest magnitude of both: infinite or NaN when there is such a lane. */
INLINE float vec16_largest(struct vec16 a, struct vec16 b)
{
    __m512i mask = _mm512_set1_epi32(INT32_MAX);
    __m512i x = _mm512_and_si512(_mm512_castps_si512(a.v), mask);
    __m512i y = _mm512_and_si512(_mm512_castps_si512(b.v), mask);
    int32_t bits = _mm512_reduce_max_epi32(_mm512_max_epi32(x, y));
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
/* To the nearest integers (even when there are two), which fit; returns their sum. */
INLINE int32_t vec16_to_i8(int8_t *p, struct vec16 a)
{
    __m512i v = _mm512_cvtps_epi32(a.v);
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(v));
    return _mm512_reduce_add_epi32(v);
}

#elif defined(CPU_PATH_AVX2)
struct bytes64 {
    __m256i a, b;
};
struct sum16 {
    __m256i a, b;
};
#define BYTES64(x, y) ((struct bytes64){x, y})
#define SUM16(x, y)   ((struct sum16){x, y})

INLINE struct bytes64 bytes64_load(const uint8_t *p)
{
    return BYTES64(_mm256_loadu_si256((const __m256i *)p),
                   _mm256_loadu_si256((const __m256i *)(p + 32)));
}
INLINE void bytes64_store(uint8_t *p, struct bytes64 x)
{
    _mm256_storeu_si256((__m256i *)p, x.a);
    _mm256_storeu_si256((__m256i *)(p + 32), x.b);
}
INLINE struct bytes64 bytes64_or(struct bytes64 x, struct bytes64 y)
{
    return BYTES64(_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b));
}
INLINE __m256i bytes32_field(__m256i v, const int left, const int mask)
{
    v = left > 0 ? _mm256_slli_epi16(v, left) : left < 0 ? _mm256_srli_epi16(v, -left) : v;
    return _mm256_and_si256(v, _mm256_set1_epi8((char)mask));
}
INLINE struct bytes64 bytes64_field(struct bytes64 x, const int left, const int mask)
{
    return BYTES64(bytes32_field(x.a, left, mask), bytes32_field(x.b, left, mask));
}
INLINE struct vec16 vec16_from_quad(struct bytes64 x, const int i)
{
    __m256i mask = _mm256_set1_epi32(255);
    return VEC16(_mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(x.a, 8 * i), mask)),
                 _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(x.b, 8 * i), mask)));
}

INLINE struct sum16 sum16_set(int32_t x)
{
    return SUM16(_mm256_set1_epi32(x), _mm256_set1_epi32(x));
}
INLINE struct sum16 sum16_start(int32_t x)
{
    (void)x;
    return sum16_set(0);
}
/* Pairs of products are added in 16 bits, so one side is at most 127 where the other may be 128 or
 * more: 2 * 127 * 128 fits. */
INLINE __m256i sum8_dot(__m256i sum, __m256i w, __m256i x)
{
    return _mm256_add_epi32(sum,
                            _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1)));
}
INLINE struct sum16 sum16_dot(struct sum16 sum, struct bytes64 w, int32_t x)
{
    __m256i all = _mm256_set1_epi32(x);
    return SUM16(sum8_dot(sum.a, w.a, all), sum8_dot(sum.b, w.b, all));
}
/* The magnitude of the weight is the unsigned side (128 is right), its sign goes to x. */
INLINE __m256i sum8_dot_signed(__m256i sum, __m256i w, __m256i x)
{
    return sum8_dot(sum, _mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
}
INLINE struct sum16 sum16_dot_biased(struct sum16 sum, struct bytes64 w, int32_t x)
{
    __m256i all = _mm256_set1_epi32(x), bias = _mm256_set1_epi8((char)0x80);
    return SUM16(sum8_dot_signed(sum.a, _mm256_xor_si256(w.a, bias), all),
                 sum8_dot_signed(sum.b, _mm256_xor_si256(w.b, bias), all));
}
INLINE struct vec16 vec16_from_sum(struct sum16 sum)
{
    return VEC16(_mm256_cvtepi32_ps(sum.a), _mm256_cvtepi32_ps(sum.b));
}

INLINE float vec16_largest(struct vec16 x, struct vec16 y)
{
    __m256i mask = _mm256_set1_epi32(INT32_MAX);
    __m256i m =
        _mm256_max_epi32(_mm256_max_epi32(_mm256_and_si256(_mm256_castps_si256(x.a), mask),
                                          _mm256_and_si256(_mm256_castps_si256(x.b), mask)),
                         _mm256_max_epi32(_mm256_and_si256(_mm256_castps_si256(y.a), mask),
                                          _mm256_and_si256(_mm256_castps_si256(y.b), mask)));
    __m128i h = _mm_max_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
    h = _mm_max_epi32(h, _mm_shuffle_epi32(h, 0x4e));
    h = _mm_max_epi32(h, _mm_shuffle_epi32(h, 0xb1));
    int32_t bits = _mm_cvtsi128_si32(h);
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
INLINE int32_t vec16_to_i8(int8_t *p, struct vec16 x)
{
    __m256i a = _mm256_cvtps_epi32(x.a), b = _mm256_cvtps_epi32(x.b), sum = _mm256_add_epi32(a, b);
    __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
    _mm_storeu_si128((__m128i *)p, _mm_packs_epi16(_mm256_castsi256_si128(words),
                                                   _mm256_extracti128_si256(words, 1)));
    __m128i h = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
    h = _mm_add_epi32(h, _mm_shuffle_epi32(h, 0x4e));
    h = _mm_add_epi32(h, _mm_shuffle_epi32(h, 0xb1));
    return _mm_cvtsi128_si32(h);
}

#else
/* The compiler's vectors of 16 bytes, seen as numbers of 8, 16 or 32 bits, the lowest byte first.
 */
typedef uint8_t byte16 __attribute__((vector_size(16)));
typedef int16_t short8 __attribute__((vector_size(16)));
typedef int32_t word4 __attribute__((vector_size(16)));
typedef uint32_t uword4 __attribute__((vector_size(16)));
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "quads of codes are little-endian");

struct bytes64 {
    byte16 q[4];
};
struct sum16 {
    word4 q[4];
};

INLINE struct bytes64 bytes64_load(const uint8_t *p)
{
    struct bytes64 r;
    memcpy(&r, p, sizeof(r));
    return r;
}
INLINE void bytes64_store(uint8_t *p, struct bytes64 a)
{
    memcpy(p, &a, sizeof(a));
}
INLINE struct bytes64 bytes64_or(struct bytes64 a, struct bytes64 b)
{
    VEC4_EACH(i)
    {
        a.q[i] |= b.q[i];
    }
    return a;
}
INLINE struct bytes64 bytes64_field(struct bytes64 a, const int left, const int mask)
{
    VEC4_EACH(i)
    {
        uword4 v = (uword4)a.q[i];
        v = left > 0 ? v << left : v >> -left;
        a.q[i] = (byte16)(v & (uint32_t)mask * 0x01010101u);
    }
    return a;
}
INLINE struct vec16 vec16_from_quad(struct bytes64 a, const int i)
{
    struct vec16 r;
    VEC4_EACH(j)
    {
        r.q[j] = __builtin_convertvector((word4)((uword4)a.q[j] >> (8 * i) & 255u), vec4);
    }
    return r;
}

INLINE struct sum16 sum16_set(int32_t x)
{
    word4 v = {x, x, x, x};
    return (struct sum16){{v, v, v, v}};
}
INLINE struct sum16 sum16_start(int32_t x)
{
    return sum16_set(x);
}
/* Products fit in 16 bits: 255 * 127. */
INLINE struct sum16 sum16_dot(struct sum16 sum, struct bytes64 w, int32_t x)
{
    uint32_t u = (uint32_t)x;
    int16_t x0 = (int8_t)u, x1 = (int8_t)(u >> 8), x2 = (int8_t)(u >> 16), x3 = (int8_t)(u >> 24);
    short8 even = {x0, x2, x0, x2, x0, x2, x0, x2};
    short8 odd = {x1, x3, x1, x3, x1, x3, x1, x3};
    VEC4_EACH(i)
    {
        uword4 v = (uword4)w.q[i];
        word4 a = (word4)((short8)(v & 0x00ff00ffu) * even);
        word4 b = (word4)((short8)(v >> 8 & 0x00ff00ffu) * odd);
        sum.q[i] += (a >> 16) + ((word4)((uword4)a << 16) >> 16) + (b >> 16) +
                    ((word4)((uword4)b << 16) >> 16);
    }
    return sum;
}
INLINE struct sum16 sum16_dot_biased(struct sum16 sum, struct bytes64 w, int32_t x)
{
    return sum16_dot(sum, w, x);
}
INLINE struct vec16 vec16_from_sum(struct sum16 sum)
{
    struct vec16 r;
    VEC4_EACH(i)
    {
        r.q[i] = __builtin_convertvector(sum.q[i], vec4);
    }
    return r;
}

INLINE float vec16_largest(struct vec16 a, struct vec16 b)
{
    float x[32], f;
    vec16_store(x, a);
    vec16_store(x + 16, b);
    uint32_t most = 0;
    for (int i = 0; i < 32; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, 4);
        bits &= INT32_MAX;
        most = bits > most ? bits : most;
    }
    memcpy(&f, &most, 4);
    return f;
}
INLINE int32_t vec16_to_i8(int8_t *p, struct vec16 a)
{
    float x[16];
    int32_t sum = 0;
    vec16_store(x, vec16_round(a));
    for (int i = 0; i < 16; i++) {
        p[i] = (int8_t)x[i];
        sum += p[i];
    }
    return sum;
}
#endif

#endif
