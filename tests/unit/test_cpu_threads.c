#include "config.h"

/* The pool is private to the CPU backend; this test is its only user outside. */
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "../../src/backend/cpu/cpu_threads.h"
#include "support/check_main.h"

enum { N_TASKS = 1000 };

struct count {
    uint32_t runs[N_TASKS];
    _Atomic uint32_t threads_seen;
    uint32_t n_threads;
    _Atomic bool bad_thread;
};

static void count_task(void *ctx, uint32_t task, uint32_t thread)
{
    struct count *count = ctx;
    count->runs[task]++;
    if (thread >= count->n_threads)
        atomic_store(&count->bad_thread, true);
    else
        atomic_fetch_or(&count->threads_seen, 1u << thread);
}

static struct cpu_pool *pool_of(uint32_t n_threads)
{
    struct cpu_pool *pool = NULL;
    struct error err;
    ck_assert(cpu_pool_new(n_threads, &pool, &err) == STATUS_OK);
    return pool;
}

START_TEST(each_task_runs_once)
{
    static const uint32_t threads[] = {1, 2, 3, 8};
    for (int t = 0; t < 4; t++) {
        struct cpu_pool *pool = pool_of(threads[t]);
        ck_assert_uint_eq(cpu_pool_threads(pool), threads[t]);
        for (uint32_t n = 0; n <= N_TASKS; n = n * 3 + 1) {
            struct count count = {.n_threads = threads[t]};
            cpu_pool_run(pool, n, count_task, &count);
            for (uint32_t i = 0; i < N_TASKS; i++) {
                if (count.runs[i] != (i < n))
                    ck_abort_msg("task %u of %u ran %u times", i, n, count.runs[i]);
            }
            ck_assert(!atomic_load(&count.bad_thread));
        }
        cpu_pool_free(pool);
    }
}
END_TEST

/* Jobs right after each other, of which many find the workers still on their way out. */
START_TEST(many_short_jobs_follow_each_other)
{
    struct cpu_pool *pool = pool_of(4);
    for (int i = 0; i < 20000; i++) {
        struct count count = {.n_threads = 4};
        uint32_t n = 2 + (uint32_t)i % 5;
        cpu_pool_run(pool, n, count_task, &count);
        for (uint32_t j = 0; j < 7; j++) {
            if (count.runs[j] != (j < n))
                ck_abort_msg("job %d: task %u ran %u times", i, j, count.runs[j]);
        }
    }
    cpu_pool_free(pool);
}
END_TEST

START_TEST(sleeping_workers_wake)
{
    struct cpu_pool *pool = pool_of(3);
    for (int i = 0; i < 20; i++) {
        struct timespec pause = {.tv_nsec = 2000000}; /* far longer than workers spin */
        nanosleep(&pause, NULL);
        struct count count = {.n_threads = 3};
        cpu_pool_run(pool, 50, count_task, &count);
        for (uint32_t j = 0; j < 50; j++)
            ck_assert_uint_eq(count.runs[j], 1);
    }
    cpu_pool_free(pool);
}
END_TEST

struct meeting {
    _Atomic uint32_t n_here;
};

static void wait_for_both(void *ctx, uint32_t task, uint32_t thread)
{
    (void)task;
    (void)thread;
    struct meeting *meeting = ctx;
    atomic_fetch_add(&meeting->n_here, 1);
    while (atomic_load(&meeting->n_here) < 2)
        sched_yield();
}

/* Ends only when two threads are inside at once. */
START_TEST(tasks_run_at_the_same_time)
{
    struct cpu_pool *pool = pool_of(2);
    struct meeting meeting = {0};
    cpu_pool_run(pool, 2, wait_for_both, &meeting);
    ck_assert_uint_eq(atomic_load(&meeting.n_here), 2);
    cpu_pool_free(pool);
}
END_TEST

START_TEST(a_pool_ends_at_once_and_twice)
{
    for (int i = 0; i < 50; i++)
        cpu_pool_free(pool_of(1 + (uint32_t)i % 6));
    cpu_pool_free(NULL);
    ck_assert_uint_ge(cpu_default_threads(), 1);
    ck_assert_uint_le(cpu_default_threads(), 16);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "jobs", each_task_runs_once, many_short_jobs_follow_each_other,
              sleeping_workers_wake, tasks_run_at_the_same_time);
    CHECK_ADD(suite, "life", a_pool_ends_at_once_and_twice);
}

CHECK_MAIN("cpu threads", add_cases)
