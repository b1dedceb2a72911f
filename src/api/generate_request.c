#include "config.h"

#include "tellerd/api/generate_request.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/api/json_read.h"
#include "tellerd/base/hash.h"
#include "tellerd/base/mem.h"
#include "tellerd/base/rng.h"
#include "tellerd/model/chat.h"

/*
 * Every field of both endpoints in one table, so that a new parameter is a row here and a line in
 * its reader.  Policy: what cannot change the answer is accepted and ignored; what would change it
 * and is not supported is refused; unknown names are ignored and can be listed.
 */
enum field_policy { FIELD_USED, FIELD_IGNORED, FIELD_REFUSED };

static const struct {
    const char *name;
    enum field_policy policy;
} fields[] = {
    {"model", FIELD_USED},
    {"messages", FIELD_USED},
    {"prompt", FIELD_USED},
    {"stream", FIELD_USED},
    {"stream_options", FIELD_USED},
    {"n", FIELD_USED},
    {"best_of", FIELD_USED},
    {"max_tokens", FIELD_USED},
    {"max_completion_tokens", FIELD_USED},
    {"temperature", FIELD_USED},
    {"top_p", FIELD_USED},
    {"top_k", FIELD_USED},
    {"min_p", FIELD_USED},
    {"repetition_penalty", FIELD_USED},
    {"presence_penalty", FIELD_USED},
    {"frequency_penalty", FIELD_USED},
    {"logit_bias", FIELD_USED},
    {"seed", FIELD_USED},
    {"stop", FIELD_USED},
    {"stop_token_ids", FIELD_USED},
    {"min_tokens", FIELD_USED},
    {"ignore_eos", FIELD_USED},
    {"logprobs", FIELD_USED},
    {"top_logprobs", FIELD_USED},
    {"prompt_logprobs", FIELD_USED},
    {"echo", FIELD_USED},
    {"priority", FIELD_USED},
    {"cache_salt", FIELD_USED},
    {"return_token_ids", FIELD_USED},
    {"chat_template_kwargs", FIELD_USED},
    {"add_generation_prompt", FIELD_USED},
    {"continue_final_message", FIELD_USED},
    {"response_format", FIELD_USED},
    {"tools", FIELD_USED},
    {"tool_choice", FIELD_USED},
    {"suffix", FIELD_USED},
    {"store", FIELD_USED},
    {"modalities", FIELD_USED},
    {"user", FIELD_IGNORED},
    {"metadata", FIELD_IGNORED},
    {"service_tier", FIELD_IGNORED},
    {"safety_identifier", FIELD_IGNORED},
    {"prompt_cache_key", FIELD_IGNORED},
    {"prompt_cache_retention", FIELD_IGNORED},
    {"parallel_tool_calls", FIELD_IGNORED},
    {"verbosity", FIELD_IGNORED},
    {"reasoning_effort", FIELD_IGNORED},
    {"prediction", FIELD_IGNORED},
    {"chat_template", FIELD_REFUSED},
    {"documents", FIELD_REFUSED},
    {"functions", FIELD_REFUSED},
    {"function_call", FIELD_REFUSED},
    {"audio", FIELD_REFUSED},
    {"web_search_options", FIELD_REFUSED},
    {"use_beam_search", FIELD_REFUSED},
    {"guided_json", FIELD_REFUSED},
    {"guided_regex", FIELD_REFUSED},
    {"guided_choice", FIELD_REFUSED},
    {"guided_grammar", FIELD_REFUSED},
    {"structured_outputs", FIELD_REFUSED},
    {"grammar", FIELD_REFUSED},
    {"json_schema", FIELD_REFUSED},
    {"prompt_embeds", FIELD_REFUSED},
    {"logits_processors", FIELD_REFUSED},
};

static bool is_plain_name(const char *name)
{
    size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");
    return len > 0 && len <= 64 && name[len] == '\0';
}

