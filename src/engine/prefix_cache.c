/*
 * Hash map from chain key to block: buckets of lists linked through per-block entries, so that
 * nothing is allocated and an eviction is one list removal.
 *
 * Why a parent is known by a serial and not by its block number: the number could have been re-used
 * for other content since the child was computed.  A serial is never used twice, so a child whose
 * parent left the cache can never be reached again; it ages out of the pool's list.
 */
#include "config.h"

#include "tellerd/engine/prefix_cache.h"

#include <stdlib.h>
#include <string.h>

#include "tellerd/base/mem.h"
#include "tellerd/base/status.h"

struct entry {
    struct hash128 key;
    uint64_t salt;
    uint64_t serial;        /* 0 = not in the map */
    uint64_t parent_serial; /* 0 = first block */
    uint32_t next;          /* in the bucket */
};

struct prefix_cache {
    struct kv_pool *pool;
    struct hash128 fingerprint;
    prefix_hash_fn hash;
    uint64_t last_serial;
    uint32_t n_entries, block_size, mask;
    uint32_t *buckets;
    struct entry *entries; /* [n_blocks] */
};

/* What a key is made of; written to bytes without padding. */
struct key_root {
    struct hash128 fingerprint;
    uint64_t salt;
};

static void on_evict(void *ctx, uint32_t block);

struct prefix_cache *prefix_cache_new(struct kv_pool *pool, struct hash128 fingerprint)
{
    struct prefix_cache *cache = xcalloc(1, sizeof(*cache));
    struct kv_pool_counts counts;
    size_t n_buckets = 16;

    kv_pool_counts(pool, &counts);
    while (n_buckets < counts.n_blocks)
        n_buckets *= 2;
    cache->pool = pool;
    cache->fingerprint = fingerprint;
    cache->hash = hash_bytes;
    cache->block_size = kv_pool_block_size(pool);
    cache->mask = (uint32_t)(n_buckets - 1);
    cache->buckets = xmalloc(n_buckets * sizeof(*cache->buckets));
    memset(cache->buckets, 0xff, n_buckets * sizeof(*cache->buckets));
    cache->entries = xcalloc(counts.n_blocks, sizeof(*cache->entries));
    kv_pool_on_evict(pool, on_evict, cache);
    return cache;
}

static void entry_remove(struct prefix_cache *cache, uint32_t block)
{
    struct entry *entry = &cache->entries[block];
    uint32_t *link = &cache->buckets[entry->key.low & cache->mask];

    while (*link != block) {
        REQUIRE(*link != KV_NO_BLOCK);
        link = &cache->entries[*link].next;
    }
    *link = entry->next;
    entry->serial = 0;
    cache->n_entries--;
}

static void on_evict(void *ctx, uint32_t block)
{
    entry_remove(ctx, block);
}

void prefix_cache_free(struct prefix_cache *cache)
{
    if (!cache)
        return;
    for (uint32_t i = 0; i <= cache->mask; i++) {
        while (cache->buckets[i] != KV_NO_BLOCK)
            prefix_cache_forget(cache, cache->buckets[i]);
    }
    kv_pool_on_evict(cache->pool, NULL, NULL);
    free(cache->buckets);
    free(cache->entries);
    free(cache);
}

void prefix_cache_set_hash(struct prefix_cache *cache, prefix_hash_fn fn)
{
    REQUIRE(cache->n_entries == 0);
    cache->hash = fn;
}

/* The key before a chain's first block. */
static struct hash128 root_key(const struct prefix_cache *cache, uint64_t salt)
{
    struct key_root root = {cache->fingerprint, salt};

    return cache->hash(&root, sizeof(root), 0);
}

/* Key of a block: hash of the pair (its parent's key, hash of its ids). */
static struct hash128 chain_key(const struct prefix_cache *cache, struct hash128 parent,
                                const uint32_t *ids)
{
    struct hash128 pair[2] = {parent, cache->hash(ids, cache->block_size * sizeof(*ids), 0)};

    return cache->hash(pair, sizeof(pair), 1);
}

static uint64_t serial_of(const struct prefix_cache *cache, uint32_t block)
{
    return block == KV_NO_BLOCK ? 0 : cache->entries[block].serial;
}

