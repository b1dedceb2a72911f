#include "config.h"

#include "tellerd/daemon/model_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "tellerd/base/log.h"
#include "tellerd/base/mem.h"
#include "tellerd/engine/forward_gpt.h"

enum {
    DEFAULT_CACHE_LIMIT_MIB = 1024, /* unless kv-cache-bytes says otherwise: a start must not take
                                       seconds to touch memory nobody asked for */
    MIN_LOGIT_ROWS = 64,
};

void model_unload(struct loaded_model *model)
{
    if (model->forward)
        model->forward->ops->free(model->forward);
    gpt_free(model->gpt);
    backend_close(model->backend);
    chat_template_free(model->chat);
    tokenizer_free(model->tokenizer);
    checkpoint_close(model->checkpoint);
    free(model->banned);
    free(model->eog);
    memset(model, 0, sizeof *model);
}

/* Whether a name can be typed into a client without quoting. */
static bool is_plain(const char *name)
{
    return name[0] &&
           name[strspn(name,
                       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/:")] ==
               '\0';
}

/* The name in the API: the option, else the file's own name, else the path's last part without
 * ending. */
static void choose_id(const struct config *config, struct loaded_model *model)
{
    const char *own = checkpoint_hparams(model->checkpoint)->name;
    if (config->model_name[0] || is_plain(own)) {
        snprintf(model->id, sizeof model->id, "%s",
                 config->model_name[0] ? config->model_name : own);
        return;
    }
    size_t len = strlen(config->model);
    while (len > 1 && config->model[len - 1] == '/')
        len--;
    size_t start = len;
    while (start > 0 && config->model[start - 1] != '/')
        start--;
    snprintf(model->id, sizeof model->id, "%.*s", (int)(len - start), config->model + start);
    char *ending = strrchr(model->id, '.');
    if (ending && strcmp(ending, ".gguf") == 0)
        *ending = '\0';
}

static const char *token_text(const struct tokenizer *tokenizer, uint32_t id, char *out,
                              size_t size)
{
    if (id == TOKEN_NONE)
        return NULL;
    struct text_view text = tokenizer_piece(tokenizer, id, true);
    snprintf(out, size, "%.*s", (int)text.len, text.bytes);
    return out;
}

static enum status load_chat(struct loaded_model *model, struct error *err)
{
    struct text_view source = checkpoint_chat_template(model->checkpoint);
    char bos[256], eos[256];
    if (!source.bytes) {
        snprintf(model->no_chat_reason, sizeof model->no_chat_reason,
                 "this model has no chat template; use /v1/completions, or a model file with "
                 "tokenizer.chat_template");
        return STATUS_OK;
    }
    enum status status = chat_template_new(
        source.bytes, source.len, model->id,
        token_text(model->tokenizer, tokenizer_bos(model->tokenizer), bos, sizeof bos),
        token_text(model->tokenizer, tokenizer_eos(model->tokenizer), eos, sizeof eos),
        &model->chat, err);
    if (status != STATUS_OK)
        error_prefix(err, "chat template");
    return status;
}

static void build_sampler_tables(struct loaded_model *model)
{
    uint32_t n = tokenizer_size(model->tokenizer);
    model->banned = xcalloc(n, 1);
    model->eog = xcalloc(n, 1);
    for (uint32_t id = 0; id < n; id++) {
        model->eog[id] = tokenizer_is_eog(model->tokenizer, id);
        model->banned[id] = !tokenizer_may_sample(model->tokenizer, id);
    }
}

enum status model_load_text(const struct config *config, struct loaded_model *model,
                            struct error *err)
{
    memset(model, 0, sizeof *model);
    enum status status = checkpoint_open(config->model, &model->checkpoint, err);
    if (status == STATUS_OK)
        status = tokenizer_new(checkpoint_vocab(model->checkpoint), &model->tokenizer, err);
    if (status == STATUS_OK) {
        choose_id(config, model);
        status = load_chat(model, err);
    }
    if (status != STATUS_OK) {
        model_unload(model);
        return status;
    }
    build_sampler_tables(model);
    const struct hparams *hp = checkpoint_hparams(model->checkpoint);
    model->n_context = config->context ? (uint32_t)config->context : hp->n_context;
    if (model->n_context > hp->n_context) {
        log_warn("context.beyond_training asked=%u trained=%u", model->n_context, hp->n_context);
    }
    return STATUS_OK;
}

static enum tensor_type cache_type(const char *name)
{
    enum tensor_type type = TENSOR_F32;
    REQUIRE(tensor_type_parse(name, &type)); /* the options table lets only known names through */
    return type;
}

/* Free memory as the kernel counts it: /proc/meminfo where it can be read (a hardened unit may hide
 * it), else sysinfo(2). */
static uint64_t free_memory(void)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[256];
    unsigned long long kib = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
            break;
    if (file)
        fclose(file);
    struct sysinfo info;
    if (kib == 0 && sysinfo(&info) == 0)
        return ((uint64_t)info.freeram + info.bufferram) * info.mem_unit;
    return (uint64_t)kib * 1024;
}

/* Bytes for the KV cache: what was asked for, else a share of free memory, at most what
 * max-sequences full contexts can use and the default limit. */
static uint64_t cache_bytes(const struct config *config, uint64_t position_bytes,
                            uint32_t n_context)
{
    if (config->kv_cache_bytes)
        return config->kv_cache_bytes;
    uint64_t bytes = (uint64_t)((double)free_memory() * config->kv_cache_share);
    uint64_t useful = position_bytes * (n_context + config->block_size) * config->max_sequences;
    uint64_t limit = (uint64_t)DEFAULT_CACHE_LIMIT_MIB << 20;
    bytes = bytes < useful ? bytes : useful;
    return bytes < limit ? bytes : limit;
}

static enum status size_cache(const struct config *config, struct loaded_model *model,
                              struct backend_cache_shape *shape, struct error *err)
{
    gpt_cache_shape(model->gpt, 1, (uint32_t)config->block_size, cache_type(config->kv_type_k),
                    cache_type(config->kv_type_v), shape);
    shape->prefault = config->kv_cache_prefault;
    uint64_t position = backend_cache_position_bytes(shape);
    uint64_t bytes = cache_bytes(config, position, model->n_context);
    uint64_t n_blocks = bytes / (position * config->block_size);
    if (n_blocks < 2)
        return error_param(err, STATUS_BAD_CONFIG, "kv-cache-bytes",
                           "kv-cache-bytes: %llu bytes hold fewer than two blocks of %llu bytes; "
                           "give at least %llu",
                           (unsigned long long)bytes,
                           (unsigned long long)(position * config->block_size),
                           (unsigned long long)(2 * position * config->block_size));
    shape->n_blocks = n_blocks < UINT32_MAX / 2 ? (uint32_t)n_blocks : UINT32_MAX / 2;
    return STATUS_OK;
}

/* Rows of a step with logits: one per running sequence; prompt logprobs go in chunks of as many.
 * More would only cost memory (rows x vocabulary). */
static uint32_t logit_rows(const struct config *config)
{
    uint64_t rows = config->max_sequences > MIN_LOGIT_ROWS ? config->max_sequences : MIN_LOGIT_ROWS;
    return (uint32_t)(rows < config->max_batch_tokens ? rows : config->max_batch_tokens);
}

static enum status load_weights(const struct config *config, load_progress_fn on_progress,
                                void *ctx, struct loaded_model *model, struct error *err)
{
    struct backend_config backend = {.name = config->backend,
                                     .n_threads = (uint32_t)config->threads,
                                     .cpu_path = getenv("TELLERD_CPU_PATH"),
                                     .cpu_activations = config->cpu_activations};
    TRY(backend_open(&backend, &model->backend, err));
    struct gpt_config gpt = {
        .max_rows = (uint32_t)config->max_batch_tokens,
        .max_logit_rows = logit_rows(config),
        .bank_type = strcmp(config->bank_type, "auto") == 0 ? TENSOR_TYPE_LIMIT
                                                            : cache_type(config->bank_type),
        .on_progress = on_progress,
        .progress_ctx = ctx,
    };
    TRY(gpt_new(model->checkpoint, model->backend, &gpt, &model->gpt, err));
    struct backend_cache_shape shape;
    TRY(size_cache(config, model, &shape, err));
    struct sampler_vocab vocab = {
        .n_logits = checkpoint_hparams(model->checkpoint)->n_embedding_rows,
        .n_tokens = tokenizer_size(model->tokenizer),
        .banned = model->banned,
        .eog = model->eog,
    };
    return forward_gpt_new(model->gpt, model->backend, &shape, &vocab, gpt.max_rows,
                           gpt.max_logit_rows, &model->forward, err);
}

enum status model_load(const struct config *config, load_progress_fn on_progress, void *ctx,
                       struct loaded_model *ret, struct error *err)
{
    TRY(model_load_text(config, ret, err));
    enum status status = load_weights(config, on_progress, ctx, ret, err);
    if (status != STATUS_OK) {
        model_unload(ret);
        return status;
    }
    /* here and not when the engine starts: it reads the whole file, which must hold up no request
     * and not bring the pages back */
    (void)checkpoint_fingerprint(ret->checkpoint);
    checkpoint_release_pages(ret->checkpoint);
    return STATUS_OK;
}
