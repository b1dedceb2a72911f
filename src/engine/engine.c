/*
 * The engine's public door and its thread.
 *
 * The loop thread checks a request against what it can know without asking (the context, the
 * queue's bound, two flags) and sends it as a command; n_queued is raised here and lowered by the
 * engine thread, so the bound holds without a lock.  The engine thread takes all commands between
 * two steps, does a step, and hands all events over at once.  With nothing to do it sleeps in the
 * command queue.
 */
#include "config.h"

#include "tellerd/engine/engine.h"

#include <stdlib.h>

#include "engine_priv.h"
#include "tellerd/base/clock.h"
#include "tellerd/base/log.h"
#include "tellerd/base/mem.h"

enum { RETRY_AFTER_MAX_S = 60 };

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static enum status check_config(const struct engine_config *config, const struct forward *forward,
                                struct error *err)
{
    if (forward->n_blocks < 2)
        return error_param(err, STATUS_BAD_CONFIG, "kv_cache_bytes",
                           "the KV cache holds %u blocks of %u tokens; at least 2 are needed",
                           forward->n_blocks, forward->block_size);
    if (config->max_batch_tokens < 1)
        return error_param(err, STATUS_BAD_CONFIG, "max_batch_tokens", "must be at least 1");
    if (config->max_sequences < 1)
        return error_param(err, STATUS_BAD_CONFIG, "max_sequences", "must be at least 1");
    if (config->max_queued < 1)
        return error_param(err, STATUS_BAD_CONFIG, "max_queued", "must be at least 1");
    if (config->n_context < 2)
        return error_param(err, STATUS_BAD_CONFIG, "context", "must be at least 2 tokens");
    if (forward->has_bank && forward->bank_rows < forward->vocab.n_tokens)
        return error_set(err, STATUS_BAD_CONFIG,
                         "the bank has %u rows, fewer than the %u tokens of the vocabulary",
                         forward->bank_rows, forward->vocab.n_tokens);
    return STATUS_OK;
}

/* Lowers the limits to what forward can do. */
static void clamp_config(struct engine_config *config, const struct forward *forward)
{
    uint64_t pool_tokens = (uint64_t)(forward->n_blocks - 1) * forward->block_size;

    config->max_batch_tokens = min_u32(config->max_batch_tokens, forward->max_rows);
    config->max_sequences = min_u32(config->max_sequences, config->max_batch_tokens);
    config->max_sequences = min_u32(config->max_sequences, forward->max_logit_rows);
    if (config->prefill_chunk == 0 || config->prefill_chunk > config->max_batch_tokens)
        config->prefill_chunk = config->max_batch_tokens;
    config->n_context = min_u32(config->n_context, forward->n_context);
    if (config->n_context > pool_tokens) {
        log_notice("engine.context_lowered from=%u to=%llu reason=\"KV cache size\"",
                   config->n_context, (unsigned long long)pool_tokens);
        config->n_context = (uint32_t)pool_tokens;
    }
}

static void on_progress(void *ctx)
{
    struct engine *engine = ctx;

    atomic_store(&engine->heartbeat_ns, clock_ns());
}

enum status engine_new(const struct engine_config *config, struct forward *forward,
                       struct queue *events, struct metrics *metrics, const char *model_name,
                       struct engine **ret, struct error *err)
{
    enum status status = check_config(config, forward, err);
    struct engine *engine;
    struct scheduler_limits limits;

    if (status)
        return status;
    engine = xcalloc(1, sizeof(*engine));
    engine->config = *config;
    clamp_config(&engine->config, forward);
    engine->forward = forward;
    engine->events = events;
    engine->max_queued = config->max_queued;
    engine->max_queued_tokens = config->max_queued_tokens;
    engine->next_deadline_ns = UINT64_MAX;
    engine->budget.target_ns = config->step_target_ns;
    engine->now_ns = clock_ns();
    atomic_store(&engine->idle, true);
    atomic_store(&engine->heartbeat_ns, engine->now_ns);
    forward->on_progress = on_progress;
    forward->progress_ctx = engine;
    limits = (struct scheduler_limits){
        .max_rows = engine->config.max_batch_tokens,
        .max_logit_rows = forward->max_logit_rows,
        .max_sequences = engine->config.max_sequences,
        .prefill_chunk = engine->config.prefill_chunk,
    };
    engine->commands = queue_new(0, NULL, NULL);
    engine->pool = kv_pool_new(forward->n_blocks, forward->block_size);
    if (config->prefix_cache)
        engine->prefix = prefix_cache_new(engine->pool, config->fingerprint);
    if (engine->prefix && config->prefix_hash)
        prefix_cache_set_hash(engine->prefix, config->prefix_hash);
    engine->scheduler = scheduler_new(&limits, forward->n_blocks);
    engine->sampler = sampler_new(&forward->vocab);
    engine->running = xcalloc(engine->config.max_sequences, sizeof(*engine->running));
    step_space_init(engine);
    engine_metrics_init(engine, metrics, model_name);
    *ret = engine;
    return STATUS_OK;
}

