#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/api/text_stream.h"

struct run {
    char text[256];
    unsigned n_deltas; /* pushes that showed something */
    bool stopped;
};

/* Feeds text in tokens whose ends are the set bits of `cuts`, as a stream does. */
static struct run run_cut(const char *text, size_t len, uint64_t cuts, const char *const *stops)
{
    struct stop_set set = {0};
    for (size_t i = 0; stops && stops[i]; i++)
        ck_assert(stop_set_add(&set, stops[i], strlen(stops[i])));
    struct text_stream stream;
    struct buf out;
    struct run run = {0};
    text_stream_init(&stream, &set);
    buf_init(&out, 1 << 16);
    size_t start = 0;
    for (size_t i = 1; i <= len && !run.stopped; i++) {
        if (i < len && !(cuts >> (i - 1) & 1))
            continue;
        size_t before = out.len;
        run.stopped = text_stream_push(&stream, text + start, i - start, &out);
        run.n_deltas += out.len > before;
        ck_assert_uint_eq(out.len, stream.shown_bytes);
        start = i;
    }
    text_stream_flush(&stream, &out);
    snprintf(run.text, sizeof run.text, "%.*s", (int)out.len, out.data ? out.data : "");
    buf_done(&out);
    text_stream_done(&stream);
    stop_set_done(&set);
    return run;
}

static const struct {
    const char *text, *stops[4], *expected;
    bool stopped;
} cases[] = {
    {"A B C D E F G H I J", {"D E F"}, "A B C ", true},
    {"Mars?\nx", {"\n"}, "Mars?", true},
    {"Mars?", {"?!"}, "Mars?", false},
    {"stop!now", {"!"}, "stop", true},
    {"xxabcd", {"bcd", "ab"}, "xx", true},
    {"xxabcd", {"ab", "bcd"}, "xx", true},
    {"xabz", {"abc", "b"}, "xa", true},
    {"aabaabaac", {"aabaac"}, "aab", true},
    {"abababac", {"ababac"}, "ab", true},
    {"\xf0\x9f\x98\x80 ok", {NULL}, "\xf0\x9f\x98\x80 ok", false},
    {"\xe6\xad\xaa\xf0\x9f\x98\x80", {"\xf0\x9f\x98\x80"}, "\xe6\xad\xaa", true},
    {"x\xff\x80ok", {"zz"}, "x\xff\x80ok", false},
    {"xab", {"b", "ab"}, "x", true},
};

START_TEST(the_text_does_not_depend_on_where_tokens_end)
{
    size_t len = strlen(cases[_i].text);
    ck_assert_uint_le(len, 20);
    for (uint64_t cuts = 0; cuts<1ull << (len - 1); cuts += len> 12 ? 37 : 1) {
        struct run run = run_cut(cases[_i].text, len, cuts, cases[_i].stops);
        ck_assert_str_eq(run.text, cases[_i].expected);
        ck_assert_int_eq(run.stopped, cases[_i].stopped);
    }
}
END_TEST

START_TEST(only_what_may_become_a_stop_is_held)
{
    static const char *const stops[] = {"ZZZZZZZZZZZZZZZZZZZZ", NULL};
    struct run run = run_cut("abcdefgh", 8, ~0ull, stops);
    ck_assert_uint_eq(run.n_deltas, 8);
}
END_TEST

START_TEST(bytes_that_no_more_bytes_can_mend_do_not_wait)
{
    struct text_stream stream;
    struct buf out;
    text_stream_init(&stream, NULL);
    buf_init(&out, 64);
    text_stream_push(&stream, "\xff", 1, &out);
    ck_assert_uint_eq(out.len, 1);
    text_stream_push(&stream, "\xf0\x9f", 2, &out);
    ck_assert_uint_eq(out.len, 1);
    text_stream_push(&stream, "\x98\x80", 2, &out);
    ck_assert_uint_eq(out.len, 5);
    buf_done(&out);
    text_stream_done(&stream);
}
END_TEST

START_TEST(a_stop_set_has_limits)
{
    struct stop_set set = {0};
    static char longest[TEXT_STREAM_MAX_STOP_BYTES + 1];
    memset(longest, 'a', sizeof longest);
    ck_assert(!stop_set_add(&set, "", 0));
    ck_assert(!stop_set_add(&set, longest, sizeof longest));
    for (int i = 0; i < TEXT_STREAM_MAX_STOPS; i++)
        ck_assert(stop_set_add(&set, longest, sizeof longest - 1));
    ck_assert(!stop_set_add(&set, "a", 1));
    stop_set_done(&set);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("text_stream");
    TCase *tc = tcase_create("text");
    tcase_add_loop_test(tc, the_text_does_not_depend_on_where_tokens_end, 0,
                        (int)(sizeof cases / sizeof *cases));
    tcase_add_test(tc, only_what_may_become_a_stop_is_held);
    tcase_add_test(tc, bytes_that_no_more_bytes_can_mend_do_not_wait);
    tcase_add_test(tc, a_stop_set_has_limits);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
