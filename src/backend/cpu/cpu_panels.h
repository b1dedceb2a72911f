#ifndef TELLERD_BACKEND_CPU_PANELS_H
#define TELLERD_BACKEND_CPU_PANELS_H

#include <stddef.h>
#include <stdint.h>

#include "tellerd/backend/tensor.h"

/*
 * Weights as the products read them: panels of 16 output rows, k going up, the 16 outputs of one k
 * side by side.  The type is kept, so a panel has the bytes of 16 rows (a little more for Q4_K and
 * Q5_K, whose 6-bit scales become bytes).  Rows past the end are zero.
 *
 *   F32, F16, BF16   [k][16]
 *   Q8_0   per 32 k  d f16[16], codes [32][16]
 *   Q4_0             d f16[16], nibbles [16][16]     byte [i][o]: k = 2i below, 2i + 1 above
 *   Q4_1             d f16[16], m f16[16], nibbles
 *   Q5_0             d f16[16], nibbles, fifth bits u16[32]   bit o of word k
 *   Q5_1             d f16[16], m f16[16], nibbles, fifth bits
 *   Q4_K  per 256 k  d f16[16], m f16[16], scales u8[8][16], mins u8[8][16], nibbles [128][16]
 *   Q5_K             the same, fifth bits u16[256]
 *   Q6_K             d f16[16], scales i8[16][16], nibbles [128][16], top bits [64][16]
 *                    byte [i][o]: 2 bits each for k = 4i .. 4i + 3
 */

/* Bytes of a panel of n_k; n_k is a multiple of the type's block. */
size_t cpu_panel_bytes(enum tensor_type type, uint32_t n_k);

/* Packs rows 16 * panel .. of source (zero rows beyond) to out, cpu_panel_bytes of it. */
void cpu_panel_pack(const struct tensor *source, uint32_t panel, uint8_t *out);

#endif
