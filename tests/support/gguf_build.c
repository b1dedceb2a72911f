#include "config.h"

#include "support/gguf_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/base/mem.h"
#include "tellerd/model/checkpoint.h"

enum { U32 = 4, I32 = 5, F32 = 6, BOOL = 7, STRING = 8, ARRAY = 9, BUILD_MAX = 1 << 26 };

void gguf_build_init(struct gguf_build *b)
{
    memset(b, 0, sizeof *b);
    buf_init(&b->meta, BUILD_MAX);
    buf_init(&b->directory, BUILD_MAX);
    buf_init(&b->data, BUILD_MAX);
    b->version = 3;
    b->alignment = 32;
    b->family = "llama";
    b->n_layers = 2;
}

void gguf_build_done(struct gguf_build *b)
{
    buf_done(&b->meta);
    buf_done(&b->directory);
    buf_done(&b->data);
}

void gguf_build_without(struct gguf_build *b, const char *name)
{
    REQUIRE(b->n_without < GGUF_BUILD_MAX_WITHOUT);
    b->without[b->n_without++] = name;
}

static bool is_left_out(const struct gguf_build *b, const char *name)
{
    for (unsigned i = 0; i < b->n_without; i++) {
        if (strcmp(b->without[i], name) == 0)
            return true;
    }
    return false;
}

static void add_string(struct buf *out, const char *text)
{
    uint64_t len = strlen(text);
    buf_add(out, &len, sizeof len);
    buf_add(out, text, len);
}

/* -- keys ------------------------------------------------------------------------------------- */

void gguf_build_raw(struct gguf_build *b, const char *key, uint32_t type, const void *bytes,
                    size_t len)
{
    add_string(&b->meta, key);
    buf_add(&b->meta, &type, sizeof type);
    buf_add(&b->meta, bytes, len);
    b->n_keys++;
}

void gguf_build_u32(struct gguf_build *b, const char *key, uint32_t value)
{
    gguf_build_raw(b, key, U32, &value, sizeof value);
}

void gguf_build_i32(struct gguf_build *b, const char *key, int32_t value)
{
    gguf_build_raw(b, key, I32, &value, sizeof value);
}

void gguf_build_f32(struct gguf_build *b, const char *key, float value)
{
    gguf_build_raw(b, key, F32, &value, sizeof value);
}

void gguf_build_bool(struct gguf_build *b, const char *key, uint8_t value)
{
    gguf_build_raw(b, key, BOOL, &value, sizeof value);
}

void gguf_build_string(struct gguf_build *b, const char *key, const char *value)
{
    struct buf bytes;
    buf_init(&bytes, BUILD_MAX);
    add_string(&bytes, value);
    gguf_build_raw(b, key, STRING, bytes.data, bytes.len);
    buf_done(&bytes);
}

static void add_array(struct gguf_build *b, const char *key, uint32_t element, uint64_t n,
                      const void *bytes, size_t len)
{
    gguf_build_raw(b, key, ARRAY, &element, sizeof element);
    buf_add(&b->meta, &n, sizeof n);
    buf_add(&b->meta, bytes, len);
}

void gguf_build_strings(struct gguf_build *b, const char *key, const char *const *values,
                        uint64_t n)
{
    struct buf bytes;
    buf_init(&bytes, BUILD_MAX);
    for (uint64_t i = 0; i < n; i++)
        add_string(&bytes, values[i]);
    add_array(b, key, STRING, n, bytes.data, bytes.len);
    buf_done(&bytes);
}

void gguf_build_u32s(struct gguf_build *b, const char *key, const uint32_t *values, uint64_t n)
{
    add_array(b, key, U32, n, values, n * sizeof *values);
}

void gguf_build_i32s(struct gguf_build *b, const char *key, const int32_t *values, uint64_t n)
{
    add_array(b, key, I32, n, values, n * sizeof *values);
}

void gguf_build_f32s(struct gguf_build *b, const char *key, const float *values, uint64_t n)
{
    add_array(b, key, F32, n, values, n * sizeof *values);
}

void gguf_build_bools(struct gguf_build *b, const char *key, const uint8_t *values, uint64_t n)
{
    add_array(b, key, BOOL, n, values, n);
}

/* -- tensors ---------------------------------------------------------------------------------- */

void gguf_build_entry(struct gguf_build *b, const char *name, uint32_t n_dims, const uint64_t *dims,
                      uint32_t type, uint64_t offset)
{
    add_string(&b->directory, name);
    buf_add(&b->directory, &n_dims, sizeof n_dims);
    buf_add(&b->directory, dims, (n_dims < 8 ? n_dims : 8) * sizeof *dims);
    buf_add(&b->directory, &type, sizeof type);
    buf_add(&b->directory, &offset, sizeof offset);
    b->n_tensors++;
}

static void pad(struct buf *out, uint32_t alignment)
{
    while (out->len % alignment != 0)
        buf_add_char(out, '\0');
}

void gguf_build_tensor(struct gguf_build *b, const char *name, uint64_t columns, uint64_t rows,
                       float value)
{
    const uint64_t dims[2] = {columns, rows};
    pad(&b->data, b->alignment);
    gguf_build_entry(b, name, rows > 0 ? 2 : 1, dims, 0, b->data.len);
    for (uint64_t i = 0; i < columns * (rows > 0 ? rows : 1); i++)
        buf_add(&b->data, &value, sizeof value);
}