/* Numbers that other threads may ask for. */
static void publish(struct engine *engine)
{
    struct kv_pool_counts counts;

    kv_pool_counts(engine->pool, &counts);
    atomic_store(&engine->n_running, engine->n_live_running);
    atomic_store(&engine->n_preempted, engine->n_live_started - engine->n_live_running);
    atomic_store(&engine->n_sequences, engine->n_in_batch);
    atomic_store(&engine->n_blocks_used, counts.n_used);
    atomic_store(&engine->n_blocks_cached, counts.n_cached);
    engine_metrics_update(engine);
}

/* In this order: whoever gets an event finds the numbers that belong to it. */
static void publish_and_flush(struct engine *engine)
{
    publish(engine);
    engine_flush_events(engine);
}

static struct queue_node *next_commands(struct engine *engine)
{
    struct queue_node *list;

    if (engine->n_live > 0)
        return queue_drain(engine->commands);
    atomic_store(&engine->idle, true);
    list = queue_wait(engine->commands, UINT64_MAX);
    atomic_store(&engine->heartbeat_ns, clock_ns());
    atomic_store(&engine->idle, false);
    return list;
}

static void *engine_main(void *arg)
{
    struct engine *engine = arg;

    pthread_setname_np(pthread_self(), "engine");
    while (!atomic_load(&engine->stop)) {
        engine_handle_commands(engine, next_commands(engine));
        if (engine->first_event) /* a cancel is answered now, not after the next step */
            publish_and_flush(engine);
        if (engine->n_live > 0) {
            engine_step(engine);
            publish_and_flush(engine);
        }
    }
    return NULL;
}

void engine_start(struct engine *engine)
{
    REQUIRE(!engine->is_started);
    engine->is_started = true;
    if (pthread_create(&engine->thread, NULL, engine_main, engine))
        require_failed(__FILE__, __LINE__, "pthread_create");
}

void engine_free(struct engine *engine)
{
    struct error error;

    if (!engine)
        return;
    atomic_store(&engine->stop, true);
    queue_close(engine->commands);
    if (engine->is_started)
        pthread_join(engine->thread, NULL);
    engine_handle_commands(engine, queue_drain(engine->commands));
    error_set(&error, STATUS_SHUTTING_DOWN, "the server is shutting down");
    engine_end_all(engine, false, &error);
    engine_bury(engine);
    publish_and_flush(engine);
    engine->forward->on_progress = NULL;
    queue_free(engine->commands, engine_command_free);
    step_space_done(engine);
    free(engine->running);
    free(engine->waiting);
    sampler_free(engine->sampler);
    scheduler_free(engine->scheduler);
    prefix_cache_free(engine->prefix);
    kv_pool_free(engine->pool);
    free(engine);
}

static enum status reject(struct engine *engine, enum rejection rejection, enum status status)
{
    metric_inc(engine->metrics.rejected[rejection]);
    return status;
}

/* About when a place in the queue is free again, from how fast requests end now. */
static unsigned retry_after(const struct engine *engine)
{
    uint64_t wait_ns = atomic_load(&engine->end_interval_ns) * atomic_load(&engine->n_queued);
    uint64_t seconds = wait_ns / 1000000000 + 1;

    return seconds < RETRY_AFTER_MAX_S ? (unsigned)seconds : RETRY_AFTER_MAX_S;
}

static enum status check_queue(struct engine *engine, const struct gen_request *request,
                               struct error *err)
{
    uint32_t n_queued = atomic_load(&engine->n_queued);
    uint64_t n_tokens = atomic_load(&engine->n_queued_tokens);

    if (n_queued < engine->max_queued &&
        (n_queued == 0 || engine->max_queued_tokens == 0 ||
         n_tokens + request->n_prompt <= engine->max_queued_tokens))
        return STATUS_OK;
    error_set(err, STATUS_QUEUE_FULL,
              "%u requests (%llu tokens) are waiting; the limit is %u requests", n_queued,
              (unsigned long long)n_tokens, engine->max_queued);
    if (err)
        err->retry_after_s = retry_after(engine);
    return reject(engine, REJECTED_QUEUE, STATUS_QUEUE_FULL);
}

static enum status check_prompt(struct engine *engine, const struct gen_request *request,
                                struct error *err)
{
    const struct forward *forward = engine->forward;
    uint32_t n_ids = forward->vocab.n_logits;

