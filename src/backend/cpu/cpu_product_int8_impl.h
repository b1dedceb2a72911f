#ifndef TELLERD_BACKEND_CPU_PRODUCT_INT8_IMPL_H
#define TELLERD_BACKEND_CPU_PRODUCT_INT8_IMPL_H

/*
 * Products of quantised weights with activations rounded to int8, in groups of 32 k.  Part of
 * cpu_kernels_impl.h.
 *
 * Of each group the sum of products of codes is an exact integer; what is rounded is its product
 * with the two scales, and the sum over groups, which goes k ascending in one accumulator per (row,
 * output).  So a row's result is the same bits in a tile of 1 and of 6, whether codes were read
 * from the panel or expanded first.
 */
#include "cpu_kernels.h"
#include "cpu_panels_impl.h"
#include "cpu_product_impl.h"
#include "cpu_simd_int8.h"

#if defined(CPU_PATH_AVX512)
enum { INT8_ROWS = 6, INT8_PANELS = 2 }; /* 12 sums of int32 and 12 of float, of 32 registers */
#elif defined(CPU_PATH_AVX2)
enum { INT8_ROWS = 3, INT8_PANELS = 1 };
#else
enum { INT8_ROWS = 2, INT8_PANELS = 1 };
#endif
enum {
    INT8_RANGE = 24,        /* groups expanded at once */
    INT8_AHEAD = 128 << 10, /* bytes that a second-level cache surely has room for */
    INT8_RANGE_BYTES = INT8_RANGE * CPU_GROUP * CPU_PANEL, /* bytes of a panel's codes */
};

/* ---- activations ----------------------------------------------------------------------------- */

/*
 * One group of a row: the nearest of -127 .. 127 times d, d = largest magnitude / 127.  A group of
 * nearly nothing is zero; one that holds an infinity or NaN has d = NaN, which reaches all results.
 */
static void int8_group(const float *x, struct cpu_int8_group *ret)
{
    struct vec16 a = vec16_load(x), b = vec16_load(x + 16);
    float largest = vec16_largest(a, b), inverse = 0;
    ret->d = 0;
    if (!(largest <= FLT_MAX)) {
        ret->d = NAN;
        a = b = vec16_zero();
    } else if (largest > 0x1p-100f) {
        ret->d = largest * (1.0f / 127.0f);
        inverse = 127.0f / largest;
    }
    int32_t low = vec16_to_i8(ret->codes, vec16_mul(a, vec16_set(inverse)));
    int32_t sum = low + vec16_to_i8(ret->codes + 16, vec16_mul(b, vec16_set(inverse)));
    ret->d_sum = ret->d * (float)sum;
    ret->start = -128 * sum;
    ret->start_low = -128 * low;
}

/* n_k floats of a row to groups `stride` apart. */
static void int8_row(const float *x, uint32_t n_k, struct cpu_int8_group *to, uint32_t stride)
{
    for (uint32_t g = 0; g < n_k / CPU_GROUP; g++)
        int8_group(x + g * CPU_GROUP, to + (size_t)g * stride);
}

/* Rows of x for products: tile after tile, in each the rows of one group side by side. */
static void pack_int8(const float *x, uint32_t n_k, uint32_t n_rows, uint32_t first_tile,
                      uint32_t n_tiles, void *out)
{
    for (uint32_t t = first_tile; t < first_tile + n_tiles; t++) {
        uint32_t row = tile_begin(n_rows, INT8_ROWS, t);
        uint32_t mr = tile_begin(n_rows, INT8_ROWS, t + 1) - row;
        struct cpu_int8_group *to = (struct cpu_int8_group *)out + (size_t)row * (n_k / CPU_GROUP);
        for (uint32_t r = 0; r < mr; r++)
            int8_row(x + (size_t)(row + r) * n_k, n_k, to + r, mr);
    }
}

/* ---- tiles ----------------------------------------------------------------------------------- */

enum { INT8_PACKED = false, INT8_EXPANDED = true };

/* One panel's groups: as they are, or expanded (bytes, then scales as f32: d or the two of Q6_K).
 */
struct int8_weights {
    const uint8_t *codes, *scales;
    const float *d, *m;
    size_t ahead; /* bytes from what is read to what is asked for */
};

/* Few rows read panels once, front to back: asks for what the next panels hold at the same place.
 */
INLINE void int8_prefetch(const enum tensor_type type, const struct int8_weights *w, uint32_t g)
{
    const uint8_t *codes = w->codes + g * cpu_group_codes(type) + w->ahead;
    UNROLL for (size_t i = 0; i < cpu_group_codes(type); i += 64)
        __builtin_prefetch(codes + i, 0, 2);
    uint32_t block = g / cpu_block_groups(type);
    __builtin_prefetch(w->scales + block * cpu_block_scales(type) + w->ahead, 0, 2);
}

