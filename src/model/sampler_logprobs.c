/*
 * Log-probabilities of the unmodified logits: the natural log of the softmax over legal tokens.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "sampler_logprobs_priv.h"
#include "sampler_priv.h"

void sampler_keep_plain(struct sampler *sampler, const float *logits)
{
    memcpy(sampler->plain, logits, sampler->vocab.n_tokens * sizeof *logits);
    for (uint32_t i = 0; i < sampler->n_banned; i++)
        sampler->plain[sampler->banned_ids[i]] = -INFINITY;
}

/* The n best tokens, best first, the lower id first among equals; fewer when fewer are finite. */
static uint32_t find_top(const float *logits, uint32_t n_tokens, uint32_t n,
                         struct token_logprob *ret)
{
    uint32_t found = 0;
    float least = -INFINITY; /* what a logit must exceed to get in */
    for (uint32_t id = 0; id < n_tokens; id++) {
        if (!(logits[id] > least) || n == 0)
            continue;
        uint32_t at = found < n ? found++ : n - 1;
        for (; at > 0 && ret[at - 1].logprob < logits[id]; at--)
            ret[at] = ret[at - 1];
        ret[at] = (struct token_logprob){id, logits[id]};
        least = found == n ? ret[n - 1].logprob : -INFINITY;
    }
    return found;
}

enum status sampler_plain_logprobs(struct sampler *sampler, uint32_t id, float logit,
                                   uint32_t n_top, struct sampled *ret)
{
    uint32_t at, n_tokens = sampler->vocab.n_tokens;
    bool bad;
    float best = sampler_best(sampler->plain, n_tokens, &at, &bad);
    if (bad || best == -INFINITY)
        return STATUS_BAD_LOGITS;
    double sum = sampler_sum_exp(sampler->plain, n_tokens, best);
    double log_sum = (double)best + log(sum);
    n_top = n_top < SAMPLER_MAX_LOGPROBS ? n_top : SAMPLER_MAX_LOGPROBS;
    ret->n_top = find_top(sampler->plain, n_tokens, n_top, ret->top);
    for (uint32_t i = 0; i < ret->n_top; i++)
        ret->top[i].logprob = (float)((double)ret->top[i].logprob - log_sum);
    ret->id = id;
    ret->logprob = -INFINITY;
    if (id >= n_tokens)
        return STATUS_OK;
    if (sampler->vocab.banned[id]) {
        /* A token that is never sampled, in a prompt: it counts as one more choice. */
        double more = (double)logit - log_sum;
        ret->logprob = (float)(more > 0.0 ? -log1p(exp(-more)) : more - log1p(exp(more)));
    } else {
        ret->logprob = (float)((double)logit - log_sum);
    }
    return isnan(ret->logprob) ? STATUS_BAD_LOGITS : STATUS_OK;
}

enum status sampler_logprobs(struct sampler *sampler, const float *logits, uint32_t id,
                             uint32_t n_top, struct sampled *ret)
{
    struct sampled result;
    memset(&result, 0, sizeof result);
    sampler_keep_plain(sampler, logits);
    float logit = id < sampler->vocab.n_tokens ? logits[id] : -INFINITY;
    enum status status = sampler_plain_logprobs(sampler, id, logit, n_top, &result);
    if (!status)
        *ret = result;
    return status;
}
