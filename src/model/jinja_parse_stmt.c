/*
 * Statements of templates.  Bodies nest by recursion that parse_enter bounds; chains (elif, text
 * after text) are lists.
 */
#include "config.h"

#include <string.h>

#include "jinja_ops_priv.h"
#include "jinja_parse_priv.h"

enum { MAX_PARAMS = 255 };

static bool parse_statements(struct jinja_parser *p, const char *const *end_words,
                             struct jinja_node **ret);

static uint32_t assign_symbol(struct jinja_parser *p, const struct jinja_token *at)
{
    uint32_t symbol = jinja_symbol(p->tpl, at->text, at->len);
    p->tpl->symbols[symbol].assigned = true;
    return symbol;
}

static bool is_reserved(const struct jinja_token *at)
{
    static const char *const words[] = {"true",  "false", "none", "True",
                                        "False", "None",  "self", "super"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (jinja_name_is(at->text, at->len, words[i]))
            return true;
    }
    return false;
}

/* A name to assign to, or ns.name where that is allowed. */
static struct jinja_node *parse_target_name(struct jinja_parser *p, bool with_member)
{
    struct jinja_token at = p->token;
    if (at.kind != TOKEN_WORD || is_reserved(&at)) {
        (void)parse_unexpected(p, "a name to assign to");
        return NULL;
    }
    struct jinja_node *node = parse_node(p, NODE_NAME, &at);
    if (!node || !parse_advance(p))
        return NULL;
    if (!with_member || !parse_is_op(p, LEX_DOT)) {
        node->u.symbol = assign_symbol(p, &at);
        return node;
    }
    if (!parse_advance(p))
        return NULL;
    if (p->token.kind != TOKEN_WORD) {
        (void)parse_unexpected(p, "a member's name");
        return NULL;
    }
    struct jinja_string *name = parse_alloc(p, sizeof *name);
    if (!name)
        return NULL;
    *name = (struct jinja_string){.bytes = p->token.text, .len = p->token.len, .trust = TRUST_ALL};
    node->kind = NODE_MEMBER_TARGET;
    node->u.attr.name = name;
    node->u.attr.symbol = jinja_symbol(p->tpl, at.text, at.len);
    p->tpl->symbols[jinja_symbol(p->tpl, name->bytes, name->len)].assigned_member = true;
    return parse_advance(p) ? node : NULL;
}

static struct jinja_node *parse_target(struct jinja_parser *p, bool with_member);

static struct jinja_node *parse_target_item(struct jinja_parser *p, bool with_member)
{
    if (!parse_is_op(p, LEX_LPAREN))
        return parse_target_name(p, with_member);
    if (!parse_enter(p) || !parse_advance(p))
        return NULL;
    struct jinja_node *node = parse_target(p, with_member);
    parse_leave(p);
    return node && parse_expect_op(p, LEX_RPAREN, "')'") ? node : NULL;
}

/* One target, or several with commas. */
static struct jinja_node *parse_target(struct jinja_parser *p, bool with_member)
{
    struct jinja_token at = p->token;
    struct jinja_node *first = parse_target_item(p, with_member), *last = first;
    if (!first || !parse_is_op(p, LEX_COMMA))
        return first;
    struct jinja_node *tuple = parse_node(p, NODE_TUPLE, &at);
    if (!tuple)
        return NULL;
    tuple->u.list.items = first;
    tuple->u.list.n = 1;
    while (parse_is_op(p, LEX_COMMA)) {
        if (!parse_advance(p))
            return NULL;
        if (p->token.kind != TOKEN_WORD && !parse_is_op(p, LEX_LPAREN))
            break;
        if (parse_is_word(p, "in"))
            break;
        last->next = parse_target_item(p, with_member);
        if (!last->next)
            return NULL;
        last = last->next;
        tuple->u.list.n++;
    }
    return tuple;
}

/* Body of a tag up to its end tag, which is taken. */
static bool parse_block(struct jinja_parser *p, const char *end_word, struct jinja_node **ret)
{
    const char *const ends[] = {end_word, NULL};
    return parse_statements(p, ends, ret) && parse_advance(p);
}

static struct jinja_node *parse_if(struct jinja_parser *p)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    struct jinja_node *first = NULL, **link = &first;
    for (;;) {
        struct jinja_node *node = parse_node(p, NODE_IF, &p->token);
        if (!node || !parse_advance(p))
            return NULL;
        node->op = link != &first; /* an elif */
        *link = node;
        node->u.branch.test = parse_tuple(p, false, false, NULL);
        if (!node->u.branch.test || !parse_statements(p, ends, &node->u.branch.then))
            return NULL;
        if (!parse_is_word(p, "elif"))
            break;
        link = &node->u.branch.or_else;
    }
    if (parse_is_word(p, "endif"))
        return parse_advance(p) ? first : NULL;
    struct jinja_node *last = first;
    while (last->u.branch.or_else)
        last = last->u.branch.or_else;
    return parse_advance(p) && parse_block(p, "endif", &last->u.branch.or_else) ? first : NULL;
}

