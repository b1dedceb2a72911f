#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api_priv.h"
#include "tellerd/base/mem.h"

/*
 * From messages or text to token ids.  Runs on the loop for small requests and on a pool thread for
 * large ones; touches nothing but the generation and the immutable model parts.
 */

struct request_limits api_request_limits(const struct api *api)
{
    return (struct request_limits){
        .model_id = api->model.id,
        .n_context = engine_context(api->model.engine),
        .n_tokens = tokenizer_size(api->model.tokenizer),
        .bank_rows = api->model.bank_rows,
        .defaults = api->model.defaults,
    };
}

/* Ends hopeless tokenizing early. */
static size_t token_bound(const struct generation *generation)
{
    return (size_t)generation->limits.n_context + 1;
}

static enum status too_long(const struct generation *generation, size_t n_tokens, struct error *err)
{
    unsigned counted = (unsigned)n_tokens;
    error_param(err, STATUS_CONTEXT_LENGTH,
                generation->request.kind == REQUEST_CHAT ? "messages" : "prompt",
                "the prompt has at least %u tokens, but the context has room for %u including one "
                "for the answer",
                counted, generation->limits.n_context);
    err->n_prompt_tokens = counted;
    err->n_ctx = generation->limits.n_context;
    return STATUS_CONTEXT_LENGTH;
}

static enum status encode(struct generation *generation, const char *text, size_t len,
                          const struct text_run *runs, size_t n_runs, bool add_bos,
                          struct token_list *ids, struct error *err)
{
    enum status status = tokenizer_encode(generation->api->model.tokenizer, text, len, runs, n_runs,
                                          add_bos, token_bound(generation), ids, err);
    return status == STATUS_TOO_LARGE ? too_long(generation, err->n_prompt_tokens, err) : status;
}

static enum status prepare_chat(struct generation *generation, struct error *err)
{
    const struct generate_request *request = &generation->request;
    const struct api_model *model = &generation->api->model;
    struct chat_request chat = {
        .messages = (json_t *)request->messages,
        .kwargs = (json_t *)request->template_kwargs,
        .add_generation_prompt = request->add_generation_prompt,
        .continue_final_message = request->continue_final_message,
        .now = time(NULL),
    };
    struct jinja_output text = {0};
    TRY(chat_render(model->chat, &chat, &text, err));
    enum status status =
        encode(generation, text.bytes, text.len, text.trusted, text.n_trusted,
               tokenizer_adds_bos(model->tokenizer), &generation->prompts[0].ids, err);
    jinja_output_done(&text);
    return status;
}

/* Special-token text in a raw prompt is the caller's own wish: the whole text is trusted, as in
 * every OpenAI-style server. */
static enum status prepare_text(struct generation *generation, uint32_t i, struct error *err)
{
    const struct text_prompt *source = &generation->request.prompts[i];
    struct token_list *ids = &generation->prompts[i].ids;
    const struct tokenizer *tokenizer = generation->api->model.tokenizer;
    if (!source->text) {
        for (uint32_t t = 0; t < source->n_ids; t++)
            token_list_add(ids, source->ids[t]);
        return STATUS_OK;
    }
    struct text_run all = {0, source->len};
    TRY(encode(generation, source->text, source->len, &all, 1, tokenizer_adds_bos(tokenizer), ids,
               err));
    if (ids->len == 0) { /* an empty prompt starts from BOS, or from EOS as the models without BOS
                            were trained to */
        uint32_t start = tokenizer_bos(tokenizer) != TOKEN_NONE ? tokenizer_bos(tokenizer)
                                                                : tokenizer_eos(tokenizer);
        if (start == TOKEN_NONE)
            return error_param(err, STATUS_INVALID, "prompt",
                               "prompt is empty, and the model has no token to start from");
        token_list_add(ids, start);
    }
    return STATUS_OK;
}

enum status prompt_prepare(struct generation *generation, struct error *err)
{
    if (generation->request.kind == REQUEST_CHAT)
        TRY(prepare_chat(generation, err));
    else
        for (uint32_t i = 0; i < generation->n_prompts; i++)
            TRY(prepare_text(generation, i, err));
    for (uint32_t i = 0; i < generation->n_prompts; i++) {
        const struct token_list *ids = &generation->prompts[i].ids;
        if (ids->len == 0)
            return error_param(err, STATUS_INVALID, "messages", "the prompt is empty");
        /* here and not by the engine, so that no prompt of a request runs when another is refused
         */
        if (ids->len >= generation->limits.n_context)
            return too_long(generation, ids->len, err);
        for (size_t t = 0; generation->limits.bank_rows && t < ids->len; t++)
            if (ids->ids[t] >= generation->limits.bank_rows)
                return error_param(err, STATUS_INVALID, "prompt",
                                   "token id %u has no row in the model's value bank", ids->ids[t]);
    }
    return STATUS_OK;
}
