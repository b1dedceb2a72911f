/*
 * strftime_now: local time in the C locale.  Each conversion is written here, one by one, so the
 * output is bounded by the format and owes nothing to the process's locale.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "jinja_ops_priv.h"

enum { FIELD_MAX = 64 };

static const char *const day_names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                        "Thursday", "Friday", "Saturday"};
static const char *const month_names[] = {"January",   "February", "March",    "April",
                                          "May",       "June",     "July",     "August",
                                          "September", "October",  "November", "December"};

static int weeks_in(const struct tm *tm, int first_day)
{
    return (tm->tm_yday + 7 - (tm->tm_wday + 7 - first_day) % 7) / 7;
}

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* ISO 8601 week and its year. */
static int iso_week(const struct tm *tm, int *ret_year)
{
    int year = tm->tm_year + 1900, weekday = (tm->tm_wday + 6) % 7;
    int week = (tm->tm_yday - weekday + 10) / 7;
    int jan1 = ((weekday - tm->tm_yday) % 7 + 7) % 7; /* 0 = Monday */
    if (week < 1) {
        year--;
        int days = is_leap(year) ? 366 : 365, before = ((jan1 - days % 7) % 7 + 7) % 7;
        week = before == 3 || (before == 2 && is_leap(year)) ? 53 : 52;
    } else if (week == 53 && !(jan1 == 3 || (jan1 == 2 && is_leap(year)))) {
        week = 1;
        year++;
    }
    *ret_year = year;
    return week;
}

/* A number with padding, which a flag may change: '-' none, '_' spaces, '0' zeros. */
static size_t number(char *out, long value, int width, char pad, char flag)
{
    if (flag == '-')
        return (size_t)snprintf(out, FIELD_MAX, "%ld", value);
    if (flag == '_' || (pad == ' ' && flag != '0'))
        return (size_t)snprintf(out, FIELD_MAX, "%*ld", width, value);
    return (size_t)snprintf(out, FIELD_MAX, "%0*ld", width, value);
}

static size_t text(char *out, const char *name, size_t max, char flag)
{
    size_t n = 0;
    for (; name[n] != '\0' && n < max; n++) {
        char c = name[n];
        out[n] = flag == '^' && c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
    }
    out[n] = '\0';
    return n;
}

static int hour12(const struct tm *tm)
{
    return tm->tm_hour % 12 == 0 ? 12 : tm->tm_hour % 12;
}

static size_t numeric_field(char c, char flag, const struct tm *tm, time_t now, char *out)
{
    int iso_year, week = iso_week(tm, &iso_year), year = tm->tm_year + 1900;
    switch (c) {
    case 'Y':
        return number(out, year, 1, '0', flag);
    case 'C':
        return number(out, year / 100, 2, '0', flag);
    case 'y':
        return number(out, year % 100, 2, '0', flag);
    case 'G':
        return number(out, iso_year, 1, '0', flag);
    case 'g':
        return number(out, iso_year % 100, 2, '0', flag);
    case 'V':
        return number(out, week, 2, '0', flag);
    case 'U':
        return number(out, weeks_in(tm, 0), 2, '0', flag);
    case 'W':
        return number(out, weeks_in(tm, 1), 2, '0', flag);
    case 'm':
        return number(out, tm->tm_mon + 1, 2, '0', flag);
    case 'd':
        return number(out, tm->tm_mday, 2, '0', flag);
    case 'e':
        return number(out, tm->tm_mday, 2, ' ', flag);
    case 'j':
        return number(out, tm->tm_yday + 1, 3, '0', flag);
    case 'H':
        return number(out, tm->tm_hour, 2, '0', flag);
    case 'k':
        return number(out, tm->tm_hour, 2, ' ', flag);
    case 'I':
        return number(out, hour12(tm), 2, '0', flag);
    case 'l':
        return number(out, hour12(tm), 2, ' ', flag);
    case 'M':
        return number(out, tm->tm_min, 2, '0', flag);
    case 'S':
        return number(out, tm->tm_sec, 2, '0', flag);
    case 'f':
        return number(out, 0, 6, '0', flag); /* the clock has whole seconds */
    case 'u':
        return number(out, tm->tm_wday == 0 ? 7 : tm->tm_wday, 1, '0', flag);
    case 'w':
        return number(out, tm->tm_wday, 1, '0', flag);
    case 's':
        return number(out, (long)now, 1, '0', flag);
    default:
        return 0;
    }
}

