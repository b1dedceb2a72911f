/*
 * Joins a gpt and a backend's cache to the engine's forward interface.
 */
#include "config.h"

#include "tellerd/engine/forward_gpt.h"

#include <stdlib.h>

#include "tellerd/base/mem.h"
#include "tellerd/model/hparams.h"

struct forward_gpt {
    struct forward base; /* first */
    struct gpt *gpt;
    struct backend *backend;
    struct backend_cache *cache;
};

static struct forward_gpt *gpt_of(struct forward *forward)
{
    return (struct forward_gpt *)forward;
}

static enum status forward_step(struct forward *forward, const struct step_batch *batch,
                                float **ret_logits, struct error *err)
{
    struct forward_gpt *f = gpt_of(forward);

    return gpt_step(f->gpt, f->cache, batch, ret_logits, err);
}

static void forward_copy_block(struct forward *forward, uint32_t from, uint32_t to)
{
    struct forward_gpt *f = gpt_of(forward);

    backend_ops_of(f->backend)->cache_copy_block(f->backend, f->cache, from, to);
}

/* The engine sets on_progress later than this is wired, hence the detour. */
static void on_layer(void *ctx)
{
    struct forward_gpt *f = ctx;

    if (f->base.on_progress)
        f->base.on_progress(f->base.progress_ctx);
}

static void forward_free(struct forward *forward)
{
    struct forward_gpt *f = gpt_of(forward);

    gpt_on_layer(f->gpt, NULL, NULL);
    if (f->cache)
        backend_ops_of(f->backend)->cache_free(f->backend, f->cache);
    free(f);
}

static const struct forward_ops gpt_ops = {
    .step = forward_step,
    .copy_block = forward_copy_block,
    .free = forward_free,
};

/* Value bytes of one block that layers without cached values would need, less what the ids cost. */
static uint64_t saved_bytes(const struct backend_cache_shape *shape, uint64_t id_bytes)
{
    size_t row = 0;
    uint64_t bytes = 0;

    if (!tensor_row_bytes(shape->type_v, (uint64_t)shape->n_kv_heads * shape->head_size, &row))
        return 0;
    for (uint32_t i = 0; i < shape->n_layers; i++)
        bytes += shape->layer_has_values[i] ? 0 : (uint64_t)row * shape->block_size;
    return bytes > id_bytes ? bytes - id_bytes : 0;
}

enum status forward_gpt_new(struct gpt *gpt, struct backend *backend,
                            const struct backend_cache_shape *shape,
                            const struct sampler_vocab *vocab, uint32_t max_rows,
                            uint32_t max_logit_rows, struct forward **ret, struct error *err)
{
    const struct hparams *hp = gpt_hparams(gpt);
    struct forward_gpt *f;
    size_t bytes[3], weight_bytes, bank_bytes;
    enum status status;

    if (hp->has_bank && hp->bank_rows < vocab->n_tokens)
        return error_set(err, STATUS_BAD_CONFIG,
                         "the bank has %u rows, fewer than the %u tokens of the vocabulary",
                         hp->bank_rows, vocab->n_tokens);
    f = xcalloc(1, sizeof(*f));
    f->gpt = gpt;
    f->backend = backend;
    status = backend_ops_of(backend)->cache_new(backend, shape, &f->cache, err);
    if (status) {
        free(f);
        return status;
    }
    backend_ops_of(backend)->cache_bytes(f->cache, bytes);
    gpt_bytes(gpt, &weight_bytes, &bank_bytes);
    f->base = (struct forward){
        .ops = &gpt_ops,
        .vocab = *vocab,
        .n_blocks = shape->n_blocks,
        .block_size = shape->block_size,
        .max_rows = max_rows,
        .max_logit_rows = max_logit_rows,
        .n_context = HPARAMS_MAX_CONTEXT,
        .has_bank = hp->has_bank,
        .bank_rows = hp->bank_rows,
        .sink_row = hp->sink_row,
        .block_bytes_keys = bytes[0] / shape->n_blocks,
        .block_bytes_values = bytes[1] / shape->n_blocks,
        .block_bytes_ids = bytes[2] / shape->n_blocks,
        .block_bytes_saved = saved_bytes(shape, bytes[2] / shape->n_blocks),
        .bank_bytes = bank_bytes,
        .weight_bytes = weight_bytes,
    };
    gpt_on_layer(gpt, on_layer, f);
    *ret = &f->base;
    return STATUS_OK;
}
