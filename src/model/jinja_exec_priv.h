#ifndef TELLERD_MODEL_JINJA_EXEC_PRIV_H
#define TELLERD_MODEL_JINJA_EXEC_PRIV_H

/*
 * Evaluation: scopes, loops, and the functions that walk the tree.
 */
#include "jinja_node_priv.h"
#include "jinja_ops_priv.h"

struct jinja_binding {
    uint32_t symbol;
    struct jinja_value value;
};

struct jinja_scope {
    struct jinja_scope *parent;
    struct jinja_binding *vars;
    uint32_t n;
    uint32_t cap;
    bool captured; /* a macro may outlive the block: do not reuse the scope */
};

/* What `loop` is within a for block. */
struct jinja_loop {
    struct jinja_cursor cursor;
    const struct jinja_node *node;
    struct jinja_scope *scope; /* around the loop: the filter is evaluated there */
    struct jinja_list *rest;   /* items fetched ahead of time by `length` */
    size_t rest_at;
    int64_t index0;
    int64_t length; /* -1: not known */
    bool has_after;
    bool has_before;
    bool has_changed;
    struct jinja_value before;
    struct jinja_value current;
    struct jinja_value after;
    struct jinja_value changed;
};

struct jinja_scope *jinja_scope_new(struct jinja_rt *rt, struct jinja_scope *parent);
bool jinja_scope_set(struct jinja_rt *rt, struct jinja_scope *scope, uint32_t symbol,
                     struct jinja_value value);
bool jinja_lookup(struct jinja_rt *rt, struct jinja_scope *scope, uint32_t symbol,
                  struct jinja_value *ret);

bool jinja_eval(struct jinja_rt *rt, const struct jinja_node *node, struct jinja_scope *scope,
                struct jinja_value *ret);
/* jinja_call.c: the arguments of a call, without and with one more named argument. */
bool jinja_eval_args(struct jinja_rt *rt, const struct node_args *node, struct jinja_scope *scope,
                     struct jinja_args *ret);
bool jinja_eval_call(struct jinja_rt *rt, const struct jinja_node *node, struct jinja_scope *scope,
                     const struct jinja_value *caller, struct jinja_value *ret);
bool jinja_eval_filter(struct jinja_rt *rt, const struct jinja_node *node,
                       struct jinja_scope *scope, const struct jinja_value *text,
                       struct jinja_value *ret);
/* jinja_exec.c */
bool jinja_assign(struct jinja_rt *rt, const struct jinja_node *target, struct jinja_scope *scope,
                  const struct jinja_value *value);

#endif
