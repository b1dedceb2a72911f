#include "config.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/check_main.h"
#include "tellerd/base/log.h"
#include "tellerd/base/utf8.h"

/* stderr goes to a file of its own: what was written, and whether it is "the journal". */
static char seen[PIPE_BUF + 1];
static int kept_stderr = -1;

static void setup(void)
{
    char path[] = "/tmp/test_log.XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    unlink(path);
    kept_stderr = dup(STDERR_FILENO);
    dup2(fd, STDERR_FILENO);
    close(fd);
    unsetenv("JOURNAL_STREAM");
    log_init(LOG_INFO, LOG_TEXT);
}

static void teardown(void)
{
    dup2(kept_stderr, STDERR_FILENO);
    close(kept_stderr);
}

static void pretend_journald(enum log_format format)
{
    struct stat st;
    char stream[64];
    ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
    snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_init(LOG_INFO, format);
}

/* What was logged since the last call. */
static const char *logged(void)
{
    ssize_t n = pread(STDERR_FILENO, seen, sizeof seen - 1, 0);
    ck_assert_int_ge(n, 0);
    seen[n] = '\0';
    ck_assert_int_eq(ftruncate(STDERR_FILENO, 0), 0);
    lseek(STDERR_FILENO, 0, SEEK_SET);
    return seen;
}

START_TEST(a_text_record_has_time_level_and_one_line)
{
    log_notice("daemon.ready port=%d", 8000);
    const char *line = logged();
    int year, month, day, hour, minute, second, ms, end = 0;
    ck_assert_int_eq(sscanf(line, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ %n", &year, &month, &day, &hour,
                            &minute, &second, &ms, &end),
                     7);
    ck_assert_str_eq(line + end, "notice daemon.ready port=8000\n");
}
END_TEST

START_TEST(levels_filter)
{
    log_debug("hidden");
    ck_assert_str_eq(logged(), "");
    log_set_level(LOG_DEBUG);
    log_debug("shown");
    ck_assert_ptr_nonnull(strstr(logged(), "debug  shown\n"));
    log_set_level(LOG_ERROR);
    log_warn("hidden");
    ck_assert_str_eq(logged(), "");
    ck_assert(log_enabled(LOG_ERROR) && !log_enabled(LOG_WARN));
}
END_TEST

START_TEST(level_names_parse)
{
    enum log_level level = LOG_DEBUG;
    ck_assert(log_level_parse("warn", &level) && level == LOG_WARN);
    ck_assert(log_level_parse("error", &level) && level == LOG_ERROR);
    ck_assert(!log_level_parse("WARN", &level) && level == LOG_ERROR);
    ck_assert(!log_level_parse("", &level));
}
END_TEST

START_TEST(under_journald_a_prefix_stands_for_level_and_time)
{
    pretend_journald(LOG_TEXT);
    log_error("engine.failed step=3");
    ck_assert_str_eq(logged(), "<3>engine.failed step=3\n");
    setenv("JOURNAL_STREAM", "1:2", 1);
    log_init(LOG_INFO, LOG_TEXT);
    log_error("engine.failed");
    ck_assert_int_ne(logged()[0], '<');
}
END_TEST

START_TEST(hostile_bytes_are_escaped)
{
    pretend_journald(LOG_TEXT);
    log_info("x v=%s", "a\n<3>b\x1b[2J\x7f\xff\xc2\x9b\xe2\x80\xa8\xc3\xbc");
    ck_assert_str_eq(logged(), "<6>x v=a\\n<3>b\\x1b[2J\\x7f\\xff\\x9b\\u2028\xc3\xbc\n");
}
END_TEST

START_TEST(long_records_are_cut_within_one_atomic_write)
{
    static char big[9000], bad[9000];
    memset(big, 'x', sizeof big - 1);
    memset(bad, 0x01, sizeof bad - 1);
    pretend_journald(LOG_TEXT);
    log_info("v=%s", big);
    const char *line = logged();
    ck_assert_uint_lt(strlen(line), PIPE_BUF);
    ck_assert_str_eq(line + strlen(line) - 4, "...\n");
    log_info("v=%s", bad);
    line = logged();
    ck_assert_uint_le(strlen(line), PIPE_BUF);
    ck_assert_str_eq(line + strlen(line) - 4, "...\n");
}
END_TEST

