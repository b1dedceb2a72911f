/*
 * The table of options as data, and its values: parsed from text, checked against their range,
 * written back.  Knows nothing of files, variables or flags.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "config_priv.h"
#include "tellerd/base/mem.h"

#define OFFSET_TEXT(name)     offsetof(struct config, name)
#define OFFSET_CHOICE(name)   offsetof(struct config, name)
#define OFFSET_LIST(name)     offsetof(struct config, name)
#define OFFSET_COUNT(name)    offsetof(struct config, name)
#define OFFSET_BYTES(name)    offsetof(struct config, name)
#define OFFSET_DURATION(name) offsetof(struct config, name##_ns)
#define OFFSET_SWITCH(name)   offsetof(struct config, name)
#define OFFSET_SHARE(name)    offsetof(struct config, name)
#define OFFSET_MODE(name)     offsetof(struct config, name)

enum { RESTART = false, RELOAD = true };

const struct option config_options[OPTION_COUNT] = {
#define OPTION(name, type, fallback, min, max, unit, reload, section, help) \
    {#name, VALUE_##type, fallback, min, max, unit, reload, #section, help, OFFSET_##type(name)},
#include "tellerd/daemon/options.def"
#undef OPTION
};

enum { NS_PER_MS = 1000000, SHARE_DECIMALS = 12 };

struct unit {
    const char *name;
    uint64_t factor;
};

/* Largest first, so that writing takes the largest that divides. */
static const struct unit byte_units[] = {
    {"T", UINT64_C(1) << 40},
    {"G", UINT64_C(1) << 30},
    {"M", UINT64_C(1) << 20},
    {"K", UINT64_C(1) << 10},
    {"", 1},
    {NULL, 0},
};
static const struct unit time_units[] = {
    {"h", UINT64_C(3600000) * NS_PER_MS},
    {"m", UINT64_C(60000) * NS_PER_MS},
    {"s", UINT64_C(1000) * NS_PER_MS},
    {"ms", NS_PER_MS},
    {NULL, 0},
};

static void *field(const struct config *config, const struct option *option)
{
    return (char *)(uintptr_t)config + option->offset;
}

/* Decimal digits at *text, which moves behind them; false without any or when too great. */
static bool parse_digits(const char **text, uint64_t *ret)
{
    uint64_t value = 0;
    const char *at = *text;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
            return false;
    if (at == *text)
        return false;
    *text = at;
    *ret = value;
    return true;
}

/* A number with a unit of the table behind it; a size may say KiB for K. */
static bool parse_with_unit(const char *text, const struct unit *units, uint64_t *ret)
{
    uint64_t value;
    if (!parse_digits(&text, &value))
        return false;
    while (*text == ' ')
        text++;
    if (units == time_units && *text == '\0')
        text = "s"; /* seconds when not said */
    char name[4] = "";
    size_t len = strlen(text);
    if (units == byte_units && len == 3 && strcmp(text + 1, "iB") == 0)
        len = 1;
    if (len >= sizeof name)
        return false;
    memcpy(name, text, len);
    if (units == byte_units && len == 1 && name[0] >= 'a')
        name[0] = (char)(name[0] - 'a' + 'A');
    for (const struct unit *unit = units; unit->name; unit++)
        if (strcmp(unit->name, name) == 0)
            return !__builtin_mul_overflow(value, unit->factor, ret);
    return false;
}

/*
 * "0.3", ".3" or "30%", of at most SHARE_DECIMALS decimals: one division of whole numbers that are
 * exact, so that the shortest way to write the result reads back the same.
 */
static bool parse_share(const char *text, double *ret)
{
    uint64_t whole = 0, part = 0;
    size_t decimals = 0;
    bool has_whole = parse_digits(&text, &whole);
    if (*text == '.') {
        const char *start = ++text;
        if (!parse_digits(&text, &part))
            return false;
        decimals = (size_t)(text - start);
    } else if (!has_whole) {
        return false;
    }
    bool percent = *text == '%';
    if (text[percent] != '\0' || whole > 100 || decimals + (percent ? 2 : 0) > SHARE_DECIMALS)
        return false;
    uint64_t scale = 1;
    for (size_t i = 0; i < decimals; i++)
        scale *= 10;
    *ret = (double)(whole * scale + part) / (double)(percent ? 100 * scale : scale);
    return true;
}

static bool parse_switch(const char *text, bool *ret)
{
    static const char *const words[] = {"no", "yes", "off", "on", "false", "true", "0", "1"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i]) == 0) {
            *ret = i % 2 == 1;
            return true;
        }
    return false;
}

static bool parse_mode(const char *text, uint64_t *ret)
{
    uint64_t mode = 0;
    size_t len = strlen(text);
    if (len == 0 || len > 4 || strspn(text, "01234567") != len)
        return false;
    for (; *text; text++)
        mode = mode * 8 + (uint64_t)(*text - '0');
    *ret = mode;
    return true;
}

