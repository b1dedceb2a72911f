/*
 * Filters on single values: text, numbers, defaults.  Those on sequences are in
 * jinja_filters_seq.c.  The parameter names are Jinja2's, since templates pass them by name.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jinja_ops_priv.h"

#define FILTER(name)                                                      \
    static bool name(struct jinja_rt *rt, const struct jinja_value *self, \
                     const struct jinja_args *args, struct jinja_value *ret)

static bool given(const struct jinja_args *args, size_t i)
{
    return args->pos[i].kind != VALUE_MISSING;
}

static bool int_arg(struct jinja_rt *rt, const struct jinja_args *args, size_t i, int64_t or_else,
                    int64_t *ret)
{
    *ret = or_else;
    if (!given(args, i) || value_is_int(&args->pos[i], ret))
        return true;
    if (args->pos[i].kind == VALUE_UNDEFINED)
        return jinja_used_undefined(rt, &args->pos[i]);
    return jinja_fail(rt, "'%s' object cannot be interpreted as an integer",
                      jinja_type_name(&args->pos[i]));
}

static bool flag_arg(const struct jinja_args *args, size_t i, bool or_else)
{
    return given(args, i) ? jinja_is_true(&args->pos[i]) : or_else;
}

static bool case_filter(struct jinja_rt *rt, const struct jinja_value *self, enum case_rule rule,
                        struct jinja_value *ret)
{
    struct jinja_string *s;
    return jinja_to_string(rt, self, &s) && jinja_string_case(rt, s, rule, ret);
}

FILTER(filter_upper)
{
    (void)args;
    return case_filter(rt, self, CASE_UPPER, ret);
}

FILTER(filter_lower)
{
    (void)args;
    return case_filter(rt, self, CASE_LOWER, ret);
}

FILTER(filter_capitalize)
{
    (void)args;
    return case_filter(rt, self, CASE_CAPITALIZE, ret);
}

FILTER(filter_title)
{
    struct jinja_string *s;
    (void)args;
    return jinja_to_string(rt, self, &s) && jinja_string_words(rt, s, ret);
}

FILTER(filter_string)
{
    struct jinja_string *s;
    (void)args;
    if (!jinja_to_string(rt, self, &s))
        return false;
    *ret = value_string(s);
    return true;
}

FILTER(filter_trim)
{
    struct jinja_string *s, *chars = NULL;
    if (!jinja_to_string(rt, self, &s))
        return false;
    if (given(args, 0) && args->pos[0].kind != VALUE_NONE) {
        if (args->pos[0].kind != VALUE_STR)
            return jinja_fail(rt, "strip arg must be None or str");
        chars = args->pos[0].u.string;
    }
    return jinja_string_strip(rt, s, chars, STRIP_BOTH, ret);
}

FILTER(filter_replace)
{
    struct jinja_string *s, *old, *by;
    int64_t max;
    struct jinja_args count = {.pos = args->pos + 2, .n_pos = 1};
    if (given(args, 2) && args->pos[2].kind == VALUE_NONE)
        max = -1;
    else if (!int_arg(rt, &count, 0, -1, &max))
        return false;
    return jinja_to_string(rt, self, &s) && jinja_to_string(rt, &args->pos[0], &old) &&
           jinja_to_string(rt, &args->pos[1], &by) &&
           jinja_string_replace(rt, s, old, by, max, ret);
}

FILTER(filter_default)
{
    bool missing =
        self->kind == VALUE_UNDEFINED || (flag_arg(args, 1, false) && !jinja_is_true(self));
    if (!missing)
        *ret = *self;
    else if (given(args, 0))
        *ret = args->pos[0];
    else
        return jinja_string_new(rt, "", 0, true, ret);
    return true;
}

/* int(float(value)) when that works. */
static bool int_of_real(const struct jinja_value *v, int64_t *ret)
{
    double real;
    if (v->kind == VALUE_FLOAT)
        real = v->u.real;
    else if (v->kind != VALUE_STR || !jinja_parse_real(v->u.string, &real))
        return false;
    if (!(fabs(real) < 9.2e18))
        return false;
    *ret = (int64_t)real;
    return true;
}

