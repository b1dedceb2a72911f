/*
 * What follows a value in an expression: members, subscripts, calls, filters and tests.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "jinja_ops_priv.h"
#include "jinja_parse_priv.h"

enum { MAX_KEYWORDS = 255 };

/* One argument that is named, starred, or neither. */
static bool parse_argument(struct jinja_parser *p, struct node_args *args, struct parse_items *pos,
                           struct parse_items *kw, struct parse_items *names)
{
    if (parse_is_op(p, LEX_MUL) || parse_is_op(p, LEX_POW)) {
        bool two = p->token.op == LEX_POW;
        if (args->star_star || (!two && args->star))
            return parse_error(p, &p->token, "misplaced * or ** argument");
        if (!parse_advance(p))
            return false;
        struct jinja_node *value = parse_expression(p, true);
        if (two)
            args->star_star = value;
        else
            args->star = value;
        return value != NULL;
    }
    struct jinja_token at = p->token;
    if (at.kind == TOKEN_WORD && !parse_look_ahead(p))
        return false;
    bool named = at.kind == TOKEN_WORD && p->ahead.kind == TOKEN_OP && p->ahead.op == LEX_ASSIGN &&
                 p->has_ahead;
    if (args->star_star || (!named && (args->star || kw->n > 0)))
        return parse_error(p, &at, "a positional argument follows named or starred ones");
    if (named && (!parse_advance(p) || !parse_advance(p)))
        return false;
    struct jinja_node *value = parse_expression(p, true);
    if (!value)
        return false;
    if (!named) {
        parse_add(pos, value);
        return true;
    }
    if (kw->n == MAX_KEYWORDS)
        return parse_error(p, &at, "more than %d named arguments", (int)MAX_KEYWORDS);
    struct jinja_string *text = parse_literal(p, at.text, at.len);
    struct jinja_node *name = text ? parse_const(p, &at, value_string(text)) : NULL;
    if (!name)
        return false;
    for (const struct jinja_node *n = names->first; n; n = n->next) {
        if (n->u.constant.u.string->len == at.len &&
            memcmp(n->u.constant.u.string->bytes, at.text, at.len) == 0)
            return parse_error(p, &at, "the argument '%.*s' is given twice",
                               (int)(at.len < 48 ? at.len : 48), at.text);
    }
    parse_note_member(p, text);
    parse_add(names, name);
    parse_add(kw, value);
    return true;
}

static struct node_args *parse_args(struct jinja_parser *p)
{
    struct parse_items pos = {0}, kw = {0}, names = {0};
    struct node_args *args = parse_alloc(p, sizeof *args);
    if (!args || !parse_enter(p) || !parse_advance(p))
        return NULL;
    while (!parse_is_op(p, LEX_RPAREN)) {
        if (!parse_argument(p, args, &pos, &kw, &names))
            return NULL;
        if (!parse_is_op(p, LEX_RPAREN) && !parse_expect_op(p, LEX_COMMA, "',' or ')'"))
            return NULL;
    }
    parse_leave(p);
    if (!parse_advance(p))
        return NULL;
    args->pos = pos.first;
    args->n_pos = pos.n;
    args->kw = kw.first;
    args->n_kw = kw.n;
    args->kw_names = parse_alloc(p, (kw.n + 1) * sizeof *args->kw_names);
    if (!args->kw_names)
        return NULL;
    uint32_t i = 0;
    for (const struct jinja_node *n = names.first; n; n = n->next)
        args->kw_names[i++] = n->u.constant.u.string;
    return args;
}

static struct jinja_node *call_node(struct jinja_parser *p, enum node_kind kind,
                                    const struct jinja_token *at, struct jinja_node *target,
                                    const struct jinja_function *function, struct node_args *args)
{
    struct jinja_node *node = parse_node(p, kind, at);
    if (!node)
        return NULL;
    node->u.call.target = target;
    node->u.call.function = function;
    node->u.call.args = args;
    if (!parse_below(p, node, target))
        return NULL;
    if (!args)
        return node;
    for (const struct jinja_node *arg = args->pos; arg; arg = arg->next) {
        if (!parse_below(p, node, arg))
            return NULL;
    }
    for (const struct jinja_node *arg = args->kw; arg; arg = arg->next) {
        if (!parse_below(p, node, arg))
            return NULL;
    }
    return parse_below(p, node, args->star) ? parse_below(p, node, args->star_star) : NULL;
}

