#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_main.h"
#include "support/engine_harness.h"
#include "tellerd/base/mem.h"
#include "tellerd/engine/engine.h"

enum { P = 16 }; /* block size of the script's defaults */

/* Submits a copy, waits, compares with the request alone; frees the request. */
static struct outcome *run_and_compare(struct harness *h, struct gen_request *request)
{
    struct outcome *alone = harness_alone(h, harness_copy(request));
    struct outcome *outcome = harness_wait(h, harness_submit(h, request));

    harness_same(outcome, alone);
    free(alone);
    return outcome;
}

/* --- one request ------------------------------------------------------------------------- */

START_TEST(scripted_tokens_come_in_order_and_eog_ends_them)
{
    const uint32_t prompt[3] = {10, 11, 12}, output[4] = {20, 21, 22, 23};
    struct harness h;
    struct outcome *o;

    harness_init(&h);
    h.forward = forward_script_new(&h.script);
    forward_script_emit(h.forward, prompt, 3, output, 4);
    harness_open(&h);
    o = harness_wait(&h, harness_submit(&h, harness_request_of(prompt, 3, 100)));
    /* the end token is delivered and counted (USG-02) */
    ck_assert_uint_eq(o->n_tokens[0], 5);
    ck_assert_mem_eq(o->tokens[0], output, sizeof(output));
    ck_assert_uint_eq(o->tokens[0][4], h.script.eog);
    ck_assert(o->last_is_eog[0]);
    ck_assert_int_eq(o->reasons[0], FINISH_STOP);
    ck_assert_int_eq(o->reason, FINISH_STOP);
    harness_close(&h);
}
END_TEST

START_TEST(max_tokens_stop_ids_and_ignore_eos_end_a_text_as_they_say)
{
    const uint32_t prompt[2] = {10, 11}, output[4] = {20, 21, 0, 23};
    struct harness h;
    struct gen_request *r;
    struct outcome *o;

    harness_init(&h);
    h.script.eog_one_in = 0;
    h.forward = forward_script_new(&h.script);
    forward_script_emit(h.forward, prompt, 2, output, 4);
    harness_open(&h);
    o = harness_wait(&h, harness_submit(&h, harness_request_of(prompt, 2, 2)));
    ck_assert_uint_eq(o->n_tokens[0], 2);
    ck_assert(!o->last_is_eog[0]);
    ck_assert_int_eq(o->reasons[0], FINISH_LENGTH);
    o = harness_wait(&h, harness_submit(&h, harness_request_of(prompt, 2, 9)));
    ck_assert_uint_eq(o->n_tokens[0], 3);
    ck_assert_int_eq(o->reasons[0], FINISH_STOP);
    r = harness_request_of(prompt, 2, 9);
    r->sampling.n_stop_ids = 1;
    r->sampling.stop_ids = xmalloc(sizeof(uint32_t));
    r->sampling.stop_ids[0] = 21;
    o = harness_wait(&h, harness_submit(&h, r));
    ck_assert_uint_eq(o->n_tokens[0], 2);
    ck_assert(o->last_is_eog[0]);
    ck_assert_int_eq(o->reasons[0], FINISH_STOP);
    r = harness_request_of(prompt, 2, 9);
    r->sampling.ignore_eos = true;
    o = harness_wait(&h, harness_submit(&h, r));
    ck_assert_uint_eq(o->n_tokens[0], 9);
    ck_assert_int_eq(o->reasons[0], FINISH_LENGTH);
    /* an end token on the last place is a stop */
    o = harness_wait(&h, harness_submit(&h, harness_request_of(prompt, 2, 3)));
    ck_assert_uint_eq(o->n_tokens[0], 3);
    ck_assert_int_eq(o->reasons[0], FINISH_STOP);
    harness_close(&h);
}
END_TEST

