#ifndef TELLERD_BACKEND_CPU_PRIV_H
#define TELLERD_BACKEND_CPU_PRIV_H

/*
 * What the files of the CPU backend share: its state, its handles, and the ops that cpu_backend.c
 * puts into the table.  What each op does is said in backend.h.
 */
#include "cpu_kernels.h"
#include "cpu_threads.h"
#include "tellerd/backend/backend.h"

struct attention_plan;

struct cpu_backend {
    struct backend base;
    const struct cpu_kernels *kernels;
    struct cpu_pool *pool;
    struct big_pool *weights;
    uint32_t n_threads;
    char description[64];
    float *scratch; /* [n_threads][CPU_SCRATCH] */
    size_t scratch_bytes;
    bool int8;     /* quantised weights take activations rounded to int8 */
    float *packed; /* rows of a product, grown to the largest so far */
    size_t packed_floats;
    enum backend_value_path value_path;

    /* the step: */
    const struct step_batch *batch; /* NULL outside */
    const float *rope_of;           /* inv_freq that the tables below were made from, or NULL */
    float *cosines, *sines;         /* [rows][n_dims / 2], grown to the largest step */
    size_t rope_floats;
    struct attention_plan *plan;
};

enum {
    CPU_SCRATCH = (int)CPU_PRODUCT_SCRATCH > (int)CPU_ATTENTION_SCRATCH ? CPU_PRODUCT_SCRATCH
                                                                        : CPU_ATTENTION_SCRATCH
};

struct backend_weight {
    enum backend_use use;
    enum tensor_type type;
    uint32_t rows, columns;
    const uint8_t *data; /* panels, the mapped rows, or f32 */
    bool is_owned;       /* data is of the backend's pool, else borrowed */
    size_t row_bytes;    /* TABLE */
    size_t panel_bytes;  /* MATRIX */
};

struct backend_buffer {
    float *data;
    size_t n_floats;
};

struct backend_cache {
    struct backend_cache_shape shape; /* layer_has_values: own copy */
    bool *has_values;
    uint8_t **keys, **values;               /* [n_layers]; values NULL for keys-only layers */
    uint32_t *value_ids;                    /* [n_blocks][block_size] or NULL */
    size_t key_head_bytes, key_block_bytes; /* of one KV head, of all, in one block of a layer */
    size_t value_row_bytes, value_head_bytes, value_block_bytes;
};

static inline struct cpu_backend *cpu_of(struct backend *be)
{
    return (struct cpu_backend *)be;
}

static inline float *cpu_scratch(const struct cpu_backend *cpu, uint32_t thread)
{
    return cpu->scratch + (size_t)thread * CPU_SCRATCH;
}

/* Calls fn(ctx, first, n, thread) for pieces of 0..count-1, in parallel when `work` (about one
 * operation on one number each) is worth it. */
typedef void (*cpu_range_fn)(void *ctx, uint32_t first, uint32_t n, uint32_t thread);
void cpu_ranges(struct cpu_backend *cpu, uint32_t count, size_t work, cpu_range_fn fn, void *ctx);

/* cpu_weights.c */
enum status cpu_weight_new(struct backend *be, const struct tensor *source, enum backend_use use,
                           struct backend_weight **ret, struct error *err);
void cpu_weight_free(struct backend *be, struct backend_weight *weight);
void cpu_matmul(struct backend *be, struct backend_buffer *y, const struct backend_buffer *x,
                const struct backend_weight *w, const struct backend_weight *bias, bool accumulate,
                uint32_t n_rows);

/* cpu_cache.c */
enum status cpu_cache_new(struct backend *be, const struct backend_cache_shape *shape,
                          struct backend_cache **ret, struct error *err);
void cpu_cache_free(struct backend *be, struct backend_cache *cache);
void cpu_cache_copy_block(struct backend *be, struct backend_cache *cache, uint32_t from,
                          uint32_t to);
void cpu_cache_bytes(const struct backend_cache *cache, size_t ret_bytes[3]);
void cpu_value_ids_write(struct backend *be, struct backend_cache *cache);
void cpu_kv_write(struct backend *be, struct backend_cache *cache, uint32_t layer,
                  const struct backend_buffer *k, const struct backend_buffer *v);

/* cpu_attention.c */
void cpu_attention(struct backend *be, struct backend_cache *cache,
                   const struct backend_attention *a, struct backend_buffer *out,
                   const struct backend_buffer *q);
void cpu_attention_plan_free(struct attention_plan *plan);

/* cpu_ops.c */
void cpu_embed(struct backend *be, struct backend_buffer *y, const struct backend_weight *table,
               const uint32_t *ids, uint32_t n_rows);
void cpu_rmsnorm(struct backend *be, struct backend_buffer *y, const struct backend_buffer *x,
                 const struct backend_weight *w, float eps, uint32_t n_rows, uint32_t n);
void cpu_head_norm(struct backend *be, struct backend_buffer *x, const struct backend_weight *w,
                   float eps, float scale, uint32_t n_rows, uint32_t n_heads, uint32_t head_size);
void cpu_smear(struct backend *be, struct backend_buffer *x, const struct backend_buffer *previous,
               const struct backend_weight *gate, float lambda, uint32_t n_rows, uint32_t n);
void cpu_rope(struct backend *be, struct backend_buffer *x, const struct backend_rope *rope,
              uint32_t n_rows, uint32_t n_heads, uint32_t head_size);
void cpu_bank_add(struct backend *be, struct backend_buffer *v, const struct backend_weight *bank,
                  float gamma, const struct backend_weight *gate, float gate_scale,
                  const struct backend_buffer *x, uint32_t n_rows, uint32_t x_columns,
                  uint32_t n_kv_heads, uint32_t head_size);
void cpu_swiglu(struct backend *be, struct backend_buffer *gate, const struct backend_buffer *up,
                size_t n);
void cpu_relu_squared(struct backend *be, struct backend_buffer *x, size_t n);
void cpu_pick_rows(struct backend *be, struct backend_buffer *y, const struct backend_buffer *x,
                   const uint32_t *rows, uint32_t n_picked, uint32_t n);
void cpu_softcap(struct backend *be, struct backend_buffer *z, float cap, size_t n);

#endif
