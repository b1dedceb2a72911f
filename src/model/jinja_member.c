/*
 * Members of values: attributes, items, slices, and walking over whatever can be walked over.
 * Attributes look for a method first and an item second, items the other way round, as Jinja2
 * does.
 */
#include "config.h"

#include <string.h>

#include "jinja_node_priv.h"
#include "jinja_ops_priv.h"

static const char *owner_name(const struct jinja_value *v, char *buffer, size_t size)
{
    if (v->kind == VALUE_NONE)
        return "None";
    /* printf into a caller's buffer keeps this free of static state */
    size_t n = 0;
    for (const char *at = jinja_type_name(v); *at && n + 8 < size; at++)
        buffer[n++] = *at;
    memcpy(buffer + n, " object", 8);
    return buffer;
}

static bool no_attr(struct jinja_rt *rt, const struct jinja_value *v, const char *name, size_t len,
                    struct jinja_value *ret)
{
    char owner[48];
    return value_undefined(rt, ret, "'%s' has no attribute '%.*s'",
                           owner_name(v, owner, sizeof owner), (int)(len < 64 ? len : 64), name);
}

/* Methods, and the attributes of the interpreter's own objects. */
static bool own_attr(struct jinja_rt *rt, const struct jinja_value *v, const char *name, size_t len,
                     struct jinja_value *ret, bool *ret_found)
{
    *ret_found = true;
    if (v->kind == VALUE_LOOP)
        return jinja_loop_attr(rt, v->u.loop, name, len, ret, ret_found);
    if (v->kind == VALUE_NAMESPACE) {
        struct jinja_value *found = jinja_dict_text(v->u.dict, name, len);
        *ret_found = found != NULL;
        if (found)
            *ret = *found;
        return jinja_step(rt, v->u.dict->len / 8 + 1);
    }
    if (v->kind == VALUE_CYCLER && jinja_name_is(name, len, "current")) {
        *ret = v->u.cycler->items->items[v->u.cycler->at];
        return true;
    }
    if (v->kind == VALUE_MACRO && jinja_name_is(name, len, "name")) {
        const char *text = v->u.closure->macro->name;
        return jinja_string_new(rt, text, strlen(text), true, ret);
    }
    const struct jinja_function *method = jinja_method_find(v->kind, name, len);
    if (method) {
        struct jinja_method *bound = jinja_alloc(rt, sizeof *bound);
        if (!bound)
            return false;
        *bound = (struct jinja_method){*v, method};
        *ret = (struct jinja_value){.kind = VALUE_METHOD, .u.method = bound};
        return true;
    }
    if (jinja_method_refused(v->kind, name, len))
        return value_undefined(rt, ret,
                               "access to attribute '%.*s' of '%s' object is unsafe: values cannot "
                               "be changed",
                               (int)len, name, jinja_type_name(v));
    *ret_found = false;
    return true;
}

bool jinja_get_attr(struct jinja_rt *rt, const struct jinja_value *v, const char *name, size_t len,
                    struct jinja_value *ret)
{
    bool found;
    if (v->kind == VALUE_UNDEFINED)
        return jinja_used_undefined(rt, v);
    if (!own_attr(rt, v, name, len, ret, &found))
        return false;
    if (found)
        return true;
    if (v->kind == VALUE_DICT) {
        struct jinja_value *item = jinja_dict_text(v->u.dict, name, len);
        if (!jinja_step(rt, v->u.dict->len / 8 + 1))
            return false;
        if (item) {
            *ret = *item;
            return true;
        }
    }
    return no_attr(rt, v, name, len, ret);
}

/* Python's index: from the end when negative; false when outside. */
static bool place(int64_t index, size_t len, size_t *ret)
{
    if (index < 0)
        index += (int64_t)len;
    if (index < 0 || (uint64_t)index >= len)
        return false;
    *ret = (size_t)index;
    return true;
}

static bool char_at(struct jinja_rt *rt, struct jinja_string *s, int64_t index,
                    struct jinja_value *ret, bool *ret_found)
{
    size_t n, at, offset;
    if (!jinja_string_chars(rt, s, &n))
        return false;
    *ret_found = place(index, n, &at);
    if (!*ret_found)
        return true;
    if (!jinja_string_offset(rt, s, at, &offset))
        return false;
    unsigned len;
    (void)jinja_char(s->bytes + offset, &len);
    return jinja_string_part(rt, s, offset, len, ret);
}

