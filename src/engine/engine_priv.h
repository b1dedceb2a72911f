#ifndef TELLERD_ENGINE_ENGINE_PRIV_H
#define TELLERD_ENGINE_ENGINE_PRIV_H

/*
 * What the files of the engine share.
 *
 *   engine.c            the public door and the thread's loop
 *   engine_commands.c   what the loop asks for: submit, cancel, stop, drain
 *   engine_requests.c   live requests: lists, events, how a choice and a request end
 *   step.c              one step: plan, batch, forward, tokens
 *   engine_metrics.c    what is counted
 *
 * Thread column of struct engine: S = set at start, then read by any thread; L = loop thread only;
 * E = engine thread only (before the start and after the end: whoever calls); A = atomic.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tellerd/engine/engine.h"
#include "tellerd/engine/scheduler.h"
#include "tellerd/engine/step_budget.h"

enum { ENGINE_BUCKETS = 4096 }; /* of the request table; a power of two */

/* A request in the engine, with its choices. */
struct live_request {
    struct gen_request *gen; /* owned */
    struct live_request *next;
    struct sequence *sequences;  /* [gen->n_choices] */
    uint32_t n_ended, n_running; /* of the sequences */
    bool is_started, is_prompt_done, is_ended;
    uint32_t n_cached;      /* prompt tokens that came from the prefix cache */
    uint32_t n_prompt_done; /* most prompt positions computed so far */
    uint32_t n_reported;    /* prompt tokens whose logprobs were sent */
    uint64_t n_output;      /* tokens of all choices */
    enum finish_reason reason;
    struct error error;
    uint64_t submitted_ns, started_ns, first_token_ns, ended_ns;
};

enum command_kind { COMMAND_SUBMIT, COMMAND_CANCEL, COMMAND_STOP_CHOICE, COMMAND_DRAIN };
struct engine_command {
    struct queue_node node; /* first */
    enum command_kind kind;
    uint64_t id;
    uint32_t choice;
    bool fail_waiting;
    struct live_request *live; /* COMMAND_SUBMIT: owned */
    uint64_t time_ns;          /* when it was given */
};

/* One sequence's share of a step. */
struct step_part {
    struct sequence *sequence;
    uint32_t n_rows, first_logit, n_logits;
};

/* Arrays behind struct step_batch, sized once. */
struct step_space {
    uint32_t *token_ids, *previous_ids, *value_ids, *positions; /* [max_rows] */
    uint32_t *logit_rows;                                       /* [max_logit_rows] */
    struct step_sequence *sequences;                            /* [max_sequences] */
    struct step_part *parts;                                    /* [max_sequences] */
    uint32_t n_parts;
    float *logits_copy; /* [V]: one row that several choices sample from */
};

enum rejection {
    REJECTED_CONTEXT,
    REJECTED_QUEUE,
    REJECTED_SHUTDOWN,
    REJECTED_FAILED,
    REJECTED_INVALID,
    REJECTION_COUNT
};

struct engine_metrics {
    struct metric *running, *waiting, *preempted, *sequences, *failed;
    struct metric *blocks_used, *blocks_cached, *blocks_free, *kv_usage;
    struct metric *accepted, *started, *finished[FINISH_COUNT], *rejected[REJECTION_COUNT];
    struct metric *errors[STATUS_COUNT];
    struct metric *prompt_tokens, *generated_tokens, *prefill_tokens;
    struct metric *prefix_queries, *prefix_hits, *preemptions, *steps;
    struct metric *row_budget, *row_seconds; /* gauges */
    struct metric *step_seconds, *step_rows, *step_sequences;
    struct metric *queue_seconds, *first_token_seconds, *inter_token_seconds, *request_seconds;
    struct metric *prefill_seconds, *decode_seconds, *cancel_seconds;
    struct metric *prompt_length, *output_length;
    /* vLLM's, where the buckets or the meaning differ from ours */
    struct metric *vllm_waiting, *vllm_inter_token, *vllm_inference;
    struct metric *vllm_max_output, *vllm_max_tokens, *vllm_n;
};

struct engine {
    struct engine_config config;   /* S */
    struct forward *forward;       /* S: the pointer; E: the rest */
    struct queue *events;          /* S */
    struct queue *commands;        /* S */
    struct engine_metrics metrics; /* S; series are atomic; all NULL without a registry */
    pthread_t thread;
    bool is_started; /* L */

