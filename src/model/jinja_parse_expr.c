/*
 * Expressions of templates, after Jinja2's grammar: literals, names and operators.  Calls, members,
 * filters and tests are in jinja_parse_call.c.
 */
#include "config.h"

#include <string.h>

#include "jinja_ops_priv.h"
#include "jinja_parse_priv.h"

/* ---- lists of expressions ---- */

static bool tuple_ends(const struct jinja_parser *p, const char *end_word)
{
    return p->token.kind == TOKEN_VARIABLE_END || p->token.kind == TOKEN_BLOCK_END ||
           parse_is_op(p, LEX_RPAREN) || (end_word && parse_is_word(p, end_word));
}

struct jinja_node *parse_tuple(struct jinja_parser *p, bool with_cond, bool in_brackets,
                               const char *end_word)
{
    struct parse_items items = {0};
    struct jinja_token at = p->token;
    bool is_tuple = false;
    while (!tuple_ends(p, end_word)) {
        struct jinja_node *item = parse_expression(p, with_cond);
        if (!item)
            return NULL;
        parse_add(&items, item);
        if (!parse_is_op(p, LEX_COMMA))
            break;
        is_tuple = true;
        if (!parse_advance(p))
            return NULL;
    }
    if (!is_tuple && items.first)
        return items.first;
    if (!is_tuple && !in_brackets) {
        (void)parse_unexpected(p, "an expression");
        return NULL;
    }
    return parse_list_node(p, NODE_TUPLE, &at, &items);
}

static struct jinja_node *parse_list(struct jinja_parser *p)
{
    struct parse_items items = {0};
    struct jinja_token at = p->token;
    if (!parse_advance(p))
        return NULL;
    while (!parse_is_op(p, LEX_RBRACKET)) {
        struct jinja_node *item = parse_expression(p, true);
        if (!item)
            return NULL;
        parse_add(&items, item);
        if (!parse_is_op(p, LEX_RBRACKET) && !parse_expect_op(p, LEX_COMMA, "',' or ']'"))
            return NULL;
    }
    return parse_advance(p) ? parse_list_node(p, NODE_LIST, &at, &items) : NULL;
}

static struct jinja_node *parse_dict(struct jinja_parser *p)
{
    struct parse_items items = {0};
    struct jinja_token at = p->token;
    if (!parse_advance(p))
        return NULL;
    while (!parse_is_op(p, LEX_RBRACE)) {
        struct jinja_node *key = parse_expression(p, true);
        if (!key || !parse_expect_op(p, LEX_COLON, "':'"))
            return NULL;
        struct jinja_node *value = parse_expression(p, true);
        if (!value)
            return NULL;
        if (key->kind == NODE_CONST && key->u.constant.kind == VALUE_STR)
            parse_note_member(p, key->u.constant.u.string);
        parse_add(&items, key);
        parse_add(&items, value);
        if (!parse_is_op(p, LEX_RBRACE) && !parse_expect_op(p, LEX_COMMA, "',' or '}'"))
            return NULL;
    }
    return parse_advance(p) ? parse_list_node(p, NODE_DICT, &at, &items) : NULL;
}

/* ---- primaries ---- */

static struct jinja_node *parse_strings(struct jinja_parser *p)
{
    struct jinja_token at = p->token;
    const char *bytes = at.text;
    size_t len = at.len, cap = at.len;
    if (!parse_advance(p))
        return NULL;
    while (p->token.kind == TOKEN_TEXT) { /* adjacent literals are one */
        if (len + p->token.len > cap || bytes == at.text) {
            cap = (len + p->token.len) * 2;
            char *joined = parse_alloc(p, cap + 1);
            if (!joined)
                return NULL;
            memcpy(joined, bytes, len);
            bytes = joined;
        }
        memcpy((char *)bytes + len, p->token.text, p->token.len);
        len += p->token.len;
        if (!parse_advance(p))
            return NULL;
    }
    struct jinja_string *s = parse_literal(p, bytes, len);
    return s ? parse_const(p, &at, value_string(s)) : NULL;
}

/* The macros around must pass on what their bodies use. */
static void note_special(struct jinja_parser *p, uint32_t symbol)
{
    for (struct jinja_macro_scope *scope = p->macros; scope; scope = scope->outer) {
        scope->macro->takes_caller |= symbol == p->tpl->caller_symbol;
        scope->macro->takes_varargs |= symbol == p->tpl->varargs_symbol;
        scope->macro->takes_kwargs |= symbol == p->tpl->kwargs_symbol;
    }
}

static uint32_t token_symbol(struct jinja_parser *p, const struct jinja_token *token)
{
    return jinja_symbol(p->tpl, token->text, token->len);
}

