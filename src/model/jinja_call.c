/*
 * Calls: arguments, their binding to the parameters of filters, tests, methods and functions, and
 * the functions that every template has.
 */
#include "config.h"

#include <string.h>

#include "jinja_exec_priv.h"

/* ---- arguments ---- */

static bool add_star(struct jinja_rt *rt, const struct jinja_node *node, struct jinja_scope *scope,
                     struct jinja_list *pos)
{
    struct jinja_value value;
    struct jinja_list *more;
    if (!node)
        return true;
    if (!jinja_eval(rt, node, scope, &value) || !jinja_to_list(rt, &value, &more) ||
        !jinja_step(rt, more->len))
        return false;
    for (size_t i = 0; i < more->len; i++) {
        if (!jinja_list_add(rt, pos, more->items[i]))
            return false;
    }
    return true;
}

static bool star_star(struct jinja_rt *rt, const struct jinja_node *node, struct jinja_scope *scope,
                      struct jinja_dict **ret)
{
    struct jinja_value value;
    *ret = NULL;
    if (!node)
        return true;
    if (!jinja_eval(rt, node, scope, &value))
        return false;
    if (value.kind != VALUE_DICT)
        return jinja_fail(rt, "argument after ** must be a mapping, not %s",
                          jinja_type_name(&value));
    for (size_t i = 0; i < value.u.dict->len; i++) {
        if (value.u.dict->pairs[i].key.kind != VALUE_STR)
            return jinja_fail(rt, "keywords must be strings");
    }
    *ret = value.u.dict;
    return jinja_step(rt, value.u.dict->len);
}

static bool eval_args(struct jinja_rt *rt, const struct node_args *node, struct jinja_scope *scope,
                      const struct jinja_value *caller, struct jinja_args *ret)
{
    struct jinja_dict *more;
    struct jinja_list *pos = jinja_list_new(rt, node->n_pos);
    if (!pos)
        return false;
    for (const struct jinja_node *arg = node->pos; arg; arg = arg->next) {
        struct jinja_value value;
        if (!jinja_eval(rt, arg, scope, &value) || !jinja_list_add(rt, pos, value))
            return false;
    }
    if (!add_star(rt, node->star, scope, pos))
        return false;
    size_t n_kw = 0, max_kw = node->n_kw + (caller != NULL);
    struct jinja_keyword *kw = jinja_alloc(rt, (max_kw + 1) * sizeof *kw);
    if (!kw)
        return false;
    for (const struct jinja_node *arg = node->kw; arg; arg = arg->next, n_kw++) {
        kw[n_kw].name = node->kw_names[n_kw]->bytes;
        kw[n_kw].len = node->kw_names[n_kw]->len;
        if (!jinja_eval(rt, arg, scope, &kw[n_kw].value))
            return false;
    }
    if (caller)
        kw[n_kw++] = (struct jinja_keyword){"caller", 6, *caller};
    if (!star_star(rt, node->star_star, scope, &more))
        return false;
    if (more && more->len > 0) {
        struct jinja_keyword *all = jinja_alloc(rt, (n_kw + more->len) * sizeof *all);
        if (!all)
            return false;
        memcpy(all, kw, n_kw * sizeof *kw);
        for (size_t i = 0; i < more->len; i++) {
            const struct jinja_string *name = more->pairs[i].key.u.string;
            all[n_kw++] = (struct jinja_keyword){name->bytes, name->len, more->pairs[i].value};
        }
        kw = all;
    }
    *ret = (struct jinja_args){pos->items, pos->len, kw, n_kw};
    return true;
}

bool jinja_eval_args(struct jinja_rt *rt, const struct node_args *node, struct jinja_scope *scope,
                     struct jinja_args *ret)
{
    *ret = (struct jinja_args){0};
    if (!node || (node->n_pos == 0 && node->n_kw == 0 && !node->star && !node->star_star))
        return true;
    return eval_args(rt, node, scope, NULL, ret);
}

/* The parameter of that name: its number, or -1. */
static int find_param(const char *params, const char *name, size_t len)
{
    int at = 0;
    for (const char *p = params; *p != '\0'; at++) {
        size_t n = strcspn(p, " ");
        if (n == len && memcmp(p, name, n) == 0)
            return at;
        p += n;
        p += strspn(p, " ");
    }
    return -1;
}

