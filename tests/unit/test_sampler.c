/*
 * The sampler against a plain reference in double arithmetic, written from sampler.h alone.
 */
#include "config.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_main.h"
#include "tellerd/base/mem.h"
#include "tellerd/base/rng.h"
#include "tellerd/model/sampler.h"

enum { N_TOKENS = 1500, N_LOGITS = 1531 }; /* no multiple of any block of the implementation */
enum { EOG = 7, EOG2 = 1499, CONTROL = 3, UNUSED = 900 };

static uint8_t banned[N_TOKENS], eog[N_TOKENS];
static float original[N_LOGITS], logits[N_LOGITS];
static struct sampler *sampler;
static struct sampling params;
static const struct sampler_history empty_history = {NULL, 0, NULL, 0};

static void fill(uint64_t seed, float spread)
{
    for (uint32_t i = 0; i < N_LOGITS; i++)
        original[i] = spread * (rng_uniform(seed, 1, i) + rng_uniform(seed, 2, i) +
                                rng_uniform(seed, 3, i) - 1.5f);
}

static void set_up(void)
{
    memset(banned, 0, sizeof banned);
    memset(eog, 0, sizeof eog);
    banned[CONTROL] = banned[UNUSED] = 1;
    eog[EOG] = eog[EOG2] = 1;
    struct sampler_vocab vocab = {N_LOGITS, N_TOKENS, banned, eog};
    sampler = sampler_new(&vocab);
    sampling_defaults(&params);
    fill(1, 4.0f);
}

static void tear_down(void)
{
    sampler_free(sampler);
}

static enum status try_sample(const struct sampler_history *history, uint64_t stream, uint32_t draw,
                              struct sampled *ret)
{
    memcpy(logits, original, sizeof logits);
    enum status status = sampler_sample(sampler, logits, &params, history, stream, draw, ret);
    /* rows beyond the vocabulary, a neighbour's in a batch, are never written */
    ck_assert_mem_eq(logits + N_TOKENS, original + N_TOKENS,
                     (N_LOGITS - N_TOKENS) * sizeof *logits);
    return status;
}

static struct sampled sample_at(uint64_t stream, uint32_t draw)
{
    struct sampled result;
    ck_assert_int_eq(try_sample(&empty_history, stream, draw, &result), STATUS_OK);
    return result;
}

static uint32_t sample(void)
{
    return sample_at(0, 0).id;
}

/* -- the reference ---------------------------------------------------------------------------- */

struct choice {
    double exponent;
    uint32_t id;
};

