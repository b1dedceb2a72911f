#include "config.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "api_priv.h"
#include "tellerd/api/json_read.h"
#include "tellerd/base/clock.h"
#include "tellerd/base/log.h"
#include "tellerd/base/mem.h"
#include "tellerd/base/rng.h"

/*
 * A generation's life: PREPARING (render, tokenize; perhaps in the pool) -> RUNNING (engine
 * requests live) -> OVER.  It is freed when the response has ended or the client left, the pool has
 * handed it back, and every engine request has sent its EVENT_DONE.
 */

static void generation_free(struct generation *generation)
{
    struct api *api = generation->api;
    if (generation->previous)
        generation->previous->next = generation->next;
    else
        api->generations = generation->next;
    if (generation->next)
        generation->next->previous = generation->previous;
    api->n_generations--;
    for (uint32_t i = 0; i < generation->n_choices; i++) {
        struct choice *choice = &generation->choices[i];
        text_stream_done(&choice->text);
        buf_done(&choice->content);
        buf_done(&choice->token_ids);
        free(choice->pending);
    }
    for (uint32_t i = 0; i < generation->n_prompts; i++) {
        token_list_done(&generation->prompts[i].ids);
        free(generation->prompts[i].kept_ids);
        free(generation->prompts[i].logprobs);
    }
    buf_done(&generation->chunk_head);
    free(generation->body);
    free(generation->choices);
    free(generation->prompts);
    generate_request_done(&generation->request);
    free(generation);
}

static void free_when_over(struct generation *generation)
{
    if (!generation->exchange && generation->n_live == 0 &&
        generation->state != GENERATION_PREPARING)
        generation_free(generation);
}

static void cancel_live(struct generation *generation)
{
    if (generation->state == GENERATION_PREPARING)
        return; /* nothing was submitted, and the prompts may be the pool's */
    for (uint32_t i = 0; i < generation->n_prompts; i++)
        if (generation->prompts[i].request_id)
            engine_cancel(generation->api->model.engine, generation->prompts[i].request_id);
}

/* One line for each generation whose request was understood: numbers and names only, never text. */
static void log_end(const struct generation *generation, const char *outcome)
{
    if (generation->state == GENERATION_PREPARING || generation->n_prompts == 0)
        return;
    uint64_t now = clock_ns();
    uint32_t n_prompt = 0, n_cached = 0, n_completion = 0;
    for (uint32_t i = 0; i < generation->n_prompts; i++) {
        n_prompt += generation->prompts[i].n_tokens;
        n_cached += generation->prompts[i].n_cached;
    }
    for (uint32_t i = 0; i < generation->n_choices; i++)
        n_completion += generation->choices[i].n_tokens;
    log_info("request.done request_id=%s tenant=%s outcome=%s stream=%d prompt_tokens=%u "
             "cached_tokens=%u completion_tokens=%u "
             "ttft_ms=%.1f total_ms=%.1f",
             generation->exchange ? exchange_id(generation->exchange) : "-",
             generation->api->tenants[generation->tenant], outcome, generation->request.stream,
             n_prompt, n_cached, n_completion,
             generation->first_token_ns
                 ? (double)(generation->first_token_ns - generation->arrival_ns) / 1e6
                 : 0.0,
             (double)(now - generation->arrival_ns) / 1e6);
}

/* The response is over, one way or another; ends by freeing when nothing else is owed. */
static void forget_exchange(struct generation *generation)
{
    exchange_set_user(generation->exchange, NULL);
    generation->exchange = NULL;
    if (generation->state == GENERATION_RUNNING)
        generation->state = GENERATION_OVER;
}

static void respond_failure(struct generation *generation, const struct error *err)
{
    struct exchange *ex = generation->exchange;
    if (!ex)
        return;
    log_end(generation, status_code(err->status));
    forget_exchange(generation);
    if (!exchange_streaming(ex)) {
        exchange_respond_error(ex, err);
        return;
    }
    struct buf
        body; /* on a started stream: one error event, then the stream is cut without its end */
    buf_init(&body, 16384);
    buf_add_str(&body, "data: ");
    http_error_body(&body, err);
    buf_add_str(&body, "\n\n");
    exchange_stream_write(ex, body.data, body.len);
    buf_done(&body);
    exchange_stream_abort(ex);
}

static void client_left(struct exchange_owner *owner)
{
    struct generation *generation =
        (struct generation *)((char *)owner - offsetof(struct generation, owner));
    log_end(generation, "client_left");
    generation->exchange = NULL;
    if (generation->state == GENERATION_RUNNING)
        generation->state = GENERATION_OVER;
    cancel_live(generation);
    free_when_over(generation);
}

void generation_abort(struct generation *generation, const struct error *err)
{
    respond_failure(generation, err);
    cancel_live(generation);
    free_when_over(generation);
}

