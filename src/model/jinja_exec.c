/*
 * Executes statements: text, output, branches, loops, assignments, macros; and a rendering as a
 * whole.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "jinja_exec_priv.h"

const struct jinja_limits jinja_default_limits = {
    .max_steps = 2000000,
    .max_depth = 500,
    .max_output_bytes = 8u << 20,
    .max_memory_bytes = 64u << 20,
};

enum flow { FLOW_ERROR, FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE };

static enum flow exec_list(struct jinja_rt *rt, const struct jinja_node *node,
                           struct jinja_scope *scope);

/* ---- assignment ---- */

static bool unpack(struct jinja_rt *rt, const struct jinja_node *tuple, struct jinja_scope *scope,
                   const struct jinja_value *value)
{
    struct jinja_list *items;
    if (!jinja_to_list(rt, value, &items))
        return false;
    if (items->len < tuple->u.list.n)
        return jinja_fail(rt, "not enough values to unpack (expected %u, got %zu)",
                          (unsigned)tuple->u.list.n, items->len);
    if (items->len > tuple->u.list.n)
        return jinja_fail(rt, "too many values to unpack (expected %u)", (unsigned)tuple->u.list.n);
    size_t i = 0;
    for (const struct jinja_node *t = tuple->u.list.items; t; t = t->next) {
        if (!jinja_assign(rt, t, scope, &items->items[i++]))
            return false;
    }
    return true;
}

static bool assign_member(struct jinja_rt *rt, const struct jinja_node *target,
                          struct jinja_scope *scope, const struct jinja_value *value)
{
    struct jinja_value owner;
    if (!jinja_lookup(rt, scope, target->u.attr.symbol, &owner))
        return false;
    if (owner.kind != VALUE_NAMESPACE)
        return jinja_fail(rt, "cannot assign attribute on non-namespace object");
    const struct jinja_string *name = target->u.attr.name;
    struct jinja_value key, *found = jinja_dict_text(owner.u.dict, name->bytes, name->len);
    if (found) {
        *found = *value;
        return jinja_step(rt, owner.u.dict->len / 8 + 1);
    }
    return jinja_string_part(rt, name, 0, name->len, &key) &&
           jinja_dict_set(rt, owner.u.dict, key, *value);
}

bool jinja_assign(struct jinja_rt *rt, const struct jinja_node *target, struct jinja_scope *scope,
                  const struct jinja_value *value)
{
    rt->line = target->line;
    if (target->kind == NODE_NAME)
        return jinja_scope_set(rt, scope, target->u.symbol, *value);
    if (target->kind == NODE_MEMBER_TARGET)
        return assign_member(rt, target, scope, value);
    return unpack(rt, target, scope, value);
}

/* ---- capturing text ---- */

/* Runs a body with its output going into a string; on break and continue there is none. */
static enum flow capture(struct jinja_rt *rt, const struct jinja_node *body,
                         struct jinja_scope *scope, struct jinja_value *ret)
{
    struct jinja_sink *outer = rt->out, *sink = jinja_sink_take(rt);
    if (!sink)
        return FLOW_ERROR;
    rt->out = sink;
    enum flow flow = exec_list(rt, body, scope);
    rt->out = outer;
    if (flow == FLOW_ERROR)
        return FLOW_ERROR;
    if (flow != FLOW_NEXT) {
        jinja_sink_give(rt, sink);
        return flow;
    }
    return jinja_sink_finish(rt, sink, ret) ? FLOW_NEXT : FLOW_ERROR;
}

static enum flow exec_set_block(struct jinja_rt *rt, const struct jinja_node *node,
                                struct jinja_scope *scope)
{
    struct jinja_value text, value;
    struct jinja_scope *inner = jinja_scope_new(rt, scope);
    if (!inner)
        return FLOW_ERROR;
    enum flow flow = capture(rt, node->u.set.body, inner, &text);
    if (flow != FLOW_NEXT)
        return flow;
    value = text;
    if (node->u.set.value && !jinja_eval_filter(rt, node->u.set.value, inner, &text, &value))
        return FLOW_ERROR;
    return jinja_assign(rt, node->u.set.target, scope, &value) ? FLOW_NEXT : FLOW_ERROR;
}

