#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "http_priv.h"
#include "tellerd/base/clock.h"
#include "tellerd/base/log.h"
#include "tellerd/base/mem.h"
#include "tellerd/base/rng.h"

/*
 * A connection's life: reading, time-outs, pipelining, lingering close.  The read side is watched
 * while a request is answered, so that a client that leaves is seen at once; end of input counts as
 * leaving also when the client only closed its sending half (HTTP clients do not do that). Bytes of
 * a next request are kept until the current one is answered.
 */

struct write_request { /* what uv_try_write could not write at once */
    uv_write_t uv;
    struct connection *connection;
    char *bytes;
};

static void connection_process(struct connection *connection);
static void start_linger(struct connection *connection);

static void set_deadline(struct connection *connection, uint64_t after_ns)
{
    connection->deadline_ns = after_ns ? clock_ns() + after_ns : 0;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct connection *connection = handle->data;
    struct http_server *server = connection->server;
    request_parser_free(connection->parser);
    buf_done(&connection->in);
    buf_done(&connection->out);
    buf_done(&connection->exchange.extra_headers);
    free(connection);
    connection_handle_closed(server);
}

void connection_close(struct connection *connection)
{
    if (connection->state == CONNECTION_CLOSING)
        return;
    struct http_server *server = connection->server;
    connection->state = CONNECTION_CLOSING;
    if (connection->exchange.open) {
        connection->exchange.open = false;
        server->handler.on_closed(server->handler.ctx, &connection->exchange);
    }
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        server->connections = connection->next;
    if (connection->next)
        connection->next->previous = connection->previous;
    if (server->next_swept == connection)
        server->next_swept = connection->next;
    server->n_connections--;
    for (struct connection **at = &server->dirty; *at; at = &(*at)->next_dirty)
        if (*at == connection) {
            *at = connection->next_dirty;
            break;
        }
    uv_close(&connection->uv.handle, on_handle_closed);
}

/* --- reading
 * -----------------------------------------------------------------------------------------------------
 */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    (void)suggested;
    struct connection *connection = handle->data;
    *ret = uv_buf_init(connection->server->read_buffer, READ_BUFFER_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t n_read, const uv_buf_t *buffer)
{
    struct connection *connection = stream->data;
    if (n_read == 0)
        return;
    if (n_read < 0) {
        /* A client that sent its last request and closed its half still gets the answer that is on
         * its way. */
        if (n_read == UV_EOF && !connection->exchange.open && connection_pending(connection) > 0) {
            connection->input_ended = connection->close_after = true;
            start_linger(connection);
            return;
        }
        log_debug("connection.closed peer=%s reason=%s", connection->peer,
                  uv_err_name((int)n_read));
        connection_close(connection);
        return;
    }
    if (connection->state == CONNECTION_LINGER)
        return; /* read away */
    buf_add(&connection->in, buffer->base, (size_t)n_read);
    connection_process(connection);
}

/* Whether the next request must wait, since the client does not read the answers it has. */
static bool must_wait(const struct connection *connection)
{
    return connection->state == CONNECTION_IDLE &&
           connection_pending(connection) >= connection->server->limits.max_output_buffer;
}

static void update_reading(struct connection *connection)
{
    bool want = connection->in.len < MAX_PIPELINED_BYTES && !connection->input_ended &&
                !must_wait(connection);
    if (connection->state == CONNECTION_CLOSING || want == connection->is_reading)
        return;
    connection->is_reading = want;
    if (want)
        uv_read_start(&connection->uv.stream, on_alloc, on_read);
    else
        uv_read_stop(&connection->uv.stream);
}

static bool valid_request_id(const char *id)
{
    size_t len =
        id ? strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") : 0;
    return len > 0 && len < REQUEST_ID_MAX && id[len] == '\0';
}

static void begin_exchange(struct connection *connection)
{
    struct exchange *ex = &connection->exchange;
    response_init(ex);
    ex->connection = connection;
    ex->arrival_ns = connection->first_byte_ns;
    const char *id = http_request_header(exchange_request(ex), "x-request-id");
    if (valid_request_id(id)) {
        snprintf(ex->id, sizeof ex->id, "%s", id);
    } else {
        uint64_t random[2];
        rng_system_bytes(random, sizeof random);
        snprintf(ex->id, sizeof ex->id, "req-%016llx%016llx", (unsigned long long)random[0],
                 (unsigned long long)random[1]);
    }
    ex->open = true;
}

