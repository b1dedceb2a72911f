#ifndef TELLERD_MODEL_JINJA_PRIV_H
#define TELLERD_MODEL_JINJA_PRIV_H

/*
 * Inside of the template interpreter: values, and the state of one rendering (struct jinja_rt).
 * All functions here that return bool return false after an error was put into rt (jinja_fail);
 * the caller returns false in turn.  Memory of values is the rendering's arena, freed at its end.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/base/arena.h"
#include "tellerd/base/status.h"
#include "tellerd/model/jinja.h"

struct jinja_rt;
struct jinja_node;
struct jinja_macro;
struct jinja_scope;
struct jinja_loop;

enum value_kind {
    VALUE_MISSING, /* an argument that was not given; never seen by a template */
    VALUE_UNDEFINED,
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_FLOAT,
    VALUE_STR,
    VALUE_LIST,
    VALUE_TUPLE,
    VALUE_DICT,
    VALUE_VIEW, /* keys(), values(), items(): can be iterated again and measured, not indexed */
    VALUE_ITER, /* a generator: can be iterated once */
    VALUE_RANGE,
    VALUE_NAMESPACE,
    VALUE_LOOP,
    VALUE_CYCLER,
    VALUE_JOINER,
    VALUE_MACRO,
    VALUE_METHOD,
    VALUE_FUNCTION,
    VALUE_KIND_COUNT
};

enum string_trust { TRUST_NONE, TRUST_ALL, TRUST_MIXED };

/* Well-formed UTF-8.  `runs` are the trusted runs when trust is MIXED. */
struct jinja_string {
    const char *bytes;
    size_t len;
    const struct text_run *runs;
    uint32_t n_runs;
    uint8_t trust;
    uint8_t is_ascii; /* 0 not known yet, 1 yes, 2 no */
};

struct jinja_value {
    uint8_t kind;
    uint8_t view; /* VALUE_VIEW: enum view_kind */
    union {
        bool boolean;
        int64_t integer;
        double real;
        struct jinja_string *string;
        struct jinja_list *list; /* LIST, TUPLE, VIEW */
        struct jinja_dict *dict; /* DICT, NAMESPACE */
        struct jinja_iter *iter;
        struct jinja_range *range;
        struct jinja_undefined *undefined; /* NULL: nothing is known about it */
        struct jinja_loop *loop;
        struct jinja_cycler *cycler; /* CYCLER, JOINER */
        struct jinja_closure *closure;
        struct jinja_method *method;
        const struct jinja_function *function;
    } u;
};

enum view_kind { VIEW_KEYS, VIEW_VALUES, VIEW_ITEMS };

struct jinja_list {
    struct jinja_value *items;
    size_t len;
    size_t cap;
};

struct jinja_pair {
    struct jinja_value key;
    struct jinja_value value;
};

struct jinja_dict { /* in order of insertion */
    struct jinja_pair *pairs;
    size_t len;
    size_t cap;
};

struct jinja_iter {
    struct jinja_list *list;
    size_t at;
    const char *not_iterable; /* made from a value of this type: an error once it is walked */
};

struct jinja_range {
    int64_t start;
    int64_t step;
    int64_t len;
};

/* Why a value is undefined: the text of the error when it is used. */
struct jinja_undefined {
    const char *text;
};

struct jinja_cycler {
    struct jinja_list *items; /* joiner: one separator */
    size_t at;
};

struct jinja_closure { /* a macro, or the body of a call block */
    const struct jinja_macro *macro;
    struct jinja_scope *scope;
};

struct jinja_keyword {
    const char *name;
    size_t len;
    struct jinja_value value;
};

struct jinja_args {
    const struct jinja_value *pos; /* after binding: one a parameter, MISSING where not given */
    size_t n_pos;
    const struct jinja_keyword *kw;
    size_t n_kw;
};

/* A filter, test, method or global function. */
struct jinja_function {
    const char *name;
    bool (*call)(struct jinja_rt *rt, const struct jinja_value *self, const struct jinja_args *args,
                 struct jinja_value *ret);
    const char *params; /* names, parted by spaces; NULL: call gets the arguments unbound */
    uint8_t n_required;
    uint8_t self_kind; /* methods: the kind that has it */
};

