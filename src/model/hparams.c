/*
 * What a model may look like: the one place that knows which numbers are legal and what each family
 * implies.  The readers of the file formats fill struct hparams, hparams_validate judges it.  Pure;
 * any thread.
 */
#include "config.h"

#include "tellerd/model/hparams.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hparams_priv.h"
#include "tellerd/base/mem.h"
#include "tellerd/base/utf8.h"

static const char *const family_names[FAMILY_COUNT] = {"llama", "qwen2", "qwen3", "nanochat"};
static const char *const source_names[] = {"residual", "bank", "residual+bank"};

const char *hparams_family_name(enum model_family family)
{
    return (unsigned)family < FAMILY_COUNT ? family_names[family] : NULL;
}

bool hparams_family_parse(const char *name, size_t len, enum model_family *ret)
{
    for (unsigned i = 0; i < FAMILY_COUNT; i++) {
        if (strlen(family_names[i]) == len && memcmp(family_names[i], name, len) == 0) {
            *ret = (enum model_family)i;
            return true;
        }
    }
    return false;
}

bool hparams_source_parse(const char *name, size_t len, enum value_source *ret)
{
    for (unsigned i = 0; i < sizeof source_names / sizeof source_names[0]; i++) {
        if (strlen(source_names[i]) == len && memcmp(source_names[i], name, len) == 0) {
            *ret = (enum value_source)i;
            return true;
        }
    }
    return false;
}

void hparams_init(struct hparams *hp, enum model_family family)
{
    bool nanochat = family == FAMILY_NANOCHAT;
    memset(hp, 0, sizeof *hp);
    hp->family = family;
    hp->norm_has_weights = !nanochat;
    hp->embedding_norm = nanochat;
    hp->activation = nanochat ? ACTIVATION_RELU_SQUARED : ACTIVATION_SWIGLU;
    hp->qk_norm = nanochat                 ? QK_NORM_AFTER_ROPE
                  : family == FAMILY_QWEN3 ? QK_NORM_BEFORE_ROPE
                                           : QK_NORM_NONE;
    hp->qk_scale = 1.0f;
    hp->rope_interleaved = family == FAMILY_LLAMA;
    hp->rope_negative = nanochat;
    hp->rope_base = 10000.0f;
    hp->rope_linear_factor = 1.0f;
    hp->sink_row = HPARAMS_NO_ROW;
    hp->gate_scale = 1.0f;
}

enum status hparams_make_layers(struct hparams *hp, uint32_t n_layers, struct error *err)
{
    if (n_layers == 0 || n_layers > HPARAMS_MAX_LAYERS)
        return error_set(err, STATUS_BAD_FILE,
                         "block_count (num_hidden_layers) is %" PRIu32 "; 1 to %d are allowed",
                         n_layers, HPARAMS_MAX_LAYERS);
    hp->n_layers = n_layers;
    hp->layers = xcalloc(n_layers, sizeof *hp->layers);
    for (uint32_t i = 0; i < n_layers; i++) {
        hp->layers[i].source = VALUE_RESIDUAL;
        hp->layers[i].bank_layer = i;
        hp->layers[i].gamma = 1.0f;
    }
    return STATUS_OK;
}

void hparams_set_name(struct hparams *hp, const char *name, size_t len)
{
    size_t used = 0;
    for (size_t at = 0; at < len;) {
        uint32_t code;
        unsigned bad;
        unsigned n = utf8_decode(name + at, len - at, &code, &bad);
        if (used + (n > 0 ? n : 1) >= sizeof hp->name)
            break;
        if (n == 0 || code < 0x20 || (code >= 0x7f && code < 0xa0)) {
            hp->name[used++] = '_';
        } else {
            memcpy(hp->name + used, name + at, n);
            used += n;
        }
        at += n > 0 ? n : bad;
    }
    hp->name[used] = '\0';
}

void hparams_done(struct hparams *hp)
{
    free(hp->layers);
    hp->layers = NULL;
    hp->n_layers = 0;
}

bool hparams_layer_has_values(const struct hparams *hp, uint32_t layer)
{
    return hp->layers[layer].source != VALUE_BANK;
}

/* -- validation ------------------------------------------------------------------------------- */

