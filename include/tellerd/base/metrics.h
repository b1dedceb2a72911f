#ifndef TELLERD_BASE_METRICS_H
#define TELLERD_BASE_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/base/buf.h"

/*
 * Registry of counters, gauges and histograms with fixed label sets, all created at start (so every
 * series is there at 0). Updates are relaxed atomics, safe from any thread and without a lock;
 * exposition reads them and never waits for anyone. Prometheus text 0.0.4 and OpenMetrics 1.0.0
 * (exposition formats).
 */
struct metrics;
struct metric; /* one series: a name with its label values */

struct metrics *metrics_new(void);
void metrics_free(struct metrics *metrics);

/*
 * Create one series.  labels: text such as `model="x",reason="stop"` built by metrics_labels, or ""
 * for none; copied.  Series of one name must agree in help and kind; they are written together,
 * whatever was created between them.  Counters end in _total.  Return a handle owned by the
 * registry.  Start only, one thread.
 */
struct metric *metrics_counter(struct metrics *m, const char *name, const char *help,
                               const char *labels);
struct metric *metrics_gauge(struct metrics *m, const char *name, const char *help,
                             const char *labels);
/* bounds: ascending upper edges without +Inf; copied. */
struct metric *metrics_histogram(struct metrics *m, const char *name, const char *help,
                                 const char *labels, const double *bounds, size_t n_bounds);
/* A gauge or counter whose value is computed at exposition; fn must not block. */
struct metric *metrics_callback(struct metrics *m, const char *name, const char *help,
                                const char *labels, bool is_counter, double (*fn)(void *ctx),
                                void *ctx);
/* Another name (and labels) for the same series, of the same kind: the vLLM-compatible set. */
struct metric *metrics_alias(struct metrics *m, struct metric *of, const char *name,
                             const char *labels);

/* Appends key="value" to labels[size], the value escaped as the format demands (and cut when it
 * does not fit), with a comma between.  Returns labels. */
const char *metrics_label(char *labels, size_t size, const char *key, const char *value);

void metric_add(struct metric *metric, double amount); /* counter, gauge; NULL is ignored */
void metric_inc(struct metric *metric);
void metric_set(struct metric *metric, double value);     /* gauge */
void metric_observe(struct metric *metric, double value); /* histogram */
double metric_value(const struct metric *metric);   /* counter, gauge: now; histogram: its sum */
uint64_t metric_count(const struct metric *metric); /* histogram: observations */

/* Writes the whole exposition.  openmetrics chooses the format.  Loop thread.  False when buf
 * overflows. */
bool metrics_expose(struct metrics *metrics, struct buf *out, bool openmetrics);
/* Chooses the format from an Accept header (may be NULL): true = OpenMetrics. */
bool metrics_accepts_openmetrics(const char *accept);

#endif
