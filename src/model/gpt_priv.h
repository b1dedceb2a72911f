#ifndef TELLERD_MODEL_GPT_PRIV_H
#define TELLERD_MODEL_GPT_PRIV_H

#include "tellerd/model/gpt.h"
#include "value_bank_priv.h"

/* A layer's weights; NULL where the family has none. */
struct gpt_layer {
    struct backend_weight *attn_norm, *wq, *wk, *wv, *wo;
    struct backend_weight *bq, *bk, *bv;
    struct backend_weight *q_norm, *k_norm;
    struct backend_weight *bank_gate;
    struct backend_weight *ffn_norm, *gate, *up, *down;
};

/* Activations of a step, [max_rows, ...]; NULL where the family needs none. */
struct gpt_buffers {
    struct backend_buffer *x, *h;         /* C: residual stream, normed copy */
    struct backend_buffer *previous;      /* C: embeddings of the tokens before (smear) */
    struct backend_buffer *q, *mixed;     /* H * D: queries, attention's output */
    struct backend_buffer *k, *v;         /* K * D */
    struct backend_buffer *gate, *up;     /* F */
    struct backend_buffer *last, *logits; /* [max_logit_rows, C], [max_logit_rows, V] */
};

struct gpt {
    struct backend *be;
    const struct backend_ops *ops;
    const struct hparams *hp; /* the checkpoint's */
    struct gpt_config config;
    bool *layer_has_values; /* [n_layers] */
    bool has_value_ids;     /* a layer reads values by id from the cache */

    struct backend_weight *embedding, *output_norm, *output;
    struct backend_weight *smear_gate;
    float smear_lambda;
    struct gpt_layer *layers; /* [n_layers] */
    struct value_banks *banks;
    float *inv_freq; /* [rope_dims / 2] */
    struct backend_rope rope;
    size_t weight_bytes;

    struct gpt_buffers buf;
    uint32_t *previous_ids; /* [max_rows] */
    float *logits;          /* [max_logit_rows, V] */
    size_t logits_bytes;

    void (*on_layer)(void *ctx); /* NULL: nobody wants to know */
    void *on_layer_ctx;
};

/* gpt_weights.c: finds, checks and binds all tensors; frees them. */
enum status gpt_weights_bind(struct gpt *gpt, const struct checkpoint *cp,
                             struct error *err) WARN_UNUSED;
void gpt_weights_free(struct gpt *gpt);

/* gpt_layers.c: one layer on the rows in buf.x, in place. */
void gpt_attention_block(struct gpt *gpt, struct backend_cache *cache, uint32_t layer,
                         uint32_t n_rows);
void gpt_feed_forward_block(struct gpt *gpt, uint32_t layer, uint32_t n_rows);

#endif
