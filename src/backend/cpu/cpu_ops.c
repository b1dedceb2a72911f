#include "config.h"

/*
 * Row-wise and element-wise ops: each splits its rows over the pool when there are enough.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_priv.h"
#include "tellerd/base/mem.h"

/* One context for all of them; each op uses what it names. */
struct op {
    struct cpu_backend *cpu;
    float *y;
    const float *x, *w, *gate;
    const struct backend_weight *table;
    const uint32_t *ids;
    float eps, scale, lambda;
    uint32_t n, n_heads, head_size, channels, x_columns;
    const struct backend_rope *rope;
};

static const float *vector_of(const struct backend_weight *w)
{
    REQUIRE(!w || w->use == BACKEND_VECTOR);
    return w ? (const float *)(const void *)w->data : NULL;
}

static float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static void embed_rows(void *ctx, uint32_t first, uint32_t n, uint32_t thread)
{
    (void)thread;
    const struct op *op = ctx;
    const struct backend_weight *t = op->table;
    for (uint32_t i = first; i < first + n; i++)
        op->cpu->kernels->expand(t->type, t->data + op->ids[i] * t->row_bytes, 0, t->columns,
                                 op->y + (size_t)i * t->columns);
}

void cpu_embed(struct backend *be, struct backend_buffer *y, const struct backend_weight *table,
               const uint32_t *ids, uint32_t n_rows)
{
    size_t work = (size_t)n_rows * table->columns;
    REQUIRE(table->use == BACKEND_TABLE && work <= y->n_floats);
    for (uint32_t i = 0; i < n_rows; i++)
        REQUIRE(ids[i] < table->rows);
    struct op op = {.cpu = cpu_of(be), .y = y->data, .table = table, .ids = ids};
    cpu_ranges(op.cpu, n_rows, work * 4, embed_rows, &op);
}

static void norm_rows(void *ctx, uint32_t first, uint32_t n, uint32_t thread)
{
    (void)thread;
    const struct op *op = ctx;
    for (size_t i = first; i < (size_t)first + n; i++)
        op->cpu->kernels->norm(op->y + i * op->n, op->x + i * op->n, op->w, op->eps, op->scale,
                               op->n);
}

void cpu_rmsnorm(struct backend *be, struct backend_buffer *y, const struct backend_buffer *x,
                 const struct backend_weight *w, float eps, uint32_t n_rows, uint32_t n)
{
    size_t work = (size_t)n_rows * n;
    REQUIRE(work <= x->n_floats && work <= y->n_floats && (!w || w->columns == n));
    struct op op = {.cpu = cpu_of(be),
                    .y = y->data,
                    .x = x->data,
                    .w = vector_of(w),
                    .eps = eps,
                    .scale = 1.0f,
                    .n = n};
    cpu_ranges(op.cpu, n_rows, work, norm_rows, &op);
}

void cpu_head_norm(struct backend *be, struct backend_buffer *x, const struct backend_weight *w,
                   float eps, float scale, uint32_t n_rows, uint32_t n_heads, uint32_t head_size)
{
    size_t work = (size_t)n_rows * n_heads * head_size;
    REQUIRE(work <= x->n_floats && (!w || w->columns == head_size));
    struct op op = {.cpu = cpu_of(be),
                    .y = x->data,
                    .x = x->data,
                    .w = vector_of(w),
                    .eps = eps,
                    .scale = scale,
                    .n = head_size};
    cpu_ranges(op.cpu, n_rows * n_heads, work, norm_rows, &op);
}

static void smear_rows(void *ctx, uint32_t first, uint32_t n, uint32_t thread)
{
    (void)thread;
    const struct op *op = ctx;
    for (uint32_t i = first; i < first + n; i++) {
        if (op->cpu->batch->positions[i] == 0)
            continue;
        float *x = op->y + (size_t)i * op->n;
        float gate = op->lambda * sigmoid(op->cpu->kernels->dot(op->gate, x, op->channels));
        op->cpu->kernels->add_scaled(x, op->x + (size_t)i * op->n, gate, op->n);
    }
}

