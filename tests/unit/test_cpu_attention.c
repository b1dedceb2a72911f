#include "config.h"

/*
 * Attention and cache of the CPU backend: against plain loops in double, and against itself cut in
 * other ways, which must give the same bits.
 */
#include "support/check_main.h"
#include "support/cpu_fixture.h"

enum { MOST_POSITIONS = 640, MOST_ROWS = 640, N_IDS = 40 };
enum { LONG = FIXTURE_SLOW ? 290 : 530 /* two or three chunks of keys */ };

/* One layer's problem: a sequence's q, k, v and value ids, all given beforehand. */
struct problem {
    uint32_t n_positions, n_heads, n_kv_heads, head_size, window;
    enum tensor_type type_k, type_v;
    float *q, *k, *v;   /* [n_positions, heads * D] */
    struct tensor bank; /* data NULL: values from the cache */
    uint32_t value_ids[MOST_POSITIONS], slot_of[MOST_POSITIONS], id_of_slot[MOST_POSITIONS];
    uint32_t n_slots;
    float gamma;
};

/* How it is run. */
struct way {
    const char *path;
    uint32_t n_threads, block_size, chunk; /* rows of a step */
    enum backend_value_path values;
};

static struct problem problem_new(uint32_t n_positions, uint32_t n_heads, uint32_t n_kv_heads,
                                  uint32_t head_size)
{
    struct problem p = {.n_positions = n_positions,
                        .n_heads = n_heads,
                        .n_kv_heads = n_kv_heads,
                        .head_size = head_size,
                        .type_k = TENSOR_F32,
                        .type_v = TENSOR_F32,
                        .gamma = 1};
    ck_assert(n_positions <= MOST_POSITIONS);
    p.q = fixture_floats((size_t)n_positions * n_heads * head_size);
    p.k = fixture_floats((size_t)n_positions * n_kv_heads * head_size);
    p.v = fixture_floats((size_t)n_positions * n_kv_heads * head_size);
    for (size_t i = 0; i < (size_t)n_positions * n_heads * head_size; i++)
        p.q[i] *= 4; /* sharp enough that single keys matter */
    uint32_t slot_of_id[N_IDS];
    memset(slot_of_id, 0xff, sizeof(slot_of_id));
    for (uint32_t i = 0; i < n_positions; i++) {
        /* ids become more varied as the text goes on, so that slots keep appearing */
        uint32_t id = fixture_u32() % (2 + i * (N_IDS - 2) / n_positions);
        if (slot_of_id[id] == UINT32_MAX) {
            slot_of_id[id] = p.n_slots;
            p.id_of_slot[p.n_slots++] = id;
        }
        p.value_ids[i] = id;
        p.slot_of[i] = slot_of_id[id];
    }
    return p;
}

static void problem_bank(struct problem *p, enum tensor_type type)
{
    p->bank = fixture_weight(type, N_IDS, p->n_kv_heads * p->head_size);
}

static void problem_free(struct problem *p)
{
    free(p->q);
    free(p->k);
    free(p->v);
    free((void *)(uintptr_t)p->bank.data);
}

/* A sequence that the steps below advance. */
struct runner {
    struct backend *be;
    struct backend_cache *cache;
    struct backend_weight *bank;
    struct backend_buffer *q, *k, *v, *out;
};

