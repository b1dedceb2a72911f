#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "http_priv.h"
#include "tellerd/base/mem.h"

/* Status line, headers, fixed-length and chunked bodies.  Bytes gather in the connection's out
 * buffer and leave once a turn. */

void response_init(struct exchange *ex)
{
    struct buf headers = ex->extra_headers;
    memset(ex, 0, sizeof *ex);
    ex->extra_headers = headers;
    buf_reset(&ex->extra_headers);
}

const char *http_reason(int http_status)
{
    static const struct {
        int status;
        const char *reason;
    } table[] = {
        {200, "OK"},
        {204, "No Content"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {499, "Client Closed Request"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].status == http_status)
            return table[i].reason;
    return "Status";
}

const char *http_date(struct http_server *server)
{
    time_t now = time(NULL);
    if (now != server->date_second) {
        static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
        static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
        struct tm utc;
        gmtime_r(&now, &utc); /* RFC 9110 section 5.6.7, in English whatever the locale */
        snprintf(server->date, sizeof server->date, "%s, %02d %s %04d %02d:%02d:%02d GMT",
                 days[utc.tm_wday], utc.tm_mday, months[utc.tm_mon], utc.tm_year + 1900,
                 utc.tm_hour, utc.tm_min, utc.tm_sec);
        server->date_second = now;
    }
    return server->date;
}

const struct http_request *exchange_request(const struct exchange *ex)
{
    return request_parser_request(ex->connection->parser);
}

const char *exchange_id(const struct exchange *ex)
{
    return ex->id;
}

const char *exchange_peer(const struct exchange *ex)
{
    return ex->connection->peer;
}

int exchange_tag(const struct exchange *ex)
{
    return ex->connection->tag;
}

uint64_t exchange_arrival_ns(const struct exchange *ex)
{
    return ex->arrival_ns;
}

void exchange_set_user(struct exchange *ex, void *user)
{
    ex->user = user;
}

void *exchange_user(const struct exchange *ex)
{
    return ex->user;
}

char *exchange_take_body(struct exchange *ex, size_t *ret_len)
{
    return request_parser_take_body(ex->connection->parser, ret_len);
}

void exchange_set_max_body(struct exchange *ex, size_t max_body_bytes)
{
    request_parser_set_max_body(ex->connection->parser, max_body_bytes);
}

void exchange_add_header(struct exchange *ex, const char *name, const char *value)
{
    REQUIRE(!strpbrk(name, "\r\n:") && !strpbrk(value, "\r\n"));
    buf_printf(&ex->extra_headers, "%s: %s\r\n", name, value);
}

bool exchange_streaming(const struct exchange *ex)
{
    return ex->response == RESPONSE_STREAMING;
}

/* Whether the connection must end with this response. */
static bool must_close(const struct exchange *ex)
{
    const struct connection *connection = ex->connection;
    const struct http_request *request = exchange_request(ex);
    if (connection->close_after || connection->server->is_draining || !request->keep_alive ||
        connection->n_requests >= connection->server->limits.max_requests)
        return true;
    /* answered before the body was read: a small one is read away, a large or unknown one is not
     * worth it */
    return connection->state == CONNECTION_BODY && request->has_body &&
           (request->chunked || request->expects_continue ||
            request->content_length > MAX_DISCARDED_BODY);
}

static void write_head(struct exchange *ex, int http_status, const char *content_type)
{
    struct connection *connection = ex->connection;
    struct buf *out = &connection->out;
    bool keep = !connection->close_after;
    buf_printf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\nServer: tellerd\r\nx-request-id: %s\r\n",
               http_status, http_reason(http_status), http_date(connection->server), ex->id);
    buf_add_str(out, "X-Content-Type-Options: nosniff\r\n");
    if (content_type)
        buf_printf(out, "Content-Type: %s\r\n", content_type);
    buf_add(out, ex->extra_headers.data, ex->extra_headers.len);
    cors_add_headers(ex, out);
    if (!keep)
        buf_add_str(out, "Connection: close\r\n");
    else if (exchange_request(ex)->minor == 0)
        buf_add_str(out, "Connection: keep-alive\r\n");
    ex->http_status = http_status;
}