static bool add_wish(struct jinja_parser *p, struct jinja_wish **list, const char *name, size_t len,
                     const struct jinja_node *at)
{
    struct jinja_token token = {.line = at->line, .column = at->column, .text = name, .len = len};
    struct jinja_wish *wish = parse_alloc(p, sizeof *wish);
    if (!wish)
        return false;
    *wish = (struct jinja_wish){.token = token, .next = *list};
    *list = wish;
    return true;
}

static struct jinja_node *parse_call(struct jinja_parser *p, struct jinja_node *callee)
{
    struct jinja_token at = p->token;
    struct node_args *args = parse_args(p);
    if (!args)
        return NULL;
    if (callee->kind == NODE_NAME) {
        const struct jinja_symbol *s = &p->tpl->symbols[callee->u.symbol];
        if (!add_wish(p, &p->functions, s->name, s->len, callee))
            return NULL;
    }
    if (callee->kind == NODE_ATTR) {
        const struct jinja_string *s = callee->u.attr.name;
        if (!add_wish(p, &p->methods, s->bytes, s->len, callee))
            return NULL;
    }
    return call_node(p, NODE_CALL, &at, callee, NULL, args);
}

static struct jinja_node *parse_member(struct jinja_parser *p, struct jinja_node *object)
{
    if (!parse_advance(p))
        return NULL;
    struct jinja_token at = p->token;
    if (at.kind == TOKEN_INT) {
        struct jinja_node *index = parse_const(p, &at, value_int(at.integer));
        return index && parse_advance(p) ? parse_pair(p, NODE_ITEM, 0, &at, object, index) : NULL;
    }
    if (at.kind != TOKEN_WORD) {
        (void)parse_unexpected(p, "a member's name or number");
        return NULL;
    }
    struct jinja_node *node = parse_node(p, NODE_ATTR, &at);
    if (!node || !parse_advance(p))
        return NULL;
    node->u.attr.object = object;
    node->u.attr.name = parse_literal(p, at.text, at.len);
    return node->u.attr.name ? parse_below(p, node, object) : NULL;
}

static bool slice_part_ends(const struct jinja_parser *p)
{
    return parse_is_op(p, LEX_COLON) || parse_is_op(p, LEX_RBRACKET) || parse_is_op(p, LEX_COMMA);
}

static struct jinja_node *parse_subscript(struct jinja_parser *p, struct jinja_node *object)
{
    struct jinja_token at = p->token;
    struct jinja_node *parts[3] = {NULL, NULL, NULL};
    struct parse_items keys = {0};
    int n_colons = 0;
    if (!parse_enter(p) || !parse_advance(p))
        return NULL;
    for (int i = 0; i < 3; i++) {
        if (!slice_part_ends(p) && !(parts[i] = parse_expression(p, true)))
            return NULL;
        if (i == 2 || !parse_is_op(p, LEX_COLON))
            break;
        n_colons++;
        if (!parse_advance(p))
            return NULL;
    }
    if (n_colons == 0 && parse_is_op(p, LEX_COMMA) && parts[0]) { /* a tuple as key */
        parse_add(&keys, parts[0]);
        while (parse_is_op(p, LEX_COMMA)) {
            struct jinja_node *key = parse_advance(p) ? parse_expression(p, true) : NULL;
            if (!key)
                return NULL;
            parse_add(&keys, key);
        }
        parts[0] = parse_list_node(p, NODE_TUPLE, &at, &keys);
    }
    if ((n_colons == 0 && !parts[0]) || !parse_is_op(p, LEX_RBRACKET)) {
        (void)parse_unexpected(p, "an index, a slice or ']'");
        return NULL;
    }
    if (!parse_advance(p))
        return NULL;
    parse_leave(p);
    if (n_colons == 0)
        return parse_pair(p, NODE_ITEM, 0, &at, object, parts[0]);
    struct jinja_node *node = parse_node(p, NODE_SLICE, &at);
    if (!node || !parse_below(p, node, object))
        return NULL;
    node->u.slice.object = object;
    for (int i = 0; i < 3; i++) {
        node->u.slice.bounds[i] = parts[i];
        if (!parse_below(p, node, parts[i]))
            return NULL;
    }
    return node;
}

