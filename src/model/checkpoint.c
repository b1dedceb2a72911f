/*
 * A model on disk, whatever its form: opening, the checks that both forms share, lookup, the
 * fingerprint.  Opening may be done by any thread; afterwards everything but the fingerprint and
 * checkpoint_release_pages is read-only.
 */
#include "config.h"

#include "tellerd/model/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "checkpoint_priv.h"
#include "gguf_priv.h"
#include "tellerd/base/mem.h"

/* -- what the readers use --------------------------------------------------------------------- */

void *checkpoint_alloc(struct checkpoint *cp, size_t count, size_t size, struct error *err)
{
    void *block = arena_calloc(&cp->arena, count, size);
    if (!block)
        error_set(err, STATUS_BAD_FILE, "the vocabulary takes more than %d MiB",
                  CHECKPOINT_ARENA_BYTES >> 20);
    return block;
}

bool checkpoint_copy_text(struct checkpoint *cp, const char *text, size_t len,
                          struct text_view *ret, struct error *err)
{
    char *copy = checkpoint_alloc(cp, len, 1, err);
    if (!copy)
        return false;
    if (len > 0)
        memcpy(copy, text, len);
    *ret = (struct text_view){copy, len};
    return true;
}

enum status checkpoint_check_id(const struct checkpoint *cp, const char *key, uint32_t id,
                                struct error *err)
{
    if (id < cp->vocab.n_tokens)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_FILE, "%s is %" PRIu32 ", but there are %" PRIu32 " tokens",
                     key, id, cp->vocab.n_tokens);
}

enum status checkpoint_add_eog(struct checkpoint *cp, const char *key, uint32_t id,
                               struct error *err)
{
    struct vocab_source *vocab = &cp->vocab;
    enum status status = checkpoint_check_id(cp, key, id, err);
    if (status || id == vocab->eos || id == vocab->eot)
        return status;
    for (uint32_t i = 0; i < vocab->n_extra_eog; i++) {
        if (vocab->extra_eog[i] == id)
            return STATUS_OK;
    }
    if (vocab->n_extra_eog == sizeof vocab->extra_eog / sizeof vocab->extra_eog[0])
        return error_set(err, STATUS_BAD_FILE, "%s: more than %zu tokens that end a text", key,
                         sizeof vocab->extra_eog / sizeof vocab->extra_eog[0]);
    vocab->extra_eog[vocab->n_extra_eog++] = id;
    return STATUS_OK;
}

/* -- known tensors ---------------------------------------------------------------------------- */

enum {
    PLAIN = 1 << 0,    /* families whose norms have weights: all but nanochat */
    NANOCHAT = 1 << 1, /* nanochat */
    QK_NORM = 1 << 2,  /* models with weights for the norm of q and k */
    SMEAR = 1 << 3,    /* models with a smear gate */
    ALL = PLAIN | NANOCHAT,
};

struct known_tensor {
    const char *name;
    unsigned models;
};

static const struct known_tensor whole_tensors[] = {
    {"token_embd.weight", ALL}, {"output_norm.weight", PLAIN}, {"output.weight", ALL},
    {"rope_freqs.weight", ALL}, {"smear_gate.weight", SMEAR},  {"smear_lambda", SMEAR},
};

static const struct known_tensor layer_tensors[] = {
    {"attn_norm.weight", PLAIN},     {"attn_q.weight", ALL},      {"attn_k.weight", ALL},
    {"attn_v.weight", ALL},          {"attn_output.weight", ALL}, {"attn_q.bias", PLAIN},
    {"attn_k.bias", PLAIN},          {"attn_v.bias", PLAIN},      {"attn_q_norm.weight", QK_NORM},
    {"attn_k_norm.weight", QK_NORM}, {"ffn_norm.weight", PLAIN},  {"ffn_gate.weight", PLAIN},
    {"ffn_up.weight", ALL},          {"ffn_down.weight", ALL},    {"attn_v_bank.weight", ALL},
    {"attn_v_bank.gamma", ALL},      {"attn_v_gate.weight", ALL},
};