/* More of the body came: the next must come within body_timeout, and all of it so fast that only
 * the first body_timeout is a gift.  A client that sends a byte now and then is not waited for. */
static void set_body_deadline(struct connection *connection)
{
    const struct http_limits *limits = &connection->server->limits;
    set_deadline(connection, limits->body_timeout_ns);
    if (limits->body_min_rate == 0)
        return;
    double due_s = (double)connection->body_received / (double)limits->body_min_rate;
    uint64_t last = connection->body_start_ns + limits->body_timeout_ns + (uint64_t)(due_s * 1e9);
    if (last < connection->deadline_ns)
        connection->deadline_ns = last;
}

static void handle_headers(struct connection *connection)
{
    struct http_server *server = connection->server;
    struct exchange *ex = &connection->exchange;
    connection->state = CONNECTION_BODY;
    connection->body_start_ns = clock_ns();
    connection->body_received = 0;
    set_body_deadline(connection);
    begin_exchange(connection);
    if (cors_preflight(ex))
        return;
    server->handler.on_headers(server->handler.ctx, ex);
    const struct http_request *request = request_parser_request(connection->parser);
    if (connection->state == CONNECTION_BODY && ex->response == RESPONSE_NONE &&
        request->expects_continue && request_parser_body_fits(connection->parser)) {
        buf_add_str(&connection->out, "HTTP/1.1 100 Continue\r\n\r\n");
        connection_flush(connection);
    }
}

static void handle_complete(struct connection *connection)
{
    struct http_server *server = connection->server;
    connection->n_requests++;
    set_deadline(connection, 0);
    connection->state = CONNECTION_HANDLING;
    if (connection->exchange.response == RESPONSE_ENDED)
        connection_response_ended(connection);
    else if (connection->exchange.open && connection->exchange.response == RESPONSE_NONE)
        server->handler.on_request(server->handler.ctx, &connection->exchange);
}

/* The request itself is wrong: answer, and let the connection end. */
static void handle_refused(struct connection *connection, const struct error *err)
{
    struct exchange *ex = &connection->exchange;
    set_deadline(connection, 0);
    connection->close_after = true;
    if (ex->open && ex->response != RESPONSE_NONE) {
        connection_close(connection);
        return;
    }
    if (!ex->open &&
        connection->state == CONNECTION_BODY) { /* already answered; its body turned out bad */
        start_linger(connection);
        return;
    }
    if (!ex->open)
        begin_exchange(connection);
    exchange_respond_error(ex, err);
}

/* Parses what was read, until bytes or patience end.  Handlers may end the exchange inside: no
 * recursion. */
static void connection_process(struct connection *connection)
{
    if (connection->is_processing)
        return;
    connection->is_processing = true;
    size_t used_all = 0;
    bool again = true;
    while (again && connection->state <= CONNECTION_BODY && !connection->shutdown_sent &&
           !must_wait(connection)) {
        size_t left = connection->in.len - used_all, used = 0;
        struct error err = {0};
        if (connection->state == CONNECTION_IDLE) {
            if (left == 0)
                break;
            connection->state = CONNECTION_HEAD;
            connection->first_byte_ns = clock_ns();
            set_deadline(connection, connection->server->limits.header_timeout_ns);
        }
        enum parse_event event = request_parser_feed(
            connection->parser, left ? connection->in.data + used_all : "", left, &used, &err);
        used_all += used;
        again = event == PARSE_HEADERS || event == PARSE_COMPLETE || (used > 0 && used < left);
        if (event == PARSE_HEADERS)
            handle_headers(connection);
        else if (event == PARSE_COMPLETE)
            handle_complete(connection);
        else if (event == PARSE_ERROR)
            handle_refused(connection, &err);
        else if (connection->state == CONNECTION_BODY && used > 0) {
            connection->body_received += used;
            set_body_deadline(connection);
        }
    }
    if (connection->state != CONNECTION_LINGER && used_all < connection->in.len)
        buf_consume(&connection->in, used_all);
    else if (connection->state == CONNECTION_BODY)
        buf_reset(&connection->in); /* as much again is on its way */
    else
        buf_trim(&connection->in, KEPT_IDLE_BYTES);
    connection->is_processing = false;
    update_reading(connection);
}

/* --- the end of a response
 * ---------------------------------------------------------------------------------------- */

