/*
 * From one row of logits to one token, in the order that sampler.h gives.  Nothing is sorted: the
 * cuts of top_k and top_p find the bucket of exponents in which the border lies and look closer
 * only at that, so a row costs a few passes.  Ties go to the lower id, sums have a fixed order,
 * random numbers are named by (seed, stream, draw): the result depends on the arguments alone.
 */
#include "config.h"

#include "tellerd/model/sampler.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sampler_logprobs_priv.h"
#include "sampler_priv.h"
#include "tellerd/base/mem.h"
#include "tellerd/base/rng.h"

/* Below this no draw differs from the best token but among near-equal logits; taken as 0. */
static const float greedy_temperature = 1e-5f;

void sampling_defaults(struct sampling *sampling)
{
    memset(sampling, 0, sizeof *sampling);
    sampling->temperature = 1.0f;
    sampling->top_p = 1.0f;
    sampling->repetition_penalty = 1.0f;
}

/* The ids that a flag array marks. */
static uint32_t *list_marked(const uint8_t *marks, uint32_t n, uint32_t *ret_n)
{
    uint32_t count = 0;
    for (uint32_t id = 0; id < n; id++)
        count += marks[id] != 0;
    uint32_t *ids = xcalloc(count, sizeof *ids);
    count = 0;
    for (uint32_t id = 0; id < n; id++) {
        if (marks[id])
            ids[count++] = id;
    }
    *ret_n = count;
    return ids;
}

struct sampler *sampler_new(const struct sampler_vocab *vocab)
{
    REQUIRE(vocab->n_tokens > 0 && vocab->n_tokens <= vocab->n_logits);
    struct sampler *sampler = xcalloc(1, sizeof *sampler);
    sampler->vocab = *vocab;
    sampler->banned_ids = list_marked(vocab->banned, vocab->n_tokens, &sampler->n_banned);
    sampler->eog_ids = list_marked(vocab->eog, vocab->n_tokens, &sampler->n_eog);
    sampler->plain = xcalloc(vocab->n_tokens, sizeof *sampler->plain);
    sampler->weights = xcalloc(vocab->n_tokens, sizeof *sampler->weights);
    sampler->candidates = xcalloc(vocab->n_tokens, sizeof *sampler->candidates);
    sampler->border = xcalloc(vocab->n_tokens, sizeof *sampler->border);
    sampler->counts = xcalloc(vocab->n_tokens, sizeof *sampler->counts);
    sampler->seen = xcalloc(vocab->n_tokens, sizeof *sampler->seen);
    return sampler;
}

void sampler_free(struct sampler *sampler)
{
    if (!sampler)
        return;
    free(sampler->banned_ids);
    free(sampler->eog_ids);
    free(sampler->plain);
    free(sampler->weights);
    free(sampler->candidates);
    free(sampler->border);
    free(sampler->counts);
    free(sampler->seen);
    free(sampler);
}

/* -- changes to logits ------------------------------------------------------------------------ */

/* Bans ids for this token.  A NaN must not be hidden by the ban: false when there was one. */
static bool ban(const struct sampler *sampler, float *logits, const uint32_t *ids, uint32_t n)
{
    bool sound = true;
    for (uint32_t i = 0; i < n; i++) {
        if (ids[i] >= sampler->vocab.n_tokens)
            continue;
        sound &= logits[ids[i]] < INFINITY;
        logits[ids[i]] = -INFINITY;
    }
    return sound;
}

static bool apply_bans(const struct sampler *sampler, float *logits, const struct sampling *params,
                       uint32_t n_output)
{
    bool sound = true;
    for (uint32_t i = 0; i < sampler->n_banned; i++)
        logits[sampler->banned_ids[i]] = -INFINITY;
    if (params->ignore_eos || n_output < params->min_tokens)
        sound &= ban(sampler, logits, sampler->eog_ids, sampler->n_eog);
    if (n_output < params->min_tokens)
        sound &= ban(sampler, logits, params->stop_ids, params->n_stop_ids);
    return sound;
}

static void apply_bias(const struct sampler *sampler, float *logits, const struct sampling *params)
{
    for (uint32_t i = 0; i < params->n_bias; i++) {
        if (params->bias[i].id < sampler->vocab.n_tokens)
            logits[params->bias[i].id] += params->bias[i].bias;
    }
}

