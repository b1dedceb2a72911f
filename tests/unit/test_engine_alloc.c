#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "support/check_main.h"
#include "support/engine_harness.h"
#include "tellerd/engine/engine.h"

/*
 * Steady decoding allocates nothing but its events: the program is linked with --wrap, so calls of
 * the allocator from our own code are counted.
 */
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

START_TEST(a_decode_step_allocates_one_event_for_each_sequence)
{
    enum { SEQUENCES = 5, STEPS = 100 };
    struct harness h;
    unsigned long before;
    uint64_t ids[SEQUENCES];

    harness_init(&h);
    h.has_metrics = true;
    h.script.eog = STEP_NO_TOKEN;
    harness_open(&h);
    harness_close_gate(&h);
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        struct gen_request *r = harness_request(i, 20, 150);

        r->sampling.temperature = i % 2 ? 1 : 0;
        r->sampling.top_k = i == 3 ? 40 : 0;
        r->sampling.top_p = i == 1 ? 0.9F : 1;
        r->sampling.repetition_penalty = i == 4 ? 1.1F : 1;
        r->sampling.logprobs = i == 2;
        r->sampling.n_top_logprobs = i == 2 ? 5 : 0;
        ids[i] = harness_submit(&h, r);
    }
    harness_wait_held(&h);
    harness_steps(&h, 10); /* all in decode now */
    before = atomic_load(&n_allocations);
    harness_steps(&h, STEPS);
    ck_assert_uint_eq(atomic_load(&n_allocations) - before, STEPS * SEQUENCES);
    harness_let_go(&h);
    for (int i = 0; i < SEQUENCES; i++)
        harness_wait(&h, ids[i]);
    harness_close(&h);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "allocations", a_decode_step_allocates_one_event_for_each_sequence);
}

CHECK_MAIN("engine/alloc", add_cases)