static enum status check_counts(const struct hparams *hp, struct error *err)
{
    const struct {
        const char *name;
        uint32_t value, max;
    } counts[] = {
        {"block_count (num_hidden_layers)", hp->n_layers, HPARAMS_MAX_LAYERS},
        {"embedding_length (hidden_size)", hp->embedding, HPARAMS_MAX_EMBEDDING},
        {"feed_forward_length (intermediate_size)", hp->feed_forward, HPARAMS_MAX_FEED_FORWARD},
        {"attention.head_count (num_attention_heads)", hp->n_heads, HPARAMS_MAX_HEADS},
        {"attention.head_count_kv (num_key_value_heads)", hp->n_kv_heads, HPARAMS_MAX_HEADS},
        {"attention.key_length (head_dim)", hp->head_size, HPARAMS_MAX_HEAD_SIZE},
        {"context_length (max_position_embeddings)", hp->n_context, HPARAMS_MAX_CONTEXT},
        {"number of embedding rows", hp->n_embedding_rows, HPARAMS_MAX_VOCAB},
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (counts[i].value == 0 || counts[i].value > counts[i].max)
            return error_set(err, STATUS_BAD_FILE,
                             "%s is %" PRIu32 "; 1 to %" PRIu32 " are allowed", counts[i].name,
                             counts[i].value, counts[i].max);
    }
    return STATUS_OK;
}

static enum status check_heads(const struct hparams *hp, struct error *err)
{
    if (hp->n_kv_heads > hp->n_heads || hp->n_heads % hp->n_kv_heads != 0)
        return error_set(err, STATUS_BAD_FILE,
                         "attention.head_count_kv (num_key_value_heads) is %" PRIu32
                         "; it must divide the %" PRIu32 " query heads",
                         hp->n_kv_heads, hp->n_heads);
    if (hp->head_size % 32 != 0)
        return error_set(err, STATUS_BAD_FILE,
                         "attention.key_length (head_dim) is %" PRIu32
                         "; only multiples of 32 are supported",
                         hp->head_size);
    if (hp->rope_dims < 2 || hp->rope_dims % 2 != 0 || hp->rope_dims > hp->head_size)
        return error_set(err, STATUS_BAD_FILE,
                         "rope.dimension_count is %" PRIu32
                         "; it must be even and at most the head size %" PRIu32,
                         hp->rope_dims, hp->head_size);
    if (hp->smear && (hp->smear_channels == 0 || hp->smear_channels > hp->embedding))
        return error_set(err, STATUS_BAD_FILE,
                         "smear.channels is %" PRIu32 "; 1 to %" PRIu32 " are allowed",
                         hp->smear_channels, hp->embedding);
    return STATUS_OK;
}

static enum status check_numbers(const struct hparams *hp, struct error *err)
{
    const struct {
        const char *name;
        float value, min, max;
    } numbers[] = {
        {"attention.layer_norm_rms_epsilon (rms_norm_eps)", hp->norm_eps, 1e-30f, 1.0f},
        {"rope.freq_base (rope_theta)", hp->rope_base, 1.0f, 1e30f},
        {"rope.scaling.factor", hp->rope_linear_factor, 1e-3f, 1e6f},
        {"attention.qk_scale", hp->qk_scale, 1e-6f, 1e6f},
        {"value_bank.gate_scale", hp->gate_scale, -1e6f, 1e6f},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        /* written so that NaN fails */
        if (!(numbers[i].value >= numbers[i].min && numbers[i].value <= numbers[i].max))
            return error_set(err, STATUS_BAD_FILE, "%s is %g; %g to %g are allowed",
                             numbers[i].name, (double)numbers[i].value, (double)numbers[i].min,
                             (double)numbers[i].max);
    }
    if (!(hp->logit_softcap >= 0.0f && hp->logit_softcap <= 1e6f))
        return error_set(err, STATUS_BAD_FILE,
                         "final_logit_softcapping is %g; it must be positive, or 0 for none",
                         (double)hp->logit_softcap);
    if (hp->qk_scale != 1.0f && hp->qk_norm != QK_NORM_AFTER_ROPE)
        return error_set(err, STATUS_BAD_FILE,
                         "attention.qk_scale is known for the family nanochat only");
    if (!hp->rope_llama3)
        return STATUS_OK;
    if (!(hp->rope_factor >= 1.0f && hp->rope_factor <= 1e6f && hp->rope_low_freq_factor > 0.0f &&
          hp->rope_high_freq_factor > hp->rope_low_freq_factor &&
          hp->rope_high_freq_factor <= 1e6f) ||
        hp->rope_original_context == 0 || hp->rope_original_context > HPARAMS_MAX_CONTEXT)
        return error_set(err, STATUS_BAD_FILE,
                         "rope_scaling llama3: factor must be at least 1, high_freq_factor greater "
                         "than low_freq_factor, which must be positive, and "
                         "original_max_position_embeddings must be positive");
    return STATUS_OK;
}

