/*
 * Metrics: families of series, updated by relaxed atomics, written out as Prometheus text 0.0.4 or
 * OpenMetrics 1.0.0.  The set of series is fixed at start.
 */
#include "config.h"

#include "tellerd/base/metrics.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tellerd/base/mem.h"
#include "tellerd/base/status.h"
#include "tellerd/base/utf8.h"

enum kind { KIND_COUNTER, KIND_GAUGE, KIND_HISTOGRAM };

struct metric {
    struct metric *next; /* of the family */
    struct family *family;
    char *labels;           /* key="value",... or "" */
    char *heads;            /* what stands before each of its numbers, each with its '\0' */
    struct metric *target;  /* whose numbers are shown: itself, or an alias's original */
    _Atomic uint64_t value; /* bits of a double: counter, gauge; histogram: the sum */
    double (*fn)(void *ctx);
    void *fn_ctx;
    double *bounds; /* [n_bounds] */
    size_t n_bounds;
    _Atomic uint64_t *buckets; /* [n_bounds + 1], each counts its own range only */
};

struct family {
    struct family *next;
    char *name;
    char *help;
    enum kind kind;
    struct metric *first;
};

struct metrics {
    struct family *first;
};

/* --- registry ------------------------------------------------------------ */

struct metrics *metrics_new(void)
{
    return xcalloc(1, sizeof(struct metrics));
}

static void free_family(struct family *family)
{
    while (family->first) {
        struct metric *metric = family->first;
        family->first = metric->next;
        free(metric->labels);
        free(metric->heads);
        free(metric->bounds);
        free(metric->buckets);
        free(metric);
    }
    free(family->name);
    free(family->help);
    free(family);
}

void metrics_free(struct metrics *metrics)
{
    if (!metrics)
        return;
    while (metrics->first) {
        struct family *next = metrics->first->next;
        free_family(metrics->first);
        metrics->first = next;
    }
    free(metrics);
}

static bool ends_in(const char *name, const char *suffix)
{
    size_t len = strlen(name), n = strlen(suffix);
    return len > n && strcmp(name + len - n, suffix) == 0;
}

static bool valid_name(const char *name)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:";
    static const char later[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789";
    return *name && strchr(first, *name) && name[strspn(name, later)] == '\0';
}

static struct family *find_or_add_family(struct metrics *metrics, const char *name,
                                         const char *help, enum kind kind)
{
    REQUIRE(valid_name(name));
    REQUIRE(kind != KIND_COUNTER || ends_in(name, "_total"));
    struct family **at = &metrics->first;
    for (; *at; at = &(*at)->next)
        if (strcmp((*at)->name, name) == 0) {
            REQUIRE((*at)->kind == kind && strcmp((*at)->help, help) == 0);
            return *at;
        }
    struct family *family = xcalloc(1, sizeof *family);
    family->name = xstrdup(name);
    family->help = xstrdup(help);
    family->kind = kind;
    *at = family;
    return family;
}

/* A bucket's edge.  Integers carry ".0" in both formats (OpenMetrics wants it), so that a series
 * keeps its name when the scraper changes format. */
static void write_bound(struct buf *out, double bound)
{
    size_t before = out->len;
    buf_add_double(out, bound);
    if (out->data && !strpbrk(out->data + before, ".e"))
        buf_add_str(out, ".0");
}

/* name_suffix{labels,le="bound"}, with a blank and '\0' after it. */
static void write_head(struct buf *out, const struct metric *metric, const char *suffix,
                       const double *le)
{
    bool braces = metric->labels[0] || le;
    buf_add_str(out, metric->family->name);
    buf_add_str(out, suffix);
    if (braces)
        buf_add_char(out, '{');
    buf_add_str(out, metric->labels);
    if (le) {
        buf_add_str(out, metric->labels[0] ? ",le=\"" : "le=\"");
        if (isinf(*le))
            buf_add_str(out, "+Inf");
        else
            write_bound(out, *le);
        buf_add_char(out, '"');
    }
    buf_add(out, braces ? "} " : " ", braces ? sizeof "} " : sizeof " ");
}