static int by_rank(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;
    if (x->exponent != y->exponent)
        return x->exponent > y->exponent ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static int by_id(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;
    return x->id < y->id ? -1 : 1;
}

/* The choices that survive all cuts, best first, of `from` (already biased, penalised, banned). */
static uint32_t reference_cut(const float *from, struct choice *choices)
{
    uint32_t n = 0, kept = 0;
    double best = -INFINITY, total = 0.0, sum = 0.0;
    for (uint32_t id = 0; id < N_TOKENS; id++)
        best = from[id] > best && !banned[id] ? from[id] : best;
    for (uint32_t id = 0; id < N_TOKENS; id++) {
        if (!banned[id] && from[id] > -INFINITY)
            choices[n++] = (struct choice){(from[id] - best) / (double)params.temperature, id};
    }
    qsort(choices, n, sizeof *choices, by_rank);
    if (params.top_k > 0 && (uint32_t)params.top_k < n)
        n = (uint32_t)params.top_k;
    while (n > 1 && exp(choices[n - 1].exponent) < (double)params.min_p)
        n--;
    for (uint32_t i = 0; i < n; i++)
        total += exp(choices[i].exponent);
    for (; kept < n && (kept == 0 || sum < (double)params.top_p * total); kept++)
        sum += exp(choices[kept].exponent);
    return params.top_p < 1.0f ? kept : n;
}

/* Whether id is what the draw must give; a draw within 1e-6 of a border may go either way. */
static bool reference_allows(const float *from, uint64_t stream, uint32_t draw, uint32_t id)
{
    static struct choice choices[N_TOKENS];
    double total = 0.0, sum = 0.0;
    uint32_t n = reference_cut(from, choices);
    qsort(choices, n, sizeof *choices, by_id);
    for (uint32_t i = 0; i < n; i++)
        total += exp(choices[i].exponent);
    double target = (double)rng_uniform(params.seed, stream, draw) * total;
    for (uint32_t i = 0; i < n; i++) {
        double low = sum;
        sum += exp(choices[i].exponent);
        if (choices[i].id == id)
            return target > low - 1e-6 * total && target < sum + 1e-6 * total;
    }
    return false;
}

static void check_draws(uint32_t n_draws)
{
    for (uint32_t draw = 0; draw < n_draws; draw++) {
        uint32_t id = sample_at(5, draw).id;
        ck_assert_msg(reference_allows(original, 5, draw, id),
                      "draw %u gave %u (top_k %d top_p %g min_p %g temperature %g)", draw, id,
                      params.top_k, (double)params.top_p, (double)params.min_p,
                      (double)params.temperature);
    }
}

/* -- draws ------------------------------------------------------------------------------------ */

START_TEST(every_draw_is_the_references)
{
    static const struct {
        float temperature;
        int32_t top_k;
        float min_p, top_p;
    } rows[] = {
        {1.0f, 0, 0.0f, 1.0f},    {0.8f, 40, 0.0f, 0.95f},   {1.0f, 1, 0.0f, 1.0f},
        {2.0f, 7, 0.0f, 1.0f},    {1.3f, -1, 0.1f, 1.0f},    {0.2f, 0, 0.0f, 0.5f},
        {1.0f, 0, 0.0f, 0.9f},    {1.0f, 1499, 0.0f, 0.99f}, {0.7f, 100, 0.02f, 0.8f},
        {1.0f, 0, 0.0f, 0.0001f}, {0.05f, 0, 0.0f, 1.0f},    {1.5f, 300, 0.001f, 0.999f},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int spread = 0; spread < 3; spread++) {
            fill(i, (const float[]){1.0f, 6.0f, 30.0f}[spread]);
            params.temperature = rows[i].temperature;
            params.top_k = rows[i].top_k;
            params.min_p = rows[i].min_p;
            params.top_p = rows[i].top_p;
            params.seed = i;
            check_draws(25);
        }
    }
}
END_TEST

START_TEST(frequencies_follow_the_softmax)
{
    enum { DRAWS = 20000 };
    uint32_t counts[4] = {0};
    for (uint32_t i = 0; i < N_LOGITS; i++)
        original[i] = -100.0f;
    const double shares[4] = {0.5, 0.3, 0.15, 0.05};
    for (int i = 0; i < 4; i++)
        original[10 + i] = (float)log(shares[i]);
    for (uint32_t draw = 0; draw < DRAWS; draw++) {
        uint32_t id = sample_at(0, draw).id;
        ck_assert(id >= 10 && id < 14);
        counts[id - 10]++;
    }
    for (int i = 0; i < 4; i++) {
        double sigma = sqrt(DRAWS * shares[i] * (1.0 - shares[i]));
        ck_assert(fabs(counts[i] - DRAWS * shares[i]) < 4.5 * sigma);
    }
}
END_TEST

START_TEST(the_draw_depends_on_seed_stream_and_number_only)
{
    uint32_t first[50];
    params.seed = 42;
    for (uint32_t i = 0; i < 50; i++)
        first[i] = sample_at(9, i).id;
    bool other_stream = false, other_seed = false;
    for (uint32_t i = 50; i-- > 0;) {
        params.seed = 43;
        other_seed |= sample_at(9, i).id != first[i];
        params.seed = 42;
        other_stream |= sample_at(10, i).id != first[i];
        ck_assert_uint_eq(sample_at(9, i).id, first[i]);
    }
    ck_assert(other_stream && other_seed);
}
END_TEST

