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
#include "cpu_simd.h"

/* ---- tiles: y[r][p] (+)= sum over k of x[r][k] * w[p][k] ------------------------------------ */

/*
 * x: rows ldx apart.  w: panel p at w + p * wp, k at steps of ldw.  y: row r, panel p at
 * y + r * ldy + p * yp; begins from 0 unless `resume`.
 */
#define TILE_ARGS                                                                            \
    const float *x, size_t ldx, const float *w, size_t ldw, size_t wp, uint32_t n, float *y, \
        size_t ldy, size_t yp, bool resume

INLINE void tile_body(const int mr, const int np, TILE_ARGS)
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
            struct vec16 one = vec16_set(x[r * ldx + k]);
            UNROLL for (int p = 0; p < np; p++) acc[r][p] = vec16_fma(one, v[p], acc[r][p]);
        }
        w += ldw;
    }
    UNROLL for (int r = 0; r < mr; r++)
    {
        UNROLL for (int p = 0; p < np; p++) vec16_store(y + r * ldy + p * yp, acc[r][p]);
    }
}

typedef void (*tile_fn)(TILE_ARGS);
#define TILE(mr, np)                                                  \
    static void tile_##mr##_##np(TILE_ARGS)                           \
    {                                                                 \
        tile_body(mr, np, x, ldx, w, ldw, wp, n, y, ldy, yp, resume); \
    }

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
static const tile_fn tiles_1[] = {NULL,      tile_1_1,  tile_2_1, tile_3_1, tile_4_1,
                                  tile_5_1,  tile_6_1,  tile_7_1, tile_8_1, tile_9_1,
                                  tile_10_1, tile_11_1, tile_12_1};
static const tile_fn tiles_2[] = {NULL,      tile_1_2,  tile_2_2, tile_3_2, tile_4_2,
                                  tile_5_2,  tile_6_2,  tile_7_2, tile_8_2, tile_9_2,
                                  tile_10_2, tile_11_2, tile_12_2};
static const tile_fn tiles_4[SIMD_MAX_ROW + 1] = {NULL, tile_1_4, tile_2_4, tile_3_4};
#elif defined(CPU_PATH_AVX2)
TILE(4, 1)
TILE(5, 1)
TILE(6, 1)
TILE(2, 2)
TILE(3, 2)
TILE(1, 4)
static const tile_fn tiles_1[] = {NULL, tile_1_1, tile_2_1, tile_3_1, tile_4_1, tile_5_1, tile_6_1};
static const tile_fn tiles_2[SIMD_MAX_ROW + 1] = {NULL, tile_1_2, tile_2_2, tile_3_2};
static const tile_fn tiles_4[SIMD_MAX_ROW + 1] = {NULL, tile_1_4};
#elif SIMD_MAX_ROW == 6
TILE(4, 1)
TILE(5, 1)
TILE(6, 1)
TILE(2, 2)
TILE(3, 2)
static const tile_fn tiles_1[] = {NULL, tile_1_1, tile_2_1, tile_3_1, tile_4_1, tile_5_1, tile_6_1};
static const tile_fn tiles_2[SIMD_MAX_ROW + 1] = {NULL, tile_1_2, tile_2_2, tile_3_2};
static const tile_fn tiles_4[SIMD_MAX_ROW + 1] = {NULL};
#else
static const tile_fn tiles_1[] = {NULL, tile_1_1, tile_2_1, tile_3_1};
static const tile_fn tiles_2[SIMD_MAX_ROW + 1] = {NULL, tile_1_2};
static const tile_fn tiles_4[SIMD_MAX_ROW + 1] = {NULL};
#endif

