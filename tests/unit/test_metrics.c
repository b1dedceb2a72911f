#include "config.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "support/check_main.h"
#include "tellerd/base/metrics.h"
#include "tellerd/base/utf8.h"

static struct metrics *m;
static struct buf out;

static void setup(void)
{
    m = metrics_new();
    buf_init(&out, 1 << 20);
}

static void teardown(void)
{
    metrics_free(m);
    buf_done(&out);
}

static const char *expose(bool openmetrics)
{
    buf_reset(&out);
    buf_add_str(&out, "");
    ck_assert(metrics_expose(m, &out, openmetrics));
    return out.data;
}

START_TEST(an_empty_registry_is_valid)
{
    ck_assert_str_eq(expose(false), "");
    ck_assert_str_eq(expose(true), "# EOF\n");
}
END_TEST

START_TEST(counters_and_gauges_start_at_zero)
{
    struct metric *total = metrics_counter(m, "tellerd_requests_total", "Requests.", "");
    struct metric *running = metrics_gauge(m, "tellerd_running", "Now.", "model=\"x\"");
    ck_assert_str_eq(expose(false), "# HELP tellerd_requests_total Requests.\n"
                                    "# TYPE tellerd_requests_total counter\n"
                                    "tellerd_requests_total 0\n"
                                    "# HELP tellerd_running Now.\n"
                                    "# TYPE tellerd_running gauge\n"
                                    "tellerd_running{model=\"x\"} 0\n");
    metric_inc(total);
    metric_add(total, 2.5);
    metric_set(running, -3);
    metric_add(running, 1);
    ck_assert_double_eq(metric_value(total), 3.5);
    ck_assert_double_eq(metric_value(running), -2);
    ck_assert_str_eq(expose(true), "# HELP tellerd_requests Requests.\n"
                                   "# TYPE tellerd_requests counter\n"
                                   "tellerd_requests_total 3.5\n"
                                   "# HELP tellerd_running Now.\n"
                                   "# TYPE tellerd_running gauge\n"
                                   "tellerd_running{model=\"x\"} -2\n"
                                   "# EOF\n");
}
END_TEST

START_TEST(counters_never_fall_and_nothing_takes_nan)
{
    struct metric *total = metrics_counter(m, "a_total", "A.", "");
    struct metric *seconds = metrics_histogram(m, "b", "B.", "", (const double[]){1}, 1);
    metric_add(total, 5);
    metric_add(total, -1);
    metric_add(total, NAN);
    metric_observe(seconds, NAN);
    ck_assert_double_eq(metric_value(total), 5);
    ck_assert_uint_eq(metric_count(seconds), 0);
    ck_assert_double_eq(metric_value(seconds), 0);
    metric_inc(NULL);
    metric_set(NULL, 1);
    metric_observe(NULL, 1);
}
END_TEST

START_TEST(special_gauge_values_have_their_names)
{
    metric_set(metrics_gauge(m, "a", "A.", "n=\"1\""), INFINITY);
    metric_set(metrics_gauge(m, "a", "A.", "n=\"2\""), -INFINITY);
    metric_set(metrics_gauge(m, "a", "A.", "n=\"3\""), NAN);
    ck_assert_ptr_nonnull(
        strstr(expose(false), "a{n=\"1\"} +Inf\na{n=\"2\"} -Inf\na{n=\"3\"} NaN\n"));
}
END_TEST

START_TEST(histogram_buckets_are_cumulative_and_edges_belong_below)
{
    static const double bounds[] = {0.25, 0.5, 1, 20};
    struct metric *h = metrics_histogram(m, "t_seconds", "T.", "model=\"x\"", bounds, 4);
    static const double seen[] = {0.125, 0.25, 0.375, 1, 1.5, 20, 21, INFINITY};
    for (size_t i = 0; i < sizeof seen / sizeof seen[0] - 1; i++)
        metric_observe(h, seen[i]);
    ck_assert_uint_eq(metric_count(h), 7);
    ck_assert_str_eq(expose(true), "# HELP t_seconds T.\n"
                                   "# TYPE t_seconds histogram\n"
                                   "# UNIT t_seconds seconds\n"
                                   "t_seconds_bucket{model=\"x\",le=\"0.25\"} 2\n"
                                   "t_seconds_bucket{model=\"x\",le=\"0.5\"} 3\n"
                                   "t_seconds_bucket{model=\"x\",le=\"1.0\"} 4\n"
                                   "t_seconds_bucket{model=\"x\",le=\"20.0\"} 6\n"
                                   "t_seconds_bucket{model=\"x\",le=\"+Inf\"} 7\n"
                                   "t_seconds_sum{model=\"x\"} 44.25\n"
                                   "t_seconds_count{model=\"x\"} 7\n"
                                   "# EOF\n");
    metric_observe(h, seen[7]);
    ck_assert_ptr_nonnull(strstr(expose(false), "le=\"20.0\"} 6\n"));
    ck_assert_ptr_nonnull(strstr(out.data, "_sum{model=\"x\"} +Inf\n"));
}
END_TEST