static struct jinja_node *parse_for(struct jinja_parser *p)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    struct jinja_node *node = parse_node(p, NODE_FOR, &p->token);
    if (!node || !parse_advance(p) || !(node->u.loop.target = parse_target(p, false)))
        return NULL;
    if (!parse_is_word(p, "in")) {
        (void)parse_unexpected(p, "'in'");
        return NULL;
    }
    if (!parse_advance(p) || !(node->u.loop.over = parse_tuple(p, false, false, "recursive")))
        return NULL;
    if (parse_is_word(p, "if") &&
        (!parse_advance(p) || !(node->u.loop.filter = parse_expression(p, true))))
        return NULL;
    if (parse_is_word(p, "recursive")) {
        (void)parse_error(p, &p->token, "recursive loops are not supported");
        return NULL;
    }
    p->n_loops++;
    bool ok = parse_statements(p, ends, &node->u.loop.body);
    p->n_loops--;
    if (!ok)
        return NULL;
    bool has_else = parse_is_word(p, "else");
    if (!parse_advance(p) || (has_else && !parse_block(p, "endfor", &node->u.loop.or_else)))
        return NULL;
    return node;
}

static struct jinja_node *parse_set(struct jinja_parser *p)
{
    struct jinja_node *node = parse_node(p, NODE_SET, &p->token);
    if (!node || !parse_advance(p) || !(node->u.set.target = parse_target(p, true)))
        return NULL;
    if (parse_is_op(p, LEX_ASSIGN)) {
        if (!parse_advance(p) || !(node->u.set.value = parse_tuple(p, true, false, NULL)))
            return NULL;
        return node;
    }
    node->kind = NODE_SET_BLOCK;
    if (parse_is_op(p, LEX_PIPE) && !(node->u.set.value = parse_filters(p, NULL, false)))
        return NULL;
    return parse_block(p, "endset", &node->u.set.body) ? node : NULL;
}

/* (a, b=1): into macro. */
static bool parse_params(struct jinja_parser *p, struct jinja_macro *macro)
{
    uint32_t symbols[MAX_PARAMS], n = 0;
    struct jinja_node *defaults[MAX_PARAMS];
    bool had_default = false;
    if (!parse_expect_op(p, LEX_LPAREN, "'('"))
        return false;
    while (!parse_is_op(p, LEX_RPAREN)) {
        struct jinja_token at = p->token;
        if (at.kind != TOKEN_WORD || is_reserved(&at))
            return parse_unexpected(p, "a parameter's name");
        if (n == MAX_PARAMS)
            return parse_error(p, &at, "more than %d parameters", (int)MAX_PARAMS);
        symbols[n] = assign_symbol(p, &at);
        for (uint32_t i = 0; i < n; i++) {
            if (symbols[i] == symbols[n])
                return parse_error(p, &at, "the parameter '%.*s' is named twice",
                                   (int)(at.len < 48 ? at.len : 48), at.text);
        }
        macro->names_caller |= symbols[n] == p->tpl->caller_symbol;
        defaults[n] = NULL;
        if (!parse_advance(p))
            return false;
        if (parse_is_op(p, LEX_ASSIGN)) {
            had_default = true;
            if (!parse_advance(p) || !(defaults[n] = parse_expression(p, true)))
                return false;
        } else if (had_default) {
            return parse_error(p, &at, "a parameter without default follows one with a default");
        }
        n++;
        if (!parse_is_op(p, LEX_RPAREN) && !parse_expect_op(p, LEX_COMMA, "',' or ')'"))
            return false;
    }
    macro->n_params = n;
    macro->params = parse_alloc(p, (n + 1) * sizeof *macro->params);
    macro->defaults = parse_alloc(p, (n + 1) * sizeof *macro->defaults);
    if (!macro->params || !macro->defaults)
        return false;
    memcpy(macro->params, symbols, n * sizeof *symbols);
    memcpy(macro->defaults, defaults, n * sizeof(struct jinja_node *));
    return parse_advance(p);
}

/* The body of a macro or call block: a function of its own, so loops outside do not count. */
static bool parse_macro_body(struct jinja_parser *p, struct jinja_macro *macro, const char *end)
{
    struct jinja_macro_scope scope = {macro, p->macros};
    uint32_t n_loops = p->n_loops;
    p->macros = &scope;
    p->n_loops = 0;
    bool ok = parse_block(p, end, &macro->body);
    p->macros = scope.outer;
    p->n_loops = n_loops;
    return ok;
}