/* --- start
 * ---------------------------------------------------------------------------------------------------------------
 */

static void create_prompts(struct generation *generation)
{
    const struct generate_request *request = &generation->request;
    generation->n_prompts = request->kind == REQUEST_CHAT ? 1 : request->n_prompts;
    generation->prompts = xcalloc(generation->n_prompts, sizeof *generation->prompts);
    for (uint32_t i = 0; i < generation->n_prompts; i++) {
        generation->prompts[i].generation = generation;
        generation->prompts[i].index = i;
    }
    generation->n_choices = generation->n_prompts * request->n;
    generation->choices = xcalloc(generation->n_choices, sizeof *generation->choices);
    for (uint32_t i = 0; i < generation->n_choices; i++) {
        struct choice *choice = &generation->choices[i];
        choice->index = i;
        text_stream_init(&choice->text, &request->stops);
        size_t max = request->stream ? MAX_CHUNK_BYTES : MAX_RESPONSE_BYTES;
        buf_init(&choice->content, max);
        buf_init(&choice->token_ids, max);
    }
}

static struct gen_request *engine_request(struct generation *generation,
                                          struct prompt_state *prompt)
{
    const struct generate_request *request = &generation->request;
    struct api *api = generation->api;
    struct gen_request *out = gen_request_new();
    out->id = api->next_request_id++;
    prompt->n_tokens = (uint32_t)prompt->ids.len;
    if (request->echo || request->return_token_ids || request->n_prompt_logprobs >= 0)
        prompt->kept_ids = xmemdup(prompt->ids.ids, prompt->ids.len * sizeof *prompt->ids.ids);
    out->prompt = prompt->ids.ids;
    out->n_prompt = prompt->n_tokens;
    memset(&prompt->ids, 0, sizeof prompt->ids);
    out->max_tokens =
        request->max_tokens < 0 || request->max_tokens > (int64_t)generation->limits.n_context
            ? generation->limits.n_context
            : (uint32_t)request->max_tokens;
    out->n_choices = request->n;
    out->sampling = request->sampling;
    if (request->sampling.n_bias)
        out->sampling.bias = xmemdup(request->sampling.bias,
                                     request->sampling.n_bias * sizeof *request->sampling.bias);
    else
        out->sampling.bias = NULL;
    if (request->sampling.n_stop_ids)
        out->sampling.stop_ids =
            xmemdup(request->sampling.stop_ids,
                    request->sampling.n_stop_ids * sizeof *request->sampling.stop_ids);
    else
        out->sampling.stop_ids = NULL;
    out->n_prompt_logprobs = request->n_prompt_logprobs;
    out->priority = request->priority;
    out->tenant = generation->tenant;
    out->cache_salt = request->cache_salt;
    out->arrival_ns = generation->arrival_ns;
    if (api->config.queue_timeout_ns)
        out->queue_deadline_ns = clock_ns() + api->config.queue_timeout_ns;
    out->user = prompt;
    return out;
}

static void submit_all(struct generation *generation)
{
    generation->state = GENERATION_RUNNING;
    for (uint32_t i = 0; i < generation->n_prompts; i++) {
        struct prompt_state *prompt = &generation->prompts[i];
        struct gen_request *request = engine_request(generation, prompt);
        struct error err = {0};
        uint64_t id = request->id;
        if (engine_submit(generation->api->model.engine, request, &err) != STATUS_OK) {
            gen_request_free(request);
            generation_abort(generation, &err); /* also ends those already submitted */
            return;
        }
        prompt->request_id = id;
        generation->n_live++;
    }
}

static void name_ignored_fields(struct generation *generation)
{
    const struct http_request *http = exchange_request(generation->exchange);
    if (generation->request.ignored[0] && http_request_header(http, "x-list-ignored-fields"))
        exchange_add_header(generation->exchange, "x-ignored-fields", generation->request.ignored);
}

static void on_prepared(struct generation *generation)
{
    generation->state = GENERATION_RUNNING;
    if (generation->exchange && generation->n_prompts > 0)
        name_ignored_fields(generation);
    if (!generation->exchange) {
        generation->state = GENERATION_OVER;
        free_when_over(generation);
    } else if (generation->error.status != STATUS_OK) {
        generation_abort(generation, &generation->error);
    } else if (generation->api->is_draining) {
        struct error err = {0};
        error_set(&err, STATUS_SHUTTING_DOWN, "the server is shutting down; ask another one");
        generation_abort(generation, &err);
    } else {
        submit_all(generation);
    }
}

