/*
 * Filters on sequences.  Where Jinja2 gives a generator, the result here is an iterator too (it can
 * be walked once, is always true and has no length), but its items are computed at once.
 */
#include "config.h"

#include <string.h>

#include "jinja_ops_priv.h"

#define FILTER(name)                                                      \
    static bool name(struct jinja_rt *rt, const struct jinja_value *self, \
                     const struct jinja_args *args, struct jinja_value *ret)

static bool given(const struct jinja_args *args, size_t i)
{
    return args->pos[i].kind != VALUE_MISSING;
}

static bool is_set(const struct jinja_args *args, size_t i)
{
    return given(args, i) && args->pos[i].kind != VALUE_NONE;
}

/*
 * Generators do nothing before they are walked, so what cannot be walked is an error only then.
 * *ret_lazy tells that *ret was set to such an iterator.
 */
static bool late_error(struct jinja_rt *rt, const struct jinja_value *self, struct jinja_value *ret,
                       bool *ret_lazy)
{
    const char *type = jinja_type_name(self);
    switch (self->kind) {
    case VALUE_ITER:
        type = self->u.iter->not_iterable;
        *ret_lazy = type != NULL;
        if (!type)
            return true;
        break;
    case VALUE_NONE:
    case VALUE_BOOL:
    case VALUE_INT:
    case VALUE_FLOAT:
    case VALUE_NAMESPACE:
    case VALUE_MACRO:
    case VALUE_METHOD:
    case VALUE_FUNCTION:
        break;
    default:
        *ret_lazy = false;
        return true;
    }
    *ret_lazy = true;
    if (!value_iter(rt, NULL, ret))
        return false;
    ret->u.iter->not_iterable = type;
    return true;
}

/* As late_error, for those that look at nothing when the value is false. */
static bool late_or_empty(struct jinja_rt *rt, const struct jinja_value *self,
                          struct jinja_value *ret, bool *ret_lazy)
{
    if (jinja_is_true(self))
        return late_error(rt, self, ret, ret_lazy);
    *ret_lazy = true;
    struct jinja_list *none = jinja_list_new(rt, 0);
    return none && value_iter(rt, none, ret);
}

FILTER(filter_list)
{
    struct jinja_list *list;
    (void)args;
    if (!jinja_to_list(rt, self, &list))
        return false;
    *ret = value_list(list);
    return true;
}

FILTER(filter_first)
{
    struct jinja_cursor cursor;
    bool more;
    (void)args;
    if (!jinja_iterate(rt, self, &cursor) || !jinja_next(rt, &cursor, ret, &more))
        return false;
    return more || value_undefined(rt, ret, "No first item, sequence was empty.");
}

FILTER(filter_last)
{
    struct jinja_value index = value_int(-1);
    size_t n;
    (void)args;
    if (self->kind == VALUE_DICT && self->u.dict->len > 0) {
        *ret = self->u.dict->pairs[self->u.dict->len - 1].key;
        return true;
    }
    if (self->kind == VALUE_VIEW && self->u.list->len > 0) {
        *ret = self->u.list->items[self->u.list->len - 1];
        return true;
    }
    if (!jinja_length(rt, self, &n))
        return false;
    if (n == 0)
        return value_undefined(rt, ret, "No last item, sequence was empty.");
    return jinja_get_item(rt, self, &index, ret);
}

FILTER(filter_join)
{
    struct jinja_string *by = NULL;
    struct jinja_cursor cursor;
    struct jinja_sink *sink = jinja_sink_take(rt);
    if (!sink || (given(args, 0) && !jinja_to_string(rt, &args->pos[0], &by)) ||
        !jinja_iterate(rt, self, &cursor))
        return false;
    for (bool first = true;; first = false) {
        struct jinja_value item, part;
        bool more;
        if (!jinja_next(rt, &cursor, &item, &more))
            return false;
        if (!more)
            break;
        if (!jinja_get_path(rt, &item, &args->pos[1], NULL, &part) ||
            (!first && by && !jinja_sink_string(rt, sink, by)) || !jinja_print(rt, sink, &part))
            return false;
    }
    return jinja_sink_finish(rt, sink, ret);
}

static bool reverse_string(struct jinja_rt *rt, const struct jinja_value *self,
                           struct jinja_value *ret)
{
    struct jinja_value bounds[3] = {{0}, {0}, value_int(-1)};
    return jinja_get_slice(rt, self, bounds, ret);
}

