#include "config.h"

/* The estimate that bounds the rows of a step, fed with made-up times. */
#include "support/check_main.h"
#include "tellerd/engine/step_budget.h"

enum { MS = 1000000 };

START_TEST(without_a_target_there_is_no_bound)
{
    struct step_budget b = {0};

    step_budget_observe(&b, 100, 50 * MS);
    ck_assert_uint_eq(step_budget_rows(&b), 0);
}
END_TEST

START_TEST(before_the_first_measurement_there_is_no_bound)
{
    struct step_budget b = {.target_ns = 100 * MS};

    ck_assert_uint_eq(step_budget_rows(&b), 0);
    step_budget_observe(&b, STEP_BUDGET_MIN_ROWS - 1, 50 * MS); /* too small to tell */
    step_budget_observe(&b, 500, 0);
    ck_assert_uint_eq(step_budget_rows(&b), 0);
    step_budget_observe(&b, STEP_BUDGET_MIN_ROWS, STEP_BUDGET_MIN_ROWS * (uint64_t)MS);
    ck_assert_uint_eq(step_budget_rows(&b), 100);
}
END_TEST

START_TEST(the_estimate_follows_slowly)
{
    struct step_budget b = {.target_ns = 100 * MS};

    step_budget_observe(&b, 100, 100 * MS);
    step_budget_observe(&b, 100, 500 * MS); /* disturbed: 1 + (5 - 1) / 4 ms a row */
    ck_assert_uint_eq(step_budget_rows(&b), 50);
    for (int i = 0; i < 40; i++)
        step_budget_observe(&b, 400, 100 * MS);
    ck_assert_uint_ge(step_budget_rows(&b), 395);
    ck_assert_uint_le(step_budget_rows(&b), 400);
}
END_TEST

START_TEST(rows_stay_in_range)
{
    struct step_budget b = {.target_ns = 1};

    step_budget_observe(&b, 100, 100 * MS);
    ck_assert_uint_eq(step_budget_rows(&b), 1);
    b.target_ns = UINT64_MAX;
    ck_assert_uint_eq(step_budget_rows(&b), UINT32_MAX / 2);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "estimates", without_a_target_there_is_no_bound,
              before_the_first_measurement_there_is_no_bound, the_estimate_follows_slowly,
              rows_stay_in_range);
}

CHECK_MAIN("engine/step_budget", add_cases)