static enum status read_and_prepare(struct generation *generation, struct error *err)
{
    json_t *body = NULL;
    TRY(json_read_body(generation->body, generation->body_len, &body, err));
    TRY(generate_request_read(&generation->request, generation->kind, body, &generation->limits,
                              err));
    create_prompts(generation);
    return prompt_prepare(generation, err);
}

/* From the body's bytes to token ids.  A large body takes long to parse and its tree long to free,
 * so both happen here. */
static void job_work(struct api_job *job)
{
    struct generation *generation = (struct generation *)job;
    struct error err = {0};
    enum status status = read_and_prepare(generation, &err);
    generation->error = err;
    generation->error.status = status;
    generate_request_forget_body(&generation->request);
    free(generation->body);
    generation->body = NULL;
}

static void job_done(struct api_job *job)
{
    on_prepared((struct generation *)job);
}

static struct generation *generation_new(struct api *api, struct exchange *ex,
                                         enum request_kind kind)
{
    struct generation *generation = xcalloc(1, sizeof *generation);
    generation->api = api;
    generation->exchange = ex;
    generation->kind = kind;
    generation->state = GENERATION_PREPARING;
    generation->owner.client_left = client_left;
    generation->job.work = job_work;
    generation->job.done = job_done;
    generation->arrival_ns = exchange_arrival_ns(ex);
    generation->last_write_ns = clock_ns();
    generation->created = (uint64_t)clock_wall();
    generation->limits = api_request_limits(api);
    buf_init(&generation->chunk_head, MAX_CHUNK_HEAD_BYTES);
    uint64_t random[2];
    rng_system_bytes(random, sizeof random);
    snprintf(generation->id, sizeof generation->id, "%s-%016llx%016llx",
             kind == REQUEST_CHAT ? "chatcmpl" : "cmpl", (unsigned long long)random[0],
             (unsigned long long)random[1]);
    generation->next = api->generations;
    if (generation->next)
        generation->next->previous = generation;
    api->generations = generation;
    api->n_generations++;
    return generation;
}

static void generate(struct api *api, struct exchange *ex, enum request_kind kind)
{
    if (!api_require_model(api, ex))
        return;
    struct error err = {0};
    uint32_t tenant;
    if (kind == REQUEST_CHAT && !api->model.chat) {
        api_respond_error(ex, STATUS_NOT_IMPLEMENTED, NULL, api->model.no_chat_reason);
        return;
    }
    /* once more: the key may have been withdrawn while the body was on its way */
    if (auth_check(api, exchange_request(ex), &tenant, &err) != STATUS_OK) {
        exchange_respond_error(ex, &err);
        return;
    }
    struct generation *generation = generation_new(api, ex, kind);
    generation->tenant = tenant;
    generation->body = exchange_take_body(ex, &generation->body_len);
    exchange_set_user(ex, &generation->owner);
    if (generation->body_len > INLINE_BODY_BYTES) {
        api->hooks.run_job(api->hooks.ctx, &generation->job);
        return;
    }
    job_work(&generation->job);
    on_prepared(generation);
}

void generate_chat(struct api *api, struct exchange *ex)
{
    generate(api, ex, REQUEST_CHAT);
}

void generate_completion(struct api *api, struct exchange *ex)
{
    generate(api, ex, REQUEST_COMPLETION);
}

/* --- events
 * ----------------------------------------------------------------------------------------------------------------
 */

static void finish_choice(struct generation *generation, struct choice *choice,
                          enum finish_reason reason)
{
    if (choice->finished)
        return;
    text_stream_flush(&choice->text, &choice->content);
    choice->finished = choice->touched = true;
    choice->finish = reason;
    generation->n_finished++;
}

static void on_token(struct generation *generation, struct prompt_state *prompt,
                     struct choice *choice, const struct engine_event *event)
{
    if (choice->finished)
        return; /* sampled before the engine heard of the stop string */
    struct api *api = generation->api;
    if (!generation->first_token_ns)
        generation->first_token_ns = event->time_ns;
    choice->n_tokens++;
    choice->touched = true;
    struct text_view piece = {"", 0};
    if (!event->is_eog)
        piece = tokenizer_piece(api->model.tokenizer, event->token.id, false);
    if (generation->request.kind == REQUEST_CHAT && !choice->first_piece_seen && piece.len > 0) {
        choice->first_piece_seen = true;
        if (piece.bytes[0] == ' ' && tokenizer_strips_leading_space(api->model.tokenizer)) {
            piece.bytes++;
            piece.len--;
        }
    }
    bool stopped = text_stream_push(&choice->text, piece.bytes, piece.len, &choice->content);
    if (generation->request.logprobs)
        logprobs_add(choice, &event->token, piece.bytes, piece.len);
    if (generation->request.return_token_ids) {
        if (choice->token_ids.len)
            buf_add_char(&choice->token_ids, ',');
        buf_add_u64(&choice->token_ids, event->token.id);
    }
    if (stopped) {
        finish_choice(generation, choice, FINISH_STOP);
        engine_stop_choice(api->model.engine, prompt->request_id, event->choice);
    }
}

