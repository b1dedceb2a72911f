#include "config.h"

/* Row-wise and element-wise ops of the CPU backend against plain loops in double. */
#include "support/check_main.h"
#include "support/cpu_fixture.h"

/* Sizes that leave every kind of rest in the kernels' vectors. */
static const uint32_t sizes[] = {1, 7, 16, 33, 64, 100, 576};
enum { N_SIZES = sizeof(sizes) / sizeof(sizes[0]) };

#define FOR_PATH(be)                                     \
    struct backend *be = fixture_open(cpu_paths[_i], 3); \
    if (!be)                                             \
        return;

static struct backend_weight *vector(struct backend *be, const float *x, uint32_t rows, uint32_t n)
{
    struct tensor t = {x, TENSOR_F32, 1, n, rows, (size_t)rows * n * sizeof(float)};
    return fixture_bind(be, &t, BACKEND_VECTOR);
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

START_TEST(norms_are_root_mean_square)
{
    FOR_PATH(be)
    for (int s = 0; s < N_SIZES; s++) {
        for (int weighted = 0; weighted < 2; weighted++) {
            uint32_t n = sizes[s], n_rows = 70;
            size_t total = (size_t)n_rows * n;
            float *x = fixture_floats(total), *w = fixture_floats(n);
            double *expected = xcalloc(total, sizeof(double));
            for (uint32_t r = 0; r < n_rows; r++) {
                double sum = 0;
                for (uint32_t i = 0; i < n; i++)
                    sum += (double)x[r * n + i] * x[r * n + i];
                for (uint32_t i = 0; i < n; i++)
                    expected[r * n + i] =
                        x[r * n + i] / sqrt(sum / n + 1e-3) * (weighted ? w[i] : 1);
            }
            struct backend_weight *weight = weighted ? vector(be, w, 1, n) : NULL;
            struct backend_buffer *in = fixture_upload(be, x, total);
            be->ops->rmsnorm(be, in, in, weight, 1e-3f, n_rows, n);
            be->ops->download(be, in, x, total);
            fixture_near(x, expected, total, 1e-5, "rmsnorm");
            be->ops->buffer_free(be, in);
            be->ops->weight_free(be, weight);
            free(x);
            free(w);
            free(expected);
        }
    }
    backend_close(be);
}
END_TEST

START_TEST(head_norms_scale_each_head)
{
    FOR_PATH(be)
    enum { ROWS = 5, HEADS = 3, D = 32, TOTAL = ROWS * HEADS * D };
    float *x = fixture_floats(TOTAL);
    double expected[TOTAL];
    for (int h = 0; h < ROWS * HEADS; h++) {
        double sum = 0;
        for (int i = 0; i < D; i++)
            sum += (double)x[h * D + i] * x[h * D + i];
        for (int i = 0; i < D; i++)
            expected[h * D + i] = x[h * D + i] / sqrt(sum / D + 1e-6) * 1.2;
    }
    struct backend_buffer *b = fixture_upload(be, x, TOTAL);
    be->ops->head_norm(be, b, NULL, 1e-6f, 1.2f, ROWS, HEADS, D);
    be->ops->download(be, b, x, TOTAL);
    fixture_near(x, expected, TOTAL, 1e-5, "head_norm");
    be->ops->buffer_free(be, b);
    free(x);
    backend_close(be);
}
END_TEST

START_TEST(activations_follow_their_formulas)
{
    FOR_PATH(be)
    for (int s = 0; s < N_SIZES; s++) {
        uint32_t n = sizes[s] * 40;
        float *gate = fixture_floats(n), *up = fixture_floats(n), *z = fixture_floats(n);
        float *relu = fixture_floats(n);
        double *a = xcalloc(n, sizeof(double)), *b = xcalloc(n, sizeof(double));
        double *c = xcalloc(n, sizeof(double));
        for (uint32_t i = 0; i < n; i++) {
            gate[i] *= i % 3 == 0 ? 1 : i % 3 == 1 ? 20 : 300; /* both ends of the exponential */
            z[i] *= i % 3 == 0 ? 0.1f : i % 3 == 1 ? 15 : 400;
            a[i] = silu(gate[i]) * up[i];
            b[i] = 15 * tanh(z[i] / 15.0);
            c[i] = relu[i] > 0 ? (double)relu[i] * relu[i] : 0;
        }
        struct backend_buffer *bg = fixture_upload(be, gate, n), *bu = fixture_upload(be, up, n);
        struct backend_buffer *bz = fixture_upload(be, z, n), *br = fixture_upload(be, relu, n);
        be->ops->swiglu(be, bg, bu, n);
        be->ops->softcap(be, bz, 15, n);
        be->ops->relu_squared(be, br, n);
        be->ops->download(be, bg, gate, n);
        be->ops->download(be, bz, z, n);
        be->ops->download(be, br, relu, n);
        for (uint32_t i = 0; i < n; i++) {
            fixture_near(&gate[i], &a[i], 1, 1e-6 + 5e-7 * fabs(a[i]), "swiglu");
            fixture_near(&z[i], &b[i], 1, 1e-8 + 5e-7 * fabs(b[i]), "softcap");
        }
        fixture_near(relu, c, n, 1e-7, "relu squared");
        be->ops->buffer_free(be, bg);
        be->ops->buffer_free(be, bu);
        be->ops->buffer_free(be, bz);
        be->ops->buffer_free(be, br);
        free(gate);
        free(up);
        free(z);
        free(relu);
        free(a);
        free(b);
        free(c);
    }
    backend_close(be);
}
END_TEST

/* A broken model must be seen in its logits, not hidden by a clamp. */
START_TEST(not_a_number_stays_one)
{
    FOR_PATH(be)
    float x[40], y[40];
    for (int i = 0; i < 40; i++)
        x[i] = y[i] = 1;
    x[3] = x[39] = NAN;
    struct backend_buffer *a = fixture_upload(be, x, 40), *b = fixture_upload(be, y, 40);
    be->ops->swiglu(be, a, b, 40);
    be->ops->softcap(be, a, 15, 40);
    be->ops->relu_squared(be, a, 40);
    be->ops->download(be, a, y, 40);
    for (int i = 0; i < 40; i++)
        ck_assert_int_eq(isnan(y[i]) != 0, i == 3 || i == 39);
    be->ops->rmsnorm(be, a, a, NULL, 1e-5f, 1, 40);
    be->ops->download(be, a, y, 40);
    ck_assert(isnan(y[0]) && isnan(y[20]));
    be->ops->buffer_free(be, a);
    be->ops->buffer_free(be, b);
    backend_close(be);
}
END_TEST

START_TEST(rope_turns_pairs_by_position)
{
    FOR_PATH(be)
    enum { ROWS = 9, HEADS = 2, D = 64 };
    static const uint32_t dims[] = {64, 48, 2, 20};
    uint32_t positions[ROWS];
    for (uint32_t i = 0; i < ROWS; i++)
        positions[i] = i * i * 1000;
    struct step_batch batch = {.n_rows = ROWS, .positions = positions};
    struct error err;
    for (int t = 0; t < 8; t++) {
        uint32_t n_dims = dims[t / 2], half = n_dims / 2;
        bool interleaved = t % 2;
        float *x = fixture_floats(ROWS * HEADS * D), inv_freq[D / 2];
        double expected[ROWS * HEADS * D];
        for (uint32_t i = 0; i < half; i++)
            inv_freq[i] = (float)(t == 3 ? -1 : 1) * powf(10000, -(float)i / (float)half);
        for (uint32_t r = 0; r < ROWS * HEADS; r++) {
            for (uint32_t i = 0; i < D; i++)
                expected[r * D + i] = x[r * D + i];
            for (uint32_t i = 0; i < half; i++) {
                uint32_t a = r * D + (interleaved ? 2 * i : i);
                uint32_t b = r * D + (interleaved ? 2 * i + 1 : i + half);
                double angle = (double)positions[r / HEADS] * inv_freq[i];
                expected[a] = x[a] * cos(angle) - x[b] * sin(angle);
                expected[b] = x[a] * sin(angle) + x[b] * cos(angle);
            }
        }
        struct backend_rope rope = {n_dims, interleaved, inv_freq};
        struct backend_buffer *buffer = fixture_upload(be, x, ROWS * HEADS * D);
        ck_assert(be->ops->step_begin(be, &batch, &err) == STATUS_OK);
        be->ops->rope(be, buffer, &rope, ROWS, HEADS, D);
        ck_assert(be->ops->step_end(be, &err) == STATUS_OK);
        be->ops->download(be, buffer, x, ROWS * HEADS * D);
        fixture_near(x, expected, ROWS * HEADS * D, 5e-7, "rope");
        be->ops->buffer_free(be, buffer);
        free(x);
    }
    backend_close(be);
}
END_TEST

START_TEST(tables_of_every_type_are_read_by_row)
{
    FOR_PATH(be)
    static const enum tensor_type types[] = {TENSOR_F32,  TENSOR_F16,  TENSOR_BF16, TENSOR_Q8_0,
                                             TENSOR_Q4_0, TENSOR_Q4_1, TENSOR_Q5_0, TENSOR_Q5_1,
                                             TENSOR_Q4_K, TENSOR_Q5_K, TENSOR_Q6_K};
    static const uint32_t ids[] = {4, 0, 9, 4};
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        uint32_t n = tensor_block_elements(types[t]) == 1 ? 83 : 512;
        struct tensor tensor = fixture_weight(types[t], 10, n);
        struct backend_weight *table = fixture_bind(be, &tensor, BACKEND_TABLE);
        struct backend_buffer *y = fixture_buffer(be, 4 * n);
        float *all = xcalloc(10 * n, sizeof(float)), *out = xcalloc(4 * n, sizeof(float));
        tensor_dequantize(types[t], tensor.data, all, 10 * n);
        be->ops->embed(be, y, table, ids, 4);
        be->ops->download(be, y, out, 4 * n);
        for (int i = 0; i < 4; i++)
            fixture_same(out + i * n, all + ids[i] * n, n, tensor_type_name(types[t]));
        be->ops->buffer_free(be, y);
        be->ops->weight_free(be, table);
        free(all);
        free(out);
        free((void *)(uintptr_t)tensor.data);
    }
    backend_close(be);
}
END_TEST