static struct runner runner_new(const struct problem *p, const struct way *way, uint32_t n_blocks)
{
    struct runner r = {.be = way->path ? fixture_open(way->path, way->n_threads)
                                       : fixture_best(way->n_threads)};
    if (!r.be)
        return r;
    bool has_values = !p->bank.data;
    struct backend_cache_shape shape = {.n_layers = 1,
                                        .n_blocks = n_blocks,
                                        .block_size = way->block_size,
                                        .n_kv_heads = p->n_kv_heads,
                                        .head_size = p->head_size,
                                        .type_k = p->type_k,
                                        .type_v = p->type_v,
                                        .layer_has_values = &has_values,
                                        .has_value_ids = !has_values};
    struct error err;
    ck_assert_msg(r.be->ops->cache_new(r.be, &shape, &r.cache, &err) == STATUS_OK, "%s", err.text);
    if (p->bank.data)
        r.bank = fixture_bind(r.be, &p->bank, BACKEND_TABLE);
    r.be->ops->set_value_path(r.be, way->values);
    r.q = fixture_buffer(r.be, (size_t)MOST_ROWS * p->n_heads * p->head_size);
    r.k = fixture_buffer(r.be, (size_t)MOST_ROWS * p->n_kv_heads * p->head_size);
    r.v = fixture_buffer(r.be, (size_t)MOST_ROWS * p->n_kv_heads * p->head_size);
    r.out = fixture_buffer(r.be, (size_t)MOST_ROWS * p->n_heads * p->head_size);
    return r;
}

static void runner_free(struct runner *r)
{
    r->be->ops->cache_free(r->be, r->cache);
    r->be->ops->weight_free(r->be, r->bank);
    r->be->ops->buffer_free(r->be, r->q);
    r->be->ops->buffer_free(r->be, r->k);
    r->be->ops->buffer_free(r->be, r->v);
    r->be->ops->buffer_free(r->be, r->out);
    backend_close(r->be);
}

/* One step over rows of some sequences, whose q, k, v rows are given side by side. */
static void step(struct runner *r, const struct problem *p, const struct step_batch *batch,
                 const float *q, const float *k, const float *v, float *out)
{
    struct backend *be = r->be;
    size_t nq = (size_t)batch->n_rows * p->n_heads * p->head_size;
    size_t nk = (size_t)batch->n_rows * p->n_kv_heads * p->head_size;
    be->ops->upload(be, r->q, q, nq);
    be->ops->upload(be, r->k, k, nk);
    be->ops->upload(be, r->v, v, nk);
    struct backend_attention a = {.layer = 0,
                                  .n_heads = p->n_heads,
                                  .window = p->window,
                                  .scale = 1 / sqrtf((float)p->head_size),
                                  .bank = r->bank,
                                  .gamma = p->gamma};
    struct error err;
    ck_assert(be->ops->step_begin(be, batch, &err) == STATUS_OK);
    if (r->bank)
        be->ops->value_ids_write(be, r->cache);
    be->ops->kv_write(be, r->cache, 0, r->k, r->bank ? NULL : r->v);
    be->ops->attention(be, r->cache, &a, r->out, r->q);
    ck_assert(be->ops->step_end(be, &err) == STATUS_OK);
    be->ops->download(be, r->out, out, nq);
}

/* The problem run as `way` says, in blocks that lie in no order; NULL when the path is not here. */
static float *run(const struct problem *p, const struct way *way)
{
    uint32_t n_blocks = (p->n_positions + way->block_size - 1) / way->block_size;
    struct runner r = runner_new(p, way, n_blocks + 3);
    if (!r.be)
        return NULL;
    uint32_t *blocks = xreallocarray(NULL, n_blocks, sizeof(uint32_t));
    for (uint32_t i = 0; i < n_blocks; i++)
        blocks[i] = n_blocks + 2 - i;
    size_t q_row = (size_t)p->n_heads * p->head_size, k_row = (size_t)p->n_kv_heads * p->head_size;
    float *out = xreallocarray(NULL, p->n_positions * q_row, sizeof(float));
    for (uint32_t done = 0; done < p->n_positions;) {
        uint32_t n = way->chunk < p->n_positions - done ? way->chunk : p->n_positions - done;
        struct step_sequence seq = {.n_rows = n,
                                    .n_cached = done,
                                    .blocks = blocks,
                                    .slot_of_position = p->slot_of,
                                    .value_id_of_slot = p->id_of_slot,
                                    .n_slots = p->n_slots};
        struct step_batch batch = {
            .n_rows = n, .value_ids = p->value_ids + done, .n_sequences = 1, .sequences = &seq};
        step(&r, p, &batch, p->q + done * q_row, p->k + done * k_row, p->v + done * k_row,
             out + done * q_row);
        done += n;
    }
    free(blocks);
    runner_free(&r);
    return out;
}

