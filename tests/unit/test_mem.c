#include "config.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_main.h"
#include "tellerd/base/mem.h"

START_TEST(small_blocks_are_never_null)
{
    void *a = xmalloc(0), *b = xcalloc(0, 8), *c = xrealloc(NULL, 0);
    ck_assert(a && b && c && a != b && b != c);
    free(a);
    free(b);
    free(c);
    unsigned char *zero = xcalloc(10, 10);
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(zero[i], 0);
    zero = xreallocarray(zero, 1000, 10);
    zero[9999] = 1;
    free(zero);
}
END_TEST

START_TEST(copies_are_equal_and_end)
{
    char *a = xstrdup("bank"), *b = xstrndup("bank", 2), *c = xstrndup("b", 100);
    char *d = xmemdup("x\0y", 3);
    ck_assert_str_eq(a, "bank");
    ck_assert_str_eq(b, "ba");
    ck_assert_str_eq(c, "b");
    ck_assert_mem_eq(d, "x\0y", 3);
    free(a);
    free(b);
    free(c);
    free(d);
}
END_TEST

START_TEST(an_array_that_cannot_fit_aborts)
{
    void *volatile block = xreallocarray(NULL, SIZE_MAX / 2, 3);
    free(block);
}
END_TEST

START_TEST(checked_sizes_refuse_overflow_and_leave_the_result)
{
    size_t r = 7;
    ck_assert(size_mul(6, 7, &r) && r == 42);
    ck_assert(!size_mul(SIZE_MAX / 2 + 1, 2, &r) && r == 42);
    ck_assert(size_mul(SIZE_MAX, 1, &r) && r == SIZE_MAX);
    ck_assert(size_mul(0, SIZE_MAX, &r) && r == 0);
    ck_assert(size_add(40, 2, &r) && r == 42);
    ck_assert(!size_add(SIZE_MAX, 1, &r) && r == 42);
    ck_assert(size_add(SIZE_MAX - 1, 1, &r) && r == SIZE_MAX);
}
END_TEST

START_TEST(big_blocks_are_aligned_zero_and_writable)
{
    static const size_t sizes[] = {1, 4096, 4097, 2u << 20, (2u << 20) + 1, 5u << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int touch = 0; touch < 2; touch++) {
            unsigned char *block = big_alloc(sizes[i], touch);
            ck_assert_ptr_nonnull(block);
            size_t align = sizes[i] >= 2u << 20 ? 2u << 20 : 4096;
            ck_assert_uint_eq((uintptr_t)block % align, 0);
            ck_assert_uint_eq(block[0], 0);
            ck_assert_uint_eq(block[sizes[i] - 1], 0);
            memset(block, 0xab, sizes[i]);
            big_free(block, sizes[i]);
        }
}
END_TEST

START_TEST(a_size_the_system_cannot_give_is_null)
{
    ck_assert_ptr_null(big_alloc(SIZE_MAX, false));
    ck_assert_ptr_null(big_alloc(SIZE_MAX - (3u << 20), false));
    ck_assert_ptr_null(big_alloc(SIZE_MAX / 2, true));
    big_free(NULL, 5);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "small blocks", small_blocks_are_never_null, copies_are_equal_and_end);
    CHECK_ADD(suite, "checked sizes", checked_sizes_refuse_overflow_and_leave_the_result);
    CHECK_ADD(suite, "big blocks", big_blocks_are_aligned_zero_and_writable,
              a_size_the_system_cannot_give_is_null);
    TCase *aborts = tcase_create("out of memory");
    tcase_add_test_raise_signal(aborts, an_array_that_cannot_fit_aborts, SIGABRT);
    suite_add_tcase(suite, aborts);
}

CHECK_MAIN("mem", add_cases)