FILTER(filter_reverse)
{
    struct jinja_list *list;
    (void)args;
    if (self->kind == VALUE_STR)
        return reverse_string(rt, self, ret);
    if (!jinja_to_list(rt, self, &list))
        return false;
    struct jinja_list *reversed = jinja_list_new(rt, list->len);
    if (!reversed || !jinja_step(rt, list->len / 8 + 1))
        return false;
    for (size_t i = list->len; i > 0; i--)
        reversed->items[reversed->len++] = list->items[i - 1];
    if (self->kind == VALUE_ITER) { /* Python cannot reverse it, so Jinja2 gives a list */
        *ret = value_list(reversed);
        return true;
    }
    return value_iter(rt, reversed, ret);
}

FILTER(filter_items)
{
    struct jinja_list *list;
    (void)args;
    if (self->kind != VALUE_DICT && self->kind != VALUE_UNDEFINED) {
        if (!value_iter(rt, NULL, ret))
            return false;
        ret->u.iter->not_iterable = jinja_type_name(self);
        return true;
    }
    size_t n = self->kind == VALUE_DICT ? self->u.dict->len : 0;
    if (!(list = jinja_list_new(rt, n)) || !jinja_step(rt, n))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct jinja_list *pair = jinja_list_new(rt, 2);
        if (!pair)
            return false;
        pair->items[0] = self->u.dict->pairs[i].key;
        pair->items[1] = self->u.dict->pairs[i].value;
        pair->len = 2;
        list->items[list->len++] = value_tuple(pair);
    }
    return value_iter(rt, list, ret);
}

/* ---- sorting ---- */

struct sort_item {
    struct jinja_value key;
    struct jinja_value value;
};

/* What is compared: the value at the path, in lower case unless case counts. */
static bool sort_key(struct jinja_rt *rt, const struct jinja_value *v,
                     const struct jinja_value *path, bool case_sensitive, struct jinja_value *ret)
{
    struct jinja_value key;
    if (!jinja_get_path(rt, v, path, NULL, &key))
        return false;
    if (key.kind != VALUE_STR || case_sensitive) {
        *ret = key;
        return true;
    }
    return jinja_string_case(rt, key.u.string, CASE_LOWER, ret);
}

/* Several paths parted by commas: the key is the list of what lies there. */
static bool multi_key(struct jinja_rt *rt, const struct jinja_value *v,
                      const struct jinja_value *path, bool case_sensitive, struct jinja_value *ret)
{
    if (path->kind != VALUE_STR || path->u.string->len == 0 ||
        !memchr(path->u.string->bytes, ',', path->u.string->len))
        return sort_key(rt, v, path, case_sensitive, ret);
    struct jinja_list *keys = jinja_list_new(rt, 2);
    const struct jinja_string *s = path->u.string;
    if (!keys)
        return false;
    for (size_t from = 0; from <= s->len;) {
        const char *comma = from < s->len ? memchr(s->bytes + from, ',', s->len - from) : NULL;
        size_t end = comma ? (size_t)(comma - s->bytes) : s->len;
        struct jinja_value part, key;
        if (!jinja_string_part(rt, s, from, end - from, &part) ||
            !sort_key(rt, v, &part, case_sensitive, &key) || !jinja_list_add(rt, keys, key))
            return false;
        from = end + 1;
    }
    *ret = value_list(keys);
    return true;
}

/* Stable merge sort; with `reverse`, greater ones come first and equal ones stay in order. */
static bool merge_sort(struct jinja_rt *rt, struct sort_item *items, struct sort_item *spare,
                       size_t n, bool reverse)
{
    if (n < 2)
        return true;
    size_t half = n / 2, i = 0, j = half, k = 0;
    if (!merge_sort(rt, items, spare, half, reverse) ||
        !merge_sort(rt, items + half, spare, n - half, reverse) || !jinja_step(rt, n))
        return false;
    memcpy(spare, items, n * sizeof *items);
    while (i < half && j < n) {
        int order;
        const struct jinja_value *a = &spare[j].key, *b = &spare[i].key;
        if (!jinja_order(rt, reverse ? b : a, reverse ? a : b, "<", &order))
            return false;
        items[k++] = order < 0 ? spare[j++] : spare[i++];
    }
    while (i < half)
        items[k++] = spare[i++];
    while (j < n)
        items[k++] = spare[j++];
    return true;
}

