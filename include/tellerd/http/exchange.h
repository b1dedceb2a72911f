#ifndef TELLERD_HTTP_EXCHANGE_H
#define TELLERD_HTTP_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/base/status.h"
#include "tellerd/http/request.h"

/*
 * One request and its response, as the handlers see it.  A handler may use an exchange from
 * on_headers until it has ended the response (respond, stream_end, stream_abort) or until on_closed
 * was called, whichever is first.  Loop thread only.
 */
struct exchange;

const struct http_request *exchange_request(const struct exchange *ex);
/* Request id: the client's X-Request-Id when it is [A-Za-z0-9._-]{1,128}, else made here.  Echoed
 * in each response. */
const char *exchange_id(const struct exchange *ex);
/* "127.0.0.1:4711", "[::1]:4711" or "unix". */
const char *exchange_peer(const struct exchange *ex);
/* Tag of the listener that it came in by. */
int exchange_tag(const struct exchange *ex);
/* clock_ns() when the first byte of the request was read. */
uint64_t exchange_arrival_ns(const struct exchange *ex);
void exchange_set_user(struct exchange *ex, void *user);
void *exchange_user(const struct exchange *ex);

/* In on_request or later: gives the request's body away (free with free()), NUL-terminated, never
 * NULL, so that it outlives the exchange. */
char *exchange_take_body(struct exchange *ex, size_t *ret_len);

/* In on_headers: how large the body may be. */
void exchange_set_max_body(struct exchange *ex, size_t max_body_bytes);

/* Adds a response header; before the response starts.  Names and values come from the server, never
 * raw from a client. */
void exchange_add_header(struct exchange *ex, const char *name, const char *value);

/* The whole response; ends the exchange.  body is copied.  HEAD gets the headers only. */
void exchange_respond(struct exchange *ex, int http_status, const char *content_type,
                      const void *body, size_t len);
/* Status, JSON body in OpenAI's shape, Retry-After and x-should-retry where they belong; ends the
 * exchange. */
void exchange_respond_error(struct exchange *ex, const struct error *err);

/* Starts a response whose length is not known: chunked for HTTP/1.1, closed at the end for
 * HTTP/1.0. */
void exchange_stream_start(struct exchange *ex, int http_status, const char *content_type);
/*
 * Queues bytes (copied); they are written once at the end of the loop's turn, so that all of a
 * step's tokens of a connection make one write, however large.  False when max_output_buffer bytes
 * wait already for a client that does not read: nothing was queued, and the handler should abort.
 */
bool exchange_stream_write(struct exchange *ex, const void *bytes, size_t len);
/* Ends the stream well / cuts it after what is queued, without its terminating chunk, so that the
 * client sees a broken stream. */
void exchange_stream_end(struct exchange *ex);
void exchange_stream_abort(struct exchange *ex);
bool exchange_streaming(const struct exchange *ex);

/* Appends {"error":{...}} for err to out: message, type, param, code, and n_prompt_tokens / n_ctx
 * when given. */
void http_error_body(struct buf *out, const struct error *err);

#endif
