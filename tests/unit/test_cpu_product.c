#include "config.h"

/* Products of the CPU backend: every weight type on every kernel set, against plain loops. */
#include "support/check_main.h"
#include "support/cpu_fixture.h"

static const enum tensor_type all_types[] = {
    TENSOR_F32,  TENSOR_F16,  TENSOR_BF16, TENSOR_Q8_0, TENSOR_Q4_0, TENSOR_Q4_1,
    TENSOR_Q5_0, TENSOR_Q5_1, TENSOR_Q4_K, TENSOR_Q5_K, TENSOR_Q6_K,
};
enum { N_TYPES = sizeof(all_types) / sizeof(all_types[0]) };

/* Loops over kernel sets, with activations as they are and rounded. */
enum { N_WAYS = 2 * N_CPU_PATHS };
static struct backend *open_way(int i, uint32_t n_threads)
{
    return fixture_open_as(cpu_paths[i % N_CPU_PATHS], i < N_CPU_PATHS ? "f32" : "int8", n_threads);
}

/* y[n_rows, rows(w)] by the backend. */
static float *multiply(struct backend *be, const float *x, const struct tensor *t, uint32_t n_rows)
{
    struct backend_weight *w = fixture_bind(be, t, BACKEND_MATRIX);
    struct backend_buffer *in = fixture_upload(be, x, n_rows * t->columns);
    struct backend_buffer *out = fixture_buffer(be, n_rows * t->rows);
    be->ops->matmul(be, out, in, w, NULL, false, n_rows);
    float *y = xreallocarray(NULL, n_rows * t->rows, sizeof(float));
    be->ops->download(be, out, y, n_rows * t->rows);
    be->ops->buffer_free(be, in);
    be->ops->buffer_free(be, out);
    be->ops->weight_free(be, w);
    return y;
}

static float *expand(const struct tensor *t)
{
    size_t n = (size_t)(t->rows * t->columns);
    float *w = xreallocarray(NULL, n, sizeof(float));
    tensor_dequantize(t->type, t->data, w, n);
    return w;
}

/* Rows that pick one k each give the weights themselves, so any wrong bit of a panel shows. */
static void check_weights(struct backend *be, const struct tensor *t, const char *what)
{
    uint32_t n_k = (uint32_t)t->columns, n_out = (uint32_t)t->rows;
    float *x = xcalloc((size_t)n_k * n_k, sizeof(float)), *w = expand(t);
    for (uint32_t k = 0; k < n_k; k++)
        x[(size_t)k * n_k + k] = 1;
    float *y = multiply(be, x, t, n_k);
    for (uint32_t k = 0; k < n_k; k++) {
        for (uint32_t o = 0; o < n_out; o++) {
            if (y[k * n_out + o] != w[o * n_k + k])
                ck_abort_msg("%s: %.9g, not %.9g, at [%u][%u]", what, (double)y[k * n_out + o],
                             (double)w[o * n_k + k], o, k);
        }
    }
    for (uint32_t k = 0; k < n_k; k += 7) { /* few rows take another way */
        uint32_t n = 1 + k % 3 < n_k - k ? 1 + k % 3 : n_k - k;
        float *some = multiply(be, x + (size_t)k * n_k, t, n);
        fixture_same(some, y + (size_t)k * n_out, (size_t)n * n_out, what);
        free(some);
    }
    free(x);
    free(y);
    free(w);
}

static void check_sums(struct backend *be, const struct tensor *t, uint32_t n_rows,
                       const char *what)
{
    uint32_t n_k = (uint32_t)t->columns, n_out = (uint32_t)t->rows;
    float *x = fixture_floats((size_t)n_rows * n_k), *w = expand(t);
    float *y = multiply(be, x, t, n_rows);
    for (uint32_t r = 0; r < n_rows; r++) {
        for (uint32_t o = 0; o < n_out; o++) {
            double sum = 0, size = 0;
            for (uint32_t k = 0; k < n_k; k++) {
                double product = (double)x[r * n_k + k] * w[o * n_k + k];
                sum += product;
                size += fabs(product);
            }
            /* n_k roundings of at most half a unit of the running sum each, and of the products */
            double tolerance = size * n_k * 0x1p-23;
            fixture_near(&y[r * n_out + o], &sum, 1, tolerance, what);
        }
    }
    free(x);
    free(w);
    free(y);
}

