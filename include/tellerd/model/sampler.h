#ifndef TELLERD_MODEL_SAMPLER_H
#define TELLERD_MODEL_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "tellerd/base/status.h"

/*
 * From one row of logits to one token.  Pure: the result depends on logits, parameters, the ids so
 * far and the draw number only. Order: NaN check, bans (padded rows, unused and control tokens that
 * are not end-of-generation, min_tokens, ignore_eos), logit_bias, repetition / presence / frequency
 * penalties, greedy when temperature is 0, else temperature, top_k, min_p, top_p, draw.
 */
enum { SAMPLER_MAX_LOGPROBS = 20, SAMPLER_MAX_BIAS = 1024, SAMPLER_MAX_STOP_IDS = 64 };

struct logit_bias {
    uint32_t id;
    float bias; /* -100 .. 100 */
};

struct sampling {
    float temperature;                         /* 0..2; 0 = greedy */
    float top_p;                               /* 0..1; 1 = off; 0 = the best token only */
    float min_p;                               /* 0..1; 0 = off */
    int32_t top_k;                             /* 0 or -1 = off */
    float repetition_penalty;                  /* > 0; 1 = off */
    float presence_penalty, frequency_penalty; /* -2..2 */
    uint64_t seed;
    uint32_t n_bias;
    struct logit_bias *bias; /* owned by the request */
    uint32_t n_stop_ids;
    uint32_t *stop_ids;  /* owned by the request; end the text like EOS */
    uint32_t min_tokens; /* end tokens are banned before that many tokens */
    bool ignore_eos;
    bool logprobs;           /* report the chosen token's */
    uint32_t n_top_logprobs; /* 0..SAMPLER_MAX_LOGPROBS best alternatives */
};

/* Everything off: temperature 1, top_p 1, ... */
void sampling_defaults(struct sampling *sampling);

/* What may be sampled, shared by all sequences of a model; built once. */
struct sampler_vocab {
    uint32_t n_logits;     /* V, padded rows included */
    uint32_t n_tokens;     /* the tokenizer's size; rows beyond are never sampled */
    const uint8_t *banned; /* [n_tokens] 1 = never */
    const uint8_t *eog;    /* [n_tokens] 1 = ends generation */
};

struct sampler_history { /* ids the penalties count: prompt for repetition, output for all */
    const uint32_t *prompt;
    uint32_t n_prompt;
    const uint32_t *output;
    uint32_t n_output;
};

struct token_logprob {
    uint32_t id;
    float logprob; /* natural log, of the unmodified softmax over legal tokens */
};

struct sampled {
    uint32_t id;
    float logprob;
    uint32_t n_top;
    struct token_logprob top[SAMPLER_MAX_LOGPROBS];
};

struct sampler; /* workspace for one thread: candidates, counts */
/* Borrows the arrays of vocab until sampler_free. */
struct sampler *sampler_new(const struct sampler_vocab *vocab);
void sampler_free(struct sampler *sampler);

/*
 * Samples from logits [n_logits] (changed in place).  draw: index of this token in the output, used
 * with (seed, stream) as the random number's name.  Temperatures up to 1e-5 are taken as 0. Errors:
 * BAD_LOGITS when a legal logit is NaN or +inf or none is finite.  Engine thread.
 */
enum status sampler_sample(struct sampler *sampler, float *logits, const struct sampling *params,
                           const struct sampler_history *history, uint64_t stream, uint32_t draw,
                           struct sampled *ret) WARN_UNUSED;

/* Logprob of `id` and the n_top best of the unmodified logits (prompt_logprobs, echo).  An id that
 * is never sampled (a control token in the prompt) counts as one more legal token.  Errors:
 * BAD_LOGITS.
 */
enum status sampler_logprobs(struct sampler *sampler, const float *logits, uint32_t id,
                             uint32_t n_top, struct sampled *ret) WARN_UNUSED;

#endif