START_TEST(among_equals_the_lower_id_is_kept)
{
    for (uint32_t i = 0; i < N_LOGITS; i++)
        original[i] = 1.0f;
    params.top_k = 5; /* of 0, 1, 2, (3 is banned), 4, 5, ... */
    bool seen[N_TOKENS] = {false};
    for (uint32_t draw = 0; draw < 200; draw++)
        seen[sample_at(0, draw).id] = true;
    for (uint32_t id = 0; id < N_TOKENS; id++)
        ck_assert_int_eq(seen[id], id < 6 && id != CONTROL);
    params.top_k = 0;
    params.top_p = 0.5f;
    check_draws(20);
    params.top_p = 0.0f;
    for (uint32_t draw = 0; draw < 20; draw++)
        ck_assert_uint_eq(sample_at(0, draw).id, 0);
}
END_TEST

/* -- greedy ----------------------------------------------------------------------------------- */

static uint32_t best_legal(void)
{
    uint32_t best = 0;
    for (uint32_t id = 1; id < N_TOKENS; id++) {
        if (!banned[id] && original[id] > original[best])
            best = id;
    }
    return best;
}

START_TEST(temperature_zero_is_the_best_token_wherever_it_is)
{
    params.temperature = 0.0f;
    for (uint32_t id = 0; id < N_TOKENS; id += id < 40 || id > 1480 ? 1 : 13) {
        fill(id, 3.0f);
        original[id] = 9.0f;
        ck_assert_uint_eq(sample(), banned[id] ? best_legal() : id);
    }
}
END_TEST

START_TEST(temperature_zero_ignores_the_cuts)
{
    uint32_t best = best_legal();
    params.temperature = 0.0f;
    const float tops[] = {0.0f, 0.3f, 1.0f};
    const int32_t ks[] = {-1, 0, 1, 2, 1000000000};
    for (int p = 0; p < 3; p++) {
        for (int k = 0; k < 5; k++) {
            params.top_p = tops[p];
            params.top_k = ks[k];
            params.min_p = tops[2 - p];
            ck_assert_uint_eq(sample(), best);
        }
    }
}
END_TEST

START_TEST(equal_best_tokens_give_the_lower_id)
{
    params.temperature = 0.0f;
    original[1200] = original[33] = original[1023] = 50.0f;
    ck_assert_uint_eq(sample(), 33);
    original[33] = -0.0f;
    ck_assert_uint_eq(sample(), 1023);
    for (uint32_t i = 0; i < N_LOGITS; i++)
        original[i] = -3.5f;
    ck_assert_uint_eq(sample(), 0);
}
END_TEST

START_TEST(tiny_temperatures_are_greedy)
{
    const float tiny[] = {1e-5f, 1e-7f, 1e-38f, 1e-45f, (float)5e-324};
    original[700] = original[800] = 20.0f; /* a tie, and a near tie */
    original[600] = nextafterf(20.0f, 0.0f);
    for (int i = 0; i < 5; i++) {
        for (uint32_t draw = 0; draw < 50; draw++) {
            params.temperature = tiny[i];
            params.top_p = draw % 2 ? 0.0001f : 1.0f;
            ck_assert_uint_eq(sample_at(1, draw).id, 700);
        }
    }
}
END_TEST

START_TEST(low_temperatures_do_not_overflow)
{
    for (uint32_t i = 0; i < N_LOGITS; i++)
        original[i] = i % 2 ? -FLT_MAX : 1e30f;
    original[500] = FLT_MAX;
    params.temperature = 2e-5f;
    ck_assert_uint_eq(sample(), 500);
    params.top_p = 0.9f;
    params.top_k = 20;
    params.min_p = 0.5f;
    ck_assert_uint_eq(sample(), 500);
}
END_TEST

