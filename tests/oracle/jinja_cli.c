/*
 * Renders templates for comparison with Jinja2.  Reads one JSON object a line on stdin:
 *   {"template": T, "context": {...}, "trusted": {"bos_token": "<s>", ...}, "now": 0}
 * or, through the chat layer,
 *   {"chat": T, "messages": [...], "tools": [...], "kwargs": {...}, ...}
 * and prints {"ok": true, "text": ..., "runs": [[start, len], ...]} or {"ok": false, "error": ...,
 * "raised": bool}.
 */
#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/model/chat.h"
#include "tellerd/model/jinja.h"

static json_t *failure(enum status status, const struct error *err)
{
    return json_pack("{s:b, s:s, s:b, s:s}", "ok", 0, "error", err->text, "raised",
                     status == STATUS_TEMPLATE_RAISED, "code", status_code(status));
}

static json_t *success(struct jinja_output *output)
{
    json_t *runs = json_array();
    for (size_t i = 0; i < output->n_trusted; i++)
        json_array_append_new(runs, json_pack("[I, I]", (json_int_t)output->trusted[i].start,
                                              (json_int_t)output->trusted[i].len));
    return json_pack("{s:b, s:s%, s:o}", "ok", 1, "text", output->bytes, output->len, "runs", runs);
}

static json_t *run(json_t *request)
{
    const char *source = "", *key;
    size_t len = 0, n = 0;
    json_int_t now = 0;
    json_t *context = NULL, *trusted = NULL, *value;
    struct jinja_variable variables[16];
    struct jinja_template *tpl;
    struct jinja_output output;
    struct error err = {0};
    if (json_unpack(request, "{s:s%, s?o, s?o, s?I}", "template", &source, &len, "context",
                    &context, "trusted", &trusted, "now", &now) != 0)
        return json_pack("{s:b, s:s}", "ok", 0, "error", "bad request");
    json_object_foreach(trusted, key, value)
    {
        if (n < sizeof variables / sizeof *variables)
            variables[n++] = (struct jinja_variable){key, json_string_value(value)};
    }
    enum status status = jinja_compile(source, len, "template", &tpl, &err);
    if (status != STATUS_OK)
        return failure(status, &err);
    json_t *globals = context ? json_incref(context) : json_object();
    struct jinja_input input = {
        .globals = globals, .trusted = variables, .n_trusted = n, .now = (time_t)now};
    status = jinja_render(tpl, &input, &output, &err);
    json_decref(globals);
    jinja_template_free(tpl);
    if (status != STATUS_OK)
        return failure(status, &err);
    json_t *reply = success(&output);
    jinja_output_done(&output);
    return reply;
}

static json_t *run_chat(json_t *request)
{
    const char *source = "", *bos = NULL, *eos = NULL;
    size_t len = 0;
    int generate = 0, proceed = 0;
    struct chat_request chat = {0};
    struct chat_template *tpl;
    struct jinja_output output;
    struct error err = {0};
    if (json_unpack(request, "{s:s%, s?s, s?s, s:o, s?o, s?o, s?b, s?b}", "chat", &source, &len,
                    "bos", &bos, "eos", &eos, "messages", &chat.messages, "tools", &chat.tools,
                    "kwargs", &chat.kwargs, "add_generation_prompt", &generate,
                    "continue_final_message", &proceed) != 0)
        return json_pack("{s:b, s:s}", "ok", 0, "error", "bad request");
    chat.add_generation_prompt = generate;
    chat.continue_final_message = proceed;
    enum status status = chat_template_new(source, len, "template", bos, eos, &tpl, &err);
    if (status != STATUS_OK)
        return failure(status, &err);
    const struct chat_traits *t = chat_template_traits(tpl);
    json_t *traits = json_pack("{s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b}", "tools", t->tools,
                               "tool_calls", t->tool_calls, "system", t->system, "developer",
                               t->developer, "parts", t->parts, "text_arguments", t->text_arguments,
                               "null_content", t->null_content, "no_none", t->no_none);
    status = chat_render(tpl, &chat, &output, &err);
    chat_template_free(tpl);
    json_t *reply = status == STATUS_OK ? success(&output) : failure(status, &err);
    if (status == STATUS_OK)
        jinja_output_done(&output);
    json_object_set_new(reply, "traits", traits);
    return reply;
}

static json_t *answer(json_t *request)
{
    return json_object_get(request, "chat") ? run_chat(request) : run(request);
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    while ((len = getline(&line, &cap, stdin)) > 0) {
        json_error_t error;
        json_t *request = json_loadb(line, (size_t)len, JSON_ALLOW_NUL, &error);
        json_t *reply =
            request ? answer(request) : json_pack("{s:b, s:s}", "ok", 0, "error", error.text);
        char *text = json_dumps(reply, JSON_COMPACT);
        puts(text ? text : "{\"ok\":false,\"error\":\"the output is not valid UTF-8\"}");
        fflush(stdout);
        free(text);
        json_decref(reply);
        json_decref(request);
    }
    free(line);
    return 0;
}
