#include "config.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_main.h"
#include "tellerd/backend/tensor.h"

START_TEST(names_and_numbers_are_those_of_the_files)
{
    static const struct {
        uint32_t number;
        const char *name;
        uint32_t elements, bytes;
    } table[] = {{0, "f32", 1, 4},       {1, "f16", 1, 2},       {2, "q4_0", 32, 18},
                 {3, "q4_1", 32, 20},    {6, "q5_0", 32, 22},    {7, "q5_1", 32, 24},
                 {8, "q8_0", 32, 34},    {12, "q4_k", 256, 144}, {13, "q5_k", 256, 176},
                 {14, "q6_k", 256, 210}, {30, "bf16", 1, 2}};
    uint32_t n_known = 0;
    for (uint32_t i = 0; i < 100; i++)
        n_known += tensor_type_known(i);
    ck_assert_uint_eq(n_known, sizeof(table) / sizeof(table[0]));
    ck_assert(!tensor_type_known(UINT32_MAX));
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        enum tensor_type type = (enum tensor_type)table[i].number, parsed;
        ck_assert(tensor_type_known(table[i].number));
        ck_assert_str_eq(tensor_type_name(type), table[i].name);
        ck_assert_uint_eq(tensor_block_elements(type), table[i].elements);
        ck_assert_uint_eq(tensor_block_bytes(type), table[i].bytes);
        ck_assert(tensor_type_parse(table[i].name, &parsed) && parsed == type);
    }
    enum tensor_type type;
    ck_assert(tensor_type_parse("int8", &type) && type == TENSOR_Q8_0);
    ck_assert(!tensor_type_parse("q9_0", &type) && !tensor_type_parse("", &type));
    ck_assert_str_eq(tensor_type_name((enum tensor_type)5), "unknown");
}
END_TEST

START_TEST(row_sizes_refuse_what_does_not_fit)
{
    size_t bytes = 7;
    ck_assert(tensor_row_bytes(TENSOR_F32, 0, &bytes) && bytes == 0);
    ck_assert(tensor_row_bytes(TENSOR_Q8_0, 64, &bytes) && bytes == 68);
    ck_assert(tensor_row_bytes(TENSOR_Q6_K, 512, &bytes) && bytes == 420);
    ck_assert(!tensor_row_bytes(TENSOR_Q8_0, 33, &bytes));
    ck_assert(!tensor_row_bytes(TENSOR_Q4_K, 128, &bytes));
    ck_assert(!tensor_row_bytes(TENSOR_F32, UINT64_MAX / 2, &bytes));
    ck_assert(!tensor_row_bytes(TENSOR_Q8_0, UINT64_MAX / 32 * 32, &bytes));
    ck_assert_uint_eq(bytes, 420);
}
END_TEST

START_TEST(every_half_goes_to_single_and_back)
{
    for (uint32_t h = 0; h < 65536; h++) {
        float x = tensor_f16_to_f32((uint16_t)h);
        uint32_t exponent = h >> 10 & 31, fraction = h & 1023;
        if (exponent == 31 && fraction) {
            if (!isnan(x) || !isnan(tensor_f16_to_f32(tensor_f32_to_f16(x))))
                ck_abort_msg("%#x is not a number", h);
            continue;
        }
        double value = exponent == 31 ? INFINITY
                       : exponent > 0 ? ldexp(1024 + fraction, (int)exponent - 25)
                                      : ldexp(fraction, -24);
        if ((double)x != (h & 0x8000 ? -value : value) || tensor_f32_to_f16(x) != h)
            ck_abort_msg("%#x: %g back to %#x", h, (double)x, tensor_f32_to_f16(x));
    }
}
END_TEST

