#include "config.h"

#include "support/engine_harness.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/base/clock.h"
#include "tellerd/base/mem.h"

/* A test that hangs must end with a word; nothing depends on how long things take. */
static const uint64_t patience_ns = 60000000000u;

void harness_init(struct harness *h)
{
    memset(h, 0, sizeof(*h));
    forward_script_defaults(&h->script);
    h->config = (struct engine_config){
        .max_batch_tokens = 256,
        .max_sequences = 16,
        .max_queued = 1000,
        .n_context = 1024,
        .prefix_cache = true,
    };
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->changed, NULL);
}

static void on_step(void *ctx, uint64_t step, const struct step_batch *batch)
{
    struct harness *h = ctx;

    (void)step;
    pthread_mutex_lock(&h->lock);
    while (h->gate_closed && !h->gate_pass) {
        h->gate_reached = true;
        pthread_cond_broadcast(&h->changed);
        pthread_cond_wait(&h->changed, &h->lock);
    }
    h->gate_pass = false;
    for (uint32_t i = 0; i < batch->n_rows; i++)
        h->n_rows_of_token[batch->token_ids[i] % 4096]++;
    h->n_rows += batch->n_rows;
    h->n_steps++;
    pthread_mutex_unlock(&h->lock);
}

void harness_open(struct harness *h)
{
    struct error err = {0};

    if (h->make_forward)
        h->forward = h->make_forward(&h->script);
    else if (!h->forward)
        h->forward = forward_script_new(&h->script);
    if (!h->make_forward)
        forward_script_on_step(h->forward, on_step, h);
    h->events = queue_new(0, NULL, NULL);
    h->metrics = h->has_metrics ? metrics_new() : NULL;
    ck_assert_msg(engine_new(&h->config, h->forward, h->events, h->metrics, "test", &h->engine,
                             &err) == STATUS_OK,
                  "%s", err.text);
    engine_start(h->engine);
}

static void free_event(struct queue_node *node)
{
    free(node);
}

void harness_close(struct harness *h)
{
    const char *violation = "";
    uint32_t n_violations = 0;
    struct engine_stats stats = harness_stats(h);

    if (h->n_open == 0) {
        ck_assert_uint_eq(stats.n_running + stats.n_waiting + stats.n_preempted, 0);
        ck_assert_uint_eq(stats.n_sequences + stats.n_blocks_used, 0);
    }
    engine_free(h->engine);
    harness_poll(h);
    ck_assert_uint_eq(h->n_open, 0);
    if (!h->make_forward)
        n_violations = forward_script_violations(h->forward, &violation);
    ck_assert_msg(n_violations == 0, "%u violations; first: %s", n_violations, violation);
    h->forward->ops->free(h->forward);
    queue_free(h->events, free_event);
    metrics_free(h->metrics);
    for (uint32_t i = 0; i < h->n_requests; i++)
        free(h->outcomes[i]);
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->changed);
}

uint32_t harness_token(uint32_t seed, uint32_t position)
{
    uint32_t x = (seed * 2654435761u) ^ (position * 40503u + 17);

    x ^= x >> 13;
    x *= 0x5bd1e995;
    x ^= x >> 15;
    return 1 + x % 255;
}

struct gen_request *harness_request_of(const uint32_t *prompt, uint32_t n_prompt,
                                       uint32_t max_tokens)
{
    struct gen_request *request = gen_request_new();

    request->prompt = xmemdup(prompt, n_prompt * sizeof(*prompt));
    request->n_prompt = n_prompt;
    request->max_tokens = max_tokens;
    request->sampling.temperature = 0;
    request->arrival_ns = clock_ns();
    return request;
}

struct gen_request *harness_request(uint32_t seed, uint32_t n_prompt, uint32_t max_tokens)
{
    uint32_t *prompt = xmalloc(n_prompt * sizeof(*prompt));
    struct gen_request *request;

    for (uint32_t i = 0; i < n_prompt; i++)
        prompt[i] = harness_token(seed, i);
    request = harness_request_of(prompt, n_prompt, max_tokens);
    free(prompt);
    return request;
}

struct gen_request *harness_copy(const struct gen_request *request)
{
    struct gen_request *copy = xmemdup(request, sizeof(*request));
    const struct sampling *s = &request->sampling;

