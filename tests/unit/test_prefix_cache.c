#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_main.h"
#include "tellerd/engine/prefix_cache.h"

enum { N = 16, P = 4 };
static const struct hash128 fingerprint = {1, 2};

struct setup {
    struct kv_pool *pool;
    struct prefix_cache *cache;
};

static struct setup setup_new(void)
{
    struct setup s;

    s.pool = kv_pool_new(N, P);
    s.cache = prefix_cache_new(s.pool, fingerprint);
    return s;
}

static void setup_free(struct setup *s)
{
    ck_assert(prefix_cache_consistent(s->cache));
    ck_assert_uint_eq(kv_pool_available(s->pool), N);
    prefix_cache_free(s->cache);
    kv_pool_free(s->pool);
}

/* Computes ids [n * P] as a sequence would: takes what is found, the rest is written and offered.
 */
static uint32_t compute(struct setup *s, uint64_t salt, const uint32_t *ids, uint32_t n,
                        uint32_t *blocks)
{
    uint32_t found = prefix_cache_match(s->cache, salt, ids, n * P, blocks);

    ck_assert(kv_pool_take(s->pool, n - found, blocks + found));
    for (uint32_t i = found; i < n; i++) {
        kv_pool_write(s->pool, blocks[i], 0, ids + (size_t)i * P, P);
        blocks[i] = prefix_cache_insert(s->cache, salt, i ? blocks[i - 1] : KV_NO_BLOCK, blocks[i]);
    }
    ck_assert(prefix_cache_consistent(s->cache));
    return found;
}

START_TEST(a_computed_chain_is_found_again_block_by_block)
{
    struct setup s = setup_new();
    uint32_t ids[3 * P] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, blocks[3], found[3];

    ck_assert_uint_eq(compute(&s, 0, ids, 3, blocks), 0);
    ck_assert_uint_eq(prefix_cache_size(s.cache), 3);
    ck_assert_uint_eq(prefix_cache_find(s.cache, 0, ids, 3 * P, found).n_blocks, 3);
    ck_assert_mem_eq(found, blocks, sizeof(found));
    ck_assert_uint_eq(prefix_cache_find(s.cache, 0, ids, 3 * P, NULL).n_idle, 0);
    kv_pool_unref_table(s.pool, blocks, 3);
    ck_assert_uint_eq(prefix_cache_find(s.cache, 0, ids, 3 * P, NULL).n_idle, 3);
    /* whole blocks only */
    ck_assert_uint_eq(prefix_cache_find(s.cache, 0, ids, 3 * P - 1, NULL).n_blocks, 2);
    ck_assert_uint_eq(prefix_cache_find(s.cache, 0, ids, P - 1, NULL).n_blocks, 0);
    ids[2 * P] = 99;
    ck_assert_uint_eq(prefix_cache_find(s.cache, 0, ids, 3 * P, NULL).n_blocks, 2);
    ids[0] = 99;
    ck_assert_uint_eq(prefix_cache_find(s.cache, 0, ids, 3 * P, NULL).n_blocks, 0);
    setup_free(&s);
}
END_TEST

START_TEST(salt_and_fingerprint_separate)
{
    struct setup s = setup_new();
    uint32_t ids[P] = {1, 2, 3, 4}, block;

    compute(&s, 7, ids, 1, &block);
    kv_pool_unref(s.pool, block);
    ck_assert_uint_eq(prefix_cache_find(s.cache, 7, ids, P, NULL).n_blocks, 1);
    ck_assert_uint_eq(prefix_cache_find(s.cache, 0, ids, P, NULL).n_blocks, 0);
    ck_assert_uint_eq(prefix_cache_find(s.cache, 8, ids, P, NULL).n_blocks, 0);
    setup_free(&s);
}
END_TEST

START_TEST(equal_blocks_at_other_positions_do_not_match)
{
    struct setup s = setup_new();
    uint32_t twice[2 * P] = {5, 5, 5, 5, 5, 5, 5, 5}, blocks[2];

    ck_assert_uint_eq(compute(&s, 0, twice, 2, blocks), 0);
    ck_assert_uint_ne(blocks[0], blocks[1]);
    ck_assert_uint_eq(prefix_cache_size(s.cache), 2);
    kv_pool_unref_table(s.pool, blocks, 2);
    setup_free(&s);
}
END_TEST

START_TEST(a_second_computation_is_swapped_for_the_first)
{
    struct setup s = setup_new();
    uint32_t ids[P] = {1, 2, 3, 4}, first, second;

    compute(&s, 0, ids, 1, &first);
    ck_assert(kv_pool_take(s.pool, 1, &second));
    kv_pool_write(s.pool, second, 0, ids, P);
    ck_assert_uint_eq(prefix_cache_insert(s.cache, 0, KV_NO_BLOCK, second), first);
    ck_assert_uint_eq(kv_pool_refs(s.pool, first), 2);
    ck_assert_uint_eq(kv_pool_refs(s.pool, second), 0);
    ck_assert_uint_eq(prefix_cache_size(s.cache), 1);
    kv_pool_unref(s.pool, first);
    kv_pool_unref(s.pool, first);
    setup_free(&s);
}
END_TEST

