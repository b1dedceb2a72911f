/*
 * Python's str() and repr() of values.  The bytes of strings keep their trust; what is added around
 * them (quotes, brackets, digits, escapes) is untrusted.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jinja_node_priv.h"
#include "jinja_ops_priv.h"

const char *jinja_type_name(const struct jinja_value *v)
{
    static const char *const names[VALUE_KIND_COUNT] = {
        [VALUE_MISSING] = "missing",  [VALUE_UNDEFINED] = "Undefined",
        [VALUE_NONE] = "NoneType",    [VALUE_BOOL] = "bool",
        [VALUE_INT] = "int",          [VALUE_FLOAT] = "float",
        [VALUE_STR] = "str",          [VALUE_LIST] = "list",
        [VALUE_TUPLE] = "tuple",      [VALUE_DICT] = "dict",
        [VALUE_VIEW] = "dict_items",  [VALUE_ITER] = "generator",
        [VALUE_RANGE] = "range",      [VALUE_NAMESPACE] = "Namespace",
        [VALUE_LOOP] = "LoopContext", [VALUE_CYCLER] = "Cycler",
        [VALUE_JOINER] = "Joiner",    [VALUE_MACRO] = "Macro",
        [VALUE_METHOD] = "method",    [VALUE_FUNCTION] = "function",
    };
    if (v->kind == VALUE_VIEW && v->view == VIEW_KEYS)
        return "dict_keys";
    if (v->kind == VALUE_VIEW && v->view == VIEW_VALUES)
        return "dict_values";
    return names[v->kind];
}

size_t jinja_format_int(int64_t value, char out[JINJA_NUMBER_MAX])
{
    return (size_t)snprintf(out, JINJA_NUMBER_MAX, "%" PRId64, value);
}

/* Digits of a %e form without point, exponent split off. */
static int split_digits(const char *text, char digits[24], int *ret_exponent)
{
    int n = 0;
    const char *at = text;
    for (; *at != '\0' && *at != 'e'; at++) {
        if (*at >= '0' && *at <= '9' && n < 23)
            digits[n++] = *at;
    }
    *ret_exponent = *at == 'e' ? (int)strtol(at + 1, NULL, 10) : 0;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    return n;
}

size_t jinja_format_real(double value, char out[JINJA_NUMBER_MAX])
{
    if (isnan(value))
        return (size_t)snprintf(out, JINJA_NUMBER_MAX, "nan");
    if (isinf(value))
        return (size_t)snprintf(out, JINJA_NUMBER_MAX, value < 0 ? "-inf" : "inf");
    char text[JINJA_NUMBER_MAX], digits[24];
    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, fabs(value));
        if (strtod(text, NULL) == fabs(value))
            break;
    }
    int exponent, n = split_digits(text, digits, &exponent);
    const char *sign = signbit(value) ? "-" : "";
    if (exponent < -4 || exponent >= 16)
        return (size_t)snprintf(out, JINJA_NUMBER_MAX, "%s%c%s%se%c%02d", sign, digits[0],
                                n > 1 ? "." : "", digits + 1, exponent < 0 ? '-' : '+',
                                abs(exponent));
    if (exponent < 0)
        return (size_t)snprintf(out, JINJA_NUMBER_MAX, "%s0.%.*s%s", sign, -exponent - 1, "0000",
                                digits);
    if (n <= exponent + 1)
        return (size_t)snprintf(out, JINJA_NUMBER_MAX, "%s%s%.*s.0", sign, digits, exponent + 1 - n,
                                "0000000000000000");
    return (size_t)snprintf(out, JINJA_NUMBER_MAX, "%s%.*s.%s", sign, exponent + 1, digits,
                            digits + exponent + 1);
}

static bool add_escape(struct jinja_rt *rt, struct jinja_sink *sink, uint32_t c)
{
    char text[16];
    switch (c) {
    case '\n':
        return jinja_sink_text(rt, sink, "\\n");
    case '\r':
        return jinja_sink_text(rt, sink, "\\r");
    case '\t':
        return jinja_sink_text(rt, sink, "\\t");
    default:
        if (c < 0x100)
            snprintf(text, sizeof text, "\\x%02" PRIx32, c);
        else if (c < 0x10000)
            snprintf(text, sizeof text, "\\u%04" PRIx32, c);
        else
            snprintf(text, sizeof text, "\\U%08" PRIx32, c);
        return jinja_sink_text(rt, sink, text);
    }
}

static bool repr_string(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_string *s)
{
    bool single = s->len > 0 && memchr(s->bytes, '\'', s->len);
    char quote = single && !memchr(s->bytes, '"', s->len) ? '"' : '\'';
    size_t from = 0;
    if (!jinja_work(rt, s->len) || !jinja_sink_add(rt, sink, &quote, 1, false))
        return false;
    for (size_t at = 0; at < s->len;) {
        unsigned len;
        uint32_t c = jinja_char(s->bytes + at, &len);
        bool escape = c == (unsigned char)quote || c == '\\';
        if (escape || !jinja_is_printable(c)) {
            if (!jinja_step(rt, 1) || !jinja_sink_part(rt, sink, s, from, at - from))
                return false;
            if (escape ? !jinja_sink_text(rt, sink, "\\") : !add_escape(rt, sink, c))
                return false;
            from = escape ? at : at + len;
        }
        at += len;
    }
    return jinja_sink_part(rt, sink, s, from, s->len - from) &&
           jinja_sink_add(rt, sink, &quote, 1, false);
}

