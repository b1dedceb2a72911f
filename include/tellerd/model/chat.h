#ifndef TELLERD_MODEL_CHAT_H
#define TELLERD_MODEL_CHAT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "tellerd/base/status.h"
#include "tellerd/model/jinja.h"

/*
 * Conversations to prompts, by the model's own chat template.  Immutable after chat_template_new:
 * any thread may render, as long as nobody changes the JSON of that call meanwhile.
 *
 * What a template sees (the rules are the same for every role):
 *   content      a string.  Text parts are joined without anything between them.  A template that
 *                shows only content in parts gets one text part.  null or none is "", except in an
 *                assistant message with tool calls where the template can do with none.
 *   other null   members of messages, and of functions in tools, count as absent; so does an empty
 *                list of tool calls.
 *   arguments    of a tool call: the object that their JSON text holds ("" is {}; text that holds
 *                no object or array stays a string); a template that prints them as they are gets
 *                the JSON text.
 *   developer    the role is `system` when the template's text does not know `developer`.
 *   tools        none unless there is one, or not defined where a template fails on none; a
 * function without parameters gets an empty object schema.  documents is like tools, and comes from
 * kwargs. Roles in chat_roles are trusted text; all else in the JSON is untrusted (jinja.h).
 */
struct chat_template;

/* The roles that a message may have, NULL at the end.  The caller refuses others. */
extern const char *const chat_roles[];
bool chat_role_known(const char *role);

/* What a template was seen to do, with small conversations, when it was loaded. */
struct chat_traits {
    bool tools;          /* names the tools it is given */
    bool tool_calls;     /* shows tool calls of the assistant */
    bool system;         /* shows a system message */
    bool developer;      /* its text knows the role */
    bool parts;          /* wants content in parts */
    bool text_arguments; /* wants the arguments of tool calls as JSON text */
    bool null_content;   /* can do with none as content beside tool calls */
    bool no_none;        /* fails on tools and documents that are none: they stay undefined */
};

struct chat_request {
    json_t *messages; /* array, borrowed as all here, and not changed */
    json_t *tools;    /* array; NULL or JSON null when none */
    json_t *kwargs;   /* object of further variables; NULL or JSON null when none */
    bool add_generation_prompt;
    bool continue_final_message; /* end within the last message, which is the assistant's */
    time_t now;
    const struct jinja_limits *limits; /* NULL: jinja_default_limits */
};

/*
 * Compiles source and tries it on small conversations.  name stands in error texts; bos and eos
 * (NULL when absent) become bos_token and eos_token.  Errors: BAD_FILE, naming the place, when the
 * template does not compile or fails on a plain conversation.
 */
enum status chat_template_new(const char *source, size_t len, const char *name, const char *bos,
                              const char *eos, struct chat_template **ret,
                              struct error *err) WARN_UNUSED;
void chat_template_free(struct chat_template *tpl);
const struct chat_traits *chat_template_traits(const struct chat_template *tpl);

/* Source of a template that the server brings along ("chatml"), NULL when there is none of that
 * name.  For explicit use: nothing falls back to it. */
const char *chat_builtin_source(const char *name);

/*
 * Renders the conversation.  ret: free with jinja_output_done, untouched on failure.  Errors:
 * INVALID and UNSUPPORTED with the field at fault; those of jinja_render; TEMPLATE_FAILED also when
 * continue_final_message finds no final message in the output.
 */
enum status chat_render(const struct chat_template *tpl, const struct chat_request *request,
                        struct jinja_output *ret, struct error *err) WARN_UNUSED;

#endif