/* From now on what comes is read away, and what waits is written; then finish_writing. */
static void start_linger(struct connection *connection)
{
    if (connection->state == CONNECTION_CLOSING)
        return;
    connection->state = CONNECTION_LINGER;
    set_deadline(connection, 0);      /* while bytes wait, only write_timeout counts */
    if (!connection->is_processing) { /* else connection_process still stands on these bytes */
        buf_reset(&connection->in);
        update_reading(connection);
    }
    connection_mark_dirty(connection);
}

void connection_response_ended(struct connection *connection)
{
    struct http_server *server = connection->server;
    struct exchange *ex = &connection->exchange;
    if (ex->open) {
        ex->open = false;
        server->handler.on_done(server->handler.ctx, ex, ex->http_status, ex->body_bytes);
    }
    if (connection->state == CONNECTION_CLOSING)
        return;
    if (connection->close_after) {
        start_linger(connection);
    } else if (connection->state == CONNECTION_HANDLING) {
        request_parser_next(connection->parser);
        connection->state = CONNECTION_IDLE;
        buf_trim(&connection->exchange.extra_headers, KEPT_IDLE_BYTES);
        set_deadline(connection, server->limits.idle_timeout_ns);
        connection_process(connection);
    }
    /* else: state BODY, the rest of a refused request's body is still to be read away */
}

/* --- writing
 * ------------------------------------------------------------------------------------------------------
 */

size_t connection_pending(const struct connection *connection)
{
    return connection->out.len + uv_stream_get_write_queue_size(&connection->uv.stream);
}

void connection_mark_dirty(struct connection *connection)
{
    if (connection->is_dirty || connection->state == CONNECTION_CLOSING)
        return;
    connection->is_dirty = true;
    connection->next_dirty = connection->server->dirty;
    connection->server->dirty = connection;
}

static void on_shutdown(uv_shutdown_t *request, int status)
{
    struct connection *connection = request->handle->data;
    (void)status; /* now the client may read in peace; its own close, or the deadline, ends the
                     connection */
    free(request);
    if (connection->input_ended)
        connection_close(connection);
}

static void on_written(uv_write_t *uv, int status)
{
    struct write_request *request = (struct write_request *)uv;
    struct connection *connection = request->connection;
    free(request->bytes);
    free(request);
    if (status < 0)
        connection_close(connection);
    else
        connection_mark_dirty(
            connection); /* more may have gathered; a pending shutdown may go now */
}

static void write_rest(struct connection *connection, size_t from)
{
    struct write_request *request = xmalloc(sizeof *request);
    size_t len;
    buf_consume(&connection->out, from);
    request->bytes = buf_take(&connection->out, &len);
    request->connection = connection;
    uv_buf_t buffer = uv_buf_init(request->bytes, (unsigned)len);
    if (uv_write(&request->uv, &connection->uv.stream, &buffer, 1, on_written) != 0) {
        free(request->bytes);
        free(request);
        connection_close(connection);
    }
}

static void finish_writing(struct connection *connection)
{
    if (!connection->close_after || connection->shutdown_sent || connection->exchange.open)
        return;
    if (connection->state != CONNECTION_LINGER)
        start_linger(connection);
    connection->shutdown_sent = true;
    set_deadline(connection, LINGER_MS * 1000000ull);
    uv_shutdown_t *request = xcalloc(1, sizeof *request);
    if (uv_shutdown(request, &connection->uv.stream, on_shutdown) != 0) {
        free(request);
        connection_close(connection);
    }
}

void connection_flush(struct connection *connection)
{
    if (connection->state == CONNECTION_CLOSING)
        return;
    if (connection->out.len > 0 && uv_stream_get_write_queue_size(&connection->uv.stream) == 0) {
        uv_buf_t buffer = uv_buf_init(connection->out.data, (unsigned)connection->out.len);
        int written = uv_try_write(&connection->uv.stream, &buffer, 1);
        if (written < 0 && written != UV_EAGAIN) {
            connection_close(connection);
            return;
        }
        connection->write_progress_ns = clock_ns();
        size_t n = written > 0 ? (size_t)written : 0;
        if (n < connection->out.len)
            write_rest(connection, n);
        else
            buf_trim(&connection->out,
                     connection->state == CONNECTION_IDLE ? KEPT_IDLE_BYTES : KEPT_OUTPUT_BYTES);
    }
    if (connection->state != CONNECTION_CLOSING && connection_pending(connection) == 0)
        finish_writing(connection);
    if (connection->state == CONNECTION_IDLE && (connection->in.len > 0 || !connection->is_reading))
        connection_process(connection); /* pipelined requests that had to wait */
}