static struct jinja_node *parse_word(struct jinja_parser *p)
{
    struct jinja_token at = p->token;
    if (!parse_advance(p))
        return NULL;
    if (jinja_name_is(at.text, at.len, "true") || jinja_name_is(at.text, at.len, "True"))
        return parse_const(p, &at, value_bool(true));
    if (jinja_name_is(at.text, at.len, "false") || jinja_name_is(at.text, at.len, "False"))
        return parse_const(p, &at, value_bool(false));
    if (jinja_name_is(at.text, at.len, "none") || jinja_name_is(at.text, at.len, "None"))
        return parse_const(p, &at, value_none());
    if (jinja_name_is(at.text, at.len, "self") || jinja_name_is(at.text, at.len, "super")) {
        (void)parse_error(p, &at, "'%.*s' is not supported", (int)at.len, at.text);
        return NULL;
    }
    struct jinja_node *node = parse_node(p, NODE_NAME, &at);
    if (!node)
        return NULL;
    node->u.symbol = token_symbol(p, &at);
    note_special(p, node->u.symbol);
    return node;
}

static struct jinja_node *parse_brackets(struct jinja_parser *p)
{
    if (!parse_enter(p) || !parse_advance(p))
        return NULL;
    struct jinja_node *node = parse_tuple(p, true, true, NULL);
    if (!node || !parse_expect_op(p, LEX_RPAREN, "')'"))
        return NULL;
    parse_leave(p);
    return node;
}

static struct jinja_node *parse_nested(struct jinja_parser *p,
                                       struct jinja_node *(*parse)(struct jinja_parser *))
{
    if (!parse_enter(p))
        return NULL;
    struct jinja_node *node = parse(p);
    parse_leave(p);
    return node;
}

struct jinja_node *parse_primary(struct jinja_parser *p)
{
    struct jinja_token at = p->token;
    switch (at.kind) {
    case TOKEN_WORD:
        return parse_word(p);
    case TOKEN_TEXT:
        return parse_strings(p);
    case TOKEN_INT:
        return parse_advance(p) ? parse_const(p, &at, value_int(at.integer)) : NULL;
    case TOKEN_REAL:
        return parse_advance(p) ? parse_const(p, &at, value_real(at.real)) : NULL;
    default:
        break;
    }
    if (parse_is_op(p, LEX_LPAREN))
        return parse_brackets(p);
    if (parse_is_op(p, LEX_LBRACKET))
        return parse_nested(p, parse_list);
    if (parse_is_op(p, LEX_LBRACE))
        return parse_nested(p, parse_dict);
    (void)parse_unexpected(p, "an expression");
    return NULL;
}

/* ---- operators, the tightest first ---- */

static struct jinja_node *parse_unary(struct jinja_parser *p, bool with_filters)
{
    struct jinja_token at = p->token;
    struct jinja_node *node;
    if (parse_is_op(p, LEX_SUB) || parse_is_op(p, LEX_ADD)) {
        enum node_kind kind = at.op == LEX_SUB ? NODE_NEGATE : NODE_PLUS;
        if (!parse_enter(p) || !parse_advance(p) || !(node = parse_unary(p, false)))
            return NULL;
        parse_leave(p);
        node = parse_pair(p, kind, 0, &at, node, NULL);
    } else {
        node = parse_primary(p);
    }
    node = parse_postfix(p, node);
    return with_filters ? parse_filters_and_tests(p, node) : node;
}

static struct jinja_node *parse_power(struct jinja_parser *p)
{
    struct jinja_node *left = parse_unary(p, true);
    while (left && parse_is_op(p, LEX_POW)) {
        struct jinja_token at = p->token;
        struct jinja_node *right = parse_advance(p) ? parse_unary(p, true) : NULL;
        left = right ? parse_pair(p, NODE_BINARY, OP_POW, &at, left, right) : NULL;
    }
    return left;
}

static struct jinja_node *parse_product(struct jinja_parser *p)
{
    struct jinja_node *left = parse_power(p);
    while (left && (parse_is_op(p, LEX_MUL) || parse_is_op(p, LEX_DIV) ||
                    parse_is_op(p, LEX_FLOORDIV) || parse_is_op(p, LEX_MOD))) {
        struct jinja_token at = p->token;
        enum jinja_op op = at.op == LEX_MUL        ? OP_MUL
                           : at.op == LEX_DIV      ? OP_DIV
                           : at.op == LEX_FLOORDIV ? OP_FLOORDIV
                                                   : OP_MOD;
        struct jinja_node *right = parse_advance(p) ? parse_power(p) : NULL;
        left = right ? parse_pair(p, NODE_BINARY, op, &at, left, right) : NULL;
    }
    return left;
}

static struct jinja_node *parse_concat(struct jinja_parser *p)
{
    struct jinja_token at = p->token;
    struct parse_items items = {0};
    struct jinja_node *first = parse_product(p);
    if (!first || !parse_is_op(p, LEX_TILDE))
        return first;
    parse_add(&items, first);
    while (parse_is_op(p, LEX_TILDE)) {
        struct jinja_node *item = parse_advance(p) ? parse_product(p) : NULL;
        if (!item)
            return NULL;
        parse_add(&items, item);
    }
    return parse_list_node(p, NODE_CONCAT, &at, &items);
}

