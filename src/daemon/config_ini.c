/*
 * The reader of configuration files.
 *
 *     # comment            (also with ';', also after a value and a blank)
 *     [section]
 *     key = value
 *     key = "quoted \" value  # no comment"
 *
 * UTF-8, LF or CRLF.  No line continues another.  Everything else is an error with its place.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tellerd/base/buf.h"
#include "tellerd/base/mem.h"
#include "tellerd/base/utf8.h"
#include "tellerd/daemon/ini.h"

enum { INI_WORD_MAX = 64 };

struct ini {
    const char *name;
    unsigned line;
    char section[INI_WORD_MAX];
    ini_pair_fn on_pair;
    void *ctx;
    struct error *err;
};

/* A cursor in one line; the line ends in a NUL. */
struct cursor {
    const char *line;
    const char *at;
};

/* Puts the place in front of the error that is already set. */
static enum status placed(const struct ini *ini, const struct cursor *cursor, enum status status)
{
    error_prefix(ini->err, "%s:%u:%zu", ini->name, ini->line,
                 (size_t)(cursor->at - cursor->line) + 1);
    return status;
}

static enum status fail(const struct ini *ini, const struct cursor *cursor, const char *text)
{
    return placed(ini, cursor, error_set(ini->err, STATUS_BAD_CONFIG, "%s", text));
}