FILTER(filter_int)
{
    int64_t base, value;
    if (self->kind == VALUE_UNDEFINED)
        return jinja_used_undefined(rt, self);
    if (!int_arg(rt, args, 1, 10, &base))
        return false;
    if (base != 0 && (base < 2 || base > 36))
        return jinja_fail(rt, "int() base must be >= 2 and <= 36, or 0");
    if (value_is_int(self, &value) ||
        (self->kind == VALUE_STR && jinja_parse_int(self->u.string, (int)base, &value)) ||
        int_of_real(self, &value))
        *ret = value_int(value);
    else
        *ret = given(args, 0) ? args->pos[0] : value_int(0);
    return true;
}

FILTER(filter_float)
{
    int64_t integer;
    double real;
    if (self->kind == VALUE_UNDEFINED)
        return jinja_used_undefined(rt, self);
    if (value_is_int(self, &integer))
        *ret = value_real((double)integer);
    else if (self->kind == VALUE_FLOAT)
        *ret = *self;
    else if (self->kind == VALUE_STR && jinja_parse_real(self->u.string, &real))
        *ret = value_real(real);
    else
        *ret = given(args, 0) ? args->pos[0] : value_real(0);
    return true;
}

FILTER(filter_abs)
{
    (void)args;
    if (self->kind == VALUE_UNDEFINED)
        return jinja_fail(rt, "bad operand type for abs(): 'Undefined'");
    if (self->kind == VALUE_FLOAT) {
        *ret = value_real(fabs(self->u.real));
        return true;
    }
    int64_t i;
    if (!value_is_int(self, &i))
        return jinja_fail(rt, "bad operand type for abs(): '%s'", jinja_type_name(self));
    return jinja_negate(rt, self, i >= 0, ret);
}

/* Correctly rounded to n decimals, ties to even, as Python's round(). */
static double round_real(double value, int64_t n)
{
    char text[512];
    if (!isfinite(value) || n > 22)
        return value;
    if (n < -308)
        return copysign(0.0, value);
    if (n < 0) {
        double scale = pow(10, (double)-n);
        return nearbyint(value / scale) * scale;
    }
    snprintf(text, sizeof text, "%.*f", (int)n, value);
    return strtod(text, NULL);
}

static bool round_int(struct jinja_rt *rt, int64_t value, int64_t n, struct jinja_value *ret)
{
    *ret = value_int(value);
    if (n >= 0)
        return true;
    int64_t scale = 1;
    for (int64_t i = 0; i < -n; i++) {
        if (__builtin_mul_overflow(scale, (int64_t)10, &scale)) {
            *ret = value_int(0);
            return true;
        }
    }
    int64_t rest = value % scale, base = value - rest, half = scale / 2;
    if (rest < 0) {
        rest += scale;
        base -= scale;
    }
    bool up = rest > half || (rest == half && (base / scale) % 2 != 0);
    if (up && __builtin_add_overflow(base, scale, &base))
        return jinja_fail(rt, "integer overflow: numbers have 64 bits here");
    *ret = value_int(base);
    return true;
}