/* x rounded to a cache type and back. */
static float *rounded(enum tensor_type type, const float *x, size_t n)
{
    size_t bytes = 0;
    ck_assert(tensor_row_bytes(type, n, &bytes));
    void *codes = xmalloc(bytes);
    float *y = xreallocarray(NULL, n, sizeof(float));
    tensor_quantize(type, x, codes, n);
    tensor_dequantize(type, codes, y, n);
    free(codes);
    return y;
}

/* Plain loops in double. */
static double *naive(const struct problem *p)
{
    uint32_t n = p->n_positions, n_d = p->head_size, group = p->n_heads / p->n_kv_heads;
    size_t k_row = (size_t)p->n_kv_heads * n_d;
    float *k = rounded(p->type_k, p->k, n * k_row), *v;
    if (p->bank.data) {
        float *bank = xreallocarray(NULL, N_IDS * k_row, sizeof(float));
        tensor_dequantize(p->bank.type, p->bank.data, bank, N_IDS * k_row);
        v = xreallocarray(NULL, n * k_row, sizeof(float));
        for (uint32_t i = 0; i < n; i++)
            memcpy(v + i * k_row, bank + p->value_ids[i] * k_row, k_row * sizeof(float));
        free(bank);
    } else {
        v = rounded(p->type_v, p->v, n * k_row);
    }
    double *out = xcalloc((size_t)n * p->n_heads * n_d, sizeof(double));
    double *score = xreallocarray(NULL, n, sizeof(double));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = p->window && i >= p->window ? i - p->window + 1 : 0;
        for (uint32_t h = 0; h < p->n_heads; h++) {
            const float *q = p->q + ((size_t)i * p->n_heads + h) * n_d;
            double *o = out + ((size_t)i * p->n_heads + h) * n_d, most = -INFINITY, sum = 0;
            for (uint32_t j = from; j <= i; j++) {
                score[j] = 0;
                for (uint32_t d = 0; d < n_d; d++)
                    score[j] += (double)q[d] * k[j * k_row + h / group * n_d + d];
                score[j] /= sqrt(n_d);
                most = fmax(most, score[j]);
            }
            for (uint32_t j = from; j <= i; j++)
                sum += score[j] = exp(score[j] - most);
            for (uint32_t j = from; j <= i; j++) {
                for (uint32_t d = 0; d < n_d; d++)
                    o[d] += score[j] / sum * v[j * k_row + h / group * n_d + d] * p->gamma;
            }
        }
    }
    free(k);
    free(v);
    free(score);
    return out;
}

static void check_naive(const struct problem *p, const struct way *way, const char *what)
{
    float *out = run(p, way);
    if (!out)
        return;
    double *expected = naive(p);
    size_t n = (size_t)p->n_positions * p->n_heads * p->head_size;
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(expected[i]));
    /* scores go up to about 10, so a weight is off by at most some 1e-6 of itself */
    fixture_near(out, expected, n, 1e-5 * most, what);
    free(out);
    free(expected);
}

/* All ways that `way` lists give the bits of the first. */
static void check_same(const struct problem *p, const struct way *ways, size_t n_ways,
                       const char *what)
{
    size_t n = (size_t)p->n_positions * p->n_heads * p->head_size;
    float *first = run(p, &ways[0]);
    for (size_t i = 1; i < n_ways && first; i++) {
        float *other = run(p, &ways[i]);
        char text[96];
        snprintf(text, sizeof(text), "%s, way %zu", what, i);
        fixture_same(other, first, n, text);
        free(other);
    }
    free(first);
}

static const enum tensor_type cache_types[] = {TENSOR_F32, TENSOR_F16, TENSOR_BF16, TENSOR_Q8_0};