static struct jinja_node *parse_macro(struct jinja_parser *p)
{
    struct jinja_node *node = parse_node(p, NODE_MACRO, &p->token);
    struct jinja_macro *macro = parse_alloc(p, sizeof *macro);
    if (!node || !macro || !parse_advance(p))
        return NULL;
    struct jinja_token at = p->token;
    if (at.kind != TOKEN_WORD || is_reserved(&at)) {
        (void)parse_unexpected(p, "a macro's name");
        return NULL;
    }
    node->u.macro.macro = macro;
    macro->symbol = assign_symbol(p, &at);
    macro->name = arena_strndup(&p->tpl->arena, at.text, at.len);
    if (!macro->name) {
        (void)parse_error(p, &at, "the template takes too much memory");
        return NULL;
    }
    return parse_advance(p) && parse_params(p, macro) && parse_macro_body(p, macro, "endmacro")
               ? node
               : NULL;
}

static struct jinja_node *parse_call_block(struct jinja_parser *p)
{
    struct jinja_token at = p->token;
    struct jinja_node *node = parse_node(p, NODE_CALL_BLOCK, &at);
    struct jinja_macro *macro = parse_alloc(p, sizeof *macro);
    if (!node || !macro || !parse_advance(p))
        return NULL;
    macro->name = "caller";
    macro->symbol = p->tpl->caller_symbol;
    node->u.macro.macro = macro;
    if (parse_is_op(p, LEX_LPAREN) && !parse_params(p, macro))
        return NULL;
    node->u.macro.call = parse_expression(p, true);
    if (!node->u.macro.call)
        return NULL;
    if (node->u.macro.call->kind != NODE_CALL) {
        (void)parse_error(p, &at, "a call block wants a call");
        return NULL;
    }
    return parse_macro_body(p, macro, "endcall") ? node : NULL;
}

static struct jinja_node *parse_filter_block(struct jinja_parser *p)
{
    struct jinja_node *node = parse_node(p, NODE_FILTER_BLOCK, &p->token);
    if (!node || !parse_advance(p) || !(node->u.set.value = parse_filters(p, NULL, true)))
        return NULL;
    return parse_block(p, "endfilter", &node->u.set.body) ? node : NULL;
}

static struct jinja_node *parse_with(struct jinja_parser *p)
{
    struct jinja_node *node = parse_node(p, NODE_WITH, &p->token), **link;
    if (!node || !parse_advance(p))
        return NULL;
    link = &node->u.with.items;
    while (p->token.kind != TOKEN_BLOCK_END) {
        if (node->u.with.items && !parse_expect_op(p, LEX_COMMA, "','"))
            return NULL;
        struct jinja_node *target = parse_target_item(p, false);
        if (!target || !parse_expect_op(p, LEX_ASSIGN, "'='"))
            return NULL;
        struct jinja_node *value = parse_expression(p, true);
        if (!value)
            return NULL;
        *link = target;
        target->next = value;
        link = &value->next;
    }
    return parse_block(p, "endwith", &node->u.with.body) ? node : NULL;
}

/* transformers marks the assistant's part this way for training; it renders as its body. */
static struct jinja_node *parse_generation(struct jinja_parser *p)
{
    struct jinja_node *node = parse_node(p, NODE_SCOPE, &p->token);
    uint32_t n_loops = p->n_loops;
    if (!node || !parse_advance(p))
        return NULL;
    p->n_loops = 0;
    bool ok = parse_block(p, "endgeneration", &node->u.with.body);
    p->n_loops = n_loops;
    return ok ? node : NULL;
}

static struct jinja_node *parse_jump(struct jinja_parser *p)
{
    bool is_break = parse_is_word(p, "break");
    struct jinja_node *node = parse_node(p, is_break ? NODE_BREAK : NODE_CONTINUE, &p->token);
    if (p->n_loops == 0) {
        (void)parse_error(p, &p->token, "'%s' stands outside of a loop",
                          is_break ? "break" : "continue");
        return NULL;
    }
    return node && parse_advance(p) ? node : NULL;
}

/* {% print a, b %}: as outputs in a row; the last is returned through *ret_last. */
static struct jinja_node *parse_print(struct jinja_parser *p)
{
    struct jinja_node *first = NULL, **link = &first;
    if (!parse_advance(p))
        return NULL;
    while (p->token.kind != TOKEN_BLOCK_END) {
        if (first && !parse_expect_op(p, LEX_COMMA, "','"))
            return NULL;
        struct jinja_node *node = parse_node(p, NODE_OUTPUT, &p->token);
        if (!node || !(node->u.output = parse_expression(p, true)))
            return NULL;
        *link = node;
        link = &node->next;
    }
    if (!first)
        (void)parse_unexpected(p, "an expression");
    return first;
}

