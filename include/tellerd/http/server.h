#ifndef TELLERD_HTTP_SERVER_H
#define TELLERD_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "tellerd/base/status.h"
#include "tellerd/http/exchange.h"

/* Listeners, connections and their limits on one libuv loop.  Loop thread only. */
struct http_server;

struct http_limits {
    struct http_parse_limits parse;
    uint32_t max_connections;   /* one more is answered 503 and closed; in a flood, only closed */
    uint32_t max_requests;      /* of one connection */
    uint64_t header_timeout_ns; /* from the first byte (or accept) to the end of the head: 408 */
    uint64_t body_timeout_ns;   /* between two reads of the body: 408 */
    uint64_t body_min_rate;     /* bytes a second of a body, beyond a first body_timeout; 0 = any */
    uint64_t idle_timeout_ns;   /* keep-alive without a request: closed */
    uint64_t write_timeout_ns;  /* no byte leaves although some wait: cut */
    size_t max_output_buffer;   /* bytes that may wait for a slow reader */
};

struct http_handler {
    /* The head is there, the body is not: check path, method, key and size; may respond at once
     * (the body is then discarded). */
    void (*on_headers)(void *ctx, struct exchange *ex);
    /* The request is complete. Must respond now or later. */
    void (*on_request)(void *ctx, struct exchange *ex);
    /* The client left (or the connection failed) before the response ended: stop working for it. ex
     * must not be used afterwards. */
    void (*on_closed)(void *ctx, struct exchange *ex);
    /* The response was ended by the handler: for counting and the access log.  bytes: body bytes
     * queued. */
    void (*on_done)(void *ctx, struct exchange *ex, int http_status, uint64_t bytes);
    void *ctx;
};

struct http_cors { /* origins allowed to call from a browser; "*" is any, without credentials */
    const char *const *origins;
    size_t n_origins;
};

struct http_server *http_server_new(uv_loop_t *loop, const struct http_limits *limits,
                                    const struct http_handler *handler);
/* New limits (reload); those of request heads hold for connections that begin from now on. */
void http_server_set_limits(struct http_server *server, const struct http_limits *limits);
/* Allowed origins (copied); none = no CORS headers. */
void http_server_set_cors(struct http_server *server, const struct http_cors *cors);

/*
 * Listen on a TCP address / a unix socket / an inherited listening socket.  tag comes back with
 * each exchange.  Unix: a stale socket is replaced only when nobody listens on it; any other file
 * is left alone; mode bits as given; removed when the listener closes.  Errors: BAD_CONFIG with
 * address and reason.
 */
enum status http_server_listen_tcp(struct http_server *server, const struct sockaddr *address,
                                   int tag, struct error *err) WARN_UNUSED;
enum status http_server_listen_unix(struct http_server *server, const char *path, unsigned mode,
                                    int tag, struct error *err) WARN_UNUSED;
enum status http_server_listen_fd(struct http_server *server, int fd, int tag,
                                  struct error *err) WARN_UNUSED;
/* Bound address of listener i as "http://127.0.0.1:8000" or "unix:/path"; NULL past the last. */
const char *http_server_address(const struct http_server *server, size_t i);

/* Stops accepting; idle connections close, busy ones end after their response (Connection: close).
 */
void http_server_drain(struct http_server *server);
/* Closes everything now; on_closed is called for each open exchange.  done is called when the last
 * handle is closed; then free. */
void http_server_close(struct http_server *server, void (*done)(void *ctx), void *ctx);
void http_server_free(struct http_server *server);

uint32_t http_server_connections(const struct http_server *server);
/* Whether an exchange is between on_headers and its end, or bytes of an answer wait to be written.
 */
bool http_server_busy(const struct http_server *server);

#endif
