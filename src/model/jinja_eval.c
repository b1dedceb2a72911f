/*
 * Evaluates expressions, and looks up names: through the scopes outwards, then among the server's
 * trusted variables, the globals of the rendering, and the functions that are always there.
 */
#include "config.h"

#include <string.h>

#include "jinja_exec_priv.h"

struct jinja_scope *jinja_scope_new(struct jinja_rt *rt, struct jinja_scope *parent)
{
    struct jinja_scope *scope = jinja_alloc(rt, sizeof *scope);
    if (scope)
        *scope = (struct jinja_scope){.parent = parent};
    return scope;
}

bool jinja_scope_set(struct jinja_rt *rt, struct jinja_scope *scope, uint32_t symbol,
                     struct jinja_value value)
{
    for (uint32_t i = 0; i < scope->n; i++) {
        if (scope->vars[i].symbol == symbol) {
            scope->vars[i].value = value;
            return true;
        }
    }
    if (scope->n == scope->cap) {
        uint32_t cap = scope->cap ? scope->cap * 2 : 4;
        struct jinja_binding *vars = jinja_alloc(rt, cap * sizeof *vars);
        if (!vars)
            return false;
        if (scope->n > 0)
            memcpy(vars, scope->vars, scope->n * sizeof *vars);
        scope->vars = vars;
        scope->cap = cap;
    }
    scope->vars[scope->n++] = (struct jinja_binding){symbol, value};
    return jinja_step(rt, scope->n / 8);
}

static bool make_global(struct jinja_rt *rt, const struct jinja_symbol *symbol,
                        struct jinja_value *ret)
{
    const struct jinja_input *input = rt->input;
    for (size_t i = 0; i < input->n_trusted; i++) {
        const struct jinja_variable *v = &input->trusted[i];
        if (strcmp(v->name, symbol->name) != 0)
            continue;
        *ret = value_none();
        return !v->value || jinja_string_new(rt, v->value, strlen(v->value), true, ret);
    }
    json_t *json = json_object_get(input->globals, symbol->name);
    if (json) {
        const struct jinja_checked_member *checked = input->checked_member;
        bool applies = checked && json_is_array(json) && strcmp(symbol->name, checked->list) == 0;
        return jinja_from_json(rt, json, applies ? checked : NULL, ret);
    }
    const struct jinja_function *function = jinja_global_find(symbol->name, symbol->len);
    if (function) {
        *ret = (struct jinja_value){.kind = VALUE_FUNCTION, .u.function = function};
        return true;
    }
    return value_undefined(rt, ret, "'%.*s' is undefined",
                           (int)(symbol->len < 100 ? symbol->len : 100), symbol->name);
}

bool jinja_lookup(struct jinja_rt *rt, struct jinja_scope *scope, uint32_t symbol,
                  struct jinja_value *ret)
{
    uint64_t seen = 0;
    for (; scope; scope = scope->parent) {
        for (uint32_t i = 0; i < scope->n; i++) {
            if (scope->vars[i].symbol == symbol) {
                *ret = scope->vars[i].value;
                return jinja_step(rt, (seen + i) / 8);
            }
        }
        seen += scope->n + 1;
    }
    if (rt->globals[symbol].kind == VALUE_MISSING &&
        !make_global(rt, &rt->tpl->symbols[symbol], &rt->globals[symbol]))
        return false;
    *ret = rt->globals[symbol];
    return jinja_step(rt, seen / 8);
}

static bool eval_list(struct jinja_rt *rt, const struct jinja_node *node, struct jinja_scope *scope,
                      struct jinja_value *ret)
{
    struct jinja_list *list = jinja_list_new(rt, node->u.list.n);
    if (!list)
        return false;
    for (const struct jinja_node *item = node->u.list.items; item; item = item->next) {
        struct jinja_value value;
        if (!jinja_eval(rt, item, scope, &value) || !jinja_list_add(rt, list, value))
            return false;
    }
    *ret = node->kind == NODE_TUPLE ? value_tuple(list) : value_list(list);
    return true;
}

