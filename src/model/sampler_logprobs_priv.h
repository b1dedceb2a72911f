#ifndef TELLERD_MODEL_SAMPLER_LOGPROBS_PRIV_H
#define TELLERD_MODEL_SAMPLER_LOGPROBS_PRIV_H

#include <stdint.h>

#include "tellerd/model/sampler.h"

/* Copies the logits aside, before anything changes them. */
void sampler_keep_plain(struct sampler *sampler, const float *logits);
/* Logprob of id (whose unmodified logit is given) and the n_top best, of the logits kept aside.
 * Errors: BAD_LOGITS; ret may then hold anything. */
enum status sampler_plain_logprobs(struct sampler *sampler, uint32_t id, float logit,
                                   uint32_t n_top, struct sampled *ret) WARN_UNUSED;

#endif
