#ifndef TELLERD_BACKEND_CPU_ATTENTION_IMPL_H
#define TELLERD_BACKEND_CPU_ATTENTION_IMPL_H

/*
 * Attention, in vec16.  Part of cpu_kernels_impl.h.
 *
 * A query is one row's one head; a tile holds up to CPU_QUERIES of them that share a KV head.  Keys
 * come in chunks of BACKEND_KEY_CHUNK positions that begin at multiples of it, and in groups of 16
 * that begin at multiples of 16.  For each query the arithmetic is that of a tile of its own: a
 * score is a dot product over d going up; a chunk's maximum is exact; exponentials are summed lane
 * by lane, group after group; values are summed position after position from 0; chunks are combined
 * in order.  What a query does not see adds exact zeros.
 */
#include "cpu_kernels.h"
#include "cpu_product_impl.h"
#include "cpu_simd.h"
#include "tellerd/backend/backend.h"

/* e^x: at most 2 ulp off for x of -87 .. 88, 1.6e-38 below, NaN for NaN. */
INLINE struct vec16 vec16_exp(struct vec16 x)
{
    x = vec16_max(vec16_set(-87.3f), vec16_min(vec16_set(88.0f), x));
    struct vec16 n = vec16_round(vec16_mul(x, vec16_set(1.44269504f)));
    x = vec16_fma(n, vec16_set(-0.693359375f), x);
    x = vec16_fma(n, vec16_set(2.12194440e-4f), x);
    struct vec16 p = vec16_set(1.9875691500e-4f);
    p = vec16_fma(p, x, vec16_set(1.3981999507e-3f));
    p = vec16_fma(p, x, vec16_set(8.3334519073e-3f));
    p = vec16_fma(p, x, vec16_set(4.1665795894e-2f));
    p = vec16_fma(p, x, vec16_set(1.6666665459e-1f));
    p = vec16_fma(p, x, vec16_set(5.0000001201e-1f));
    p = vec16_fma(vec16_mul(p, x), x, vec16_add(x, vec16_set(1.0f)));
    return vec16_mul(p, vec16_exp2_int(n));
}

INLINE float exp_one(float x)
{
    float out[16];
    vec16_store(out, vec16_exp(vec16_set(x)));
    return out[0];
}

/* Elements first .. first + n - 1 (multiples of 32) of a row in memory: Q8_0 */
INLINE void expand_q8_0(const uint8_t *row, uint32_t first, uint32_t n, float *out)
{
    const uint8_t *block = row + (size_t)first / 32 * 34;
    for (uint32_t i = 0; i < n; i += 32, block += 34) {
        uint16_t bits;
        memcpy(&bits, block, 2);
        struct vec16 d = vec16_set(tensor_f16_to_f32(bits));
        vec16_store(out + i, vec16_mul(vec16_from_i8(block + 2), d));
        vec16_store(out + i + 16, vec16_mul(vec16_from_i8(block + 18), d));
    }
}

/* The same for every type, from any first element: whole blocks, then the part that is wanted. */
static void expand_any(enum tensor_type type, const uint8_t *row, uint32_t first, uint32_t n,
                       float *out)
{
    uint32_t elements = tensor_block_elements(type), size = tensor_block_bytes(type);
    float block[256];
    for (uint32_t done = 0; done < n;) {
        uint32_t at = (first + done) / elements, skip = (first + done) % elements;
        uint32_t take = elements - skip < n - done ? elements - skip : n - done;
        tensor_dequantize(type, row + (size_t)at * size, block, elements);
        memcpy(out + done, block + skip, take * sizeof(float));
        done += take;
    }
}

static void kernel_expand(enum tensor_type type, const uint8_t *row, uint32_t first, uint32_t n,
                          float *out)
{
    uint32_t i = 0;
    switch (type) {
    case TENSOR_F32:
        memcpy(out, row + sizeof(float) * first, n * sizeof(float));
        return;
    case TENSOR_F16:
        for (; i + 16 <= n; i += 16)
            vec16_store(out + i, vec16_from_f16(row + 2 * (size_t)(first + i)));
        break;
    case TENSOR_BF16:
        for (; i + 16 <= n; i += 16)
            vec16_store(out + i, vec16_from_bf16(row + 2 * (size_t)(first + i)));
        break;
    case TENSOR_Q8_0:
        if (first % 32 == 0) {
            i = n / 32 * 32;
            expand_q8_0(row, first, i, out);
        }
        break;
    default:
        break;
    }
    if (i < n)
        expand_any(type, row, first + i, n - i, out + i);
}

