#ifndef TELLERD_MODEL_NAME_TABLE_PRIV_H
#define TELLERD_MODEL_NAME_TABLE_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "tellerd/model/checkpoint.h"

/*
 * Sorted names to indexes: keys of a file, names of tensors.  Sorting rather than hashing keeps a
 * hostile file's worst case at n log n.
 */
struct name_entry {
    struct text_view name; /* borrowed */
    uint32_t index;
};

struct name_table {
    struct name_entry *entries; /* [n], owned */
    uint32_t n;
};

enum { NAME_TABLE_NONE = UINT32_MAX };

/* Makes n empty entries for the caller to fill. */
void name_table_init(struct name_table *table, uint32_t n);
void name_table_done(struct name_table *table);
/* Sorts the filled entries; false, and one of the names in *ret_twice, when two are equal. */
bool name_table_sort(struct name_table *table, struct text_view *ret_twice);
/* The index of a name in a sorted table, or NAME_TABLE_NONE. */
uint32_t name_table_find(const struct name_table *table, const char *name, size_t len);

static inline bool text_view_is(struct text_view view, const char *text)
{
    return view.len == __builtin_strlen(text) &&
           (view.len == 0 || __builtin_memcmp(view.bytes, text, view.len) == 0);
}

#endif
