#ifndef TELLERD_MODEL_JINJA_PARSE_PRIV_H
#define TELLERD_MODEL_JINJA_PARSE_PRIV_H

/*
 * The lexer and the parser of templates, which turn a source into the nodes of jinja_node_priv.h.
 */
#include "jinja_node_priv.h"

/* jinja_parse.c: the number of a name, made when new. */
uint32_t jinja_symbol(struct jinja_template *tpl, const char *name, size_t len);

/* ---- lexer (jinja_lex.c) ---- */

enum token_kind {
    TOKEN_END,
    TOKEN_DATA,
    TOKEN_VARIABLE_BEGIN,
    TOKEN_VARIABLE_END,
    TOKEN_BLOCK_BEGIN,
    TOKEN_BLOCK_END,
    TOKEN_WORD,
    TOKEN_TEXT, /* a string literal, unescaped */
    TOKEN_INT,
    TOKEN_REAL,
    TOKEN_OP
};

enum lex_op {
    LEX_ADD = 1,
    LEX_SUB,
    LEX_MUL,
    LEX_DIV,
    LEX_FLOORDIV,
    LEX_MOD,
    LEX_POW,
    LEX_TILDE,
    LEX_LPAREN,
    LEX_RPAREN,
    LEX_LBRACKET,
    LEX_RBRACKET,
    LEX_LBRACE,
    LEX_RBRACE,
    LEX_EQ,
    LEX_NE,
    LEX_LT,
    LEX_LE,
    LEX_GT,
    LEX_GE,
    LEX_ASSIGN,
    LEX_DOT,
    LEX_COLON,
    LEX_PIPE,
    LEX_COMMA,
    LEX_SEMICOLON
};

struct jinja_token {
    enum token_kind kind;
    enum lex_op op;
    uint32_t line;
    uint32_t column;
    const char *text; /* DATA, WORD, TEXT; OP: its spelling */
    size_t len;
    int64_t integer;
    double real;
};

enum lex_state { LEX_ROOT, LEX_BLOCK, LEX_VARIABLE, LEX_RAW };

struct jinja_lexer {
    const char *source; /* newlines are \n */
    size_t len;
    size_t at;
    uint32_t line;
    size_t line_start;
    size_t counted; /* lines are counted up to here */
    enum lex_state state;
    char open[JINJA_MAX_NESTING]; /* closing brackets that are waited for */
    uint32_t n_open;
    struct arena *arena;
    const char *name;
    struct error *err;
};

/* Copies source into the arena with its newlines made uniform.  False after an error. */
bool jinja_lex_init(struct jinja_lexer *lexer, struct arena *arena, const char *source, size_t len,
                    const char *name, struct error *err);
bool jinja_lex_next(struct jinja_lexer *lexer, struct jinja_token *ret);
/* Error texts "name, line L, column C: ..."; always false. */
bool jinja_syntax_error(const char *name, struct error *err, uint32_t line, uint32_t column,
                        const char *format, ...) PRINTF_LIKE(5, 6);

/* ---- parser ---- */

struct jinja_wish { /* a name that must turn out to exist */
    struct jinja_token token;
    struct jinja_wish *next;
};

struct jinja_parser {
    struct jinja_template *tpl;
    struct jinja_lexer lexer;
    struct jinja_token token;
    struct jinja_token ahead;
    bool has_ahead;
    uint32_t depth;
    uint32_t n_loops; /* loops around, within the innermost macro */
    struct jinja_macro_scope *macros;
    struct jinja_wish *functions; /* called by name */
    struct jinja_wish *methods;
    struct error *err;
};

struct jinja_macro_scope { /* the macros around what is parsed now */
    struct jinja_macro *macro;
    struct jinja_macro_scope *outer;
};

/* jinja_parse.c: helpers for the statements.  NULL or false after an error. */
bool parse_advance(struct jinja_parser *p);
bool parse_error(struct jinja_parser *p, const struct jinja_token *at, const char *format, ...)
    PRINTF_LIKE(3, 4);
bool parse_is_op(const struct jinja_parser *p, enum lex_op op);
bool parse_is_word(const struct jinja_parser *p, const char *word);
bool parse_expect_op(struct jinja_parser *p, enum lex_op op, const char *what);
bool parse_unexpected(struct jinja_parser *p, const char *wanted);
void *parse_alloc(struct jinja_parser *p, size_t size);
struct jinja_node *parse_node(struct jinja_parser *p, enum node_kind kind,
                              const struct jinja_token *at);
struct jinja_node *parse_expression(struct jinja_parser *p, bool with_cond);
struct jinja_node *parse_tuple(struct jinja_parser *p, bool with_cond, bool in_brackets,
                               const char *end_word);
struct jinja_node *parse_filters(struct jinja_parser *p, struct jinja_node *target,
                                 bool inline_first);
struct jinja_node *parse_primary(struct jinja_parser *p);
bool parse_enter(struct jinja_parser *p);
void parse_leave(struct jinja_parser *p);

struct parse_items { /* a list of nodes while it grows */
    struct jinja_node *first;
    struct jinja_node **end;
    uint32_t n;
};

/* jinja_parse.c: more helpers.  NULL or false after an error. */
bool parse_look_ahead(struct jinja_parser *p);
/* Makes `child` (NULL is allowed) lie below node; NULL when the chain grew too long. */
struct jinja_node *parse_below(struct jinja_parser *p, struct jinja_node *node,
                               const struct jinja_node *child);
struct jinja_node *parse_pair(struct jinja_parser *p, enum node_kind kind, unsigned op,
                              const struct jinja_token *at, struct jinja_node *left,
                              struct jinja_node *right);
struct jinja_string *parse_literal(struct jinja_parser *p, const char *bytes, size_t len);
struct jinja_node *parse_const(struct jinja_parser *p, const struct jinja_token *at,
                               struct jinja_value value);
void parse_add(struct parse_items *items, struct jinja_node *node);
struct jinja_node *parse_list_node(struct jinja_parser *p, enum node_kind kind,
                                   const struct jinja_token *at, const struct parse_items *items);
void parse_note_member(struct jinja_parser *p, const struct jinja_string *name);
/* jinja_parse_call.c */
struct jinja_node *parse_postfix(struct jinja_parser *p, struct jinja_node *node);
struct jinja_node *parse_filters_and_tests(struct jinja_parser *p, struct jinja_node *node);

/* jinja_parse_stmt.c: statements up to the end of the source. */
bool jinja_parse_body(struct jinja_parser *p, struct jinja_node **ret);

#endif
