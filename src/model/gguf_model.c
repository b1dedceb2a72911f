/*
 * From a parsed GGUF file to a model's description: keys to hparams, vocabulary and template
 * (docs/formats.md has the list).  The type of every known key is checked.  Reading goes on after
 * the first failure without effect, so the code below is a list of keys.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_priv.h"
#include "gguf_priv.h"
#include "tellerd/base/mem.h"

/* Whether a key must be there. */
enum need { OPTIONAL, REQUIRED };

struct reader {
    const struct gguf *file;
    const char *family;
    enum status status; /* of the first failure */
    struct error *err;
};

#define FAIL(reader, ...) \
    ((reader)->status = error_set((reader)->err, STATUS_BAD_FILE, __VA_ARGS__))

/* The value of a key of that type; a key with a leading dot gets the family in front.  NULL when it
 * is absent, of another type, or something failed before. */
static const struct gguf_value *get(struct reader *r, const char *key, enum gguf_type type,
                                    enum need need)
{
    char full[128];
    snprintf(full, sizeof full, "%s%s", key[0] == '.' ? r->family : "", key);
    if (r->status)
        return NULL;
    const struct gguf_value *value = gguf_find(r->file, full);
    if (!value) {
        if (need == REQUIRED)
            FAIL(r, "key %s is missing", full);
        return NULL;
    }
    if (value->type != type) {
        FAIL(r, "key %s must be %s, not %s", full, gguf_type_name(type),
             gguf_type_name(value->type));
        return NULL;
    }
    return value;
}

/* The same for an array of elements of that type. */
static const struct gguf_value *get_array(struct reader *r, const char *key, enum gguf_type element,
                                          enum need need)
{
    const struct gguf_value *value = get(r, key, GGUF_ARRAY, need);
    if (value && value->element != element) {
        FAIL(r, "key %s%s must be an array of %s, not of %s", key[0] == '.' ? r->family : "", key,
             gguf_type_name(element), gguf_type_name(value->element));
        return NULL;
    }
    return value;
}

/* An array with one element a layer. */
static const struct gguf_value *get_per_layer(struct reader *r, const char *key,
                                              enum gguf_type element, uint32_t n_layers)
{
    const struct gguf_value *value = get_array(r, key, element, OPTIONAL);
    if (value && value->count != n_layers) {
        FAIL(r, "key %s%s has %" PRIu64 " elements for %" PRIu32 " layers", r->family, key,
             value->count, n_layers);
        return NULL;
    }
    return value;
}

/* These leave *ret as it is when the key is absent, and say whether it was there. */
static bool get_u32(struct reader *r, const char *key, enum need need, uint32_t *ret)
{
    const struct gguf_value *value = get(r, key, GGUF_U32, need);
    if (value)
        *ret = gguf_u32_at(value, 0);
    return value != NULL;
}

static bool get_f32(struct reader *r, const char *key, enum need need, float *ret)
{
    const struct gguf_value *value = get(r, key, GGUF_F32, need);
    if (value)
        *ret = gguf_f32_at(value, 0);
    return value != NULL;
}

static bool get_bool(struct reader *r, const char *key, bool *ret)
{
    const struct gguf_value *value = get(r, key, GGUF_BOOL, OPTIONAL);
    if (value)
        *ret = gguf_bool_at(value, 0);
    return value != NULL;
}

static bool get_string(struct reader *r, const char *key, enum need need, struct text_view *ret)
{
    const struct gguf_value *value = get(r, key, GGUF_STRING, need);
    if (value)
        *ret = (struct text_view){(const char *)value->data, value->size};
    return value != NULL;
}

/* -- hyper-parameters ------------------------------------------------------------------------- */

static void read_family(struct reader *r, struct hparams *hp)
{
    struct text_view name = {NULL, 0};
    enum model_family family;
    uint32_t parts = 1;
    r->family = "";
    get_string(r, "general.architecture", REQUIRED, &name);
    if (r->status)
        return;
    if (!hparams_family_parse(name.bytes, name.len, &family)) {
        FAIL(r, "general.architecture %.*s is not supported; llama, qwen2, qwen3 and nanochat are",
             (int)(name.len < 64 ? name.len : 64), name.bytes);
        return;
    }
    hparams_init(hp, family);
    r->family = hparams_family_name(family);
    const struct gguf_value *split = gguf_find(r->file, "split.count");
    if (split && split->type == GGUF_U16)
        parts = split->data[0] | (uint32_t)split->data[1] << 8;
    else
        get_u32(r, "split.count", OPTIONAL, &parts);
    if (parts > 1)
        FAIL(r, "this is one of %" PRIu32 " parts of a split file; join them first", parts);
    if (get_string(r, "general.name", OPTIONAL, &name))
        hparams_set_name(hp, name.bytes, name.len);
}