INLINE struct int8_weights int8_panel(const struct cpu_product *p, uint32_t panel)
{
    const uint8_t *codes = p->panels + panel * p->panel_bytes;
    size_t ahead = INT8_PANELS * p->panel_bytes;
    return (struct int8_weights){.codes = codes,
                                 .scales = codes + p->n_k / CPU_GROUP * cpu_group_codes(p->type),
                                 .ahead = ahead < INT8_AHEAD ? ahead : INT8_AHEAD};
}

INLINE struct quant_scales int8_scales(const enum tensor_type type, const bool expanded,
                                       const struct int8_weights *w, uint32_t g)
{
    if (!expanded)
        return quant_scales_of(type, w->scales, g);
    struct quant_scales s;
    const uint32_t halves = type == TENSOR_Q6_K ? 2 : 1;
    s.d[0] = s.d[1] = vec16_load(w->d + g * halves * CPU_PANEL);
    s.m = vec16_zero();
    if (halves == 2)
        s.d[1] = vec16_load(w->d + (g * 2 + 1) * CPU_PANEL);
    else if (!quant_biased(type))
        s.m = vec16_load(w->m + g * CPU_PANEL);
    return s;
}

/* acc[r][j] += the products of mr rows (x: group after group, the rows of one side by side) and
 * INT8_PANELS panels, groups 0 .. n - 1 of w. */
INLINE void int8_tile(const enum tensor_type type, const bool expanded, const int mr,
                      const struct int8_weights *w, const struct cpu_int8_group *x, uint32_t n,
                      struct vec16 (*acc)[INT8_PANELS])
{
    const size_t code_bytes = expanded ? 512 : cpu_group_codes(type);
    const int halves = type == TENSOR_Q6_K ? 2 : 1, quads = 8 / halves;
    for (uint32_t g = 0; g < n; g++, x += mr) {
        struct quant_scales s[INT8_PANELS];
        UNROLL for (int j = 0; j < INT8_PANELS; j++)
        {
            s[j] = int8_scales(type, expanded, &w[j], g);
            if (!expanded)
                int8_prefetch(type, &w[j], g);
        }
        UNROLL for (int half = 0; half < halves; half++)
        {
            struct sum16 sum[INT8_ROWS][INT8_PANELS];
            UNROLL for (int r = 0; r < mr; r++)
            {
                struct sum16 start = !quant_biased(type) ? sum16_set(0)
                                     : halves == 1       ? sum16_start(x[r].start)
                                     : half == 0         ? sum16_start(x[r].start_low)
                                                         : sum16_start(x[r].start - x[r].start_low);
                UNROLL for (int j = 0; j < INT8_PANELS; j++) sum[r][j] = start;
            }
            UNROLL for (int q = half * quads; q < half * quads + quads; q++)
            {
                struct bytes64 v[INT8_PANELS];
                UNROLL for (int j = 0; j < INT8_PANELS; j++) v[j] =
                    quant_quad(expanded ? TENSOR_Q8_0 : type, w[j].codes + g * code_bytes, q);
                UNROLL for (int r = 0; r < mr; r++)
                {
                    int32_t four;
                    memcpy(&four, x[r].codes + 4 * q, 4);
                    UNROLL for (int j = 0; j < INT8_PANELS; j++) sum[r][j] =
                        quant_biased(type) ? sum16_dot_biased(sum[r][j], v[j], four)
                                           : sum16_dot(sum[r][j], v[j], four);
                }
            }
            UNROLL for (int r = 0; r < mr; r++)
            {
                struct vec16 d = vec16_set(x[r].d);
                UNROLL for (int j = 0; j < INT8_PANELS; j++) acc[r][j] =
                    vec16_fma(vec16_from_sum(sum[r][j]), vec16_mul(s[j].d[half], d), acc[r][j]);
            }
        }
        if (quant_biased(type))
            continue;
        UNROLL for (int r = 0; r < mr; r++)
        {
            struct vec16 d_sum = vec16_set(x[r].d_sum);
            UNROLL for (int j = 0; j < INT8_PANELS; j++) acc[r][j] =
                vec16_fma(s[j].m, d_sum, acc[r][j]);
        }
    }
}

/* What a tile does with its sums: they rest in `sums` [mr][INT8_PANELS][16] between ranges of k,
 * and are finished after the last. */
struct int8_place {
    const struct cpu_product *product;
    uint32_t row, panel;
    float *sums;
    bool first, last;
};