    if (request->n_prompt >= engine->config.n_context) {
        error_set(err, STATUS_CONTEXT_LENGTH,
                  "the prompt has %u tokens; the context holds %u tokens, of which at least one "
                  "is for the answer",
                  request->n_prompt, engine->config.n_context);
        if (err) {
            err->n_prompt_tokens = request->n_prompt;
            err->n_ctx = engine->config.n_context;
        }
        return reject(engine, REJECTED_CONTEXT, STATUS_CONTEXT_LENGTH);
    }
    if (forward->has_bank)
        n_ids = min_u32(n_ids, forward->bank_rows);
    for (uint32_t i = 0; i < request->n_prompt; i++) {
        if (request->prompt[i] >= n_ids) {
            error_param(err, STATUS_INVALID, "prompt",
                        "token id %u at position %u is not in the vocabulary", request->prompt[i],
                        i);
            return reject(engine, REJECTED_INVALID, STATUS_INVALID);
        }
    }
    return STATUS_OK;
}

static void send_command(struct engine *engine, struct engine_command command)
{
    struct engine_command *message = xmemdup(&command, sizeof(command));

    message->time_ns = clock_ns();
    if (!queue_push(engine->commands, &message->node))
        engine_command_free(&message->node);
}

enum status engine_submit(struct engine *engine, struct gen_request *request, struct error *err)
{
    struct live_request *live;
    enum status status;

    REQUIRE(request->id != 0 && request->n_prompt >= 1 && request->n_choices >= 1 &&
            request->n_choices <= REQUEST_MAX_CHOICES);
    if (atomic_load(&engine->failed))
        return reject(engine, REJECTED_FAILED,
                      error_set(err, STATUS_ENGINE_FAILED, "the engine has failed"));
    if (engine->is_draining)
        return reject(engine, REJECTED_SHUTDOWN,
                      error_set(err, STATUS_SHUTTING_DOWN, "the server is shutting down"));
    status = check_prompt(engine, request, err);
    if (!status)
        status = check_queue(engine, request, err);
    if (status)
        return status;
    live = xcalloc(1, sizeof(*live));
    live->gen = request;
    live->submitted_ns = clock_ns();
    atomic_fetch_add(&engine->n_queued, 1);
    atomic_fetch_add(&engine->n_queued_tokens, request->n_prompt);
    metric_inc(engine->metrics.waiting);
    metric_inc(engine->metrics.accepted);
    /* from now on it is the engine's turn to move */
    if (atomic_load(&engine->idle))
        atomic_store(&engine->heartbeat_ns, live->submitted_ns);
    send_command(engine, (struct engine_command){.kind = COMMAND_SUBMIT, .live = live});
    return STATUS_OK;
}

void engine_cancel(struct engine *engine, uint64_t request_id)
{
    send_command(engine, (struct engine_command){.kind = COMMAND_CANCEL, .id = request_id});
}

void engine_stop_choice(struct engine *engine, uint64_t request_id, uint32_t choice)
{
    send_command(engine, (struct engine_command){
                             .kind = COMMAND_STOP_CHOICE, .id = request_id, .choice = choice});
}

void engine_drain(struct engine *engine, bool fail_waiting)
{
    engine->is_draining = true;
    send_command(engine,
                 (struct engine_command){.kind = COMMAND_DRAIN, .fail_waiting = fail_waiting});
}

void engine_set_limits(struct engine *engine, uint32_t max_queued, uint64_t max_queued_tokens)
{
    engine->max_queued = max_queued;
    engine->max_queued_tokens = max_queued_tokens;
}

uint32_t engine_context(const struct engine *engine)
{
    return engine->config.n_context;
}

void engine_stats(const struct engine *engine, struct engine_stats *ret)
{
    *ret = (struct engine_stats){
        .n_running = atomic_load(&engine->n_running),
        .n_waiting = atomic_load(&engine->n_queued),
        .n_preempted = atomic_load(&engine->n_preempted),
        .n_sequences = atomic_load(&engine->n_sequences),
        .n_blocks = engine->forward->n_blocks,
        .n_blocks_used = atomic_load(&engine->n_blocks_used),
        .n_blocks_cached = atomic_load(&engine->n_blocks_cached),
        .n_steps = atomic_load(&engine->n_steps),
        .n_preemptions = atomic_load(&engine->n_preemptions),
        .n_prompt_tokens = atomic_load(&engine->n_prompt_tokens),
        .n_generated_tokens = atomic_load(&engine->n_generated_tokens),
        .n_cached_tokens = atomic_load(&engine->n_cached_tokens),
        .heartbeat_ns = atomic_load(&engine->heartbeat_ns),
        .idle = atomic_load(&engine->idle) && atomic_load(&engine->n_queued) == 0,
        .failed = atomic_load(&engine->failed),
    };
}
