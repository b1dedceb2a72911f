#ifndef TELLERD_MODEL_JINJA_NODE_PRIV_H
#define TELLERD_MODEL_JINJA_NODE_PRIV_H

/*
 * The compiled form of a template: a tree of nodes in the template's own arena, and a table of the
 * names it uses.  Immutable once jinja_compile returned.
 */
#include "jinja_priv.h"

enum node_kind {
    /* expressions */
    NODE_CONST,
    NODE_NAME,
    NODE_LIST,
    NODE_TUPLE,
    NODE_DICT,
    NODE_ATTR,
    NODE_ITEM,
    NODE_SLICE,
    NODE_CALL,
    NODE_FILTER,
    NODE_TEST,
    NODE_NOT,
    NODE_NEGATE,
    NODE_PLUS,
    NODE_BINARY,
    NODE_AND,
    NODE_OR,
    NODE_CONCAT,
    NODE_COMPARE,
    NODE_COND,
    NODE_MEMBER_TARGET, /* ns.name on the left of a set */
    /* statements */
    NODE_TEXT,
    NODE_OUTPUT,
    NODE_IF,
    NODE_FOR,
    NODE_SET,
    NODE_SET_BLOCK,
    NODE_MACRO,
    NODE_CALL_BLOCK,
    NODE_FILTER_BLOCK,
    NODE_WITH,
    NODE_SCOPE, /* {% generation %} */
    NODE_BREAK,
    NODE_CONTINUE
};

enum compare_op { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE, CMP_IN, CMP_NOT_IN };

struct node_args {
    struct jinja_node *pos; /* linked by next */
    struct jinja_node *kw;  /* values; their names in kw_names */
    struct jinja_node *star;
    struct jinja_node *star_star;
    const struct jinja_string **kw_names;
    uint32_t n_pos;
    uint32_t n_kw;
};

struct jinja_macro {
    const char *name; /* NUL-terminated */
    uint32_t symbol;
    uint32_t n_params;
    uint32_t *params;             /* symbols */
    struct jinja_node **defaults; /* one a parameter, NULL when none */
    struct jinja_node *body;
    bool takes_caller;
    bool takes_varargs;
    bool takes_kwargs;
    bool names_caller; /* `caller` is a parameter */
};

struct jinja_node {
    uint8_t kind;
    uint8_t op;      /* BINARY: enum jinja_op; COMPARE operands: enum compare_op; IF: 1 for elif */
    uint16_t height; /* of the expression below, at most JINJA_MAX_CHAIN */
    uint32_t line;
    uint32_t column;
    struct jinja_node *next;
    union {
        struct jinja_value constant; /* CONST, TEXT */
        uint32_t symbol;             /* NAME */
        struct {                     /* LIST, TUPLE, DICT (keys and values in turn), CONCAT */
            struct jinja_node *items;
            uint32_t n;
        } list;
        struct { /* BINARY, AND, OR, ITEM; NOT, NEGATE, PLUS use left; COMPARE: right is a list */
            struct jinja_node *left;
            struct jinja_node *right;
        } pair;
        struct { /* ATTR; MEMBER_TARGET: symbol is the namespace's name */
            struct jinja_node *object;
            const struct jinja_string *name;
            uint32_t symbol;
        } attr;
        struct { /* SLICE: bounds may be NULL */
            struct jinja_node *object;
            struct jinja_node *bounds[3];
        } slice;
        struct {                       /* CALL: function NULL; FILTER, TEST */
            struct jinja_node *target; /* NULL: the text of a block */
            const struct jinja_function *function;
            struct node_args *args;
        } call;
        struct { /* COND, IF: elif is an IF in or_else */
            struct jinja_node *test;
            struct jinja_node *then;
            struct jinja_node *or_else;
        } branch;
        struct { /* FOR */
            struct jinja_node *target;
            struct jinja_node *over;
            struct jinja_node *filter;
            struct jinja_node *body;
            struct jinja_node *or_else;
        } loop;
        struct { /* SET: value; SET_BLOCK: body, value = filter or NULL; FILTER_BLOCK */
            struct jinja_node *target;
            struct jinja_node *value;
            struct jinja_node *body;
        } set;
        struct { /* MACRO; CALL_BLOCK: call gets the macro as caller */
            struct jinja_macro *macro;
            struct jinja_node *call;
        } macro;
        struct { /* WITH: targets and values in turn; SCOPE */
            struct jinja_node *items;
            struct jinja_node *body;
        } with;
        struct jinja_node *output; /* OUTPUT: an expression */
    } u;
};

struct jinja_symbol {
    char *name; /* NUL-terminated, owned */
    size_t len;
    bool assigned;        /* somewhere in the template, as a variable */
    bool assigned_member; /* as a member of a namespace, a keyword or a key */
};

struct jinja_template {
    struct arena arena;
    const char *name;
    struct jinja_symbol *symbols;
    uint32_t n_symbols;
    uint32_t cap_symbols;
    uint32_t *index; /* open addressing: symbol + 1, 0 when free */
    uint32_t n_index;
    struct jinja_node *body;
    uint32_t loop_symbol;
    uint32_t caller_symbol;
    uint32_t varargs_symbol;
    uint32_t kwargs_symbol;
};

#endif
