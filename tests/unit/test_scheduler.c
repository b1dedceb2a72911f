#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_main.h"
#include "tellerd/engine/scheduler.h"

/*
 * Plans are checked by tables: a world is a pool, a list of running and a list of waiting
 * sequences; the expected plan is written as text, e.g. "d0 p1:32 +2:16 !3": sequence 0 decodes, 1
 * prefills 32 rows, 2 is admitted with 16 rows, 3 is preempted.
 */
enum { P = 16, MAX = 24, MAX_PROMPT = 4096 };

struct row {
    char state; /* 'd' decode, 'p' prefill, 'w' waiting, 'r' waiting after preemption */
    uint32_t n_ids, n_computed;
    int32_t priority;
    uint32_t tenant;
    uint32_t n_parked;
    uint32_t logits_from; /* 0 = none */
};

#define DECODE(n, ...)                          \
    {                                           \
        .state = 'd', .n_ids = (n), __VA_ARGS__ \
    }
#define PREFILL(n, done, ...)                                         \
    {                                                                 \
        .state = 'p', .n_ids = (n), .n_computed = (done), __VA_ARGS__ \
    }
#define WAIT(n, ...)                            \
    {                                           \
        .state = 'w', .n_ids = (n), __VA_ARGS__ \
    }
#define RESUME(n, ...)                          \
    {                                           \
        .state = 'r', .n_ids = (n), __VA_ARGS__ \
    }

struct world {
    struct scheduler *scheduler;
    struct kv_pool *pool;
    struct sequence seqs[MAX];
    uint32_t n_seqs;
    struct sequence *running[MAX], *waiting[MAX];
    uint32_t n_running, n_waiting;
    uint32_t row_budget;
};

static uint32_t prompt[MAX_PROMPT];

static void world_open(struct world *w, uint32_t n_blocks, struct scheduler_limits limits)
{
    memset(w, 0, sizeof(*w));
    w->pool = kv_pool_new(n_blocks, P);
    w->scheduler = scheduler_new(&limits, n_blocks);
}

static void world_add(struct world *w, struct row row)
{
    struct sequence *seq = &w->seqs[w->n_seqs];

    sequence_init(seq, prompt, row.n_ids - (row.state == 'd'), 400);
    ck_assert_int_eq(sequence_reserve(seq, P, 0), STATUS_OK);
    seq->order = w->n_seqs++;
    seq->priority = row.priority;
    seq->tenant = row.tenant;
    seq->n_parked = row.n_parked;
    if (row.logits_from)
        seq->logits_from = row.logits_from;
    seq->is_resumed = row.state == 'r';
    if (row.state == 'w' || row.state == 'r') {
        w->waiting[w->n_waiting++] = seq;
        return;
    }
    w->running[w->n_running++] = seq;
    sequence_move(seq, SEQUENCE_PREFILL);
    if (row.state == 'p') {
        ck_assert(sequence_grow(seq, w->pool, sequence_blocks_wanted(seq, P)));
        sequence_advance(seq, w->pool, NULL, row.n_computed);
        return;
    }
    sequence_move(seq, SEQUENCE_DECODE);
    ck_assert(sequence_grow(seq, w->pool, (seq->n_ids + P - 1) / P));
    sequence_advance(seq, w->pool, NULL, seq->n_ids);
    sequence_append(seq, 1);
}

static int by_waiting(const void *a, const void *b)
{
    return scheduler_compare_waiting(*(struct sequence *const *)a, *(struct sequence *const *)b);
}

static int by_running(const void *a, const void *b)
{
    return scheduler_compare_running(*(struct sequence *const *)a, *(struct sequence *const *)b);
}

static const struct scheduler_plan *world_plan(struct world *w)
{
    struct scheduler_state state = {
        .running = w->running,
        .n_running = w->n_running,
        .waiting = w->waiting,
        .n_waiting = w->n_waiting,
        .pool = w->pool,
        .row_budget = w->row_budget,
    };

    qsort(w->running, w->n_running, sizeof(*w->running), by_running);
    qsort(w->waiting, w->n_waiting, sizeof(*w->waiting), by_waiting);
    return scheduler_plan(w->scheduler, &state);
}