static void on_choice_done(struct generation *generation, struct choice *choice,
                           const struct engine_event *event)
{
    if (choice->finished)
        return;
    if (event->reason == FINISH_ERROR || event->reason == FINISH_CANCELLED) {
        if (!generation->failed)
            generation->error = event->error;
        if (generation->error.status == STATUS_OK)
            error_set(&generation->error, STATUS_CANCELLED, "the request was cancelled");
        generation->failed = true;
    }
    finish_choice(generation, choice, event->reason);
}

void generation_event(struct generation *generation, struct prompt_state *prompt,
                      const struct engine_event *event)
{
    struct choice *choice =
        &generation->choices[prompt->index * generation->request.n + event->choice];
    switch (event->kind) {
    case EVENT_STARTED:
        prompt->n_cached = event->n_cached;
        break;
    case EVENT_PROMPT_LOGPROBS:
        if (generation->exchange)
            logprobs_add_prompt(prompt, &event->token);
        break;
    case EVENT_TOKEN:
        if (generation->exchange)
            on_token(generation, prompt, choice, event);
        break;
    case EVENT_CHOICE_DONE:
        on_choice_done(generation, choice, event);
        break;
    case EVENT_DONE:
        prompt->request_id = 0;
        generation->n_live--;
        break;
    }
}

/* --- sending
 * -----------------------------------------------------------------------------------------------------------------
 */

static void start_stream(struct generation *generation)
{
    struct exchange *ex = generation->exchange;
    exchange_add_header(ex, "Cache-Control", "no-cache");
    exchange_add_header(ex, "X-Accel-Buffering", "no");
    exchange_stream_start(ex, 200, "text/event-stream; charset=utf-8");
    generation->headers_sent = true;
}

static void end_well(struct generation *generation)
{
    struct exchange *ex = generation->exchange;
    log_end(generation, "ok");
    forget_exchange(generation);
    if (generation->request.stream) {
        exchange_stream_end(ex);
        return;
    }
    struct buf body;
    buf_init(&body, 2 * (size_t)MAX_RESPONSE_BYTES);
    response_whole(generation, &body);
    char ms[32];
    snprintf(ms, sizeof ms, "%llu",
             (unsigned long long)((clock_ns() - generation->arrival_ns) / 1000000));
    exchange_add_header(ex, "openai-processing-ms", ms);
    if (body.overflow)
        api_respond_error(ex, STATUS_INTERNAL, NULL,
                          "the response is larger than the server sends in one piece; use stream");
    else
        api_respond_json(ex, 200, &body);
    buf_done(&body);
}

/* Everything the choices gathered in this turn, as one write. */
static void send_chunks(struct generation *generation)
{
    struct buf *out = &generation->api->chunks;
    for (uint32_t i = 0; i < generation->n_choices; i++)
        if (generation->choices[i].touched)
            response_chunk(generation, &generation->choices[i], out);
    bool over = generation->n_finished == generation->n_choices;
    if (over && generation->request.include_usage)
        response_usage_chunk(generation, out);
    if (over)
        buf_add_str(out, "data: [DONE]\n\n");
    if (out->len > 0) {
        if (!generation->headers_sent)
            start_stream(generation);
        generation->last_write_ns = clock_ns();
        if (out->overflow || !exchange_stream_write(generation->exchange, out->data, out->len)) {
            struct exchange *ex = generation->exchange;
            log_end(generation, "slow_reader");
            forget_exchange(generation);
            exchange_stream_abort(ex);
            cancel_live(generation);
        }
    }
    buf_trim(out, KEPT_CHUNK_BYTES);
}

void generation_flush(struct generation *generation)
{
    if (generation->exchange && generation->failed) {
        respond_failure(generation, &generation->error);
        cancel_live(generation);
    } else if (generation->exchange) {
        if (generation->request.stream)
            send_chunks(generation);
        if (generation->exchange && generation->n_finished == generation->n_choices)
            end_well(generation);
    }
    free_when_over(generation);
}

void generation_tick(struct generation *generation, uint64_t now_ns)
{
    uint64_t keepalive = generation->api->config.keepalive_ns;
    if (!generation->exchange || generation->state != GENERATION_RUNNING ||
        !generation->request.stream || keepalive == 0 ||
        now_ns - generation->last_write_ns < keepalive)
        return;
    if (!generation->headers_sent)
        start_stream(generation);
    exchange_stream_write(generation->exchange, ": keep-alive\n\n", strlen(": keep-alive\n\n"));
    generation->last_write_ns = now_ns;
}
