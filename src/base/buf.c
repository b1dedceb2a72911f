/*
 * Growable bytes with a hard maximum, and the writers that the token path uses: numbers without
 * printf, JSON strings.  Nothing here depends on the locale.  One owner, one thread.
 */
#include "config.h"

#include "tellerd/base/buf.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/base/mem.h"
#include "tellerd/base/utf8.h"

enum { BUF_FIRST_BYTES = 64, DOUBLE_DIGITS = 17, DOUBLE_CHARS = 64 };

void buf_init(struct buf *buf, size_t max_bytes)
{
    *buf = (struct buf){.max = max_bytes};
}

void buf_done(struct buf *buf)
{
    free(buf->data);
    buf_init(buf, buf->max);
}

void buf_reset(struct buf *buf)
{
    buf->len = 0;
    buf->overflow = false;
    if (buf->data)
        buf->data[0] = '\0';
}

void buf_trim(struct buf *buf, size_t kept_bytes)
{
    if (buf->cap > kept_bytes)
        buf_done(buf);
    else
        buf_reset(buf);
}

char *buf_take(struct buf *buf, size_t *ret_len)
{
    char *data = buf->data ? buf->data : xcalloc(1, 1);
    if (ret_len)
        *ret_len = buf->len;
    buf_init(buf, buf->max);
    return data;
}

void buf_consume(struct buf *buf, size_t n)
{
    REQUIRE(n <= buf->len);
    if (n == 0)
        return;
    buf->len -= n;
    memmove(buf->data, buf->data + n, buf->len + 1);
}

static bool overflow(struct buf *buf)
{
    buf->overflow = true;
    return false;
}

bool buf_reserve(struct buf *buf, size_t n)
{
    if (buf->overflow)
        return false;
    size_t wanted;
    if (n > buf->max - buf->len || !size_add(buf->len + n, 1, &wanted))
        return overflow(buf);
    if (wanted <= buf->cap)
        return true;
    size_t cap = buf->cap ? buf->cap : BUF_FIRST_BYTES;
    while (cap < wanted)
        cap = cap > SIZE_MAX / 2 ? wanted : 2 * cap;
    if (cap - 1 > buf->max)
        cap = buf->max + 1; /* no less than wanted, since len + n <= max */
    char *data = realloc(buf->data, cap);
    if (!data)
        return overflow(buf);
    buf->data = data;
    buf->cap = cap;
    data[buf->len] = '\0';
    return true;
}

bool buf_add(struct buf *buf, const void *bytes, size_t len)
{
    if (!buf_reserve(buf, len))
        return false;
    if (len > 0)
        memcpy(buf->data + buf->len, bytes, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
    return true;
}

bool buf_add_str(struct buf *buf, const char *text)
{
    return buf_add(buf, text, strlen(text));
}

bool buf_add_char(struct buf *buf, char c)
{
    return buf_add(buf, &c, 1);
}

bool buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args, again;
    if (!buf_reserve(buf, 0))
        return false;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(buf->data + buf->len, buf->cap - buf->len, format, args);
    bool ok = n >= 0 && buf_reserve(buf, (size_t)n);
    if (ok) {
        vsnprintf(buf->data + buf->len, buf->cap - buf->len, format, again);
        buf->len += (size_t)n;
    } else {
        buf->data[buf->len] = '\0';
        buf->overflow = true;
    }
    va_end(again);
    va_end(args);
    return ok;
}

bool buf_add_u64(struct buf *buf, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return buf_add(buf, digits + at, sizeof digits - at);
}

bool buf_add_hex(struct buf *buf, uint64_t value)
{
    char digits[16];
    size_t at = sizeof digits;
    do {
        digits[--at] = "0123456789abcdef"[value & 15];
        value >>= 4;
    } while (value > 0);
    return buf_add(buf, digits + at, sizeof digits - at);
}

bool buf_add_i64(struct buf *buf, int64_t value)
{
    if (value >= 0)
        return buf_add_u64(buf, (uint64_t)value);
    size_t before = buf->len;
    if (buf_add_char(buf, '-') && buf_add_u64(buf, -(uint64_t)value))
        return true;
    if (buf->data) {
        buf->len = before;
        buf->data[before] = '\0';
    }
    return false;
}

/* Writes value with so many significant digits; whether strtod reads the same double back.  Both
 * sides follow the locale, so they agree. */
static bool print_exact(char *out, double value, int digits)
{
    snprintf(out, DOUBLE_CHARS, "%.*g", digits, value);
    return strtod(out, NULL) == value;
}

/* Puts '.' in the place of whatever the locale separates decimals with. */
static void use_decimal_point(char *text)
{
    char *to = text;
    bool in_separator = false;
    for (const char *from = text; *from; from++) {
        bool plain = (*from >= '0' && *from <= '9') || strchr("+-.eE", *from);
        if (plain)
            *to++ = *from;
        else if (!in_separator)
            *to++ = '.';
        in_separator = !plain;
    }
    *to = '\0';
}

bool buf_add_double(struct buf *buf, double value)
{
    if (!isfinite(value))
        return buf_add_str(buf, "null");
    const double exact_integers = 9007199254740992.0; /* 2^53 */
    if (value == rint(value) && fabs(value) < exact_integers && !(value == 0 && signbit(value)))
        return buf_add_i64(buf, (int64_t)value);
    /* What can be said in 15 digits is the nearest number of 15 digits, and %g leaves its zeros
     * away; 17 always do.  Below DBL_MIN numbers have fewer digits, down to one. */
    char text[DOUBLE_CHARS];
    int digits = fabs(value) < DBL_MIN ? 1 : DBL_DIG;
    while (!print_exact(text, value, digits) && digits < DOUBLE_DIGITS)
        digits++;
    use_decimal_point(text);
    return buf_add_str(buf, text);
}

/* The escape of one code point, or NULL when it stands for itself. */
static const char *json_escape(uint32_t code, char hex[7])
{
    switch (code) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\b':
        return "\\b";
    case '\f':
        return "\\f";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        break;
    }
    if (code >= 0x20 && code != 0x7f && code != 0x2028 && code != 0x2029)
        return NULL;
    static const char digits[] = "0123456789abcdef";
    hex[0] = '\\';
    hex[1] = 'u';
    for (int i = 0; i < 4; i++)
        hex[2 + i] = digits[code >> (12 - 4 * i) & 15];
    hex[6] = '\0';
    return hex;
}

/* Appends the escaped text in runs: what stands for itself is copied as a whole. */
static bool add_escaped(struct buf *buf, const char *text, size_t len)
{
    size_t run = 0;
    for (size_t at = 0; at < len;) {
        unsigned char byte = (unsigned char)text[at];
        if (byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\') {
            at++;
            continue;
        }
        uint32_t code;
        unsigned bad;
        char hex[7];
        unsigned n = utf8_decode(text + at, len - at, &code, &bad);
        const char *escape = n > 0 ? json_escape(code, hex) : "\xef\xbf\xbd";
        if (escape) {
            if (!buf_add(buf, text + run, at - run) || !buf_add_str(buf, escape))
                return false;
            run = at + (n > 0 ? n : bad);
        }
        at += n > 0 ? n : bad;
    }
    return buf_add(buf, text + run, len - run);
}

bool buf_add_json(struct buf *buf, const char *text, size_t len)
{
    size_t before = buf->len;
    if (buf_add_char(buf, '"') && add_escaped(buf, text, len) && buf_add_char(buf, '"'))
        return true;
    if (buf->data) {
        buf->len = before;
        buf->data[before] = '\0';
    }
    return false;
}