START_TEST(no_tokens_asked_for_computes_the_prompt_only)
{
    struct harness h;
    struct gen_request *r = harness_request(1, 40, 0);
    struct outcome *o;

    harness_init(&h);
    harness_open(&h);
    r->n_prompt_logprobs = 1;
    o = harness_wait(&h, harness_submit(&h, r));
    ck_assert_uint_eq(o->n_tokens[0], 0);
    ck_assert_uint_eq(o->n_prompt_logprobs, 40);
    ck_assert_int_eq(o->reasons[0], FINISH_LENGTH);
    r = harness_request(1, 40, 0);
    r->n_choices = 3;
    o = harness_wait(&h, harness_submit(&h, r));
    ck_assert_int_eq(o->reasons[2], FINISH_LENGTH);
    harness_close(&h);
}
END_TEST

START_TEST(padded_rows_and_control_tokens_are_not_sampled) /* ENG-13 */
{
    struct harness h;
    struct outcome *o;

    harness_init(&h); /* the script makes the padded rows the best of all */
    h.script.eog = STEP_NO_TOKEN;
    harness_open(&h);
    for (uint32_t seed = 0; seed < 4; seed++) {
        struct gen_request *r = harness_request(seed, 10, 50);

        r->sampling.temperature = seed % 2 ? 2 : 0;
        o = harness_wait(&h, harness_submit(&h, r));
        ck_assert_uint_eq(o->n_tokens[0], 50);
        for (uint32_t i = 0; i < 50; i++)
            ck_assert_uint_lt(o->tokens[0][i], h.script.n_tokens);
    }
    harness_close(&h);
}
END_TEST

START_TEST(parameters_do_not_live_on_in_the_next_request) /* REQ-19 */
{
    struct harness h;
    struct gen_request *r;

    harness_init(&h);
    h.config.max_sequences = 1;
    h.config.prefix_cache = false;
    harness_open(&h);
    r = harness_request(5, 20, 30);
    r->sampling.n_bias = 1;
    r->sampling.bias = xmalloc(sizeof(*r->sampling.bias));
    r->sampling.bias[0].id = h.script.eog;
    r->sampling.bias[0].bias = -100;
    r->sampling.presence_penalty = 2;
    r->sampling.temperature = 1.5F;
    r->sampling.seed = 1;
    r->sampling.logprobs = true;
    r->n_prompt_logprobs = 2;
    run_and_compare(&h, r);
    run_and_compare(&h, harness_request(5, 20, 30));
    harness_close(&h);
}
END_TEST

/* --- context ----------------------------------------------------------------------------- */

START_TEST(prompts_at_the_context_border) /* ENG-10, ENG-11 */
{
    struct harness h;
    struct gen_request *r;
    struct outcome *o;
    struct error err = {0};

    harness_init(&h);
    h.config.n_context = 100;
    h.config.max_batch_tokens = 64;
    h.script.eog = STEP_NO_TOKEN;
    harness_open(&h);
    ck_assert_uint_eq(engine_context(h.engine), 100);
    o = harness_wait(&h, harness_submit(&h, harness_request(1, 99, 50)));
    ck_assert_uint_eq(o->n_tokens[0], 1);
    ck_assert_int_eq(o->reasons[0], FINISH_LENGTH);
    o = harness_wait(&h, harness_submit(&h, harness_request(1, 90, UINT32_MAX)));
    ck_assert_uint_eq(o->n_tokens[0], 10);
    ck_assert_int_eq(o->reasons[0], FINISH_LENGTH);
    h.n_rows = 0;
    for (uint32_t n = 100; n <= 300; n += n < 101 ? 1 : 199) {
        harness_refuse(&h, harness_request(1, n, 1), STATUS_CONTEXT_LENGTH, &err);
        ck_assert_uint_eq(err.n_prompt_tokens, n);
        ck_assert_uint_eq(err.n_ctx, 100);
    }
    ck_assert_uint_eq(h.n_rows, 0); /* no work was done for them */
    r = harness_request(1, 10, 1);
    r->prompt[3] = h.script.n_logits;
    harness_refuse(&h, r, STATUS_INVALID, &err);
    harness_close(&h);
}
END_TEST

