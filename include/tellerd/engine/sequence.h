#ifndef TELLERD_ENGINE_SEQUENCE_H
#define TELLERD_ENGINE_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "tellerd/base/status.h"
#include "tellerd/engine/kv_pool.h"
#include "tellerd/engine/prefix_cache.h"
#include "tellerd/model/sampler.h"

/*
 * One choice of a request on its way through the engine: token ids, block table, slot map and the
 * state machine
 *
 *   WAITING > PREFILL > DECODE > DONE      a preempted sequence goes back to WAITING and keeps all
 *   any of the first three > CANCELLED     but its blocks: ids, draws made, what was reported
 *   any of the first three > FAILED
 *
 * The cache holds positions 0 .. n_computed-1.  The newest id (a sampled token) is not computed
 * yet, so n_computed <= n_ids - 1 between the steps of a decode.  Engine thread only.
 */
enum sequence_state {
    SEQUENCE_WAITING,
    SEQUENCE_PREFILL,
    SEQUENCE_DECODE,
    SEQUENCE_DONE,
    SEQUENCE_CANCELLED,
    SEQUENCE_FAILED,
    SEQUENCE_STATE_COUNT
};

/* Which slot stands for which value id (step.h): a function of the ids alone, so it is dropped with
 * the blocks and built again. */
struct slot_map {
    uint32_t *slot_of_position; /* [capacity] */
    uint32_t *value_id_of_slot; /* [n_slots] in use */
    uint32_t n_positions, n_slots;
    uint32_t *table; /* open addressing: slot + 1, 0 = empty */
    uint32_t table_mask;
};

/* A position from which on no row wants logits but the last. */
#define SEQUENCE_NO_LOGITS UINT32_MAX

struct live_request;

struct sequence {
    struct live_request *request; /* the request it is a choice of */
    uint32_t choice;              /* index among the choices: also the sampler's stream */
    uint64_t order;               /* arrival: smaller is older; unique */
    int32_t priority;             /* lower runs first */
    uint32_t tenant;
    uint64_t cache_salt;
    uint64_t deadline_ns; /* must have started by then; 0 = none, or it has started */
    enum sequence_state state;
    bool is_resumed;    /* waits, but has run before: goes ahead of those that have not */
    bool is_parked;     /* waits for its first sibling's prompt, outside the waiting list */
    bool uses_prefix;   /* may find and leave blocks in the prefix cache */
    uint32_t n_parked;  /* siblings that wait for this one */
    uint64_t plan_mark; /* scheduler: the plan that has taken it from the waiting list */

    const uint32_t *ids; /* [n_ids]: prompt, then output.  The request's prompt until reserved */
    uint32_t *own_ids;   /* [capacity] once reserved */
    uint32_t n_prompt, n_ids;
    uint32_t max_output; /* at most that many tokens are sampled */
    uint32_t capacity;   /* n_prompt + max_output */
    uint32_t n_computed;
    uint32_t logits_from; /* rows of the prompt from this position on want logits too */

    uint32_t *blocks; /* [capacity / block size, rounded up] once reserved */
    uint32_t n_blocks;
    uint32_t n_offered; /* of these, full and offered to the prefix cache */
    struct slot_map slots;

    uint32_t n_preemptions;
    uint64_t last_token_ns; /* when the newest token was sampled; 0 = none yet */
};

/* A waiting sequence over a borrowed prompt; nothing is allocated. */
void sequence_init(struct sequence *seq, const uint32_t *prompt, uint32_t n_prompt,
                   uint32_t max_output);
/* Frees its arrays.  Blocks must have been released. */
void sequence_done(struct sequence *seq);
/*
 * Allocates all it can need, once, so that decoding allocates nothing.  bank_rows: 0 = no slot map.
 * Errors: NO_MEMORY, with nothing kept.
 */
enum status sequence_reserve(struct sequence *seq, uint32_t block_size,
                             uint32_t bank_rows) WARN_UNUSED;

/* Moves to another state; an illegal move is a contract breach.  Names: "waiting", ... */
void sequence_move(struct sequence *seq, enum sequence_state to);
bool sequence_move_is_legal(enum sequence_state from, enum sequence_state to);
const char *sequence_state_name(enum sequence_state state);
static inline bool sequence_is_live(const struct sequence *seq)
{
    return seq->state <= SEQUENCE_DECODE;
}
static inline uint32_t sequence_n_output(const struct sequence *seq)
{
    return seq->n_ids - seq->n_prompt;
}

/* Adds a sampled token. */
void sequence_append(struct sequence *seq, uint32_t id);
/* Blocks that hold all ids known now and one more token, if there may be one. */
uint32_t sequence_blocks_wanted(const struct sequence *seq, uint32_t block_size);
/* Of rows n_computed .. + n_rows - 1, how many want logits. */
uint32_t sequence_logit_rows(const struct sequence *seq, uint32_t n_computed, uint32_t n_rows);
static inline bool sequence_wants_logits(const struct sequence *seq, uint32_t position)
{
    return position + 1 == seq->n_ids || (position >= seq->logits_from && position < seq->n_prompt);
}
/* Positions that may come from the prefix cache: all but the last, and none whose logits are
 * wanted; none at all without uses_prefix. */
uint32_t sequence_matchable(const struct sequence *seq);

/* Starts the sequence over, with an empty table: takes blocks from the prefix cache (NULL allowed)
 * and drops the slot map. */
void sequence_match(struct sequence *seq, struct prefix_cache *cache, uint32_t block_size);
/* Takes blocks until the table has n; false, and nothing changed, when the pool has too few. */
bool sequence_grow(struct sequence *seq, struct kv_pool *pool, uint32_t n_blocks) WARN_UNUSED;
/* Notes that the next n_rows positions were computed, and offers full blocks to the cache. */
void sequence_advance(struct sequence *seq, struct kv_pool *pool, struct prefix_cache *cache,
                      uint32_t n_rows);
/*
 * Makes `seq` (reserved, empty table) hold the positions that `from` holds: full blocks shared, a
 * partial last one copied to a fresh block.  On success *ret_from / *ret_to name the block whose
 * content must be copied in the cache (KV_NO_BLOCK when none).  False, and nothing changed, when
 * the pool has no block.
 */
bool sequence_fork(struct sequence *seq, const struct sequence *from, struct kv_pool *pool,
                   uint32_t *ret_from, uint32_t *ret_to) WARN_UNUSED;
/* Gives all blocks back: nothing is computed any more (preemption, end). */
void sequence_release(struct sequence *seq, struct kv_pool *pool);

/* Extends the slot map over positions 0 .. n_positions-1 of the known ids; sink_row: value id of
 * position 0, or HPARAMS_NO_ROW. */
void sequence_extend_slots(struct sequence *seq, uint32_t n_positions, uint32_t sink_row);
/* Value id of a position. */
uint32_t sequence_value_id(const struct sequence *seq, uint32_t position, uint32_t sink_row);

#endif
