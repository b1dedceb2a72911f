#include "config.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static bool all_are(const unsigned char *bytes, size_t size, unsigned char value)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

START_TEST(a_pools_blocks_are_aligned_zero_and_apart)
{
    enum { N = 160 };
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 1000000, 3 << 20};
    struct big_pool *pool = big_pool_new();
    unsigned char *blocks[N];
    for (size_t i = 0; i < N; i++) {
        size_t size = sizes[i % 8];
        blocks[i] = big_pool_take(pool, size);
        ck_assert_ptr_nonnull(blocks[i]);
        ck_assert_uint_eq((uintptr_t)blocks[i] % 64, 0);
        ck_assert(all_are(blocks[i], size, 0));
        memset(blocks[i], (int)i + 1, size);
    }
    for (size_t i = 0; i < N; i++)
        ck_assert(all_are(blocks[i], sizes[i % 8], (unsigned char)(i + 1)));
    for (size_t i = 0; i < N; i += 2) /* the others go with the pool */
        big_pool_give(pool, blocks[i]);
    big_pool_give(pool, NULL);
    big_pool_free(pool);
    big_pool_free(NULL);
}
END_TEST

/* Pages of address space that this process has. */
static unsigned long long address_pages(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%llu", &pages), 1);
    fclose(file);
    return pages;
}

START_TEST(a_pool_gives_chunks_back)
{
    enum { ROUNDS = 16, BLOCKS = 7 };
    const size_t size = (size_t)30 << 20; /* two in a chunk */
    struct big_pool *pool = big_pool_new();
    unsigned long long before = address_pages();
    for (int i = 0; i < ROUNDS; i++) {
        void *blocks[BLOCKS];
        for (int j = 0; j < BLOCKS; j++)
            ck_assert_ptr_nonnull(blocks[j] = big_pool_take(pool, size));
        for (int j = 0; j < BLOCKS; j++)
            big_pool_give(pool, blocks[(j * 3) % BLOCKS]);
    }
    void *large = big_pool_take(pool, (size_t)200 << 20); /* more than a chunk */
    ck_assert_ptr_nonnull(large);
    big_pool_give(pool, large);
    ck_assert_uint_lt((address_pages() - before) * (size_t)sysconf(_SC_PAGESIZE),
                      (size_t)100 << 20);
    ck_assert_ptr_null(big_pool_take(pool, SIZE_MAX));
    ck_assert_ptr_null(big_pool_take(pool, SIZE_MAX / 2));
    big_pool_free(pool);
}
END_TEST

START_TEST(a_block_that_is_not_the_pools_is_a_contract_breach)
{
    struct big_pool *pool = big_pool_new();
    char other;
    ck_assert_ptr_nonnull(big_pool_take(pool, 1));
    big_pool_give(pool, &other);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "small blocks", small_blocks_are_never_null, copies_are_equal_and_end);
    CHECK_ADD(suite, "checked sizes", checked_sizes_refuse_overflow_and_leave_the_result);
    CHECK_ADD(suite, "big blocks", big_blocks_are_aligned_zero_and_writable,
              a_size_the_system_cannot_give_is_null);
    CHECK_ADD(suite, "pools", a_pools_blocks_are_aligned_zero_and_apart, a_pool_gives_chunks_back);
    TCase *aborts = tcase_create("out of memory");
    tcase_add_test_raise_signal(aborts, an_array_that_cannot_fit_aborts, SIGABRT);
    tcase_add_test_raise_signal(aborts, a_block_that_is_not_the_pools_is_a_contract_breach,
                                SIGABRT);
    suite_add_tcase(suite, aborts);
}

CHECK_MAIN("mem", add_cases)
