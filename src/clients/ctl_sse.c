/*
 * Server-sent events (WHATWG HTML, 9.2.6), as far as a completion needs them: the data of each
 * event; ids, names, retry times and comments are passed over.
 */
#include "config.h"

#include <string.h>

#include "ctl_priv.h"

void ctl_sse_init(struct ctl_sse *sse, size_t max_event_bytes)
{
    *sse = (struct ctl_sse){0};
    buf_init(&sse->line, max_event_bytes);
    buf_init(&sse->data, max_event_bytes);
}

void ctl_sse_done(struct ctl_sse *sse)
{
    buf_done(&sse->line);
    buf_done(&sse->data);
}

/* Takes a line without its end; false when on_data ended the stream. */
static bool take_line(struct ctl_sse *sse, ctl_data_fn on_data, void *ctx)
{
    const char *line = sse->line.data ? sse->line.data : "";
    size_t len = sse->line.len;
    if (len == 0) {
        bool more = !sse->has_data || on_data(ctx, sse->data.data, sse->data.len);
        buf_reset(&sse->data);
        sse->has_data = false;
        return more;
    }
    if (len >= 4 && memcmp(line, "data", 4) == 0 && (len == 4 || line[4] == ':')) {
        size_t skip = len == 4 ? 4 : len > 5 && line[5] == ' ' ? 6 : 5;
        if (sse->has_data)
            buf_add_char(&sse->data, '\n');
        buf_add(&sse->data, line + skip, len - skip);
        sse->has_data = true;
        sse->too_long |= sse->data.overflow;
    }
    return true;
}

bool ctl_sse_feed(struct ctl_sse *sse, const char *bytes, size_t len, ctl_data_fn on_data,
                  void *ctx)
{
    for (size_t at = 0; at < len && !sse->too_long; at++) {
        char c = bytes[at];
        bool second = c == '\n' && sse->after_cr; /* of CR LF */
        sse->after_cr = c == '\r';
        if (second)
            continue;
        if (c != '\n' && c != '\r') {
            sse->too_long |= !buf_add_char(&sse->line, c);
            continue;
        }
        bool more = take_line(sse, on_data, ctx);
        buf_reset(&sse->line);
        if (!more)
            return false;
    }
    return !sse->too_long;
}
