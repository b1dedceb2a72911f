#include "config.h"

/*
 * The model over the CPU backend.  What its numbers should be is the matter of
 * tests/oracle/check_logits.py, that they stay the same in any batch of test_forward_gpt.c; here is
 * the rest: binding, bank types, logit rows, memory.  Linked with --wrap, so that the allocator's
 * calls can be counted.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check_main.h"
#include "support/tiny_model.h"
#include "tellerd/model/gpt.h"

static atomic_ulong n_allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);

void *__wrap_malloc(size_t size)
{
    atomic_fetch_add(&n_allocations, 1);
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    atomic_fetch_add(&n_allocations, 1);
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    atomic_fetch_add(&n_allocations, 1);
    return __real_realloc(block, size);
}

enum { MOST = 512, BLOCK = 16, N_BLOCKS = MOST / BLOCK };

/* One sequence over a tiny model. */
struct sequence {
    struct checkpoint *cp;
    struct backend *be;
    struct gpt *gpt;
    struct backend_cache *cache;
    uint32_t ids[MOST], previous[MOST], value_ids[MOST], positions[MOST];
    uint32_t slot_of[MOST], id_of_slot[MOST], blocks[N_BLOCKS], n_slots;
};

static char path[] = "/tmp/test_gpt.XXXXXX";
static struct error err;

#define OK(call) ck_assert_msg((call) == STATUS_OK, "%s", err.text)

static void set_up(void)
{
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    tiny_model_write(path, 3);
}

static void tear_down(void)
{
    unlink(path);
    memcpy(strrchr(path, '.'), ".XXXXXX", 7);
}

static void open_sequence(struct sequence *s, uint32_t n_threads, enum tensor_type bank_type)
{
    struct backend_config config = {.name = "cpu", .n_threads = n_threads};
    struct gpt_config gpt = {.max_rows = MOST, .max_logit_rows = 4, .bank_type = bank_type};
    struct backend_cache_shape shape;
    memset(s, 0, sizeof(*s));
    OK(checkpoint_open(path, &s->cp, &err));
    OK(backend_open(&config, &s->be, &err));
    OK(gpt_new(s->cp, s->be, &gpt, &s->gpt, &err));
    gpt_cache_shape(s->gpt, N_BLOCKS, BLOCK, TENSOR_F32, TENSOR_F32, &shape);
    OK(backend_ops_of(s->be)->cache_new(s->be, &shape, &s->cache, &err));
    for (uint32_t i = 0; i < MOST; i++) {
        uint32_t id = (i * 7 + i / 5) % 50, slot = 0;
        s->ids[i] = id;
        s->previous[i] = i > 0 ? s->ids[i - 1] : STEP_NO_TOKEN;
        s->positions[i] = i;
        s->value_ids[i] = hparams_value_id(gpt_hparams(s->gpt), id, i);
        while (slot < s->n_slots && s->id_of_slot[slot] != s->value_ids[i])
            slot++;
        if (slot == s->n_slots)
            s->id_of_slot[s->n_slots++] = s->value_ids[i];
        s->slot_of[i] = slot;
    }
    for (uint32_t i = 0; i < N_BLOCKS; i++)
        s->blocks[i] = i;
}

static void close_sequence(struct sequence *s)
{
    backend_ops_of(s->be)->cache_free(s->be, s->cache);
    gpt_free(s->gpt);
    backend_close(s->be);
    checkpoint_close(s->cp);
}

static float *step(struct sequence *s, uint32_t done, uint32_t n, const uint32_t *logit_rows,
                   uint32_t n_logit_rows)
{
    struct step_sequence seq = {.n_rows = n,
                                .n_cached = done,
                                .blocks = s->blocks,
                                .slot_of_position = s->slot_of,
                                .value_id_of_slot = s->id_of_slot,
                                .n_slots = s->n_slots};
    struct step_batch batch = {.n_rows = n,
                               .token_ids = s->ids + done,
                               .previous_ids = s->previous + done,
                               .value_ids = s->value_ids + done,
                               .positions = s->positions + done,
                               .n_sequences = 1,
                               .sequences = &seq,
                               .n_logit_rows = n_logit_rows,
                               .logit_rows = logit_rows};
    float *logits = NULL;
    if (gpt_step(s->gpt, s->cache, &batch, &logits, &err)) /* an assertion would allocate */
        ck_abort_msg("%s", err.text);
    return logits;
}

