/*
 * Brings the messages and tools of a request into the one form that chat.h promises to templates.
 * The request's own JSON is never changed: what differs is copied.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat_priv.h"
#include "tellerd/base/buf.h"

enum {
    /* One message's text; the body as a whole is bounded before it comes here. */
    MAX_CONTENT_BYTES = 256 << 20,
};

static enum status no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "out of memory");
}

/* Text of a content part, or an error that names it. */
static enum status part_text(json_t *part, size_t message, size_t index, json_t **ret,
                             struct error *err)
{
    char param[ERROR_PARAM_MAX];
    snprintf(param, sizeof param, "messages[%zu].content[%zu]", message, index);
    json_t *type = json_object_get(part, "type"), *text = json_object_get(part, "text");
    if (!json_is_string(type))
        return error_param(err, STATUS_INVALID, param,
                           "a content part must be an object with a string 'type'");
    if (strcmp(json_string_value(type), "text") != 0)
        return error_param(err, STATUS_UNSUPPORTED, param,
                           "content parts of type '%.40s' are not supported, only 'text'",
                           json_string_value(type));
    if (!json_is_string(text))
        return error_param(err, STATUS_INVALID, param,
                           "a content part of type 'text' must have a string 'text'");
    *ret = text;
    return STATUS_OK;
}

/* Content as one JSON string (a new reference); null when there is none. */
static enum status content_text(json_t *content, size_t message, json_t **ret, struct error *err)
{
    char param[ERROR_PARAM_MAX];
    if (!content || json_is_null(content) || json_is_string(content)) {
        *ret = content ? json_incref(content) : json_null();
        return STATUS_OK;
    }
    if (!json_is_array(content)) {
        snprintf(param, sizeof param, "messages[%zu].content", message);
        return error_param(err, STATUS_INVALID, param,
                           "content must be a string, an array of parts, or null");
    }
    struct buf buf;
    enum status status = STATUS_OK;
    buf_init(&buf, MAX_CONTENT_BYTES);
    for (size_t i = 0; i < json_array_size(content) && status == STATUS_OK; i++) {
        json_t *text;
        status = part_text(json_array_get(content, i), message, i, &text, err);
        if (status == STATUS_OK &&
            !buf_add(&buf, json_string_value(text), json_string_length(text)))
            status = error_set(err, STATUS_TOO_LARGE, "a message's content is too long");
    }
    if (status == STATUS_OK) {
        *ret = json_stringn(buf.len ? buf.data : "", buf.len);
        if (!*ret)
            status = no_memory(err);
    }
    buf_done(&buf);
    return status;
}

/* Arguments of a tool call as the template wants them: a new reference. */
static json_t *normal_arguments(const struct chat_traits *traits, json_t *arguments)
{
    bool is_text = json_is_string(arguments);
    if (!arguments || json_is_null(arguments) || (is_text && json_string_length(arguments) == 0))
        return traits->text_arguments ? json_string("{}") : json_object();
    if (traits->text_arguments && !is_text) {
        char *text = json_dumps(arguments, JSON_ENCODE_ANY);
        json_t *string = text ? json_string(text) : NULL;
        free(text);
        return string;
    }
    if (!traits->text_arguments && is_text) {
        json_t *parsed = json_loadb(json_string_value(arguments), json_string_length(arguments),
                                    JSON_ALLOW_NUL, NULL);
        if (parsed)
            return parsed;
    }
    return json_incref(arguments);
}

/* Drops the members that are null, but for `keep` (may be NULL). */
static void drop_null(json_t *object, const char *keep)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, key, value)
    {
        if (json_is_null(value) && (!keep || strcmp(key, keep) != 0))
            (void)json_object_del(object, key);
    }
}