/* Whether text is one of the words of "a|b|c". */
static bool is_choice(const char *choices, const char *text)
{
    size_t len = strlen(text);
    while (*choices) {
        size_t n = strcspn(choices, "|");
        if (n == len && memcmp(choices, text, n) == 0)
            return len > 0;
        choices += n + (choices[n] == '|');
    }
    return false;
}

/* Any of the types that are whole numbers. */
static bool parse_number(enum value_type type, const char *text, uint64_t *ret)
{
    switch (type) {
    case VALUE_COUNT:
        return parse_digits(&text, ret) && *text == '\0';
    case VALUE_BYTES:
        return parse_with_unit(text, byte_units, ret);
    case VALUE_DURATION:
        return parse_with_unit(text, time_units, ret);
    default:
        return parse_mode(text, ret);
    }
}

static enum status bad_value(struct error *err, const char *text, const char *wanted)
{
    return error_set(err, STATUS_BAD_CONFIG, "\"%s\" is not %s", text, wanted);
}

static enum status out_of_range(struct error *err, const struct option *option, const char *text)
{
    return error_set(err, STATUS_BAD_CONFIG, "%s is not in %s..%s", text, option->min, option->max);
}

static enum status set_number(struct config *config, const struct option *option, const char *text,
                              struct error *err)
{
    static const char *const wanted[] = {
        [VALUE_COUNT] = "a whole number",
        [VALUE_BYTES] = "a size, such as 512M or 8G",
        [VALUE_DURATION] = "a time, such as 500ms, 30s or 5m",
        [VALUE_MODE] = "a mode of up to four octal digits, such as 0660",
    };
    uint64_t value, min, max;
    if (!parse_number(option->type, text, &value))
        return bad_value(err, text, wanted[option->type]);
    REQUIRE(parse_number(option->type, option->min, &min));
    REQUIRE(parse_number(option->type, option->max, &max));
    if (value < min || value > max)
        return out_of_range(err, option, text);
    if (option->type == VALUE_MODE)
        *(unsigned *)field(config, option) = (unsigned)value;
    else
        *(uint64_t *)field(config, option) = value;
    return STATUS_OK;
}

static enum status set_share(struct config *config, const struct option *option, const char *text,
                             struct error *err)
{
    double value, min, max;
    if (!parse_share(text, &value))
        return bad_value(err, text, "a share, such as 0.3 or 30%");
    REQUIRE(parse_share(option->min, &min) && parse_share(option->max, &max));
    if (value < min || value > max)
        return out_of_range(err, option, text);
    *(double *)field(config, option) = value;
    return STATUS_OK;
}

static enum status set_text(struct config *config, const struct option *option, const char *text)
{
    char **place = field(config, option);
    free(*place);
    *place = xstrdup(text);
    return STATUS_OK;
}

static void free_list(struct config_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct config_list){0};
}

static void set_list(struct config_list *list, const char *text, bool append)
{
    if (!append)
        free_list(list);
    while (*text) {
        size_t n = strcspn(text, ","), start = strspn(text, " \t");
        size_t end = n;
        while (end > start && (text[end - 1] == ' ' || text[end - 1] == '\t'))
            end--;
        if (end > start) {
            list->items = xreallocarray(list->items, list->n + 1, sizeof *list->items);
            list->items[list->n++] = xstrndup(text + start, end - start);
        }
        text += n + (text[n] == ',');
    }
}

enum status option_set(struct config *config, const struct option *option, const char *text,
                       bool append, struct error *err)
{
    switch (option->type) {
    case VALUE_TEXT:
        return set_text(config, option, text);
    case VALUE_CHOICE:
        if (!is_choice(option->min, text))
            return error_set(err, STATUS_BAD_CONFIG, "\"%s\" is not one of %s", text, option->min);
        return set_text(config, option, text);
    case VALUE_LIST:
        set_list(field(config, option), text, append);
        return STATUS_OK;
    case VALUE_SWITCH:
        return parse_switch(text, field(config, option)) ? STATUS_OK
                                                         : bad_value(err, text, "yes or no");
    case VALUE_SHARE:
        return set_share(config, option, text, err);
    default:
        return set_number(config, option, text, err);
    }
}

static void write_with_unit(struct buf *out, uint64_t value, const struct unit *units)
{
    const struct unit *unit = units;
    while (unit[1].name && (value == 0 || value % unit->factor != 0))
        unit++;
    if (value == 0 && units == time_units)
        unit--; /* 0s rather than 0ms */
    buf_add_u64(out, value / unit->factor);
    buf_add_str(out, unit->name);
}

