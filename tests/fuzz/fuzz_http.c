#include "config.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/http/request.h"

/* The first byte chooses the piece size; the same bytes in one piece must end the same way. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum parse_event run(const char *bytes, size_t len, size_t piece, unsigned *ret_complete)
{
    static const struct http_parse_limits limits = {4096, 1024, 50, 4096};
    struct request_parser *parser = request_parser_new(&limits);
    enum parse_event event = PARSE_MORE;
    size_t at = 0;
    bool again = false;
    *ret_complete = 0;
    while (at < len || again) {
        size_t n = len - at < piece ? len - at : piece, used = 0;
        struct error err = {0};
        event = request_parser_feed(parser, bytes + at, n, &used, &err);
        REQUIRE(used <= n);
        at += used;
        again = event == PARSE_HEADERS;
        if (event == PARSE_ERROR)
            break;
        if (event == PARSE_COMPLETE) {
            const struct http_request *request = request_parser_request(parser);
            REQUIRE(strlen(request->path) < 4096 && request->body[request->body_len] == '\0');
            ++*ret_complete;
            request_parser_next(parser);
        }
    }
    request_parser_free(parser);
    return event;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    unsigned whole_complete, split_complete;
    enum parse_event whole = run((const char *)data + 1, size - 1, size, &whole_complete);
    enum parse_event split =
        run((const char *)data + 1, size - 1, (size_t)data[0] % 32 + 1, &split_complete);
    REQUIRE(whole_complete == split_complete);
    REQUIRE((whole == PARSE_ERROR) == (split == PARSE_ERROR));
    return 0;
}
