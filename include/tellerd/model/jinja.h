#ifndef TELLERD_MODEL_JINJA_H
#define TELLERD_MODEL_JINJA_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "tellerd/base/status.h"
#include "tellerd/model/text_run.h"

/*
 * A sandboxed interpreter for the part of Jinja2 that chat templates use.  Semantics are those of
 * Jinja2 3.1 in the environment of Hugging Face transformers: trim_blocks, lstrip_blocks, loop
 * controls, the immutable sandbox, no autoescape, its own tojson, raise_exception, strftime_now,
 * and
 * {% generation %} blocks that render as their body.
 *
 * Glossary
 *   trusted bytes    written by the template's author or the server: literal text, string literals
 *                    in expressions, the variables passed as trusted.  All other bytes (from the
 *                    globals, and whatever is computed: numbers, punctuation of tojson, escapes)
 * are untrusted.  Each string carries this per byte through every operation; where that is not
 * exact, bytes become untrusted, never trusted. trusted run      a maximal stretch of trusted bytes
 * of the output.  Control tokens are recognised only inside one (tokenizer.h), so text of a message
 * can never become one, nor complete one that the template began. step             the unit of work
 * that max_steps bounds: a node evaluated, an item visited, or 64 bytes of text moved.
 *
 * Where it differs from Jinja2: integers are 64-bit and overflow is an error; generators (map,
 * select, ...) do their work at once; `safe` and `escape` give plain strings; recursive loops,
 * blocks, inheritance, imports and autoescape are refused at compile time, as are unknown filters,
 * tests, functions and methods.
 */
struct jinja_template;

/* Bounds on one rendering.  All are hard: what would pass one is an error, TEMPLATE_LIMIT. */
struct jinja_limits {
    uint64_t max_steps;
    uint32_t max_depth; /* nested evaluations: statement bodies, expressions, macro calls, data */
    size_t max_output_bytes;
    size_t max_memory_bytes; /* everything that the rendering allocates besides the output */
};
extern const struct jinja_limits jinja_default_limits;

enum {
    JINJA_MAX_SOURCE_BYTES = 1 << 20, /* real templates are below 64 KiB */
    JINJA_MAX_NESTING = 100,          /* brackets, blocks and prefix operators in one another */
    JINJA_MAX_CHAIN = 200,            /* terms of one chain of operators, filters or members */
    JINJA_MAX_RANGE = 100000          /* length of a range(), the sandbox's own limit */
};

/* A variable of the server's own, all bytes trusted; value NULL gives none. */
struct jinja_variable {
    const char *name;
    const char *value; /* well-formed UTF-8 */
};

/*
 * A member whose value the server has checked against a closed list: in each object of the array
 * globals[list], the string at `member` is trusted when it equals one of `words` (NULL-terminated).
 * This is for roles: templates build control tokens from them ("<|" + message.role + "|>").
 */
struct jinja_checked_member {
    const char *list;
    const char *member;
    const char *const *words;
};

struct jinja_input {
    json_t *globals; /* object, borrowed and not changed; its strings are untrusted */
    const struct jinja_variable *trusted; /* win over globals of the same name */
    size_t n_trusted;
    const struct jinja_checked_member *checked_member; /* NULL when none */
    time_t now;                                        /* what strftime_now formats, local time */
    const struct jinja_limits *limits;                 /* NULL: jinja_default_limits */
};

struct jinja_output {
    char *bytes; /* well-formed UTF-8 where the input was; NUL-terminated */
    size_t len;
    struct text_run *trusted; /* maximal runs of trusted bytes, ascending */
    size_t n_trusted;
};

/*
 * Compiles source (len bytes of UTF-8); name stands in error texts ("name, line 3, column 7: ...").
 * The result is immutable: any thread may render it, also several at once.  Free with
 * jinja_template_free.  Errors: BAD_FILE naming line, column and construct.
 */
enum status jinja_compile(const char *source, size_t len, const char *name,
                          struct jinja_template **ret, struct error *err) WARN_UNUSED;
void jinja_template_free(struct jinja_template *tpl);

/*
 * Renders tpl.  The output belongs to the caller, free with jinja_output_done; it is untouched on
 * failure.  Any thread, as long as nobody changes the globals meanwhile.  Errors: TEMPLATE_RAISED
 * (raise_exception: the text is the template's own), TEMPLATE_FAILED (any other error in the
 * template, with its line), TEMPLATE_LIMIT.
 */
enum status jinja_render(const struct jinja_template *tpl, const struct jinja_input *input,
                         struct jinja_output *ret, struct error *err) WARN_UNUSED;
void jinja_output_done(struct jinja_output *output);

#endif
