/*
 * Joins neighbouring symbols in order of rank, leftmost first among equals, until no pair is left:
 * the heart of byte-level BPE and of SentencePiece's BPE.  A linked list of symbols and a heap of
 * pairs, so that one very long piece takes n log n and no stack.  Entries that a merge has made
 * stale stay in the heap and are dropped when they come up.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tellerd/base/mem.h"
#include "tokenizer_priv.h"

static uint32_t pair_hash(uint32_t left, uint32_t right)
{
    uint64_t key = ((uint64_t)left << 32 | right) * 0x9E3779B97F4A7C15u;
    key = (key ^ key >> 32) * 0xD6E8FEB86659FD93u;
    return (uint32_t)(key >> 32);
}

void merge_table_init(struct merge_table *table, size_t n_merges)
{
    size_t size = 16;
    while (size < n_merges + n_merges / 2)
        size *= 2;
    table->mask = (uint32_t)(size - 1);
    table->slots = xreallocarray(NULL, size, sizeof *table->slots);
    memset(table->slots, 0xFF, size * sizeof *table->slots);
}

void merge_table_done(struct merge_table *table)
{
    free(table->slots);
    table->slots = NULL;
}

static struct merge *merge_slot(const struct merge_table *table, uint32_t left, uint32_t right)
{
    uint32_t at = pair_hash(left, right) & table->mask;
    struct merge *slot = &table->slots[at];
    while (slot->left != TOKEN_NONE && (slot->left != left || slot->right != right)) {
        at = (at + 1) & table->mask;
        slot = &table->slots[at];
    }
    return slot;
}

void merge_table_add(struct merge_table *table, const struct merge *merge)
{
    struct merge *slot = merge_slot(table, merge->left, merge->right);
    if (slot->left == TOKEN_NONE)
        *slot = *merge;
}

const struct merge *merge_table_find(const struct merge_table *table, uint32_t left, uint32_t right)
{
    if (left == TOKEN_NONE || right == TOKEN_NONE)
        return NULL;
    const struct merge *slot = merge_slot(table, left, right);
    return slot->left == TOKEN_NONE ? NULL : slot;
}

void merge_work_done(struct merge_work *work)
{
    free(work->symbols);
    free(work->heap);
    *work = (struct merge_work){0};
}

bool merge_work_reserve(struct merge_work *work, size_t n)
{
    if (n <= work->cap)
        return true;
    size_t cap = n + n / 8 + 64;
    /* n - 1 pairs at first, and each of at most n - 1 merges takes one out and adds two */
    struct merge_symbol *symbols = reallocarray(NULL, cap, sizeof *symbols);
    uint64_t *heap = reallocarray(NULL, cap, 2 * sizeof *heap);
    if (!symbols || !heap) {
        free(symbols);
        free(heap);
        return false;
    }
    free(work->symbols);
    free(work->heap);
    work->symbols = symbols;
    work->heap = heap;
    work->cap = cap;
    return true;
}

static void heap_push(struct merge_work *work, uint64_t key)
{
    uint64_t *heap = work->heap;
    size_t at = work->n_heap++;
    while (at > 0) {
        size_t parent = (at - 1) / 2;
        if (heap[parent] <= key)
            break;
        heap[at] = heap[parent];
        at = parent;
    }
    heap[at] = key;
}

static uint64_t heap_pop(struct merge_work *work)
{
    uint64_t *heap = work->heap;
    uint64_t least = heap[0];
    uint64_t key = heap[--work->n_heap];
    size_t n = work->n_heap, at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= key)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = key;
    return least;
}

/* Looks up the pair of symbol `at` and its next, and queues it when it merges. */
static void pair_update(const struct merge_table *table, struct merge_work *work, uint32_t at)
{
    struct merge_symbol *left = &work->symbols[at];
    const struct merge *merge =
        left->next == MERGE_END ? NULL
                                : merge_table_find(table, left->id, work->symbols[left->next].id);
    left->rank = MERGE_END;
    if (!merge)
        return;
    left->rank = merge->rank;
    left->merged = merge->id;
    heap_push(work, (uint64_t)merge->rank << 32 | at);
}

void merge_run(const struct merge_table *table, struct merge_work *work, uint32_t n)
{
    struct merge_symbol *symbols = work->symbols;
    work->n_heap = 0;
    for (uint32_t i = 0; i < n; i++) {
        symbols[i].prev = i > 0 ? i - 1 : MERGE_END;
        symbols[i].next = i + 1 < n ? i + 1 : MERGE_END;
        pair_update(table, work, i);
    }
    while (work->n_heap > 0) {
        uint64_t key = heap_pop(work);
        uint32_t at = (uint32_t)key;
        struct merge_symbol *left = &symbols[at];
        if (left->rank != (uint32_t)(key >> 32))
            continue; /* merged meanwhile, or its pair is another one now */
        struct merge_symbol *right = &symbols[left->next];
        left->id = left->merged;
        left->next = right->next;
        right->rank = MERGE_END;
        if (left->next != MERGE_END)
            symbols[left->next].prev = at;
        pair_update(table, work, at);
        if (left->prev != MERGE_END)
            pair_update(table, work, left->prev);
    }
}
