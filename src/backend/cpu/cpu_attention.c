#include "config.h"

/*
 * Cuts one layer's attention into tasks for the pool.  A task is a tile: some neighbouring rows of
 * a sequence, some query heads of one KV head.  How tiles are cut changes no result (see
 * cpu_attention_impl.h), so it is free to follow the load: when a step has few rows and long
 * sequences, a tile's chunks become tasks of their own and are combined in order afterwards.
 */
#include <stdlib.h>
#include <string.h>

#include "cpu_priv.h"
#include "tellerd/base/mem.h"

struct task {
    struct cpu_attention_tile tile;
    size_t source; /* tile.source once all sources are there */
    bool by_slot;
    /* a split tile: one task per chunk, all with the same parts; n_chunks 0 = not split */
    uint32_t first_chunk, n_chunks, chunk;
    size_t parts, outs; /* where its partials and outputs are */
};

/* Grown to the largest step so far, then only reused. */
struct attention_plan {
    struct cpu_attention_source *sources;
    struct task *tasks;
    struct cpu_partial *partials;
    float *outs, *slots;
    size_t n_sources, n_tasks, n_partials, n_outs;
    size_t most_sources, most_tasks, most_partials, most_outs, most_slots;
    size_t slot_floats; /* of one thread */
};

/* What the op was asked for. */
struct request {
    struct cpu_backend *cpu;
    const struct backend_cache *cache;
    const struct backend_attention *a;
    const float *q;
    float *out;
    uint32_t group; /* query heads of a KV head */
    uint32_t heads_at_once;
    bool split;
};

void cpu_attention_plan_free(struct attention_plan *plan)
{
    if (!plan)
        return;
    free(plan->sources);
    free(plan->tasks);
    free(plan->partials);
    free(plan->outs);
    free(plan->slots);
    free(plan);
}

static void *grow(void *block, size_t *most, size_t wanted, size_t size)
{
    if (wanted <= *most)
        return block;
    size_t n = wanted + wanted / 2;
    *most = n;
    return xreallocarray(block, n, size);
}

/* Positions that the row at `position` sees. */
static uint32_t seen(const struct backend_attention *a, uint32_t position)
{
    return a->window > 0 && position >= a->window ? a->window : position + 1;
}

static bool by_slot(const struct request *r, uint32_t position)
{
    if (!r->a->bank || r->cpu->value_path == BACKEND_VALUE_GATHER)
        return false;
    return r->cpu->value_path == BACKEND_VALUE_DEDUP ||
           seen(r->a, position) >= BACKEND_DEDUP_POSITIONS;
}

static struct task *add_task(struct attention_plan *plan)
{
    plan->tasks = grow(plan->tasks, &plan->most_tasks, plan->n_tasks + 1, sizeof(*plan->tasks));
    struct task *task = &plan->tasks[plan->n_tasks++];
    memset(task, 0, sizeof(*task));
    return task;
}

/* One task per chunk of the tile. */
static void split_tile(struct attention_plan *plan, const struct task *whole, uint32_t head_size)
{
    const struct cpu_attention_tile *tile = &whole->tile;
    uint32_t last = tile->first_position, queries = tile->n_rows * tile->n_heads;
    uint32_t first = tile->window > 0 && last >= tile->window
                         ? (last - tile->window + 1) / BACKEND_KEY_CHUNK
                         : 0;
    uint32_t n = last / BACKEND_KEY_CHUNK - first + 1;
    size_t parts = plan->n_partials, outs = plan->n_outs;
    plan->n_partials += (size_t)n * queries;
    plan->n_outs += (size_t)n * queries * head_size;
    for (uint32_t i = 0; i < n; i++) {
        struct task *task = add_task(plan);
        *task = *whole;
        task->first_chunk = first;
        task->n_chunks = n;
        task->chunk = i;
        task->parts = parts;
        task->outs = outs;
    }
}

/* Tiles of one sequence and KV head. */
static void plan_head(const struct request *r, struct attention_plan *plan,
                      const struct step_sequence *seq, size_t source, uint32_t kv_head)
{
    uint32_t n_d = r->cache->shape.head_size;
    size_t row_stride = (size_t)r->a->n_heads * n_d;
    for (uint32_t head = 0; head < r->group; head += r->heads_at_once) {
        uint32_t n_heads = r->group - head < r->heads_at_once ? r->group - head : r->heads_at_once;
        for (uint32_t row = 0; row < seq->n_rows;) {
            uint32_t position = seq->n_cached + row, n_rows = CPU_QUERIES / n_heads;
            bool slots = by_slot(r, position);
            if (slots) { /* their scores are as long as the sequence: keep them in cache */
                uint32_t fit = (1u << 18) / n_heads / (seq->n_cached + seq->n_rows);
                n_rows = n_rows < fit ? n_rows : fit;
            }
            n_rows = n_rows < 1 ? 1 : n_rows;
            n_rows = n_rows < seq->n_rows - row ? n_rows : seq->n_rows - row;
            while (n_rows > 1 && by_slot(r, position + n_rows - 1) != slots)
                n_rows--;
            size_t at =
                (seq->first_row + row) * row_stride + (size_t)(kv_head * r->group + head) * n_d;
            struct task task = {
                .source = source,
                .tile = {.first_position = position,
                         .n_rows = n_rows,
                         .n_heads = n_heads,
                         .window = r->a->window,
                         .scale = r->a->scale,
                         .gamma = r->a->bank ? r->a->gamma : 1.0f,
                         .q = r->q + at,
                         .out = r->out + at,
                         .row_stride = row_stride},
                .by_slot = slots,
            };
            if (slots) {
                size_t floats = cpu_slot_scratch(n_rows * n_heads, position + n_rows - 1);
                plan->slot_floats = floats > plan->slot_floats ? floats : plan->slot_floats;
            }
            if (r->split && !slots && n_rows == 1 && seen(r->a, position) > BACKEND_KEY_CHUNK)
                split_tile(plan, &task, n_d);
            else
                *add_task(plan) = task;
            row += n_rows;
        }
    }
}

