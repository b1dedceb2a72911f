#ifndef TELLERD_ENGINE_SCHEDULER_H
#define TELLERD_ENGINE_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "tellerd/engine/kv_pool.h"
#include "tellerd/engine/prefix_cache.h"
#include "tellerd/engine/sequence.h"

/*
 * What the next step does.  A function of the sequences, the pool and its own fairness counters:
 * no thread, no clock, no change to what it looks at.  The engine carries the plan out.
 *
 * Policy, in this order:
 *  1. Each running decode gets its row.  When the pool has no block for one, running sequences are
 *     preempted: lowest priority first, youngest first.  The oldest of the best priority is never
 *     preempted, and runs alone if need be.
 *  2. What is left of the rows goes to running prefills, oldest first, at most prefill_chunk each.
 *     A step that decodes has at most row_budget rows, so that streams do not wait long for their
 *     next token; but prompts get SCHEDULER_MIN_PREFILL_ROWS whatever it is, so that they go on.
 *  3. Then, unless something was preempted in this step, waiting sequences are admitted while rows,
 *     places and blocks last: best priority first; within it those that were preempted, by age;
 *     then tenants by deficit round robin over the prompt tokens to compute.  The one whose turn it
 *     is waits at the head until it fits: nobody passes it, so long prompts do not starve.
 *     A sequence is admitted when the pool has the blocks it needs now (its tokens and one more)
 *     and one spare block for each other running sequence, so that it does not preempt them at
 *     once; alone it needs no spare.
 */
struct scheduler;

struct scheduler_limits {
    uint32_t max_rows, max_logit_rows; /* of one step; both at least max_sequences */
    uint32_t max_sequences;
    uint32_t prefill_chunk; /* 1..max_rows */
};

enum { SCHEDULER_MIN_PREFILL_ROWS = 32 };

/* Borrowed for the call. */
struct scheduler_state {
    struct sequence *const *running; /* PREFILL and DECODE, by (priority, order) */
    uint32_t n_running;
    struct sequence *const *waiting; /* by (priority, resumed first, order) */
    uint32_t n_waiting;
    const struct kv_pool *pool;
    const struct prefix_cache *prefix; /* NULL = off */
    uint32_t row_budget;               /* of a step that decodes; 0 = max_rows */
};

struct scheduler_work {
    struct sequence *sequence;
    uint32_t n_rows; /* at least 1: positions n_computed .. */
    bool is_admitted;
};

struct scheduler_plan {
    struct scheduler_work *work; /* decodes, then running prefills, then admitted */
    uint32_t n_work;
    uint32_t n_decodes; /* the first of them */
    struct sequence **preempted;
    uint32_t n_preempted;
    struct sequence **admitted; /* each is also in work */
    uint32_t n_admitted;
};

struct scheduler *scheduler_new(const struct scheduler_limits *limits, uint32_t n_blocks);
void scheduler_free(struct scheduler *scheduler);
/* Plans one step; the plan is the scheduler's and lives until the next call. */
const struct scheduler_plan *scheduler_plan(struct scheduler *scheduler,
                                            const struct scheduler_state *state);

/* Order of the running / the waiting list: negative when a goes first. */
int scheduler_compare_running(const struct sequence *a, const struct sequence *b);
int scheduler_compare_waiting(const struct sequence *a, const struct sequence *b);

#endif
