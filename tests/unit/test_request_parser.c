#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/base/mem.h"
#include "tellerd/http/request.h"

static const struct http_parse_limits limits = {
    .max_header_bytes = 2048, .max_line_bytes = 512, .max_headers = 10, .max_body_bytes = 64};

struct outcome {
    enum parse_event event; /* the last one */
    enum status status;
    unsigned n_complete;
    char path[128], body[128], value[128];
    size_t body_len;
};

/* Feeds text in pieces of `piece` bytes; stops at an error. */
static struct outcome feed(const char *text, size_t len, size_t piece, const char *header)
{
    struct request_parser *parser = request_parser_new(&limits);
    struct outcome out = {.event = PARSE_MORE};
    size_t at = 0;
    bool again = true;
    while (at < len || again) {
        size_t n = len - at < piece ? len - at : piece, used = 0;
        struct error err = {0};
        out.event = request_parser_feed(parser, text + at, n, &used, &err);
        at += used;
        again = out.event == PARSE_HEADERS;
        if (out.event == PARSE_ERROR) {
            out.status = err.status;
            ck_assert_str_ne(err.text, "");
            break;
        }
        if (out.event == PARSE_COMPLETE) {
            const struct http_request *request = request_parser_request(parser);
            out.n_complete++;
            snprintf(out.path, sizeof out.path, "%s", request->path);
            snprintf(out.body, sizeof out.body, "%s", request->body);
            const char *value = header ? http_request_header(request, header) : NULL;
            snprintf(out.value, sizeof out.value, "%s", value ? value : "");
            out.body_len = request->body_len;
            request_parser_next(parser);
        }
    }
    request_parser_free(parser);
    return out;
}

/* The same outcome whatever the pieces. */
static struct outcome feed_all_ways(const char *text, const char *header)
{
    size_t len = strlen(text);
    struct outcome whole = feed(text, len, len, header);
    for (size_t piece = 1; piece < 8; piece++) {
        struct outcome split = feed(text, len, piece, header);
        ck_assert_int_eq(split.event, whole.event);
        ck_assert_int_eq(split.status, whole.status);
        ck_assert_uint_eq(split.n_complete, whole.n_complete);
        ck_assert_str_eq(split.path, whole.path);
        ck_assert_str_eq(split.body, whole.body);
        ck_assert_str_eq(split.value, whole.value);
    }
    return whole;
}

START_TEST(a_request_is_read_whole_and_in_pieces)
{
    struct outcome out = feed_all_ways("POST /v1/%63hat?x=1 HTTP/1.1\r\nHost: a\r\nX-Abc:  v w "
                                       "\t\r\nContent-Length: 5\r\n\r\nhello",
                                       "x-abc");
    ck_assert_uint_eq(out.n_complete, 1);
    ck_assert_str_eq(out.path, "/v1/chat");
    ck_assert_str_eq(out.body, "hello");
    ck_assert_str_eq(out.value, "v w");
}
END_TEST