START_TEST(smear_adds_the_token_before)
{
    FOR_PATH(be)
    enum { ROWS = 6, N = 50, CHANNELS = 24 };
    uint32_t positions[ROWS] = {0, 1, 2, 0, 7, 8};
    struct step_batch batch = {.n_rows = ROWS, .positions = positions};
    float *x = fixture_floats(ROWS * N), *previous = fixture_floats(ROWS * N);
    float *gate = fixture_floats(CHANNELS);
    double expected[ROWS * N];
    struct error err;
    for (int r = 0; r < ROWS; r++) {
        double dot = 0;
        for (int i = 0; i < CHANNELS; i++)
            dot += (double)gate[i] * x[r * N + i];
        double share = positions[r] == 0 ? 0 : 0.7 / (1 + exp(-dot));
        for (int i = 0; i < N; i++)
            expected[r * N + i] = x[r * N + i] + share * previous[r * N + i];
    }
    struct backend_weight *w = vector(be, gate, 1, CHANNELS);
    struct backend_buffer *bx = fixture_upload(be, x, ROWS * N);
    struct backend_buffer *bp = fixture_upload(be, previous, ROWS * N);
    ck_assert(be->ops->step_begin(be, &batch, &err) == STATUS_OK);
    be->ops->smear(be, bx, bp, w, 0.7f, ROWS, N);
    ck_assert(be->ops->step_end(be, &err) == STATUS_OK);
    be->ops->download(be, bx, x, ROWS * N);
    fixture_near(x, expected, ROWS * N, 1e-6, "smear");
    be->ops->buffer_free(be, bx);
    be->ops->buffer_free(be, bp);
    be->ops->weight_free(be, w);
    free(x);
    free(previous);
    free(gate);
    backend_close(be);
}
END_TEST

