#include "config.h"

/*
 * One step of the model, again and again, without engine or HTTP: milliseconds and tokens a second,
 * and where the time goes, op by op.  It stands between the model and the backend as a backend of
 * its own, whose ops take the time and hand on.
 *
 *   bench_step MODEL [--threads N] [--cpu-path P] [--sequences N] [--rows N] [--context N]
 *              [--steps N] [--weight-type T] [--kv-type-k T] [--kv-type-v T] [--value-path W]
 *              [--activations A] [--clock wall|cpu]
 *
 * Each of N sequences has `context` positions in its cache (zeros) and gets `rows` more a step.
 * --weight-type f32, f16, bf16 or q8_0 rounds all matrices anew.  The best step is shown: others
 * were disturbed.  --clock cpu counts the process's own processor time, for busy machines; it is
 * meant for one thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tellerd/backend/backend.h"
#include "tellerd/base/mem.h"
#include "tellerd/base/rng.h"
#include "tellerd/model/gpt.h"

enum { BLOCK_SIZE = 16, MOST = 1 << 20 };

static clockid_t clock_used = CLOCK_MONOTONIC;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(clock_used, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the backend in between -------------------------------------------------------------------
 */

enum op {
    OP_EMBED,
    OP_NORM,
    OP_MATMUL,
    OP_ROPE,
    OP_BANK_ADD,
    OP_KV_WRITE,
    OP_ATTENTION,
    OP_ACTIVATION,
    OP_COPY,
    OP_COUNT
};
static const char *const op_names[OP_COUNT] = {
    "embed", "norm", "matmul", "rope", "bank_add", "kv_write", "attention", "activation", "copy"};

struct timed {
    struct backend base;
    struct backend *inner;
    const struct backend_ops *ops; /* of inner */
    enum tensor_type weight_type;
    size_t matrix_bytes; /* read by a step */
    uint64_t ns[OP_COUNT], n_calls[OP_COUNT];
};

#define INNER ((struct timed *)(void *)be)->inner
#define OPS   ((struct timed *)(void *)be)->ops
#define TIME(op, call)                                    \
    do {                                                  \
        struct timed *timed = (struct timed *)(void *)be; \
        uint64_t start = now_ns();                        \
        timed->ops->call;                                 \
        timed->ns[op] += now_ns() - start;                \
        timed->n_calls[op]++;                             \
    } while (0)

