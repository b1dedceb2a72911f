#include "config.h"

#include <time.h>

#include "support/check_main.h"
#include "tellerd/base/clock.h"

START_TEST(monotonic_time_does_not_go_back)
{
    uint64_t last = clock_ns();
    ck_assert_uint_gt(last, 0);
    for (int i = 0; i < 1000; i++) {
        uint64_t now = clock_ns();
        ck_assert_uint_ge(now, last);
        last = now;
    }
}
END_TEST

START_TEST(wall_time_is_seconds_since_1970)
{
    double before = (double)time(NULL);
    double wall = clock_wall();
    double after = (double)time(NULL);
    ck_assert_double_ge(wall, before - 1);
    ck_assert_double_le(wall, after + 1);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "clocks", monotonic_time_does_not_go_back, wall_time_is_seconds_since_1970);
}

CHECK_MAIN("clock", add_cases)
