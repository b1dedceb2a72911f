#ifndef TELLERD_BACKEND_CPU_THREADS_H
#define TELLERD_BACKEND_CPU_THREADS_H

#include <stdint.h>

#include "tellerd/base/status.h"

/*
 * Fork-join pool: the caller and n_threads - 1 workers take the tasks 0..n_tasks-1 of one job.  A
 * task writes outputs that no other task touches, so no result depends on who ran it.  Workers spin
 * for some microseconds after a job, since the next op of a step follows at once, then sleep.
 */
struct cpu_pool;

/* thread: 0 (the caller) .. n_threads - 1, for scratch memory of its own. */
typedef void (*cpu_task_fn)(void *ctx, uint32_t task, uint32_t thread);

/* Errors: NO_MEMORY when a thread cannot be started.  Free with cpu_pool_free. */
enum status cpu_pool_new(uint32_t n_threads, struct cpu_pool **ret, struct error *err) WARN_UNUSED;
void cpu_pool_free(struct cpu_pool *pool);
uint32_t cpu_pool_threads(const struct cpu_pool *pool);

/* Runs all tasks and returns when they are done; one caller at a time, not from within a task. */
void cpu_pool_run(struct cpu_pool *pool, uint32_t n_tasks, cpu_task_fn fn, void *ctx);

/* Cores this process may use, 1..16. */
uint32_t cpu_default_threads(void);

#endif