/* Sorts values by keys of the same number. */
static bool sort_values(struct jinja_rt *rt, struct sort_item *items, size_t n, bool reverse,
                        struct jinja_list **ret)
{
    struct jinja_list *sorted = jinja_list_new(rt, n);
    struct sort_item *spare = jinja_alloc(rt, (n + 1) * sizeof *spare);
    if (!sorted || !spare || !merge_sort(rt, items, spare, n, reverse))
        return false;
    for (size_t i = 0; i < n; i++)
        sorted->items[sorted->len++] = items[i].value;
    *ret = sorted;
    return true;
}

static struct sort_item *sort_items(struct jinja_rt *rt, size_t n)
{
    if (n > SIZE_MAX / 4 / sizeof(struct sort_item)) {
        (void)jinja_fail_limit(rt, "the template takes too much memory");
        return NULL;
    }
    return jinja_step(rt, n) ? jinja_alloc(rt, (n + 1) * sizeof(struct sort_item)) : NULL;
}

static bool sorted_by(struct jinja_rt *rt, const struct jinja_value *self,
                      const struct jinja_value *path, bool case_sensitive, bool reverse,
                      struct sort_item **ret_items, struct jinja_list **ret)
{
    struct jinja_list *list;
    if (!jinja_to_list(rt, self, &list))
        return false;
    struct sort_item *items = sort_items(rt, list->len);
    if (!items)
        return false;
    for (size_t i = 0; i < list->len; i++) {
        items[i].value = list->items[i];
        if (!multi_key(rt, &list->items[i], path, case_sensitive, &items[i].key))
            return false;
    }
    *ret_items = items;
    return sort_values(rt, items, list->len, reverse, ret);
}

FILTER(filter_sort)
{
    struct jinja_list *sorted;
    struct sort_item *items;
    bool reverse = given(args, 0) && jinja_is_true(&args->pos[0]);
    bool case_sensitive = given(args, 1) && jinja_is_true(&args->pos[1]);
    if (!sorted_by(rt, self, &args->pos[2], case_sensitive, reverse, &items, &sorted))
        return false;
    *ret = value_list(sorted);
    return true;
}

FILTER(filter_dictsort)
{
    bool case_sensitive = given(args, 0) && jinja_is_true(&args->pos[0]), by_value = false;
    bool reverse = given(args, 2) && jinja_is_true(&args->pos[2]);
    struct jinja_list *sorted;
    if (given(args, 1)) {
        const struct jinja_value *by = &args->pos[1];
        bool text = by->kind == VALUE_STR;
        by_value = text && jinja_name_is(by->u.string->bytes, by->u.string->len, "value");
        if (!by_value && !(text && jinja_name_is(by->u.string->bytes, by->u.string->len, "key")))
            return jinja_fail(rt, "You can only sort by either \"key\" or \"value\"");
    }
    if (self->kind == VALUE_UNDEFINED)
        return jinja_used_undefined(rt, self);
    if (self->kind != VALUE_DICT)
        return jinja_fail(rt, "dictsort wants a mapping, not %s", jinja_type_name(self));
    const struct jinja_dict *dict = self->u.dict;
    struct sort_item *items = sort_items(rt, dict->len);
    if (!items)
        return false;
    for (size_t i = 0; i < dict->len; i++) {
        struct jinja_list *pair = jinja_list_new(rt, 2);
        struct jinja_value none = value_none();
        if (!pair || !sort_key(rt, by_value ? &dict->pairs[i].value : &dict->pairs[i].key, &none,
                               case_sensitive, &items[i].key))
            return false;
        pair->items[0] = dict->pairs[i].key;
        pair->items[1] = dict->pairs[i].value;
        pair->len = 2;
        items[i].value = value_tuple(pair);
    }
    if (!sort_values(rt, items, dict->len, reverse, &sorted))
        return false;
    *ret = value_list(sorted);
    return true;
}

