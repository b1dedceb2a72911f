#ifndef TELLERD_API_PRIV_H
#define TELLERD_API_PRIV_H

/* Inside layer api: the api's state, a generation (one chat or completion request) and its choices.
 * Loop thread only. */

#include "tellerd/api/api.h"
#include "tellerd/api/generate_request.h"
#include "tellerd/api/text_stream.h"
#include "tellerd/base/buf.h"
#include "tellerd/http/exchange.h"

enum {
    INLINE_BODY_BYTES = 8192, /* bodies up to this are parsed, rendered and tokenized on the loop,
                                 larger ones in the pool */
    MAX_RESPONSE_BYTES = 64 << 20, /* of one whole (not streamed) response */
    MAX_CHUNK_BYTES = 4 << 20,     /* of the events of one choice in one turn */
    MAX_CHUNK_HEAD_BYTES = 4096,
    KEPT_CHUNK_BYTES = 1 << 16, /* memory kept between two turns, for the chunks of one stream */
    MODEL_NAME_MAX = 256,
};

struct tenant_key {
    uint8_t digest[SHA256_BYTES];
    uint32_t tenant; /* 1.. */
};

struct api {
    struct api_config config;
    struct api_hooks hooks;
    struct metrics *metrics;
    struct api_model model;
    bool has_model, is_leaving, is_draining;
    double progress;
    struct tenant_key *keys;
    size_t n_keys;
    char (*tenants)[API_KEY_NAME_MAX]; /* name of tenant i at i; 0 is "anonymous" */
    uint32_t n_tenants;
    uint64_t next_request_id;
    struct generation *generations; /* all that are not over */
    uint32_t n_generations;
    struct metric **route_metrics; /* [routes][status classes] */
    struct buf chunks; /* of the stream at hand: one for all, so that a token needs no memory */
};

/* What an exchange's user pointer points to: whom to tell when the client leaves. */
struct exchange_owner {
    void (*client_left)(struct exchange_owner *owner);
};

/* One route of the table in routes.c. */
struct route {
    const char *path;
    unsigned methods; /* bits of 1 << enum http_method */
    bool needs_key;
    bool on_main, on_metrics, on_control;
    void (*handle)(struct api *api, struct exchange *ex);
};

/* A token whose logprobs wait for the text they belong to. */
struct pending_entry {
    size_t end;         /* byte offset in the choice's text where the token ends */
    size_t text_offset; /* characters of the text before the token */
    struct sampled token;
};

struct character_count { /* of a text that comes token by token */
    size_t n_chars;
    char tail[4]; /* the beginning of a character that is not complete yet */
    size_t n_tail;
};

struct choice {
    uint32_t index; /* in the response */
    struct text_stream text;
    struct buf
        content; /* chat and completion text, not streamed; streamed: the delta of this turn */
    struct pending_entry *pending;
    size_t n_pending, cap_pending;
    struct character_count characters; /* of the text so far, for text_offset */
    struct buf token_ids;              /* return_token_ids: "1,2,3" of this response or turn */
    uint32_t n_tokens;                 /* completion tokens, the counted ones */
    enum finish_reason finish;
    bool finished; /* its text is over, whatever the engine still sends */
    bool role_sent;
    bool touched; /* has something to send this turn */
    bool first_piece_seen;
};

struct prompt_state { /* one prompt = one engine request */
    struct generation *generation;
    uint64_t request_id; /* 0 when not submitted or done */
    uint32_t index;
    struct token_list ids;
    uint32_t n_tokens;  /* kept for usage when ids went to the engine */
    uint32_t *kept_ids; /* echo, return_token_ids, prompt_logprobs */
    uint32_t n_cached;
    struct sampled *logprobs; /* [n_tokens], of the prompt */
    uint32_t n_logprobs;      /* received */
};

enum generation_state { GENERATION_PREPARING, GENERATION_RUNNING, GENERATION_OVER };

