/*
 * Two ways from bytes to token ids: a hash table for whole texts, and a trie whose edges live in
 * one hash table, for the longest of several texts.  Immutable once built.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tellerd/base/hash.h"
#include "tellerd/base/mem.h"
#include "tokenizer_priv.h"

enum { TRIE_MAX_NODES = 1 << 24, TRIE_FIRST_EDGES = 64 };

/* The power of two that leaves an open-addressing table of n entries at most two thirds full. */
static uint32_t table_size(size_t n)
{
    size_t size = 16;
    while (size < n + n / 2)
        size *= 2;
    return (uint32_t)size;
}

static uint32_t text_hash(const char *text, size_t len)
{
    return (uint32_t)hash_bytes(text, len, 0).low;
}

void text_index_init(struct text_index *index, const struct text_view *tokens, uint32_t n_tokens)
{
    uint32_t size = table_size(n_tokens);
    index->tokens = tokens;
    index->mask = size - 1;
    index->slots = xreallocarray(NULL, size, sizeof *index->slots);
    memset(index->slots, 0xFF, size * sizeof *index->slots);
    for (uint32_t id = 0; id < n_tokens; id++) {
        const struct text_view *token = &tokens[id];
        if (token->len == 0)
            continue;
        uint32_t hash = text_hash(token->bytes, token->len);
        uint32_t at = hash & index->mask;
        for (; index->slots[at].id != TOKEN_NONE; at = (at + 1) & index->mask) {
            const struct text_view *other = &tokens[index->slots[at].id];
            if (index->slots[at].hash == hash && other->len == token->len &&
                memcmp(other->bytes, token->bytes, token->len) == 0)
                break;
        }
        if (index->slots[at].id == TOKEN_NONE)
            index->slots[at] = (struct text_slot){hash, id};
    }
}

void text_index_done(struct text_index *index)
{
    free(index->slots);
    index->slots = NULL;
}

uint32_t text_index_find(const struct text_index *index, const char *text, size_t len)
{
    uint32_t hash = text_hash(text, len);
    for (uint32_t at = hash & index->mask;; at = (at + 1) & index->mask) {
        struct text_slot slot = index->slots[at];
        if (slot.id == TOKEN_NONE)
            return TOKEN_NONE;
        const struct text_view *token = &index->tokens[slot.id];
        if (slot.hash == hash && token->len == len && memcmp(token->bytes, text, len) == 0)
            return slot.id;
    }
}

/* -- trie -------------------------------------------------------------------------------------- */

static uint32_t edge_hash(uint32_t key)
{
    key = (key ^ key >> 16) * 0x7FEB352Du;
    key = (key ^ key >> 15) * 0x846CA68Bu;
    return key ^ key >> 16;
}

static uint32_t trie_new_node(struct trie *trie)
{
    if (trie->n_nodes == trie->cap_nodes) {
        trie->cap_nodes = trie->cap_nodes ? trie->cap_nodes * 2 : TRIE_FIRST_EDGES;
        trie->ids = xreallocarray(trie->ids, trie->cap_nodes, sizeof *trie->ids);
    }
    trie->ids[trie->n_nodes] = TOKEN_NONE;
    return trie->n_nodes++;
}

void trie_init(struct trie *trie)
{
    *trie = (struct trie){.mask = TRIE_FIRST_EDGES - 1};
    trie->edges = xcalloc(TRIE_FIRST_EDGES, sizeof *trie->edges);
    trie_new_node(trie);
}

void trie_done(struct trie *trie)
{
    free(trie->edges);
    free(trie->ids);
    trie->edges = NULL;
    trie->ids = NULL;
}

static struct trie_edge *edge_slot(const struct trie *trie, uint32_t key)
{
    uint32_t at = edge_hash(key) & trie->mask;
    while (trie->edges[at].child != 0 && trie->edges[at].key != key)
        at = (at + 1) & trie->mask;
    return &trie->edges[at];
}

static void trie_grow(struct trie *trie)
{
    struct trie_edge *old = trie->edges;
    uint32_t old_size = trie->mask + 1;
    trie->edges = xcalloc((size_t)old_size * 2, sizeof *trie->edges);
    trie->mask = old_size * 2 - 1;
    for (uint32_t i = 0; i < old_size; i++) {
        if (old[i].child != 0)
            *edge_slot(trie, old[i].key) = old[i];
    }
    free(old);
}

/* The child of node for byte, made when it is not there. */
static uint32_t trie_child(struct trie *trie, uint32_t node, unsigned char byte)
{
    uint32_t child = trie_step(trie, node, byte);
    if (child != 0)
        return child;
    child = trie_new_node(trie);
    if (node == 0) {
        trie->first[byte] = child;
        return child;
    }
    if ((trie->n_edges + 1) * 3 > (trie->mask + 1) * 2)
        trie_grow(trie);
    uint32_t key = node << 8 | byte;
    *edge_slot(trie, key) = (struct trie_edge){key, child};
    trie->n_edges++;
    return child;
}

bool trie_add(struct trie *trie, const char *text, size_t len, uint32_t id)
{
    if (len > (size_t)(TRIE_MAX_NODES - trie->n_nodes))
        return false;
    uint32_t node = 0;
    for (size_t i = 0; i < len; i++)
        node = trie_child(trie, node, (unsigned char)text[i]);
    if (trie->ids[node] == TOKEN_NONE)
        trie->ids[node] = id;
    return true;
}

uint32_t trie_step(const struct trie *trie, uint32_t node, unsigned char byte)
{
    if (node == 0)
        return trie->first[byte];
    return edge_slot(trie, node << 8 | byte)->child;
}