static struct jinja_node *parse_statement(struct jinja_parser *p)
{
    static const struct {
        const char *word;
        struct jinja_node *(*parse)(struct jinja_parser *);
    } tags[] = {
        {"if", parse_if},           {"for", parse_for},
        {"set", parse_set},         {"macro", parse_macro},
        {"call", parse_call_block}, {"filter", parse_filter_block},
        {"with", parse_with},       {"generation", parse_generation},
        {"break", parse_jump},      {"continue", parse_jump},
        {"print", parse_print},
    };
    if (p->token.kind != TOKEN_WORD) {
        (void)parse_unexpected(p, "a tag's name");
        return NULL;
    }
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (parse_is_word(p, tags[i].word))
            return tags[i].parse(p);
    }
    (void)parse_error(p, &p->token, "unknown or unsupported tag '%.*s'",
                      (int)(p->token.len < 48 ? p->token.len : 48), p->token.text);
    return NULL;
}

static bool is_end_word(const struct jinja_parser *p, const char *const *end_words)
{
    for (; end_words && *end_words; end_words++) {
        if (parse_is_word(p, *end_words))
            return true;
    }
    return false;
}

static struct jinja_node *parse_output(struct jinja_parser *p)
{
    struct jinja_node *node = parse_node(p, NODE_OUTPUT, &p->token);
    if (!node || !parse_advance(p) || !(node->u.output = parse_tuple(p, true, false, NULL)))
        return NULL;
    if (p->token.kind != TOKEN_VARIABLE_END) {
        (void)parse_unexpected(p, "'}}'");
        return NULL;
    }
    return parse_advance(p) ? node : NULL;
}

static struct jinja_node *parse_text(struct jinja_parser *p)
{
    struct jinja_node *node = parse_node(p, NODE_TEXT, &p->token);
    struct jinja_string *text = parse_alloc(p, sizeof *text);
    if (!node || !text)
        return NULL;
    *text = (struct jinja_string){.bytes = p->token.text, .len = p->token.len, .trust = TRUST_ALL};
    node->u.constant = value_string(text);
    return parse_advance(p) ? node : NULL;
}

/* A tag whose begin is the current token: a statement with its end, or an end word (left there). */
static struct jinja_node *parse_tag(struct jinja_parser *p, const char *const *end_words,
                                    bool *ret_ended)
{
    if (!parse_advance(p))
        return NULL;
    *ret_ended = is_end_word(p, end_words);
    if (*ret_ended)
        return NULL;
    struct jinja_node *node = parse_statement(p);
    if (!node)
        return NULL;
    if (p->token.kind != TOKEN_BLOCK_END) {
        (void)parse_unexpected(p, "'%}'");
        return NULL;
    }
    return parse_advance(p) ? node : NULL;
}

/* Statements until a tag with one of end_words, or until the end of the template when NULL. */
static bool parse_until(struct jinja_parser *p, const char *const *end_words,
                        struct jinja_node **ret)
{
    struct jinja_node **link = ret;
    *ret = NULL;
    while (p->token.kind != TOKEN_END) {
        struct jinja_node *node = NULL;
        bool ended = false;
        if (p->token.kind == TOKEN_DATA && p->token.len == 0) {
            if (!parse_advance(p))
                return false;
            continue;
        }
        if (p->token.kind == TOKEN_DATA)
            node = parse_text(p);
        else if (p->token.kind == TOKEN_VARIABLE_BEGIN)
            node = parse_output(p);
        else
            node = parse_tag(p, end_words, &ended);
        if (ended)
            return true;
        if (!node)
            return false;
        *link = node;
        while (node->next)
            node = node->next;
        link = &node->next;
    }
    return end_words == NULL || parse_unexpected(p, end_words[0]);
}

static bool parse_statements(struct jinja_parser *p, const char *const *end_words,
                             struct jinja_node **ret)
{
    if (parse_is_op(p, LEX_COLON) && !parse_advance(p)) /* Jinja2 takes a colon here */
        return false;
    if (p->token.kind != TOKEN_BLOCK_END)
        return parse_unexpected(p, "'%}'");
    if (!parse_enter(p) || !parse_advance(p) || !parse_until(p, end_words, ret))
        return false;
    parse_leave(p);
    return true;
}

bool jinja_parse_body(struct jinja_parser *p, struct jinja_node **ret)
{
    return parse_advance(p) && parse_until(p, NULL, ret);
}
