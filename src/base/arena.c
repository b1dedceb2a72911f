/*
 * Bump arena: chunks of growing size, newest first; freed together.  One owner, one thread.
 */
#include "config.h"

#include "tellerd/base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/base/mem.h"

enum { ARENA_ALIGN = 16, ARENA_FIRST_CHUNK = 2048, ARENA_LARGEST_CHUNK = 64 * 1024 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t used;
    size_t size;
    _Alignas(ARENA_ALIGN) char bytes[];
};

void arena_init(struct arena *arena, size_t max_bytes)
{
    arena->chunks = NULL;
    arena->used_bytes = 0;
    arena->max_bytes = max_bytes;
}

void arena_done(struct arena *arena)
{
    while (arena->chunks) {
        struct arena_chunk *next = arena->chunks->next;
        free(arena->chunks);
        arena->chunks = next;
    }
    arena->used_bytes = 0;
}

/* Keeps the newest chunk, so that a connection's next request starts without malloc. */
void arena_reset(struct arena *arena)
{
    struct arena_chunk *kept = arena->chunks;
    if (!kept)
        return;
    arena->chunks = kept->next;
    arena_done(arena);
    if (kept->size > ARENA_LARGEST_CHUNK) {
        free(kept);
        return;
    }
    kept->next = NULL;
    kept->used = 0;
    arena->chunks = kept;
}

/* Puts a chunk with room for `size` bytes in front. */
static void add_chunk(struct arena *arena, size_t size)
{
    size_t chunk_size = arena->chunks ? 2 * arena->chunks->size : ARENA_FIRST_CHUNK;
    if (chunk_size > ARENA_LARGEST_CHUNK)
        chunk_size = ARENA_LARGEST_CHUNK;
    if (chunk_size < size)
        chunk_size = size;
    struct arena_chunk *chunk = xmalloc(sizeof *chunk + chunk_size);
    chunk->next = arena->chunks;
    chunk->used = 0;
    chunk->size = chunk_size;
    arena->chunks = chunk;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    /* first a bound that makes the rounding below safe */
    if (size > arena->max_bytes || size > SIZE_MAX / 2)
        return NULL;
    size_t rounded = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (rounded == 0)
        rounded = ARENA_ALIGN;
    if (rounded > arena->max_bytes - arena->used_bytes)
        return NULL;
    if (!arena->chunks || rounded > arena->chunks->size - arena->chunks->used)
        add_chunk(arena, rounded);
    struct arena_chunk *chunk = arena->chunks;
    void *block = chunk->bytes + chunk->used;
    chunk->used += rounded;
    arena->used_bytes += rounded;
    return block;
}

void *arena_calloc(struct arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (!size_mul(count, size, &bytes))
        return NULL;
    void *block = arena_alloc(arena, bytes);
    if (block)
        memset(block, 0, bytes);
    return block;
}

char *arena_strndup(struct arena *arena, const char *text, size_t len)
{
    size_t bytes;
    if (!size_add(len, 1, &bytes))
        return NULL;
    char *copy = arena_alloc(arena, bytes);
    if (!copy)
        return NULL;
    if (len > 0)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}