static enum status timed_weight_new(struct backend *be, const struct tensor *source,
                                    enum backend_use use, struct backend_weight **ret,
                                    struct error *err)
{
    struct timed *timed = (struct timed *)(void *)be;
    enum tensor_type type = timed->weight_type;
    struct tensor t = *source;
    if (use != BACKEND_MATRIX)
        return OPS->weight_new(INNER, source, use, ret, err);
    void *rounded = NULL;
    if (type != TENSOR_TYPE_LIMIT && type != source->type) {
        size_t n = (size_t)(t.rows * t.columns), row_bytes;
        if (!tensor_row_bytes(type, t.columns, &row_bytes))
            return error_set(err, STATUS_BAD_CONFIG, "rows do not fit the weight type");
        float *x = xreallocarray(NULL, n, sizeof(float));
        rounded = xreallocarray(NULL, row_bytes, (size_t)t.rows);
        tensor_dequantize(t.type, t.data, x, n);
        tensor_quantize(type, x, rounded, n);
        free(x);
        t.data = rounded;
        t.type = type;
        t.size_bytes = row_bytes * (size_t)t.rows;
    }
    timed->matrix_bytes += t.size_bytes;
    enum status status = OPS->weight_new(INNER, &t, use, ret, err);
    free(rounded);
    return status;
}
static void timed_weight_free(struct backend *be, struct backend_weight *w)
{
    OPS->weight_free(INNER, w);
}
static enum status timed_buffer_new(struct backend *be, size_t n, struct backend_buffer **ret,
                                    struct error *err)
{
    return OPS->buffer_new(INNER, n, ret, err);
}
static void timed_buffer_free(struct backend *be, struct backend_buffer *b)
{
    OPS->buffer_free(INNER, b);
}
static void timed_download(struct backend *be, const struct backend_buffer *from, float *to,
                           size_t n)
{
    TIME(OP_COPY, download(INNER, from, to, n));
}
static enum status timed_step_begin(struct backend *be, const struct step_batch *batch,
                                    struct error *err)
{
    return OPS->step_begin(INNER, batch, err);
}
static enum status timed_step_end(struct backend *be, struct error *err)
{
    return OPS->step_end(INNER, err);
}
static void timed_embed(struct backend *be, struct backend_buffer *y,
                        const struct backend_weight *table, const uint32_t *ids, uint32_t n_rows)
{
    TIME(OP_EMBED, embed(INNER, y, table, ids, n_rows));
}
static void timed_rmsnorm(struct backend *be, struct backend_buffer *y,
                          const struct backend_buffer *x, const struct backend_weight *w, float eps,
                          uint32_t n_rows, uint32_t n)
{
    TIME(OP_NORM, rmsnorm(INNER, y, x, w, eps, n_rows, n));
}
static void timed_head_norm(struct backend *be, struct backend_buffer *x,
                            const struct backend_weight *w, float eps, float scale, uint32_t n_rows,
                            uint32_t n_heads, uint32_t head_size)
{
    TIME(OP_NORM, head_norm(INNER, x, w, eps, scale, n_rows, n_heads, head_size));
}
static void timed_smear(struct backend *be, struct backend_buffer *x,
                        const struct backend_buffer *previous, const struct backend_weight *gate,
                        float lambda, uint32_t n_rows, uint32_t n)
{
    TIME(OP_EMBED, smear(INNER, x, previous, gate, lambda, n_rows, n));
}
static void timed_matmul(struct backend *be, struct backend_buffer *y,
                         const struct backend_buffer *x, const struct backend_weight *w,
                         const struct backend_weight *bias, bool accumulate, uint32_t n_rows)
{
    TIME(OP_MATMUL, matmul(INNER, y, x, w, bias, accumulate, n_rows));
}
static void timed_rope(struct backend *be, struct backend_buffer *x,
                       const struct backend_rope *rope, uint32_t n_rows, uint32_t n_heads,
                       uint32_t head_size)
{
    TIME(OP_ROPE, rope(INNER, x, rope, n_rows, n_heads, head_size));
}
static void timed_bank_add(struct backend *be, struct backend_buffer *v,
                           const struct backend_weight *bank, float gamma,
                           const struct backend_weight *gate, float gate_scale,
                           const struct backend_buffer *x, uint32_t n_rows, uint32_t x_columns,
                           uint32_t n_kv_heads, uint32_t head_size)
{
    TIME(OP_BANK_ADD, bank_add(INNER, v, bank, gamma, gate, gate_scale, x, n_rows, x_columns,
                               n_kv_heads, head_size));
}
static void timed_value_ids_write(struct backend *be, struct backend_cache *cache)
{
    TIME(OP_KV_WRITE, value_ids_write(INNER, cache));
}
static void timed_kv_write(struct backend *be, struct backend_cache *cache, uint32_t layer,
                           const struct backend_buffer *k, const struct backend_buffer *v)
{
    TIME(OP_KV_WRITE, kv_write(INNER, cache, layer, k, v));
}
static void timed_attention(struct backend *be, struct backend_cache *cache,
                            const struct backend_attention *a, struct backend_buffer *out,
                            const struct backend_buffer *q)
{
    TIME(OP_ATTENTION, attention(INNER, cache, a, out, q));
}
static void timed_swiglu(struct backend *be, struct backend_buffer *gate,
                         const struct backend_buffer *up, size_t n)
{
    TIME(OP_ACTIVATION, swiglu(INNER, gate, up, n));
}
static void timed_relu_squared(struct backend *be, struct backend_buffer *x, size_t n)
{
    TIME(OP_ACTIVATION, relu_squared(INNER, x, n));
}
static void timed_pick_rows(struct backend *be, struct backend_buffer *y,
                            const struct backend_buffer *x, const uint32_t *rows, uint32_t n_picked,
                            uint32_t n)
{
    TIME(OP_COPY, pick_rows(INNER, y, x, rows, n_picked, n));
}
static void timed_softcap(struct backend *be, struct backend_buffer *z, float cap, size_t n)
{
    TIME(OP_ACTIVATION, softcap(INNER, z, cap, n));
}

/* What a forward pass uses; the bench itself calls the inner backend for the rest. */
static const struct backend_ops timed_ops = {
    .name = "timed",
    .weight_new = timed_weight_new,
    .weight_free = timed_weight_free,
    .buffer_new = timed_buffer_new,
    .buffer_free = timed_buffer_free,
    .download = timed_download,
    .step_begin = timed_step_begin,
    .step_end = timed_step_end,
    .embed = timed_embed,
    .rmsnorm = timed_rmsnorm,
    .head_norm = timed_head_norm,
    .smear = timed_smear,
    .matmul = timed_matmul,
    .rope = timed_rope,
    .bank_add = timed_bank_add,
    .value_ids_write = timed_value_ids_write,
    .kv_write = timed_kv_write,
    .attention = timed_attention,
    .swiglu = timed_swiglu,
    .relu_squared = timed_relu_squared,
    .pick_rows = timed_pick_rows,
    .softcap = timed_softcap,
};