void cpu_smear(struct backend *be, struct backend_buffer *x, const struct backend_buffer *previous,
               const struct backend_weight *gate, float lambda, uint32_t n_rows, uint32_t n)
{
    size_t work = (size_t)n_rows * n;
    struct op op = {.cpu = cpu_of(be),
                    .y = x->data,
                    .x = previous->data,
                    .gate = vector_of(gate),
                    .channels = gate->columns * gate->rows,
                    .lambda = lambda,
                    .n = n};
    REQUIRE(op.cpu->batch && work <= x->n_floats && work <= previous->n_floats);
    REQUIRE(op.channels <= n);
    cpu_ranges(op.cpu, n_rows, work, smear_rows, &op);
}

/* ---- rope -------------------------------------------------------------------------------------
 */

/* cos and sin of all rows' angles: once a step, since all layers turn by the same. */
static void rope_tables(struct cpu_backend *cpu, const struct backend_rope *rope, uint32_t n_rows)
{
    uint32_t half = rope->n_dims / 2;
    size_t n = (size_t)n_rows * half;
    if (cpu->rope_of == rope->inv_freq)
        return;
    if (n > cpu->rope_floats) {
        cpu->cosines = xreallocarray(cpu->cosines, n, sizeof(float));
        cpu->sines = xreallocarray(cpu->sines, n, sizeof(float));
        cpu->rope_floats = n;
    }
    for (uint32_t row = 0; row < n_rows; row++) {
        for (uint32_t i = 0; i < half; i++) {
            double angle = (double)cpu->batch->positions[row] * rope->inv_freq[i];
            cpu->cosines[(size_t)row * half + i] = (float)cos(angle);
            cpu->sines[(size_t)row * half + i] = (float)sin(angle);
        }
    }
    cpu->rope_of = rope->inv_freq;
}

static void rope_rows(void *ctx, uint32_t first, uint32_t n, uint32_t thread)
{
    (void)thread;
    const struct op *op = ctx;
    uint32_t n_dims = op->rope->n_dims;
    for (size_t row = first; row < (size_t)first + n; row++) {
        size_t angles = row * (n_dims / 2);
        for (uint32_t h = 0; h < op->n_heads; h++)
            op->cpu->kernels->rotate(op->y + (row * op->n_heads + h) * op->head_size,
                                     op->cpu->cosines + angles, op->cpu->sines + angles, n_dims,
                                     op->rope->interleaved);
    }
}

void cpu_rope(struct backend *be, struct backend_buffer *x, const struct backend_rope *rope,
              uint32_t n_rows, uint32_t n_heads, uint32_t head_size)
{
    struct op op = {
        .cpu = cpu_of(be), .y = x->data, .rope = rope, .n_heads = n_heads, .head_size = head_size};
    size_t work = (size_t)n_rows * n_heads * head_size;
    REQUIRE(op.cpu->batch && n_rows == op.cpu->batch->n_rows && work <= x->n_floats);
    REQUIRE(rope->n_dims % 2 == 0 && rope->n_dims <= head_size);
    rope_tables(op.cpu, rope, n_rows);
    cpu_ranges(op.cpu, n_rows, work, rope_rows, &op);
}

/* ---- bank -------------------------------------------------------------------------------------
 */

static void bank_add_rows(void *ctx, uint32_t first, uint32_t n, uint32_t thread)
{
    (void)thread;
    const struct op *op = ctx;
    const struct backend_weight *bank = op->table;
    float head[CPU_MAX_HEAD];
    for (size_t row = first; row < (size_t)first + n; row++) {
        const uint8_t *from = bank->data + op->cpu->batch->value_ids[row] * bank->row_bytes;
        for (uint32_t h = 0; h < op->n_heads; h++) {
            float factor = op->scale;
            if (op->gate)
                factor *= op->lambda *
                          sigmoid(op->cpu->kernels->dot(op->gate + h * op->channels,
                                                        op->x + row * op->x_columns, op->channels));
            op->cpu->kernels->expand(bank->type, from, h * op->head_size, op->head_size, head);
            op->cpu->kernels->add_scaled(op->y + (row * op->n_heads + h) * op->head_size, head,
                                         factor, op->head_size);
        }
    }
}

