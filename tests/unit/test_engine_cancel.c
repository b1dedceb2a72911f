#include "config.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/check_main.h"
#include "support/engine_harness.h"
#include "tellerd/base/clock.h"
#include "tellerd/engine/engine.h"

enum { P = 16 };

/* A request that runs until the context ends. */
static struct gen_request *endless(uint32_t seed, uint32_t n_prompt)
{
    struct gen_request *r = harness_request(seed, n_prompt, 400);

    r->sampling.ignore_eos = true;
    return r;
}

static void expect_rest(struct harness *h)
{
    struct engine_stats stats = harness_stats(h);

    ck_assert_uint_eq(stats.n_running + stats.n_waiting + stats.n_preempted, 0);
    ck_assert_uint_eq(stats.n_sequences, 0);
    ck_assert_uint_eq(stats.n_blocks_used, 0);
}

static void expect_cancelled(const struct outcome *o)
{
    ck_assert_int_eq(o->reasons[0], FINISH_CANCELLED);
    ck_assert_int_eq(o->reason, FINISH_CANCELLED);
    ck_assert_int_eq(o->status, STATUS_OK);
}

/* --- cancel ------------------------------------------------------------------------------ */

START_TEST(a_cancel_in_decode_frees_its_blocks_at_once) /* CAN-01, CAN-03 */
{
    struct harness h;
    uint64_t id, n_steps;
    struct outcome *o;

    harness_init(&h);
    harness_open(&h);
    harness_close_gate(&h);
    id = harness_submit(&h, endless(1, 30));
    harness_wait_held(&h);
    harness_steps(&h, 3);
    n_steps = h.n_steps;
    ck_assert_uint_gt(harness_stats(&h).n_blocks_used, 0);
    engine_cancel(h.engine, id);
    harness_let_go(&h);
    o = harness_wait(&h, id);
    expect_cancelled(o);
    ck_assert_uint_eq(h.n_steps, n_steps + 1); /* the one it stood in */
    expect_rest(&h);
    harness_close(&h);
}
END_TEST

START_TEST(a_cancel_in_prefill_stops_it_at_the_next_chunk) /* CAN-02 */
{
    struct harness h;
    uint64_t id;
    struct outcome *o, *alone;

    harness_init(&h);
    h.config.prefill_chunk = 24;
    harness_open(&h);
    harness_close_gate(&h);
    id = harness_submit(&h, harness_request(1, 500, 10));
    harness_wait_held(&h);
    engine_cancel(h.engine, id);
    harness_let_go(&h);
    o = harness_wait(&h, id);
    expect_cancelled(o);
    ck_assert_uint_eq(o->n_tokens[0], 0);
    ck_assert_uint_eq(h.n_rows, 24);
    expect_rest(&h);
    /* one full block stays in the cache, the half-filled one does not; the text is the cold one */
    ck_assert_uint_eq(harness_stats(&h).n_blocks_cached, 1);
    alone = harness_alone(&h, harness_request(1, 500, 10));
    o = harness_wait(&h, harness_submit(&h, harness_request(1, 500, 10)));
    ck_assert_uint_eq(o->n_cached, P);
    harness_same(o, alone);
    free(alone);
    harness_close(&h);
}
END_TEST

START_TEST(a_request_cancelled_in_the_queue_never_runs) /* CAN-04 */
{
    struct harness h;
    uint64_t a, b, seen;
    uint32_t marker = 255, prompt[20];

    for (int i = 0; i < 20; i++)
        prompt[i] = marker;
    harness_init(&h);
    h.config.max_sequences = 1;
    harness_open(&h);
    harness_close_gate(&h);
    a = harness_submit(&h, endless(1, 30));
    harness_wait_held(&h);
    b = harness_submit(&h, harness_request_of(prompt, 20, 10));
    ck_assert_uint_eq(harness_stats(&h).n_waiting, 1);
    engine_cancel(h.engine, b);
    harness_let_go(&h);
    expect_cancelled(harness_wait(&h, b));
    ck_assert(!harness_outcome(&h, b)->is_started);
    ck_assert_uint_eq(harness_stats(&h).n_waiting, 0);
    seen = harness_rows_of(&h, marker);
    harness_wait_tokens(&h, a, 50);
    engine_cancel(h.engine, a);
    harness_wait(&h, a);
    ck_assert_uint_le(seen, harness_rows_of(&h, marker));
    ck_assert_uint_eq(harness_stats(&h).n_prompt_tokens, 30);
    expect_rest(&h);
    harness_close(&h);
}
END_TEST