    uint32_t max_queued;        /* L */
    uint64_t max_queued_tokens; /* L */
    bool is_draining;           /* L */

    atomic_bool stop, failed, idle;   /* A */
    _Atomic uint64_t heartbeat_ns;    /* A */
    _Atomic uint32_t n_queued;        /* A: requests submitted and not started */
    _Atomic uint64_t n_queued_tokens; /* A: their prompt tokens */
    _Atomic uint32_t n_running, n_preempted, n_sequences; /* A: for engine_stats */
    _Atomic uint32_t n_blocks_used, n_blocks_cached;
    _Atomic uint64_t n_steps, n_preemptions, n_prompt_tokens, n_generated_tokens, n_cached_tokens;
    _Atomic uint64_t end_interval_ns; /* A: smoothed time between two requests' ends */

    /* E, all below */
    struct kv_pool *pool;
    struct prefix_cache *prefix; /* NULL = off */
    struct scheduler *scheduler;
    struct step_budget budget;
    struct sampler *sampler;
    struct step_space space;
    struct sequence **running; /* [max_sequences], by scheduler_compare_running */
    uint32_t n_in_batch;
    struct sequence **waiting; /* by scheduler_compare_waiting */
    uint32_t n_in_queue, cap_queue;
    struct live_request *table[ENGINE_BUCKETS];
    struct live_request *ended; /* to be freed when nothing points at their sequences */
    uint32_t n_live, n_live_started, n_live_running;
    uint64_t last_order;
    uint64_t next_deadline_ns; /* no waiting request expires before */
    uint64_t last_end_ns;
    uint64_t now_ns; /* of this step */
    struct engine_event *first_event, *last_event;
    struct error failure;
};

/* engine_requests.c */
/* Adds an event to those of this step; the caller fills in more. */
struct engine_event *engine_emit(struct engine *engine, struct live_request *live,
                                 enum engine_event_kind kind, uint32_t choice);
/* Hands the collected events to the loop, under one lock. */
void engine_flush_events(struct engine *engine);
struct live_request *engine_find(struct engine *engine, uint64_t id);
/* Takes a request in: its first choice waits, the others wait for it. */
void engine_accept(struct engine *engine, struct live_request *live);
/* Notes that a request has left the queue, once. */
void engine_mark_started(struct engine *engine, struct live_request *live, uint32_t n_cached);
void engine_run(struct engine *engine, struct sequence *seq);     /* into the running list */
void engine_enqueue(struct engine *engine, struct sequence *seq); /* into the waiting list */
/* Takes it out of the list it is in. */
void engine_detach(struct engine *engine, struct sequence *seq);
/* Ends one choice in whatever state it is, and the request with its last one.  error: with
 * FINISH_ERROR. */
void engine_end_choice(struct engine *engine, struct sequence *seq, enum finish_reason reason,
                       const struct error *error);
/* Ends all choices that have not ended. */
void engine_end_request(struct engine *engine, struct live_request *live, enum finish_reason reason,
                        const struct error *error);
/* Ends all requests; only_waiting: those that have not started. */
void engine_end_all(struct engine *engine, bool only_waiting, const struct error *error);
/* Frees requests that have ended. */
void engine_bury(struct engine *engine);
void live_request_free(struct live_request *live);

/* engine_commands.c */
void engine_handle_commands(struct engine *engine, struct queue_node *list);
void engine_command_free(struct queue_node *node);

/* step.c */
void step_space_init(struct engine *engine);
void step_space_done(struct engine *engine);
/* Does one step for what is running and waiting. */
void engine_step(struct engine *engine);
/* Makes the failure final and ends all requests with it. */
void engine_fail(struct engine *engine, const struct error *error);

/* engine_metrics.c */
void engine_metrics_init(struct engine *engine, struct metrics *metrics, const char *model_name);
/* Brings gauges up to date. */
void engine_metrics_update(struct engine *engine);
void engine_metrics_token(struct engine *engine, struct live_request *live, struct sequence *seq);
void engine_metrics_started(struct engine *engine, const struct live_request *live);
void engine_metrics_ended(struct engine *engine, const struct live_request *live);
void engine_metrics_step(struct engine *engine, uint32_t n_rows, uint32_t n_sequences,
                         uint32_t n_prefill, uint64_t duration_ns);

#endif