static void expect_plan(struct world *w, const char *expected)
{
    const struct scheduler_plan *plan = world_plan(w);
    char text[512] = "";
    size_t at = 0;

    for (uint32_t i = 0; i < plan->n_work; i++) {
        const struct scheduler_work *work = &plan->work[i];
        unsigned k = (unsigned)(work->sequence - w->seqs);

        if (i < plan->n_decodes)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "d%u ", k);
        else
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%c%u:%u ",
                                   work->is_admitted ? '+' : 'p', k, work->n_rows);
    }
    for (uint32_t i = 0; i < plan->n_preempted; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "!%u ",
                               (unsigned)(plan->preempted[i] - w->seqs));
    if (at > 0)
        text[at - 1] = '\0';
    ck_assert_str_eq(text, expected);
}

static void world_close(struct world *w)
{
    for (uint32_t i = 0; i < w->n_seqs; i++) {
        sequence_release(&w->seqs[i], w->pool);
        sequence_done(&w->seqs[i]);
    }
    scheduler_free(w->scheduler);
    kv_pool_free(w->pool);
}

static const struct plan_case {
    const char *name;
    uint32_t n_blocks, max_rows, max_logit_rows, max_sequences, chunk;
    struct row rows[8];
    const char *expected;
} plan_cases[] = {
    {"nothing to do", 10, 64, 8, 8, 64, {{.state = 0}}, ""},
    {"decodes first, the rest of the rows to prefill, in chunks",
     40,
     64,
     8,
     8,
     32,
     {DECODE(20), PREFILL(100, 10), DECODE(5)},
     "d0 d2 p1:32"},
    {"the chunk limit is for each sequence, the oldest takes first",
     60,
     40,
     8,
     8,
     32,
     {DECODE(20), PREFILL(100, 10), PREFILL(100, 0)},
     "d0 p1:32 p2:7"},
    {"a chunk ends at the prompt's end", 40, 64, 8, 8, 64, {PREFILL(50, 40)}, "p0:10"},
    {"waiting work is admitted with what is left",
     60,
     64,
     8,
     8,
     32,
     {DECODE(20), WAIT(30), WAIT(50)},
     "d0 +1:30 +2:32"},
    {"no place is left", 60, 64, 8, 2, 32, {DECODE(20), WAIT(30), WAIT(50)}, "d0 +1:30"},
    {"siblings that wait for a prompt hold their places",
     60,
     64,
     8,
     4,
     32,
     {PREFILL(20, 4, .n_parked = 2), WAIT(10), WAIT(11)},
     "p0:16 +1:10"},
    {"no rows are left", 60, 16, 8, 8, 16, {PREFILL(40, 0), WAIT(30)}, "p0:16"},
    {"logit rows limit a prefill that reports its prompt",
     60,
     64,
     8,
     4,
     64,
     {DECODE(20), PREFILL(40, 0, .logits_from = 1)},
     "d0 p1:8"},
    {"the last row's logits count once",
     60,
     64,
     8,
     4,
     64,
     {PREFILL(40, 33, .logits_from = 1)},
     "p0:7"},
    /* pool: 4 blocks; 20 ids + 1 = 2 blocks, leaves 2; the next wants 3 */
    {"admission needs blocks for the prompt and one token",
     4,
     64,
     8,
     8,
     64,
     {DECODE(20), WAIT(32)},
     "d0"},
    /* 31 ids + 1 = 2 blocks, and one spare for the running sequence */
    {"admission leaves a spare block for each running sequence",
     4,
     64,
     8,
     8,
     64,
     {DECODE(20), WAIT(31)},
     "d0"},
    {"which it gets here", 5, 64, 8, 8, 64, {DECODE(20), WAIT(31)}, "d0 +1:31"},
    {"alone, no spare is needed", 3, 64, 8, 8, 64, {WAIT(47)}, "+0:47"},
    {"the one whose turn it is does not let a shorter one pass",
     8,
     64,
     8,
     8,
     64,
     {DECODE(20), WAIT(100), WAIT(5)},
     "d0"},
    {"better priority goes first",
     60,
     64,
     8,
     2,
     64,
     {WAIT(10, .priority = 1), WAIT(11), WAIT(12)},
     "+1:11 +2:12"},
    {"what was preempted goes before what is new, in the same priority",
     60,
     64,
     8,
     2,
     64,
     {WAIT(10), WAIT(11, .priority = -1), RESUME(12)},
     "+1:11 +2:12"},
    {"whichever tenant it is of",
     60,
     64,
     8,
     1,
     64,
     {WAIT(10, .tenant = 1), RESUME(12, .tenant = 2)},
     "+1:12"},
    /* 3 blocks all held: 16 computed + 1 needs a second block */
    {"the youngest is preempted when a decode needs a block",
     3,
     64,
     8,
     8,
     64,
     {DECODE(17), DECODE(10), DECODE(9), WAIT(4)},
     "d0 d1 !2"},
    {"the lowest priority is preempted before the youngest",
     3,
     64,
     8,
     8,
     64,
     {DECODE(17), DECODE(10, .priority = 5), DECODE(9)},
     "d0 d2 !1"},
    {"who is last gives itself up",
     3,
     64,
     8,
     8,
     64,
     {DECODE(10), DECODE(9), DECODE(17)},
     "d0 d1 !2"},
    {"a prefill is preempted too, with all its blocks",
     6,
     64,
     8,
     8,
     64,
     {DECODE(17), DECODE(17), PREFILL(50, 16)},
     "d0 d1 !2"},
    {"as many as need be",
     4,
     64,
     8,
     8,
     64,
     {DECODE(17), DECODE(17), DECODE(9), DECODE(9)},
     "d0 d1 !3 !2"},
    {"nothing is admitted in a step that preempts",
     9,
     64,
     8,
     8,
     64,
     {DECODE(17), DECODE(17), PREFILL(70, 16), PREFILL(5, 1), WAIT(4)},
     "d0 d1 p2:54 !3"},
};

