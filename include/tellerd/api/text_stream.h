#ifndef TELLERD_API_TEXT_STREAM_H
#define TELLERD_API_TEXT_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "tellerd/base/buf.h"

/*
 * From token bytes to text that may be shown: holds back the beginning of a character that later
 * tokens may complete, and the beginning of a stop string that later tokens may complete; nothing
 * else.  The result does not depend on where tokens end.
 */
enum { TEXT_STREAM_MAX_STOPS = 16, TEXT_STREAM_MAX_STOP_BYTES = 1024 };

struct stop_set { /* owned by the request; shared by its choices; immutable */
    size_t n;
    struct stop_string {
        char *bytes;
        size_t len;
        size_t *fallback; /* Knuth, Morris, Pratt: [len], longest border of each prefix */
    } stops[TEXT_STREAM_MAX_STOPS];
};

/* Adds a stop string (copied, len > 0); false when the set is full or the string too long. */
bool stop_set_add(struct stop_set *set, const char *bytes, size_t len);
void stop_set_done(struct stop_set *set);

struct text_stream {
    const struct stop_set *stops;
    size_t matched[TEXT_STREAM_MAX_STOPS]; /* bytes of each stop that the text now ends in */
    struct buf held;                       /* bytes not yet shown */
    size_t shown_bytes;                    /* bytes released so far */
    size_t total_bytes;                    /* bytes pushed so far */
    bool stopped;                          /* a stop string was found; later pushes are ignored */
};

void text_stream_init(struct text_stream *stream, const struct stop_set *stops);
void text_stream_done(struct text_stream *stream);
/* Takes the bytes of one token; appends to out what may be shown now.  True when a stop string is
 * complete: the text ends before it. */
bool text_stream_push(struct text_stream *stream, const char *bytes, size_t len, struct buf *out);
/* The text is over: appends what was held back (nothing after a stop). */
void text_stream_flush(struct text_stream *stream, struct buf *out);

#endif