/* Things that change the numbers and that tellerd does not compute: refused rather than ignored. */
static void refuse_unsupported(struct reader *r)
{
    static const char *const keys[] = {
        ".expert_count",
        ".logit_scale",
        ".residual_scale",
        ".embedding_scale",
        ".attention.scale",
        ".attn_logit_softcapping",
        ".attention.clamp_kqv",
        ".attention.max_alibi_bias",
        ".rope.scaling.attn_factor",
        ".use_parallel_residual",
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && !r->status; i++) {
        char full[128];
        snprintf(full, sizeof full, "%s%s", r->family, keys[i]);
        const struct gguf_value *value = gguf_find(r->file, full);
        bool zero = value && value->type != GGUF_ARRAY && value->type != GGUF_STRING;
        for (size_t k = 0; zero && k < value->size; k++)
            zero = value->data[k] == 0;
        if (value && !zero)
            FAIL(r, "key %s: models with this feature are not supported", full);
    }
}

static void read_shape(struct reader *r, struct hparams *hp, struct error *err)
{
    uint32_t n_layers = 0;
    get_u32(r, ".block_count", REQUIRED, &n_layers);
    get_u32(r, ".context_length", REQUIRED, &hp->n_context);
    get_u32(r, ".embedding_length", REQUIRED, &hp->embedding);
    get_u32(r, ".feed_forward_length", REQUIRED, &hp->feed_forward);
    get_u32(r, ".attention.head_count", REQUIRED, &hp->n_heads);
    hp->n_kv_heads = hp->n_heads;
    get_u32(r, ".attention.head_count_kv", OPTIONAL, &hp->n_kv_heads);
    get_f32(r, ".attention.layer_norm_rms_epsilon", REQUIRED, &hp->norm_eps);
    if (!r->status)
        r->status = hparams_make_layers(hp, n_layers, err);
    bool has_size = get_u32(r, ".attention.key_length", OPTIONAL, &hp->head_size);
    uint32_t value_size = 0;
    if (get_u32(r, ".attention.value_length", OPTIONAL, &value_size) && !has_size) {
        hp->head_size = value_size;
        has_size = true;
    }
    if (r->status)
        return;
    if (!has_size && (hp->n_heads == 0 || hp->embedding % hp->n_heads != 0)) {
        FAIL(r,
             "%s.embedding_length %" PRIu32 " is not a multiple of attention.head_count %" PRIu32
             ", and attention.key_length is absent",
             r->family, hp->embedding, hp->n_heads);
        return;
    }
    if (!has_size)
        hp->head_size = hp->embedding / hp->n_heads;
    if (value_size != 0 && value_size != hp->head_size)
        FAIL(r,
             "attention.key_length %" PRIu32 " and attention.value_length %" PRIu32
             " must be equal",
             hp->head_size, value_size);
}

static void read_rope(struct reader *r, struct hparams *hp)
{
    struct text_view type = {"linear", 6};
    uint32_t original = 0;
    float factor = 1.0f;
    get_f32(r, ".rope.freq_base", OPTIONAL, &hp->rope_base);
    hp->rope_dims = hp->head_size;
    get_u32(r, ".rope.dimension_count", OPTIONAL, &hp->rope_dims);
    get_f32(r, ".rope.scaling.factor", OPTIONAL, &factor);
    get_u32(r, ".rope.scaling.original_context_length", OPTIONAL, &original);
    get_string(r, ".rope.scaling.type", OPTIONAL, &type);
    if (r->status || text_view_is(type, "none"))
        return;
    if (text_view_is(type, "linear"))
        hp->rope_linear_factor = factor;
    else
        FAIL(r, "%s.rope.scaling.type %.*s is not supported; none and linear are", r->family,
             (int)(type.len < 64 ? type.len : 64), type.bytes);
}

static void read_windows(struct reader *r, struct hparams *hp)
{
    uint32_t window = 0;
    get_u32(r, ".attention.sliding_window", OPTIONAL, &window);
    const struct gguf_value *pattern =
        get_per_layer(r, ".attention.sliding_window_pattern", GGUF_BOOL, hp->n_layers);
    for (uint32_t i = 0; i < hp->n_layers && !r->status; i++)
        hp->layers[i].window = !pattern || gguf_bool_at(pattern, i) ? window : 0;
}