START_TEST(the_plan_is_as_the_table_says)
{
    const struct plan_case *c = &plan_cases[_i];
    struct scheduler_limits limits = {c->max_rows, c->max_logit_rows, c->max_sequences, c->chunk};
    struct world w;

    world_open(&w, c->n_blocks, limits);
    for (int i = 0; i < 8 && c->rows[i].state; i++)
        world_add(&w, c->rows[i]);
    fprintf(stderr, "# %s\n", c->name);
    expect_plan(&w, c->expected);
    world_close(&w);
}
END_TEST

START_TEST(shared_blocks_are_counted_once_when_victims_are_weighed)
{
    struct scheduler_limits limits = {64, 8, 8, 64};
    struct world w;
    uint32_t from, to;

    /* 5 blocks: 0 holds 1, 1 and 2 share one full block and hold one each; the pool has 1 left,
     * which 3 takes.  0 needs one: 3 is enough. */
    world_open(&w, 5, limits);
    world_add(&w, (struct row)DECODE(17));
    world_add(&w, (struct row)DECODE(18));
    world_add(&w, (struct row)WAIT(17));
    w.n_waiting = 0;
    sequence_append(&w.seqs[2], 1); /* as 1 is now */
    ck_assert(sequence_fork(&w.seqs[2], &w.seqs[1], w.pool, &from, &to));
    sequence_move(&w.seqs[2], SEQUENCE_PREFILL);
    sequence_move(&w.seqs[2], SEQUENCE_DECODE);
    w.running[w.n_running++] = &w.seqs[2];
    world_add(&w, (struct row)DECODE(3));
    ck_assert_uint_eq(kv_pool_available(w.pool), 0);
    expect_plan(&w, "d0 d1 d2 !3");
    world_close(&w);
}
END_TEST

