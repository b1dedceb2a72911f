#ifndef TELLERD_ENGINE_FORWARD_GPT_H
#define TELLERD_ENGINE_FORWARD_GPT_H

#include <stdint.h>

#include "tellerd/backend/backend.h"
#include "tellerd/engine/forward.h"
#include "tellerd/model/gpt.h"

/*
 * The real forward pass: gpt over a cache of the shape given (gpt_cache_shape fills it; n_blocks =
 * cache bytes / block size * backend_cache_position_bytes).  gpt, backend and vocab's arrays are
 * borrowed and must outlive it; max_rows and max_logit_rows are gpt's.  Free with
 * forward->ops->free.  Errors: NO_MEMORY, BAD_CONFIG (bank smaller than the vocabulary, a cache
 * type or shape that the backend does not have).
 */
enum status forward_gpt_new(struct gpt *gpt, struct backend *backend,
                            const struct backend_cache_shape *shape,
                            const struct sampler_vocab *vocab, uint32_t max_rows,
                            uint32_t max_logit_rows, struct forward **ret,
                            struct error *err) WARN_UNUSED;

#endif
