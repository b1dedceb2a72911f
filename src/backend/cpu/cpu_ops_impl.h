#ifndef TELLERD_BACKEND_CPU_OPS_IMPL_H
#define TELLERD_BACKEND_CPU_OPS_IMPL_H

/*
 * Norms, rotation, activations: element by element, in vec16.  Part of cpu_kernels_impl.h.
 */
#include "cpu_attention_impl.h"
#include "cpu_kernels.h"
#include "cpu_simd.h"

static float kernel_dot(const float *a, const float *b, uint32_t n)
{
    struct vec16 sum = vec16_zero();
    uint32_t i = 0;
    for (; i + 16 <= n; i += 16)
        sum = vec16_fma(vec16_load(a + i), vec16_load(b + i), sum);
    if (i < n)
        sum = vec16_fma(vec16_load_part(a + i, n - i), vec16_load_part(b + i, n - i), sum);
    return vec16_sum(sum);
}

static void kernel_norm(float *y, const float *x, const float *w, float eps, float scale,
                        uint32_t n)
{
    float factor = scale / sqrtf(kernel_dot(x, x, n) / (float)n + eps);
    struct vec16 f = vec16_set(factor);
    uint32_t i = 0;
    for (; i + 16 <= n; i += 16) {
        struct vec16 v = vec16_mul(vec16_load(x + i), f);
        vec16_store(y + i, w ? vec16_mul(v, vec16_load(w + i)) : v);
    }
    for (; i < n; i++)
        y[i] = w ? x[i] * factor * w[i] : x[i] * factor;
}

static void kernel_add_scaled(float *y, const float *x, float factor, uint32_t n)
{
    struct vec16 f = vec16_set(factor);
    uint32_t i = 0;
    for (; i + 16 <= n; i += 16)
        vec16_store(y + i, vec16_fma(vec16_load(x + i), f, vec16_load(y + i)));
    if (i < n)
        vec16_store_part(y + i,
                         vec16_fma(vec16_load_part(x + i, n - i), f, vec16_load_part(y + i, n - i)),
                         n - i);
}

static void kernel_rotate(float *x, const float *cosines, const float *sines, uint32_t n_dims,
                          bool interleaved)
{
    uint32_t half = n_dims / 2, i = 0;
    if (interleaved) {
        for (; i < half; i++) {
            float a = x[2 * i], b = x[2 * i + 1];
            x[2 * i] = a * cosines[i] - b * sines[i];
            x[2 * i + 1] = a * sines[i] + b * cosines[i];
        }
        return;
    }
    for (; i + 16 <= half; i += 16) {
        struct vec16 a = vec16_load(x + i), b = vec16_load(x + half + i);
        struct vec16 c = vec16_load(cosines + i), s = vec16_load(sines + i);
        vec16_store(x + i, vec16_sub(vec16_mul(a, c), vec16_mul(b, s)));
        vec16_store(x + half + i, vec16_add(vec16_mul(a, s), vec16_mul(b, c)));
    }
    for (; i < half; i++) {
        float a = x[i], b = x[half + i];
        x[i] = a * cosines[i] - b * sines[i];
        x[half + i] = a * sines[i] + b * cosines[i];
    }
}

/* Applies a function of vec16 to n floats; the rest goes through a zero-filled vector. */
#define MAP(x, n, expression)                                               \
    do {                                                                    \
        size_t at = 0;                                                      \
        for (; at + 16 <= (n); at += 16) {                                  \
            struct vec16 v = vec16_load((x) + at);                          \
            vec16_store((x) + at, expression);                              \
        }                                                                   \
        if (at < (n)) {                                                     \
            struct vec16 v = vec16_load_part((x) + at, (uint32_t)((n)-at)); \
            vec16_store_part((x) + at, expression, (uint32_t)((n)-at));     \
        }                                                                   \
    } while (0)

INLINE struct vec16 vec16_silu(struct vec16 x)
{
    struct vec16 one = vec16_set(1.0f);
    return vec16_div(x, vec16_add(one, vec16_exp(vec16_sub(vec16_zero(), x))));
}

static void kernel_swiglu(float *gate, const float *up, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        vec16_store(gate + i, vec16_mul(vec16_silu(vec16_load(gate + i)), vec16_load(up + i)));
    if (i < n) {
        uint32_t rest = (uint32_t)(n - i);
        struct vec16 v = vec16_silu(vec16_load_part(gate + i, rest));
        vec16_store_part(gate + i, vec16_mul(v, vec16_load_part(up + i, rest)), rest);
    }
}

INLINE struct vec16 vec16_relu_squared(struct vec16 x)
{
    x = vec16_max(vec16_zero(), x); /* NaN stays */
    return vec16_mul(x, x);
}

static void kernel_relu_squared(float *x, size_t n)
{
    MAP(x, n, vec16_relu_squared(v));
}

/* tanh, about 2 ulp: a polynomial near 0, 1 - 2 / (e^2|x| + 1) elsewhere. */
INLINE struct vec16 vec16_tanh(struct vec16 x)
{
    struct vec16 one = vec16_set(1.0f), two = vec16_set(2.0f), z = vec16_mul(x, x);
    struct vec16 magnitude = vec16_max(vec16_sub(vec16_zero(), x), x);
    struct vec16 p = vec16_set(-5.70498872745e-3f);
    p = vec16_fma(p, z, vec16_set(2.06390887954e-2f));
    p = vec16_fma(p, z, vec16_set(-5.37397155531e-2f));
    p = vec16_fma(p, z, vec16_set(1.33314422036e-1f));
    p = vec16_fma(p, z, vec16_set(-3.33332819422e-1f));
    p = vec16_fma(vec16_mul(p, z), x, x);
    struct vec16 e = vec16_exp(vec16_mul(magnitude, two));
    struct vec16 far = vec16_sub(one, vec16_div(two, vec16_add(e, one)));
    far = vec16_if_less(x, vec16_zero(), vec16_sub(vec16_zero(), far), far);
    return vec16_if_less(magnitude, vec16_set(0.625f), p, far);
}

static void kernel_softcap(float *x, float cap, size_t n)
{
    struct vec16 c = vec16_set(cap);
    MAP(x, n, vec16_mul(vec16_tanh(vec16_div(v, c)), c));
}

static void kernel_round(enum tensor_type type, const float *x, uint8_t *out, uint32_t n)
{
    uint32_t i = 0;
    if (type == TENSOR_F16) {
        for (; i + 16 <= n; i += 16)
            vec16_to_f16(out + 2 * i, vec16_load(x + i));
        tensor_quantize(type, x + i, out + 2 * i, n - i);
        return;
    }
    tensor_quantize(type, x, out, n);
}

#endif
