/*
 * UTF-8 decoding and the JSON string writer: the writer's output is well-formed UTF-8 without
 * control characters, and a prefix that is said to be complete stays so whatever follows.
 */
#include "config.h"

#include <stdint.h>

#include "tellerd/base/buf.h"
#include "tellerd/base/status.h"
#include "tellerd/base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t walk(const char *text, size_t len)
{
    size_t count = 0;
    for (size_t at = 0; at < len; count++) {
        uint32_t code;
        unsigned bad;
        char again[4];
        unsigned n = utf8_decode(text + at, len - at, &code, &bad);
        REQUIRE(n <= 4 && (n > 0) == (bad == 0));
        REQUIRE(n == 0 ? code == 0xfffd : utf8_encode(code, again) == n);
        at += n > 0 ? n : bad;
        REQUIRE(at <= len);
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    size_t complete = utf8_complete_prefix(text, size);
    REQUIRE(complete <= size && size - complete <= 3);
    REQUIRE(walk(text, size) == utf8_length(text, size));
    REQUIRE(walk(text, complete) == utf8_length(text, complete));
    bool valid = utf8_valid(text, size);
    REQUIRE(!valid || complete == size);

    struct buf buf, small;
    buf_init(&buf, 8 * size + 2);
    REQUIRE(buf_add_json(&buf, text, size));
    REQUIRE(utf8_valid(buf.data, buf.len));
    REQUIRE(buf.data[0] == '"' && buf.data[buf.len - 1] == '"' && buf.len >= 2);
    for (size_t i = 0; i < buf.len; i++)
        REQUIRE((unsigned char)buf.data[i] >= 0x20);
    buf_init(&small, buf.len - 1);
    REQUIRE(!buf_add_json(&small, text, size) && small.len == 0);
    buf_done(&small);
    buf_done(&buf);
    return 0;
}
