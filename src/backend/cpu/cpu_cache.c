#include "config.h"

/*
 * The KV cache in memory.  One area per layer and kind.  A block of a layer holds, KV head by KV
 * head, keys as panels of 16 positions (of 8 when a block has 8): d going up, the positions of one
 * d side by side, so that the product kernels read them as weights; and values as rows of D.  Int8
 * keys have in each group of 32 d first the f16 scales of the positions, then the codes.
 */
#include <stdlib.h>
#include <string.h>

#include "../backend_priv.h"
#include "cpu_priv.h"
#include "tellerd/base/mem.h"

void cpu_cache_free(struct backend *be, struct backend_cache *cache)
{
    (void)be;
    if (!cache)
        return;
    size_t n = cache->shape.n_blocks;
    for (uint32_t i = 0; i < cache->shape.n_layers; i++) {
        big_free(cache->keys[i], n * cache->key_block_bytes);
        big_free(cache->values[i], n * cache->value_block_bytes);
    }
    big_free(cache->value_ids, n * cache->shape.block_size * sizeof(uint32_t));
    free(cache->keys);
    free(cache->values);
    free(cache->has_values);
    free(cache);
}

static bool take(size_t n, size_t bytes, bool prefault, uint8_t **ret)
{
    size_t size;
    if (!size_mul(n, bytes, &size))
        return false;
    *ret = big_alloc(size, prefault);
    return *ret != NULL;
}

enum status cpu_cache_new(struct backend *be, const struct backend_cache_shape *shape,
                          struct backend_cache **ret, struct error *err)
{
    enum status status = backend_check_cache(shape, err);
    if (status)
        return status;
    size_t key_bytes, value_bytes;
    REQUIRE(tensor_row_bytes(shape->type_k, shape->head_size, &key_bytes));
    REQUIRE(tensor_row_bytes(shape->type_v, shape->head_size, &value_bytes));
    struct backend_cache *cache = xcalloc(1, sizeof(*cache));
    cache->shape = *shape;
    cache->has_values = xmemdup(shape->layer_has_values, shape->n_layers * sizeof(bool));
    cache->shape.layer_has_values = cache->has_values;
    cache->key_head_bytes = shape->block_size * key_bytes;
    cache->key_block_bytes = shape->n_kv_heads * cache->key_head_bytes;
    cache->value_row_bytes = value_bytes;
    cache->value_head_bytes = shape->block_size * value_bytes;
    cache->value_block_bytes = shape->n_kv_heads * cache->value_head_bytes;
    cache->keys = xcalloc(shape->n_layers, sizeof(*cache->keys));
    cache->values = xcalloc(shape->n_layers, sizeof(*cache->values));
    bool taken = true;
    for (uint32_t i = 0; i < shape->n_layers && taken; i++) {
        taken = take(shape->n_blocks, cache->key_block_bytes, shape->prefault, &cache->keys[i]);
        if (taken && cache->has_values[i])
            taken =
                take(shape->n_blocks, cache->value_block_bytes, shape->prefault, &cache->values[i]);
    }
    uint8_t *ids = NULL;
    if (taken && shape->has_value_ids)
        taken = take(shape->n_blocks, shape->block_size * sizeof(uint32_t), shape->prefault, &ids);
    cache->value_ids = (uint32_t *)(void *)ids;
    if (!taken) {
        cpu_cache_free(be, cache);
        return error_set(err, STATUS_NO_MEMORY, "no memory for a KV cache of %u blocks",
                         shape->n_blocks);
    }
    *ret = cache;
    return STATUS_OK;
}

void cpu_cache_copy_block(struct backend *be, struct backend_cache *cache, uint32_t from,
                          uint32_t to)
{
    (void)be;
    REQUIRE(from < cache->shape.n_blocks && to < cache->shape.n_blocks && from != to);
    for (uint32_t i = 0; i < cache->shape.n_layers; i++) {
        size_t n = cache->key_block_bytes;
        memcpy(cache->keys[i] + to * n, cache->keys[i] + from * n, n);
        n = cache->value_block_bytes;
        if (cache->values[i])
            memcpy(cache->values[i] + to * n, cache->values[i] + from * n, n);
    }
    size_t p = cache->shape.block_size;
    if (cache->value_ids)
        memcpy(cache->value_ids + to * p, cache->value_ids + from * p, p * sizeof(uint32_t));
}

void cpu_cache_bytes(const struct backend_cache *cache, size_t ret_bytes[3])
{
    size_t n = cache->shape.n_blocks;
    ret_bytes[0] = n * cache->key_block_bytes * cache->shape.n_layers;
    ret_bytes[1] = 0;
    for (uint32_t i = 0; i < cache->shape.n_layers; i++)
        ret_bytes[1] += cache->values[i] ? n * cache->value_block_bytes : 0;
    ret_bytes[2] = cache->value_ids ? n * cache->shape.block_size * sizeof(uint32_t) : 0;
}

