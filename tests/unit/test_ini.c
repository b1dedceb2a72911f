#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check_main.h"
#include "tellerd/base/buf.h"
#include "tellerd/daemon/ini.h"

/* Writes each pair as section|key|value; to the buf. */
static struct buf seen;

static void setup(void)
{
    buf_init(&seen, 65536);
    buf_add(&seen, "", 0);
}

static void teardown(void)
{
    buf_done(&seen);
}

static enum status note(void *ctx, const char *section, const char *key, const char *value,
                        struct error *err)
{
    (void)ctx;
    if (strcmp(key, "bad-key") == 0)
        return error_set(err, STATUS_NOT_FOUND, "unknown");
    if (strcmp(key, "bad-value") == 0)
        return error_set(err, STATUS_BAD_CONFIG, "not good");
    buf_printf(&seen, "%s|%s|%s;", section, key, value);
    return STATUS_OK;
}

static void check_good(const char *text, const char *pairs)
{
    struct error err = {.text = ""};
    buf_reset(&seen);
    enum status status = ini_parse("f", text, strlen(text), note, NULL, &err);
    ck_assert_msg(status == STATUS_OK, "%s", err.text);
    ck_assert_str_eq(seen.data, pairs);
}

static void check_bad(const char *text, size_t len, const char *message)
{
    struct error err = {.text = ""};
    ck_assert_int_eq(ini_parse("f", text, len, note, NULL, &err), STATUS_BAD_CONFIG);
    ck_assert_int_eq(strncmp(err.text, message, strlen(message)), 0);
    ck_assert_str_eq(err.text, message);
    ck_assert_int_eq(ini_parse("f", text, len, note, NULL, NULL), STATUS_BAD_CONFIG);
}

START_TEST(sections_keys_and_comments)
{
    check_good("", "");
    check_good("\n\n  \t\n# one\n ; two\n", "");
    check_good("a=1\n[x]\nb = 2\n [ y-z ] # c\n\tc_d\t=\t3\n", "|a|1;x|b|2;y-z|c_d|3;");
    check_good("a = 1", "|a|1;");
}
END_TEST

START_TEST(values_keep_what_is_theirs)
{
    check_good("a = two words  \n", "|a|two words;");
    check_good("a =\nb=   \n", "|a|;|b|;");
    check_good("a = # nothing\n", "|a|;");
    check_good("a = x#y;z\n", "|a|x#y;z;");
    check_good("a = x # c\nb = x\t; c\n", "|a|x;|b|x;");
    check_good("a = b = c\n", "|a|b = c;");
    check_good("a = \xc3\xbc\xe2\x82\xac\n", "|a|\xc3\xbc\xe2\x82\xac;");
}
END_TEST

START_TEST(quotes_protect_blanks_and_comment_signs)
{
    check_good("a = \"  x # y ; \"\n", "|a|  x # y ; ;");
    check_good("a = \"q\\\"q\\\\\" # c\n", "|a|q\"q\\;");
    check_good("a = \"\"\n", "|a|;");
}
END_TEST

START_TEST(long_values_are_kept_whole)
{
    static char text[20000], pairs[20000];
    memset(text, 'v', sizeof text - 1);
    memcpy(text, "k = ", 4);
    snprintf(pairs, sizeof pairs, "|k|%s;", text + 4);
    check_good(text, pairs);
}
END_TEST

START_TEST(line_ends_of_other_systems_and_a_byte_order_mark)
{
    check_good("\xef\xbb\xbf"
               "a = 1\r\n[s]\r\nb = \"2\"\r\n",
               "|a|1;s|b|2;");
}
END_TEST

START_TEST(errors_name_line_and_column)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"a = 1\nb\n", "f:2:2: '=' is missing after the key"},
        {"\n  = 3\n", "f:2:3: expected [section], key = value, or a comment"},
        {"%x\n", "f:1:1: expected [section], key = value, or a comment"},
        {"a b = 1\n", "f:1:3: '=' is missing after the key"},
        {"[\n", "f:1:2: a section's name is letters, digits, '-' and '_'"},
        {"[a\n", "f:1:3: ']' is missing after the section's name"},
        {"[a] b = 1\n", "f:1:5: unexpected text after the section"},
        {"a = \"x\n", "f:1:5: the closing quote is missing"},
        {"a = \"x\\", "f:1:7: in quotes, '\\' stands only before '\"' or '\\'"},
        {"a = \"x\\n\"\n", "f:1:7: in quotes, '\\' stands only before '\"' or '\\'"},
        {"a = \"x\" y\n", "f:1:9: unexpected text after the value"},
        {"a = x\ny\x01 = 2\n", "f:2:2: control character"},
        {"a = \xff\n", "f:1:5: not UTF-8"},
        {"a = x\r y\n", "f:1:6: control character"},
        {"[s]\n bad-key = 1\n", "f:2:2: unknown"},
        {"[s]\n bad-value = 1\n", "f:2:14: not good"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_bad(cases[i].text, strlen(cases[i].text), cases[i].message);
    check_bad("a = x\0y\n", 8, "f:1:6: control character");
}
END_TEST

START_TEST(names_have_a_bound)
{
    char text[200], message[100];
    snprintf(text, sizeof text, "%0*d = 1\n", 63, 0);
    ck_assert_int_eq(ini_parse("f", text, strlen(text), note, NULL, NULL), STATUS_OK);
    snprintf(text, sizeof text, "%0*d = 1\n", 64, 0);
    snprintf(message, sizeof message, "f:1:1: expected [section], key = value, or a comment");
    check_bad(text, strlen(text), message);
}
END_TEST

START_TEST(files_are_read_whole_and_bounded)
{
    char path[] = "/tmp/test_ini.XXXXXX", *text = NULL;
    size_t len = 0;
    struct error err;
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ini_read_file(path, 10, &text, &len, &err), STATUS_OK);
    ck_assert_str_eq(text, "");
    free(text);
    ck_assert_int_eq(write(fd, "0123456789", 10), 10);
    ck_assert_int_eq(ini_read_file(path, 10, &text, &len, &err), STATUS_OK);
    ck_assert_str_eq(text, "0123456789");
    ck_assert_uint_eq(len, 10);
    free(text);
    ck_assert_int_eq(ini_read_file(path, 9, &text, &len, &err), STATUS_BAD_CONFIG);
    close(fd);
    unlink(path);
    ck_assert_int_eq(ini_read_file(path, 9, &text, &len, &err), STATUS_NOT_FOUND);
    ck_assert_int_eq(ini_read_file("/tmp", 9, &text, &len, &err), STATUS_IO);
}
END_TEST

static void add_cases(Suite *suite)
{
    static const TTest *const *const tests[] = {
        &sections_keys_and_comments,
        &values_keep_what_is_theirs,
        &quotes_protect_blanks_and_comment_signs,
        &long_values_are_kept_whole,
        &line_ends_of_other_systems_and_a_byte_order_mark,
        &errors_name_line_and_column,
        &names_have_a_bound,
        &files_are_read_whole_and_bounded,
    };
    TCase *tcase = tcase_create("ini");
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
}

CHECK_MAIN("ini", add_cases)
