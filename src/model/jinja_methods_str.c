/*
 * Methods of strings, with Python's arguments.
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

static bool text_arg(struct jinja_rt *rt, const struct jinja_args *args, size_t i,
                     struct jinja_string **ret)
{
    if (args->pos[i].kind == VALUE_STR) {
        *ret = args->pos[i].u.string;
        return true;
    }
    if (args->pos[i].kind == VALUE_UNDEFINED)
        return jinja_used_undefined(rt, &args->pos[i]);
    return jinja_fail(rt, "a string is needed as argument, not %s", jinja_type_name(&args->pos[i]));
}

/* A string, or NULL for an argument that is none or not given. */
static bool optional_text(struct jinja_rt *rt, const struct jinja_args *args, size_t i,
                          struct jinja_string **ret)
{
    *ret = NULL;
    if (!given(args, i) || args->pos[i].kind == VALUE_NONE)
        return true;
    return text_arg(rt, args, i, ret);
}

static bool int_arg(struct jinja_rt *rt, const struct jinja_args *args, size_t i, int64_t or_else,
                    int64_t *ret)
{
    *ret = or_else;
    if (!given(args, i) || value_is_int(&args->pos[i], ret))
        return true;
    if (args->pos[i].kind == VALUE_UNDEFINED)
        return jinja_used_undefined(rt, &args->pos[i]);
    return jinja_fail(rt, "an integer is needed as argument, not %s",
                      jinja_type_name(&args->pos[i]));
}

static bool strip(struct jinja_rt *rt, const struct jinja_value *self,
                  const struct jinja_args *args, unsigned sides, struct jinja_value *ret)
{
    struct jinja_string *chars;
    return optional_text(rt, args, 0, &chars) &&
           jinja_string_strip(rt, self->u.string, chars, sides, ret);
}

METHOD(str_strip)
{
    return strip(rt, self, args, STRIP_BOTH, ret);
}

METHOD(str_lstrip)
{
    return strip(rt, self, args, STRIP_LEFT, ret);
}

METHOD(str_rstrip)
{
    return strip(rt, self, args, STRIP_RIGHT, ret);
}

METHOD(str_upper)
{
    (void)args;
    return jinja_string_case(rt, self->u.string, CASE_UPPER, ret);
}

METHOD(str_lower)
{
    (void)args;
    return jinja_string_case(rt, self->u.string, CASE_LOWER, ret);
}

METHOD(str_title)
{
    (void)args;
    return jinja_string_case(rt, self->u.string, CASE_TITLE, ret);
}

METHOD(str_capitalize)
{
    (void)args;
    return jinja_string_case(rt, self->u.string, CASE_CAPITALIZE, ret);
}

METHOD(str_swapcase)
{
    (void)args;
    return jinja_string_case(rt, self->u.string, CASE_SWAP, ret);
}

static bool add_piece(struct jinja_rt *rt, struct jinja_list *list, const struct jinja_string *s,
                      size_t from, size_t to)
{
    struct jinja_value piece;
    return jinja_step(rt, 1) && jinja_string_part(rt, s, from, to - from, &piece) &&
           jinja_list_add(rt, list, piece);
}

/* Words between white space, from the left; after max splits the rest stays one piece. */
static bool split_space(struct jinja_rt *rt, const struct jinja_string *s, int64_t max,
                        struct jinja_list *list)
{
    size_t at = 0;
    unsigned len;
    for (int64_t n = 0;; n++) {
        while (at < s->len && jinja_is_space(jinja_char(s->bytes + at, &len)))
            at += len;
        if (at >= s->len)
            return true;
        size_t from = at;
        if (max >= 0 && n >= max) {
            return add_piece(rt, list, s, from, s->len);
        }
        while (at < s->len && !jinja_is_space(jinja_char(s->bytes + at, &len)))
            at += len;
        if (!add_piece(rt, list, s, from, at))
            return false;
    }
}

static size_t char_before(const struct jinja_string *s, size_t at)
{
    do {
        at--;
    } while (at > 0 && ((unsigned char)s->bytes[at] & 0xC0) == 0x80);
    return at;
}

static bool space_before(const struct jinja_string *s, size_t at)
{
    unsigned len;
    return jinja_is_space(jinja_char(s->bytes + char_before(s, at), &len));
}