START_TEST(logits_come_for_the_wanted_rows)
{
    struct sequence s;
    static const uint32_t last[] = {39}, some[] = {3, 17, 39};
    float one[TINY_MODEL_TOKENS];
    size_t size = sizeof(one);
    open_sequence(&s, 2, TENSOR_TYPE_LIMIT);
    uint32_t v = gpt_hparams(s.gpt)->n_embedding_rows;
    ck_assert_uint_eq(v, TINY_MODEL_TOKENS);
    memcpy(one, step(&s, 0, 40, last, 1), size);
    const float *three = step(&s, 0, 40, some, 3);
    ck_assert_mem_eq(three + 2 * v, one, size);
    ck_assert(memcmp(three, three + v, size) != 0);
    step(&s, 0, 40, NULL, 0);
    for (uint32_t i = 0; i < v; i++)
        ck_assert(isfinite(one[i]));
    close_sequence(&s);
}
END_TEST

START_TEST(the_cache_has_values_only_where_layers_need_them)
{
    struct sequence s;
    struct backend_cache_shape shape;
    open_sequence(&s, 1, TENSOR_TYPE_LIMIT);
    gpt_cache_shape(s.gpt, 7, 32, TENSOR_Q8_0, TENSOR_BF16, &shape);
    const struct hparams *hp = gpt_hparams(s.gpt);
    ck_assert(shape.n_layers == hp->n_layers && shape.n_blocks == 7 && shape.block_size == 32);
    ck_assert(shape.n_kv_heads == hp->n_kv_heads && shape.head_size == hp->head_size);
    ck_assert(shape.type_k == TENSOR_Q8_0 && shape.type_v == TENSOR_BF16 && shape.has_value_ids);
    for (uint32_t i = 0; i < shape.n_layers; i++)
        ck_assert_int_eq(shape.layer_has_values[i], hp->layers[i].source != VALUE_BANK);
    close_sequence(&s);
}
END_TEST

START_TEST(banks_can_be_kept_in_other_types)
{
    static const uint32_t last[] = {299};
    static const enum tensor_type types[] = {TENSOR_F32, TENSOR_F16, TENSOR_BF16, TENSOR_Q8_0};
    static const double bytes_of[] = {4, 2, 2, 34.0 / 32};
    float exact[TINY_MODEL_TOKENS];
    size_t f32_bytes = 0;
    for (int t = 0; t < 4; t++) {
        struct sequence s;
        size_t weights, banks;
        double off = 0;
        open_sequence(&s, 1, types[t]);
        const float *logits = step(&s, 0, 300, last, 1);
        gpt_bytes(s.gpt, &weights, &banks);
        if (t == 0) {
            memcpy(exact, logits, sizeof(exact));
            f32_bytes = banks;
        }
        for (int i = 0; i < TINY_MODEL_TOKENS; i++)
            off = fmax(off, fabs((double)logits[i] - (double)exact[i]));
        ck_assert_uint_eq(banks, (size_t)((double)f32_bytes * bytes_of[t] / 4));
        ck_assert_msg(t == 0 ? off == 0 : off > 0 && off < 0.1, "%s: %g",
                      tensor_type_name(types[t]), off);
        close_sequence(&s);
    }
}
END_TEST

START_TEST(steps_allocate_nothing)
{
    static const uint32_t last[] = {0};
    for (uint32_t n_threads = 1; n_threads <= 2; n_threads++) {
        struct sequence s;
        open_sequence(&s, n_threads, TENSOR_TYPE_LIMIT);
        step(&s, 0, 250, last, 1); /* the largest step; from 256 positions on values go by slot */
        for (uint32_t i = 250; i < 400; i++)
            step(&s, i, 1, last, 1);
        unsigned long before = atomic_load(&n_allocations);
        for (uint32_t i = 300; i < 400; i++)
            step(&s, i, 1, last, 1);
        ck_assert_uint_eq(atomic_load(&n_allocations) - before, 0);
        close_sequence(&s);
    }
}
END_TEST

static unsigned n_layers_seen;

static void on_layer(void *ctx)
{
    (void)ctx;
    n_layers_seen++;
}

START_TEST(each_layer_of_a_step_is_told)
{
    struct sequence s;
    open_sequence(&s, 1, TENSOR_TYPE_LIMIT);
    gpt_on_layer(s.gpt, on_layer, NULL);
    step(&s, 0, 3, NULL, 0);
    ck_assert_uint_eq(n_layers_seen, gpt_hparams(s.gpt)->n_layers);
    close_sequence(&s);
}
END_TEST

static void add_cases(Suite *suite)
{
    TCase *tcase = tcase_create("a tiny model");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, logits_come_for_the_wanted_rows);
    tcase_add_test(tcase, the_cache_has_values_only_where_layers_need_them);
    tcase_add_test(tcase, banks_can_be_kept_in_other_types);
    tcase_add_test(tcase, steps_allocate_nothing);
    tcase_add_test(tcase, each_layer_of_a_step_is_told);
    suite_add_tcase(suite, tcase);
}

CHECK_MAIN("gpt", add_cases)