static void end_response(struct exchange *ex)
{
    ex->response = RESPONSE_ENDED;
    connection_mark_dirty(ex->connection);
    connection_response_ended(ex->connection);
}

void exchange_respond(struct exchange *ex, int http_status, const char *content_type,
                      const void *body, size_t len)
{
    REQUIRE(ex->open && ex->response == RESPONSE_NONE);
    struct connection *connection = ex->connection;
    connection->close_after = must_close(ex);
    write_head(ex, http_status, content_type);
    if (http_status != 204)
        buf_printf(&connection->out, "Content-Length: %zu\r\n", len);
    buf_add_str(&connection->out, "\r\n");
    if (exchange_request(ex)->method != HTTP_HEAD_ && http_status != 204)
        buf_add(&connection->out, body, len);
    ex->body_bytes = len;
    end_response(ex);
}

void exchange_respond_error(struct exchange *ex, const struct error *err)
{
    struct buf body;
    int http_status = status_http(err->status);
    buf_init(&body, 16384);
    http_error_body(&body, err);
    if (err->retry_after_s > 0 || http_status == 503 || http_status == 429) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%u", err->retry_after_s ? err->retry_after_s : 1);
        exchange_add_header(ex, "Retry-After", seconds);
    }
    if (err->status == STATUS_UNAUTHORIZED)
        exchange_add_header(ex, "WWW-Authenticate", "Bearer");
    if (err->status == STATUS_BAD_LOGITS || err->status == STATUS_NOT_IMPLEMENTED)
        exchange_add_header(ex, "x-should-retry", "false");
    exchange_add_header(ex, "Cache-Control", "no-store");
    exchange_respond(ex, http_status, "application/json", body.data, body.len);
    buf_done(&body);
}

void exchange_stream_start(struct exchange *ex, int http_status, const char *content_type)
{
    REQUIRE(ex->open && ex->response == RESPONSE_NONE);
    struct connection *connection = ex->connection;
    ex->chunked = exchange_request(ex)->minor == 1;
    connection->close_after = must_close(ex) || !ex->chunked;
    write_head(ex, http_status, content_type);
    buf_add_str(&connection->out, ex->chunked ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
    ex->response = RESPONSE_STREAMING;
    connection_mark_dirty(connection);
}

bool exchange_stream_write(struct exchange *ex, const void *bytes, size_t len)
{
    REQUIRE(ex->open && ex->response == RESPONSE_STREAMING);
    struct connection *connection = ex->connection;
    if (connection_pending(connection) >= connection->server->limits.max_output_buffer)
        return false;
    if (exchange_request(ex)->method == HTTP_HEAD_ || len == 0)
        return true;
    if (ex->chunked) {
        buf_add_hex(&connection->out, len);
        buf_add(&connection->out, "\r\n", 2);
    }
    buf_add(&connection->out, bytes, len);
    if (ex->chunked)
        buf_add(&connection->out, "\r\n", 2);
    ex->body_bytes += len;
    connection_mark_dirty(connection);
    return true;
}

void exchange_stream_end(struct exchange *ex)
{
    REQUIRE(ex->open && ex->response == RESPONSE_STREAMING);
    if (ex->chunked && exchange_request(ex)->method != HTTP_HEAD_)
        buf_add_str(&ex->connection->out, "0\r\n\r\n");
    end_response(ex);
}

void exchange_stream_abort(struct exchange *ex)
{
    REQUIRE(ex->open && ex->response == RESPONSE_STREAMING);
    ex->connection->close_after = true;
    end_response(ex);
}

void http_error_body(struct buf *out, const struct error *err)
{
    const char *text = err->text[0] ? err->text : status_text(err->status);
    buf_add_str(out, "{\"error\":{\"message\":");
    buf_add_json(out, text, strlen(text));
    buf_printf(out, ",\"type\":\"%s\",\"param\":", status_type(err->status));
    if (err->param[0])
        buf_add_json(out, err->param, strlen(err->param));
    else
        buf_add_str(out, "null");
    buf_printf(out, ",\"code\":\"%s\"", status_code(err->status));
    if (err->status == STATUS_CONTEXT_LENGTH)
        buf_printf(out, ",\"n_prompt_tokens\":%u,\"n_ctx\":%u", err->n_prompt_tokens, err->n_ctx);
    buf_add_str(out, "}}");
}
