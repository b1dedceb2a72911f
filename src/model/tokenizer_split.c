/*
 * Splits text into pre-tokens, exactly as the published patterns of each family do (PATTERNS in
 * tests/oracle/tokenizer_oracle.py, where that is checked).  Written by hand: one pass, no
 * recursion and no backtracking, so that a run of any length costs time linear in it.  Letters and
 * numbers are the general categories L and N of the installed libutf8proc; spaces are Unicode's
 * White_Space.  Ill-formed bytes count as symbols.  Pure functions, any thread.
 */
#include "config.h"

#include <utf8proc.h>

#include "tellerd/base/utf8.h"
#include "tokenizer_priv.h"

enum char_class {
    CLASS_END, /* behind the last character */
    CLASS_OTHER,
    CLASS_LETTER,
    CLASS_NUMBER,
    CLASS_SPACE
};

struct letter {
    uint32_t code;
    enum char_class kind;
    size_t end; /* offset behind it */
};

/* What distinguishes the patterns that descend from GPT-4's. */
enum { MAX_NUMBER_LLAMA3 = 3, MAX_NUMBER_QWEN2 = 1, MAX_NUMBER_NANOCHAT = 2 };

enum { LATIN_SMALL_LONG_S = 0x17F }; /* folds to "s" in a case-insensitive pattern */

static enum char_class class_of_ascii(uint32_t code)
{
    if ((code | 32) >= 'a' && (code | 32) <= 'z')
        return CLASS_LETTER;
    if (code >= '0' && code <= '9')
        return CLASS_NUMBER;
    return code == ' ' || (code >= '\t' && code <= '\r') ? CLASS_SPACE : CLASS_OTHER;
}