static int count_params(const char *params)
{
    int n = params[0] != '\0';
    for (const char *p = params; *p != '\0'; p++)
        n += *p == ' ';
    return n;
}

enum { MAX_BOUND = 8 };

static bool bind_args(struct jinja_rt *rt, const struct jinja_function *fn,
                      const struct jinja_args *args, struct jinja_value bound[MAX_BOUND],
                      int *ret_n)
{
    int n = count_params(fn->params);
    REQUIRE(n <= MAX_BOUND);
    if (args->n_pos > (size_t)n)
        return jinja_fail(rt, "'%s' takes at most %d argument%s (%zu given)", fn->name, n,
                          n == 1 ? "" : "s", args->n_pos);
    for (int i = 0; i < n; i++)
        bound[i] = (size_t)i < args->n_pos ? args->pos[i] : (struct jinja_value){0};
    for (size_t i = 0; i < args->n_kw; i++) {
        const struct jinja_keyword *kw = &args->kw[i];
        int at = find_param(fn->params, kw->name, kw->len);
        if (at < 0)
            return jinja_fail(rt, "'%s' has no argument '%.*s'", fn->name,
                              (int)(kw->len < 64 ? kw->len : 64), kw->name);
        if (bound[at].kind != VALUE_MISSING)
            return jinja_fail(rt, "'%s' got two values for '%.*s'", fn->name, (int)kw->len,
                              kw->name);
        bound[at] = kw->value;
    }
    for (int i = 0; i < fn->n_required; i++) {
        if (bound[i].kind == VALUE_MISSING)
            return jinja_fail(rt, "'%s' lacks an argument (%d needed)", fn->name,
                              (int)fn->n_required);
    }
    *ret_n = n;
    return true;
}

bool jinja_call_function(struct jinja_rt *rt, const struct jinja_function *fn,
                         const struct jinja_value *self, const struct jinja_args *args,
                         struct jinja_value *ret)
{
    struct jinja_value bound[MAX_BOUND];
    int n;
    if (!fn->params)
        return fn->call(rt, self, args, ret);
    if (!bind_args(rt, fn, args, bound, &n))
        return false;
    struct jinja_args given = {.pos = bound, .n_pos = (size_t)n};
    return fn->call(rt, self, &given, ret);
}

/* ---- calls ---- */

static bool call_cycler(struct jinja_rt *rt, const struct jinja_value *v, struct jinja_value *ret)
{
    struct jinja_cycler *c = v->u.cycler;
    if (v->kind == VALUE_JOINER) {
        if (c->at++ == 0)
            return jinja_string_new(rt, "", 0, true, ret);
        *ret = c->items->items[0];
        return true;
    }
    *ret = c->items->items[c->at];
    c->at = (c->at + 1) % c->items->len;
    return true;
}

bool jinja_call_value(struct jinja_rt *rt, const struct jinja_value *callee,
                      const struct jinja_args *args, struct jinja_value *ret)
{
    switch (callee->kind) {
    case VALUE_FUNCTION:
        return jinja_call_function(rt, callee->u.function, NULL, args, ret);
    case VALUE_METHOD:
        return jinja_call_function(rt, callee->u.method->function, &callee->u.method->self, args,
                                   ret);
    case VALUE_MACRO:
        return jinja_call_macro(rt, callee->u.closure, args, ret);
    case VALUE_CYCLER:
    case VALUE_JOINER:
        if (args->n_pos + args->n_kw > 0)
            return jinja_fail(rt, "'%s' takes no arguments", jinja_type_name(callee));
        return call_cycler(rt, callee, ret);
    case VALUE_UNDEFINED:
        return jinja_used_undefined(rt, callee);
    default:
        return jinja_fail(rt, "'%s' object is not callable", jinja_type_name(callee));
    }
}