static enum flow exec_filter_block(struct jinja_rt *rt, const struct jinja_node *node,
                                   struct jinja_scope *scope)
{
    struct jinja_value text, value;
    struct jinja_scope *inner = jinja_scope_new(rt, scope);
    if (!inner)
        return FLOW_ERROR;
    enum flow flow = capture(rt, node->u.set.body, inner, &text);
    if (flow != FLOW_NEXT)
        return flow;
    if (!jinja_eval_filter(rt, node->u.set.value, inner, &text, &value))
        return FLOW_ERROR;
    if (value.kind != VALUE_STR) {
        (void)jinja_fail(rt, "a filter block must give a string, not %s", jinja_type_name(&value));
        return FLOW_ERROR;
    }
    return jinja_print(rt, rt->out, &value) ? FLOW_NEXT : FLOW_ERROR;
}

/* ---- macros ---- */

static bool make_closure(struct jinja_rt *rt, const struct jinja_macro *macro,
                         struct jinja_scope *scope, struct jinja_value *ret)
{
    struct jinja_closure *closure = jinja_alloc(rt, sizeof *closure);
    if (!closure)
        return false;
    for (struct jinja_scope *s = scope; s && !s->captured; s = s->parent)
        s->captured = true;
    *closure = (struct jinja_closure){macro, scope};
    *ret = (struct jinja_value){.kind = VALUE_MACRO, .u.closure = closure};
    return true;
}

static bool keyword_is(const struct jinja_rt *rt, const struct jinja_keyword *kw, uint32_t symbol)
{
    const struct jinja_symbol *s = &rt->tpl->symbols[symbol];
    return kw->len == s->len && memcmp(kw->name, s->name, s->len) == 0;
}

/* Gives the parameters of a macro their values; used marks the keywords that were taken. */
static bool bind_params(struct jinja_rt *rt, const struct jinja_macro *macro,
                        const struct jinja_args *args, struct jinja_scope *scope, bool *used)
{
    for (uint32_t i = 0; i < macro->n_params; i++) {
        struct jinja_value value = {.kind = VALUE_MISSING};
        if (i < args->n_pos)
            value = args->pos[i];
        for (size_t k = 0; i >= args->n_pos && k < args->n_kw; k++) {
            if (!used[k] && keyword_is(rt, &args->kw[k], macro->params[i])) {
                value = args->kw[k].value;
                used[k] = true;
                break;
            }
        }
        if (!jinja_step(rt, args->n_kw / 8 + 1))
            return false;
        if (value.kind == VALUE_MISSING && macro->defaults[i]) {
            if (!jinja_eval(rt, macro->defaults[i], scope, &value))
                return false;
        } else if (value.kind == VALUE_MISSING) {
            const struct jinja_symbol *s = &rt->tpl->symbols[macro->params[i]];
            if (!value_undefined(rt, &value, "parameter '%.*s' was not provided",
                                 (int)(s->len < 64 ? s->len : 64), s->name))
                return false;
        }
        if (!jinja_scope_set(rt, scope, macro->params[i], value))
            return false;
    }
    return true;
}

