/*
 * Unicode normalisation form C over libutf8proc's tables.  The canonical order of combining marks
 * is made here, with a counting sort: the library's own exchanges neighbours, which takes quadratic
 * time on a long run of marks.  Pure functions, any thread.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "tellerd/base/utf8.h"
#include "tokenizer_priv.h"

enum {
    MAX_DECOMPOSITION = 18,   /* code points that one can become, compatibility included */
    SHORT_RUN = 32,           /* sorted by insertion */
    FIRST_CHANGED_LEAD = 0xCC /* first byte of U+0300: nothing below it is changed */
};

bool nfc_is_trivial(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] >= FIRST_CHANGED_LEAD)
            return false;
    }
    return true;
}

static unsigned combining_class(utf8proc_int32_t code)
{
    return (unsigned)utf8proc_get_property(code)->combining_class;
}

static void sort_short(utf8proc_int32_t *run, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        utf8proc_int32_t code = run[i];
        unsigned kind = combining_class(code);
        size_t at = i;
        for (; at > 0 && combining_class(run[at - 1]) > kind; at--)
            run[at] = run[at - 1];
        run[at] = code;
    }
}

static bool sort_long(utf8proc_int32_t *run, size_t n)
{
    size_t starts[257] = {0};
    utf8proc_int32_t *sorted = reallocarray(NULL, n, sizeof *sorted);
    if (!sorted)
        return false;
    for (size_t i = 0; i < n; i++)
        starts[(combining_class(run[i]) & 0xFF) + 1]++;
    for (size_t kind = 1; kind < 257; kind++)
        starts[kind] += starts[kind - 1];
    for (size_t i = 0; i < n; i++)
        sorted[starts[combining_class(run[i]) & 0xFF]++] = run[i];
    memcpy(run, sorted, n * sizeof *run);
    free(sorted);
    return true;
}

/* Puts each run of marks into the order of their combining classes, equal ones as they stand. */
static bool order_marks(utf8proc_int32_t *codes, size_t n)
{
    for (size_t start = 0; start < n;) {
        if (combining_class(codes[start]) == 0) {
            start++;
            continue;
        }
        size_t end = start + 1;
        while (end < n && combining_class(codes[end]) != 0)
            end++;
        if (end - start <= SHORT_RUN)
            sort_short(codes + start, end - start);
        else if (!sort_long(codes + start, end - start))
            return false;
        start = end;
    }
    return true;
}

/* The canonical decomposition, unordered; NULL when memory is out. */
static utf8proc_int32_t *decompose(const char *text, size_t len, size_t *ret_n)
{
    size_t cap = len + MAX_DECOMPOSITION, n = 0;
    utf8proc_int32_t *codes = reallocarray(NULL, cap, sizeof *codes);
    for (size_t at = 0; codes && at < len;) {
        uint32_t code;
        unsigned bad;
        at += utf8_decode(text + at, len - at, &code, &bad);
        if (cap - n < MAX_DECOMPOSITION) {
            cap += cap / 2 + MAX_DECOMPOSITION;
            utf8proc_int32_t *moved = reallocarray(codes, cap, sizeof *codes);
            if (!moved)
                free(codes);
            codes = moved;
            if (!codes)
                break;
        }
        int boundary = 0;
        utf8proc_ssize_t got =
            utf8proc_decompose_char((utf8proc_int32_t)code, codes + n, MAX_DECOMPOSITION,
                                    UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, &boundary);
        if (got <= 0 || got > MAX_DECOMPOSITION) {
            codes[n] = (utf8proc_int32_t)code;
            got = 1;
        }
        n += (size_t)got;
    }
    *ret_n = n;
    return codes;
}

char *nfc_normalize(const char *text, size_t len, size_t *ret_len)
{
    *ret_len = len;
    if (nfc_is_trivial(text, len) || !utf8_valid(text, len))
        return (char *)(uintptr_t)text;
    size_t n;
    utf8proc_int32_t *codes = decompose(text, len, &n);
    if (!codes)
        return NULL;
    char *out = NULL;
    if (order_marks(codes, n)) {
        utf8proc_ssize_t composed = utf8proc_normalize_utf32(codes, (utf8proc_ssize_t)n,
                                                             UTF8PROC_STABLE | UTF8PROC_COMPOSE);
        n = composed < 0 ? n : (size_t)composed;
        out = reallocarray(NULL, n + 1, 4);
    }
    size_t n_bytes = 0;
    for (size_t i = 0; out && i < n; i++)
        n_bytes += utf8_encode((uint32_t)codes[i], out + n_bytes);
    free(codes);
    if (out)
        *ret_len = n_bytes;
    return out;
}