struct generation {
    struct api_job job; /* first: the pool hands it back */
    struct exchange_owner owner;
    struct api *api;
    struct generation *next, *previous;
    struct exchange *exchange; /* NULL once the client left or the response ended */
    enum generation_state state;
    enum request_kind kind;
    char *body; /* as it came; owned, NULL once it was read */
    size_t body_len;
    struct generate_request request; /* while PREPARING the pool's, as are prompts and choices */
    struct request_limits limits;
    uint32_t tenant;
    char id[64];
    uint64_t created, arrival_ns, last_write_ns;
    struct buf chunk_head; /* streams: what all chunks begin with */
    uint64_t first_token_ns;
    struct prompt_state *prompts;
    uint32_t n_prompts, n_live; /* engine requests that are not done */
    struct choice *choices;     /* [n_prompts * n] */
    uint32_t n_choices, n_finished;
    struct error error; /* of preparing (from the pool) or of the engine */
    bool failed;        /* an engine error ended it */
    bool headers_sent;
    bool touched;
    struct generation *next_touched;
};

/* routes.c */
void api_on_done(void *ctx, struct exchange *ex, int http_status, uint64_t bytes);
/* A 503 with the reason unless a request can be taken now. */
bool api_require_model(struct api *api, struct exchange *ex);
void api_respond_json(struct exchange *ex, int http_status, const struct buf *body);
void api_respond_error(struct exchange *ex, enum status status, const char *param,
                       const char *text);

/* auth.c: tenant of the request's key; UNAUTHORIZED when keys are set and none matches. */
enum status auth_check(const struct api *api, const struct http_request *request,
                       uint32_t *ret_tenant, struct error *err);

/* generate.c */
void generate_chat(struct api *api, struct exchange *ex);
void generate_completion(struct api *api, struct exchange *ex);
void generation_abort(struct generation *generation, const struct error *err);
void generation_event(struct generation *generation, struct prompt_state *prompt,
                      const struct engine_event *event);
/* After a turn's events: sends what choices have to send, ends what is over. May free the
 * generation. */
void generation_flush(struct generation *generation);
void generation_tick(struct generation *generation, uint64_t now_ns);

/* prompt.c: renders and tokenizes all prompts of a generation; any thread, touches only the
 * generation. */
enum status prompt_prepare(struct generation *generation, struct error *err);
struct request_limits api_request_limits(const struct api *api);

/* generate_response.c */
/* The chunks of what the choice has to send / of the usage, with their "data: " and empty line. */
void response_chunk(struct generation *generation, struct choice *choice, struct buf *out);
void response_usage_chunk(struct generation *generation, struct buf *out);
void response_whole(struct generation *generation, struct buf *out);

/* logprobs_json.c */
/* Takes a sampled token whose bytes are the last `n_bytes` pushed to the choice's text. */
void logprobs_add(struct choice *choice, const struct sampled *token, const char *bytes,
                  size_t n_bytes);
/* Appends the logprobs value (chat or legacy form) for the tokens whose text ends at or before
 * `shown`, and forgets them; null when not asked for or none. */
void logprobs_write(struct generation *generation, struct choice *choice, size_t shown,
                    struct buf *out);
void logprobs_add_prompt(struct prompt_state *prompt, const struct sampled *token);
/* Appends vLLM's prompt_logprobs list. */
void logprobs_write_prompt(const struct generation *generation, const struct prompt_state *prompt,
                           struct buf *out);

/* handlers in their own files */
void handle_models(struct api *api, struct exchange *ex);
void handle_model(struct api *api, struct exchange *ex);
void handle_tokenize(struct api *api, struct exchange *ex);
void handle_detokenize(struct api *api, struct exchange *ex);
void handle_health(struct api *api, struct exchange *ex);
void handle_livez(struct api *api, struct exchange *ex);
void handle_version(struct api *api, struct exchange *ex);
void handle_metrics(struct api *api, struct exchange *ex);
void handle_control_status(struct api *api, struct exchange *ex);
void handle_control_drain(struct api *api, struct exchange *ex);
void handle_control_reload(struct api *api, struct exchange *ex);

#endif