FILTER(filter_groupby)
{
    bool case_sensitive = given(args, 2) && jinja_is_true(&args->pos[2]);
    struct jinja_list *list, *sorted, *groups = jinja_list_new(rt, 0);
    if (!groups || !jinja_to_list(rt, self, &list))
        return false;
    struct sort_item *items = sort_items(rt, list->len);
    if (!items)
        return false;
    for (size_t i = 0; i < list->len; i++) {
        struct jinja_value none = value_none(), found;
        items[i].value = list->items[i];
        if (!jinja_get_path(rt, &list->items[i], &args->pos[0], &args->pos[1], &found) ||
            !sort_key(rt, &found, &none, case_sensitive, &items[i].key))
            return false;
    }
    if (!sort_values(rt, items, list->len, false, &sorted))
        return false;
    for (size_t i = 0; i < sorted->len;) {
        struct jinja_list *members = jinja_list_new(rt, 0), *group = jinja_list_new(rt, 2);
        bool same = true;
        size_t first = i;
        if (!members || !group)
            return false;
        while (i < sorted->len && same) {
            if (!jinja_list_add(rt, members, items[i].value))
                return false;
            i++;
            if (i < sorted->len && !jinja_equal(rt, &items[i].key, &items[first].key, &same))
                return false;
        }
        if (!jinja_get_path(rt, &items[first].value, &args->pos[0], &args->pos[1],
                            &group->items[0]))
            return false;
        group->items[1] = value_list(members);
        group->len = 2;
        if (!jinja_list_add(rt, groups, value_tuple(group)))
            return false;
    }
    *ret = value_list(groups);
    return true;
}

static bool extreme(struct jinja_rt *rt, const struct jinja_value *self,
                    const struct jinja_args *args, bool max, struct jinja_value *ret)
{
    bool case_sensitive = given(args, 0) && jinja_is_true(&args->pos[0]);
    struct jinja_list *list;
    struct jinja_value best_key, key;
    size_t best = 0;
    if (!jinja_to_list(rt, self, &list) || !jinja_step(rt, list->len))
        return false;
    if (list->len == 0)
        return value_undefined(rt, ret, "No aggregated item, sequence was empty.");
    if (!sort_key(rt, &list->items[0], &args->pos[1], case_sensitive, &best_key))
        return false;
    for (size_t i = 1; i < list->len; i++) {
        int order;
        if (!sort_key(rt, &list->items[i], &args->pos[1], case_sensitive, &key) ||
            !jinja_order(rt, &key, &best_key, max ? ">" : "<", &order))
            return false;
        if (order == (max ? 1 : -1)) {
            best = i;
            best_key = key;
        }
    }
    *ret = list->items[best];
    return true;
}

FILTER(filter_min)
{
    return extreme(rt, self, args, false, ret);
}

FILTER(filter_max)
{
    return extreme(rt, self, args, true, ret);
}

FILTER(filter_sum)
{
    struct jinja_cursor cursor;
    struct jinja_value sum = given(args, 1) ? args->pos[1] : value_int(0);
    if (sum.kind == VALUE_STR)
        return jinja_fail(rt, "sum() can't sum strings [use ''.join(seq) instead]");
    if (!jinja_iterate(rt, self, &cursor))
        return false;
    for (;;) {
        struct jinja_value item, part, total;
        bool more;
        if (!jinja_next(rt, &cursor, &item, &more))
            return false;
        if (!more)
            break;
        if (!jinja_get_path(rt, &item, &args->pos[0], NULL, &part) ||
            !jinja_binary(rt, OP_ADD, &sum, &part, &total))
            return false;
        sum = total;
    }
    *ret = sum;
    return true;
}

FILTER(filter_unique)
{
    bool case_sensitive = given(args, 0) && jinja_is_true(&args->pos[0]);
    struct jinja_list *list, *unique = jinja_list_new(rt, 0);
    struct jinja_dict *seen = jinja_dict_new(rt, 0);
    bool lazy;
    if (!late_error(rt, self, ret, &lazy))
        return false;
    if (lazy)
        return true;
    if (!unique || !seen || !jinja_to_list(rt, self, &list))
        return false;
    for (size_t i = 0; i < list->len; i++) {
        struct jinja_value key, *found;
        if (!sort_key(rt, &list->items[i], &args->pos[1], case_sensitive, &key) ||
            !jinja_dict_find(rt, seen, &key, &found))
            return false;
        if (!found && (!jinja_dict_set(rt, seen, key, value_none()) ||
                       !jinja_list_add(rt, unique, list->items[i])))
            return false;
    }
    return value_iter(rt, unique, ret);
}