static void reverse_list(struct jinja_list *list)
{
    for (size_t i = 0; i < list->len / 2; i++) {
        struct jinja_value v = list->items[i];
        list->items[i] = list->items[list->len - 1 - i];
        list->items[list->len - 1 - i] = v;
    }
}

/* The same from the right. */
static bool rsplit_space(struct jinja_rt *rt, const struct jinja_string *s, int64_t max,
                         struct jinja_list *list)
{
    size_t at = s->len;
    for (int64_t n = 0;; n++) {
        while (at > 0 && space_before(s, at))
            at = char_before(s, at);
        if (at == 0)
            break;
        size_t to = at;
        if (max >= 0 && n >= max) {
            if (!add_piece(rt, list, s, 0, to))
                return false;
            break;
        }
        while (at > 0 && !space_before(s, at))
            at = char_before(s, at);
        if (!add_piece(rt, list, s, at, to))
            return false;
    }
    reverse_list(list);
    return true;
}

static bool split_by(struct jinja_rt *rt, const struct jinja_string *s,
                     const struct jinja_string *by, int64_t max, bool right,
                     struct jinja_list *list)
{
    size_t from = 0, to = s->len, hit;
    if (by->len == 0)
        return jinja_fail(rt, "empty separator");
    for (int64_t n = 0; max < 0 || n < max; n++) {
        if (!jinja_string_find(rt, s, by, from, to, right, &hit))
            return false;
        if (hit == SIZE_MAX)
            break;
        if (!(right ? add_piece(rt, list, s, hit + by->len, to)
                    : add_piece(rt, list, s, from, hit)))
            return false;
        if (right)
            to = hit;
        else
            from = hit + by->len;
    }
    if (!add_piece(rt, list, s, from, to))
        return false;
    if (right)
        reverse_list(list);
    return true;
}

static bool split(struct jinja_rt *rt, const struct jinja_value *self,
                  const struct jinja_args *args, bool right, struct jinja_value *ret)
{
    struct jinja_string *by;
    struct jinja_list *list = jinja_list_new(rt, 0);
    int64_t max;
    if (!list || !optional_text(rt, args, 0, &by) || !int_arg(rt, args, 1, -1, &max) ||
        !jinja_work(rt, self->u.string->len))
        return false;
    bool ok = by      ? split_by(rt, self->u.string, by, max, right, list)
              : right ? rsplit_space(rt, self->u.string, max, list)
                      : split_space(rt, self->u.string, max, list);
    *ret = value_list(list);
    return ok;
}

METHOD(str_split)
{
    return split(rt, self, args, false, ret);
}

METHOD(str_rsplit)
{
    return split(rt, self, args, true, ret);
}

METHOD(str_splitlines)
{
    struct jinja_list *lines;
    if (!jinja_string_splitlines(rt, self->u.string, given(args, 0) && jinja_is_true(&args->pos[0]),
                                 &lines))
        return false;
    *ret = value_list(lines);
    return true;
}

static bool partition(struct jinja_rt *rt, const struct jinja_value *self,
                      const struct jinja_args *args, bool right, struct jinja_value *ret)
{
    const struct jinja_string *s = self->u.string;
    struct jinja_string *by;
    struct jinja_list *list = jinja_list_new(rt, 3);
    size_t hit;
    if (!list || !text_arg(rt, args, 0, &by))
        return false;
    if (by->len == 0)
        return jinja_fail(rt, "empty separator");
    if (!jinja_string_find(rt, s, by, 0, s->len, right, &hit))
        return false;
    size_t begin = hit, end = hit + by->len;
    if (hit == SIZE_MAX)
        begin = end = right ? 0 : s->len;
    *ret = value_tuple(list);
    return add_piece(rt, list, s, 0, begin) && add_piece(rt, list, s, begin, end) &&
           add_piece(rt, list, s, end, s->len);
}

METHOD(str_partition)
{
    return partition(rt, self, args, false, ret);
}

METHOD(str_rpartition)
{
    return partition(rt, self, args, true, ret);
}