START_TEST(singles_round_to_the_nearest_half_ties_to_even)
{
    /* between each pair of neighbours: the middle goes to the even one, the rest to the nearer */
    for (uint32_t h = 0; h < 0x7bff; h++) {
        float a = tensor_f16_to_f32((uint16_t)h), b = tensor_f16_to_f32((uint16_t)(h + 1));
        float middle = (a + b) / 2;
        uint16_t even = (uint16_t)(h + (h & 1));
        if (tensor_f32_to_f16(middle) != even || tensor_f32_to_f16(nextafterf(middle, 0)) != h ||
            tensor_f32_to_f16(nextafterf(middle, INFINITY)) != h + 1)
            ck_abort_msg("near %#x", h);
    }
    ck_assert_uint_eq(tensor_f32_to_f16(65519.0f), 0x7bff);
    ck_assert_uint_eq(tensor_f32_to_f16(65520.0f), 0x7c00);
    ck_assert_uint_eq(tensor_f32_to_f16(-FLT_MAX), 0xfc00);
    ck_assert_uint_eq(tensor_f32_to_f16(FLT_MIN), 0);
    ck_assert_uint_eq(tensor_f32_to_f16(-0.0f), 0x8000);
}
END_TEST

START_TEST(singles_round_to_the_nearest_bfloat)
{
    ck_assert_uint_eq(tensor_f32_to_bf16(1.0f), 0x3f80);
    ck_assert_uint_eq(tensor_f32_to_bf16(0x1.01p0f), 0x3f80); /* a tie: to even */
    ck_assert_uint_eq(tensor_f32_to_bf16(0x1.03p0f), 0x3f82); /* a tie: to even, upwards */
    ck_assert_uint_eq(tensor_f32_to_bf16(0x1.010002p0f), 0x3f81);
    ck_assert_uint_eq(tensor_f32_to_bf16(FLT_MAX), 0x7f80);
    ck_assert_uint_eq(tensor_f32_to_bf16(-INFINITY), 0xff80);
    ck_assert(isnan(tensor_bf16_to_f32(tensor_f32_to_bf16(NAN))));
    for (uint32_t b = 0; b < 0x7f80; b++) {
        if (tensor_f32_to_bf16(tensor_bf16_to_f32((uint16_t)b)) != b)
            ck_abort_msg("%#x", b);
    }
}
END_TEST

/* Blocks of bytes from a small generator, expanded by tools/lib/quant.py. */
START_TEST(blocks_mean_what_the_format_says)
{
    static const struct {
        enum tensor_type type;
        float first, middle, last; /* elements 0, n / 2 + 5, n - 1 */
        double sum;                /* of (i + 1) times element i */
    } golden[] = {
        {TENSOR_Q8_0, -1.438934326171875f, 1.561920166015625f, 0.91009521484375f,
         195.28921508789062},
        {TENSOR_Q4_0, 0.036895751953125f, 0.0f, 0.086090087890625f, 0.66412353515625},
        {TENSOR_Q4_1, -0.651611328125f, -0.6024169921875f, -0.565521240234375f,
         -343.04229736328125},
        {TENSOR_Q5_0, 0.17218017578125f, 0.135284423828125f, -0.07379150390625f,
         -1.168365478515625},
        {TENSOR_Q5_1, -0.651611328125f, -0.540924072265625f, -0.467132568359375f, -284.03369140625},
        {TENSOR_Q4_K, 20.459716796875f, 42.690643310546875f, 31.98028564453125f, 948704.3515014648},
        {TENSOR_Q5_K, 28.330810546875f, 35.25f, 37.895904541015625f, 1034225.4208068848},
        {TENSOR_Q6_K, 20.919891357421875f, 21.756195068359375f, 9.64208984375f, -49996.53567504883},
    };
    for (size_t g = 0; g < sizeof(golden) / sizeof(golden[0]); g++) {
        enum tensor_type type = golden[g].type;
        uint32_t n = tensor_block_elements(type), state = 12345;
        uint8_t bytes[256];
        float x[256];
        for (uint32_t i = 0; i < tensor_block_bytes(type); i++) {
            state = state * 1664525u + 1013904223u;
            bytes[i] = (uint8_t)(state >> 24);
        }
        const uint16_t d = 8780, m = 47616; /* 0.0123, -0.75 */
        memcpy(bytes + (type == TENSOR_Q6_K ? 208 : 0), &d, 2);
        if (type == TENSOR_Q4_1 || type == TENSOR_Q5_1 || type == TENSOR_Q4_K ||
            type == TENSOR_Q5_K)
            memcpy(bytes + 2, &m, 2);
        tensor_dequantize(type, bytes, x, n);
        double sum = 0;
        for (uint32_t i = 0; i < n; i++)
            sum += (double)x[i] * (i + 1);
        ck_assert_msg(x[0] == golden[g].first && x[n / 2 + 5] == golden[g].middle &&
                          x[n - 1] == golden[g].last,
                      "%s: %.9g %.9g %.9g", tensor_type_name(type), (double)x[0],
                      (double)x[n / 2 + 5], (double)x[n - 1]);
        ck_assert_double_eq_tol(sum, golden[g].sum, 1e-9 * fabs(golden[g].sum));
    }
}
END_TEST

