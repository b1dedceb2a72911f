/*
 * What tokenizer_config.json, config.json and generation_config.json say beside the vocabulary:
 * special ids, the chat template, sampling defaults.
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "hf_priv.h"
#include "model_json_priv.h"

/* -- special ids ------------------------------------------------------------------------------ */

static uint32_t find_token(const struct vocab_source *vocab, struct text_view text)
{
    for (uint32_t id = 0; id < vocab->n_tokens; id++) {
        if (vocab->types[id] != TOKEN_UNUSED && vocab->tokens[id].len == text.len &&
            memcmp(vocab->tokens[id].bytes, text.bytes, text.len) == 0)
            return id;
    }
    return TOKEN_NONE;
}

/* "bos_token": "<s>" or {"content": "<s>", ...}.  Kept when absent. */
static void read_named(struct json_reader *r, const struct vocab_source *vocab,
                       const json_t *config, const char *key, uint32_t *ret)
{
    const json_t *value = json_object_get(config, key);
    if (r->status || !value || json_is_null(value))
        return;
    if (json_is_object(value))
        value = json_object_get(value, "content");
    if (!json_is_string(value)) {
        JSON_FAIL(r, "%s must be a string or an object with content", key);
        return;
    }
    uint32_t id = find_token(vocab, json_text(value));
    if (id == TOKEN_NONE)
        JSON_FAIL(r, "%s \"%.64s\" is not in the vocabulary", key, json_string_value(value));
    else
        *ret = id;
}

/* An id or a list of ids; the first becomes *first when that is not set, all end a text. */
static void read_ends(struct json_reader *r, struct checkpoint *cp, const json_t *config)
{
    const json_t *value = json_object_get(config, "eos_token_id");
    size_t n = json_is_array(value) ? json_array_size(value) : value && !json_is_null(value);
    for (size_t i = 0; i < n && !r->status; i++) {
        const json_t *id = json_is_array(value) ? json_array_get(value, i) : value;
        json_int_t number = json_integer_value(id);
        if (!json_is_integer(id) || number < 0 || number >= cp->vocab.n_tokens) {
            JSON_FAIL(r,
                      "eos_token_id must be an id of the vocabulary (%" PRIu32
                      " tokens), or a list of such",
                      cp->vocab.n_tokens);
            return;
        }
        if (cp->vocab.eos == TOKEN_NONE)
            cp->vocab.eos = (uint32_t)number;
        r->status = checkpoint_add_eog(cp, "eos_token_id", (uint32_t)number, r->err);
    }
}

static void read_bos_id(struct json_reader *r, struct checkpoint *cp, const json_t *config)
{
    uint32_t id;
    if (cp->vocab.bos != TOKEN_NONE || !json_get_u32(r, config, "bos_token_id", JSON_MAY, &id))
        return;
    r->status = checkpoint_check_id(cp, "config.json: bos_token_id", id, r->err);
    if (!r->status)
        cp->vocab.bos = id;
}

static void read_specials(struct json_reader *r, struct checkpoint *cp, const json_t *config)
{
    struct vocab_source *vocab = &cp->vocab;
    uint32_t bos = vocab->bos, eos = vocab->eos;
    read_named(r, vocab, config, "bos_token", &bos);
    read_named(r, vocab, config, "eos_token", &eos);
    /* what the post-processor adds counts more */
    if (vocab->bos == TOKEN_NONE)
        vocab->bos = bos;
    if (vocab->eos == TOKEN_NONE || !vocab->add_eos)
        vocab->eos = eos;
    json_get_bool(r, config, "add_bos_token", &vocab->add_bos);
    json_get_bool(r, config, "add_eos_token", &vocab->add_eos);
}

/* -- chat template ---------------------------------------------------------------------------- */

/* A string, or a list of {name, template} of which "default" counts. */
static const json_t *find_template(struct json_reader *r, const json_t *config)
{
    const json_t *value = json_object_get(config, "chat_template");
    if (!value || json_is_null(value) || json_is_string(value))
        return value;
    if (!json_is_array(value)) {
        JSON_FAIL(r, "chat_template must be a string or a list of {name, template}");
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *item = json_array_get(value, i);
        struct text_view name = json_text(json_object_get(item, "name"));
        const json_t *text = json_object_get(item, "template");
        if (name.bytes && text_view_is(name, "default") && json_is_string(text))
            return text;
    }
    JSON_FAIL(r, "chat_template is a list without one that is named \"default\"");
    return NULL;
}

static void read_template(struct json_reader *r, struct checkpoint *cp, const json_t *config)
{
    const json_t *value = find_template(r, config);
    if (r->status || !json_is_string(value) || cp->chat_template.bytes)
        return;
    if (json_string_length(value) > CHECKPOINT_MAX_TEMPLATE_BYTES)
        JSON_FAIL(r, "chat_template has %zu bytes; at most %d are allowed",
                  json_string_length(value), CHECKPOINT_MAX_TEMPLATE_BYTES);
    else if (!checkpoint_copy_text(cp, json_string_value(value), json_string_length(value),
                                   &cp->chat_template, r->err))
        r->status = STATUS_BAD_FILE;
}

/* -- sampling defaults ------------------------------------------------------------------------ */

static void read_default(struct json_reader *r, const json_t *config, const char *key, float most,
                         float *ret)
{
    float value;
    if (!json_get_f32(r, config, key, JSON_MAY, &value))
        return;
    if (!(value >= 0.0f && value <= most))
        JSON_FAIL(r, "%s is %g; 0 to %g are allowed", key, (double)value, (double)most);
    else
        *ret = value;
}

static void read_defaults(struct json_reader *r, struct checkpoint *cp, const json_t *config)
{
    struct generation_defaults *defaults = &cp->defaults;
    uint32_t top_k;
    read_default(r, config, "temperature", 2.0f, &defaults->temperature);
    read_default(r, config, "top_p", 1.0f, &defaults->top_p);
    read_default(r, config, "min_p", 1.0f, &defaults->min_p);
    read_default(r, config, "repetition_penalty", 100.0f, &defaults->repetition_penalty);
    if (defaults->repetition_penalty == 0.0f)
        JSON_FAIL(r, "repetition_penalty must be positive");
    if (json_get_u32(r, config, "top_k", JSON_MAY, &top_k))
        defaults->top_k = top_k < HPARAMS_MAX_VOCAB ? (int32_t)top_k : 0;
}

enum status hf_settings_read(struct checkpoint *cp, const json_t *tokenizer_config,
                             const json_t *config, const json_t *generation_config,
                             struct error *err)
{
    struct json_reader r = {"tokenizer_config.json", STATUS_OK, err};
    if (tokenizer_config) {
        read_specials(&r, cp, tokenizer_config);
        read_template(&r, cp, tokenizer_config);
    }
    r.where = "config.json";
    read_bos_id(&r, cp, config);
    read_ends(&r, cp, config);
    r.where = "generation_config.json";
    if (generation_config && !r.status) {
        read_ends(&r, cp, generation_config);
        read_defaults(&r, cp, generation_config);
    }
    return r.status;
}
