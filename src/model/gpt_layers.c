#include "config.h"

/*
 * The two blocks of a layer, in terms of backend ops.
 *
 *   h = norm(x)    q = Wq h    k = Wk h    (norms and rotation as the family says)
 *   residual        v_j = Wv h_j                       cached
 *   bank            v_j = gamma E[vid_j]               keys and value ids are cached, nothing more
 *   residual+bank   v_j = Wv h_j + g gamma E[vid_j]    cached
 *   x += Wo attention(q, k, v)
 *   x += Wdown (silu(Wgate n) * Wup n)   or   x += Wdown relu(Wup n)^2,   n = norm(x)
 */
#include <math.h>

#include "gpt_priv.h"

/* q and k of the rows: products, rotation, norms. */
static void queries_and_keys(struct gpt *gpt, const struct gpt_layer *l, uint32_t n_rows)
{
    const struct hparams *hp = gpt->hp;
    const struct backend_ops *ops = gpt->ops;
    struct backend *be = gpt->be;
    struct gpt_buffers *buf = &gpt->buf;
    ops->matmul(be, buf->q, buf->h, l->wq, l->bq, false, n_rows);
    ops->matmul(be, buf->k, buf->h, l->wk, l->bk, false, n_rows);
    if (hp->qk_norm == QK_NORM_BEFORE_ROPE) {
        ops->head_norm(be, buf->q, l->q_norm, hp->norm_eps, 1, n_rows, hp->n_heads, hp->head_size);
        ops->head_norm(be, buf->k, l->k_norm, hp->norm_eps, 1, n_rows, hp->n_kv_heads,
                       hp->head_size);
    }
    ops->rope(be, buf->q, &gpt->rope, n_rows, hp->n_heads, hp->head_size);
    ops->rope(be, buf->k, &gpt->rope, n_rows, hp->n_kv_heads, hp->head_size);
    if (hp->qk_norm == QK_NORM_AFTER_ROPE) {
        ops->head_norm(be, buf->q, NULL, hp->norm_eps, hp->qk_scale, n_rows, hp->n_heads,
                       hp->head_size);
        ops->head_norm(be, buf->k, NULL, hp->norm_eps, hp->qk_scale, n_rows, hp->n_kv_heads,
                       hp->head_size);
    }
}

void gpt_attention_block(struct gpt *gpt, struct backend_cache *cache, uint32_t layer,
                         uint32_t n_rows)
{
    const struct hparams *hp = gpt->hp;
    const struct hparams_layer *kind = &hp->layers[layer];
    const struct gpt_layer *l = &gpt->layers[layer];
    const struct backend_weight *bank = value_banks_of(gpt->banks, layer);
    const struct backend_ops *ops = gpt->ops;
    struct backend *be = gpt->be;
    struct gpt_buffers *buf = &gpt->buf;
    struct backend_buffer *values = NULL;
    ops->rmsnorm(be, buf->h, buf->x, l->attn_norm, hp->norm_eps, n_rows, hp->embedding);
    queries_and_keys(gpt, l, n_rows);
    if (kind->source != VALUE_BANK) {
        values = buf->v;
        ops->matmul(be, values, buf->h, l->wv, l->bv, false, n_rows);
    }
    if (kind->source == VALUE_RESIDUAL_BANK)
        ops->bank_add(be, values, bank, kind->gamma, l->bank_gate, hp->gate_scale, buf->h, n_rows,
                      hp->embedding, hp->n_kv_heads, hp->head_size);
    ops->kv_write(be, cache, layer, buf->k, values);
    struct backend_attention attention = {
        .layer = layer,
        .n_heads = hp->n_heads,
        .window = kind->window,
        .scale = 1.0f / sqrtf((float)hp->head_size),
        .bank = kind->source == VALUE_BANK ? bank : NULL,
        .gamma = kind->source == VALUE_BANK ? kind->gamma : 1.0f,
    };
    ops->attention(be, cache, &attention, buf->mixed, buf->q);
    ops->matmul(be, buf->x, buf->mixed, l->wo, NULL, true, n_rows);
}

void gpt_feed_forward_block(struct gpt *gpt, uint32_t layer, uint32_t n_rows)
{
    const struct hparams *hp = gpt->hp;
    const struct gpt_layer *l = &gpt->layers[layer];
    const struct backend_ops *ops = gpt->ops;
    struct backend *be = gpt->be;
    struct gpt_buffers *buf = &gpt->buf;
    size_t n = (size_t)n_rows * hp->feed_forward;
    ops->rmsnorm(be, buf->h, buf->x, l->ffn_norm, hp->norm_eps, n_rows, hp->embedding);
    ops->matmul(be, buf->up, buf->h, l->up, NULL, false, n_rows);
    if (hp->activation == ACTIVATION_RELU_SQUARED) {
        ops->relu_squared(be, buf->up, n);
        ops->matmul(be, buf->x, buf->up, l->down, NULL, true, n_rows);
    } else {
        ops->matmul(be, buf->gate, buf->h, l->gate, NULL, false, n_rows);
        ops->swiglu(be, buf->gate, buf->up, n);
        ops->matmul(be, buf->x, buf->gate, l->down, NULL, true, n_rows);
    }
}