/* caller, varargs and kwargs, or an error for arguments that nothing takes. */
static bool bind_specials(struct jinja_rt *rt, const struct jinja_macro *macro,
                          const struct jinja_args *args, struct jinja_scope *scope, bool *used)
{
    struct jinja_dict *kwargs = jinja_dict_new(rt, 0);
    struct jinja_list *varargs = jinja_list_new(rt, 0);
    struct jinja_value caller;
    if (!kwargs || !varargs ||
        !value_undefined(rt, &caller, "No caller defined: 'caller' is undefined"))
        return false;
    for (size_t k = 0; k < args->n_kw; k++) {
        const struct jinja_keyword *kw = &args->kw[k];
        struct jinja_value key;
        if (used[k])
            continue;
        if (macro->takes_caller && keyword_is(rt, kw, rt->tpl->caller_symbol)) {
            caller = kw->value;
            continue;
        }
        if (!macro->takes_kwargs)
            return jinja_fail(rt, "macro '%s' takes no keyword argument '%.*s'", macro->name,
                              (int)(kw->len < 64 ? kw->len : 64), kw->name);
        if (!jinja_string_new(rt, kw->name, kw->len, false, &key) ||
            !jinja_dict_set(rt, kwargs, key, kw->value))
            return false;
    }
    for (size_t i = macro->n_params; i < args->n_pos; i++) {
        if (!macro->takes_varargs)
            return jinja_fail(rt, "macro '%s' takes not more than %u argument(s)", macro->name,
                              (unsigned)macro->n_params);
        if (!jinja_list_add(rt, varargs, args->pos[i]))
            return false;
    }
    struct jinja_value dict = {.kind = VALUE_DICT, .u.dict = kwargs};
    return (!macro->takes_caller || macro->names_caller ||
            jinja_scope_set(rt, scope, rt->tpl->caller_symbol, caller)) &&
           (!macro->takes_varargs ||
            jinja_scope_set(rt, scope, rt->tpl->varargs_symbol, value_tuple(varargs))) &&
           (!macro->takes_kwargs || jinja_scope_set(rt, scope, rt->tpl->kwargs_symbol, dict));
}

bool jinja_call_macro(struct jinja_rt *rt, const struct jinja_closure *closure,
                      const struct jinja_args *args, struct jinja_value *ret)
{
    const struct jinja_macro *macro = closure->macro;
    struct jinja_scope *scope = jinja_scope_new(rt, closure->scope);
    bool *used = jinja_alloc(rt, args->n_kw + 1);
    if (!scope || !used || !jinja_enter(rt))
        return false;
    memset(used, 0, args->n_kw + 1);
    if (!bind_params(rt, macro, args, scope, used) ||
        !bind_specials(rt, macro, args, scope, used) ||
        capture(rt, macro->body, scope, ret) != FLOW_NEXT)
        return false;
    jinja_leave(rt);
    return true;
}

static bool exec_macro(struct jinja_rt *rt, const struct jinja_node *node,
                       struct jinja_scope *scope)
{
    struct jinja_value macro;
    return make_closure(rt, node->u.macro.macro, scope, &macro) &&
           jinja_scope_set(rt, scope, node->u.macro.macro->symbol, macro);
}

static bool exec_call_block(struct jinja_rt *rt, const struct jinja_node *node,
                            struct jinja_scope *scope)
{
    struct jinja_value caller, text;
    return make_closure(rt, node->u.macro.macro, scope, &caller) &&
           jinja_eval_call(rt, node->u.macro.call, scope, &caller, &text) &&
           jinja_print(rt, rt->out, &text);
}

/* ---- loops ---- */

/* The next item that passes the loop's filter. */
static bool fetch(struct jinja_rt *rt, struct jinja_loop *loop, struct jinja_value *ret,
                  bool *ret_more)
{
    if (loop->rest) {
        *ret_more = loop->rest_at < loop->rest->len;
        if (*ret_more)
            *ret = loop->rest->items[loop->rest_at++];
        return true;
    }
    for (;;) {
        struct jinja_value test;
        if (!jinja_next(rt, &loop->cursor, ret, ret_more))
            return false;
        if (!*ret_more || !loop->node->u.loop.filter)
            return true;
        struct jinja_scope *scope = jinja_scope_new(rt, loop->scope);
        if (!scope || !jinja_assign(rt, loop->node->u.loop.target, scope, ret) ||
            !jinja_eval(rt, loop->node->u.loop.filter, scope, &test))
            return false;
        if (jinja_is_true(&test))
            return true;
    }
}

static bool peek(struct jinja_rt *rt, struct jinja_loop *loop, bool *ret_more)
{
    *ret_more = true;
    if (loop->has_after)
        return true;
    if (!fetch(rt, loop, &loop->after, ret_more))
        return false;
    loop->has_after = *ret_more;
    return true;
}

static bool advance(struct jinja_rt *rt, struct jinja_loop *loop, bool *ret_more)
{
    bool has_before = loop->index0 >= 0;
    struct jinja_value before = loop->current;
    if (!peek(rt, loop, ret_more))
        return false;
    if (!*ret_more)
        return true;
    loop->has_before = has_before;
    loop->before = before;
    loop->current = loop->after;
    loop->has_after = false;
    loop->index0++;
    return true;
}

