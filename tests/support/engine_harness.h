#ifndef TELLERD_SUPPORT_ENGINE_HARNESS_H
#define TELLERD_SUPPORT_ENGINE_HARNESS_H

/*
 * An engine over the scripted forward pass, for tests: submits, collects every event and checks the
 * order they must come in, and can hold the engine inside a step.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "tellerd/base/metrics.h"
#include "tellerd/engine/engine.h"
#include "tellerd/engine/forward_script.h"

enum { HARNESS_MAX_CHOICES = 8, HARNESS_MAX_TOKENS = 512, HARNESS_MAX_REQUESTS = 1024 };

/* What came back for one request. */
struct outcome {
    uint32_t n_choices;
    bool is_started, is_done;
    uint32_t done_number; /* how many requests had ended before this one */
    uint32_t n_cached;
    uint32_t n_tokens[HARNESS_MAX_CHOICES];
    uint32_t tokens[HARNESS_MAX_CHOICES][HARNESS_MAX_TOKENS];
    float logprobs[HARNESS_MAX_CHOICES][HARNESS_MAX_TOKENS];
    bool last_is_eog[HARNESS_MAX_CHOICES];
    enum finish_reason reasons[HARNESS_MAX_CHOICES];
    enum finish_reason reason; /* of EVENT_DONE */
    enum status status;        /* of EVENT_DONE */
    uint32_t n_prompt_logprobs;
    uint32_t prompt_ids[HARNESS_MAX_TOKENS];
    float prompt_logprobs[HARNESS_MAX_TOKENS];
};

struct harness {
    struct forward_script_config script;
    /* NULL: a script.  Else makes another forward pass, of about script's shape; the gate does not
     * work then.  The harness frees it. */
    struct forward *(*make_forward)(const struct forward_script_config *shape);
    struct engine_config config;
    bool has_metrics;
    struct forward *forward;
    struct queue *events;
    struct metrics *metrics;
    struct engine *engine;
    struct outcome *outcomes[HARNESS_MAX_REQUESTS]; /* by request id - 1 */
    uint32_t n_requests, n_open, n_done;
    /* the gate: while closed, the engine waits inside its next step */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool gate_closed, gate_reached, gate_pass;
    uint64_t n_rows_of_token[4096]; /* rows computed, by token id; under lock */
    uint64_t n_rows, n_steps;
};

/* Defaults that tests change before harness_open: script defaults, 256 rows, 16 sequences, 1000
 * queued, context 1024, prefix cache on. */
void harness_init(struct harness *h);
void harness_open(struct harness *h);
/* Frees the engine and checks that all requests ended, that no blocks are held and that the script
 * found nothing wrong. */
void harness_close(struct harness *h);

/* A greedy request of n tokens that are a function of (seed, position); max_tokens as given. */
struct gen_request *harness_request(uint32_t seed, uint32_t n_prompt, uint32_t max_tokens);
struct gen_request *harness_request_of(const uint32_t *prompt, uint32_t n_prompt,
                                       uint32_t max_tokens);
/* Token at a position of harness_request's prompts: 1 .. 255. */
uint32_t harness_token(uint32_t seed, uint32_t position);
struct gen_request *harness_copy(const struct gen_request *request);

/* Submits (takes the request) and gives its id; must be accepted. */
uint64_t harness_submit(struct harness *h, struct gen_request *request);
/* Submits and expects to be refused with status. */
void harness_refuse(struct harness *h, struct gen_request *request, enum status status,
                    struct error *err);
/* Handles events until the request is done / has that many tokens in choice 0 / all are done. */
struct outcome *harness_wait(struct harness *h, uint64_t id);
struct outcome *harness_wait_tokens(struct harness *h, uint64_t id, uint32_t n_tokens);
struct outcome *harness_wait_started(struct harness *h, uint64_t id);
void harness_wait_all(struct harness *h);
/* Handles events that are there now. */
void harness_poll(struct harness *h);
struct outcome *harness_outcome(struct harness *h, uint64_t id);
struct engine_stats harness_stats(struct harness *h);

/* Closes the gate and waits until the engine stands inside a step (there must be work). */
void harness_hold(struct harness *h);
/* Held: lets so many steps pass, and waits in the next (there must be one). */
void harness_steps(struct harness *h, uint32_t n_steps);
/* Opens the gate. */
void harness_let_go(struct harness *h);
/* Closes the gate without waiting. */
void harness_close_gate(struct harness *h);
void harness_wait_held(struct harness *h);
uint64_t harness_rows_of(struct harness *h, uint32_t token);

/* Runs the request alone in an engine with a big pool, no prefix cache and no chunks; frees the
 * request. */
struct outcome *harness_alone(const struct harness *like, struct gen_request *request);
/* Same tokens, reasons and logprobs. */
void harness_same(const struct outcome *a, const struct outcome *b);

#endif
