/*
 * The log: one record a line on stderr, as text or as JSON, with the prefixes that journald turns
 * into priorities.  Any thread: a record is built on the stack and goes out in one write of at most
 * PIPE_BUF bytes, so records do not mix.
 */
#include "config.h"

#include "tellerd/base/log.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tellerd/base/clock.h"
#include "tellerd/base/utf8.h"

enum { LOG_LINE_MAX = PIPE_BUF, LOG_TEXT_MAX = 2048, LOG_CUT_BYTES = 3 };

static _Atomic int current_level = LOG_INFO;
static _Atomic int current_format = LOG_TEXT;
static _Atomic bool under_journald;

static const struct {
    enum log_level level;
    const char *name;
} level_names[] = {
    {LOG_ERROR, "error"}, {LOG_WARN, "warn"},   {LOG_NOTICE, "notice"},
    {LOG_INFO, "info"},   {LOG_DEBUG, "debug"},
};
enum { LEVEL_COUNT = sizeof level_names / sizeof level_names[0] };

/* A line under construction; what does not fit is cut and `cut` remembered. */
struct line {
    char *text;
    size_t len;
    size_t size;
    bool cut;
};

static const char *level_name(enum log_level level)
{
    for (size_t i = 0; i < LEVEL_COUNT; i++)
        if (level_names[i].level == level)
            return level_names[i].name;
    return "info";
}

bool log_level_parse(const char *text, enum log_level *ret)
{
    for (size_t i = 0; i < LEVEL_COUNT; i++)
        if (strcmp(text, level_names[i].name) == 0) {
            *ret = level_names[i].level;
            return true;
        }
    return false;
}

/* Whether $JOURNAL_STREAM names the very file that stderr is. */
static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    if (!stream || fstat(STDERR_FILENO, &st) != 0)
        return false;
    char mine[64];
    snprintf(mine, sizeof mine, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return strcmp(stream, mine) == 0;
}

void log_init(enum log_level level, enum log_format format)
{
    atomic_store(&under_journald, stderr_is_journal());
    atomic_store(&current_format, (int)format);
    atomic_store(&current_level, (int)level);
}

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
}

bool log_enabled(enum log_level level)
{
    return (int)level <= atomic_load_explicit(&current_level, memory_order_relaxed);
}

/* Appends a piece as a whole, or cuts the line before it. */
static void line_add(struct line *line, const char *piece, size_t len)
{
    if (line->cut || len > line->size - line->len) {
        line->cut = true;
        return;
    }
    memcpy(line->text + line->len, piece, len);
    line->len += len;
}

static void line_add_str(struct line *line, const char *text)
{
    line_add(line, text, strlen(text));
}

/*
 * Appends text with control characters (C0, DEL, C1, line and paragraph separator) and bytes that
 * are no UTF-8 escaped, as well as the characters of `also`.  JSON has its own form of escapes.
 */
static void line_add_escaped(struct line *line, const char *text, size_t len, const char *also,
                             bool json)
{
    for (size_t at = 0; at < len;) {
        uint32_t code;
        unsigned bad;
        unsigned n = utf8_decode(text + at, len - at, &code, &bad);
        bool control =
            code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029;
        char escape[8];
        if (n == 0) {
            snprintf(escape, sizeof escape, json ? "\\ufffd" : "\\x%02x", (unsigned char)text[at]);
            line_add_str(line, escape);
            at += json ? bad : 1;
            continue;
        }
        if (code == '\n' || code == '\t' || code == '\r') {
            line_add_str(line, code == '\n' ? "\\n" : code == '\t' ? "\\t" : "\\r");
        } else if (control) {
            snprintf(escape, sizeof escape, json || code > 0xff ? "\\u%04x" : "\\x%02x",
                     (unsigned)code);
            line_add_str(line, escape);
        } else if (code == ' ' && strchr(also, ' ')) {
            line_add_str(line, "\\x20");
        } else if (code < 0x7f && strchr(also, (int)code)) {
            line_add(line, (const char[]){'\\', (char)code}, 2);
        } else {
            line_add(line, text + at, n);
        }
        at += n;
    }
}

const char *log_quote(char *out, size_t size, const char *text, size_t len)
{
    if (size == 0)
        return out;
    struct line line = {.text = out, .size = size - 1};
    line_add_escaped(&line, text, len, " \"\\", false);
    if (line.cut) {
        /* Once more in less room, for the dots. */
        size_t room = size - 1 > LOG_CUT_BYTES ? size - 1 - LOG_CUT_BYTES : 0;
        line = (struct line){.text = out, .size = room};
        line_add_escaped(&line, text, len, " \"\\", false);
        line.cut = false;
        line.size = size - 1;
        line_add_str(&line, size - 1 >= LOG_CUT_BYTES ? "..." : "");
    }
    out[line.len] = '\0';
    return out;
}

/* RFC 3339 in UTC with milliseconds. */
static void format_time(char out[32])
{
    double wall = clock_wall();
    time_t seconds = (time_t)wall;
    struct tm tm;
    char date[24];
    gmtime_r(&seconds, &tm);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out, 32, "%s.%03dZ", date, (int)((wall - (double)seconds) * 1000));
}

/* Length of a word that can be a key: [a-z_][a-z0-9_]*, followed by '='; else 0. */
static size_t key_length(const char *text)
{
    size_t n = 0;
    while ((text[n] >= 'a' && text[n] <= 'z') || text[n] == '_' ||
           (n > 0 && text[n] >= '0' && text[n] <= '9'))
        n++;
    return text[n] == '=' ? n : 0;
}