static void read_nanochat(struct reader *r, struct hparams *hp)
{
    enum need need = hp->family == FAMILY_NANOCHAT ? REQUIRED : OPTIONAL;
    get_f32(r, ".attention.qk_scale", need, &hp->qk_scale);
    get_f32(r, ".final_logit_softcapping", OPTIONAL, &hp->logit_softcap);
    hp->smear = get_u32(r, ".smear.channels", OPTIONAL, &hp->smear_channels);
    if (hp->smear && hp->family != FAMILY_NANOCHAT)
        FAIL(r, "key %s.smear.channels is known for the family nanochat only", r->family);
}

static void read_value_sources(struct reader *r, struct hparams *hp)
{
    const struct gguf_value *sources =
        get_per_layer(r, ".attention.value_source", GGUF_STRING, hp->n_layers);
    const struct gguf_value *from =
        get_per_layer(r, ".value_bank.source_layer", GGUF_U32, hp->n_layers);
    if (r->status)
        return;
    struct text_view names[HPARAMS_MAX_LAYERS];
    if (sources)
        gguf_string_views(sources, names);
    for (uint32_t i = 0; i < hp->n_layers && !r->status; i++) {
        struct hparams_layer *layer = &hp->layers[i];
        if (from)
            layer->bank_layer = gguf_u32_at(from, i);
        if (sources && !hparams_source_parse(names[i].bytes, names[i].len, &layer->source))
            FAIL(r,
                 "%s.attention.value_source of layer %" PRIu32
                 " is \"%.*s\"; residual, bank and residual+bank are known",
                 r->family, i, (int)(names[i].len < 64 ? names[i].len : 64), names[i].bytes);
        hp->has_bank |= layer->source != VALUE_RESIDUAL;
    }
}

static void read_bank(struct reader *r, struct hparams *hp)
{
    struct text_view gate = {"none", 4};
    read_value_sources(r, hp);
    get_u32(r, ".value_bank.rows", hp->has_bank ? REQUIRED : OPTIONAL, &hp->bank_rows);
    if (get_u32(r, ".value_bank.sink_row", OPTIONAL, &hp->sink_row) &&
        hp->sink_row >= hp->bank_rows)
        FAIL(r, "%s.value_bank.sink_row is %" PRIu32 ", but a bank has %" PRIu32 " rows", r->family,
             hp->sink_row, hp->bank_rows);
    get_string(r, ".value_bank.gate", OPTIONAL, &gate);
    if (!r->status && text_view_is(gate, "sigmoid"))
        hp->gate_sigmoid = true;
    else if (!r->status && !text_view_is(gate, "none"))
        FAIL(r, "%s.value_bank.gate must be none or sigmoid", r->family);
    get_u32(r, ".value_bank.gate_channels", hp->gate_sigmoid ? REQUIRED : OPTIONAL,
            &hp->gate_channels);
    get_f32(r, ".value_bank.gate_scale", OPTIONAL, &hp->gate_scale);
    if (!r->status && !hp->has_bank) {
        hp->bank_rows = 0;
        hp->sink_row = HPARAMS_NO_ROW;
    }
}

/* -- vocabulary ------------------------------------------------------------------------------- */

static void read_kind(struct reader *r, struct vocab_source *vocab)
{
    struct text_view model = {NULL, 0};
    get_string(r, "tokenizer.ggml.model", REQUIRED, &model);
    if (r->status)
        return;
    if (text_view_is(model, "gpt2"))
        vocab->kind = TOKENIZER_BPE;
    else if (text_view_is(model, "llama"))
        vocab->kind = TOKENIZER_SPM;
    else if (text_view_is(model, "t5"))
        vocab->kind = TOKENIZER_UNIGRAM;
    else
        FAIL(r, "tokenizer.ggml.model %.*s is not supported; gpt2, llama and t5 are",
             (int)(model.len < 64 ? model.len : 64), model.bytes);
}

