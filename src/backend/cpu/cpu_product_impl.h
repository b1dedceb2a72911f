#ifndef TELLERD_BACKEND_CPU_PRODUCT_IMPL_H
#define TELLERD_BACKEND_CPU_PRODUCT_IMPL_H

/*
 * Products, in vec16.  Part of cpu_kernels_impl.h.
 *
 * The order of every sum is k ascending in one accumulator per (row, output), starting from 0; an
 * accumulator may rest in memory between ranges of k, which changes nothing.  So a row's result is
 * the same bits in a tile of 1 and of 12, whichever of the ways below was taken.
 */
#include "cpu_kernels.h"
#include "cpu_panels_impl.h"
#include "cpu_simd.h"

/* ---- tiles: y[r][p] (+)= sum over k of x[r][k] * w[p][k] ------------------------------------ */

/*
 * x: rows ldx apart; or packed, the mr values of one k side by side (ldx unused).  w: panel p at
 * w + p * wp, k at steps of ldw.  y: row r, panel p at y + r * ldy + p * yp; begins from 0 unless
 * `resume`.
 */
#define TILE_ARGS                                                                            \
    const float *x, size_t ldx, const float *w, size_t ldw, size_t wp, uint32_t n, float *y, \
        size_t ldy, size_t yp, bool resume

INLINE void tile_body(const bool packed, const int mr, const int np, TILE_ARGS)
{
    struct vec16 acc[SIMD_MAX_ROW][4];
    UNROLL for (int r = 0; r < mr; r++)
    {
        UNROLL for (int p = 0; p < np; p++) acc[r][p] =
            resume ? vec16_load(y + r * ldy + p * yp) : vec16_zero();
    }
    for (uint32_t k = 0; k < n; k++) {
        struct vec16 v[4];
        UNROLL for (int p = 0; p < np; p++) v[p] = vec16_load(w + p * wp);
        UNROLL for (int r = 0; r < mr; r++)
        {
            struct vec16 one = vec16_set(packed ? x[r] : x[r * ldx]);
            UNROLL for (int p = 0; p < np; p++) acc[r][p] = vec16_fma(one, v[p], acc[r][p]);
        }
        w += ldw;
        x += packed ? mr : 1;
    }
    UNROLL for (int r = 0; r < mr; r++)
    {
        UNROLL for (int p = 0; p < np; p++) vec16_store(y + r * ldy + p * yp, acc[r][p]);
    }
}

typedef void (*tile_fn)(TILE_ARGS);
#define TILE_OF(name, packed, mr, np)                                         \
    static void name(TILE_ARGS)                                               \
    {                                                                         \
        tile_body(packed, mr, np, x, ldx, w, ldw, wp, n, y, ldy, yp, resume); \
    }
