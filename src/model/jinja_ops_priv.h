#ifndef TELLERD_MODEL_JINJA_OPS_PRIV_H
#define TELLERD_MODEL_JINJA_OPS_PRIV_H

/*
 * Operations on values of the template interpreter: strings with provenance, printing, Python's
 * operators, and the tables of filters, tests, methods and functions.  Those that return bool
 * return false after an error was put into rt.
 */
#include "jinja_priv.h"

/* jinja_string.c: building.  A taken sink is given back by jinja_sink_finish or jinja_sink_give. */
struct jinja_sink *jinja_sink_take(struct jinja_rt *rt); /* NULL on error */
void jinja_sink_give(struct jinja_rt *rt, struct jinja_sink *sink);
bool jinja_sink_add(struct jinja_rt *rt, struct jinja_sink *sink, const char *bytes, size_t len,
                    bool trusted);
bool jinja_sink_text(struct jinja_rt *rt, struct jinja_sink *sink,
                     const char *text); /* untrusted */
bool jinja_sink_part(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_string *s,
                     size_t from, size_t len);
bool jinja_sink_string(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_string *s);
bool jinja_sink_finish(struct jinja_rt *rt, struct jinja_sink *sink, struct jinja_value *ret);

/* jinja_string.c: strings.  jinja_string_new borrows bytes for the rendering's life. */
bool jinja_string_new(struct jinja_rt *rt, const char *bytes, size_t len, bool trusted,
                      struct jinja_value *ret);
bool jinja_string_part(struct jinja_rt *rt, const struct jinja_string *s, size_t from, size_t len,
                       struct jinja_value *ret);
bool jinja_string_trusted_at(const struct jinja_string *s, size_t at);
bool jinja_string_chars(struct jinja_rt *rt, struct jinja_string *s, size_t *ret); /* code points */
/* Byte offset of code point number `index` (at most the number of code points). */
bool jinja_string_offset(struct jinja_rt *rt, struct jinja_string *s, size_t index, size_t *ret);
/* First (or last) place of needle in s[from, to); SIZE_MAX when none. */
bool jinja_string_find(struct jinja_rt *rt, const struct jinja_string *s,
                       const struct jinja_string *needle, size_t from, size_t to, bool last,
                       size_t *ret);
enum strip_side { STRIP_LEFT = 1, STRIP_RIGHT = 2, STRIP_BOTH = 3 };
/* chars NULL: white space. */
bool jinja_string_strip(struct jinja_rt *rt, const struct jinja_string *s,
                        const struct jinja_string *chars, unsigned sides, struct jinja_value *ret);
bool jinja_string_replace(struct jinja_rt *rt, const struct jinja_string *s,
                          const struct jinja_string *old, const struct jinja_string *by,
                          int64_t max, struct jinja_value *ret);
bool jinja_string_repeat(struct jinja_rt *rt, const struct jinja_string *s, int64_t n,
                         struct jinja_value *ret);
bool jinja_string_splitlines(struct jinja_rt *rt, const struct jinja_string *s, bool keep,
                             struct jinja_list **ret);

/* jinja_text.c: characters as Python classes them */
uint32_t jinja_char(const char *at, unsigned *ret_len); /* at: well-formed */
bool jinja_is_space(uint32_t c);
bool jinja_is_alpha(uint32_t c);
bool jinja_is_digit(uint32_t c);
bool jinja_is_decimal(uint32_t c);
bool jinja_is_numeric(uint32_t c);
bool jinja_is_cased(uint32_t c);
bool jinja_is_lower(uint32_t c);
bool jinja_is_upper(uint32_t c);
bool jinja_is_printable(uint32_t c);
enum case_rule { CASE_UPPER, CASE_LOWER, CASE_TITLE, CASE_CAPITALIZE, CASE_SWAP };
bool jinja_string_case(struct jinja_rt *rt, const struct jinja_string *s, enum case_rule rule,
                       struct jinja_value *ret);
/* Each word (as the filter `title` parts them) with a capital, the rest in lower case. */
bool jinja_string_words(struct jinja_rt *rt, const struct jinja_string *s, struct jinja_value *ret);

/* jinja_print.c */
const char *jinja_type_name(const struct jinja_value *v);
enum { JINJA_NUMBER_MAX = 40 };
size_t jinja_format_int(int64_t value, char out[JINJA_NUMBER_MAX]);
size_t jinja_format_real(double value, char out[JINJA_NUMBER_MAX]);
bool jinja_print(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_value *v);
bool jinja_repr(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_value *v);
bool jinja_to_string(struct jinja_rt *rt, const struct jinja_value *v, struct jinja_string **ret);
/* As Python's json.dumps; indent NULL: on one line. */
struct jinja_json_style {
    bool ascii;
    bool sort_keys;
    const struct jinja_string *indent;
    const struct jinja_string *item_separator; /* NULL: the default */
    const struct jinja_string *key_separator;
};
bool jinja_dump_json(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_value *v,
                     const struct jinja_json_style *style);

