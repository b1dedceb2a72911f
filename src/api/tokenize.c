#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api_priv.h"
#include "tellerd/api/json_read.h"
#include "tellerd/base/mem.h"

/*
 * /tokenize and /detokenize with vLLM's names.  /tokenize takes {"prompt": text,
 * "add_special_tokens": true} or {"messages": [...]}; text up to the body limit may come, so it is
 * encoded in the pool.
 */

enum { TOKENIZE_MAX_TOKENS = 1 << 22 };

struct tokenize_job {
    struct api_job job; /* first */
    struct exchange_owner owner;
    struct api *api;
    struct exchange *exchange; /* NULL once the client left */
    json_t *body;              /* owned; the rest is borrowed from it */
    const char *text;
    size_t len;
    const json_t *messages;
    bool add_special_tokens, with_text, add_generation_prompt;
    struct token_list ids;
    struct error error;
};

static void write_tokens(const struct tokenize_job *job, struct buf *out)
{
    buf_printf(out, "{\"count\":%zu,\"max_model_len\":%u,\"tokens\":[", job->ids.len,
               engine_context(job->api->model.engine));
    for (size_t i = 0; i < job->ids.len; i++) {
        if (i)
            buf_add_char(out, ',');
        buf_add_u64(out, job->ids.ids[i]);
    }
    buf_add_str(out, job->with_text ? "],\"token_strs\":[" : "]");
    for (size_t i = 0; job->with_text && i < job->ids.len; i++) {
        struct text_view text = tokenizer_piece(job->api->model.tokenizer, job->ids.ids[i], true);
        if (i)
            buf_add_char(out, ',');
        buf_add_json(out, text.bytes, text.len);
    }
    buf_add_str(out, job->with_text ? "]}" : "}");
}

static void client_left(struct exchange_owner *owner)
{
    struct tokenize_job *job =
        (struct tokenize_job *)((char *)owner - offsetof(struct tokenize_job, owner));
    job->exchange = NULL;
}

static enum status encode(struct tokenize_job *job, struct error *err)
{
    const struct api_model *model = &job->api->model;
    bool add_bos = job->add_special_tokens && tokenizer_adds_bos(model->tokenizer);
    if (!job->messages) {
        struct text_run all = {0, job->len};
        return tokenizer_encode(model->tokenizer, job->text, job->len, &all, 1, add_bos,
                                TOKENIZE_MAX_TOKENS, &job->ids, err);
    }
    struct chat_request chat = {
        .messages = (json_t *)job->messages,
        .add_generation_prompt = job->add_generation_prompt,
        .now = time(NULL),
    };
    struct jinja_output text = {0};
    TRY(chat_render(model->chat, &chat, &text, err));
    enum status status =
        tokenizer_encode(model->tokenizer, text.bytes, text.len, text.trusted, text.n_trusted,
                         add_bos, TOKENIZE_MAX_TOKENS, &job->ids, err);
    jinja_output_done(&text);
    return status;
}

static void work(struct api_job *base)
{
    struct tokenize_job *job = (struct tokenize_job *)base;
    struct error err = {0};
    enum status status = encode(job, &err);
    job->error = err;
    job->error.status = status;
}

static void done(struct api_job *base)
{
    struct tokenize_job *job = (struct tokenize_job *)base;
    if (job->exchange && job->error.status != STATUS_OK) {
        exchange_set_user(job->exchange, NULL);
        exchange_respond_error(job->exchange, &job->error);
    } else if (job->exchange) {
        struct buf body;
        buf_init(&body, MAX_RESPONSE_BYTES);
        write_tokens(job, &body);
        exchange_set_user(job->exchange, NULL);
        if (body.overflow)
            api_respond_error(job->exchange, STATUS_TOO_LARGE, "prompt",
                              "the list of tokens is larger than a response may be");
        else
            api_respond_json(job->exchange, 200, &body);
        buf_done(&body);
    }
    token_list_done(&job->ids);
    json_decref(job->body);
    free(job);
}