/* -- the tiny model --------------------------------------------------------------------------- */

static void tiny_u32(struct gguf_build *b, const char *name, uint32_t value)
{
    char key[96];
    snprintf(key, sizeof key, "%s.%s", b->family, name);
    if (!is_left_out(b, key))
        gguf_build_u32(b, key, value);
}

static void tiny_f32(struct gguf_build *b, const char *name, float value)
{
    char key[96];
    snprintf(key, sizeof key, "%s.%s", b->family, name);
    if (!is_left_out(b, key))
        gguf_build_f32(b, key, value);
}

static void tiny_tensor(struct gguf_build *b, const char *name, uint64_t columns, uint64_t rows,
                        float value)
{
    if (!is_left_out(b, name))
        gguf_build_tensor(b, name, columns, rows, value);
}

static void tiny_layer(struct gguf_build *b, uint32_t layer)
{
    const struct {
        const char *name;
        uint64_t columns, rows;
        bool nanochat;
    } tensors[] = {
        {"attn_norm.weight", TINY_C, 0, false},
        {"attn_q.weight", TINY_C, TINY_H * TINY_D, true},
        {"attn_k.weight", TINY_C, TINY_K * TINY_D, true},
        {"attn_v.weight", TINY_C, TINY_K * TINY_D, true},
        {"attn_output.weight", TINY_H * TINY_D, TINY_C, true},
        {"ffn_norm.weight", TINY_C, 0, false},
        {"ffn_gate.weight", TINY_C, TINY_F, false},
        {"ffn_up.weight", TINY_C, TINY_F, true},
        {"ffn_down.weight", TINY_F, TINY_C, true},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%u.%s", layer, tensors[i].name);
        if (tensors[i].nanochat || strcmp(b->family, "nanochat") != 0)
            tiny_tensor(b, name, tensors[i].columns, tensors[i].rows, 0.01f * (float)(layer + i));
    }
}

static void tiny_vocab(struct gguf_build *b)
{
    static const char *const tokens[TINY_TOKENS] = {"a", "b", "ab", "c", "<s>", "</s>"};
    static const int32_t types[TINY_TOKENS] = {TOKEN_NORMAL, TOKEN_NORMAL,  TOKEN_NORMAL,
                                               TOKEN_NORMAL, TOKEN_CONTROL, TOKEN_CONTROL};
    static const char *const merges[1] = {"a b"};
    if (!is_left_out(b, "tokenizer.ggml.model"))
        gguf_build_string(b, "tokenizer.ggml.model", "gpt2");
    if (!is_left_out(b, "tokenizer.ggml.pre"))
        gguf_build_string(b, "tokenizer.ggml.pre", "gpt-2");
    if (!is_left_out(b, "tokenizer.ggml.tokens"))
        gguf_build_strings(b, "tokenizer.ggml.tokens", tokens, TINY_TOKENS);
    if (!is_left_out(b, "tokenizer.ggml.token_type"))
        gguf_build_i32s(b, "tokenizer.ggml.token_type", types, TINY_TOKENS);
    if (!is_left_out(b, "tokenizer.ggml.merges"))
        gguf_build_strings(b, "tokenizer.ggml.merges", merges, 1);
    if (!is_left_out(b, "tokenizer.ggml.bos_token_id"))
        gguf_build_u32(b, "tokenizer.ggml.bos_token_id", 4);
    if (!is_left_out(b, "tokenizer.ggml.eos_token_id"))
        gguf_build_u32(b, "tokenizer.ggml.eos_token_id", 5);
}

void gguf_build_tiny(struct gguf_build *b)
{
    if (!is_left_out(b, "general.architecture"))
        gguf_build_string(b, "general.architecture", b->family);
    tiny_u32(b, "block_count", b->n_layers);
    tiny_u32(b, "context_length", 128);
    tiny_u32(b, "embedding_length", TINY_C);
    tiny_u32(b, "feed_forward_length", TINY_F);
    tiny_u32(b, "attention.head_count", TINY_H);
    tiny_u32(b, "attention.head_count_kv", TINY_K);
    tiny_f32(b, "attention.layer_norm_rms_epsilon", 1e-5f);
    if (strcmp(b->family, "nanochat") == 0)
        tiny_f32(b, "attention.qk_scale", 1.2f);
    tiny_vocab(b);
    tiny_tensor(b, "token_embd.weight", TINY_C, TINY_ROWS, 0.5f);
    if (strcmp(b->family, "nanochat") != 0)
        tiny_tensor(b, "output_norm.weight", TINY_C, 0, 1.0f);
    for (uint32_t i = 0; i < b->n_layers; i++)
        tiny_layer(b, i);
}

unsigned char *gguf_build_bytes(const struct gguf_build *b, size_t *ret_size)
{
    struct buf out;
    buf_init(&out, BUILD_MAX);
    buf_add_str(&out, "GGUF");
    buf_add(&out, &b->version, sizeof b->version);
    buf_add(&out, &b->n_tensors, sizeof b->n_tensors);
    buf_add(&out, &b->n_keys, sizeof b->n_keys);
    buf_add(&out, b->meta.data ? b->meta.data : "", b->meta.len);
    buf_add(&out, b->directory.data ? b->directory.data : "", b->directory.len);
    pad(&out, b->alignment);
    buf_add(&out, b->data.data ? b->data.data : "", b->data.len);
    REQUIRE(!out.overflow);
    return (unsigned char *)buf_take(&out, ret_size);
}