static void skip_blanks(struct cursor *cursor)
{
    while (*cursor->at == ' ' || *cursor->at == '\t')
        cursor->at++;
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

static bool at_end(const struct cursor *cursor)
{
    return *cursor->at == '\0' || *cursor->at == '#' || *cursor->at == ';';
}

/* Reads [A-Za-z0-9_-]+ into word; false when there is none or it is too long. */
static bool read_word(struct cursor *cursor, char word[INI_WORD_MAX])
{
    size_t n = 0;
    while (is_word_char(cursor->at[n]))
        n++;
    if (n == 0 || n >= INI_WORD_MAX)
        return false;
    memcpy(word, cursor->at, n);
    word[n] = '\0';
    cursor->at += n;
    return true;
}

static enum status read_section(struct ini *ini, struct cursor *cursor)
{
    cursor->at++;
    skip_blanks(cursor);
    if (!read_word(cursor, ini->section))
        return fail(ini, cursor, "a section's name is letters, digits, '-' and '_'");
    skip_blanks(cursor);
    if (*cursor->at != ']')
        return fail(ini, cursor, "']' is missing after the section's name");
    cursor->at++;
    skip_blanks(cursor);
    return at_end(cursor) ? STATUS_OK : fail(ini, cursor, "unexpected text after the section");
}

/* Reads "..." with \" and \\ into value. */
static enum status read_quoted(struct ini *ini, struct cursor *cursor, char *value)
{
    struct cursor start = *cursor;
    for (cursor->at++; *cursor->at != '"'; cursor->at++) {
        if (*cursor->at == '\0')
            return fail(ini, &start, "the closing quote is missing");
        if (*cursor->at == '\\') {
            if (cursor->at[1] != '"' && cursor->at[1] != '\\')
                return fail(ini, cursor, "in quotes, '\\' stands only before '\"' or '\\'");
            cursor->at++;
        }
        *value++ = *cursor->at;
    }
    *value = '\0';
    cursor->at++;
    skip_blanks(cursor);
    return at_end(cursor) ? STATUS_OK : fail(ini, cursor, "unexpected text after the value");
}

/* Reads up to a comment (with a blank before it) or the end, without blanks at the end. */
static void read_plain(struct cursor *cursor, char *value)
{
    size_t n = 0, kept = 0;
    for (const char *at = cursor->at; *at; at++, n++) {
        bool blank_before = n == 0 || at[-1] == ' ' || at[-1] == '\t';
        if ((*at == '#' || *at == ';') && blank_before)
            break;
        if (*at != ' ' && *at != '\t')
            kept = n + 1;
    }
    memcpy(value, cursor->at, kept);
    value[kept] = '\0';
    cursor->at += n;
}

static enum status read_pair(struct ini *ini, struct cursor *cursor)
{
    char key[INI_WORD_MAX];
    struct cursor start = *cursor;
    if (!read_word(cursor, key))
        return fail(ini, cursor, "expected [section], key = value, or a comment");
    skip_blanks(cursor);
    if (*cursor->at != '=')
        return fail(ini, cursor, "'=' is missing after the key");
    cursor->at++;
    skip_blanks(cursor);
    struct cursor value_start = *cursor;
    char *value = xmalloc(strlen(cursor->at) + 1);
    enum status status = STATUS_OK;
    if (*cursor->at == '"')
        status = read_quoted(ini, cursor, value);
    else
        read_plain(cursor, value);
    if (status == STATUS_OK) {
        status = ini->on_pair(ini->ctx, ini->section, key, value, ini->err);
        /* NOT_FOUND: the key is at fault; else the value is */
        if (status == STATUS_NOT_FOUND)
            placed(ini, &start, status);
        else if (status != STATUS_OK)
            placed(ini, &value_start, status);
    }
    free(value);
    return status;
}

static enum status read_line(struct ini *ini, const char *text)
{
    struct cursor cursor = {text, text};
    skip_blanks(&cursor);
    if (at_end(&cursor))
        return STATUS_OK;
    return *cursor.at == '[' ? read_section(ini, &cursor) : read_pair(ini, &cursor);
}

/* Finds what no line may hold: control characters but tab, bytes that are no UTF-8. */
static enum status check_line(struct ini *ini, const char *line, size_t len)
{
    for (size_t at = 0; at < len;) {
        uint32_t code;
        unsigned bad;
        unsigned n = utf8_decode(line + at, len - at, &code, &bad);
        struct cursor cursor = {line, line + at};
        if (n == 0)
            return fail(ini, &cursor, "not UTF-8");
        if ((code < 0x20 && code != '\t') || code == 0x7f)
            return fail(ini, &cursor, "control character");
        at += n;
    }
    return STATUS_OK;
}

enum status ini_parse(const char *name, const char *text, size_t len, ini_pair_fn on_pair,
                      void *ctx, struct error *err)
{
    struct ini ini = {.name = name, .on_pair = on_pair, .ctx = ctx, .err = err};
    static const char bom[] = "\xef\xbb\xbf";
    size_t at = len >= 3 && memcmp(text, bom, 3) == 0 ? 3 : 0;
    while (at < len) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - text) - at : len - at;
        size_t kept = end && n > 0 && text[at + n - 1] == '\r' ? n - 1 : n;
        ini.line++;
        char *line = xmalloc(kept + 1);
        memcpy(line, text + at, kept);
        line[kept] = '\0';
        enum status status = check_line(&ini, line, kept);
        if (status == STATUS_OK)
            status = read_line(&ini, line);
        free(line);
        if (status != STATUS_OK)
            return STATUS_BAD_CONFIG;
        at += n + 1;
    }
    return STATUS_OK;
}

static enum status read_descriptor(int fd, const char *path, size_t max_bytes, struct buf *buf,
                                   struct error *err)
{
    buf_init(buf, max_bytes);
    if (!buf_add(buf, "", 0))
        return error_set(err, STATUS_NO_MEMORY, "%s: out of memory", path);
    for (;;) {
        char block[16384];
        ssize_t n = read(fd, block, sizeof block);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set(err, STATUS_IO, "%s: %s", path, strerror(errno));
        if (n == 0)
            return STATUS_OK;
        if (!buf_add(buf, block, (size_t)n))
            return error_set(err, STATUS_BAD_CONFIG, "%s: longer than %zu bytes", path, max_bytes);
    }
}

enum status ini_read_file(const char *path, size_t max_bytes, char **ret, size_t *ret_len,
                          struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO is empty, not waited for */
    if (fd < 0)
        return error_set(err, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s", path,
                         strerror(errno));
    struct buf buf;
    enum status status = read_descriptor(fd, path, max_bytes, &buf, err);
    close(fd);
    if (status == STATUS_OK)
        *ret = buf_take(&buf, ret_len);
    buf_done(&buf);
    return status;
}