static enum status normal_call(const struct chat_traits *traits, json_t *call, size_t message,
                               size_t index, json_t **ret, struct error *err)
{
    char param[ERROR_PARAM_MAX];
    json_t *function = json_object_get(call, "function");
    snprintf(param, sizeof param, "messages[%zu].tool_calls[%zu]", message, index);
    if (!json_is_object(function) || !json_is_string(json_object_get(function, "name")))
        return error_param(err, STATUS_INVALID, param,
                           "a tool call must have a 'function' with a string 'name'");
    json_t *call_copy = json_copy(call), *function_copy = json_copy(function);
    json_t *arguments = normal_arguments(traits, json_object_get(function, "arguments"));
    bool ok = json_object_set_new(function_copy, "arguments", arguments) == 0;
    ok = json_object_set_new(call_copy, "function", function_copy) == 0 && ok;
    if (!ok) {
        json_decref(call_copy);
        return no_memory(err);
    }
    drop_null(call_copy, NULL);
    *ret = call_copy;
    return STATUS_OK;
}

/* Replaces the tool calls of a copied message; *ret_any tells whether there are any. */
static enum status normal_calls(const struct chat_traits *traits, json_t *copy, size_t message,
                                bool *ret_any, struct error *err)
{
    char param[ERROR_PARAM_MAX];
    json_t *calls = json_object_get(copy, "tool_calls");
    *ret_any = json_array_size(calls) > 0;
    if (!calls)
        return STATUS_OK;
    if (!json_is_array(calls)) {
        snprintf(param, sizeof param, "messages[%zu].tool_calls", message);
        return error_param(err, STATUS_INVALID, param, "tool_calls must be an array");
    }
    if (!*ret_any) {
        (void)json_object_del(copy, "tool_calls");
        return STATUS_OK;
    }
    json_t *normal = json_array();
    enum status status = STATUS_OK;
    for (size_t i = 0; i < json_array_size(calls) && status == STATUS_OK; i++) {
        json_t *call;
        status = normal_call(traits, json_array_get(calls, i), message, i, &call, err);
        if (status == STATUS_OK && json_array_append_new(normal, call) != 0)
            status = no_memory(err);
    }
    if (status != STATUS_OK)
        json_decref(normal);
    else if (json_object_set_new(copy, "tool_calls", normal) != 0)
        status = no_memory(err);
    return status;
}

static json_t *with_mark(json_t *content)
{
    static const char mark[] = CHAT_END_MARK " ";
    struct buf buf;
    buf_init(&buf, MAX_CONTENT_BYTES);
    json_t *marked = NULL;
    if ((json_is_null(content) ||
         buf_add(&buf, json_string_value(content), json_string_length(content))) &&
        buf_add_str(&buf, mark))
        marked = json_stringn(buf.data, buf.len);
    buf_done(&buf);
    return marked;
}

/* Gives a copied message its content: takes the reference. */
static enum status set_content(const struct chat_traits *traits, json_t *copy, json_t *content,
                               bool may_be_null, struct error *err)
{
    if (json_is_null(content) && !may_be_null) {
        json_decref(content);
        content = json_string("");
    }
    if (traits->parts && json_is_string(content))
        content = json_pack("[{s:s, s:o}]", "type", "text", "text", content);
    return json_object_set_new(copy, "content", content) == 0 ? STATUS_OK : no_memory(err);
}

static enum status normal_message(const struct chat_traits *traits, json_t *copy, size_t index,
                                  bool mark, struct error *err)
{
    char param[ERROR_PARAM_MAX];
    const char *role = json_string_value(json_object_get(copy, "role"));
    snprintf(param, sizeof param, "messages[%zu].role", index);
    if (!role)
        return error_param(err, STATUS_INVALID, param, "a message must have a string 'role'");
    bool is_assistant = strcmp(role, "assistant") == 0, any_calls = false;
    if (strcmp(role, "developer") == 0 && !traits->developer &&
        json_object_set_new(copy, "role", json_string("system")) != 0)
        return no_memory(err);
    drop_null(copy, "content");
    enum status status = normal_calls(traits, copy, index, &any_calls, err);
    json_t *content;
    if (status == STATUS_OK)
        status = content_text(json_object_get(copy, "content"), index, &content, err);
    if (status != STATUS_OK)
        return status;
    if (mark) {
        json_t *marked = is_assistant && !any_calls ? with_mark(content) : NULL;
        json_decref(content);
        if (!marked)
            return error_param(err, STATUS_INVALID, "continue_final_message",
                               "the last message must be the assistant's, with text and no tool "
                               "calls, to be continued");
        content = marked;
    }
    return set_content(traits, copy, content, is_assistant && any_calls && traits->null_content,
                       err);
}

