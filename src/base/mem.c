/*
 * Memory: small blocks that abort when there is none, sizes that cannot overflow, and big
 * zero-filled regions straight from the kernel.  Any thread.
 */
#include "config.h"

#include "tellerd/base/mem.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tellerd/base/status.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older kernels answer EINVAL */
#endif

enum {
    HUGE_PAGE_BYTES = 2 * 1024 * 1024,
    POOL_CHUNK_BYTES = 64 * 1024 * 1024, /* address space; memory comes with use */
    POOL_ALIGN = 64,
};

/* Says so without allocating, then aborts. */
static _Noreturn void out_of_memory(void)
{
    static const char text[] = "<3>tellerd: out of memory\n";
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    abort();
}

void *xmalloc(size_t size)
{
    void *block = malloc(size ? size : 1);
    if (!block)
        out_of_memory();
    return block;
}

void *xcalloc(size_t count, size_t size)
{
    void *block = calloc(count ? count : 1, size ? size : 1);
    if (!block)
        out_of_memory();
    return block;
}

void *xrealloc(void *block, size_t size)
{
    void *moved = realloc(block, size ? size : 1);
    if (!moved)
        out_of_memory();
    return moved;
}

void *xreallocarray(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (!size_mul(count, size, &bytes))
        out_of_memory();
    return xrealloc(block, bytes);
}

char *xstrdup(const char *text)
{
    return xmemdup(text, strlen(text) + 1);
}

char *xstrndup(const char *text, size_t len)
{
    size_t n = strnlen(text, len);
    char *copy = xmalloc(n + 1);
    memcpy(copy, text, n);
    copy[n] = '\0';
    return copy;
}

void *xmemdup(const void *bytes, size_t len)
{
    void *copy = xmalloc(len);
    if (len > 0)
        memcpy(copy, bytes, len);
    return copy;
}

bool size_mul(size_t a, size_t b, size_t *ret)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *ret = product;
    return true;
}

bool size_add(size_t a, size_t b, size_t *ret)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *ret = sum;
    return true;
}

/* The granule of a big block: huge pages from 2 MiB on, else pages. */
static size_t granule(size_t size)
{
    return size >= HUGE_PAGE_BYTES ? (size_t)HUGE_PAGE_BYTES : (size_t)sysconf(_SC_PAGESIZE);
}

/* size rounded up to its granule; false when that does not fit. */
static bool round_up(size_t size, size_t *ret)
{
    size_t unit = granule(size), padded;
    if (!size_add(size ? size : 1, unit - 1, &padded))
        return false;
    *ret = padded - padded % unit;
    return true;
}

/* Maps `size` bytes at a multiple of `unit`, by mapping more and giving the ends back. */
static void *map_aligned(size_t size, size_t unit)
{
    size_t room;
    if (!size_add(size, unit, &room))
        return NULL;
    char *base = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    size_t skip = (unit - (uintptr_t)base % unit) % unit;
    if (skip > 0)
        munmap(base, skip);
    munmap(base + skip + size, unit - skip);
    return base + skip;
}

/* Backs every page with memory; false when the kernel has none. */
static bool populate(char *block, size_t size)
{
    if (madvise(block, size, MADV_POPULATE_WRITE) == 0)
        return true;
    if (errno != EINVAL)
        return false;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t at = 0; at < size; at += page)
        *(volatile char *)(block + at) = 0;
    return true;
}

void *big_alloc(size_t size, bool touch)
{
    size_t rounded;
    if (!round_up(size, &rounded))
        return NULL;
    void *block = map_aligned(rounded, granule(size));
    if (!block)
        return NULL;
    if (size >= HUGE_PAGE_BYTES)
        (void)madvise(block, rounded, MADV_HUGEPAGE); /* only advice: works without, too */
    if (touch && !populate(block, rounded)) {
        munmap(block, rounded);
        return NULL;
    }
    return block;
}

void big_free(void *block, size_t size)
{
    size_t rounded;
    if (block && round_up(size, &rounded))
        munmap(block, rounded);
}

struct big_chunk {
    struct big_chunk *next;
    char *bytes;
    size_t size, used;
    size_t n_blocks; /* taken and not given back */
};

struct big_pool {
    struct big_chunk *first; /* the one that blocks are taken from, then the full ones */
};

struct big_pool *big_pool_new(void)
{
    return xcalloc(1, sizeof(struct big_pool));
}

static void free_chunk(struct big_chunk *chunk)
{
    big_free(chunk->bytes, chunk->size);
    free(chunk);
}

void big_pool_free(struct big_pool *pool)
{
    if (!pool)
        return;
    while (pool->first) {
        struct big_chunk *next = pool->first->next;
        free_chunk(pool->first);
        pool->first = next;
    }
    free(pool);
}

static bool add_chunk(struct big_pool *pool, size_t size)
{
    void *bytes = big_alloc(size, false);
    if (!bytes)
        return false;
    struct big_chunk *chunk = xcalloc(1, sizeof *chunk);
    *chunk = (struct big_chunk){.next = pool->first, .bytes = bytes, .size = size};
    pool->first = chunk;
    return true;
}

void *big_pool_take(struct big_pool *pool, size_t size)
{
    size_t padded;
    if (!size_add(size ? size : 1, POOL_ALIGN - 1, &padded))
        return NULL;
    padded -= padded % POOL_ALIGN;
    if (!pool->first || padded > pool->first->size - pool->first->used) {
        if (!add_chunk(pool, padded > POOL_CHUNK_BYTES ? padded : (size_t)POOL_CHUNK_BYTES))
            return NULL;
    }
    struct big_chunk *chunk = pool->first;
    void *block = chunk->bytes + chunk->used;
    chunk->used += padded;
    chunk->n_blocks++;
    return block;
}

void big_pool_give(struct big_pool *pool, const void *block)
{
    struct big_chunk **at = &pool->first;
    if (!block)
        return;
    while (*at && !((const char *)block >= (*at)->bytes &&
                    (const char *)block < (*at)->bytes + (*at)->size))
        at = &(*at)->next;
    REQUIRE(*at && (*at)->n_blocks > 0);
    struct big_chunk *chunk = *at;
    if (--chunk->n_blocks > 0)
        return;
    *at = chunk->next;
    free_chunk(chunk);
}