static struct jinja_node *parse_sum(struct jinja_parser *p)
{
    struct jinja_node *left = parse_concat(p);
    while (left && (parse_is_op(p, LEX_ADD) || parse_is_op(p, LEX_SUB))) {
        struct jinja_token at = p->token;
        struct jinja_node *right = parse_advance(p) ? parse_concat(p) : NULL;
        left =
            right ? parse_pair(p, NODE_BINARY, at.op == LEX_ADD ? OP_ADD : OP_SUB, &at, left, right)
                  : NULL;
    }
    return left;
}

/* Takes a comparison operator; *ret_found is false when there is none. */
static bool take_compare(struct jinja_parser *p, enum compare_op *ret, bool *ret_found)
{
    static const enum compare_op ops[] = {[LEX_EQ] = CMP_EQ, [LEX_NE] = CMP_NE, [LEX_LT] = CMP_LT,
                                          [LEX_LE] = CMP_LE, [LEX_GT] = CMP_GT, [LEX_GE] = CMP_GE};
    *ret_found = true;
    if (p->token.kind == TOKEN_OP && p->token.op >= LEX_EQ && p->token.op <= LEX_GE) {
        *ret = ops[p->token.op];
        return parse_advance(p);
    }
    *ret = CMP_IN;
    if (parse_is_word(p, "in"))
        return parse_advance(p);
    *ret_found = false;
    if (!parse_is_word(p, "not"))
        return true;
    if (!parse_look_ahead(p))
        return false;
    if (p->ahead.kind != TOKEN_WORD || !jinja_name_is(p->ahead.text, p->ahead.len, "in"))
        return true;
    *ret = CMP_NOT_IN;
    *ret_found = true;
    return parse_advance(p) && parse_advance(p);
}

static struct jinja_node *parse_compare(struct jinja_parser *p)
{
    struct jinja_token at = p->token;
    struct parse_items operands = {0};
    struct jinja_node *first = parse_sum(p);
    while (first) {
        enum compare_op op;
        bool found;
        if (!take_compare(p, &op, &found))
            return NULL;
        if (!found)
            break;
        struct jinja_node *value = parse_sum(p);
        /* a node of its own: the operand's `next` may be in use */
        struct jinja_node *operand = value ? parse_pair(p, NODE_PLUS, op, &at, value, NULL) : NULL;
        if (!operand)
            return NULL;
        parse_add(&operands, operand);
    }
    if (!first || !operands.first)
        return first;
    struct jinja_node *node = parse_pair(p, NODE_COMPARE, 0, &at, first, operands.first);
    for (const struct jinja_node *o = operands.first; node && o; o = o->next)
        node = parse_below(p, node, o);
    return node;
}

static struct jinja_node *parse_not(struct jinja_parser *p)
{
    if (!parse_is_word(p, "not"))
        return parse_compare(p);
    struct jinja_token at = p->token;
    if (!parse_enter(p) || !parse_advance(p))
        return NULL;
    struct jinja_node *node = parse_not(p);
    parse_leave(p);
    return node ? parse_pair(p, NODE_NOT, 0, &at, node, NULL) : NULL;
}

static struct jinja_node *parse_and(struct jinja_parser *p)
{
    struct jinja_node *left = parse_not(p);
    while (left && parse_is_word(p, "and")) {
        struct jinja_token at = p->token;
        struct jinja_node *right = parse_advance(p) ? parse_not(p) : NULL;
        left = right ? parse_pair(p, NODE_AND, 0, &at, left, right) : NULL;
    }
    return left;
}

static struct jinja_node *parse_or(struct jinja_parser *p)
{
    struct jinja_node *left = parse_and(p);
    while (left && parse_is_word(p, "or")) {
        struct jinja_token at = p->token;
        struct jinja_node *right = parse_advance(p) ? parse_and(p) : NULL;
        left = right ? parse_pair(p, NODE_OR, 0, &at, left, right) : NULL;
    }
    return left;
}

static struct jinja_node *parse_cond(struct jinja_parser *p)
{
    struct jinja_node *value = parse_or(p);
    while (value && parse_is_word(p, "if")) {
        struct jinja_node *node = parse_node(p, NODE_COND, &p->token);
        if (!node || !parse_advance(p))
            return NULL;
        node->u.branch.then = value;
        if (!(node->u.branch.test = parse_or(p)))
            return NULL;
        if (parse_is_word(p, "else")) {
            if (!parse_enter(p) || !parse_advance(p) || !(node->u.branch.or_else = parse_cond(p)))
                return NULL;
            parse_leave(p);
        }
        value = parse_below(p, node, node->u.branch.test) && parse_below(p, node, value) &&
                        parse_below(p, node, node->u.branch.or_else)
                    ? node
                    : NULL;
    }
    return value;
}

struct jinja_node *parse_expression(struct jinja_parser *p, bool with_cond)
{
    return with_cond ? parse_cond(p) : parse_or(p);
}