START_TEST(a_cancel_of_a_preempted_request_ends_it)
{
    struct harness h;
    uint64_t a, b;

    harness_init(&h);
    h.script.n_blocks = 10;
    harness_open(&h);
    harness_close_gate(&h);
    a = harness_submit(&h, endless(1, 20));
    b = harness_submit(&h, endless(2, 20));
    harness_wait_held(&h);
    while (harness_stats(&h).n_preemptions == 0)
        harness_steps(&h, 1);
    ck_assert_uint_eq(harness_stats(&h).n_preempted + harness_stats(&h).n_running, 2);
    engine_cancel(h.engine, b);
    harness_let_go(&h);
    expect_cancelled(harness_wait(&h, b));
    harness_wait(&h, a);
    expect_rest(&h);
    harness_close(&h);
}
END_TEST

START_TEST(a_cancel_in_the_step_of_the_natural_end_is_ignored) /* CAN-06 */
{
    struct harness h;
    uint64_t id;
    struct outcome *o;

    harness_init(&h);
    h.has_metrics = true;
    h.script.eog = STEP_NO_TOKEN;
    harness_open(&h);
    harness_close_gate(&h);
    id = harness_submit(&h, harness_request(1, 10, 1));
    harness_wait_held(&h);
    engine_cancel(h.engine, id); /* the step that ends it is being computed */
    engine_cancel(h.engine, id);
    harness_let_go(&h);
    o = harness_wait(&h, id);
    ck_assert_int_eq(o->reason, FINISH_LENGTH);
    ck_assert_uint_eq(o->n_tokens[0], 1);
    engine_cancel(h.engine, id);
    engine_cancel(h.engine, 12345);
    engine_stop_choice(h.engine, id, 0);
    /* the engine lives, and nothing more was said of the request */
    harness_wait(&h, harness_submit(&h, harness_request(2, 10, 3)));
    expect_rest(&h);
    harness_close(&h);
}
END_TEST

START_TEST(cancelling_one_leaves_the_others_alone) /* CAN-07 */
{
    struct harness h;
    struct outcome *alone;
    uint64_t a, b;

    harness_init(&h);
    harness_open(&h);
    alone = harness_alone(&h, endless(2, 33));
    harness_close_gate(&h);
    a = harness_submit(&h, endless(1, 30));
    b = harness_submit(&h, endless(2, 33));
    harness_wait_held(&h);
    harness_steps(&h, 3);
    engine_cancel(h.engine, a);
    harness_let_go(&h);
    expect_cancelled(harness_wait(&h, a));
    harness_same(harness_wait(&h, b), alone);
    free(alone);
    harness_close(&h);
}
END_TEST

START_TEST(a_cancel_after_one_choice_ended_ends_the_rest) /* REQ-13 */
{
    struct harness h;
    struct gen_request *r = endless(1, 30);
    struct outcome *o;
    uint64_t id;

    harness_init(&h);
    harness_open(&h);
    r->n_choices = 3;
    harness_close_gate(&h);
    id = harness_submit(&h, r);
    harness_wait_held(&h);
    harness_steps(&h, 4);
    engine_stop_choice(h.engine, id, 1);
    harness_steps(&h, 2);
    engine_cancel(h.engine, id);
    harness_let_go(&h);
    o = harness_wait(&h, id);
    ck_assert_uint_eq(o->n_tokens[1], 5); /* the step it stood in counts */
    ck_assert_uint_eq(o->n_tokens[0], 7);
    ck_assert_int_eq(o->reasons[1], FINISH_STOP);
    expect_cancelled(o);
    ck_assert_int_eq(o->reasons[2], FINISH_CANCELLED);
    expect_rest(&h);
    harness_close(&h);
}
END_TEST

START_TEST(cancel_reaches_parked_and_waiting_choices)
{
    struct harness h;
    struct gen_request *r;
    uint64_t id;

    harness_init(&h);
    h.config.max_sequences = 2;
    h.config.prefill_chunk = 16;
    harness_open(&h);
    for (int started = 0; started < 2; started++) {
        r = endless(1, 100);
        r->n_choices = 5;
        r->no_prefix_cache = true;
        harness_close_gate(&h);
        id = harness_submit(&h, r);
        harness_wait_held(&h); /* in the first chunk: four are parked */
        if (started)
            harness_steps(&h, 9); /* three wait for a place */
        engine_cancel(h.engine, id);
        harness_let_go(&h);
        expect_cancelled(harness_wait(&h, id));
        expect_rest(&h);
    }
    harness_close(&h);
}
END_TEST

