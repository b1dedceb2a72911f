/*
 * Python's arithmetic on 64-bit integers and doubles, with + and * of sequences and % of strings,
 * and the reading of numbers.  Integer overflow is an error.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "jinja_ops_priv.h"

static const char *const op_names[OP_COUNT] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

static bool overflow(struct jinja_rt *rt)
{
    return jinja_fail(rt, "integer overflow: numbers have 64 bits here");
}

static bool int_floor_div(struct jinja_rt *rt, int64_t a, int64_t b, bool want_mod,
                          struct jinja_value *ret)
{
    if (b == 0)
        return jinja_fail(rt, "integer division or modulo by zero");
    if (b == -1) {
        int64_t negated;
        if (want_mod)
            *ret = value_int(0);
        else if (__builtin_sub_overflow((int64_t)0, a, &negated))
            return overflow(rt);
        else
            *ret = value_int(negated);
        return true;
    }
    int64_t quotient = a / b, rest = a % b;
    if (rest != 0 && (rest < 0) != (b < 0)) {
        quotient--;
        rest += b;
    }
    *ret = value_int(want_mod ? rest : quotient);
    return true;
}

static bool int_power(struct jinja_rt *rt, int64_t base, int64_t exponent, struct jinja_value *ret)
{
    int64_t result = 1;
    if (exponent < 0) {
        if (base == 0)
            return jinja_fail(rt, "0.0 cannot be raised to a negative power");
        *ret = value_real(pow((double)base, (double)exponent));
        return true;
    }
    if (base == 1 || base == -1)
        exponent &= 1; /* same result, and no loop */
    for (; exponent > 0 && result != 0; exponent--) {
        if (__builtin_mul_overflow(result, base, &result))
            return overflow(rt);
    }
    *ret = value_int(result);
    return true;
}

static bool binary_int(struct jinja_rt *rt, enum jinja_op op, int64_t a, int64_t b,
                       struct jinja_value *ret)
{
    int64_t result = 0;
    bool over = false;
    switch (op) {
    case OP_ADD:
        over = __builtin_add_overflow(a, b, &result);
        break;
    case OP_SUB:
        over = __builtin_sub_overflow(a, b, &result);
        break;
    case OP_MUL:
        over = __builtin_mul_overflow(a, b, &result);
        break;
    case OP_DIV:
        if (b == 0)
            return jinja_fail(rt, "division by zero");
        *ret = value_real((double)((long double)a / (long double)b));
        return true;
    case OP_FLOORDIV:
    case OP_MOD:
        return int_floor_div(rt, a, b, op == OP_MOD, ret);
    default:
        return int_power(rt, a, b, ret);
    }
    if (over)
        return overflow(rt);
    *ret = value_int(result);
    return true;
}

