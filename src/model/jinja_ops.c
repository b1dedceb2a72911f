/*
 * Truth, equality, order and membership of values, as Python has them.
 */
#include "config.h"

#include <string.h>

#include "jinja_node_priv.h"
#include "jinja_ops_priv.h"

bool jinja_used_undefined(struct jinja_rt *rt, const struct jinja_value *v)
{
    return jinja_fail(rt, "%s",
                      v->u.undefined ? v->u.undefined->text : "an undefined value is used");
}

bool jinja_is_true(const struct jinja_value *v)
{
    switch (v->kind) {
    case VALUE_MISSING:
    case VALUE_UNDEFINED:
    case VALUE_NONE:
        return false;
    case VALUE_BOOL:
        return v->u.boolean;
    case VALUE_INT:
        return v->u.integer != 0;
    case VALUE_FLOAT:
        return v->u.real != 0;
    case VALUE_STR:
        return v->u.string->len > 0;
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_VIEW:
        return v->u.list->len > 0;
    case VALUE_DICT:
        return v->u.dict->len > 0;
    case VALUE_RANGE:
        return v->u.range->len > 0;
    default:
        return true;
    }
}

static bool is_number(const struct jinja_value *v)
{
    return v->kind == VALUE_BOOL || v->kind == VALUE_INT || v->kind == VALUE_FLOAT;
}

/* long double holds every int64 and every double exactly on the 64-bit targets. */
static long double number_of(const struct jinja_value *v)
{
    int64_t integer;
    return value_is_int(v, &integer) ? (long double)integer : (long double)v->u.real;
}

static bool equal_lists(struct jinja_rt *rt, const struct jinja_list *a, const struct jinja_list *b,
                        bool *ret)
{
    *ret = a->len == b->len;
    for (size_t i = 0; *ret && i < a->len; i++) {
        if (!jinja_equal(rt, &a->items[i], &b->items[i], ret))
            return false;
    }
    return true;
}

static bool equal_dicts(struct jinja_rt *rt, const struct jinja_dict *a, const struct jinja_dict *b,
                        bool *ret)
{
    *ret = a->len == b->len;
    for (size_t i = 0; *ret && i < a->len; i++) {
        struct jinja_value *other;
        if (!jinja_dict_find(rt, b, &a->pairs[i].key, &other))
            return false;
        *ret = other != NULL;
        if (other && !jinja_equal(rt, &a->pairs[i].value, other, ret))
            return false;
    }
    return true;
}

bool jinja_same(const struct jinja_value *a, const struct jinja_value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case VALUE_NONE:
        return true;
    case VALUE_BOOL:
        return a->u.boolean == b->u.boolean;
    case VALUE_INT:
        return a->u.integer == b->u.integer;
    case VALUE_FLOAT:
        return memcmp(&a->u.real, &b->u.real, sizeof a->u.real) == 0;
    case VALUE_METHOD:
        return a->u.method->function == b->u.method->function &&
               jinja_same(&a->u.method->self, &b->u.method->self);
    default:
        return a->u.list == b->u.list;
    }
}

static bool equal_ranges(const struct jinja_range *a, const struct jinja_range *b)
{
    return a->len == b->len && (a->len == 0 || a->start == b->start) &&
           (a->len < 2 || a->step == b->step);
}

static bool equal_values(struct jinja_rt *rt, const struct jinja_value *a,
                         const struct jinja_value *b, bool *ret)
{
    if (is_number(a) && is_number(b)) {
        *ret = number_of(a) == number_of(b);
        return true;
    }
    *ret = false;
    if (a->kind != b->kind)
        return true;
    switch (a->kind) {
    case VALUE_UNDEFINED:
        *ret = true;
        return true;
    case VALUE_STR:
        *ret = a->u.string->len == b->u.string->len;
        if (*ret && a->u.string->len > 0)
            *ret = memcmp(a->u.string->bytes, b->u.string->bytes, a->u.string->len) == 0;
        return jinja_step(rt, *ret ? a->u.string->len / 64 : 0);
    case VALUE_LIST:
    case VALUE_TUPLE:
        return equal_lists(rt, a->u.list, b->u.list, ret);
    case VALUE_DICT:
        return equal_dicts(rt, a->u.dict, b->u.dict, ret);
    case VALUE_RANGE:
        *ret = equal_ranges(a->u.range, b->u.range);
        return true;
    default:
        *ret = jinja_same(a, b);
        return true;
    }
}

