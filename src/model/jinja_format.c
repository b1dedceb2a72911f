/*
 * Text formatting: Python's `format % values` (also the filter format) and str.format.  What comes
 * from the format keeps its trust, and so do strings that are put in; padding and numbers are
 * untrusted.
 */
#include "config.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jinja_ops_priv.h"

enum { MAX_WIDTH = 1 << 16, MAX_PRECISION = 64, NUMBER_TEXT = 512 };

struct spec {
    uint32_t fill;
    char align; /* 0: by type */
    char sign;
    bool alternate;
    bool zero;
    bool comma;
    int width;
    int precision; /* -1: none */
    char type;
};

/* A character of a format as it may stand in an error. */
static char shown(char c)
{
    return c > 0x20 && c < 0x7F ? c : '?';
}

static bool add_fill(struct jinja_rt *rt, struct jinja_sink *sink, uint32_t fill, size_t n)
{
    char text[4];
    unsigned len = fill < 0x80 ? 1 : 0;
    text[0] = (char)fill;
    if (len == 0)
        return jinja_fail(rt, "only ASCII characters can fill");
    for (size_t i = 0; i < n; i++) {
        if (!jinja_sink_add(rt, sink, text, len, false))
            return false;
    }
    return jinja_work(rt, n);
}

static bool add_padded(struct jinja_rt *rt, struct jinja_sink *sink, const struct spec *spec,
                       char default_align, struct jinja_string *text)
{
    size_t n, left = 0, right = 0;
    char align = spec->align ? spec->align : default_align;
    if (!jinja_string_chars(rt, text, &n))
        return false;
    size_t pad = (size_t)spec->width > n ? (size_t)spec->width - n : 0;
    if (align == '>')
        left = pad;
    else if (align == '^')
        left = pad / 2;
    right = pad - left;
    if (align == '=' && text->len > 0) { /* between sign and digits */
        size_t sign = text->bytes[0] == '-' || text->bytes[0] == '+' || text->bytes[0] == ' ';
        return jinja_sink_part(rt, sink, text, 0, sign) && add_fill(rt, sink, spec->fill, pad) &&
               jinja_sink_part(rt, sink, text, sign, text->len - sign);
    }
    return add_fill(rt, sink, spec->fill, left) && jinja_sink_string(rt, sink, text) &&
           add_fill(rt, sink, spec->fill, right);
}

static bool add_text(struct jinja_rt *rt, struct jinja_sink *sink, const struct spec *spec,
                     char default_align, struct jinja_string *text)
{
    struct jinja_value cut;
    if (spec->precision >= 0) {
        size_t end;
        if (!jinja_string_offset(rt, text, (size_t)spec->precision, &end) ||
            !jinja_string_part(rt, text, 0, end, &cut))
            return false;
        text = cut.u.string;
    }
    return add_padded(rt, sink, spec, default_align, text);
}

/* Puts commas between the thousands of the integer part. */
static void group_thousands(char *text, size_t size)
{
    size_t len = strlen(text), start = 0;
    while (start < len && !isdigit((unsigned char)text[start]))
        start++;
    size_t end = start;
    while (end < len && isdigit((unsigned char)text[end]))
        end++;
    for (size_t at = end; at > start + 3 && len + 1 < size;) {
        at -= 3;
        memmove(text + at + 1, text + at, len - at + 1);
        text[at] = ',';
        len++;
    }
}