/* The group of x rounded as cpu_kernels.h says; returns d. */
static double round_group(const float *x, double *codes)
{
    float largest = 0;
    for (int i = 0; i < 32; i++)
        largest = fmaxf(largest, fabsf(x[i]));
    float inverse = largest > 0x1p-100f ? 127.0f / largest : 0;
    for (int i = 0; i < 32; i++)
        codes[i] = (double)nearbyintf(x[i] * inverse);
    return inverse > 0 ? (double)(largest * (1.0f / 127.0f)) : 0;
}

/* Rows as they are used, so that only roundings of f32 are left. */
static void check_rounded(struct backend *be, const struct tensor *t, const float *x,
                          uint32_t n_rows, const char *what)
{
    uint32_t n_k = (uint32_t)t->columns, n_out = (uint32_t)t->rows;
    float *w = expand(t), *y = multiply(be, x, t, n_rows);
    for (uint32_t r = 0; r < n_rows; r++) {
        for (uint32_t o = 0; o < n_out; o++) {
            double sum = 0, size = 0, codes[32];
            for (uint32_t k = 0; k < n_k; k += 32) {
                double d = round_group(x + (size_t)r * n_k + k, codes);
                for (uint32_t i = 0; i < 32; i++) {
                    double product = d * codes[i] * (double)w[(size_t)o * n_k + k + i];
                    sum += product;
                    size += fabs(product);
                }
            }
            /* per group: of the product of scales, of the minimum's product, of two sums; and of
             * the weights themselves, which were rounded when they were expanded */
            double tolerance = size * (n_k / 32 + 4) * 0x1p-23;
            fixture_near(&y[r * n_out + o], &sum, 1, tolerance, what);
        }
    }
    free(w);
    free(y);
}

static void check_int8(struct backend *be, const struct tensor *t, uint32_t n_rows,
                       const char *what)
{
    uint32_t n_k = (uint32_t)t->columns;
    float *x = fixture_floats((size_t)n_rows * n_k);
    check_rounded(be, t, x, n_rows, what);
    for (size_t i = 0; i < (size_t)n_rows * n_k; i++) /* all codes are 127 or -127 */
        x[i] = x[i] < 0 ? -3.0f : 3.0f;
    check_rounded(be, t, x, n_rows, what);
    for (size_t i = 0; i < (size_t)n_rows * n_k; i++) /* groups of nothing and of nearly nothing */
        x[i] *= i / 32 % 3 == 0 ? 0 : i / 32 % 3 == 1 ? 0x1p-120f : 1;
    check_rounded(be, t, x, n_rows, what);
    free(x);
}

START_TEST(rounded_rows_multiply_exactly)
{
    struct backend *be = fixture_open_as(cpu_paths[_i], "int8", 2);
    if (!be)
        return;
    static const uint32_t rows[] = {1, 2, 3, 5, 6, 7, 13, 40};
    for (int i = 3; i < N_TYPES; i++) {
        uint32_t n_k = tensor_block_elements(all_types[i]) == 256 ? 1280 : 1056;
        for (uint32_t n_out = 1; n_out < 70; n_out += 23) {
            struct tensor t = fixture_weight(all_types[i], n_out, n_k);
            char what[64];
            snprintf(what, sizeof(what), "%s %s, %u outputs", cpu_paths[_i],
                     tensor_type_name(all_types[i]), n_out);
            for (int r = 0; r < 8; r += FIXTURE_SLOW ? 3 : 1)
                check_int8(be, &t, rows[r], what);
            free((void *)(uintptr_t)t.data);
        }
    }
    backend_close(be);
}
END_TEST