/* Where the value ends: before the next " key=", or at the end of the text. */
static size_t value_length(const char *text)
{
    size_t n = 0;
    while (text[n] && !(text[n] == ' ' && key_length(text + n + 1) > 0))
        n++;
    return n;
}

/* Whether text is a number as JSON writes them (without exponent). */
static bool is_json_number(const char *text, size_t len)
{
    size_t at = len > 0 && text[0] == '-' ? 1 : 0, start = at;
    while (at < len && text[at] >= '0' && text[at] <= '9')
        at++;
    if (at == start || (text[start] == '0' && at > start + 1))
        return false;
    if (at < len && text[at] == '.') {
        start = ++at;
        while (at < len && text[at] >= '0' && text[at] <= '9')
            at++;
        if (at == start)
            return false;
    }
    return at == len;
}

/* One member more; a key that the record itself uses gets an underscore in front. */
static void add_member(struct line *line, const char *key, size_t key_len, const char *value,
                       size_t value_len)
{
    static const char *const own[] = {"time", "level", "event"};
    line_add_str(line, ",\"");
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strlen(own[i]) == key_len && memcmp(own[i], key, key_len) == 0)
            line_add_str(line, "_");
    line_add(line, key, key_len);
    line_add_str(line, "\":");
    if (is_json_number(value, value_len)) {
        line_add(line, value, value_len);
        return;
    }
    if (value_len >= 2 && value[0] == '"' && value[value_len - 1] == '"') {
        value++; /* quotes that the text form needs */
        value_len -= 2;
    }
    line_add_str(line, "\"");
    line_add_escaped(line, value, value_len, "\"\\", true);
    line_add_str(line, "\"");
}

/* {"time":...,"level":...,"event":first words,key:value,...}; a member that does not fit is left
 * out whole and "cut":true says so. */
static void format_json(struct line *line, enum log_level level, const char *text)
{
    static const char tail[] = ",\"cut\":true}";
    char now[32];
    line->size -= sizeof tail - 1;
    line_add_str(line, "{");
    if (!atomic_load(&under_journald)) {
        format_time(now);
        line_add_str(line, "\"time\":\"");
        line_add_str(line, now);
        line_add_str(line, "\",");
    }
    line_add_str(line, "\"level\":\"");
    line_add_str(line, level_name(level));
    line_add_str(line, "\",\"event\":\"");
    size_t n = value_length(text);
    size_t event_len = n < 256 ? n : 256;
    line_add_escaped(line, text, event_len, "\"\\", true);
    line_add_str(line, "\"");
    for (text += n; *text == ' ';) {
        size_t key_len = key_length(++text);
        const char *value = text + key_len + 1;
        size_t value_len = value_length(value);
        size_t before = line->len;
        add_member(line, text, key_len, value, value_len);
        if (line->cut) {
            line->len = before;
            break;
        }
        text = value + value_len;
    }
    line->size += sizeof tail - 1;
    bool cut = line->cut;
    line->cut = false;
    line_add_str(line, cut ? tail : "}");
}

static void format_text(struct line *line, enum log_level level, const char *text)
{
    if (!atomic_load(&under_journald)) {
        char now[32], head[64];
        format_time(now);
        snprintf(head, sizeof head, "%s %-6s ", now, level_name(level));
        line_add_str(line, head);
    }
    line->size -= LOG_CUT_BYTES;
    line_add_escaped(line, text, strlen(text), "", false);
    line->size += LOG_CUT_BYTES;
    if (line->cut) {
        line->cut = false;
        line_add_str(line, "...");
    }
}

/* One write; what a full pipe or a signal leaves is tried again, an error is nobody's to report. */
static void write_all(const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        bytes += n;
        len -= (size_t)n;
    }
}

void log_write(enum log_level level, const char *format, ...)
{
    if (!log_enabled(level))
        return;
    int saved_errno = errno;
    char text[LOG_TEXT_MAX], bytes[LOG_LINE_MAX];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0)
        text[0] = '\0';
    if (n >= (int)sizeof text) {
        size_t kept = utf8_complete_prefix(text, sizeof text - 1 - LOG_CUT_BYTES);
        memcpy(text + kept, "...", LOG_CUT_BYTES + 1);
    }
    struct line line = {.text = bytes, .size = sizeof bytes - 1};
    if (atomic_load(&under_journald)) {
        char prefix[8];
        snprintf(prefix, sizeof prefix, "<%d>", (int)level);
        line_add_str(&line, prefix);
    }
    if (atomic_load(&current_format) == LOG_JSON)
        format_json(&line, level, text);
    else
        format_text(&line, level, text);
    bytes[line.len++] = '\n';
    write_all(bytes, line.len);
    errno = saved_errno;
}

bool log_allow(struct log_limit *limit, unsigned burst)
{
    uint64_t now_s = clock_ns() / 1000000000u + 1; /* never 0, the value of a fresh struct */
    if (limit->window_s != now_s) {
        if (limit->suppressed > 0)
            log_write(LOG_WARN, "log.suppressed records=%u", limit->suppressed);
        *limit = (struct log_limit){.window_s = now_s};
    }
    if (limit->count < burst) {
        limit->count++;
        return true;
    }
    limit->suppressed++;
    return false;
}
