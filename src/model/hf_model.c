/*
 * A Hugging Face model directory: which files there are and in which order they are read.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "hf_priv.h"
#include "model_json_priv.h"
#include "tellerd/base/mem.h"

char *hf_path(const struct checkpoint *cp, const char *name)
{
    size_t folder = strlen(cp->path), file = strlen(name);
    char *path = xmalloc(folder + file + 2);
    memcpy(path, cp->path, folder);
    path[folder] = '/';
    memcpy(path + folder + 1, name, file + 1);
    return path;
}

static enum status load(const struct checkpoint *cp, const char *name, size_t max_bytes,
                        json_t **ret, struct error *err)
{
    char *path = hf_path(cp, name);
    enum status status = model_json_load(path, max_bytes, ret, err);
    free(path);
    return status;
}

/* A file that need not be there: *ret stays NULL then. */
static enum status load_optional(const struct checkpoint *cp, const char *name, json_t **ret,
                                 struct error *err)
{
    enum status status = load(cp, name, MODEL_JSON_SMALL_BYTES, ret, err);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* chat_template.jinja, which counts more than tokenizer_config.json. */
static enum status read_template_file(struct checkpoint *cp, struct error *err)
{
    struct mapfile map;
    char *path = hf_path(cp, "chat_template.jinja");
    enum status status = mapfile_open(&map, path, err);
    if (status == STATUS_NOT_FOUND) {
        free(path);
        return STATUS_OK;
    }
    if (!status && map.size > CHECKPOINT_MAX_TEMPLATE_BYTES)
        status = error_set(err, STATUS_BAD_FILE, "%s has %zu bytes; at most %d are allowed", path,
                           map.size, CHECKPOINT_MAX_TEMPLATE_BYTES);
    else if (!status &&
             !checkpoint_copy_text(cp, (const char *)map.data, map.size, &cp->chat_template, err))
        status = STATUS_BAD_FILE;
    if (!status || status == STATUS_BAD_FILE)
        mapfile_close(&map);
    free(path);
    return status;
}

static enum status read_tokenizer(struct checkpoint *cp, const json_t *config, struct error *err)
{
    json_t *tokenizer = NULL, *settings = NULL, *generation = NULL;
    enum status status = load(cp, "tokenizer.json", MODEL_JSON_LARGE_BYTES, &tokenizer, err);
    if (status == STATUS_NOT_FOUND)
        return error_set(err, STATUS_NOT_FOUND,
                         "%s/tokenizer.json is missing; a directory with tokenizer.model only gets "
                         "one by AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)",
                         cp->path);
    if (!status)
        status = hf_tokenizer_read(cp, tokenizer, err);
    json_decref(tokenizer);
    if (!status)
        status = read_template_file(cp, err);
    if (!status)
        status = load_optional(cp, "tokenizer_config.json", &settings, err);
    if (!status)
        status = load_optional(cp, "generation_config.json", &generation, err);
    if (!status)
        status = hf_settings_read(cp, settings, config, generation, err);
    json_decref(settings);
    json_decref(generation);
    return status;
}

/* What only the tensors decide: rows of the embedding, and whether the output is tied. */
static enum status settle_tensors(struct checkpoint *cp, bool has_tied, struct error *err)
{
    uint32_t output = UINT32_MAX;
    for (uint32_t i = 0; i < cp->n_tensors; i++) {
        const struct checkpoint_tensor *t = &cp->tensors[i];
        if (text_view_is(t->name, "output.weight"))
            output = i;
        if (!text_view_is(t->name, "token_embd.weight"))
            continue;
        if (t->tensor.rows == 0 || t->tensor.rows > HPARAMS_MAX_VOCAB)
            return error_set(err, STATUS_BAD_FILE,
                             "tensor model.embed_tokens.weight has %llu rows; 1 to %d are allowed",
                             (unsigned long long)t->tensor.rows, HPARAMS_MAX_VOCAB);
        cp->hparams.n_embedding_rows = (uint32_t)t->tensor.rows;
    }
    if (cp->hparams.n_embedding_rows == 0)
        return error_set(err, STATUS_BAD_FILE, "tensor model.embed_tokens.weight is missing");
    if (!has_tied)
        cp->hparams.tied_output = output == UINT32_MAX;
    if (!cp->hparams.tied_output && output == UINT32_MAX)
        return error_set(err, STATUS_BAD_FILE,
                         "tensor lm_head.weight is missing, and tie_word_embeddings is false");
    if (cp->hparams.tied_output && output != UINT32_MAX) /* a copy of the embedding */
        cp->tensors[output] = cp->tensors[--cp->n_tensors];
    return STATUS_OK;
}

enum status hf_model_read(struct checkpoint *cp, struct error *err)
{
    json_t *config = NULL;
    bool has_tied = false;
    enum status status = load(cp, "config.json", MODEL_JSON_SMALL_BYTES, &config, err);
    if (status == STATUS_NOT_FOUND)
        return error_set(err, STATUS_NOT_FOUND,
                         "no config.json: not a Hugging Face model directory (for a GGUF model "
                         "give the file)");
    if (!status)
        status = hf_config_read(config, &cp->hparams, &has_tied, err);
    if (!status)
        status = hf_tensors_read(cp, err);
    if (!status)
        status = settle_tensors(cp, has_tied, err);
    if (!status)
        status = read_tokenizer(cp, config, err);
    json_decref(config);
    return status;
}
