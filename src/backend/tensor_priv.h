#ifndef TELLERD_BACKEND_TENSOR_PRIV_H
#define TELLERD_BACKEND_TENSOR_PRIV_H

#include <stdint.h>

#include "tellerd/backend/tensor.h"

enum { TENSOR_MAX_BLOCK = 256 /* most elements of a block of any type */ };

/*
 * A quantised block taken apart: the one place that knows where each type keeps its bits.  The
 * value of element i is
 *   Q8_0          d * (int8) codes[i]
 *   Q4_0, Q5_0    d * (codes[i] - 8 or 16)
 *   Q4_1, Q5_1    d * codes[i] + m
 *   Q4_K, Q5_K    d * scales[i / 32] * codes[i] - m * mins[i / 32]
 *   Q6_K          d * (int8) scales[i / 16] * (codes[i] - 32)
 * In f32 each product is exact and the sum rounds once, so every path that evaluates these
 * expressions gets the same bits.
 */
struct tensor_block {
    uint16_t d, m; /* f16 bits */
    uint8_t scales[16];
    uint8_t mins[8];
    uint8_t codes[TENSOR_MAX_BLOCK];
};

/* Takes one block of a quantised type apart.  Pure; any thread. */
void tensor_block_read(enum tensor_type type, const uint8_t *block, struct tensor_block *ret);

#endif