static bool item_at(struct jinja_rt *rt, const struct jinja_value *v, int64_t index,
                    struct jinja_value *ret, bool *ret_found)
{
    size_t at;
    *ret_found = false;
    switch (v->kind) {
    case VALUE_STR:
        return char_at(rt, v->u.string, index, ret, ret_found);
    case VALUE_LIST:
    case VALUE_TUPLE:
        *ret_found = place(index, v->u.list->len, &at);
        if (*ret_found)
            *ret = v->u.list->items[at];
        return true;
    case VALUE_RANGE:
        *ret_found = place(index, (size_t)v->u.range->len, &at);
        if (*ret_found)
            *ret = value_int(v->u.range->start + (int64_t)at * v->u.range->step);
        return true;
    default:
        return true;
    }
}

static bool no_item(struct jinja_rt *rt, const struct jinja_value *v, const struct jinja_value *key,
                    struct jinja_value *ret)
{
    char owner[48];
    struct jinja_value text;
    if (key->kind == VALUE_STR)
        return no_attr(rt, v, key->u.string->bytes, key->u.string->len, ret);
    struct jinja_sink *sink = jinja_sink_take(rt);
    if (!sink || !jinja_repr(rt, sink, key) || !jinja_sink_finish(rt, sink, &text))
        return false;
    size_t len = text.u.string->len < 64 ? text.u.string->len : 64;
    return value_undefined(rt, ret, "%s has no element %.*s", owner_name(v, owner, sizeof owner),
                           (int)len, text.u.string->bytes);
}

bool jinja_get_item(struct jinja_rt *rt, const struct jinja_value *v, const struct jinja_value *key,
                    struct jinja_value *ret)
{
    int64_t index;
    bool found = false;
    if (v->kind == VALUE_UNDEFINED)
        return jinja_used_undefined(rt, v);
    if (v->kind == VALUE_DICT) {
        struct jinja_value *item = NULL;
        bool hashable = key->kind != VALUE_LIST && key->kind != VALUE_DICT;
        if (hashable && !jinja_dict_find(rt, v->u.dict, key, &item))
            return false;
        if (item) {
            *ret = *item;
            return true;
        }
    } else if (value_is_int(key, &index)) {
        if (!item_at(rt, v, index, ret, &found))
            return false;
        if (found)
            return true;
    }
    if (key->kind == VALUE_STR) {
        if (!own_attr(rt, v, key->u.string->bytes, key->u.string->len, ret, &found))
            return false;
        if (found)
            return true;
    }
    return no_item(rt, v, key, ret);
}

/* One bound of a slice; absent when none. */
static bool slice_bound(struct jinja_rt *rt, const struct jinja_value *v, bool *ret_given,
                        int64_t *ret)
{
    *ret_given = v->kind != VALUE_MISSING && v->kind != VALUE_NONE;
    if (!*ret_given || value_is_int(v, ret))
        return true;
    if (v->kind == VALUE_UNDEFINED)
        return jinja_used_undefined(rt, v);
    return jinja_fail(rt, "slice indices must be integers or None");
}

static int64_t clamp_bound(int64_t bound, int64_t len, int64_t low, int64_t high)
{
    if (bound < 0)
        bound = bound < -len ? low : bound + len;
    return bound < low ? low : bound > high ? high : bound;
}

struct slice {
    int64_t start;
    int64_t step;
    int64_t len;
};

static bool slice_of(struct jinja_rt *rt, const struct jinja_value bounds[3], size_t n,
                     struct slice *ret)
{
    bool has_start, has_stop, has_step;
    int64_t start = 0, stop = 0, step = 1, len = (int64_t)n;
    if (!slice_bound(rt, &bounds[0], &has_start, &start) ||
        !slice_bound(rt, &bounds[1], &has_stop, &stop) ||
        !slice_bound(rt, &bounds[2], &has_step, &step))
        return false;
    if (!has_step)
        step = 1;
    if (step == 0)
        return jinja_fail(rt, "slice step cannot be zero");
    if (step < -len - 1)
        step = -len - 1; /* further steps look the same */
    if (step > len + 1)
        step = len + 1;
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? len - 1 : len;
    start = has_start ? clamp_bound(start, len, low, high) : step < 0 ? high : low;
    stop = has_stop ? clamp_bound(stop, len, low, high) : step < 0 ? low : high;
    int64_t count = 0;
    if (step > 0 && start < stop)
        count = (stop - start - 1) / step + 1;
    if (step < 0 && start > stop)
        count = (start - stop - 1) / -step + 1;
    *ret = (struct slice){start, step, count};
    return true;
}