/* A series never changes its name: all text but the numbers is made once. */
static void make_heads(struct metric *metric)
{
    struct buf out;
    buf_init(&out, SIZE_MAX);
    if (metric->family->kind == KIND_HISTOGRAM) {
        for (size_t i = 0; i <= metric->target->n_bounds; i++) {
            double le = i < metric->target->n_bounds ? metric->target->bounds[i] : HUGE_VAL;
            write_head(&out, metric, "_bucket", &le);
        }
        write_head(&out, metric, "_sum", NULL);
        write_head(&out, metric, "_count", NULL);
    } else {
        write_head(&out, metric, "", NULL);
    }
    REQUIRE(!out.overflow);
    metric->heads = xmemdup(out.data, out.len);
    buf_done(&out);
}

/* A series without its heads, which need the bounds. */
static struct metric *add_series(struct metrics *metrics, const char *name, const char *help,
                                 const char *labels, enum kind kind)
{
    struct family *family = find_or_add_family(metrics, name, help, kind);
    struct metric **at = &family->first;
    for (; *at; at = &(*at)->next)
        REQUIRE(strcmp((*at)->labels, labels) != 0);
    struct metric *metric = xcalloc(1, sizeof *metric);
    metric->family = family;
    metric->labels = xstrdup(labels);
    metric->target = metric;
    *at = metric;
    return metric;
}

static struct metric *add_number(struct metrics *m, const char *name, const char *help,
                                 const char *labels, enum kind kind)
{
    struct metric *metric = add_series(m, name, help, labels, kind);
    make_heads(metric);
    return metric;
}

struct metric *metrics_counter(struct metrics *m, const char *name, const char *help,
                               const char *labels)
{
    return add_number(m, name, help, labels, KIND_COUNTER);
}

struct metric *metrics_gauge(struct metrics *m, const char *name, const char *help,
                             const char *labels)
{
    return add_number(m, name, help, labels, KIND_GAUGE);
}

struct metric *metrics_histogram(struct metrics *m, const char *name, const char *help,
                                 const char *labels, const double *bounds, size_t n_bounds)
{
    for (size_t i = 0; i < n_bounds; i++)
        REQUIRE(isfinite(bounds[i]) && (i == 0 || bounds[i - 1] < bounds[i]));
    struct metric *metric = add_series(m, name, help, labels, KIND_HISTOGRAM);
    metric->bounds = xmemdup(bounds, n_bounds * sizeof *bounds);
    metric->n_bounds = n_bounds;
    metric->buckets = xcalloc(n_bounds + 1, sizeof *metric->buckets);
    make_heads(metric);
    return metric;
}

struct metric *metrics_callback(struct metrics *m, const char *name, const char *help,
                                const char *labels, bool is_counter, double (*fn)(void *ctx),
                                void *ctx)
{
    struct metric *metric =
        add_number(m, name, help, labels, is_counter ? KIND_COUNTER : KIND_GAUGE);
    metric->fn = fn;
    metric->fn_ctx = ctx;
    return metric;
}

struct metric *metrics_alias(struct metrics *m, struct metric *of, const char *name,
                             const char *labels)
{
    struct metric *metric = add_series(m, name, of->family->help, labels, of->family->kind);
    metric->target = of->target;
    make_heads(metric);
    return metric;
}

/* --- label text ---------------------------------------------------------- */

/* Length of the next character and its form in quotes: as it is, escaped, or U+FFFD. */
static size_t next_piece(const char *text, size_t len, const char **ret_piece, size_t *ret_len)
{
    uint32_t code;
    unsigned bad;
    unsigned n = utf8_decode(text, len, &code, &bad);
    *ret_piece = text;
    if (n == 0)
        *ret_piece = "\xef\xbf\xbd";
    else if (*text == '\\')
        *ret_piece = "\\\\";
    else if (*text == '"')
        *ret_piece = "\\\"";
    else if (*text == '\n')
        *ret_piece = "\\n";
    *ret_len = *ret_piece == text ? n : strlen(*ret_piece);
    return n > 0 ? n : bad;
}

