#ifndef TELLERD_BACKEND_CPU_PANELS_H
#define TELLERD_BACKEND_CPU_PANELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/backend/tensor.h"

/*
 * Weights as the products read them: panels of 16 output rows, k going up.  The type is kept, so a
 * panel has the bytes of 16 rows (a little more for Q4_K and Q5_K, whose 6-bit scales become
 * bytes).  Rows past the end are zero.
 *
 * F32, F16, BF16: [k][16].
 *
 * Quantised types: the codes of all groups of 32 k, then the scales of all groups.  A group is 8
 * quads of 4 k; the 16 outputs of a quad lie side by side, 4 bytes each, as instructions that sum
 * four products of bytes want them: byte [o][i] of quad q is of output o, k = 4q + i.
 *
 *   8 bits   [8][16][4]    the code plus 128, so that it is unsigned
 *   4 bits   [4][16][4]    byte [h][o][i]: quad 2h below, 2h + 1 above
 *   5 bits   4 bits, [16][4]     the fifth bits: bit q of byte [o][i]
 *   6 bits   4 bits, [2][16][4]  the top bits: byte [h][o][i] has 2 for each of quads 4h .. 4h + 3
 *
 *   Q8_0, Q4_0, Q5_0   per group  d f16[16]
 *   Q4_1, Q5_1                    d f16[16], m f16[16]
 *   Q4_K, Q5_K   per 8 groups  d f16[16], m f16[16], scales u8[8][16], mins u8[8][16]
 *   Q6_K                       d f16[16], scales i8[16][16], one for each half of a group
 */
enum {
    CPU_GROUP = 32,      /* k of a group */
    CPU_PANEL_ALIGN = 64 /* panels begin at multiples, when the first does */
};

static inline bool cpu_type_quantised(enum tensor_type type)
{
    return type != TENSOR_F32 && type != TENSOR_F16 && type != TENSOR_BF16;
}

/* Groups that share one block's scales. */
static inline uint32_t cpu_block_groups(enum tensor_type type)
{
    return type == TENSOR_Q4_K || type == TENSOR_Q5_K || type == TENSOR_Q6_K ? 8 : 1;
}

/* Bytes of the codes of one group of a quantised type. */
static inline size_t cpu_group_codes(enum tensor_type type)
{
    switch (type) {
    case TENSOR_Q8_0:
        return 512;
    case TENSOR_Q5_0:
    case TENSOR_Q5_1:
    case TENSOR_Q5_K:
        return 256 + 64;
    case TENSOR_Q6_K:
        return 256 + 128;
    default:
        return 256;
    }
}

/* Bytes of the scales of one block (32 or 256 k) of a quantised type. */
static inline size_t cpu_block_scales(enum tensor_type type)
{
    switch (type) {
    case TENSOR_Q4_1:
    case TENSOR_Q5_1:
        return 64;
    case TENSOR_Q4_K:
    case TENSOR_Q5_K:
        return 64 + 256;
    case TENSOR_Q6_K:
        return 32 + 256;
    default:
        return 32;
    }
}

/* Bytes of a panel of n_k; n_k is a multiple of the type's block. */
size_t cpu_panel_bytes(enum tensor_type type, uint32_t n_k);

/* Packs rows 16 * panel .. of source (zero rows beyond) to out, cpu_panel_bytes of it. */
void cpu_panel_pack(const struct tensor *source, uint32_t panel, uint8_t *out);

#endif