START_TEST(the_oldest_runs_alone_if_need_be)
{
    struct scheduler_limits limits = {64, 8, 8, 64};
    struct world w;

    world_open(&w, 4, limits);
    world_add(&w, (struct row)DECODE(17));
    world_add(&w, (struct row)DECODE(17));
    world_add(&w, (struct row)PREFILL(20, 3));
    ck_assert_uint_eq(kv_pool_available(w.pool), 0);
    expect_plan(&w, "d0 d1 !2");
    world_close(&w);
    world_open(&w, 2, limits);
    world_add(&w, (struct row)DECODE(17));
    world_add(&w, (struct row)DECODE(17));
    expect_plan(&w, "d0 !1");
    world_close(&w);
}
END_TEST

START_TEST(blocks_in_the_prefix_cache_need_not_be_had_again)
{
    struct scheduler_limits limits = {64, 8, 8, 64};
    struct world w;
    struct prefix_cache *prefix;
    struct sequence *seq;
    struct scheduler_state state;
    const struct scheduler_plan *plan;

    world_open(&w, 8, limits);
    prefix = prefix_cache_new(w.pool, (struct hash128){1, 1});
    world_add(&w, (struct row)PREFILL(60, 0));
    seq = &w.seqs[0];
    seq->uses_prefix = true;
    sequence_advance(seq, w.pool, prefix, 60); /* 4 blocks, 3 of them full and shared */
    world_add(&w, (struct row)WAIT(60));
    w.seqs[1].uses_prefix = true;
    state = (struct scheduler_state){w.running, 1, w.waiting, 1, w.pool, prefix, 0};
    /* needs one block and one spare of 4; computes 12 rows */
    plan = scheduler_plan(w.scheduler, &state);
    ck_assert_uint_eq(plan->n_admitted, 1);
    ck_assert_ptr_eq(plan->work[plan->n_work - 1].sequence, &w.seqs[1]);
    ck_assert_uint_eq(plan->work[plan->n_work - 1].n_rows, 12);
    sequence_release(seq, w.pool);
    prefix_cache_free(prefix);
    world_close(&w);
}
END_TEST

/* Runs the plan: admits into running, gives back what is waiting at the front. */
static uint32_t admit_one(struct world *w)
{
    const struct scheduler_plan *plan = world_plan(w);
    struct sequence *seq;

    ck_assert_uint_eq(plan->n_admitted, 1);
    seq = plan->admitted[0];
    for (uint32_t i = 0; i < w->n_waiting; i++) {
        if (w->waiting[i] == seq) {
            memmove(&w->waiting[i], &w->waiting[i + 1],
                    (w->n_waiting - i - 1) * sizeof(*w->waiting));
            w->n_waiting--;
            return (uint32_t)(seq - w->seqs);
        }
    }
    ck_abort_msg("admitted what does not wait");
    return 0;
}

START_TEST(a_tenant_that_floods_the_queue_does_not_shut_out_others)
{
    struct scheduler_limits limits = {512, 8, 1, 512};
    struct world w;
    uint32_t turn_of_last[3] = {0};

    world_open(&w, 400, limits);
    for (int i = 0; i < 12; i++)
        world_add(&w, (struct row)WAIT(200, .tenant = 1));
    for (int i = 0; i < 3; i++)
        world_add(&w, (struct row)WAIT(200, .tenant = 2));
    for (uint32_t turn = 0; turn < 15; turn++)
        turn_of_last[w.seqs[admit_one(&w)].tenant] = turn;
    /* 3 of tenant 2 are through after at most as many tokens of tenant 1, and a round's quantum */
    ck_assert_uint_le(turn_of_last[2], 8);
    ck_assert_uint_eq(turn_of_last[1], 14);
    world_close(&w);
}
END_TEST

