#ifndef TELLERD_HTTP_PRIV_H
#define TELLERD_HTTP_PRIV_H

/* Inside layer http: the server, its connections and the exchange that a connection is busy with.
 * Loop thread only. */

#include <uv.h>

#include "tellerd/base/buf.h"
#include "tellerd/http/exchange.h"
#include "tellerd/http/server.h"

enum {
    READ_BUFFER_BYTES = 65536,
    MAX_PIPELINED_BYTES =
        65536, /* read ahead of a request that is being answered; then reading pauses */
    MAX_DISCARDED_BODY = 65536, /* a refused request's body up to this is read away, so that the
                                   connection lives on */
    MAX_REFUSED = 64, /* connections past the limit that are told so; more are closed unheard */
    KEPT_OUTPUT_BYTES = 65536, /* of the output buffer between two turns of an answer */
    KEPT_IDLE_BYTES = 1024,    /* of each buffer while a connection waits for a request */
    LINGER_MS = 2000, /* time for the client to read a last answer before the connection is cut */
    SWEEP_MS = 100,   /* how often deadlines are looked at */
    SWEEP_CONNECTIONS = 1000, /* of so many at a time: with more, each waits for its turn */
    LISTEN_BACKLOG = 4096,    /* connects that wait for accept; the kernel has its own bound, too */
    /* a client that vanished without a word is asked after so long, so often, so many times */
    KEEPALIVE_IDLE_S = 60,
    KEEPALIVE_INTERVAL_S = 15,
    KEEPALIVE_PROBES = 4,
    MAX_LISTENERS = 16,
    ADDRESS_TEXT_MAX = 160,
    REQUEST_ID_MAX = 129,
    MAX_EXTRA_HEADER_BYTES = 4096,
};

/*
 * Legal moves: IDLE -> HEAD -> BODY -> HANDLING -> IDLE; HEAD, BODY, HANDLING -> LINGER; any ->
 * CLOSING. BODY also holds the discarding of a refused request's body.
 */
enum connection_state {
    CONNECTION_IDLE,
    CONNECTION_HEAD,
    CONNECTION_BODY,
    CONNECTION_HANDLING,
    CONNECTION_LINGER,
    CONNECTION_CLOSING
};

enum response_state { RESPONSE_NONE, RESPONSE_STREAMING, RESPONSE_ENDED };

struct exchange {
    struct connection *connection;
    enum response_state response;
    bool open;    /* between on_headers and its end; on_closed is owed when the connection dies
                     meanwhile */
    bool chunked; /* the response's coding */
    int http_status;
    uint64_t body_bytes;
    uint64_t arrival_ns;
    char id[REQUEST_ID_MAX];
    struct buf extra_headers;
    void *user;
};

struct connection {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    struct http_server *server;
    struct connection *next, *previous; /* all connections of the server */
    struct connection *next_dirty;
    bool is_dirty;
    bool is_reading;
    bool is_processing; /* inside connection_process: do not recurse */
    bool close_after;   /* when the current response is out */
    bool shutdown_sent;
    bool input_ended; /* the client closed its half; only what waits is still written */
    enum connection_state state;
    int tag;
    uint32_t n_requests;
    uint64_t deadline_ns;   /* 0 = none */
    uint64_t first_byte_ns; /* of the current request */
    uint64_t body_start_ns;
    uint64_t body_received; /* bytes as they came, chunk lines and all */
    uint64_t write_progress_ns;
    size_t write_queued; /* when last looked at */
    struct request_parser *parser;
    struct buf in;  /* read, not yet parsed */
    struct buf out; /* to be written at the end of this turn */
    struct exchange exchange;
    char peer[64];
};

struct listener {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    struct http_server *server;
    int tag;
    bool is_open;
    char address[ADDRESS_TEXT_MAX];
};

struct http_server {
    uv_loop_t *loop;
    struct http_limits limits;
    struct http_handler handler;
    char **cors_origins;
    size_t n_cors_origins;
    struct listener *listeners[MAX_LISTENERS];
    size_t n_listeners;
    struct connection *connections;
    struct connection *next_swept; /* NULL: from the first on */
    uint32_t n_connections;
    struct connection *dirty;
    uv_prepare_t flush;
    uv_timer_t sweep;
    bool is_draining, is_closing;
    uint32_t n_open_handles;
    void (*on_closed)(void *ctx);
    void *on_closed_ctx;
    char date[40]; /* Date header of this second */
    time_t date_second;
    char read_buffer[READ_BUFFER_BYTES];
};

/* conn.c */
void connection_accept(struct http_server *server, uv_stream_t *listener, int tag);
void connection_close(struct connection *connection);
/* The response has ended: what happens with the connection now. */
void connection_response_ended(struct connection *connection);
void connection_mark_dirty(struct connection *connection);
void connection_flush(struct connection *connection);
void connection_sweep(struct connection *connection, uint64_t now_ns);
size_t connection_pending(const struct connection *connection);
void connection_handle_closed(struct http_server *server);

/* response_writer.c */
void response_init(struct exchange *ex);
const char *http_date(struct http_server *server);
const char *http_reason(int http_status);

/* cors.c: adds the headers that the request's Origin may have; answers a preflight.  False when it
 * is no preflight or CORS is off. */
void cors_add_headers(struct exchange *ex, struct buf *head);
bool cors_preflight(struct exchange *ex);

#endif