START_TEST(rounding_to_int8_stays_within_half_a_step)
{
    float x[64], y[64];
    uint8_t blocks[68];
    for (int i = 0; i < 64; i++)
        x[i] = sinf((float)i * 1.7f) * (i < 32 ? 3.0f : 1e-3f);
    x[5] = 4.0f;
    tensor_quantize(TENSOR_Q8_0, x, blocks, 64);
    tensor_dequantize(TENSOR_Q8_0, blocks, y, 64);
    for (int i = 0; i < 64; i++) {
        double step = i < 32 ? 4.0 / 127 : 1e-3 / 127;
        ck_assert_double_le(fabs((double)x[i] - (double)y[i]), step * 0.51);
    }
    ck_assert_int_eq((int8_t)blocks[2 + 5], 127);
}
END_TEST

START_TEST(rounding_survives_every_number)
{
    float x[32] = {0}, y[32];
    uint8_t block[34];
    tensor_quantize(TENSOR_Q8_0, x, block, 32);
    tensor_dequantize(TENSOR_Q8_0, block, y, 32);
    ck_assert(y[0] == 0 && y[31] == 0);
    x[0] = INFINITY; /* becomes the greatest finite number */
    x[1] = NAN;
    x[2] = -FLT_MAX;
    tensor_quantize(TENSOR_Q8_0, x, block, 32);
    tensor_dequantize(TENSOR_Q8_0, block, y, 32);
    for (int i = 0; i < 32; i++)
        ck_assert(isfinite(y[i]));
    memset(x, 0, sizeof(x));
    x[3] = 1e-30f; /* its step is 0 in f16 */
    tensor_quantize(TENSOR_Q8_0, x, block, 32);
    tensor_dequantize(TENSOR_Q8_0, block, y, 32);
    ck_assert(y[3] == 0);
}
END_TEST

START_TEST(plain_types_round_trip)
{
    float x[] = {0, 1, -2.5f, 1000, 0x1p-14f}, y[5];
    uint8_t bytes[20];
    static const enum tensor_type types[] = {TENSOR_F32, TENSOR_F16, TENSOR_BF16};
    for (int t = 0; t < 3; t++) {
        tensor_quantize(types[t], x, bytes, 5);
        tensor_dequantize(types[t], bytes, y, 5);
        ck_assert_mem_eq(x, y, sizeof(x));
    }
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "types", names_and_numbers_are_those_of_the_files,
              row_sizes_refuse_what_does_not_fit);
    CHECK_ADD(suite, "16-bit floats", every_half_goes_to_single_and_back,
              singles_round_to_the_nearest_half_ties_to_even, singles_round_to_the_nearest_bfloat);
    CHECK_ADD(suite, "blocks", blocks_mean_what_the_format_says);
    CHECK_ADD(suite, "rounding", rounding_to_int8_stays_within_half_a_step,
              rounding_survives_every_number, plain_types_round_trip);
}

CHECK_MAIN("tensor", add_cases)