START_TEST(fairness_counts_tokens_not_requests)
{
    struct scheduler_limits limits = {512, 8, 1, 512};
    struct world w;
    uint32_t tokens[3] = {0};

    world_open(&w, 400, limits);
    for (int i = 0; i < 4; i++)
        world_add(&w, (struct row)WAIT(2000, .tenant = 1));
    for (int i = 0; i < 16; i++)
        world_add(&w, (struct row)WAIT(100, .tenant = 2));
    while (w.n_waiting > 4) {
        struct sequence *seq = &w.seqs[admit_one(&w)];
        bool left[3] = {false};

        tokens[seq->tenant] += seq->n_ids;
        for (uint32_t i = 0; i < w.n_waiting; i++)
            left[w.waiting[i]->tenant] = true;
        if (!left[1] || !left[2])
            break;
        /* within one request and one quantum of each other */
        ck_assert_int_le(abs((int)tokens[1] - (int)tokens[2]), 2000 + 512);
    }
    ck_assert_uint_eq(tokens[2], 1600);
    world_close(&w);
}
END_TEST

START_TEST(one_tenant_is_served_first_come_first_served)
{
    struct scheduler_limits limits = {512, 8, 1, 512};
    struct world w;

    world_open(&w, 400, limits);
    for (uint32_t i = 0; i < 10; i++)
        world_add(&w, (struct row)WAIT(10 + 100 * (i % 3), .tenant = 9));
    for (uint32_t i = 0; i < 10; i++)
        ck_assert_uint_eq(admit_one(&w), i);
    world_close(&w);
}
END_TEST

/* 0 decodes, 1 has a long prompt: how many rows do prompts get? */
static const struct {
    uint32_t budget;
    bool decodes;
    const char *expected;
} budget_cases[] = {
    {0, true, "d0 p1:127"},   /* no bound */
    {500, true, "d0 p1:127"}, /* more than a step has */
    {128, true, "d0 p1:127"}, {127, true, "d0 p1:126"}, {34, true, "d0 p1:33"},
    {33, true, "d0 p1:32"},   {32, true, "d0 p1:32"}, /* the least that prompts get, whatever the
                                                         budget */
    {1, true, "d0 p1:32"},    {1, false, "p0:128"},   /* nobody waits for a next token */
};

START_TEST(a_budget_bounds_prompts_beside_decodes)
{
    struct world w;

    world_open(&w, 100, (struct scheduler_limits){128, 8, 8, 128});
    if (budget_cases[_i].decodes)
        world_add(&w, (struct row)DECODE(3));
    world_add(&w, (struct row)PREFILL(500, 16));
    w.row_budget = budget_cases[_i].budget;
    expect_plan(&w, budget_cases[_i].expected);
    world_close(&w);
}
END_TEST

START_TEST(a_budget_bounds_admitted_prompts_together)
{
    struct world w;

    world_open(&w, 100, (struct scheduler_limits){128, 8, 8, 128});
    world_add(&w, (struct row)DECODE(3));
    world_add(&w, (struct row)WAIT(20));
    world_add(&w, (struct row)WAIT(50));
    world_add(&w, (struct row)WAIT(50));
    w.row_budget = 41;
    expect_plan(&w, "d0 +1:20 +2:20");
    world_close(&w);
}
END_TEST

static void add_cases(Suite *suite)
{
    TCase *budgets = tcase_create("budgets");
    TCase *table = tcase_create("plans");

    tcase_add_loop_test(table, the_plan_is_as_the_table_says, 0,
                        (int)(sizeof(plan_cases) / sizeof(*plan_cases)));
    suite_add_tcase(suite, table);
    tcase_add_loop_test(budgets, a_budget_bounds_prompts_beside_decodes, 0,
                        (int)(sizeof(budget_cases) / sizeof(*budget_cases)));
    tcase_add_test(budgets, a_budget_bounds_admitted_prompts_together);
    suite_add_tcase(suite, budgets);
    CHECK_ADD(suite, "blocks", shared_blocks_are_counted_once_when_victims_are_weighed,
              the_oldest_runs_alone_if_need_be, blocks_in_the_prefix_cache_need_not_be_had_again);
    CHECK_ADD(suite, "tenants", a_tenant_that_floods_the_queue_does_not_shut_out_others,
              fairness_counts_tokens_not_requests, one_tenant_is_served_first_come_first_served);
}

CHECK_MAIN("engine/scheduler", add_cases)
