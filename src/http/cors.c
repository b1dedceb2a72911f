#include "config.h"

#include <string.h>

#include "http_priv.h"

/* Cross-origin calls from browsers (Fetch standard, section "CORS protocol"): an allow-list, off by
 * default, never with credentials. */

static const char *allowed_origin(const struct exchange *ex, const char *origin)
{
    const struct http_server *server = ex->connection->server;
    for (size_t i = 0; origin && i < server->n_cors_origins; i++) {
        if (strcmp(server->cors_origins[i], "*") == 0)
            return "*";
        if (strcmp(server->cors_origins[i], origin) == 0)
            return server->cors_origins[i]; /* our own copy, never the client's bytes */
    }
    return NULL;
}

void cors_add_headers(struct exchange *ex, struct buf *head)
{
    if (ex->connection->server->n_cors_origins == 0)
        return;
    const char *origin = allowed_origin(ex, http_request_header(exchange_request(ex), "origin"));
    buf_add_str(head, "Vary: Origin\r\n");
    if (origin)
        buf_printf(head,
                   "Access-Control-Allow-Origin: %s\r\nAccess-Control-Expose-Headers: "
                   "x-request-id, retry-after, "
                   "openai-processing-ms\r\n",
                   origin);
}

bool cors_preflight(struct exchange *ex)
{
    const struct http_request *request = exchange_request(ex);
    if (request->method != HTTP_OPTIONS_ || ex->connection->server->n_cors_origins == 0 ||
        !http_request_header(request, "access-control-request-method"))
        return false;
    if (allowed_origin(ex, http_request_header(request, "origin"))) {
        const char *asked = http_request_header(request, "access-control-request-headers");
        /* echoed only when it is nothing but header names; the SDKs send x-stainless-* of their own
         */
        bool plain =
            asked && strlen(asked) < 1024 &&
            asked[strspn(asked,
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_, ")] ==
                '\0';
        exchange_add_header(ex, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
        exchange_add_header(ex, "Access-Control-Allow-Headers",
                            plain ? asked : "Authorization, Content-Type, X-Request-Id");
        exchange_add_header(ex, "Access-Control-Max-Age", "86400");
    }
    exchange_respond(ex, 204, NULL, NULL, 0);
    return true;
}