bool jinja_eval_call(struct jinja_rt *rt, const struct jinja_node *node, struct jinja_scope *scope,
                     const struct jinja_value *caller, struct jinja_value *ret)
{
    const struct jinja_node *target = node->u.call.target;
    struct jinja_value callee, object;
    struct jinja_args args;
    const struct jinja_function *method = NULL;
    if (target->kind == NODE_ATTR) { /* the common case needs no bound method on the heap */
        const struct jinja_string *name = target->u.attr.name;
        if (!jinja_eval(rt, target->u.attr.object, scope, &object))
            return false;
        rt->line = target->line;
        method = jinja_method_find(object.kind, name->bytes, name->len);
        if (!method && !jinja_get_attr(rt, &object, name->bytes, name->len, &callee))
            return false;
    } else if (!jinja_eval(rt, target, scope, &callee)) {
        return false;
    }
    bool ok = caller ? eval_args(rt, node->u.call.args, scope, caller, &args)
                     : jinja_eval_args(rt, node->u.call.args, scope, &args);
    rt->line = node->line;
    if (!ok)
        return false;
    return method ? jinja_call_function(rt, method, &object, &args, ret)
                  : jinja_call_value(rt, &callee, &args, ret);
}

bool jinja_eval_filter(struct jinja_rt *rt, const struct jinja_node *node,
                       struct jinja_scope *scope, const struct jinja_value *text,
                       struct jinja_value *ret)
{
    struct jinja_value target;
    struct jinja_args args;
    if (!node->u.call.target) {
        target = *text;
    } else if (node->u.call.target->kind == NODE_FILTER) {
        if (!jinja_enter(rt) || !jinja_eval_filter(rt, node->u.call.target, scope, text, &target))
            return false;
        jinja_leave(rt);
    } else if (!jinja_eval(rt, node->u.call.target, scope, &target)) {
        return false;
    }
    if (!jinja_eval_args(rt, node->u.call.args, scope, &args))
        return false;
    rt->line = node->line;
    return jinja_call_function(rt, node->u.call.function, &target, &args, ret);
}

/* ---- the functions that are always there ---- */

static bool call_range(struct jinja_rt *rt, const struct jinja_value *self,
                       const struct jinja_args *args, struct jinja_value *ret)
{
    enum { ARGUMENT_LIMIT_BITS = 40 };
    int64_t v[3] = {0, 0, 1}, limit = (int64_t)1 << ARGUMENT_LIMIT_BITS;
    (void)self;
    if (args->n_pos < 1 || args->n_pos > 3 || args->n_kw > 0)
        return jinja_fail(rt, "range takes 1 to 3 integers");
    for (size_t i = 0; i < args->n_pos; i++) {
        size_t at = args->n_pos == 1 ? 1 : i;
        if (args->pos[i].kind == VALUE_UNDEFINED)
            return jinja_used_undefined(rt, &args->pos[i]);
        if (!value_is_int(&args->pos[i], &v[at]))
            return jinja_fail(rt, "'%s' object cannot be interpreted as an integer",
                              jinja_type_name(&args->pos[i]));
        if (v[at] > limit || v[at] < -limit)
            return jinja_fail_limit(rt, "Range too big: an argument is out of bounds");
    }
    if (v[2] == 0)
        return jinja_fail(rt, "range() arg 3 must not be zero");
    int64_t len = 0;
    if (v[2] > 0 && v[0] < v[1])
        len = (v[1] - v[0] - 1) / v[2] + 1;
    if (v[2] < 0 && v[0] > v[1])
        len = (v[0] - v[1] - 1) / -v[2] + 1;
    if (len > JINJA_MAX_RANGE)
        return jinja_fail_limit(rt, "Range too big: the sandbox blocks ranges larger than 100000");
    struct jinja_range *range = jinja_alloc(rt, sizeof *range);
    if (!range)
        return false;
    *range = (struct jinja_range){v[0], v[2], len};
    *ret = (struct jinja_value){.kind = VALUE_RANGE, .u.range = range};
    return true;
}

/* dict() and namespace(): pairs or a mapping, then keywords. */
static bool make_dict(struct jinja_rt *rt, const struct jinja_args *args, enum value_kind kind,
                      struct jinja_value *ret)
{
    struct jinja_dict *dict = jinja_dict_new(rt, args->n_kw);
    if (!dict)
        return false;
    if (args->n_pos > 1)
        return jinja_fail(rt, "dict expected at most 1 argument, got %zu", args->n_pos);
    const struct jinja_value *from = args->n_pos == 1 ? &args->pos[0] : NULL;
    if (from && from->kind == VALUE_DICT) {
        for (size_t i = 0; i < from->u.dict->len; i++) {
            if (!jinja_dict_set(rt, dict, from->u.dict->pairs[i].key, from->u.dict->pairs[i].value))
                return false;
        }
    } else if (from) {
        struct jinja_list *pairs, *pair;
        if (!jinja_to_list(rt, from, &pairs))
            return false;
        for (size_t i = 0; i < pairs->len; i++) {
            if (!jinja_to_list(rt, &pairs->items[i], &pair))
                return false;
            if (pair->len != 2)
                return jinja_fail(rt,
                                  "dictionary update sequence element #%zu has length %zu; 2 "
                                  "is required",
                                  i, pair->len);
            if (!jinja_dict_set(rt, dict, pair->items[0], pair->items[1]))
                return false;
        }
    }
    for (size_t i = 0; i < args->n_kw; i++) {
        struct jinja_value key;
        if (!jinja_string_new(rt, args->kw[i].name, args->kw[i].len, true, &key) ||
            !jinja_dict_set(rt, dict, key, args->kw[i].value))
            return false;
    }
    *ret = (struct jinja_value){.kind = (uint8_t)kind, .u.dict = dict};
    return true;
}

