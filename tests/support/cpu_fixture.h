#ifndef TELLERD_SUPPORT_CPU_FIXTURE_H
#define TELLERD_SUPPORT_CPU_FIXTURE_H

/* What the tests of the CPU backend share: random numbers and weights, every kernel set that this
 * machine can run, and comparisons that say where they failed. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/backend/backend.h"
#include "tellerd/base/mem.h"

/* Sanitizers make the loops some ten times as slow: then the tests take smaller problems. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FIXTURE_SLOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FIXTURE_SLOW 1
#endif
#endif
#ifndef FIXTURE_SLOW
#define FIXTURE_SLOW 0
#endif

static const char *const cpu_paths[] = {"portable", "avx2", "avx512"};
enum { N_CPU_PATHS = 3 };

/* Opens a kernel set; NULL when this machine or build lacks it. */
static inline struct backend *fixture_open_as(const char *path, const char *activations,
                                              uint32_t n_threads)
{
    struct backend_config config = {
        .name = "cpu", .cpu_path = path, .cpu_activations = activations, .n_threads = n_threads};
    struct backend *be = NULL;
    struct error err;
    enum status status = backend_open(&config, &be, &err);
    if (status == STATUS_BAD_CONFIG && strcmp(path, "portable") != 0)
        return NULL;
    ck_assert_msg(status == STATUS_OK, "%s", err.text);
    return be;
}

static inline struct backend *fixture_open(const char *path, uint32_t n_threads)
{
    return fixture_open_as(path, "auto", n_threads);
}

/* The widest set of this machine. */
static inline struct backend *fixture_best(uint32_t n_threads)
{
    struct backend *be = NULL;
    for (int i = N_CPU_PATHS; i-- > 0 && !be;)
        be = fixture_open(cpu_paths[i], n_threads);
    return be;
}

static uint64_t fixture_state = 1;

static inline uint32_t fixture_u32(void)
{
    fixture_state = fixture_state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = fixture_state ^ fixture_state >> 33;
    return (uint32_t)(x * 0xff51afd7ed558ccdu >> 32);
}

/* In -1 .. 1. */
static inline float fixture_float(void)
{
    return (float)(int32_t)fixture_u32() * 0x1p-31f;
}

static inline float *fixture_floats(size_t n)
{
    float *x = xreallocarray(NULL, n, sizeof(float));
    for (size_t i = 0; i < n; i++)
        x[i] = fixture_float();
    return x;
}

/* A random weight of any type; scales are small and of either sign.  The caller frees data. */
static inline struct tensor fixture_weight(enum tensor_type type, uint32_t rows, uint32_t columns)
{
    struct tensor t = {.type = type, .n_dims = 2, .columns = columns, .rows = rows};
    size_t row_bytes = 0;
    ck_assert(tensor_row_bytes(type, columns, &row_bytes));
    t.size_bytes = row_bytes * rows;
    uint8_t *data = xmalloc(t.size_bytes);
    t.data = data;
    size_t n = (size_t)rows * columns, unit = tensor_block_bytes(type);
    if (type == TENSOR_F32 || type == TENSOR_F16 || type == TENSOR_BF16) {
        float *x = fixture_floats(n);
        tensor_quantize(type, x, data, n);
        free(x);
        return t;
    }
    for (size_t i = 0; i < t.size_bytes; i++)
        data[i] = (uint8_t)fixture_u32();
    for (size_t i = 0; i < t.size_bytes; i += unit) {
        uint16_t d = tensor_f32_to_f16(fixture_float() * 0.02f);
        uint16_t m = tensor_f32_to_f16(fixture_float() * 0.02f);
        memcpy(data + i + (type == TENSOR_Q6_K ? 208 : 0), &d, 2);
        if (type == TENSOR_Q4_1 || type == TENSOR_Q5_1 || type == TENSOR_Q4_K ||
            type == TENSOR_Q5_K)
            memcpy(data + i + 2, &m, 2);
    }
    return t;
}

static inline struct backend_weight *fixture_bind(struct backend *be, const struct tensor *t,
                                                  enum backend_use use)
{
    struct backend_weight *w = NULL;
    struct error err;
    ck_assert_msg(be->ops->weight_new(be, t, use, &w, &err) == STATUS_OK, "%s", err.text);
    return w;
}

static inline struct backend_buffer *fixture_buffer(struct backend *be, size_t n)
{
    struct backend_buffer *b = NULL;
    struct error err;
    ck_assert_msg(be->ops->buffer_new(be, n, &b, &err) == STATUS_OK, "%s", err.text);
    return b;
}

/* A buffer that holds x. */
static inline struct backend_buffer *fixture_upload(struct backend *be, const float *x, size_t n)
{
    struct backend_buffer *b = fixture_buffer(be, n);
    be->ops->upload(be, b, x, n);
    return b;
}

/* The same bits.  (libcheck writes to a file at each assertion, so only a failure is one.) */
static inline void fixture_same(const float *a, const float *b, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        if (memcmp(&a[i], &b[i], sizeof(float)) != 0)
            ck_abort_msg("%s: %.9g and %.9g at %zu", what, (double)a[i], (double)b[i], i);
    }
}

/* At most `tolerance` apart. */
static inline void fixture_near(const float *a, const double *b, size_t n, double tolerance,
                                const char *what)
{
    for (size_t i = 0; i < n; i++) {
        double off = fabs((double)a[i] - b[i]);
        if (!(off <= tolerance))
            ck_abort_msg("%s: %.9g, not %.9g, at %zu (%.3g off)", what, (double)a[i], b[i], i, off);
    }
}

#endif
