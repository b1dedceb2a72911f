#ifndef TELLERD_ENGINE_FORWARD_H
#define TELLERD_ENGINE_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include "tellerd/backend/step.h"
#include "tellerd/base/status.h"
#include "tellerd/model/sampler.h"

/*
 * What the engine needs of a model: one step from token ids to logits, over a cache of numbered
 * blocks.  forward_gpt.c is the real one (gpt + backend cache); forward_script.c gives scripted
 * tokens and can fail, delay or spoil a step, for tests.
 */
struct forward;

struct forward_ops {
    /*
     * Runs one step; *ret_logits is [batch->n_logit_rows, V], valid until the next step, may be
     * changed.  A failure is final for the engine (ENGINE_FAILED) unless status is INTERNAL, which
     * fails only the step's sequences.
     */
    enum status (*step)(struct forward *forward, const struct step_batch *batch, float **ret_logits,
                        struct error *err);
    void (*copy_block)(struct forward *forward, uint32_t from, uint32_t to);
    void (*free)(struct forward *forward);
};

struct forward {
    const struct forward_ops *ops;
    struct sampler_vocab vocab;
    uint32_t n_blocks, block_size;
    uint32_t max_rows, max_logit_rows; /* of one step */
    uint32_t n_context;                /* most positions it can compute */
    bool has_bank;                     /* slots and value ids are wanted */
    uint32_t bank_rows, sink_row;      /* 0 / HPARAMS_NO_ROW without */
    uint64_t block_bytes_keys, block_bytes_values,
        block_bytes_ids;        /* of one block, all layers; for metrics */
    uint64_t block_bytes_saved; /* value bytes that bank layers would have cached, less the ids */
    uint64_t bank_bytes, weight_bytes;
    /* Set by the engine; called now and then within a long step, as a sign of progress.  May be
     * NULL. */
    void (*on_progress)(void *ctx);
    void *progress_ctx;
};

#endif
