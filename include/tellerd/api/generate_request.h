#ifndef TELLERD_API_GENERATE_REQUEST_H
#define TELLERD_API_GENERATE_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "tellerd/api/text_stream.h"
#include "tellerd/engine/request.h"
#include "tellerd/model/checkpoint.h"
#include "tellerd/model/sampler.h"

/*
 * A chat or completion request after every field was checked: no JSON types beyond the message
 * list, no uv, no engine, so that it can be fuzzed.
 */
enum {
    REQUEST_MAX_PROMPTS = 64,
    REQUEST_MAX_STOPS = TEXT_STREAM_MAX_STOPS,
    REQUEST_MAX_MESSAGES = 16384,
    COMPLETION_MAX_LOGPROBS = 5, /* the legacy endpoint's own bound */
};

enum request_kind { REQUEST_CHAT, REQUEST_COMPLETION };

/* What the checks need to know of the model. */
struct request_limits {
    const char *model_id;
    uint32_t n_context;
    uint32_t n_tokens;  /* the tokenizer's size: ids at or above are refused */
    uint32_t bank_rows; /* 0 without */
    const struct generation_defaults *defaults;
};

struct text_prompt {
    const char *text; /* borrowed from the body, or NULL when ids are given */
    size_t len;
    uint32_t *ids;
    uint32_t n_ids;
};

struct generate_request {
    enum request_kind kind;
    json_t
        *body; /* owned; message list and prompt texts are borrowed from it; NULL once forgotten */
    bool stream, include_usage;
    bool echo, return_token_ids;
    bool add_generation_prompt, continue_final_message;
    uint32_t n;
    int64_t max_tokens;       /* -1: up to the context */
    struct sampling sampling; /* owns bias and stop ids */
    bool has_seed;
    struct stop_set stops;
    bool logprobs; /* the response has a logprobs object */
    int32_t n_prompt_logprobs;
    bool has_prompt_logprobs; /* the request has the field: so has the response */
    int32_t priority;
    uint64_t cache_salt;
    const json_t *messages; /* chat */
    const json_t *template_kwargs;
    struct text_prompt prompts[REQUEST_MAX_PROMPTS]; /* completion */
    uint32_t n_prompts;
    char ignored[256]; /* names of unknown fields, comma-separated, safe for a header */
};

/* Takes body (also on failure it is freed by generate_request_done).  Errors: 4xx with param.  Any
 * thread. */
enum status generate_request_read(struct generate_request *request, enum request_kind kind,
                                  json_t *body, const struct request_limits *limits,
                                  struct error *err) WARN_UNUSED;
/* Frees the body, which may be large, and what of prompts and messages was borrowed from it: they
 * have become tokens.  Any thread. */
void generate_request_forget_body(struct generate_request *request);
void generate_request_done(struct generate_request *request);

#endif
