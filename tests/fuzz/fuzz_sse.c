/*
 * The client's reader of server-sent events: the same events however the bytes are split.
 */
#include "config.h"

#include <stdint.h>
#include <string.h>

#include "../../src/clients/ctl_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool keep(void *ctx, const char *data, size_t len)
{
    struct buf *out = ctx;
    buf_add_u64(out, len);
    buf_add_char(out, ':');
    buf_add(out, data, len);
    return len != 7;
}

/* Feeds in pieces of `step`; whether all was taken. */
static bool feed(const uint8_t *data, size_t size, size_t step, struct buf *out)
{
    struct ctl_sse sse;
    bool ok = true;
    ctl_sse_init(&sse, 100);
    for (size_t at = 0; ok && at < size; at += step)
        ok = ctl_sse_feed(&sse, (const char *)data + at, size - at < step ? size - at : step, keep,
                          out);
    ctl_sse_done(&sse);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole, split;
    buf_init(&whole, 64 * size + 64);
    buf_init(&split, 64 * size + 64);
    buf_add(&whole, "", 0);
    buf_add(&split, "", 0);
    bool all = size == 0 || feed(data, size, size, &whole);
    for (size_t step = 1; step <= 3; step++) {
        buf_reset(&split);
        REQUIRE(feed(data, size, step, &split) == all);
        REQUIRE(whole.len == split.len && memcmp(whole.data, split.data, whole.len) == 0);
    }
    buf_done(&whole);
    buf_done(&split);
    return 0;
}