static void read_split(struct reader *r, struct vocab_source *vocab)
{
    static const struct {
        const char *name;
        enum tokenizer_split split;
    } splits[] = {
        {"default", SPLIT_GPT2},  {"gpt-2", SPLIT_GPT2},        {"llama-bpe", SPLIT_LLAMA3},
        {"llama3", SPLIT_LLAMA3}, {"llama-v3", SPLIT_LLAMA3},   {"qwen2", SPLIT_QWEN2},
        {"smollm", SPLIT_SMOLLM}, {"nanochat", SPLIT_NANOCHAT},
    };
    struct text_view pre = {"default", 7};
    vocab->split = SPLIT_NONE;
    get_string(r, "tokenizer.ggml.pre", OPTIONAL, &pre);
    if (r->status || vocab->kind != TOKENIZER_BPE)
        return;
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        if (text_view_is(pre, splits[i].name)) {
            vocab->split = splits[i].split;
            return;
        }
    }
    FAIL(r,
         "tokenizer.ggml.pre %.*s is not supported; gpt-2, llama-bpe, qwen2, smollm and nanochat "
         "are",
         (int)(pre.len < 64 ? pre.len : 64), pre.bytes);
}

static struct text_view *read_texts(struct reader *r, struct checkpoint *cp, const char *key,
                                    uint32_t *ret_n)
{
    const struct gguf_value *value = get_array(r, key, GGUF_STRING, REQUIRED);
    if (!value)
        return NULL;
    if (value->count > HPARAMS_MAX_VOCAB) {
        FAIL(r, "key %s has %" PRIu64 " elements; at most %d are allowed", key, value->count,
             HPARAMS_MAX_VOCAB);
        return NULL;
    }
    struct text_view *views = checkpoint_alloc(cp, value->count, sizeof *views, r->err);
    if (!views) {
        r->status = STATUS_BAD_FILE;
        return NULL;
    }
    gguf_string_views(value, views);
    *ret_n = (uint32_t)value->count;
    return views;
}

/* An array that must have one element a token. */
static const struct gguf_value *get_per_token(struct reader *r, const char *key,
                                              enum gguf_type element, enum need need,
                                              uint32_t n_tokens)
{
    const struct gguf_value *value = get_array(r, key, element, need);
    if (value && value->count != n_tokens) {
        FAIL(r, "key %s has %" PRIu64 " elements for %" PRIu32 " tokens", key, value->count,
             n_tokens);
        return NULL;
    }
    return value;
}

static void read_types(struct reader *r, struct checkpoint *cp)
{
    const char *key = "tokenizer.ggml.token_type";
    const struct gguf_value *any = gguf_find(r->file, key);
    enum gguf_type element = any && any->element == GGUF_U32 ? GGUF_U32 : GGUF_I32;
    const struct gguf_value *value = get_per_token(r, key, element, OPTIONAL, cp->vocab.n_tokens);
    if (!value)
        return;
    uint8_t *types = checkpoint_alloc(cp, value->count, sizeof *types, r->err);
    if (!types) {
        r->status = STATUS_BAD_FILE;
        return;
    }
    for (uint32_t i = 0; i < cp->vocab.n_tokens; i++) {
        uint32_t type = gguf_u32_at(value, i);
        if (type < TOKEN_NORMAL || type > TOKEN_BYTE) {
            FAIL(r, "key %s: token %" PRIu32 " has the unknown type %" PRIi32, key, i,
                 (int32_t)type);
            return;
        }
        types[i] = (uint8_t)type;
    }
    cp->vocab.types = types;
}

static void read_scores(struct reader *r, struct checkpoint *cp)
{
    enum need need = cp->vocab.kind == TOKENIZER_BPE ? OPTIONAL : REQUIRED;
    const struct gguf_value *value =
        get_per_token(r, "tokenizer.ggml.scores", GGUF_F32, need, cp->vocab.n_tokens);
    if (!value)
        return;
    float *scores = checkpoint_alloc(cp, value->count, sizeof *scores, r->err);
    if (!scores) {
        r->status = STATUS_BAD_FILE;
        return;
    }
    memcpy(scores, value->data, value->size);
    cp->vocab.scores = scores;
}

/* Special ids; 0xffffffff, which some converters write for "none", is refused like any other id
 * out of range. */
static void read_ids(struct reader *r, struct checkpoint *cp)
{
    uint32_t end_of_message = TOKEN_NONE, padding = TOKEN_NONE;
    const struct {
        const char *key;
        uint32_t *id;
    } ids[] = {
        {"tokenizer.ggml.bos_token_id", &cp->vocab.bos},
        {"tokenizer.ggml.eos_token_id", &cp->vocab.eos},
        {"tokenizer.ggml.eot_token_id", &cp->vocab.eot},
        {"tokenizer.ggml.eom_token_id", &end_of_message},
        {"tokenizer.ggml.unknown_token_id", &cp->vocab.unknown},
        {"tokenizer.ggml.padding_token_id", &padding},
    };
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        *ids[i].id = TOKEN_NONE;
        if (get_u32(r, ids[i].key, OPTIONAL, ids[i].id))
            r->status = checkpoint_check_id(cp, ids[i].key, *ids[i].id, r->err);
    }
    if (!r->status && end_of_message != TOKEN_NONE)
        r->status = checkpoint_add_eog(cp, "tokenizer.ggml.eom_token_id", end_of_message, r->err);
}

