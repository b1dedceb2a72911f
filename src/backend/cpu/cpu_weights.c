#include "config.h"

/*
 * Weights made ready for the kernels, and the product that reads them.
 */
#include <stdlib.h>
#include <string.h>

#include "../backend_priv.h"
#include "cpu_panels.h"
#include "cpu_priv.h"
#include "tellerd/base/mem.h"

struct pack {
    const struct tensor *source;
    uint8_t *panels;
    size_t panel_bytes;
};

static void pack_range(void *ctx, uint32_t first, uint32_t n, uint32_t thread)
{
    (void)thread;
    const struct pack *p = ctx;
    for (uint32_t i = first; i < first + n; i++)
        cpu_panel_pack(p->source, i, p->panels + i * p->panel_bytes);
}

/* Fills w with memory of its own: panels of a matrix, or the f32 of a vector. */
static enum status weight_own(struct cpu_backend *cpu, const struct tensor *source,
                              struct backend_weight *w, struct error *err)
{
    /* an even number, since kernels take pairs */
    uint32_t n_panels = (w->rows + 2 * CPU_PANEL - 1) / (2 * CPU_PANEL) * 2;
    size_t bytes;
    bool fits;
    if (w->use == BACKEND_MATRIX)
        fits = size_mul(cpu_panel_bytes(w->type, w->columns), n_panels, &bytes);
    else /* a zero vector beyond the end lets kernels read whole vectors */
        fits = size_mul((size_t)w->rows * w->columns + CPU_PANEL, sizeof(float), &bytes);
    uint8_t *data = fits ? big_pool_take(cpu->weights, bytes) : NULL;
    if (!data)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a weight of %u x %u", w->rows,
                         w->columns);
    if (w->use == BACKEND_MATRIX) {
        struct pack pack = {source, data, cpu_panel_bytes(w->type, w->columns)};
        w->panel_bytes = pack.panel_bytes;
        cpu_ranges(cpu, n_panels, (size_t)w->rows * w->columns, pack_range, &pack);
    } else {
        tensor_dequantize(w->type, source->data, (float *)data, (size_t)w->rows * w->columns);
    }
    w->data = data;
    w->is_owned = true;
    return STATUS_OK;
}

enum status cpu_weight_new(struct backend *be, const struct tensor *source, enum backend_use use,
                           struct backend_weight **ret, struct error *err)
{
    enum status status = backend_check_weight(source, use, err);
    if (status)
        return status;
    struct backend_weight *w = xcalloc(1, sizeof(*w));
    *w = (struct backend_weight){
        .use = use,
        .type = source->type,
        .rows = (uint32_t)source->rows,
        .columns = (uint32_t)source->columns,
        .data = source->data,
        .row_bytes = source->size_bytes / (size_t)source->rows,
    };
    if (use != BACKEND_TABLE)
        status = weight_own(cpu_of(be), source, w, err);
    if (status) {
        free(w);
        return status;
    }
    *ret = w;
    return STATUS_OK;
}

void cpu_weight_free(struct backend *be, struct backend_weight *weight)
{
    if (!weight)
        return;
    if (weight->is_owned)
        big_pool_give(cpu_of(be)->weights, weight->data);
    free(weight);
}

struct product_job {
    struct cpu_backend *cpu;
    struct cpu_product product;
    uint32_t n_panels, piece;
};

static void product_task(void *ctx, uint32_t task, uint32_t thread)
{
    const struct product_job *job = ctx;
    uint32_t first = task * job->piece;
    uint32_t n = job->n_panels - first < job->piece ? job->n_panels - first : job->piece;
    job->cpu->kernels->product(&job->product, first, n, cpu_scratch(job->cpu, thread));
}

struct pack_rows {
    const struct cpu_backend *cpu;
    enum cpu_rows rows;
    const float *x;
    uint32_t n_k, n_rows;
};

static void pack_row_tiles(void *ctx, uint32_t first, uint32_t n, uint32_t thread)
{
    (void)thread;
    const struct pack_rows *p = ctx;
    p->cpu->kernels->pack(p->rows, p->x, p->n_k, p->n_rows, first, n, p->cpu->packed);
}

/* x as the kernels read it. */
static const void *packed_rows(struct cpu_backend *cpu, enum cpu_rows rows, const float *x,
                               uint32_t n_k, uint32_t n_rows)
{
    size_t n = (size_t)n_k * n_rows;
    if (n_rows == 1 && rows == CPU_ROWS_F32)
        return x;
    if (n > cpu->packed_floats) {
        free(cpu->packed);
        cpu->packed = xreallocarray(NULL, n, sizeof(float));
        cpu->packed_floats = n;
    }
    struct pack_rows p = {cpu, rows, x, n_k, n_rows};
    cpu_ranges(cpu, cpu->kernels->pack_tiles(rows, n_rows), n, pack_row_tiles, &p);
    return cpu->packed;
}

void cpu_matmul(struct backend *be, struct backend_buffer *y, const struct backend_buffer *x,
                const struct backend_weight *w, const struct backend_weight *bias, bool accumulate,
                uint32_t n_rows)
{
    struct cpu_backend *cpu = cpu_of(be);
    REQUIRE(w->use == BACKEND_MATRIX && x != y);
    REQUIRE((size_t)n_rows * w->columns <= x->n_floats && (size_t)n_rows * w->rows <= y->n_floats);
    REQUIRE(!bias || (bias->use == BACKEND_VECTOR && bias->columns * bias->rows == w->rows));
    if (n_rows == 0)
        return;
    enum cpu_rows rows = cpu->int8 && cpu_type_quantised(w->type) ? CPU_ROWS_INT8 : CPU_ROWS_F32;
    struct product_job job = {
        .cpu = cpu,
        .product = {.type = w->type,
                    .panels = w->data,
                    .panel_bytes = w->panel_bytes,
                    .n_k = w->columns,
                    .n_out = w->rows,
                    .n_rows = n_rows,
                    .rows = rows,
                    .x = packed_rows(cpu, rows, x->data, w->columns, n_rows),
                    .y = y->data,
                    .bias = bias ? (const float *)bias->data : NULL,
                    .accumulate = accumulate},
        .n_panels = (w->rows + CPU_PANEL - 1) / CPU_PANEL,
    };
    /* pieces of whole pairs of panels, some for each thread so that a slow one is helped */
    uint32_t pieces = cpu->n_threads > 1 ? 4 * cpu->n_threads : 1;
    job.piece = (job.n_panels + pieces - 1) / pieces;
    job.piece += job.piece % 2;
    cpu_pool_run(cpu->pool, (job.n_panels + job.piece - 1) / job.piece, product_task, &job);
}
