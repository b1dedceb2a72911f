#ifndef TELLERD_MODEL_SAMPLER_PRIV_H
#define TELLERD_MODEL_SAMPLER_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "tellerd/model/sampler.h"

enum {
    SAMPLER_BLOCK = 1024,   /* logits between two looks at the best so far */
    SAMPLER_BUCKETS = 256,  /* of exponents, see sampler_bucket */
    SAMPLER_PER_BUCKET = 8, /* buckets per unit of exponent */
};

struct candidate {
    float exponent; /* (logit - best logit) / temperature, at most 0 */
    uint32_t id;
};

struct weighed {
    struct candidate candidate;
    float weight;
};

struct sampler {
    struct sampler_vocab vocab;
    uint32_t n_banned, n_eog;
    uint32_t *banned_ids;         /* [n_banned] */
    uint32_t *eog_ids;            /* [n_eog] */
    float *plain;                 /* [n_tokens] unmodified logits, banned ones -inf: for logprobs */
    float *weights;               /* [n_tokens] */
    struct candidate *candidates; /* [n_tokens] */
    struct weighed *border;       /* [n_tokens] the bucket where a cut goes through */
    uint32_t *counts;             /* [n_tokens] 0 between calls: occurrences in the output */
    uint8_t *seen;                /* [n_tokens] 0 between calls: in prompt or output */
};

/* The best of n logits and the first place it stands at.  *ret_bad: one is NaN or +inf.  n > 0. */
float sampler_best(const float *logits, uint32_t n, uint32_t *ret_at, bool *ret_bad);
/* Fills weights[n] with exp(exponent), exponents at most 0, and returns their sum, in a fixed
 * order. The relative error of each is below 3e-7; below -87 they are 0; the bits are the same
 * everywhere. */
double sampler_weights(const struct candidate *candidates, uint32_t n, float *weights);
/* Sum of exp(logit - best) over n logits, in a fixed order. */
double sampler_sum_exp(const float *logits, uint32_t n, float best);

/* Whether a comes before b: higher exponent, then lower id.  A total order. */
static inline bool sampler_before(struct candidate a, struct candidate b)
{
    return a.exponent > b.exponent || (a.exponent == b.exponent && a.id < b.id);
}

#endif
