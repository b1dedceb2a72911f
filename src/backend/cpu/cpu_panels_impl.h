#ifndef TELLERD_BACKEND_CPU_PANELS_IMPL_H
#define TELLERD_BACKEND_CPU_PANELS_IMPL_H

/*
 * Panels of quantised weights (cpu_panels.h) as kernels see them.  Part of cpu_kernels_impl.h.
 *
 * Two kinds.  Biased (Q8_0, Q4_0, Q5_0, Q6_K): codes of fewer than 8 bits are shifted up so that
 * all stand for byte - 128, and d is divided by as much; the weight is (byte - 128) * d.  With a
 * minimum (the others): byte * d + m.  In f32 the products are exact and a sum rounds once, as in
 * tensor_dequantize.  `type` is a constant throughout.
 */
#include "cpu_kernels.h"
#include "cpu_panels.h"
#include "cpu_simd_int8.h"

INLINE bool quant_biased(const enum tensor_type type)
{
    return type == TENSOR_Q8_0 || type == TENSOR_Q4_0 || type == TENSOR_Q5_0 || type == TENSOR_Q6_K;
}

/* What the codes of one group are multiplied by and added to. */
struct quant_scales {
    struct vec16 d[2], m; /* d[1]: of the upper 16 k, Q6_K alone */
};

/* scales: of the panel.  group: counted from its begin. */
INLINE struct quant_scales quant_scales_of(const enum tensor_type type, const uint8_t *scales,
                                           uint32_t group)
{
    struct quant_scales r;
    const uint8_t *p = scales + group / (cpu_block_groups(type)) * cpu_block_scales(type);
    r.m = vec16_zero();
    r.d[0] = vec16_from_f16(p);
    if (type == TENSOR_Q4_0 || type == TENSOR_Q5_0)
        r.d[0] = vec16_mul(r.d[0], vec16_set(type == TENSOR_Q4_0 ? 0x1p-4f : 0x1p-3f));
    if (type == TENSOR_Q4_1 || type == TENSOR_Q5_1)
        r.m = vec16_from_f16(p + 32);
    if (type == TENSOR_Q4_K || type == TENSOR_Q5_K) {
        const uint8_t *scale = p + 64 + group % 8 * CPU_PANEL;
        struct vec16 negative = vec16_sub(vec16_zero(), vec16_from_f16(p + 32));
        r.d[0] = vec16_mul(r.d[0], vec16_from_u8(scale));
        r.m = vec16_mul(negative, vec16_from_u8(scale + 128));
    }
    r.d[1] = r.d[0];
    if (type == TENSOR_Q6_K) {
        const uint8_t *scale = p + 32 + group % 8 * 2 * CPU_PANEL;
        struct vec16 d = vec16_mul(r.d[0], vec16_set(0x1p-2f));
        r.d[0] = vec16_mul(d, vec16_from_i8(scale));
        r.d[1] = vec16_mul(d, vec16_from_i8(scale + CPU_PANEL));
    }
    return r;
}

/* Quad q (a constant) of the group whose codes begin at p. */
INLINE struct bytes64 quant_quad(const enum tensor_type type, const uint8_t *p, const int q)
{
    if (type == TENSOR_Q8_0)
        return bytes64_load(p + 64 * q);
    struct bytes64 pair = bytes64_load(p + q / 2 * 64);
    const int down = q % 2 * 4; /* where the nibble lies */
    switch (type) {
    case TENSOR_Q4_0:
        return bytes64_field(pair, 4 - down, 0xf0);
    case TENSOR_Q5_0:
        return bytes64_or(bytes64_field(pair, 3 - down, 0x78),
                          bytes64_field(bytes64_load(p + 256), 7 - q, 0x80));
    case TENSOR_Q6_K:
        return bytes64_or(bytes64_field(pair, 2 - down, 0x3c),
                          bytes64_field(bytes64_load(p + 256 + q / 4 * 64), 6 - q % 4 * 2, 0xc0));
    case TENSOR_Q5_1:
    case TENSOR_Q5_K:
        return bytes64_or(bytes64_field(pair, -down, 0x0f),
                          bytes64_field(bytes64_load(p + 256), 4 - q, 0x10));
    default: /* Q4_1, Q4_K */
        return bytes64_field(pair, -down, 0x0f);
    }
}

/* The weights of k = 4q + i from the bytes of quad q. */
INLINE struct vec16 quant_weights(const enum tensor_type type, struct bytes64 quad,
                                  const struct quant_scales *s, const int q, const int i)
{
    struct vec16 v = vec16_from_quad(quad, i);
    if (quant_biased(type))
        return vec16_mul(vec16_sub(v, vec16_set(128.0f)), s->d[q / 4]);
    return vec16_fma(v, s->d[0], s->m);
}

#endif
