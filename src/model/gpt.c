#include "config.h"

/*
 * The model as the engine sees it: made from a checkpoint, run a step at a time.  Runs on the
 * engine's thread (before that, on the loader's).  What is in a layer: gpt_layers.c.  Which tensors
 * there are: gpt_weights.c.
 */
#include <stdlib.h>

#include "gpt_priv.h"
#include "tellerd/base/mem.h"
#include "tellerd/model/gpt.h"

void gpt_free(struct gpt *gpt)
{
    if (!gpt)
        return;
    struct gpt_buffers *buf = &gpt->buf;
    struct backend_buffer *all[] = {buf->x, buf->h,    buf->previous, buf->q,    buf->mixed, buf->k,
                                    buf->v, buf->gate, buf->up,       buf->last, buf->logits};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        gpt->ops->buffer_free(gpt->be, all[i]);
    gpt_weights_free(gpt);
    big_free(gpt->logits, gpt->logits_bytes);
    free(gpt->previous_ids);
    free(gpt->layer_has_values);
    free(gpt);
}

static enum status take(struct gpt *gpt, struct backend_buffer **slot, uint32_t rows, uint64_t n,
                        struct error *err)
{
    size_t size;
    if (n > SIZE_MAX || !size_mul(rows, (size_t)n, &size))
        return error_set(err, STATUS_NO_MEMORY, "activations of %u rows are out of range", rows);
    return gpt->ops->buffer_new(gpt->be, size, slot, err);
}

/* All memory of a step. */
static enum status take_buffers(struct gpt *gpt, struct error *err)
{
    const struct hparams *hp = gpt->hp;
    struct gpt_buffers *buf = &gpt->buf;
    uint32_t rows = gpt->config.max_rows, last = gpt->config.max_logit_rows;
    uint64_t c = hp->embedding, f = hp->feed_forward, v = hp->n_embedding_rows;
    uint64_t q = (uint64_t)hp->n_heads * hp->head_size;
    uint64_t kv = (uint64_t)hp->n_kv_heads * hp->head_size;
    struct {
        struct backend_buffer **slot;
        uint32_t rows;
        uint64_t n;
        bool wanted;
    } all[] = {
        {&buf->x, rows, c, true},
        {&buf->h, rows, c, true},
        {&buf->previous, rows, c, hp->smear},
        {&buf->q, rows, q, true},
        {&buf->mixed, rows, q, true},
        {&buf->k, rows, kv, true},
        {&buf->v, rows, kv, true},
        {&buf->gate, rows, f, hp->activation == ACTIVATION_SWIGLU},
        {&buf->up, rows, f, true},
        {&buf->last, last, c, true},
        {&buf->logits, last, v, true},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        enum status status =
            all[i].wanted ? take(gpt, all[i].slot, all[i].rows, all[i].n, err) : STATUS_OK;
        if (status)
            return status;
    }
    if (!size_mul((size_t)last * sizeof(float), (size_t)v, &gpt->logits_bytes) ||
        !(gpt->logits = big_alloc(gpt->logits_bytes, false)))
        return error_set(err, STATUS_NO_MEMORY, "no memory for the logits of %u rows", last);
    gpt->previous_ids = xcalloc(rows, sizeof(*gpt->previous_ids));
    return STATUS_OK;
}

enum status gpt_new(struct checkpoint *cp, struct backend *be, const struct gpt_config *config,
                    struct gpt **ret, struct error *err)
{
    REQUIRE(config->max_rows > 0 && config->max_logit_rows > 0);
    struct gpt *gpt = xcalloc(1, sizeof(*gpt));
    gpt->be = be;
    gpt->ops = backend_ops_of(be);
    gpt->hp = checkpoint_hparams(cp);
    gpt->config = *config;
    gpt->layer_has_values = xcalloc(gpt->hp->n_layers, sizeof(bool));
    for (uint32_t i = 0; i < gpt->hp->n_layers; i++) {
        gpt->layer_has_values[i] = hparams_layer_has_values(gpt->hp, i);
        gpt->has_value_ids |= !gpt->layer_has_values[i];
    }
    enum status status = gpt_weights_bind(gpt, cp, err);
    if (!status)
        status = take_buffers(gpt, err);
    if (status) {
        gpt_free(gpt);
        return status;
    }
    *ret = gpt;
    return STATUS_OK;
}