START_TEST(chunked_bodies_and_pipelined_requests_are_read_in_order)
{
    struct outcome out =
        feed_all_ways("POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                      "chunked\r\n\r\n5\r\nhello\r\nA\r\n0123456789\r\n0\r\nT: x\r\n\r\n"
                      "\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\nDELETE /c HTTP/1.1\r\nHost: a\r\n\r\n",
                      NULL);
    ck_assert_uint_eq(out.n_complete, 3);
    ck_assert_str_eq(out.path, "/c");
    out = feed_all_ways(
        "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        NULL);
    ck_assert_str_eq(out.body, "hello");
}
END_TEST

START_TEST(an_offered_upgrade_is_not_taken_up)
{
    struct outcome out = feed_all_ways(
        "POST /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
        "Content-Length: 5\r\n\r\nhelloGET /b HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
        "Upgrade: h2c\r\n\r\nGET /c HTTP/1.1\r\nHost: a\r\n\r\n",
        NULL);
    ck_assert_int_ne(out.event, PARSE_ERROR);
    ck_assert_uint_eq(out.n_complete, 3);
    ck_assert_str_eq(out.path, "/c");
}
END_TEST

static const struct {
    const char *text;
    enum status status;
} refused[] = {
    {"GET /x\nHost: a\r\n\r\n", STATUS_BAD_HTTP},
    {"GET / HTTP/1.1\nHost: a\r\n\r\n", STATUS_BAD_HTTP},
    {"GET / HTTP/1.1\r\nHost: a\r\nX-Abc: \rxTransfer-Encoding: chunked\r\n\r\n", STATUS_BAD_HTTP},
    {"GET / HTTP/1.1\r\nHost: a\r\nX Abc: 1\r\n\r\n", STATUS_BAD_HTTP},
    {"GET / HTTP/1.1\r\nHost: a\r\nX-Abc : 1\r\n\r\n", STATUS_BAD_HTTP},
    {"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", STATUS_BAD_HTTP},
    {"GET / HTTP/1.1\r\nHost: a\r\nnocolon\r\n\r\n", STATUS_BAD_HTTP},
    {"GET / HTTP/1.1\r\n\r\n", STATUS_BAD_HTTP},
    {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", STATUS_BAD_HTTP},
    {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", STATUS_BAD_HTTP},
    {"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", STATUS_BAD_HTTP},
    {"GET /a%00b HTTP/1.1\r\nHost: a\r\n\r\n", STATUS_BAD_HTTP},
    {"GET /a%4 HTTP/1.1\r\nHost: a\r\n\r\n", STATUS_BAD_HTTP},
    {"GET noslash HTTP/1.1\r\nHost: a\r\n\r\n", STATUS_BAD_HTTP},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: "
     "chunked\r\n\r\n0\r\n\r\n",
     STATUS_BAD_HTTP},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
     STATUS_BAD_HTTP},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello", STATUS_BAD_HTTP},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nhello", STATUS_BAD_HTTP},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nhello", STATUS_BAD_HTTP},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775808\r\n\r\nhello",
     STATUS_BAD_HTTP},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551617\r\n\r\nhello",
     STATUS_BAD_HTTP},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", STATUS_BAD_HTTP},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", STATUS_BAD_HTTP},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", STATUS_BAD_HTTP},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
     "chunked\r\n\r\n",
     STATUS_BAD_HTTP},
    {"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", STATUS_BAD_HTTP},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
     STATUS_BAD_HTTP},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", STATUS_BAD_HTTP},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5 ;ext\r\nhello\r\n0\r\n\r\n",
     STATUS_BAD_HTTP},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n",
     STATUS_BAD_HTTP},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
     STATUS_BAD_HTTP},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", STATUS_BAD_HTTP},
    {"POST / HTTP/1.1\r\nHost: a\r\nExpect: foo\r\nContent-Length: 1\r\n\r\n", STATUS_EXPECTATION},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 65\r\n\r\n", STATUS_TOO_LARGE},
    {"\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", STATUS_BAD_HTTP},
    /* its body would be the next request */
    {"CONNECT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", STATUS_BAD_HTTP},
};

START_TEST(what_parsers_disagree_about_is_refused)
{
    struct outcome out = feed_all_ways(refused[_i].text, NULL);
    ck_assert_msg(out.event == PARSE_ERROR, "accepted: %s", refused[_i].text);
    ck_assert_int_eq(out.status, refused[_i].status);
    ck_assert_uint_eq(out.n_complete, 0);
}
END_TEST

START_TEST(a_nul_byte_in_the_head_is_refused)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n";
    ck_assert_int_eq(feed(text, sizeof text - 1, sizeof text - 1, NULL).event, PARSE_ERROR);
}
END_TEST

static char *repeat(const char *prefix, char c, size_t n, const char *suffix)
{
    struct buf buf;
    buf_init(&buf, 1 << 20);
    buf_add_str(&buf, prefix);
    for (size_t i = 0; i < n; i++)
        buf_add_char(&buf, c);
    buf_add_str(&buf, suffix);
    return buf_take(&buf, NULL);
}

