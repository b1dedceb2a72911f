/*
 * The tensors of a Hugging Face directory: finds and maps the safetensors files (one, or shards
 * with an index), checks them against the index, and gives every tensor its GGUF name.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf_priv.h"
#include "model_json_priv.h"
#include "safetensors_priv.h"
#include "tellerd/base/mem.h"

#define INDEX_NAME  "model.safetensors.index.json"
#define SINGLE_NAME "model.safetensors"

/* -- names ------------------------------------------------------------------------------------ */

struct name_pair {
    const char *theirs, *ours;
};

static const struct name_pair whole_names[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
    {"model.smear_gate.weight", "smear_gate.weight"},
    {"model.smear_lambda", "smear_lambda"},
};

static const struct name_pair layer_names[] = {
    {"input_layernorm.weight", "attn_norm.weight"},
    {"post_attention_layernorm.weight", "ffn_norm.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"},
    {"self_attn.k_proj.weight", "attn_k.weight"},
    {"self_attn.v_proj.weight", "attn_v.weight"},
    {"self_attn.o_proj.weight", "attn_output.weight"},
    {"self_attn.q_proj.bias", "attn_q.bias"},
    {"self_attn.k_proj.bias", "attn_k.bias"},
    {"self_attn.v_proj.bias", "attn_v.bias"},
    {"self_attn.q_norm.weight", "attn_q_norm.weight"},
    {"self_attn.k_norm.weight", "attn_k_norm.weight"},
    {"self_attn.v_bank.weight", "attn_v_bank.weight"},
    {"self_attn.v_bank.gamma", "attn_v_bank.gamma"},
    {"self_attn.v_gate.weight", "attn_v_gate.weight"},
    {"mlp.gate_proj.weight", "ffn_gate.weight"},
    {"mlp.up_proj.weight", "ffn_up.weight"},
    {"mlp.down_proj.weight", "ffn_down.weight"},
};

static const char *find_name(const struct name_pair *pairs, size_t n, const char *theirs)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(pairs[i].theirs, theirs) == 0)
            return pairs[i].ours;
    }
    return NULL;
}

/* The GGUF name, in name[64]; false when there is none. */
static bool map_name(const char *theirs, char *name, size_t size)
{
    static const char prefix[] = "model.layers.";
    const char *ours = find_name(whole_names, sizeof whole_names / sizeof whole_names[0], theirs);
    if (ours) {
        snprintf(name, size, "%s", ours);
        return true;
    }
    if (strncmp(theirs, prefix, sizeof prefix - 1) != 0)
        return false;
    const char *digits = theirs + sizeof prefix - 1;
    size_t n_digits = strspn(digits, "0123456789");
    if (n_digits == 0 || n_digits > 4 || digits[n_digits] != '.')
        return false;
    ours =
        find_name(layer_names, sizeof layer_names / sizeof layer_names[0], digits + n_digits + 1);
    if (!ours)
        return false;
    snprintf(name, size, "blk.%.*s.%s", (int)n_digits, digits, ours);
    return true;
}

/* Tables that old checkpoints carry and that follow from the configuration. */
static bool is_derived(struct text_view name)
{
    static const char suffix[] = ".rotary_emb.inv_freq";
    size_t n = sizeof suffix - 1;
    return name.len > n && memcmp(name.bytes + name.len - n, suffix, n) == 0;
}

/* -- one file --------------------------------------------------------------------------------- */

static enum status add_tensor(struct checkpoint *cp, const struct safetensors_entry *entry,
                              struct error *err)
{
    char name[64];
    if (is_derived(entry->name))
        return STATUS_OK;
    if (!map_name(entry->name.bytes, name, sizeof name))
        return error_set(err, STATUS_BAD_FILE,
                         "tensor %s is not known: this kind of model is not supported",
                         entry->name.bytes);
    if (!entry->is_usable)
        return error_set(err, STATUS_BAD_FILE,
                         "tensor %s: type %s at offset %zu cannot be used; save the model as F32, "
                         "F16 or BF16 with a current safetensors library",
                         entry->name.bytes, entry->dtype, entry->offset);
    struct checkpoint_tensor *tensor = &cp->tensors[cp->n_tensors];
    if (!checkpoint_copy_text(cp, name, strlen(name), &tensor->name, err))
        return STATUS_BAD_FILE;
    tensor->tensor = entry->tensor;
    tensor->offset = entry->offset;
    tensor->file = cp->n_files - 1;
    cp->n_tensors++;
    return STATUS_OK;
}

/* With an index: each tensor must be listed, in this file. */
static enum status check_listed(const json_t *weight_map, const char *file_name,
                                const struct safetensors *file, struct error *err)
{
    for (uint32_t i = 0; i < file->n_entries; i++) {
        const char *name = file->entries[i].name.bytes;
        const char *listed = json_string_value(json_object_get(weight_map, name));
        if (!listed || strcmp(listed, file_name) != 0)
            return error_set(err, STATUS_BAD_FILE, "tensor %s is here, but " INDEX_NAME " says %s",
                             name, listed ? listed : "nothing of it");
    }
    return STATUS_OK;
}

