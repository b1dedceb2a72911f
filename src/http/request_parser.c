#include "config.h"

#include <llhttp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tellerd/base/mem.h"
#include "tellerd/base/utf8.h"
#include "tellerd/http/request.h"

/*
 * The head is gathered up to its empty line, under the limits, checked byte by byte for what llhttp
 * (8 and 9 differ here) would let pass, and given to llhttp as one piece; the body goes to llhttp
 * as it comes, behind a check of the chunk lines.  llhttp does the grammar, this file the policy.
 */
enum {
    MAX_LEADING_EMPTY_LINES = 4,
    KEPT_BYTES = 1024, /* of each buffer, between two requests */
    KEPT_HEADERS = 16,
};

enum parser_state { STATE_HEAD, STATE_HEAD_DONE, STATE_BODY, STATE_COMPLETE, STATE_REFUSED };

/* Where the bytes of a chunked body are: only lines are checked, data is skipped by count. */
enum chunk_state {
    CHUNK_SIZE,
    CHUNK_SIZE_LF,
    CHUNK_DATA,
    CHUNK_DATA_CR,
    CHUNK_DATA_LF,
    CHUNK_TRAILER,
    CHUNK_TRAILER_LF,
    CHUNK_END
};

struct request_parser {
    llhttp_t llhttp;
    struct http_parse_limits limits;
    size_t max_body_bytes;
    enum parser_state state;
    unsigned empty_lines;
    struct buf head;   /* raw bytes of the head */
    size_t line_start; /* of the current line in head */
    size_t head_lines; /* header lines so far */
    struct buf names;  /* headers, path and query as NUL-terminated copies */
    struct buf body;
    struct http_header *headers;
    size_t n_headers, cap_headers;
    struct http_request request;
    bool message_complete; /* llhttp said so */
    enum chunk_state chunk;
    uint64_t chunk_left;
    unsigned chunk_digits;
    size_t chunk_line; /* bytes of the current size or trailer line */
    size_t trailer_bytes;
};

static int on_body(llhttp_t *llhttp, const char *at, size_t len)
{
    struct request_parser *parser = llhttp->data;
    if (parser->body.len + len > parser->max_body_bytes)
        return HPE_USER;
    return buf_add(&parser->body, at, len) ? 0 : HPE_USER;
}

static int on_message_complete(llhttp_t *llhttp)
{
    struct request_parser *parser = llhttp->data;
    parser->message_complete = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t *parser_settings(void)
{
    static llhttp_settings_t settings;
    static bool ready;
    if (!ready) {
        llhttp_settings_init(&settings);
        settings.on_body = on_body;
        settings.on_message_complete = on_message_complete;
        ready = true;
    }
    return &settings;
}

struct request_parser *request_parser_new(const struct http_parse_limits *limits)
{
    struct request_parser *parser = xcalloc(1, sizeof *parser);
    parser->limits = *limits;
    buf_init(&parser->head, limits->max_header_bytes + 1);
    buf_init(&parser->names, limits->max_header_bytes + 4096);
    buf_init(&parser->body, SIZE_MAX / 2);
    request_parser_next(parser);
    return parser;
}

void request_parser_free(struct request_parser *parser)
{
    if (!parser)
        return;
    buf_done(&parser->head);
    buf_done(&parser->names);
    buf_done(&parser->body);
    free(parser->headers);
    free(parser);
}

void request_parser_next(struct request_parser *parser)
{
    llhttp_init(&parser->llhttp, HTTP_REQUEST, parser_settings());
    parser->llhttp.data = parser;
    parser->state = STATE_HEAD;
    parser->empty_lines = 0;
    parser->line_start = parser->head_lines = 0;
    parser->message_complete = false;
    parser->n_headers = 0;
    parser->chunk = CHUNK_SIZE;
    parser->chunk_left = parser->chunk_digits = parser->chunk_line = parser->trailer_bytes = 0;
    parser->max_body_bytes = parser->limits.max_body_bytes;
    /* one large request's memory is not kept for the life of the connection */
    buf_trim(&parser->head, KEPT_BYTES);
    buf_trim(&parser->names, KEPT_BYTES);
    buf_trim(&parser->body, KEPT_BYTES);
    if (parser->cap_headers > KEPT_HEADERS) {
        free(parser->headers);
        parser->headers = NULL;
        parser->cap_headers = 0;
    }
    memset(&parser->request, 0, sizeof parser->request);
}

void request_parser_set_max_body(struct request_parser *parser, size_t max_body_bytes)
{
    parser->max_body_bytes = max_body_bytes;
}

bool request_parser_body_fits(const struct request_parser *parser)
{
    return parser->request.content_length <= parser->max_body_bytes; /* 0 when chunked */
}

const struct http_request *request_parser_request(const struct request_parser *parser)
{
    return &parser->request;
}

char *request_parser_take_body(struct request_parser *parser, size_t *ret_len)
{
    REQUIRE(parser->state == STATE_COMPLETE);
    parser->request.body = "";
    parser->request.body_len = 0;
    return buf_take(&parser->body, ret_len);
}

bool request_parser_in_request(const struct request_parser *parser)
{
    return parser->state != STATE_COMPLETE && (parser->state != STATE_HEAD || parser->head.len > 0);
}

const char *http_request_header(const struct http_request *request, const char *name)
{
    for (size_t i = 0; i < request->n_headers; i++)
        if (strcmp(request->headers[i].name, name) == 0)
            return request->headers[i].value;
    return NULL;
}

size_t http_request_header_count(const struct http_request *request, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < request->n_headers; i++)
        n += strcmp(request->headers[i].name, name) == 0;
    return n;
}