/* ---- the bench --------------------------------------------------------------------------------
 */

struct options {
    const char *model;
    struct backend_config backend;
    uint32_t n_sequences, n_rows, n_context, n_steps;
    enum tensor_type weight_type, type_k, type_v;
    enum backend_value_path value_path;
};

static _Noreturn void fail(const char *text)
{
    fprintf(stderr, "bench_step: %s\n", text);
    exit(EXIT_FAILURE);
}

static uint32_t number_of(const char *text)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end || errno || value > MOST)
        fail("an option wants a number");
    return (uint32_t)value;
}

static enum tensor_type type_of(const char *text)
{
    enum tensor_type type;
    if (!tensor_type_parse(text, &type))
        fail("an option wants a type");
    return type;
}

static struct options options_of(int argc, char **argv)
{
    struct options o = {.backend = {.name = "cpu"},
                        .n_sequences = 1,
                        .n_rows = 1,
                        .n_context = 128,
                        .n_steps = 10,
                        .weight_type = TENSOR_TYPE_LIMIT,
                        .type_k = TENSOR_BF16,
                        .type_v = TENSOR_BF16};
    struct {
        const char *name;
        uint32_t *value;
    } numbers[] = {{"--threads", &o.backend.n_threads},
                   {"--sequences", &o.n_sequences},
                   {"--rows", &o.n_rows},
                   {"--context", &o.n_context},
                   {"--steps", &o.n_steps}};
    if (argc < 2 || argc % 2 != 0)
        fail("usage: bench_step MODEL [--option VALUE]...");
    o.model = argv[1];
    for (int i = 2; i < argc; i += 2) {
        const char *value = argv[i + 1];
        bool known = false;
        for (size_t j = 0; j < sizeof(numbers) / sizeof(numbers[0]) && !known; j++) {
            known = strcmp(argv[i], numbers[j].name) == 0;
            if (known)
                *numbers[j].value = number_of(value);
        }
        if (known)
            continue;
        if (strcmp(argv[i], "--cpu-path") == 0)
            o.backend.cpu_path = value;
        else if (strcmp(argv[i], "--activations") == 0)
            o.backend.cpu_activations = value;
        else if (strcmp(argv[i], "--clock") == 0)
            clock_used = strcmp(value, "cpu") == 0 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
        else if (strcmp(argv[i], "--weight-type") == 0)
            o.weight_type = type_of(value);
        else if (strcmp(argv[i], "--kv-type-k") == 0)
            o.type_k = type_of(value);
        else if (strcmp(argv[i], "--kv-type-v") == 0)
            o.type_v = type_of(value);
        else if (strcmp(argv[i], "--value-path") == 0)
            o.value_path = strcmp(value, "dedup") == 0    ? BACKEND_VALUE_DEDUP
                           : strcmp(value, "gather") == 0 ? BACKEND_VALUE_GATHER
                                                          : BACKEND_VALUE_AUTO;
        else
            fail("unknown option");
    }
    if (o.n_sequences == 0 || o.n_rows == 0 || o.n_steps == 0)
        fail("sequences, rows and steps are at least 1");
    return o;
}

