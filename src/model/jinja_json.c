/*
 * The filter tojson as transformers defines it: Python's json.dumps with ensure_ascii off.  The
 * bytes of strings keep their trust, all else is untrusted.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jinja_ops_priv.h"

struct dump {
    struct jinja_rt *rt;
    struct jinja_sink *sink;
    const struct jinja_json_style *style;
    size_t level;
};

static bool dump_value(struct dump *d, const struct jinja_value *v);

static bool add(struct dump *d, const char *text)
{
    return jinja_sink_text(d->rt, d->sink, text);
}

static const char *short_escape(uint32_t c)
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    case '\f':
        return "\\f";
    case '\b':
        return "\\b";
    default:
        return NULL;
    }
}

static bool add_unicode(struct dump *d, uint32_t c)
{
    char text[16];
    if (c < 0x10000)
        snprintf(text, sizeof text, "\\u%04" PRIx32, c);
    else
        snprintf(text, sizeof text, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xD800 + ((c - 0x10000) >> 10),
                 0xDC00 + ((c - 0x10000) & 0x3FF));
    return add(d, text);
}

static bool dump_string(struct dump *d, const struct jinja_string *s)
{
    size_t from = 0;
    if (!jinja_work(d->rt, s->len) || !add(d, "\""))
        return false;
    for (size_t at = 0; at < s->len;) {
        unsigned len;
        uint32_t c = jinja_char(s->bytes + at, &len);
        const char *escape = short_escape(c);
        if (escape || c < 0x20 || (d->style->ascii && c >= 0x7F)) {
            if (!jinja_step(d->rt, 1) || !jinja_sink_part(d->rt, d->sink, s, from, at - from) ||
                !(escape ? add(d, escape) : add_unicode(d, c)))
                return false;
            from = at + len;
        }
        at += len;
    }
    return jinja_sink_part(d->rt, d->sink, s, from, s->len - from) && add(d, "\"");
}

static bool dump_real(struct dump *d, double value)
{
    char number[JINJA_NUMBER_MAX];
    if (isnan(value))
        return add(d, "NaN");
    if (isinf(value))
        return add(d, value < 0 ? "-Infinity" : "Infinity");
    return jinja_sink_add(d->rt, d->sink, number, jinja_format_real(value, number), false);
}

static bool break_line(struct dump *d)
{
    if (!d->style->indent)
        return true;
    if (!add(d, "\n"))
        return false;
    for (size_t i = 0; i < d->level; i++) {
        if (!jinja_sink_string(d->rt, d->sink, d->style->indent))
            return false;
    }
    return true;
}

static bool part_items(struct dump *d, bool first)
{
    if (!first) {
        bool ok = d->style->item_separator
                      ? jinja_sink_string(d->rt, d->sink, d->style->item_separator)
                      : add(d, d->style->indent ? "," : ", ");
        if (!ok)
            return false;
    }
    return jinja_step(d->rt, d->level / 4 + 1) && break_line(d);
}

static bool dump_list(struct dump *d, const struct jinja_list *list)
{
    if (list->len == 0)
        return add(d, "[]");
    if (!add(d, "["))
        return false;
    d->level++;
    for (size_t i = 0; i < list->len; i++) {
        if (!part_items(d, i == 0) || !dump_value(d, &list->items[i]))
            return false;
    }
    d->level--;
    return break_line(d) && add(d, "]");
}

static bool dump_key(struct dump *d, const struct jinja_value *key)
{
    switch (key->kind) {
    case VALUE_STR:
        return dump_string(d, key->u.string);
    case VALUE_NONE:
    case VALUE_BOOL:
    case VALUE_INT:
    case VALUE_FLOAT:
        return add(d, "\"") && dump_value(d, key) && add(d, "\"");
    default:
        return jinja_fail(d->rt, "keys must be str, int, float, bool or None, not %s",
                          jinja_type_name(key));
    }
}

/* Merge sort of the pairs by key, stable; spare has room for all. */
static bool sort_pairs(struct jinja_rt *rt, struct jinja_pair *pairs, struct jinja_pair *spare,
                       size_t n)
{
    if (n < 2)
        return true;
    size_t half = n / 2, i = 0, j = half, k = 0;
    if (!sort_pairs(rt, pairs, spare, half) || !sort_pairs(rt, pairs + half, spare, n - half) ||
        !jinja_step(rt, n))
        return false;
    memcpy(spare, pairs, n * sizeof *pairs);
    while (i < half && j < n) {
        int order;
        if (!jinja_order(rt, &spare[j].key, &spare[i].key, "<", &order))
            return false;
        pairs[k++] = order < 0 ? spare[j++] : spare[i++];
    }
    while (i < half)
        pairs[k++] = spare[i++];
    while (j < n)
        pairs[k++] = spare[j++];
    return true;
}

static bool sorted_copy(struct dump *d, const struct jinja_dict *dict, struct jinja_pair **ret)
{
    if (dict->len > SIZE_MAX / 4 / sizeof **ret)
        return jinja_fail_limit(d->rt, "the template takes too much memory");
    struct jinja_pair *pairs = jinja_alloc(d->rt, 2 * dict->len * sizeof *pairs);
    if (!pairs)
        return false;
    memcpy(pairs, dict->pairs, dict->len * sizeof *pairs);
    *ret = pairs;
    return sort_pairs(d->rt, pairs, pairs + dict->len, dict->len);
}

static bool dump_dict(struct dump *d, const struct jinja_dict *dict)
{
    if (dict->len == 0)
        return add(d, "{}");
    struct jinja_pair *pairs = dict->pairs;
    if ((d->style->sort_keys && !sorted_copy(d, dict, &pairs)) || !add(d, "{"))
        return false;
    d->level++;
    for (size_t i = 0; i < dict->len; i++) {
        if (!part_items(d, i == 0) || !dump_key(d, &pairs[i].key))
            return false;
        bool ok = d->style->key_separator
                      ? jinja_sink_string(d->rt, d->sink, d->style->key_separator)
                      : add(d, ": ");
        if (!ok || !dump_value(d, &pairs[i].value))
            return false;
    }
    d->level--;
    return break_line(d) && add(d, "}");
}

static bool dump_any(struct dump *d, const struct jinja_value *v)
{
    char number[JINJA_NUMBER_MAX];
    switch (v->kind) {
    case VALUE_NONE:
        return add(d, "null");
    case VALUE_BOOL:
        return add(d, v->u.boolean ? "true" : "false");
    case VALUE_INT:
        return jinja_sink_add(d->rt, d->sink, number, jinja_format_int(v->u.integer, number),
                              false);
    case VALUE_FLOAT:
        return dump_real(d, v->u.real);
    case VALUE_STR:
        return dump_string(d, v->u.string);
    case VALUE_LIST:
    case VALUE_TUPLE:
        return dump_list(d, v->u.list);
    case VALUE_DICT:
        return dump_dict(d, v->u.dict);
    default:
        return jinja_fail(d->rt, "Object of type %s is not JSON serializable", jinja_type_name(v));
    }
}

static bool dump_value(struct dump *d, const struct jinja_value *v)
{
    if (!jinja_enter(d->rt) || !dump_any(d, v))
        return false;
    jinja_leave(d->rt);
    return true;
}

bool jinja_dump_json(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_value *v,
                     const struct jinja_json_style *style)
{
    struct dump d = {.rt = rt, .sink = sink, .style = style};
    return dump_value(&d, v);
}