/* Codes that leave no room: -128 and 127 of Q8_0, all bits of the others, both signs of x. */
START_TEST(extreme_codes_do_not_saturate)
{
    struct backend *be = fixture_open_as(cpu_paths[_i], "int8", 1);
    if (!be)
        return;
    for (int i = 3; i < N_TYPES; i++) {
        struct tensor t = fixture_weight(all_types[i], 32, 256);
        uint8_t *data = (uint8_t *)(uintptr_t)t.data;
        size_t unit = tensor_block_bytes(all_types[i]);
        for (size_t j = 0; j < t.size_bytes; j++) {
            size_t row = j / (t.size_bytes / 32);
            bool code = all_types[i] == TENSOR_Q6_K ? j % unit < 192
                                                    : j % unit >= unit - (unit > 34 ? 128 : 16);
            if (all_types[i] == TENSOR_Q8_0)
                code = j % unit >= 2;
            if (code)
                data[j] =
                    all_types[i] == TENSOR_Q8_0 ? (row % 2 ? 0x80 : 0x7f) : (row % 2 ? 0xff : 0x00);
        }
        float x[8 * 256];
        for (int j = 0; j < 8 * 256; j++)
            x[j] = j / 256 % 2 ? -1.0f : 1.0f;
        check_rounded(be, &t, x, 1, tensor_type_name(all_types[i]));
        check_rounded(be, &t, x, 8, tensor_type_name(all_types[i]));
        free(data);
    }
    backend_close(be);
}
END_TEST

START_TEST(a_number_that_is_none_spoils_its_row_alone)
{
    struct backend *be = open_way(_i, 1);
    if (!be)
        return;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 3; i < N_TYPES; i++) {
        struct tensor t = fixture_weight(all_types[i], 40, 512);
        float *x = fixture_floats(9 * 512), *good = multiply(be, x, &t, 9);
        for (int b = 0; b < 3; b++) {
            float kept = x[4 * 512 + 300];
            x[4 * 512 + 300] = bad[b];
            float *y = multiply(be, x, &t, 9);
            for (int o = 0; o < 40; o++) {
                if (isfinite(y[4 * 40 + o]))
                    ck_abort_msg("%s hides %g", tensor_type_name(all_types[i]), (double)bad[b]);
            }
            fixture_same(y, good, 4 * 40, "rows before");
            fixture_same(y + 5 * 40, good + 5 * 40, 4 * 40, "rows behind");
            free(y);
            y = multiply(be, x + 4 * 512, &t, 1);
            ck_assert(!isfinite(y[0]) && !isfinite(y[39]));
            free(y);
            x[4 * 512 + 300] = kept;
        }
        free(x);
        free(good);
        free((void *)(uintptr_t)t.data);
    }
    backend_close(be);
}
END_TEST

/* How much rounding costs: about 0.6% of a product's size for numbers spread evenly. */
START_TEST(rounding_costs_little)
{
    struct backend *be = fixture_open_as(cpu_paths[_i], "int8", 1);
    struct backend *exact = fixture_open_as(cpu_paths[_i], "f32", 1);
    if (!be)
        return;
    for (int i = 3; i < N_TYPES; i++) {
        struct tensor t = fixture_weight(all_types[i], 64, 768);
        float *x = fixture_floats(10 * 768);
        float *a = multiply(be, x, &t, 10), *b = multiply(exact, x, &t, 10);
        double error = 0, size = 0;
        for (int j = 0; j < 640; j++) {
            error += pow((double)a[j] - (double)b[j], 2);
            size += pow((double)b[j], 2);
        }
        if (!(error > 0 && sqrt(error / size) < 0.01))
            ck_abort_msg("%s: %.3g", tensor_type_name(all_types[i]), sqrt(error / size));
        free(x);
        free(a);
        free(b);
        free((void *)(uintptr_t)t.data);
    }
    backend_close(be);
    backend_close(exact);
}
END_TEST

START_TEST(every_type_multiplies_on_every_path)
{
    struct backend *be = open_way(_i, 2);
    if (!be)
        return;
    static const uint32_t shapes[][2] = {{32, 1}, {64, 17}, {288, 48}, {96, 31}};
    for (int i = 0; i < N_TYPES; i++) {
        uint32_t block = tensor_block_elements(all_types[i]);
        for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
            uint32_t n_k = (shapes[s][0] + block - 1) / block * block;
            struct tensor t = fixture_weight(all_types[i], shapes[s][1], n_k);
            char what[64];
            snprintf(what, sizeof(what), "%s %s %ux%u", cpu_paths[_i],
                     tensor_type_name(all_types[i]), shapes[s][1], n_k);
            check_weights(be, &t, what);
            static const uint32_t rows[] = {1, 2, 3, 5, 13};
            for (int r = 0; r < 5; r += FIXTURE_SLOW ? 2 : 1)
                check_sums(be, &t, rows[r], what);
            free((void *)(uintptr_t)t.data);
        }
    }
    backend_close(be);
}
END_TEST

