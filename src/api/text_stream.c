#include "config.h"

#include "tellerd/api/text_stream.h"

#include <stdlib.h>
#include <string.h>

#include "tellerd/base/mem.h"
#include "tellerd/base/utf8.h"

bool stop_set_add(struct stop_set *set, const char *bytes, size_t len)
{
    if (set->n == TEXT_STREAM_MAX_STOPS || len == 0 || len > TEXT_STREAM_MAX_STOP_BYTES)
        return false;
    struct stop_string *stop = &set->stops[set->n++];
    stop->bytes = xmemdup(bytes, len);
    stop->len = len;
    stop->fallback = xcalloc(len, sizeof *stop->fallback);
    for (size_t i = 1, k = 0; i < len; i++) {
        while (k > 0 && bytes[i] != bytes[k])
            k = stop->fallback[k - 1];
        k += bytes[i] == bytes[k];
        stop->fallback[i] = k;
    }
    return true;
}

void stop_set_done(struct stop_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        free(set->stops[i].bytes);
        free(set->stops[i].fallback);
    }
    set->n = 0;
}

void text_stream_init(struct text_stream *stream, const struct stop_set *stops)
{
    memset(stream, 0, sizeof *stream);
    stream->stops = stops;
    buf_init(&stream->held, SIZE_MAX / 2);
}

void text_stream_done(struct text_stream *stream)
{
    buf_done(&stream->held);
}

static void show(struct text_stream *stream, size_t len, struct buf *out)
{
    buf_add(out, stream->held.data, len);
    buf_consume(&stream->held, len);
    stream->shown_bytes += len;
}

/* Moves every stop's automaton by one byte; length of the longest stop completed by it, 0 when
 * none. */
static size_t advance(struct text_stream *stream, char c)
{
    size_t completed = 0;
    for (size_t i = 0; stream->stops && i < stream->stops->n; i++) {
        const struct stop_string *stop = &stream->stops->stops[i];
        size_t k = stream->matched[i];
        while (k > 0 && c != stop->bytes[k])
            k = stop->fallback[k - 1];
        k += c == stop->bytes[k];
        if (k == stop->len && k > completed)
            completed = k;
        stream->matched[i] = k;
    }
    return completed;
}

bool text_stream_push(struct text_stream *stream, const char *bytes, size_t len, struct buf *out)
{
    if (stream->stopped)
        return true;
    if ((!stream->stops || stream->stops->n == 0) && stream->held.len == 0) {
        /* nothing to look for and nothing held: what is whole goes straight through */
        size_t whole = utf8_complete_prefix(bytes, len);
        buf_add(out, bytes, whole);
        stream->shown_bytes += whole;
        stream->total_bytes += len;
        if (whole < len)
            buf_add(&stream->held, bytes + whole, len - whole);
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        buf_add_char(&stream->held, bytes[i]);
        stream->total_bytes++;
        size_t completed = advance(stream, bytes[i]);
        if (completed > 0) {
            stream->stopped = true;
            show(stream, stream->held.len - completed, out);
            buf_reset(&stream->held);
            return true;
        }
    }
    size_t keep = 0;
    for (size_t i = 0; stream->stops && i < stream->stops->n; i++)
        keep = stream->matched[i] > keep ? stream->matched[i] : keep;
    size_t free_bytes = stream->held.len - keep;
    show(stream, free_bytes ? utf8_complete_prefix(stream->held.data, free_bytes) : 0, out);
    return false;
}

void text_stream_flush(struct text_stream *stream, struct buf *out)
{
    if (!stream->stopped && stream->held.len > 0)
        show(stream, stream->held.len, out);
}
