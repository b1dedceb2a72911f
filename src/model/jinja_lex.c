/*
 * Splits a template into tokens, with the rules of Jinja2's lexer for trim_blocks, lstrip_blocks,
 * the signs - and + at tags, raw blocks and comments.  Works on demand, one token at a time.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jinja_ops_priv.h"
#include "jinja_parse_priv.h"
#include "tellerd/base/utf8.h"

bool jinja_syntax_error(const char *name, struct error *err, uint32_t line, uint32_t column,
                        const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)error_set(err, STATUS_BAD_FILE, "%s, line %u, column %u: %s", name, (unsigned)line,
                    (unsigned)column, text);
    return false;
}

/* Gives line and column of `at`, which never lies before an earlier one. */
static void locate(struct jinja_lexer *lx, size_t at, struct jinja_token *token)
{
    for (; lx->counted < at; lx->counted++) {
        if (lx->source[lx->counted] == '\n') {
            lx->line++;
            lx->line_start = lx->counted + 1;
        }
    }
    token->line = lx->line;
    token->column = (uint32_t)(at - lx->line_start) + 1;
}

static bool fail_at(struct jinja_lexer *lx, size_t at, const char *what)
{
    struct jinja_token token;
    locate(lx, at, &token);
    return jinja_syntax_error(lx->name, lx->err, token.line, token.column, "%s", what);
}

bool jinja_lex_init(struct jinja_lexer *lx, struct arena *arena, const char *source, size_t len,
                    const char *name, struct error *err)
{
    *lx = (struct jinja_lexer){.line = 1, .arena = arena, .name = name, .err = err};
    if (len > JINJA_MAX_SOURCE_BYTES)
        return jinja_syntax_error(name, err, 1, 1, "the template is larger than %d bytes",
                                  (int)JINJA_MAX_SOURCE_BYTES);
    if (!utf8_valid(source, len))
        return jinja_syntax_error(name, err, 1, 1, "the template is not valid UTF-8");
    char *copy = arena_alloc(arena, len + 1);
    if (!copy)
        return jinja_syntax_error(name, err, 1, 1, "the template takes too much memory");
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (source[i] == '\r' && i + 1 < len && source[i + 1] == '\n')
            continue;
        copy[n++] = source[i] == '\r' ? '\n' : source[i];
    }
    if (n > 0 && copy[n - 1] == '\n')
        n--; /* keep_trailing_newline is off */
    copy[n] = '\0';
    lx->source = copy;
    lx->len = n;
    return true;
}

static bool looking_at(const struct jinja_lexer *lx, size_t at, const char *text)
{
    size_t len = strlen(text);
    return lx->len - at >= len && memcmp(lx->source + at, text, len) == 0;
}

static size_t skip_space(const struct jinja_lexer *lx, size_t at)
{
    while (at < lx->len) {
        unsigned len;
        if (!jinja_is_space(jinja_char(lx->source + at, &len)))
            break;
        at += len;
    }
    return at;
}

/* Where text [from, to) ends when a tag with this sign follows. */
static size_t strip_before(const struct jinja_lexer *lx, size_t from, size_t to, char sign,
                           bool is_variable)
{
    if (sign == '-') {
        while (to > from) {
            size_t at = to - 1;
            unsigned len;
            while (at > from && ((unsigned char)lx->source[at] & 0xC0) == 0x80)
                at--;
            if (!jinja_is_space(jinja_char(lx->source + at, &len)))
                break;
            to = at;
        }
        return to;
    }
    if (sign == '+' || is_variable)
        return to;
    const char *newline = to > from ? memrchr(lx->source + from, '\n', to - from) : NULL;
    size_t line = newline ? (size_t)(newline - lx->source) + 1 : from;
    bool line_starting = from == 0 || lx->source[from - 1] == '\n';
    if (!newline && !line_starting)
        return to;
    return skip_space(lx, line) >= to ? line : to;
}

/* Behind "raw" or "endraw" and white space at `at`: the place after the tag's end, else 0. */
static size_t raw_tag_end(const struct jinja_lexer *lx, size_t at, const char *word, bool opening)
{
    at = skip_space(lx, at);
    if (!looking_at(lx, at, word))
        return 0;
    at = skip_space(lx, at + strlen(word));
    if (looking_at(lx, at, "-%}"))
        return skip_space(lx, at + 3);
    if (!opening && looking_at(lx, at, "+%}"))
        return at + 3;
    if (!looking_at(lx, at, "%}"))
        return 0;
    at += 2;
    if (!opening && at < lx->len && lx->source[at] == '\n')
        at++;
    return at;
}

