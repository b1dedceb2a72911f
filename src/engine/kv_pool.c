/*
 * Block pool: reference counts and two lists of unheld blocks.  The free list is a stack through
 * `next`; the cached blocks are a doubly linked list, oldest at the head, so that reviving one by a
 * prefix hit takes constant time.  Invariants that a caller could break are REQUIREd: they would
 * mean that one sequence writes into another's cache.
 */
#include "config.h"

#include "tellerd/engine/kv_pool.h"

#include <stdlib.h>
#include <string.h>

#include "tellerd/base/mem.h"
#include "tellerd/base/status.h"

struct block {
    uint32_t refs;
    uint32_t n_valid;
    uint32_t next, previous; /* in the cached list; next alone in the free list */
    bool is_kept;
};

struct kv_pool {
    uint32_t n_blocks, block_size;
    uint32_t n_used, n_cached, n_free;
    uint32_t free_first;
    uint32_t cached_first, cached_last; /* least and most recently used */
    struct block *blocks;
    uint32_t *ids; /* [n_blocks, block_size] */
    kv_pool_evict_fn on_evict;
    void *evict_ctx;
};

struct kv_pool *kv_pool_new(uint32_t n_blocks, uint32_t block_size)
{
    struct kv_pool *pool = xcalloc(1, sizeof(*pool));

    REQUIRE(n_blocks >= 1 && n_blocks < KV_NO_BLOCK && block_size >= 1);
    pool->n_blocks = n_blocks;
    pool->block_size = block_size;
    pool->n_free = n_blocks;
    pool->blocks = xcalloc(n_blocks, sizeof(*pool->blocks));
    pool->ids = xcalloc((size_t)n_blocks * block_size, sizeof(*pool->ids));
    pool->cached_first = pool->cached_last = KV_NO_BLOCK;
    pool->free_first = 0;
    for (uint32_t b = 0; b < n_blocks; b++)
        pool->blocks[b].next = b + 1 < n_blocks ? b + 1 : KV_NO_BLOCK;
    return pool;
}

void kv_pool_free(struct kv_pool *pool)
{
    if (!pool)
        return;
    free(pool->blocks);
    free(pool->ids);
    free(pool);
}

void kv_pool_on_evict(struct kv_pool *pool, kv_pool_evict_fn fn, void *ctx)
{
    pool->on_evict = fn;
    pool->evict_ctx = ctx;
}

static struct block *block_at(const struct kv_pool *pool, uint32_t block)
{
    REQUIRE(block < pool->n_blocks);
    return &pool->blocks[block];
}

static void cached_append(struct kv_pool *pool, uint32_t block)
{
    struct block *b = &pool->blocks[block];

    b->next = KV_NO_BLOCK;
    b->previous = pool->cached_last;
    if (pool->cached_last == KV_NO_BLOCK)
        pool->cached_first = block;
    else
        pool->blocks[pool->cached_last].next = block;
    pool->cached_last = block;
    pool->n_cached++;
}

static void cached_remove(struct kv_pool *pool, uint32_t block)
{
    struct block *b = &pool->blocks[block];

    if (b->previous == KV_NO_BLOCK)
        pool->cached_first = b->next;
    else
        pool->blocks[b->previous].next = b->next;
    if (b->next == KV_NO_BLOCK)
        pool->cached_last = b->previous;
    else
        pool->blocks[b->next].previous = b->previous;
    pool->n_cached--;
}

static void free_push(struct kv_pool *pool, uint32_t block)
{
    pool->blocks[block].next = pool->free_first;
    pool->blocks[block].n_valid = 0;
    pool->free_first = block;
    pool->n_free++;
}

static uint32_t free_pop(struct kv_pool *pool)
{
    uint32_t block = pool->free_first;

    if (block == KV_NO_BLOCK) {
        block = pool->cached_first;
        if (pool->on_evict)
            pool->on_evict(pool->evict_ctx, block);
        cached_remove(pool, block);
        pool->blocks[block].is_kept = false;
    } else {
        pool->free_first = pool->blocks[block].next;
        pool->n_free--;
    }
    return block;
}

bool kv_pool_take(struct kv_pool *pool, uint32_t n, uint32_t *ret_blocks)
{
    if (n > pool->n_free + pool->n_cached)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t block = free_pop(pool);

        pool->blocks[block].refs = 1;
        pool->blocks[block].n_valid = 0;
        pool->n_used++;
        ret_blocks[i] = block;
    }
    return true;
}

void kv_pool_ref(struct kv_pool *pool, uint32_t block)
{
    struct block *b = block_at(pool, block);

    REQUIRE(b->refs > 0 || b->is_kept);
    if (b->refs == 0) {
        cached_remove(pool, block);
        pool->n_used++;
    }
    b->refs++;
}

void kv_pool_unref(struct kv_pool *pool, uint32_t block)
{
    struct block *b = block_at(pool, block);

    REQUIRE(b->refs > 0);
    if (--b->refs > 0)
        return;
    pool->n_used--;
    if (b->is_kept)
        cached_append(pool, block);
    else
        free_push(pool, block);
}

void kv_pool_unref_table(struct kv_pool *pool, const uint32_t *blocks, uint32_t n)
{
    while (n > 0)
        kv_pool_unref(pool, blocks[--n]);
}

void kv_pool_write(struct kv_pool *pool, uint32_t block, uint32_t from, const uint32_t *ids,
                   uint32_t n)
{
    struct block *b = block_at(pool, block);

    REQUIRE(b->refs == 1 && !b->is_kept);
    REQUIRE(from == b->n_valid && n <= pool->block_size - from);
    memcpy(pool->ids + (size_t)block * pool->block_size + from, ids, n * sizeof(*ids));
    b->n_valid = from + n;
}

void kv_pool_copy(struct kv_pool *pool, uint32_t from, uint32_t to)
{
    struct block *source = block_at(pool, from), *target = block_at(pool, to);

    REQUIRE(from != to && source->refs > 0 && target->refs == 1 && !target->is_kept);
    memcpy(pool->ids + (size_t)to * pool->block_size, pool->ids + (size_t)from * pool->block_size,
           source->n_valid * sizeof(*pool->ids));
    target->n_valid = source->n_valid;
}

void kv_pool_keep(struct kv_pool *pool, uint32_t block)
{
    struct block *b = block_at(pool, block);

    REQUIRE(b->refs > 0);
    b->is_kept = true;
}

void kv_pool_forget(struct kv_pool *pool, uint32_t block)
{
    struct block *b = block_at(pool, block);

    if (!b->is_kept)
        return;
    b->is_kept = false;
    if (b->refs == 0) {
        cached_remove(pool, block);
        free_push(pool, block);
    }
}

uint32_t kv_pool_refs(const struct kv_pool *pool, uint32_t block)
{
    return block_at(pool, block)->refs;
}

bool kv_pool_is_kept(const struct kv_pool *pool, uint32_t block)
{
    return block_at(pool, block)->is_kept;
}

const uint32_t *kv_pool_ids(const struct kv_pool *pool, uint32_t block)
{
    REQUIRE(block < pool->n_blocks);
    return pool->ids + (size_t)block * pool->block_size;
}

uint32_t kv_pool_n_valid(const struct kv_pool *pool, uint32_t block)
{
    return block_at(pool, block)->n_valid;
}

uint32_t kv_pool_block_size(const struct kv_pool *pool)
{
    return pool->block_size;
}

uint32_t kv_pool_available(const struct kv_pool *pool)
{
    return pool->n_free + pool->n_cached;
}

void kv_pool_counts(const struct kv_pool *pool, struct kv_pool_counts *ret)
{
    ret->n_blocks = pool->n_blocks;
    ret->n_used = pool->n_used;
    ret->n_cached = pool->n_cached;
    ret->n_free = pool->n_free;
}

void kv_pool_copy_refs(const struct kv_pool *pool, uint32_t *ret_refs)
{
    for (uint32_t b = 0; b < pool->n_blocks; b++)
        ret_refs[b] = pool->blocks[b].refs;
}

bool kv_pool_consistent(const struct kv_pool *pool)
{
    uint32_t n_used = 0, n_free = 0, n_cached = 0, last = KV_NO_BLOCK;

    for (uint32_t b = 0; b < pool->n_blocks; b++) {
        n_used += pool->blocks[b].refs > 0;
        if (pool->blocks[b].n_valid > pool->block_size)
            return false;
    }
    for (uint32_t b = pool->free_first; b != KV_NO_BLOCK; b = pool->blocks[b].next) {
        if (pool->blocks[b].refs || pool->blocks[b].is_kept || ++n_free > pool->n_blocks)
            return false;
    }
    for (uint32_t b = pool->cached_first; b != KV_NO_BLOCK; b = pool->blocks[b].next) {
        if (pool->blocks[b].refs || !pool->blocks[b].is_kept || ++n_cached > pool->n_blocks ||
            pool->blocks[b].previous != last)
            return false;
        last = b;
    }
    return last == pool->cached_last && n_used == pool->n_used && n_free == pool->n_free &&
           n_cached == pool->n_cached && n_used + n_free + n_cached == pool->n_blocks;
}
