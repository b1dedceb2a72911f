#ifndef TELLERD_ENGINE_PREFIX_CACHE_H
#define TELLERD_ENGINE_PREFIX_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "tellerd/base/hash.h"
#include "tellerd/engine/kv_pool.h"

/*
 * Which full blocks of computed positions can be used again.  A block's key is the XXH3-128 of its
 * parent block's key (at the root: of model fingerprint and cache salt) and its token ids.  A key
 * is never trusted: a hit also compares the ids, the salt and that the parent is the very block
 * matched before it.  One content is in the map once: the second computation of it is swapped for
 * the first.  Engine thread only; allocates only in prefix_cache_new.
 */
struct prefix_cache;

/* Replaces XXH3 in tests (collisions). */
typedef struct hash128 (*prefix_hash_fn)(const void *bytes, size_t len, uint64_t seed);

struct prefix_match {
    uint32_t n_blocks; /* full blocks found, in order */
    uint32_t n_idle;   /* of these, held by nobody now: using them makes fewer blocks available */
};

/* Keeps blocks of pool (borrowed; its evictions go to this cache from now on). */
struct prefix_cache *prefix_cache_new(struct kv_pool *pool, struct hash128 fingerprint);
/* Forgets all blocks. */
void prefix_cache_free(struct prefix_cache *cache);
void prefix_cache_set_hash(struct prefix_cache *cache, prefix_hash_fn fn);

/*
 * Longest chain of kept blocks that hold ids[0 .. n_ids), whole blocks only; changes nothing.
 * ret_blocks: NULL, or room for n_ids / block size numbers.
 */
struct prefix_match prefix_cache_find(const struct prefix_cache *cache, uint64_t salt,
                                      const uint32_t *ids, uint32_t n_ids, uint32_t *ret_blocks);
/* The same, and takes a reference of each block found.  Returns how many. */
uint32_t prefix_cache_match(struct prefix_cache *cache, uint64_t salt, const uint32_t *ids,
                            uint32_t n_ids, uint32_t *ret_blocks);
/*
 * Offers a full block that the caller holds, behind parent (KV_NO_BLOCK: it is the first; else a
 * block this cache keeps).  Returns the block to use from now on: `block` itself, now kept, or an
 * equal one that was kept before; then the caller's reference has moved to that one and `block` was
 * given back.  When the parent is not kept (forgotten meanwhile) the block stays private.
 */
uint32_t prefix_cache_insert(struct prefix_cache *cache, uint64_t salt, uint32_t parent,
                             uint32_t block);
/* Never hands this block out again (its content is suspect), nor what was computed behind it. */
void prefix_cache_forget(struct prefix_cache *cache, uint32_t block);

uint32_t prefix_cache_size(const struct prefix_cache *cache);
/* Whether each entry is found under its key and its block is kept; for tests. */
bool prefix_cache_consistent(const struct prefix_cache *cache);

#endif
