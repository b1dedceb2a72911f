#ifndef TELLERD_MODEL_GPT_H
#define TELLERD_MODEL_GPT_H

#include <stdint.h>

#include "tellerd/backend/backend.h"
#include "tellerd/base/status.h"
#include "tellerd/model/checkpoint.h"

/*
 * A checkpoint's weights bound to a backend, and the forward pass over one step.  Owned by the
 * engine thread once it runs.
 */
struct gpt;

struct gpt_config {
    uint32_t max_rows;          /* most rows (tokens) of a step: sizes the workspace */
    uint32_t max_logit_rows;    /* most rows with logits */
    enum tensor_type bank_type; /* type the banks are kept in: as stored (TENSOR_TYPE_LIMIT), F32,
                                   F16, BF16 or Q8_0 */
    /* progress of loading in [0, 1]; may be NULL */
    void (*on_progress)(void *ctx, double share);
    void *progress_ctx;
};

/* Binds all tensors (checking presence and shapes by hparams).  cp and be must outlive it.  Errors:
 * BAD_FILE naming the tensor, NO_MEMORY. */
enum status gpt_new(struct checkpoint *cp, struct backend *be, const struct gpt_config *config,
                    struct gpt **ret, struct error *err) WARN_UNUSED;
void gpt_free(struct gpt *gpt);

/* Fills shape for n_blocks blocks of block_size; layer_has_values points into gpt. */
void gpt_cache_shape(const struct gpt *gpt, uint32_t n_blocks, uint32_t block_size,
                     enum tensor_type type_k, enum tensor_type type_v,
                     struct backend_cache_shape *ret);

/*
 * One step: writes keys (and values) of the batch's rows to cache and gives the logits of
 * batch->logit_rows, [n_logit_rows, V], in *ret_logits, memory of gpt that lives until the next
 * step and may be changed by the caller.  Errors: ENGINE_FAILED.
 */
enum status gpt_step(struct gpt *gpt, struct backend_cache *cache, const struct step_batch *batch,
                     float **ret_logits, struct error *err) WARN_UNUSED;

/* Calls fn (NULL: nobody) after each layer of a step, on the step's thread: a sign of progress for a
 * watchdog. */
void gpt_on_layer(struct gpt *gpt, void (*fn)(void *ctx), void *ctx);

const struct hparams *gpt_hparams(const struct gpt *gpt);
/* Bytes held for weights and for banks. */
void gpt_bytes(const struct gpt *gpt, size_t *ret_weights, size_t *ret_banks);

#endif
