#include "config.h"

#include <string.h>

#include "support/check_main.h"
#include "tellerd/base/rng.h"

/* First words of the philox4x32-10 lines of Random123's kat_vectors. */
START_TEST(numbers_are_philox4x32_10)
{
    ck_assert_uint_eq(rng_u32(0, 0, 0), 0x6627e8d5);
    ck_assert_uint_eq(rng_u32(UINT64_MAX, UINT64_MAX, UINT64_MAX), 0x408f276d);
    ck_assert_uint_eq(rng_u32(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
                      0xd16cfe09);
}
END_TEST

START_TEST(uniform_numbers_lie_in_the_unit_interval_evenly)
{
    unsigned bins[16] = {0};
    for (uint64_t n = 0; n < 16000; n++) {
        float u = rng_uniform(1, 2, n);
        ck_assert(u >= 0 && u < 1);
        ck_assert(u == (float)(rng_u32(1, 2, n) >> 8) / 16777216.0f);
        bins[(int)(u * 16)]++;
    }
    /* fixed input, so fixed counts: a true generator strays 30 from 1000 (one sigma) */
    for (int i = 0; i < 16; i++)
        ck_assert(bins[i] > 850 && bins[i] < 1150);
}
END_TEST

START_TEST(seed_stream_and_number_all_matter)
{
    uint32_t base = rng_u32(1, 1, 1);
    ck_assert_uint_ne(base, rng_u32(2, 1, 1));
    ck_assert_uint_ne(base, rng_u32(1, 2, 1));
    ck_assert_uint_ne(base, rng_u32(1, 1, 2));
    ck_assert_uint_ne(base, rng_u32(1 + (UINT64_C(1) << 32), 1, 1));
    ck_assert_uint_ne(base, rng_u32(1, 1 + (UINT64_C(1) << 32), 1));
    ck_assert_uint_eq(base, rng_u32(1, 1, 1));
}
END_TEST

START_TEST(system_bytes_fill_all_and_differ)
{
    static unsigned char a[1000], b[1000];
    rng_system_bytes(a, sizeof a);
    rng_system_bytes(b, sizeof b);
    rng_system_bytes(a, 0);
    ck_assert(memcmp(a, b, sizeof a) != 0);
    /* the last 16 bytes all zero: once in 2^128 */
    static const unsigned char zero[16];
    ck_assert(memcmp(a + sizeof a - 16, zero, 16) != 0);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "rng", numbers_are_philox4x32_10,
              uniform_numbers_lie_in_the_unit_interval_evenly, seed_stream_and_number_all_matter,
              system_bytes_fill_all_and_differ);
}

CHECK_MAIN("rng", add_cases)