static uint32_t lookup(const struct prefix_cache *cache, struct hash128 key, uint64_t salt,
                       uint32_t parent, const uint32_t *ids)
{
    uint64_t parent_serial = serial_of(cache, parent);
    uint32_t block = cache->buckets[key.low & cache->mask];

    for (; block != KV_NO_BLOCK; block = cache->entries[block].next) {
        const struct entry *entry = &cache->entries[block];

        if (hash_equal(entry->key, key) && entry->salt == salt &&
            entry->parent_serial == parent_serial &&
            memcmp(kv_pool_ids(cache->pool, block), ids, cache->block_size * sizeof(*ids)) == 0)
            return block;
    }
    return KV_NO_BLOCK;
}

struct prefix_match prefix_cache_find(const struct prefix_cache *cache, uint64_t salt,
                                      const uint32_t *ids, uint32_t n_ids, uint32_t *ret_blocks)
{
    struct prefix_match match = {0, 0};
    struct hash128 key = root_key(cache, salt);
    uint32_t parent = KV_NO_BLOCK;

    for (; n_ids >= cache->block_size; n_ids -= cache->block_size, ids += cache->block_size) {
        uint32_t block;

        key = chain_key(cache, key, ids);
        block = lookup(cache, key, salt, parent, ids);
        if (block == KV_NO_BLOCK)
            break;
        if (ret_blocks)
            ret_blocks[match.n_blocks] = block;
        match.n_idle += kv_pool_refs(cache->pool, block) == 0;
        match.n_blocks++;
        parent = block;
    }
    return match;
}

uint32_t prefix_cache_match(struct prefix_cache *cache, uint64_t salt, const uint32_t *ids,
                            uint32_t n_ids, uint32_t *ret_blocks)
{
    struct prefix_match match = prefix_cache_find(cache, salt, ids, n_ids, ret_blocks);

    for (uint32_t i = 0; i < match.n_blocks; i++)
        kv_pool_ref(cache->pool, ret_blocks[i]);
    return match.n_blocks;
}

uint32_t prefix_cache_insert(struct prefix_cache *cache, uint64_t salt, uint32_t parent,
                             uint32_t block)
{
    const uint32_t *ids = kv_pool_ids(cache->pool, block);
    struct entry *entry = &cache->entries[block];
    struct hash128 parent_key;
    uint32_t same, *bucket;

    REQUIRE(kv_pool_n_valid(cache->pool, block) == cache->block_size && entry->serial == 0);
    if (parent == KV_NO_BLOCK)
        parent_key = root_key(cache, salt);
    else if (cache->entries[parent].serial)
        parent_key = cache->entries[parent].key;
    else
        return block;
    entry->key = chain_key(cache, parent_key, ids);
    same = lookup(cache, entry->key, salt, parent, ids);
    if (same != KV_NO_BLOCK) {
        kv_pool_ref(cache->pool, same);
        kv_pool_unref(cache->pool, block);
        return same;
    }
    entry->salt = salt;
    entry->parent_serial = serial_of(cache, parent);
    entry->serial = ++cache->last_serial;
    bucket = &cache->buckets[entry->key.low & cache->mask];
    entry->next = *bucket;
    *bucket = block;
    cache->n_entries++;
    kv_pool_keep(cache->pool, block);
    return block;
}

void prefix_cache_forget(struct prefix_cache *cache, uint32_t block)
{
    if (cache->entries[block].serial == 0)
        return;
    entry_remove(cache, block);
    kv_pool_forget(cache->pool, block);
}

uint32_t prefix_cache_size(const struct prefix_cache *cache)
{
    return cache->n_entries;
}

bool prefix_cache_consistent(const struct prefix_cache *cache)
{
    struct kv_pool_counts counts;
    uint32_t n = 0;

    for (uint32_t i = 0; i <= cache->mask; i++) {
        for (uint32_t b = cache->buckets[i]; b != KV_NO_BLOCK; b = cache->entries[b].next) {
            const struct entry *entry = &cache->entries[b];

            if (entry->serial == 0 || (entry->key.low & cache->mask) != i ||
                !kv_pool_is_kept(cache->pool, b) ||
                kv_pool_n_valid(cache->pool, b) != cache->block_size || ++n > cache->n_entries)
                return false;
        }
    }
    kv_pool_counts(cache->pool, &counts);
    for (uint32_t b = 0; b < counts.n_blocks; b++) {
        if (kv_pool_is_kept(cache->pool, b) != (cache->entries[b].serial != 0))
            return false;
    }
    return n == cache->n_entries;
}