START_TEST(the_context_is_lowered_to_what_the_pool_holds) /* ENG-08 */
{
    struct harness h;
    struct outcome *o;
    uint64_t id;

    harness_init(&h);
    h.script.n_blocks = 8;
    h.script.eog = STEP_NO_TOKEN;
    harness_open(&h);
    ck_assert_uint_eq(engine_context(h.engine), 7 * P);
    harness_refuse(&h, harness_request(1, 7 * P, 1), STATUS_CONTEXT_LENGTH, NULL);
    /* most of the pool, and more asked for than there is: ends with "length" */
    id = harness_submit(&h, harness_request(1, 6 * P, 500));
    o = harness_wait(&h, harness_submit(&h, harness_request(2, 5, 5)));
    ck_assert_int_eq(o->reasons[0], FINISH_LENGTH);
    o = harness_wait(&h, id);
    ck_assert_uint_eq(o->n_tokens[0], P);
    ck_assert_int_eq(o->reasons[0], FINISH_LENGTH);
    harness_close(&h);
}
END_TEST

/* --- chunks and batches ------------------------------------------------------------------ */

static const uint32_t border_lengths[] = {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 100};

START_TEST(prompt_lengths_at_chunk_and_block_borders) /* ENG-07 */
{
    struct harness h;
    uint64_t busy = 0;

    harness_init(&h);
    h.config.prefill_chunk = 32;
    h.config.max_batch_tokens = 40;
    h.config.prefix_cache = false;
    harness_open(&h);
    if (_i) { /* beside a sequence that eats of the row budget */
        struct gen_request *r = harness_request(999, 20, 500);

        r->sampling.ignore_eos = true;
        busy = harness_submit(&h, r);
    }
    for (size_t i = 0; i < sizeof(border_lengths) / sizeof(*border_lengths); i++) {
        struct gen_request *r = harness_request((uint32_t)i, border_lengths[i], 20);

        r->n_prompt_logprobs = 1;
        r->sampling.logprobs = true;
        run_and_compare(&h, r);
    }
    if (busy)
        engine_cancel(h.engine, busy);
    harness_wait_all(&h);
    harness_close(&h);
}
END_TEST

START_TEST(a_request_gives_the_same_alone_and_in_any_batch) /* ENG-01 */
{
    enum { N = 12 };
    struct harness h;
    struct outcome *alone;
    uint64_t ids[N];

    harness_init(&h);
    h.config.prefill_chunk = 16;
    harness_open(&h);
    alone = harness_alone(&h, harness_request(7, 45, 64));
    for (int i = 0; i < N; i++) {
        ids[i] = harness_submit(&h, harness_request(7, 45, 64));
        if (i % 3 == 0)
            harness_wait_tokens(&h, ids[i], 1); /* ragged arrival */
        harness_submit(&h, harness_request(100 + (uint32_t)i, 3 + (uint32_t)i * 11, 40));
    }
    for (int i = 0; i < N; i++)
        harness_same(harness_wait(&h, ids[i]), alone);
    harness_wait_all(&h);
    free(alone);
    harness_close(&h);
}
END_TEST

START_TEST(prompt_logprobs_fit_few_logit_rows)
{
    struct harness h;
    struct gen_request *r;

    harness_init(&h);
    h.script.max_logit_rows = 8;
    h.config.max_sequences = 8;
    harness_open(&h);
    for (int again = 0; again < 2; again++) {
        r = harness_request(3, 50, 10);
        r->n_prompt_logprobs = 0;
        run_and_compare(&h, r);
    }
    /* also beside others, and although its prefix is cached */
    for (uint32_t i = 0; i < 5; i++)
        harness_submit(&h, harness_request(50 + i, 30, 60));
    r = harness_request(3, 50, 10);
    r->n_prompt_logprobs = 1;
    run_and_compare(&h, r);
    harness_wait_all(&h);
    harness_close(&h);
}
END_TEST

