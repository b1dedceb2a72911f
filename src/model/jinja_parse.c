/*
 * Compilation of a template as a whole, and what the parser's parts share: names, tokens, nodes.
 * Everything that a template names must exist: unknown filters, tests, functions and methods are
 * errors here and not at the first message that meets them.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jinja_ops_priv.h"
#include "jinja_parse_priv.h"
#include "tellerd/base/mem.h"

enum { TEMPLATE_MEMORY = 256 << 20 };

/* ---- names ---- */

static uint32_t hash_name(const char *name, size_t len)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return hash;
}

static void index_symbol(struct jinja_template *tpl, uint32_t symbol)
{
    const struct jinja_symbol *s = &tpl->symbols[symbol];
    uint32_t slot = hash_name(s->name, s->len) & (tpl->n_index - 1);
    while (tpl->index[slot] != 0)
        slot = (slot + 1) & (tpl->n_index - 1);
    tpl->index[slot] = symbol + 1;
}

static void grow_symbols(struct jinja_template *tpl)
{
    tpl->cap_symbols = tpl->cap_symbols ? tpl->cap_symbols * 2 : 64;
    tpl->symbols = xreallocarray(tpl->symbols, tpl->cap_symbols, sizeof *tpl->symbols);
    free(tpl->index);
    tpl->n_index = tpl->cap_symbols * 2;
    tpl->index = xcalloc(tpl->n_index, sizeof *tpl->index);
    for (uint32_t i = 0; i < tpl->n_symbols; i++)
        index_symbol(tpl, i);
}

uint32_t jinja_symbol(struct jinja_template *tpl, const char *name, size_t len)
{
    if (tpl->n_index > 0) {
        uint32_t slot = hash_name(name, len) & (tpl->n_index - 1);
        for (; tpl->index[slot] != 0; slot = (slot + 1) & (tpl->n_index - 1)) {
            const struct jinja_symbol *s = &tpl->symbols[tpl->index[slot] - 1];
            if (s->len == len && memcmp(s->name, name, len) == 0)
                return tpl->index[slot] - 1;
        }
    }
    if (tpl->n_symbols == tpl->cap_symbols)
        grow_symbols(tpl);
    tpl->symbols[tpl->n_symbols] = (struct jinja_symbol){.name = xstrndup(name, len), .len = len};
    index_symbol(tpl, tpl->n_symbols);
    return tpl->n_symbols++;
}

/* ---- tokens ---- */

bool parse_error(struct jinja_parser *p, const struct jinja_token *at, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return jinja_syntax_error(p->tpl->name, p->err, at->line, at->column, "%s", text);
}

bool parse_advance(struct jinja_parser *p)
{
    if (p->has_ahead) {
        p->token = p->ahead;
        p->has_ahead = false;
        return true;
    }
    return jinja_lex_next(&p->lexer, &p->token);
}

bool parse_look_ahead(struct jinja_parser *p)
{
    if (p->has_ahead)
        return true;
    p->has_ahead = jinja_lex_next(&p->lexer, &p->ahead);
    return p->has_ahead;
}

bool parse_is_op(const struct jinja_parser *p, enum lex_op op)
{
    return p->token.kind == TOKEN_OP && p->token.op == op;
}

bool parse_is_word(const struct jinja_parser *p, const char *word)
{
    return p->token.kind == TOKEN_WORD && jinja_name_is(p->token.text, p->token.len, word);
}

bool parse_unexpected(struct jinja_parser *p, const char *wanted)
{
    const struct jinja_token *t = &p->token;
    int len = (int)(t->len < 48 ? t->len : 48);
    switch (t->kind) {
    case TOKEN_VARIABLE_END:
    case TOKEN_BLOCK_END:
        return parse_error(p, t, "expected %s, got the end of the tag", wanted);
    case TOKEN_END:
        return parse_error(p, t, "expected %s, got the end of the template", wanted);
    case TOKEN_TEXT:
        return parse_error(p, t, "expected %s, got a string", wanted);
    default:
        return parse_error(p, t, "expected %s, got '%.*s'", wanted, len, t->text ? t->text : "");
    }
}

bool parse_expect_op(struct jinja_parser *p, enum lex_op op, const char *what)
{
    if (!parse_is_op(p, op))
        return parse_unexpected(p, what);
    return parse_advance(p);
}

void *parse_alloc(struct jinja_parser *p, size_t size)
{
    void *block = arena_calloc(&p->tpl->arena, 1, size);
    if (!block)
        (void)parse_error(p, &p->token, "the template takes too much memory");
    return block;
}

bool parse_enter(struct jinja_parser *p)
{
    if (p->depth == JINJA_MAX_NESTING)
        return parse_error(p, &p->token, "the template nests too deep (more than %d levels)",
                           (int)JINJA_MAX_NESTING);
    p->depth++;
    return true;
}

void parse_leave(struct jinja_parser *p)
{
    p->depth--;
}

struct jinja_node *parse_node(struct jinja_parser *p, enum node_kind kind,
                              const struct jinja_token *at)
{
    struct jinja_node *node = parse_alloc(p, sizeof *node);
    if (node) {
        node->kind = (uint8_t)kind;
        node->line = at->line;
        node->column = at->column;
        node->height = 1;
    }
    return node;
}