static bool slice_string(struct jinja_rt *rt, struct jinja_string *s,
                         const struct jinja_value bounds[3], struct jinja_value *ret)
{
    struct slice slice;
    size_t n, from, to;
    if (!jinja_string_chars(rt, s, &n) || !slice_of(rt, bounds, n, &slice))
        return false;
    if (slice.step == 1 || slice.len <= 1) {
        size_t first = slice.len > 0 ? (size_t)slice.start : 0;
        if (!jinja_string_offset(rt, s, first, &from) ||
            !jinja_string_offset(rt, s, first + (size_t)slice.len, &to))
            return false;
        return jinja_string_part(rt, s, from, to - from, ret);
    }
    /* byte offsets of all characters once, so that the walk is linear */
    if (n > SIZE_MAX / 4 / sizeof(size_t))
        return jinja_fail_limit(rt, "the template takes too much memory");
    size_t *offsets = jinja_alloc(rt, (n + 1) * sizeof *offsets);
    struct jinja_sink *sink = jinja_sink_take(rt);
    if (!offsets || !sink || !jinja_step(rt, n / 16 + 1))
        return false;
    size_t k = 0;
    for (size_t at = 0; at < s->len; at++) {
        if (((unsigned char)s->bytes[at] & 0xC0) != 0x80)
            offsets[k++] = at;
    }
    offsets[k] = s->len;
    for (int64_t i = 0; i < slice.len; i++) {
        size_t at = (size_t)(slice.start + i * slice.step);
        if (!jinja_sink_part(rt, sink, s, offsets[at], offsets[at + 1] - offsets[at]))
            return false;
    }
    return jinja_step(rt, (uint64_t)slice.len / 8) && jinja_sink_finish(rt, sink, ret);
}

static bool slice_range(struct jinja_rt *rt, const struct jinja_range *r,
                        const struct jinja_value bounds[3], struct jinja_value *ret)
{
    struct slice slice;
    struct jinja_range *part = jinja_alloc(rt, sizeof *part);
    if (!part || !slice_of(rt, bounds, (size_t)r->len, &slice))
        return false;
    *part = (struct jinja_range){.start = r->start, .step = 1, .len = slice.len};
    if (slice.len > 0)
        part->start += slice.start * r->step;
    if (slice.len > 1) /* so the product lies within the span of r */
        part->step = slice.step * r->step;
    *ret = (struct jinja_value){.kind = VALUE_RANGE, .u.range = part};
    return true;
}

bool jinja_get_slice(struct jinja_rt *rt, const struct jinja_value *v,
                     const struct jinja_value bounds[3], struct jinja_value *ret)
{
    struct slice slice;
    if (v->kind == VALUE_UNDEFINED)
        return jinja_used_undefined(rt, v);
    if (v->kind == VALUE_STR)
        return slice_string(rt, v->u.string, bounds, ret);
    if (v->kind == VALUE_RANGE)
        return slice_range(rt, v->u.range, bounds, ret);
    if (v->kind != VALUE_LIST && v->kind != VALUE_TUPLE)
        return jinja_fail(rt, "'%s' object cannot be sliced", jinja_type_name(v));
    if (!slice_of(rt, bounds, v->u.list->len, &slice))
        return false;
    struct jinja_list *part = jinja_list_new(rt, (size_t)slice.len);
    if (!part || !jinja_step(rt, (uint64_t)slice.len / 8))
        return false;
    for (int64_t i = 0; i < slice.len; i++)
        part->items[part->len++] = v->u.list->items[slice.start + i * slice.step];
    *ret = (struct jinja_value){.kind = v->kind, .u.list = part};
    return true;
}

/* A part of a path that is all digits is an index. */
static bool path_key(struct jinja_rt *rt, const struct jinja_string *path, size_t from, size_t len,
                     struct jinja_value *ret)
{
    struct jinja_string part = {.bytes = path->bytes + from, .len = len};
    bool digits = len > 0;
    for (size_t i = 0; i < len; i++)
        digits = digits && part.bytes[i] >= '0' && part.bytes[i] <= '9';
    int64_t index;
    if (digits && jinja_parse_int(&part, 10, &index)) {
        *ret = value_int(index);
        return true;
    }
    return jinja_string_part(rt, path, from, len, ret);
}