enum status chat_normal_messages(const struct chat_traits *traits, json_t *messages,
                                 bool mark_final, json_t **ret, struct error *err)
{
    size_t n = json_array_size(messages);
    if (!json_is_array(messages) || n == 0)
        return error_param(err, STATUS_INVALID, "messages",
                           "messages must be an array with at least one message");
    json_t *normal = json_array();
    enum status status = normal ? STATUS_OK : no_memory(err);
    for (size_t i = 0; i < n && status == STATUS_OK; i++) {
        char param[ERROR_PARAM_MAX];
        json_t *message = json_array_get(messages, i);
        if (!json_is_object(message)) {
            snprintf(param, sizeof param, "messages[%zu]", i);
            status = error_param(err, STATUS_INVALID, param, "a message must be an object");
            break;
        }
        json_t *copy = json_copy(message);
        status =
            copy ? normal_message(traits, copy, i, mark_final && i + 1 == n, err) : no_memory(err);
        if (status != STATUS_OK)
            json_decref(copy);
        else if (json_array_append_new(normal, copy) != 0)
            status = no_memory(err);
    }
    if (status == STATUS_OK)
        *ret = normal;
    else
        json_decref(normal);
    return status;
}

static enum status normal_tool(json_t *tool, size_t index, json_t **ret, struct error *err)
{
    char param[ERROR_PARAM_MAX];
    snprintf(param, sizeof param, "tools[%zu]", index);
    json_t *function = json_object_get(tool, "function");
    if (!json_is_object(function) || !json_is_string(json_object_get(function, "name")))
        return error_param(err, STATUS_INVALID, param,
                           "a tool must have a 'function' with a string 'name'");
    json_t *tool_copy = json_copy(tool), *function_copy = json_copy(function);
    if (!tool_copy || !function_copy) {
        json_decref(tool_copy);
        json_decref(function_copy);
        return no_memory(err);
    }
    drop_null(tool_copy, NULL);
    drop_null(function_copy, NULL);
    bool ok = true;
    if (!json_object_get(function_copy, "parameters"))
        ok = json_object_set_new(function_copy, "parameters",
                                 json_pack("{s:s, s:{}}", "type", "object", "properties")) == 0;
    ok = json_object_set_new(tool_copy, "function", function_copy) == 0 && ok;
    if (!ok) {
        json_decref(tool_copy);
        return no_memory(err);
    }
    *ret = tool_copy;
    return STATUS_OK;
}

enum status chat_normal_tools(json_t *tools, json_t **ret, struct error *err)
{
    if (!tools || json_is_null(tools) || (json_is_array(tools) && json_array_size(tools) == 0)) {
        *ret = json_null();
        return STATUS_OK;
    }
    if (!json_is_array(tools))
        return error_param(err, STATUS_INVALID, "tools", "tools must be an array");
    json_t *normal = json_array();
    enum status status = normal ? STATUS_OK : no_memory(err);
    for (size_t i = 0; i < json_array_size(tools) && status == STATUS_OK; i++) {
        json_t *tool;
        status = normal_tool(json_array_get(tools, i), i, &tool, err);
        if (status == STATUS_OK && json_array_append_new(normal, tool) != 0)
            status = no_memory(err);
    }
    if (status == STATUS_OK)
        *ret = normal;
    else
        json_decref(normal);
    return status;
}