static bool loop_length(struct jinja_rt *rt, struct jinja_loop *loop, int64_t *ret)
{
    if (loop->length < 0) {
        struct jinja_list *rest = jinja_list_new(rt, 0);
        struct jinja_value item;
        bool more = rest != NULL;
        if (!rest)
            return false;
        while (more) {
            if (!fetch(rt, loop, &item, &more) || (more && !jinja_list_add(rt, rest, item)))
                return false;
        }
        loop->rest = rest;
        loop->rest_at = 0;
        loop->length = (int64_t)rest->len + loop->index0 + 1 + loop->has_after;
    }
    *ret = loop->length;
    return true;
}

static bool loop_neighbour(struct jinja_rt *rt, struct jinja_loop *loop, bool next,
                           struct jinja_value *ret)
{
    bool more = loop->has_before;
    if (next && !peek(rt, loop, &more))
        return false;
    if (!more)
        return value_undefined(rt, ret, "there is no %s item", next ? "next" : "previous");
    *ret = next ? loop->after : loop->before;
    return true;
}

static bool loop_method(struct jinja_rt *rt, struct jinja_loop *loop, bool cycle,
                        struct jinja_value *ret)
{
    struct jinja_method *bound = jinja_alloc(rt, sizeof *bound);
    if (!bound)
        return false;
    bound->self = (struct jinja_value){.kind = VALUE_LOOP, .u.loop = loop};
    bound->function = jinja_method_find(VALUE_LOOP, cycle ? "cycle" : "changed", cycle ? 5 : 7);
    *ret = (struct jinja_value){.kind = VALUE_METHOD, .u.method = bound};
    return true;
}

bool jinja_loop_attr(struct jinja_rt *rt, struct jinja_loop *loop, const char *name, size_t len,
                     struct jinja_value *ret, bool *ret_found)
{
    static const char *const names[] = {"index",    "index0",    "first",    "last",     "length",
                                        "revindex", "revindex0", "previtem", "nextitem", "cycle",
                                        "changed",  "depth",     "depth0"};
    size_t i = 0;
    bool more;
    int64_t length = 0;
    while (i < sizeof names / sizeof *names && !jinja_name_is(name, len, names[i]))
        i++;
    *ret_found = i < sizeof names / sizeof *names;
    if (i >= 4 && i <= 6 && !loop_length(rt, loop, &length))
        return false;
    switch (i) {
    case 0:
        *ret = value_int(loop->index0 + 1);
        return true;
    case 1:
        *ret = value_int(loop->index0);
        return true;
    case 2:
        *ret = value_bool(loop->index0 == 0);
        return true;
    case 3:
        if (!peek(rt, loop, &more))
            return false;
        *ret = value_bool(!more);
        return true;
    case 4:
        *ret = value_int(length);
        return true;
    case 5:
        *ret = value_int(length - loop->index0);
        return true;
    case 6:
        *ret = value_int(length - loop->index0 - 1);
        return true;
    case 7:
    case 8:
        return loop_neighbour(rt, loop, i == 8, ret);
    case 9:
    case 10:
        return loop_method(rt, loop, i == 9, ret);
    case 11:
    case 12:
        *ret = value_int(i == 11);
        return true;
    default:
        return true;
    }
}

bool jinja_loop_call(struct jinja_rt *rt, struct jinja_loop *loop, bool cycle,
                     const struct jinja_args *args, struct jinja_value *ret)
{
    if (args->n_kw > 0)
        return jinja_fail(rt, "loop.%s takes no named arguments", cycle ? "cycle" : "changed");
    if (cycle) {
        if (args->n_pos == 0)
            return jinja_fail(rt, "no items for cycling given");
        *ret = args->pos[(uint64_t)loop->index0 % args->n_pos];
        return true;
    }
    struct jinja_list *values = jinja_list_new(rt, args->n_pos);
    bool same = false;
    if (!values)
        return false;
    for (size_t i = 0; i < args->n_pos; i++)
        values->items[values->len++] = args->pos[i];
    struct jinja_value now = value_tuple(values);
    if (loop->has_changed && !jinja_equal(rt, &loop->changed, &now, &same))
        return false;
    loop->has_changed = true;
    loop->changed = now;
    *ret = value_bool(!same);
    return true;
}