static enum status check_layers(const struct hparams *hp, struct error *err)
{
    bool reads_bank = false;
    for (uint32_t i = 0; i < hp->n_layers; i++) {
        const struct hparams_layer *layer = &hp->layers[i];
        if ((unsigned)layer->source > VALUE_RESIDUAL_BANK)
            return error_set(err, STATUS_BAD_FILE,
                             "attention.value_source of layer %" PRIu32 " is unknown", i);
        reads_bank |= layer->source != VALUE_RESIDUAL;
        if (layer->bank_layer >= hp->n_layers)
            return error_set(err, STATUS_BAD_FILE,
                             "value_bank.source_layer of layer %" PRIu32 " is %" PRIu32
                             ", but there are %" PRIu32 " layers",
                             i, layer->bank_layer, hp->n_layers);
        if (!isfinite(layer->gamma))
            return error_set(err, STATUS_BAD_FILE,
                             "tensor blk.%" PRIu32 ".attn_v_bank.gamma is not a finite number", i);
    }
    if (reads_bank != hp->has_bank)
        return error_set(err, STATUS_BAD_FILE,
                         "attention.value_source and value_bank.rows must be given together");
    return STATUS_OK;
}

static enum status check_bank(const struct hparams *hp, struct error *err)
{
    if (!hp->has_bank) {
        if (hp->sink_row != HPARAMS_NO_ROW)
            return error_set(err, STATUS_BAD_FILE,
                             "value_bank.sink_row is given, but no layer reads a bank");
        return STATUS_OK;
    }
    if (hp->bank_rows == 0 || hp->bank_rows > HPARAMS_MAX_VOCAB)
        return error_set(err, STATUS_BAD_FILE,
                         "value_bank.rows is %" PRIu32 "; 1 to %d are allowed", hp->bank_rows,
                         HPARAMS_MAX_VOCAB);
    if (hp->sink_row != HPARAMS_NO_ROW && hp->sink_row >= hp->bank_rows)
        return error_set(err, STATUS_BAD_FILE,
                         "value_bank.sink_row is %" PRIu32 ", but a bank has %" PRIu32 " rows",
                         hp->sink_row, hp->bank_rows);
    if (hp->gate_sigmoid && (hp->gate_channels == 0 || hp->gate_channels > hp->embedding))
        return error_set(err, STATUS_BAD_FILE,
                         "value_bank.gate_channels is %" PRIu32 "; 1 to %" PRIu32 " are allowed",
                         hp->gate_channels, hp->embedding);
    return STATUS_OK;
}

enum status hparams_validate(const struct hparams *hp, struct error *err)
{
    if (!hparams_family_name(hp->family))
        return error_set(err, STATUS_BAD_FILE, "unknown model family");
    enum status status = check_counts(hp, err);
    if (!status)
        status = check_heads(hp, err);
    if (!status)
        status = check_numbers(hp, err);
    if (!status)
        status = check_layers(hp, err);
    if (!status)
        status = check_bank(hp, err);
    return status;
}

/* -- RoPE ------------------------------------------------------------------------------------- */

/* What Llama 3's scaling divides a frequency by: nothing for short waves, the factor for long ones,
 * a blend between. */
static double llama3_divisor(const struct hparams *hp, double frequency)
{
    const double two_pi = 6.283185307179586476925286766559;
    double turns = hp->rope_original_context * frequency / two_pi;
    double low = hp->rope_low_freq_factor, high = hp->rope_high_freq_factor;
    double share = (turns - low) / (high - low);
    share = share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share;
    return 1.0 / (share + (1.0 - share) / hp->rope_factor);
}

void hparams_rope_inv_freq(const struct hparams *hp, const float *freq_divisors,
                           float *ret_inv_freq)
{
    for (uint32_t i = 0; i < hp->rope_dims / 2; i++) {
        double frequency = pow(hp->rope_base, -2.0 * i / hp->rope_dims);
        double divisor = hp->rope_linear_factor;
        if (hp->rope_llama3)
            divisor *= llama3_divisor(hp, frequency);
        if (freq_divisors)
            divisor *= freq_divisors[i];
        frequency /= divisor;
        ret_inv_freq[i] = (float)(hp->rope_negative ? -frequency : frequency);
    }
}