/* -- borders of the cuts ---------------------------------------------------------------------- */

START_TEST(cuts_never_leave_nothing)
{
    uint32_t best = best_legal();
    params.top_p = 0.0f;
    ck_assert_uint_eq(sample(), best);
    params.top_p = 1.0f;
    params.min_p = 1.0f;
    ck_assert_uint_eq(sample(), best);
    params.min_p = 0.0f;
    params.top_k = 1;
    ck_assert_uint_eq(sample(), best);
}
END_TEST

START_TEST(a_top_k_of_the_vocabulary_or_more_is_off)
{
    for (uint32_t draw = 0; draw < 30; draw++) {
        params.top_k = 0;
        uint32_t id = sample_at(0, draw).id;
        const int32_t off[] = {-1, N_TOKENS - 2, N_TOKENS, N_LOGITS, 1000000000, INT32_MAX};
        for (int i = 0; i < 6; i++) {
            params.top_k = off[i];
            ck_assert_uint_eq(sample_at(0, draw).id, id);
        }
    }
}
END_TEST

/* -- bans ------------------------------------------------------------------------------------- */

START_TEST(padded_unused_and_control_rows_are_never_sampled)
{
    for (uint32_t i = N_TOKENS; i < N_LOGITS; i++)
        original[i] = 1000.0f;
    original[CONTROL] = original[UNUSED] = 500.0f;
    uint32_t best = best_legal();
    params.n_top_logprobs = SAMPLER_MAX_LOGPROBS;
    for (uint32_t draw = 0; draw < 200; draw++) {
        params.temperature = draw % 2 ? 0.0f : 2.0f;
        struct sampled got = sample_at(2, draw);
        ck_assert(got.id < N_TOKENS && !banned[got.id]);
        ck_assert(draw % 2 == 0 || got.id == best);
        for (uint32_t i = 0; i < got.n_top; i++)
            ck_assert(got.top[i].id < N_TOKENS && !banned[got.top[i].id]);
    }
}
END_TEST

START_TEST(min_tokens_bans_the_ends_until_then)
{
    uint32_t output[5] = {1, 2, 4, 5, 6}, stop_ids[2] = {11, 4000000};
    params.temperature = 0.0f;
    params.min_tokens = 5;
    params.n_stop_ids = 2;
    params.stop_ids = stop_ids;
    original[EOG] = 60.0f;
    original[EOG2] = 50.0f;
    original[11] = 40.0f;
    original[12] = 30.0f;
    for (uint32_t n = 0; n <= 5; n++) {
        struct sampler_history history = {NULL, 0, output, n};
        struct sampled got;
        ck_assert_int_eq(try_sample(&history, 0, n, &got), STATUS_OK);
        ck_assert_uint_eq(got.id, n < 5 ? 12 : EOG);
    }
}
END_TEST

START_TEST(ignore_eos_bans_the_end_but_not_stop_ids)
{
    uint32_t stop_ids[1] = {11};
    params.temperature = 0.0f;
    params.ignore_eos = true;
    params.n_stop_ids = 1;
    params.stop_ids = stop_ids;
    original[EOG] = 60.0f;
    original[11] = 40.0f;
    ck_assert_uint_eq(sample(), 11);
}
END_TEST

/* -- bias and penalties ----------------------------------------------------------------------- */

START_TEST(a_bias_is_added_and_ids_outside_are_ignored)
{
    struct logit_bias bias[] = {{20, 100.0f},       {21, -100.0f},        {N_TOKENS, 100.0f},
                                {N_LOGITS, 100.0f}, {UINT32_MAX, 100.0f}, {CONTROL, 100.0f},
                                {22, 60.0f},        {22, 60.0f}};
    params.temperature = 0.0f;
    params.bias = bias;
    params.n_bias = 1;
    ck_assert_uint_eq(sample(), 20);
    params.n_bias = 7;
    ck_assert_uint_eq(sample(), 20);
    params.n_bias = 8;
    ck_assert_uint_eq(sample(), 22);
}
END_TEST

