/*
 * What the engine counts.  All series exist from the start.  Times are monotonic and taken as vLLM
 * defines them: first token from arrival (the request's first byte), queue from submission to the
 * start, inter-token between two tokens of one choice (a preemption counts), request from arrival
 * to its last event.
 *
 * Two sets of names: tellerd_*, and with metrics_vllm the names that vLLM's dashboards, routers and
 * autoscalers ask for.  Where kind, meaning and buckets are the same, the second is an alias.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine_priv.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const double first_token_bounds[] = {.001, .005, .01, .02, .04, .06, .08, .1,
                                            .25,  .5,   .75, 1,   2.5, 5,   7.5, 10,
                                            20,   40,   80,  160, 640, 2560};
/* vLLM's begin at .01: a small model on a CPU is faster */
static const double inter_token_bounds[] = {.001, .0025, .005, .01, .025, .05, .075, .1,
                                            .15,  .2,    .3,   .4,  .5,   .75, 1,    2.5,
                                            5,    7.5,   10,   20,  40,   80};
enum { VLLM_INTER_TOKEN_FIRST = 3 };
static const double request_bounds[] = {.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                        30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
static const double step_bounds[] = {.0005, .001, .0025, .005, .01, .025, .05, .1,
                                     .25,   .5,   1,     2.5,  5,   10,   30};
static const double cancel_bounds[] = {.0001, .001, .005, .01, .025, .05, .1,
                                       .25,   .5,   1,    2.5, 5,    10};
static const double rows_bounds[] = {1,   8,    16,   32,   64,   128,  256,
                                     512, 1024, 2048, 4096, 8192, 16384};
static const double sequences_bounds[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
static const double choices_bounds[] = {1, 2, 5, 10, 20};

enum { MAX_SERIES_125 = 32 };

/* 1, 2, 5, 10, ... up to the context, as vLLM's build_1_2_5_buckets. */
static size_t length_bounds(uint32_t n_context, double *ret_bounds)
{
    static const uint32_t steps[] = {1, 2, 5};
    size_t n = 0;

    for (uint64_t scale = 1;; scale *= 10) {
        for (size_t i = 0; i < COUNT_OF(steps); i++) {
            if (steps[i] * scale > n_context || n == MAX_SERIES_125)
                return n;
            ret_bounds[n++] = (double)(steps[i] * scale);
        }
    }
}

/* Registers series of one label set; all NULL without a registry. */
struct registrar {
    struct metrics *metrics;
    const char *labels;
};

static const char *labels_with(char *labels, size_t size, const char *base, const char *key,
                               const char *value)
{
    snprintf(labels, size, "%s", base);
    return metrics_label(labels, size, key, value);
}

static struct metric *counter(const struct registrar *r, const char *name, const char *help)
{
    return metrics_counter(r->metrics, name, help, r->labels);
}

static struct metric *gauge(const struct registrar *r, const char *name, const char *help)
{
    return metrics_gauge(r->metrics, name, help, r->labels);
}

static struct metric *gauge_of(const struct registrar *r, const char *name, const char *help,
                               const char *key, const char *value)
{
    char labels[512];

    return metrics_gauge(r->metrics, name, help,
                         labels_with(labels, sizeof(labels), r->labels, key, value));
}

static struct metric *counter_of(const struct registrar *r, const char *name, const char *help,
                                 const char *key, const char *value)
{
    char labels[512];

    return metrics_counter(r->metrics, name, help,
                           labels_with(labels, sizeof(labels), r->labels, key, value));
}

static struct metric *histogram(const struct registrar *r, const char *name, const char *help,
                                const double *bounds, size_t n_bounds)
{
    return metrics_histogram(r->metrics, name, help, r->labels, bounds, n_bounds);
}

static void init_cache(struct engine *engine, const struct registrar *r)
{
    const struct forward *forward = engine->forward;
    struct engine_metrics *m = &engine->metrics;
    double n = forward->n_blocks, size = forward->block_size;
    uint64_t block_bytes =
        forward->block_bytes_keys + forward->block_bytes_values + forward->block_bytes_ids;
    const char *name = "tellerd_kv_blocks", *help = "Blocks of the KV cache.";

    m->blocks_used = gauge_of(r, name, help, "state", "used");
    m->blocks_cached = gauge_of(r, name, help, "state", "cached");
    m->blocks_free = gauge_of(r, name, help, "state", "free");
    metric_set(m->blocks_free, n);
    metric_set(gauge(r, "tellerd_kv_block_tokens", "Positions of one block."), size);
    m->kv_usage = gauge(r, "tellerd_kv_usage_ratio", "Blocks held by live requests, of all.");
    name = "tellerd_kv_bytes";
    help = "Bytes of the KV cache by kind; keys-only layers hold no values.";
    metric_set(gauge_of(r, name, help, "kind", "keys"), n * (double)forward->block_bytes_keys);
    metric_set(gauge_of(r, name, help, "kind", "values"), n * (double)forward->block_bytes_values);
    metric_set(gauge_of(r, name, help, "kind", "ids"), n * (double)forward->block_bytes_ids);
    metric_set(gauge(r, "tellerd_kv_bytes_per_token", "Bytes of one position, all layers."),
               (double)block_bytes / size);
    metric_set(gauge(r, "tellerd_kv_saved_bytes_per_token",
                     "Value bytes per position that bank layers do not cache, less the ids."),
               (double)forward->block_bytes_saved / size);
    metric_set(gauge(r, "tellerd_bank_bytes", "Bytes of the banks of values."),
               (double)forward->bank_bytes);
    metric_set(gauge(r, "tellerd_bank_break_even_tokens",
                     "Cached tokens at which the values saved outweigh the banks; 0 without."),
               forward->block_bytes_saved
                   ? (double)forward->bank_bytes / ((double)forward->block_bytes_saved / size)
                   : 0);
    metric_set(gauge(r, "tellerd_weight_bytes", "Bytes of the weights, banks left out."),
               (double)forward->weight_bytes);
    metric_set(gauge(r, "tellerd_context_tokens", "Most tokens of a sequence."),
               engine->config.n_context);
}

static void init_requests(struct engine *engine, const struct registrar *r)
{
    static const char *const rejections[REJECTION_COUNT] = {
        [REJECTED_CONTEXT] = "context_length",   [REJECTED_QUEUE] = "queue_full",
        [REJECTED_SHUTDOWN] = "shutting_down",   [REJECTED_FAILED] = "engine_failed",
        [REJECTED_INVALID] = "invalid_token_id",
    };
    static const enum status errors[] = {STATUS_QUEUE_TIMEOUT, STATUS_INTERNAL,
                                         STATUS_NO_MEMORY,     STATUS_BAD_LOGITS,
                                         STATUS_SHUTTING_DOWN, STATUS_ENGINE_FAILED};
    struct engine_metrics *m = &engine->metrics;

    m->running = gauge(r, "tellerd_requests_running", "Requests with a sequence in the batch.");
    m->waiting = gauge(r, "tellerd_requests_waiting", "Requests that have not started.");
    m->preempted =
        gauge(r, "tellerd_requests_preempted", "Requests that have started and wait for blocks.");
    m->sequences = gauge(r, "tellerd_sequences_running", "Sequences in the batch.");
    m->failed = gauge(r, "tellerd_engine_failed", "1 when the engine has failed for good.");
    m->accepted = counter(r, "tellerd_requests_accepted_total", "Requests taken into the queue.");
    m->started =
        counter(r, "tellerd_requests_started_total", "Requests that left the queue to run.");
    for (int i = FINISH_NONE + 1; i < FINISH_COUNT; i++)
        m->finished[i] = counter_of(r, "tellerd_requests_finished_total",
                                    "Accepted requests that ended, by how.", "finish_reason",
                                    finish_reason_name((enum finish_reason)i));
    for (size_t i = 0; i < COUNT_OF(errors); i++)
        m->errors[errors[i]] = counter_of(r, "tellerd_request_errors_total",
                                          "Accepted requests that ended in an error, by code.",
                                          "code", status_code(errors[i]));
    for (int i = 0; i < REJECTION_COUNT; i++)
        m->rejected[i] = counter_of(r, "tellerd_requests_rejected_total",
                                    "Requests the engine did not accept.", "reason", rejections[i]);
    m->prompt_tokens = counter(r, "tellerd_prompt_tokens_total",
                               "Prompt tokens of requests whose prompt was computed.");
    m->generated_tokens = counter(r, "tellerd_generation_tokens_total", "Tokens sampled.");
    m->prefill_tokens = counter(r, "tellerd_prefill_tokens_total",
                                "Rows computed to fill the cache, after preemptions again.");
    m->prefix_queries = counter(r, "tellerd_prefix_cache_query_tokens_total",
                                "Prompt tokens looked up in the prefix cache.");
    m->prefix_hits = counter(r, "tellerd_prefix_cache_hit_tokens_total",
                             "Prompt tokens that came from the prefix cache.");
    m->preemptions = counter(r, "tellerd_preemptions_total",
                             "Sequences that gave their blocks up and were computed again.");
    m->steps = counter(r, "tellerd_steps_total", "Forward passes.");
}

static void init_times(struct engine *engine, const struct registrar *r)
{
    struct engine_metrics *m = &engine->metrics;
    double lengths[MAX_SERIES_125];
    size_t n_lengths = length_bounds(engine->config.n_context, lengths);

    m->step_seconds = histogram(r, "tellerd_step_duration_seconds", "Time of one forward pass.",
                                step_bounds, COUNT_OF(step_bounds));
    m->row_seconds = gauge(r, "tellerd_step_row_seconds",
                           "Estimated time of one token of a forward pass; 0 before it is known.");
    m->row_budget = gauge(r, "tellerd_step_row_budget",
                          "Most tokens of a forward pass that decodes, to keep step-target; 0 = "
                          "max-batch-tokens.");
    m->step_rows = histogram(r, "tellerd_step_rows", "Tokens of one forward pass.", rows_bounds,
                             COUNT_OF(rows_bounds));
    m->step_sequences = histogram(r, "tellerd_step_sequences", "Sequences of one forward pass.",
                                  sequences_bounds, COUNT_OF(sequences_bounds));
    m->queue_seconds = histogram(r, "tellerd_queue_time_seconds", "From submission to the start.",
                                 request_bounds, COUNT_OF(request_bounds));
    m->first_token_seconds =
        histogram(r, "tellerd_time_to_first_token_seconds", "From arrival to the first token.",
                  first_token_bounds, COUNT_OF(first_token_bounds));
    m->inter_token_seconds =
        histogram(r, "tellerd_inter_token_latency_seconds", "Between two tokens of one choice.",
                  inter_token_bounds, COUNT_OF(inter_token_bounds));
    m->request_seconds = histogram(r, "tellerd_request_duration_seconds",
                                   "From arrival to the end, of requests that started.",
                                   request_bounds, COUNT_OF(request_bounds));
    m->prefill_seconds =
        histogram(r, "tellerd_prefill_time_seconds", "From the start to the first token.",
                  request_bounds, COUNT_OF(request_bounds));
    m->decode_seconds =
        histogram(r, "tellerd_decode_time_seconds", "From the first token to the end.",
                  request_bounds, COUNT_OF(request_bounds));
    m->cancel_seconds = histogram(r, "tellerd_cancel_latency_seconds",
                                  "From asking to cancel to the blocks being free.", cancel_bounds,
                                  COUNT_OF(cancel_bounds));
    m->prompt_length = histogram(r, "tellerd_request_prompt_tokens", "Prompt tokens of a request.",
                                 lengths, n_lengths);
    m->output_length = histogram(r, "tellerd_request_generation_tokens",
                                 "Tokens sampled for a request, all choices.", lengths, n_lengths);
}

static void init_vllm_requests(struct engine *engine, const struct registrar *r)
{
    static const char *const reasons[FINISH_COUNT] = {
        [FINISH_STOP] = "stop",
        [FINISH_LENGTH] = "length",
        [FINISH_CANCELLED] = "abort",
        [FINISH_ERROR] = "error",
    };
    struct engine_metrics *m = &engine->metrics;
    char labels[512], number[16];

    metrics_alias(r->metrics, m->running, "vllm:num_requests_running", r->labels);
    m->vllm_waiting =
        gauge(r, "vllm:num_requests_waiting", "Requests that wait, preempted ones included.");
    metrics_alias(r->metrics, m->kv_usage, "vllm:kv_cache_usage_perc", r->labels);
    metrics_alias(r->metrics, m->prefix_queries, "vllm:prefix_cache_queries_total", r->labels);
    metrics_alias(r->metrics, m->prefix_hits, "vllm:prefix_cache_hits_total", r->labels);
    metrics_alias(r->metrics, m->prompt_tokens, "vllm:prompt_tokens_total", r->labels);
    metrics_alias(r->metrics, m->generated_tokens, "vllm:generation_tokens_total", r->labels);
    metrics_alias(r->metrics, m->preemptions, "vllm:num_preemptions_total", r->labels);
    for (int i = FINISH_NONE + 1; i < FINISH_COUNT; i++)
        metrics_alias(
            r->metrics, m->finished[i], "vllm:request_success_total",
            labels_with(labels, sizeof(labels), r->labels, "finished_reason", reasons[i]));
    snprintf(number, sizeof(number), "%u", engine->forward->block_size);
    labels_with(labels, sizeof(labels), r->labels, "block_size", number);
    snprintf(number, sizeof(number), "%u", engine->forward->n_blocks);
    metrics_label(labels, sizeof(labels), "num_gpu_blocks", number);
    metrics_label(labels, sizeof(labels), "enable_prefix_caching",
                  engine->prefix ? "True" : "False");
    metric_set(
        metrics_gauge(r->metrics, "vllm:cache_config_info", "Shape of the KV cache.", labels), 1);
}

static void init_vllm_times(struct engine *engine, const struct registrar *r)
{
    struct engine_metrics *m = &engine->metrics;
    double lengths[MAX_SERIES_125];
    size_t n_lengths = length_bounds(engine->config.n_context, lengths);

    metrics_alias(r->metrics, m->first_token_seconds, "vllm:time_to_first_token_seconds",
                  r->labels);
    m->vllm_inter_token =
        histogram(r, "vllm:inter_token_latency_seconds", "Between two tokens of one choice.",
                  inter_token_bounds + VLLM_INTER_TOKEN_FIRST,
                  COUNT_OF(inter_token_bounds) - VLLM_INTER_TOKEN_FIRST);
    metrics_alias(r->metrics, m->request_seconds, "vllm:e2e_request_latency_seconds", r->labels);
    metrics_alias(r->metrics, m->queue_seconds, "vllm:request_queue_time_seconds", r->labels);
    metrics_alias(r->metrics, m->prefill_seconds, "vllm:request_prefill_time_seconds", r->labels);
    metrics_alias(r->metrics, m->decode_seconds, "vllm:request_decode_time_seconds", r->labels);
    m->vllm_inference =
        histogram(r, "vllm:request_inference_time_seconds", "From the start to the end.",
                  request_bounds, COUNT_OF(request_bounds));
    metrics_alias(r->metrics, m->prompt_length, "vllm:request_prompt_tokens", r->labels);
    metrics_alias(r->metrics, m->output_length, "vllm:request_generation_tokens", r->labels);
    m->vllm_max_output = histogram(r, "vllm:request_max_num_generation_tokens",
                                   "Tokens of the longest choice.", lengths, n_lengths);
    m->vllm_max_tokens = histogram(r, "vllm:request_params_max_tokens",
                                   "Tokens asked for, at most.", lengths, n_lengths);
    m->vllm_n = histogram(r, "vllm:request_params_n", "Choices asked for.", choices_bounds,
                          COUNT_OF(choices_bounds));
    metrics_alias(r->metrics, m->step_rows, "vllm:iteration_tokens_total", r->labels);
}

void engine_metrics_init(struct engine *engine, struct metrics *metrics, const char *model_name)
{
    char labels[384] = "";
    struct registrar r = {metrics, labels};

    if (!metrics)
        return;
    metrics_label(labels, sizeof(labels), "model", model_name);
    init_requests(engine, &r);
    init_cache(engine, &r);
    init_times(engine, &r);
    if (!engine->config.metrics_vllm)
        return;
    labels[0] = '\0';
    metrics_label(labels, sizeof(labels), "model_name", model_name);
    metrics_label(labels, sizeof(labels), "engine", "0");
    init_vllm_requests(engine, &r);
    init_vllm_times(engine, &r);
}

void engine_metrics_update(struct engine *engine)
{
    struct engine_metrics *m = &engine->metrics;
    uint32_t n_preempted = engine->n_live_started - engine->n_live_running;
    struct kv_pool_counts counts;

    kv_pool_counts(engine->pool, &counts);
    metric_set(m->running, engine->n_live_running);
    metric_set(m->preempted, n_preempted);
    metric_set(m->sequences, engine->n_in_batch);
    metric_set(m->failed, atomic_load(&engine->failed));
    metric_set(m->blocks_used, counts.n_used);
    metric_set(m->blocks_cached, counts.n_cached);
    metric_set(m->blocks_free, counts.n_free);
    metric_set(m->kv_usage, (double)counts.n_used / counts.n_blocks);
    metric_set(m->vllm_waiting, (double)atomic_load(&engine->n_queued) + n_preempted);
}

/* Seconds from an earlier time; never negative. */
static double seconds_since(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) / 1e9 : 0;
}

void engine_metrics_started(struct engine *engine, const struct live_request *live)
{
    struct engine_metrics *m = &engine->metrics;

    metric_inc(m->started);
    metric_observe(m->queue_seconds, seconds_since(live->submitted_ns, live->started_ns));
    metric_observe(m->vllm_n, live->gen->n_choices);
    metric_observe(m->vllm_max_tokens, live->gen->max_tokens);
}

void engine_metrics_token(struct engine *engine, struct live_request *live, struct sequence *seq)
{
    struct engine_metrics *m = &engine->metrics;
    uint64_t now = engine->now_ns;

    metric_inc(m->generated_tokens);
    if (!live->first_token_ns) {
        live->first_token_ns = now;
        metric_observe(m->first_token_seconds, seconds_since(live->gen->arrival_ns, now));
        metric_observe(m->prefill_seconds, seconds_since(live->started_ns, now));
    }
    if (seq->last_token_ns) {
        metric_observe(m->inter_token_seconds, seconds_since(seq->last_token_ns, now));
        metric_observe(m->vllm_inter_token, seconds_since(seq->last_token_ns, now));
    }
    seq->last_token_ns = now;
}

void engine_metrics_ended(struct engine *engine, const struct live_request *live)
{
    struct engine_metrics *m = &engine->metrics;
    uint64_t end = live->ended_ns;
    uint32_t longest = 0;

    metric_inc(m->finished[live->reason]);
    if (live->reason == FINISH_ERROR)
        metric_inc(m->errors[live->error.status]);
    if (!live->is_started)
        return;
    for (uint32_t i = 0; i < live->gen->n_choices; i++) {
        if (sequence_n_output(&live->sequences[i]) > longest)
            longest = sequence_n_output(&live->sequences[i]);
    }
    metric_observe(m->request_seconds, seconds_since(live->gen->arrival_ns, end));
    metric_observe(m->vllm_inference, seconds_since(live->started_ns, end));
    if (live->first_token_ns)
        metric_observe(m->decode_seconds, seconds_since(live->first_token_ns, end));
    metric_observe(m->prompt_length, live->gen->n_prompt);
    metric_observe(m->output_length, (double)live->n_output);
    metric_observe(m->vllm_max_output, longest);
}

void engine_metrics_step(struct engine *engine, uint32_t n_rows, uint32_t n_sequences,
                         uint32_t n_prefill, uint64_t duration_ns)
{
    struct engine_metrics *m = &engine->metrics;

    metric_inc(m->steps);
    metric_add(m->prefill_tokens, n_prefill);
    metric_observe(m->step_seconds, (double)duration_ns / 1e9);
    metric_observe(m->step_rows, n_rows);
    metric_set(m->row_seconds, engine->budget.row_ns / 1e9);
    metric_set(m->row_budget, step_budget_rows(&engine->budget));
    metric_observe(m->step_sequences, n_sequences);
}
