#include "config.h"

#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/api/generate_request.h"
#include "tellerd/api/json_read.h"

static const struct request_limits limits = {.model_id = "m", .n_context = 64, .n_tokens = 100};

static enum status read_as(enum request_kind kind, const char *text,
                           struct generate_request *request, struct error *err)
{
    json_t *body = json_loads(text, JSON_ALLOW_NUL, NULL);
    ck_assert_msg(body != NULL, "test body does not parse: %s", text);
    memset(err, 0, sizeof *err);
    return generate_request_read(request, kind, body, &limits, err);
}

/* head, n times piece, tail; free with free(). */
static char *repeated(const char *head, const char *piece, size_t n, const char *tail)
{
    struct buf text;
    buf_init(&text, 1u << 26);
    buf_add_str(&text, head);
    for (size_t i = 0; i < n; i++)
        buf_add_str(&text, piece);
    ck_assert(buf_add_str(&text, tail));
    return buf_take(&text, NULL);
}

#define MESSAGES "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]"

static const struct {
    const char *body; /* chat: fields besides messages */
    const char *param;
} refused_chat[] = {
    {"\"max_tokens\":-1", "max_tokens"},
    {"\"max_tokens\":\"256\"", "max_tokens"},
    {"\"max_tokens\":10.5", "max_tokens"},
    {"\"max_tokens\":true", "max_tokens"},
    {"\"stream\":\"true\"", "stream"},
    {"\"stream\":1", "stream"},
    {"\"temperature\":\"0.5\"", "temperature"},
    {"\"temperature\":-0.1", "temperature"},
    {"\"temperature\":2.1", "temperature"},
    {"\"top_p\":1.1", "top_p"},
    {"\"top_p\":-0.1", "top_p"},
    {"\"top_k\":-2", "top_k"},
    {"\"min_p\":1.5", "min_p"},
    {"\"presence_penalty\":2.1", "presence_penalty"},
    {"\"frequency_penalty\":-2.1", "frequency_penalty"},
    {"\"n\":0", "n"},
    {"\"n\":-1", "n"},
    {"\"n\":129", "n"},
    {"\"n\":1000000000", "n"},
    {"\"n\":true", "n"},
    {"\"seed\":1.5", "seed"},
    {"\"model\":5", "model"},
    {"\"model\":\"other\"", "model"},
    {"\"stop\":\"\"", "stop"},
    {"\"stop\":[\"\"]", "stop"},
    {"\"stop\":[null]", "stop"},
    {"\"stop\":[\"a\",1]", "stop"},
    {"\"stop\":{}", "stop"},
    {"\"logit_bias\":{\"AI\":-100}", "logit_bias"},
    {"\"logit_bias\":{\"100\":5}", "logit_bias"},
    {"\"logit_bias\":{\"-1\":5}", "logit_bias"},
    {"\"logit_bias\":{\"4294967296\":1}", "logit_bias"},
    {"\"logit_bias\":{\"1\":\"x\"}", "logit_bias"},
    {"\"logit_bias\":{\" 1\":1}", "logit_bias"},
    {"\"logit_bias\":{\"1\":-101}", "logit_bias"},
    {"\"logit_bias\":[]", "logit_bias"},
    {"\"logit_bias\":{\"01\":1}", "logit_bias"},
    {"\"top_logprobs\":2", "top_logprobs"},
    {"\"logprobs\":true,\"top_logprobs\":21", "top_logprobs"},
    {"\"logprobs\":1", "logprobs"},
    {"\"stream_options\":{\"include_usage\":true}", "stream_options"},
    {"\"stream\":true,\"stream_options\":[]", "stream_options"},
    {"\"stop_token_ids\":[100]", "stop_token_ids"},
    {"\"stop_token_ids\":[-1]", "stop_token_ids"},
    {"\"response_format\":{\"type\":\"json_schema\"}", "response_format"},
    {"\"response_format\":{}", "response_format"},
    {"\"response_format\":\"text\"", "response_format"},
    {"\"tools\":[{\"type\":\"function\"}]", "tools"},
    {"\"tools\":{}", "tools"},
    {"\"tool_choice\":{\"type\":\"function\"}", "tool_choice"},
    {"\"chat_template\":\"{{ x }}\"", "chat_template"},
    {"\"chat_template_kwargs\":{\"chat_template\":\"x\"}", "chat_template_kwargs"},
    {"\"store\":true", "store"},
    {"\"functions\":[]", "functions"},
    {"\"audio\":{}", "audio"},
    {"\"modalities\":[\"audio\"]", "modalities"},
    {"\"best_of\":2", "best_of"},
    {"\"stream\":true,\"prompt_logprobs\":1", "prompt_logprobs"},
    {"\"continue_final_message\":true,\"add_generation_prompt\":true", "continue_final_message"},
};

