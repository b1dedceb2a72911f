#include "config.h"

/*
 * Binds a checkpoint's tensors to the backend: names of docs/formats.md, shapes by hparams.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gpt_priv.h"
#include "tellerd/base/mem.h"

/* A binding in progress. */
struct binder {
    struct gpt *gpt;
    const struct checkpoint *cp;
    struct error *err;
    enum status status; /* of the first failure; then nothing more is bound */
};

static enum status find(const struct checkpoint *cp, const char *name, uint64_t rows,
                        uint64_t columns, struct tensor *ret, struct error *err)
{
    if (!checkpoint_tensor(cp, name, ret))
        return error_set(err, STATUS_BAD_FILE, "the model has no tensor %s", name);
    if (ret->rows != rows || ret->columns != columns)
        return error_set(err, STATUS_BAD_FILE, "%s is %llu x %llu, not %llu x %llu", name,
                         (unsigned long long)ret->rows, (unsigned long long)ret->columns,
                         (unsigned long long)rows, (unsigned long long)columns);
    return STATUS_OK;
}

static void bind(struct binder *b, struct backend_weight **slot, const char *name,
                 enum backend_use use, uint64_t rows, uint64_t columns)
{
    struct tensor tensor;
    if (b->status)
        return;
    b->status = find(b->cp, name, rows, columns, &tensor, b->err);
    if (b->status)
        return;
    b->status = b->gpt->ops->weight_new(b->gpt->be, &tensor, use, slot, b->err);
    if (b->status)
        error_prefix(b->err, "%s", name);
    b->gpt->weight_bytes += tensor.size_bytes;
}

static void bind_layer(struct binder *b, struct backend_weight **slot, uint32_t layer,
                       const char *name, enum backend_use use, uint64_t rows, uint64_t columns)
{
    char full[64];
    snprintf(full, sizeof(full), "blk.%u.%s", layer, name);
    bind(b, slot, full, use, rows, columns);
}

static void bind_attention(struct binder *b, uint32_t i)
{
    const struct hparams *hp = b->gpt->hp;
    struct gpt_layer *l = &b->gpt->layers[i];
    uint64_t c = hp->embedding, d = hp->head_size;
    uint64_t q = hp->n_heads * d, kv = hp->n_kv_heads * d;
    bool has_values = hparams_layer_has_values(hp, i);
    if (hp->norm_has_weights)
        bind_layer(b, &l->attn_norm, i, "attn_norm.weight", BACKEND_VECTOR, 1, c);
    bind_layer(b, &l->wq, i, "attn_q.weight", BACKEND_MATRIX, q, c);
    bind_layer(b, &l->wk, i, "attn_k.weight", BACKEND_MATRIX, kv, c);
    if (has_values)
        bind_layer(b, &l->wv, i, "attn_v.weight", BACKEND_MATRIX, kv, c);
    bind_layer(b, &l->wo, i, "attn_output.weight", BACKEND_MATRIX, c, q);
    if (hp->attention_bias) {
        bind_layer(b, &l->bq, i, "attn_q.bias", BACKEND_VECTOR, 1, q);
        bind_layer(b, &l->bk, i, "attn_k.bias", BACKEND_VECTOR, 1, kv);
        if (has_values)
            bind_layer(b, &l->bv, i, "attn_v.bias", BACKEND_VECTOR, 1, kv);
    }
    if (hp->qk_norm == QK_NORM_BEFORE_ROPE) {
        bind_layer(b, &l->q_norm, i, "attn_q_norm.weight", BACKEND_VECTOR, 1, d);
        bind_layer(b, &l->k_norm, i, "attn_k_norm.weight", BACKEND_VECTOR, 1, d);
    }
    if (hp->layers[i].source == VALUE_RESIDUAL_BANK && hp->gate_sigmoid)
        bind_layer(b, &l->bank_gate, i, "attn_v_gate.weight", BACKEND_VECTOR, hp->n_kv_heads,
                   hp->gate_channels);
}

static void bind_feed_forward(struct binder *b, uint32_t i)
{
    const struct hparams *hp = b->gpt->hp;
    struct gpt_layer *l = &b->gpt->layers[i];
    uint64_t c = hp->embedding, f = hp->feed_forward;
    if (hp->norm_has_weights)
        bind_layer(b, &l->ffn_norm, i, "ffn_norm.weight", BACKEND_VECTOR, 1, c);
    if (hp->activation == ACTIVATION_SWIGLU)
        bind_layer(b, &l->gate, i, "ffn_gate.weight", BACKEND_MATRIX, f, c);
    bind_layer(b, &l->up, i, "ffn_up.weight", BACKEND_MATRIX, f, c);
    bind_layer(b, &l->down, i, "ffn_down.weight", BACKEND_MATRIX, c, f);
}