static enum status check_fields(struct generate_request *request, struct error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach(request->body, name, value)
    {
        size_t i = 0;
        while (i < sizeof fields / sizeof *fields && strcmp(fields[i].name, name) != 0)
            i++;
        if (i < sizeof fields / sizeof *fields && fields[i].policy == FIELD_REFUSED &&
            !json_is_null(value) && !json_is_false(value))
            return error_param(err, STATUS_UNSUPPORTED, name,
                               "%s is not supported by this server; leave it out", name);
        size_t used = strlen(request->ignored);
        if ((i == sizeof fields / sizeof *fields || fields[i].policy == FIELD_IGNORED) &&
            is_plain_name(name) && used + strlen(name) + 2 < sizeof request->ignored)
            snprintf(request->ignored + used, sizeof request->ignored - used, "%s%s",
                     used ? "," : "", name);
    }
    return STATUS_OK;
}

/* --- what would change the answer and is not there
 * ---------------------------------------------------------------- */

static enum status refuse_unsupported(const json_t *body, struct error *err)
{
    const json_t *format = json_field(body, "response_format");
    if (format) {
        const json_t *type = json_is_object(format) ? json_field(format, "type") : NULL;
        if (!json_is_string(type))
            return error_param(err, STATUS_INVALID, "response_format",
                               "response_format must be an object with a type");
        if (strcmp(json_string_value(type), "text") != 0)
            return error_param(
                err, STATUS_UNSUPPORTED, "response_format",
                "response_format: only {\"type\":\"text\"} is supported by this server");
    }
    const json_t *tools = json_field(body, "tools");
    if (tools && !json_is_array(tools))
        return error_param(err, STATUS_INVALID, "tools", "tools must be an array");
    if (tools && json_array_size(tools) > 0)
        return error_param(err, STATUS_UNSUPPORTED, "tools",
                           "tool calls are not supported by this server; leave tools out");
    const json_t *choice = json_field(body, "tool_choice");
    if (choice && !(json_is_string(choice) && (strcmp(json_string_value(choice), "none") == 0 ||
                                               strcmp(json_string_value(choice), "auto") == 0)))
        return error_param(err, STATUS_INVALID, "tool_choice",
                           "tool_choice names a tool, but the request has no tools");
    bool store = false;
    TRY(json_read_bool(body, "store", &store, err));
    if (store)
        return error_param(err, STATUS_UNSUPPORTED, "store",
                           "store: this server keeps nothing; leave it out or send false");
    const char *suffix = "";
    TRY(json_read_string(body, "suffix", &suffix, NULL, err));
    if (suffix[0])
        return error_param(err, STATUS_UNSUPPORTED, "suffix",
                           "suffix is not supported by this server");
    const json_t *modalities = json_field(body, "modalities");
    size_t i;
    json_t *item;
    json_array_foreach(modalities, i,
                       item) if (!json_is_string(item) ||
                                 strcmp(json_string_value(item), "text") !=
                                     0) return error_param(err, STATUS_UNSUPPORTED, "modalities",
                                                           "modalities: only text is supported");
    return STATUS_OK;
}

/* --- sampling
 * -----------------------------------------------------------------------------------------------------
 */

static enum status read_float(const json_t *body, const char *name, double min, double max,
                              float *value, struct error *err)
{
    double number = (double)*value;
    TRY(json_read_number(body, name, min, max, &number, err));
    *value = (float)number;
    return STATUS_OK;
}

/* "123" -> 123: digits only, no sign, space or leading zero, below n_tokens. */
static bool parse_token_key(const char *key, uint32_t n_tokens, uint32_t *ret)
{
    size_t len = strlen(key);
    if (len == 0 || len > 9 || strspn(key, "0123456789") != len || (len > 1 && key[0] == '0'))
        return false;
    unsigned long value = strtoul(key, NULL, 10);
    if (value >= n_tokens)
        return false;
    *ret = (uint32_t)value;
    return true;
}