START_TEST(every_cache_type_attends_as_plain_loops_do)
{
    static const uint32_t shapes[][4] = {
        {1, 1, 1, 32}, {40, 6, 2, 64}, {290, 3, 1, 32}, {70, 4, 4, 96}, {30, 40, 1, 32}};
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
        struct problem p = problem_new(shapes[s][0], shapes[s][1], shapes[s][2], shapes[s][3]);
        for (int t = 0; t < 4; t++) {
            p.type_k = cache_types[t];
            p.type_v = cache_types[3 - t];
            check_naive(&p, &(struct way){cpu_paths[_i], 2, 16, 64, 0}, tensor_type_name(p.type_k));
        }
        problem_free(&p);
    }
}
END_TEST

START_TEST(windows_hide_old_positions)
{
    static const uint32_t windows[] = {1, 7, 16, 255, 256, 300};
    struct problem p = problem_new(LONG + 40, 2, 1, 32);
    for (int i = 0; i < 6; i++) {
        p.window = windows[i];
        check_naive(&p, &(struct way){cpu_paths[_i], 1, 16, 100, 0}, "window");
    }
    problem_free(&p);
}
END_TEST

START_TEST(banks_of_every_type_give_values_on_both_ways)
{
    static const enum tensor_type types[] = {TENSOR_F32,  TENSOR_F16,  TENSOR_BF16, TENSOR_Q8_0,
                                             TENSOR_Q4_0, TENSOR_Q4_1, TENSOR_Q5_0, TENSOR_Q5_1,
                                             TENSOR_Q4_K, TENSOR_Q5_K, TENSOR_Q6_K};
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        struct problem p = problem_new(75, 4, 2, 128);
        problem_bank(&p, types[t]);
        p.gamma = -11.5f;
        check_naive(&p, &(struct way){cpu_paths[_i], 1, 16, 30, BACKEND_VALUE_GATHER},
                    tensor_type_name(types[t]));
        check_naive(&p, &(struct way){cpu_paths[_i], 1, 16, 30, BACKEND_VALUE_DEDUP},
                    tensor_type_name(types[t]));
        p.window = 33;
        check_naive(&p, &(struct way){cpu_paths[_i], 1, 32, 30, BACKEND_VALUE_DEDUP}, "window");
        problem_free(&p);
    }
}
END_TEST

/* Prefill in any chunks, step by step, any blocks, any threads. */
#define WAYS(path, values)                                                                  \
    {                                                                                       \
        {path, 1, 16, 1, values}, {path, 1, 8, 600, values}, {path, 2, 16, 16, values},     \
            {path, 3, 32, 77, values}, {path, 8, 64, 512, values}, {path, 4, 8, 1, values}, \
    }

START_TEST(chunks_blocks_and_threads_change_no_bit)
{
    struct way ways[] = WAYS(cpu_paths[_i], 0);
    struct problem p = problem_new(LONG, 4, 2, 32);
    for (int t = 0; t < 4; t++) {
        p.type_k = cache_types[t];
        p.type_v = cache_types[3 - t];
        p.window = t == 2 ? 290 : 0;
        check_same(&p, ways, sizeof(ways) / sizeof(ways[0]), tensor_type_name(p.type_k));
    }
    problem_free(&p);
}
END_TEST

/* A decode has few queries, which are summed straight from the cache. */
START_TEST(a_decode_of_any_group_has_the_bits_of_a_prefill)
{
    static const uint32_t shapes[][2] = {{3, 64}, {4, 32}, {5, 96}, {8, 160}, {9, 64}};
    struct way ways[] = {
        {cpu_paths[_i], 1, 16, 300, 0}, {cpu_paths[_i], 2, 16, 1, 0}, {cpu_paths[_i], 1, 64, 1, 0}};
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
        struct problem p = problem_new(276, shapes[s][0], 1, shapes[s][1]);
        for (int t = 0; t < 4; t++) {
            p.type_k = cache_types[t];
            p.type_v = cache_types[(t + 1) % 4];
            p.window = t == 1 ? 37 : 0;
            check_same(&p, ways, sizeof(ways) / sizeof(ways[0]), tensor_type_name(p.type_k));
        }
        problem_free(&p);
    }
}
END_TEST