START_TEST(plain_types_take_any_number_of_columns)
{
    struct backend *be = open_way(_i, 1);
    if (!be)
        return;
    static const uint32_t columns[] = {1, 5, 24, 33, 257, 300};
    for (int i = 0; i < 3; i++) {
        for (int c = 0; c < 6; c++) {
            struct tensor t = fixture_weight(all_types[i], 19, columns[c]);
            check_weights(be, &t, tensor_type_name(all_types[i]));
            check_sums(be, &t, 8, tensor_type_name(all_types[i]));
            free((void *)(uintptr_t)t.data);
        }
    }
    backend_close(be);
}
END_TEST

/* The heart of batch invariance. */
START_TEST(a_row_has_the_same_bits_in_any_company)
{
    struct backend *one = open_way(_i, 1), *three = open_way(_i, 3);
    if (!one)
        return;
    for (int i = 0; i < N_TYPES; i++) {
        enum { MOST = 70, N_OUT = 83 };
        uint32_t n_k = tensor_block_elements(all_types[i]) == 256 ? 512 : 544;
        struct tensor t = fixture_weight(all_types[i], N_OUT, n_k);
        float *x = fixture_floats((size_t)MOST * n_k), *all = multiply(one, x, &t, MOST);
        for (uint32_t n = 1; n <= MOST; n += FIXTURE_SLOW ? 4 : 1) {
            float *some = multiply(n % 2 ? three : one, x, &t, n);
            fixture_same(some, all, (size_t)n * N_OUT, tensor_type_name(all_types[i]));
            free(some);
            float *last = multiply(three, x + (size_t)(n - 1) * n_k, &t, 1);
            fixture_same(last, all + (size_t)(n - 1) * N_OUT, N_OUT, "one row");
            free(last);
        }
        free(x);
        free(all);
        free((void *)(uintptr_t)t.data);
    }
    backend_close(one);
    backend_close(three);
}
END_TEST

START_TEST(long_rows_pass_in_chunks)
{
    struct backend *be = open_way(_i, 2);
    if (!be)
        return;
    struct tensor t = fixture_weight(TENSOR_Q8_0, 20, 4096);
    float *x = fixture_floats((size_t)150 * 4096), *all = multiply(be, x, &t, 150);
    for (uint32_t r = 0; r < 150; r += 11) {
        float *one = multiply(be, x + (size_t)r * 4096, &t, 1);
        fixture_same(one, all + (size_t)r * 20, 20, "row of a long product");
        free(one);
    }
    if (_i < N_CPU_PATHS)
        check_sums(be, &t, 40, "q8_0 of 4096 columns");
    else
        check_int8(be, &t, 40, "q8_0 of 4096 columns");
    free(x);
    free(all);
    free((void *)(uintptr_t)t.data);
    backend_close(be);
}
END_TEST

START_TEST(bias_and_accumulation_come_after_the_sum)
{
    struct backend *be = open_way(_i, 1);
    if (!be)
        return;
    for (uint32_t n_rows = 1; n_rows <= 9; n_rows += 4) {
        enum { N_OUT = 37, N_K = 64 };
        struct tensor t = fixture_weight(TENSOR_Q4_1, N_OUT, N_K);
        float *bias = fixture_floats(N_OUT), *x = fixture_floats(n_rows * N_K);
        float *before = fixture_floats(n_rows * N_OUT), *sum = multiply(be, x, &t, n_rows);
        struct tensor b = {bias, TENSOR_F32, 1, N_OUT, 1, N_OUT * sizeof(float)};
        struct backend_weight *w = fixture_bind(be, &t, BACKEND_MATRIX);
        struct backend_weight *v = fixture_bind(be, &b, BACKEND_VECTOR);
        struct backend_buffer *in = fixture_upload(be, x, n_rows * N_K);
        struct backend_buffer *out = fixture_upload(be, before, n_rows * N_OUT);
        be->ops->matmul(be, out, in, w, v, true, n_rows);
        float *y = xreallocarray(NULL, n_rows * N_OUT, sizeof(float));
        be->ops->download(be, out, y, n_rows * N_OUT);
        for (uint32_t i = 0; i < n_rows * N_OUT; i++)
            sum[i] = before[i] + (sum[i] + bias[i % N_OUT]);
        fixture_same(y, sum, n_rows * N_OUT, "bias and accumulation");
        be->ops->buffer_free(be, in);
        be->ops->buffer_free(be, out);
        be->ops->weight_free(be, w);
        be->ops->weight_free(be, v);
        free(bias);
        free(x);
        free(before);
        free(sum);
        free(y);
        free((void *)(uintptr_t)t.data);
    }
    backend_close(be);
}
END_TEST