/* Tensors outside of the layers. */
static void bind_ends(struct binder *b)
{
    struct gpt *gpt = b->gpt;
    const struct hparams *hp = gpt->hp;
    uint64_t c = hp->embedding, v = hp->n_embedding_rows;
    bind(b, &gpt->embedding, "token_embd.weight", BACKEND_TABLE, v, c);
    if (hp->norm_has_weights)
        bind(b, &gpt->output_norm, "output_norm.weight", BACKEND_VECTOR, 1, c);
    bind(b, &gpt->output, hp->tied_output ? "token_embd.weight" : "output.weight", BACKEND_MATRIX,
         v, c);
    if (hp->smear) {
        struct tensor lambda;
        bind(b, &gpt->smear_gate, "smear_gate.weight", BACKEND_VECTOR, 1, hp->smear_channels);
        if (!b->status)
            b->status = find(b->cp, "smear_lambda", 1, 1, &lambda, b->err);
        if (!b->status && tensor_block_elements(lambda.type) != 1)
            b->status = error_set(b->err, STATUS_BAD_FILE, "smear_lambda is %s, not f32",
                                  tensor_type_name(lambda.type));
        if (!b->status)
            tensor_dequantize(lambda.type, lambda.data, &gpt->smear_lambda, 1);
    }
}

/* inv_freq, with the divisors that a file may bring. */
static void bind_rope(struct binder *b)
{
    struct gpt *gpt = b->gpt;
    const struct hparams *hp = gpt->hp;
    uint32_t half = hp->rope_dims / 2;
    struct tensor tensor;
    float *divisors = NULL;
    if (!b->status && checkpoint_tensor(b->cp, "rope_freqs.weight", &tensor)) {
        b->status = find(b->cp, "rope_freqs.weight", 1, half, &tensor, b->err);
        if (!b->status && tensor_block_elements(tensor.type) != 1)
            b->status = error_set(b->err, STATUS_BAD_FILE, "rope_freqs.weight is %s, not f32",
                                  tensor_type_name(tensor.type));
        if (!b->status) {
            divisors = xcalloc(half, sizeof(float));
            tensor_dequantize(tensor.type, tensor.data, divisors, half);
        }
    }
    gpt->inv_freq = xcalloc(half, sizeof(float));
    if (!b->status)
        hparams_rope_inv_freq(hp, divisors, gpt->inv_freq);
    free(divisors);
    gpt->rope = (struct backend_rope){
        .n_dims = hp->rope_dims, .interleaved = hp->rope_interleaved, .inv_freq = gpt->inv_freq};
}

enum status gpt_weights_bind(struct gpt *gpt, const struct checkpoint *cp, struct error *err)
{
    struct binder b = {.gpt = gpt, .cp = cp, .err = err};
    const struct hparams *hp = gpt->hp;
    gpt->layers = xcalloc(hp->n_layers, sizeof(*gpt->layers));
    bind_rope(&b);
    bind_ends(&b);
    for (uint32_t i = 0; i < hp->n_layers && !b.status; i++) {
        bind_attention(&b, i);
        bind_feed_forward(&b, i);
        if (gpt->config.on_progress)
            gpt->config.on_progress(gpt->config.progress_ctx, (double)(i + 1) / hp->n_layers);
    }
    if (!b.status)
        b.status = value_banks_new(cp, gpt->be, gpt->config.bank_type, &gpt->banks, err);
    return b.status;
}

void gpt_weights_free(struct gpt *gpt)
{
    struct backend_weight *ends[] = {gpt->embedding, gpt->output_norm, gpt->output,
                                     gpt->smear_gate};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        gpt->ops->weight_free(gpt->be, ends[i]);
    for (uint32_t i = 0; gpt->layers && i < gpt->hp->n_layers; i++) {
        struct gpt_layer *l = &gpt->layers[i];
        struct backend_weight *all[] = {l->attn_norm, l->wq,       l->wk,   l->wv,     l->wo,
                                        l->bq,        l->bk,       l->bv,   l->q_norm, l->k_norm,
                                        l->bank_gate, l->ffn_norm, l->gate, l->up,     l->down};
        for (size_t j = 0; j < sizeof(all) / sizeof(all[0]); j++)
            gpt->ops->weight_free(gpt->be, all[j]);
    }
    free(gpt->layers);
    value_banks_free(gpt->banks);
    free(gpt->inv_freq);
}
