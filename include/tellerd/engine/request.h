#ifndef TELLERD_ENGINE_REQUEST_H
#define TELLERD_ENGINE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "tellerd/base/queue.h"
#include "tellerd/base/status.h"
#include "tellerd/model/sampler.h"

/*
 * What goes in and what comes out of the engine: messages that own their data.  A request is one
 * prompt with n choices; every request that was taken ends in exactly one EVENT_DONE, also when
 * cancelled or failed.
 */
enum { REQUEST_MAX_CHOICES = 128, REQUEST_NO_PROMPT_LOGPROBS = -1 };

enum finish_reason {
    FINISH_NONE,
    FINISH_STOP,
    FINISH_LENGTH,
    FINISH_CANCELLED,
    FINISH_ERROR,
    FINISH_COUNT
};
const char *
finish_reason_name(enum finish_reason reason); /* "stop", "length", "cancelled", "error" */

struct gen_request {
    uint64_t id; /* server-made, unique, never 0: the only key of engine tables */
    uint32_t
        *prompt; /* [n_prompt], ids checked against the vocabulary and the bank; n_prompt >= 1 */
    uint32_t n_prompt;
    uint32_t max_tokens; /* >= 0; the engine clamps to the context */
    uint32_t n_choices;  /* 1..REQUEST_MAX_CHOICES */
    struct sampling sampling;
    int32_t n_prompt_logprobs; /* REQUEST_NO_PROMPT_LOGPROBS, or 0..SAMPLER_MAX_LOGPROBS: report for
                                  each prompt token */
    int32_t priority;          /* lower runs first (as vLLM); default 0 */
    uint32_t tenant; /* index of the API key's tenant, 0 without keys: fairness between tenants */
    uint64_t cache_salt; /* part of the root of the prefix chain; 0 = none */
    bool no_prefix_cache;
    uint64_t arrival_ns;        /* clock_ns() when the request's first byte was read */
    uint64_t queue_deadline_ns; /* clock_ns() time by which it must have started, 0 = none:
                                   QUEUE_TIMEOUT */
    void *user;                 /* handed back in every event; the engine never follows it */
};

/* Frees a request and what it owns (prompt, bias, stop ids). */
void gen_request_free(struct gen_request *request);
/* A zeroed request with sampling_defaults, one choice, no prompt logprobs. */
struct gen_request *gen_request_new(void);

enum engine_event_kind {
    EVENT_STARTED, /* left the queue: n_cached says how many prompt tokens came from the prefix
                      cache */
    EVENT_PROMPT_LOGPROBS, /* one per prompt token asked for, in order; token.id = the prompt token;
                              the first has n_top 0 and logprob NAN */
    EVENT_TOKEN,           /* a sampled token of `choice`, end-of-generation tokens included */
    EVENT_CHOICE_DONE,     /* the choice ended with `reason`; with FINISH_ERROR `error` says why */
    EVENT_DONE, /* the request is gone from the engine; nothing follows.  reason and error:
                   of the request as a whole (an error or cancel of any choice, else
                   choice 0's) */
};

struct engine_event {
    struct queue_node node; /* first */
    enum engine_event_kind kind;
    uint64_t request_id;
    void *user;
    uint32_t choice;
    struct sampled token; /* logprob and top only when asked for */
    bool is_eog; /* EVENT_TOKEN: the token is an end-of-generation or stop id (its text is not
                    shown; it counts as a completion token) */
    enum finish_reason reason;
    struct error error;
    uint32_t n_cached;      /* EVENT_STARTED */
    uint32_t n_prompt_done; /* prompt positions computed so far, for progress */
    uint64_t time_ns;
};

#endif