static void read_vocab(struct reader *r, struct checkpoint *cp)
{
    struct vocab_source *vocab = &cp->vocab;
    uint32_t declared;
    read_kind(r, vocab);
    read_split(r, vocab);
    vocab->tokens = read_texts(r, cp, "tokenizer.ggml.tokens", &vocab->n_tokens);
    if (!r->status && vocab->n_tokens == 0)
        FAIL(r, "key tokenizer.ggml.tokens is empty");
    read_types(r, cp);
    read_scores(r, cp);
    if (vocab->kind == TOKENIZER_BPE)
        vocab->merges = read_texts(r, cp, "tokenizer.ggml.merges", &vocab->n_merges);
    read_ids(r, cp);
    vocab->add_bos = vocab->kind == TOKENIZER_SPM || vocab->split == SPLIT_LLAMA3;
    vocab->add_space_prefix = vocab->kind != TOKENIZER_BPE;
    vocab->nfc = vocab->split == SPLIT_QWEN2;
    vocab->ignore_merges = vocab->split == SPLIT_LLAMA3 || vocab->split == SPLIT_NANOCHAT;
    get_bool(r, "tokenizer.ggml.add_bos_token", &vocab->add_bos);
    get_bool(r, "tokenizer.ggml.add_eos_token", &vocab->add_eos);
    get_bool(r, "tokenizer.ggml.add_space_prefix", &vocab->add_space_prefix);
    get_string(r, "tokenizer.chat_template", OPTIONAL, &cp->chat_template);
    if (!r->status && cp->chat_template.len > CHECKPOINT_MAX_TEMPLATE_BYTES)
        FAIL(r, "key tokenizer.chat_template has %zu bytes; at most %d are allowed",
             cp->chat_template.len, CHECKPOINT_MAX_TEMPLATE_BYTES);
    if (get_u32(r, ".vocab_size", OPTIONAL, &declared) && declared > cp->hparams.n_embedding_rows)
        FAIL(r, "%s.vocab_size is %" PRIu32 ", but tensor token_embd.weight has %" PRIu32 " rows",
             r->family, declared, cp->hparams.n_embedding_rows);
}

/* -- tensors ---------------------------------------------------------------------------------- */

static void read_tensors(struct reader *r, struct checkpoint *cp)
{
    cp->n_tensors = r->file->n_tensors;
    cp->tensors = xcalloc(cp->n_tensors, sizeof *cp->tensors);
    cp->hparams.tied_output = true;
    for (uint32_t i = 0; i < cp->n_tensors; i++) {
        const struct gguf_tensor *from = &r->file->tensors[i];
        cp->tensors[i] = (struct checkpoint_tensor){from->name, from->tensor, from->offset, 0};
        if (text_view_is(from->name, "output.weight"))
            cp->hparams.tied_output = false;
        if (!text_view_is(from->name, "token_embd.weight"))
            continue;
        if (from->tensor.rows > HPARAMS_MAX_VOCAB)
            FAIL(r, "tensor token_embd.weight has %" PRIu64 " rows; at most %d are allowed",
                 from->tensor.rows, HPARAMS_MAX_VOCAB);
        else
            cp->hparams.n_embedding_rows = (uint32_t)from->tensor.rows;
    }
    if (!r->status && cp->hparams.n_embedding_rows == 0)
        FAIL(r, "tensor token_embd.weight is missing");
}

enum status gguf_model_read(struct checkpoint *cp, const struct gguf *file, struct error *err)
{
    struct reader r = {file, "", STATUS_OK, err};
    struct hparams *hp = &cp->hparams;
    read_family(&r, hp);
    if (r.status)
        return r.status;
    refuse_unsupported(&r);
    read_shape(&r, hp, err);
    read_rope(&r, hp);
    read_windows(&r, hp);
    read_nanochat(&r, hp);
    read_bank(&r, hp);
    if (!r.status)
        read_tensors(&r, cp);
    read_vocab(&r, cp);
    return r.status;
}