void gpt_cache_shape(const struct gpt *gpt, uint32_t n_blocks, uint32_t block_size,
                     enum tensor_type type_k, enum tensor_type type_v,
                     struct backend_cache_shape *ret)
{
    *ret = (struct backend_cache_shape){
        .n_layers = gpt->hp->n_layers,
        .n_blocks = n_blocks,
        .block_size = block_size,
        .n_kv_heads = gpt->hp->n_kv_heads,
        .head_size = gpt->hp->head_size,
        .type_k = type_k,
        .type_v = type_v,
        .layer_has_values = gpt->layer_has_values,
        .has_value_ids = gpt->has_value_ids,
    };
}

/* buf.x = embeddings of the batch's tokens, as the family prepares them. */
static void embed(struct gpt *gpt, const struct step_batch *batch)
{
    const struct hparams *hp = gpt->hp;
    const struct backend_ops *ops = gpt->ops;
    struct gpt_buffers *buf = &gpt->buf;
    uint32_t n = batch->n_rows, c = hp->embedding;
    ops->embed(gpt->be, buf->x, gpt->embedding, batch->token_ids, n);
    if (hp->embedding_norm)
        ops->rmsnorm(gpt->be, buf->x, buf->x, NULL, hp->norm_eps, n, c);
    if (!hp->smear)
        return;
    for (uint32_t i = 0; i < n; i++) /* position 0 has no token before, and is not smeared */
        gpt->previous_ids[i] = batch->previous_ids[i] == STEP_NO_TOKEN ? 0 : batch->previous_ids[i];
    ops->embed(gpt->be, buf->previous, gpt->embedding, gpt->previous_ids, n);
    if (hp->embedding_norm)
        ops->rmsnorm(gpt->be, buf->previous, buf->previous, NULL, hp->norm_eps, n, c);
    ops->smear(gpt->be, buf->x, buf->previous, gpt->smear_gate, gpt->smear_lambda, n, c);
}

/* Logits of the wanted rows, to gpt->logits. */
static void head(struct gpt *gpt, const struct step_batch *batch)
{
    const struct hparams *hp = gpt->hp;
    const struct backend_ops *ops = gpt->ops;
    struct gpt_buffers *buf = &gpt->buf;
    uint32_t n = batch->n_logit_rows;
    size_t n_logits = (size_t)n * hp->n_embedding_rows;
    ops->pick_rows(gpt->be, buf->last, buf->x, batch->logit_rows, n, hp->embedding);
    ops->rmsnorm(gpt->be, buf->last, buf->last, gpt->output_norm, hp->norm_eps, n, hp->embedding);
    ops->matmul(gpt->be, buf->logits, buf->last, gpt->output, NULL, false, n);
    if (hp->logit_softcap > 0)
        ops->softcap(gpt->be, buf->logits, hp->logit_softcap, n_logits);
    ops->download(gpt->be, buf->logits, gpt->logits, n_logits);
}

enum status gpt_step(struct gpt *gpt, struct backend_cache *cache, const struct step_batch *batch,
                     float **ret_logits, struct error *err)
{
    REQUIRE(batch->n_rows > 0 && batch->n_rows <= gpt->config.max_rows);
    REQUIRE(batch->n_logit_rows <= gpt->config.max_logit_rows);
    enum status status = gpt->ops->step_begin(gpt->be, batch, err);
    if (status)
        return status;
    embed(gpt, batch);
    if (gpt->has_value_ids)
        gpt->ops->value_ids_write(gpt->be, cache);
    for (uint32_t i = 0; i < gpt->hp->n_layers; i++) {
        gpt_attention_block(gpt, cache, i, batch->n_rows);
        gpt_feed_forward_block(gpt, i, batch->n_rows);
        if (gpt->on_layer)
            gpt->on_layer(gpt->on_layer_ctx);
    }
    if (batch->n_logit_rows > 0)
        head(gpt, batch);
    status = gpt->ops->step_end(gpt->be, err);
    if (!status)
        *ret_logits = gpt->logits;
    return status;
}

void gpt_on_layer(struct gpt *gpt, void (*fn)(void *ctx), void *ctx)
{
    gpt->on_layer = fn;
    gpt->on_layer_ctx = ctx;
}

const struct hparams *gpt_hparams(const struct gpt *gpt)
{
    return gpt->hp;
}

void gpt_bytes(const struct gpt *gpt, size_t *ret_weights, size_t *ret_banks)
{
    *ret_weights = gpt->weight_bytes;
    *ret_banks = value_banks_bytes(gpt->banks);
}