static bool is_listed(const struct known_tensor *list, size_t n, struct text_view name,
                      unsigned model)
{
    for (size_t i = 0; i < n; i++) {
        if (text_view_is(name, list[i].name))
            return (list[i].models & model) != 0;
    }
    return false;
}

/* "blk.N.rest": cuts *name to the rest; false when it is not of that form or N is written oddly. */
static bool split_layer(struct text_view *name, uint32_t *ret_layer)
{
    const char *text = name->bytes;
    size_t at = 4, len = name->len;
    uint32_t layer = 0;
    if (len < 7 || memcmp(text, "blk.", 4) != 0)
        return false;
    while (at < len && text[at] >= '0' && text[at] <= '9' && at < 4 + 4)
        layer = 10 * layer + (uint32_t)(text[at++] - '0');
    if (at == 4 || at >= len || text[at] != '.' || (text[4] == '0' && at > 5))
        return false;
    *ret_layer = layer;
    *name = (struct text_view){text + at + 1, len - at - 1};
    return true;
}

/* A tensor that the forward pass would not read means a model that it would compute wrongly. */
static enum status check_known(const struct checkpoint *cp, struct error *err)
{
    const struct hparams *hp = &cp->hparams;
    unsigned model = (hp->family == FAMILY_NANOCHAT ? NANOCHAT : PLAIN) |
                     (hp->qk_norm == QK_NORM_BEFORE_ROPE ? QK_NORM : 0) | (hp->smear ? SMEAR : 0);
    for (uint32_t i = 0; i < cp->n_tensors; i++) {
        struct text_view name = cp->tensors[i].name;
        uint32_t layer;
        bool known;
        if (split_layer(&name, &layer))
            known = layer < hp->n_layers &&
                    is_listed(layer_tensors, sizeof layer_tensors / sizeof layer_tensors[0], name,
                              model);
        else
            known = is_listed(whole_tensors, sizeof whole_tensors / sizeof whole_tensors[0], name,
                              model);
        name = cp->tensors[i].name;
        if (!known)
            return error_set(err, STATUS_BAD_FILE,
                             "tensor %.*s has no place in a %s model of %" PRIu32
                             " layers: this kind of model is not supported",
                             (int)name.len, name.bytes, hparams_family_name(hp->family),
                             hp->n_layers);
    }
    return STATUS_OK;
}

/* -- checks that both forms share ------------------------------------------------------------- */

static enum status index_names(struct checkpoint *cp, struct error *err)
{
    struct text_view twice;
    name_table_init(&cp->names, cp->n_tensors);
    for (uint32_t i = 0; i < cp->n_tensors; i++)
        cp->names.entries[i] = (struct name_entry){cp->tensors[i].name, i};
    if (name_table_sort(&cp->names, &twice))
        return STATUS_OK;
    return error_set(err, STATUS_BAD_FILE, "tensor %.*s appears twice", (int)twice.len,
                     twice.bytes);
}

static enum status read_gammas(struct checkpoint *cp, struct error *err)
{
    for (uint32_t i = 0; i < cp->hparams.n_layers; i++) {
        char name[64];
        struct tensor gamma;
        snprintf(name, sizeof name, "blk.%" PRIu32 ".attn_v_bank.gamma", i);
        if (!checkpoint_tensor(cp, name, &gamma))
            continue;
        if (gamma.columns != 1 || gamma.rows != 1 || tensor_block_elements(gamma.type) != 1)
            return error_set(err, STATUS_BAD_FILE, "tensor %s must be one number", name);
        tensor_dequantize(gamma.type, gamma.data, &cp->hparams.layers[i].gamma, 1);
    }
    return STATUS_OK;
}