/* ---- keys and values to f32 ------------------------------------------------------------------ */

/* A block of 8 positions holds half a panel; two of them make 16 keys. */
static void half_keys(enum tensor_type type, const uint8_t *keys, uint32_t n_d, float *out)
{
    for (uint32_t d = 0; d < n_d; d++) {
        const uint8_t *group = keys + (size_t)(d / 32) * 8 * 34;
        for (uint32_t j = 0; j < 8; j++) {
            uint16_t bits;
            if (type == TENSOR_F32) {
                memcpy(out + j, keys + 4 * ((size_t)d * 8 + j), 4);
            } else if (type == TENSOR_Q8_0) {
                memcpy(&bits, group + 2 * j, 2);
                int8_t code = (int8_t)group[16 + d % 32 * 8 + j];
                out[j] = (float)code * tensor_f16_to_f32(bits);
            } else {
                memcpy(&bits, keys + 2 * ((size_t)d * 8 + j), 2);
                out[j] = type == TENSOR_F16 ? tensor_f16_to_f32(bits) : tensor_bf16_to_f32(bits);
            }
        }
        out += 16;
    }
}

/* Bytes of n elements (whole blocks) of a type. */
INLINE size_t elements_bytes(enum tensor_type type, uint32_t n)
{
    return (size_t)n / tensor_block_elements(type) * tensor_block_bytes(type);
}

/* Asks for memory that is wanted soon: blocks lie anywhere, so the processor cannot guess. */
INLINE void prefetch(const uint8_t *from, size_t n)
{
    for (size_t i = 0; i < n; i += 64)
        __builtin_prefetch(from + i);
}

/* 16 keys, side by side, to out[n_d][16].  int8: per 32 numbers d f16[16], codes i8[32][16]. */
static void key_panel_expand(enum tensor_type type, const uint8_t *panel, uint32_t n_d, float *out)
{
    if (type != TENSOR_Q8_0) {
        panel_expand(type, panel, n_d, 0, n_d, out);
        return;
    }
    for (uint32_t g = 0; g < n_d / 32; g++, panel += 544) {
        struct vec16 d = vec16_from_f16(panel);
        for (uint32_t i = 0; i < 32; i++, out += 16)
            vec16_store(out, vec16_mul(vec16_from_i8(panel + 32 + i * 16), d));
    }
}

/* Keys of positions first .. first + 15 (a multiple of 16, below `end`) to out[D][16]. */
static void keys_expand(const struct cpu_attention_source *s, uint32_t first, uint32_t end,
                        float *out)
{
    uint32_t n_d = s->head_size;
    if (s->block_size == 8) {
        half_keys(s->type_k, s->keys + s->blocks[first / 8] * s->key_stride, n_d, out);
        if (first + 8 < end) {
            half_keys(s->type_k, s->keys + s->blocks[first / 8 + 1] * s->key_stride, n_d, out + 8);
        } else {
            for (uint32_t d = 0; d < n_d; d++)
                memset(out + d * 16 + 8, 0, 8 * sizeof(float));
        }
        return;
    }
    const uint8_t *block = s->keys + s->blocks[first / s->block_size] * s->key_stride;
    size_t panel_bytes = CPU_PANEL * elements_bytes(s->type_k, n_d);
    uint32_t ahead = first + 2 * 16;
    if (ahead < end)
        prefetch(s->keys + s->blocks[ahead / s->block_size] * s->key_stride +
                     ahead % s->block_size / 16 * panel_bytes,
                 panel_bytes);
    key_panel_expand(s->type_k, block + first % s->block_size / 16 * panel_bytes, n_d, out);
}