/* All rows and panels of such a product, by the tiles that keep most sums in flight. */
static void tiles(const float *x, size_t ldx, uint32_t n_rows, const float *w, size_t ldw,
                  size_t wp, uint32_t n_panels, uint32_t n, float *y, size_t ldy, size_t yp,
                  bool resume)
{
    uint32_t n_tiles = (n_rows + SIMD_MAX_ROW - 1) / SIMD_MAX_ROW;
    for (uint32_t t = 0, row = 0; t < n_tiles; t++) {
        uint32_t mr = n_rows / n_tiles + (t < n_rows % n_tiles);
        for (uint32_t p = 0; p < n_panels;) {
            uint32_t left = n_panels - p, np = 1;
            if (left >= 4 && tiles_4[mr])
                np = 4;
            else if (left >= 2 && tiles_2[mr])
                np = 2;
            tile_fn fn = np == 4 ? tiles_4[mr] : np == 2 ? tiles_2[mr] : tiles_1[mr];
            fn(x + row * ldx, ldx, w + p * wp, ldw, wp, n, y + row * ldy + p * yp, ldy, yp, resume);
            p += np;
        }
        row += mr;
    }
}

/* ---- panels: groups of 32 k ----------------------------------------------------------------- */

/* What the codes of a group of 32 k are multiplied by and added to. */
struct group {
    const uint8_t *codes, *high;
    struct vec16 d, d_second, m; /* d_second: of the upper 16 k (Q6_K) */
};

INLINE void group_open(const enum tensor_type type, const uint8_t *panel, uint32_t g,
                       struct group *ret)
{
    const uint8_t *p;
    switch (type) {
    case TENSOR_Q8_0:
        p = panel + (size_t)g * 544;
        *ret = (struct group){.codes = p + 32, .d = vec16_from_f16(p)};
        break;
    case TENSOR_Q4_0:
        p = panel + (size_t)g * 288;
        *ret = (struct group){.codes = p + 32, .d = vec16_from_f16(p)};
        ret->m = vec16_mul(ret->d, vec16_set(-8.0f));
        break;
    case TENSOR_Q4_1:
        p = panel + (size_t)g * 320;
        *ret = (struct group){.codes = p + 64, .d = vec16_from_f16(p), .m = vec16_from_f16(p + 32)};
        break;
    case TENSOR_Q5_0:
        p = panel + (size_t)g * 352;
        *ret = (struct group){.codes = p + 32, .high = p + 288, .d = vec16_from_f16(p)};
        ret->m = vec16_mul(ret->d, vec16_set(-16.0f));
        break;
    case TENSOR_Q5_1:
        p = panel + (size_t)g * 384;
        *ret = (struct group){
            .codes = p + 64, .high = p + 320, .d = vec16_from_f16(p), .m = vec16_from_f16(p + 32)};
        break;
    case TENSOR_Q4_K:
    case TENSOR_Q5_K: {
        uint32_t sub = g % 8;
        p = panel + (size_t)(g / 8) * (type == TENSOR_Q4_K ? 2368 : 2880);
        struct vec16 d = vec16_from_f16(p), m = vec16_from_f16(p + 32);
        *ret = (struct group){.codes = p + 320 + sub * 256, .high = p + 2368 + sub * 64};
        ret->d = vec16_mul(d, vec16_from_field(p + 64 + sub * 16, 0, 255));
        ret->m =
            vec16_sub(vec16_zero(), vec16_mul(m, vec16_from_field(p + 192 + sub * 16, 0, 255)));
        break;
    }
    case TENSOR_Q6_K: {
        uint32_t sub = g % 8;
        p = panel + (size_t)(g / 8) * 3360;
        struct vec16 d = vec16_from_f16(p);
        *ret = (struct group){.codes = p + 288 + sub * 256, .high = p + 2336 + sub * 128};
        ret->d = vec16_mul(d, vec16_from_i8(p + 32 + sub * 32));
        ret->d_second = vec16_mul(d, vec16_from_i8(p + 48 + sub * 32));
        break;
    }
    case TENSOR_F32:
        ret->codes = panel + (size_t)g * 32 * 64;
        break;
    default: /* F16, BF16 */
        ret->codes = panel + (size_t)g * 32 * 32;
    }
}