START_TEST(bank_layers_too)
{
    for (int values = BACKEND_VALUE_AUTO; values <= BACKEND_VALUE_DEDUP; values++) {
        struct way ways[] = WAYS(cpu_paths[_i], (enum backend_value_path)values);
        struct problem p = problem_new(LONG, 4, 2, 32);
        problem_bank(&p, TENSOR_BF16);
        p.gamma = 3.25f;
        check_same(&p, ways, sizeof(ways) / sizeof(ways[0]), "whole bank");
        p.window = 300;
        check_same(&p, ways, sizeof(ways) / sizeof(ways[0]), "bank and window");
        problem_free(&p);
    }
}
END_TEST

START_TEST(gather_is_a_materialised_value_cache_bit_for_bit)
{
    for (int t = 0; t < 4; t++) {
        struct problem p = problem_new(280, 6, 3, 64);
        problem_bank(&p, cache_types[t]);
        size_t n = (size_t)p.n_positions * p.n_heads * p.head_size, row = 3 * 64;
        struct way way = {cpu_paths[_i], 2, 16, 130, BACKEND_VALUE_GATHER};
        float *gathered = run(&p, &way);
        if (!gathered) {
            problem_free(&p);
            return;
        }
        float *bank = xreallocarray(NULL, N_IDS * row, sizeof(float));
        tensor_dequantize(p.bank.type, p.bank.data, bank, N_IDS * row);
        for (uint32_t i = 0; i < p.n_positions; i++)
            memcpy(p.v + i * row, bank + p.value_ids[i] * row, row * sizeof(float));
        struct problem cached = p;
        cached.bank.data = NULL;
        cached.type_v = cache_types[t];
        float *materialised = run(&cached, &way);
        if (cache_types[t] != TENSOR_Q8_0) /* whose random codes need not be what rounding gives */
            fixture_same(gathered, materialised, n, tensor_type_name(cache_types[t]));
        cached.type_v = TENSOR_F32;
        float *exact = run(&cached, &way);
        fixture_same(gathered, exact, n, "a value cache that keeps every bit");
        free(gathered);
        free(bank);
        free(materialised);
        free(exact);
        problem_free(&p);
    }
}
END_TEST

START_TEST(auto_takes_slots_from_256_positions_on)
{
    struct problem p = problem_new(400, 2, 1, 32);
    problem_bank(&p, TENSOR_F32);
    size_t row = 2 * 32, border = (BACKEND_DEDUP_POSITIONS - 1) * row, n = 400 * row;
    struct way way = {NULL, 2, 16, 400, BACKEND_VALUE_AUTO};
    float *automatic = run(&p, &way);
    way.values = BACKEND_VALUE_GATHER;
    float *gather = run(&p, &way);
    way.values = BACKEND_VALUE_DEDUP;
    float *dedup = run(&p, &way);
    fixture_same(automatic, gather, border, "short");
    fixture_same(automatic + border, dedup + border, n - border, "long");
    ck_assert(memcmp(gather + border, dedup + border, (n - border) * sizeof(float)) != 0);
    free(automatic);
    free(gather);
    free(dedup);
    problem_free(&p);
}
END_TEST

