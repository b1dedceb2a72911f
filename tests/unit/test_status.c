#include "config.h"

#include <signal.h>
#include <string.h>

#include "support/check_main.h"
#include "tellerd/base/status.h"
#include "tellerd/base/utf8.h"

START_TEST(every_status_has_an_http_code_and_texts)
{
    for (int i = 1; i < STATUS_COUNT; i++) {
        ck_assert_int_ge(status_http(i), 400);
        ck_assert_int_lt(status_http(i), 600);
        ck_assert(status_type(i)[0] && status_code(i)[0] && status_text(i)[0]);
    }
    ck_assert_int_eq(status_http(STATUS_OK), 200);
}
END_TEST

START_TEST(known_rows_are_as_clients_expect)
{
    ck_assert_int_eq(status_http(STATUS_QUEUE_FULL), 429);
    ck_assert_str_eq(status_type(STATUS_QUEUE_FULL), "rate_limit_error");
    ck_assert_str_eq(status_code(STATUS_CONTEXT_LENGTH), "context_length_exceeded");
}
END_TEST

START_TEST(an_unknown_status_is_an_internal_error)
{
    ck_assert_int_eq(status_http((enum status)9999), 500);
    ck_assert_str_eq(status_code((enum status) - 1), "internal_error");
}
END_TEST

START_TEST(error_set_returns_the_status_and_clears_the_rest)
{
    struct error err;
    memset(&err, 0x55, sizeof err);
    ck_assert_int_eq(error_set(&err, STATUS_IO, "%s: %d", "file", 7), STATUS_IO);
    ck_assert_int_eq(err.status, STATUS_IO);
    ck_assert_str_eq(err.text, "file: 7");
    ck_assert_str_eq(err.param, "");
    ck_assert_uint_eq(err.n_ctx, 0);
    ck_assert_uint_eq(err.retry_after_s, 0);
}
END_TEST

START_TEST(an_error_is_optional)
{
    ck_assert_int_eq(error_set(NULL, STATUS_IO, "x"), STATUS_IO);
    ck_assert_int_eq(error_param(NULL, STATUS_INVALID, "n", "x"), STATUS_INVALID);
    error_prefix(NULL, "x");
}
END_TEST

START_TEST(error_param_names_the_field)
{
    struct error err;
    error_param(&err, STATUS_INVALID, "temperature", "must be at most %d", 2);
    ck_assert_str_eq(err.param, "temperature");
    ck_assert_str_eq(err.text, "must be at most 2");
}
END_TEST

START_TEST(the_text_may_come_from_the_error_itself)
{
    struct error err;
    error_set(&err, STATUS_IO, "inner");
    error_set(&err, STATUS_BAD_FILE, "outer: %s", err.text);
    ck_assert_str_eq(err.text, "outer: inner");
}
END_TEST

START_TEST(a_prefix_keeps_status_and_param)
{
    struct error err;
    error_param(&err, STATUS_INVALID, "stop", "too long");
    error_prefix(&err, "choice %d", 3);
    ck_assert_str_eq(err.text, "choice 3: too long");
    ck_assert_str_eq(err.param, "stop");
    ck_assert_int_eq(err.status, STATUS_INVALID);
}
END_TEST

START_TEST(control_characters_and_bad_bytes_are_replaced)
{
    struct error err;
    error_set(&err, STATUS_IO, "%s", "a\nb\tc\x1b[31m\x7f\xff\xc2\x85z");
    ck_assert_str_eq(err.text, "a b c?[31m???z");
}
END_TEST

START_TEST(long_text_is_cut_where_a_character_ends)
{
    struct error err;
    char text[3 * ERROR_TEXT_MAX];
    for (size_t i = 0; i + 3 < sizeof text; i += 3)
        memcpy(text + i, "\xe2\x82\xac", 4);
    for (size_t shift = 0; shift < 3; shift++) {
        error_set(&err, STATUS_IO, "%.*s%s", (int)shift, "xx", text);
        size_t len = strlen(err.text);
        ck_assert_uint_ge(len, ERROR_TEXT_MAX - 4);
        ck_assert_uint_lt(len, ERROR_TEXT_MAX);
        ck_assert(utf8_valid(err.text, len));
    }
}
END_TEST

START_TEST(a_kept_contract_goes_on)
{
    REQUIRE(1 + 1 == 2);
}
END_TEST

START_TEST(a_broken_contract_aborts)
{
    REQUIRE(1 + 1 == 3);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "status table", every_status_has_an_http_code_and_texts,
              known_rows_are_as_clients_expect, an_unknown_status_is_an_internal_error);
    CHECK_ADD(suite, "struct error", error_set_returns_the_status_and_clears_the_rest,
              an_error_is_optional, error_param_names_the_field,
              the_text_may_come_from_the_error_itself, a_prefix_keeps_status_and_param,
              control_characters_and_bad_bytes_are_replaced,
              long_text_is_cut_where_a_character_ends);
    CHECK_ADD(suite, "REQUIRE", a_kept_contract_goes_on);
    TCase *aborts = tcase_create("REQUIRE aborts");
    tcase_add_test_raise_signal(aborts, a_broken_contract_aborts, SIGABRT);
    suite_add_tcase(suite, aborts);
}

CHECK_MAIN("status", add_cases)
