#ifndef TELLERD_HTTP_REQUEST_H
#define TELLERD_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/base/buf.h"
#include "tellerd/base/status.h"

/*
 * One HTTP/1.x request as bytes come in: the parser knows framing and limits, and nothing of
 * sockets, so that it can be fuzzed. Strict as RFC 9112 allows: bare LF or CR, NUL, obs-fold,
 * spaces before a colon, Content-Length together with Transfer-Encoding, and codings other than
 * "chunked" are refused, and nothing behind a refused request is read as a request.
 */
enum http_method {
    HTTP_GET_,
    HTTP_HEAD_,
    HTTP_POST_,
    HTTP_PUT_,
    HTTP_DELETE_,
    HTTP_OPTIONS_,
    HTTP_PATCH_,
    HTTP_OTHER_
};

struct http_header {
    const char *name; /* NUL-terminated, lower case */
    const char
        *value; /* NUL-terminated, outer white space dropped; no control characters but tab */
};

struct http_request {
    enum http_method method;
    const char *method_name;
    const char *path;  /* percent-decoded, one leading slash, no query; "*" for OPTIONS * */
    const char *query; /* raw, "" when none */
    unsigned minor;    /* HTTP/1.minor: 0 or 1 */
    bool keep_alive;   /* what version and Connection header ask for */
    bool expects_continue;
    bool chunked;
    uint64_t content_length; /* 0 without */
    bool has_body;           /* a body was announced */
    const struct http_header *headers;
    size_t n_headers;
    const char *body; /* complete once PARSE_COMPLETE was returned; NUL-terminated, may hold NULs */
    size_t body_len;
};

/* Value of the first header of that (lower-case) name, NULL when absent; and how often the name
 * occurs. */
const char *http_request_header(const struct http_request *request, const char *name);
size_t http_request_header_count(const struct http_request *request, const char *name);

struct http_parse_limits {
    size_t max_header_bytes; /* request line and headers together */
    size_t max_line_bytes;   /* one line of them */
    size_t max_headers;
    size_t max_body_bytes; /* default; request_parser_set_max_body changes it for one request */
};

enum parse_event {
    PARSE_MORE,     /* all bytes were taken, more are needed */
    PARSE_HEADERS,  /* the head is complete (once per request) */
    PARSE_COMPLETE, /* the request is complete (once per request); the next bytes are the next
                       request's */
    PARSE_ERROR, /* refused: `err` says how to answer; the connection must close; the parser takes
                    nothing more */
};

struct request_parser;

struct request_parser *request_parser_new(const struct http_parse_limits *limits);
void request_parser_free(struct request_parser *parser);
/*
 * Feeds bytes; *ret_used says how many were taken before the event.  After PARSE_COMPLETE the
 * request stays readable until request_parser_next.  Owner's thread.
 */
enum parse_event request_parser_feed(struct request_parser *parser, const char *bytes, size_t len,
                                     size_t *ret_used, struct error *err);
/* Forgets the finished request and gets ready for the next one. */
void request_parser_next(struct request_parser *parser);
/* Largest body of the current request; between PARSE_HEADERS and the first body byte. */
void request_parser_set_max_body(struct request_parser *parser, size_t max_body_bytes);
/* Whether the announced length of the body is within its bound. */
bool request_parser_body_fits(const struct request_parser *parser);
const struct http_request *request_parser_request(const struct request_parser *parser);
/* Gives the body of the complete request away (free with free()), NUL-terminated, never NULL; the
 * request has none from then on. */
char *request_parser_take_body(struct request_parser *parser, size_t *ret_len);
/* Whether a request has begun (a byte of its head was seen) and is not complete. */
bool request_parser_in_request(const struct request_parser *parser);

#endif