    copy->prompt = xmemdup(request->prompt, request->n_prompt * sizeof(*copy->prompt));
    if (s->bias)
        copy->sampling.bias = xmemdup(s->bias, s->n_bias * sizeof(*s->bias));
    if (s->stop_ids)
        copy->sampling.stop_ids = xmemdup(s->stop_ids, s->n_stop_ids * sizeof(*s->stop_ids));
    return copy;
}

static void name_request(struct harness *h, struct gen_request *request)
{
    ck_assert_uint_lt(h->n_requests, HARNESS_MAX_REQUESTS);
    ck_assert_uint_le(request->n_choices, HARNESS_MAX_CHOICES);
    request->id = h->n_requests + 1;
    request->user = h;
}

uint64_t harness_submit(struct harness *h, struct gen_request *request)
{
    struct error err = {0};
    struct outcome *outcome = xcalloc(1, sizeof(*outcome));

    name_request(h, request);
    outcome->n_choices = request->n_choices;
    h->outcomes[h->n_requests++] = outcome;
    h->n_open++;
    ck_assert_msg(engine_submit(h->engine, request, &err) == STATUS_OK, "%s", err.text);
    return h->n_requests;
}

void harness_refuse(struct harness *h, struct gen_request *request, enum status status,
                    struct error *err)
{
    name_request(h, request);
    ck_assert_int_eq(engine_submit(h->engine, request, err), status);
    gen_request_free(request);
}

static void handle(struct harness *h, const struct engine_event *event)
{
    struct outcome *o = harness_outcome(h, event->request_id);
    uint32_t c = event->choice;

    ck_assert_ptr_eq(event->user, h);
    ck_assert_msg(!o->is_done, "event %d after the last", event->kind);
    ck_assert_uint_lt(c, o->n_choices);
    switch (event->kind) {
    case EVENT_STARTED:
        ck_assert(!o->is_started);
        o->is_started = true;
        o->n_cached = event->n_cached;
        break;
    case EVENT_PROMPT_LOGPROBS:
        ck_assert(o->is_started && o->n_tokens[0] == 0);
        o->prompt_ids[o->n_prompt_logprobs] = event->token.id;
        o->prompt_logprobs[o->n_prompt_logprobs++] = event->token.logprob;
        break;
    case EVENT_TOKEN:
        ck_assert(o->is_started && o->reasons[c] == FINISH_NONE && !o->last_is_eog[c]);
        ck_assert_uint_lt(o->n_tokens[c], HARNESS_MAX_TOKENS);
        o->logprobs[c][o->n_tokens[c]] = event->token.logprob;
        o->tokens[c][o->n_tokens[c]++] = event->token.id;
        o->last_is_eog[c] = event->is_eog;
        break;
    case EVENT_CHOICE_DONE:
        ck_assert_int_eq(o->reasons[c], FINISH_NONE);
        ck_assert_int_ne(event->reason, FINISH_NONE);
        ck_assert((event->reason == FINISH_ERROR) == (event->error.status != STATUS_OK));
        o->reasons[c] = event->reason;
        break;
    case EVENT_DONE:
        for (uint32_t i = 0; i < o->n_choices; i++)
            ck_assert_int_ne(o->reasons[i], FINISH_NONE);
        o->is_done = true;
        o->done_number = h->n_done++;
        o->reason = event->reason;
        o->status = event->error.status;
        h->n_open--;
        break;
    }
}

static void handle_list(struct harness *h, struct queue_node *list)
{
    while (list) {
        struct queue_node *next = list->next;

        handle(h, (const struct engine_event *)list);
        free(list);
        list = next;
    }
}

void harness_poll(struct harness *h)
{
    handle_list(h, queue_drain(h->events));
}

static void wait_events(struct harness *h)
{
    struct queue_node *list = queue_wait(h->events, patience_ns);

    ck_assert_msg(list, "the engine says nothing");
    handle_list(h, list);
}

struct outcome *harness_outcome(struct harness *h, uint64_t id)
{
    ck_assert(id >= 1 && id <= h->n_requests);
    return h->outcomes[id - 1];
}

struct outcome *harness_wait(struct harness *h, uint64_t id)
{
    struct outcome *o = harness_outcome(h, id);