static char sign_at(const struct jinja_lexer *lx, size_t at)
{
    return at < lx->len && (lx->source[at] == '-' || lx->source[at] == '+') ? lx->source[at] : '\0';
}

static void data_token(struct jinja_lexer *lx, size_t from, size_t to, struct jinja_token *ret)
{
    *ret = (struct jinja_token){.kind = TOKEN_DATA, .text = lx->source + from, .len = to - from};
    locate(lx, from, ret);
}

/* Text of a raw block up to its end tag. */
static bool lex_raw(struct jinja_lexer *lx, struct jinja_token *ret)
{
    size_t from = lx->at;
    for (size_t at = from; at < lx->len; at++) {
        if (!looking_at(lx, at, "{%"))
            continue;
        char sign = sign_at(lx, at + 2);
        size_t end = raw_tag_end(lx, at + 2 + (sign != '\0'), "endraw", false);
        if (end == 0)
            continue;
        size_t stop = strip_before(lx, from, at, sign, false);
        data_token(lx, from, stop, ret);
        lx->at = end;
        lx->state = LEX_ROOT;
        return true;
    }
    return fail_at(lx, from, "the raw block is never closed");
}

/* Skips a comment whose text starts at `at`. */
static bool skip_comment(struct jinja_lexer *lx, size_t at)
{
    size_t begin = at;
    const char *end = memmem(lx->source + at, lx->len - at, "#}", 2);
    if (!end)
        return fail_at(lx, begin - 2, "the comment is never closed");
    at = (size_t)(end - lx->source);
    char sign = at > begin ? lx->source[at - 1] : '\0';
    at += 2;
    if (sign == '-')
        at = skip_space(lx, at);
    else if (sign != '+' && at < lx->len && lx->source[at] == '\n')
        at++;
    lx->at = at;
    return true;
}

/* The next place of a tag's begin, or the end of the source. */
static size_t find_tag(const struct jinja_lexer *lx, size_t at)
{
    while (at < lx->len) {
        const char *brace = memchr(lx->source + at, '{', lx->len - at);
        if (!brace)
            return lx->len;
        at = (size_t)(brace - lx->source);
        if (at + 1 < lx->len && memchr("{%#", lx->source[at + 1], 3))
            return at;
        at++;
    }
    return lx->len;
}

/* Text outside of tags, and the begin of the tag behind it (given at the next call). */
static bool lex_root(struct jinja_lexer *lx, struct jinja_token *ret)
{
    size_t from = lx->at, tag = find_tag(lx, from);
    if (tag == lx->len) {
        lx->at = lx->len;
        data_token(lx, from, lx->len, ret);
        if (ret->len == 0)
            ret->kind = TOKEN_END;
        return true;
    }
    char kind = lx->source[tag + 1], sign = sign_at(lx, tag + 2);
    size_t stop = strip_before(lx, from, tag, sign, kind == '{');
    if (stop > from) {
        data_token(lx, from, stop, ret);
        lx->at = tag; /* read at the next call */
        return true;
    }
    *ret = (struct jinja_token){.kind = kind == '{' ? TOKEN_VARIABLE_BEGIN : TOKEN_BLOCK_BEGIN};
    locate(lx, tag, ret);
    lx->at = tag + 2 + (sign != '\0');
    if (kind == '#') {
        ret->kind = TOKEN_DATA; /* empty: the parser skips it */
        return skip_comment(lx, lx->at);
    }
    size_t raw = kind == '%' ? raw_tag_end(lx, lx->at, "raw", true) : 0;
    if (raw != 0) {
        ret->kind = TOKEN_DATA;
        lx->at = raw;
        lx->state = LEX_RAW;
        return true;
    }
    lx->state = kind == '{' ? LEX_VARIABLE : LEX_BLOCK;
    return true;
}

/* ---- inside of tags ---- */

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static bool is_digit(const struct jinja_lexer *lx, size_t at)
{
    return at < lx->len && lx->source[at] >= '0' && lx->source[at] <= '9';
}

/* Decimal digits with single underscores between them; the end of them. */
static size_t skip_digits(const struct jinja_lexer *lx, size_t at)
{
    while (is_digit(lx, at) || (at < lx->len && lx->source[at] == '_' && is_digit(lx, at + 1)))
        at++;
    return at;
}

