#ifndef TELLERD_BASE_CLOCK_H
#define TELLERD_BASE_CLOCK_H

#include <stdint.h>

/* Monotonic nanoseconds since an arbitrary start; wall-clock seconds since 1970.  Any thread. */
uint64_t clock_ns(void);
double clock_wall(void);

#endif
