#ifndef TELLERD_ENGINE_ENGINE_H
#define TELLERD_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/base/hash.h"
#include "tellerd/base/metrics.h"
#include "tellerd/base/queue.h"
#include "tellerd/base/status.h"
#include "tellerd/engine/forward.h"
#include "tellerd/engine/request.h"

/*
 * The engine: one thread that owns forward pass, block pool, prefix cache, sequences and scheduler.
 * The loop submits and cancels by messages and gets events by another queue; neither waits for the
 * other.  The engine never sees JSON or text.
 */
struct engine;

struct engine_config {
    uint32_t max_batch_tokens;  /* rows of one step, decode and prefill together */
    uint32_t max_sequences;     /* running at once */
    uint32_t max_queued;        /* waiting requests: one more is QUEUE_FULL */
    uint64_t max_queued_tokens; /* prompt tokens of all waiting requests; 0 = no bound */
    uint32_t n_context; /* most tokens of a sequence, prompt and output; at most what the pool can
                           hold */
    uint32_t prefill_chunk;  /* most rows one sequence prefills in a step; 0 = max_batch_tokens */
    uint64_t step_target_ns; /* wanted time of a step that decodes; 0 = no bound */
    bool prefix_cache;
    struct hash128 fingerprint; /* root of the prefix chain: model, banks, cache types */
    /* NULL = XXH3-128; tests force collisions */
    struct hash128 (*prefix_hash)(const void *bytes, size_t len, uint64_t seed);
    bool metrics_vllm; /* also under the names that vLLM uses */
};

/* Live numbers for status pages; copied without any engine lock. */
struct engine_stats {
    uint32_t n_running;   /* requests with a sequence in the batch */
    uint32_t n_waiting;   /* requests that have not started */
    uint32_t n_preempted; /* requests that have started and now wait for blocks */
    uint32_t n_sequences; /* in the batch */
    uint32_t n_blocks,
        n_blocks_used; /* used = referenced by live sequences; cached-only blocks count as free */
    uint32_t n_blocks_cached; /* unreferenced but kept for prefix hits */
    uint64_t n_steps, n_preemptions, n_prompt_tokens, n_generated_tokens, n_cached_tokens;
    uint64_t heartbeat_ns; /* clock_ns() of the last sign of progress, also from within a step */
    bool idle;             /* nothing to do, nor anything on its way: the heartbeat may be old */
    bool failed;
};

/*
 * Creates the engine around forward (borrowed; used from the engine thread only once started; its
 * on_progress is taken for the heartbeat).  events: where engine_event messages are pushed
 * (borrowed; one malloc each, the receiver frees them; they are the only allocation of a decode
 * step).  metrics may be NULL.  n_context is lowered to what forward's model and pool can hold (one
 * block stays spare), max_sequences to the rows of a step: ask engine_context().  Errors:
 * BAD_CONFIG.
 */
enum status engine_new(const struct engine_config *config, struct forward *forward,
                       struct queue *events, struct metrics *metrics, const char *model_name,
                       struct engine **ret, struct error *err) WARN_UNUSED;
/* Starts the thread.  Once. */
void engine_start(struct engine *engine);
/* Stops the thread after the current step, failing what is left with SHUTTING_DOWN (events still
 * come), and frees all. */
void engine_free(struct engine *engine);

/*
 * Takes the request (also on failure it stays the caller's).  Checks at once, before any work:
 * CONTEXT_LENGTH when the prompt leaves no room for one token in the context or the pool (err has
 * both numbers), QUEUE_FULL (err has retry_after_s), SHUTTING_DOWN, ENGINE_FAILED.  Loop thread.
 */
enum status engine_submit(struct engine *engine, struct gen_request *request,
                          struct error *err) WARN_UNUSED;
/* Asks to end a request in whatever state it is; an unknown id is ignored.  Its EVENT_DONE follows
 * within one step.  Loop thread. */
void engine_cancel(struct engine *engine, uint64_t request_id);
/* Ends one choice of a request early (a stop string was found in its text), as FINISH_STOP.  Loop
 * thread. */
void engine_stop_choice(struct engine *engine, uint64_t request_id, uint32_t choice);
/* No more submits from now on (SHUTTING_DOWN); what runs goes on, what waits is failed when
 * `fail_waiting`.  Loop thread. */
void engine_drain(struct engine *engine, bool fail_waiting);
void engine_stats(const struct engine *engine, struct engine_stats *ret);
/* Changes limits that may change while running (reload): max_queued, max_queued_tokens.  Loop
 * thread. */
void engine_set_limits(struct engine *engine, uint32_t max_queued, uint64_t max_queued_tokens);
uint32_t engine_context(const struct engine *engine);

#endif