START_TEST(a_bias_of_minus_100_on_all_still_gives_a_token)
{
    static struct logit_bias bias[N_TOKENS];
    for (uint32_t i = 0; i < N_TOKENS; i++)
        bias[i] = (struct logit_bias){i, -100.0f};
    params.bias = bias;
    params.n_bias = N_TOKENS;
    ck_assert(!banned[sample()]);
    params.temperature = 0.0f;
    ck_assert_uint_eq(sample(), best_legal());
}
END_TEST

START_TEST(penalties_follow_their_formulas)
{
    uint32_t prompt[] = {30, 31, 30, N_TOKENS, CONTROL}, output[] = {31, 32, 32, 32, N_LOGITS};
    const struct sampler_history history = {prompt, 5, output, 5};
    const float starts[] = {4.0f, -4.0f, 0.0f};
    for (int s = 0; s < 3; s++) {
        for (uint32_t id = 30; id < 34; id++)
            original[id] = starts[s];
        params.repetition_penalty = 1.25f;
        params.presence_penalty = 0.5f;
        params.frequency_penalty = -0.25f;
        for (int again = 0; again < 2; again++) { /* nothing is left from the call before */
            struct sampled got;
            ck_assert_int_eq(try_sample(&history, 0, 0, &got), STATUS_OK);
            float scaled = starts[s] > 0.0f ? starts[s] / 1.25f : starts[s] * 1.25f;
            ck_assert_float_eq_tol(logits[30], scaled, 1e-6f);
            ck_assert_float_eq_tol(logits[31], scaled - 0.5f + 0.25f, 1e-6f);
            ck_assert_float_eq_tol(logits[32], scaled - 0.5f + 0.75f, 1e-6f);
            ck_assert_float_eq(logits[33], starts[s]);
        }
        params.repetition_penalty = 1.0f; /* the prompt counts for repetition only */
        struct sampled got;
        ck_assert_int_eq(try_sample(&history, 0, 0, &got), STATUS_OK);
        ck_assert_float_eq(logits[30], starts[s]);
        ck_assert_float_eq_tol(logits[31], starts[s] - 0.5f + 0.25f, 1e-6f);
    }
}
END_TEST

START_TEST(penalties_do_not_overflow)
{
    uint32_t output[] = {50, 51};
    const struct sampler_history history = {NULL, 0, output, 2};
    original[50] = 1e38f;
    original[51] = -1e38f;
    params.temperature = 0.0f;
    params.repetition_penalty = 1e-30f;
    struct sampled got;
    ck_assert_int_eq(try_sample(&history, 0, 0, &got), STATUS_OK);
    ck_assert_uint_eq(got.id, 50);
    params.repetition_penalty = 1e30f;
    ck_assert_int_eq(try_sample(&history, 0, 0, &got), STATUS_OK);
    ck_assert(isfinite(logits[51]));
}
END_TEST

/* -- logprobs --------------------------------------------------------------------------------- */

static double reference_logprob(uint32_t id)
{
    double sum = 0.0, best = original[best_legal()];
    for (uint32_t i = 0; i < N_TOKENS; i++)
        sum += banned[i] && i != id ? 0.0 : exp(original[i] - best);
    return original[id] - best - log(sum);
}

START_TEST(logprobs_are_the_unmodified_softmax)
{
    struct logit_bias bias[] = {{77, 100.0f}};
    params.bias = bias;
    params.n_bias = 1;
    params.temperature = 0.3f;
    params.logprobs = true;
    params.n_top_logprobs = 20;
    struct sampled got = sample_at(0, 0);
    ck_assert_uint_eq(got.id, 77);
    ck_assert_float_eq_tol(got.logprob, (float)reference_logprob(77), 1e-5f);
    ck_assert_uint_eq(got.n_top, 20);
    for (uint32_t i = 0; i < 20; i++) {
        ck_assert_float_eq_tol(got.top[i].logprob, (float)reference_logprob(got.top[i].id), 1e-5f);
        uint32_t better = 0;
        for (uint32_t id = 0; id < N_TOKENS; id++)
            better += !banned[id] && original[id] > original[got.top[i].id];
        ck_assert_uint_eq(better, i);
    }
}
END_TEST