struct jinja_method {
    struct jinja_value self;
    const struct jinja_function *function;
};

/* Collects text with its trusted runs. */
struct jinja_sink {
    char *bytes;
    size_t len;
    size_t cap;
    struct text_run *runs;
    size_t n_runs;
    size_t cap_runs;
    struct jinja_sink *next_free;
    struct jinja_sink *next;
};

struct jinja_rt {
    const struct jinja_template *tpl;
    const struct jinja_input *input;
    struct jinja_limits limits;
    struct arena arena;
    size_t scratch_bytes; /* held by the sinks, counted against max_memory_bytes */
    struct jinja_sink *sinks;
    struct jinja_sink *free_sinks;
    struct jinja_sink *top; /* the output: bounded by max_output_bytes instead */
    struct jinja_sink *out; /* where output statements write now */
    uint64_t steps;
    uint32_t depth;
    uint32_t line;               /* of what is evaluated now */
    struct jinja_value *globals; /* one a symbol; MISSING until first used */
    enum status status;
    struct error *err;
};

/* jinja_value.c: errors, budget, memory */
bool jinja_fail(struct jinja_rt *rt, const char *format, ...) PRINTF_LIKE(2, 3);
bool jinja_fail_limit(struct jinja_rt *rt, const char *what);
bool jinja_step(struct jinja_rt *rt, uint64_t n);
bool jinja_work(struct jinja_rt *rt, size_t n_bytes);
bool jinja_enter(struct jinja_rt *rt); /* one level deeper; pair with jinja_leave on success */
void jinja_leave(struct jinja_rt *rt);
void *jinja_alloc(struct jinja_rt *rt, size_t size);

/* jinja_value.c: containers */
struct jinja_list *jinja_list_new(struct jinja_rt *rt, size_t cap);
bool jinja_list_add(struct jinja_rt *rt, struct jinja_list *list, struct jinja_value value);
struct jinja_dict *jinja_dict_new(struct jinja_rt *rt, size_t cap);
bool jinja_dict_set(struct jinja_rt *rt, struct jinja_dict *dict, struct jinja_value key,
                    struct jinja_value value);
/* *ret_found is NULL when the key is absent. */
bool jinja_dict_find(struct jinja_rt *rt, const struct jinja_dict *dict,
                     const struct jinja_value *key, struct jinja_value **ret_found);
struct jinja_value *jinja_dict_text(const struct jinja_dict *dict, const char *key, size_t len);
bool jinja_from_json(struct jinja_rt *rt, json_t *json, const struct jinja_checked_member *checked,
                     struct jinja_value *ret);

static inline struct jinja_value value_none(void)
{
    return (struct jinja_value){.kind = VALUE_NONE};
}
static inline struct jinja_value value_bool(bool boolean)
{
    return (struct jinja_value){.kind = VALUE_BOOL, .u.boolean = boolean};
}
static inline struct jinja_value value_int(int64_t integer)
{
    return (struct jinja_value){.kind = VALUE_INT, .u.integer = integer};
}
static inline struct jinja_value value_real(double real)
{
    return (struct jinja_value){.kind = VALUE_FLOAT, .u.real = real};
}
static inline struct jinja_value value_list(struct jinja_list *list)
{
    return (struct jinja_value){.kind = VALUE_LIST, .u.list = list};
}
static inline struct jinja_value value_tuple(struct jinja_list *list)
{
    return (struct jinja_value){.kind = VALUE_TUPLE, .u.list = list};
}
static inline struct jinja_value value_string(struct jinja_string *string)
{
    return (struct jinja_value){.kind = VALUE_STR, .u.string = string};
}
/* Python's int: bool counts as 0 or 1. */
static inline bool value_is_int(const struct jinja_value *v, int64_t *ret)
{
    if (v->kind != VALUE_INT && v->kind != VALUE_BOOL)
        return false;
    *ret = v->kind == VALUE_INT ? v->u.integer : (int64_t)v->u.boolean;
    return true;
}
/* Makes a one-pass iterator over list. */
bool value_iter(struct jinja_rt *rt, struct jinja_list *list, struct jinja_value *ret);
/* An undefined value whose use fails with this text. */
bool value_undefined(struct jinja_rt *rt, struct jinja_value *ret, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif
