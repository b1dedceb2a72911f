#ifndef TELLERD_ENGINE_KV_POOL_H
#define TELLERD_ENGINE_KV_POOL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The pool of cache blocks: numbers 0..n_blocks-1, each P positions of every layer in the forward
 * pass's cache.  It keeps who holds a block (reference count), what is in it (token ids, for the
 * prefix cache's verification) and which blocks nobody holds.  A block is in one of three places:
 *
 *   used    refs > 0
 *   cached  refs = 0, kept because the prefix cache may hand it out again; oldest is evicted first
 *   free    refs = 0, content of no use
 *
 * Nothing here allocates after kv_pool_new.  Engine thread only.
 */
#define KV_NO_BLOCK UINT32_MAX

struct kv_pool;

struct kv_pool_counts {
    uint32_t n_blocks, n_used, n_cached, n_free; /* n_used + n_cached + n_free = n_blocks */
};

/* Called when a cached block is about to be given to someone else. */
typedef void (*kv_pool_evict_fn)(void *ctx, uint32_t block);

/* A pool of n_blocks >= 1 free blocks of block_size positions. */
struct kv_pool *kv_pool_new(uint32_t n_blocks, uint32_t block_size);
void kv_pool_free(struct kv_pool *pool);
/* Sets who is told of evictions (the prefix cache). */
void kv_pool_on_evict(struct kv_pool *pool, kv_pool_evict_fn fn, void *ctx);

/*
 * Takes n empty blocks with one reference each: free ones first, then the least recently used
 * cached ones.  All or nothing: false, and nothing changed, when fewer are available.
 */
bool kv_pool_take(struct kv_pool *pool, uint32_t n, uint32_t *ret_blocks);
/* One more reference; a cached block comes back into use. */
void kv_pool_ref(struct kv_pool *pool, uint32_t block);
/* One reference less; the last one makes the block cached (when it is kept) or free. */
void kv_pool_unref(struct kv_pool *pool, uint32_t block);
/* Gives back a sequence's table, last block first, so that the end of a chain is evicted before its
 * start. */
void kv_pool_unref_table(struct kv_pool *pool, const uint32_t *blocks, uint32_t n);

/* Notes ids [n] as the tokens of positions from.. of a block that is held once and not kept. */
void kv_pool_write(struct kv_pool *pool, uint32_t block, uint32_t from, const uint32_t *ids,
                   uint32_t n);
/* Makes `to` (held once, not kept) note what `from` notes: the cache's copy is the caller's. */
void kv_pool_copy(struct kv_pool *pool, uint32_t from, uint32_t to);
/* Marks a used block as worth keeping when nobody holds it / takes the mark away. */
void kv_pool_keep(struct kv_pool *pool, uint32_t block);
void kv_pool_forget(struct kv_pool *pool, uint32_t block);

uint32_t kv_pool_refs(const struct kv_pool *pool, uint32_t block);
bool kv_pool_is_kept(const struct kv_pool *pool, uint32_t block);
/* Token ids noted, [kv_pool_n_valid]. */
const uint32_t *kv_pool_ids(const struct kv_pool *pool, uint32_t block);
uint32_t kv_pool_n_valid(const struct kv_pool *pool, uint32_t block);
uint32_t kv_pool_block_size(const struct kv_pool *pool);
/* Blocks that kv_pool_take could give: free and cached. */
uint32_t kv_pool_available(const struct kv_pool *pool);
void kv_pool_counts(const struct kv_pool *pool, struct kv_pool_counts *ret);
/* Copies all reference counts to ret_refs [n_blocks], for the scheduler's what-if. */
void kv_pool_copy_refs(const struct kv_pool *pool, uint32_t *ret_refs);
/* Whether lists, counts and marks agree; walks the whole pool, for tests. */
bool kv_pool_consistent(const struct kv_pool *pool);

#endif