static float penalized(const struct sampling *params, float logit, uint32_t count)
{
    if (!isfinite(logit)) /* banned, or bad: to be found later */
        return logit;
    if (params->repetition_penalty != 1.0f)
        logit =
            logit > 0.0f ? logit / params->repetition_penalty : logit * params->repetition_penalty;
    if (count > 0)
        logit -= params->presence_penalty + params->frequency_penalty * (float)count;
    return fminf(fmaxf(logit, -FLT_MAX), FLT_MAX);
}

/* Each id once, whatever its number of occurrences: the first visit applies all and clears. */
static void visit(struct sampler *sampler, float *logits, const struct sampling *params,
                  const uint32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = ids[i];
        if (id >= sampler->vocab.n_tokens || !sampler->seen[id])
            continue;
        logits[id] = penalized(params, logits[id], sampler->counts[id]);
        sampler->seen[id] = 0;
        sampler->counts[id] = 0;
    }
}

static void apply_penalties(struct sampler *sampler, float *logits, const struct sampling *params,
                            const struct sampler_history *history)
{
    bool repetition = params->repetition_penalty != 1.0f;
    if (!repetition && params->presence_penalty == 0.0f && params->frequency_penalty == 0.0f)
        return;
    uint32_t n_prompt = repetition ? history->n_prompt : 0;
    for (uint32_t i = 0; i < n_prompt; i++) {
        if (history->prompt[i] < sampler->vocab.n_tokens)
            sampler->seen[history->prompt[i]] = 1;
    }
    for (uint32_t i = 0; i < history->n_output; i++) {
        if (history->output[i] < sampler->vocab.n_tokens) {
            sampler->seen[history->output[i]] = 1;
            sampler->counts[history->output[i]]++;
        }
    }
    visit(sampler, logits, params, history->prompt, n_prompt);
    visit(sampler, logits, params, history->output, history->n_output);
}

/* -- cuts ------------------------------------------------------------------------------------- */

static unsigned bucket_of(float exponent)
{
    float depth = -exponent * SAMPLER_PER_BUCKET;
    return depth < SAMPLER_BUCKETS - 1 ? (unsigned)depth : SAMPLER_BUCKETS - 1;
}

/* Collects the candidates of one bucket; weights NULL: each weighs 1. */
static uint32_t collect_bucket(struct sampler *sampler, uint32_t n, unsigned bucket,
                               const float *weights)
{
    uint32_t size = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (bucket_of(sampler->candidates[i].exponent) == bucket)
            sampler->border[size++] =
                (struct weighed){sampler->candidates[i], weights ? weights[i] : 1.0f};
    }
    return size;
}

/* Moves all that come before the pivot in front of it; returns its place, and their weight. */
static uint32_t partition(struct weighed *list, uint32_t low, uint32_t high, double *ret_weight)
{
    /* a pivot that no file or client can foresee, yet the same in every run */
    uint32_t at = low + rng_u32(high, low, 0) % (high - low), place = low;
    struct weighed pivot = list[at];
    double weight = 0.0;
    list[at] = list[high - 1];
    for (uint32_t i = low; i + 1 < high; i++) {
        if (!sampler_before(list[i].candidate, pivot.candidate))
            continue;
        struct weighed kept = list[i];
        list[i] = list[place];
        list[place++] = kept;
        weight += (double)kept.weight;
    }
    list[high - 1] = list[place];
    list[place] = pivot;
    *ret_weight = weight;
    return place;
}

/*
 * The last of the best candidates of sampler->border[size], size > 0, that are needed to bring
 * their weight to `wanted`; at least one is.  Quickselect: linear on average, nothing is sorted.
 */
static struct candidate select_last(struct sampler *sampler, uint32_t size, double wanted)
{
    uint32_t low = 0, high = size;
    struct candidate last = sampler->border[0].candidate;
    double sum = 0.0;
    while (low < high) {
        double weight;
        uint32_t place = partition(sampler->border, low, high, &weight);
        if (place > low && sum + weight >= wanted) {
            high = place;
            continue;
        }
        last = sampler->border[place].candidate;
        sum += weight + (double)sampler->border[place].weight;
        if (sum >= wanted)
            break;
        low = place + 1;
    }
    return last;
}

/* Keeps `last` and all that come before it, in the order of ids.  Returns how many. */
static uint32_t keep_up_to(struct candidate *candidates, uint32_t n, struct candidate last)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!sampler_before(last, candidates[i]))
            candidates[kept++] = candidates[i];
    }
    return kept;
}