/* jinja_ops.c */
bool jinja_is_true(const struct jinja_value *v);
bool jinja_equal(struct jinja_rt *rt, const struct jinja_value *a, const struct jinja_value *b,
                 bool *ret);
bool jinja_same(const struct jinja_value *a, const struct jinja_value *b);
/* *ret is -1, 0, 1, or ORDER_NONE beside a NaN; op names the operator in the error for values that
 * have no order. */
enum { ORDER_NONE = 2 };
bool jinja_order(struct jinja_rt *rt, const struct jinja_value *a, const struct jinja_value *b,
                 const char *op, int *ret);
bool jinja_contains(struct jinja_rt *rt, const struct jinja_value *item,
                    const struct jinja_value *in, bool *ret);
bool jinja_length(struct jinja_rt *rt, const struct jinja_value *v, size_t *ret);
bool jinja_used_undefined(struct jinja_rt *rt, const struct jinja_value *v); /* always false */

/* jinja_member.c */
bool jinja_get_attr(struct jinja_rt *rt, const struct jinja_value *v, const char *name, size_t len,
                    struct jinja_value *ret);
bool jinja_get_item(struct jinja_rt *rt, const struct jinja_value *v, const struct jinja_value *key,
                    struct jinja_value *ret);
bool jinja_get_slice(struct jinja_rt *rt, const struct jinja_value *v,
                     const struct jinja_value bounds[3], struct jinja_value *ret);
/* "a.0.b" as the attribute arguments of filters: each part by jinja_get_item. */
bool jinja_get_path(struct jinja_rt *rt, const struct jinja_value *v,
                    const struct jinja_value *path, const struct jinja_value *or_else,
                    struct jinja_value *ret);
struct jinja_cursor {
    struct jinja_value source;
    size_t at;
    size_t len; /* items still to come, at the start */
};
bool jinja_iterate(struct jinja_rt *rt, const struct jinja_value *v, struct jinja_cursor *ret);
bool jinja_next(struct jinja_rt *rt, struct jinja_cursor *cursor, struct jinja_value *ret,
                bool *ret_more);
bool jinja_to_list(struct jinja_rt *rt, const struct jinja_value *v, struct jinja_list **ret);

/* jinja_number.c */
enum jinja_op { OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_FLOORDIV, OP_MOD, OP_POW, OP_COUNT };
bool jinja_binary(struct jinja_rt *rt, enum jinja_op op, const struct jinja_value *a,
                  const struct jinja_value *b, struct jinja_value *ret);
bool jinja_negate(struct jinja_rt *rt, const struct jinja_value *v, bool plus,
                  struct jinja_value *ret);
/* False without an error when the text is no number in that base. */
bool jinja_parse_int(const struct jinja_string *s, int base, int64_t *ret);
bool jinja_parse_real(const struct jinja_string *s, double *ret);

/* jinja_format.c: 'a %s' % b, and 'a {}'.format(b) */
bool jinja_format_percent(struct jinja_rt *rt, const struct jinja_string *format,
                          const struct jinja_value *values, struct jinja_value *ret);
bool jinja_format_braces(struct jinja_rt *rt, const struct jinja_string *format,
                         const struct jinja_args *args, struct jinja_value *ret);

/* jinja_time.c: strftime_now */
bool jinja_format_time(struct jinja_rt *rt, const struct jinja_string *format,
                       struct jinja_value *ret);

/* Tables: NULL when there is none of that name. */
const struct jinja_function *jinja_filter_find(const char *name, size_t len);
const struct jinja_function *jinja_test_find(const char *name, size_t len);
const struct jinja_function *jinja_global_find(const char *name, size_t len);
const struct jinja_function *jinja_method_find(enum value_kind kind, const char *name, size_t len);
bool jinja_method_known(const char *name, size_t len);                         /* of any kind */
bool jinja_method_refused(enum value_kind kind, const char *name, size_t len); /* would change it */
extern const struct jinja_function jinja_filters[], jinja_sequence_filters[];
extern const struct jinja_function jinja_string_methods[];

/* jinja_call.c */
bool jinja_call_function(struct jinja_rt *rt, const struct jinja_function *fn,
                         const struct jinja_value *self, const struct jinja_args *args,
                         struct jinja_value *ret);
bool jinja_call_value(struct jinja_rt *rt, const struct jinja_value *callee,
                      const struct jinja_args *args, struct jinja_value *ret);
/* jinja_exec.c */
bool jinja_call_macro(struct jinja_rt *rt, const struct jinja_closure *closure,
                      const struct jinja_args *args, struct jinja_value *ret);
bool jinja_loop_attr(struct jinja_rt *rt, struct jinja_loop *loop, const char *name, size_t len,
                     struct jinja_value *ret, bool *ret_found);
bool jinja_loop_call(struct jinja_rt *rt, struct jinja_loop *loop, bool cycle,
                     const struct jinja_args *args, struct jinja_value *ret);

static inline bool jinja_name_is(const char *name, size_t len, const char *text)
{
    size_t i = 0;
    while (i < len && text[i] != '\0' && text[i] == name[i])
        i++;
    return i == len && text[i] == '\0';
}

#endif