static enum status read_logit_bias(struct sampling *sampling, const json_t *body, uint32_t n_tokens,
                                   struct error *err)
{
    json_t *object = json_field(body, "logit_bias");
    if (!object)
        return STATUS_OK;
    if (!json_is_object(object))
        return error_param(err, STATUS_INVALID, "logit_bias",
                           "logit_bias must be an object from token ids to numbers");
    if (json_object_size(object) > SAMPLER_MAX_BIAS)
        return error_param(err, STATUS_INVALID, "logit_bias", "logit_bias has more than %d entries",
                           SAMPLER_MAX_BIAS);
    sampling->bias = xcalloc(json_object_size(object) + 1, sizeof *sampling->bias);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        struct logit_bias *bias = &sampling->bias[sampling->n_bias];
        if (!parse_token_key(key, n_tokens, &bias->id))
            return error_param(err, STATUS_INVALID, "logit_bias",
                               "logit_bias: each key must be a token id below %u", n_tokens);
        double number = json_is_number(value) ? json_number_value(value) : (double)NAN;
        if (!(number >= -100 && number <= 100))
            return error_param(err, STATUS_INVALID, "logit_bias",
                               "logit_bias: each value must be a number from -100 to 100");
        bias->bias = (float)number;
        sampling->n_bias++;
    }
    return STATUS_OK;
}

static enum status read_stop_ids(struct sampling *sampling, const json_t *body, uint32_t n_tokens,
                                 struct error *err)
{
    const json_t *list = json_field(body, "stop_token_ids");
    if (!list)
        return STATUS_OK;
    if (!json_is_array(list) || json_array_size(list) > SAMPLER_MAX_STOP_IDS)
        return error_param(err, STATUS_INVALID, "stop_token_ids",
                           "stop_token_ids must be an array of at most %d token ids",
                           SAMPLER_MAX_STOP_IDS);
    sampling->stop_ids = xcalloc(json_array_size(list) + 1, sizeof *sampling->stop_ids);
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        int64_t id;
        if (!json_whole(item, 0, (int64_t)n_tokens - 1, &id))
            return error_param(err, STATUS_INVALID, "stop_token_ids",
                               "stop_token_ids: each must be a token id below %u", n_tokens);
        sampling->stop_ids[sampling->n_stop_ids++] = (uint32_t)id;
    }
    return STATUS_OK;
}

static void apply_defaults(struct sampling *sampling, const struct generation_defaults *defaults)
{
    if (!defaults)
        return;
    if (defaults->temperature >= 0)
        sampling->temperature = defaults->temperature;
    if (defaults->top_p >= 0)
        sampling->top_p = defaults->top_p;
    if (defaults->min_p >= 0)
        sampling->min_p = defaults->min_p;
    if (defaults->repetition_penalty > 0)
        sampling->repetition_penalty = defaults->repetition_penalty;
    if (defaults->top_k > 0)
        sampling->top_k = defaults->top_k;
}

static enum status read_sampling(struct generate_request *request,
                                 const struct request_limits *limits, struct error *err)
{
    const json_t *body = request->body;
    struct sampling *sampling = &request->sampling;
    sampling_defaults(sampling);
    apply_defaults(sampling, limits->defaults);
    TRY(read_float(body, "temperature", 0, 2, &sampling->temperature, err));
    TRY(read_float(body, "top_p", 0, 1, &sampling->top_p, err));
    TRY(read_float(body, "min_p", 0, 1, &sampling->min_p, err));
    TRY(read_float(body, "presence_penalty", -2, 2, &sampling->presence_penalty, err));
    TRY(read_float(body, "frequency_penalty", -2, 2, &sampling->frequency_penalty, err));
    TRY(read_float(body, "repetition_penalty", 0.01, 10, &sampling->repetition_penalty, err));
    int64_t top_k = sampling->top_k;
    TRY(json_read_int(body, "top_k", -1, INT32_MAX, &top_k, err));
    sampling->top_k = (int32_t)top_k;
    int64_t seed = 0;
    TRY(json_read_int(body, "seed", INT64_MIN, INT64_MAX, &seed, err));
    request->has_seed = json_field(body, "seed") != NULL;
    sampling->seed = (uint64_t)seed;
    if (!request->has_seed)
        rng_system_bytes(&sampling->seed, sizeof sampling->seed);
    int64_t min_tokens = 0;
    TRY(json_read_int(body, "min_tokens", 0, INT32_MAX, &min_tokens, err));
    sampling->min_tokens = (uint32_t)min_tokens;
    TRY(json_read_bool(body, "ignore_eos", &sampling->ignore_eos, err));
    TRY(read_logit_bias(sampling, body, limits->n_tokens, err));
    return read_stop_ids(sampling, body, limits->n_tokens, err);
}