static uint32_t cut_top_k(struct sampler *sampler, uint32_t n, uint32_t k)
{
    uint32_t counts[SAMPLER_BUCKETS] = {0};
    unsigned bucket = 0;
    for (uint32_t i = 0; i < n; i++)
        counts[bucket_of(sampler->candidates[i].exponent)]++;
    while (counts[bucket] < k) /* there are more than k in all */
        k -= counts[bucket++];
    uint32_t size = collect_bucket(sampler, n, bucket, NULL);
    return keep_up_to(sampler->candidates, n, select_last(sampler, size, k));
}

static uint32_t cut_min_p(struct candidate *candidates, uint32_t n, float min_p)
{
    double least = log((double)min_p);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if ((double)candidates[i].exponent >= least)
            candidates[kept++] = candidates[i];
    }
    return kept;
}

static uint32_t cut_top_p(struct sampler *sampler, uint32_t n, float top_p)
{
    double sums[SAMPLER_BUCKETS] = {0.0}, sum = 0.0;
    uint32_t counts[SAMPLER_BUCKETS] = {0};
    double wanted = (double)top_p * sampler_weights(sampler->candidates, n, sampler->weights);
    for (uint32_t i = 0; i < n; i++) {
        unsigned bucket = bucket_of(sampler->candidates[i].exponent);
        sums[bucket] += (double)sampler->weights[i];
        counts[bucket]++;
    }
    unsigned bucket = 0;
    for (; bucket < SAMPLER_BUCKETS - 1; bucket++) {
        if (counts[bucket] > 0 && sum + sums[bucket] >= wanted)
            break;
        sum += sums[bucket];
    }
    uint32_t size = collect_bucket(sampler, n, bucket, sampler->weights);
    if (size == 0) /* rounding: the last bucket is empty and the others fell short by it */
        return n;
    return keep_up_to(sampler->candidates, n, select_last(sampler, size, wanted - sum));
}

/* -- choice ----------------------------------------------------------------------------------- */

static uint32_t collect(struct sampler *sampler, const float *logits, float best, float temperature)
{
    uint32_t n = 0;
    for (uint32_t id = 0; id < sampler->vocab.n_tokens; id++) {
        sampler->candidates[n] = (struct candidate){(logits[id] - best) / temperature, id};
        n += logits[id] > -INFINITY;
    }
    return n;
}

static uint32_t pick(struct sampler *sampler, uint32_t n, float uniform)
{
    double target = (double)uniform * sampler_weights(sampler->candidates, n, sampler->weights);
    double sum = 0.0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (sampler->weights[i] == 0.0f)
            continue;
        last = i;
        sum += (double)sampler->weights[i];
        if (sum > target)
            break;
    }
    return sampler->candidates[last].id;
}

static uint32_t choose(struct sampler *sampler, const float *logits, float best,
                       const struct sampling *params, uint64_t stream, uint32_t draw)
{
    uint32_t n = collect(sampler, logits, best, params->temperature);
    if (params->top_k > 0 && (uint32_t)params->top_k < n)
        n = cut_top_k(sampler, n, (uint32_t)params->top_k);
    if (params->min_p > 0.0f)
        n = cut_min_p(sampler->candidates, n, params->min_p < 1.0f ? params->min_p : 1.0f);
    if (params->top_p < 1.0f)
        n = cut_top_p(sampler, n, params->top_p);
    return pick(sampler, n, rng_uniform(params->seed, stream, draw));
}

enum status sampler_sample(struct sampler *sampler, float *logits, const struct sampling *params,
                           const struct sampler_history *history, uint64_t stream, uint32_t draw,
                           struct sampled *ret)
{
    bool wants_logprobs = params->logprobs || params->n_top_logprobs > 0;
    struct sampled result;
    memset(&result, 0, sizeof result);
    if (wants_logprobs)
        sampler_keep_plain(sampler, logits);
    bool sound = apply_bans(sampler, logits, params, history->n_output);
    apply_bias(sampler, logits, params);
    apply_penalties(sampler, logits, params, history);

    bool bad;
    float best = sampler_best(logits, sampler->vocab.n_tokens, &result.id, &bad);
    if (!sound || bad || best == -INFINITY)
        return STATUS_BAD_LOGITS;
    if (params->temperature > greedy_temperature)
        result.id = choose(sampler, logits, best, params, stream, draw);
    if (wants_logprobs) {
        enum status status = sampler_plain_logprobs(sampler, result.id, sampler->plain[result.id],
                                                    params->n_top_logprobs, &result);
        if (status)
            return status;
    }
    *ret = result;
    return STATUS_OK;
}
