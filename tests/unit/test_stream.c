#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/api_harness.h"
#include "support/check_main.h"
#include "support/vocab_builder.h"

/* Requests as the socket sees them, without an engine: the bytes of a chunk, that a token costs no
 * allocation, and what happens while the pool has a request. */

enum { STREAMS = 3, READ_MAX = 1 << 16 };

static struct api_harness h;
static struct vocab_builder vocab;
static struct tokenizer *tokenizer;
static char text[READ_MAX];

static void set_up(void)
{
    vocab_bytes(&vocab, SPLIT_GPT2);
    tokenizer = vocab_tokenizer(&vocab);
    api_harness_open(&h, tokenizer, NULL);
}

static void tear_down(void)
{
    api_harness_close(&h);
    tokenizer_free(tokenizer);
}

/* What has come so far, NUL-terminated. */
static const char *read_now(int fd)
{
    size_t len = 0;
    ssize_t n;
    while ((n = read(fd, text + len, sizeof text - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    return text;
}

static void end(const int *fds, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        api_harness_end(&h, i, FINISH_LENGTH);
    api_harness_deliver(&h);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_ptr_nonnull(strstr(read_now(fds[i]), "data: [DONE]\n\n\r\n0\r\n\r\n"));
        close(fds[i]);
    }
}

START_TEST(a_token_of_a_stream_allocates_nothing)
{
    int fds[STREAMS];
    for (int i = 0; i < STREAMS; i++)
        fds[i] = api_harness_post(&h, "/v1/completions",
                                  i == 1 ? "{\"prompt\":\"a\",\"stream\":true,\"stop\":[\"zzz\"]}"
                                         : "{\"prompt\":\"a\",\"stream\":true}");
    for (int step = 0; step < 200; step++) {
        unsigned long before = api_harness_allocations();
        for (uint32_t i = 0; i < STREAMS; i++)
            api_harness_token(&h, i, 'a' + (uint32_t)step % 26);
        api_harness_deliver(&h);
        if (step > 100) /* buffers have grown to what they need */
            ck_assert_uint_eq(api_harness_allocations(), before);
        for (int i = 0; i < STREAMS; i++)
            read_now(fds[i]);
    }
    end(fds, STREAMS);
}
END_TEST

/* The JSON of the one event in an HTTP chunk whose length must be right. */
static json_t *event_of(const char *chunk)
{
    unsigned long len = strtoul(chunk, NULL, 16);
    const char *data = strstr(chunk, "\r\n");
    ck_assert_ptr_nonnull(data);
    data += 2;
    ck_assert_uint_eq(strlen(data), len + 2);
    ck_assert(strncmp(data, "data: ", 6) == 0);
    ck_assert_str_eq(data + len - 3, "}\n\n\r\n");
    json_t *json = json_loadb(data + 6, len - 8, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_ptr_nonnull(json);
    return json;
}

START_TEST(a_chunk_says_whose_it_is_and_what_is_new)
{
    static const char *const bodies[] = {
        "{\"prompt\":\"a\",\"stream\":true}",
        "{\"prompt\":\"a\",\"stream\":true,\"n\":1,\"stream_options\":{\"include_usage\":true}}",
        "{\"prompt\":\"a\",\"stream\":true,\"return_token_ids\":true}",
    };
    int fds[STREAMS];
    json_t *ids[STREAMS] = {0};
    for (int i = 0; i < STREAMS; i++)
        fds[i] = api_harness_post(&h, "/v1/completions", bodies[i]);
    for (uint32_t step = 0; step < 3; step++) {
        for (uint32_t i = 0; i < STREAMS; i++)
            api_harness_token(&h, i, "a\"z"[step]);
        api_harness_deliver(&h);
        for (int i = 0; i < STREAMS; i++) {
            const char *chunk = read_now(fds[i]);
            if (step == 0)
                chunk = strstr(chunk, "\r\n\r\n") + 4;
            json_t *event = event_of(chunk);
            const char *object, *model, *id, *piece, *fingerprint;
            json_t *finish, *logprobs;
            json_int_t created, index;
            ck_assert_int_eq(json_unpack(event, "{s:s,s:s,s:s,s:I,s:s,s:[{s:I,s:s,s:o,s:o}]}", "id",
                                         &id, "object", &object, "model", &model, "created",
                                         &created, "system_fingerprint", &fingerprint, "choices",
                                         "index", &index, "text", &piece, "finish_reason", &finish,
                                         "logprobs", &logprobs),
                             0);
            ck_assert_str_eq(object, "text_completion");
            ck_assert_str_eq(model, "harness-model-135m");
            ck_assert_str_eq(fingerprint, "fp_1234abcd");
            ck_assert_int_eq(index, 0);
            ck_assert_int_eq(piece[0], "a\"z"[step]);
            ck_assert_uint_eq(strlen(piece), 1);
            ck_assert(json_is_null(finish) && json_is_null(logprobs));
            json_t *token_ids =
                json_object_get(json_array_get(json_object_get(event, "choices"), 0), "token_ids");
            ck_assert_int_eq(token_ids != NULL, i == 2);
            ck_assert(!token_ids ||
                      json_integer_value(json_array_get(token_ids, 0)) == "a\"z"[step]);
            ck_assert_int_eq(json_object_get(event, "usage") != NULL, i == 1);
            if (step == 0)
                ids[i] = json_incref(json_object_get(event, "id"));
            ck_assert(json_equal(ids[i], json_object_get(event, "id")));
            json_decref(event);
        }
    }
    for (int i = 0; i < STREAMS; i++) {
        ck_assert(i == 0 || !json_equal(ids[0], ids[i]));
        json_decref(ids[i]);
    }
    end(fds, STREAMS);
}
END_TEST

START_TEST(all_of_a_step_leaves_a_connection_as_one_chunk)
{
    int fd = api_harness_post(&h, "/v1/completions", "{\"prompt\":\"a\",\"stream\":true}");
    api_harness_token(&h, 0, 'a');
    api_harness_deliver(&h);
    read_now(fd);
    for (int i = 0; i < 4; i++)
        api_harness_token(&h, 0, 'b');
    api_harness_deliver(&h);
    json_t *event = event_of(read_now(fd));
    const char *piece;
    ck_assert_int_eq(json_unpack(event, "{s:[{s:s}]}", "choices", "text", &piece), 0);
    ck_assert_str_eq(piece, "bbbb");
    json_decref(event);
    end(&fd, 1);
}
END_TEST

/* --- what goes to the pool ------------------------------------------------------------------ */

enum { INLINE_BYTES = 8192 }; /* of a body */

/* A request with a body of exactly len bytes, taken while jobs are held. */
static int post_of(const char *path, size_t len)
{
    static char body[API_HARNESS_BODY_MAX];
    static const char begin[] = "{\"prompt\":\"ab\",\"user\":\"";
    memset(body, 'u', len);
    memcpy(body, begin, sizeof begin - 1);
    memcpy(body + len - 2, "\"}", 3);
    h.holds_jobs = true;
    return api_harness_post(&h, path, body);
}

START_TEST(a_body_over_the_bound_is_read_in_the_pool)
{
    int small = post_of("/v1/completions", INLINE_BYTES);
    ck_assert_ptr_null(h.held_job);
    ck_assert_uint_eq(h.n_submitted, 1);
    int large = post_of("/v1/completions", INLINE_BYTES + 1);
    ck_assert_ptr_nonnull(h.held_job);
    ck_assert_uint_eq(h.n_submitted, 1);
    /* the loop is free meanwhile */
    api_harness_token(&h, 0, 'x');
    api_harness_end(&h, 0, FINISH_STOP);
    api_harness_deliver(&h);
    ck_assert_ptr_nonnull(strstr(read_now(small), "\"text\":\"x\""));
    api_harness_run_job(&h);
    ck_assert_uint_eq(h.n_submitted, 2);
    api_harness_token(&h, 1, 'y');
    api_harness_end(&h, 1, FINISH_STOP);
    api_harness_deliver(&h);
    ck_assert_ptr_nonnull(strstr(read_now(large), "\"text\":\"y\""));
    close(small);
    close(large);
}
END_TEST

START_TEST(a_client_may_leave_while_the_pool_has_its_request)
{
    static const char *const paths[] = {"/v1/completions", "/tokenize", "/detokenize"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        int fd = post_of(paths[i], INLINE_BYTES + 1);
        ck_assert_ptr_nonnull(h.held_job);
        close(fd);
        for (int turn = 0; turn < 1000 && http_server_connections(h.http) > 0; turn++)
            uv_run(&h.loop, UV_RUN_NOWAIT);
        ck_assert_uint_eq(http_server_connections(h.http), 0);
        ck_assert_uint_eq(api_generations(h.api), i == 0);
        api_harness_run_job(&h);
        ck_assert_uint_eq(api_generations(h.api), 0);
        ck_assert_uint_eq(h.n_submitted, 0);
    }
}
END_TEST

START_TEST(an_abort_answers_while_the_pool_has_the_request)
{
    int fd = post_of("/v1/completions", INLINE_BYTES + 1);
    api_abort_all(h.api);
    api_tick(h.api, UINT64_MAX);
    api_harness_turn(&h);
    ck_assert_ptr_nonnull(strstr(read_now(fd), "HTTP/1.1 503 "));
    api_harness_run_job(&h);
    ck_assert_uint_eq(api_generations(h.api), 0);
    ck_assert_uint_eq(h.n_submitted, 0);
    close(fd);
}
END_TEST

START_TEST(a_large_body_is_refused_as_a_small_one_is)
{
    static char body[API_HARNESS_BODY_MAX];
    static const struct {
        const char *path, *begin, *code;
    } cases[] = {
        {"/v1/completions", "{\"prompt\":\"ab\",,", "\"invalid_json\""},
        {"/v1/completions", "{\"max_tokens\":-1,\"prompt\":\"ab\",\"user\":\"", "\"max_tokens\""},
        {"/v1/completions", "{\"user\":\"", "\"missing_required_parameter\""},
        {"/tokenize", "{\"user\":\"", "\"missing_required_parameter\""},
        {"/detokenize", "{\"tokens\":[1,-1],\"user\":\"", "\"invalid_value\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(body, 'u', INLINE_BYTES + 1);
        memcpy(body, cases[i].begin, strlen(cases[i].begin));
        memcpy(body + INLINE_BYTES - 1, "\"}", 3);
        h.holds_jobs = true;
        int fd = api_harness_post(&h, cases[i].path, body);
        api_harness_run_job(&h);
        api_harness_turn(&h);
        const char *answer = read_now(fd);
        ck_assert_msg(strstr(answer, "HTTP/1.1 400 ") && strstr(answer, cases[i].code), "%s",
                      answer);
        close(fd);
    }
    ck_assert_uint_eq(api_generations(h.api), 0);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD_FIXTURE(suite, "pool", set_up, tear_down, a_body_over_the_bound_is_read_in_the_pool,
                      a_client_may_leave_while_the_pool_has_its_request,
                      an_abort_answers_while_the_pool_has_the_request,
                      a_large_body_is_refused_as_a_small_one_is);
    CHECK_ADD_FIXTURE(suite, "streams", set_up, tear_down, a_token_of_a_stream_allocates_nothing,
                      a_chunk_says_whose_it_is_and_what_is_new,
                      all_of_a_step_leaves_a_connection_as_one_chunk);
}

CHECK_MAIN("stream", add_cases)
