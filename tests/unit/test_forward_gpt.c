#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check_main.h"
#include "support/engine_harness.h"
#include "support/tiny_model.h"
#include "tellerd/base/mem.h"
#include "tellerd/engine/forward_gpt.h"
#include "tellerd/model/checkpoint.h"

/*
 * The engine over a real forward pass with all value sources: whatever the batch, the chunks, the
 * prefix cache, preemptions and the number of threads, a request gives the same tokens and the same
 * logprobs, bit for bit.
 */

/* What a forward pass stands on, freed with it. */
struct whole {
    struct forward *forward;
    const struct forward_ops *inner;
    struct forward_ops ops;
    struct checkpoint *checkpoint;
    struct backend *backend;
    struct gpt *gpt;
    uint8_t banned[TINY_MODEL_TOKENS], eog[TINY_MODEL_TOKENS];
};

enum { MAX_WHOLES = 4 };
static struct whole *wholes[MAX_WHOLES];
static char model_path[] = "/tmp/test_forward_gpt.XXXXXX";
static enum tensor_type type_k, type_v;
static uint32_t n_threads;

static void whole_free(struct forward *forward)
{
    for (int i = 0; i < MAX_WHOLES; i++) {
        struct whole *w = wholes[i];

        if (!w || w->forward != forward)
            continue;
        wholes[i] = NULL;
        w->inner->free(forward);
        gpt_free(w->gpt);
        backend_close(w->backend);
        checkpoint_close(w->checkpoint);
        free(w);
        return;
    }
    ck_abort_msg("not one of ours");
}

#define OK(call) ck_assert_msg((call) == STATUS_OK, "%s", err.text)

static struct forward *make_forward(const struct forward_script_config *shape)
{
    struct backend_config config = {.name = "cpu", .n_threads = n_threads};
    struct gpt_config gpt = {.max_rows = shape->max_rows,
                             .max_logit_rows = shape->max_logit_rows,
                             .bank_type = TENSOR_TYPE_LIMIT};
    struct whole *w = xcalloc(1, sizeof(*w));
    struct sampler_vocab vocab = {TINY_MODEL_TOKENS, TINY_MODEL_TOKENS, w->banned, w->eog};
    struct backend_cache_shape cache;
    struct error err = {0};
    int slot = 0;

    w->eog[TINY_MODEL_EOS] = 1;
    OK(checkpoint_open(model_path, &w->checkpoint, &err));
    OK(backend_open(&config, &w->backend, &err));
    OK(gpt_new(w->checkpoint, w->backend, &gpt, &w->gpt, &err));
    gpt_cache_shape(w->gpt, shape->n_blocks, shape->block_size, type_k, type_v, &cache);
    OK(forward_gpt_new(w->gpt, w->backend, &cache, &vocab, gpt.max_rows, gpt.max_logit_rows,
                       &w->forward, &err));
    w->inner = w->forward->ops;
    w->ops = *w->inner;
    w->ops.free = whole_free;
    w->forward->ops = &w->ops;
    while (wholes[slot])
        slot++;
    wholes[slot] = w;
    return w->forward;
}

static void make_model(void)
{
    int fd = mkstemp(model_path);

    ck_assert_int_ge(fd, 0);
    close(fd);
    tiny_model_write(model_path, 11);
    n_threads = 1;
    type_k = type_v = TENSOR_F32;
}

static void remove_model(void)
{
    unlink(model_path);
}

static struct gen_request *mixed(uint32_t i)
{
    /* lengths around blocks, chunks and the 256 positions from which banks are summed by slot */
    static const uint32_t lengths[] = {1, 15, 16, 17, 64, 70, 130, 250, 256, 270, 300, 33};
    struct gen_request *r = harness_request(i / 3, lengths[i % 12], 50);

    r->sampling.logprobs = true;
    r->sampling.ignore_eos = i % 2;
    r->sampling.temperature = i % 3 == 1 ? 0.8F : 0;
    r->sampling.seed = i;
    r->n_choices = i % 5 == 4 ? 3 : 1;
    if (i % 4 == 2)
        r->n_prompt_logprobs = 0;
    return r;
}

static const struct {
    enum tensor_type k, v;
} caches[] = {{TENSOR_F32, TENSOR_F32}, {TENSOR_BF16, TENSOR_F16}, {TENSOR_Q8_0, TENSOR_BF16}};

START_TEST(a_request_gives_the_same_bits_however_it_was_run)
{
    enum { N = 12 };
    struct harness h;
    struct outcome *alone[N];
    uint64_t ids[N];

    type_k = caches[_i].k;
    type_v = caches[_i].v;
    harness_init(&h);
    h.make_forward = make_forward;
    h.script.max_rows = h.script.max_logit_rows = 64;
    h.script.n_blocks = 27;
    h.script.block_size = 16;
    h.config.max_batch_tokens = 64;
    h.config.max_sequences = 8;
    h.config.prefill_chunk = 24;
    h.config.n_context = 400;
    for (uint32_t i = 0; i < N; i++)
        alone[i] = harness_alone(&h, mixed(i)); /* one thread, no chunks, nothing cached */
    n_threads = 2;
    harness_open(&h);
    for (int round = 0; round < 2; round++) { /* cold, and with what the first round left */
        for (uint32_t i = 0; i < N; i++)
            ids[i] = harness_submit(&h, mixed(i));
        for (uint32_t i = 0; i < N; i++)
            harness_same(harness_wait(&h, ids[i]), alone[i]);
    }
    ck_assert_uint_gt(harness_stats(&h).n_preemptions, 0);
    ck_assert_uint_gt(harness_stats(&h).n_cached_tokens, 0);
    for (uint32_t i = 0; i < N; i++)
        free(alone[i]);
    harness_close(&h);
}
END_TEST