/* --- length, stop, choices, logprobs
 * ------------------------------------------------------------------------------- */

static enum status read_length(struct generate_request *request, struct error *err)
{
    int64_t max_tokens = -1, max_completion = -1, n = 1, best_of = 1;
    TRY(json_read_int(request->body, "max_tokens", 0, INT64_MAX, &max_tokens, err));
    TRY(json_read_int(request->body, "max_completion_tokens", 0, INT64_MAX, &max_completion, err));
    if (request->kind == REQUEST_COMPLETION && max_tokens < 0 && max_completion < 0)
        max_tokens = 16; /* the legacy endpoint's default */
    /* both: the newer name wins */
    request->max_tokens = max_completion >= 0 ? max_completion : max_tokens;
    TRY(json_read_int(request->body, "n", 1, REQUEST_MAX_CHOICES, &n, err));
    request->n = (uint32_t)n;
    best_of = n;
    TRY(json_read_int(request->body, "best_of", 1, REQUEST_MAX_CHOICES, &best_of, err));
    if (best_of != n)
        return error_param(err, STATUS_UNSUPPORTED, "best_of",
                           "best_of other than n is not supported by this server");
    return STATUS_OK;
}

static enum status add_stop(struct generate_request *request, const json_t *value,
                            struct error *err)
{
    if (!json_is_string(value))
        return error_param(err, STATUS_INVALID, "stop",
                           "stop must be a string or an array of strings");
    if (json_string_length(value) == 0)
        return error_param(err, STATUS_INVALID, "stop", "stop must not hold an empty string");
    if (!stop_set_add(&request->stops, json_string_value(value), json_string_length(value)))
        return error_param(err, STATUS_INVALID, "stop",
                           "stop takes at most %d strings of at most %d bytes", REQUEST_MAX_STOPS,
                           TEXT_STREAM_MAX_STOP_BYTES);
    return STATUS_OK;
}

static enum status read_stop(struct generate_request *request, struct error *err)
{
    const json_t *stop = json_field(request->body, "stop");
    if (!stop)
        return STATUS_OK;
    if (!json_is_array(stop))
        return add_stop(request, stop, err);
    size_t i;
    json_t *item;
    json_array_foreach(stop, i, item) TRY(add_stop(request, item, err));
    return STATUS_OK;
}

static enum status read_logprobs(struct generate_request *request, struct error *err)
{
    const json_t *body = request->body;
    int64_t top = 0, prompt = REQUEST_NO_PROMPT_LOGPROBS;
    if (request->kind == REQUEST_CHAT) {
        TRY(json_read_bool(body, "logprobs", &request->logprobs, err));
        TRY(json_read_int(body, "top_logprobs", 0, SAMPLER_MAX_LOGPROBS, &top, err));
        if (json_field(body, "top_logprobs") && top > 0 && !request->logprobs)
            return error_param(err, STATUS_INVALID, "top_logprobs",
                               "top_logprobs needs logprobs: true");
    } else {
        TRY(json_read_int(body, "logprobs", 0, COMPLETION_MAX_LOGPROBS, &top, err));
        request->logprobs = json_field(body, "logprobs") != NULL;
    }
    request->sampling.logprobs = request->logprobs;
    request->sampling.n_top_logprobs = (uint32_t)top;
    TRY(json_read_int(body, "prompt_logprobs", 0, SAMPLER_MAX_LOGPROBS, &prompt, err));
    request->n_prompt_logprobs = (int32_t)prompt;
    if (prompt >= 0 && request->stream)
        return error_param(err, STATUS_UNSUPPORTED, "prompt_logprobs",
                           "prompt_logprobs cannot be streamed");
    return STATUS_OK;
}