static void add_source(const struct request *r, struct attention_plan *plan,
                       const struct step_sequence *seq, uint32_t kv_head)
{
    const struct backend_cache *cache = r->cache;
    const struct backend_weight *bank = r->a->bank;
    const uint8_t *values = cache->values[r->a->layer];
    plan->sources =
        grow(plan->sources, &plan->most_sources, plan->n_sources + 1, sizeof(*plan->sources));
    plan->sources[plan->n_sources++] = (struct cpu_attention_source){
        .type_k = cache->shape.type_k,
        .type_v = bank ? bank->type : cache->shape.type_v,
        .keys = cache->keys[r->a->layer] + kv_head * cache->key_head_bytes,
        .values = values ? values + kv_head * cache->value_head_bytes : NULL,
        .key_stride = cache->key_block_bytes,
        .value_stride = cache->value_block_bytes,
        .block_size = cache->shape.block_size,
        .head_size = cache->shape.head_size,
        .blocks = seq->blocks,
        .bank = bank ? bank->data : NULL,
        .bank_row_bytes = bank ? bank->row_bytes : 0,
        .bank_first = kv_head * cache->shape.head_size,
        .value_ids = cache->value_ids,
        .slot_of_position = seq->slot_of_position,
        .value_id_of_slot = seq->value_id_of_slot,
    };
}

static void make_plan(const struct request *r, struct attention_plan *plan)
{
    const struct step_batch *batch = r->cpu->batch;
    plan->n_sources = plan->n_tasks = plan->n_partials = plan->n_outs = plan->slot_floats = 0;
    for (uint32_t i = 0; i < batch->n_sequences; i++) {
        for (uint32_t h = 0; h < r->cache->shape.n_kv_heads; h++) {
            add_source(r, plan, &batch->sequences[i], h);
            plan_head(r, plan, &batch->sequences[i], plan->n_sources - 1, h);
        }
    }
    for (size_t i = 0; i < plan->n_tasks; i++)
        plan->tasks[i].tile.source = &plan->sources[plan->tasks[i].source];
    plan->partials =
        grow(plan->partials, &plan->most_partials, plan->n_partials, sizeof(*plan->partials));
    plan->outs = grow(plan->outs, &plan->most_outs, plan->n_outs, sizeof(float));
    plan->slots =
        grow(plan->slots, &plan->most_slots, plan->slot_floats * r->cpu->n_threads, sizeof(float));
}

static void attention_task(void *ctx, uint32_t index, uint32_t thread)
{
    struct cpu_backend *cpu = ctx;
    struct attention_plan *plan = cpu->plan;
    const struct task *task = &plan->tasks[index];
    float *scratch = cpu_scratch(cpu, thread);
    if (task->by_slot) {
        cpu->kernels->attend_slots(&task->tile, scratch, plan->slots + thread * plan->slot_floats);
    } else if (task->n_chunks == 0) {
        cpu->kernels->attend(&task->tile, scratch);
    } else {
        size_t queries = task->tile.n_rows * task->tile.n_heads, skip = task->chunk * queries;
        cpu->kernels->attend_chunk(
            &task->tile, task->first_chunk + task->chunk, plan->partials + task->parts + skip,
            plan->outs + task->outs + skip * task->tile.source->head_size, scratch);
    }
}

void cpu_attention(struct backend *be, struct backend_cache *cache,
                   const struct backend_attention *a, struct backend_buffer *out,
                   const struct backend_buffer *q)
{
    struct cpu_backend *cpu = cpu_of(be);
    const struct backend_cache_shape *shape = &cache->shape;
    REQUIRE(cpu->batch && a->layer < shape->n_layers && a->n_heads % shape->n_kv_heads == 0);
    size_t n = (size_t)cpu->batch->n_rows * a->n_heads * shape->head_size;
    REQUIRE(n <= q->n_floats && n <= out->n_floats);
    if (a->bank)
        REQUIRE(a->bank->use == BACKEND_TABLE && cache->value_ids &&
                a->bank->columns == shape->n_kv_heads * shape->head_size);
    else
        REQUIRE(cache->values[a->layer]);
    if (!cpu->plan)
        cpu->plan = xcalloc(1, sizeof(*cpu->plan));
    struct request r = {cpu, cache, a, q->data, out->data, a->n_heads / shape->n_kv_heads,
                        0,   false};
    r.heads_at_once = r.group < CPU_QUERIES ? r.group : CPU_QUERIES;
    uint32_t units = cpu->batch->n_rows * shape->n_kv_heads;
    while (r.heads_at_once > 1 && units * (r.group / r.heads_at_once) < cpu->n_threads)
        r.heads_at_once = (r.heads_at_once + 1) / 2;
    r.split = cpu->n_threads > 1 && units < 4 * cpu->n_threads;
    make_plan(&r, cpu->plan);
    cpu_pool_run(cpu->pool, (uint32_t)cpu->plan->n_tasks, attention_task, cpu);
    for (size_t i = 0; i < cpu->plan->n_tasks; i++) {
        const struct task *task = &cpu->plan->tasks[i];
        if (task->n_chunks > 0 && task->chunk == 0)
            cpu->kernels->attend_combine(&task->tile, task->n_chunks,
                                         cpu->plan->partials + task->parts,
                                         cpu->plan->outs + task->outs);
    }
}