/* ---- writes -----------------------------------------------------------------------------------
 */

/* Block and place in it of a row of the step. */
static uint32_t row_block(const struct backend_cache *cache, const struct step_sequence *seq,
                          uint32_t row, uint32_t *ret_at)
{
    uint32_t position = seq->n_cached + (row - seq->first_row);
    uint32_t block = seq->blocks[position / cache->shape.block_size];
    REQUIRE(block < cache->shape.n_blocks);
    *ret_at = position % cache->shape.block_size;
    return block;
}

void cpu_value_ids_write(struct backend *be, struct backend_cache *cache)
{
    const struct step_batch *batch = cpu_of(be)->batch;
    REQUIRE(batch && cache->value_ids);
    for (uint32_t i = 0; i < batch->n_sequences; i++) {
        const struct step_sequence *seq = &batch->sequences[i];
        for (uint32_t row = seq->first_row; row < seq->first_row + seq->n_rows; row++) {
            uint32_t at, block = row_block(cache, seq, row, &at);
            cache->value_ids[(size_t)block * cache->shape.block_size + at] = batch->value_ids[row];
        }
    }
}

/* Puts one head's key, already rounded to `bytes`, to place `at` of its block. */
static void key_scatter(const struct backend_cache *cache, const uint8_t *bytes, uint8_t *head,
                        uint32_t at)
{
    uint32_t p = cache->shape.block_size, width = p < CPU_PANEL ? p : CPU_PANEL;
    uint32_t n_d = cache->shape.head_size, lane = at % width;
    uint8_t *panel = head + (size_t)(at / width) * width * (cache->key_head_bytes / p);
    switch (cache->shape.type_k) {
    case TENSOR_F32:
        for (uint32_t d = 0; d < n_d; d++)
            memcpy(panel + 4 * ((size_t)d * width + lane), bytes + 4 * d, 4);
        break;
    case TENSOR_Q8_0:
        for (uint32_t d = 0; d < n_d; d += 32, bytes += 34, panel += (size_t)width * 34) {
            memcpy(panel + 2 * lane, bytes, 2);
            for (uint32_t j = 0; j < 32; j++)
                panel[2 * width + j * width + lane] = bytes[2 + j];
        }
        break;
    default:
        for (uint32_t d = 0; d < n_d; d++)
            memcpy(panel + 2 * ((size_t)d * width + lane), bytes + 2 * d, 2);
    }
}

struct kv_job {
    struct cpu_backend *cpu;
    struct backend_cache *cache;
    uint8_t *keys, *values; /* of the layer */
    const float *k, *v;
};

static void kv_write_row(const struct kv_job *job, const struct step_sequence *seq, uint32_t row)
{
    const struct backend_cache *cache = job->cache;
    uint32_t n_d = cache->shape.head_size, n_heads = cache->shape.n_kv_heads;
    uint8_t rounded[CPU_MAX_HEAD * sizeof(float)];
    uint32_t at, block = row_block(cache, seq, row, &at);
    uint8_t *keys = job->keys + block * cache->key_block_bytes;
    uint8_t *values = job->values ? job->values + block * cache->value_block_bytes : NULL;
    for (uint32_t h = 0; h < n_heads; h++) {
        size_t from = ((size_t)row * n_heads + h) * n_d;
        job->cpu->kernels->round(cache->shape.type_k, job->k + from, rounded, n_d);
        key_scatter(cache, rounded, keys + h * cache->key_head_bytes, at);
        if (values)
            job->cpu->kernels->round(
                cache->shape.type_v, job->v + from,
                values + h * cache->value_head_bytes + at * cache->value_row_bytes, n_d);
    }
}

static void kv_write_rows(void *ctx, uint32_t first, uint32_t n, uint32_t thread)
{
    (void)thread;
    const struct kv_job *job = ctx;
    const struct step_batch *batch = job->cpu->batch;
    uint32_t i = 0;
    for (uint32_t row = first; row < first + n; row++) {
        while (row >= batch->sequences[i].first_row + batch->sequences[i].n_rows)
            i++;
        kv_write_row(job, &batch->sequences[i], row);
    }
}

void cpu_kv_write(struct backend *be, struct backend_cache *cache, uint32_t layer,
                  const struct backend_buffer *k, const struct backend_buffer *v)
{
    struct cpu_backend *cpu = cpu_of(be);
    uint32_t n = cache->shape.n_kv_heads * cache->shape.head_size;
    REQUIRE(cpu->batch && layer < cache->shape.n_layers && !v == !cache->values[layer]);
    size_t work = (size_t)cpu->batch->n_rows * n;
    REQUIRE(work <= k->n_floats && (!v || work <= v->n_floats));
    struct kv_job job = {
        cpu, cache, cache->keys[layer], cache->values[layer], k->data, v ? v->data : NULL};
    cpu_ranges(cpu, cpu->batch->n_rows, work * 4, kv_write_rows, &job);
}