/* Conversions made of others. */
static const char *composed(char c)
{
    switch (c) {
    case 'c':
        return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x':
        return "%m/%d/%y";
    case 'F':
        return "%Y-%m-%d";
    case 'R':
        return "%H:%M";
    case 'T':
    case 'X':
        return "%H:%M:%S";
    case 'r':
        return "%I:%M:%S %p";
    default:
        return NULL;
    }
}

/* One conversion into out; 0 when it is unknown. */
static size_t field(char c, char flag, const struct tm *tm, time_t now, char *out)
{
    switch (c) {
    case 'a':
        return text(out, day_names[tm->tm_wday], 3, flag);
    case 'A':
        return text(out, day_names[tm->tm_wday], FIELD_MAX - 1, flag);
    case 'b':
    case 'h':
        return text(out, month_names[tm->tm_mon], 3, flag);
    case 'B':
        return text(out, month_names[tm->tm_mon], FIELD_MAX - 1, flag);
    case 'p':
        return text(out, tm->tm_hour < 12 ? "AM" : "PM", 2, flag);
    case 'P':
        return text(out, tm->tm_hour < 12 ? "am" : "pm", 2, flag);
    case '%':
        return text(out, "%", 1, flag);
    default:
        return numeric_field(c, flag, tm, now, out);
    }
}

static size_t zone(char c, const struct tm *tm, char *out)
{
    if (c == 'Z')
        return (size_t)snprintf(out, FIELD_MAX, "%.32s", tm->tm_zone ? tm->tm_zone : "");
    long offset = tm->tm_gmtoff < 0 ? -tm->tm_gmtoff : tm->tm_gmtoff;
    return (size_t)snprintf(out, FIELD_MAX, "%c%02ld%02ld", tm->tm_gmtoff < 0 ? '-' : '+',
                            offset / 3600, offset / 60 % 60);
}

static bool add_conversion(struct jinja_rt *rt, struct jinja_sink *sink, char c, char flag,
                           const struct tm *tm, bool trusted, bool *ret_known)
{
    char out[FIELD_MAX];
    const char *several = composed(c);
    *ret_known = true;
    if (c == 'n' || c == 't')
        return jinja_sink_add(rt, sink, c == 'n' ? "\n" : "\t", 1, trusted);
    if (c == 'z' || c == 'Z')
        return jinja_sink_add(rt, sink, out, zone(c, tm, out), trusted);
    if (!several) {
        size_t n = field(c, flag, tm, rt->input->now, out);
        *ret_known = n > 0;
        return jinja_sink_add(rt, sink, out, n, trusted);
    }
    for (; *several != '\0'; several++) {
        bool known;
        bool ok = *several == '%' ? add_conversion(rt, sink, *++several, '\0', tm, trusted, &known)
                                  : jinja_sink_add(rt, sink, several, 1, trusted);
        if (!ok)
            return false;
    }
    return true;
}

bool jinja_format_time(struct jinja_rt *rt, const struct jinja_string *format,
                       struct jinja_value *ret)
{
    struct tm tm;
    struct jinja_sink *sink = jinja_sink_take(rt);
    if (!sink || !jinja_work(rt, format->len))
        return false;
    if (!localtime_r(&rt->input->now, &tm))
        return jinja_fail(rt, "the clock has no calendar date");
    size_t from = 0;
    for (size_t at = 0; at < format->len; at++) {
        size_t begin = at;
        if (format->bytes[at] != '%' || at + 1 >= format->len)
            continue;
        char flag = '\0', c = format->bytes[++at];
        if (memchr("-_0^", c, 4) && at + 1 < format->len) {
            flag = c;
            c = format->bytes[++at];
        }
        /* what the clock says is no client's text: it is as trusted as the conversion */
        bool known,
            trusted = jinja_string_trusted_at(format, begin) && jinja_string_trusted_at(format, at);
        if (!jinja_step(rt, 1) || !jinja_sink_part(rt, sink, format, from, begin - from) ||
            !add_conversion(rt, sink, c, flag, &tm, trusted, &known))
            return false;
        from = known ? at + 1 : begin;
        if (!known)
            at = begin + 1 < at ? begin + 1 : at; /* look again behind the unknown one */
    }
    return jinja_sink_part(rt, sink, format, from, format->len - from) &&
           jinja_sink_finish(rt, sink, ret);
}