START_TEST(logprobs_do_not_change_what_is_sampled)
{
    for (uint32_t draw = 0; draw < 50; draw++) {
        params.logprobs = false;
        params.n_top_logprobs = 0;
        uint32_t id = sample_at(3, draw).id;
        params.logprobs = true;
        params.n_top_logprobs = draw % 21;
        struct sampled got = sample_at(3, draw);
        ck_assert_uint_eq(got.id, id);
        ck_assert_uint_eq(got.n_top, draw % 21);
        ck_assert(got.logprob < 0.0f && isfinite(got.logprob));
    }
}
END_TEST

START_TEST(equal_alternatives_are_listed_by_id)
{
    for (uint32_t i = 0; i < N_LOGITS; i++)
        original[i] = -1.0f;
    original[1000] = 0.0f;
    struct sampled got;
    ck_assert_int_eq(sampler_logprobs(sampler, original, 5, 6, &got), STATUS_OK);
    const uint32_t ids[] = {1000, 0, 1, 2, 4, 5};
    for (int i = 0; i < 6; i++)
        ck_assert_uint_eq(got.top[i].id, ids[i]);
    for (uint32_t i = 2; i < N_LOGITS; i++)
        original[i] = -INFINITY;
    ck_assert_int_eq(sampler_logprobs(sampler, original, 1, 6, &got), STATUS_OK);
    ck_assert_uint_eq(got.n_top, 2); /* impossible tokens are not listed */
    ck_assert_float_eq_tol(got.logprob, -0.69314718f, 1e-6f);
}
END_TEST

START_TEST(logprobs_of_a_prompt_cover_tokens_that_are_never_sampled)
{
    struct sampled got;
    for (int high = 0; high < 2; high++) {
        original[CONTROL] = high ? 200.0f : -2.0f;
        ck_assert_int_eq(sampler_logprobs(sampler, original, CONTROL, 0, &got), STATUS_OK);
        double right = high ? 0.0 : reference_logprob(CONTROL);
        ck_assert_float_eq_tol(got.logprob, (float)right, 1e-5f);
        ck_assert(got.logprob <= 0.0f);
    }
    ck_assert_int_eq(sampler_logprobs(sampler, original, N_TOKENS, 25, &got), STATUS_OK);
    ck_assert(isinf(got.logprob));
    ck_assert_uint_eq(got.n_top, SAMPLER_MAX_LOGPROBS);
}
END_TEST

START_TEST(a_certain_token_has_logprob_zero)
{
    for (uint32_t i = 0; i < N_LOGITS; i++)
        original[i] = -1000.0f;
    original[123] = 1000.0f;
    params.logprobs = true;
    struct sampled got = sample_at(0, 0);
    ck_assert_uint_eq(got.id, 123);
    ck_assert_float_eq(got.logprob, 0.0f);
}
END_TEST

/* -- bad numbers ------------------------------------------------------------------------------ */

static void expect_bad(void)
{
    struct sampled got = {.id = 4711};
    ck_assert_int_eq(try_sample(&empty_history, 0, 0, &got), STATUS_BAD_LOGITS);
    ck_assert_uint_eq(got.id, 4711); /* untouched */
}