static bool repr_items(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_list *list,
                       const char *open, const char *close)
{
    if (!jinja_sink_text(rt, sink, open))
        return false;
    for (size_t i = 0; i < list->len; i++) {
        if ((i > 0 && !jinja_sink_text(rt, sink, ", ")) || !jinja_repr(rt, sink, &list->items[i]))
            return false;
    }
    return jinja_sink_text(rt, sink, close);
}

static bool repr_dict(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_dict *dict,
                      const char *open, const char *close)
{
    if (!jinja_sink_text(rt, sink, open))
        return false;
    for (size_t i = 0; i < dict->len; i++) {
        if ((i > 0 && !jinja_sink_text(rt, sink, ", ")) ||
            !jinja_repr(rt, sink, &dict->pairs[i].key) || !jinja_sink_text(rt, sink, ": ") ||
            !jinja_repr(rt, sink, &dict->pairs[i].value))
            return false;
    }
    return jinja_sink_text(rt, sink, close);
}

static bool repr_range(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_range *r)
{
    char text[96];
    int64_t stop = r->start + r->len * r->step;
    if (r->step == 1)
        snprintf(text, sizeof text, "range(%" PRId64 ", %" PRId64 ")", r->start, stop);
    else
        snprintf(text, sizeof text, "range(%" PRId64 ", %" PRId64 ", %" PRId64 ")", r->start, stop,
                 r->step);
    return jinja_sink_text(rt, sink, text);
}

static bool repr_object(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_value *v)
{
    switch (v->kind) {
    case VALUE_NAMESPACE:
        return repr_dict(rt, sink, v->u.dict, "<Namespace {", "}>");
    case VALUE_MACRO:
        return jinja_sink_text(rt, sink, "<Macro '") &&
               jinja_sink_text(rt, sink, v->u.closure->macro->name) &&
               jinja_sink_text(rt, sink, "'>");
    default:
        return jinja_sink_text(rt, sink, "<") && jinja_sink_text(rt, sink, jinja_type_name(v)) &&
               jinja_sink_text(rt, sink, " object>");
    }
}

static bool repr_view(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_value *v)
{
    return jinja_sink_text(rt, sink, jinja_type_name(v)) &&
           repr_items(rt, sink, v->u.list, "([", "])");
}

static bool repr_value(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_value *v)
{
    char number[JINJA_NUMBER_MAX];
    switch (v->kind) {
    case VALUE_UNDEFINED:
        return jinja_sink_text(rt, sink, "Undefined");
    case VALUE_NONE:
        return jinja_sink_text(rt, sink, "None");
    case VALUE_BOOL:
        return jinja_sink_text(rt, sink, v->u.boolean ? "True" : "False");
    case VALUE_INT:
        return jinja_sink_add(rt, sink, number, jinja_format_int(v->u.integer, number), false);
    case VALUE_FLOAT:
        return jinja_sink_add(rt, sink, number, jinja_format_real(v->u.real, number), false);
    case VALUE_STR:
        return repr_string(rt, sink, v->u.string);
    case VALUE_LIST:
        return repr_items(rt, sink, v->u.list, "[", "]");
    case VALUE_TUPLE:
        return repr_items(rt, sink, v->u.list, "(", v->u.list->len == 1 ? ",)" : ")");
    case VALUE_DICT:
        return repr_dict(rt, sink, v->u.dict, "{", "}");
    case VALUE_VIEW:
        return repr_view(rt, sink, v);
    case VALUE_RANGE:
        return repr_range(rt, sink, v->u.range);
    default:
        return repr_object(rt, sink, v);
    }
}

bool jinja_repr(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_value *v)
{
    if (!jinja_enter(rt) || !repr_value(rt, sink, v))
        return false;
    jinja_leave(rt);
    return true;
}

bool jinja_print(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_value *v)
{
    if (v->kind == VALUE_STR)
        return jinja_sink_string(rt, sink, v->u.string);
    if (v->kind == VALUE_UNDEFINED)
        return true;
    return jinja_repr(rt, sink, v);
}

bool jinja_to_string(struct jinja_rt *rt, const struct jinja_value *v, struct jinja_string **ret)
{
    struct jinja_value text;
    if (v->kind == VALUE_STR) {
        *ret = v->u.string;
        return true;
    }
    struct jinja_sink *sink = jinja_sink_take(rt);
    if (!sink || !jinja_print(rt, sink, v) || !jinja_sink_finish(rt, sink, &text))
        return false;
    *ret = text.u.string;
    return true;
}
