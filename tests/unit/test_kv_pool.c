#include "config.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#include "support/check_main.h"
#include "tellerd/engine/kv_pool.h"

enum { N = 8, P = 4 };

static uint32_t evicted[64];
static uint32_t n_evicted;

static void on_evict(void *ctx, uint32_t block)
{
    (void)ctx;
    evicted[n_evicted++] = block;
}

static void expect_counts(const struct kv_pool *pool, uint32_t used, uint32_t cached, uint32_t free)
{
    struct kv_pool_counts counts;

    kv_pool_counts(pool, &counts);
    ck_assert_uint_eq(counts.n_used, used);
    ck_assert_uint_eq(counts.n_cached, cached);
    ck_assert_uint_eq(counts.n_free, free);
    ck_assert_uint_eq(kv_pool_available(pool), cached + free);
    ck_assert(kv_pool_consistent(pool));
}

START_TEST(every_block_is_given_once)
{
    struct kv_pool *pool = kv_pool_new(N, P);
    uint32_t blocks[N], extra;
    bool seen[N] = {false};

    expect_counts(pool, 0, 0, N);
    ck_assert(kv_pool_take(pool, N, blocks));
    for (int i = 0; i < N; i++) {
        ck_assert_uint_lt(blocks[i], N);
        ck_assert(!seen[blocks[i]]);
        seen[blocks[i]] = true;
        ck_assert_uint_eq(kv_pool_refs(pool, blocks[i]), 1);
    }
    expect_counts(pool, N, 0, 0);
    ck_assert(!kv_pool_take(pool, 1, &extra));
    kv_pool_unref_table(pool, blocks, N);
    expect_counts(pool, 0, 0, N);
    kv_pool_free(pool);
}
END_TEST

START_TEST(a_take_that_does_not_fit_changes_nothing)
{
    struct kv_pool *pool = kv_pool_new(N, P);
    uint32_t blocks[N] = {0}, more[N] = {77, 77, 77};

    ck_assert(kv_pool_take(pool, 6, blocks));
    ck_assert(!kv_pool_take(pool, 3, more));
    ck_assert_uint_eq(more[0], 77);
    expect_counts(pool, 6, 0, 2);
    ck_assert(kv_pool_take(pool, 0, more));
    ck_assert(kv_pool_take(pool, 2, more));
    expect_counts(pool, 8, 0, 0);
    kv_pool_unref_table(pool, blocks, 6);
    kv_pool_unref_table(pool, more, 2);
    kv_pool_free(pool);
}
END_TEST

START_TEST(a_shared_block_is_given_back_by_its_last_holder)
{
    struct kv_pool *pool = kv_pool_new(N, P);
    uint32_t block;

    ck_assert(kv_pool_take(pool, 1, &block));
    kv_pool_ref(pool, block);
    kv_pool_unref(pool, block);
    expect_counts(pool, 1, 0, N - 1);
    kv_pool_unref(pool, block);
    expect_counts(pool, 0, 0, N);
    kv_pool_free(pool);
}
END_TEST

START_TEST(kept_blocks_are_evicted_oldest_first_and_only_when_nothing_is_free)
{
    struct kv_pool *pool = kv_pool_new(N, P);
    uint32_t blocks[N], more[N];

    n_evicted = 0;
    kv_pool_on_evict(pool, on_evict, NULL);
    ck_assert(kv_pool_take(pool, 4, blocks));
    for (int i = 0; i < 4; i++)
        kv_pool_keep(pool, blocks[i]);
    kv_pool_unref_table(pool, blocks, 4); /* oldest is now blocks[3] */
    expect_counts(pool, 0, 4, 4);
    ck_assert(kv_pool_take(pool, 4, more));
    ck_assert_uint_eq(n_evicted, 0);
    kv_pool_ref(pool, blocks[3]); /* comes back into use */
    expect_counts(pool, 5, 3, 0);
    ck_assert(kv_pool_take(pool, 2, more + 4));
    ck_assert_uint_eq(n_evicted, 2);
    ck_assert_uint_eq(evicted[0], blocks[2]);
    ck_assert_uint_eq(evicted[1], blocks[1]);
    ck_assert(!kv_pool_is_kept(pool, blocks[2]));
    expect_counts(pool, 7, 1, 0);
    kv_pool_unref(pool, blocks[3]);
    kv_pool_unref_table(pool, more, 6);
    expect_counts(pool, 0, 2, 6);
    kv_pool_free(pool);
}
END_TEST

START_TEST(a_forgotten_block_becomes_free)
{
    struct kv_pool *pool = kv_pool_new(N, P);
    uint32_t blocks[2];

    ck_assert(kv_pool_take(pool, 2, blocks));
    kv_pool_keep(pool, blocks[0]);
    kv_pool_keep(pool, blocks[1]);
    kv_pool_forget(pool, blocks[0]); /* while held */
    kv_pool_unref_table(pool, blocks, 2);
    expect_counts(pool, 0, 1, N - 1);
    kv_pool_forget(pool, blocks[1]); /* while cached */
    kv_pool_forget(pool, blocks[1]);
    expect_counts(pool, 0, 0, N);
    kv_pool_free(pool);
}
END_TEST