static size_t real_end(const struct jinja_lexer *lx, size_t at)
{
    size_t begin = at, end = 0;
    if (begin > 0 && lx->source[begin - 1] == '.')
        return 0;
    at = skip_digits(lx, at);
    if (at < lx->len && lx->source[at] == '.' && is_digit(lx, at + 1))
        at = end = skip_digits(lx, at + 1);
    if (at < lx->len && (lx->source[at] | 32) == 'e') {
        size_t power = at + 1;
        if (power < lx->len && (lx->source[power] == '+' || lx->source[power] == '-'))
            power++;
        if (is_digit(lx, power))
            end = skip_digits(lx, power);
    }
    return end;
}

static size_t int_end(const struct jinja_lexer *lx, size_t at, int *ret_base)
{
    *ret_base = 10;
    if (lx->source[at] != '0')
        return skip_digits(lx, at);
    char c = at + 1 < lx->len ? (char)(lx->source[at + 1] | 32) : '\0';
    int base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 10;
    if (base != 10) {
        size_t end = at + 2;
        for (; end < lx->len; end++) {
            char d = (char)(lx->source[end] | 32);
            bool digit = d >= '0' && d <= '9' ? d - '0' < base : base == 16 && d >= 'a' && d <= 'f';
            if (!digit && lx->source[end] != '_')
                break;
        }
        *ret_base = base;
        return end;
    }
    while (at < lx->len && (lx->source[at] == '0' || lx->source[at] == '_'))
        at++;
    return at;
}

static bool lex_number(struct jinja_lexer *lx, struct jinja_token *ret)
{
    size_t at = lx->at, end = real_end(lx, at);
    struct jinja_string text = {.bytes = lx->source + at};
    int base;
    ret->kind = end != 0 ? TOKEN_REAL : TOKEN_INT;
    if (end != 0) {
        text.len = end - at;
        if (!jinja_parse_real(&text, &ret->real))
            return fail_at(lx, at, "the number is too long");
    } else {
        end = int_end(lx, at, &base);
        text.len = end - at;
        if (!jinja_parse_int(&text, base, &ret->integer))
            return fail_at(lx, at, "the integer does not fit 64 bits, or is malformed");
    }
    ret->text = text.bytes;
    ret->len = text.len;
    lx->at = end;
    return true;
}

static bool hex_escape(struct jinja_lexer *lx, size_t at, size_t end, unsigned n, uint32_t *ret)
{
    uint32_t code = 0;
    if (end - at < n)
        return fail_at(lx, at, "truncated escape in a string");
    for (unsigned i = 0; i < n; i++) {
        char c = lx->source[at + i], lower = (char)(c | 32);
        if (c >= '0' && c <= '9')
            code = code * 16 + (uint32_t)(c - '0');
        else if (lower >= 'a' && lower <= 'f')
            code = code * 16 + (uint32_t)(lower - 'a') + 10;
        else
            return fail_at(lx, at, "malformed escape in a string");
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return fail_at(lx, at, "the escape in a string is no character");
    *ret = code;
    return true;
}

/* One escape; *at is behind the backslash.  Writes to out, which has room for it. */
static bool unescape(struct jinja_lexer *lx, size_t *at, size_t end, char *out, size_t *n)
{
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    char c = lx->source[*at];
    const char *simple = memchr(from, c, sizeof from - 1);
    uint32_t code = 0;
    ++*at;
    if (c == '\n')
        return true;
    if (simple) {
        out[(*n)++] = to[simple - from];
        return true;
    }
    if (c >= '0' && c <= '7') {
        code = (uint32_t)(c - '0');
        for (int i = 0; i < 2 && *at < end && lx->source[*at] >= '0' && lx->source[*at] <= '7'; i++)
            code = code * 8 + (uint32_t)(lx->source[(*at)++] - '0');
    } else if (c == 'x' || c == 'u' || c == 'U') {
        unsigned digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        if (!hex_escape(lx, *at, end, digits, &code))
            return false;
        *at += digits;
    } else if (c == 'N') {
        return fail_at(lx, *at - 2, "named characters (\\N) are not supported");
    } else {
        out[(*n)++] = '\\';
        out[(*n)++] = c;
        return true;
    }
    *n += utf8_encode(code, out + *n);
    return true;
}

static bool lex_string(struct jinja_lexer *lx, struct jinja_token *ret)
{
    size_t begin = lx->at, end = begin + 1;
    char quote = lx->source[begin];
    while (end < lx->len && lx->source[end] != quote)
        end += lx->source[end] == '\\' ? 2 : 1;
    if (end >= lx->len)
        return fail_at(lx, begin, "the string is never closed");
    char *out = arena_alloc(lx->arena, end - begin);
    if (!out)
        return fail_at(lx, begin, "the template takes too much memory");
    size_t n = 0;
    for (size_t at = begin + 1; at < end;) {
        if (lx->source[at] != '\\') {
            out[n++] = lx->source[at++];
            continue;
        }
        at++;
        if (!unescape(lx, &at, end, out, &n))
            return false;
    }
    ret->kind = TOKEN_TEXT;
    ret->text = out;
    ret->len = n;
    lx->at = end + 1;
    return true;
}

static const struct {
    char text[3];
    enum lex_op op;
} operators[] = {
    /* longer ones first */
    {"//", LEX_FLOORDIV}, {"**", LEX_POW},      {"==", LEX_EQ},      {"!=", LEX_NE},
    {"<=", LEX_LE},       {">=", LEX_GE},       {"+", LEX_ADD},      {"-", LEX_SUB},
    {"*", LEX_MUL},       {"/", LEX_DIV},       {"%", LEX_MOD},      {"~", LEX_TILDE},
    {"(", LEX_LPAREN},    {")", LEX_RPAREN},    {"[", LEX_LBRACKET}, {"]", LEX_RBRACKET},
    {"{", LEX_LBRACE},    {"}", LEX_RBRACE},    {"<", LEX_LT},       {">", LEX_GT},
    {"=", LEX_ASSIGN},    {".", LEX_DOT},       {":", LEX_COLON},    {"|", LEX_PIPE},
    {",", LEX_COMMA},     {";", LEX_SEMICOLON},
};

static bool balance(struct jinja_lexer *lx, char c)
{
    static const char opening[] = "([{", closing[] = ")]}";
    const char *open = memchr(opening, c, 3);
    if (open) {
        if (lx->n_open == JINJA_MAX_NESTING)
            return fail_at(lx, lx->at, "brackets nest too deep");
        lx->open[lx->n_open++] = closing[open - opening];
        return true;
    }
    if (!memchr(closing, c, 3))
        return true;
    if (lx->n_open == 0 || lx->open[lx->n_open - 1] != c)
        return fail_at(lx, lx->at, "a closing bracket does not fit the opening one");
    lx->n_open--;
    return true;
}

static bool lex_operator(struct jinja_lexer *lx, struct jinja_token *ret)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (!looking_at(lx, lx->at, operators[i].text))
            continue;
        if (!balance(lx, lx->source[lx->at]))
            return false;
        ret->kind = TOKEN_OP;
        ret->op = operators[i].op;
        ret->text = operators[i].text;
        ret->len = strlen(operators[i].text);
        lx->at += ret->len;
        return true;
    }
    return fail_at(lx, lx->at, "unexpected character");
}