START_TEST(a_sequence_has_the_same_bits_in_any_company)
{
    enum { N = 5, LENGTH = 300, P = 16, PER = (LENGTH + P - 1) / P };
    struct problem p[N];
    float *alone[N];
    struct way way = {cpu_paths[_i], 3, P, 90, BACKEND_VALUE_AUTO};
    for (int i = 0; i < N; i++) {
        p[i] = problem_new(LENGTH, 4, 2, 32);
        p[i].type_k = p[i].type_v = TENSOR_BF16;
        if (i == 0)
            problem_bank(&p[0], TENSOR_F16);
        p[i].bank = p[0].bank;
        alone[i] = run(&p[i], &way);
    }
    struct runner r = alone[0] ? runner_new(&p[0], &way, N * PER) : (struct runner){0};
    uint32_t blocks[N][PER], done[N] = {0};
    for (int i = 0; i < N * PER; i++)
        blocks[i % N][i / N] = (uint32_t)i;
    while (alone[0] && done[0] < LENGTH) {
        struct step_sequence seq[N];
        float q[400 * 128], k[400 * 64], v[400 * 64], out[400 * 128];
        uint32_t ids[400], n_rows = 0, n_seq = 0, at[N];
        for (int i = 0; i < N; i++) { /* sequence i goes ahead by 1, 41, 2, 17, ... rows */
            uint32_t n = i == 0 ? 1 + done[0] % 40 : 1 + fixture_u32() % 60;
            n = n < LENGTH - done[i] ? n : LENGTH - done[i];
            at[i] = n_rows;
            if (n == 0)
                continue;
            seq[n_seq++] = (struct step_sequence){.first_row = n_rows,
                                                  .n_rows = n,
                                                  .n_cached = done[i],
                                                  .blocks = blocks[i],
                                                  .slot_of_position = p[i].slot_of,
                                                  .value_id_of_slot = p[i].id_of_slot,
                                                  .n_slots = p[i].n_slots};
            memcpy(q + n_rows * 128, p[i].q + done[i] * 128, n * 128 * sizeof(float));
            memcpy(k + n_rows * 64, p[i].k + done[i] * 64, n * 64 * sizeof(float));
            memcpy(v + n_rows * 64, p[i].v + done[i] * 64, n * 64 * sizeof(float));
            memcpy(ids + n_rows, p[i].value_ids + done[i], n * sizeof(uint32_t));
            n_rows += n;
        }
        struct step_batch batch = {
            .n_rows = n_rows, .value_ids = ids, .n_sequences = n_seq, .sequences = seq};
        step(&r, &p[0], &batch, q, k, v, out);
        for (int i = 0; i < N; i++) {
            uint32_t n = (i + 1 < N ? at[i + 1] : n_rows) - at[i];
            fixture_same(out + at[i] * 128, alone[i] + done[i] * 128, n * 128, "in company");
            done[i] += n;
        }
    }
    if (alone[0])
        runner_free(&r);
    for (int i = 0; i < N; i++) {
        free(alone[i]);
        p[i].bank.data = i == 0 ? p[0].bank.data : NULL;
        problem_free(&p[i]);
    }
}
END_TEST

START_TEST(what_other_sequences_left_in_a_block_is_not_seen)
{
    struct problem p = problem_new(21, 2, 1, 32), bad = problem_new(64, 2, 1, 32);
    for (size_t i = 0; i < 64 * 32; i++)
        bad.k[i] = bad.v[i] = i % 2 ? NAN : INFINITY;
    struct way way = {cpu_paths[_i], 1, 32, 64, 0};
    float *clean = run(&p, &way), out[64 * 64];
    if (!clean) { /* this machine has not these kernels */
        problem_free(&p);
        problem_free(&bad);
        return;
    }
    struct runner r = runner_new(&p, &way, 2);
    uint32_t blocks[] = {1, 0};
    struct step_sequence seq = {.n_rows = 64, .blocks = blocks};
    struct step_batch batch = {.n_rows = 64, .n_sequences = 1, .sequences = &seq};
    step(&r, &bad, &batch, bad.q, bad.k, bad.v, out);
    ck_assert(isnan(out[100]));
    seq.n_rows = batch.n_rows = 21;
    step(&r, &p, &batch, p.q, p.k, p.v, out);
    fixture_same(out, clean, 21 * 64, "a reused block");
    runner_free(&r);
    free(clean);
    problem_free(&p);
    problem_free(&bad);
}
END_TEST