/* The 16 weights of k (0..31) in the group.  k's parity is a constant where it matters. */
INLINE struct vec16 group_value(const enum tensor_type type, const struct group *g,
                                const uint32_t k)
{
    const uint8_t *pair = g->codes + k / 2 * 16;
    struct vec16 code;
    switch (type) {
    case TENSOR_F32:
        return vec16_load((const float *)g->codes + k * 16);
    case TENSOR_F16:
        return vec16_from_f16(g->codes + k * 32);
    case TENSOR_BF16:
        return vec16_from_bf16(g->codes + k * 32);
    case TENSOR_Q8_0:
        return vec16_mul(vec16_from_i8(g->codes + k * 16), g->d);
    default:
        code = k % 2 ? vec16_from_field(pair, 4, 15) : vec16_from_field(pair, 0, 15);
    }
    if (type == TENSOR_Q5_0 || type == TENSOR_Q5_1 || type == TENSOR_Q5_K) {
        uint16_t bits;
        memcpy(&bits, g->high + 2 * k, 2);
        code = vec16_add(code, vec16_from_bits(bits, 16.0f));
    }
    if (type == TENSOR_Q6_K) {
        const uint8_t *top = g->high + k / 4 * 16;
        struct vec16 two = k % 4 == 0   ? vec16_from_field(top, 0, 3)
                           : k % 4 == 1 ? vec16_from_field(top, 2, 3)
                           : k % 4 == 2 ? vec16_from_field(top, 4, 3)
                                        : vec16_from_field(top, 6, 3);
        code = vec16_sub(vec16_fma(two, vec16_set(16.0f), code), vec16_set(32.0f));
        return vec16_mul(code, k < 16 ? g->d : g->d_second);
    }
    return vec16_fma(code, g->d, g->m);
}

/* Expands groups first .. first + n - 1 of a panel to w [n * 32][16]. */
INLINE void groups_expand_body(const enum tensor_type type, const uint8_t *panel, uint32_t first,
                               uint32_t n, float *w)
{
    for (uint32_t i = 0; i < n; i++) {
        struct group g;
        group_open(type, panel, first + i, &g);
        for (uint32_t k = 0; k < 32; k += 4) {
            UNROLL for (uint32_t j = 0; j < 4; j++)
                vec16_store(w + (k + j) * 16, group_value(type, &g, k + j));
        }
        w += 32 * 16;
    }
}