INLINE void int8_tile_at(const enum tensor_type type, const bool expanded, const int mr,
                         const struct int8_place *at, const struct int8_weights *w,
                         const struct cpu_int8_group *x, uint32_t n)
{
    struct vec16 acc[INT8_ROWS][INT8_PANELS];
    UNROLL for (int r = 0; r < mr; r++)
    {
        UNROLL for (int j = 0; j < INT8_PANELS; j++) acc[r][j] =
            at->first ? vec16_zero() : vec16_load(at->sums + (r * INT8_PANELS + j) * CPU_PANEL);
    }
    int8_tile(type, expanded, mr, w, x, n, acc);
    UNROLL for (int r = 0; r < mr; r++)
    {
        UNROLL for (int j = 0; j < INT8_PANELS; j++)
        {
            if (at->last)
                product_finish(at->product, at->row + (uint32_t)r, at->panel + (uint32_t)j,
                               acc[r][j]);
            else
                vec16_store(at->sums + (r * INT8_PANELS + j) * CPU_PANEL, acc[r][j]);
        }
    }
}

typedef void (*int8_tile_fn)(const struct int8_place *at, const struct int8_weights *w,
                             const struct cpu_int8_group *x, uint32_t n);
#define INT8_TILE(T, way, mr)                                                            \
    static void int8_tile_##T##_##way##_##mr(const struct int8_place *at,                \
                                             const struct int8_weights *w,               \
                                             const struct cpu_int8_group *x, uint32_t n) \
    {                                                                                    \
        int8_tile_at(TENSOR_##T, INT8_##way, mr, at, w, x, n);                           \
    }
#if defined(CPU_PATH_AVX512)
#define INT8_TILES(T, way) \
    INT8_TILE(T, way, 1)   \
    INT8_TILE(T, way, 2)   \
    INT8_TILE(T, way, 3)   \
    INT8_TILE(T, way, 4)   \
    INT8_TILE(T, way, 5)   \
    INT8_TILE(T, way, 6)
#define INT8_ROW(T, way)                                                                       \
    {                                                                                          \
        NULL, int8_tile_##T##_##way##_1, int8_tile_##T##_##way##_2, int8_tile_##T##_##way##_3, \
            int8_tile_##T##_##way##_4, int8_tile_##T##_##way##_5, int8_tile_##T##_##way##_6    \
    }
#elif defined(CPU_PATH_AVX2)
#define INT8_TILES(T, way) \
    INT8_TILE(T, way, 1)   \
    INT8_TILE(T, way, 2)   \
    INT8_TILE(T, way, 3)
#define INT8_ROW(T, way)                                                                      \
    {                                                                                         \
        NULL, int8_tile_##T##_##way##_1, int8_tile_##T##_##way##_2, int8_tile_##T##_##way##_3 \
    }
#else
#define INT8_TILES(T, way) \
    INT8_TILE(T, way, 1)   \
    INT8_TILE(T, way, 2)
#define INT8_ROW(T, way)                                           \
    {                                                              \
        NULL, int8_tile_##T##_##way##_1, int8_tile_##T##_##way##_2 \
    }
#endif

/* All quantised types, for tables and switches over them. */
#define QUANT_TYPES(each) \
    each(Q8_0) each(Q4_0) each(Q4_1) each(Q5_0) each(Q5_1) each(Q4_K) each(Q5_K) each(Q6_K)

#define INT8_DIRECT_TILES(T) INT8_TILES(T, PACKED)
QUANT_TYPES(INT8_DIRECT_TILES)
INT8_TILES(Q8_0, EXPANDED)
INT8_TILES(Q4_1, EXPANDED)
INT8_TILES(Q6_K, EXPANDED)

/* Tiles that read the panel itself, by type; and those that read expanded groups, by kind. */
#define INT8_DIRECT_ROW(T) [TENSOR_##T] = INT8_ROW(T, PACKED),
static const int8_tile_fn int8_direct[TENSOR_TYPE_LIMIT][INT8_ROWS + 1] = {
    QUANT_TYPES(INT8_DIRECT_ROW)};
static const int8_tile_fn int8_biased[INT8_ROWS + 1] = INT8_ROW(Q8_0, EXPANDED);
static const int8_tile_fn int8_with_min[INT8_ROWS + 1] = INT8_ROW(Q4_1, EXPANDED);
static const int8_tile_fn int8_halves[INT8_ROWS + 1] = INT8_ROW(Q6_K, EXPANDED);

static const int8_tile_fn *int8_expanded_tiles(enum tensor_type type)
{
    return type == TENSOR_Q6_K ? int8_halves : quant_biased(type) ? int8_biased : int8_with_min;
}

/* ---- expansion: codes to bytes and scales to f32, once for many rows ------------------------- */

struct int8_scratch {
    uint8_t codes[INT8_PANELS][INT8_RANGE_BYTES];
    float d[INT8_PANELS][2 * INT8_RANGE * CPU_PANEL], m[INT8_PANELS][INT8_RANGE * CPU_PANEL];
    float sums[CPU_ROW_CHUNK * INT8_PANELS * CPU_PANEL];
};
_Static_assert(sizeof(struct int8_scratch) <= CPU_PRODUCT_SCRATCH * sizeof(float), "scratch");

INLINE void int8_expand_body(const enum tensor_type type, const struct int8_weights *w,
                             uint32_t first, uint32_t n, uint8_t *codes, float *d, float *m)
{
    const int halves = type == TENSOR_Q6_K ? 2 : 1;
    for (uint32_t g = 0; g < n; g++) {
        struct quant_scales s = quant_scales_of(type, w->scales, first + g);
        UNROLL for (int h = 0; h < halves; h++, d += CPU_PANEL) vec16_store(d, s.d[h]);
        if (!quant_biased(type))
            vec16_store(m + g * CPU_PANEL, s.m);
        if (type == TENSOR_Q8_0)
            continue;
        const uint8_t *from = w->codes + (first + g) * cpu_group_codes(type);
        UNROLL for (int q = 0; q < 8; q++)
            bytes64_store(codes + g * 512 + 64 * q, quant_quad(type, from, q));
    }
}

/* Groups first .. first + n - 1 of a panel; the bytes of Q8_0 stay where they are. */
static struct int8_weights int8_expand(enum tensor_type type, const struct int8_weights *w,
                                       uint32_t first, uint32_t n, uint8_t *codes, float *d,
                                       float *m)
{
    switch (type) {
#define INT8_EXPAND(T)                                          \
    case TENSOR_##T:                                            \
        int8_expand_body(TENSOR_##T, w, first, n, codes, d, m); \
        break;
        QUANT_TYPES(INT8_EXPAND)
#undef INT8_EXPAND
    default:
        break;
    }
    return (struct int8_weights){
        .codes = type == TENSOR_Q8_0 ? w->codes + (size_t)first * 512 : codes, .d = d, .m = m};
}

/* ---- products -------------------------------------------------------------------------------- */

/* The panels of INT8_PANELS from `panel` for some tiles of rows, of which there are n_tiles. */
static void int8_panels(const struct cpu_product *p, uint32_t panel, uint32_t first_tile,
                        uint32_t end_tile, struct int8_scratch *scratch)
{
    const int8_tile_fn *tiles = int8_expanded_tiles(p->type);
    uint32_t n_groups = p->n_k / CPU_GROUP, n_ranges = (n_groups + INT8_RANGE - 1) / INT8_RANGE;
    uint32_t first_row = tile_begin(p->n_rows, INT8_ROWS, first_tile);
    for (uint32_t i = 0; i < n_ranges; i++) {
        uint32_t first = n_groups * i / n_ranges, n = n_groups * (i + 1) / n_ranges - first;
        struct int8_weights w[INT8_PANELS];
        for (uint32_t j = 0; j < INT8_PANELS; j++) {
            struct int8_weights packed = int8_panel(p, panel + j);
            w[j] = int8_expand(p->type, &packed, first, n, scratch->codes[j], scratch->d[j],
                               scratch->m[j]);
        }
        for (uint32_t t = first_tile, row = first_row; t < end_tile; t++) {
            uint32_t mr = tile_begin(p->n_rows, INT8_ROWS, t + 1) - row;
            struct int8_place at = {
                p,      row,
                panel,  scratch->sums + (row - first_row) * INT8_PANELS * CPU_PANEL,
                i == 0, i + 1 == n_ranges};
            const struct cpu_int8_group *x = (const struct cpu_int8_group *)p->x;
            tiles[mr](&at, w, x + (size_t)row * n_groups + (size_t)first * mr, n);
            row += mr;
        }
    }
}

static void product_int8(const struct cpu_product *p, uint32_t first, uint32_t n, float *scratch)
{
    if (p->n_rows <= INT8_ROWS) {
        for (uint32_t i = first; i < first + n; i += INT8_PANELS) {
            struct int8_weights w[INT8_PANELS];
            for (uint32_t j = 0; j < INT8_PANELS; j++)
                w[j] = int8_panel(p, i + j);
            struct int8_place at = {p, 0, i, NULL, true, true};
            int8_direct[p->type][p->n_rows](&at, w, (const struct cpu_int8_group *)p->x,
                                            p->n_k / CPU_GROUP);
        }
        return;
    }
    uint32_t n_tiles = tile_count(p->n_rows, INT8_ROWS), chunk = CPU_ROW_CHUNK / INT8_ROWS;
    for (uint32_t t = 0; t < n_tiles; t += chunk) {
        uint32_t end = n_tiles - t < chunk ? n_tiles : t + chunk;
        for (uint32_t i = 0; i < n; i += INT8_PANELS)
            int8_panels(p, first + i, t, end, (struct int8_scratch *)(void *)scratch);
    }
}

#endif
