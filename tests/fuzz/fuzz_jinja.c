/*
 * A template and its globals: compiling and rendering either give an error with a text or a
 * well-formed output whose trusted runs are ascending, parted and within it.
 *
 * Input: the template's source, a NUL, the globals as JSON (an empty object when that is no
 * object).
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/base/utf8.h"
#include "tellerd/model/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_output(const struct jinja_output *output)
{
    size_t end = 0;
    REQUIRE(output->bytes[output->len] == '\0');
    REQUIRE(utf8_valid(output->bytes, output->len));
    for (size_t i = 0; i < output->n_trusted; i++) {
        const struct text_run *run = &output->trusted[i];
        REQUIRE(run->len > 0 && (i == 0 || run->start > end));
        end = run->start + run->len;
        REQUIRE(run->start < end && end <= output->len);
    }
}

/* An error is never without its text. */
static void check_error(enum status status, const struct error *err)
{
    REQUIRE(err->status == status);
    REQUIRE(status == STATUS_TEMPLATE_RAISED || err->text[0] != '\0');
    REQUIRE(utf8_valid(err->text, strlen(err->text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct jinja_limits limits = {.max_steps = 20000,
                                               .max_depth = 200,
                                               .max_output_bytes = 1 << 16,
                                               .max_memory_bytes = 1 << 20};
    static const char *const roles[] = {"user", "assistant", NULL};
    static const struct jinja_checked_member checked = {"messages", "role", roles};
    static const struct jinja_variable variables[] = {{"bos_token", "<s>"}, {"eos_token", NULL}};
    const char *source = (const char *)data;
    const uint8_t *nul = size > 0 ? memchr(data, 0, size) : NULL;
    size_t len = nul ? (size_t)(nul - data) : size;
    struct jinja_template *tpl;
    struct error err = {0};
    enum status status = jinja_compile(size > 0 ? source : "", len, "t", &tpl, &err);
    if (status != STATUS_OK) {
        check_error(status, &err);
        return 0;
    }
    json_t *globals = NULL;
    if (nul)
        globals = json_loadb(source + len + 1, size - len - 1, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(globals)) {
        json_decref(globals);
        globals = json_object();
    }
    struct jinja_input input = {.globals = globals,
                                .trusted = variables,
                                .n_trusted = 2,
                                .checked_member = &checked,
                                .now = 1721999045,
                                .limits = &limits};
    struct jinja_output output;
    status = jinja_render(tpl, &input, &output, &err);
    if (status == STATUS_OK) {
        check_output(&output);
        jinja_output_done(&output);
    } else {
        check_error(status, &err);
    }
    json_decref(globals);
    jinja_template_free(tpl);
    return 0;
}
