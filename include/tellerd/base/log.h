#ifndef TELLERD_BASE_LOG_H
#define TELLERD_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/base/status.h"

/*
 * One record = one line on stderr: "event key=value ...".  Under journald (JOURNAL_STREAM matches
 * stderr) the line starts with <N> and no time; otherwise with an RFC 3339 time and the level.
 * Control characters and non-UTF-8 bytes in it are escaped; never pass prompt text, token text or
 * keys.  Any thread; one write(2) per record.
 */
enum log_level { LOG_ERROR = 3, LOG_WARN = 4, LOG_NOTICE = 5, LOG_INFO = 6, LOG_DEBUG = 7 };
enum log_format { LOG_TEXT, LOG_JSON };

void log_init(enum log_level level, enum log_format format);
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);
/* "error", "warn", "notice", "info", "debug" -> level; false when unknown. */
bool log_level_parse(const char *text, enum log_level *ret);

void log_write(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);
#define log_error(...)  log_write(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)   log_write(LOG_WARN, __VA_ARGS__)
#define log_notice(...) log_write(LOG_NOTICE, __VA_ARGS__)
#define log_info(...)   log_write(LOG_INFO, __VA_ARGS__)
#define log_debug(...)  (log_enabled(LOG_DEBUG) ? log_write(LOG_DEBUG, __VA_ARGS__) : (void)0)

/* A bucket for records that a client can trigger: at most `burst` per second, the rest counted and
 * reported later. */
struct log_limit {
    uint64_t window_s;
    unsigned count;
    unsigned suppressed;
};
/* Whether a record may be written now; the caller keeps one static struct per place.  Not locked:
 * one thread each. */
bool log_allow(struct log_limit *limit, unsigned burst);

/*
 * Writes `text` to out[size] with control characters, quotes, spaces and ill-formed UTF-8 escaped,
 * cut with "..." when too long. Returns out.  For client-controlled words in records.
 */
const char *log_quote(char *out, size_t size, const char *text, size_t len);

#endif