START_TEST(a_seeded_request_draws_its_own_numbers) /* REQ-14 */
{
    struct harness h;
    struct gen_request *a = harness_request(1, 30, 32);
    struct outcome *alone;

    harness_init(&h);
    h.config.max_sequences = 2;
    harness_open(&h);
    a->sampling.temperature = 0.8F;
    a->sampling.seed = 42;
    alone = harness_alone(&h, harness_copy(a));
    for (int i = 0; i < 4; i++) {
        struct gen_request *b = harness_request(2, 20, 60);
        uint64_t id;

        b->sampling.temperature = 1;
        b->sampling.seed = (uint64_t)i * 7919;
        harness_submit(&h, b);
        if (i == 2)
            harness_submit(&h, harness_request(3, 20, 60)); /* a has to queue */
        id = harness_submit(&h, harness_copy(a));
        harness_same(harness_wait(&h, id), alone);
        harness_wait_all(&h);
    }
    gen_request_free(a);
    free(alone);
    harness_close(&h);
}
END_TEST

/* --- prefix cache ------------------------------------------------------------------------ */

START_TEST(a_prompt_that_is_wholly_cached_computes_its_last_token) /* ENG-02 */
{
    static const uint32_t lengths[] = {P, 2 * P, 2 * P - 1, 2 * P + 1};
    struct harness h;

    harness_init(&h);
    harness_open(&h);
    for (uint32_t i = 0; i < 4; i++) {
        for (int again = 0; again < 3; again++) {
            struct gen_request *r = harness_request(i, lengths[i], 20);
            struct outcome *o;

            r->sampling.logprobs = true;
            o = run_and_compare(&h, r);
            ck_assert_uint_eq(o->n_cached, again ? (lengths[i] - 1) / P * P : 0);
        }
    }
    harness_close(&h);
}
END_TEST

START_TEST(a_prompt_that_continues_an_answer_finds_it_cached)
{
    struct harness h;
    struct outcome *first, *second;
    uint32_t prompt[30 + 60 + 3];
    uint64_t id;

    harness_init(&h);
    h.script.eog = STEP_NO_TOKEN;
    harness_open(&h);
    for (uint32_t i = 0; i < 30; i++)
        prompt[i] = harness_token(1, i);
    id = harness_submit(&h, harness_request_of(prompt, 30, 60));
    first = harness_wait(&h, id);
    memcpy(prompt + 30, first->tokens[0], 60 * sizeof(*prompt));
    for (uint32_t i = 90; i < 93; i++)
        prompt[i] = harness_token(2, i);
    second = run_and_compare(&h, harness_request_of(prompt, 93, 10));
    ck_assert_uint_eq(second->n_cached, 80); /* 89 positions were computed */
    harness_close(&h);
}
END_TEST

START_TEST(live_requests_share_a_prefix_and_diverge) /* ENG-03 */
{
    for (int together = 0; together < 2; together++) {
        enum { COMMON = 3 * P + P / 2 };
        struct harness h;
        struct gen_request *a = harness_request(1, COMMON + 5, 40);
        struct gen_request *b = harness_request(1, COMMON + 9, 40), *c;
        struct outcome *alone_a, *alone_b, *o;
        uint64_t id_a, id_b;

        harness_init(&h);
        h.script.eog = STEP_NO_TOKEN;
        harness_open(&h);
        for (uint32_t i = COMMON; i < b->n_prompt; i++)
            b->prompt[i] = harness_token(2, i);
        alone_a = harness_alone(&h, harness_copy(a));
        alone_b = harness_alone(&h, harness_copy(b));
        id_a = harness_submit(&h, a);
        if (!together)
            harness_wait_tokens(&h, id_a, 5);
        id_b = harness_submit(&h, b);
        harness_same(harness_wait(&h, id_a), alone_a);
        harness_same(o = harness_wait(&h, id_b), alone_b);
        if (!together)
            ck_assert_uint_eq(o->n_cached, 3 * P);
        /* C = a's prompt and the first 10 tokens of its answer */
        c = harness_request(1, COMMON + 5, 20);
        c->prompt = xreallocarray(c->prompt, COMMON + 15, sizeof(uint32_t));
        memcpy(c->prompt + COMMON + 5, alone_a->tokens[0], 10 * sizeof(uint32_t));
        c->n_prompt = COMMON + 15;
        run_and_compare(&h, c);
        free(alone_a);
        free(alone_b);
        harness_close(&h);
    }
}
END_TEST

