#include "config.h"

/*
 * What the bits of each weight type mean: GGML's block formats, taken apart (tensor_block_read) and
 * expanded to f32 (tensor_dequantize, the oracle of all faster paths).
 */
#include <string.h>

#include "tellerd/backend/tensor.h"
#include "tellerd/base/status.h"
#include "tensor_priv.h"

static uint16_t read_u16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

/* 32 codes of 4 bits: byte i holds element i below and element i + 16 above. */
static void read_nibbles(const uint8_t *bytes, uint8_t *codes)
{
    for (int i = 0; i < 16; i++) {
        codes[i] = bytes[i] & 15;
        codes[i + 16] = bytes[i] >> 4;
    }
}

/* The fifth bit of 32 codes: bit i of a little-endian word. */
static void read_fifth_bits(const uint8_t *bytes, uint8_t *codes)
{
    for (int i = 0; i < 32; i++)
        codes[i] |= (uint8_t)((bytes[i / 8] >> (i % 8) & 1) << 4);
}

/* 8 scales and 8 mins of 6 bits in 12 bytes (Q4_K, Q5_K). */
static void read_scales(const uint8_t *bytes, uint8_t *scales, uint8_t *mins)
{
    for (int i = 0; i < 4; i++) {
        scales[i] = bytes[i] & 63;
        mins[i] = bytes[i + 4] & 63;
        scales[i + 4] = (uint8_t)((bytes[i + 8] & 15) | bytes[i] >> 6 << 4);
        mins[i + 4] = (uint8_t)(bytes[i + 8] >> 4 | bytes[i + 4] >> 6 << 4);
    }
}

/* 256 codes of 4 bits: 32 bytes for each pair of groups of 32, the even group below. */
static void read_group_nibbles(const uint8_t *bytes, uint8_t *codes)
{
    for (int pair = 0; pair < 4; pair++) {
        for (int i = 0; i < 32; i++) {
            codes[64 * pair + i] = bytes[32 * pair + i] & 15;
            codes[64 * pair + 32 + i] = bytes[32 * pair + i] >> 4;
        }
    }
}

/* Q6_K: two halves of 128 codes; in each, 64 bytes of low nibbles and 32 bytes of top bit pairs. */
static void read_six_bits(const uint8_t *low, const uint8_t *high, uint8_t *codes)
{
    for (int half = 0; half < 2; half++) {
        for (int part = 0; part < 4; part++) {
            for (int i = 0; i < 32; i++) {
                uint8_t nibble = low[64 * half + 32 * (part & 1) + i] >> (part < 2 ? 0 : 4) & 15;
                uint8_t top = high[32 * half + i] >> 2 * part & 3;
                codes[128 * half + 32 * part + i] = (uint8_t)(nibble | top << 4);
            }
        }
    }
}

void tensor_block_read(enum tensor_type type, const uint8_t *block, struct tensor_block *ret)
{
    ret->d = read_u16(block + (type == TENSOR_Q6_K ? 208 : 0));
    ret->m = 0;
    switch (type) {
    case TENSOR_Q8_0:
        memcpy(ret->codes, block + 2, 32);
        break;
    case TENSOR_Q4_0:
        read_nibbles(block + 2, ret->codes);
        break;
    case TENSOR_Q4_1:
        ret->m = read_u16(block + 2);
        read_nibbles(block + 4, ret->codes);
        break;
    case TENSOR_Q5_0:
        read_nibbles(block + 6, ret->codes);
        read_fifth_bits(block + 2, ret->codes);
        break;
    case TENSOR_Q5_1:
        ret->m = read_u16(block + 2);
        read_nibbles(block + 8, ret->codes);
        read_fifth_bits(block + 4, ret->codes);
        break;
    case TENSOR_Q4_K:
        ret->m = read_u16(block + 2);
        read_scales(block + 4, ret->scales, ret->mins);
        read_group_nibbles(block + 16, ret->codes);
        break;
    case TENSOR_Q5_K:
        ret->m = read_u16(block + 2);
        read_scales(block + 4, ret->scales, ret->mins);
        read_group_nibbles(block + 48, ret->codes);
        for (int i = 0; i < 256; i++)
            ret->codes[i] |= (uint8_t)((block[16 + i % 32] >> i / 32 & 1) << 4);
        break;
    case TENSOR_Q6_K:
        read_six_bits(block, block + 128, ret->codes);
        memcpy(ret->scales, block + 192, 16);
        break;
    default:
        REQUIRE(!"a quantised type");
    }
}

static void dequantize_block(enum tensor_type type, const uint8_t *bytes, float *out)
{
    struct tensor_block b;
    tensor_block_read(type, bytes, &b);
    float d = tensor_f16_to_f32(b.d), m = tensor_f16_to_f32(b.m);
    int n = (int)tensor_block_elements(type);
    for (int i = 0; i < n; i++) {
        switch (type) {
        case TENSOR_Q8_0:
            out[i] = d * (int8_t)b.codes[i];
            break;
        case TENSOR_Q4_0:
            out[i] = d * (b.codes[i] - 8);
            break;
        case TENSOR_Q5_0:
            out[i] = d * (b.codes[i] - 16);
            break;
        case TENSOR_Q4_1:
        case TENSOR_Q5_1:
            out[i] = d * b.codes[i] + m;
            break;
        case TENSOR_Q6_K:
            out[i] = d * (int8_t)b.scales[i / 16] * (b.codes[i] - 32);
            break;
        default: /* Q4_K, Q5_K */
            out[i] = d * b.scales[i / 32] * b.codes[i] - m * b.mins[i / 32];
        }
    }
}

void tensor_dequantize(enum tensor_type type, const void *blocks, float *out, size_t n)
{
    uint32_t elements = tensor_block_elements(type), size = tensor_block_bytes(type);
    REQUIRE(n % elements == 0);
    switch (type) {
    case TENSOR_F32:
        memcpy(out, blocks, n * sizeof(float));
        break;
    case TENSOR_F16:
        for (size_t i = 0; i < n; i++)
            out[i] = tensor_f16_to_f32(read_u16((const uint8_t *)blocks + 2 * i));
        break;
    case TENSOR_BF16:
        for (size_t i = 0; i < n; i++)
            out[i] = tensor_bf16_to_f32(read_u16((const uint8_t *)blocks + 2 * i));
        break;
    default:
        for (size_t i = 0; i < n / elements; i++)
            dequantize_block(type, (const uint8_t *)blocks + i * size, out + i * elements);
    }
}
