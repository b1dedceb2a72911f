#ifndef TELLERD_ENGINE_FORWARD_SCRIPT_H
#define TELLERD_ENGINE_FORWARD_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "tellerd/engine/forward.h"

/*
 * A forward pass for tests, without a model.  It keeps a real cache of token ids by block and
 * position, and what it answers is a pure function of what it *finds in the cache* through the
 * block table it is given: a wrong table, a stale block, a forgotten copy, a wrong position or slot
 * changes the logits, and is noted as a violation too.
 *
 * Which logits a row gets, first match wins:
 *   1. forward_script_logits of its token
 *   2. forward_script_emit: its context begins with that prompt, and the output has a next token
 *   3. forward_script_follow of its token
 *   4. numbers hashed from the whole context, in [-4, 4)
 * 2 and 3 give the token +30, all others hashed numbers.  Rows beyond n_tokens (padding) get +60:
 * whoever samples them is caught.
 *
 * Set up before the engine starts; forward_script_* otherwise from the engine thread (on_step), or
 * once the engine is freed.
 */
struct forward_script_config {
    uint32_t n_blocks, block_size;
    uint32_t max_rows, max_logit_rows;
    uint32_t n_context;
    uint32_t n_tokens, n_logits; /* n_logits >= n_tokens */
    uint32_t eog;                /* an end-of-generation token, or STEP_NO_TOKEN */
    uint32_t eog_one_in; /* rule 4 makes eog the best in about one row of so many; 0 = never */
    bool has_bank;       /* wants slots and value ids; the bank has n_tokens + 1 rows */
    bool has_sink;       /* position 0 reads row n_tokens */
};

/* A script with n_blocks 64 of 16, 256 rows of which 64 with logits, context 1024, 256 tokens (272
 * logits), eog 0 in one of 40 rows, bank and sink. */
void forward_script_defaults(struct forward_script_config *config);
/* Free with forward->ops->free. */
struct forward *forward_script_new(const struct forward_script_config *config);

/* Behind exactly this prompt (copied): output (copied), token by token, then eog if there is one.
 */
void forward_script_emit(struct forward *forward, const uint32_t *prompt, uint32_t n_prompt,
                         const uint32_t *output, uint32_t n_output);
void forward_script_follow(struct forward *forward, uint32_t token, uint32_t next);
/* logits: [n_logits], copied. */
void forward_script_logits(struct forward *forward, uint32_t token, const float *logits);

enum forward_script_fault {
    FORWARD_FAULT_INTERNAL, /* the step fails, its cache half written */
    FORWARD_FAULT_ENGINE,   /* the step fails for good */
    FORWARD_FAULT_NAN,      /* rows of that token get NaN */
    FORWARD_FAULT_DELAY,    /* the step takes delay_ns longer, with signs of progress */
    FORWARD_FAULT_FREEZE,   /* the same, without */
};
/* Happens in step number `step` (from 0; UINT64_MAX: any) when a row has that token (STEP_NO_TOKEN:
 * any), at most `times` times. */
void forward_script_fault(struct forward *forward, enum forward_script_fault fault, uint64_t step,
                          uint32_t token, uint32_t times, uint64_t delay_ns);

/* Called on the engine thread before each step is computed: to count, to wait, to cancel. */
typedef void (*forward_script_step_fn)(void *ctx, uint64_t step, const struct step_batch *batch);
void forward_script_on_step(struct forward *forward, forward_script_step_fn fn, void *ctx);

/* How often a batch was not what the cache holds, and the first time in words ("" when none). */
uint32_t forward_script_violations(const struct forward *forward, const char **ret_first);
uint64_t forward_script_n_steps(const struct forward *forward);

#endif