struct jinja_node *parse_postfix(struct jinja_parser *p, struct jinja_node *node)
{
    while (node) {
        if (parse_is_op(p, LEX_DOT))
            node = parse_member(p, node);
        else if (parse_is_op(p, LEX_LBRACKET))
            node = parse_subscript(p, node);
        else if (parse_is_op(p, LEX_LPAREN))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

/* Filters and tests named by a literal argument (map, select, ...) must exist too. */
static bool check_named(struct jinja_parser *p, const struct jinja_function *filter,
                        const struct node_args *args)
{
    const struct jinja_node *arg = args ? args->pos : NULL;
    bool is_map = strcmp(filter->name, "map") == 0;
    bool attr = strcmp(filter->name, "selectattr") == 0 || strcmp(filter->name, "rejectattr") == 0;
    if (!is_map && !attr && strcmp(filter->name, "select") != 0 &&
        strcmp(filter->name, "reject") != 0)
        return true;
    if (arg && attr)
        arg = arg->next;
    if (!arg || arg->kind != NODE_CONST || arg->u.constant.kind != VALUE_STR)
        return true;
    const struct jinja_string *s = arg->u.constant.u.string;
    if (is_map ? jinja_filter_find(s->bytes, s->len) : jinja_test_find(s->bytes, s->len))
        return true;
    struct jinja_token at = {.line = arg->line, .column = arg->column};
    return parse_error(p, &at, "unknown or unsupported %s '%.*s'", is_map ? "filter" : "test",
                       (int)(s->len < 48 ? s->len : 48), s->bytes);
}

/* A name of a filter or test, in *ret_at; dotted names do not exist. */
static bool parse_name(struct jinja_parser *p, const char *what, struct jinja_token *ret_at)
{
    if (p->token.kind != TOKEN_WORD)
        return parse_unexpected(p, what);
    *ret_at = p->token;
    return parse_advance(p);
}

struct jinja_node *parse_filters(struct jinja_parser *p, struct jinja_node *target,
                                 bool inline_first)
{
    struct jinja_node *node = target;
    while (inline_first || parse_is_op(p, LEX_PIPE)) {
        struct jinja_token at;
        struct node_args *args = NULL;
        if (!inline_first && !parse_advance(p))
            return NULL;
        inline_first = false;
        if (!parse_name(p, "a filter's name", &at))
            return NULL;
        const struct jinja_function *filter = jinja_filter_find(at.text, at.len);
        if (!filter) {
            (void)parse_error(p, &at, "unknown or unsupported filter '%.*s'",
                              (int)(at.len < 48 ? at.len : 48), at.text);
            return NULL;
        }
        if (parse_is_op(p, LEX_LPAREN) && !(args = parse_args(p)))
            return NULL;
        node = check_named(p, filter, args) ? call_node(p, NODE_FILTER, &at, node, filter, args)
                                            : NULL;
        if (!node)
            return NULL;
    }
    return node;
}

/* The one argument of a test without brackets. */
static bool bare_argument_follows(const struct jinja_parser *p)
{
    switch (p->token.kind) {
    case TOKEN_WORD:
        return !parse_is_word(p, "else") && !parse_is_word(p, "or") && !parse_is_word(p, "and");
    case TOKEN_TEXT:
    case TOKEN_INT:
    case TOKEN_REAL:
        return true;
    default:
        return parse_is_op(p, LEX_LBRACKET) || parse_is_op(p, LEX_LBRACE);
    }
}

static struct node_args *parse_test_args(struct jinja_parser *p)
{
    if (parse_is_op(p, LEX_LPAREN))
        return parse_args(p);
    struct node_args *args = parse_alloc(p, sizeof *args);
    if (!args || !bare_argument_follows(p))
        return args;
    if (parse_is_word(p, "is")) {
        (void)parse_error(p, &p->token, "tests cannot be chained with 'is'");
        return NULL;
    }
    args->pos = parse_postfix(p, parse_primary(p));
    args->n_pos = 1;
    return args->pos ? args : NULL;
}

static struct jinja_node *parse_test(struct jinja_parser *p, struct jinja_node *target)
{
    struct jinja_token at, is = p->token;
    if (!parse_advance(p))
        return NULL;
    bool negated = parse_is_word(p, "not");
    if ((negated && !parse_advance(p)) || !parse_name(p, "a test's name", &at))
        return NULL;
    const struct jinja_function *test = jinja_test_find(at.text, at.len);
    if (!test) {
        (void)parse_error(p, &at, "unknown or unsupported test '%.*s'",
                          (int)(at.len < 48 ? at.len : 48), at.text);
        return NULL;
    }
    struct node_args *args = parse_test_args(p);
    struct jinja_node *node = args ? call_node(p, NODE_TEST, &is, target, test, args) : NULL;
    return node && negated ? parse_pair(p, NODE_NOT, 0, &is, node, NULL) : node;
}

struct jinja_node *parse_filters_and_tests(struct jinja_parser *p, struct jinja_node *node)
{
    while (node) {
        if (parse_is_op(p, LEX_PIPE))
            node = parse_filters(p, node, false);
        else if (parse_is_word(p, "is"))
            node = parse_test(p, node);
        else if (parse_is_op(p, LEX_LPAREN))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}
