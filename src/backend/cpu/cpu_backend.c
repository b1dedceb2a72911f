#include "config.h"

/*
 * Opens the CPU backend: chooses the kernel set, starts the pool, holds buffers and the frame of a
 * step.  The ops are in cpu_weights.c, cpu_cache.c, cpu_attention.c and cpu_ops.c.
 */
#ifdef HAVE_AVX2
#include <cpuid.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../backend_priv.h"
#include "cpu_priv.h"
#include "tellerd/base/mem.h"

#ifdef HAVE_AVX2
/* By cpuid, since clang 14's __builtin_cpu_supports does not know f16c. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

static bool has_avx2(void)
{
#ifdef HAVE_AVX2
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
#else
    return false;
#endif
}

static bool has_avx512(void)
{
#ifdef HAVE_AVX512
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

static enum status choose_kernels(const char *path, const struct cpu_kernels **ret,
                                  struct error *err)
{
    bool automatic = strcmp(path, "auto") == 0;
#ifdef HAVE_AVX512
    if ((automatic || strcmp(path, "avx512") == 0) && has_avx512()) {
        *ret = &cpu_kernels_avx512;
        return STATUS_OK;
    }
#endif
#ifdef HAVE_AVX2
    if ((automatic || strcmp(path, "avx2") == 0) && has_avx2()) {
        *ret = &cpu_kernels_avx2;
        return STATUS_OK;
    }
#endif
    if (automatic || strcmp(path, "portable") == 0) {
        *ret = &cpu_kernels_portable;
        return STATUS_OK;
    }
    if (strcmp(path, "avx2") == 0 || strcmp(path, "avx512") == 0)
        return error_set(err, STATUS_BAD_CONFIG, "this machine or build has no %s kernels", path);
    return error_set(err, STATUS_BAD_CONFIG,
                     "kernels are auto, portable, avx2 or avx512, not \"%.40s\"", path);
}

static enum status choose_activations(const char *name, bool *ret_int8, struct error *err)
{
    *ret_int8 = !name || strcmp(name, "auto") == 0 || strcmp(name, "int8") == 0;
    if (*ret_int8 || strcmp(name, "f32") == 0)
        return STATUS_OK;
    return error_param(err, STATUS_BAD_CONFIG, "cpu_activations",
                       "activations are auto, int8 or f32, not \"%.40s\"", name);
}

static void cpu_close(struct backend *be)
{
    struct cpu_backend *cpu = cpu_of(be);
    cpu_pool_free(cpu->pool);
    big_pool_free(cpu->weights);
    cpu_attention_plan_free(cpu->plan);
    big_free(cpu->scratch, cpu->scratch_bytes);
    free(cpu->packed);
    free(cpu->cosines);
    free(cpu->sines);
    free(cpu);
}

static enum status cpu_open(const struct backend_config *config, struct backend **ret,
                            struct error *err)
{
    const char *path = config->cpu_path;
    if (!path || strcmp(path, "auto") == 0)
        path = getenv("TELLERD_CPU_PATH");
    const struct cpu_kernels *kernels = NULL;
    bool int8;
    enum status status = choose_kernels(path && *path ? path : "auto", &kernels, err);
    if (!status)
        status = choose_activations(config->cpu_activations, &int8, err);
    if (status)
        return status;
    struct cpu_backend *cpu = xcalloc(1, sizeof(*cpu));
    cpu->base.ops = &cpu_backend_ops;
    cpu->kernels = kernels;
    cpu->int8 = int8;
    cpu->weights = big_pool_new();
    cpu->n_threads = config->n_threads ? config->n_threads : cpu_default_threads();
    cpu->scratch_bytes = (size_t)cpu->n_threads * CPU_SCRATCH * sizeof(float);
    cpu->scratch = big_alloc(cpu->scratch_bytes, true);
    if (!cpu->scratch)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for %u threads", cpu->n_threads);
    else
        status = cpu_pool_new(cpu->n_threads, &cpu->pool, err);
    if (status) {
        cpu_close(&cpu->base);
        return status;
    }
    snprintf(cpu->description, sizeof(cpu->description), "%s, %u thread%s", kernels->name,
             cpu->n_threads, cpu->n_threads == 1 ? "" : "s");
    *ret = &cpu->base;
    return STATUS_OK;
}

static const char *cpu_describe(const struct backend *be)
{
    return ((const struct cpu_backend *)be)->description;
}

static enum status cpu_buffer_new(struct backend *be, size_t n_floats, struct backend_buffer **ret,
                                  struct error *err)
{
    (void)be;
    size_t bytes;
    if (!size_mul(n_floats, sizeof(float), &bytes) || bytes == 0)
        return error_set(err, STATUS_NO_MEMORY, "a buffer of %zu floats is out of range", n_floats);
    float *data = big_alloc(bytes, false);
    if (!data)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a buffer of %zu bytes", bytes);
    struct backend_buffer *buffer = xmalloc(sizeof(*buffer));
    *buffer = (struct backend_buffer){.data = data, .n_floats = n_floats};
    *ret = buffer;
    return STATUS_OK;
}

static void cpu_buffer_free(struct backend *be, struct backend_buffer *buffer)
{
    (void)be;
    if (!buffer)
        return;
    big_free(buffer->data, buffer->n_floats * sizeof(float));
    free(buffer);
}

static void cpu_upload(struct backend *be, struct backend_buffer *to, const float *from,
                       size_t n_floats)
{
    (void)be;
    REQUIRE(n_floats <= to->n_floats);
    memcpy(to->data, from, n_floats * sizeof(float));
}

struct copy {
    float *to;
    const float *from;
    size_t n_floats;
};

enum { COPY_PIECE = 1 << 14 };

static void copy_pieces(void *ctx, uint32_t first, uint32_t n, uint32_t thread)
{
    (void)thread;
    const struct copy *c = ctx;
    size_t from = (size_t)first * COPY_PIECE, end = from + (size_t)n * COPY_PIECE;
    end = end < c->n_floats ? end : c->n_floats;
    memcpy(c->to + from, c->from + from, (end - from) * sizeof(float));
}

static void cpu_download(struct backend *be, const struct backend_buffer *from, float *to,
                         size_t n_floats)
{
    struct copy copy = {to, from->data, n_floats};
    size_t n_pieces = (n_floats + COPY_PIECE - 1) / COPY_PIECE;
    REQUIRE(n_floats <= from->n_floats && n_pieces < UINT32_MAX);
    cpu_ranges(cpu_of(be), (uint32_t)n_pieces, n_floats / 4, copy_pieces, &copy);
}

static enum status cpu_step_begin(struct backend *be, const struct step_batch *batch,
                                  struct error *err)
{
    (void)err;
    struct cpu_backend *cpu = cpu_of(be);
    REQUIRE(!cpu->batch);
    cpu->batch = batch;
    cpu->rope_of = NULL;
    return STATUS_OK;
}

static enum status cpu_step_end(struct backend *be, struct error *err)
{
    (void)err;
    struct cpu_backend *cpu = cpu_of(be);
    REQUIRE(cpu->batch);
    cpu->batch = NULL;
    return STATUS_OK;
}

static void cpu_set_value_path(struct backend *be, enum backend_value_path path)
{
    cpu_of(be)->value_path = path;
}

struct ranges {
    cpu_range_fn fn;
    void *ctx;
    uint32_t count, piece;
};

static void ranges_task(void *ctx, uint32_t task, uint32_t thread)
{
    const struct ranges *r = ctx;
    uint32_t first = task * r->piece;
    uint32_t n = r->count - first < r->piece ? r->count - first : r->piece;
    r->fn(r->ctx, first, n, thread);
}

void cpu_ranges(struct cpu_backend *cpu, uint32_t count, size_t work, cpu_range_fn fn, void *ctx)
{
    enum { WORTH_A_TASK = 1 << 14 };
    size_t pieces = work / WORTH_A_TASK, most = cpu->n_threads > 1 ? 4 * cpu->n_threads : 1;
    pieces = pieces < most ? pieces : most;
    if (pieces <= 1 || count <= 1) {
        fn(ctx, 0, count, 0);
        return;
    }
    struct ranges r = {fn, ctx, count, (uint32_t)((count + pieces - 1) / pieces)};
    cpu_pool_run(cpu->pool, (count + r.piece - 1) / r.piece, ranges_task, &r);
}

const struct backend_ops cpu_backend_ops = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .weight_new = cpu_weight_new,
    .weight_free = cpu_weight_free,
    .buffer_new = cpu_buffer_new,
    .buffer_free = cpu_buffer_free,
    .upload = cpu_upload,
    .download = cpu_download,
    .cache_new = cpu_cache_new,
    .cache_free = cpu_cache_free,
    .cache_copy_block = cpu_cache_copy_block,
    .cache_bytes = cpu_cache_bytes,
    .step_begin = cpu_step_begin,
    .step_end = cpu_step_end,
    .embed = cpu_embed,
    .rmsnorm = cpu_rmsnorm,
    .head_norm = cpu_head_norm,
    .smear = cpu_smear,
    .matmul = cpu_matmul,
    .rope = cpu_rope,
    .bank_add = cpu_bank_add,
    .value_ids_write = cpu_value_ids_write,
    .kv_write = cpu_kv_write,
    .attention = cpu_attention,
    .swiglu = cpu_swiglu,
    .relu_squared = cpu_relu_squared,
    .pick_rows = cpu_pick_rows,
    .softcap = cpu_softcap,
    .set_value_path = cpu_set_value_path,
};
