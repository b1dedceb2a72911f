/*
 * UTF-8 by the table of well-formed byte sequences (Unicode 15, table 3-7).  Pure functions.
 */
#include "config.h"

#include "tellerd/base/utf8.h"

#include <string.h>

enum { UTF8_REPLACEMENT = 0xfffd };

/* What a lead byte asks for: length of the character (0: no lead byte), range of the second byte.
 */
struct lead {
    unsigned len;
    unsigned char low;
    unsigned char high;
};

static struct lead lead_of(unsigned char byte)
{
    if (byte < 0x80)
        return (struct lead){1, 0, 0};
    if (byte < 0xc2)
        return (struct lead){0, 0, 0};
    if (byte < 0xe0)
        return (struct lead){2, 0x80, 0xbf};
    if (byte < 0xf0)
        return (struct lead){3, byte == 0xe0 ? 0xa0 : 0x80, byte == 0xed ? 0x9f : 0xbf};
    if (byte < 0xf5)
        return (struct lead){4, byte == 0xf0 ? 0x90 : 0x80, byte == 0xf4 ? 0x8f : 0xbf};
    return (struct lead){0, 0, 0};
}

/* How many bytes at `bytes` (its lead byte included) fit the character that the lead announces. */
static unsigned fitting_bytes(const unsigned char *bytes, size_t len, struct lead lead)
{
    unsigned n = 1;
    while (n < lead.len && n < len) {
        unsigned char low = n == 1 ? lead.low : 0x80, high = n == 1 ? lead.high : 0xbf;
        if (bytes[n] < low || bytes[n] > high)
            break;
        n++;
    }
    return n;
}

unsigned utf8_decode(const char *text, size_t len, uint32_t *ret_code, unsigned *ret_bad)
{
    const unsigned char *bytes = (const unsigned char *)text;
    struct lead lead = lead_of(bytes[0]);
    unsigned n = fitting_bytes(bytes, len, lead);
    if (lead.len == 0 || n < lead.len) {
        *ret_code = UTF8_REPLACEMENT;
        *ret_bad = n;
        return 0;
    }
    uint32_t code = lead.len == 1 ? bytes[0] : bytes[0] & (0x7fu >> lead.len);
    for (unsigned i = 1; i < lead.len; i++)
        code = code << 6 | (bytes[i] & 0x3f);
    *ret_code = code;
    *ret_bad = 0;
    return lead.len;
}

/* Length of the run of ASCII at the start, eight bytes at a time. */
static size_t ascii_prefix(const char *text, size_t len)
{
    size_t at = 0;
    while (len - at >= sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, text + at, sizeof word);
        if (word & UINT64_C(0x8080808080808080))
            break;
        at += sizeof word;
    }
    while (at < len && (unsigned char)text[at] < 0x80)
        at++;
    return at;
}

bool utf8_valid(const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        at += ascii_prefix(text + at, len - at);
        if (at == len)
            break;
        uint32_t code;
        unsigned bad;
        unsigned n = utf8_decode(text + at, len - at, &code, &bad);
        if (n == 0)
            return false;
        at += n;
    }
    return true;
}

unsigned utf8_encode(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

size_t utf8_complete_prefix(const char *text, size_t len)
{
    const unsigned char *bytes = (const unsigned char *)text;
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        unsigned char byte = bytes[len - back];
        if (byte >= 0x80 && byte < 0xc0)
            continue; /* perhaps the inside of a character: look further back */
        struct lead lead = lead_of(byte);
        bool waits = lead.len > back && fitting_bytes(bytes + len - back, back, lead) == back;
        return waits ? len - back : len;
    }
    return len;
}

size_t utf8_length(const char *text, size_t len)
{
    size_t count = 0;
    for (size_t at = 0; at < len;) {
        size_t ascii = ascii_prefix(text + at, len - at);
        count += ascii;
        at += ascii;
        if (at == len)
            break;
        uint32_t code;
        unsigned bad;
        unsigned n = utf8_decode(text + at, len - at, &code, &bad);
        at += n > 0 ? n : bad;
        count++;
    }
    return count;
}