/* Makes `child` lie below node; NULL when the chain grew too long. */
struct jinja_node *parse_below(struct jinja_parser *p, struct jinja_node *node,
                               const struct jinja_node *child)
{
    if (child && child->height >= node->height)
        node->height = (uint16_t)(child->height + 1);
    if (node->height <= JINJA_MAX_CHAIN)
        return node;
    (void)parse_error(p, &p->token, "the expression is too long (more than %d terms)",
                      (int)JINJA_MAX_CHAIN);
    return NULL;
}

struct jinja_node *parse_pair(struct jinja_parser *p, enum node_kind kind, unsigned op,
                              const struct jinja_token *at, struct jinja_node *left,
                              struct jinja_node *right)
{
    struct jinja_node *node = parse_node(p, kind, at);
    if (!node)
        return NULL;
    node->op = (uint8_t)op;
    node->u.pair.left = left;
    node->u.pair.right = right;
    return parse_below(p, node, left) ? parse_below(p, node, right) : NULL;
}

struct jinja_string *parse_literal(struct jinja_parser *p, const char *bytes, size_t len)
{
    struct jinja_string *s = parse_alloc(p, sizeof *s);
    if (!s)
        return NULL;
    *s = (struct jinja_string){.bytes = bytes, .len = len, .trust = TRUST_ALL, .is_ascii = 1};
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)bytes[i] >= 0x80)
            s->is_ascii = 2;
    }
    return s;
}

struct jinja_node *parse_const(struct jinja_parser *p, const struct jinja_token *at,
                               struct jinja_value value)
{
    struct jinja_node *node = parse_node(p, NODE_CONST, at);
    if (node)
        node->u.constant = value;
    return node;
}

/* ---- lists ---- */

void parse_add(struct parse_items *items, struct jinja_node *node)
{
    if (!items->end)
        items->end = &items->first;
    *items->end = node;
    items->end = &node->next;
    items->n++;
}

struct jinja_node *parse_list_node(struct jinja_parser *p, enum node_kind kind,
                                   const struct jinja_token *at, const struct parse_items *items)
{
    struct jinja_node *node = parse_node(p, kind, at);
    if (!node)
        return NULL;
    node->u.list.items = items->first;
    node->u.list.n = items->n;
    for (const struct jinja_node *item = items->first; item; item = item->next) {
        if (!parse_below(p, node, item))
            return NULL;
    }
    return node;
}

void parse_note_member(struct jinja_parser *p, const struct jinja_string *name)
{
    p->tpl->symbols[jinja_symbol(p->tpl, name->bytes, name->len)].assigned_member = true;
}

/* ---- the whole ---- */

static bool check_functions(struct jinja_parser *p)
{
    for (const struct jinja_wish *w = p->functions; w; w = w->next) {
        const struct jinja_token *t = &w->token;
        const struct jinja_symbol *s = &p->tpl->symbols[jinja_symbol(p->tpl, t->text, t->len)];
        if (jinja_name_is(t->text, t->len, "loop"))
            return parse_error(p, t, "recursive loops are not supported");
        if (!s->assigned && !jinja_global_find(s->name, s->len) &&
            !jinja_name_is(s->name, s->len, "caller"))
            return parse_error(p, t, "unknown or unsupported function '%.*s'",
                               (int)(t->len < 48 ? t->len : 48), t->text);
    }
    for (const struct jinja_wish *w = p->methods; w; w = w->next) {
        const struct jinja_token *t = &w->token;
        const struct jinja_symbol *s = &p->tpl->symbols[jinja_symbol(p->tpl, t->text, t->len)];
        if (!s->assigned_member && !jinja_method_known(t->text, t->len))
            return parse_error(p, t, "unknown or unsupported method '%.*s'",
                               (int)(t->len < 48 ? t->len : 48), t->text);
    }
    return true;
}

enum status jinja_compile(const char *source, size_t len, const char *name,
                          struct jinja_template **ret, struct error *err)
{
    struct jinja_template *tpl = xcalloc(1, sizeof *tpl);
    arena_init(&tpl->arena, TEMPLATE_MEMORY);
    struct jinja_parser p = {.tpl = tpl, .err = err};
    tpl->name = arena_strndup(&tpl->arena, name, strnlen(name, 256));
    tpl->loop_symbol = jinja_symbol(tpl, "loop", 4);
    tpl->caller_symbol = jinja_symbol(tpl, "caller", 6);
    tpl->varargs_symbol = jinja_symbol(tpl, "varargs", 7);
    tpl->kwargs_symbol = jinja_symbol(tpl, "kwargs", 6);
    if (jinja_lex_init(&p.lexer, &tpl->arena, source, len, tpl->name, err) &&
        jinja_parse_body(&p, &tpl->body) && check_functions(&p)) {
        *ret = tpl;
        return STATUS_OK;
    }
    jinja_template_free(tpl);
    return STATUS_BAD_FILE;
}

void jinja_template_free(struct jinja_template *tpl)
{
    if (!tpl)
        return;
    arena_done(&tpl->arena);
    for (uint32_t i = 0; i < tpl->n_symbols; i++)
        free(tpl->symbols[i].name);
    free(tpl->symbols);
    free(tpl->index);
    free(tpl);
}