FILTER(filter_round)
{
    int64_t n, integer;
    const struct jinja_value *method = &args->pos[1];
    bool up = false, down = false;
    if (!int_arg(rt, args, 0, 0, &n))
        return false;
    if (given(args, 1)) {
        if (method->kind == VALUE_STR) {
            up = jinja_name_is(method->u.string->bytes, method->u.string->len, "ceil");
            down = jinja_name_is(method->u.string->bytes, method->u.string->len, "floor");
        }
        if (!up && !down &&
            !(method->kind == VALUE_STR &&
              jinja_name_is(method->u.string->bytes, method->u.string->len, "common")))
            return jinja_fail(rt, "method must be common, ceil or floor");
    }
    if (self->kind == VALUE_UNDEFINED)
        return jinja_fail(rt, "type Undefined doesn't define __round__ method");
    bool is_int = value_is_int(self, &integer);
    if (!is_int && self->kind != VALUE_FLOAT)
        return jinja_fail(rt, "type %s doesn't define __round__ method", jinja_type_name(self));
    if (!up && !down && is_int)
        return round_int(rt, integer, n, ret);
    double value = is_int ? (double)integer : self->u.real;
    if (!up && !down) {
        *ret = value_real(round_real(value, n));
        return true;
    }
    double scale = pow(10, (double)n), scaled = value * scale;
    *ret = value_real((up ? ceil(scaled) : floor(scaled)) / scale);
    return true;
}

FILTER(filter_length)
{
    size_t n;
    (void)args;
    if (!jinja_length(rt, self, &n))
        return false;
    *ret = value_int((int64_t)n);
    return true;
}

FILTER(filter_escape)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    struct jinja_string *s;
    struct jinja_sink *sink = jinja_sink_take(rt);
    (void)args;
    if (!sink || !jinja_to_string(rt, self, &s) || !jinja_work(rt, s->len))
        return false;
    size_t from = 0;
    for (size_t at = 0; at < s->len; at++) {
        const char *special = memchr("&<>'\"", s->bytes[at], 5);
        if (!special)
            continue;
        const char *entity = entities[strchr("&<>'\"", s->bytes[at]) - "&<>'\""];
        if (!jinja_step(rt, 1) || !jinja_sink_part(rt, sink, s, from, at - from) ||
            !jinja_sink_text(rt, sink, entity))
            return false;
        from = at + 1;
    }
    return jinja_sink_part(rt, sink, s, from, s->len - from) && jinja_sink_finish(rt, sink, ret);
}

/* Percent-encodes; in a query, a slash too, and a space is a plus. */
static bool add_encoded(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_value *v,
                        bool query)
{
    struct jinja_string *s;
    if (!jinja_to_string(rt, v, &s) || !jinja_step(rt, s->len / 8 + 1))
        return false;
    for (size_t at = 0; at < s->len; at++) {
        unsigned char c = (unsigned char)s->bytes[at];
        bool plain = c < 0x80 && (jinja_is_alpha(c) || jinja_is_decimal(c) ||
                                  (c != '\0' && strchr(query ? "_.-~" : "_.-~/", c)));
        char text[4];
        snprintf(text, sizeof text, "%%%02X", c);
        bool ok = plain               ? jinja_sink_part(rt, sink, s, at, 1)
                  : query && c == ' ' ? jinja_sink_text(rt, sink, "+")
                                      : jinja_sink_text(rt, sink, text);
        if (!ok)
            return false;
    }
    return true;
}

FILTER(filter_urlencode)
{
    struct jinja_list *list, *pair;
    struct jinja_value pairs = *self;
    struct jinja_sink *sink = jinja_sink_take(rt);
    struct jinja_args none = {0};
    (void)args;
    if (!sink)
        return false;
    bool plain =
        (self->kind <= VALUE_STR && self->kind != VALUE_UNDEFINED) || self->kind >= VALUE_NAMESPACE;
    if (plain)
        return add_encoded(rt, sink, self, false) && jinja_sink_finish(rt, sink, ret);
    if (self->kind == VALUE_DICT &&
        !jinja_call_function(rt, jinja_method_find(VALUE_DICT, "items", 5), self, &none, &pairs))
        return false;
    if (!jinja_to_list(rt, &pairs, &list))
        return false;
    for (size_t i = 0; i < list->len; i++) {
        if (!jinja_to_list(rt, &list->items[i], &pair))
            return false;
        if (pair->len != 2)
            return jinja_fail(rt, "urlencode wants pairs of a name and a value");
        if ((i > 0 && !jinja_sink_text(rt, sink, "&")) ||
            !add_encoded(rt, sink, &pair->items[0], true) || !jinja_sink_text(rt, sink, "=") ||
            !add_encoded(rt, sink, &pair->items[1], true))
            return false;
    }
    return jinja_sink_finish(rt, sink, ret);
}