static enum status read_job(struct tokenize_job *job, struct error *err)
{
    const json_t *messages = json_field(job->body, "messages");
    job->add_special_tokens = job->add_generation_prompt = true;
    TRY(json_read_bool(job->body, "add_special_tokens", &job->add_special_tokens, err));
    TRY(json_read_bool(job->body, "add_generation_prompt", &job->add_generation_prompt, err));
    TRY(json_read_bool(job->body, "return_token_strs", &job->with_text, err));
    TRY(json_read_string(job->body, "prompt", &job->text, &job->len, err));
    if (!job->text && !messages)
        return error_param(err, STATUS_MISSING, "prompt",
                           "prompt (a string) or messages is missing");
    if (!messages)
        return STATUS_OK;
    if (!job->api->model.chat)
        return error_set(err, STATUS_NOT_IMPLEMENTED, "%s", job->api->model.no_chat_reason);
    struct request_limits limits = api_request_limits(job->api);
    struct generate_request check; /* the same checks of the messages as a chat request has */
    enum status status =
        generate_request_read(&check, REQUEST_CHAT, json_incref(job->body), &limits, err);
    job->messages = status == STATUS_OK ? check.messages : NULL;
    generate_request_done(&check);
    return status;
}

void handle_tokenize(struct api *api, struct exchange *ex)
{
    if (!api_require_model(api, ex))
        return;
    const struct http_request *request = exchange_request(ex);
    struct tokenize_job *job = xcalloc(1, sizeof *job);
    struct error err = {0};
    job->api = api;
    job->exchange = ex;
    job->owner.client_left = client_left;
    job->job.work = work;
    job->job.done = done;
    if (json_read_body(request->body, request->body_len, &job->body, &err) != STATUS_OK ||
        read_job(job, &err) != STATUS_OK) {
        exchange_respond_error(ex, &err);
        json_decref(job->body);
        free(job);
        return;
    }
    exchange_set_user(ex, &job->owner);
    if (request->body_len > INLINE_TEXT_BYTES) {
        api->hooks.run_job(api->hooks.ctx, &job->job);
        return;
    }
    work(&job->job);
    done(&job->job);
}

/* --- detokenize
 * --------------------------------------------------------------------------------------------------------------
 */

static enum status detokenize(const struct api *api, const json_t *body, struct buf *text,
                              struct error *err)
{
    const json_t *tokens = json_field(body, "tokens");
    if (!json_is_array(tokens))
        return error_param(err, STATUS_INVALID, "tokens", "tokens must be an array of token ids");
    size_t i;
    json_t *item;
    json_array_foreach(tokens, i, item)
    {
        int64_t id;
        if (!json_whole(item, 0, (int64_t)tokenizer_size(api->model.tokenizer) - 1, &id))
            return error_param(err, STATUS_INVALID, "tokens",
                               "tokens: each must be a token id below %u",
                               tokenizer_size(api->model.tokenizer));
        struct text_view piece = tokenizer_piece(api->model.tokenizer, (uint32_t)id, true);
        if (i == 0 && piece.len > 0 && piece.bytes[0] == ' ' &&
            tokenizer_strips_leading_space(api->model.tokenizer)) {
            piece.bytes++;
            piece.len--;
        }
        buf_add(text, piece.bytes, piece.len);
    }
    return text->overflow ? error_param(err, STATUS_TOO_LARGE, "tokens",
                                        "the text is larger than a response may be")
                          : STATUS_OK;
}

void handle_detokenize(struct api *api, struct exchange *ex)
{
    if (!api_require_model(api, ex))
        return;
    const struct http_request *request = exchange_request(ex);
    struct error err = {0};
    json_t *body = NULL;
    struct buf text, out;
    buf_init(&text, MAX_RESPONSE_BYTES);
    buf_init(&out, MAX_RESPONSE_BYTES);
    if (json_read_body(request->body, request->body_len, &body, &err) != STATUS_OK ||
        detokenize(api, body, &text, &err) != STATUS_OK) {
        exchange_respond_error(ex, &err);
    } else {
        buf_add_str(&out, "{\"prompt\":");
        buf_add_json(&out, text.data ? text.data : "", text.len);
        buf_add_str(&out, "}");
        if (out.overflow)
            api_respond_error(ex, STATUS_TOO_LARGE, "tokens",
                              "the text is larger than a response may be");
        else
            api_respond_json(ex, 200, &out);
    }
    json_decref(body);
    buf_done(&text);
    buf_done(&out);
}