START_TEST(a_choice_can_be_stopped_in_any_state)
{
    struct harness h;
    struct gen_request *r;
    struct outcome *o;
    uint64_t id;

    harness_init(&h);
    h.config.prefill_chunk = 16;
    harness_open(&h);
    /* choice 0 in prefill, with its siblings parked: they go on without it */
    r = harness_request(1, 100, 20);
    r->n_choices = 3;
    harness_close_gate(&h);
    id = harness_submit(&h, r);
    harness_wait_held(&h);
    engine_stop_choice(h.engine, id, 0);
    engine_stop_choice(h.engine, id, 2);
    harness_let_go(&h);
    o = harness_wait(&h, id);
    ck_assert_int_eq(o->reasons[0], FINISH_STOP);
    ck_assert_int_eq(o->reasons[2], FINISH_STOP);
    ck_assert_uint_eq(o->n_tokens[0] + o->n_tokens[2], 0);
    ck_assert_uint_gt(o->n_tokens[1], 0);
    /* in decode */
    harness_close_gate(&h);
    id = harness_submit(&h, endless(2, 20));
    harness_wait_held(&h);
    harness_steps(&h, 4);
    engine_stop_choice(h.engine, id, 7);
    engine_stop_choice(h.engine, id, 0);
    harness_let_go(&h);
    o = harness_wait(&h, id);
    ck_assert_int_eq(o->reason, FINISH_STOP);
    expect_rest(&h);
    harness_close(&h);
}
END_TEST

/* --- queue ------------------------------------------------------------------------------- */

START_TEST(a_full_queue_refuses_at_once_and_serves_the_rest_in_order) /* OPS-08 */
{
    struct harness h;
    struct error err = {0};
    uint64_t ids[9];

    harness_init(&h);
    h.config.max_sequences = 1;
    h.config.max_queued = 8;
    harness_open(&h);
    harness_close_gate(&h);
    ids[0] = harness_submit(&h, harness_request(1, 10, 5));
    harness_wait_held(&h); /* it has left the queue */
    for (uint32_t i = 1; i <= 8; i++)
        ids[i] = harness_submit(&h, harness_request(i, 10, 5));
    for (int i = 0; i < 20; i++) {
        harness_refuse(&h, harness_request(1, 10, 5), STATUS_QUEUE_FULL, &err);
        ck_assert_uint_ge(err.retry_after_s, 1);
        ck_assert_uint_eq(harness_stats(&h).n_waiting, 8);
    }
    harness_let_go(&h);
    harness_wait_all(&h);
    for (uint32_t i = 0; i <= 8; i++)
        ck_assert_uint_eq(harness_outcome(&h, ids[i])->done_number, i);
    /* there is room again */
    harness_wait(&h, harness_submit(&h, harness_request(1, 10, 5)));
    harness_close(&h);
}
END_TEST

START_TEST(the_queue_is_bounded_in_tokens_too_and_bounds_can_change)
{
    struct harness h;
    uint64_t id;

    harness_init(&h);
    h.config.max_sequences = 1;
    h.config.max_queued_tokens = 100;
    harness_open(&h);
    harness_close_gate(&h);
    id = harness_submit(&h, endless(1, 10));
    harness_wait_held(&h);
    harness_submit(&h, harness_request(1, 300, 1)); /* the first may be longer than the bound */
    harness_refuse(&h, harness_request(2, 1, 1), STATUS_QUEUE_FULL, NULL);
    engine_set_limits(h.engine, 1000, 0);
    harness_submit(&h, harness_request(2, 300, 1));
    engine_set_limits(h.engine, 2, 0);
    harness_refuse(&h, harness_request(2, 1, 1), STATUS_QUEUE_FULL, NULL);
    harness_let_go(&h);
    engine_cancel(h.engine, id);
    harness_wait_all(&h);
    harness_close(&h);
}
END_TEST

