#include "config.h"

/*
 * The pool.  One word says all: the upper half counts openings and closings of jobs (odd = open),
 * the lower half counts the workers inside the job.  A worker joins only an open job, by adding one
 * to the word; the caller closes the job when no task is left to take and then waits for the
 * workers inside, never for one that is still asleep.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_threads.h"
#include "tellerd/base/mem.h"

enum {
    SPINS_BEFORE_SLEEP = 4000, /* some tens of microseconds: longer than any gap within a step */
    SPINS_BEFORE_YIELD = 1000, /* then let a worker that lost its core have it */
};
#define JOB_STEP ((uint64_t)1 << 32)

struct worker {
    struct cpu_pool *pool;
    pthread_t thread;
    uint32_t index;
};

struct cpu_pool {
    uint32_t n_threads;
    struct worker *workers; /* [n_threads - 1] */
    uint32_t n_started;

    _Alignas(64) _Atomic uint64_t state;
    _Alignas(64) _Atomic uint32_t next_task;
    _Alignas(64) _Atomic uint32_t n_asleep;
    _Atomic bool stop;

    /* the open job; written only while no worker is inside */
    cpu_task_fn fn;
    void *ctx;
    uint32_t n_tasks;

    pthread_mutex_t lock;
    pthread_cond_t wake;
};

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool is_open(uint64_t state)
{
    return state & JOB_STEP;
}

static void take_tasks(struct cpu_pool *pool, uint32_t thread)
{
    cpu_task_fn fn = pool->fn;
    void *ctx = pool->ctx;
    uint32_t n = pool->n_tasks;
    for (;;) {
        uint32_t task = atomic_fetch_add_explicit(&pool->next_task, 1, memory_order_relaxed);
        if (task >= n)
            return;
        fn(ctx, task, thread);
    }
}

/* Waits until a job other than the one of `seen` is open (false: the pool stops). */
static bool wait_for_job(struct cpu_pool *pool, uint64_t seen)
{
    for (int i = 0; i < SPINS_BEFORE_SLEEP; i++) {
        uint64_t state = atomic_load_explicit(&pool->state, memory_order_acquire);
        if (is_open(state) && state / JOB_STEP != seen)
            return true;
        relax();
    }
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->n_asleep, 1);
    for (;;) {
        uint64_t state = atomic_load(&pool->state);
        if (atomic_load(&pool->stop) || (is_open(state) && state / JOB_STEP != seen))
            break;
        pthread_cond_wait(&pool->wake, &pool->lock);
    }
    atomic_fetch_sub(&pool->n_asleep, 1);
    pthread_mutex_unlock(&pool->lock);
    return !atomic_load(&pool->stop);
}

static void *worker_main(void *arg)
{
    struct worker *worker = arg;
    struct cpu_pool *pool = worker->pool;
    uint64_t seen = UINT64_MAX;
    while (wait_for_job(pool, seen)) {
        uint64_t state = atomic_load(&pool->state);
        if (!is_open(state) || state / JOB_STEP == seen)
            continue;
        if (!atomic_compare_exchange_strong(&pool->state, &state, state + 1))
            continue;
        seen = state / JOB_STEP;
        take_tasks(pool, worker->index);
        atomic_fetch_sub_explicit(&pool->state, 1, memory_order_release);
    }
    return NULL;
}

void cpu_pool_run(struct cpu_pool *pool, uint32_t n_tasks, cpu_task_fn fn, void *ctx)
{
    if (pool->n_threads == 1 || n_tasks <= 1) {
        for (uint32_t i = 0; i < n_tasks; i++)
            fn(ctx, i, 0);
        return;
    }
    pool->fn = fn;
    pool->ctx = ctx;
    pool->n_tasks = n_tasks;
    atomic_store_explicit(&pool->next_task, 0, memory_order_relaxed);
    atomic_fetch_add(&pool->state, JOB_STEP);
    if (atomic_load(&pool->n_asleep) > 0) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->lock);
    }
    take_tasks(pool, 0);
    atomic_fetch_add(&pool->state, JOB_STEP);
    for (int spins = 0; (uint32_t)atomic_load_explicit(&pool->state, memory_order_acquire) != 0;) {
        if (++spins > SPINS_BEFORE_YIELD)
            sched_yield();
        else
            relax();
    }
}

enum status cpu_pool_new(uint32_t n_threads, struct cpu_pool **ret, struct error *err)
{
    REQUIRE(n_threads >= 1);
    struct cpu_pool *pool = aligned_alloc(64, (sizeof(*pool) + 63) / 64 * 64);
    if (!pool)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a thread pool");
    memset(pool, 0, sizeof(*pool));
    pool->n_threads = n_threads;
    pool->workers = xcalloc(n_threads, sizeof(*pool->workers));
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    /* signals are for the threads that wait for them */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = 0;
    for (uint32_t i = 0; i + 1 < n_threads && !failed; i++) {
        pool->workers[i] = (struct worker){.pool = pool, .index = i + 1};
        failed = pthread_create(&pool->workers[i].thread, NULL, worker_main, &pool->workers[i]);
        if (!failed) {
            char name[16];
            snprintf(name, sizeof(name), "cpu-%u", i + 1);
            pthread_setname_np(pool->workers[i].thread, name);
            pool->n_started++;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        cpu_pool_free(pool);
        return error_set(err, STATUS_NO_MEMORY, "cannot start thread %u of %u: %s",
                         pool->n_started + 2, n_threads, strerror(failed));
    }
    *ret = pool;
    return STATUS_OK;
}

void cpu_pool_free(struct cpu_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->stop, true);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < pool->n_started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->wake);
    free(pool->workers);
    free(pool);
}

uint32_t cpu_pool_threads(const struct cpu_pool *pool)
{
    return pool->n_threads;
}

uint32_t cpu_default_threads(void)
{
    cpu_set_t set;
    int n = 1;
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > 16 ? 16 : (uint32_t)n;
}