/* A count for batch and slice. */
static bool count_arg(struct jinja_rt *rt, const struct jinja_args *args, int64_t *ret)
{
    if (!value_is_int(&args->pos[0], ret) || *ret < 1)
        return jinja_fail(rt, "a positive number is needed");
    return true;
}

FILTER(filter_batch)
{
    struct jinja_list *list, *batches = jinja_list_new(rt, 0), *batch = NULL;
    int64_t n;
    bool lazy;
    if (!late_error(rt, self, ret, &lazy))
        return false;
    if (lazy)
        return true;
    if (!batches || !count_arg(rt, args, &n) || !jinja_to_list(rt, self, &list) ||
        !jinja_step(rt, list->len))
        return false;
    for (size_t i = 0; i < list->len; i++) {
        if (i % (uint64_t)n == 0 &&
            (!(batch = jinja_list_new(rt, 0)) || !jinja_list_add(rt, batches, value_list(batch))))
            return false;
        if (!jinja_list_add(rt, batch, list->items[i]))
            return false;
    }
    while (batch && is_set(args, 1) && batch->len < (uint64_t)n) {
        if (!jinja_step(rt, 1) || !jinja_list_add(rt, batch, args->pos[1]))
            return false;
    }
    return value_iter(rt, batches, ret);
}

FILTER(filter_slice)
{
    struct jinja_list *list, *slices = jinja_list_new(rt, 0);
    int64_t n;
    bool lazy;
    if (!late_error(rt, self, ret, &lazy))
        return false;
    if (lazy)
        return true;
    if (!slices || !count_arg(rt, args, &n) || !jinja_to_list(rt, self, &list))
        return false;
    size_t per_slice = list->len / (uint64_t)n, extra = list->len % (uint64_t)n, at = 0;
    for (int64_t s = 0; s < n; s++) {
        size_t len = per_slice + ((size_t)s < extra);
        struct jinja_list *slice = jinja_list_new(rt, len);
        if (!slice || !jinja_step(rt, len + 1))
            return false;
        for (size_t i = 0; i < len; i++)
            slice->items[slice->len++] = list->items[at++];
        if (is_set(args, 1) && (size_t)s >= extra && !jinja_list_add(rt, slice, args->pos[1]))
            return false;
        if (!jinja_list_add(rt, slices, value_list(slice)))
            return false;
    }
    return value_iter(rt, slices, ret);
}

/* ---- map, select and the like: the arguments come unbound ---- */

/* The filter or test that an argument names. */
static const struct jinja_function *named(struct jinja_rt *rt, const struct jinja_value *name,
                                          bool filter)
{
    const struct jinja_function *fn = NULL;
    if (name->kind == VALUE_STR) {
        const struct jinja_string *s = name->u.string;
        fn = filter ? jinja_filter_find(s->bytes, s->len) : jinja_test_find(s->bytes, s->len);
    }
    if (!fn)
        (void)jinja_fail(rt, "no such %s", filter ? "filter" : "test");
    return fn;
}

/* map(attribute=..., default=...) */
static bool map_path(struct jinja_rt *rt, const struct jinja_args *args, struct jinja_value *path,
                     struct jinja_value *or_else)
{
    *path = *or_else = (struct jinja_value){.kind = VALUE_MISSING};
    for (size_t i = 0; i < args->n_kw; i++) {
        const struct jinja_keyword *kw = &args->kw[i];
        if (jinja_name_is(kw->name, kw->len, "attribute"))
            *path = kw->value;
        else if (jinja_name_is(kw->name, kw->len, "default"))
            *or_else = kw->value;
        else
            return jinja_fail(rt, "Unexpected keyword argument '%.*s'",
                              (int)(kw->len < 64 ? kw->len : 64), kw->name);
    }
    if (path->kind == VALUE_MISSING)
        return jinja_fail(rt, "map requires a filter argument");
    return true;
}

