#ifndef TELLERD_SUPPORT_CHECK_MAIN_H
#define TELLERD_SUPPORT_CHECK_MAIN_H

/* main() of a unit test: CHECK_MAIN("module", add_cases) where add_cases(Suite *) adds the TCases.
 */
#include <check.h>
#include <stdlib.h>

#define CHECK_MAIN(name, add_cases)                    \
    int main(void)                                     \
    {                                                  \
        Suite *suite = suite_create(name);             \
        add_cases(suite);                              \
        SRunner *runner = srunner_create(suite);       \
        srunner_run_all(runner, CK_ENV);               \
        int n_failed = srunner_ntests_failed(runner);  \
        srunner_free(runner);                          \
        return n_failed ? EXIT_FAILURE : EXIT_SUCCESS; \
    }

/* Adds one TCase that holds the given tests. */
static inline void check_add(Suite *suite, const char *behaviour, const TTest *const *tests,
                             size_t n_tests)
{
    TCase *tcase = tcase_create(behaviour);
    for (size_t i = 0; i < n_tests; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
}
#define CHECK_ADD(suite, behaviour, ...)                             \
    check_add(suite, behaviour, (const TTest *const[]){__VA_ARGS__}, \
              sizeof((const TTest *const[]){__VA_ARGS__}) / sizeof(const TTest *))

/* The same with a fixture around each test (either function may be NULL). */
static inline void check_add_fixture(Suite *suite, const char *behaviour, void (*set_up)(void),
                                     void (*tear_down)(void), const TTest *const *tests,
                                     size_t n_tests)
{
    TCase *tcase = tcase_create(behaviour);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 120);
    for (size_t i = 0; i < n_tests; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
}
#define CHECK_ADD_FIXTURE(suite, behaviour, set_up, tear_down, ...)                             \
    check_add_fixture(suite, behaviour, set_up, tear_down, (const TTest *const[]){__VA_ARGS__}, \
                      sizeof((const TTest *const[]){__VA_ARGS__}) / sizeof(const TTest *))

#endif
