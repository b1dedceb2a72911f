#ifndef TELLERD_ENGINE_STEP_BUDGET_H
#define TELLERD_ENGINE_STEP_BUDGET_H

#include <stdint.h>

/*
 * How many rows a step may have so that it takes about a given time: a running estimate of the time
 * a row takes, made from steps that really ran.  It decides only when prompts are computed, never
 * what comes out.  One owner, one thread; no clock of its own.
 */
struct step_budget {
    uint64_t target_ns; /* wanted time of a step that also decodes; 0 = no bound */
    double row_ns;      /* estimate; 0 = none yet */
};

enum {
    STEP_BUDGET_MIN_ROWS = 64, /* smaller steps tell little: their fixed part would count as rows */
};

/* A step of n_rows took duration_ns.  Steps of fewer than STEP_BUDGET_MIN_ROWS are not counted. */
void step_budget_observe(struct step_budget *budget, uint32_t n_rows, uint64_t duration_ns);
/* Rows that fit the target, at least 1; 0 = no bound (no target, or nothing measured yet). */
uint32_t step_budget_rows(const struct step_budget *budget);

#endif