/* Byte bounds of the slice that the arguments `at` and `at + 1` give, as Python counts them. */
static bool bounds(struct jinja_rt *rt, struct jinja_string *s, const struct jinja_args *args,
                   size_t at, size_t *ret_from, size_t *ret_to, bool *ret_empty)
{
    int64_t from, to;
    size_t n;
    bool open = !given(args, at + 1) || args->pos[at + 1].kind == VALUE_NONE;
    bool from_start = !given(args, at) || args->pos[at].kind == VALUE_NONE;
    if (!jinja_string_chars(rt, s, &n))
        return false;
    from = 0;
    to = (int64_t)n;
    if ((!from_start && !int_arg(rt, args, at, 0, &from)) ||
        (!open && !int_arg(rt, args, at + 1, 0, &to)))
        return false;
    from = from < 0 ? (from < -(int64_t)n ? 0 : from + (int64_t)n) : from;
    to = to < 0 ? (to < -(int64_t)n ? 0 : to + (int64_t)n) : to > (int64_t)n ? (int64_t)n : to;
    *ret_empty = from > to;
    if (from > (int64_t)n)
        from = (int64_t)n;
    return jinja_string_offset(rt, s, (size_t)from, ret_from) &&
           jinja_string_offset(rt, s, (size_t)to, ret_to);
}

static bool affix(struct jinja_rt *rt, const struct jinja_value *self,
                  const struct jinja_args *args, bool end, struct jinja_value *ret)
{
    const struct jinja_string *s = self->u.string;
    const struct jinja_value *first = &args->pos[0];
    size_t from, to, n = 1;
    bool empty, found = false;
    if (!bounds(rt, self->u.string, args, 1, &from, &to, &empty))
        return false;
    if (first->kind == VALUE_TUPLE) {
        n = first->u.list->len;
        first = first->u.list->items;
    }
    for (size_t i = 0; i < n && !found; i++) {
        struct jinja_args one = {.pos = first + i, .n_pos = 1};
        struct jinja_string *part;
        if (!text_arg(rt, &one, 0, &part) || !jinja_work(rt, part->len))
            return false;
        size_t at = end ? to - part->len : from;
        found = !empty && to >= from && part->len <= to - from &&
                (part->len == 0 || memcmp(s->bytes + at, part->bytes, part->len) == 0);
    }
    *ret = value_bool(found);
    return true;
}

METHOD(str_startswith)
{
    return affix(rt, self, args, false, ret);
}

METHOD(str_endswith)
{
    return affix(rt, self, args, true, ret);
}

METHOD(str_removeprefix)
{
    const struct jinja_string *s = self->u.string;
    struct jinja_string *part;
    if (!text_arg(rt, args, 0, &part) || !jinja_work(rt, part->len))
        return false;
    bool has =
        part->len > 0 && part->len <= s->len && memcmp(s->bytes, part->bytes, part->len) == 0;
    size_t cut = has ? part->len : 0;
    return jinja_string_part(rt, s, cut, s->len - cut, ret);
}

METHOD(str_removesuffix)
{
    const struct jinja_string *s = self->u.string;
    struct jinja_string *part;
    if (!text_arg(rt, args, 0, &part) || !jinja_work(rt, part->len))
        return false;
    bool has = part->len > 0 && part->len <= s->len &&
               memcmp(s->bytes + s->len - part->len, part->bytes, part->len) == 0;
    return jinja_string_part(rt, s, 0, s->len - (has ? part->len : 0), ret);
}

METHOD(str_replace)
{
    struct jinja_string *old, *by;
    int64_t max;
    return text_arg(rt, args, 0, &old) && text_arg(rt, args, 1, &by) &&
           int_arg(rt, args, 2, -1, &max) &&
           jinja_string_replace(rt, self->u.string, old, by, max, ret);
}

static bool find(struct jinja_rt *rt, const struct jinja_value *self, const struct jinja_args *args,
                 bool right, bool must, struct jinja_value *ret)
{
    struct jinja_string *needle, *s = self->u.string;
    size_t from, to, hit = SIZE_MAX, chars;
    bool empty;
    if (!text_arg(rt, args, 0, &needle) || !bounds(rt, s, args, 1, &from, &to, &empty) ||
        (!empty && !jinja_string_find(rt, s, needle, from, to, right, &hit)))
        return false;
    if (hit == SIZE_MAX && must)
        return jinja_fail(rt, "substring not found");
    *ret = value_int(-1);
    if (hit == SIZE_MAX)
        return true;
    struct jinja_string head = {.bytes = s->bytes, .len = hit, .is_ascii = s->is_ascii == 1};
    if (!jinja_string_chars(rt, &head, &chars))
        return false;
    *ret = value_int((int64_t)chars);
    return true;
}

METHOD(str_find)
{
    return find(rt, self, args, false, false, ret);
}