START_TEST(a_queue_deadline_that_passes_ends_the_request_unstarted)
{
    struct harness h;
    struct gen_request *r;
    uint64_t a, late, patient;

    harness_init(&h);
    h.config.max_sequences = 1;
    harness_open(&h);
    harness_close_gate(&h);
    a = harness_submit(&h, endless(1, 10));
    harness_wait_held(&h);
    r = harness_request(2, 10, 5);
    r->n_choices = 2;
    r->queue_deadline_ns = clock_ns();
    late = harness_submit(&h, r);
    r = harness_request(3, 10, 5);
    r->queue_deadline_ns = clock_ns() + 3600000000000u;
    patient = harness_submit(&h, r);
    harness_let_go(&h);
    harness_wait(&h, late);
    ck_assert_int_eq(harness_outcome(&h, late)->status, STATUS_QUEUE_TIMEOUT);
    ck_assert_int_eq(harness_outcome(&h, late)->reasons[1], FINISH_ERROR);
    ck_assert(!harness_outcome(&h, late)->is_started);
    engine_cancel(h.engine, a);
    ck_assert_int_ne(harness_wait(&h, patient)->reason, FINISH_ERROR);
    harness_wait_all(&h);
    harness_close(&h);
}
END_TEST

START_TEST(a_queue_deadline_means_nothing_once_started)
{
    const struct timespec second = {.tv_sec = 1};
    struct harness h;
    struct gen_request *r = harness_request(2, 20, 90);
    uint64_t a, b, c;

    harness_init(&h);
    h.script.n_blocks = 10;
    h.script.eog = STEP_NO_TOKEN;
    harness_open(&h);
    harness_close_gate(&h);
    a = harness_submit(&h, harness_request(1, 20, 90));
    r->queue_deadline_ns = clock_ns() + 900000000;
    b = harness_submit(&h, r);
    harness_wait_held(&h);
    harness_steps(&h, 1); /* both have started */
    nanosleep(&second, NULL);
    while (harness_stats(&h).n_preemptions == 0)
        harness_steps(&h, 1);
    r = harness_request(3, 20, 90);
    r->queue_deadline_ns = 1; /* makes the engine look at all deadlines */
    c = harness_submit(&h, r);
    harness_let_go(&h);
    ck_assert_int_eq(harness_wait(&h, c)->status, STATUS_QUEUE_TIMEOUT);
    ck_assert_int_eq(harness_wait(&h, a)->reason, FINISH_LENGTH);
    ck_assert_int_eq(harness_wait(&h, b)->reason, FINISH_LENGTH);
    harness_close(&h);
}
END_TEST

START_TEST(draining_lets_what_runs_end_and_may_fail_what_waits)
{
    for (int fail_waiting = 0; fail_waiting < 2; fail_waiting++) {
        struct harness h;
        uint64_t running, waiting;

        harness_init(&h);
        h.config.max_sequences = 1;
        harness_open(&h);
        harness_close_gate(&h);
        running = harness_submit(&h, harness_request(1, 10, 20));
        harness_wait_held(&h);
        waiting = harness_submit(&h, harness_request(2, 10, 20));
        engine_drain(h.engine, fail_waiting);
        harness_refuse(&h, harness_request(3, 10, 20), STATUS_SHUTTING_DOWN, NULL);
        harness_let_go(&h);
        ck_assert_int_ne(harness_wait(&h, running)->reason, FINISH_ERROR);
        harness_wait(&h, waiting);
        ck_assert_int_eq(harness_outcome(&h, waiting)->status,
                         fail_waiting ? STATUS_SHUTTING_DOWN : STATUS_OK);
        harness_close(&h);
    }
}
END_TEST

START_TEST(freeing_the_engine_answers_everything_that_is_left)
{
    struct harness h;

    harness_init(&h);
    h.config.max_sequences = 1;
    harness_open(&h);
    harness_close_gate(&h);
    harness_submit(&h, endless(1, 10));
    harness_wait_held(&h);
    harness_submit(&h, endless(2, 10));
    harness_submit(&h, endless(3, 10));
    harness_let_go(&h);
    harness_close(&h); /* checks that all three had their last event */
}
END_TEST

START_TEST(an_engine_that_never_started_answers_too)
{
    struct forward_script_config script;
    struct engine_config config = {
        .max_batch_tokens = 64, .max_sequences = 4, .max_queued = 4, .n_context = 256};
    struct queue *events = queue_new(0, NULL, NULL);
    struct gen_request *r = harness_request(1, 10, 5);
    struct forward *forward;
    struct engine *engine;
    struct queue_node *list;
    uint32_t n_done = 0;

    forward_script_defaults(&script);
    forward = forward_script_new(&script);
    ck_assert_int_eq(engine_new(&config, forward, events, NULL, "m", &engine, NULL), STATUS_OK);
    r->id = 1;
    ck_assert_int_eq(engine_submit(engine, r, NULL), STATUS_OK);
    engine_free(engine);
    list = queue_drain(events);
    while (list) {
        struct engine_event *event = (struct engine_event *)list;

        n_done += event->kind == EVENT_DONE && event->error.status == STATUS_SHUTTING_DOWN;
        list = list->next;
        free(event);
    }
    ck_assert_uint_eq(n_done, 1);
    queue_free(events, NULL);
    forward->ops->free(forward);
}
END_TEST