static bool call_dict(struct jinja_rt *rt, const struct jinja_value *self,
                      const struct jinja_args *args, struct jinja_value *ret)
{
    (void)self;
    return make_dict(rt, args, VALUE_DICT, ret);
}

static bool call_namespace(struct jinja_rt *rt, const struct jinja_value *self,
                           const struct jinja_args *args, struct jinja_value *ret)
{
    (void)self;
    return make_dict(rt, args, VALUE_NAMESPACE, ret);
}

static bool call_cycler_new(struct jinja_rt *rt, const struct jinja_value *self,
                            const struct jinja_args *args, struct jinja_value *ret)
{
    (void)self;
    if (args->n_pos == 0 || args->n_kw > 0)
        return jinja_fail(rt, "at least one item has to be provided");
    struct jinja_cycler *cycler = jinja_alloc(rt, sizeof *cycler);
    struct jinja_list *items = jinja_list_new(rt, args->n_pos);
    if (!cycler || !items)
        return false;
    memcpy(items->items, args->pos, args->n_pos * sizeof *args->pos);
    items->len = args->n_pos;
    *cycler = (struct jinja_cycler){.items = items};
    *ret = (struct jinja_value){.kind = VALUE_CYCLER, .u.cycler = cycler};
    return true;
}

static bool call_joiner_new(struct jinja_rt *rt, const struct jinja_value *self,
                            const struct jinja_args *args, struct jinja_value *ret)
{
    struct jinja_value separator = args->pos[0];
    (void)self;
    if (separator.kind == VALUE_MISSING && !jinja_string_new(rt, ", ", 2, true, &separator))
        return false;
    struct jinja_args one = {.pos = &separator, .n_pos = 1};
    if (!call_cycler_new(rt, NULL, &one, ret))
        return false;
    ret->kind = VALUE_JOINER;
    return true;
}

static bool call_raise(struct jinja_rt *rt, const struct jinja_value *self,
                       const struct jinja_args *args, struct jinja_value *ret)
{
    struct jinja_string *text;
    (void)self;
    (void)ret;
    if (!jinja_to_string(rt, &args->pos[0], &text))
        return false;
    rt->status =
        error_set(rt->err, STATUS_TEMPLATE_RAISED, "%.*s",
                  (int)(text->len < ERROR_TEXT_MAX ? text->len : ERROR_TEXT_MAX), text->bytes);
    return false;
}

static bool call_strftime(struct jinja_rt *rt, const struct jinja_value *self,
                          const struct jinja_args *args, struct jinja_value *ret)
{
    (void)self;
    if (args->pos[0].kind != VALUE_STR)
        return jinja_fail(rt, "strftime_now wants a format string, not %s",
                          jinja_type_name(&args->pos[0]));
    return jinja_format_time(rt, args->pos[0].u.string, ret);
}

const struct jinja_function *jinja_global_find(const char *name, size_t len)
{
    static const struct jinja_function functions[] = {
        {.name = "range", .call = call_range},
        {.name = "dict", .call = call_dict},
        {.name = "namespace", .call = call_namespace},
        {.name = "cycler", .call = call_cycler_new},
        {.name = "joiner", .call = call_joiner_new, .params = "sep"},
        {.name = "raise_exception", .call = call_raise, .params = "message", .n_required = 1},
        {.name = "strftime_now", .call = call_strftime, .params = "format", .n_required = 1},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (jinja_name_is(name, len, functions[i].name))
            return &functions[i];
    }
    return NULL;
}