/* --- time
 * ---------------------------------------------------------------------------------------------------------
 */

static void time_out(struct connection *connection)
{
    struct error err = {0};
    if (connection->state == CONNECTION_BODY ||
        (connection->state == CONNECTION_HEAD && request_parser_in_request(connection->parser))) {
        error_set(&err, STATUS_REQUEST_TIMEOUT, "the request did not arrive in time");
        handle_refused(connection, &err);
        return;
    }
    if (connection->state == CONNECTION_IDLE && connection_pending(connection) > 0)
        set_deadline(connection, connection->server->limits.idle_timeout_ns); /* it is reading */
    else
        connection_close(connection);
}

void connection_sweep(struct connection *connection, uint64_t now_ns)
{
    size_t queued = uv_stream_get_write_queue_size(&connection->uv.stream);
    if (queued != connection->write_queued || queued == 0) {
        connection->write_queued = queued;
        connection->write_progress_ns = now_ns;
    } else if (now_ns - connection->write_progress_ns >
               connection->server->limits.write_timeout_ns) {
        log_info("connection.stalled peer=%s queued_bytes=%zu", connection->peer, queued);
        connection_close(connection);
        return;
    }
    if (connection->deadline_ns && now_ns > connection->deadline_ns)
        time_out(connection);
}

/* --- accepting
 * ----------------------------------------------------------------------------------------------------
 */

static void set_peer(struct connection *connection)
{
    struct sockaddr_storage address;
    int len = sizeof address;
    char host[INET6_ADDRSTRLEN];
    snprintf(connection->peer, sizeof connection->peer, "unix");
    if (connection->uv.handle.type != UV_TCP ||
        uv_tcp_getpeername(&connection->uv.tcp, (struct sockaddr *)&address, &len) != 0)
        return;
    if (address.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address;
        uv_ip4_name(v4, host, sizeof host);
        snprintf(connection->peer, sizeof connection->peer, "%s:%u", host, ntohs(v4->sin_port));
    } else if (address.ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address;
        uv_ip6_name(v6, host, sizeof host);
        snprintf(connection->peer, sizeof connection->peer, "[%s]:%u", host, ntohs(v6->sin6_port));
    }
}

static void refuse_full(struct connection *connection)
{
    struct error err = {0};
    error_set(&err, STATUS_OVERLOADED, "the server has as many connections as it takes; try again");
    connection->close_after = true;
    begin_exchange(connection);
    snprintf(connection->exchange.id, sizeof connection->exchange.id, "none");
    exchange_respond_error(&connection->exchange, &err);
}

void connection_accept(struct http_server *server, uv_stream_t *listener, int tag)
{
    struct connection *connection = xcalloc(1, sizeof *connection);
    connection->server = server;
    connection->tag = tag;
    bool is_tcp = listener->type == UV_TCP;
    int code = is_tcp ? uv_tcp_init(server->loop, &connection->uv.tcp)
                      : uv_pipe_init(server->loop, &connection->uv.pipe, 0);
    REQUIRE(code == 0);
    connection->uv.handle.data = connection;
    server->n_open_handles++;
    connection->parser = request_parser_new(&server->limits.parse);
    buf_init(&connection->in, SIZE_MAX / 2);
    buf_init(&connection->out, SIZE_MAX / 2);
    buf_init(&connection->exchange.extra_headers, MAX_EXTRA_HEADER_BYTES);
    connection->exchange.connection = connection;
    connection->next = server->connections;
    if (connection->next)
        connection->next->previous = connection;
    server->connections = connection;
    server->n_connections++;
    connection->write_progress_ns = connection->first_byte_ns = clock_ns();
    if (uv_accept(listener, &connection->uv.stream) != 0) {
        connection_close(connection);
        return;
    }
    set_peer(connection);
    set_deadline(connection, server->limits.header_timeout_ns);
    update_reading(connection);
    if (server->n_connections > server->limits.max_connections + MAX_REFUSED)
        connection_close(connection);
    else if (server->n_connections > server->limits.max_connections)
        refuse_full(connection);
}
