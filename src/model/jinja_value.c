/*
 * Values of the template interpreter: the budget of a rendering, its memory, lists and dicts, and
 * the way in from JSON.  Strings are in jinja_string.c.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "jinja_node_priv.h"
#include "jinja_ops_priv.h"
#include "jinja_priv.h"

enum { BYTES_A_STEP = 64 };

bool jinja_fail(struct jinja_rt *rt, const char *format, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    rt->status = error_set(rt->err, STATUS_TEMPLATE_FAILED, "%s, line %u: %s", rt->tpl->name,
                           (unsigned)rt->line, text);
    return false;
}

bool jinja_fail_limit(struct jinja_rt *rt, const char *what)
{
    rt->status = error_set(rt->err, STATUS_TEMPLATE_LIMIT, "%s, line %u: %s", rt->tpl->name,
                           (unsigned)rt->line, what);
    return false;
}

bool jinja_step(struct jinja_rt *rt, uint64_t n)
{
    if (n > rt->limits.max_steps - rt->steps)
        return jinja_fail_limit(rt, "the template takes too many steps");
    rt->steps += n;
    return true;
}

bool jinja_work(struct jinja_rt *rt, size_t n_bytes)
{
    return jinja_step(rt, n_bytes / BYTES_A_STEP + 1);
}

bool jinja_enter(struct jinja_rt *rt)
{
    if (rt->depth >= rt->limits.max_depth)
        return jinja_fail_limit(rt, "the template nests too deep");
    rt->depth++;
    return jinja_step(rt, 1);
}

void jinja_leave(struct jinja_rt *rt)
{
    rt->depth--;
}

void *jinja_alloc(struct jinja_rt *rt, size_t size)
{
    size_t used = rt->arena.used_bytes + rt->scratch_bytes;
    void *block = NULL;
    if (used <= rt->limits.max_memory_bytes && size <= rt->limits.max_memory_bytes - used)
        block = arena_alloc(&rt->arena, size);
    if (!block)
        (void)jinja_fail_limit(rt, "the template takes too much memory");
    return block;
}

/* Room for n items of `size` bytes; NULL after an error. */
static void *alloc_array(struct jinja_rt *rt, size_t n, size_t size)
{
    if (n > SIZE_MAX / 2 / size) {
        (void)jinja_fail_limit(rt, "the template takes too much memory");
        return NULL;
    }
    return jinja_alloc(rt, n * size);
}

struct jinja_list *jinja_list_new(struct jinja_rt *rt, size_t cap)
{
    struct jinja_list *list = jinja_alloc(rt, sizeof *list);
    if (!list)
        return NULL;
    *list = (struct jinja_list){.cap = cap};
    if (cap > 0) {
        list->items = alloc_array(rt, cap, sizeof *list->items);
        if (!list->items)
            return NULL;
    }
    return list;
}

bool jinja_list_add(struct jinja_rt *rt, struct jinja_list *list, struct jinja_value value)
{
    if (list->len == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 4;
        struct jinja_value *items = alloc_array(rt, cap, sizeof *items);
        if (!items)
            return false;
        if (list->len > 0)
            memcpy(items, list->items, list->len * sizeof *items);
        list->items = items;
        list->cap = cap;
    }
    list->items[list->len++] = value;
    return true;
}

struct jinja_dict *jinja_dict_new(struct jinja_rt *rt, size_t cap)
{
    struct jinja_dict *dict = jinja_alloc(rt, sizeof *dict);
    if (!dict)
        return NULL;
    *dict = (struct jinja_dict){.cap = cap};
    if (cap > 0) {
        dict->pairs = alloc_array(rt, cap, sizeof *dict->pairs);
        if (!dict->pairs)
            return NULL;
    }
    return dict;
}

static bool dict_append(struct jinja_rt *rt, struct jinja_dict *dict, struct jinja_value key,
                        struct jinja_value value)
{
    if (dict->len == dict->cap) {
        size_t cap = dict->cap ? dict->cap * 2 : 4;
        struct jinja_pair *pairs = alloc_array(rt, cap, sizeof *pairs);
        if (!pairs)
            return false;
        if (dict->len > 0)
            memcpy(pairs, dict->pairs, dict->len * sizeof *pairs);
        dict->pairs = pairs;
        dict->cap = cap;
    }
    dict->pairs[dict->len++] = (struct jinja_pair){key, value};
    return true;
}

struct jinja_value *jinja_dict_text(const struct jinja_dict *dict, const char *key, size_t len)
{
    for (size_t i = 0; i < dict->len; i++) {
        const struct jinja_value *k = &dict->pairs[i].key;
        if (k->kind == VALUE_STR && k->u.string->len == len &&
            memcmp(k->u.string->bytes, key, len) == 0)
            return &dict->pairs[i].value;
    }
    return NULL;
}

static bool can_be_key(struct jinja_rt *rt, const struct jinja_value *v)
{
    switch (v->kind) {
    case VALUE_LIST:
    case VALUE_DICT:
        return jinja_fail(rt, "unhashable type: '%s'", jinja_type_name(v));
    case VALUE_TUPLE:
        if (!jinja_enter(rt))
            return false;
        for (size_t i = 0; i < v->u.list->len; i++) {
            if (!can_be_key(rt, &v->u.list->items[i]))
                return false;
        }
        jinja_leave(rt);
        return true;
    default:
        return true;
    }
}