START_TEST(json_records_carry_members)
{
    pretend_journald(LOG_JSON);
    log_warn("request.done id=%s code=%d ratio=%s note=%s level=high", "r-1", 200, "0.5",
             "two \"words\"\n");
    ck_assert_str_eq(logged(), "<4>{\"level\":\"warn\",\"event\":\"request.done\",\"id\":\"r-1\","
                               "\"code\":200,\"ratio\":0.5,\"note\":\"two \\\"words\\\"\\n\","
                               "\"_level\":\"high\"}\n");
    log_warn("only words, no keys");
    ck_assert_str_eq(logged(), "<4>{\"level\":\"warn\",\"event\":\"only words, no keys\"}\n");
    log_warn("x a= b=007 c=-1.50 d=1. q=\"no one\" e=%s", "\xff\x01");
    ck_assert_str_eq(logged(),
                     "<4>{\"level\":\"warn\",\"event\":\"x\",\"a\":\"\",\"b\":\"007\","
                     "\"c\":-1.50,\"d\":\"1.\",\"q\":\"no one\",\"e\":\"\\ufffd\\u0001\"}\n");
}
END_TEST

START_TEST(json_outside_the_journal_has_the_time)
{
    log_init(LOG_INFO, LOG_JSON);
    log_info("x");
    const char *line = logged();
    ck_assert_int_eq(strncmp(line, "{\"time\":\"20", 11), 0);
    ck_assert_ptr_nonnull(strstr(line, "Z\",\"level\":\"info\",\"event\":\"x\"}\n"));
}
END_TEST

START_TEST(json_that_does_not_fit_stays_json)
{
    static char bad[1900];
    memset(bad, 0x01, sizeof bad - 1);
    pretend_journald(LOG_JSON);
    log_info("x a=1 b=%s", bad);
    ck_assert_str_eq(logged(), "<6>{\"level\":\"info\",\"event\":\"x\",\"a\":1,\"cut\":true}\n");
    log_info("%s", bad);
    const char *line = logged();
    ck_assert_str_eq(line + strlen(line) - 3, "\"}\n");
}
END_TEST

START_TEST(quoting_makes_one_word)
{
    char out[64];
    ck_assert_str_eq(log_quote(out, sizeof out, "plain", 5), "plain");
    ck_assert_str_eq(log_quote(out, sizeof out, "a b\"c\\d\n", 8), "a\\x20b\\\"c\\\\d\\n");
    ck_assert_str_eq(log_quote(out, sizeof out, "\xff\0", 2), "\\xff\\x00");
}
END_TEST

START_TEST(quoting_cuts_between_escapes)
{
    char out[12];
    for (size_t size = 0; size <= sizeof out; size++) {
        memset(out, '#', sizeof out);
        log_quote(out, size, "a b c d e f \xc3\xbc\xc3\xbc", 16);
        if (size > 0) {
            ck_assert_ptr_nonnull(memchr(out, 0, size));
            ck_assert(utf8_valid(out, strlen(out)));
        }
        if (size >= 4)
            ck_assert_str_eq(out + strlen(out) - 3, "...");
        for (size_t i = size; i < sizeof out; i++)
            ck_assert_int_eq(out[i], '#');
    }
    ck_assert_str_eq(log_quote(out, 12, "a b c d", 7), "a\\x20b...");
}
END_TEST

START_TEST(a_burst_is_limited_and_counted)
{
    struct log_limit limit = {0};
    unsigned allowed = 0;
    for (int i = 0; i < 100; i++)
        allowed += log_allow(&limit, 5);
    /* the clock may tick over once on the way */
    ck_assert(allowed == 5 || allowed == 10);
    limit.suppressed = 95;
    limit.window_s = 1;
    ck_assert(log_allow(&limit, 5));
    ck_assert_ptr_nonnull(strstr(logged(), "log.suppressed records=95\n"));
}
END_TEST

static void add_cases(Suite *suite)
{
    static const TTest *const *const tests[] = {
        &a_text_record_has_time_level_and_one_line,
        &levels_filter,
        &level_names_parse,
        &under_journald_a_prefix_stands_for_level_and_time,
        &hostile_bytes_are_escaped,
        &long_records_are_cut_within_one_atomic_write,
        &json_records_carry_members,
        &json_outside_the_journal_has_the_time,
        &json_that_does_not_fit_stays_json,
        &quoting_makes_one_word,
        &quoting_cuts_between_escapes,
        &a_burst_is_limited_and_counted,
    };
    TCase *tcase = tcase_create("log");
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
}

CHECK_MAIN("log", add_cases)