START_TEST(configurations_that_cannot_work_are_refused)
{
    const struct engine_config good = {
        .max_batch_tokens = 64, .max_sequences = 4, .max_queued = 4, .n_context = 256};
    struct engine_config bad[] = {good, good, good, good};
    struct forward_script_config script;
    struct queue *events = queue_new(0, NULL, NULL);
    struct forward *forward;
    struct engine *engine = NULL;
    struct error err = {0};

    bad[0].max_batch_tokens = 0;
    bad[1].max_sequences = 0;
    bad[2].max_queued = 0;
    bad[3].n_context = 1;
    forward_script_defaults(&script);
    forward = forward_script_new(&script);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(engine_new(&bad[i], forward, events, NULL, "m", &engine, &err),
                         STATUS_BAD_CONFIG);
    forward->ops->free(forward);
    script.n_blocks = 1;
    forward = forward_script_new(&script);
    ck_assert_int_eq(engine_new(&good, forward, events, NULL, "m", &engine, &err),
                     STATUS_BAD_CONFIG);
    ck_assert_ptr_null(engine);
    forward->ops->free(forward);
    queue_free(events, NULL);
}
END_TEST

/* --- failures ---------------------------------------------------------------------------- */

START_TEST(bad_numbers_fail_one_request_and_leave_no_trace) /* ENG-12 */
{
    enum { MARKER = 200 };
    struct harness h;
    struct gen_request *bad;
    struct outcome *alone, *o;
    uint64_t id, other;

    harness_init(&h);
    h.forward = forward_script_new(&h.script);
    /* the marker is the prompt's last token, so the row behind it is the first to be sampled */
    forward_script_fault(h.forward, FORWARD_FAULT_NAN, UINT64_MAX, MARKER, 1, 0);
    harness_open(&h);
    alone = harness_alone(&h, endless(2, 40));
    bad = harness_request(1, 50, 20);
    for (uint32_t i = 0; i < 49; i++)
        bad->prompt[i] %= MARKER;
    bad->prompt[49] = MARKER;
    bad->n_choices = 2;
    harness_close_gate(&h);
    other = harness_submit(&h, endless(2, 40));
    for (uint32_t i = 0; i < 40; i++)
        ck_assert_uint_ne(harness_token(2, i), MARKER);
    id = harness_submit(&h, harness_copy(bad));
    harness_let_go(&h);
    o = harness_wait(&h, id);
    ck_assert_int_eq(o->status, STATUS_BAD_LOGITS);
    ck_assert_int_eq(o->reasons[0], FINISH_ERROR);
    ck_assert_int_eq(o->reasons[1], FINISH_ERROR);
    ck_assert_uint_eq(o->n_tokens[0], 0);
    harness_same(harness_wait(&h, other), alone);
    /* nothing of it is in the prefix cache, and the same prompt now works */
    o = harness_wait(&h, harness_submit(&h, harness_copy(bad)));
    ck_assert_uint_eq(o->n_cached, 0);
    ck_assert_int_ne(o->reason, FINISH_ERROR);
    gen_request_free(bad);
    free(alone);
    expect_rest(&h);
    harness_close(&h);
}
END_TEST

START_TEST(a_failed_step_fails_its_sequences_only)
{
    struct harness h;
    struct outcome *alone, *o;
    uint64_t a, b, waiting;

    harness_init(&h);
    h.config.max_sequences = 2;
    h.forward = forward_script_new(&h.script);
    forward_script_fault(h.forward, FORWARD_FAULT_INTERNAL, 3, STEP_NO_TOKEN, 1, 0);
    harness_open(&h);
    alone = harness_alone(&h, harness_request(3, 40, 30));
    harness_close_gate(&h);
    a = harness_submit(&h, endless(1, 30));
    b = harness_submit(&h, endless(2, 30));
    waiting = harness_submit(&h, harness_request(3, 40, 30));
    harness_let_go(&h);
    o = harness_wait(&h, a);
    ck_assert_int_eq(o->status, STATUS_INTERNAL);
    ck_assert_uint_ge(o->n_tokens[0], 2);
    ck_assert_int_eq(harness_wait(&h, b)->status, STATUS_INTERNAL);
    harness_same(harness_wait(&h, waiting), alone);
    ck_assert(!harness_stats(&h).failed);
    expect_rest(&h);
    free(alone);
    harness_close(&h);
}
END_TEST