FILTER(filter_format)
{
    struct jinja_string *s;
    struct jinja_value values;
    if (!jinja_to_string(rt, self, &s))
        return false;
    if (args->n_pos > 0 && args->n_kw > 0)
        return jinja_fail(rt, "can't handle positional and keyword arguments at the same time");
    if (args->n_kw > 0) {
        struct jinja_dict *dict = jinja_dict_new(rt, args->n_kw);
        if (!dict)
            return false;
        for (size_t i = 0; i < args->n_kw; i++) {
            struct jinja_value key;
            if (!jinja_string_new(rt, args->kw[i].name, args->kw[i].len, false, &key) ||
                !jinja_dict_set(rt, dict, key, args->kw[i].value))
                return false;
        }
        values = (struct jinja_value){.kind = VALUE_DICT, .u.dict = dict};
        return jinja_format_percent(rt, s, &values, ret);
    }
    struct jinja_list *list = jinja_list_new(rt, args->n_pos);
    if (!list)
        return false;
    for (size_t i = 0; i < args->n_pos; i++)
        list->items[list->len++] = args->pos[i];
    values = value_tuple(list);
    return jinja_format_percent(rt, s, &values, ret);
}

/* Whether a newline added to s makes one more line. */
static bool ends_line(const struct jinja_string *s)
{
    size_t at = s->len;
    unsigned len;
    while (at > 0 && ((unsigned char)s->bytes[at - 1] & 0xC0) == 0x80)
        at--;
    if (at == 0)
        return false;
    uint32_t c = jinja_char(s->bytes + at - 1, &len);
    return (c >= 0x0A && c <= 0x0C) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

FILTER(filter_indent)
{
    struct jinja_string *s, *by;
    struct jinja_value space;
    struct jinja_list *lines;
    bool first = flag_arg(args, 1, false), blank = flag_arg(args, 2, false);
    int64_t width;
    if (self->kind == VALUE_UNDEFINED)
        return jinja_used_undefined(rt, self);
    if (self->kind != VALUE_STR)
        return jinja_fail(rt, "indent wants a string, not %s", jinja_type_name(self));
    s = self->u.string;
    if (given(args, 0) && args->pos[0].kind == VALUE_STR) {
        by = args->pos[0].u.string;
    } else {
        struct jinja_string one = {.bytes = " ", .len = 1, .trust = TRUST_ALL};
        if (!int_arg(rt, args, 0, 4, &width) || !jinja_string_repeat(rt, &one, width, &space))
            return false;
        by = space.u.string;
    }
    struct jinja_sink *sink = jinja_sink_take(rt);
    if (!sink || !jinja_string_splitlines(rt, s, false, &lines))
        return false;
    /* Jinja2 adds a newline before it parts the text, so an ended last line is followed by one */
    size_t n_lines = lines->len + (s->len == 0 || ends_line(s));
    for (size_t i = 0; i < n_lines; i++) {
        struct jinja_string empty = {.bytes = ""};
        const struct jinja_string *line = i < lines->len ? lines->items[i].u.string : &empty;
        bool indented = i == 0 ? first : (line->len > 0 || blank);
        if ((i > 0 && !jinja_sink_add(rt, sink, "\n", 1, false)) ||
            (indented && !jinja_sink_string(rt, sink, by)) || !jinja_step(rt, 1) ||
            !jinja_sink_string(rt, sink, line))
            return false;
    }
    return jinja_sink_finish(rt, sink, ret);
}

FILTER(filter_center)
{
    struct jinja_string *s;
    int64_t width;
    size_t n;
    if (!jinja_to_string(rt, self, &s) || !int_arg(rt, args, 0, 80, &width) ||
        !jinja_string_chars(rt, s, &n))
        return false;
    int64_t pad = width > (int64_t)n ? width - (int64_t)n : 0;
    int64_t left = pad / 2 + (pad & width & 1);
    struct jinja_value before, after;
    struct jinja_string one = {.bytes = " ", .len = 1, .trust = TRUST_NONE};
    struct jinja_sink *sink;
    return jinja_string_repeat(rt, &one, left, &before) &&
           jinja_string_repeat(rt, &one, pad - left, &after) && (sink = jinja_sink_take(rt)) &&
           jinja_sink_string(rt, sink, before.u.string) && jinja_sink_string(rt, sink, s) &&
           jinja_sink_string(rt, sink, after.u.string) && jinja_sink_finish(rt, sink, ret);
}

FILTER(filter_truncate)
{
    struct jinja_string *end, dots = {.bytes = "...", .len = 3, .trust = TRUST_ALL};
    int64_t length, leeway;
    size_t n, n_end, cut;
    end = &dots;
    if (given(args, 2) && !jinja_to_string(rt, &args->pos[2], &end))
        return false;
    bool default_leeway = !given(args, 3) || args->pos[3].kind == VALUE_NONE;
    leeway = 5;
    if (!int_arg(rt, args, 0, 255, &length) ||
        (!default_leeway && !int_arg(rt, args, 3, 5, &leeway)) || !jinja_length(rt, self, &n) ||
        !jinja_string_chars(rt, end, &n_end))
        return false;
    if (length < (int64_t)n_end || leeway < 0)
        return jinja_fail(rt, "expected length >= %zu and leeway >= 0", n_end);
    if ((int64_t)n <= length || (int64_t)n - length <= leeway) {
        *ret = *self;
        return true;
    }
    if (self->kind != VALUE_STR)
        return jinja_fail(rt, "truncate wants a string, not %s", jinja_type_name(self));
    struct jinja_string *s = self->u.string;
    if (!jinja_string_offset(rt, s, (size_t)length - n_end, &cut))
        return false;
    if (!flag_arg(args, 1, false)) {
        const char *space = cut > 0 ? memrchr(s->bytes, ' ', cut) : NULL;
        cut = space ? (size_t)(space - s->bytes) : cut;
    }
    struct jinja_sink *sink = jinja_sink_take(rt);
    return sink && jinja_sink_part(rt, sink, s, 0, cut) && jinja_sink_string(rt, sink, end) &&
           jinja_sink_finish(rt, sink, ret);
}

FILTER(filter_wordcount)
{
    struct jinja_string *s;
    int64_t n = 0;
    bool inside = false;
    (void)args;
    if (!jinja_to_string(rt, self, &s) || !jinja_step(rt, s->len / 16 + 1))
        return false;
    for (size_t at = 0; at < s->len;) {
        unsigned len;
        uint32_t c = jinja_char(s->bytes + at, &len);
        bool word = c == '_' || jinja_is_alpha(c) || jinja_is_numeric(c);
        n += word && !inside;
        inside = word;
        at += len;
    }
    *ret = value_int(n);
    return true;
}

static bool json_indent(struct jinja_rt *rt, const struct jinja_value *v,
                        struct jinja_json_style *style)
{
    int64_t n;
    struct jinja_value text;
    struct jinja_string one = {.bytes = " ", .len = 1, .trust = TRUST_NONE};
    if (v->kind == VALUE_MISSING || v->kind == VALUE_NONE)
        return true;
    if (v->kind == VALUE_STR) {
        style->indent = v->u.string;
        return true;
    }
    if (!value_is_int(v, &n))
        return jinja_fail(rt, "indent must be an integer or a string, not %s", jinja_type_name(v));
    if (!jinja_string_repeat(rt, &one, n, &text))
        return false;
    style->indent = text.u.string;
    return true;
}

FILTER(filter_tojson)
{
    struct jinja_json_style style = {.ascii = flag_arg(args, 0, false),
                                     .sort_keys = flag_arg(args, 3, false)};
    if (!json_indent(rt, &args->pos[1], &style))
        return false;
    if (given(args, 2) && args->pos[2].kind != VALUE_NONE) {
        struct jinja_list *pair;
        if (!jinja_to_list(rt, &args->pos[2], &pair))
            return false;
        if (pair->len != 2 || pair->items[0].kind != VALUE_STR || pair->items[1].kind != VALUE_STR)
            return jinja_fail(rt, "separators must be two strings");
        style.item_separator = pair->items[0].u.string;
        style.key_separator = pair->items[1].u.string;
    }
    struct jinja_sink *sink = jinja_sink_take(rt);
    return sink && jinja_dump_json(rt, sink, self, &style) && jinja_sink_finish(rt, sink, ret);
}

FILTER(filter_attr)
{
    struct jinja_string *name;
    struct jinja_value item;
    if (!jinja_to_string(rt, &args->pos[0], &name))
        return false;
    if (self->kind == VALUE_UNDEFINED)
        return jinja_used_undefined(rt, self);
    /* as .name, but without the way to items */
    if (self->kind == VALUE_DICT && !jinja_method_find(VALUE_DICT, name->bytes, name->len) &&
        !jinja_method_refused(VALUE_DICT, name->bytes, name->len))
        return value_undefined(rt, ret, "'dict object' has no attribute '%.*s'",
                               (int)(name->len < 64 ? name->len : 64), name->bytes);
    if (!jinja_get_attr(rt, self, name->bytes, name->len, &item))
        return false;
    *ret = item;
    return true;
}

const struct jinja_function jinja_filters[] = {
    {.name = "abs", .call = filter_abs, .params = ""},
    {.name = "attr", .call = filter_attr, .params = "name", .n_required = 1},
    {.name = "capitalize", .call = filter_capitalize, .params = ""},
    {.name = "center", .call = filter_center, .params = "width"},
    {.name = "count", .call = filter_length, .params = ""},
    {.name = "d", .call = filter_default, .params = "default_value boolean"},
    {.name = "default", .call = filter_default, .params = "default_value boolean"},
    {.name = "e", .call = filter_escape, .params = ""},
    {.name = "escape", .call = filter_escape, .params = ""},
    {.name = "float", .call = filter_float, .params = "default"},
    {.name = "format", .call = filter_format},
    {.name = "indent", .call = filter_indent, .params = "width first blank"},
    {.name = "int", .call = filter_int, .params = "default base"},
    {.name = "length", .call = filter_length, .params = ""},
    {.name = "lower", .call = filter_lower, .params = ""},
    {.name = "replace", .call = filter_replace, .params = "old new count", .n_required = 2},
    {.name = "round", .call = filter_round, .params = "precision method"},
    {.name = "safe", .call = filter_string, .params = ""},
    {.name = "string", .call = filter_string, .params = ""},
    {.name = "title", .call = filter_title, .params = ""},
    {.name = "tojson", .call = filter_tojson, .params = "ensure_ascii indent separators sort_keys"},
    {.name = "trim", .call = filter_trim, .params = "chars"},
    {.name = "truncate", .call = filter_truncate, .params = "length killwords end leeway"},
    {.name = "upper", .call = filter_upper, .params = ""},
    {.name = "urlencode", .call = filter_urlencode, .params = ""},
    {.name = "wordcount", .call = filter_wordcount, .params = ""},
    {.name = NULL},
};

const struct jinja_function *jinja_filter_find(const char *name, size_t len)
{
    for (const struct jinja_function *f = jinja_filters; f->name; f++) {
        if (jinja_name_is(name, len, f->name))
            return f;
    }
    for (const struct jinja_function *f = jinja_sequence_filters; f->name; f++) {
        if (jinja_name_is(name, len, f->name))
            return f;
    }
    return NULL;
}
