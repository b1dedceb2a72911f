#ifndef TELLERD_MODEL_HPARAMS_H
#define TELLERD_MODEL_HPARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "tellerd/base/status.h"

/* What a checkpoint says of its model; hparams.c is the one place that knows which shapes are
 * legal.  docs/formats.md has the keys. */
enum model_family { FAMILY_LLAMA, FAMILY_QWEN2, FAMILY_QWEN3, FAMILY_NANOCHAT, FAMILY_COUNT };

enum value_source {
    VALUE_RESIDUAL,      /* v = Wv x, cached */
    VALUE_BANK,          /* v = gamma * E[vid], keys-only layer */
    VALUE_RESIDUAL_BANK, /* v = Wv x + g * gamma * E[vid], cached */
};

enum qk_norm {
    QK_NORM_NONE,
    QK_NORM_BEFORE_ROPE /* weights [D] */,
    QK_NORM_AFTER_ROPE /* no weights, times qk_scale */
};
enum activation { ACTIVATION_SWIGLU, ACTIVATION_RELU_SQUARED };

enum {
    HPARAMS_MAX_LAYERS = 512,
    HPARAMS_MAX_HEADS = 1024,
    HPARAMS_MAX_EMBEDDING = 65536,
    HPARAMS_MAX_FEED_FORWARD = 1 << 20,
    HPARAMS_MAX_VOCAB = 1 << 22,
    HPARAMS_MAX_CONTEXT = 1 << 24,
    HPARAMS_MAX_HEAD_SIZE = 512, /* and a multiple of 32 */
    HPARAMS_NO_ROW = UINT32_MAX,
};

struct hparams_layer {
    enum value_source source;
    uint32_t bank_layer; /* whose attn_v_bank.weight it reads */
    uint32_t window;     /* 0 = full attention */
    float gamma;         /* read from attn_v_bank.gamma by the loader, 1 when absent */
};

struct hparams {
    enum model_family family;
    char name[128];
    uint32_t n_layers, embedding, n_heads, n_kv_heads, head_size, feed_forward;
    uint32_t n_embedding_rows; /* V: rows of token_embd and of the logits, padding included */
    uint32_t n_context;        /* trained context length */
    float norm_eps;
    bool norm_has_weights;
    bool embedding_norm; /* nanochat */
    bool tied_output;
    bool attention_bias;
    enum qk_norm qk_norm;
    float qk_scale;
    enum activation activation;
    float logit_softcap; /* 0 = none */
    bool smear;
    uint32_t smear_channels;
    /* RoPE */
    uint32_t rope_dims;
    bool rope_interleaved;
    bool rope_negative;
    float rope_base;
    float rope_linear_factor; /* positions are divided by it; 1 = none */
    bool rope_llama3; /* HF form of Llama 3 scaling; GGUF brings rope_freqs.weight instead */
    float rope_factor, rope_low_freq_factor, rope_high_freq_factor;
    uint32_t rope_original_context;
    /* Bank of Values */
    bool has_bank;      /* a layer reads a bank by value id */
    uint32_t bank_rows; /* 0 without */
    uint32_t sink_row;  /* HPARAMS_NO_ROW without */
    bool gate_sigmoid;
    uint32_t gate_channels;
    float gate_scale;
    struct hparams_layer *layers; /* [n_layers], owned */
};

/* Checks every field against the limits and against each other.  Errors: BAD_FILE naming the key.
 */
enum status hparams_validate(const struct hparams *hp, struct error *err) WARN_UNUSED;
void hparams_done(struct hparams *hp);

/* Value id of token `id` at `position`: the sink row at position 0 when the model has one, else the
 * id. */
static inline uint32_t hparams_value_id(const struct hparams *hp, uint32_t id, uint32_t position)
{
    return position == 0 && hp->sink_row != HPARAMS_NO_ROW ? hp->sink_row : id;
}

/* Layers that cache values (residual, residual+bank). */
bool hparams_layer_has_values(const struct hparams *hp, uint32_t layer);

/* inv_freq[rope_dims / 2] with sign and scaling; freq_divisors ([rope_dims / 2], from
 * rope_freqs.weight) may be NULL. */
void hparams_rope_inv_freq(const struct hparams *hp, const float *freq_divisors,
                           float *ret_inv_freq);

#endif
