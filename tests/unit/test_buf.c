#include "config.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check_main.h"
#include "tellerd/base/buf.h"

static struct buf buf;

static void setup(void)
{
    buf_init(&buf, 1 << 20);
}

static void teardown(void)
{
    buf_done(&buf);
}

START_TEST(appends_end_in_a_nul)
{
    ck_assert(buf_add(&buf, "ab", 2) && buf_add_str(&buf, "cd") && buf_add_char(&buf, 'e'));
    ck_assert_str_eq(buf.data, "abcde");
    ck_assert_uint_eq(buf.len, 5);
    ck_assert(buf_add(&buf, "x\0y", 3));
    ck_assert_uint_eq(buf.len, 8);
    ck_assert_int_eq(buf.data[8], 0);
}
END_TEST

START_TEST(adding_nothing_still_gives_a_string)
{
    ck_assert(buf_add(&buf, NULL, 0));
    ck_assert_str_eq(buf.data, "");
}
END_TEST

START_TEST(printf_of_any_length_fits)
{
    for (int n = 0; n < 300; n++) {
        buf_reset(&buf);
        ck_assert(buf_printf(&buf, "%*s|", n, ""));
        ck_assert_uint_eq(buf.len, n + 1);
        ck_assert_int_eq(buf.data[n], '|');
    }
}
END_TEST

START_TEST(the_maximum_holds_and_overflow_is_sticky)
{
    struct buf small;
    buf_init(&small, 4);
    ck_assert(buf_add(&small, "abcd", 4));
    ck_assert(!buf_add_char(&small, 'e'));
    ck_assert(small.overflow);
    ck_assert_str_eq(small.data, "abcd");
    buf_consume(&small, 2);
    ck_assert(!buf_add_char(&small, 'x'));
    ck_assert_str_eq(small.data, "cd");
    buf_reset(&small);
    ck_assert(!small.overflow && buf_add_str(&small, "wxyz"));
    ck_assert_uint_le(small.cap, 5);
    buf_done(&small);
}
END_TEST

START_TEST(a_failed_append_appends_nothing)
{
    struct buf small;
    buf_init(&small, 6);
    ck_assert(buf_add_str(&small, "abc"));
    ck_assert(!buf_add_json(&small, "xyz", 3));
    ck_assert_str_eq(small.data, "abc");
    buf_reset(&small);
    buf_add_str(&small, "abc");
    ck_assert(!buf_printf(&small, "%d", 1234));
    ck_assert_str_eq(small.data, "abc");
    buf_reset(&small);
    buf_add_str(&small, "abcde");
    ck_assert(!buf_add_i64(&small, -1));
    ck_assert_str_eq(small.data, "abcde");
    ck_assert_uint_eq(small.len, 5);
    buf_done(&small);
    buf_init(&small, 0);
    ck_assert(!buf_add_char(&small, 'a'));
    buf_done(&small);
}
END_TEST

START_TEST(hostile_sizes_are_refused)
{
    ck_assert(!buf_reserve(&buf, SIZE_MAX));
    struct buf endless;
    buf_init(&endless, SIZE_MAX);
    buf_add_str(&endless, "abc");
    ck_assert(!buf_reserve(&endless, SIZE_MAX - 3));
    ck_assert_str_eq(endless.data, "abc");
    buf_done(&endless);
}
END_TEST

START_TEST(take_gives_the_bytes_away)
{
    size_t len = 9;
    char *none = buf_take(&buf, &len);
    ck_assert_str_eq(none, "");
    ck_assert_uint_eq(len, 0);
    free(none);
    buf_add_str(&buf, "teller");
    char *taken = buf_take(&buf, NULL);
    ck_assert_str_eq(taken, "teller");
    ck_assert_uint_eq(buf.len, 0);
    ck_assert_ptr_null(buf.data);
    free(taken);
}
END_TEST

START_TEST(consume_drops_from_the_front)
{
    buf_add_str(&buf, "abcdef");
    buf_consume(&buf, 2);
    ck_assert_str_eq(buf.data, "cdef");
    buf_consume(&buf, 0);
    buf_consume(&buf, 4);
    ck_assert_str_eq(buf.data, "");
}
END_TEST

START_TEST(integers_are_exact)
{
    buf_add_u64(&buf, 0);
    buf_add_char(&buf, ' ');
    buf_add_u64(&buf, UINT64_MAX);
    buf_add_char(&buf, ' ');
    buf_add_i64(&buf, INT64_MIN);
    buf_add_char(&buf, ' ');
    buf_add_i64(&buf, -7);
    buf_add_char(&buf, ' ');
    buf_add_i64(&buf, INT64_MAX);
    ck_assert_str_eq(buf.data,
                     "0 18446744073709551615 -9223372036854775808 -7 9223372036854775807");
}
END_TEST

static const struct {
    double value;
    const char *text;
} doubles[] = {
    {0, "0"},
    {-0.0, "-0"},
    {1, "1"},
    {-3, "-3"},
    {0.1, "0.1"},
    {1.0 / 3, "0.3333333333333333"},
    {1e21, "1e+21"},
    {123456789012345678.0, "1.2345678901234568e+17"},
    {9007199254740991.0, "9007199254740991"},
    {1e-7, "1e-07"},
    {5e-324, "5e-324"},
    {DBL_MAX, "1.7976931348623157e+308"},
    {DBL_MIN, "2.2250738585072014e-308"},
    {(double)0.1f, "0.10000000149011612"},
    {NAN, "null"},
    {INFINITY, "null"},
    {-INFINITY, "null"},
};

