#ifndef TELLERD_BACKEND_STEP_H
#define TELLERD_BACKEND_STEP_H

#include <stdint.h>

/*
 * One step of a batch, as the engine plans it: T rows, the tokens of B sequences one after the
 * other (a prefill chunk, or one token of a decode).  All arrays belong to the caller and live
 * until the step returns.
 *
 * Glossary.  row: a token of this step, 0..T-1.  position: place of a token in its sequence, from
 * 0.  block: P positions of cache, one id for all layers.  value id: row of the banks that stands
 * for the token at a position (by default its token id). slot: number of a distinct value id within
 * one sequence, in order of first appearance; append-only.
 */
#define STEP_NO_TOKEN UINT32_MAX

struct step_sequence {
    uint32_t first_row; /* rows first_row .. first_row + n_rows - 1 are this sequence's */
    uint32_t n_rows;    /* at least 1 */
    uint32_t
        n_cached; /* positions in the cache before this step; the rows take positions n_cached.. */
    const uint32_t *blocks; /* block table: covers n_cached + n_rows positions */
    /* NULL unless the model has bank layers: */
    const uint32_t *slot_of_position; /* [n_cached + n_rows] */
    const uint32_t *value_id_of_slot; /* [n_slots] */
    uint32_t n_slots;
};

struct step_batch {
    uint32_t n_rows;           /* T */
    const uint32_t *token_ids; /* [T] */
    const uint32_t
        *previous_ids; /* [T] token before, STEP_NO_TOKEN at position 0 (nanochat's smear) */
    const uint32_t *value_ids; /* [T], checked against the bank's rows at admission */
    const uint32_t *positions; /* [T] */
    uint32_t n_sequences;      /* B */
    const struct step_sequence *sequences;
    uint32_t n_logit_rows;      /* rows whose logits are wanted */
    const uint32_t *logit_rows; /* ascending */
};

#endif
