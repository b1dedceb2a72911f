#ifndef TELLERD_BACKEND_BACKEND_H
#define TELLERD_BACKEND_BACKEND_H

/*
 * The backend interface: layer-step operations that the model's forward pass (model/gpt.c) is
 * written in.  Both backends (cpu, cuda) sit behind it in one process.  backend.c checks shapes
 * once for all of them; the slots below trust their arguments.  Handles are opaque; the model never
 * sees a raw device pointer.
 *
 * Threads: all calls for one backend come from one thread at a time (the engine, or the loader
 * before it starts).
 *
 * Numbers: activations are f32; where they meet quantised weights the CPU backend rounds them to
 * int8 in groups of 32 (unless cpu_activations says f32).  Every result of a row depends on that
 * row's inputs alone, never on how many rows the step has, how they are chunked or how many threads
 * run: reductions go in one fixed order (products: k ascending; attention: fixed key chunks of
 * BACKEND_KEY_CHUNK positions, combined in order; bank sums in slot order).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/backend/step.h"
#include "tellerd/backend/tensor.h"
#include "tellerd/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BACKEND_KEY_CHUNK = 256, /* positions of one attention chunk; a multiple of every block size */
    BACKEND_DEDUP_POSITIONS =
        256, /* a query that sees at least this many positions sums by slot, else it gathers */
    BACKEND_MAX_THREADS = 256,
};

struct backend;        /* an opened backend: device, thread pool, workspace */
struct backend_weight; /* a matrix, table or vector made ready for the backend */
struct backend_buffer; /* f32 activations */
struct backend_cache;  /* the KV cache: blocks of all layers */

enum backend_value_path { BACKEND_VALUE_AUTO, BACKEND_VALUE_GATHER, BACKEND_VALUE_DEDUP };

struct backend_config {
    const char *name;     /* "auto", "cpu", "cuda" */
    uint32_t n_threads;   /* 0 = one per core (at most 16) */
    const char *cpu_path; /* NULL or "auto", "portable", "avx2", "avx512": forces a kernel set
                             (environment TELLERD_CPU_PATH in tests) */
    const char *cpu_activations; /* how activations meet quantised weights: NULL or "auto", "int8"
                                    (rounded, in groups of 32), "f32" (as they are) */
};

/* How a weight is used. */
enum backend_use {
    BACKEND_MATRIX, /* products: y = x W^T; repacked, types kept */
    BACKEND_TABLE,  /* rows picked by id (embedding, bank): read in place, borrowed from the mapped
                       file */
    BACKEND_VECTOR, /* norm weights, biases: expanded to f32 */
};

/* Shape of the cache. */
struct backend_cache_shape {
    uint32_t n_layers;
    uint32_t n_blocks;
    uint32_t block_size;     /* P: 8, 16, 32 or 64 */
    uint32_t n_kv_heads;     /* K */
    uint32_t head_size;      /* D, a multiple of 32 */
    enum tensor_type type_k; /* F32, F16, BF16 or Q8_0 ("int8") */
    enum tensor_type type_v;
    const bool *layer_has_values; /* [n_layers]: false for `bank` layers, which hold keys only */
    bool has_value_ids;           /* one u32 per position, shared by all layers */
    bool prefault; /* touch all of it at once; else pages come with their first use */
};

struct backend_rope {
    uint32_t n_dims;  /* rotated numbers of a head (even) */
    bool interleaved; /* pairs (2i, 2i+1); else (i, i + n_dims/2) */
    const float *
        inv_freq; /* [n_dims / 2], sign included (nanochat: negative); lives as long as the model */
};

/* Attention of one layer.  Scale is folded in: softmax(scale * q.k). */
struct backend_attention {
    uint32_t layer;   /* of the cache */
    uint32_t n_heads; /* H */
    uint32_t window;  /* 0 = all; else a query at p sees p - window + 1 .. p */
    float scale;
    const struct backend_weight
        *bank;   /* NULL: values from the cache; else TABLE [rows, K*D] read by value id */
    float gamma; /* applied in fp32 after the sum; 1 without a bank */
};

struct backend_ops {
    const char *name;
    enum status (*open)(const struct backend_config *config, struct backend **ret,
                        struct error *err);
    void (*close)(struct backend *be);
    /* "avx2, 2 threads" for logs and --version; lives as long as the backend */
    const char *(*describe)(const struct backend *be);

    enum status (*weight_new)(struct backend *be, const struct tensor *source, enum backend_use use,
                              struct backend_weight **ret, struct error *err);
    void (*weight_free)(struct backend *be, struct backend_weight *weight);

    enum status (*buffer_new)(struct backend *be, size_t n_floats, struct backend_buffer **ret,
                              struct error *err);
    void (*buffer_free)(struct backend *be, struct backend_buffer *buffer);
    void (*upload)(struct backend *be, struct backend_buffer *to, const float *from,
                   size_t n_floats);
    /* Waits for the step's work on the buffer, then copies. */
    void (*download)(struct backend *be, const struct backend_buffer *from, float *to,
                     size_t n_floats);

    enum status (*cache_new)(struct backend *be, const struct backend_cache_shape *shape,
                             struct backend_cache **ret, struct error *err);
    void (*cache_free)(struct backend *be, struct backend_cache *cache);
    /* Copies all layers and ids of block `from` to block `to` (copy on write). */
    void (*cache_copy_block)(struct backend *be, struct backend_cache *cache, uint32_t from,
                             uint32_t to);
    /* Really allocated bytes by kind, for metrics: [0] keys, [1] values, [2] value ids. */
    void (*cache_bytes)(const struct backend_cache *cache, size_t ret_bytes[3]);