START_TEST(bank_rows_are_added_to_values)
{
    FOR_PATH(be)
    enum { ROWS = 5, HEADS = 2, D = 32, C = 20, CHANNELS = 12, IDS = 9 };
    uint32_t value_ids[ROWS] = {3, 0, 8, 3, 1};
    struct step_batch batch = {.n_rows = ROWS, .value_ids = value_ids};
    struct error err;
    for (int gated = 0; gated < 2; gated++) {
        struct tensor t = fixture_weight(TENSOR_Q8_0, IDS, HEADS * D);
        float *v = fixture_floats(ROWS * HEADS * D), *x = fixture_floats(ROWS * C);
        float *gate = fixture_floats(HEADS * CHANNELS), bank[IDS * HEADS * D];
        double expected[ROWS * HEADS * D];
        tensor_dequantize(TENSOR_Q8_0, t.data, bank, IDS * HEADS * D);
        for (int r = 0; r < ROWS; r++) {
            for (int h = 0; h < HEADS; h++) {
                double dot = 0, factor = -2.5;
                for (int i = 0; i < CHANNELS; i++)
                    dot += (double)gate[h * CHANNELS + i] * x[r * C + i];
                factor *= gated ? 3 / (1 + exp(-dot)) : 1;
                for (int i = 0; i < D; i++) {
                    int at = (r * HEADS + h) * D + i;
                    expected[at] =
                        v[at] + factor * bank[value_ids[r] * HEADS * D + (uint32_t)(h * D + i)];
                }
            }
        }
        struct backend_weight *table = fixture_bind(be, &t, BACKEND_TABLE);
        struct backend_weight *w = gated ? vector(be, gate, HEADS, CHANNELS) : NULL;
        struct backend_buffer *bv = fixture_upload(be, v, ROWS * HEADS * D);
        struct backend_buffer *bx = fixture_upload(be, x, ROWS * C);
        ck_assert(be->ops->step_begin(be, &batch, &err) == STATUS_OK);
        be->ops->bank_add(be, bv, table, -2.5f, w, 3, bx, ROWS, C, HEADS, D);
        ck_assert(be->ops->step_end(be, &err) == STATUS_OK);
        be->ops->download(be, bv, v, ROWS * HEADS * D);
        fixture_near(v, expected, ROWS * HEADS * D, 1e-5, "bank_add");
        be->ops->buffer_free(be, bv);
        be->ops->buffer_free(be, bx);
        be->ops->weight_free(be, table);
        be->ops->weight_free(be, w);
        free(v);
        free(x);
        free(gate);
        free((void *)(uintptr_t)t.data);
    }
    backend_close(be);
}
END_TEST