START_TEST(a_bad_chat_field_is_refused_by_name)
{
    char body[512];
    struct generate_request request;
    struct error err;
    snprintf(body, sizeof body, "{" MESSAGES ",%s}", refused_chat[_i].body);
    ck_assert_msg(read_as(REQUEST_CHAT, body, &request, &err) != STATUS_OK, "accepted: %s", body);
    ck_assert_str_eq(err.param, refused_chat[_i].param);
    ck_assert_str_ne(err.text, "");
    ck_assert_int_lt(status_http(err.status), 500);
    generate_request_done(&request);
}
END_TEST

static const char *const bad_messages[] = {
    "{}",
    "{\"messages\":[]}",
    "{\"messages\":{}}",
    "{\"messages\":[null]}",
    "{\"messages\":[{\"role\":\"user\"}]}",
    "{\"messages\":[{\"content\":\"x\"}]}",
    "{\"messages\":[{\"role\":\"banana\",\"content\":\"x\"}]}",
    "{\"messages\":[{\"role\":\"user\",\"content\":5}]}",
    "{\"messages\":[{\"role\":\"user\",\"content\":[\"a\"]}]}",
    "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]}",
    "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":5}]}]}",
    "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{}}]}]}",
    "{\"messages\":[{\"role\":1,\"content\":\"x\"}]}",
};

START_TEST(bad_messages_are_refused)
{
    struct generate_request request;
    struct error err;
    ck_assert(read_as(REQUEST_CHAT, bad_messages[_i], &request, &err) != STATUS_OK);
    ck_assert_str_eq(err.param, "messages");
    generate_request_done(&request);
}
END_TEST

static const char *const good_chat[] = {
    "\"max_tokens\":null,\"temperature\":null,\"top_p\":null,\"n\":null,\"seed\":null,\"stop\":"
    "null,\"stream\":null,\"logit_bias\":null,"
    "\"user\":null,\"tools\":null,\"response_format\":null,\"stream_options\":null",
    "\"tools\":[],\"tool_choice\":\"none\",\"stop\":[]",
    "\"temperature\":1",
    "\"temperature\":0,\"top_p\":0",
    "\"top_k\":1000000000",
    "\"max_tokens\":0",
    "\"max_tokens\":9223372036854775807",
    "\"logprobs\":true,\"top_logprobs\":0",
    "\"logprobs\":true,\"top_logprobs\":20",
    "\"response_format\":{\"type\":\"text\"}",
    "\"store\":false",
    "\"metadata\":{\"a\":\"b\"},\"service_tier\":\"auto\"",
    "\"n\":128",
    "\"model\":\"m\"",
    "\"unknown_field\":[1,2,{}]",
};

START_TEST(null_is_absent_and_borders_are_accepted)
{
    char body[1024];
    struct generate_request request;
    struct error err;
    snprintf(body, sizeof body, "{" MESSAGES ",%s}", good_chat[_i]);
    ck_assert_msg(read_as(REQUEST_CHAT, body, &request, &err) == STATUS_OK, "%s: %s", body,
                  err.text);
    generate_request_done(&request);
}
END_TEST

START_TEST(whole_numbers_may_be_written_as_reals_and_the_newer_name_wins)
{
    struct generate_request request;
    struct error err;
    ck_assert_int_eq(read_as(REQUEST_CHAT, "{" MESSAGES ",\"max_tokens\":10.0}", &request, &err),
                     STATUS_OK);
    ck_assert_int_eq(request.max_tokens, 10);
    generate_request_done(&request);
    ck_assert_int_eq(read_as(REQUEST_CHAT,
                             "{" MESSAGES ",\"max_tokens\":5,\"max_completion_tokens\":3}",
                             &request, &err),
                     STATUS_OK);
    ck_assert_int_eq(request.max_tokens, 3);
    generate_request_done(&request);
    ck_assert_int_eq(read_as(REQUEST_CHAT, "{" MESSAGES "}", &request, &err), STATUS_OK);
    ck_assert_int_eq(request.max_tokens, -1);
    generate_request_done(&request);
}
END_TEST