/* k of a panel from k0, a multiple of 32, to w[n][16]. */
static void panel_expand(enum tensor_type type, const uint8_t *panel, uint32_t k0, uint32_t n,
                         float *w)
{
    uint32_t g = k0 / 32, whole = n / 32;
#define EXPAND(T)                                  \
    case T:                                        \
        groups_expand_body(T, panel, g, whole, w); \
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
    for (uint32_t k = whole * 32; k < n; k++) { /* F32, F16, BF16 alone have a rest */
        struct group rest;
        group_open(type, panel, g + whole, &rest);
        uint32_t at = k - whole * 32;
        struct vec16 v = type == TENSOR_F32   ? group_value(TENSOR_F32, &rest, at)
                         : type == TENSOR_F16 ? group_value(TENSOR_F16, &rest, at)
                                              : group_value(TENSOR_BF16, &rest, at);
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

/* Few rows: weights go from their codes straight into the sums.  n_k is a multiple of 32. */
INLINE void direct_body(const enum tensor_type type, const int mr, const int np,
                        const struct cpu_product *p, uint32_t panel)
{
    struct vec16 acc[4][4];
    const float *x[4];
    const uint8_t *w = p->panels + panel * p->panel_bytes;
    UNROLL for (int r = 0; r < mr; r++)
    {
        x[r] = p->x + (size_t)r * p->n_k;
        UNROLL for (int j = 0; j < np; j++) acc[r][j] = vec16_zero();
    }
    for (uint32_t i = 0; i < p->n_k / 32; i++) {
        struct group g[4];
        UNROLL for (int j = 0; j < np; j++) group_open(type, w + j * p->panel_bytes, i, &g[j]);
        for (uint32_t k = 0; k < 32; k += 2) {
            UNROLL for (uint32_t odd = 0; odd < 2; odd++)
            {
                struct vec16 v[4];
                UNROLL for (int j = 0; j < np; j++) v[j] = group_value(type, &g[j], k + odd);
                UNROLL for (int r = 0; r < mr; r++)
                {
                    struct vec16 one = vec16_set(x[r][k + odd]);
                    UNROLL for (int j = 0; j < np; j++) acc[r][j] = vec16_fma(one, v[j], acc[r][j]);
                }
            }
        }
        UNROLL for (int r = 0; r < mr; r++) x[r] += 32;
    }
    UNROLL for (int r = 0; r < mr; r++)
    {
        UNROLL for (int j = 0; j < np; j++)
            product_finish(p, (uint32_t)r, panel + (uint32_t)j, acc[r][j]);
    }
}

#define DIRECT(T)                                                                   \
    static void direct_##T(const struct cpu_product *p, uint32_t panel, uint32_t n) \
    {                                                                               \
        uint32_t end = panel + n;                                                   \
        for (; panel + 2 <= end; panel += 2) {                                      \
            if (p->n_rows == 1)                                                     \
                direct_body(TENSOR_##T, 1, 2, p, panel);                            \
            else if (p->n_rows == 2)                                                \
                direct_body(TENSOR_##T, 2, 2, p, panel);                            \
            else                                                                    \
                direct_body(TENSOR_##T, 3, 2, p, panel);                            \
        }                                                                           \
        if (panel < end) {                                                          \
            if (p->n_rows == 1)                                                     \
                direct_body(TENSOR_##T, 1, 1, p, panel);                            \
            else if (p->n_rows == 2)                                                \
                direct_body(TENSOR_##T, 2, 1, p, panel);                            \
            else                                                                    \
                direct_body(TENSOR_##T, 3, 1, p, panel);                            \
        }                                                                           \
    }
DIRECT(F16)
DIRECT(BF16)
DIRECT(Q8_0)
DIRECT(Q4_0)
DIRECT(Q4_1)

enum { DIRECT_ROWS = 3 /* above, expanding a panel once for all rows costs less */ };

/* Panels of 16 outputs, NP of them, from f32 weights at w (k0 onwards) for one chunk of rows. */
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

/* np neighbouring panels (1 or 2) for rows row .. row + n_rows - 1. */
static void product_panels(const struct cpu_product *p, uint32_t panel, uint32_t np, uint32_t row,
                           uint32_t n_rows, float *scratch)
{
    float *w = scratch, *sums = scratch + 2 * CPU_RANGE * CPU_PANEL;
    const uint8_t *packed = p->panels + panel * p->panel_bytes;
    for (uint32_t k = 0; k < p->n_k; k += CPU_RANGE) {
        uint32_t n = p->n_k - k < CPU_RANGE ? p->n_k - k : CPU_RANGE;
        const float *from = w;
        size_t wp = CPU_RANGE * CPU_PANEL;
        if (p->type == TENSOR_F32) {
            from = (const float *)packed + (size_t)k * CPU_PANEL;
            wp = p->panel_bytes / sizeof(float);
        } else {
            for (uint32_t j = 0; j < np; j++)
                panel_expand(p->type, packed + j * p->panel_bytes, k, n, w + j * wp);
        }
        tiles(p->x + (size_t)row * p->n_k + k, p->n_k, n_rows, from, CPU_PANEL, wp, np, n, sums,
              np * CPU_PANEL, CPU_PANEL, k > 0);
    }
    for (uint32_t r = 0; r < n_rows; r++) {
        for (uint32_t j = 0; j < np; j++)
            product_finish(p, row + r, panel + j, vec16_load(sums + (r * np + j) * CPU_PANEL));
    }
}

static void kernel_product(const struct cpu_product *p, uint32_t first, uint32_t n, float *scratch)
{
    if (product_direct(p, first, n))
        return;
    /* rows that stay in the second-level cache while the panels pass over them */
    uint32_t chunk = 65536 / p->n_k / SIMD_MAX_ROW * SIMD_MAX_ROW;
    chunk = chunk < 2 * SIMD_MAX_ROW ? 2 * SIMD_MAX_ROW : chunk;
    chunk = chunk > CPU_ROW_CHUNK ? CPU_ROW_CHUNK : chunk;
    uint32_t np = SIMD_WIDE || p->n_rows <= 3 ? 2 : 1;
    for (uint32_t row = 0; row < p->n_rows; row += chunk) {
        uint32_t n_rows = p->n_rows - row < chunk ? p->n_rows - row : chunk;
        for (uint32_t i = 0; i < n; i += np)
            product_panels(p, first + i, n - i < np ? n - i : np, row, n_rows, scratch);
    }
}

#endif