static void check_doubles(void)
{
    for (size_t i = 0; i < sizeof doubles / sizeof doubles[0]; i++) {
        buf_reset(&buf);
        ck_assert(buf_add_double(&buf, doubles[i].value));
        ck_assert_str_eq(buf.data, doubles[i].text);
    }
}

START_TEST(doubles_have_their_shortest_form)
{
    check_doubles();
}
END_TEST

START_TEST(every_double_reads_back_the_same)
{
    uint64_t state = 1;
    for (int i = 0; i < 20000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        double value, back;
        uint64_t bits = state;
        if (i % 8 == 0)
            bits &= ~UINT64_C(0xfffffffffffff); /* powers of two: uneven neighbours */
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        buf_reset(&buf);
        buf_add_double(&buf, value);
        back = strtod(buf.data, NULL);
        ck_assert_mem_eq(&back, &value, sizeof value);
    }
}
END_TEST

/* A locale of the test's own, since a small machine has none with a comma: LC_NUMERIC alone, made
 * by localedef from libc-bin. */
START_TEST(a_decimal_comma_changes_nothing)
{
    char folder[] = "/tmp/test_buf.XXXXXX", command[512];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(
        command, sizeof command,
        "cd %s && printf 'LC_NUMERIC\\ndecimal_point \",\"\\nthousands_sep \".\"\\ngrouping 3\\n"
        "END LC_NUMERIC\\n' >source && localedef -c -i source -f ANSI_X3.4-1968 ./xx_XX "
        ">log 2>&1",
        folder);
    int made = system(command);
    setenv("LOCPATH", folder, 1);
    bool comma = setlocale(LC_NUMERIC, "xx_XX") != NULL;
    char probe[8];
    snprintf(probe, sizeof probe, "%.1f", 0.5);
    check_doubles();
    setlocale(LC_NUMERIC, "C");
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
    /* localedef warns (status 1) about the categories that are not there */
    if (WIFEXITED(made) && WEXITSTATUS(made) <= 1) {
        ck_assert(comma);
        ck_assert_str_eq(probe, "0,5");
    }
}
END_TEST

static const char *json(const char *text, size_t len)
{
    buf_reset(&buf);
    ck_assert(buf_add_json(&buf, text, len));
    return buf.data;
}

START_TEST(json_escapes_what_must_be_escaped)
{
    ck_assert_str_eq(json("", 0), "\"\"");
    ck_assert_str_eq(json("plain", 5), "\"plain\"");
    ck_assert_str_eq(json("a\"b\\c/d", 7), "\"a\\\"b\\\\c/d\"");
    ck_assert_str_eq(json("\b\f\n\r\t", 5), "\"\\b\\f\\n\\r\\t\"");
    ck_assert_str_eq(json("\0\x01\x1f\x7f", 4), "\"\\u0000\\u0001\\u001f\\u007f\"");
    ck_assert_str_eq(json("\xe2\x80\xa8\xe2\x80\xa9", 6), "\"\\u2028\\u2029\"");
}
END_TEST

START_TEST(json_keeps_utf8_and_replaces_what_is_none)
{
    ck_assert_str_eq(json("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80", 11),
                     "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\"");
    ck_assert_str_eq(json("a\xff"
                          "b",
                          3),
                     "\"a\xef\xbf\xbd"
                     "b\"");
    ck_assert_str_eq(json("\xf0\x9f\x98", 3), "\"\xef\xbf\xbd\"");
    ck_assert_str_eq(json("\xed\xa0\x80", 3), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}
END_TEST

START_TEST(hexadecimal_numbers_have_no_zeros_in_front)
{
    buf_add_hex(&buf, 0);
    buf_add_char(&buf, ' ');
    buf_add_hex(&buf, 0x1f0a);
    buf_add_char(&buf, ' ');
    buf_add_hex(&buf, UINT64_MAX);
    ck_assert_str_eq(buf.data, "0 1f0a ffffffffffffffff");
}
END_TEST

START_TEST(trimming_keeps_little_memory_and_gives_much_back)
{
    ck_assert(buf_add_str(&buf, "abc"));
    const char *before = buf.data;
    buf_trim(&buf, buf.cap);
    ck_assert_uint_eq(buf.len, 0);
    ck_assert_ptr_eq(buf.data, before);
    ck_assert_str_eq(buf.data, "");
    size_t cap = buf.cap;
    buf_trim(&buf, cap - 1);
    ck_assert_ptr_null(buf.data);
    ck_assert_uint_eq(buf.cap, 0);
    ck_assert_uint_eq(buf.max, 1 << 20);
    ck_assert(buf_add_str(&buf, "again"));
}
END_TEST

static void add_cases(Suite *suite)
{
    static const TTest *const *const tests[] = {
        &appends_end_in_a_nul,
        &adding_nothing_still_gives_a_string,
        &printf_of_any_length_fits,
        &the_maximum_holds_and_overflow_is_sticky,
        &a_failed_append_appends_nothing,
        &hostile_sizes_are_refused,
        &take_gives_the_bytes_away,
        &consume_drops_from_the_front,
        &trimming_keeps_little_memory_and_gives_much_back,
        &integers_are_exact,
        &hexadecimal_numbers_have_no_zeros_in_front,
        &doubles_have_their_shortest_form,
        &every_double_reads_back_the_same,
        &a_decimal_comma_changes_nothing,
        &json_escapes_what_must_be_escaped,
        &json_keeps_utf8_and_replaces_what_is_none,
    };
    TCase *tcase = tcase_create("buf");
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
}

CHECK_MAIN("buf", add_cases)