START_TEST(the_cache_is_described_as_it_is)
{
    struct forward_script_config shape;
    struct forward *forward;

    forward_script_defaults(&shape);
    shape.n_blocks = 10;
    type_k = TENSOR_BF16;
    type_v = TENSOR_BF16;
    forward = make_forward(&shape);
    ck_assert_uint_eq(forward->n_blocks, 10);
    ck_assert_uint_eq(forward->block_size, 16);
    ck_assert(forward->has_bank);
    ck_assert_uint_eq(forward->bank_rows, TINY_MODEL_TOKENS + 1);
    ck_assert_uint_eq(forward->sink_row, TINY_MODEL_TOKENS);
    /* 4 layers of keys, 2 of values, 32 numbers of 2 bytes each; 4 bytes of id */
    ck_assert_uint_eq(forward->block_bytes_keys, 16 * 4 * 64);
    ck_assert_uint_eq(forward->block_bytes_values, 16 * 2 * 64);
    ck_assert_uint_eq(forward->block_bytes_ids, 16 * 4);
    ck_assert_uint_eq(forward->block_bytes_saved, 16 * (2 * 64 - 4));
    ck_assert_uint_eq(forward->bank_bytes, 3ull * (TINY_MODEL_TOKENS + 1) * 32 * 4);
    ck_assert_uint_gt(forward->weight_bytes, 0);
    forward->ops->free(forward);
}
END_TEST

static void count(void *ctx)
{
    ++*(unsigned *)ctx;
}

START_TEST(a_step_gives_a_sign_of_progress_for_each_layer)
{
    struct forward_script_config shape;
    const uint32_t id = 5, previous = STEP_NO_TOKEN, value_id = TINY_MODEL_TOKENS, zero = 0;
    const struct step_sequence sequence = {.n_rows = 1,
                                           .blocks = &zero,
                                           .slot_of_position = &zero,
                                           .value_id_of_slot = &value_id,
                                           .n_slots = 1};
    const struct step_batch batch = {1, &id, &previous, &value_id, &zero, 1, &sequence, 1, &zero};
    struct forward *forward;
    struct error err = {0};
    unsigned n_signs = 0;
    float *logits;

    forward_script_defaults(&shape);
    forward = make_forward(&shape);
    forward->on_progress = count;
    forward->progress_ctx = &n_signs;
    OK(forward->ops->step(forward, &batch, &logits, &err));
    ck_assert_uint_eq(n_signs, 4);
    forward->ops->free(forward);
}
END_TEST

START_TEST(a_bank_smaller_than_the_vocabulary_is_refused)
{
    struct backend_config config = {.name = "cpu", .n_threads = 1};
    struct gpt_config gpt_config = {8, 8, TENSOR_TYPE_LIMIT, NULL, NULL};
    const uint8_t tables[TINY_MODEL_TOKENS + 2] = {0};
    struct sampler_vocab vocab = {TINY_MODEL_TOKENS + 2, TINY_MODEL_TOKENS + 2, tables, tables};
    struct checkpoint *checkpoint;
    struct backend *backend;
    struct backend_cache_shape shape;
    struct forward *forward = NULL;
    struct error err = {0};
    struct gpt *gpt;

    OK(checkpoint_open(model_path, &checkpoint, &err));
    OK(backend_open(&config, &backend, &err));
    OK(gpt_new(checkpoint, backend, &gpt_config, &gpt, &err));
    gpt_cache_shape(gpt, 4, 16, TENSOR_F32, TENSOR_F32, &shape);
    ck_assert_int_eq(forward_gpt_new(gpt, backend, &shape, &vocab, 8, 8, &forward, &err),
                     STATUS_BAD_CONFIG);
    ck_assert_ptr_null(forward);
    gpt_free(gpt);
    backend_close(backend);
    checkpoint_close(checkpoint);
}
END_TEST

static void add_cases(Suite *suite)
{
    TCase *same = tcase_create("the same bits"), *shape = tcase_create("shape");

    tcase_add_checked_fixture(same, make_model, remove_model);
    tcase_add_loop_test(same, a_request_gives_the_same_bits_however_it_was_run, 0,
                        (int)(sizeof(caches) / sizeof(*caches)));
    tcase_set_timeout(same, 240);
    suite_add_tcase(suite, same);
    tcase_add_checked_fixture(shape, make_model, remove_model);
    tcase_add_test(shape, the_cache_is_described_as_it_is);
    tcase_add_test(shape, a_step_gives_a_sign_of_progress_for_each_layer);
    tcase_add_test(shape, a_bank_smaller_than_the_vocabulary_is_refused);
    suite_add_tcase(suite, shape);
}

CHECK_MAIN("engine/forward_gpt", add_cases)