METHOD(str_rfind)
{
    return find(rt, self, args, true, false, ret);
}

METHOD(str_index)
{
    return find(rt, self, args, false, true, ret);
}

METHOD(str_rindex)
{
    return find(rt, self, args, true, true, ret);
}

METHOD(str_count)
{
    struct jinja_string *needle, *s = self->u.string;
    size_t from, to, hit, chars;
    bool empty;
    int64_t n = 0;
    if (!text_arg(rt, args, 0, &needle) || !bounds(rt, s, args, 1, &from, &to, &empty))
        return false;
    if (needle->len == 0 && !empty) {
        struct jinja_string part = {.bytes = s->bytes + from, .len = to - from};
        if (!jinja_string_chars(rt, &part, &chars))
            return false;
        n = (int64_t)chars + 1;
    }
    while (needle->len > 0 && !empty) {
        if (!jinja_step(rt, 1) || !jinja_string_find(rt, s, needle, from, to, false, &hit))
            return false;
        if (hit == SIZE_MAX)
            break;
        from = hit + needle->len;
        n++;
    }
    *ret = value_int(n);
    return true;
}

METHOD(str_join)
{
    struct jinja_cursor cursor;
    struct jinja_sink *sink = jinja_sink_take(rt);
    if (!sink || !jinja_iterate(rt, &args->pos[0], &cursor))
        return false;
    for (size_t i = 0;; i++) {
        struct jinja_value item;
        bool more;
        if (!jinja_next(rt, &cursor, &item, &more))
            return false;
        if (!more)
            break;
        if (item.kind != VALUE_STR)
            return jinja_fail(rt, "sequence item %zu: expected str instance, %s found", i,
                              jinja_type_name(&item));
        if ((i > 0 && !jinja_sink_string(rt, sink, self->u.string)) ||
            !jinja_sink_string(rt, sink, item.u.string))
            return false;
    }
    return jinja_sink_finish(rt, sink, ret);
}

METHOD(str_format)
{
    return jinja_format_braces(rt, self->u.string, args, ret);
}

/* ljust, rjust, zfill */
static bool justify(struct jinja_rt *rt, const struct jinja_string *s, int64_t width,
                    const struct jinja_string *fill, bool right, struct jinja_value *ret)
{
    size_t n;
    struct jinja_value pad;
    if (!jinja_string_chars(rt, (struct jinja_string *)s, &n))
        return false;
    int64_t missing = width > (int64_t)n ? width - (int64_t)n : 0;
    if (!jinja_string_repeat(rt, fill, missing, &pad))
        return false;
    struct jinja_sink *sink = jinja_sink_take(rt);
    return sink && (!right || jinja_sink_string(rt, sink, pad.u.string)) &&
           jinja_sink_string(rt, sink, s) && (right || jinja_sink_string(rt, sink, pad.u.string)) &&
           jinja_sink_finish(rt, sink, ret);
}

static bool justify_method(struct jinja_rt *rt, const struct jinja_value *self,
                           const struct jinja_args *args, bool right, struct jinja_value *ret)
{
    struct jinja_string *fill, space = {.bytes = " ", .len = 1};
    int64_t width;
    size_t n;
    if (!int_arg(rt, args, 0, 0, &width) || !optional_text(rt, args, 1, &fill))
        return false;
    if (!fill)
        fill = &space;
    if (!jinja_string_chars(rt, fill, &n))
        return false;
    if (n != 1)
        return jinja_fail(rt, "The fill character must be exactly one character long");
    return justify(rt, self->u.string, width, fill, right, ret);
}

METHOD(str_ljust)
{
    return justify_method(rt, self, args, false, ret);
}

METHOD(str_rjust)
{
    return justify_method(rt, self, args, true, ret);
}

METHOD(str_zfill)
{
    const struct jinja_string *s = self->u.string;
    struct jinja_string zero = {.bytes = "0", .len = 1};
    struct jinja_value digits, sign;
    int64_t width;
    if (!int_arg(rt, args, 0, 0, &width))
        return false;
    size_t n_sign = s->len > 0 && (s->bytes[0] == '-' || s->bytes[0] == '+');
    if (!jinja_string_part(rt, s, 0, n_sign, &sign) ||
        !jinja_string_part(rt, s, n_sign, s->len - n_sign, &digits) ||
        !justify(rt, digits.u.string, width > 0 ? width - (int64_t)n_sign : 0, &zero, true,
                 &digits))
        return false;
    return jinja_binary(rt, OP_ADD, &sign, &digits, ret);
}