static enum parse_event refuse(struct request_parser *parser, struct error *err, enum status status,
                               const char *text)
{
    parser->state = STATE_REFUSED;
    error_set(err, status, "%s", text);
    return PARSE_ERROR;
}

/* --- the head: cut into its parts
 * --------------------------------------------------------------------------------- */

static bool token_char(unsigned char c)
{
    return c > 32 && c < 127 && !strchr("\"(),/:;<=>?@[\\]{}", c);
}

/* Copies len bytes and a NUL to names, whose room was reserved, so that pointers into it stay. */
static char *add_name(struct request_parser *parser, const char *bytes, size_t len)
{
    char *at = parser->names.data + parser->names.len;
    buf_add(&parser->names, bytes, len);
    buf_add_char(&parser->names, '\0');
    return at;
}

/* One header line (without CRLF) -> lower-case name and trimmed value; RFC 9112 section 5.  NULL,
 * or what is wrong. */
static const char *add_header(struct request_parser *parser, const char *line, size_t len)
{
    const char *colon = memchr(line, ':', len);
    if (line[0] == ' ' || line[0] == '\t')
        return "header lines must not be folded";
    if (!colon || colon == line)
        return "a header line has no name or no colon";
    size_t name_len = (size_t)(colon - line);
    for (size_t i = 0; i < name_len; i++)
        if (!token_char((unsigned char)line[i]))
            return "a header name holds a character that is not allowed";
    const char *value = colon + 1;
    const char *end = line + len;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if (parser->n_headers == parser->cap_headers) {
        parser->cap_headers = parser->cap_headers ? 2 * parser->cap_headers : 8;
        parser->headers =
            xreallocarray(parser->headers, parser->cap_headers, sizeof *parser->headers);
    }
    char *name = add_name(parser, line, name_len);
    for (char *c = name; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c + 32);
    parser->headers[parser->n_headers].name = name;
    parser->headers[parser->n_headers++].value = add_name(parser, value, (size_t)(end - value));
    return NULL;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Percent-decodes a path into names; false when an escape is bad or hides a NUL, or the result is
 * no UTF-8. */
static bool add_path(struct request_parser *parser, const char *path, size_t len)
{
    char *start = parser->names.data + parser->names.len;
    for (size_t i = 0; i < len; i++) {
        int c = (unsigned char)path[i];
        if (c == '%') {
            int high = len - i > 2 ? hex_value(path[i + 1]) : -1;
            int low = high >= 0 ? hex_value(path[i + 2]) : -1;
            if (low < 0 || high * 16 + low == 0)
                return false;
            c = high * 16 + low;
            i += 2;
        }
        buf_add_char(&parser->names, (char)c);
    }
    size_t decoded = (size_t)(parser->names.data + parser->names.len - start);
    buf_add_char(&parser->names, '\0');
    parser->request.path = start;
    return utf8_valid(start, decoded);
}

/* The request line: method SP target SP HTTP/1.x (RFC 9112 section 3).  Absolute form: the
 * authority is dropped. */
static const char *add_request_line(struct request_parser *parser, const char *line, size_t len)
{
    const char *space = memchr(line, ' ', len);
    const char *last = memrchr(line, ' ', len);
    if (!space || last == space || space == line)
        return "the request line is not METHOD TARGET HTTP/1.x";
    const char *target = space + 1;
    const char *end = last;
    if (target == end || memchr(target, ' ', (size_t)(end - target)))
        return "the request target is empty or holds a space";
    if (target[0] != '/' && !(end - target == 1 && target[0] == '*')) {
        const char *scheme = memmem(target, (size_t)(end - target), "://", 3);
        if (!scheme)
            return "the request target must begin with a slash";
        const char *slash = memchr(scheme + 3, '/', (size_t)(end - scheme - 3));
        target = slash ? slash : "/";
        end = slash ? end : target + 1;
    }
    if (memchr(target, '#', (size_t)(end - target)))
        return "the request target must not hold a fragment";
    const char *query = memchr(target, '?', (size_t)(end - target));
    if (!add_path(parser, target, (size_t)((query ? query : end) - target)))
        return "the path holds a bad percent escape";
    parser->request.query =
        query ? add_name(parser, query + 1, (size_t)(end - query - 1)) : add_name(parser, "", 0);
    return NULL;
}

/* Cuts the gathered head (which ends in CRLF CRLF) into request line and headers.  NULL, or what is
 * wrong. */
static const char *split_head(struct request_parser *parser)
{
    if (!buf_reserve(&parser->names, parser->head.len + 64))
        return "the head is too large";
    const char *at = parser->head.data;
    bool first = true;
    for (;;) {
        size_t len = (size_t)((const char *)rawmemchr(at, '\r') - at);
        if (len == 0)
            break;
        const char *bad = first ? add_request_line(parser, at, len) : add_header(parser, at, len);
        if (bad)
            return bad;
        first = false;
        at += len + 2;
    }
    parser->request.headers = parser->headers;
    parser->request.n_headers = parser->n_headers;
    return NULL;
}

/* --- the head: what it means for framing
 * ------------------------------------------------------------------------- */

static enum http_method method_of(const llhttp_t *llhttp)
{
    switch (llhttp->method) {
    case HTTP_GET:
        return HTTP_GET_;
    case HTTP_HEAD:
        return HTTP_HEAD_;
    case HTTP_POST:
        return HTTP_POST_;
    case HTTP_PUT:
        return HTTP_PUT_;
    case HTTP_DELETE:
        return HTTP_DELETE_;
    case HTTP_OPTIONS:
        return HTTP_OPTIONS_;
    case HTTP_PATCH:
        return HTTP_PATCH_;
    default:
        return HTTP_OTHER_;
    }
}

/* Whether a comma-separated header value holds the word, without case (RFC 9110 section 5.6.1). */
static bool list_has(const char *value, const char *word)
{
    size_t word_len = strlen(word);
    while (value && *value) {
        value += strspn(value, ", \t");
        size_t len = strcspn(value, ", \t");
        if (len == word_len && strncasecmp(value, word, len) == 0)
            return true;
        value += len;
    }
    return false;
}

static bool connection_has(const struct http_request *request, const char *word)
{
    for (size_t i = 0; i < request->n_headers; i++)
        if (strcmp(request->headers[i].name, "connection") == 0 &&
            list_has(request->headers[i].value, word))
            return true;
    return false;
}

/* Content-Length: decimal digits only, at most 18 of them; several must agree (RFC 9112
 * section 6.3). */
static bool read_content_length(struct http_request *request)
{
    bool seen = false;
    for (size_t i = 0; i < request->n_headers; i++) {
        if (strcmp(request->headers[i].name, "content-length") != 0)
            continue;
        const char *text = request->headers[i].value;
        size_t digits = strspn(text, "0123456789");
        if (digits == 0 || digits > 18 || text[digits] != '\0')
            return false;
        uint64_t value = strtoull(text, NULL, 10);
        if (seen && value != request->content_length)
            return false;
        request->content_length = value;
        seen = true;
    }
    request->has_body = request->content_length > 0;
    return true;
}

/* Decides framing and the fields of the request; the policy that llhttp's versions differ in.  OK
 * or the refusal. */
static enum status judge_head(struct request_parser *parser, struct error *err)
{
    struct http_request *request = &parser->request;
    request->minor = parser->llhttp.http_minor;
    request->method = method_of(&parser->llhttp);
    request->method_name = llhttp_method_name(parser->llhttp.method);
    if (parser->llhttp.http_major != 1 || request->minor > 1)
        return error_set(err, STATUS_BAD_HTTP, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    size_t n_hosts = http_request_header_count(request, "host");
    if (n_hosts > 1 || (n_hosts == 0 && request->minor == 1))
        return error_set(err, STATUS_BAD_HTTP, "an HTTP/1.1 request needs exactly one Host header");
    if (!read_content_length(request))
        return error_set(err, STATUS_BAD_HTTP, "Content-Length must be one decimal number");
    size_t n_codings = http_request_header_count(request, "transfer-encoding");
    if (n_codings > 0) {
        const char *coding = http_request_header(request, "transfer-encoding");
        if (http_request_header(request, "content-length"))
            return error_set(err, STATUS_BAD_HTTP,
                             "Content-Length and Transfer-Encoding must not come together");
        if (n_codings > 1 || strcasecmp(coding, "chunked") != 0 || request->minor == 0)
            return error_set(err, STATUS_BAD_HTTP,
                             "the only Transfer-Encoding understood is \"chunked\", in HTTP/1.1");
        request->chunked = request->has_body = true;
    }
    const char *expect = http_request_header(request, "expect");
    if (expect && request->minor == 1) {
        if (strcasecmp(expect, "100-continue") != 0 ||
            http_request_header_count(request, "expect") > 1)
            return error_set(err, STATUS_EXPECTATION,
                             "the only expectation understood is 100-continue");
        request->expects_continue = request->has_body;
    }
    request->keep_alive = request->minor == 1 ? !connection_has(request, "close")
                                              : connection_has(request, "keep-alive");
    return STATUS_OK;
}

static enum parse_event finish_head(struct request_parser *parser, struct error *err)
{
    const char *bad = split_head(parser);
    if (bad)
        return refuse(parser, err, STATUS_BAD_HTTP, bad);
    enum llhttp_errno code = llhttp_execute(&parser->llhttp, parser->head.data, parser->head.len);
    if (code != HPE_OK && code != HPE_PAUSED && code != HPE_PAUSED_UPGRADE)
        return refuse(parser, err, STATUS_BAD_HTTP, llhttp_get_error_reason(&parser->llhttp));
    if (judge_head(parser, err) != STATUS_OK) {
        parser->state = STATE_REFUSED;
        return PARSE_ERROR;
    }
    if (parser->request.has_body && parser->message_complete) /* CONNECT: llhttp reads no body */
        return refuse(parser, err, STATUS_BAD_HTTP, "a body is not allowed with this method");
    if (!parser->request.has_body)
        parser->message_complete =
            true; /* also for CONNECT and Upgrade, which this server does not follow */
    parser->state = STATE_HEAD_DONE;
    return PARSE_HEADERS;
}

/* Takes bytes of the head up to and including its empty line. */
static enum parse_event feed_head(struct request_parser *parser, const char *bytes, size_t len,
                                  size_t *ret_used, struct error *err)
{
    for (size_t i = 0; i < len; i++) {
        char c = bytes[i];
        *ret_used = i + 1;
        char before = parser->head.len > 0 ? parser->head.data[parser->head.len - 1] : '\0';
        if (c == '\0')
            return refuse(parser, err, STATUS_BAD_HTTP, "a NUL byte in the request head");
        if ((c == '\n') != (before == '\r'))
            return refuse(parser, err, STATUS_BAD_HTTP,
                          "lines of the request head must end in CR LF");
        if (parser->head.len >= parser->limits.max_header_bytes)
            return refuse(parser, err, STATUS_HEADERS_TOO_LARGE,
                          "the request head is larger than the server's limit");
        bool first_line = parser->line_start == 0;
        if (parser->head.len - parser->line_start > parser->limits.max_line_bytes + 1)
            return refuse(parser, err, first_line ? STATUS_URI_TOO_LONG : STATUS_HEADERS_TOO_LARGE,
                          first_line ? "the request line is longer than the server's limit"
                                     : "a header line is longer than the server's limit");
        buf_add_char(&parser->head, c);
        if (c != '\n')
            continue;
        if (parser->head.len == 2 &&
            first_line) { /* empty lines before a request: RFC 9112 section 2.2 */
            buf_reset(&parser->head);
            if (++parser->empty_lines > MAX_LEADING_EMPTY_LINES)
                return refuse(parser, err, STATUS_BAD_HTTP,
                              "too many empty lines before the request");
            continue;
        }
        if (parser->head.len - parser->line_start == 2)
            return finish_head(parser, err);
        if (!first_line && ++parser->head_lines > parser->limits.max_headers)
            return refuse(parser, err, STATUS_HEADERS_TOO_LARGE,
                          "more headers than the server's limit");
        parser->line_start = parser->head.len;
    }
    return PARSE_MORE;
}

/* --- the body
 * -----------------------------------------------------------------------------------------------------
 */

/* One byte of a chunk-size or trailer line or its end; false when it is not strictly RFC 9112
 * section 7.1. */
static bool check_chunk_byte(struct request_parser *parser, char c)
{
    switch (parser->chunk) {
    case CHUNK_SIZE:
        if (c == '\r') {
            parser->chunk = CHUNK_SIZE_LF;
            return parser->chunk_digits > 0;
        }
        /* extensions are refused: nobody needs them, and parsers disagree about them */
        if (hex_value(c) < 0 || ++parser->chunk_digits > 15)
            return false;
        parser->chunk_left = parser->chunk_left * 16 + (uint64_t)hex_value(c);
        return true;
    case CHUNK_SIZE_LF:
        parser->chunk_line = 0;
        parser->chunk = parser->chunk_left > 0 ? CHUNK_DATA : CHUNK_TRAILER;
        return c == '\n';
    case CHUNK_DATA_CR:
        parser->chunk = CHUNK_DATA_LF;
        return c == '\r';
    case CHUNK_DATA_LF:
        parser->chunk = CHUNK_SIZE;
        parser->chunk_digits = 0;
        return c == '\n';
    case CHUNK_TRAILER:
        if (c == '\r')
            parser->chunk = CHUNK_TRAILER_LF;
        else
            parser->chunk_line++;
        return c != '\n' && c != '\0' && ++parser->trailer_bytes <= parser->limits.max_line_bytes;
    case CHUNK_TRAILER_LF:
        parser->chunk = parser->chunk_line == 0 ? CHUNK_END : CHUNK_TRAILER;
        parser->chunk_line = 0;
        return c == '\n';
    default:
        return false;
    }
}

/* Checks framing bytes and skips data; *ret_len = bytes that belong to this body.  False: refuse.
 */
static bool scan_chunks(struct request_parser *parser, const char *bytes, size_t len,
                        size_t *ret_len)
{
    size_t i = 0;
    while (i < len && parser->chunk != CHUNK_END) {
        if (parser->chunk == CHUNK_DATA) {
            size_t n = len - i < parser->chunk_left ? len - i : (size_t)parser->chunk_left;
            parser->chunk_left -= n;
            i += n;
            if (parser->chunk_left == 0)
                parser->chunk = CHUNK_DATA_CR;
            continue;
        }
        if (!check_chunk_byte(parser, bytes[i++]))
            return false;
    }
    *ret_len = i;
    return true;
}

static enum parse_event feed_body(struct request_parser *parser, const char *bytes, size_t len,
                                  size_t *ret_used, struct error *err)
{
    struct http_request *request = &parser->request;
    size_t take = len;
    if (request->chunked) {
        if (!scan_chunks(parser, bytes, len, &take))
            return refuse(parser, err, STATUS_BAD_HTTP, "malformed chunk in the request body");
    } else if (request->content_length - parser->body.len < take) {
        take = (size_t)(request->content_length - parser->body.len);
    }
    *ret_used = take;
    enum llhttp_errno code = llhttp_execute(&parser->llhttp, bytes, take);
    if (code == HPE_USER)
        return refuse(parser, err, STATUS_TOO_LARGE,
                      "the request body is larger than the server's limit");
    if (code != HPE_OK && code != HPE_PAUSED)
        return refuse(parser, err, STATUS_BAD_HTTP, llhttp_get_error_reason(&parser->llhttp));
    return PARSE_MORE;
}

static enum parse_event complete(struct request_parser *parser)
{
    buf_add(&parser->body, "", 0); /* a NUL behind the body, also an empty one */
    parser->state = STATE_COMPLETE;
    parser->request.body = parser->body.data ? parser->body.data : "";
    parser->request.body_len = parser->body.len;
    return PARSE_COMPLETE;
}

enum parse_event request_parser_feed(struct request_parser *parser, const char *bytes, size_t len,
                                     size_t *ret_used, struct error *err)
{
    *ret_used = 0;
    if (parser->state == STATE_HEAD)
        return feed_head(parser, bytes, len, ret_used, err);
    if (parser->state == STATE_HEAD_DONE) {
        if (!request_parser_body_fits(parser))
            return refuse(parser, err, STATUS_TOO_LARGE,
                          "the request body is larger than the server's limit");
        parser->state = STATE_BODY;
    }
    if (parser->state == STATE_BODY) {
        enum parse_event event =
            parser->message_complete ? PARSE_MORE : feed_body(parser, bytes, len, ret_used, err);
        return event == PARSE_MORE && parser->message_complete ? complete(parser) : event;
    }
    if (parser->state == STATE_COMPLETE)
        return PARSE_COMPLETE;
    error_set(err, STATUS_BAD_HTTP, "the connection sent a malformed request before");
    return PARSE_ERROR;
}