static bool eval_dict(struct jinja_rt *rt, const struct jinja_node *node, struct jinja_scope *scope,
                      struct jinja_value *ret)
{
    struct jinja_dict *dict = jinja_dict_new(rt, node->u.list.n / 2);
    if (!dict)
        return false;
    for (const struct jinja_node *item = node->u.list.items; item; item = item->next->next) {
        struct jinja_value key, value;
        if (!jinja_eval(rt, item, scope, &key) || !jinja_eval(rt, item->next, scope, &value) ||
            !jinja_dict_set(rt, dict, key, value))
            return false;
    }
    *ret = (struct jinja_value){.kind = VALUE_DICT, .u.dict = dict};
    return true;
}

static bool eval_concat(struct jinja_rt *rt, const struct jinja_node *node,
                        struct jinja_scope *scope, struct jinja_value *ret)
{
    struct jinja_sink *sink = jinja_sink_take(rt);
    if (!sink)
        return false;
    for (const struct jinja_node *item = node->u.list.items; item; item = item->next) {
        struct jinja_value value;
        if (!jinja_eval(rt, item, scope, &value) || !jinja_print(rt, sink, &value))
            return false;
    }
    return jinja_sink_finish(rt, sink, ret);
}

static bool eval_slice(struct jinja_rt *rt, const struct jinja_node *node,
                       struct jinja_scope *scope, struct jinja_value *ret)
{
    struct jinja_value object, bounds[3] = {{0}, {0}, {0}};
    if (!jinja_eval(rt, node->u.slice.object, scope, &object))
        return false;
    for (int i = 0; i < 3; i++) {
        if (node->u.slice.bounds[i] && !jinja_eval(rt, node->u.slice.bounds[i], scope, &bounds[i]))
            return false;
    }
    rt->line = node->line;
    return jinja_get_slice(rt, &object, bounds, ret);
}

/* A pair of operands, both evaluated. */
static bool eval_pair(struct jinja_rt *rt, const struct jinja_node *node, struct jinja_scope *scope,
                      struct jinja_value *left, struct jinja_value *right)
{
    if (!jinja_eval(rt, node->u.pair.left, scope, left) ||
        !jinja_eval(rt, node->u.pair.right, scope, right))
        return false;
    rt->line = node->line;
    return true;
}

static bool compare(struct jinja_rt *rt, enum compare_op op, const struct jinja_value *a,
                    const struct jinja_value *b, bool *ret)
{
    static const char *const names[] = {
        [CMP_LT] = "<", [CMP_LE] = "<=", [CMP_GT] = ">", [CMP_GE] = ">="};
    int order;
    switch (op) {
    case CMP_EQ:
        return jinja_equal(rt, a, b, ret);
    case CMP_NE:
        if (!jinja_equal(rt, a, b, ret))
            return false;
        *ret = !*ret;
        return true;
    case CMP_IN:
        return jinja_contains(rt, a, b, ret);
    case CMP_NOT_IN:
        if (!jinja_contains(rt, a, b, ret))
            return false;
        *ret = !*ret;
        return true;
    default:
        break;
    }
    if (!jinja_order(rt, a, b, names[op], &order))
        return false;
    *ret = order != ORDER_NONE && (op == CMP_LT   ? order < 0
                                   : op == CMP_LE ? order <= 0
                                   : op == CMP_GT ? order > 0
                                                  : order >= 0);
    return true;
}

static bool eval_compare(struct jinja_rt *rt, const struct jinja_node *node,
                         struct jinja_scope *scope, struct jinja_value *ret)
{
    struct jinja_value left, right;
    bool holds = true;
    if (!jinja_eval(rt, node->u.pair.left, scope, &left))
        return false;
    for (const struct jinja_node *o = node->u.pair.right; o && holds; o = o->next) {
        if (!jinja_eval(rt, o->u.pair.left, scope, &right))
            return false;
        rt->line = node->line;
        if (!compare(rt, (enum compare_op)o->op, &left, &right, &holds))
            return false;
        left = right;
    }
    *ret = value_bool(holds);
    return true;
}

static bool eval_cond(struct jinja_rt *rt, const struct jinja_node *node, struct jinja_scope *scope,
                      struct jinja_value *ret)
{
    struct jinja_value test;
    if (!jinja_eval(rt, node->u.branch.test, scope, &test))
        return false;
    if (jinja_is_true(&test))
        return jinja_eval(rt, node->u.branch.then, scope, ret);
    if (node->u.branch.or_else)
        return jinja_eval(rt, node->u.branch.or_else, scope, ret);
    return value_undefined(rt, ret,
                           "the inline if-expression on line %u evaluated to false and no else "
                           "section was defined",
                           (unsigned)node->line);
}

