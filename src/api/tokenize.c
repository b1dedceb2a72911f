#include "config.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api_priv.h"
#include "tellerd/api/json_read.h"
#include "tellerd/base/mem.h"

/*
 * /tokenize and /detokenize with vLLM's names.  /tokenize takes {"prompt": text,
 * "add_special_tokens": true} or {"messages": [...]}.  From the body's bytes to the answer's both
 * are a function of the immutable model parts, so that a large body is worked on in the pool.
 */

enum { TOKENIZE_MAX_TOKENS = 1 << 22 };

struct text_job {
    struct api_job job; /* first */
    struct exchange_owner owner;
    const struct api *api;
    struct exchange *exchange; /* NULL once the client left */
    char *body;                /* owned */
    size_t body_len;
    enum status (*answer)(const struct api *api, json_t *body, struct buf *out, struct error *err);
    struct buf out;
    struct error error;
};

static void client_left(struct exchange_owner *owner)
{
    struct text_job *job = (struct text_job *)((char *)owner - offsetof(struct text_job, owner));
    job->exchange = NULL;
}

static void work(struct api_job *base)
{
    struct text_job *job = (struct text_job *)base;
    struct error err = {0};
    json_t *body = NULL;
    enum status status = json_read_body(job->body, job->body_len, &body, &err);
    if (status == STATUS_OK)
        status = job->answer(job->api, body, &job->out, &err);
    json_decref(body);
    free(job->body);
    job->error = err;
    job->error.status = status;
}

static void done(struct api_job *base)
{
    struct text_job *job = (struct text_job *)base;
    if (job->exchange) {
        exchange_set_user(job->exchange, NULL);
        if (job->error.status != STATUS_OK)
            exchange_respond_error(job->exchange, &job->error);
        else
            api_respond_json(job->exchange, 200, &job->out);
    }
    buf_done(&job->out);
    free(job);
}

static void start(struct api *api, struct exchange *ex,
                  enum status (*answer)(const struct api *api, json_t *body, struct buf *out,
                                        struct error *err))
{
    if (!api_require_model(api, ex))
        return;
    struct text_job *job = xcalloc(1, sizeof *job);
    *job = (struct text_job){.job = {.work = work, .done = done},
                             .owner.client_left = client_left,
                             .api = api,
                             .exchange = ex,
                             .answer = answer};
    job->body = exchange_take_body(ex, &job->body_len);
    buf_init(&job->out, MAX_RESPONSE_BYTES);
    exchange_set_user(ex, &job->owner);
    if (job->body_len > INLINE_BODY_BYTES) {
        api->hooks.run_job(api->hooks.ctx, &job->job);
        return;
    }
    work(&job->job);
    done(&job->job);
}

/* --- tokenize
 * --------------------------------------------------------------------------------------------------------------
 */

static enum status write_tokens(const struct api *api, const struct token_list *ids, bool with_text,
                                struct buf *out, struct error *err)
{
    buf_printf(out, "{\"count\":%zu,\"max_model_len\":%u,\"tokens\":[", ids->len,
               engine_context(api->model.engine));
    for (size_t i = 0; i < ids->len; i++) {
        if (i)
            buf_add_char(out, ',');
        buf_add_u64(out, ids->ids[i]);
    }
    buf_add_str(out, with_text ? "],\"token_strs\":[" : "]");
    for (size_t i = 0; with_text && i < ids->len; i++) {
        struct text_view text = tokenizer_piece(api->model.tokenizer, ids->ids[i], true);
        if (i)
            buf_add_char(out, ',');
        buf_add_json(out, text.bytes, text.len);
    }
    buf_add_str(out, with_text ? "]}" : "}");
    return out->overflow ? error_param(err, STATUS_TOO_LARGE, "prompt",
                                       "the list of tokens is larger than a response may be")
                         : STATUS_OK;
}

static enum status encode_messages(const struct api *api, const json_t *messages, bool add_bos,
                                   bool add_generation_prompt, struct token_list *ids,
                                   struct error *err)
{
    const struct api_model *model = &api->model;
    struct chat_request chat = {
        .messages = (json_t *)messages,
        .add_generation_prompt = add_generation_prompt,
        .now = time(NULL),
    };
    struct jinja_output text = {0};
    TRY(chat_render(model->chat, &chat, &text, err));
    enum status status = tokenizer_encode(model->tokenizer, text.bytes, text.len, text.trusted,
                                          text.n_trusted, add_bos, TOKENIZE_MAX_TOKENS, ids, err);
    jinja_output_done(&text);
    return status;
}

/* The same checks of the messages as a chat request has. */
static enum status check_messages(const struct api *api, json_t *body, struct error *err)
{
    if (!api->model.chat)
        return error_set(err, STATUS_NOT_IMPLEMENTED, "%s", api->model.no_chat_reason);
    struct request_limits limits = api_request_limits(api);
    struct generate_request check;
    enum status status =
        generate_request_read(&check, REQUEST_CHAT, json_incref(body), &limits, err);
    generate_request_done(&check);
    return status;
}

static enum status tokenize(const struct api *api, json_t *body, struct buf *out, struct error *err)
{
    const json_t *messages = json_field(body, "messages");
    const char *text = NULL;
    size_t len = 0;
    bool add_special_tokens = true, add_generation_prompt = true, with_text = false;
    TRY(json_read_bool(body, "add_special_tokens", &add_special_tokens, err));
    TRY(json_read_bool(body, "add_generation_prompt", &add_generation_prompt, err));
    TRY(json_read_bool(body, "return_token_strs", &with_text, err));
    TRY(json_read_string(body, "prompt", &text, &len, err));
    if (!text && !messages)
        return error_param(err, STATUS_MISSING, "prompt",
                           "prompt (a string) or messages is missing");
    if (messages)
        TRY(check_messages(api, body, err));
    bool add_bos = add_special_tokens && tokenizer_adds_bos(api->model.tokenizer);
    struct text_run all = {0, len};
    struct token_list ids = {0};
    enum status status =
        messages ? encode_messages(api, messages, add_bos, add_generation_prompt, &ids, err)
                 : tokenizer_encode(api->model.tokenizer, text, len, &all, 1, add_bos,
                                    TOKENIZE_MAX_TOKENS, &ids, err);
    if (status == STATUS_OK)
        status = write_tokens(api, &ids, with_text, out, err);
    token_list_done(&ids);
    return status;
}

void handle_tokenize(struct api *api, struct exchange *ex)
{
    start(api, ex, tokenize);
}

/* --- detokenize
 * --------------------------------------------------------------------------------------------------------------
 */

static enum status add_pieces(const struct api *api, const json_t *tokens, struct buf *text,
                              struct error *err)
{
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
    return STATUS_OK;
}

static enum status detokenize(const struct api *api, json_t *body, struct buf *out,
                              struct error *err)
{
    const json_t *tokens = json_field(body, "tokens");
    if (!json_is_array(tokens))
        return error_param(err, STATUS_INVALID, "tokens", "tokens must be an array of token ids");
    struct buf text;
    buf_init(&text, MAX_RESPONSE_BYTES);
    enum status status = add_pieces(api, tokens, &text, err);
    buf_add_str(out, "{\"prompt\":");
    buf_add_json(out, text.data ? text.data : "", text.len);
    buf_add_str(out, "}");
    if (status == STATUS_OK && (text.overflow || out->overflow))
        status = error_param(err, STATUS_TOO_LARGE, "tokens",
                             "the text is larger than a response may be");
    buf_done(&text);
    return status;
}

void handle_detokenize(struct api *api, struct exchange *ex)
{
    start(api, ex, detokenize);
}
