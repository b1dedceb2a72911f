/*
 * config.json of a Hugging Face directory -> hparams.  A setting that changes the numbers and that
 * tellerd does not compute is refused, never ignored.
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "hf_priv.h"
#include "model_json_priv.h"

/* For the text of an error. */
static int shown(struct text_view view)
{
    return (int)(view.len < 64 ? view.len : 64);
}

static void read_family(struct json_reader *r, const json_t *config, struct hparams *hp)
{
    struct text_view type = {NULL, 0};
    enum model_family family;
    json_get_text(r, config, "model_type", JSON_MUST, &type);
    if (r->status)
        return;
    if (text_view_is(type, "mistral"))
        type = (struct text_view){"llama", 5};
    if (!hparams_family_parse(type.bytes, type.len, &family)) {
        JSON_FAIL(r,
                  "model_type %.*s is not supported; llama, mistral, qwen2, qwen3 and nanochat are",
                  shown(type), type.bytes);
        return;
    }
    hparams_init(hp, family);
    hp->rope_interleaved = false; /* this form always rotates halves */
}

static void refuse_unsupported(struct json_reader *r, const json_t *config,
                               const struct hparams *hp)
{
    static const char *const keys[] = {
        "num_local_experts",      "num_experts",          "quantization_config",
        "attn_logit_softcapping", "logits_scaling",       "residual_multiplier",
        "embedding_multiplier",   "attention_multiplier",
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && !r->status; i++) {
        const json_t *value = json_object_get(config, keys[i]);
        if (value && !json_is_null(value) && !json_is_false(value))
            JSON_FAIL(r, "%s: models with this feature are not supported", keys[i]);
    }
    const char *act = hp->activation == ACTIVATION_SWIGLU ? "silu" : "relu2";
    struct text_view given = {act, strlen(act)};
    float partial = 1.0f;
    json_get_text(r, config, "hidden_act", JSON_MAY, &given);
    if (!r->status && !text_view_is(given, act))
        JSON_FAIL(r, "hidden_act %.*s is not supported; %s is", shown(given), given.bytes, act);
    if (json_get_f32(r, config, "partial_rotary_factor", JSON_MAY, &partial) && partial != 1.0f)
        JSON_FAIL(r, "partial_rotary_factor %g is not supported", (double)partial);
}

static void read_shape(struct json_reader *r, const json_t *config, struct hparams *hp)
{
    uint32_t n_layers = 0;
    json_get_u32(r, config, "num_hidden_layers", JSON_MUST, &n_layers);
    json_get_u32(r, config, "max_position_embeddings", JSON_MUST, &hp->n_context);
    json_get_u32(r, config, "hidden_size", JSON_MUST, &hp->embedding);
    json_get_u32(r, config, "intermediate_size", JSON_MUST, &hp->feed_forward);
    json_get_u32(r, config, "num_attention_heads", JSON_MUST, &hp->n_heads);
    hp->n_kv_heads = hp->n_heads;
    json_get_u32(r, config, "num_key_value_heads", JSON_MAY, &hp->n_kv_heads);
    json_get_f32(r, config, "rms_norm_eps", JSON_MUST, &hp->norm_eps);
    if (!r->status) {
        r->status = hparams_make_layers(hp, n_layers, r->err);
        if (r->status)
            error_prefix(r->err, "%s", r->where);
    }
    if (!json_get_u32(r, config, "head_dim", JSON_MAY, &hp->head_size) && !r->status) {
        if (hp->n_heads == 0 || hp->embedding % hp->n_heads != 0)
            JSON_FAIL(r,
                      "hidden_size %" PRIu32 " is not a multiple of num_attention_heads %" PRIu32
                      ", and head_dim is absent",
                      hp->embedding, hp->n_heads);
        else
            hp->head_size = hp->embedding / hp->n_heads;
    }
    hp->rope_dims = hp->head_size;
}

