#include "config.h"

#include "support/tiny_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/base/buf.h"
#include "tellerd/base/rng.h"
#include "tellerd/base/status.h"

enum { LAYERS = 4, C = 64, H = 2, K = 1, D = 32, F = 96, V = TINY_MODEL_TOKENS, ROWS = V + 1 };
enum { U32 = 4, F32 = 6, STRING = 8, ARRAY = 9, ALIGN = 32 };

struct writer {
    struct buf keys, infos, data;
    uint64_t n_keys, n_tensors, seed;
};

static void add_u32(struct buf *b, uint32_t v)
{
    buf_add(b, &v, sizeof(v));
}

static void add_u64(struct buf *b, uint64_t v)
{
    buf_add(b, &v, sizeof(v));
}

static void add_text(struct buf *b, const char *text)
{
    add_u64(b, strlen(text));
    buf_add_str(b, text);
}

static void key(struct writer *w, const char *name, uint32_t type)
{
    add_text(&w->keys, name);
    add_u32(&w->keys, type);
    w->n_keys++;
}

static void key_u32(struct writer *w, const char *name, uint32_t value)
{
    key(w, name, U32);
    add_u32(&w->keys, value);
}

static void key_text(struct writer *w, const char *name, const char *value)
{
    key(w, name, STRING);
    add_text(&w->keys, value);
}

static void key_array(struct writer *w, const char *name, uint32_t type, uint64_t n)
{
    key(w, name, ARRAY);
    add_u32(&w->keys, type);
    add_u64(&w->keys, n);
}

/* Random numbers around `mean`; columns first, as GGUF has it. */
static void tensor(struct writer *w, const char *name, uint64_t columns, uint64_t rows, float mean,
                   float spread)
{
    add_text(&w->infos, name);
    add_u32(&w->infos, rows ? 2 : 1);
    add_u64(&w->infos, columns);
    if (rows)
        add_u64(&w->infos, rows);
    add_u32(&w->infos, 0); /* F32 */
    add_u64(&w->infos, w->data.len);
    for (uint64_t i = 0; i < columns * (rows ? rows : 1); i++) {
        float x = mean + spread * (2 * rng_uniform(w->seed, w->n_tensors, i) - 1);

        buf_add(&w->data, &x, sizeof(x));
    }
    while (w->data.len % ALIGN)
        buf_add_char(&w->data, 0);
    w->n_tensors++;
}

static void write_keys(struct writer *w)
{
    static const char *const sources[LAYERS] = {"residual", "residual+bank", "bank", "bank"};
    float eps = 1e-5F;
    char name[32];

    key_text(w, "general.architecture", "llama");
    key_text(w, "general.name", "tiny");
    key_u32(w, "llama.block_count", LAYERS);
    key_u32(w, "llama.context_length", 1024);
    key_u32(w, "llama.embedding_length", C);
    key_u32(w, "llama.feed_forward_length", F);
    key_u32(w, "llama.attention.head_count", H);
    key_u32(w, "llama.attention.head_count_kv", K);
    key_u32(w, "llama.value_bank.rows", ROWS);
    key_u32(w, "llama.value_bank.sink_row", V);
    key(w, "llama.attention.layer_norm_rms_epsilon", F32);
    buf_add(&w->keys, &eps, sizeof(eps));
    key_array(w, "llama.attention.value_source", STRING, LAYERS);
    for (int i = 0; i < LAYERS; i++)
        add_text(&w->keys, sources[i]);
    key_text(w, "tokenizer.ggml.model", "gpt2");
    key_text(w, "tokenizer.ggml.pre", "gpt-2");
    key_array(w, "tokenizer.ggml.tokens", STRING, V);
    for (int i = 0; i < V; i++) {
        snprintf(name, sizeof(name), "t%d", i);
        add_text(&w->keys, name);
    }
    key_array(w, "tokenizer.ggml.merges", STRING, 1);
    add_text(&w->keys, "t 1");
    key_u32(w, "tokenizer.ggml.eos_token_id", TINY_MODEL_EOS);
}

static void layer_tensor(struct writer *w, int layer, const char *what, uint64_t columns,
                         uint64_t rows, float mean, float spread)
{
    char name[64];

    snprintf(name, sizeof(name), "blk.%d.%s.weight", layer, what);
    tensor(w, name, columns, rows, mean, spread);
}

static void write_tensors(struct writer *w)
{
    tensor(w, "token_embd.weight", C, V, 0, 1);
    tensor(w, "output.weight", C, V, 0, 1);
    tensor(w, "output_norm.weight", C, 0, 1, .1F);
    for (int i = 0; i < LAYERS; i++) {
        layer_tensor(w, i, "attn_norm", C, 0, 1, .1F);
        layer_tensor(w, i, "attn_q", C, (uint64_t)H * D, 0, .4F);
        layer_tensor(w, i, "attn_k", C, (uint64_t)K * D, 0, .4F);
        if (i < 2)
            layer_tensor(w, i, "attn_v", C, (uint64_t)K * D, 0, .3F);
        if (i > 0)
            layer_tensor(w, i, "attn_v_bank", (uint64_t)K * D, ROWS, 0, 1);
        layer_tensor(w, i, "attn_output", (uint64_t)H * D, C, 0, .3F);
        layer_tensor(w, i, "ffn_norm", C, 0, 1, .1F);
        layer_tensor(w, i, "ffn_gate", C, F, 0, .2F);
        layer_tensor(w, i, "ffn_up", C, F, 0, .2F);
        layer_tensor(w, i, "ffn_down", F, C, 0, .2F);
    }
}

void tiny_model_write(const char *path, uint64_t seed)
{
    static const size_t max_bytes = (size_t)64 << 20;
    struct writer w = {.seed = seed};
    struct buf head;
    FILE *file;

    buf_init(&w.keys, max_bytes);
    buf_init(&w.infos, max_bytes);
    buf_init(&w.data, max_bytes);
    buf_init(&head, max_bytes);
    write_keys(&w);
    write_tensors(&w);
    buf_add_str(&head, "GGUF");
    add_u32(&head, 3);
    add_u64(&head, w.n_tensors);
    add_u64(&head, w.n_keys);
    buf_add(&head, w.keys.data, w.keys.len);
    buf_add(&head, w.infos.data, w.infos.len);
    while (head.len % ALIGN)
        buf_add_char(&head, 0);
    buf_add(&head, w.data.data, w.data.len);
    REQUIRE(!head.overflow && !w.keys.overflow && !w.infos.overflow && !w.data.overflow);
    file = fopen(path, "wb");
    REQUIRE(file && fwrite(head.data, 1, head.len, file) == head.len);
    REQUIRE(fclose(file) == 0);
    buf_done(&w.keys);
    buf_done(&w.infos);
    buf_done(&w.data);
    buf_done(&head);
}
