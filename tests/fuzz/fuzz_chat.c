/*
 * A request's messages, tools and variables through chat templates: whatever they hold, the control
 * tokens in trusted text are those that the template wrote.
 *
 * Input: JSON, an object with messages, tools and kwargs; a first byte 'c' (a space otherwise)
 * continues the final message.
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/model/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define START "<|im_start|>"
#define END   "<|im_end|>"

static const char *const sources[] = {
    "{% for m in messages %}" START "{{ m.role }}\n{{ m.content }}" END "\n{% endfor %}",
    "{% for m in messages %}{{ '" START "' + m.role }}{% if m.content %}{{ m.content|trim }}"
    "{% endif %}{% for c in m.tool_calls or [] %}{{ c|tojson }}"
    "{% for k, v in c.function.arguments|items %}{{ k }}{{ v }}{% endfor %}{% endfor %}" END
    "{% endfor %}{% if mode is defined %}{{ mode }}{% endif %}{{ tools|tojson(indent=2) }}",
    "{% for m in messages %}" START "{% for p in m.content %}{{ p.text.replace('<', '<') }}"
    "{% endfor %}" END "{% endfor %}{% set x %}{{ messages|string }}{% endset %}{{ x|upper }}",
};

static size_t count_trusted(const struct jinja_output *output, const char *text)
{
    size_t n = 0, len = strlen(text);
    for (size_t i = 0; i < output->n_trusted; i++) {
        const struct text_run *run = &output->trusted[i];
        for (size_t at = 0; at + len <= run->len; at++)
            n += memcmp(output->bytes + run->start + at, text, len) == 0;
    }
    return n;
}

static void try_template(size_t i, const struct chat_request *request)
{
    static struct chat_template *loaded[sizeof sources / sizeof *sources]; /* for all runs */
    struct chat_template *tpl = loaded[i];
    struct jinja_output output;
    struct error err;
    if (!tpl) {
        REQUIRE(chat_template_new(sources[i], strlen(sources[i]), "t", NULL, NULL, &tpl, &err) ==
                STATUS_OK);
        loaded[i] = tpl;
    }
    if (chat_render(tpl, request, &output, &err) == STATUS_OK) {
        size_t n = json_array_size(request->messages);
        REQUIRE(count_trusted(&output, START) == n);
        REQUIRE(count_trusted(&output, END) == n - request->continue_final_message);
        jinja_output_done(&output);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct jinja_limits limits = {.max_steps = 20000,
                                               .max_depth = 200,
                                               .max_output_bytes = 1 << 16,
                                               .max_memory_bytes = 1 << 20};
    if (size == 0)
        return 0;
    json_t *json = json_loadb((const char *)data + 1, size - 1, JSON_ALLOW_NUL, NULL);
    struct chat_request request = {.messages = json_object_get(json, "messages"),
                                   .tools = json_object_get(json, "tools"),
                                   .kwargs = json_object_get(json, "kwargs"),
                                   .continue_final_message = data[0] == 'c',
                                   .limits = &limits};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        try_template(i, &request);
    json_decref(json);
    return 0;
}