/* Maps a file and adds its tensors; *n_entries grows by the number of those. */
static enum status add_file(struct checkpoint *cp, const char *file_name, const json_t *weight_map,
                            size_t *n_entries, struct error *err)
{
    if (cp->n_files == CHECKPOINT_MAX_FILES)
        return error_set(err, STATUS_BAD_FILE, "more than %d shards", CHECKPOINT_MAX_FILES);
    cp->files = xreallocarray(cp->files, cp->n_files + 1, sizeof *cp->files);
    char *path = hf_path(cp, file_name);
    struct mapfile *map = &cp->files[cp->n_files];
    enum status status = mapfile_open(map, path, err);
    free(path);
    if (status)
        return status;
    cp->n_files++;
    struct safetensors file;
    status = safetensors_parse(&file, map->data, map->size, err);
    if (!status) {
        if (weight_map)
            status = check_listed(weight_map, file_name, &file, err);
        cp->tensors =
            xreallocarray(cp->tensors, cp->n_tensors + file.n_entries + 1, sizeof *cp->tensors);
        for (uint32_t i = 0; i < file.n_entries && !status; i++)
            status = add_tensor(cp, &file.entries[i], err);
        *n_entries += file.n_entries;
        safetensors_done(&file);
    }
    if (status)
        error_prefix(err, "%s", file_name);
    return status;
}

/* -- shards ----------------------------------------------------------------------------------- */

/* A name in the directory itself; an index must not lead anywhere else. */
static bool is_plain_name(const json_t *name)
{
    const char *text = json_string_value(name);
    size_t len = text ? strlen(text) : 0;
    return len > 0 && len < 256 && len == json_string_length(name) && text[0] != '.' &&
           !strchr(text, '/');
}

/* Every tensor of the index must have turned up: names one that has not. */
static enum status check_complete(json_t *weight_map, size_t n_entries, struct error *err)
{
    if (n_entries == json_object_size(weight_map))
        return STATUS_OK;
    return error_set(err, STATUS_BAD_FILE,
                     INDEX_NAME " lists %zu tensors, but its files hold %zu: download them again",
                     json_object_size(weight_map), n_entries);
}

static enum status add_shards(struct checkpoint *cp, json_t *index, struct error *err)
{
    struct json_reader r = {INDEX_NAME, STATUS_OK, err};
    json_t *weight_map = json_get(&r, index, "weight_map", JSON_OBJECT, JSON_MUST);
    json_t *seen = json_object(), *file_name;
    const char *name;
    size_t n_entries = 0;
    json_object_foreach(weight_map, name, file_name)
    {
        if (!is_plain_name(file_name))
            JSON_FAIL(&r, "the file of tensor %s must be a plain file name", name);
        if (r.status)
            break;
        const char *text = json_string_value(file_name);
        if (json_object_get(seen, text))
            continue;
        json_object_set_new(seen, text, json_true());
        r.status = add_file(cp, text, weight_map, &n_entries, err);
    }
    json_decref(seen);
    return r.status ? r.status : check_complete(weight_map, n_entries, err);
}

/* -- the directory ---------------------------------------------------------------------------- */

static bool has_suffix(const char *text, const char *suffix)
{
    size_t n = strlen(text), m = strlen(suffix);
    return n > m && strcmp(text + n - m, suffix) == 0;
}

/* The only *.safetensors file, free() it; NULL, with the error set, when there is not one. */
static char *find_single(const struct checkpoint *cp, struct error *err)
{
    DIR *folder = opendir(cp->path);
    if (!folder) {
        error_set(err, STATUS_IO, "%s", strerror(errno));
        return NULL;
    }
    char *found = NULL;
    unsigned n_found = 0;
    bool has_torch = false;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        has_torch |= has_suffix(entry->d_name, ".bin") || has_suffix(entry->d_name, ".pth");
        if (entry->d_name[0] == '.' || !has_suffix(entry->d_name, ".safetensors"))
            continue;
        n_found++;
        free(found);
        found = xstrdup(entry->d_name);
    }
    closedir(folder);
    if (n_found == 1)
        return found;
    free(found);
    error_set(err, STATUS_BAD_FILE,
              n_found > 1 ? "several *.safetensors files, but no " INDEX_NAME
              : has_torch ? "PyTorch files only; convert the model to safetensors"
                          : "no *.safetensors file");
    return NULL;
}

enum status hf_tensors_read(struct checkpoint *cp, struct error *err)
{
    json_t *index = NULL;
    size_t n_entries = 0;
    char *path = hf_path(cp, INDEX_NAME);
    enum status status = model_json_load(path, MODEL_JSON_LARGE_BYTES, &index, err);
    free(path);
    if (!status) {
        status = add_shards(cp, index, err);
        json_decref(index);
        return status;
    }
    if (status != STATUS_NOT_FOUND)
        return status;
    status = add_file(cp, SINGLE_NAME, NULL, &n_entries, err);
    if (status != STATUS_NOT_FOUND)
        return status;
    char *single = find_single(cp, err);
    if (!single)
        return STATUS_BAD_FILE;
    status = add_file(cp, single, NULL, &n_entries, err);
    free(single);
    return status;
}
