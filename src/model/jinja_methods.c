/*
 * Methods of lists, dicts and of the interpreter's own objects, and the way to all methods
 * by name; those of strings are in jinja_methods_str.c.
 * What would change a value does not exist: values are immutable, as in Jinja2's immutable sandbox.
 */
#include "config.h"

#include <string.h>

#include "jinja_ops_priv.h"

#define METHOD(name)                                                      \
    static bool name(struct jinja_rt *rt, const struct jinja_value *self, \
                     const struct jinja_args *args, struct jinja_value *ret)

static bool given(const struct jinja_args *args, size_t i)
{
    return args->pos[i].kind != VALUE_MISSING;
}

/* ---- lists and tuples ---- */

METHOD(list_index)
{
    const struct jinja_list *list = self->u.list;
    for (size_t i = 0; i < list->len; i++) {
        bool equal;
        if (!jinja_equal(rt, &list->items[i], &args->pos[0], &equal))
            return false;
        if (equal) {
            *ret = value_int((int64_t)i);
            return true;
        }
    }
    return jinja_fail(rt, "the value is not in the list");
}

METHOD(list_count)
{
    const struct jinja_list *list = self->u.list;
    int64_t n = 0;
    for (size_t i = 0; i < list->len; i++) {
        bool equal;
        if (!jinja_equal(rt, &list->items[i], &args->pos[0], &equal))
            return false;
        n += equal;
    }
    *ret = value_int(n);
    return true;
}

METHOD(list_copy)
{
    (void)rt;
    (void)args;
    *ret = *self;
    return true;
}

/* ---- dicts ---- */

METHOD(dict_get)
{
    struct jinja_value *found;
    if (!jinja_dict_find(rt, self->u.dict, &args->pos[0], &found))
        return false;
    *ret = found ? *found : given(args, 1) ? args->pos[1] : value_none();
    return true;
}

static bool view(struct jinja_rt *rt, const struct jinja_value *self, enum view_kind kind,
                 struct jinja_value *ret)
{
    const struct jinja_dict *dict = self->u.dict;
    struct jinja_list *list = jinja_list_new(rt, dict->len);
    if (!list || !jinja_step(rt, dict->len / 4 + 1))
        return false;
    for (size_t i = 0; i < dict->len; i++) {
        struct jinja_value item = kind == VIEW_KEYS ? dict->pairs[i].key : dict->pairs[i].value;
        if (kind == VIEW_ITEMS) {
            struct jinja_list *pair = jinja_list_new(rt, 2);
            if (!pair)
                return false;
            pair->items[0] = dict->pairs[i].key;
            pair->items[1] = dict->pairs[i].value;
            pair->len = 2;
            item = value_tuple(pair);
        }
        list->items[list->len++] = item;
    }
    *ret = (struct jinja_value){.kind = VALUE_VIEW, .view = (uint8_t)kind, .u.list = list};
    return true;
}

METHOD(dict_keys)
{
    (void)args;
    return view(rt, self, VIEW_KEYS, ret);
}

METHOD(dict_values)
{
    (void)args;
    return view(rt, self, VIEW_VALUES, ret);
}

METHOD(dict_items)
{
    (void)args;
    return view(rt, self, VIEW_ITEMS, ret);
}

/* ---- loops, cyclers ---- */

METHOD(loop_cycle)
{
    return jinja_loop_call(rt, self->u.loop, true, args, ret);
}

METHOD(loop_changed)
{
    return jinja_loop_call(rt, self->u.loop, false, args, ret);
}

METHOD(cycler_next)
{
    struct jinja_args none = {0};
    (void)args;
    return jinja_call_value(rt, self, &none, ret);
}

METHOD(cycler_reset)
{
    (void)rt;
    (void)args;
    self->u.cycler->at = 0;
    *ret = value_none();
    return true;
}

static const struct jinja_function methods[] = {
    {"copy", list_copy, "", 0, VALUE_LIST},          {"count", list_count, "value", 1, VALUE_LIST},
    {"index", list_index, "value", 1, VALUE_LIST},   {"count", list_count, "value", 1, VALUE_TUPLE},
    {"index", list_index, "value", 1, VALUE_TUPLE},  {"copy", list_copy, "", 0, VALUE_DICT},
    {"get", dict_get, "key default", 1, VALUE_DICT}, {"items", dict_items, "", 0, VALUE_DICT},
    {"keys", dict_keys, "", 0, VALUE_DICT},          {"values", dict_values, "", 0, VALUE_DICT},
    {"changed", loop_changed, NULL, 0, VALUE_LOOP},  {"cycle", loop_cycle, NULL, 0, VALUE_LOOP},
    {"next", cycler_next, "", 0, VALUE_CYCLER},      {"reset", cycler_reset, "", 0, VALUE_CYCLER},
};

const struct jinja_function *jinja_method_find(enum value_kind kind, const char *name, size_t len)
{
    for (const struct jinja_function *m = jinja_string_methods; kind == VALUE_STR && m->name; m++) {
        if (jinja_name_is(name, len, m->name))
            return m;
    }
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (methods[i].self_kind == kind && jinja_name_is(name, len, methods[i].name))
            return &methods[i];
    }
    return NULL;
}

static const struct {
    uint8_t kind;
    const char *names;
} changing[] = {
    {VALUE_DICT, " clear pop popitem setdefault update "},
    {VALUE_LIST, " append clear pop reverse insert sort extend remove "},
};

static bool is_listed(const char *names, const char *name, size_t len)
{
    for (const char *at = names; len > 0 && (at = memmem(at, strlen(at), name, len)); at++) {
        if (at[-1] == ' ' && at[len] == ' ')
            return true;
    }
    return false;
}

bool jinja_method_refused(enum value_kind kind, const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof changing / sizeof *changing; i++) {
        if (changing[i].kind == kind && is_listed(changing[i].names, name, len))
            return true;
    }
    return false;
}

/* Changing ones count as known: their use is an error of the sandbox when it happens. */
bool jinja_method_known(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (jinja_name_is(name, len, methods[i].name))
            return true;
    }
    return jinja_method_find(VALUE_STR, name, len) || jinja_method_refused(VALUE_DICT, name, len) ||
           jinja_method_refused(VALUE_LIST, name, len);
}