START_TEST(nan_and_infinity_are_an_error_in_legal_rows_only)
{
    const float evil[] = {NAN, -NAN, INFINITY};
    const uint32_t places[] = {0, 1, 15, 16, 1023, 1024, 1487, 1488, 1498, EOG, EOG2};
    for (int e = 0; e < 3; e++) {
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            float kept = original[places[i]];
            original[places[i]] = evil[e];
            for (int mode = 0; mode < 8; mode++) {
                params.temperature = mode & 1 ? 0.0f : 1.0f;
                params.logprobs = (mode & 2) != 0;
                params.ignore_eos = (mode & 4) != 0;
                expect_bad();
            }
            original[places[i]] = kept;
        }
        params.ignore_eos = false;
        original[CONTROL] = original[N_TOKENS] = original[N_LOGITS - 1] = evil[e];
        ck_assert(!banned[sample()]);
    }
}
END_TEST

START_TEST(rows_where_nothing_is_possible_are_an_error)
{
    for (uint32_t i = 0; i < N_TOKENS; i++)
        original[i] = -INFINITY;
    original[CONTROL] = 1.0f;
    expect_bad();
    params.temperature = 0.0f;
    expect_bad();
    struct sampled got;
    ck_assert_int_eq(sampler_logprobs(sampler, original, 1, 1, &got), STATUS_BAD_LOGITS);
    original[EOG] = 1.0f;
    ck_assert_uint_eq(sample(), EOG);
    params.min_tokens = 1;
    expect_bad();
}
END_TEST

START_TEST(a_vocabulary_of_one_works)
{
    uint8_t none[1] = {0};
    struct sampler_vocab vocab = {1, 1, none, none};
    struct sampler *tiny = sampler_new(&vocab);
    for (int mode = 0; mode < 4; mode++) {
        float row[1] = {-5.0f};
        struct sampled got;
        params.temperature = mode & 1 ? 0.0f : 1.0f;
        params.top_p = mode & 2 ? 0.5f : 1.0f;
        params.n_top_logprobs = 3;
        ck_assert_int_eq(sampler_sample(tiny, row, &params, &empty_history, 0, 0, &got), STATUS_OK);
        ck_assert_uint_eq(got.id, 0);
        ck_assert_uint_eq(got.n_top, 1);
    }
    sampler_free(tiny);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD_FIXTURE(suite, "draws", set_up, tear_down, every_draw_is_the_references,
                      frequencies_follow_the_softmax,
                      the_draw_depends_on_seed_stream_and_number_only,
                      among_equals_the_lower_id_is_kept);
    CHECK_ADD_FIXTURE(suite, "greedy", set_up, tear_down,
                      temperature_zero_is_the_best_token_wherever_it_is,
                      temperature_zero_ignores_the_cuts, equal_best_tokens_give_the_lower_id,
                      tiny_temperatures_are_greedy, low_temperatures_do_not_overflow);
    CHECK_ADD_FIXTURE(suite, "cuts", set_up, tear_down, cuts_never_leave_nothing,
                      a_top_k_of_the_vocabulary_or_more_is_off);
    CHECK_ADD_FIXTURE(
        suite, "bans", set_up, tear_down, padded_unused_and_control_rows_are_never_sampled,
        min_tokens_bans_the_ends_until_then, ignore_eos_bans_the_end_but_not_stop_ids);
    CHECK_ADD_FIXTURE(suite, "bias and penalties", set_up, tear_down,
                      a_bias_is_added_and_ids_outside_are_ignored,
                      a_bias_of_minus_100_on_all_still_gives_a_token,
                      penalties_follow_their_formulas, penalties_do_not_overflow);
    CHECK_ADD_FIXTURE(suite, "logprobs", set_up, tear_down, logprobs_are_the_unmodified_softmax,
                      logprobs_do_not_change_what_is_sampled, equal_alternatives_are_listed_by_id,
                      logprobs_of_a_prompt_cover_tokens_that_are_never_sampled,
                      a_certain_token_has_logprob_zero);
    CHECK_ADD_FIXTURE(suite, "bad numbers", set_up, tear_down,
                      nan_and_infinity_are_an_error_in_legal_rows_only,
                      rows_where_nothing_is_possible_are_an_error, a_vocabulary_of_one_works);
}

CHECK_MAIN("sampler", add_cases)