void cpu_bank_add(struct backend *be, struct backend_buffer *v, const struct backend_weight *bank,
                  float gamma, const struct backend_weight *gate, float gate_scale,
                  const struct backend_buffer *x, uint32_t n_rows, uint32_t x_columns,
                  uint32_t n_kv_heads, uint32_t head_size)
{
    struct op op = {.cpu = cpu_of(be),
                    .y = v->data,
                    .x = x->data,
                    .table = bank,
                    .gate = vector_of(gate),
                    .channels = gate ? gate->columns : 0,
                    .scale = gamma,
                    .lambda = gate_scale,
                    .n_heads = n_kv_heads,
                    .head_size = head_size,
                    .x_columns = x_columns};
    size_t work = (size_t)n_rows * n_kv_heads * head_size;
    REQUIRE(op.cpu->batch && work <= v->n_floats && (size_t)n_rows * x_columns <= x->n_floats);
    REQUIRE(bank->use == BACKEND_TABLE && bank->columns == n_kv_heads * head_size);
    REQUIRE(!gate || (gate->rows == n_kv_heads && op.channels <= x_columns));
    for (uint32_t i = 0; i < n_rows; i++)
        REQUIRE(op.cpu->batch->value_ids[i] < bank->rows);
    cpu_ranges(op.cpu, n_rows, work * 4, bank_add_rows, &op);
}

/* ---- element by element -----------------------------------------------------------------------
 */

enum { PIECE = 4096 /* elements of a task, a multiple of the kernels' vectors */ };

static uint32_t pieces_of(size_t n)
{
    REQUIRE(n / PIECE < UINT32_MAX);
    return (uint32_t)((n + PIECE - 1) / PIECE);
}

struct elements {
    struct cpu_backend *cpu;
    float *y;
    const float *x;
    float cap;
    size_t n;
};

/* The elements of pieces first .. first + n - 1. */
static size_t elements_of(const struct elements *e, uint32_t first, uint32_t n)
{
    size_t from = (size_t)first * PIECE, to = from + (size_t)n * PIECE;
    return (to < e->n ? to : e->n) - from;
}

static void swiglu_pieces(void *ctx, uint32_t first, uint32_t n, uint32_t thread)
{
    (void)thread;
    const struct elements *e = ctx;
    size_t from = (size_t)first * PIECE;
    e->cpu->kernels->swiglu(e->y + from, e->x + from, elements_of(e, first, n));
}

void cpu_swiglu(struct backend *be, struct backend_buffer *gate, const struct backend_buffer *up,
                size_t n)
{
    REQUIRE(n <= gate->n_floats && n <= up->n_floats);
    struct elements e = {.cpu = cpu_of(be), .y = gate->data, .x = up->data, .n = n};
    cpu_ranges(e.cpu, pieces_of(n), n * 4, swiglu_pieces, &e);
}

static void relu_squared_pieces(void *ctx, uint32_t first, uint32_t n, uint32_t thread)
{
    (void)thread;
    const struct elements *e = ctx;
    e->cpu->kernels->relu_squared(e->y + (size_t)first * PIECE, elements_of(e, first, n));
}

void cpu_relu_squared(struct backend *be, struct backend_buffer *x, size_t n)
{
    REQUIRE(n <= x->n_floats);
    struct elements e = {.cpu = cpu_of(be), .y = x->data, .n = n};
    cpu_ranges(e.cpu, pieces_of(n), n, relu_squared_pieces, &e);
}

static void softcap_pieces(void *ctx, uint32_t first, uint32_t n, uint32_t thread)
{
    (void)thread;
    const struct elements *e = ctx;
    e->cpu->kernels->softcap(e->y + (size_t)first * PIECE, e->cap, elements_of(e, first, n));
}

void cpu_softcap(struct backend *be, struct backend_buffer *z, float cap, size_t n)
{
    REQUIRE(n <= z->n_floats && cap > 0);
    struct elements e = {.cpu = cpu_of(be), .y = z->data, .cap = cap, .n = n};
    cpu_ranges(e.cpu, pieces_of(n), n * 4, softcap_pieces, &e);
}

void cpu_pick_rows(struct backend *be, struct backend_buffer *y, const struct backend_buffer *x,
                   const uint32_t *rows, uint32_t n_picked, uint32_t n)
{
    (void)be;
    REQUIRE((size_t)n_picked * n <= y->n_floats);
    for (uint32_t i = 0; i < n_picked; i++) {
        REQUIRE(((size_t)rows[i] + 1) * n <= x->n_floats);
        memcpy(y->data + (size_t)i * n, x->data + (size_t)rows[i] * n, n * sizeof(float));
    }
}
