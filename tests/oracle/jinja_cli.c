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

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    while ((len = getline(&line, &cap, stdin)) > 0) {
        json_error_t error;
        json_t *request = json_loadb(line, (size_t)len, JSON_ALLOW_NUL, &error);
        json_t *reply =
            request ? run(request) : json_pack("{s:b, s:s}", "ok", 0, "error", error.text);
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
