#include "config.h"

/* Products of the CPU backend: every weight type on every kernel set, against plain loops. */
#include "support/check_main.h"
#include "support/cpu_fixture.h"

static const enum tensor_type all_types[] = {
    TENSOR_F32,  TENSOR_F16,  TENSOR_BF16, TENSOR_Q8_0, TENSOR_Q4_0, TENSOR_Q4_1,
    TENSOR_Q5_0, TENSOR_Q5_1, TENSOR_Q4_K, TENSOR_Q5_K, TENSOR_Q6_K,
};
enum { N_TYPES = sizeof(all_types) / sizeof(all_types[0]) };

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

START_TEST(every_type_multiplies_on_every_path)
{
    struct backend *be = fixture_open(cpu_paths[_i], 2);
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
    struct backend *be = fixture_open(cpu_paths[_i], 1);
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
    struct backend *one = fixture_open(cpu_paths[_i], 1), *three = fixture_open(cpu_paths[_i], 3);
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
    struct backend *be = fixture_open(cpu_paths[_i], 2);
    if (!be)
        return;
    struct tensor t = fixture_weight(TENSOR_Q8_0, 20, 4096);
    float *x = fixture_floats((size_t)150 * 4096), *all = multiply(be, x, &t, 150);
    for (uint32_t r = 0; r < 150; r += 11) {
        float *one = multiply(be, x + (size_t)r * 4096, &t, 1);
        fixture_same(one, all + (size_t)r * 20, 20, "row of a long product");
        free(one);
    }
    check_sums(be, &t, 40, "q8_0 of 4096 columns");
    free(x);
    free(all);
    free((void *)(uintptr_t)t.data);
    backend_close(be);
}
END_TEST

START_TEST(bias_and_accumulation_come_after_the_sum)
{
    struct backend *be = fixture_open(cpu_paths[_i], 1);
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
    struct backend *portable = fixture_open("portable", 1), *best = fixture_best(1);
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
    tcase_add_loop_test(each, a_row_has_the_same_bits_in_any_company, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, long_rows_pass_in_chunks, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, bias_and_accumulation_come_after_the_sum, 0, N_CPU_PATHS);
    suite_add_tcase(suite, each);
    CHECK_ADD(suite, "between kernel sets", kernel_sets_agree_within_rounding);
    CHECK_ADD(suite, "bad weights", a_weight_that_does_not_fit_its_bytes_is_refused);
}

CHECK_MAIN("cpu products", add_cases)