/* The end of a tag at the current place: moves behind it, true when there is one. */
static bool tag_end(struct jinja_lexer *lx, struct jinja_token *ret)
{
    bool block = lx->state == LEX_BLOCK;
    const char *end = block ? "%}" : "}}";
    char sign = sign_at(lx, lx->at);
    if (sign == '+' && !block)
        sign = '\0';
    size_t at = lx->at + (sign != '\0');
    if (lx->n_open > 0 || !looking_at(lx, at, end))
        return false;
    at += 2;
    if (sign == '-')
        at = skip_space(lx, at);
    else if (block && sign == '\0' && at < lx->len && lx->source[at] == '\n')
        at++;
    ret->kind = block ? TOKEN_BLOCK_END : TOKEN_VARIABLE_END;
    lx->at = at;
    lx->state = LEX_ROOT;
    return true;
}

static bool lex_tag(struct jinja_lexer *lx, struct jinja_token *ret)
{
    *ret = (struct jinja_token){.kind = TOKEN_END};
    lx->at = lx->at < lx->len ? skip_space(lx, lx->at) : lx->at;
    locate(lx, lx->at, ret);
    if (lx->at >= lx->len)
        return fail_at(lx, lx->len, "the tag is never closed");
    if (tag_end(lx, ret))
        return true;
    char c = lx->source[lx->at];
    if (is_digit(lx, lx->at))
        return lex_number(lx, ret);
    if (is_name_byte(c)) {
        size_t end = lx->at;
        while (end < lx->len && is_name_byte(lx->source[end]))
            end++;
        ret->kind = TOKEN_WORD;
        ret->text = lx->source + lx->at;
        ret->len = end - lx->at;
        lx->at = end;
        return true;
    }
    if (c == '\'' || c == '"')
        return lex_string(lx, ret);
    return lex_operator(lx, ret);
}

bool jinja_lex_next(struct jinja_lexer *lx, struct jinja_token *ret)
{
    switch (lx->state) {
    case LEX_ROOT:
        return lex_root(lx, ret);
    case LEX_RAW:
        return lex_raw(lx, ret);
    default:
        return lex_tag(lx, ret);
    }
}
