#ifndef TELLERD_SUPPORT_API_HARNESS_H
#define TELLERD_SUPPORT_API_HARNESS_H

/*
 * The API and the HTTP server on a loop of the caller's thread, without an engine: requests come in
 * over loopback sockets, what the engine would say is said by the caller.  Counts what the thread
 * allocates.  Programs link it with $(api_harness_wrap) (tests/unit/api.mk).
 */
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "tellerd/api/api.h"

enum { API_HARNESS_STREAMS = 256, API_HARNESS_BODY_MAX = 32768 };

struct api_harness {
    uv_loop_t loop;
    struct api *api;
    struct http_server *http;
    struct metrics *metrics;
    struct sockaddr_in address;
    /* what was submitted, in this order */
    uint32_t n_submitted;
    uint64_t ids[API_HARNESS_STREAMS];
    void *users[API_HARNESS_STREAMS];
    uint32_t n_cancelled;
    bool holds_jobs; /* what goes to the pool stays in held_job until api_harness_run_job */
    struct api_job *held_job;
    struct queue_node *first, *last; /* events not yet given to the api */
};

/* One at a time.  The tokenizer, and the chat template (may be NULL), are borrowed. */
void api_harness_open(struct api_harness *h, const struct tokenizer *tokenizer,
                      const struct chat_template *chat);
/* All streams must have ended and all sockets be closed. */
void api_harness_close(struct api_harness *h);

/* Connects, sends a POST of body (up to API_HARNESS_BODY_MAX) and lets the API take it; returns the
 * socket (non-blocking). */
int api_harness_post(struct api_harness *h, const char *path, const char *body);
/* Does the held job, as the pool and then the loop would. */
void api_harness_run_job(struct api_harness *h);
/* Turns of the loop until nothing is left to do at once. */
void api_harness_turn(struct api_harness *h);
/* Adds an event of stream i (in order of submission) for the next api_harness_deliver. */
void api_harness_token(struct api_harness *h, uint32_t i, uint32_t id);
void api_harness_end(struct api_harness *h, uint32_t i, enum finish_reason reason);
/* Gives the api what was added, as the daemon does after a step, and makes one turn of the loop. */
void api_harness_deliver(struct api_harness *h);

/* malloc, calloc and realloc calls of our own code so far. */
unsigned long api_harness_allocations(void);

#endif