bool jinja_get_path(struct jinja_rt *rt, const struct jinja_value *v,
                    const struct jinja_value *path, const struct jinja_value *or_else,
                    struct jinja_value *ret)
{
    struct jinja_value at = *v, key = *path;
    bool has_default = or_else && or_else->kind != VALUE_MISSING && or_else->kind != VALUE_NONE;
    size_t from = 0;
    if (path->kind == VALUE_NONE || path->kind == VALUE_MISSING) {
        *ret = at;
        return true;
    }
    for (bool last = false; !last;) {
        last = true;
        if (path->kind == VALUE_STR) {
            const struct jinja_string *s = path->u.string;
            const char *dot = from < s->len ? memchr(s->bytes + from, '.', s->len - from) : NULL;
            size_t end = dot ? (size_t)(dot - s->bytes) : s->len;
            if (!path_key(rt, s, from, end - from, &key))
                return false;
            from = end + 1;
            last = !dot;
        }
        struct jinja_value next;
        if (!jinja_get_item(rt, &at, &key, &next))
            return false;
        at = has_default && next.kind == VALUE_UNDEFINED ? *or_else : next;
    }
    *ret = at;
    return true;
}

bool jinja_iterate(struct jinja_rt *rt, const struct jinja_value *v, struct jinja_cursor *ret)
{
    *ret = (struct jinja_cursor){.source = *v};
    switch (v->kind) {
    case VALUE_UNDEFINED:
        return true;
    case VALUE_STR:
        return jinja_string_chars(rt, v->u.string, &ret->len);
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_VIEW:
        ret->len = v->u.list->len;
        return true;
    case VALUE_DICT:
        ret->len = v->u.dict->len;
        return true;
    case VALUE_RANGE:
        ret->len = (size_t)v->u.range->len;
        return true;
    case VALUE_ITER:
        if (v->u.iter->not_iterable)
            return jinja_fail(rt, "'%s' object is not iterable", v->u.iter->not_iterable);
        ret->len = v->u.iter->list->len - v->u.iter->at;
        return true;
    default:
        return jinja_fail(rt, "'%s' object is not iterable", jinja_type_name(v));
    }
}

static bool next_char(struct jinja_rt *rt, struct jinja_cursor *cursor, struct jinja_value *ret,
                      bool *ret_more)
{
    const struct jinja_string *s = cursor->source.u.string;
    unsigned len;
    *ret_more = cursor->at < s->len;
    if (!*ret_more)
        return true;
    (void)jinja_char(s->bytes + cursor->at, &len);
    cursor->at += len;
    return jinja_string_part(rt, s, cursor->at - len, len, ret);
}

bool jinja_next(struct jinja_rt *rt, struct jinja_cursor *cursor, struct jinja_value *ret,
                bool *ret_more)
{
    const struct jinja_value *v = &cursor->source;
    if (!jinja_step(rt, 1))
        return false;
    if (v->kind == VALUE_STR)
        return next_char(rt, cursor, ret, ret_more);
    if (v->kind == VALUE_ITER) { /* shared with whoever else walks it */
        *ret_more = v->u.iter->at < v->u.iter->list->len;
        if (*ret_more)
            *ret = v->u.iter->list->items[v->u.iter->at++];
        return true;
    }
    *ret_more = cursor->at < cursor->len;
    if (!*ret_more)
        return true;
    if (v->kind == VALUE_DICT)
        *ret = v->u.dict->pairs[cursor->at].key;
    else if (v->kind == VALUE_RANGE)
        *ret = value_int(v->u.range->start + (int64_t)cursor->at * v->u.range->step);
    else
        *ret = v->u.list->items[cursor->at];
    cursor->at++;
    return true;
}

bool jinja_to_list(struct jinja_rt *rt, const struct jinja_value *v, struct jinja_list **ret)
{
    struct jinja_cursor cursor;
    if (v->kind == VALUE_LIST || v->kind == VALUE_TUPLE || v->kind == VALUE_VIEW) {
        *ret = v->u.list;
        return true;
    }
    if (!jinja_iterate(rt, v, &cursor))
        return false;
    struct jinja_list *list = jinja_list_new(rt, cursor.len);
    if (!list)
        return false;
    for (;;) {
        struct jinja_value item;
        bool more;
        if (!jinja_next(rt, &cursor, &item, &more))
            return false;
        if (!more)
            break;
        if (!jinja_list_add(rt, list, item))
            return false;
    }
    *ret = list;
    return true;
}
