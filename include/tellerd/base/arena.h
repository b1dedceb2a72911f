#ifndef TELLERD_BASE_ARENA_H
#define TELLERD_BASE_ARENA_H

#include <stddef.h>

/*
 * Bump arena: one request's small data, freed at once.  Blocks are 16-byte aligned.  arena_alloc
 * aborts when memory is out, and returns NULL when the arena's hard maximum would be passed (a
 * limit on what one request may hold).  One owner, one thread.
 */
struct arena_chunk;
struct arena {
    struct arena_chunk *chunks;
    size_t used_bytes;
    size_t max_bytes;
};

void arena_init(struct arena *arena, size_t max_bytes);
void arena_done(struct arena *arena);
void arena_reset(struct arena *arena);
void *arena_alloc(struct arena *arena, size_t size);
void *arena_calloc(struct arena *arena, size_t count, size_t size);
char *arena_strndup(struct arena *arena, const char *text, size_t len);

#endif
