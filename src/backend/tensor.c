#include "config.h"

/*
 * Names and sizes of the element types, the 16-bit float conversions, and rounding to the types
 * that a cache can have.  What the bits of the quantised weight types mean is in tensor_types.c.
 */
#include <math.h>
#include <string.h>

#include "tellerd/backend/tensor.h"
#include "tellerd/base/mem.h"
#include "tellerd/base/status.h"

static const struct {
    const char *name;
    uint16_t elements, bytes;
} types[TENSOR_TYPE_LIMIT] = {
    [TENSOR_F32] = {"f32", 1, 4},       [TENSOR_F16] = {"f16", 1, 2},
    [TENSOR_BF16] = {"bf16", 1, 2},     [TENSOR_Q4_0] = {"q4_0", 32, 18},
    [TENSOR_Q4_1] = {"q4_1", 32, 20},   [TENSOR_Q5_0] = {"q5_0", 32, 22},
    [TENSOR_Q5_1] = {"q5_1", 32, 24},   [TENSOR_Q8_0] = {"q8_0", 32, 34},
    [TENSOR_Q4_K] = {"q4_k", 256, 144}, [TENSOR_Q5_K] = {"q5_k", 256, 176},
    [TENSOR_Q6_K] = {"q6_k", 256, 210},
};

bool tensor_type_known(uint32_t type)
{
    return type < TENSOR_TYPE_LIMIT && types[type].name;
}

const char *tensor_type_name(enum tensor_type type)
{
    return tensor_type_known(type) ? types[type].name : "unknown";
}

uint32_t tensor_block_elements(enum tensor_type type)
{
    REQUIRE(tensor_type_known(type));
    return types[type].elements;
}

uint32_t tensor_block_bytes(enum tensor_type type)
{
    REQUIRE(tensor_type_known(type));
    return types[type].bytes;
}

bool tensor_type_parse(const char *name, enum tensor_type *ret)
{
    if (strcmp(name, "int8") == 0) {
        *ret = TENSOR_Q8_0;
        return true;
    }
    for (uint32_t i = 0; i < TENSOR_TYPE_LIMIT; i++) {
        if (types[i].name && strcmp(types[i].name, name) == 0) {
            *ret = (enum tensor_type)i;
            return true;
        }
    }
    return false;
}

bool tensor_row_bytes(enum tensor_type type, uint64_t columns, size_t *ret)
{
    REQUIRE(tensor_type_known(type));
    if (columns % types[type].elements != 0 || columns / types[type].elements > SIZE_MAX)
        return false;
    return size_mul((size_t)(columns / types[type].elements), types[type].bytes, ret);
}

float tensor_f16_to_f32(uint16_t half)
{
    union {
        uint32_t u;
        float f;
    } bits;
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = half >> 10 & 31, fraction = half & 0x3ff;
    if (exponent == 31) { /* infinity, NaN (made quiet, as the processor does) */
        bits.u = sign | 0x7f800000u | fraction << 13 | (fraction ? 0x400000u : 0);
    } else if (exponent > 0) {
        bits.u = sign | (exponent + 112) << 23 | fraction << 13;
    } else { /* subnormal or zero: fraction * 2^-24, exact */
        bits.f = (float)fraction * 0x1p-24f;
        bits.u |= sign;
    }
    return bits.f;
}

uint16_t tensor_f32_to_f16(float value)
{
    union {
        float f;
        uint32_t u;
    } bits = {value};
    uint16_t sign = (uint16_t)(bits.u >> 16 & 0x8000);
    uint32_t u = bits.u & 0x7fffffff;
    if (u > 0x7f800000)
        return sign | 0x7e00 | (uint16_t)(u >> 13 & 0x3ff);
    if (u >= 0x47800000) /* 65536 and more */
        return sign | 0x7c00;
    if (u < 0x38800000) { /* below 2^-14: adding 0.5 rounds to multiples of 2^-24 */
        bits.u = u;
        bits.f += 0.5f;
        return (uint16_t)(sign | (bits.u - 0x3f000000));
    }
    u += 0xfff + (u >> 13 & 1);
    return (uint16_t)(sign | (u - 0x38000000) >> 13);
}

uint16_t tensor_f32_to_bf16(float value)
{
    union {
        float f;
        uint32_t u;
    } bits = {value};
    if ((bits.u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits.u >> 16 | 0x40);
    return (uint16_t)((bits.u + 0x7fff + (bits.u >> 16 & 1)) >> 16);
}

/* One block of Q8_0.  Everything that overflows or is not a number becomes the nearest code. */
static void quantize_q8_0(const float *values, uint8_t *out)
{
    float most = 0;
    for (int i = 0; i < 32; i++)
        most = fmaxf(most, fabsf(values[i]));
    uint16_t d = tensor_f32_to_f16(fminf(most / 127.0f, 65504.0f));
    float step = tensor_f16_to_f32(d), inverse = step > 0 ? 1.0f / step : 0.0f;
    memcpy(out, &d, 2);
    for (int i = 0; i < 32; i++) {
        float code = fminf(fmaxf(rintf(values[i] * inverse), -127.0f), 127.0f);
        out[2 + i] = (uint8_t)(int8_t)code;
    }
}

void tensor_quantize(enum tensor_type type, const float *values, void *out, size_t n)
{
    switch (type) {
    case TENSOR_F32:
        memcpy(out, values, n * sizeof(float));
        break;
    case TENSOR_F16:
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)out)[i] = tensor_f32_to_f16(values[i]);
        break;
    case TENSOR_BF16:
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)out)[i] = tensor_f32_to_bf16(values[i]);
        break;
    case TENSOR_Q8_0:
        REQUIRE(n % 32 == 0);
        for (size_t i = 0; i < n; i += 32)
            quantize_q8_0(values + i, (uint8_t *)out + i / 32 * 34);
        break;
    default:
        REQUIRE(!"a type that values can be rounded to");
    }
}