    while (!o->is_done)
        wait_events(h);
    return o;
}

struct outcome *harness_wait_tokens(struct harness *h, uint64_t id, uint32_t n_tokens)
{
    struct outcome *o = harness_outcome(h, id);

    while (o->n_tokens[0] < n_tokens) {
        ck_assert_msg(!o->is_done, "ended after %u tokens", o->n_tokens[0]);
        wait_events(h);
    }
    return o;
}

struct outcome *harness_wait_started(struct harness *h, uint64_t id)
{
    struct outcome *o = harness_outcome(h, id);

    while (!o->is_started)
        wait_events(h);
    return o;
}

void harness_wait_all(struct harness *h)
{
    while (h->n_open > 0)
        wait_events(h);
}

struct engine_stats harness_stats(struct harness *h)
{
    struct engine_stats stats;

    engine_stats(h->engine, &stats);
    return stats;
}

void harness_close_gate(struct harness *h)
{
    pthread_mutex_lock(&h->lock);
    h->gate_closed = true;
    h->gate_reached = false;
    pthread_mutex_unlock(&h->lock);
}

void harness_wait_held(struct harness *h)
{
    pthread_mutex_lock(&h->lock);
    while (!h->gate_reached)
        pthread_cond_wait(&h->changed, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

void harness_steps(struct harness *h, uint32_t n_steps)
{
    while (n_steps-- > 0) {
        pthread_mutex_lock(&h->lock);
        h->gate_pass = true;
        h->gate_reached = false;
        pthread_cond_broadcast(&h->changed);
        pthread_mutex_unlock(&h->lock);
        harness_wait_held(h);
    }
}

void harness_hold(struct harness *h)
{
    harness_close_gate(h);
    harness_wait_held(h);
}

void harness_let_go(struct harness *h)
{
    pthread_mutex_lock(&h->lock);
    h->gate_closed = false;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

uint64_t harness_rows_of(struct harness *h, uint32_t token)
{
    uint64_t n;

    pthread_mutex_lock(&h->lock);
    n = h->n_rows_of_token[token];
    pthread_mutex_unlock(&h->lock);
    return n;
}

struct outcome *harness_alone(const struct harness *like, struct gen_request *request)
{
    struct harness *h = xmalloc(sizeof(*h));
    struct outcome *outcome;
    uint64_t id;

    harness_init(h);
    h->script = like->script;
    h->make_forward = like->make_forward;
    h->script.n_blocks = 512;
    h->script.max_rows = h->script.max_logit_rows = 2048;
    h->config.max_batch_tokens = 2048;
    h->config.n_context = like->config.n_context;
    if (like->engine && engine_context(like->engine) < h->config.n_context)
        h->config.n_context = engine_context(like->engine);
    h->config.prefix_cache = false;
    harness_open(h);
    id = harness_submit(h, request);
    outcome = xmemdup(harness_wait(h, id), sizeof(*outcome));
    harness_close(h);
    free(h);
    return outcome;
}

void harness_same(const struct outcome *a, const struct outcome *b)
{
    ck_assert_uint_eq(a->n_choices, b->n_choices);
    for (uint32_t c = 0; c < a->n_choices; c++) {
        ck_assert_int_eq(a->reasons[c], b->reasons[c]);
        ck_assert_uint_eq(a->n_tokens[c], b->n_tokens[c]);
        ck_assert_mem_eq(a->tokens[c], b->tokens[c], a->n_tokens[c] * sizeof(uint32_t));
        ck_assert_mem_eq(a->logprobs[c], b->logprobs[c], a->n_tokens[c] * sizeof(float));
    }
    ck_assert_uint_eq(a->n_prompt_logprobs, b->n_prompt_logprobs);
    for (uint32_t i = 0; i < a->n_prompt_logprobs; i++) {
        ck_assert_uint_eq(a->prompt_ids[i], b->prompt_ids[i]);
        ck_assert_msg(a->prompt_logprobs[i] == b->prompt_logprobs[i] ||
                          (isnan(a->prompt_logprobs[i]) && isnan(b->prompt_logprobs[i])),
                      "prompt logprob %u: %f, %f", i, (double)a->prompt_logprobs[i],
                      (double)b->prompt_logprobs[i]);
    }
}
