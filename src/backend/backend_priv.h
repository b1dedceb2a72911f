#ifndef TELLERD_BACKEND_BACKEND_PRIV_H
#define TELLERD_BACKEND_BACKEND_PRIV_H

#include "tellerd/backend/backend.h"

/* The backends of this build; backend.c finds them by ops->name. */
extern const struct backend_ops cpu_backend_ops;

/*
 * Checks that every backend makes first in weight_new and cache_new, so that its own code can trust
 * the shapes.  Errors: BAD_FILE (a tensor whose size does not fit its shape), BAD_CONFIG (a cache).
 */
enum status backend_check_weight(const struct tensor *source, enum backend_use use,
                                 struct error *err) WARN_UNUSED;
enum status backend_check_cache(const struct backend_cache_shape *shape,
                                struct error *err) WARN_UNUSED;

#endif
