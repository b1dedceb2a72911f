#ifndef TELLERD_SUPPORT_HF_CASE_H
#define TELLERD_SUPPORT_HF_CASE_H

/*
 * What tests of Hugging Face directories share: a fixture that writes a small sound model (without
 * its layers' tensors, which the loader does not ask for), edits of its files, opening, errors.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_main.h"
#include "support/temp_dir.h"
#include "tellerd/model/checkpoint.h"

enum { HF_CASE_TEXT = 8192, HF_CASE_ROWS = 8, HF_CASE_C = 64 };

static struct temp_dir dir;

static const char hf_case_config[] =
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 64,\n"
    " \"intermediate_size\": 96, \"num_attention_heads\": 2, \"num_key_value_heads\": 1,\n"
    " \"rms_norm_eps\": 1e-05, \"max_position_embeddings\": 128, \"hidden_act\": \"silu\",\n"
    " \"tie_word_embeddings\": true, \"vocab_size\": 8, \"bos_token_id\": 4,\n"
    " \"eos_token_id\": 5}";

static const char hf_case_tokenizer[] =
    "{\"added_tokens\": [\n"
    "  {\"id\": 4, \"content\": \"<s>\", \"special\": true},\n"
    "  {\"id\": 5, \"content\": \"</s>\", \"special\": true}],\n"
    " \"normalizer\": null,\n"
    " \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false},\n"
    " \"post_processor\": null,\n"
    " \"model\": {\"type\": \"BPE\", \"unk_token\": null,\n"
    "  \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, \"c\": 3}, \"merges\": [\"a b\"]}}";

/* Writes a safetensors file with these F32 tensors [rows, 64]; names end with NULL. */
static inline void hf_case_tensors(const char *file, const char *const *names, unsigned rows)
{
    static char bytes[1 << 16];
    char header[HF_CASE_TEXT];
    size_t n = 0, size = (size_t)rows * HF_CASE_C * 4, at = 0;
    n += (size_t)snprintf(header + n, sizeof header - n, "{");
    for (size_t i = 0; names[i]; i++, at += size)
        n += (size_t)snprintf(
            header + n, sizeof header - n,
            "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%u,%d],\"data_offsets\":[%zu,%zu]}",
            i > 0 ? "," : "", names[i], rows, HF_CASE_C, at, at + size);
    n += (size_t)snprintf(header + n, sizeof header - n, "}");
    while (n % 8 != 0)
        header[n++] = ' ';
    uint64_t length = n;
    ck_assert_uint_le(8 + n + at, sizeof bytes);
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, n);
    temp_dir_write(&dir, file, bytes, 8 + n + at);
}

static inline void hf_case_write(const char *name, const char *text)
{
    temp_dir_write(&dir, name, text, strlen(text));
}

/* Writes `text` with the one place where it says `from` changed to `to`. */
static inline void hf_case_edit(const char *name, const char *text, const char *from,
                                const char *to)
{
    char out[HF_CASE_TEXT];
    const char *at = strstr(text, from);
    ck_assert_msg(at != NULL, "\"%s\" is not in the text", from);
    int n = snprintf(out, sizeof out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    ck_assert_int_lt(n, (int)sizeof out);
    hf_case_write(name, out);
}

static inline void hf_case_set_up(void)
{
    temp_dir_make(&dir);
    hf_case_write("config.json", hf_case_config);
    hf_case_write("tokenizer.json", hf_case_tokenizer);
    hf_case_tensors("model.safetensors", (const char *const[]){"model.embed_tokens.weight", NULL},
                    HF_CASE_ROWS);
}

static inline void hf_case_tear_down(void)
{
    temp_dir_remove(&dir);
}

static inline struct checkpoint *hf_case_open(void)
{
    struct checkpoint *cp = NULL;
    struct error err = {0};
    enum status status = checkpoint_open(dir.path, &cp, &err);
    ck_assert_msg(status == STATUS_OK, "%s", err.text);
    return cp;
}

/* The directory must be refused with a text that holds `fragment` and the directory's name. */
static inline void hf_case_refuse(const char *fragment)
{
    struct checkpoint *cp = NULL;
    struct error err = {0};
    enum status status = checkpoint_open(dir.path, &cp, &err);
    ck_assert(status == STATUS_BAD_FILE || status == STATUS_NOT_FOUND);
    ck_assert_ptr_null(cp);
    ck_assert_msg(strstr(err.text, fragment) != NULL, "\"%s\" is not in \"%s\"", fragment,
                  err.text);
    ck_assert_ptr_nonnull(strstr(err.text, dir.path));
}

#endif
