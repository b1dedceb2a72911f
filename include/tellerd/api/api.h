#ifndef TELLERD_API_API_H
#define TELLERD_API_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/api/key.h"
#include "tellerd/base/hash.h"
#include "tellerd/base/metrics.h"
#include "tellerd/base/status.h"
#include "tellerd/engine/engine.h"
#include "tellerd/http/server.h"
#include "tellerd/model/chat.h"
#include "tellerd/model/checkpoint.h"
#include "tellerd/model/tokenizer.h"

/*
 * The HTTP endpoints in terms of the engine: routes, keys, JSON in, JSON and server-sent events
 * out.  Knows nothing of libuv: the daemon lends it a thread pool and a clock through hooks.  Loop
 * thread only, but for the work of a job.
 */
struct api;

/* Tags of listeners: which routes a listener offers. */
enum api_listener { API_LISTENER_MAIN, API_LISTENER_METRICS, API_LISTENER_CONTROL };

/* A piece of work off the loop: `work` runs on a pool thread, then `done` on the loop, always. */
struct api_job {
    void (*work)(struct api_job *job);
    void (*done)(struct api_job *job);
    void *pool_data; /* the daemon's */
};

struct api_hooks {
    void (*run_job)(void *ctx, struct api_job *job);
    /* control socket: start a drain; reload the configuration (the error is the answer) */
    void (*drain)(void *ctx);
    enum status (*reload)(void *ctx, struct error *err);
    void *ctx;
};

struct api_config {
    size_t max_body_bytes;
    uint64_t queue_timeout_ns; /* 0 = none */
    uint64_t keepalive_ns;     /* comment line on a stream that was silent so long; 0 = none */
    bool metrics_need_key;     /* /metrics on the main listener */
    const char *version;
};

struct api_model { /* borrowed; must outlive the api */
    const char *id;
    struct engine *engine;
    const struct tokenizer *tokenizer;
    const struct chat_template
        *chat; /* NULL: /v1/chat/completions is refused with the reason in no_chat_reason */
    const char *no_chat_reason;
    const struct generation_defaults *defaults;
    uint32_t bank_rows; /* 0 without a bank: ids beyond are refused */
    uint64_t fingerprint;
    uint64_t created; /* seconds since 1970, for /v1/models */
};

struct api *api_new(const struct api_config *config, const struct api_hooks *hooks,
                    struct metrics *metrics);
void api_free(struct api *api);
/* What http_server_new wants. */
struct http_handler api_handler(struct api *api);

/* How far loading is, in [0, 1], for the 503 while there is no model; then the model, once. */
void api_set_progress(struct api *api, double share);
void api_set_model(struct api *api, const struct api_model *model);
/* New keys (copied); none = no key is asked for.  Live requests go on. */
void api_set_keys(struct api *api, const struct api_key *keys, size_t n_keys);
void api_set_config(struct api *api, const struct api_config *config);
/* Readiness is off from now on, requests are still taken (a balancer has time to notice). */
void api_set_leaving(struct api *api);
/* From now on new generations are refused with SHUTTING_DOWN and readiness is off. */
void api_set_draining(struct api *api);
/* Ends all live generations with an error event or a 503 (drain time is over). */
void api_abort_all(struct api *api);
/* Readiness: a model, an engine that has not failed, not draining. */
bool api_ready(const struct api *api);

/* Handles and frees a list of engine events, oldest first (struct engine_event begins with its
 * node). */
void api_engine_events(struct api *api, struct queue_node *first);
/* Once a second or so: keep-alive comments. */
void api_tick(struct api *api, uint64_t now_ns);
/* Generations that are not over. */
uint32_t api_generations(const struct api *api);

#endif