START_TEST(a_histogram_without_labels_or_bounds_works)
{
    metric_observe(metrics_histogram(m, "n", "N.", "", NULL, 0), 3);
    ck_assert_str_eq(expose(false), "# HELP n N.\n# TYPE n histogram\n"
                                    "n_bucket{le=\"+Inf\"} 1\nn_sum 3\nn_count 1\n");
}
END_TEST

static double answer(void *ctx)
{
    return *(const double *)ctx;
}

START_TEST(callbacks_are_asked_at_exposition)
{
    double value = 7;
    metrics_callback(m, "process_cpu_seconds_total", "CPU.", "", true, answer, &value);
    metrics_callback(m, "fds", "Open.", "", false, answer, &value);
    value = 8;
    ck_assert_str_eq(expose(true), "# HELP process_cpu_seconds CPU.\n"
                                   "# TYPE process_cpu_seconds counter\n"
                                   "# UNIT process_cpu_seconds seconds\n"
                                   "process_cpu_seconds_total 8\n"
                                   "# HELP fds Open.\n# TYPE fds gauge\nfds 8\n# EOF\n");
}
END_TEST

START_TEST(aliases_show_the_same_numbers_and_families_stay_together)
{
    static const double bounds[] = {1, 2};
    struct metric *stop = metrics_counter(m, "x_total", "X.", "r=\"stop\"");
    metrics_alias(m, stop, "vllm:x_total", "finished_reason=\"stop\"");
    struct metric *length = metrics_counter(m, "x_total", "X.", "r=\"length\"");
    metrics_alias(m, length, "vllm:x_total", "finished_reason=\"length\"");
    struct metric *h = metrics_histogram(m, "h", "H.", "", bounds, 2);
    metrics_alias(m, metrics_alias(m, h, "h2", ""), "h3", "");
    metric_add(stop, 4);
    metric_observe(h, 1.5);
    ck_assert_str_eq(expose(false),
                     "# HELP x_total X.\n# TYPE x_total counter\n"
                     "x_total{r=\"stop\"} 4\nx_total{r=\"length\"} 0\n"
                     "# HELP vllm:x_total X.\n# TYPE vllm:x_total counter\n"
                     "vllm:x_total{finished_reason=\"stop\"} 4\n"
                     "vllm:x_total{finished_reason=\"length\"} 0\n"
                     "# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"1.0\"} 0\n"
                     "h_bucket{le=\"2.0\"} 1\nh_bucket{le=\"+Inf\"} 1\nh_sum 1.5\nh_count 1\n"
                     "# HELP h2 H.\n# TYPE h2 histogram\nh2_bucket{le=\"1.0\"} 0\n"
                     "h2_bucket{le=\"2.0\"} 1\nh2_bucket{le=\"+Inf\"} 1\nh2_sum 1.5\nh2_count 1\n"
                     "# HELP h3 H.\n# TYPE h3 histogram\nh3_bucket{le=\"1.0\"} 0\n"
                     "h3_bucket{le=\"2.0\"} 1\nh3_bucket{le=\"+Inf\"} 1\nh3_sum 1.5\nh3_count 1\n");
}
END_TEST

START_TEST(label_values_and_help_are_escaped)
{
    char labels[128] = "";
    metrics_label(labels, sizeof labels, "model", "a\"b\\c\nd\xff\xc3\xbc");
    metrics_label(labels, sizeof labels, "empty", "");
    ck_assert_str_eq(labels, "model=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\xc3\xbc\",empty=\"\"");
    metrics_gauge(m, "g", "a \"quoted\" \\ line\nbreak", "");
    ck_assert_ptr_nonnull(strstr(expose(false), "# HELP g a \"quoted\" \\\\ line\\nbreak\n"));
    ck_assert_ptr_nonnull(strstr(expose(true), "# HELP g a \\\"quoted\\\" \\\\ line\\nbreak\n"));
}
END_TEST

