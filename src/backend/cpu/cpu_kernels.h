#ifndef TELLERD_BACKEND_CPU_KERNELS_H
#define TELLERD_BACKEND_CPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/backend/tensor.h"

/*
 * What one kernel set offers.  The same source (cpu_kernels_impl.h) is compiled once per
 * instruction set; cpu_backend.c picks a set when it opens.  Kernels work on raw memory, know
 * nothing of threads, and write only what their arguments name.
 */

enum {
    CPU_PANEL = 16,     /* outputs of a panel, and lanes of a kernel vector */
    CPU_RANGE = 256,    /* k of a panel expanded at once */
    CPU_ROW_CHUNK = 96, /* rows that pass over an expanded range, at most */
    CPU_QUERIES = 32,   /* query vectors (rows x heads) of an attention tile, at most */
    CPU_KEYS = 32,      /* keys or values expanded at once */
    CPU_MAX_HEAD = 512, /* head size */
};

/* A group of 32 numbers of a row, rounded to int8: number i is codes[i] * d. */
struct cpu_int8_group {
    int8_t codes[32];
    float d, d_sum;           /* d_sum: d times the sum of the codes */
    int32_t start, start_low; /* -128 times the sum of all codes, and of the first 16 */
};

/* How rows are packed for a product. */
enum cpu_rows { CPU_ROWS_F32, CPU_ROWS_INT8 };

/* y[n_rows, n_out] = x[n_rows, n_k] w^T (+ bias) (+ y).  w: panels of cpu_panels.h.  x: packed. */
struct cpu_product {
    enum tensor_type type;
    const uint8_t *panels;
    size_t panel_bytes;
    uint32_t n_k, n_out, n_rows;
    enum cpu_rows rows;
    const void *x; /* packed: floats, or groups */
    float *y;
    const float *bias; /* [n_out] or NULL */
    bool accumulate;
};

/* The part of a sequence's cache that one attention tile reads: one layer, one KV head. */
struct cpu_attention_source {
    enum tensor_type type_k, type_v;
    const uint8_t *keys, *values;    /* of block 0 and this KV head */
    size_t key_stride, value_stride; /* bytes from a block to the next */
    uint32_t block_size, head_size;
    const uint32_t *blocks;
    /* values by id: NULL bank = from the cache */
    const uint8_t *bank;
    size_t bank_row_bytes;
    uint32_t bank_first;       /* element of a row where this KV head begins */
    const uint32_t *value_ids; /* [block][position in block] */
    const uint32_t *slot_of_position, *value_id_of_slot;
};

/* n_rows neighbouring rows of a sequence times n_heads query heads of one KV head. */
struct cpu_attention_tile {
    const struct cpu_attention_source *source;
    uint32_t first_position; /* of the first row */
    uint32_t n_rows, n_heads;
    uint32_t window;
    float scale, gamma;
    const float *q; /* first row, first head; heads are head_size apart, rows row_stride */
    float *out;
    size_t row_stride;
};

/* State of one query over some chunks of keys: maximum, sum, output (not yet divided). */
struct cpu_partial {
    float max, sum;
};

struct cpu_kernels {
    const char *name;
    /*
     * Rows of x as `product` reads them, [n_rows * n_k] floats: tiles of rows, the values of one k
     * side by side (one row packed is the row itself).  pack_tiles: how many tiles there are; pack:
     * does some of them.
     */
    uint32_t (*pack_tiles)(enum cpu_rows rows, uint32_t n_rows);
    void (*pack)(enum cpu_rows rows, const float *x, uint32_t n_k, uint32_t n_rows,
                 uint32_t first_tile, uint32_t n_tiles, void *out);
    /* Panels first .. first + n - 1 of the product.  scratch: CPU_PRODUCT_SCRATCH floats. */
    void (*product)(const struct cpu_product *p, uint32_t first, uint32_t n, float *scratch);

    /*
     * Attention of a tile.  attend: all of it.  attend_chunk: one chunk, into partials
     * [queries] and outs [queries, head_size], for attend_combine (n_chunks such, chunk after
     * chunk), which gives the same bits as attend.  attend_slots: by slot (dedup); slot_scratch:
     * cpu_slot_scratch floats.  scratch: CPU_ATTENTION_SCRATCH floats.
     */
    void (*attend)(const struct cpu_attention_tile *tile, float *scratch);
    void (*attend_chunk)(const struct cpu_attention_tile *tile, uint32_t chunk,
                         struct cpu_partial *partials, float *outs, float *scratch);
    void (*attend_combine)(const struct cpu_attention_tile *tile, uint32_t n_chunks,
                           const struct cpu_partial *partials, float *outs);
    void (*attend_slots)(const struct cpu_attention_tile *tile, float *scratch,
                         float *slot_scratch);

    /* y = x / sqrt(mean(x^2) + eps) * w * scale; w may be NULL. */
    void (*norm)(float *y, const float *x, const float *w, float eps, float scale, uint32_t n);
    /* Elements first .. first + n - 1 of a TABLE row, to f32. */
    void (*expand)(enum tensor_type type, const uint8_t *row, uint32_t first, uint32_t n,
                   float *out);
    /* n floats to a cache type: the bits of tensor_quantize. */
    void (*round)(enum tensor_type type, const float *x, uint8_t *out, uint32_t n);
    /* Rotates one head by cos[n_dims / 2], sin[n_dims / 2]. */
    void (*rotate)(float *x, const float *cosines, const float *sines, uint32_t n_dims,
                   bool interleaved);
    float (*dot)(const float *a, const float *b, uint32_t n);
    /* y += factor * x */
    void (*add_scaled)(float *y, const float *x, float factor, uint32_t n);
    void (*swiglu)(float *gate, const float *up, size_t n);
    void (*relu_squared)(float *x, size_t n);
    void (*softcap)(float *x, float cap, size_t n);
};

enum {
    /* two panels of a range, the sums of two panels; int8: two of 768 k, a byte each, and scales */
    CPU_PRODUCT_SCRATCH = 2 * CPU_RANGE * CPU_PANEL + 2 * CPU_ROW_CHUNK * CPU_PANEL + 2400,
    /* queries, outputs twice, keys, values; scores; max and sum */
    CPU_ATTENTION_SCRATCH =
        3 * CPU_QUERIES * CPU_MAX_HEAD + 2 * CPU_KEYS * CPU_MAX_HEAD + CPU_QUERIES * (256 + 16 + 4),
};

/* Floats that attend_slots needs for a tile of n_queries whose last position is `position`. */
static inline size_t cpu_slot_scratch(uint32_t n_queries, uint32_t position)
{
    size_t n = (size_t)position / CPU_PANEL * CPU_PANEL + 2 * CPU_PANEL;
    return 2 * n * n_queries;
}

extern const struct cpu_kernels cpu_kernels_portable;
extern const struct cpu_kernels cpu_kernels_avx2;
extern const struct cpu_kernels cpu_kernels_avx512;

#endif