static enum status read_stream(struct generate_request *request, struct error *err)
{
    TRY(json_read_bool(request->body, "stream", &request->stream, err));
    const json_t *options = json_field(request->body, "stream_options");
    if (!options)
        return STATUS_OK;
    if (!json_is_object(options))
        return error_param(err, STATUS_INVALID, "stream_options",
                           "stream_options must be an object");
    if (!request->stream)
        return error_param(err, STATUS_INVALID, "stream_options",
                           "stream_options needs stream: true");
    return json_read_bool(options, "include_usage", &request->include_usage, err);
}

/* --- prompts
 * --------------------------------------------------------------------------------------------------------
 */

static enum status read_ids(const json_t *list, const struct request_limits *limits,
                            struct text_prompt *prompt, struct error *err)
{
    if (json_array_size(list) == 0)
        return error_param(err, STATUS_INVALID, "prompt", "prompt is empty");
    if (json_array_size(list) >
        (size_t)limits->n_context * 4 +
            4096) { /* the exact bound is checked with the numbers at admission */
        error_param(err, STATUS_CONTEXT_LENGTH, "prompt",
                    "the prompt has %zu tokens, the context has room for %u", json_array_size(list),
                    limits->n_context);
        err->n_prompt_tokens = (unsigned)json_array_size(list);
        err->n_ctx = limits->n_context;
        return STATUS_CONTEXT_LENGTH;
    }
    prompt->ids = xcalloc(json_array_size(list), sizeof *prompt->ids);
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        int64_t id;
        if (!json_is_integer(item) || !json_whole(item, 0, (int64_t)limits->n_tokens - 1, &id))
            return error_param(err, STATUS_INVALID, "prompt",
                               "prompt: each token id must be a whole number from 0 to %u",
                               limits->n_tokens - 1);
        prompt->ids[prompt->n_ids++] = (uint32_t)id;
    }
    return STATUS_OK;
}

static enum status add_prompt(struct generate_request *request, const json_t *value,
                              const struct request_limits *limits, struct error *err)
{
    if (request->n_prompts == REQUEST_MAX_PROMPTS)
        return error_param(err, STATUS_INVALID, "prompt",
                           "prompt: at most %d prompts in one request", REQUEST_MAX_PROMPTS);
    struct text_prompt *prompt = &request->prompts[request->n_prompts++];
    if (json_is_string(value)) {
        prompt->text = json_string_value(value);
        prompt->len = json_string_length(value);
        return STATUS_OK;
    }
    if (json_is_array(value))
        return read_ids(value, limits, prompt, err);
    return error_param(
        err, STATUS_INVALID, "prompt",
        "prompt must be a string, an array of strings, of token ids, or of arrays of token ids");
}

static enum status read_prompts(struct generate_request *request,
                                const struct request_limits *limits, struct error *err)
{
    const json_t *prompt = json_field(request->body, "prompt");
    if (!prompt)
        return error_param(err, STATUS_MISSING, "prompt", "prompt is missing");
    if (json_is_string(prompt))
        return add_prompt(request, prompt, limits, err);
    if (!json_is_array(prompt) || json_array_size(prompt) == 0)
        return error_param(err, STATUS_INVALID, "prompt",
                           "prompt must be a string or a non-empty array");
    const json_t *first = json_array_get(prompt, 0);
    if (json_is_number(first))
        return add_prompt(request, prompt, limits, err);
    size_t i;
    json_t *item;
    json_array_foreach(prompt, i, item)
    {
        if (json_typeof(item) != json_typeof(first))
            return error_param(err, STATUS_INVALID, "prompt",
                               "prompt must not mix strings and token ids");
        TRY(add_prompt(request, item, limits, err));
    }
    if (request->n_prompts * request->n > REQUEST_MAX_CHOICES)
        return error_param(err, STATUS_INVALID, "n", "prompts times n must not pass %d",
                           REQUEST_MAX_CHOICES);
    return STATUS_OK;
}

