#ifndef TELLERD_BASE_BUF_H
#define TELLERD_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/base/status.h"

/*
 * Growable bytes with a hard maximum.  `data` always ends in a NUL that is not counted in `len`
 * once anything was appended.  A failed append sets `overflow`, appends nothing, and every later
 * append fails too, so a writer may check once at its end.  One owner, one thread.
 */
struct buf {
    char *data;
    size_t len;
    size_t cap;
    size_t max;
    bool overflow;
};

void buf_init(struct buf *buf, size_t max_bytes);
void buf_done(struct buf *buf);
/* len = 0, overflow = false; keeps the memory. */
void buf_reset(struct buf *buf);
/* The same, but gives the memory back when it is more than kept_bytes. */
void buf_trim(struct buf *buf, size_t kept_bytes);
/* Gives the bytes away (free with free()), NUL-terminated, never NULL; the buf is as after
 * buf_init. */
char *buf_take(struct buf *buf, size_t *ret_len);
/* Drops the first n bytes (n <= len). */
void buf_consume(struct buf *buf, size_t n);

/* Make room for n more bytes / append; false on overflow of the maximum. */
bool buf_reserve(struct buf *buf, size_t n);
bool buf_add(struct buf *buf, const void *bytes, size_t len);
bool buf_add_str(struct buf *buf, const char *text);
bool buf_add_char(struct buf *buf, char c);
bool buf_printf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);
/* Numbers without printf, decimal and hexadecimal (lower case): the token path uses these. */
bool buf_add_u64(struct buf *buf, uint64_t value);
bool buf_add_hex(struct buf *buf, uint64_t value);
bool buf_add_i64(struct buf *buf, int64_t value);
/* Shortest form that reads back to the same double; NaN and infinities are written as null. C
 * locale always. */
bool buf_add_double(struct buf *buf, double value);
/*
 * A JSON string with quotes: escapes quotes, backslash, control characters and U+2028/2029;
 * ill-formed UTF-8 becomes U+FFFD (one per maximal ill-formed piece, as W3C decoding counts).
 */
bool buf_add_json(struct buf *buf, const char *text, size_t len);

#endif