static bool is_wide_space(uint32_t code)
{
    return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
           code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

static enum char_class class_of(uint32_t code)
{
    if (code < 0x80)
        return class_of_ascii(code);
    switch (utf8proc_category((utf8proc_int32_t)code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return CLASS_LETTER;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return CLASS_NUMBER;
    default:
        return is_wide_space(code) ? CLASS_SPACE : CLASS_OTHER;
    }
}

static struct letter letter_at(const char *text, size_t len, size_t at)
{
    if (at >= len)
        return (struct letter){0, CLASS_END, len};
    unsigned char first = (unsigned char)text[at];
    if (first < 0x80)
        return (struct letter){first, class_of_ascii(first), at + 1};
    uint32_t code;
    unsigned bad;
    unsigned n = utf8_decode(text + at, len - at, &code, &bad);
    if (n == 0)
        return (struct letter){code, CLASS_OTHER, at + bad};
    return (struct letter){code, class_of(code), at + n};
}

static bool is_newline(uint32_t code)
{
    return code == '\n' || code == '\r';
}

/* End of the run of one kind that starts at `at`. */
static size_t run_end(const char *text, size_t len, size_t at, enum char_class kind)
{
    for (;;) {
        struct letter c = letter_at(text, len, at);
        if (c.kind != kind)
            return at;
        at = c.end;
    }
}

/*
 * \s+(?!\S)|\s+ : a run of spaces but for its last one, which goes with what follows; all of it at
 * the end of the text, or when it is one character.
 */
static size_t spaces_end(const char *text, size_t len, size_t start, bool numbers_end_text)
{
    size_t last = start, at = start;
    struct letter c;
    while ((c = letter_at(text, len, at)).kind == CLASS_SPACE) {
        last = at;
        at = c.end;
    }
    bool at_end = c.kind == CLASS_END || (numbers_end_text && c.kind == CLASS_NUMBER);
    return at_end || last == start ? at : last;
}

/* 's 't 're 've 'm 'll 'd with the apostrophe at start: its end, or start when there is none. */
static size_t contraction_end(const char *text, size_t len, size_t start, bool any_case)
{
    uint32_t letters[2] = {0, 0};
    size_t ends[2] = {start, start};
    size_t at = start + 1;
    for (int i = 0; i < 2; i++) {
        struct letter c = letter_at(text, len, at);
        letters[i] = any_case && c.code >= 'A' && c.code <= 'Z' ? c.code + 32 : c.code;
        if (any_case && c.code == LATIN_SMALL_LONG_S)
            letters[i] = 's';
        ends[i] = at = c.end;
    }
    switch (letters[0]) {
    case 's':
    case 't':
    case 'm':
    case 'd':
        return ends[0];
    case 'r':
    case 'v':
        return letters[1] == 'e' ? ends[1] : start;
    case 'l':
        return letters[1] == 'l' ? ends[1] : start;
    default:
        return start;
    }
}

/*
 * 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * With numbers_alone: each number character is a piece of its own, and what lies between two of
 * them is split as a text by itself.
 */
static size_t piece_gpt2(const char *text, size_t len, size_t start, bool numbers_alone)
{
    struct letter c = letter_at(text, len, start);
    if (c.code == '\'') {
        size_t end = contraction_end(text, len, start, false);
        if (end > start)
            return end;
    }
    if (c.code == ' ') {
        struct letter next = letter_at(text, len, c.end);
        if (next.kind == CLASS_LETTER || next.kind == CLASS_OTHER ||
            (next.kind == CLASS_NUMBER && !numbers_alone))
            return run_end(text, len, next.end, next.kind);
    }
    if (c.kind == CLASS_SPACE)
        return spaces_end(text, len, start, numbers_alone);
    if (c.kind == CLASS_NUMBER && numbers_alone)
        return c.end;
    return run_end(text, len, c.end, c.kind);
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t spaces_or_newlines_end(const char *text, size_t len, size_t start)
{
    size_t newline_end = start, at = start;
    for (;;) {
        struct letter c = letter_at(text, len, at);
        if (c.kind != CLASS_SPACE)
            break;
        at = c.end;
        if (is_newline(c.code))
            newline_end = at;
    }
    return newline_end > start ? newline_end : spaces_end(text, len, start, false);
}

/*
 * (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,M}| ?[^\s\p{L}\p{N}]+[\r\n]*|
 * \s*[\r\n]+|\s+(?!\S)|\s+
 */
static size_t piece_gpt4(const char *text, size_t len, size_t start, int max_number)
{
    struct letter c = letter_at(text, len, start);
    if (c.code == '\'') {
        size_t end = contraction_end(text, len, start, true);
        if (end > start)
            return end;
    }
    if (c.kind == CLASS_LETTER)
        return run_end(text, len, c.end, CLASS_LETTER);
    if (c.kind == CLASS_NUMBER) {
        size_t end = c.end;
        for (int n = 1; n < max_number; n++) {
            c = letter_at(text, len, end);
            if (c.kind != CLASS_NUMBER)
                break;
            end = c.end;
        }
        return end;
    }
    struct letter next = letter_at(text, len, c.end);
    if (next.kind == CLASS_LETTER && !is_newline(c.code))
        return run_end(text, len, next.end, CLASS_LETTER);
    if (c.kind == CLASS_OTHER || (c.code == ' ' && next.kind == CLASS_OTHER)) {
        size_t end = run_end(text, len, c.end, CLASS_OTHER);
        while (end < len && is_newline((unsigned char)text[end]))
            end++;
        return end;
    }
    return spaces_or_newlines_end(text, len, start);
}

size_t split_piece(enum tokenizer_split split, const char *text, size_t len, size_t start)
{
    switch (split) {
    case SPLIT_GPT2:
        return piece_gpt2(text, len, start, false);
    case SPLIT_SMOLLM:
        return piece_gpt2(text, len, start, true);
    case SPLIT_LLAMA3:
        return piece_gpt4(text, len, start, MAX_NUMBER_LLAMA3);
    case SPLIT_QWEN2:
        return piece_gpt4(text, len, start, MAX_NUMBER_QWEN2);
    case SPLIT_NANOCHAT:
        return piece_gpt4(text, len, start, MAX_NUMBER_NANOCHAT);
    case SPLIT_NONE:
    case SPLIT_COUNT:
        break;
    }
    return len;
}

void tokenizer_split_text(enum tokenizer_split split, const char *text, size_t len,
                          void (*fn)(void *ctx, const char *piece, size_t len), void *ctx)
{
    for (size_t start = 0, end; start < len; start = end) {
        end = split_piece(split, text, len, start);
        fn(ctx, text + start, end - start);
    }
}