static struct hash128 constant_hash(const void *bytes, size_t len, uint64_t seed)
{
    (void)bytes;
    (void)len;
    (void)seed;
    return (struct hash128){7, 7};
}

START_TEST(recycled_blocks_and_colliding_hashes_hand_out_nothing_foreign) /* ENG-04, ENG-05 */
{
    enum { PROMPTS = 10, ROUNDS = 200 };
    struct harness h;
    struct outcome *alone[PROMPTS];
    unsigned seed = 5;

    harness_init(&h);
    h.script.n_blocks = 8; /* one long prompt */
    if (_i)
        h.config.prefix_hash = constant_hash;
    harness_open(&h);
    for (uint32_t i = 0; i < PROMPTS; i++) {
        /* pairs that differ in the first token only */
        struct gen_request *r = harness_request(i / 2, 80 + i / 2, 8);

        r->prompt[0] = 1 + i % 2;
        alone[i] = harness_alone(&h, r);
    }
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t i = (uint32_t)rand_r(&seed) % PROMPTS;
        struct gen_request *r = harness_request(i / 2, 80 + i / 2, 8);

        r->prompt[0] = 1 + i % 2;
        harness_same(harness_wait(&h, harness_submit(&h, r)), alone[i]);
    }
    for (uint32_t i = 0; i < PROMPTS; i++)
        free(alone[i]);
    harness_close(&h);
}
END_TEST

START_TEST(cache_salts_and_opting_out_keep_prefixes_apart)
{
    struct harness h;
    struct gen_request *r;

    harness_init(&h);
    harness_open(&h);
    harness_wait(&h, harness_submit(&h, harness_request(1, 50, 2)));
    r = harness_request(1, 50, 2);
    r->cache_salt = 9;
    ck_assert_uint_eq(run_and_compare(&h, r)->n_cached, 0);
    r = harness_request(1, 50, 2);
    r->cache_salt = 9;
    ck_assert_uint_eq(run_and_compare(&h, r)->n_cached, 48);
    r = harness_request(1, 50, 2);
    r->no_prefix_cache = true;
    ck_assert_uint_eq(run_and_compare(&h, r)->n_cached, 0);
    ck_assert_uint_eq(run_and_compare(&h, harness_request(1, 50, 2))->n_cached, 48);
    harness_close(&h);
}
END_TEST

/* --- preemption -------------------------------------------------------------------------- */