START_TEST(ids_are_noted_copied_and_dropped_with_the_block)
{
    struct kv_pool *pool = kv_pool_new(N, P);
    const uint32_t ids[P] = {7, 8, 9, 10};
    uint32_t blocks[2], again;

    ck_assert(kv_pool_take(pool, 2, blocks));
    kv_pool_write(pool, blocks[0], 0, ids, 1);
    kv_pool_write(pool, blocks[0], 1, ids + 1, 2);
    ck_assert_uint_eq(kv_pool_n_valid(pool, blocks[0]), 3);
    kv_pool_copy(pool, blocks[0], blocks[1]);
    kv_pool_write(pool, blocks[1], 3, ids + 3, 1);
    ck_assert_uint_eq(kv_pool_n_valid(pool, blocks[1]), 4);
    ck_assert_mem_eq(kv_pool_ids(pool, blocks[1]), ids, sizeof(ids));
    ck_assert_uint_eq(kv_pool_n_valid(pool, blocks[0]), 3);
    kv_pool_unref(pool, blocks[1]);
    ck_assert(kv_pool_take(pool, 1, &again));
    ck_assert_uint_eq(kv_pool_n_valid(pool, again), 0);
    kv_pool_unref(pool, again);
    kv_pool_unref(pool, blocks[0]);
    kv_pool_free(pool);
}
END_TEST

START_TEST(writing_a_shared_block_is_a_contract_breach)
{
    struct kv_pool *pool = kv_pool_new(N, P);
    uint32_t block, id = 1;

    ck_assert(kv_pool_take(pool, 1, &block));
    kv_pool_ref(pool, block);
    kv_pool_write(pool, block, 0, &id, 1);
}
END_TEST

START_TEST(giving_back_twice_is_a_contract_breach)
{
    struct kv_pool *pool = kv_pool_new(N, P);
    uint32_t block;

    ck_assert(kv_pool_take(pool, 1, &block));
    kv_pool_unref(pool, block);
    kv_pool_unref(pool, block);
}
END_TEST

START_TEST(random_use_keeps_the_books_straight)
{
    enum { BLOCKS = 37, HELD = 64 };
    struct kv_pool *pool = kv_pool_new(BLOCKS, P);
    uint32_t held[HELD], n_held = 0;
    unsigned seed = 1;

    n_evicted = 0;
    for (int i = 0; i < 20000; i++) {
        unsigned r = (unsigned)rand_r(&seed);
        uint32_t block;

        if (r % 4 < 2 && n_held < HELD) {
            if (r % 8 < 4 && n_held > 0) {
                block = held[r / 8 % n_held];
                kv_pool_ref(pool, block);
                held[n_held++] = block;
            } else if (kv_pool_take(pool, 1, &block)) {
                held[n_held++] = block;
            }
        } else if (n_held > 0) {
            uint32_t at = r / 8 % n_held;

            if (r % 4 == 2)
                kv_pool_keep(pool, held[at]);
            else if (r % 16 == 3)
                kv_pool_forget(pool, held[at]);
            kv_pool_unref(pool, held[at]);
            held[at] = held[--n_held];
        }
        ck_assert(kv_pool_consistent(pool));
    }
    while (n_held > 0)
        kv_pool_unref(pool, held[--n_held]);
    ck_assert_uint_eq(kv_pool_available(pool), BLOCKS);
    kv_pool_free(pool);
}
END_TEST

static void add_cases(Suite *suite)
{
    TCase *blocks = tcase_create("blocks");
    TCase *breaches = tcase_create("contract breaches");

    tcase_add_test(blocks, every_block_is_given_once);
    tcase_add_test(blocks, a_take_that_does_not_fit_changes_nothing);
    tcase_add_test(blocks, a_shared_block_is_given_back_by_its_last_holder);
    tcase_add_test(blocks, kept_blocks_are_evicted_oldest_first_and_only_when_nothing_is_free);
    tcase_add_test(blocks, a_forgotten_block_becomes_free);
    tcase_add_test(blocks, ids_are_noted_copied_and_dropped_with_the_block);
    tcase_add_test(blocks, random_use_keeps_the_books_straight);
    suite_add_tcase(suite, blocks);
    tcase_add_test_raise_signal(breaches, writing_a_shared_block_is_a_contract_breach, SIGABRT);
    tcase_add_test_raise_signal(breaches, giving_back_twice_is_a_contract_breach, SIGABRT);
    suite_add_tcase(suite, breaches);
}

CHECK_MAIN("engine/kv_pool", add_cases)