/* Values of positions first .. first + n - 1 (of a sequence that ends at `end`) to out[n][D]. */
static void values_expand(const struct cpu_attention_source *s, uint32_t first, uint32_t n,
                          uint32_t end, float *out)
{
    size_t row_bytes = elements_bytes(s->type_v, s->head_size);
    for (uint32_t i = 0; i < n; i++, out += s->head_size) {
        uint32_t block = s->blocks[(first + i) / s->block_size];
        uint32_t at = (first + i) % s->block_size;
        if (s->bank) {
            uint32_t id = s->value_ids[(size_t)block * s->block_size + at];
            kernel_expand(s->type_v, s->bank + id * s->bank_row_bytes, s->bank_first, s->head_size,
                          out);
        } else {
            uint32_t ahead = first + i + 16;
            if (ahead < end)
                prefetch(s->values + s->blocks[ahead / s->block_size] * s->value_stride +
                             ahead % s->block_size * row_bytes,
                         row_bytes);
            kernel_expand(s->type_v, s->values + block * s->value_stride + at * row_bytes, 0,
                          s->head_size, out);
        }
    }
}

/* ---- tiles ------------------------------------------------------------------------------------
 */

/* Scores of a chunk lie this far apart: a power of two would put all rows on the same cache sets.
 */
enum { SCORE_STRIDE = BACKEND_KEY_CHUNK + 16 };

/* Memory of a tile, cut from the scratch. */
struct attention_scratch {
    float *queries, *outs, *sums, *keys, *values, *scores;
    struct cpu_partial *partials;
};

static struct attention_scratch scratch_cut(float *scratch)
{
    struct attention_scratch s;
    s.queries = scratch;
    s.outs = s.queries + CPU_QUERIES * CPU_MAX_HEAD;
    s.sums = s.outs + CPU_QUERIES * CPU_MAX_HEAD;
    s.keys = s.sums + CPU_QUERIES * CPU_MAX_HEAD;
    s.values = s.keys + CPU_KEYS * CPU_MAX_HEAD;
    s.scores = s.values + CPU_KEYS * CPU_MAX_HEAD;
    s.partials = (struct cpu_partial *)(s.scores + CPU_QUERIES * SCORE_STRIDE);
    return s;
}

/* First position that the row at `position` sees. */
INLINE uint32_t window_start(uint32_t window, uint32_t position)
{
    return window > 0 && position >= window ? position - window + 1 : 0;
}

/* Copies the tile's queries side by side, times scale. */
static void queries_read(const struct cpu_attention_tile *t, float *queries)
{
    uint32_t n_d = t->source->head_size;
    struct vec16 scale = vec16_set(t->scale);
    for (uint32_t row = 0; row < t->n_rows; row++) {
        for (uint32_t i = 0; i < t->n_heads * n_d; i += 16)
            vec16_store(queries + i, vec16_mul(vec16_load(t->q + row * t->row_stride + i), scale));
        queries += t->n_heads * n_d;
    }
}

/* ---- few queries: straight from the cache ------------------------------------------------------
 *
 * A decode's queries are so few that expanding keys and values to f32 first would cost more than
 * the products.  f32, f16 and bf16 are read as they lie.  The order of every sum is that of
 * tiles().
 */

enum {
    FEW_QUERIES = 8, /* of a tile, at most; a multiple of FEW_ROWS */
    FEW_ROWS = 4,    /* queries that pass over a panel together, at most */
    FEW_PANELS = 4,
};

INLINE bool is_plain(enum tensor_type type)
{
    return type == TENSOR_F32 || type == TENSOR_F16 || type == TENSOR_BF16;
}

INLINE struct vec16 plain_load(const enum tensor_type type, const uint8_t *p)
{
    return type == TENSOR_F32   ? vec16_load((const float *)(const void *)p)
           : type == TENSOR_F16 ? vec16_from_f16(p)
                                : vec16_from_bf16(p);
}

/*
 * y[r][p] (+)= sum over k of x[r][k] * w[p][k]: rows of x ldx apart, w[p] with k at steps of `step`
 * bytes, rows of y ldy apart, panels 16.
 */
#define FEW_ARGS                                                                            \
    const float *x, size_t ldx, const uint8_t *const *w, size_t step, uint32_t n, float *y, \
        size_t ldy, bool resume

