#ifndef TELLERD_BASE_STATUS_H
#define TELLERD_BASE_STATUS_H

/*
 * Status codes and the error that travels with them.  One table: code, HTTP status, OpenAI error
 * type, OpenAI error code, short public text.  A function that can fail returns enum status (0 is
 * success) and gives its values through ret_ parameters, which it leaves untouched on failure.
 * struct error carries the text for a person; it is optional everywhere (NULL is allowed).
 */

/* clang-format off */
#define STATUS_TABLE(X)                                                                                                 \
    X(OK,                  200, "",                      "",                         "success")                        \
    X(INVALID,             400, "invalid_request_error", "invalid_value",            "invalid value")                  \
    X(BAD_JSON,            400, "invalid_request_error", "invalid_json",             "the body is not valid JSON")     \
    X(MISSING,             400, "invalid_request_error", "missing_required_parameter", "a required parameter is missing") \
    X(UNSUPPORTED,         400, "invalid_request_error", "unsupported_parameter",    "this parameter is not supported") \
    X(CONTEXT_LENGTH,      400, "invalid_request_error", "context_length_exceeded",  "the prompt is too long")         \
    X(TEMPLATE_RAISED,     400, "invalid_request_error", "template_error",           "the chat template refused the messages") \
    X(TEMPLATE_FAILED,     400, "invalid_request_error", "template_failed",          "the chat template failed on the messages") \
    X(TEMPLATE_LIMIT,      400, "invalid_request_error", "template_limit",           "the chat template exceeded its limits") \
    X(BAD_HTTP,            400, "invalid_request_error", "bad_request",              "malformed HTTP request")         \
    X(UNAUTHORIZED,        401, "invalid_request_error", "invalid_api_key",          "missing or wrong API key")       \
    X(FORBIDDEN,           403, "invalid_request_error", "forbidden",                "not allowed")                    \
    X(NOT_FOUND,           404, "invalid_request_error", "not_found",                "no such resource")               \
    X(MODEL_NOT_FOUND,     404, "invalid_request_error", "model_not_found",          "no such model")                  \
    X(METHOD_NOT_ALLOWED,  405, "invalid_request_error", "method_not_allowed",       "method not allowed")             \
    X(REQUEST_TIMEOUT,     408, "invalid_request_error", "request_timeout",          "the request took too long to arrive") \
    X(TOO_LARGE,           413, "invalid_request_error", "request_too_large",        "the request body is too large")  \
    X(URI_TOO_LONG,        414, "invalid_request_error", "uri_too_long",             "the request line is too long")   \
    X(MEDIA_TYPE,          415, "invalid_request_error", "unsupported_media_type",   "the body must be JSON in UTF-8") \
    X(EXPECTATION,         417, "invalid_request_error", "expectation_failed",       "only Expect: 100-continue is known") \
    X(HEADERS_TOO_LARGE,   431, "invalid_request_error", "headers_too_large",        "the request headers are too large") \
    X(QUEUE_FULL,          429, "rate_limit_error",      "rate_limit_exceeded",      "too many requests are waiting")  \
    X(QUEUE_TIMEOUT,       503, "server_error",          "queue_timeout",            "the request waited too long")    \
    X(INTERNAL,            500, "server_error",          "internal_error",           "internal error")                 \
    X(NO_MEMORY,           500, "server_error",          "out_of_memory",            "out of memory")                  \
    X(BAD_LOGITS,          500, "server_error",          "numeric_error",            "the model produced invalid numbers") \
    X(NOT_IMPLEMENTED,     501, "server_error",          "not_implemented",          "not supported by this server")   \
    X(LOADING,             503, "server_error",          "loading",                  "the model is loading")           \
    X(OVERLOADED,          503, "server_error",          "overloaded",               "the server has as many connections as it takes")           \
    X(SHUTTING_DOWN,       503, "server_error",          "shutting_down",            "the server is shutting down")    \
    X(ENGINE_FAILED,       503, "server_error",          "engine_failed",            "the engine has failed")          \
    X(KV_FULL,             503, "server_error",          "kv_cache_full",            "the KV cache is full")           \
    X(CANCELLED,           499, "server_error",          "cancelled",                "cancelled")                      \
    X(IO,                  500, "server_error",          "io_error",                 "input/output error")             \
    X(BAD_FILE,            500, "server_error",          "bad_model_file",           "the file is damaged or not supported") \
    X(BAD_CONFIG,          500, "server_error",          "bad_configuration",        "bad configuration")              \
    X(END,                 500, "server_error",          "end",                      "end of input")
/* clang-format on */

#define STATUS_ENUM(name, http, type, code, text) STATUS_##name,
enum status { STATUS_TABLE(STATUS_ENUM) STATUS_COUNT };
#undef STATUS_ENUM

#define WARN_UNUSED            __attribute__((warn_unused_result))
#define PRINTF_LIKE(at, first) __attribute__((format(printf, at, first)))

enum { ERROR_TEXT_MAX = 512, ERROR_PARAM_MAX = 96 };

/* An error for a person: what is wrong and what to do.  `param` names the request field or option,
 * or is empty. */
struct error {
    enum status status;
    char param[ERROR_PARAM_MAX];
    char text[ERROR_TEXT_MAX];
    /* numbers a client can act on, sent when not 0: CONTEXT_LENGTH gives both */
    unsigned n_prompt_tokens;
    unsigned n_ctx;
    unsigned retry_after_s;
};

/* HTTP status / OpenAI error type / OpenAI code / short text of a status.  Any thread; never fail.
 */
int status_http(enum status status);
const char *status_type(enum status status);
const char *status_code(enum status status);
const char *status_text(enum status status);

/*
 * Fills *err (when not NULL) with status and the formatted text, cut at a UTF-8 border, control
 * characters replaced; clears param and numbers.  The arguments may point into *err.  Returns
 * status, so that `return error_set(err, STATUS_X,
 * "...")` reads well.  Any thread.
 */
enum status error_set(struct error *err, enum status status, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* As error_set, and names the request field or option at fault. */
enum status error_param(struct error *err, enum status status, const char *param,
                        const char *format, ...) PRINTF_LIKE(4, 5);

/* Puts "prefix: " in front of the text of *err (when not NULL), keeping status and param. */
void error_prefix(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* Runs a call that returns enum status; returns its failure from the calling function. */
#define TRY(call)                        \
    do {                                 \
        enum status try_status = (call); \
        if (try_status != STATUS_OK)     \
            return try_status;           \
    } while (0)

/* Contract check that stays in release builds: logs file, line and condition, then aborts.  Never
 * on outside input. */
#define REQUIRE(condition) ((condition) ? (void)0 : require_failed(__FILE__, __LINE__, #condition))
_Noreturn void require_failed(const char *file, int line, const char *condition);

#endif
