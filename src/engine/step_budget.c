#include "config.h"

/*
 * Rows of a step from measured times.  A step's time grows by nearly as much with each row, whether
 * it decodes or computes a prompt, once there are enough to hide the reading of the weights; so one
 * number is enough.  It is smoothed, since contexts and the machine's load change slowly compared
 * with steps.
 */
#include "tellerd/engine/step_budget.h"

static const double newest_share = 0.25;

void step_budget_observe(struct step_budget *budget, uint32_t n_rows, uint64_t duration_ns)
{
    if (n_rows < STEP_BUDGET_MIN_ROWS || duration_ns == 0)
        return;
    double row_ns = (double)duration_ns / n_rows;
    budget->row_ns =
        budget->row_ns == 0 ? row_ns : budget->row_ns + newest_share * (row_ns - budget->row_ns);
}

uint32_t step_budget_rows(const struct step_budget *budget)
{
    if (budget->target_ns == 0 || budget->row_ns == 0)
        return 0;
    double rows = (double)budget->target_ns / budget->row_ns;
    return rows < 1 ? 1 : rows > (double)UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)rows;
}
