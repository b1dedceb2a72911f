/*
 * A sorted table from names to indexes.  No thread of its own; immutable once sorted.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "name_table_priv.h"
#include "tellerd/base/mem.h"

static int compare_views(struct text_view a, struct text_view b)
{
    size_t shorter = a.len < b.len ? a.len : b.len;
    int order = shorter > 0 ? memcmp(a.bytes, b.bytes, shorter) : 0;
    if (order != 0)
        return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

static int compare_entries(const void *a, const void *b)
{
    const struct name_entry *x = a, *y = b;
    return compare_views(x->name, y->name);
}

void name_table_init(struct name_table *table, uint32_t n)
{
    table->entries = xcalloc(n, sizeof *table->entries);
    table->n = n;
}

void name_table_done(struct name_table *table)
{
    free(table->entries);
    table->entries = NULL;
    table->n = 0;
}

bool name_table_sort(struct name_table *table, struct text_view *ret_twice)
{
    if (table->n == 0)
        return true;
    qsort(table->entries, table->n, sizeof *table->entries, compare_entries);
    for (uint32_t i = 1; i < table->n; i++) {
        if (compare_entries(&table->entries[i - 1], &table->entries[i]) == 0) {
            *ret_twice = table->entries[i].name;
            return false;
        }
    }
    return true;
}

uint32_t name_table_find(const struct name_table *table, const char *name, size_t len)
{
    struct text_view wanted = {name, len};
    uint32_t low = 0, high = table->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = compare_views(table->entries[middle].name, wanted);
        if (order == 0)
            return table->entries[middle].index;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NAME_TABLE_NONE;
}