FILTER(filter_map)
{
    struct jinja_value path, or_else;
    struct jinja_cursor cursor;
    const struct jinja_function *fn = NULL;
    struct jinja_list *mapped = jinja_list_new(rt, 0);
    struct jinja_args rest = {0};
    bool lazy;
    if (!late_or_empty(rt, self, ret, &lazy))
        return false;
    if (lazy)
        return true;
    if (!mapped || !jinja_iterate(rt, self, &cursor))
        return false;
    if (args->n_pos == 0) {
        if (!map_path(rt, args, &path, &or_else))
            return false;
    } else {
        rest = (struct jinja_args){args->pos + 1, args->n_pos - 1, args->kw, args->n_kw};
        if (!(fn = named(rt, &args->pos[0], true)))
            return false;
    }
    for (;;) {
        struct jinja_value item, result;
        bool more;
        if (!jinja_next(rt, &cursor, &item, &more))
            return false;
        if (!more)
            break;
        if (!jinja_enter(rt) || !(fn ? jinja_call_function(rt, fn, &item, &rest, &result)
                                     : jinja_get_path(rt, &item, &path, &or_else, &result)))
            return false;
        jinja_leave(rt);
        if (!jinja_list_add(rt, mapped, result))
            return false;
    }
    return value_iter(rt, mapped, ret);
}

static bool choose(struct jinja_rt *rt, const struct jinja_value *self,
                   const struct jinja_args *args, bool by_attr, bool keep, struct jinja_value *ret)
{
    struct jinja_value path = {.kind = VALUE_MISSING};
    struct jinja_cursor cursor;
    struct jinja_list *chosen = jinja_list_new(rt, 0);
    const struct jinja_function *test = NULL;
    size_t off = by_attr;
    struct jinja_args rest = {0};
    bool lazy;
    if (!late_or_empty(rt, self, ret, &lazy))
        return false;
    if (lazy)
        return true;
    if (!chosen || !jinja_iterate(rt, self, &cursor))
        return false;
    if (by_attr && args->n_pos == 0)
        return jinja_fail(rt, "Missing parameter for attribute name");
    if (by_attr)
        path = args->pos[0];
    if (args->n_pos > off) {
        rest =
            (struct jinja_args){args->pos + off + 1, args->n_pos - off - 1, args->kw, args->n_kw};
        if (!(test = named(rt, &args->pos[off], false)))
            return false;
    }
    for (;;) {
        struct jinja_value item, part, result;
        bool more;
        if (!jinja_next(rt, &cursor, &item, &more))
            return false;
        if (!more)
            break;
        if (!jinja_get_path(rt, &item, &path, NULL, &part))
            return false;
        result = part;
        if (!jinja_enter(rt) || (test && !jinja_call_function(rt, test, &part, &rest, &result)))
            return false;
        jinja_leave(rt);
        if (jinja_is_true(&result) == keep && !jinja_list_add(rt, chosen, item))
            return false;
    }
    return value_iter(rt, chosen, ret);
}

FILTER(filter_select)
{
    return choose(rt, self, args, false, true, ret);
}

FILTER(filter_reject)
{
    return choose(rt, self, args, false, false, ret);
}

FILTER(filter_selectattr)
{
    return choose(rt, self, args, true, true, ret);
}

FILTER(filter_rejectattr)
{
    return choose(rt, self, args, true, false, ret);
}

const struct jinja_function jinja_sequence_filters[] = {
    {.name = "batch", .call = filter_batch, .params = "linecount fill_with", .n_required = 1},
    {.name = "dictsort", .call = filter_dictsort, .params = "case_sensitive by reverse"},
    {.name = "first", .call = filter_first, .params = ""},
    {.name = "groupby",
     .call = filter_groupby,
     .params = "attribute default case_sensitive",
     .n_required = 1},
    {.name = "items", .call = filter_items, .params = ""},
    {.name = "join", .call = filter_join, .params = "d attribute"},
    {.name = "last", .call = filter_last, .params = ""},
    {.name = "list", .call = filter_list, .params = ""},
    {.name = "map", .call = filter_map},
    {.name = "max", .call = filter_max, .params = "case_sensitive attribute"},
    {.name = "min", .call = filter_min, .params = "case_sensitive attribute"},
    {.name = "reject", .call = filter_reject},
    {.name = "rejectattr", .call = filter_rejectattr},
    {.name = "reverse", .call = filter_reverse, .params = ""},
    {.name = "select", .call = filter_select},
    {.name = "selectattr", .call = filter_selectattr},
    {.name = "slice", .call = filter_slice, .params = "slices fill_with", .n_required = 1},
    {.name = "sort", .call = filter_sort, .params = "reverse case_sensitive attribute"},
    {.name = "sum", .call = filter_sum, .params = "attribute start"},
    {.name = "unique", .call = filter_unique, .params = "case_sensitive attribute"},
    {.name = NULL},
};