INLINE void few_body(const enum tensor_type type, const int mr, const int np, FEW_ARGS)
{
    struct vec16 acc[FEW_ROWS][FEW_PANELS];
    const uint8_t *at[FEW_PANELS];
    UNROLL for (int p = 0; p < np; p++) at[p] = w[p];
    UNROLL for (int r = 0; r < mr; r++)
    {
        UNROLL for (int p = 0; p < np; p++) acc[r][p] =
            resume ? vec16_load(y + r * ldy + p * 16) : vec16_zero();
    }
    for (uint32_t k = 0; k < n; k++) {
        struct vec16 v[FEW_PANELS];
        UNROLL for (int p = 0; p < np; p++)
        {
            v[p] = plain_load(type, at[p]);
            at[p] += step;
        }
        UNROLL for (int r = 0; r < mr; r++)
        {
            struct vec16 one = vec16_set(x[r * ldx + k]);
            UNROLL for (int p = 0; p < np; p++) acc[r][p] = vec16_fma(one, v[p], acc[r][p]);
        }
    }
    UNROLL for (int r = 0; r < mr; r++)
    {
        UNROLL for (int p = 0; p < np; p++) vec16_store(y + r * ldy + p * 16, acc[r][p]);
    }
}

typedef void (*few_fn)(FEW_ARGS);
#define FEW(type, mr, np)                                                    \
    static void few_##type##_##mr##_##np(FEW_ARGS)                           \
    {                                                                        \
        few_body(TENSOR_##type, mr, np, x, ldx, w, step, n, y, ldy, resume); \
    }
#define FEW_ROW(type, np) FEW(type, 1, np) FEW(type, 2, np) FEW(type, 3, np) FEW(type, 4, np)
#define FEW_TYPE(type)    FEW_ROW(type, 1) FEW_ROW(type, 2) FEW_ROW(type, 4)
FEW_TYPE(F32)
FEW_TYPE(F16)
FEW_TYPE(BF16)
#define FEW_OF(type, np)                                                                         \
    {                                                                                            \
        NULL, few_##type##_1_##np, few_##type##_2_##np, few_##type##_3_##np, few_##type##_4_##np \
    }
#define FEW_ALL(type)                                                         \
    {                                                                         \
        NULL_ROW, FEW_OF(type, 1), FEW_OF(type, 2), NULL_ROW, FEW_OF(type, 4) \
    }
#define NULL_ROW \
    {            \
        NULL     \
    }
static const few_fn few_table[3][FEW_PANELS + 1][FEW_ROWS + 1] = {FEW_ALL(F32), FEW_ALL(F16),
                                                                  FEW_ALL(BF16)};

/* All of n_rows (at most FEW_QUERIES) over n_panels (at most FEW_PANELS). */
static void few(enum tensor_type type, uint32_t n_rows, uint32_t n_panels, FEW_ARGS)
{
    int index = type == TENSOR_F32 ? 0 : type == TENSOR_F16 ? 1 : 2;
    for (uint32_t p = 0, np; p < n_panels; p += np) {
        np = n_panels - p >= 4 ? 4 : n_panels - p >= 2 ? 2 : 1;
        for (uint32_t r = 0, mr; r < n_rows; r += mr) {
            mr = n_rows - r < FEW_ROWS ? n_rows - r : FEW_ROWS;
            few_table[index][np][mr](x + r * ldx, ldx, w + p, step, n, y + r * ldy + p * 16, ldy,
                                     resume);
        }
    }
}

/* scores_of for few queries and plain keys in blocks of at least 16. */
static void few_scores(const struct cpu_attention_source *s, const float *queries,
                       uint32_t n_queries, uint32_t first, uint32_t end, float *scores,
                       size_t stride)
{
    size_t panel_bytes = CPU_PANEL * elements_bytes(s->type_k, s->head_size);
    for (uint32_t at = first; at < end; at += FEW_PANELS * CPU_PANEL) {
        const uint8_t *panels[FEW_PANELS];
        for (uint32_t i = at + FEW_PANELS * CPU_PANEL, n = 0; n < FEW_PANELS && i < end; n++) {
            prefetch(s->keys + s->blocks[i / s->block_size] * s->key_stride +
                         i % s->block_size / CPU_PANEL * panel_bytes,
                     panel_bytes);
            i += CPU_PANEL;
        }
        uint32_t n = 0;
        for (uint32_t i = at; n < FEW_PANELS && i < end; i += CPU_PANEL)
            panels[n++] = s->keys + s->blocks[i / s->block_size] * s->key_stride +
                          i % s->block_size / CPU_PANEL * panel_bytes;
        few(s->type_k, n_queries, n, queries, s->head_size, panels,
            CPU_PANEL * elements_bytes(s->type_k, 1), s->head_size, scores + (at - first), stride,
            false);
    }
}

/* sums[query][D] = weighted values of positions first .. end - 1, for few queries, from the cache.
 */
static void few_values(const struct cpu_attention_source *s, const float *weights,
                       uint32_t n_queries, uint32_t first, uint32_t end, float *sums)
{
    uint32_t n_d = s->head_size;
    size_t row_bytes = elements_bytes(s->type_v, n_d), width = elements_bytes(s->type_v, CPU_PANEL);
    for (uint32_t at = first, n; at < end; at += n) {
        uint32_t skip = at % s->block_size;
        n = end - at < s->block_size - skip ? end - at : s->block_size - skip;
        const uint8_t *rows =
            s->values + s->blocks[at / s->block_size] * s->value_stride + skip * row_bytes;
        uint32_t ahead = at + n + s->block_size;
        if (ahead < end)
            prefetch(s->values + s->blocks[ahead / s->block_size] * s->value_stride,
                     s->block_size * row_bytes);
        for (uint32_t d = 0; d < n_d; d += FEW_PANELS * CPU_PANEL) {
            const uint8_t *panels[FEW_PANELS];
            uint32_t n_panels = 0;
            for (uint32_t i = d; n_panels < FEW_PANELS && i < n_d; i += CPU_PANEL)
                panels[n_panels++] = rows + i / CPU_PANEL * width;
            few(s->type_v, n_queries, n_panels, weights + (at - first), SCORE_STRIDE, panels,
                row_bytes, n, sums + d, n_d, at > first);
        }
    }
}

/* scores[query][position - first], for positions first .. end - 1 and up to a group's border. */
static void scores_of(const struct cpu_attention_tile *t, const float *queries, uint32_t first,
                      uint32_t end, float *keys, float *scores, size_t stride)
{
    uint32_t n_d = t->source->head_size, n_queries = t->n_rows * t->n_heads;
    if (n_queries <= FEW_QUERIES && is_plain(t->source->type_k) && t->source->block_size > 8) {
        few_scores(t->source, queries, n_queries, first, end, scores, stride);
        return;
    }
    for (uint32_t at = first; at < end; at += CPU_KEYS) {
        uint32_t n_groups = end - at > 16 ? 2 : 1;
        for (uint32_t i = 0; i < n_groups; i++)
            keys_expand(t->source, at + 16 * i, end, keys + i * 16 * n_d);
        tiles(queries, n_d, n_queries, keys, 16, (size_t)16 * n_d, n_groups, n_d,
              scores + (at - first), stride, 16, false);
    }
}

/*
 * Scores at `first` .. end - 1 (first a multiple of 16) of a query that sees from .. to, become
 * e^(score - maximum), 0 where it does not see.  Gives the maximum and the sum (0: it sees none,
 * all are 0; else at least 1).
 */
static struct cpu_partial softmax_part(float *scores, uint32_t first, uint32_t end, uint32_t from,
                                       uint32_t to)
{
    struct cpu_partial ret = {-INFINITY, 0};
    uint32_t n = (end - first + 15) / 16 * 16;
    if (to < first || from >= end) {
        memset(scores, 0, n * sizeof(float));
        return ret;
    }
    for (uint32_t i = 0; first + i < from; i++)
        scores[i] = -INFINITY;
    for (uint32_t i = to + 1 - first; i < n; i++)
        scores[i] = -INFINITY;
    struct vec16 most = vec16_set(-INFINITY);
    for (uint32_t i = 0; i < n; i += 16)
        most = vec16_max(most, vec16_load(scores + i));
    ret.max = vec16_greatest(most);
    struct vec16 max = vec16_set(ret.max), sum = vec16_zero(), lowest = vec16_set(-INFINITY);
    for (uint32_t i = 0; i < n; i += 16) {
        struct vec16 x = vec16_load(scores + i), seen = vec16_exp(vec16_sub(x, max));
        /* -inf < x is also false for NaN: those must stay */
        seen = vec16_if_less(lowest, x, seen, vec16_mul(seen, vec16_zero()));
        sum = vec16_add(sum, seen);
        vec16_store(scores + i, seen);
    }
    ret.sum = vec16_sum(sum);
    return ret;
}

/* One chunk: sums[query][D] and partials[query]. */
static void chunk_attend(const struct cpu_attention_tile *t, uint32_t chunk,
                         const struct attention_scratch *s, struct cpu_partial *partials,
                         float *sums)
{
    const struct cpu_attention_source *source = t->source;
    uint32_t n_d = source->head_size, n_queries = t->n_rows * t->n_heads;
    uint32_t last = t->first_position + t->n_rows - 1, first = chunk * BACKEND_KEY_CHUNK;
    uint32_t end = last - first < BACKEND_KEY_CHUNK ? last + 1 : first + BACKEND_KEY_CHUNK;
    uint32_t start = window_start(t->window, t->first_position);
    if (start > first)
        first = start / 16 * 16;
    scores_of(t, s->queries, first, end, s->keys, s->scores, SCORE_STRIDE);
    for (uint32_t i = 0; i < n_queries; i++) {
        uint32_t position = t->first_position + i / t->n_heads;
        partials[i] = softmax_part(s->scores + i * SCORE_STRIDE, first, end,
                                   window_start(t->window, position), position);
    }
    if (n_queries <= FEW_QUERIES && !source->bank && is_plain(source->type_v)) {
        few_values(source, s->scores, n_queries, first, end, sums);
        return;
    }
    for (uint32_t at = first; at < end; at += CPU_KEYS) {
        uint32_t n = end - at < CPU_KEYS ? end - at : CPU_KEYS;
        values_expand(source, at, n, last + 1, s->values);
        tiles(s->scores + (at - first), SCORE_STRIDE, n_queries, s->values, n_d, 16, n_d / 16, n,
              sums, n_d, 16, at > first);
    }
}

/* Adds a chunk's part to the running one. */
static void partial_add(struct cpu_partial *run, float *out, const struct cpu_partial *part,
                        const float *sums, uint32_t n_d)
{
    if (part->sum == 0)
        return;
    if (run->sum == 0) {
        *run = *part;
        memcpy(out, sums, n_d * sizeof(float));
        return;
    }
    float max = run->max > part->max ? run->max : part->max;
    float before = exp_one(run->max - max), now = exp_one(part->max - max);
    struct vec16 a = vec16_set(before), b = vec16_set(now);
    run->max = max;
    run->sum = run->sum * before + part->sum * now;
    for (uint32_t i = 0; i < n_d; i += 16) {
        struct vec16 x = vec16_mul(vec16_load(out + i), a);
        vec16_store(out + i, vec16_fma(vec16_load(sums + i), b, x));
    }
}

/* out = sums / sum * gamma */
static void output_write(const struct cpu_attention_tile *t, uint32_t query, float sum,
                         const float *sums)
{
    uint32_t n_d = t->source->head_size;
    float *out = t->out + query / t->n_heads * t->row_stride + query % t->n_heads * n_d;
    struct vec16 share = vec16_set(1.0f / sum), gamma = vec16_set(t->gamma);
    for (uint32_t i = 0; i < n_d; i += 16)
        vec16_store(out + i, vec16_mul(vec16_mul(vec16_load(sums + i), share), gamma));
}

static void kernel_attend(const struct cpu_attention_tile *t, float *scratch)
{
    struct attention_scratch s = scratch_cut(scratch);
    uint32_t n_d = t->source->head_size, n_queries = t->n_rows * t->n_heads;
    struct cpu_partial run[CPU_QUERIES];
    for (uint32_t i = 0; i < n_queries; i++)
        run[i] = (struct cpu_partial){-INFINITY, 0};
    queries_read(t, s.queries);
    uint32_t chunk = window_start(t->window, t->first_position) / BACKEND_KEY_CHUNK;
    for (; chunk * BACKEND_KEY_CHUNK < t->first_position + t->n_rows; chunk++) {
        chunk_attend(t, chunk, &s, s.partials, s.sums);
        for (uint32_t i = 0; i < n_queries; i++)
            partial_add(&run[i], s.outs + i * n_d, &s.partials[i], s.sums + i * n_d, n_d);
    }
    for (uint32_t i = 0; i < n_queries; i++)
        output_write(t, i, run[i].sum, s.outs + i * n_d);
}

static void kernel_attend_chunk(const struct cpu_attention_tile *t, uint32_t chunk,
                                struct cpu_partial *partials, float *outs, float *scratch)
{
    struct attention_scratch s = scratch_cut(scratch);
    queries_read(t, s.queries);
    chunk_attend(t, chunk, &s, partials, outs);
}

static void kernel_attend_combine(const struct cpu_attention_tile *t, uint32_t n_chunks,
                                  const struct cpu_partial *partials, float *outs)
{
    uint32_t n_d = t->source->head_size, n_queries = t->n_rows * t->n_heads;
    for (uint32_t i = 0; i < n_queries; i++) {
        struct cpu_partial run = partials[i];
        float *out = outs + i * n_d;
        for (uint32_t c = 1; c < n_chunks; c++)
            partial_add(&run, out, &partials[c * n_queries + i], outs + (c * n_queries + i) * n_d,
                        n_d);
        output_write(t, i, run.sum, out);
    }
}

/* ---- dedup: sum by slot -----------------------------------------------------------------------
 */

static bool slots_unused(const float *weights, size_t stride, uint32_t n_queries, uint32_t n)
{
    for (uint32_t i = 0; i < n_queries; i++) {
        for (uint32_t j = 0; j < n; j++) {
            if (weights[i * stride + j] != 0)
                return false;
        }
    }
    return true;
}

/*
 * Softmax over all positions at once, probabilities added up by slot in position order, then bank
 * rows added up in slot order.  Slots that no position up to a query's own has used weigh 0 there.
 */
static void kernel_attend_slots(const struct cpu_attention_tile *t, float *scratch,
                                float *slot_scratch)
{
    struct attention_scratch s = scratch_cut(scratch);
    const struct cpu_attention_source *source = t->source;
    uint32_t n_d = source->head_size, n_queries = t->n_rows * t->n_heads;
    uint32_t end = t->first_position + t->n_rows;
    uint32_t first = window_start(t->window, t->first_position) / 16 * 16;
    uint32_t n_slots = 0;
    for (uint32_t i = first; i < end; i++)
        n_slots =
            source->slot_of_position[i] >= n_slots ? source->slot_of_position[i] + 1 : n_slots;
    size_t stride = cpu_slot_scratch(1, end - 1) / 2;
    float *scores = slot_scratch, *weights = slot_scratch + stride * n_queries;
    struct cpu_partial part[CPU_QUERIES];
    queries_read(t, s.queries);
    scores_of(t, s.queries, first, end, s.keys, scores, stride);
    for (uint32_t i = 0; i < n_queries; i++) {
        uint32_t position = t->first_position + i / t->n_heads;
        float *p = scores + i * stride, *w = weights + i * stride;
        part[i] = softmax_part(p, first, end, window_start(t->window, position), position);
        memset(w, 0, n_slots * sizeof(float));
        for (uint32_t j = first; j <= position; j++)
            w[source->slot_of_position[j]] += p[j - first];
    }
    for (uint32_t u = 0; u < n_slots; u += CPU_KEYS) {
        uint32_t n = n_slots - u < CPU_KEYS ? n_slots - u : CPU_KEYS;
        if (u > 0 && t->window > 0 && slots_unused(weights + u, stride, n_queries, n))
            continue;
        for (uint32_t j = 0; j < n; j++)
            kernel_expand(source->type_v,
                          source->bank + source->value_id_of_slot[u + j] * source->bank_row_bytes,
                          source->bank_first, n_d, s.values + j * n_d);
        tiles(weights + u, stride, n_queries, s.values, n_d, 16, n_d / 16, n, s.outs, n_d, 16,
              u > 0);
    }
    for (uint32_t i = 0; i < n_queries; i++)
        output_write(t, i, part[i].sum, s.outs + i * n_d);
}

#endif