START_TEST(a_long_label_value_is_cut_between_characters)
{
    for (size_t size = 16; size < 40; size++) {
        char labels[40] = "";
        metrics_label(labels, size, "k", "\xe2\x82\xac\"\xe2\x82\xac\n\xe2\x82\xac\xe2\x82\xac\\");
        size_t len = strlen(labels);
        ck_assert_uint_lt(len, size);
        ck_assert_uint_ge(len + 4, size < 23 ? size : 23);
        ck_assert(utf8_valid(labels, len));
        ck_assert_int_eq(labels[len - 1], '"');
    }
}
END_TEST

START_TEST(a_buf_that_is_too_small_says_so)
{
    struct buf small;
    metrics_gauge(m, "g", "Help text.", "");
    buf_init(&small, 30);
    ck_assert(!metrics_expose(m, &small, false));
    buf_done(&small);
}
END_TEST

START_TEST(accept_headers_choose_the_format)
{
    static const struct {
        const char *accept;
        bool open;
    } cases[] = {
        {NULL, false},
        {"", false},
        {"*/*", false},
        {"text/plain", false},
        {"application/openmetrics-text", true},
        {"Application/OpenMetrics-Text; version=1.0.0; charset=utf-8", true},
        /* Prometheus 2.x and 3.x */
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
         "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         true},
        {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
         "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;"
         "escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
         true},
        {"application/openmetrics-text;q=0.3, text/plain;q=0.9", false},
        {"application/openmetrics-text;version=1.0.0;q=0", false},
        {"application/openmetrics-text;version=2.0.0", false},
        {"application/openmetrics-text;q=0.8,text/plain;version=9;q=0.9", true},
        {"text/plain;q=0.50,application/openmetrics-text;q=0.500", true},
        {"text/plain;q=0.501,application/openmetrics-text;q=0.5", false},
        {"application/openmetrics-text;q=bad", false},
        {"application/openmetrics-text;q=9", false},
        {"application/openmetrics-textual", false},
        {"xapplication/openmetrics-text", false},
        {",;,q=,;;", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg(metrics_accepts_openmetrics(cases[i].accept) == cases[i].open, "%s",
                      cases[i].accept ? cases[i].accept : "(null)");
}
END_TEST

enum { N_THREADS = 4, N_UPDATES = 5000 };

static void *update(void *h)
{
    for (int i = 0; i < N_UPDATES; i++)
        metric_observe(h, i % 3);
    return NULL;
}

START_TEST(updates_from_many_threads_all_count)
{
    static const double bounds[] = {0, 1};
    struct metric *h = metrics_histogram(m, "h", "H.", "", bounds, 2);
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, update, h), 0);
    expose(false);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(metric_count(h), N_THREADS * N_UPDATES);
    double per_thread = 0;
    for (int i = 0; i < N_UPDATES; i++)
        per_thread += i % 3;
    ck_assert_double_eq(metric_value(h), N_THREADS * per_thread);
}
END_TEST

START_TEST(the_same_series_twice_is_a_contract_breach)
{
    metrics_gauge(m, "g", "G.", "a=\"1\"");
    metrics_gauge(m, "g", "G.", "a=\"1\"");
}
END_TEST

START_TEST(a_counter_that_is_not_a_total_is_a_contract_breach)
{
    metrics_counter(m, "requests", "R.", "");
}
END_TEST

static void add_cases(Suite *suite)
{
    static const TTest *const *const tests[] = {
        &an_empty_registry_is_valid,
        &counters_and_gauges_start_at_zero,
        &counters_never_fall_and_nothing_takes_nan,
        &special_gauge_values_have_their_names,
        &histogram_buckets_are_cumulative_and_edges_belong_below,
        &a_histogram_without_labels_or_bounds_works,
        &callbacks_are_asked_at_exposition,
        &aliases_show_the_same_numbers_and_families_stay_together,
        &label_values_and_help_are_escaped,
        &a_long_label_value_is_cut_between_characters,
        &a_buf_that_is_too_small_says_so,
        &accept_headers_choose_the_format,
        &updates_from_many_threads_all_count,
    };
    TCase *tcase = tcase_create("metrics");
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(tcase, *tests[i]);
    tcase_add_test_raise_signal(tcase, the_same_series_twice_is_a_contract_breach, SIGABRT);
    tcase_add_test_raise_signal(tcase, a_counter_that_is_not_a_total_is_a_contract_breach, SIGABRT);
    suite_add_tcase(suite, tcase);
}

CHECK_MAIN("metrics", add_cases)
