/*
 * Passes over a row of logits: the best, sums of exponentials.  Plain arithmetic on vectors of four
 * (the compilers' extension, which every processor has an answer to), in four chains: the order of
 * every sum, and so its last bit, is the same on every machine.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "sampler_priv.h"

typedef float f32x4 __attribute__((vector_size(16)));
typedef int32_t i32x4 __attribute__((vector_size(16)));
typedef double f64x4 __attribute__((vector_size(32)));

enum { LANES = 4, CHAINS = 4, STRIDE = LANES * CHAINS };

static inline f32x4 load(const float *from)
{
    f32x4 v;
    memcpy(&v, from, sizeof v);
    return v;
}

/* mask ? a : b */
static inline f32x4 select(i32x4 mask, f32x4 a, f32x4 b)
{
    return (f32x4)((mask & (i32x4)a) | (~mask & (i32x4)b));
}

/* Cephes' expf: e^x = 2^n e^r with |r| <= ln 2 / 2, and a polynomial for e^r. */
static inline f32x4 exp4(f32x4 x)
{
    const f32x4 least = {-87.0f, -87.0f, -87.0f, -87.0f};
    i32x4 in_range = x > least;
    f32x4 clipped = select(in_range, x, least);
    /* adding 1.5 * 2^23 rounds to an integer */
    f32x4 n = (clipped * 1.44269504f + 12582912.0f) - 12582912.0f;
    f32x4 r = (clipped - n * 0.693359375f) + n * 2.12194440e-4f;
    f32x4 p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    f32x4 y = p * r * r + r + 1.0f;
    i32x4 power = (__builtin_convertvector(n, i32x4) + 127) << 23;
    return select(in_range, y * (f32x4)power, (f32x4){0});
}

/* The last n < STRIDE numbers of a row, filled up with -inf, which adds nothing to any result. */
static void load_rest(const float *from, uint32_t n, float *to)
{
    for (uint32_t i = 0; i < STRIDE; i++)
        to[i] = i < n ? from[i] : -INFINITY;
}

struct best {
    f32x4 best[CHAINS];
    i32x4 sound[CHAINS]; /* -1: all so far below +inf, which NaN is not */
};

static inline void best_add(struct best *b, const float *x)
{
    const f32x4 infinity = {INFINITY, INFINITY, INFINITY, INFINITY};
    for (int c = 0; c < CHAINS; c++) {
        f32x4 v = load(x + c * LANES);
        b->best[c] = select(v > b->best[c], v, b->best[c]);
        b->sound[c] &= v < infinity;
    }
}

static float block_best(const float *x, uint32_t n, bool *ret_bad)
{
    struct best b;
    float rest[STRIDE];
    for (int c = 0; c < CHAINS; c++) {
        b.best[c] = (f32x4){-INFINITY, -INFINITY, -INFINITY, -INFINITY};
        b.sound[c] = (i32x4){-1, -1, -1, -1};
    }
    for (; n >= STRIDE; n -= STRIDE, x += STRIDE)
        best_add(&b, x);
    load_rest(x, n, rest);
    best_add(&b, rest);
    float best = -INFINITY;
    for (int i = 0; i < STRIDE; i++) {
        float v = b.best[i / LANES][i % LANES];
        best = v > best ? v : best;
        *ret_bad |= b.sound[i / LANES][i % LANES] == 0;
    }
    return best;
}

float sampler_best(const float *logits, uint32_t n, uint32_t *ret_at, bool *ret_bad)
{
    float best = -INFINITY;
    uint32_t block = 0;
    bool bad = false;
    for (uint32_t start = 0; start < n; start += SAMPLER_BLOCK) {
        uint32_t len = n - start < SAMPLER_BLOCK ? n - start : SAMPLER_BLOCK;
        float here = block_best(logits + start, len, &bad);
        if (here > best) {
            best = here;
            block = start;
        }
    }
    uint32_t at = block;
    while (at + 1 < n && logits[at] != best)
        at++;
    *ret_at = at;
    *ret_bad = bad;
    return best;
}

/* Adds weights[STRIDE] to the chains of a sum. */
static inline void sum_add(f64x4 *sums, const float *weights)
{
    for (int c = 0; c < CHAINS; c++)
        sums[c] += __builtin_convertvector(load(weights + c * LANES), f64x4);
}

static double sum_total(const f64x4 *sums)
{
    f64x4 sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

double sampler_weights(const struct candidate *candidates, uint32_t n, float *weights)
{
    f64x4 sums[CHAINS] = {{0}};
    float block[STRIDE];
    for (uint32_t start = 0; start < n; start += STRIDE) {
        uint32_t len = n - start < STRIDE ? n - start : STRIDE;
        for (uint32_t i = 0; i < STRIDE; i++)
            block[i] = i < len ? candidates[start + i].exponent : -INFINITY;
        for (int c = 0; c < CHAINS; c++) {
            f32x4 w = exp4(load(block + c * LANES));
            memcpy(block + c * LANES, &w, sizeof w);
        }
        sum_add(sums, block);
        memcpy(weights + start, block, len * sizeof *weights);
    }
    return sum_total(sums);
}

double sampler_sum_exp(const float *logits, uint32_t n, float best)
{
    f64x4 sums[CHAINS] = {{0}};
    float block[STRIDE];
    for (uint32_t start = 0; start < n; start += STRIDE) {
        load_rest(logits + start, n - start < STRIDE ? n - start : STRIDE, block);
        for (int c = 0; c < CHAINS; c++) {
            f32x4 w = exp4(load(block + c * LANES) - best);
            memcpy(block + c * LANES, &w, sizeof w);
        }
        sum_add(sums, block);
    }
    return sum_total(sums);
}