static const struct {
    const char *prompt;
    uint32_t n_prompts;
} prompts[] = {
    {"\"hi\"", 1},
    {"[\"hi\",\"yo\"]", 2},
    {"[12,34]", 1},
    {"[[12,34],[56]]", 2},
    {"[\"hi\",12]", 0},
    {"[[1],\"x\"]", 0},
    {"[]", 0},
    {"[[]]", 0},
    {"[-1]", 0},
    {"[[-1]]", 0},
    {"[100]", 0},
    {"[99]", 1},
    {"[5279552648203111001]", 0},
    {"[1.5]", 0},
    {"[true]", 0},
    {"[null]", 0},
    {"5", 0},
    {"{}", 0},
    {"[\"\"]", 1},
    {"\"\"", 1},
    {"null", 0},
    {"[1,[2]]", 0},
};

START_TEST(numbers_of_a_hopeless_list_of_ids_are_told)
{
    enum { N = 64 * 4 + 4096 + 1 };
    struct generate_request request;
    struct error err;
    char *text = repeated("{\"prompt\":[1", ",1", N - 1, "]}");
    ck_assert_int_eq(read_as(REQUEST_COMPLETION, text, &request, &err), STATUS_CONTEXT_LENGTH);
    ck_assert_uint_eq(err.n_prompt_tokens, N);
    ck_assert_uint_eq(err.n_ctx, 64);
    ck_assert_str_eq(err.param, "prompt");
    generate_request_done(&request);
    free(text);
}
END_TEST

START_TEST(all_prompt_forms_are_read_and_others_refused)
{
    char body[256];
    struct generate_request request;
    struct error err;
    snprintf(body, sizeof body, "{\"prompt\":%s}", prompts[_i].prompt);
    enum status status = read_as(REQUEST_COMPLETION, body, &request, &err);
    ck_assert_msg((status == STATUS_OK) == (prompts[_i].n_prompts > 0), "%s: %s", body, err.text);
    if (status == STATUS_OK)
        ck_assert_uint_eq(request.n_prompts, prompts[_i].n_prompts);
    else
        ck_assert_str_eq(err.param, "prompt");
    generate_request_done(&request);
}
END_TEST

START_TEST(unknown_fields_are_listed_without_control_characters)
{
    struct generate_request request;
    struct error err;
    ck_assert_int_eq(read_as(REQUEST_CHAT,
                             "{" MESSAGES ",\"foo\":1,\"user\":\"u\",\"a\\r\\nb: c\":2}", &request,
                             &err),
                     STATUS_OK);
    ck_assert_ptr_nonnull(strstr(request.ignored, "foo"));
    ck_assert_ptr_nonnull(strstr(request.ignored, "user"));
    ck_assert_ptr_null(strpbrk(request.ignored, "\r\n :"));
    generate_request_done(&request);
}
END_TEST

START_TEST(a_body_of_countless_values_is_refused_unparsed)
{
    size_t n = JSON_MAX_VALUES + 100;
    struct error err = {0};
    json_t *body = NULL;
    char *text = repeated("{\"prompt\":[1", ",1", n, "]}");
    ck_assert_int_eq(json_read_body(text, strlen(text), &body, &err), STATUS_BAD_JSON);
    ck_assert_ptr_nonnull(strstr(err.text, "values"));
    free(text);
    text = repeated("{\"prompt\":\"\\\"", ",", n, "\"}");
    ck_assert_int_eq(json_read_body(text, strlen(text), &body, &err), STATUS_OK);
    ck_assert_uint_eq(json_string_length(json_field(body, "prompt")), n + 1);
    json_decref(body);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("generate_request");
    TCase *tc = tcase_create("fields");
#define N(array) (int)(sizeof(array) / sizeof *(array))
    tcase_add_loop_test(tc, a_bad_chat_field_is_refused_by_name, 0, N(refused_chat));
    tcase_add_loop_test(tc, bad_messages_are_refused, 0, N(bad_messages));
    tcase_add_loop_test(tc, null_is_absent_and_borders_are_accepted, 0, N(good_chat));
    tcase_add_test(tc, whole_numbers_may_be_written_as_reals_and_the_newer_name_wins);
    tcase_add_test(tc, numbers_of_a_hopeless_list_of_ids_are_told);
    tcase_add_loop_test(tc, all_prompt_forms_are_read_and_others_refused, 0, N(prompts));
    tcase_add_test(tc, a_body_of_countless_values_is_refused_unparsed);
    tcase_add_test(tc, unknown_fields_are_listed_without_control_characters);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