/* rope_scaling (or rope_parameters, which newer files have). */
static void read_scaling(struct json_reader *r, const json_t *scaling, struct hparams *hp)
{
    struct text_view type = {"default", 7};
    if (!json_get_text(r, scaling, "rope_type", JSON_MAY, &type))
        json_get_text(r, scaling, "type", JSON_MAY, &type);
    if (r->status || text_view_is(type, "default"))
        return;
    if (text_view_is(type, "linear")) {
        json_get_f32(r, scaling, "factor", JSON_MUST, &hp->rope_linear_factor);
    } else if (text_view_is(type, "llama3")) {
        hp->rope_llama3 = true;
        json_get_f32(r, scaling, "factor", JSON_MUST, &hp->rope_factor);
        json_get_f32(r, scaling, "low_freq_factor", JSON_MUST, &hp->rope_low_freq_factor);
        json_get_f32(r, scaling, "high_freq_factor", JSON_MUST, &hp->rope_high_freq_factor);
        json_get_u32(r, scaling, "original_max_position_embeddings", JSON_MUST,
                     &hp->rope_original_context);
    } else {
        JSON_FAIL(r, "RoPE scaling of type %.*s is not supported; linear and llama3 are",
                  shown(type), type.bytes);
    }
}

static void read_rope(struct json_reader *r, const json_t *config, struct hparams *hp)
{
    json_get_f32(r, config, "rope_theta", JSON_MAY, &hp->rope_base);
    const json_t *parameters = json_get(r, config, "rope_parameters", JSON_OBJECT, JSON_MAY);
    const json_t *scaling = json_get(r, config, "rope_scaling", JSON_OBJECT, JSON_MAY);
    if (parameters) {
        json_get_f32(r, parameters, "rope_theta", JSON_MAY, &hp->rope_base);
        read_scaling(r, parameters, hp);
    } else if (scaling) {
        read_scaling(r, scaling, hp);
    }
}

/* -- windows ---------------------------------------------------------------------------------- */

/* A list with one element a layer, NULL when absent. */
static const json_t *get_per_layer(struct json_reader *r, const json_t *object, const char *key,
                                   uint32_t n_layers)
{
    const json_t *list = json_get(r, object, key, JSON_ARRAY, JSON_MAY);
    if (list && json_array_size(list) != n_layers) {
        JSON_FAIL(r, "%s has %zu elements for %" PRIu32 " layers", key, json_array_size(list),
                  n_layers);
        return NULL;
    }
    return list;
}

/* Whether layer i is windowed by one of the two lists; *ret is kept where neither says. */
static void read_layer_window(struct json_reader *r, const json_t *pattern, const json_t *types,
                              uint32_t i, bool *ret)
{
    if (pattern) {
        const json_t *value = json_array_get(pattern, i);
        if (!json_is_boolean(value))
            JSON_FAIL(r, "sliding_window_pattern must be a list of true and false");
        *ret = json_is_true(value);
    } else if (types) {
        struct text_view type = json_text(json_array_get(types, i));
        *ret = type.bytes && text_view_is(type, "sliding_attention");
        if (!type.bytes || (!*ret && !text_view_is(type, "full_attention")))
            JSON_FAIL(r, "layer_types: full_attention and sliding_attention are known, not %.*s",
                      type.bytes ? shown(type) : 5, type.bytes ? type.bytes : "other");
    }
}

static void read_windows(struct json_reader *r, const json_t *config, struct hparams *hp)
{
    bool qwen = hp->family == FAMILY_QWEN2 || hp->family == FAMILY_QWEN3, is_used = !qwen;
    uint32_t window = 0, first = qwen ? 28 : 0; /* the first windowed layer; Qwen's own default */
    json_get_u32(r, config, "sliding_window", JSON_MAY, &window);
    json_get_bool(r, config, "use_sliding_window", &is_used);
    if (qwen)
        json_get_u32(r, config, "max_window_layers", JSON_MAY, &first);
    const json_t *pattern = get_per_layer(r, config, "sliding_window_pattern", hp->n_layers);
    const json_t *types = get_per_layer(r, config, "layer_types", hp->n_layers);
    for (uint32_t i = 0; i < hp->n_layers && !r->status; i++) {
        bool windowed = i >= first;
        read_layer_window(r, pattern, types, i, &windowed);
        hp->layers[i].window = is_used && windowed ? window : 0;
    }
}