START_TEST(kernel_sets_agree_within_rounding)
{
    struct backend *portable = open_way(N_CPU_PATHS * _i, 1), *best = NULL;
    for (int i = N_CPU_PATHS; i-- > 0 && !best;)
        best = open_way(N_CPU_PATHS * _i + i, 1);
    for (int i = 0; i < N_TYPES; i++) {
        struct tensor t = fixture_weight(all_types[i], 40, 768);
        float *x = fixture_floats(10 * 768);
        float *a = multiply(portable, x, &t, 10), *b = multiply(best, x, &t, 10);
        double largest = 0;
        for (int j = 0; j < 400; j++)
            largest = fmax(largest, fabs((double)a[j]));
        double expected[400];
        for (int j = 0; j < 400; j++)
            expected[j] = (double)a[j];
        fixture_near(b, expected, 400, largest * 768 * 0x1p-24, tensor_type_name(all_types[i]));
        free(x);
        free(a);
        free(b);
        free((void *)(uintptr_t)t.data);
    }
    backend_close(portable);
    backend_close(best);
}
END_TEST

START_TEST(a_weight_that_does_not_fit_its_bytes_is_refused)
{
    struct backend *be = fixture_best(1);
    struct backend_weight *w = NULL;
    struct error err;
    struct tensor t = fixture_weight(TENSOR_Q8_0, 4, 64), bad = t;
    bad.size_bytes--;
    ck_assert_int_eq(be->ops->weight_new(be, &bad, BACKEND_MATRIX, &w, &err), STATUS_BAD_FILE);
    bad = t;
    bad.columns = 33;
    ck_assert_int_eq(be->ops->weight_new(be, &bad, BACKEND_MATRIX, &w, &err), STATUS_BAD_FILE);
    bad = t;
    bad.rows = 0;
    ck_assert_int_eq(be->ops->weight_new(be, &bad, BACKEND_MATRIX, &w, &err), STATUS_BAD_FILE);
    bad = t;
    bad.rows = UINT64_MAX / 32;
    ck_assert_int_eq(be->ops->weight_new(be, &bad, BACKEND_TABLE, &w, &err), STATUS_BAD_FILE);
    bad = t;
    bad.type = (enum tensor_type)4;
    ck_assert_int_eq(be->ops->weight_new(be, &bad, BACKEND_TABLE, &w, &err), STATUS_BAD_FILE);
    ck_assert_ptr_null(w);
    free((void *)(uintptr_t)t.data);
    backend_close(be);
}
END_TEST

static void add_cases(Suite *suite)
{
    TCase *each = tcase_create("each kernel set");
    tcase_set_timeout(each, 120);
    tcase_add_loop_test(each, every_type_multiplies_on_every_path, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, plain_types_take_any_number_of_columns, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, a_row_has_the_same_bits_in_any_company, 0, N_WAYS);
    tcase_add_loop_test(each, long_rows_pass_in_chunks, 0, N_WAYS);
    tcase_add_loop_test(each, bias_and_accumulation_come_after_the_sum, 0, N_WAYS);
    tcase_add_loop_test(each, rounded_rows_multiply_exactly, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, extreme_codes_do_not_saturate, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, a_number_that_is_none_spoils_its_row_alone, 0, N_WAYS);
    tcase_add_loop_test(each, rounding_costs_little, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, kernel_sets_agree_within_rounding, 0, 2);
    suite_add_tcase(suite, each);
    CHECK_ADD(suite, "bad weights", a_weight_that_does_not_fit_its_bytes_is_refused);
}

CHECK_MAIN("cpu products", add_cases)