START_TEST(rows_are_picked_in_the_given_order)
{
    struct backend *be = fixture_best(1);
    float *x = fixture_floats(5 * 7), y[3 * 7];
    static const uint32_t rows[] = {0, 2, 4};
    struct backend_buffer *a = fixture_upload(be, x, 35), *b = fixture_buffer(be, 21);
    be->ops->pick_rows(be, b, a, rows, 3, 7);
    be->ops->download(be, b, y, 21);
    for (int i = 0; i < 3; i++)
        fixture_same(y + i * 7, x + rows[i] * 7, 7, "picked row");
    be->ops->buffer_free(be, a);
    be->ops->buffer_free(be, b);
    free(x);
    backend_close(be);
}
END_TEST

START_TEST(large_buffers_come_back_whole)
{
    struct backend *be = fixture_best(3);
    size_t n = 100003;
    float *x = fixture_floats(n), *y = xcalloc(n, sizeof(float));
    struct backend_buffer *b = fixture_upload(be, x, n);
    be->ops->download(be, b, y, n);
    fixture_same(y, x, n, "download");
    be->ops->buffer_free(be, b);
    free(x);
    free(y);
    backend_close(be);
}
END_TEST

START_TEST(backends_open_by_name)
{
    struct backend *be = NULL;
    struct error err;
    struct backend_config config = {.name = "auto", .n_threads = 2, .cpu_path = "portable"};
    ck_assert(backend_open(&config, &be, &err) == STATUS_OK);
    ck_assert_str_eq(backend_ops_of(be)->name, "cpu");
    ck_assert_str_eq(backend_ops_of(be)->describe(be), "portable, 2 threads");
    backend_close(be);
    setenv("TELLERD_CPU_PATH", "portable", 1);
    config = (struct backend_config){.name = "cpu", .n_threads = 1};
    ck_assert(backend_open(&config, &be, &err) == STATUS_OK);
    ck_assert_str_eq(backend_ops_of(be)->describe(be), "portable, 1 thread");
    backend_close(be);
    setenv("TELLERD_CPU_PATH", "mmx", 1);
    ck_assert_int_eq(backend_open(&config, &be, &err), STATUS_BAD_CONFIG);
    unsetenv("TELLERD_CPU_PATH");
    config.cpu_activations = "int4";
    ck_assert_int_eq(backend_open(&config, &be, &err), STATUS_BAD_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "auto, int8 or f32"));
    config.cpu_activations = NULL;
    config.name = "cuda";
    ck_assert_int_eq(backend_open(&config, &be, &err), STATUS_BAD_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "CUDA"));
    config.name = "tpu";
    ck_assert_int_eq(backend_open(&config, &be, &err), STATUS_BAD_CONFIG);
    config = (struct backend_config){.name = "cpu", .n_threads = BACKEND_MAX_THREADS + 1};
    ck_assert_int_eq(backend_open(&config, &be, &err), STATUS_BAD_CONFIG);
    ck_assert_str_eq(backend_names()[0], "cpu");
    ck_assert_ptr_null(backend_names()[1]);
}
END_TEST

static void add_cases(Suite *suite)
{
    TCase *each = tcase_create("each kernel set");
    tcase_set_timeout(each, 60);
    tcase_add_loop_test(each, norms_are_root_mean_square, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, head_norms_scale_each_head, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, activations_follow_their_formulas, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, not_a_number_stays_one, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, rope_turns_pairs_by_position, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, tables_of_every_type_are_read_by_row, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, smear_adds_the_token_before, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, bank_rows_are_added_to_values, 0, N_CPU_PATHS);
    suite_add_tcase(suite, each);
    CHECK_ADD(suite, "copies", rows_are_picked_in_the_given_order, large_buffers_come_back_whole);
    CHECK_ADD(suite, "opening", backends_open_by_name);
}

CHECK_MAIN("cpu ops", add_cases)