static enum status check_part(const json_t *part, size_t message, struct error *err)
{
    const json_t *type = json_is_object(part) ? json_field(part, "type") : NULL;
    if (!json_is_string(type))
        return error_param(err, STATUS_INVALID, "messages",
                           "messages[%zu].content: each part must be an object with a type",
                           message);
    if (strcmp(json_string_value(type), "text") != 0 &&
        strcmp(json_string_value(type), "refusal") != 0)
        return error_param(err, STATUS_UNSUPPORTED, "messages",
                           "messages[%zu].content: only parts of type text are supported", message);
    if (!json_is_string(json_field(part, json_string_value(type))))
        return error_param(err, STATUS_INVALID, "messages",
                           "messages[%zu].content: a text part needs a text string", message);
    return STATUS_OK;
}

static enum status check_message(const json_t *message, size_t i, struct error *err)
{
    if (!json_is_object(message))
        return error_param(err, STATUS_INVALID, "messages", "messages[%zu] must be an object", i);
    const json_t *role = json_field(message, "role");
    if (!json_is_string(role))
        return error_param(err, STATUS_INVALID, "messages", "messages[%zu] needs a role", i);
    if (!chat_role_known(json_string_value(role))) /* templates trust these words */
        return error_param(
            err, STATUS_INVALID, "messages",
            "messages[%zu].role must be one of system, developer, user, assistant, tool", i);
    const json_t *content = json_field(message, "content");
    if (!content && strcmp(json_string_value(role), "assistant") != 0)
        return error_param(err, STATUS_INVALID, "messages", "messages[%zu] needs content", i);
    const json_t *calls = json_field(message, "tool_calls");
    if (calls && !json_is_array(calls))
        return error_param(err, STATUS_INVALID, "messages",
                           "messages[%zu].tool_calls must be an array", i);
    if (content && !json_is_string(content) && !json_is_array(content))
        return error_param(err, STATUS_INVALID, "messages",
                           "messages[%zu].content must be a string or an array of parts", i);
    size_t p;
    json_t *part;
    if (json_is_array(content))
        json_array_foreach(content, p, part) TRY(check_part(part, i, err));
    return STATUS_OK;
}

static enum status read_messages(struct generate_request *request, struct error *err)
{
    const json_t *messages = json_field(request->body, "messages");
    if (!messages)
        return error_param(err, STATUS_MISSING, "messages", "messages is missing");
    if (!json_is_array(messages) || json_array_size(messages) == 0)
        return error_param(err, STATUS_INVALID, "messages", "messages must be a non-empty array");
    if (json_array_size(messages) > REQUEST_MAX_MESSAGES)
        return error_param(err, STATUS_INVALID, "messages", "messages has more than %d entries",
                           REQUEST_MAX_MESSAGES);
    size_t i;
    json_t *message;
    json_array_foreach(messages, i, message) TRY(check_message(message, i, err));
    request->messages = messages;
    const json_t *kwargs = json_field(request->body, "chat_template_kwargs");
    if (kwargs && !json_is_object(kwargs))
        return error_param(err, STATUS_INVALID, "chat_template_kwargs",
                           "chat_template_kwargs must be an object");
    if (kwargs && json_object_get(kwargs, "chat_template"))
        return error_param(err, STATUS_UNSUPPORTED, "chat_template_kwargs",
                           "a request cannot bring its own chat template");
    request->template_kwargs = kwargs;
    TRY(json_read_bool(request->body, "add_generation_prompt", &request->add_generation_prompt,
                       err));
    TRY(json_read_bool(request->body, "continue_final_message", &request->continue_final_message,
                       err));
    if (request->continue_final_message && json_field(request->body, "add_generation_prompt") &&
        request->add_generation_prompt)
        return error_param(err, STATUS_INVALID, "continue_final_message",
                           "continue_final_message and add_generation_prompt exclude each other");
    if (request->continue_final_message)
        request->add_generation_prompt = false;
    return STATUS_OK;
}