/* A batch of which all sequences are alike, with words as unequal as in text. */
static struct step_batch batch_of(const struct options *o, const struct hparams *hp)
{
    uint32_t n = o->n_sequences * o->n_rows, length = o->n_context + o->n_rows;
    uint32_t n_blocks = (length + BLOCK_SIZE - 1) / BLOCK_SIZE, n_slots = length / 4 + 1;
    uint32_t *ids = xcalloc(n, sizeof(uint32_t)), *previous = xcalloc(n, sizeof(uint32_t));
    uint32_t *positions = xcalloc(n, sizeof(uint32_t)), *logit_rows = xcalloc(n, sizeof(uint32_t));
    uint32_t *slot_of = xcalloc(length, sizeof(uint32_t)), *id_of = xcalloc(n_slots, 4);
    struct step_sequence *seqs = xcalloc(o->n_sequences, sizeof(*seqs));
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = 1 + rng_u32(1, 0, i) % 1000 % (hp->n_embedding_rows - 1);
        previous[i] = 1;
        positions[i] = o->n_context + i % o->n_rows;
    }
    for (uint32_t i = 0; i < length; i++)
        slot_of[i] = rng_u32(1, 1, i) % (i / 4 + 1);
    for (uint32_t i = 0; i < n_slots; i++)
        id_of[i] = rng_u32(1, 2, i) % (hp->bank_rows > 0 ? hp->bank_rows : 1);
    for (uint32_t s = 0; s < o->n_sequences; s++) {
        uint32_t *blocks = xcalloc(n_blocks, sizeof(uint32_t));
        for (uint32_t i = 0; i < n_blocks; i++)
            blocks[i] = i * o->n_sequences + s;
        seqs[s] = (struct step_sequence){.first_row = s * o->n_rows,
                                         .n_rows = o->n_rows,
                                         .n_cached = o->n_context,
                                         .blocks = blocks,
                                         .slot_of_position = slot_of,
                                         .value_id_of_slot = id_of,
                                         .n_slots = n_slots};
        logit_rows[s] = (s + 1) * o->n_rows - 1;
    }
    return (struct step_batch){.n_rows = n,
                               .token_ids = ids,
                               .previous_ids = previous,
                               .value_ids = ids,
                               .positions = positions,
                               .n_sequences = o->n_sequences,
                               .sequences = seqs,
                               .n_logit_rows = o->n_sequences,
                               .logit_rows = logit_rows};
}

static void report(const struct options *o, const struct timed *timed, const uint64_t *ns,
                   const uint64_t *calls, uint64_t total, const char *backend)
{
    double ms = (double)total * 1e-6;
    printf(
        "%s: %u sequences x %u rows at %u: %.2f ms, %.1f tokens/s, matrices %.1f MB (%.1f GB/s)\n",
        backend, o->n_sequences, o->n_rows, o->n_context, ms, 1e3 * o->n_sequences * o->n_rows / ms,
        (double)timed->matrix_bytes * 1e-6, (double)timed->matrix_bytes / (double)total);
    for (int i = 0; i < OP_COUNT; i++) {
        if (calls[i] > 0)
            printf("  %-10s %5llu calls %9.3f ms %5.1f%%\n", op_names[i],
                   (unsigned long long)calls[i], (double)ns[i] * 1e-6,
                   100.0 * (double)ns[i] / (double)total);
    }
}

int main(int argc, char **argv)
{
    struct options o = options_of(argc, argv);
    struct error err;
    struct checkpoint *cp = NULL;
    struct timed timed = {.base = {&timed_ops}, .weight_type = o.weight_type};
    if (checkpoint_open(o.model, &cp, &err) || backend_open(&o.backend, &timed.inner, &err))
        fail(err.text);
    timed.ops = backend_ops_of(timed.inner);
    struct step_batch batch = batch_of(&o, checkpoint_hparams(cp));
    struct gpt_config config = {.max_rows = batch.n_rows,
                                .max_logit_rows = batch.n_logit_rows,
                                .bank_type = TENSOR_TYPE_LIMIT};
    struct gpt *gpt = NULL;
    if (gpt_new(cp, &timed.base, &config, &gpt, &err))
        fail(err.text);
    uint32_t n_blocks = (o.n_context + o.n_rows + BLOCK_SIZE - 1) / BLOCK_SIZE * o.n_sequences;
    struct backend_cache_shape shape;
    struct backend_cache *cache = NULL;
    gpt_cache_shape(gpt, n_blocks, BLOCK_SIZE, o.type_k, o.type_v, &shape);
    if (timed.ops->cache_new(timed.inner, &shape, &cache, &err))
        fail(err.text);
    timed.ops->set_value_path(timed.inner, o.value_path);
    uint64_t best = UINT64_MAX, best_ns[OP_COUNT] = {0}, best_calls[OP_COUNT] = {0};
    for (uint32_t i = 0; i <= o.n_steps; i++) {
        float *logits;
        memset(timed.ns, 0, sizeof(timed.ns));
        memset(timed.n_calls, 0, sizeof(timed.n_calls));
        uint64_t start = now_ns();
        if (gpt_step(gpt, cache, &batch, &logits, &err))
            fail(err.text);
        uint64_t ns = now_ns() - start;
        if (i > 0 && ns < best) { /* the first warms up */
            best = ns;
            memcpy(best_ns, timed.ns, sizeof(best_ns));
            memcpy(best_calls, timed.n_calls, sizeof(best_calls));
        }
    }
    report(&o, &timed, best_ns, best_calls, best, timed.ops->describe(timed.inner));
    timed.ops->cache_free(timed.inner, cache);
    gpt_free(gpt);
    backend_close(timed.inner);
    checkpoint_close(cp);
    return EXIT_SUCCESS;
}
