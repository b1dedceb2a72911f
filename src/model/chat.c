/*
 * A model's chat template: made once from its source, then rendered for each request.  Loop thread
 * in the daemon; nothing here keeps state between two renderings.
 */
#include "config.h"

#include "tellerd/model/chat.h"

#include <stdlib.h>
#include <string.h>

#include "chat_priv.h"
#include "tellerd/base/mem.h"
#include "tellerd/base/utf8.h"

const char *const chat_roles[] = {"system", "developer", "user",    "assistant",
                                  "tool",   "function",  "ipython", NULL};

bool chat_role_known(const char *role)
{
    for (const char *const *r = chat_roles; *r; r++) {
        if (strcmp(*r, role) == 0)
            return true;
    }
    return false;
}

const char *chat_builtin_source(const char *name)
{
    static const char chatml[] =
        "{% for message in messages %}"
        "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}"
        "{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
    return strcmp(name, "chatml") == 0 ? chatml : NULL;
}

static bool well_formed(const char *text)
{
    return !text || utf8_valid(text, strlen(text));
}

enum status chat_template_new(const char *source, size_t len, const char *name, const char *bos,
                              const char *eos, struct chat_template **ret, struct error *err)
{
    if (!well_formed(bos) || !well_formed(eos))
        return error_set(err, STATUS_BAD_FILE, "%s: the text of the BOS or EOS token is not UTF-8",
                         name);
    struct chat_template *tpl = xcalloc(1, sizeof *tpl);
    enum status status = jinja_compile(source, len, name, &tpl->jinja, err);
    if (status == STATUS_OK) {
        tpl->bos = bos ? xstrdup(bos) : NULL;
        tpl->eos = eos ? xstrdup(eos) : NULL;
        status = chat_probe(tpl, source, len, err);
    }
    if (status != STATUS_OK) {
        chat_template_free(tpl);
        return status;
    }
    *ret = tpl;
    return STATUS_OK;
}

void chat_template_free(struct chat_template *tpl)
{
    if (!tpl)
        return;
    jinja_template_free(tpl->jinja);
    free(tpl->bos);
    free(tpl->eos);
    free(tpl);
}

const struct chat_traits *chat_template_traits(const struct chat_template *tpl)
{
    return &tpl->traits;
}

enum status chat_render_globals(const struct chat_template *tpl, json_t *globals, time_t now,
                                const struct jinja_limits *limits, struct jinja_output *ret,
                                struct error *err)
{
    static const struct jinja_checked_member roles = {"messages", "role", chat_roles};
    struct jinja_variable variables[2];
    size_t n = 0;
    if (tpl->bos)
        variables[n++] = (struct jinja_variable){"bos_token", tpl->bos};
    if (tpl->eos)
        variables[n++] = (struct jinja_variable){"eos_token", tpl->eos};
    struct jinja_input input = {
        .globals = globals,
        .trusted = variables,
        .n_trusted = n,
        .checked_member = &roles,
        .now = now,
        .limits = limits,
    };
    return jinja_render(tpl->jinja, &input, ret, err);
}

/* Variables that a client may not set. */
static enum status add_kwargs(json_t *globals, json_t *kwargs, struct error *err)
{
    static const char *const own[] = {"messages",
                                      "tools",
                                      "chat_template",
                                      "bos_token",
                                      "eos_token",
                                      "add_generation_prompt",
                                      "continue_final_message"};
    if (!kwargs || json_is_null(kwargs))
        return STATUS_OK;
    if (!json_is_object(kwargs))
        return error_param(err, STATUS_INVALID, "chat_template_kwargs",
                           "chat_template_kwargs must be an object");
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (json_object_get(kwargs, own[i]))
            return error_param(err, STATUS_INVALID, "chat_template_kwargs",
                               "chat_template_kwargs may not set '%s'", own[i]);
    }
    return json_object_update(globals, kwargs) == 0
               ? STATUS_OK
               : error_set(err, STATUS_NO_MEMORY, "out of memory");
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Whether a trusted run touches [at, at + len). */
static bool touches_trusted(const struct jinja_output *output, size_t at, size_t len)
{
    for (size_t i = 0; i < output->n_trusted; i++) {
        const struct text_run *run = &output->trusted[i];
        if (run->start < at + len && run->start + run->len > at)
            return true;
    }
    return false;
}

/* Cuts the output where the final message's text ended. */
static enum status cut_final(struct jinja_output *output, struct error *err)
{
    static const char mark[] = CHAT_END_MARK;
    size_t len = sizeof mark - 1, at = SIZE_MAX, end;
    for (size_t i = output->len + 1; at == SIZE_MAX && i-- > 0;) {
        if (output->len - i >= len && memcmp(output->bytes + i, mark, len) == 0 &&
            !touches_trusted(output, i, len))
            at = i;
    }
    if (at == SIZE_MAX)
        return error_set(err, STATUS_TEMPLATE_FAILED,
                         "the chat template does not show the final message as it is, so it cannot "
                         "be continued");
    end = at;
    if (output->bytes[at + len] != ' ') { /* the template strips */
        while (end > 0 && is_space(output->bytes[end - 1]))
            end--;
    }
    output->len = end;
    output->bytes[end] = '\0';
    while (output->n_trusted > 0) {
        struct text_run *last = &output->trusted[output->n_trusted - 1];
        if (last->start < end) {
            last->len = last->len < end - last->start ? last->len : end - last->start;
            break;
        }
        output->n_trusted--;
    }
    return STATUS_OK;
}

static enum status make_globals(const struct chat_template *tpl, const struct chat_request *request,
                                json_t *globals, struct error *err)
{
    json_t *messages = NULL, *tools = NULL;
    enum status status = chat_normal_messages(&tpl->traits, request->messages,
                                              request->continue_final_message, &messages, err);
    if (status == STATUS_OK)
        status = chat_normal_tools(request->tools, &tools, err);
    if (status != STATUS_OK) {
        json_decref(messages);
        return status;
    }
    bool ok = json_object_set_new(globals, "messages", messages) == 0;
    if (!json_is_null(tools) || !tpl->traits.no_none)
        ok = json_object_set_new(globals, "tools", tools) == 0 && ok;
    if (!tpl->traits.no_none)
        ok = json_object_set_new(globals, "documents", json_null()) == 0 && ok;
    ok = json_object_set_new(globals, "add_generation_prompt",
                             json_boolean(request->add_generation_prompt)) == 0 &&
         ok;
    if (!ok)
        return error_set(err, STATUS_NO_MEMORY, "out of memory");
    return add_kwargs(globals, request->kwargs, err);
}

enum status chat_render(const struct chat_template *tpl, const struct chat_request *request,
                        struct jinja_output *ret, struct error *err)
{
    struct jinja_output output = {0};
    if (request->add_generation_prompt && request->continue_final_message)
        return error_param(err, STATUS_INVALID, "continue_final_message",
                           "add_generation_prompt and continue_final_message exclude each other");
    json_t *globals = json_object();
    enum status status = globals ? make_globals(tpl, request, globals, err)
                                 : error_set(err, STATUS_NO_MEMORY, "out of memory");
    if (status == STATUS_OK)
        status = chat_render_globals(tpl, globals, request->now, request->limits, &output, err);
    json_decref(globals);
    if (status == STATUS_OK && request->continue_final_message) {
        status = cut_final(&output, err);
        if (status != STATUS_OK)
            jinja_output_done(&output);
    }
    if (status == STATUS_OK)
        *ret = output;
    return status;
}
