/*
 * The tests of Jinja2 (`x is defined`, also named by select and reject).
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "jinja_ops_priv.h"

#define TEST(name)                                                        \
    static bool name(struct jinja_rt *rt, const struct jinja_value *self, \
                     const struct jinja_args *args, struct jinja_value *ret)

/* A test that looks at the kind of the value alone. */
#define KIND_TEST(name, condition)    \
    TEST(name)                        \
    {                                 \
        (void)rt;                     \
        (void)args;                   \
        *ret = value_bool(condition); \
        return true;                  \
    }

KIND_TEST(test_defined, self->kind != VALUE_UNDEFINED)
KIND_TEST(test_undefined, self->kind == VALUE_UNDEFINED)
KIND_TEST(test_none, self->kind == VALUE_NONE)
KIND_TEST(test_boolean, self->kind == VALUE_BOOL)
KIND_TEST(test_true, self->kind == VALUE_BOOL && self->u.boolean)
KIND_TEST(test_false, self->kind == VALUE_BOOL && !self->u.boolean)
KIND_TEST(test_integer, self->kind == VALUE_INT)
KIND_TEST(test_float, self->kind == VALUE_FLOAT)
KIND_TEST(test_number,
          self->kind == VALUE_INT || self->kind == VALUE_FLOAT || self->kind == VALUE_BOOL)
KIND_TEST(test_string, self->kind == VALUE_STR)
KIND_TEST(test_mapping, self->kind == VALUE_DICT)
KIND_TEST(test_sequence, self->kind == VALUE_STR || self->kind == VALUE_LIST ||
                             self->kind == VALUE_TUPLE || self->kind == VALUE_DICT ||
                             self->kind == VALUE_RANGE || self->kind == VALUE_UNDEFINED)
KIND_TEST(test_iterable, self->kind == VALUE_STR || self->kind == VALUE_LIST ||
                             self->kind == VALUE_TUPLE || self->kind == VALUE_DICT ||
                             self->kind == VALUE_RANGE || self->kind == VALUE_UNDEFINED ||
                             self->kind == VALUE_VIEW || self->kind == VALUE_ITER ||
                             self->kind == VALUE_LOOP)
KIND_TEST(test_callable, self->kind == VALUE_MACRO || self->kind == VALUE_METHOD ||
                             self->kind == VALUE_FUNCTION || self->kind == VALUE_LOOP ||
                             self->kind == VALUE_CYCLER || self->kind == VALUE_JOINER ||
                             self->kind == VALUE_UNDEFINED)
KIND_TEST(test_escaped, self == NULL) /* no markup here */

/* Python's islower and isupper: all cased characters are, and there is one. */
static bool all_cased(struct jinja_rt *rt, const struct jinja_value *self, bool upper,
                      struct jinja_value *ret)
{
    struct jinja_string *s;
    if (!jinja_to_string(rt, self, &s) || !jinja_work(rt, s->len))
        return false;
    bool any = false, all = true;
    for (size_t at = 0; at < s->len && all;) {
        unsigned len;
        uint32_t c = jinja_char(s->bytes + at, &len);
        bool fits = upper ? jinja_is_upper(c) : jinja_is_lower(c);
        any = any || fits;
        all = fits || !jinja_is_cased(c);
        at += len;
    }
    *ret = value_bool(any && all);
    return true;
}

TEST(test_lower)
{
    (void)args;
    return all_cased(rt, self, false, ret);
}

TEST(test_upper)
{
    (void)args;
    return all_cased(rt, self, true, ret);
}

static bool remainder_is(struct jinja_rt *rt, const struct jinja_value *self,
                         const struct jinja_value *by, int64_t wanted, struct jinja_value *ret)
{
    struct jinja_value rest, value = value_int(wanted);
    bool equal;
    if (!jinja_binary(rt, OP_MOD, self, by, &rest) || !jinja_equal(rt, &rest, &value, &equal))
        return false;
    *ret = value_bool(equal);
    return true;
}

TEST(test_odd)
{
    struct jinja_value two = value_int(2);
    (void)args;
    return remainder_is(rt, self, &two, 1, ret);
}

TEST(test_even)
{
    struct jinja_value two = value_int(2);
    (void)args;
    return remainder_is(rt, self, &two, 0, ret);
}

TEST(test_divisibleby)
{
    return remainder_is(rt, self, &args->pos[0], 0, ret);
}

TEST(test_eq)
{
    bool equal;
    if (!jinja_equal(rt, self, &args->pos[0], &equal))
        return false;
    *ret = value_bool(equal);
    return true;
}