static enum status check_rope_freqs(const struct checkpoint *cp, struct error *err)
{
    struct tensor freqs;
    if (!checkpoint_tensor(cp, "rope_freqs.weight", &freqs))
        return STATUS_OK;
    if (freqs.type != TENSOR_F32 || freqs.rows != 1 || freqs.columns != cp->hparams.rope_dims / 2)
        return error_set(err, STATUS_BAD_FILE, "tensor rope_freqs.weight must be F32 [%" PRIu32 "]",
                         cp->hparams.rope_dims / 2);
    const float *divisors = freqs.data;
    for (uint64_t i = 0; i < freqs.columns; i++) {
        if (!(divisors[i] > 0.0f && divisors[i] < 1e9f))
            return error_set(err, STATUS_BAD_FILE,
                             "tensor rope_freqs.weight holds %g; its numbers must be positive",
                             (double)divisors[i]);
    }
    return STATUS_OK;
}

static void find_biases(struct checkpoint *cp)
{
    for (uint32_t i = 0; i < cp->n_tensors; i++) {
        struct text_view name = cp->tensors[i].name;
        uint32_t layer;
        if (split_layer(&name, &layer) && name.len > 5 &&
            memcmp(name.bytes + name.len - 5, ".bias", 5) == 0)
            cp->hparams.attention_bias = true;
    }
}

static enum status check_vocab(const struct checkpoint *cp, struct error *err)
{
    const struct hparams *hp = &cp->hparams;
    if (cp->vocab.n_tokens > hp->n_embedding_rows)
        return error_set(err, STATUS_BAD_FILE,
                         "there are %" PRIu32 " tokens, but tensor token_embd.weight has %" PRIu32
                         " rows",
                         cp->vocab.n_tokens, hp->n_embedding_rows);
    if (hp->has_bank && hp->bank_rows < cp->vocab.n_tokens)
        return error_set(err, STATUS_BAD_FILE,
                         "value_bank.rows is %" PRIu32 ", but there are %" PRIu32 " tokens",
                         hp->bank_rows, cp->vocab.n_tokens);
    return STATUS_OK;
}

static enum status finish(struct checkpoint *cp, struct error *err)
{
    enum status status = index_names(cp, err);
    if (!status)
        status = check_known(cp, err);
    if (!status)
        status = read_gammas(cp, err);
    if (!status)
        find_biases(cp);
    if (!status)
        status = hparams_validate(&cp->hparams, err);
    if (!status)
        status = check_rope_freqs(cp, err);
    if (!status)
        status = check_vocab(cp, err);
    /* flags about tokens that are not there say nothing */
    cp->vocab.add_bos = cp->vocab.add_bos && cp->vocab.bos != TOKEN_NONE;
    cp->vocab.add_eos = cp->vocab.add_eos && cp->vocab.eos != TOKEN_NONE;
    return status;
}

/* -- opening ---------------------------------------------------------------------------------- */

static struct checkpoint *checkpoint_new(const char *path)
{
    struct checkpoint *cp = xcalloc(1, sizeof *cp);
    cp->path = xstrdup(path);
    arena_init(&cp->arena, CHECKPOINT_ARENA_BYTES);
    cp->defaults = (struct generation_defaults){-1.0f, -1.0f, -1.0f, -1.0f, -1};
    cp->vocab.bos = cp->vocab.eos = cp->vocab.eot = cp->vocab.unknown = TOKEN_NONE;
    return cp;
}

/* Where the file has no name: the last part of the path, without ".gguf". */
static void name_by_path(struct checkpoint *cp)
{
    char *resolved = realpath(cp->path, NULL);
    const char *path = resolved ? resolved : cp->path;
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    size_t len = strlen(base);
    if (len > 5 && strcmp(base + len - 5, ".gguf") == 0)
        len -= 5;
    if (len > 0)
        hparams_set_name(&cp->hparams, base, len);
    else
        hparams_set_name(&cp->hparams, "model", 5);
    free(resolved);
}

static enum status open_gguf(struct checkpoint *cp, struct error *err)
{
    struct gguf file;
    cp->files = xcalloc(1, sizeof *cp->files);
    enum status status = mapfile_open(&cp->files[0], cp->path, err);
    if (status)
        return status;
    cp->n_files = 1;
    status = gguf_parse(&file, cp->files[0].data, cp->files[0].size, err);
    if (!status) {
        status = gguf_model_read(cp, &file, err);
        gguf_done(&file);
    }
    if (!status)
        status = finish(cp, err);
    if (status)
        error_prefix(err, "%s", cp->path);
    return status;
}

