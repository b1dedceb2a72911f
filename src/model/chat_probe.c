/*
 * What a template can do is seen by trying it, once, when it is loaded: on a plain conversation,
 * which must work, and on ones with a system message, tools, and tool calls in several shapes.
 */
#include "config.h"

#include <string.h>

#include "chat_priv.h"

#define USER_TEXT   "zq-user-text"
#define SYSTEM_TEXT "zq-system-text"
#define TOOL_NAME   "zq_tool_name"
#define ARGUMENT    "zq_argument"

/* Messages to try, as JSON; ids of tool calls have nine characters since some templates insist. */
#define PLAIN "[{\"role\":\"user\",\"content\":\"" USER_TEXT "\"}]"
#define PLAIN_SYSTEM                                          \
    "[{\"role\":\"system\",\"content\":\"" SYSTEM_TEXT "\"}," \
    "{\"role\":\"user\",\"content\":\"" USER_TEXT "\"}]"
#define CALL(content, arguments)                                                              \
    "[{\"role\":\"user\",\"content\":\"" USER_TEXT "\"},"                                     \
    "{\"role\":\"assistant\",\"content\":" content ",\"tool_calls\":[{\"id\":\"call12345\","  \
    "\"type\":\"function\",\"function\":{\"name\":\"" TOOL_NAME "\",\"arguments\":" arguments \
    "}}]},{\"role\":\"tool\",\"tool_call_id\":\"call12345\",\"name\":\"" TOOL_NAME "\","      \
    "\"content\":\"zq-result\"}]"
#define TOOLS                                                                                    \
    "[{\"type\":\"function\",\"function\":{\"name\":\"" TOOL_NAME "\",\"description\":\"zq\","   \
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"" ARGUMENT "\":{\"type\":\"string\"," \
    "\"description\":\"zq\"}},\"required\":[\"" ARGUMENT "\"]}}}]"
#define OBJECT_ARGUMENTS "{\"" ARGUMENT "\":\"zq-value\"}"
#define TEXT_ARGUMENTS   "\"{\\\"" ARGUMENT "\\\": \\\"zq-value\\\"}\""

/* Renders messages as they stand, with the traits that are known already. */
static enum status attempt(const struct chat_template *tpl, const char *messages, const char *tools,
                           struct jinja_output *ret, struct error *err)
{
    json_t *parsed = json_loads(messages, 0, NULL);
    json_t *tool_list = tools ? json_loads(tools, 0, NULL) : json_null();
    REQUIRE(parsed && tool_list); /* they are this file's own texts */
    for (size_t i = 0; tpl->traits.parts && i < json_array_size(parsed); i++) {
        json_t *message = json_array_get(parsed, i), *content = json_object_get(message, "content");
        if (json_is_string(content))
            json_object_set_new(message, "content",
                                json_pack("[{s:s, s:O}]", "type", "text", "text", content));
    }
    json_t *globals = json_pack("{s:o, s:o, s:n, s:b}", "messages", parsed, "tools", tool_list,
                                "documents", "add_generation_prompt", 1);
    if (tpl->traits.no_none) {
        (void)json_object_del(globals, "documents");
        if (!tools)
            (void)json_object_del(globals, "tools");
    }
    enum status status = globals ? chat_render_globals(tpl, globals, 0, NULL, ret, err)
                                 : error_set(err, STATUS_NO_MEMORY, "out of memory");
    json_decref(globals);
    return status;
}

static size_t count(const struct jinja_output *output, const char *text)
{
    size_t n = 0;
    const char *at = output->bytes, *end = output->bytes + output->len;
    while ((at = memmem(at, (size_t)(end - at), text, strlen(text)))) {
        n++;
        at += strlen(text);
    }
    return n;
}

/* How often text stands in what messages render to; 0 when that fails. */
static size_t shown(const struct chat_template *tpl, const char *messages, const char *tools,
                    const char *text)
{
    struct jinja_output output;
    if (attempt(tpl, messages, tools, &output, NULL) != STATUS_OK)
        return 0;
    size_t n = count(&output, text);
    jinja_output_done(&output);
    return n;
}

static bool works(const struct chat_template *tpl, const char *messages, const char *tools)
{
    struct jinja_output output;
    if (attempt(tpl, messages, tools, &output, NULL) != STATUS_OK)
        return false;
    jinja_output_done(&output);
    return true;
}

static void probe_calls(struct chat_template *tpl)
{
    static const char object[] = CALL("\"\"", OBJECT_ARGUMENTS);
    static const char text[] = CALL("\"\"", TEXT_ARGUMENTS);
    static const char none[] = CALL("null", OBJECT_ARGUMENTS);
    static const char none_text[] = CALL("null", TEXT_ARGUMENTS);
    struct chat_traits *traits = &tpl->traits;
    /* printed as JSON: the quotes are there and are not escaped */
    static const char as_json[] = "\"" ARGUMENT "\":", as_python[] = "'" ARGUMENT "':";
    bool object_works = works(tpl, none, TOOLS) || works(tpl, object, TOOLS);
    bool object_python = shown(tpl, object, TOOLS, as_python) || shown(tpl, none, TOOLS, as_python);
    bool text_json = shown(tpl, text, TOOLS, as_json) > shown(tpl, PLAIN, TOOLS, as_json) ||
                     shown(tpl, none_text, TOOLS, as_json) > shown(tpl, PLAIN, TOOLS, as_json);
    traits->text_arguments = (!object_works || object_python) && text_json;
    const char *with_none = traits->text_arguments ? none_text : none;
    const char *with_empty = traits->text_arguments ? text : object;
    traits->null_content =
        works(tpl, with_none, TOOLS) &&
        shown(tpl, with_none, TOOLS, "None") <= shown(tpl, with_empty, TOOLS, "None");
    size_t without = shown(tpl, PLAIN, TOOLS, TOOL_NAME);
    traits->tool_calls =
        shown(tpl, traits->null_content ? with_none : with_empty, TOOLS, TOOL_NAME) > without;
}

enum status chat_probe(struct chat_template *tpl, const char *source, size_t len, struct error *err)
{
    struct chat_traits *traits = &tpl->traits;
    struct jinja_output output;
    traits->developer = memmem(source, len, "developer", 9) != NULL;
    traits->no_none = !works(tpl, PLAIN, NULL);
    if (traits->no_none && !works(tpl, PLAIN, NULL))
        traits->no_none = false;
    if (shown(tpl, PLAIN, NULL, USER_TEXT) == 0) {
        traits->parts = true;
        if (shown(tpl, PLAIN, NULL, USER_TEXT) == 0)
            traits->parts = false;
    }
    if (attempt(tpl, PLAIN, NULL, &output, err) != STATUS_OK) {
        error_prefix(err, "the chat template fails on a plain conversation");
        if (err)
            err->status = STATUS_BAD_FILE;
        return STATUS_BAD_FILE;
    }
    jinja_output_done(&output);
    traits->system = shown(tpl, PLAIN_SYSTEM, NULL, SYSTEM_TEXT) > 0;
    traits->tools = shown(tpl, PLAIN, TOOLS, TOOL_NAME) > 0;
    probe_calls(tpl);
    return STATUS_OK;
}