/* --- the whole
 * ------------------------------------------------------------------------------------------------------
 */

static enum status read_model(const json_t *body, const struct request_limits *limits,
                              struct error *err)
{
    const char *model = NULL;
    TRY(json_read_string(body, "model", &model, NULL, err));
    if (model && strcmp(model, limits->model_id) != 0)
        return error_param(err, STATUS_MODEL_NOT_FOUND, "model",
                           "no model of that name; this server serves %s", limits->model_id);
    return STATUS_OK;
}

static enum status read_rest(struct generate_request *request, struct error *err)
{
    int64_t priority = 0;
    TRY(json_read_int(request->body, "priority", INT32_MIN, INT32_MAX, &priority, err));
    request->priority = (int32_t)priority;
    const char *salt = NULL;
    size_t salt_len = 0;
    TRY(json_read_string(request->body, "cache_salt", &salt, &salt_len, err));
    if (salt && salt_len > 0) {
        struct hash128 hash = hash_bytes(salt, salt_len, 0);
        request->cache_salt = (hash.low ^ hash.high) | 1;
    }
    TRY(json_read_bool(request->body, "return_token_ids", &request->return_token_ids, err));
    if (request->kind != REQUEST_COMPLETION)
        return STATUS_OK;
    TRY(json_read_bool(request->body, "echo", &request->echo, err));
    if (request->echo && request->logprobs && request->n_prompt_logprobs < 0) {
        if (request->stream)
            return error_param(err, STATUS_UNSUPPORTED, "echo",
                               "echo with logprobs cannot be streamed");
        request->n_prompt_logprobs = (int32_t)request->sampling.n_top_logprobs;
    }
    return STATUS_OK;
}

enum status generate_request_read(struct generate_request *request, enum request_kind kind,
                                  json_t *body, const struct request_limits *limits,
                                  struct error *err)
{
    memset(request, 0, sizeof *request);
    request->kind = kind;
    request->body = body;
    request->add_generation_prompt = true;
    request->n_prompt_logprobs = REQUEST_NO_PROMPT_LOGPROBS;
    TRY(check_fields(request, err));
    TRY(read_model(body, limits, err));
    TRY(refuse_unsupported(body, err));
    TRY(read_stream(request, err));
    TRY(read_length(request, err));
    TRY(read_sampling(request, limits, err));
    TRY(read_stop(request, err));
    TRY(read_logprobs(request, err));
    TRY(read_rest(request, err));
    request->has_prompt_logprobs = json_field(body, "prompt_logprobs") != NULL;
    return kind == REQUEST_CHAT ? read_messages(request, err) : read_prompts(request, limits, err);
}

void generate_request_forget_body(struct generate_request *request)
{
    for (uint32_t i = 0; i < request->n_prompts; i++) {
        free(request->prompts[i].ids);
        request->prompts[i] = (struct text_prompt){0};
    }
    json_decref(request->body);
    request->body = NULL;
    request->messages = request->template_kwargs = NULL;
}

void generate_request_done(struct generate_request *request)
{
    generate_request_forget_body(request);
    free(request->sampling.bias);
    free(request->sampling.stop_ids);
    stop_set_done(&request->stops);
    request->n_prompts = 0;
    request->sampling.bias = NULL;
    request->sampling.stop_ids = NULL;
}
