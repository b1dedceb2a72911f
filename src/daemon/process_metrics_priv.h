#ifndef TELLERD_PROCESS_METRICS_PRIV_H
#define TELLERD_PROCESS_METRICS_PRIV_H

#include "tellerd/base/metrics.h"

/* Creates the process_* series.  At start, loop thread. */
void process_metrics_create(struct metrics *metrics);

#endif