START_TEST(a_failed_engine_ends_all_and_takes_nothing_more)
{
    struct harness h;
    uint64_t a, waiting;

    harness_init(&h);
    h.config.max_sequences = 1;
    h.forward = forward_script_new(&h.script);
    forward_script_fault(h.forward, FORWARD_FAULT_ENGINE, 4, STEP_NO_TOKEN, 1, 0);
    harness_open(&h);
    harness_close_gate(&h);
    a = harness_submit(&h, endless(1, 30));
    waiting = harness_submit(&h, harness_request(2, 30, 5));
    harness_let_go(&h);
    harness_wait_tokens(&h, a, 1);
    ck_assert_int_eq(harness_wait(&h, a)->status, STATUS_ENGINE_FAILED);
    ck_assert_int_eq(harness_wait(&h, waiting)->status, STATUS_ENGINE_FAILED);
    ck_assert(harness_stats(&h).failed);
    harness_refuse(&h, harness_request(3, 30, 5), STATUS_ENGINE_FAILED, NULL);
    expect_rest(&h);
    harness_close(&h);
}
END_TEST

START_TEST(the_heartbeat_tells_a_long_step_from_a_frozen_one) /* OPS-10 */
{
    struct harness h;
    uint64_t id, beat;

    harness_init(&h);
    h.forward = forward_script_new(&h.script);
    forward_script_fault(h.forward, FORWARD_FAULT_DELAY, 2, STEP_NO_TOKEN, 1, 1000000000);
    harness_open(&h);
    ck_assert(harness_stats(&h).idle);
    /* frozen: the engine stands in a step and gives no sign */
    harness_close_gate(&h);
    id = harness_submit(&h, endless(1, 30));
    harness_wait_held(&h);
    beat = harness_stats(&h).heartbeat_ns;
    for (int i = 0; i < 1000; i++) {
        sched_yield();
        ck_assert_uint_eq(harness_stats(&h).heartbeat_ns, beat);
        ck_assert(!harness_stats(&h).idle);
    }
    harness_let_go(&h);
    /* a long step that makes progress: step 2 beats several times before it ends */
    for (int n_beats = 0; n_beats < 3;) {
        struct engine_stats stats = harness_stats(&h);

        ck_assert_uint_le(stats.n_steps, 2);
        n_beats += stats.n_steps == 2 && stats.heartbeat_ns != beat;
        beat = stats.heartbeat_ns;
        sched_yield();
    }
    engine_cancel(h.engine, id);
    harness_wait(&h, id);
    while (!harness_stats(&h).idle)
        sched_yield();
    harness_close(&h);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "cancel", a_cancel_in_decode_frees_its_blocks_at_once,
              a_cancel_in_prefill_stops_it_at_the_next_chunk,
              a_request_cancelled_in_the_queue_never_runs, a_cancel_of_a_preempted_request_ends_it,
              a_cancel_in_the_step_of_the_natural_end_is_ignored,
              cancelling_one_leaves_the_others_alone, a_cancel_after_one_choice_ended_ends_the_rest,
              cancel_reaches_parked_and_waiting_choices, a_choice_can_be_stopped_in_any_state);
    CHECK_ADD(suite, "queue", a_full_queue_refuses_at_once_and_serves_the_rest_in_order,
              the_queue_is_bounded_in_tokens_too_and_bounds_can_change,
              a_queue_deadline_that_passes_ends_the_request_unstarted,
              a_queue_deadline_means_nothing_once_started);
    CHECK_ADD(suite, "life", draining_lets_what_runs_end_and_may_fail_what_waits,
              freeing_the_engine_answers_everything_that_is_left,
              an_engine_that_never_started_answers_too,
              configurations_that_cannot_work_are_refused);
    CHECK_ADD(suite, "failures", bad_numbers_fail_one_request_and_leave_no_trace,
              a_failed_step_fails_its_sequences_only,
              a_failed_engine_ends_all_and_takes_nothing_more,
              the_heartbeat_tells_a_long_step_from_a_frozen_one);
}

CHECK_MAIN("engine/cancel", add_cases)