void option_write(const struct config *config, const struct option *option, struct buf *out)
{
    const void *place = field(config, option);
    switch (option->type) {
    case VALUE_TEXT:
    case VALUE_CHOICE:
        buf_add_str(out, *(char *const *)place);
        break;
    case VALUE_LIST:
        for (size_t i = 0; i < ((const struct config_list *)place)->n; i++) {
            buf_add_str(out, i > 0 ? ", " : "");
            buf_add_str(out, ((const struct config_list *)place)->items[i]);
        }
        break;
    case VALUE_COUNT:
        buf_add_u64(out, *(const uint64_t *)place);
        break;
    case VALUE_BYTES:
        write_with_unit(out, *(const uint64_t *)place, byte_units);
        break;
    case VALUE_DURATION:
        write_with_unit(out, *(const uint64_t *)place, time_units);
        break;
    case VALUE_SWITCH:
        buf_add_str(out, *(const bool *)place ? "yes" : "no");
        break;
    case VALUE_SHARE:
        buf_add_double(out, *(const double *)place);
        break;
    case VALUE_MODE:
        buf_printf(out, "%04o", *(const unsigned *)place);
        break;
    }
}

void option_free(struct config *config, const struct option *option)
{
    if (option->type == VALUE_LIST) {
        free_list(field(config, option));
    } else if (option->type == VALUE_TEXT || option->type == VALUE_CHOICE) {
        char **place = field(config, option);
        free(*place);
        *place = NULL;
    }
}

static size_t field_size(enum value_type type)
{
    switch (type) {
    case VALUE_TEXT:
    case VALUE_CHOICE:
        return sizeof(char *);
    case VALUE_LIST:
        return sizeof(struct config_list);
    case VALUE_SWITCH:
        return sizeof(bool);
    case VALUE_SHARE:
        return sizeof(double);
    case VALUE_MODE:
        return sizeof(unsigned);
    default:
        return sizeof(uint64_t);
    }
}

void option_swap(struct config *a, struct config *b, const struct option *option)
{
    char kept[sizeof(struct config_list)];
    size_t size = field_size(option->type);
    memcpy(kept, field(a, option), size);
    memcpy(field(a, option), field(b, option), size);
    memcpy(field(b, option), kept, size);
}

/* --- names ----------------------------------------------------------------- */

/* Options are named with hyphens for people; '_' in what they write is the same. */
static char plain(char c)
{
    return c == '-' ? '_' : c;
}

const struct option *option_find(const char *name)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const char *a = config_options[i].name, *b = name;
        while (*a && *a == plain(*b)) {
            a++;
            b++;
        }
        if (*a == '\0' && *b == '\0')
            return &config_options[i];
    }
    return NULL;
}

/* Levenshtein distance with exchanges of neighbours (optimal string alignment); names longer than
 * the table's are far from all. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][OPTION_NAME_MAX + 1];
    size_t n = strlen(a), m = strlen(b);
    if (n > OPTION_NAME_MAX || m > OPTION_NAME_MAX)
        return SIZE_MAX;
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t k = 0; k <= m; k++)
        last[k] = k;
    for (size_t i = 1; i <= n; i++) {
        now[0] = i;
        for (size_t k = 1; k <= m; k++) {
            size_t best = last[k - 1] + (plain(a[i - 1]) != plain(b[k - 1]));
            best = last[k] + 1 < best ? last[k] + 1 : best;
            best = now[k - 1] + 1 < best ? now[k - 1] + 1 : best;
            if (i > 1 && k > 1 && plain(a[i - 1]) == plain(b[k - 2]) &&
                plain(a[i - 2]) == plain(b[k - 1]) && before[k - 2] + 1 < best)
                best = before[k - 2] + 1;
            now[k] = best;
        }
        size_t *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[m];
}

const struct option *option_nearest(const char *name)
{
    const struct option *nearest = NULL;
    size_t best = strlen(name) / 3 > 2 ? strlen(name) / 3 + 1 : 3;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        size_t d = distance(name, config_options[i].name);
        if (d < best) {
            best = d;
            nearest = &config_options[i];
        }
    }
    return nearest;
}

void option_display(const struct option *option, char out[OPTION_NAME_MAX])
{
    size_t n = 0;
    for (; option->name[n] && n < OPTION_NAME_MAX - 1; n++)
        out[n] = option->name[n] == '_' ? '-' : option->name[n];
    out[n] = '\0';
}

void option_variable(const struct option *option, char out[OPTION_NAME_MAX])
{
    static const char prefix[] = "TELLERD_";
    size_t n = sizeof prefix - 1;
    memcpy(out, prefix, n);
    for (const char *c = option->name; *c && n < OPTION_NAME_MAX - 1; c++)
        out[n++] = *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
    out[n] = '\0';
}
