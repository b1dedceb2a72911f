#include "config.h"

/*
 * Finds and opens backends by name, and holds the checks of shapes that all of them share.  What is
 * checked here once is not checked again inside a backend.
 */
#include <string.h>

#include "backend_priv.h"
#include "tellerd/backend/backend.h"
#include "tellerd/base/mem.h"

static const struct backend_ops *const backends[] = {&cpu_backend_ops};
static const char *const names[] = {"cpu", NULL};

const char *const *backend_names(void)
{
    return names;
}

enum status backend_open(const struct backend_config *config, struct backend **ret,
                         struct error *err)
{
    const char *name = config->name ? config->name : "auto";
    if (config->n_threads > BACKEND_MAX_THREADS)
        return error_param(err, STATUS_BAD_CONFIG, "threads", "at most %d threads, not %u",
                           BACKEND_MAX_THREADS, config->n_threads);
    if (strcmp(name, "auto") == 0)
        name = "cpu";
    for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
        if (strcmp(backends[i]->name, name) == 0)
            return backends[i]->open(config, ret, err);
    }
    if (strcmp(name, "cuda") == 0)
        return error_param(err, STATUS_BAD_CONFIG, "backend",
                           "this build has no CUDA backend; use auto or cpu");
    return error_param(err, STATUS_BAD_CONFIG, "backend",
                       "no backend is called \"%.40s\"; use auto or cpu", name);
}

void backend_close(struct backend *be)
{
    if (be)
        be->ops->close(be);
}

const struct backend_ops *backend_ops_of(const struct backend *be)
{
    return be->ops;
}

enum status backend_check_weight(const struct tensor *source, enum backend_use use,
                                 struct error *err)
{
    size_t row_bytes, size;
    if (!tensor_type_known(source->type))
        return error_set(err, STATUS_BAD_FILE, "weight type %d is not supported", source->type);
    if (source->columns == 0 || source->rows == 0 || source->columns > INT32_MAX ||
        source->rows > INT32_MAX)
        return error_set(err, STATUS_BAD_FILE, "a weight of %llu x %llu is out of range",
                         (unsigned long long)source->rows, (unsigned long long)source->columns);
    if (!tensor_row_bytes(source->type, source->columns, &row_bytes) ||
        !size_mul(row_bytes, (size_t)source->rows, &size) || size != source->size_bytes)
        return error_set(err, STATUS_BAD_FILE,
                         "a %s weight of %llu x %llu does not fit its %zu bytes",
                         tensor_type_name(source->type), (unsigned long long)source->rows,
                         (unsigned long long)source->columns, source->size_bytes);
    if (use == BACKEND_VECTOR && size / sizeof(float) > INT32_MAX)
        return error_set(err, STATUS_BAD_FILE, "a vector of %zu bytes is out of range", size);
    return STATUS_OK;
}

static bool cache_type(enum tensor_type type)
{
    return type == TENSOR_F32 || type == TENSOR_F16 || type == TENSOR_BF16 || type == TENSOR_Q8_0;
}

enum status backend_check_cache(const struct backend_cache_shape *shape, struct error *err)
{
    uint32_t p = shape->block_size;
    if (p != 8 && p != 16 && p != 32 && p != 64)
        return error_param(err, STATUS_BAD_CONFIG, "block_size",
                           "a block has 8, 16, 32 or 64 positions, not %u", p);
    if (!cache_type(shape->type_k) || !cache_type(shape->type_v))
        return error_set(err, STATUS_BAD_CONFIG,
                         "a cache is f32, f16, bf16 or int8, not %s with %s",
                         tensor_type_name(shape->type_k), tensor_type_name(shape->type_v));
    if (shape->head_size == 0 || shape->head_size % 32 != 0 || shape->head_size > 512)
        return error_set(err, STATUS_BAD_CONFIG,
                         "head size %u is not a multiple of 32 from 32 to 512", shape->head_size);
    if (shape->n_layers == 0 || shape->n_kv_heads == 0 || shape->n_blocks == 0)
        return error_set(err, STATUS_BAD_CONFIG, "a cache needs layers, heads and blocks");
    if (shape->n_blocks > UINT32_MAX / p)
        return error_set(err, STATUS_BAD_CONFIG, "%u blocks are too many", shape->n_blocks);
    return STATUS_OK;
}

size_t backend_cache_position_bytes(const struct backend_cache_shape *shape)
{
    size_t key = 0, value = 0, sum = shape->has_value_ids ? sizeof(uint32_t) : 0;
    if (!tensor_row_bytes(shape->type_k, shape->head_size, &key) ||
        !tensor_row_bytes(shape->type_v, shape->head_size, &value))
        return 0;
    for (uint32_t i = 0; i < shape->n_layers; i++)
        sum += shape->n_kv_heads * (key + (shape->layer_has_values[i] ? value : 0));
    return sum;
}