TEST(test_ne)
{
    bool equal;
    if (!jinja_equal(rt, self, &args->pos[0], &equal))
        return false;
    *ret = value_bool(!equal);
    return true;
}

TEST(test_lt)
{
    int order;
    if (!jinja_order(rt, self, &args->pos[0], "<", &order))
        return false;
    *ret = value_bool(order < 0);
    return true;
}

TEST(test_le)
{
    int order;
    if (!jinja_order(rt, self, &args->pos[0], "<=", &order))
        return false;
    *ret = value_bool(order <= 0);
    return true;
}

TEST(test_gt)
{
    int order;
    if (!jinja_order(rt, self, &args->pos[0], ">", &order))
        return false;
    *ret = value_bool(order == 1);
    return true;
}

TEST(test_ge)
{
    int order;
    if (!jinja_order(rt, self, &args->pos[0], ">=", &order))
        return false;
    *ret = value_bool(order == 0 || order == 1);
    return true;
}

TEST(test_in)
{
    bool in;
    if (!jinja_contains(rt, self, &args->pos[0], &in))
        return false;
    *ret = value_bool(in);
    return true;
}

TEST(test_sameas)
{
    (void)rt;
    *ret = value_bool(jinja_same(self, &args->pos[0]));
    return true;
}

TEST(test_filter)
{
    (void)rt;
    (void)args;
    *ret = value_bool(self->kind == VALUE_STR &&
                      jinja_filter_find(self->u.string->bytes, self->u.string->len));
    return true;
}

TEST(test_test)
{
    (void)rt;
    (void)args;
    *ret = value_bool(self->kind == VALUE_STR &&
                      jinja_test_find(self->u.string->bytes, self->u.string->len));
    return true;
}

static const struct jinja_function tests[] = {
    {.name = "boolean", .call = test_boolean, .params = ""},
    {.name = "callable", .call = test_callable, .params = ""},
    {.name = "defined", .call = test_defined, .params = ""},
    {.name = "divisibleby", .call = test_divisibleby, .params = "num", .n_required = 1},
    {.name = "eq", .call = test_eq, .params = "b", .n_required = 1},
    {.name = "equalto", .call = test_eq, .params = "b", .n_required = 1},
    {.name = "==", .call = test_eq, .params = "b", .n_required = 1},
    {.name = "escaped", .call = test_escaped, .params = ""},
    {.name = "even", .call = test_even, .params = ""},
    {.name = "false", .call = test_false, .params = ""},
    {.name = "filter", .call = test_filter, .params = ""},
    {.name = "float", .call = test_float, .params = ""},
    {.name = "ge", .call = test_ge, .params = "b", .n_required = 1},
    {.name = ">=", .call = test_ge, .params = "b", .n_required = 1},
    {.name = "gt", .call = test_gt, .params = "b", .n_required = 1},
    {.name = "greaterthan", .call = test_gt, .params = "b", .n_required = 1},
    {.name = ">", .call = test_gt, .params = "b", .n_required = 1},
    {.name = "in", .call = test_in, .params = "seq", .n_required = 1},
    {.name = "integer", .call = test_integer, .params = ""},
    {.name = "iterable", .call = test_iterable, .params = ""},
    {.name = "le", .call = test_le, .params = "b", .n_required = 1},
    {.name = "<=", .call = test_le, .params = "b", .n_required = 1},
    {.name = "lower", .call = test_lower, .params = ""},
    {.name = "lt", .call = test_lt, .params = "b", .n_required = 1},
    {.name = "lessthan", .call = test_lt, .params = "b", .n_required = 1},
    {.name = "<", .call = test_lt, .params = "b", .n_required = 1},
    {.name = "mapping", .call = test_mapping, .params = ""},
    {.name = "ne", .call = test_ne, .params = "b", .n_required = 1},
    {.name = "!=", .call = test_ne, .params = "b", .n_required = 1},
    {.name = "none", .call = test_none, .params = ""},
    {.name = "number", .call = test_number, .params = ""},
    {.name = "odd", .call = test_odd, .params = ""},
    {.name = "sameas", .call = test_sameas, .params = "other", .n_required = 1},
    {.name = "sequence", .call = test_sequence, .params = ""},
    {.name = "string", .call = test_string, .params = ""},
    {.name = "test", .call = test_test, .params = ""},
    {.name = "true", .call = test_true, .params = ""},
    {.name = "undefined", .call = test_undefined, .params = ""},
    {.name = "upper", .call = test_upper, .params = ""},
};

const struct jinja_function *jinja_test_find(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (jinja_name_is(name, len, tests[i].name))
            return &tests[i];
    }
    return NULL;
}
