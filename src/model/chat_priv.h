#ifndef TELLERD_MODEL_CHAT_PRIV_H
#define TELLERD_MODEL_CHAT_PRIV_H

#include "tellerd/model/chat.h"

struct chat_template {
    struct jinja_template *jinja;
    char *bos; /* NULL when absent */
    char *eos;
    struct chat_traits traits;
};

/* Ends the text of a final message that is to be continued; the space tells whether the template
 * strips what it prints. */
#define CHAT_END_MARK "tellerd-end-of-final-message"

/*
 * chat_messages.c: new references to what the template shall see, as chat.h says.  mark_final
 * appends CHAT_END_MARK and a space to the last message.  Errors: INVALID, UNSUPPORTED.
 */
enum status chat_normal_messages(const struct chat_traits *traits, json_t *messages,
                                 bool mark_final, json_t **ret, struct error *err) WARN_UNUSED;
enum status chat_normal_tools(json_t *tools, json_t **ret, struct error *err) WARN_UNUSED;

/* chat_probe.c: fills tpl->traits by trying the template; source is its text.  Errors: BAD_FILE. */
enum status chat_probe(struct chat_template *tpl, const char *source, size_t len,
                       struct error *err) WARN_UNUSED;

/* chat.c: renders globals (normalised) with the template's own variables. */
enum status chat_render_globals(const struct chat_template *tpl, json_t *globals, time_t now,
                                const struct jinja_limits *limits, struct jinja_output *ret,
                                struct error *err) WARN_UNUSED;

#endif