START_TEST(a_copied_block_holds_keys_values_and_ids)
{
    for (int bank = 0; bank < 2; bank++) {
        struct problem p = problem_new(16, 2, 1, 32);
        if (bank)
            problem_bank(&p, TENSOR_F16);
        struct way way = {NULL, 1, 16, 16, BACKEND_VALUE_GATHER};
        struct runner r = runner_new(&p, &way, 3);
        uint32_t blocks[] = {0};
        struct step_sequence seq = {.n_rows = 16, .blocks = blocks};
        struct step_batch batch = {
            .n_rows = 16, .value_ids = p.value_ids, .n_sequences = 1, .sequences = &seq};
        float out[16 * 64], again[64];
        step(&r, &p, &batch, p.q, p.k, p.v, out);
        r.be->ops->cache_copy_block(r.be, r.cache, 0, 2);
        blocks[0] = 2;
        seq.n_rows = batch.n_rows = 1;
        seq.n_cached = 15;
        batch.value_ids = p.value_ids + 15;
        step(&r, &p, &batch, p.q + 15 * 64, p.k + 15 * 32, p.v + 15 * 32, again);
        fixture_same(again, out + 15 * 64, 64, "the copy");
        runner_free(&r);
        problem_free(&p);
    }
}
END_TEST

START_TEST(cache_bytes_are_the_formula_of_the_paper)
{
    /* SmolLM2-135M, last third of the layers without values: 19,204 bytes a token in bf16 */
    bool has_values[30];
    for (int i = 0; i < 30; i++)
        has_values[i] = i < 20;
    struct backend_cache_shape shape = {.n_layers = 30,
                                        .n_blocks = 5,
                                        .block_size = 16,
                                        .n_kv_heads = 3,
                                        .head_size = 64,
                                        .type_k = TENSOR_BF16,
                                        .type_v = TENSOR_BF16,
                                        .layer_has_values = has_values,
                                        .has_value_ids = true};
    ck_assert_uint_eq(backend_cache_position_bytes(&shape), 19204);
    struct backend *be = fixture_best(1);
    struct backend_cache *cache = NULL;
    struct error err;
    ck_assert(be->ops->cache_new(be, &shape, &cache, &err) == STATUS_OK);
    size_t bytes[3];
    be->ops->cache_bytes(cache, bytes);
    ck_assert_uint_eq(bytes[0] + bytes[1] + bytes[2], 5 * 16 * 19204);
    ck_assert_uint_eq(bytes[2], 5 * 16 * 4);
    be->ops->cache_free(be, cache);
    shape.type_k = TENSOR_Q8_0;
    ck_assert_uint_eq(backend_cache_position_bytes(&shape), 13804);
    shape.type_v = TENSOR_Q8_0; /* and the last half: docs/kv-cache.md */
    for (int i = 15; i < 20; i++)
        has_values[i] = false;
    ck_assert_uint_eq(backend_cache_position_bytes(&shape), 9184);
    shape.block_size = 24;
    ck_assert_int_eq(be->ops->cache_new(be, &shape, &cache, &err), STATUS_BAD_CONFIG);
    shape.block_size = 16;
    shape.type_v = TENSOR_Q4_0;
    ck_assert_int_eq(be->ops->cache_new(be, &shape, &cache, &err), STATUS_BAD_CONFIG);
    backend_close(be);
}
END_TEST

static void add_cases(Suite *suite)
{
    TCase *each = tcase_create("each kernel set");
    tcase_set_timeout(each, 120);
    tcase_add_loop_test(each, every_cache_type_attends_as_plain_loops_do, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, windows_hide_old_positions, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, banks_of_every_type_give_values_on_both_ways, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, chunks_blocks_and_threads_change_no_bit, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, a_decode_of_any_group_has_the_bits_of_a_prefill, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, bank_layers_too, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, gather_is_a_materialised_value_cache_bit_for_bit, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, a_sequence_has_the_same_bits_in_any_company, 0, N_CPU_PATHS);
    tcase_add_loop_test(each, what_other_sequences_left_in_a_block_is_not_seen, 0, N_CPU_PATHS);
    suite_add_tcase(suite, each);
    CHECK_ADD(suite, "values", auto_takes_slots_from_256_positions_on);
    CHECK_ADD(suite, "cache", a_copied_block_holds_keys_values_and_ids,
              cache_bytes_are_the_formula_of_the_paper);
}

CHECK_MAIN("cpu attention", add_cases)