/* *ret_ran tells whether a body ran to its end: Jinja2 takes the else branch when none did, also
 * after break and continue. */
static enum flow run_loop(struct jinja_rt *rt, struct jinja_loop *loop, bool *ret_ran)
{
    const struct jinja_node *node = loop->node;
    struct jinja_value self = {.kind = VALUE_LOOP, .u.loop = loop};
    struct jinja_scope *scope = NULL;
    for (;;) {
        bool more;
        if (!advance(rt, loop, &more))
            return FLOW_ERROR;
        if (!more)
            return FLOW_NEXT;
        if (!scope || scope->captured) {
            scope = jinja_scope_new(rt, loop->scope);
            if (!scope)
                return FLOW_ERROR;
        }
        scope->n = 0;
        if (!jinja_scope_set(rt, scope, rt->tpl->loop_symbol, self) ||
            !jinja_assign(rt, node->u.loop.target, scope, &loop->current))
            return FLOW_ERROR;
        enum flow flow = exec_list(rt, node->u.loop.body, scope);
        if (flow == FLOW_ERROR)
            return FLOW_ERROR;
        if (flow == FLOW_BREAK)
            return FLOW_NEXT;
        *ret_ran = *ret_ran || flow == FLOW_NEXT;
    }
}

static enum flow exec_for(struct jinja_rt *rt, const struct jinja_node *node,
                          struct jinja_scope *scope)
{
    struct jinja_value over;
    struct jinja_loop *loop = jinja_alloc(rt, sizeof *loop);
    if (!loop || !jinja_eval(rt, node->u.loop.over, scope, &over))
        return FLOW_ERROR;
    rt->line = node->line;
    *loop = (struct jinja_loop){.node = node, .scope = scope, .index0 = -1, .length = -1};
    if (!jinja_iterate(rt, &over, &loop->cursor))
        return FLOW_ERROR;
    if (!node->u.loop.filter && over.kind != VALUE_ITER)
        loop->length = (int64_t)loop->cursor.len;
    bool ran = false;
    enum flow flow = run_loop(rt, loop, &ran);
    if (flow != FLOW_NEXT || ran || !node->u.loop.or_else)
        return flow;
    struct jinja_scope *inner = jinja_scope_new(rt, scope);
    return inner ? exec_list(rt, node->u.loop.or_else, inner) : FLOW_ERROR;
}

/* ---- the rest ---- */

static enum flow exec_if(struct jinja_rt *rt, const struct jinja_node *node,
                         struct jinja_scope *scope)
{
    for (;;) { /* along the chain of elif */
        struct jinja_value test;
        if (!jinja_eval(rt, node->u.branch.test, scope, &test))
            return FLOW_ERROR;
        if (jinja_is_true(&test))
            return exec_list(rt, node->u.branch.then, scope);
        const struct jinja_node *rest = node->u.branch.or_else;
        if (!rest || rest->kind != NODE_IF || rest->op != 1)
            return exec_list(rt, rest, scope);
        node = rest;
    }
}

static enum flow exec_with(struct jinja_rt *rt, const struct jinja_node *node,
                           struct jinja_scope *scope)
{
    struct jinja_scope *inner = jinja_scope_new(rt, scope);
    if (!inner)
        return FLOW_ERROR;
    for (const struct jinja_node *t = node->u.with.items; t; t = t->next->next) {
        struct jinja_value value;
        if (!jinja_eval(rt, t->next, scope, &value) || !jinja_assign(rt, t, inner, &value))
            return FLOW_ERROR;
    }
    return exec_list(rt, node->u.with.body, inner);
}

static bool exec_output(struct jinja_rt *rt, const struct jinja_node *node,
                        struct jinja_scope *scope)
{
    struct jinja_value value;
    return jinja_eval(rt, node->u.output, scope, &value) && jinja_print(rt, rt->out, &value);
}

