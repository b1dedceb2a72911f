#include "config.h"

#include <stdio.h>
#include <string.h>

#include "../../src/clients/ctl_priv.h"
#include "support/check_main.h"

static struct buf seen;

static bool note(void *ctx, const char *data, size_t len)
{
    (void)ctx;
    buf_add(&seen, data, len);
    buf_add_char(&seen, '|');
    return !(len == 3 && memcmp(data, "end", 3) == 0);
}

/* Events of the text fed in pieces of `step` bytes. */
static const char *events(const char *text, size_t len, size_t step)
{
    struct ctl_sse sse;
    buf_reset(&seen);
    buf_add(&seen, "", 0);
    ctl_sse_init(&sse, 1000);
    for (size_t at = 0; at < len; at += step)
        ck_assert(ctl_sse_feed(&sse, text + at, len - at < step ? len - at : step, note, NULL));
    ctl_sse_done(&sse);
    return seen.data;
}

static void check(const char *text, const char *wanted)
{
    for (size_t step = 1; step <= 7; step++)
        ck_assert_str_eq(events(text, strlen(text), step), wanted);
    ck_assert_str_eq(events(text, strlen(text), 1000), wanted);
}

static void setup(void)
{
    buf_init(&seen, 65536);
}

static void teardown(void)
{
    buf_done(&seen);
}

START_TEST(events_are_their_data)
{
    check("data: a\n\ndata: b\n\n", "a|b|");
    check("data:a\n\ndata:  b \n\n", "a| b |");
    check("data\n\ndata:\n\n", "||");
    check("data: {\"x\":\"\xc3\xbc\"}\n\n", "{\"x\":\"\xc3\xbc\"}|");
}
END_TEST

START_TEST(lines_of_one_event_are_joined)
{
    check("data: a\ndata: b\ndata\n\n", "a\nb\n|");
}
END_TEST

START_TEST(every_kind_of_line_end)
{
    check("data: a\r\n\r\ndata: b\r\rdata: c\n\r\n", "a|b|c|");
}
END_TEST

START_TEST(comments_and_other_fields_are_passed_over)
{
    check(": keep-alive\n\nevent: x\nid: 1\nretry: 5\ndata: a\n\ndatax: b\n\n: c\ndata: d\n\n",
          "a|d|");
}
END_TEST

START_TEST(an_event_that_does_not_end_is_no_event)
{
    check("data: a\n\ndata: b\n", "a|");
    check("data: b", "");
}
END_TEST

START_TEST(the_reader_can_end_it)
{
    struct ctl_sse sse;
    const char *text = "data: a\n\ndata: end\n\ndata: b\n\n";
    ctl_sse_init(&sse, 1000);
    ck_assert(!ctl_sse_feed(&sse, text, strlen(text), note, NULL));
    ck_assert_str_eq(seen.data, "a|end|");
    ctl_sse_done(&sse);
}
END_TEST

START_TEST(an_event_has_a_bound)
{
    struct ctl_sse sse;
    ctl_sse_init(&sse, 20);
    for (int i = 0; i < 5; i++)
        ck_assert(ctl_sse_feed(&sse, "data: 0123456789\n\n", 18, note, NULL));
    ck_assert(!ctl_sse_feed(&sse, "data: 01234567890123456789\n\n", 28, note, NULL));
    ck_assert(sse.too_long);
    ctl_sse_done(&sse);
    ctl_sse_init(&sse, 20);
    ck_assert(ctl_sse_feed(&sse, "data: 0123456789\n", 17, note, NULL));
    ck_assert(!ctl_sse_feed(&sse, "data: 0123456789\n\n", 18, note, NULL));
    ctl_sse_done(&sse);
}
END_TEST

static void add_cases(Suite *suite)
{
    static const TTest *const *const tests[] = {
        &events_are_their_data,
        &lines_of_one_event_are_joined,
        &every_kind_of_line_end,
        &comments_and_other_fields_are_passed_over,
        &an_event_that_does_not_end_is_no_event,
        &the_reader_can_end_it,
        &an_event_has_a_bound,
    };
    TCase *tcase = tcase_create("sse");
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
}

CHECK_MAIN("sse", add_cases)