START_TEST(an_evicted_block_is_not_found)
{
    struct setup s = setup_new();
    uint32_t ids[4 * P], blocks[4], all[N];

    for (uint32_t i = 0; i < 4 * P; i++)
        ids[i] = i;
    compute(&s, 0, ids, 4, blocks);
    kv_pool_unref_table(s.pool, blocks, 4);
    /* 12 free ones and the two oldest: the end of the chain */
    ck_assert(kv_pool_take(s.pool, 14, all));
    ck_assert(prefix_cache_consistent(s.cache));
    ck_assert_uint_eq(prefix_cache_find(s.cache, 0, ids, 4 * P, NULL).n_blocks, 2);
    kv_pool_unref_table(s.pool, all, 14);
    ck_assert(kv_pool_take(s.pool, N, all));
    ck_assert_uint_eq(prefix_cache_size(s.cache), 0);
    ck_assert_uint_eq(prefix_cache_find(s.cache, 0, ids, 4 * P, NULL).n_blocks, 0);
    kv_pool_unref_table(s.pool, all, N);
    setup_free(&s);
}
END_TEST

START_TEST(what_was_behind_a_forgotten_block_is_never_found)
{
    struct setup s = setup_new();
    uint32_t ids[3 * P], blocks[3], again[3];

    for (uint32_t i = 0; i < 3 * P; i++)
        ids[i] = i;
    compute(&s, 0, ids, 3, blocks);
    prefix_cache_forget(s.cache, blocks[1]);
    /* still held: a block behind a forgotten one stays private */
    kv_pool_unref(s.pool, blocks[2]);
    ck_assert(kv_pool_take(s.pool, 1, &blocks[2]));
    kv_pool_write(s.pool, blocks[2], 0, ids, P);
    ck_assert_uint_eq(prefix_cache_insert(s.cache, 0, blocks[1], blocks[2]), blocks[2]);
    ck_assert(!kv_pool_is_kept(s.pool, blocks[2]));
    kv_pool_unref_table(s.pool, blocks, 3);
    ck_assert_uint_eq(prefix_cache_find(s.cache, 0, ids, 3 * P, NULL).n_blocks, 1);
    /* the middle block comes back with the same key: the old third one must not hang on to it */
    ck_assert_uint_eq(compute(&s, 0, ids, 2, again), 1);
    ck_assert_uint_eq(prefix_cache_find(s.cache, 0, ids, 3 * P, NULL).n_blocks, 2);
    kv_pool_unref_table(s.pool, again, 2);
    setup_free(&s);
}
END_TEST

static struct hash128 constant_hash(const void *bytes, size_t len, uint64_t seed)
{
    (void)bytes;
    (void)len;
    (void)seed;
    return (struct hash128){42, 42};
}

START_TEST(colliding_keys_hand_out_nothing_foreign)
{
    struct setup s = setup_new();
    uint64_t salt_of[N] = {0};
    unsigned seed = 3;

    prefix_cache_set_hash(s.cache, constant_hash);
    /* chains over a tiny alphabet, so that equal blocks with unequal parents abound */
    for (int round = 0; round < 2000; round++) {
        uint32_t ids[4 * P], blocks[4];
        uint64_t salt = (uint64_t)rand_r(&seed) % 2;
        uint32_t n = 1 + (uint32_t)rand_r(&seed) % 4, found;

        for (uint32_t i = 0; i < n; i++)
            for (uint32_t k = 0; k < P; k++)
                ids[i * P + k] = k == 0 ? (uint32_t)rand_r(&seed) % 2 : 0;
        found = compute(&s, salt, ids, n, blocks);
        for (uint32_t i = 0; i < n; i++) {
            if (i < found)
                ck_assert_uint_eq(salt_of[blocks[i]], salt);
            salt_of[blocks[i]] = salt;
            ck_assert_mem_eq(kv_pool_ids(s.pool, blocks[i]), ids + (size_t)i * P, P * sizeof(*ids));
        }
        ck_assert_uint_eq(prefix_cache_find(s.cache, salt, ids, n * P, NULL).n_blocks, n);
        kv_pool_unref_table(s.pool, blocks, n);
    }
    setup_free(&s);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "chains", a_computed_chain_is_found_again_block_by_block,
              salt_and_fingerprint_separate, equal_blocks_at_other_positions_do_not_match,
              a_second_computation_is_swapped_for_the_first);
    CHECK_ADD(suite, "recycling", an_evicted_block_is_not_found,
              what_was_behind_a_forgotten_block_is_never_found);
    CHECK_ADD(suite, "collisions", colliding_keys_hand_out_nothing_foreign);
}

CHECK_MAIN("engine/prefix_cache", add_cases)