static double real_mod(double a, double b)
{
    double rest = fmod(a, b);
    if (rest == 0)
        return copysign(0.0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

static double real_floor_div(double a, double b)
{
    double quotient = (a - fmod(a, b)) / b;
    double rest = fmod(a, b);
    if (rest != 0 && (rest < 0) != (b < 0))
        quotient -= 1;
    if (quotient == 0)
        return copysign(0.0, a / b);
    double floored = floor(quotient);
    return quotient - floored > 0.5 ? floored + 1 : floored;
}

static bool real_power(struct jinja_rt *rt, double a, double b, struct jinja_value *ret)
{
    if (a == 0 && b < 0)
        return jinja_fail(rt, "0.0 cannot be raised to a negative power");
    if (a < 0 && isfinite(a) && isfinite(b) && b != floor(b))
        return jinja_fail(rt, "the power is a complex number");
    double result = pow(a, b);
    if (isinf(result) && isfinite(a) && isfinite(b))
        return jinja_fail(rt, "numerical result out of range");
    *ret = value_real(result);
    return true;
}

static bool binary_real(struct jinja_rt *rt, enum jinja_op op, double a, double b,
                        struct jinja_value *ret)
{
    switch (op) {
    case OP_ADD:
        *ret = value_real(a + b);
        return true;
    case OP_SUB:
        *ret = value_real(a - b);
        return true;
    case OP_MUL:
        *ret = value_real(a * b);
        return true;
    case OP_POW:
        return real_power(rt, a, b, ret);
    default:
        break;
    }
    if (b == 0)
        return jinja_fail(rt, "float %s",
                          op == OP_DIV   ? "division by zero"
                          : op == OP_MOD ? "modulo by zero"
                                         : "floor division by zero");
    if (op == OP_DIV)
        *ret = value_real(a / b);
    else
        *ret = value_real(op == OP_MOD ? real_mod(a, b) : real_floor_div(a, b));
    return true;
}

static bool real_of(const struct jinja_value *v, double *ret)
{
    int64_t integer;
    if (value_is_int(v, &integer))
        *ret = (double)integer;
    else if (v->kind == VALUE_FLOAT)
        *ret = v->u.real;
    else
        return false;
    return true;
}

static bool add_sequences(struct jinja_rt *rt, const struct jinja_value *a,
                          const struct jinja_value *b, struct jinja_value *ret)
{
    if (a->kind == VALUE_STR) {
        struct jinja_sink *sink = jinja_sink_take(rt);
        return sink && jinja_sink_string(rt, sink, a->u.string) &&
               jinja_sink_string(rt, sink, b->u.string) && jinja_sink_finish(rt, sink, ret);
    }
    const struct jinja_list *x = a->u.list, *y = b->u.list;
    struct jinja_list *sum = jinja_list_new(rt, x->len + y->len);
    if (!sum || !jinja_step(rt, (x->len + y->len) / 8 + 1))
        return false;
    for (size_t i = 0; i < x->len; i++)
        sum->items[sum->len++] = x->items[i];
    for (size_t i = 0; i < y->len; i++)
        sum->items[sum->len++] = y->items[i];
    *ret = (struct jinja_value){.kind = a->kind, .u.list = sum};
    return true;
}

static bool repeat_sequence(struct jinja_rt *rt, const struct jinja_value *v, int64_t n,
                            struct jinja_value *ret)
{
    if (n < 0)
        n = 0;
    if (v->kind == VALUE_STR)
        return jinja_string_repeat(rt, v->u.string, n, ret);
    const struct jinja_list *from = v->u.list;
    if (from->len > 0 &&
        (uint64_t)n > rt->limits.max_memory_bytes / sizeof *from->items / from->len)
        return jinja_fail_limit(rt, "the template takes too much memory");
    size_t len = from->len * (size_t)n;
    struct jinja_list *list = jinja_list_new(rt, len);
    if (!list || !jinja_step(rt, len / 8 + 1))
        return false;
    for (size_t i = 0; i < len; i++)
        list->items[list->len++] = from->items[i % from->len];
    *ret = (struct jinja_value){.kind = v->kind, .u.list = list};
    return true;
}

static bool is_sequence(const struct jinja_value *v)
{
    return v->kind == VALUE_STR || v->kind == VALUE_LIST || v->kind == VALUE_TUPLE;
}

bool jinja_binary(struct jinja_rt *rt, enum jinja_op op, const struct jinja_value *a,
                  const struct jinja_value *b, struct jinja_value *ret)
{
    int64_t i, j;
    double x, y;
    if (op == OP_MOD && a->kind == VALUE_STR)
        return jinja_format_percent(rt, a->u.string, b, ret);
    if (a->kind == VALUE_UNDEFINED || b->kind == VALUE_UNDEFINED)
        return jinja_used_undefined(rt, a->kind == VALUE_UNDEFINED ? a : b);
    if (value_is_int(a, &i) && value_is_int(b, &j))
        return binary_int(rt, op, i, j, ret);
    if (real_of(a, &x) && real_of(b, &y))
        return binary_real(rt, op, x, y, ret);
    if (op == OP_ADD && is_sequence(a) && a->kind == b->kind)
        return add_sequences(rt, a, b, ret);
    if (op == OP_MUL && is_sequence(a) && value_is_int(b, &j))
        return repeat_sequence(rt, a, j, ret);
    if (op == OP_MUL && is_sequence(b) && value_is_int(a, &i))
        return repeat_sequence(rt, b, i, ret);
    if (op == OP_ADD && is_sequence(a))
        return jinja_fail(rt, "can only concatenate %s (not \"%s\") to %s", jinja_type_name(a),
                          jinja_type_name(b), jinja_type_name(a));
    return jinja_fail(rt, "unsupported operand type(s) for %s: '%s' and '%s'", op_names[op],
                      jinja_type_name(a), jinja_type_name(b));
}

bool jinja_negate(struct jinja_rt *rt, const struct jinja_value *v, bool plus,
                  struct jinja_value *ret)
{
    int64_t i;
    if (v->kind == VALUE_UNDEFINED)
        return jinja_used_undefined(rt, v);
    if (value_is_int(v, &i)) {
        if (!plus && __builtin_sub_overflow((int64_t)0, i, &i))
            return overflow(rt);
        *ret = value_int(i);
        return true;
    }
    if (v->kind != VALUE_FLOAT)
        return jinja_fail(rt, "bad operand type for unary %s: '%s'", plus ? "+" : "-",
                          jinja_type_name(v));
    *ret = value_real(plus ? v->u.real : -v->u.real);
    return true;
}

/* Drops white space at both ends; the bytes of s stay where they are. */
static void bare(const struct jinja_string *s, size_t *ret_from, size_t *ret_to)
{
    size_t from = 0, to = s->len;
    unsigned len;
    while (from < to && jinja_is_space(jinja_char(s->bytes + from, &len)))
        from += len;
    while (to > from && (unsigned char)s->bytes[to - 1] < 0x80 &&
           jinja_is_space((unsigned char)s->bytes[to - 1]))
        to--;
    *ret_from = from;
    *ret_to = to;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'Z')
        return c - 'A' + 10;
    return 99;
}

/* A prefix 0x, 0o, 0b that fits the base, which is set when it is 0. */
static size_t skip_prefix(const char *at, size_t len, int *base)
{
    int named = 0;
    if (len >= 2 && at[0] == '0')
        named = (at[1] | 32) == 'x' ? 16 : (at[1] | 32) == 'o' ? 8 : (at[1] | 32) == 'b' ? 2 : 0;
    if (named != 0 && (*base == 0 || *base == named)) {
        *base = named;
        return 2;
    }
    if (*base == 0)
        *base = 10;
    return 0;
}

bool jinja_parse_int(const struct jinja_string *s, int base, int64_t *ret)
{
    size_t at, end;
    bare(s, &at, &end);
    bool negative = at < end && s->bytes[at] == '-';
    if (at < end && (s->bytes[at] == '-' || s->bytes[at] == '+'))
        at++;
    size_t prefix = skip_prefix(s->bytes + at, end - at, &base);
    at += prefix;
    int64_t value = 0;
    bool after_digit = prefix > 0; /* an underscore may follow a prefix */
    size_t n_digits = 0;
    for (; at < end; at++) {
        if (s->bytes[at] == '_' && after_digit) {
            after_digit = false;
            continue;
        }
        int digit = digit_value(s->bytes[at]);
        if (digit >= base || __builtin_mul_overflow(value, (int64_t)base, &value) ||
            __builtin_sub_overflow(value, (int64_t)digit, &value))
            return false;
        after_digit = true;
        n_digits++;
    }
    if (n_digits == 0 || !after_digit)
        return false;
    if (!negative && __builtin_sub_overflow((int64_t)0, value, &value))
        return false;
    *ret = value;
    return true;
}

/* Whether text is what Python's float() takes; copies it without underscores. */
static bool real_syntax(const char *text, size_t len, char *out, size_t size)
{
    size_t n = 0, at = 0;
    bool digit_before = false, any = false;
    if (len >= size)
        return false;
    if (at < len && (text[at] == '-' || text[at] == '+'))
        out[n++] = text[at++];
    if (len - at >= 3 && (strncasecmp(text + at, "inf", len - at) == 0 ||
                          strncasecmp(text + at, "nan", len - at) == 0 ||
                          strncasecmp(text + at, "infinity", len - at) == 0)) {
        if (len - at != 3 && len - at != 8)
            return false;
        memcpy(out + n, text + at, len - at);
        out[n + len - at] = '\0';
        return true;
    }
    for (; at < len; at++) {
        char c = text[at];
        if (c == '_') {
            if (!digit_before || at + 1 >= len || text[at + 1] < '0' || text[at + 1] > '9')
                return false;
            continue;
        }
        digit_before = c >= '0' && c <= '9';
        any = any || digit_before;
        if (!digit_before && c != '.' && c != 'e' && c != 'E' && c != '-' && c != '+')
            return false;
        out[n++] = c;
    }
    out[n] = '\0';
    return any;
}

bool jinja_parse_real(const struct jinja_string *s, double *ret)
{
    size_t from, to;
    char text[512];
    bare(s, &from, &to);
    if (!real_syntax(s->bytes + from, to - from, text, sizeof text))
        return false;
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0')
        return false;
    *ret = value;
    return true;
}