bool jinja_dict_find(struct jinja_rt *rt, const struct jinja_dict *dict,
                     const struct jinja_value *key, struct jinja_value **ret_found)
{
    if (!can_be_key(rt, key) || !jinja_step(rt, dict->len / 8 + 1))
        return false;
    *ret_found = NULL;
    if (key->kind == VALUE_STR) {
        *ret_found = jinja_dict_text(dict, key->u.string->bytes, key->u.string->len);
        return true;
    }
    for (size_t i = 0; i < dict->len; i++) {
        bool equal;
        if (!jinja_equal(rt, &dict->pairs[i].key, key, &equal))
            return false;
        if (equal) {
            *ret_found = &dict->pairs[i].value;
            return true;
        }
    }
    return true;
}

bool jinja_dict_set(struct jinja_rt *rt, struct jinja_dict *dict, struct jinja_value key,
                    struct jinja_value value)
{
    struct jinja_value *found;
    if (!jinja_dict_find(rt, dict, &key, &found))
        return false;
    if (!found)
        return dict_append(rt, dict, key, value);
    *found = value;
    return true;
}

bool value_iter(struct jinja_rt *rt, struct jinja_list *list, struct jinja_value *ret)
{
    struct jinja_iter *iter = jinja_alloc(rt, sizeof *iter);
    if (!iter)
        return false;
    *iter = (struct jinja_iter){.list = list};
    *ret = (struct jinja_value){.kind = VALUE_ITER, .u.iter = iter};
    return true;
}

bool value_undefined(struct jinja_rt *rt, struct jinja_value *ret, const char *format, ...)
{
    char text[160];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    struct jinja_undefined *undefined = jinja_alloc(rt, sizeof *undefined + len + 1);
    if (!undefined)
        return false;
    char *copy = (char *)(undefined + 1);
    memcpy(copy, text, len);
    copy[len] = '\0';
    undefined->text = copy;
    *ret = (struct jinja_value){.kind = VALUE_UNDEFINED, .u.undefined = undefined};
    return true;
}

static bool from_array(struct jinja_rt *rt, json_t *json,
                       const struct jinja_checked_member *checked, struct jinja_value *ret)
{
    size_t n = json_array_size(json);
    struct jinja_list *list = jinja_list_new(rt, n);
    if (!list || !jinja_step(rt, n / 8))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct jinja_value item;
        json_t *element = json_array_get(json, i);
        if (!jinja_from_json(rt, element, json_is_object(element) ? checked : NULL, &item) ||
            !jinja_list_add(rt, list, item))
            return false;
    }
    *ret = value_list(list);
    return true;
}

static bool is_checked(const struct jinja_checked_member *checked, const char *key, json_t *value)
{
    if (!checked || !json_is_string(value) || strcmp(key, checked->member) != 0)
        return false;
    for (const char *const *word = checked->words; *word; word++) {
        if (json_string_length(value) == strlen(*word) &&
            memcmp(json_string_value(value), *word, strlen(*word)) == 0)
            return true;
    }
    return false;
}

static bool from_object(struct jinja_rt *rt, json_t *json,
                        const struct jinja_checked_member *checked, struct jinja_value *ret)
{
    struct jinja_dict *dict = jinja_dict_new(rt, json_object_size(json));
    if (!dict || !jinja_step(rt, json_object_size(json) / 8))
        return false;
    for (void *at = json_object_iter(json); at; at = json_object_iter_next(json, at)) {
        struct jinja_value key, value;
        json_t *member = json_object_iter_value(at);
        const char *name = json_object_iter_key(at);
        if (!jinja_string_new(rt, name, strlen(name), false, &key) ||
            !jinja_from_json(rt, member, NULL, &value) || !dict_append(rt, dict, key, value))
            return false;
        if (is_checked(checked, name, member))
            dict->pairs[dict->len - 1].value.u.string->trust = TRUST_ALL;
    }
    *ret = (struct jinja_value){.kind = VALUE_DICT, .u.dict = dict};
    return true;
}

/* checked: only for the objects that lie directly in this array. */
bool jinja_from_json(struct jinja_rt *rt, json_t *json, const struct jinja_checked_member *checked,
                     struct jinja_value *ret)
{
    bool ok = true;
    if (!jinja_enter(rt))
        return false;
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        ok = from_object(rt, json, checked, ret);
        break;
    case JSON_ARRAY:
        ok = from_array(rt, json, checked, ret);
        break;
    case JSON_STRING:
        ok = jinja_string_new(rt, json_string_value(json), json_string_length(json), false, ret);
        break;
    case JSON_INTEGER:
        *ret = value_int(json_integer_value(json));
        break;
    case JSON_REAL:
        *ret = value_real(json_real_value(json));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        *ret = value_bool(json_is_true(json));
        break;
    case JSON_NULL:
        *ret = value_none();
        break;
    }
    jinja_leave(rt);
    return ok;
}