static enum status open_directory(struct checkpoint *cp, struct error *err)
{
    enum status status = hf_model_read(cp, err);
    if (!status)
        status = finish(cp, err);
    if (status)
        error_prefix(err, "%s", cp->path);
    return status;
}

enum status checkpoint_open(const char *path, struct checkpoint **ret, struct error *err)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return error_set(err, errno == ENOENT || errno == ENOTDIR ? STATUS_NOT_FOUND : STATUS_IO,
                         "%s: %s", path, strerror(errno));
    struct checkpoint *cp = checkpoint_new(path);
    enum status status = S_ISDIR(info.st_mode) ? open_directory(cp, err) : open_gguf(cp, err);
    if (status) {
        checkpoint_close(cp);
        return status;
    }
    if (cp->hparams.name[0] == '\0')
        name_by_path(cp);
    *ret = cp;
    return STATUS_OK;
}

enum status checkpoint_open_bytes(const unsigned char *bytes, size_t size, struct checkpoint **ret,
                                  struct error *err)
{
    struct checkpoint *cp = checkpoint_new("");
    struct gguf file;
    enum status status = gguf_parse(&file, bytes, size, err);
    if (!status) {
        status = gguf_model_read(cp, &file, err);
        gguf_done(&file);
    }
    if (!status)
        status = finish(cp, err);
    if (status)
        checkpoint_close(cp);
    else
        *ret = cp;
    return status;
}

void checkpoint_close(struct checkpoint *cp)
{
    if (!cp)
        return;
    hparams_done(&cp->hparams);
    name_table_done(&cp->names);
    free(cp->tensors);
    for (uint32_t i = 0; i < cp->n_files; i++)
        mapfile_close(&cp->files[i]);
    free(cp->files);
    arena_done(&cp->arena);
    free(cp->path);
    free(cp);
}

/* -- access ----------------------------------------------------------------------------------- */

const struct hparams *checkpoint_hparams(const struct checkpoint *cp)
{
    return &cp->hparams;
}

const struct vocab_source *checkpoint_vocab(const struct checkpoint *cp)
{
    return &cp->vocab;
}

struct text_view checkpoint_chat_template(const struct checkpoint *cp)
{
    return cp->chat_template;
}

const struct generation_defaults *checkpoint_defaults(const struct checkpoint *cp)
{
    return &cp->defaults;
}

bool checkpoint_tensor(const struct checkpoint *cp, const char *name, struct tensor *ret)
{
    uint32_t i = name_table_find(&cp->names, name, strlen(name));
    if (i == NAME_TABLE_NONE)
        return false;
    *ret = cp->tensors[i].tensor;
    return true;
}

static bool is_bank(struct text_view name)
{
    uint32_t layer;
    return split_layer(&name, &layer) && text_view_is(name, "attn_v_bank.weight");
}

void checkpoint_bytes(const struct checkpoint *cp, size_t *ret_tensors, size_t *ret_banks)
{
    size_t all = 0, banks = 0; /* cannot overflow: ranges of mapped files that do not overlap */
    for (uint32_t i = 0; i < cp->n_tensors; i++) {
        all += cp->tensors[i].tensor.size_bytes;
        banks += is_bank(cp->tensors[i].name) ? cp->tensors[i].tensor.size_bytes : 0;
    }
    *ret_tensors = all;
    *ret_banks = banks;
}

void checkpoint_release_pages(struct checkpoint *cp)
{
    for (uint32_t i = 0; i < cp->n_tensors; i++) {
        const struct checkpoint_tensor *t = &cp->tensors[i];
        if (!text_view_is(t->name, "token_embd.weight") && !is_bank(t->name) &&
            t->file < cp->n_files)
            mapfile_dont_need(&cp->files[t->file], t->offset, t->tensor.size_bytes);
    }
}