#define TILE(mr, np)                         \
    TILE_OF(tile_##mr##_##np, false, mr, np) \
    TILE_OF(tile_packed_##mr##_##np, true, mr, np)

/* Which tiles there are: [packed][panels 1, 2, 4][rows]. */
TILE(1, 1)
TILE(2, 1)
TILE(3, 1)
TILE(1, 2)
#if defined(CPU_PATH_AVX512)
TILE(4, 1)
TILE(5, 1)
TILE(6, 1)
TILE(7, 1)
TILE(8, 1)
TILE(9, 1)
TILE(10, 1)
TILE(11, 1)
TILE(12, 1)
TILE(2, 2)
TILE(3, 2)
TILE(4, 2)
TILE(5, 2)
TILE(6, 2)
TILE(7, 2)
TILE(8, 2)
TILE(9, 2)
TILE(10, 2)
TILE(11, 2)
TILE(12, 2)
TILE(1, 4)
TILE(2, 4)
TILE(3, 4)
#define TILES(name)                                                                         \
    {                                                                                       \
        {NULL,      name##1_1, name##2_1, name##3_1,  name##4_1,  name##5_1, name##6_1,     \
         name##7_1, name##8_1, name##9_1, name##10_1, name##11_1, name##12_1},              \
            {NULL,      name##1_2, name##2_2, name##3_2,  name##4_2,  name##5_2, name##6_2, \
             name##7_2, name##8_2, name##9_2, name##10_2, name##11_2, name##12_2},          \
            {NULL, name##1_4, name##2_4, name##3_4},                                        \
    }
#elif SIMD_MAX_ROW == 6
TILE(4, 1)
TILE(5, 1)
TILE(6, 1)
TILE(2, 2)
TILE(3, 2)
TILE(1, 4)
#define TILES(name)                                                               \
    {                                                                             \
        {NULL, name##1_1, name##2_1, name##3_1, name##4_1, name##5_1, name##6_1}, \
            {NULL, name##1_2, name##2_2, name##3_2}, {NULL, name##1_4},           \
    }
#else
#define TILES(name)                                                 \
    {                                                               \
        {NULL, name##1_1, name##2_1, name##3_1}, {NULL, name##1_2}, \
    }
#endif
static const tile_fn tile_table[2][3][SIMD_MAX_ROW + 1] = {TILES(tile_), TILES(tile_packed_)};

/* The widest tile of mr rows for n_panels panels that there is. */
INLINE tile_fn tile_choose(bool packed, uint32_t mr, uint32_t n_panels, uint32_t *ret_np)
{
    const tile_fn(*table)[SIMD_MAX_ROW + 1] = tile_table[packed];
    uint32_t wide = n_panels >= 4 && table[2][mr] ? 2 : n_panels >= 2 && table[1][mr] ? 1 : 0;
    *ret_np = 1u << wide;
    return table[wide][mr];
}

/* One tile of mr rows over all panels. */
static void tile_panels(bool packed, uint32_t mr, const float *x, size_t ldx, const float *w,
                        size_t ldw, size_t wp, uint32_t n_panels, uint32_t n, float *y, size_t ldy,
                        size_t yp, bool resume)
{
    for (uint32_t p = 0, np; p < n_panels; p += np) {
        tile_fn fn = tile_choose(packed, mr, n_panels - p, &np);
        fn(x, ldx, w + p * wp, ldw, wp, n, y + p * yp, ldy, yp, resume);
    }
}

/* n_rows are cut into tiles of at most `most`, as even as can be: how many, and where tile t
 * begins. */
INLINE uint32_t tile_count(uint32_t n_rows, uint32_t most)
{
    return (n_rows + most - 1) / most;
}
INLINE uint32_t tile_begin(uint32_t n_rows, uint32_t most, uint32_t t)
{
    uint32_t n = tile_count(n_rows, most), extra = n_rows % n;
    return n_rows / n * t + (t < extra ? t : extra);
}

/* All rows (not packed) and panels. */
static void tiles(const float *x, size_t ldx, uint32_t n_rows, const float *w, size_t ldw,
                  size_t wp, uint32_t n_panels, uint32_t n, float *y, size_t ldy, size_t yp,
                  bool resume)
{
    for (uint32_t t = 0, row = 0; t < tile_count(n_rows, SIMD_MAX_ROW); t++) {
        uint32_t next = tile_begin(n_rows, SIMD_MAX_ROW, t + 1);
        tile_panels(false, next - row, x + row * ldx, ldx, w, ldw, wp, n_panels, n, y + row * ldy,
                    ldy, yp, resume);
        row = next;
    }
}

/* Rows of x for products: tile after tile, in each the rows' values of one k side by side. */
static void pack_f32(const float *x, uint32_t n_k, uint32_t n_rows, uint32_t first_tile,
                     uint32_t n_tiles, float *out)
{
    for (uint32_t t = first_tile; t < first_tile + n_tiles; t++) {
        uint32_t row = tile_begin(n_rows, SIMD_MAX_ROW, t),
                 mr = tile_begin(n_rows, SIMD_MAX_ROW, t + 1) - row;
        const float *from = x + (size_t)row * n_k;
        float *to = out + (size_t)row * n_k;
        if (mr == SIMD_MAX_ROW) { /* most of them: a constant that the compiler can unroll */
            for (uint32_t k = 0; k < n_k; k++, to += SIMD_MAX_ROW) {
                UNROLL for (uint32_t r = 0; r < SIMD_MAX_ROW; r++) to[r] =
                    from[(size_t)r * n_k + k];
            }
            continue;
        }
        for (uint32_t k = 0; k < n_k; k++, to += mr) {
            for (uint32_t r = 0; r < mr; r++)
                to[r] = from[(size_t)r * n_k + k];
        }
    }
}

/* ---- panels: groups of 32 k ----------------------------------------------------------------- */

/* One group: its weights, or codes and what they are multiplied by and added to. */
struct group {
    const uint8_t *codes;
    struct quant_scales scales;
};

/* n_k: of the panel, a multiple of 32. */
INLINE void group_open(const enum tensor_type type, const uint8_t *panel, uint32_t n_k, uint32_t g,
                       struct group *ret)
{
    const bool plain = !cpu_type_quantised(type);
    const size_t bytes = plain ? (type == TENSOR_F32 ? 32 * 64 : 32 * 32) : cpu_group_codes(type);
    ret->codes = panel + g * bytes;
    if (!plain)
        ret->scales = quant_scales_of(type, panel + n_k / CPU_GROUP * bytes, g);
}

/* The weights of k and k + 1 in the group (k even, 0..30, a constant unless the type is plain). */
INLINE void group_pair(const enum tensor_type type, const struct group *g, const uint32_t k,
                       struct vec16 *even, struct vec16 *odd)
{
    switch (type) {
    case TENSOR_F32:
        *even = vec16_load((const float *)(const void *)g->codes + k * 16);
        *odd = vec16_load((const float *)(const void *)g->codes + k * 16 + 16);
        break;
    case TENSOR_F16:
        *even = vec16_from_f16(g->codes + k * 32);
        *odd = vec16_from_f16(g->codes + k * 32 + 32);
        break;
    case TENSOR_BF16:
        *even = vec16_from_bf16(g->codes + k * 32);
        *odd = vec16_from_bf16(g->codes + k * 32 + 32);
        break;
    default: {
        const int q = (int)k / 4, i = (int)k % 4;
        struct bytes64 quad = quant_quad(type, g->codes, q);
        *even = quant_weights(type, quad, &g->scales, q, i);
        *odd = quant_weights(type, quad, &g->scales, q, i + 1);
    }
    }
}

/* Expands groups first .. first + n - 1 of a panel to w [n * 32][16]. */
INLINE void groups_expand_body(const enum tensor_type type, const uint8_t *panel, uint32_t n_k,
                               uint32_t first, uint32_t n, float *w)
{
    for (uint32_t i = 0; i < n; i++) {
        struct group g;
        group_open(type, panel, n_k, first + i, &g);
        UNROLL for (uint32_t k = 0; k < 32; k += 2)
        {
            struct vec16 even, odd;
            group_pair(type, &g, k, &even, &odd);
            vec16_store(w + k * 16, even);
            vec16_store(w + k * 16 + 16, odd);
        }
        w += 32 * 16;
    }
}

/* k of a panel from k0, a multiple of 32, to w[n][16]. */
static void panel_expand(enum tensor_type type, const uint8_t *panel, uint32_t n_k, uint32_t k0,
                         uint32_t n, float *w)
{
    uint32_t g = k0 / 32, whole = n / 32;
#define EXPAND(T)                                       \
    case T:                                             \
        groups_expand_body(T, panel, n_k, g, whole, w); \
        break;
    switch (type) {
        EXPAND(TENSOR_F32)
        EXPAND(TENSOR_F16)
        EXPAND(TENSOR_BF16)
        EXPAND(TENSOR_Q8_0)
        EXPAND(TENSOR_Q4_0)
        EXPAND(TENSOR_Q4_1)
        EXPAND(TENSOR_Q5_0)
        EXPAND(TENSOR_Q5_1)
        EXPAND(TENSOR_Q4_K)
        EXPAND(TENSOR_Q5_K)
        EXPAND(TENSOR_Q6_K)
    default:
        break;
    }
#undef EXPAND
    const uint8_t *rest = panel + (size_t)k0 * CPU_PANEL * (type == TENSOR_F32 ? 4 : 2);
    for (uint32_t k = whole * 32; k < n; k++) { /* F32, F16, BF16 alone have a rest */
        struct vec16 v = type == TENSOR_F32 ? vec16_load((const float *)(const void *)rest + k * 16)
                         : type == TENSOR_F16 ? vec16_from_f16(rest + k * 32)
                                              : vec16_from_bf16(rest + k * 32);
        vec16_store(w + k * 16, v);
    }
}

/* ---- products ------------------------------------------------------------------------------- */

/* y[row][panel] = sum (+ bias) (+ y) */
INLINE void product_finish(const struct cpu_product *p, uint32_t row, uint32_t panel,
                           struct vec16 sum)
{
    uint32_t first = panel * 16, n = p->n_out - first < 16 ? p->n_out - first : 16;
    float *y = p->y + (size_t)row * p->n_out + first;
    if (first >= p->n_out) /* panels that only make their number even */
        return;
    if (n == 16) {
        if (p->bias)
            sum = vec16_add(sum, vec16_load(p->bias + first));
        if (p->accumulate)
            sum = vec16_add(vec16_load(y), sum);
        vec16_store(y, sum);
    } else {
        if (p->bias)
            sum = vec16_add(sum, vec16_load_part(p->bias + first, n));
        if (p->accumulate)
            sum = vec16_add(vec16_load_part(y, n), sum);
        vec16_store_part(y, sum, n);
    }
}

enum { DIRECT_ROWS = SIMD_MAX_ROW < 6 ? SIMD_MAX_ROW : 6 };
#define DIRECT_PANELS(mr) (SIMD_WIDE || (mr) <= (SIMD_MAX_ROW < 6 ? 1 : 2) ? 2 : 1)

/* A panel is read once, front to back: asks for what comes some groups later. */
INLINE void group_prefetch(const enum tensor_type type, const struct group *g)
{
    const size_t size = type == TENSOR_F16 || type == TENSOR_BF16 ? 1024 : cpu_group_codes(type);
    const uint8_t *at = g->codes + (size < 1024 ? 4 : 2) * size;
    for (size_t i = 0; i < size; i += 64)
        __builtin_prefetch(at + i);
}

/* Few rows: weights go from their codes straight into the sums.  n_k is a multiple of 32. */
INLINE void direct_body(const enum tensor_type type, const int mr, const int np,
                        const struct cpu_product *p, uint32_t panel)
{
    struct vec16 acc[DIRECT_ROWS][2];
    const uint8_t *w = p->panels + panel * p->panel_bytes;
    const float *x = p->x;
    UNROLL for (int r = 0; r < mr; r++)
    {
        UNROLL for (int j = 0; j < np; j++) acc[r][j] = vec16_zero();
    }
    for (uint32_t i = 0; i < p->n_k / 32; i++, x += 32 * mr) {
        struct group g[2];
        UNROLL for (int j = 0; j < np; j++)
        {
            group_open(type, w + j * p->panel_bytes, p->n_k, i, &g[j]);
            group_prefetch(type, &g[j]);
        }
        UNROLL for (uint32_t k = 0; k < 32; k += 2)
        {
            struct vec16 even[2], odd[2];
            UNROLL for (int j = 0; j < np; j++) group_pair(type, &g[j], k, &even[j], &odd[j]);
            UNROLL for (int r = 0; r < mr; r++)
            {
                struct vec16 one = vec16_set(x[k * mr + r]);
                UNROLL for (int j = 0; j < np; j++) acc[r][j] = vec16_fma(one, even[j], acc[r][j]);
            }
            UNROLL for (int r = 0; r < mr; r++)
            {
                struct vec16 one = vec16_set(x[(k + 1) * mr + r]);
                UNROLL for (int j = 0; j < np; j++) acc[r][j] = vec16_fma(one, odd[j], acc[r][j]);
            }
        }
    }
    UNROLL for (int r = 0; r < mr; r++)
    {
        UNROLL for (int j = 0; j < np; j++)
            product_finish(p, (uint32_t)r, panel + (uint32_t)j, acc[r][j]);
    }
}

/* np: as many panels as leave the sums in registers. */
#define DIRECT_CASE(T, mr)                                             \
    case mr:                                                           \
        for (; DIRECT_PANELS(mr) == 2 && panel + 2 <= end; panel += 2) \
            direct_body(TENSOR_##T, mr, DIRECT_PANELS(mr), p, panel);  \
        for (; panel < end; panel++)                                   \
            direct_body(TENSOR_##T, mr, 1, p, panel);                  \
        break;
#if SIMD_MAX_ROW > 3
#define DIRECT_MORE(T) DIRECT_CASE(T, 4) DIRECT_CASE(T, 5) DIRECT_CASE(T, 6)
#else
#define DIRECT_MORE(T)
#endif
#define DIRECT(T)                                                                   \
    static void direct_##T(const struct cpu_product *p, uint32_t panel, uint32_t n) \
    {                                                                               \
        uint32_t end = panel + n;                                                   \
        switch (p->n_rows) {                                                        \
            DIRECT_CASE(T, 1)                                                       \
            DIRECT_CASE(T, 2)                                                       \
            DIRECT_CASE(T, 3)                                                       \
            DIRECT_MORE(T)                                                          \
        default:                                                                    \
            break;                                                                  \
        }                                                                           \
    }
DIRECT(F16)
DIRECT(BF16)
DIRECT(Q8_0)
DIRECT(Q4_0)
DIRECT(Q4_1)

static bool product_direct(const struct cpu_product *p, uint32_t first, uint32_t n)
{
    if (p->n_rows > DIRECT_ROWS || p->n_k % 32 != 0)
        return false;
    switch (p->type) {
    case TENSOR_F16:
        direct_F16(p, first, n);
        return true;
    case TENSOR_BF16:
        direct_BF16(p, first, n);
        return true;
    case TENSOR_Q8_0:
        direct_Q8_0(p, first, n);
        return true;
    case TENSOR_Q4_0:
        direct_Q4_0(p, first, n);
        return true;
    case TENSOR_Q4_1:
        direct_Q4_1(p, first, n);
        return true;
    default:
        return false;
    }
}

/* np neighbouring panels (1 or 2) for some tiles of rows. */
static void product_panels(const struct cpu_product *p, uint32_t panel, uint32_t np,
                           uint32_t first_tile, uint32_t end_tile, float *scratch)
{
    float *w = scratch, *sums = scratch + 2 * CPU_RANGE * CPU_PANEL;
    const uint8_t *packed = p->panels + panel * p->panel_bytes;
    uint32_t first = tile_begin(p->n_rows, SIMD_MAX_ROW, first_tile),
             end = tile_begin(p->n_rows, SIMD_MAX_ROW, end_tile);
    for (uint32_t r = first; r < end; r++) /* lines far apart, wanted when the sums are done */
        __builtin_prefetch(p->y + (size_t)r * p->n_out + panel * CPU_PANEL, 1);
    for (uint32_t k = 0; k < p->n_k; k += CPU_RANGE) {
        uint32_t n = p->n_k - k < CPU_RANGE ? p->n_k - k : CPU_RANGE;
        const float *from = w;
        size_t wp = CPU_RANGE * CPU_PANEL;
        if (p->type == TENSOR_F32) {
            from = (const float *)(const void *)packed + (size_t)k * CPU_PANEL;
            wp = p->panel_bytes / sizeof(float);
        } else {
            for (uint32_t j = 0; j < np; j++)
                panel_expand(p->type, packed + j * p->panel_bytes, p->n_k, k, n, w + j * wp);
        }
        for (uint32_t t = first_tile, row = first; t < end_tile; t++) {
            uint32_t mr = tile_begin(p->n_rows, SIMD_MAX_ROW, t + 1) - row;
            tile_panels(true, mr, (const float *)p->x + (size_t)row * p->n_k + (size_t)k * mr, 0,
                        from, CPU_PANEL, wp, np, n, sums + (row - first) * np * CPU_PANEL,
                        np * CPU_PANEL, CPU_PANEL, k > 0);
            row += mr;
        }
    }
    for (uint32_t r = 0; r < end - first; r++) {
        for (uint32_t j = 0; j < np; j++)
            product_finish(p, first + r, panel + j, vec16_load(sums + (r * np + j) * CPU_PANEL));
    }
}

static void product_f32(const struct cpu_product *p, uint32_t first, uint32_t n, float *scratch)
{
    if (product_direct(p, first, n))
        return;
    uint32_t n_tiles = tile_count(p->n_rows, SIMD_MAX_ROW), chunk = CPU_ROW_CHUNK / SIMD_MAX_ROW;
    uint32_t np = SIMD_WIDE || p->n_rows <= 3 ? 2 : 1;
    for (uint32_t t = 0; t < n_tiles; t += chunk) {
        uint32_t end = n_tiles - t < chunk ? n_tiles : t + chunk;
        for (uint32_t i = 0; i < n; i += np)
            product_panels(p, first + i, n - i < np ? n - i : np, t, end, scratch);
    }
}

#endif
