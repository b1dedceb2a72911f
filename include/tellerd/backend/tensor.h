#ifndef TELLERD_BACKEND_TENSOR_H
#define TELLERD_BACKEND_TENSOR_H

/*
 * Element types and views of tensors in memory.  This header and backend.h stay in the common
 * subset of C and C++, since .cu files read them.
 *
 * Dimension letters, used everywhere: B sequences, T rows (tokens) of a step, C embedding length, H
 * query heads, K KV heads, D head size, F feed-forward length, V vocabulary (logit) rows, L layers,
 * P positions of a block.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* GGML's type numbers, so that a GGUF type is one of these after a range check. */
enum tensor_type {
    TENSOR_F32 = 0,
    TENSOR_F16 = 1,
    TENSOR_Q4_0 = 2,
    TENSOR_Q4_1 = 3,
    TENSOR_Q5_0 = 6,
    TENSOR_Q5_1 = 7,
    TENSOR_Q8_0 = 8,
    TENSOR_Q4_K = 12,
    TENSOR_Q5_K = 13,
    TENSOR_Q6_K = 14,
    TENSOR_BF16 = 30,
    TENSOR_TYPE_LIMIT = 31,
    /* cache only: groups of 32 int8 with one f16 scale, scale first (34 bytes), the bytes of Q8_0
     */
};

/* A matrix [rows, columns] (columns contiguous; a row is columns / block_elements blocks) or a
 * vector (rows = 1) in memory that someone else owns. */
struct tensor {
    const void *data;
    enum tensor_type type;
    uint32_t n_dims;
    uint64_t columns;
    uint64_t rows;
    size_t size_bytes;
};

/* Name ("q8_0"), elements per block, bytes per block; known = one of the enum's values.  Pure; any
 * thread. */
bool tensor_type_known(uint32_t type);
const char *tensor_type_name(enum tensor_type type);
uint32_t tensor_block_elements(enum tensor_type type);
uint32_t tensor_block_bytes(enum tensor_type type);
/* "f32", "bf16", "int8" (= Q8_0), ...; false when unknown. */
bool tensor_type_parse(const char *name, enum tensor_type *ret);
/* Bytes of one row of `columns` elements; false when columns is no multiple of the block or the
 * product overflows. */
bool tensor_row_bytes(enum tensor_type type, uint64_t columns, size_t *ret);

/* Expands n elements (a multiple of the block) to f32: the slow plain reference, the oracle of all
 * other paths. */
void tensor_dequantize(enum tensor_type type, const void *blocks, float *out, size_t n);
/* Rounds n elements to the type: F32, F16, BF16 and Q8_0 only (the cache types).  Round to nearest
 * even. */
void tensor_quantize(enum tensor_type type, const float *values, void *out, size_t n);

float tensor_f16_to_f32(uint16_t half);
uint16_t tensor_f32_to_f16(float value);
static inline float tensor_bf16_to_f32(uint16_t value)
{
    union {
        uint32_t u;
        float f;
    } bits;
    bits.u = (uint32_t)value << 16;
    return bits.f;
}
uint16_t tensor_f32_to_bf16(float value);

#endif
