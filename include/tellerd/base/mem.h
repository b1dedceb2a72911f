#ifndef TELLERD_BASE_MEM_H
#define TELLERD_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Small allocations abort when memory is out (xmalloc family); anything sized by a request or a
 * file goes through the checked arithmetic and the functions that may fail.  Any thread.
 */

/* Never return NULL (size 0 gives a unique pointer); abort with a message when out of memory.  Free
 * with free(). */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *block, size_t size);
void *xreallocarray(void *block, size_t count, size_t size);
char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t len);
void *xmemdup(const void *bytes, size_t len);

/* *ret = a * b or a + b; false (and *ret untouched) when the result does not fit. */
bool size_mul(size_t a, size_t b, size_t *ret);
bool size_add(size_t a, size_t b, size_t *ret);

/*
 * Big zero-filled memory for weights, cache and workspaces: page-aligned (2 MiB-aligned with
 * transparent huge pages asked for when at least 2 MiB).  NULL when the system refuses.  `touch`
 * writes each page now, so that the memory is really there.  big_free takes the same size; NULL is
 * allowed.
 */
void *big_alloc(size_t size, bool touch);
void big_free(void *block, size_t size);

/*
 * Blocks of the same kind side by side in big chunks, for owners of many: blocks of less than 2 MiB
 * lie in huge pages, too, and a block wastes no page.  One thread at a time.
 */
struct big_pool;

struct big_pool *big_pool_new(void);
void big_pool_free(struct big_pool *pool); /* and all its blocks; NULL is allowed */

/* A zero-filled block at a multiple of 64 bytes, or NULL when the system refuses. */
void *big_pool_take(struct big_pool *pool, size_t size);

/* Gives a block back (NULL is allowed); its memory is free when its chunk's other blocks are, too.
 */
void big_pool_give(struct big_pool *pool, const void *block);

#endif