static bool exec_set(struct jinja_rt *rt, const struct jinja_node *node, struct jinja_scope *scope)
{
    struct jinja_value value;
    return jinja_eval(rt, node->u.set.value, scope, &value) &&
           jinja_assign(rt, node->u.set.target, scope, &value);
}

static enum flow exec_node(struct jinja_rt *rt, const struct jinja_node *node,
                           struct jinja_scope *scope)
{
    bool ok;
    switch ((enum node_kind)node->kind) {
    case NODE_TEXT:
        ok = jinja_sink_string(rt, rt->out, node->u.constant.u.string);
        break;
    case NODE_OUTPUT:
        ok = exec_output(rt, node, scope);
        break;
    case NODE_IF:
        return exec_if(rt, node, scope);
    case NODE_FOR:
        return exec_for(rt, node, scope);
    case NODE_SET:
        ok = exec_set(rt, node, scope);
        break;
    case NODE_SET_BLOCK:
        return exec_set_block(rt, node, scope);
    case NODE_MACRO:
        ok = exec_macro(rt, node, scope);
        break;
    case NODE_CALL_BLOCK:
        ok = exec_call_block(rt, node, scope);
        break;
    case NODE_FILTER_BLOCK:
        return exec_filter_block(rt, node, scope);
    case NODE_WITH:
    case NODE_SCOPE:
        return exec_with(rt, node, scope);
    case NODE_BREAK:
        return FLOW_BREAK;
    case NODE_CONTINUE:
        return FLOW_CONTINUE;
    default:
        REQUIRE(!"an expression among statements");
        return FLOW_ERROR;
    }
    return ok ? FLOW_NEXT : FLOW_ERROR;
}

static enum flow exec_list(struct jinja_rt *rt, const struct jinja_node *node,
                           struct jinja_scope *scope)
{
    if (!jinja_enter(rt))
        return FLOW_ERROR;
    enum flow flow = FLOW_NEXT;
    for (; node && flow == FLOW_NEXT; node = node->next) {
        rt->line = node->line;
        if (!jinja_step(rt, 1))
            return FLOW_ERROR;
        flow = exec_node(rt, node, scope);
    }
    if (flow != FLOW_ERROR)
        jinja_leave(rt);
    return flow;
}

/* ---- a rendering ---- */

static bool render(struct jinja_rt *rt)
{
    size_t n = rt->tpl->n_symbols;
    rt->globals = jinja_alloc(rt, n * sizeof *rt->globals);
    struct jinja_scope *scope = jinja_scope_new(rt, NULL);
    if (!rt->globals || !scope)
        return false;
    memset(rt->globals, 0, n * sizeof *rt->globals);
    return exec_list(rt, rt->tpl->body, scope) == FLOW_NEXT;
}

static void free_sinks(struct jinja_rt *rt)
{
    for (struct jinja_sink *sink = rt->sinks; sink; sink = sink->next) {
        free(sink->bytes);
        free(sink->runs);
    }
}

enum status jinja_render(const struct jinja_template *tpl, const struct jinja_input *input,
                         struct jinja_output *ret, struct error *err)
{
    struct jinja_sink top = {0};
    struct jinja_rt rt = {.tpl = tpl, .input = input, .err = err, .status = STATUS_OK};
    REQUIRE(json_is_object(input->globals));
    rt.limits = input->limits ? *input->limits : jinja_default_limits;
    arena_init(&rt.arena, rt.limits.max_memory_bytes);
    rt.top = rt.out = &top;
    if (render(&rt) && rt.status == STATUS_OK) {
        char *bytes = realloc(top.bytes, top.len + 1);
        if (bytes) {
            bytes[top.len] = '\0';
            *ret = (struct jinja_output){bytes, top.len, top.runs, top.n_runs};
            top = (struct jinja_sink){0};
        } else {
            (void)jinja_fail_limit(&rt, "out of memory");
        }
    }
    free(top.bytes);
    free(top.runs);
    free_sinks(&rt);
    arena_done(&rt.arena);
    return rt.status;
}

void jinja_output_done(struct jinja_output *output)
{
    free(output->bytes);
    free(output->trusted);
    *output = (struct jinja_output){0};
}