static void read_nanochat(struct json_reader *r, const json_t *config, struct hparams *hp)
{
    json_get_f32(r, config, "final_logit_softcapping", JSON_MAY, &hp->logit_softcap);
    if (hp->family != FAMILY_NANOCHAT)
        return;
    json_get_f32(r, config, "qk_scale", JSON_MUST, &hp->qk_scale);
    hp->smear = json_get_u32(r, config, "smear_channels", JSON_MAY, &hp->smear_channels);
}

/* -- Bank of Values --------------------------------------------------------------------------- */

static void read_layer_sources(struct json_reader *r, const json_t *bank, struct hparams *hp)
{
    const json_t *sources = get_per_layer(r, bank, "value_source", hp->n_layers);
    const json_t *from = get_per_layer(r, bank, "source_layer", hp->n_layers);
    if (!sources)
        JSON_FAIL(r, "value_bank.value_source is missing");
    for (uint32_t i = 0; i < hp->n_layers && !r->status; i++) {
        struct hparams_layer *layer = &hp->layers[i];
        struct text_view source = json_text(json_array_get(sources, i));
        if (!source.bytes || !hparams_source_parse(source.bytes, source.len, &layer->source))
            JSON_FAIL(r,
                      "value_bank.value_source of layer %" PRIu32
                      ": residual, bank and residual+bank are known",
                      i);
        hp->has_bank |= layer->source != VALUE_RESIDUAL;
        const json_t *number = from ? json_array_get(from, i) : NULL;
        if (!number)
            continue;
        if (!json_is_integer(number) || json_integer_value(number) < 0 ||
            json_integer_value(number) >= hp->n_layers)
            JSON_FAIL(r, "value_bank.source_layer of layer %" PRIu32 " must be a layer's number",
                      i);
        else
            layer->bank_layer = (uint32_t)json_integer_value(number);
    }
}

static void read_bank(struct json_reader *r, const json_t *config, struct hparams *hp)
{
    struct text_view gate = {"none", 4};
    const json_t *bank = json_get(r, config, "value_bank", JSON_OBJECT, JSON_MAY);
    if (!bank)
        return;
    r->where = "config.json value_bank";
    read_layer_sources(r, bank, hp);
    json_get_u32(r, bank, "rows", JSON_MUST, &hp->bank_rows);
    if (json_get_u32(r, bank, "sink_row", JSON_MAY, &hp->sink_row) && hp->sink_row >= hp->bank_rows)
        JSON_FAIL(r, "sink_row is %" PRIu32 ", but a bank has %" PRIu32 " rows", hp->sink_row,
                  hp->bank_rows);
    json_get_text(r, bank, "gate", JSON_MAY, &gate);
    if (!r->status && text_view_is(gate, "sigmoid"))
        hp->gate_sigmoid = true;
    else if (!r->status && !text_view_is(gate, "none"))
        JSON_FAIL(r, "gate must be none or sigmoid");
    json_get_u32(r, bank, "gate_channels", hp->gate_sigmoid ? JSON_MUST : JSON_MAY,
                 &hp->gate_channels);
    json_get_f32(r, bank, "gate_scale", JSON_MAY, &hp->gate_scale);
    r->where = "config.json";
    if (!r->status && !hp->has_bank) {
        hp->bank_rows = 0;
        hp->sink_row = HPARAMS_NO_ROW;
    }
}

enum status hf_config_read(const json_t *config, struct hparams *hp, bool *ret_has_tied,
                           struct error *err)
{
    struct json_reader r = {"config.json", STATUS_OK, err};
    read_family(&r, config, hp);
    if (r.status)
        return r.status;
    refuse_unsupported(&r, config, hp);
    read_shape(&r, config, hp);
    read_rope(&r, config, hp);
    read_windows(&r, config, hp);
    read_nanochat(&r, config, hp);
    read_bank(&r, config, hp);
    *ret_has_tied = json_get_bool(&r, config, "tie_word_embeddings", &hp->tied_output);
    return r.status;
}