/* and, or: give back the operand that decides. */
static bool eval_logic(struct jinja_rt *rt, const struct jinja_node *node,
                       struct jinja_scope *scope, struct jinja_value *ret)
{
    if (!jinja_eval(rt, node->u.pair.left, scope, ret))
        return false;
    if (jinja_is_true(ret) == (node->kind == NODE_OR))
        return true;
    return jinja_eval(rt, node->u.pair.right, scope, ret);
}

static bool eval_unary(struct jinja_rt *rt, const struct jinja_node *node,
                       struct jinja_scope *scope, struct jinja_value *ret)
{
    struct jinja_value value;
    if (!jinja_eval(rt, node->u.pair.left, scope, &value))
        return false;
    rt->line = node->line;
    if (node->kind != NODE_NOT)
        return jinja_negate(rt, &value, node->kind == NODE_PLUS, ret);
    *ret = value_bool(!jinja_is_true(&value));
    return true;
}

static bool eval_attr(struct jinja_rt *rt, const struct jinja_node *node, struct jinja_scope *scope,
                      struct jinja_value *ret)
{
    struct jinja_value object;
    if (!jinja_eval(rt, node->u.attr.object, scope, &object))
        return false;
    rt->line = node->line;
    return jinja_get_attr(rt, &object, node->u.attr.name->bytes, node->u.attr.name->len, ret);
}

static bool eval_test(struct jinja_rt *rt, const struct jinja_node *node, struct jinja_scope *scope,
                      struct jinja_value *ret)
{
    struct jinja_value target;
    struct jinja_args args;
    if (!jinja_eval(rt, node->u.call.target, scope, &target) ||
        !jinja_eval_args(rt, node->u.call.args, scope, &args))
        return false;
    rt->line = node->line;
    return jinja_call_function(rt, node->u.call.function, &target, &args, ret);
}

static bool eval_node(struct jinja_rt *rt, const struct jinja_node *node, struct jinja_scope *scope,
                      struct jinja_value *ret)
{
    struct jinja_value left, right;
    switch ((enum node_kind)node->kind) {
    case NODE_CONST:
        *ret = node->u.constant;
        return true;
    case NODE_NAME:
        return jinja_lookup(rt, scope, node->u.symbol, ret);
    case NODE_LIST:
    case NODE_TUPLE:
        return eval_list(rt, node, scope, ret);
    case NODE_DICT:
        return eval_dict(rt, node, scope, ret);
    case NODE_ATTR:
        return eval_attr(rt, node, scope, ret);
    case NODE_ITEM:
        return eval_pair(rt, node, scope, &left, &right) && jinja_get_item(rt, &left, &right, ret);
    case NODE_SLICE:
        return eval_slice(rt, node, scope, ret);
    case NODE_CALL:
        return jinja_eval_call(rt, node, scope, NULL, ret);
    case NODE_FILTER:
        return jinja_eval_filter(rt, node, scope, NULL, ret);
    case NODE_TEST:
        return eval_test(rt, node, scope, ret);
    case NODE_NOT:
    case NODE_NEGATE:
    case NODE_PLUS:
        return eval_unary(rt, node, scope, ret);
    case NODE_BINARY:
        return eval_pair(rt, node, scope, &left, &right) &&
               jinja_binary(rt, (enum jinja_op)node->op, &left, &right, ret);
    case NODE_AND:
    case NODE_OR:
        return eval_logic(rt, node, scope, ret);
    case NODE_CONCAT:
        return eval_concat(rt, node, scope, ret);
    case NODE_COMPARE:
        return eval_compare(rt, node, scope, ret);
    case NODE_COND:
        return eval_cond(rt, node, scope, ret);
    default:
        break;
    }
    REQUIRE(!"a statement among expressions");
    return false;
}

bool jinja_eval(struct jinja_rt *rt, const struct jinja_node *node, struct jinja_scope *scope,
                struct jinja_value *ret)
{
    rt->line = node->line;
    if (!jinja_enter(rt) || !eval_node(rt, node, scope, ret))
        return false;
    jinja_leave(rt);
    return true;
}