START_TEST(limits_hold_at_the_limit_and_one_past_it)
{
    struct {
        size_t n;
        enum status status;
    } lines[] = {{512 - strlen("GET / HTTP/1.1"), STATUS_OK},
                 {513 - strlen("GET / HTTP/1.1"), STATUS_URI_TOO_LONG}};
    for (size_t i = 0; i < 2; i++) {
        char *text = repeat("GET /", 'a', lines[i].n, " HTTP/1.1\r\nHost: a\r\n\r\n");
        struct outcome out = feed(text, strlen(text), strlen(text), NULL);
        ck_assert_int_eq(out.status, lines[i].status);
        free(text);
    }
    char *line = repeat("GET / HTTP/1.1\r\nHost: a\r\nx:", 'a', 511, "\r\n\r\n");
    ck_assert_int_eq(feed(line, strlen(line), 99, NULL).status, STATUS_HEADERS_TOO_LARGE);
    free(line);
    for (unsigned n = 10; n <= 11; n++) {
        struct buf buf;
        buf_init(&buf, 1 << 16);
        buf_add_str(&buf, "GET / HTTP/1.1\r\nHost: a\r\n");
        for (unsigned i = 1; i < n; i++)
            buf_printf(&buf, "h%u: 1\r\n", i);
        buf_add_str(&buf, "\r\n");
        ck_assert_int_eq(feed(buf.data, buf.len, 7, NULL).status,
                         n == 10 ? STATUS_OK : STATUS_HEADERS_TOO_LARGE);
        buf_done(&buf);
    }
    char *fits = repeat("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 64\r\n\r\n", 'b', 64, "");
    ck_assert_uint_eq(feed(fits, strlen(fits), 5, NULL).body_len, 64);
    free(fits);
    char *chunked = repeat("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n41\r\n",
                           'b', 65, "\r\n0\r\n\r\n");
    ck_assert_int_eq(feed(chunked, strlen(chunked), 5, NULL).status, STATUS_TOO_LARGE);
    free(chunked);
}
END_TEST

START_TEST(keep_alive_follows_version_and_connection_header)
{
    static const struct {
        const char *text;
        bool keep_alive;
    } table[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", true},
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, Close\r\n\r\n", false},
        {"GET / HTTP/1.0\r\n\r\n", false},
        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct request_parser *parser = request_parser_new(&limits);
        size_t used;
        struct error err = {0};
        ck_assert_int_eq(
            request_parser_feed(parser, table[i].text, strlen(table[i].text), &used, &err),
            PARSE_HEADERS);
        ck_assert_int_eq(request_parser_request(parser)->keep_alive, table[i].keep_alive);
        request_parser_free(parser);
    }
}
END_TEST

START_TEST(paths_have_one_normal_form)
{
    ck_assert_str_eq(
        feed_all_ways("GET http://h:1/v1/models?x=1 HTTP/1.1\r\nHost: a\r\n\r\n", NULL).path,
        "/v1/models");
    ck_assert_str_eq(feed_all_ways("GET http://h HTTP/1.1\r\nHost: a\r\n\r\n", NULL).path, "/");
    ck_assert_str_eq(
        feed_all_ways("GET /v1/chat%2Fcompletions HTTP/1.1\r\nHost: a\r\n\r\n", NULL).path,
        "/v1/chat/completions");
    ck_assert_str_eq(feed_all_ways("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", NULL).path, "*");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("request_parser");
    TCase *tc = tcase_create("requests");
    tcase_add_test(tc, a_request_is_read_whole_and_in_pieces);
    tcase_add_test(tc, chunked_bodies_and_pipelined_requests_are_read_in_order);
    tcase_add_test(tc, an_offered_upgrade_is_not_taken_up);
    tcase_add_test(tc, keep_alive_follows_version_and_connection_header);
    tcase_add_test(tc, paths_have_one_normal_form);
    tcase_add_loop_test(tc, what_parsers_disagree_about_is_refused, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_test(tc, a_nul_byte_in_the_head_is_refused);
    tcase_add_test(tc, limits_hold_at_the_limit_and_one_past_it);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