/* A string whose characters all pass, and that is not empty. */
static bool all_chars(struct jinja_rt *rt, const struct jinja_value *self, bool (*is)(uint32_t),
                      struct jinja_value *ret)
{
    const struct jinja_string *s = self->u.string;
    bool all = s->len > 0;
    if (!jinja_work(rt, s->len))
        return false;
    for (size_t at = 0; at < s->len && all;) {
        unsigned len;
        all = is(jinja_char(s->bytes + at, &len));
        at += len;
    }
    *ret = value_bool(all);
    return true;
}

static bool is_alnum(uint32_t c)
{
    return jinja_is_alpha(c) || jinja_is_numeric(c);
}

#define CHARS_METHOD(name, predicate)               \
    METHOD(name)                                    \
    {                                               \
        (void)args;                                 \
        return all_chars(rt, self, predicate, ret); \
    }
CHARS_METHOD(str_isalpha, jinja_is_alpha)
CHARS_METHOD(str_isdigit, jinja_is_digit)
CHARS_METHOD(str_isdecimal, jinja_is_decimal)
CHARS_METHOD(str_isnumeric, jinja_is_numeric)
CHARS_METHOD(str_isalnum, is_alnum)
CHARS_METHOD(str_isspace, jinja_is_space)

METHOD(str_islower)
{
    return jinja_call_function(rt, jinja_test_find("lower", 5), self, args, ret);
}

METHOD(str_isupper)
{
    return jinja_call_function(rt, jinja_test_find("upper", 5), self, args, ret);
}

const struct jinja_function jinja_string_methods[] = {
    {"capitalize", str_capitalize, "", 0, VALUE_STR},
    {"count", str_count, "sub start end", 1, VALUE_STR},
    {"endswith", str_endswith, "suffix start end", 1, VALUE_STR},
    {"find", str_find, "sub start end", 1, VALUE_STR},
    {"format", str_format, NULL, 0, VALUE_STR},
    {"index", str_index, "sub start end", 1, VALUE_STR},
    {"isalnum", str_isalnum, "", 0, VALUE_STR},
    {"isalpha", str_isalpha, "", 0, VALUE_STR},
    {"isdecimal", str_isdecimal, "", 0, VALUE_STR},
    {"isdigit", str_isdigit, "", 0, VALUE_STR},
    {"islower", str_islower, "", 0, VALUE_STR},
    {"isnumeric", str_isnumeric, "", 0, VALUE_STR},
    {"isspace", str_isspace, "", 0, VALUE_STR},
    {"isupper", str_isupper, "", 0, VALUE_STR},
    {"join", str_join, "iterable", 1, VALUE_STR},
    {"ljust", str_ljust, "width fillchar", 1, VALUE_STR},
    {"lower", str_lower, "", 0, VALUE_STR},
    {"lstrip", str_lstrip, "chars", 0, VALUE_STR},
    {"partition", str_partition, "sep", 1, VALUE_STR},
    {"removeprefix", str_removeprefix, "prefix", 1, VALUE_STR},
    {"removesuffix", str_removesuffix, "suffix", 1, VALUE_STR},
    {"replace", str_replace, "old new count", 2, VALUE_STR},
    {"rfind", str_rfind, "sub start end", 1, VALUE_STR},
    {"rindex", str_rindex, "sub start end", 1, VALUE_STR},
    {"rjust", str_rjust, "width fillchar", 1, VALUE_STR},
    {"rpartition", str_rpartition, "sep", 1, VALUE_STR},
    {"rsplit", str_rsplit, "sep maxsplit", 0, VALUE_STR},
    {"rstrip", str_rstrip, "chars", 0, VALUE_STR},
    {"split", str_split, "sep maxsplit", 0, VALUE_STR},
    {"splitlines", str_splitlines, "keepends", 0, VALUE_STR},
    {"startswith", str_startswith, "prefix start end", 1, VALUE_STR},
    {"strip", str_strip, "chars", 0, VALUE_STR},
    {"swapcase", str_swapcase, "", 0, VALUE_STR},
    {"title", str_title, "", 0, VALUE_STR},
    {"upper", str_upper, "", 0, VALUE_STR},
    {"zfill", str_zfill, "width", 1, VALUE_STR},
    {.name = NULL},
};