START_TEST(a_preempted_request_gives_its_undisturbed_text) /* ENG-06 */
{
    for (int sampled = 0; sampled < 2; sampled++) {
        struct harness h;
        struct gen_request *r[2];
        struct outcome *alone[2];
        uint64_t ids[2];

        harness_init(&h);
        h.script.n_blocks = 10;
        h.script.eog = STEP_NO_TOKEN;
        h.config.prefix_cache = _i;
        harness_open(&h);
        for (uint32_t i = 0; i < 2; i++) {
            r[i] = harness_request(i, 20, 80 + i * 20);
            r[i]->sampling.temperature = sampled ? 0.9F : 0;
            r[i]->sampling.seed = 3 + i;
            r[i]->sampling.presence_penalty = sampled ? 1 : 0;
            r[i]->n_prompt_logprobs = 1;
            alone[i] = harness_alone(&h, harness_copy(r[i]));
        }
        harness_close_gate(&h);
        for (uint32_t i = 0; i < 2; i++)
            ids[i] = harness_submit(&h, r[i]);
        harness_let_go(&h);
        for (uint32_t i = 0; i < 2; i++) {
            harness_same(harness_wait(&h, ids[i]), alone[i]);
            free(alone[i]);
        }
        ck_assert_uint_ge(harness_stats(&h).n_preemptions, 1);
        ck_assert_uint_eq(harness_stats(&h).n_prompt_tokens, 40);
        ck_assert_uint_eq(harness_stats(&h).n_generated_tokens, 180);
        harness_close(&h);
    }
}
END_TEST

START_TEST(preemptions_are_bounded_and_the_oldest_goes_on) /* ENG-09 */
{
    struct harness h;
    uint64_t ids[3];

    harness_init(&h);
    h.script.n_blocks = 16; /* all three prompts, one whole text */
    h.script.eog = STEP_NO_TOKEN;
    h.config.prefill_chunk = 32;
    h.config.prefix_cache = _i;
    harness_open(&h);
    harness_close_gate(&h);
    for (uint32_t i = 0; i < 3; i++)
        ids[i] = harness_submit(&h, harness_request(i, 70, 150));
    harness_let_go(&h);
    for (uint32_t i = 0; i < 3; i++) {
        struct outcome *o = harness_wait(&h, ids[i]);

        ck_assert_uint_eq(o->n_tokens[0], 150);
        ck_assert_uint_eq(o->done_number, i); /* in order of arrival */
    }
    ck_assert_uint_ge(harness_stats(&h).n_preemptions, 1);
    ck_assert_uint_le(harness_stats(&h).n_preemptions, 6);
    harness_close(&h);
}
END_TEST

START_TEST(better_priority_is_served_first)
{
    struct harness h;
    struct gen_request *r;
    uint64_t running, low, high;

    harness_init(&h);
    h.config.max_sequences = 1;
    harness_open(&h);
    harness_close_gate(&h);
    running = harness_submit(&h, harness_request(1, 10, 3));
    harness_wait_held(&h);
    low = harness_submit(&h, harness_request(2, 10, 3));
    r = harness_request(3, 10, 3);
    r->priority = -1;
    high = harness_submit(&h, r);
    harness_let_go(&h);
    harness_wait_all(&h);
    ck_assert_uint_eq(harness_outcome(&h, running)->done_number, 0);
    ck_assert_uint_eq(harness_outcome(&h, high)->done_number, 1);
    ck_assert_uint_eq(harness_outcome(&h, low)->done_number, 2);
    harness_close(&h);
}
END_TEST

/* --- several choices --------------------------------------------------------------------- */

START_TEST(choices_share_one_computed_prompt) /* REQ-13 */
{
    static const uint32_t lengths[] = {1, P - 1, P, P + 1, 3 * P, 50};
    struct harness h;

    harness_init(&h);
    harness_open(&h);
    for (uint32_t i = 0; i < 6; i++) {
        struct gen_request *r = harness_request(i, lengths[i], 40);
        struct outcome *o;
        uint64_t rows = h.n_rows;

        r->n_choices = 3;
        /* a bias that would show if it were applied twice to the row that all share */
        r->sampling.n_bias = 100;
        r->sampling.bias = xcalloc(100, sizeof(*r->sampling.bias));
        for (uint32_t k = 0; k < 100; k++)
            r->sampling.bias[k] = (struct logit_bias){10 + k, (float)(k % 7)};
        o = harness_wait(&h, harness_submit(&h, r));
        for (int c = 1; c < 3; c++) { /* greedy: all the same */
            ck_assert_uint_eq(o->n_tokens[c], o->n_tokens[0]);
            ck_assert_mem_eq(o->tokens[c], o->tokens[0], o->n_tokens[0] * sizeof(uint32_t));
        }
        ck_assert_uint_eq(h.n_rows - rows, lengths[i] + 3 * (o->n_tokens[0] - 1));
    }
    harness_close(&h);
}
END_TEST

