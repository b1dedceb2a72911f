/*
 * Status codes, the error that travels with them, and the contract check.  Pure tables and text;
 * any thread.
 */
#include "config.h"

#include "tellerd/base/status.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/base/log.h"
#include "tellerd/base/utf8.h"

struct status_row {
    int http;
    const char *type;
    const char *code;
    const char *text;
};

#define STATUS_ROW(name, http, type, code, text) [STATUS_##name] = {http, type, code, text},
static const struct status_row status_rows[STATUS_COUNT] = {STATUS_TABLE(STATUS_ROW)};
#undef STATUS_ROW

static const struct status_row *row_of(enum status status)
{
    unsigned index = (unsigned)status;
    return &status_rows[index < STATUS_COUNT ? index : STATUS_INTERNAL];
}

int status_http(enum status status)
{
    return row_of(status)->http;
}

const char *status_type(enum status status)
{
    return row_of(status)->type;
}

const char *status_code(enum status status)
{
    return row_of(status)->code;
}

const char *status_text(enum status status)
{
    return row_of(status)->text;
}

/*
 * Copies text to out[size], one line: blanks for line ends and tabs, '?' for other control
 * characters and for bytes that are no UTF-8; cut where a character ends.
 */
static void copy_clean(char *out, size_t size, const char *text)
{
    size_t len = strlen(text), at = 0, used = 0;
    while (at < len) {
        uint32_t code;
        unsigned bad;
        unsigned n = utf8_decode(text + at, len - at, &code, &bad);
        bool control = n > 0 && (code < 0x20 || (code >= 0x7f && code < 0xa0));
        if (used + (n > 0 && !control ? n : 1) >= size)
            break;
        if (n == 0 || control) {
            out[used++] = code == '\n' || code == '\r' || code == '\t' ? ' ' : '?';
        } else {
            memcpy(out + used, text + at, n);
            used += n;
        }
        at += n > 0 ? n : bad;
    }
    out[used] = '\0';
}

PRINTF_LIKE(4, 0)
static void fill(struct error *err, enum status status, const char *param, const char *format,
                 va_list args)
{
    /* A detour, so that the arguments may point into *err. */
    char text[2 * ERROR_TEXT_MAX];
    char name[ERROR_PARAM_MAX];
    if (vsnprintf(text, sizeof text, format, args) < 0)
        text[0] = '\0';
    copy_clean(name, sizeof name, param);
    memset(err, 0, sizeof *err);
    err->status = status;
    memcpy(err->param, name, sizeof name);
    copy_clean(err->text, sizeof err->text, text);
}

enum status error_set(struct error *err, enum status status, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        fill(err, status, "", format, args);
        va_end(args);
    }
    return status;
}

enum status error_param(struct error *err, enum status status, const char *param,
                        const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        fill(err, status, param, format, args);
        va_end(args);
    }
    return status;
}

void error_prefix(struct error *err, const char *format, ...)
{
    if (!err)
        return;
    char prefix[ERROR_TEXT_MAX];
    char text[2 * ERROR_TEXT_MAX + 2];
    va_list args;
    va_start(args, format);
    if (vsnprintf(prefix, sizeof prefix, format, args) < 0)
        prefix[0] = '\0';
    va_end(args);
    snprintf(text, sizeof text, "%s: %s", prefix, err->text);
    copy_clean(err->text, sizeof err->text, text);
}

void require_failed(const char *file, int line, const char *condition)
{
    log_write(LOG_ERROR, "contract.broken file=%s line=%d condition=%s", file, line, condition);
    abort();
}