bool jinja_equal(struct jinja_rt *rt, const struct jinja_value *a, const struct jinja_value *b,
                 bool *ret)
{
    if (!jinja_enter(rt) || !equal_values(rt, a, b, ret))
        return false;
    jinja_leave(rt);
    return true;
}

static int order_text(const struct jinja_string *a, const struct jinja_string *b)
{
    size_t len = a->len < b->len ? a->len : b->len;
    int order = len > 0 ? memcmp(a->bytes, b->bytes, len) : 0; /* UTF-8 keeps code point order */
    if (order == 0)
        return (a->len > b->len) - (a->len < b->len);
    return order < 0 ? -1 : 1;
}

static bool order_lists(struct jinja_rt *rt, const struct jinja_list *a, const struct jinja_list *b,
                        const char *op, int *ret)
{
    size_t len = a->len < b->len ? a->len : b->len;
    for (size_t i = 0; i < len; i++) {
        bool equal;
        if (!jinja_equal(rt, &a->items[i], &b->items[i], &equal))
            return false;
        if (!equal)
            return jinja_order(rt, &a->items[i], &b->items[i], op, ret);
    }
    *ret = (a->len > b->len) - (a->len < b->len);
    return true;
}

static bool order_values(struct jinja_rt *rt, const struct jinja_value *a,
                         const struct jinja_value *b, const char *op, int *ret)
{
    if (is_number(a) && is_number(b)) {
        long double x = number_of(a), y = number_of(b);
        *ret = x == y ? 0 : x < y ? -1 : x > y ? 1 : ORDER_NONE;
        return true;
    }
    if (a->kind == VALUE_UNDEFINED || b->kind == VALUE_UNDEFINED)
        return jinja_used_undefined(rt, a->kind == VALUE_UNDEFINED ? a : b);
    if (a->kind == VALUE_STR && b->kind == VALUE_STR) {
        *ret = order_text(a->u.string, b->u.string);
        return jinja_step(rt, a->u.string->len / 64);
    }
    if (a->kind == b->kind && (a->kind == VALUE_LIST || a->kind == VALUE_TUPLE))
        return order_lists(rt, a->u.list, b->u.list, op, ret);
    return jinja_fail(rt, "'%s' not supported between instances of '%s' and '%s'", op,
                      jinja_type_name(a), jinja_type_name(b));
}

bool jinja_order(struct jinja_rt *rt, const struct jinja_value *a, const struct jinja_value *b,
                 const char *op, int *ret)
{
    if (!jinja_enter(rt) || !order_values(rt, a, b, op, ret))
        return false;
    jinja_leave(rt);
    return true;
}

bool jinja_contains(struct jinja_rt *rt, const struct jinja_value *item,
                    const struct jinja_value *in, bool *ret)
{
    if (in->kind == VALUE_STR) {
        size_t at;
        if (item->kind != VALUE_STR)
            return jinja_fail(rt, "'in <string>' requires string as left operand, not %s",
                              jinja_type_name(item));
        if (!jinja_string_find(rt, in->u.string, item->u.string, 0, in->u.string->len, false, &at))
            return false;
        *ret = at != SIZE_MAX;
        return true;
    }
    if (in->kind == VALUE_DICT) {
        struct jinja_value *found;
        if (!jinja_dict_find(rt, in->u.dict, item, &found))
            return false;
        *ret = found != NULL;
        return true;
    }
    if (in->kind == VALUE_NONE || in->kind == VALUE_BOOL || in->kind == VALUE_INT ||
        in->kind == VALUE_FLOAT)
        return jinja_fail(rt, "argument of type '%s' is not iterable", jinja_type_name(in));
    struct jinja_cursor cursor;
    struct jinja_value element;
    bool more;
    *ret = false;
    if (!jinja_iterate(rt, in, &cursor))
        return false;
    while (!*ret) {
        if (!jinja_next(rt, &cursor, &element, &more))
            return false;
        if (!more)
            break;
        if (!jinja_equal(rt, &element, item, ret))
            return false;
    }
    return true;
}

bool jinja_length(struct jinja_rt *rt, const struct jinja_value *v, size_t *ret)
{
    switch (v->kind) {
    case VALUE_UNDEFINED:
        *ret = 0;
        return true;
    case VALUE_STR:
        return jinja_string_chars(rt, v->u.string, ret);
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_VIEW:
        *ret = v->u.list->len;
        return true;
    case VALUE_DICT:
        *ret = v->u.dict->len;
        return true;
    case VALUE_RANGE:
        *ret = (size_t)v->u.range->len;
        return true;
    default:
        return jinja_fail(rt, "object of type '%s' has no len()", jinja_type_name(v));
    }
}