START_TEST(seeded_choices_differ_and_repeat)
{
    struct harness h;
    struct gen_request *r = harness_request(4, 37, 50);
    struct outcome *first, *o;

    harness_init(&h);
    h.script.eog = STEP_NO_TOKEN;
    harness_open(&h);
    r->n_choices = 4;
    r->sampling.temperature = 1;
    r->sampling.seed = 77;
    first = harness_wait(&h, harness_submit(&h, harness_copy(r)));
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < a; b++)
            ck_assert_mem_ne(first->tokens[a], first->tokens[b], 50 * sizeof(uint32_t));
    o = run_and_compare(&h, harness_copy(r));
    harness_same(o, first);
    gen_request_free(r);
    harness_close(&h);
}
END_TEST

START_TEST(choices_beyond_places_and_blocks_wait_and_come_out_the_same)
{
    for (int few_blocks = 0; few_blocks < 2; few_blocks++) {
        struct harness h;
        struct gen_request *r = harness_request(8, 41, 60);

        harness_init(&h);
        h.script.eog = STEP_NO_TOKEN;
        h.config.prefix_cache = _i;
        if (few_blocks)
            h.script.n_blocks = 8;
        else
            h.config.max_sequences = 2;
        harness_open(&h);
        r->n_choices = 7;
        r->sampling.temperature = 1;
        r->sampling.seed = 5;
        run_and_compare(&h, r);
        r = harness_request(9, 41, 1); /* one token each */
        r->n_choices = 7;
        run_and_compare(&h, r);
        harness_close(&h);
    }
}
END_TEST

static void add_cases(Suite *suite)
{
    TCase *loops = tcase_create("with and without");

    CHECK_ADD(suite, "one request", scripted_tokens_come_in_order_and_eog_ends_them,
              max_tokens_stop_ids_and_ignore_eos_end_a_text_as_they_say,
              no_tokens_asked_for_computes_the_prompt_only,
              padded_rows_and_control_tokens_are_not_sampled,
              parameters_do_not_live_on_in_the_next_request);
    CHECK_ADD(suite, "context", prompts_at_the_context_border,
              the_context_is_lowered_to_what_the_pool_holds);
    CHECK_ADD(suite, "batches", a_request_gives_the_same_alone_and_in_any_batch,
              prompt_logprobs_fit_few_logit_rows, a_seeded_request_draws_its_own_numbers);
    CHECK_ADD(suite, "prefix cache", a_prompt_that_is_wholly_cached_computes_its_last_token,
              a_prompt_that_continues_an_answer_finds_it_cached,
              live_requests_share_a_prefix_and_diverge,
              cache_salts_and_opting_out_keep_prefixes_apart);
    CHECK_ADD(suite, "priorities", better_priority_is_served_first);
    CHECK_ADD(suite, "choices", choices_share_one_computed_prompt,
              seeded_choices_differ_and_repeat);
    tcase_add_loop_test(loops, prompt_lengths_at_chunk_and_block_borders, 0, 2);
    tcase_add_loop_test(loops, recycled_blocks_and_colliding_hashes_hand_out_nothing_foreign, 0, 2);
    tcase_add_loop_test(loops, a_preempted_request_gives_its_undisturbed_text, 0, 2);
    tcase_add_loop_test(loops, preemptions_are_bounded_and_the_oldest_goes_on, 0, 2);
    tcase_add_loop_test(loops, choices_beyond_places_and_blocks_wait_and_come_out_the_same, 0, 2);
    tcase_set_timeout(loops, 120);
    suite_add_tcase(suite, loops);
}

CHECK_MAIN("engine", add_cases)