    /* Around a forward pass.  The batch lives until step_end.  step_end: INTERNAL/ENGINE_FAILED
     * when the device failed. */
    enum status (*step_begin)(struct backend *be, const struct step_batch *batch,
                              struct error *err);
    enum status (*step_end)(struct backend *be, struct error *err);

    /* y[T, C] = table[token_ids]; rows beyond the table were refused earlier. */
    void (*embed)(struct backend *be, struct backend_buffer *y, const struct backend_weight *table,
                  const uint32_t *ids, uint32_t n_rows);
    /* y[r] = x[r] / sqrt(mean(x[r]^2) + eps) * w; w NULL = 1.  x, y: [n_rows, n]; y may be x. */
    void (*rmsnorm)(struct backend *be, struct backend_buffer *y, const struct backend_buffer *x,
                    const struct backend_weight *w, float eps, uint32_t n_rows, uint32_t n);
    /* The same for each head of x [n_rows, n_heads * head_size], then times `scale`; in place. w:
     * [head_size] or NULL. */
    void (*head_norm)(struct backend *be, struct backend_buffer *x, const struct backend_weight *w,
                      float eps, float scale, uint32_t n_rows, uint32_t n_heads,
                      uint32_t head_size);
    /* nanochat: x[r] += lambda * sigmoid(gate . x[r][:channels]) * previous[r]; rows with position
     * 0 stay. previous: [n_rows, n]. */
    void (*smear)(struct backend *be, struct backend_buffer *x,
                  const struct backend_buffer *previous, const struct backend_weight *gate,
                  float lambda, uint32_t n_rows, uint32_t n);
    /* y[n_rows, rows(w)] = x[n_rows, columns(w)] w^T (+ bias) (+ y when accumulate).  bias: VECTOR
     * or NULL. */
    void (*matmul)(struct backend *be, struct backend_buffer *y, const struct backend_buffer *x,
                   const struct backend_weight *w, const struct backend_weight *bias,
                   bool accumulate, uint32_t n_rows);
    /* Rotates x [n_rows, n_heads, head_size] by the batch's positions, in place. */
    void (*rope)(struct backend *be, struct backend_buffer *x, const struct backend_rope *rope,
                 uint32_t n_rows, uint32_t n_heads, uint32_t head_size);
    /* v[r, kv head, :] += g * gamma * bank[value id of r][kv head]; g = 1, or gate_scale *
     * sigmoid(gate row . x[r][:channels]). */
    void (*bank_add)(struct backend *be, struct backend_buffer *v,
                     const struct backend_weight *bank, float gamma,
                     const struct backend_weight *gate, float gate_scale,
                     const struct backend_buffer *x, uint32_t n_rows, uint32_t x_columns,
                     uint32_t n_kv_heads, uint32_t head_size);
    /* Writes the step's value ids to their blocks; once per step, before attention. */
    void (*value_ids_write)(struct backend *be, struct backend_cache *cache);
    /* Writes k (and v; NULL in keys-only layers), [n_rows, K*D] each, rounded to the cache types.
     */
    void (*kv_write)(struct backend *be, struct backend_cache *cache, uint32_t layer,
                     const struct backend_buffer *k, const struct backend_buffer *v);
    /* out[n_rows, H*D]: each row attends to its sequence's positions 0..its own (the step's keys
     * are already written). */
    void (*attention)(struct backend *be, struct backend_cache *cache,
                      const struct backend_attention *a, struct backend_buffer *out,
                      const struct backend_buffer *q);
    /* gate[r] = silu(gate[r]) * up[r] / x[r] = relu(x[r])^2; in place, n floats in all rows. */
    void (*swiglu)(struct backend *be, struct backend_buffer *gate, const struct backend_buffer *up,
                   size_t n);
    void (*relu_squared)(struct backend *be, struct backend_buffer *x, size_t n);
    /* y[i] = x[rows[i]] for [*, n] buffers. */
    void (*pick_rows)(struct backend *be, struct backend_buffer *y, const struct backend_buffer *x,
                      const uint32_t *rows, uint32_t n_picked, uint32_t n);
    /* z = cap * tanh(z / cap), n floats, in place. */
    void (*softcap)(struct backend *be, struct backend_buffer *z, float cap, size_t n);
    /* How values of bank layers are summed from now on; AUTO at start. Tests compare the two. */
    void (*set_value_path)(struct backend *be, enum backend_value_path path);
};

/*
 * Finds the backend by name ("auto" prefers cuda when its module loads and a device is there) and
 * opens it.  Errors: BAD_CONFIG with what to do.  The result is used through backend_ops_of().
 */
enum status backend_open(const struct backend_config *config, struct backend **ret,
                         struct error *err) WARN_UNUSED;
void backend_close(struct backend *be);
const struct backend_ops *backend_ops_of(const struct backend *be);
/* Names of the backends in this build, NULL-terminated. */
const char *const *backend_names(void);

/* Every opened backend begins with this. */
struct backend {
    const struct backend_ops *ops;
};

/* Bytes of one position in the cache by the shape, all layers: METHOD's formula (keys, values, 4
 * for the value id). */
size_t backend_cache_position_bytes(const struct backend_cache_shape *shape);

#ifdef __cplusplus
}
#endif

#endif