/* -- fingerprint ------------------------------------------------------------------------------ */

static void add_bytes(struct hash128 *chain, const void *bytes, size_t len)
{
    struct hash128 link[2] = {*chain, hash_bytes(bytes, len, len)};
    *chain = hash_bytes(link, sizeof link, 0);
}

static void add_hparams(struct hash128 *chain, const struct hparams *hp)
{
    const uint32_t counts[] = {
        hp->family,         hp->n_layers,         hp->embedding,
        hp->n_heads,        hp->n_kv_heads,       hp->head_size,
        hp->feed_forward,   hp->n_embedding_rows, hp->norm_has_weights,
        hp->embedding_norm, hp->tied_output,      hp->attention_bias,
        hp->qk_norm,        hp->activation,       hp->smear,
        hp->smear_channels, hp->rope_dims,        hp->rope_interleaved,
        hp->rope_negative,  hp->rope_llama3,      hp->rope_original_context,
        hp->has_bank,       hp->bank_rows,        hp->sink_row,
        hp->gate_sigmoid,   hp->gate_channels,
    };
    const float numbers[] = {
        hp->norm_eps,
        hp->qk_scale,
        hp->logit_softcap,
        hp->rope_base,
        hp->rope_linear_factor,
        hp->rope_factor,
        hp->rope_low_freq_factor,
        hp->rope_high_freq_factor,
        hp->gate_scale,
    };
    add_bytes(chain, counts, sizeof counts);
    add_bytes(chain, numbers, sizeof numbers);
    for (uint32_t i = 0; i < hp->n_layers; i++) {
        const struct hparams_layer *layer = &hp->layers[i];
        const uint32_t words[] = {layer->source, layer->bank_layer, layer->window};
        add_bytes(chain, words, sizeof words);
        add_bytes(chain, &layer->gamma, sizeof layer->gamma);
    }
}

static void add_vocab(struct hash128 *chain, const struct vocab_source *vocab)
{
    const uint32_t words[] = {vocab->kind,
                              vocab->split,
                              vocab->n_tokens,
                              vocab->n_merges,
                              vocab->bos,
                              vocab->unknown,
                              vocab->add_bos,
                              vocab->add_eos,
                              vocab->add_space_prefix,
                              vocab->nfc,
                              vocab->ignore_merges,
                              vocab->prefix_not_before_space,
                              vocab->prefix_at_start_only,
                              vocab->cuts_at_each_space,
                              vocab->unknown_not_fused};
    add_bytes(chain, words, sizeof words);
    for (uint32_t i = 0; i < vocab->n_tokens; i++)
        add_bytes(chain, vocab->tokens[i].bytes, vocab->tokens[i].len);
    for (uint32_t i = 0; i < vocab->n_merges; i++)
        add_bytes(chain, vocab->merges[i].bytes, vocab->merges[i].len);
    if (vocab->types)
        add_bytes(chain, vocab->types, vocab->n_tokens);
    if (vocab->scores)
        add_bytes(chain, vocab->scores, vocab->n_tokens * sizeof *vocab->scores);
}

struct hash128 checkpoint_fingerprint(struct checkpoint *cp)
{
    if (cp->has_fingerprint)
        return cp->fingerprint;
    struct hash128 chain = {0, 0};
    add_hparams(&chain, &cp->hparams);
    add_vocab(&chain, &cp->vocab);
    for (uint32_t i = 0; i < cp->n_tensors; i++) { /* in the order of names */
        const struct checkpoint_tensor *t = &cp->tensors[cp->names.entries[i].index];
        const uint64_t shape[] = {t->tensor.type, t->tensor.columns, t->tensor.rows};
        add_bytes(&chain, t->name.bytes, t->name.len);
        add_bytes(&chain, shape, sizeof shape);
        add_bytes(&chain, t->tensor.data, t->tensor.size_bytes);
    }
    cp->fingerprint = chain;
    cp->has_fingerprint = true;
    return chain;
}