const char *metrics_label(char *labels, size_t size, const char *key, const char *value)
{
    size_t used = strlen(labels), key_len = strlen(key), comma = used > 0 ? 1 : 0;
    REQUIRE(valid_name(key) && !strchr(key, ':'));
    REQUIRE(used + comma + key_len + sizeof "=\"\"" <= size);
    if (comma)
        labels[used++] = ',';
    memcpy(labels + used, key, key_len);
    used += key_len;
    labels[used++] = '=';
    labels[used++] = '"';
    size_t len = strlen(value);
    for (size_t at = 0; at < len;) {
        const char *piece;
        size_t piece_len;
        at += next_piece(value + at, len - at, &piece, &piece_len);
        if (used + piece_len + 2 > size)
            break; /* a value from outside may be long: what fits is kept */
        memcpy(labels + used, piece, piece_len);
        used += piece_len;
    }
    labels[used++] = '"';
    labels[used] = '\0';
    return labels;
}

/* --- updates ------------------------------------------------------------- */

static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double load(const struct metric *metric)
{
    return double_of(atomic_load_explicit(&metric->value, memory_order_relaxed));
}

static void add(struct metric *metric, double amount)
{
    uint64_t old = atomic_load_explicit(&metric->value, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&metric->value, &old,
                                                  bits_of(double_of(old) + amount),
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

void metric_add(struct metric *metric, double amount)
{
    if (!metric || isnan(amount))
        return;
    metric = metric->target;
    if (metric->family->kind == KIND_GAUGE || amount > 0) /* counters never fall */
        add(metric, amount);
}

void metric_inc(struct metric *metric)
{
    metric_add(metric, 1);
}

void metric_set(struct metric *metric, double value)
{
    if (metric)
        atomic_store_explicit(&metric->target->value, bits_of(value), memory_order_relaxed);
}

void metric_observe(struct metric *metric, double value)
{
    if (!metric || isnan(value))
        return;
    metric = metric->target;
    size_t low = 0, high = metric->n_bounds; /* the first bound that is not below the value */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (metric->bounds[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    atomic_fetch_add_explicit(&metric->buckets[low], 1, memory_order_relaxed);
    add(metric, value);
}

double metric_value(const struct metric *metric)
{
    metric = metric->target;
    return metric->fn ? metric->fn(metric->fn_ctx) : load(metric);
}

uint64_t metric_count(const struct metric *metric)
{
    uint64_t count = 0;
    metric = metric->target;
    for (size_t i = 0; metric->buckets && i <= metric->n_bounds; i++)
        count += atomic_load_explicit(&metric->buckets[i], memory_order_relaxed);
    return count;
}

/* --- exposition ---------------------------------------------------------- */

static void write_number(struct buf *out, double value)
{
    if (isnan(value))
        buf_add_str(out, "NaN");
    else if (isinf(value))
        buf_add_str(out, value > 0 ? "+Inf" : "-Inf");
    else
        buf_add_double(out, value);
}

/* Appends a head, and moves *head to the next. */
static void write_next_head(struct buf *out, const char **head)
{
    size_t len = strlen(*head);
    buf_add(out, *head, len);
    *head += len + 1;
}

static void write_histogram(struct buf *out, const struct metric *metric)
{
    const struct metric *numbers = metric->target;
    const char *head = metric->heads;
    uint64_t count = 0;
    for (size_t i = 0; i <= numbers->n_bounds; i++) {
        count += atomic_load_explicit(&numbers->buckets[i], memory_order_relaxed);
        write_next_head(out, &head);
        buf_add_u64(out, count);
        buf_add_char(out, '\n');
    }
    write_next_head(out, &head);
    write_number(out, load(numbers));
    buf_add_char(out, '\n');
    write_next_head(out, &head);
    buf_add_u64(out, count); /* by definition the last bucket, whatever was observed meanwhile */
    buf_add_char(out, '\n');
}

/* Line ends and backslashes are escaped in both formats, quotes in OpenMetrics only. */
static void write_help(struct buf *out, const char *help, bool openmetrics)
{
    while (*help) {
        size_t plain = strcspn(help, openmetrics ? "\n\\\"" : "\n\\");
        buf_add(out, help, plain);
        help += plain;
        if (*help)
            buf_add(out, (const char[]){'\\', *help == '\n' ? 'n' : *help}, 2);
        help += *help != '\0';
    }
}

static void write_comment(struct buf *out, const char *kind, const char *name, size_t len)
{
    buf_add_str(out, kind);
    buf_add(out, name, len);
    buf_add_char(out, ' ');
}

static void write_header(struct buf *out, const struct family *family, bool openmetrics)
{
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    static const char *const units[] = {"seconds", "bytes"};
    size_t len = strlen(family->name);
    if (openmetrics && family->kind == KIND_COUNTER)
        len -= strlen("_total");
    write_comment(out, "# HELP ", family->name, len);
    write_help(out, family->help, openmetrics);
    write_comment(out, "\n# TYPE ", family->name, len);
    buf_add_str(out, kinds[family->kind]);
    buf_add_char(out, '\n');
    for (size_t i = 0; openmetrics && i < sizeof units / sizeof units[0]; i++) {
        size_t n = strlen(units[i]);
        if (len > n + 1 && family->name[len - n - 1] == '_' &&
            memcmp(family->name + len - n, units[i], n) == 0) {
            write_comment(out, "# UNIT ", family->name, len);
            buf_add_str(out, units[i]);
            buf_add_char(out, '\n');
        }
    }
}

bool metrics_expose(struct metrics *metrics, struct buf *out, bool openmetrics)
{
    for (const struct family *family = metrics->first; family; family = family->next) {
        write_header(out, family, openmetrics);
        for (const struct metric *metric = family->first; metric; metric = metric->next) {
            if (family->kind == KIND_HISTOGRAM) {
                write_histogram(out, metric);
                continue;
            }
            buf_add_str(out, metric->heads);
            write_number(out, metric_value(metric));
            buf_add_char(out, '\n');
        }
    }
    if (openmetrics)
        buf_add_str(out, "# EOF\n");
    return !out->overflow;
}

/* --- content negotiation --------------------------------------------------- */

/* Removes white space around [*text, *text + *len). */
static void trim(const char **text, size_t *len)
{
    while (*len > 0 && (**text == ' ' || **text == '\t')) {
        ++*text;
        --*len;
    }
    while (*len > 0 && ((*text)[*len - 1] == ' ' || (*text)[*len - 1] == '\t'))
        --*len;
}

static bool is_word(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && strncasecmp(text, word, len) == 0;
}

/* "0.75" in thousandths; anything that is no quality value counts as 0. */
static int quality(const char *text, size_t len)
{
    int value = 0, digits = 0;
    if (len == 0 || (text[0] != '0' && text[0] != '1') || (len > 1 && text[1] != '.') || len > 5)
        return 0;
    value = text[0] - '0';
    for (size_t i = 2; i < len; i++, digits++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        value = 10 * value + (text[i] - '0');
    }
    for (; digits < 3; digits++)
        value *= 10;
    return value <= 1000 ? value : 0;
}

/* Reads one element of Accept: its quality when it names `type` in a version we write, else -1. */
static int accepted(const char *element, size_t len, const char *type, const char *const *versions)
{
    int q = 1000;
    bool first = true;
    while (len > 0) {
        const char *end = memchr(element, ';', len);
        size_t n = end ? (size_t)(end - element) : len;
        const char *part = element;
        size_t part_len = n;
        trim(&part, &part_len);
        if (first && !is_word(part, part_len, type))
            return -1;
        if (!first && part_len > 2 && strncasecmp(part, "q=", 2) == 0)
            q = quality(part + 2, part_len - 2);
        if (!first && part_len >= 8 && strncasecmp(part, "version=", 8) == 0) {
            bool known = false;
            for (const char *const *v = versions; *v; v++)
                known |= is_word(part + 8, part_len - 8, *v);
            if (!known)
                return -1;
        }
        first = false;
        element += end ? n + 1 : n;
        len -= end ? n + 1 : n;
    }
    return first ? -1 : q;
}

bool metrics_accepts_openmetrics(const char *accept)
{
    static const char *const open_versions[] = {"1.0.0", NULL};
    static const char *const text_versions[] = {"0.0.4", NULL};
    int best_open = 0, best_text = 0;
    while (accept && *accept) {
        size_t n = strcspn(accept, ",");
        int q = accepted(accept, n, "application/openmetrics-text", open_versions);
        best_open = q > best_open ? q : best_open;
        q = accepted(accept, n, "text/plain", text_versions);
        best_text = q > best_text ? q : best_text;
        accept += accept[n] ? n + 1 : n;
    }
    return best_open > 0 && best_open >= best_text;
}