static void int_digits(uint64_t value, unsigned base, bool upper, char *out, size_t size)
{
    char reversed[72];
    size_t n = 0, k = 0;
    do {
        reversed[n++] = (upper ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
        value /= base;
    } while (value > 0);
    while (n > 0 && k + 1 < size)
        out[k++] = reversed[--n];
    out[k] = '\0';
}

static void int_text(const struct spec *spec, int64_t value, char *out, size_t size)
{
    char digits[72];
    unsigned base = spec->type == 'x' || spec->type == 'X' ? 16
                    : spec->type == 'o'                    ? 8
                    : spec->type == 'b'                    ? 2
                                                           : 10;
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    int_digits(magnitude, base, spec->type == 'X', digits, sizeof digits);
    const char *prefix = "";
    if (spec->alternate && base != 10)
        prefix = base == 16 ? (spec->type == 'X' ? "0X" : "0x") : base == 8 ? "0o" : "0b";
    const char *sign = value < 0 ? "-" : spec->sign == '+' ? "+" : spec->sign == ' ' ? " " : "";
    snprintf(out, size, "%s%s%s", sign, prefix, digits);
}

static void real_text(const struct spec *spec, double value, char *out, size_t size)
{
    int precision = spec->precision < 0 ? 6 : spec->precision;
    if (spec->type == '%')
        value *= 100;
    if (spec->sign != '\0' && spec->sign != '-' && !signbit(value)) {
        *out++ = spec->sign;
        size--;
    }
    switch (spec->type) {
    case 'e':
        snprintf(out, size, "%.*e", precision, value);
        break;
    case 'E':
        snprintf(out, size, "%.*E", precision, value);
        break;
    case 'g':
        snprintf(out, size, "%.*g", precision, value);
        break;
    case 'G':
        snprintf(out, size, "%.*G", precision, value);
        break;
    case 'F':
        snprintf(out, size, "%.*F", precision, value);
        break;
    case '%':
        snprintf(out, size, "%.*f%%", precision, value);
        break;
    default:
        snprintf(out, size, "%.*f", precision, value);
        break;
    }
}

static bool add_number(struct jinja_rt *rt, struct jinja_sink *sink, const struct spec *spec,
                       char *text, size_t size)
{
    struct spec padded = *spec;
    if (spec->comma)
        group_thousands(text, size);
    if (spec->zero && !spec->align) {
        padded.align = '=';
        padded.fill = '0';
    }
    struct jinja_string string = {.bytes = text, .len = strlen(text), .is_ascii = 1};
    return add_padded(rt, sink, &padded, '>', &string);
}

static bool to_int(struct jinja_rt *rt, const struct jinja_value *v, char type, bool from_real,
                   int64_t *ret)
{
    if (value_is_int(v, ret))
        return true;
    if (v->kind == VALUE_UNDEFINED)
        return jinja_used_undefined(rt, v);
    if (from_real && v->kind == VALUE_FLOAT && fabs(v->u.real) < 9.2e18) {
        *ret = (int64_t)v->u.real;
        return true;
    }
    return jinja_fail(rt, "%%%c format: a number is required, not %s", type, jinja_type_name(v));
}

static bool to_real(struct jinja_rt *rt, const struct jinja_value *v, double *ret)
{
    int64_t i;
    if (value_is_int(v, &i))
        *ret = (double)i;
    else if (v->kind == VALUE_FLOAT)
        *ret = v->u.real;
    else if (v->kind == VALUE_UNDEFINED)
        return jinja_used_undefined(rt, v);
    else
        return jinja_fail(rt, "must be real number, not %s", jinja_type_name(v));
    return true;
}

static bool read_digits(const struct jinja_string *s, size_t *at, int max, int *ret)
{
    int n = 0;
    while (*at < s->len && s->bytes[*at] >= '0' && s->bytes[*at] <= '9') {
        n = n * 10 + (s->bytes[*at] - '0');
        if (n > max)
            return false;
        ++*at;
    }
    *ret = n;
    return true;
}

/* The values of a % operator, taken one by one. */
struct percent {
    struct jinja_rt *rt;
    const struct jinja_value *values;
    size_t next;
    bool used_dict;
};

static bool next_value(struct percent *p, const struct jinja_value **ret)
{
    size_t n = p->values->kind == VALUE_TUPLE ? p->values->u.list->len : 1;
    if (p->next >= n)
        return jinja_fail(p->rt, "not enough arguments for format string");
    *ret = p->values->kind == VALUE_TUPLE ? &p->values->u.list->items[p->next] : p->values;
    p->next++;
    return true;
}

static bool star_or_digits(struct percent *p, const struct jinja_string *s, size_t *at, int max,
                           int *ret, bool *ret_negative)
{
    const struct jinja_value *v;
    int64_t i;
    if (*at >= s->len || s->bytes[*at] != '*') {
        if (!read_digits(s, at, max, ret))
            return jinja_fail(p->rt, "width or precision of a format is too large");
        return true;
    }
    ++*at;
    if (!next_value(p, &v))
        return false;
    if (!value_is_int(v, &i) || i < -max || i > max)
        return jinja_fail(p->rt, "* of a format wants a small integer");
    *ret_negative = i < 0;
    *ret = (int)(i < 0 ? -i : i);
    return true;
}

static bool percent_spec(struct percent *p, const struct jinja_string *s, size_t *at,
                         struct spec *spec)
{
    bool negative = false;
    *spec = (struct spec){.fill = ' ', .precision = -1};
    for (; *at < s->len && memchr("-+ #0", s->bytes[*at], 5); ++*at) {
        char flag = s->bytes[*at];
        if (flag == '-')
            spec->align = '<';
        else if (flag == '#')
            spec->alternate = true;
        else if (flag == '0')
            spec->zero = true;
        else if (spec->sign != '+')
            spec->sign = flag;
    }
    if (!star_or_digits(p, s, at, MAX_WIDTH, &spec->width, &negative))
        return false;
    if (negative)
        spec->align = '<';
    if (*at < s->len && s->bytes[*at] == '.') {
        ++*at;
        spec->precision = 0;
        if (!star_or_digits(p, s, at, MAX_PRECISION, &spec->precision, &negative))
            return false;
    }
    while (*at < s->len && memchr("hlL", s->bytes[*at], 3))
        ++*at;
    if (*at >= s->len)
        return jinja_fail(p->rt, "incomplete format");
    spec->type = s->bytes[(*at)++];
    return true;
}

static bool add_repr(struct jinja_rt *rt, struct jinja_sink *sink, const struct spec *spec,
                     const struct jinja_value *v)
{
    struct jinja_value text;
    struct jinja_sink *part = jinja_sink_take(rt);
    return part && jinja_repr(rt, part, v) && jinja_sink_finish(rt, part, &text) &&
           add_text(rt, sink, spec, '>', text.u.string);
}

static bool add_char(struct jinja_rt *rt, struct jinja_sink *sink, const struct spec *spec,
                     const struct jinja_value *v)
{
    int64_t code;
    char c;
    if (v->kind == VALUE_STR) {
        size_t n;
        if (!jinja_string_chars(rt, v->u.string, &n))
            return false;
        if (n == 1)
            return add_padded(rt, sink, spec, '>', v->u.string);
    } else if (value_is_int(v, &code) && code >= 0 && code < 0x80) {
        c = (char)code;
        struct jinja_string text = {.bytes = &c, .len = 1, .is_ascii = 1};
        return add_padded(rt, sink, spec, '>', &text);
    }
    return jinja_fail(rt, "%%c requires an ASCII code or a character");
}

static bool add_percent(struct jinja_rt *rt, struct jinja_sink *sink, const struct spec *spec,
                        const struct jinja_value *v)
{
    char text[NUMBER_TEXT];
    int64_t i;
    double real;
    struct jinja_string *string;
    switch (spec->type) {
    case 's':
        return jinja_to_string(rt, v, &string) && add_text(rt, sink, spec, '>', string);
    case 'r':
    case 'a':
        return add_repr(rt, sink, spec, v);
    case 'c':
        return add_char(rt, sink, spec, v);
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        if (spec->precision >= 0)
            return jinja_fail(rt, "a precision for an integer is not supported");
        if (!to_int(rt, v, spec->type, memchr("diu", spec->type, 3) != NULL, &i))
            return false;
        int_text(spec, i, text, sizeof text);
        return add_number(rt, sink, spec, text, sizeof text);
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
        if (!to_real(rt, v, &real))
            return false;
        real_text(spec, real, text, sizeof text);
        return add_number(rt, sink, spec, text, sizeof text);
    default:
        return jinja_fail(rt, "unsupported format character '%c'", shown(spec->type));
    }
}

/* %(name)s */
static bool named_value(struct percent *p, const struct jinja_string *s, size_t *at,
                        const struct jinja_value **ret)
{
    size_t start = *at + 1, end = start;
    while (end < s->len && s->bytes[end] != ')')
        end++;
    if (end >= s->len)
        return jinja_fail(p->rt, "incomplete format key");
    if (p->values->kind != VALUE_DICT)
        return jinja_fail(p->rt, "format requires a mapping");
    *ret = jinja_dict_text(p->values->u.dict, s->bytes + start, end - start);
    if (!*ret)
        return jinja_fail(p->rt, "no value for the format key '%.*s'",
                          (int)(end - start < 64 ? end - start : 64), s->bytes + start);
    p->used_dict = true;
    *at = end + 1;
    return true;
}

bool jinja_format_percent(struct jinja_rt *rt, const struct jinja_string *format,
                          const struct jinja_value *values, struct jinja_value *ret)
{
    struct percent p = {.rt = rt, .values = values};
    struct jinja_sink *sink = jinja_sink_take(rt);
    if (!sink)
        return false;
    for (size_t at = 0; at < format->len;) {
        const char *percent = memchr(format->bytes + at, '%', format->len - at);
        size_t end = percent ? (size_t)(percent - format->bytes) : format->len;
        if (!jinja_step(rt, 1) || !jinja_sink_part(rt, sink, format, at, end - at))
            return false;
        if (!percent)
            break;
        at = end + 1;
        const struct jinja_value *v = NULL;
        struct spec spec;
        if (at < format->len && format->bytes[at] == '(' && !named_value(&p, format, &at, &v))
            return false;
        if (!percent_spec(&p, format, &at, &spec))
            return false;
        if (spec.type == '%') {
            if (!jinja_sink_part(rt, sink, format, end, 1))
                return false;
            continue;
        }
        if ((!v && !next_value(&p, &v)) || !add_percent(rt, sink, &spec, v))
            return false;
    }
    size_t n = values->kind == VALUE_TUPLE ? values->u.list->len : 1;
    bool has_items = values->kind == VALUE_DICT || values->kind == VALUE_LIST ||
                     values->kind == VALUE_RANGE || values->kind == VALUE_UNDEFINED;
    if (p.next < n && !p.used_dict && !has_items) /* Python lets those go unused */
        return jinja_fail(rt, "not all arguments converted during string formatting");
    return jinja_sink_finish(rt, sink, ret);
}

/* ---- str.format ---- */

struct braces {
    struct jinja_rt *rt;
    const struct jinja_string *format;
    const struct jinja_args *args;
    size_t next;
};

static bool brace_spec(struct braces *b, size_t at, size_t end, struct spec *spec)
{
    const struct jinja_string bound = {.bytes = b->format->bytes, .len = end};
    const char *text = bound.bytes;
    *spec = (struct spec){.fill = ' ', .precision = -1};
    if (end - at >= 2 && memchr("<>^=", text[at + 1], 4)) {
        spec->fill = (unsigned char)text[at];
        spec->align = text[at + 1];
        at += 2;
    } else if (at < end && memchr("<>^=", text[at], 4)) {
        spec->align = text[at++];
    }
    if (at < end && memchr("+- ", text[at], 3))
        spec->sign = text[at++];
    if (at < end && text[at] == '#') {
        spec->alternate = true;
        at++;
    }
    if (at < end && text[at] == '0') {
        spec->zero = true;
        at++;
    }
    if (!read_digits(&bound, &at, MAX_WIDTH, &spec->width))
        return jinja_fail(b->rt, "width of a format is too large");
    if (at < end && text[at] == ',') {
        spec->comma = true;
        at++;
    }
    if (at < end && text[at] == '.') {
        at++;
        if (!read_digits(&bound, &at, MAX_PRECISION, &spec->precision))
            return jinja_fail(b->rt, "precision of a format is too large");
    }
    if (at < end)
        spec->type = text[at++];
    return at == end || jinja_fail(b->rt, "invalid format specifier");
}

/* The value that a replacement field names: an index, a name, then .attributes and [items]. */
static bool field_value(struct braces *b, size_t at, size_t end, struct jinja_value *ret)
{
    const char *text = b->format->bytes;
    size_t stop = at;
    while (stop < end && text[stop] != '.' && text[stop] != '[')
        stop++;
    struct jinja_string name = {.bytes = text + at, .len = stop - at};
    int64_t index;
    const struct jinja_value *found = NULL;
    if (name.len == 0 || jinja_parse_int(&name, 10, &index)) {
        size_t i = name.len == 0 ? b->next++ : index >= 0 ? (size_t)index : SIZE_MAX;
        if (i >= b->args->n_pos)
            return jinja_fail(b->rt, "Replacement index %zu out of range for positional args", i);
        found = &b->args->pos[i];
    }
    for (size_t i = 0; !found && i < b->args->n_kw; i++) {
        if (b->args->kw[i].len == name.len &&
            memcmp(b->args->kw[i].name, name.bytes, name.len) == 0)
            found = &b->args->kw[i].value;
    }
    if (!found)
        return jinja_fail(b->rt, "no value for the format field '%.*s'",
                          (int)(name.len < 64 ? name.len : 64), name.bytes);
    *ret = *found;
    for (at = stop; at < end; at = stop) {
        bool item = text[at++] == '[';
        for (stop = at;
             stop < end && (item ? text[stop] != ']' : text[stop] != '.' && text[stop] != '[');)
            stop++;
        struct jinja_string part = {.bytes = text + at, .len = stop - at};
        struct jinja_value key, owner = *ret;
        if (!item) {
            if (!jinja_get_attr(b->rt, &owner, part.bytes, part.len, ret))
                return false;
            continue;
        }
        if (stop >= end)
            return jinja_fail(b->rt, "expected ']' in a format field");
        if (jinja_parse_int(&part, 10, &index))
            key = value_int(index);
        else if (!jinja_string_new(b->rt, part.bytes, part.len, false, &key))
            return false;
        if (!jinja_get_item(b->rt, &owner, &key, ret))
            return false;
        stop++;
    }
    return true;
}

static bool bad_code(struct braces *b, const struct spec *spec, const struct jinja_value *v)
{
    return jinja_fail(b->rt, "Unknown format code '%c' for object of type '%s'", shown(spec->type),
                      jinja_type_name(v));
}

static bool add_formatted(struct braces *b, struct jinja_sink *sink, struct spec *spec,
                          const struct jinja_value *v, bool empty)
{
    char text[NUMBER_TEXT];
    struct jinja_string *string;
    bool is_int = v->kind == VALUE_INT || v->kind == VALUE_BOOL;
    bool real_type = spec->type != '\0' && memchr("fFeEgG%", spec->type, 7);
    if (empty || (!is_int && v->kind != VALUE_FLOAT)) {
        if (spec->type != '\0' && spec->type != 's')
            return bad_code(b, spec, v);
        if (!empty && v->kind != VALUE_STR)
            return jinja_fail(b->rt, "unsupported format string passed to %s.__format__",
                              jinja_type_name(v));
        return jinja_to_string(b->rt, v, &string) && add_text(b->rt, sink, spec, '<', string);
    }
    if (is_int && !real_type) {
        int64_t i = 0;
        if (spec->type == '\0')
            spec->type = 'd';
        if (!memchr("dxXobn", spec->type, 6) || spec->precision >= 0)
            return bad_code(b, spec, v);
        (void)value_is_int(v, &i);
        int_text(spec, i, text, sizeof text);
        return add_number(b->rt, sink, spec, text, sizeof text);
    }
    double real;
    if (!to_real(b->rt, v, &real))
        return false;
    if (spec->type == '\0' && spec->precision < 0) {
        text[0] = spec->sign == '+' && real >= 0 ? '+' : ' ';
        size_t sign = text[0] == '+' || (spec->sign == ' ' && real >= 0);
        (void)jinja_format_real(real, text + sign);
        return add_number(b->rt, sink, spec, text, sizeof text);
    }
    if (!real_type)
        return bad_code(b, spec, v);
    real_text(spec, real, text, sizeof text);
    return add_number(b->rt, sink, spec, text, sizeof text);
}

static bool add_field(struct braces *b, struct jinja_sink *sink, size_t at, size_t end)
{
    const char *text = b->format->bytes;
    size_t name_end = at;
    struct jinja_value v;
    struct spec spec;
    while (name_end < end && text[name_end] != '!' && text[name_end] != ':')
        name_end++;
    if (!field_value(b, at, name_end, &v))
        return false;
    size_t rest = name_end;
    if (rest < end && text[rest] == '!') {
        if (rest + 1 >= end || !memchr("sr", text[rest + 1], 2))
            return jinja_fail(b->rt, "unknown conversion in a format field");
        struct jinja_sink *part = jinja_sink_take(b->rt);
        if (!part || !(text[rest + 1] == 'r' ? jinja_repr : jinja_print)(b->rt, part, &v) ||
            !jinja_sink_finish(b->rt, part, &v))
            return false;
        rest += 2;
    }
    if (rest < end && text[rest] != ':')
        return jinja_fail(b->rt, "expected ':' after a conversion in a format field");
    if (rest < end)
        rest++;
    return brace_spec(b, rest, end, &spec) && add_formatted(b, sink, &spec, &v, rest >= end);
}

bool jinja_format_braces(struct jinja_rt *rt, const struct jinja_string *format,
                         const struct jinja_args *args, struct jinja_value *ret)
{
    struct braces b = {.rt = rt, .format = format, .args = args};
    struct jinja_sink *sink = jinja_sink_take(rt);
    size_t from = 0;
    if (!sink)
        return false;
    for (size_t at = 0; at < format->len; at++) {
        char c = format->bytes[at];
        if (c != '{' && c != '}')
            continue;
        if (!jinja_step(rt, 1) || !jinja_sink_part(rt, sink, format, from, at - from))
            return false;
        if (at + 1 < format->len && format->bytes[at + 1] == c) {
            from = ++at;
            continue;
        }
        const char *close = memchr(format->bytes + at, '}', format->len - at);
        if (c == '}' || !close)
            return jinja_fail(rt, "Single '%c' encountered in format string", c);
        size_t end = (size_t)(close - format->bytes);
        if (memchr(format->bytes + at + 1, '{', end - at - 1))
            return jinja_fail(rt, "a format field within a format field is not supported");
        if (!add_field(&b, sink, at + 1, end))
            return false;
        at = end;
        from = end + 1;
    }
    return jinja_sink_part(rt, sink, format, from, format->len - from) &&
           jinja_sink_finish(rt, sink, ret);
}
