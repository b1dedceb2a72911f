#include "config.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_main.h"
#include "support/engine_harness.h"
#include "tellerd/base/mem.h"
#include "tellerd/engine/engine.h"

/*
 * Hundreds of mixed requests through a pool that is far too small, with cancels and stops at random
 * moments: whatever was not cancelled must give its undisturbed text, counters only grow, gauges
 * are never negative and are 0 at rest (CAN-05, OPS-02, ENG-01, ENG-06).
 */
enum { KINDS = 24, REQUESTS = 300, IN_FLIGHT = 40 };

static uint32_t draw(unsigned *seed, uint32_t n)
{
    return (uint32_t)rand_r(seed) % n;
}

/* One of KINDS different requests; some share long prefixes. */
static struct gen_request *request_of_kind(uint32_t kind)
{
    unsigned seed = kind * 31 + 7;
    struct gen_request *r = harness_request(kind / 3, 1 + draw(&seed, 90), 1 + draw(&seed, 60));

    r->prompt[r->n_prompt / 2] = 1 + kind;
    r->n_choices = kind % 5 == 0 ? 1 + draw(&seed, 4) : 1;
    r->sampling.temperature = kind % 2 ? 0 : 0.9F;
    r->sampling.seed = kind;
    r->sampling.ignore_eos = kind % 4 == 1;
    r->sampling.logprobs = kind % 3 == 0;
    r->sampling.frequency_penalty = kind % 7 == 0 ? 0.5F : 0;
    if (kind % 6 == 2)
        r->n_prompt_logprobs = 1;
    r->no_prefix_cache = kind % 8 == 3;
    r->cache_salt = kind % 9 == 4;
    if (kind % 10 == 9)
        r->max_tokens = 0;
    return r;
}

/* --- metrics, as a client reads them ------------------------------------------------------ */

struct sample {
    char series[160];
    double value;
};
struct scrape {
    struct sample samples[1024];
    uint32_t n;
};

static void scrape(struct harness *h, struct scrape *ret)
{
    struct buf text;
    char *line, *end;

    buf_init(&text, 1 << 20);
    ck_assert(metrics_expose(h->metrics, &text, false));
    ck_assert_uint_lt(text.len, 64 << 10);
    ret->n = 0;
    for (line = text.data; *line; line = end + 1) {
        char *space;

        end = strchr(line, '\n');
        *end = '\0';
        if (*line == '#')
            continue;
        space = strrchr(line, ' ');
        *space = '\0';
        ck_assert_uint_lt(ret->n, 1024);
        ck_assert_uint_lt(strlen(line), sizeof(ret->samples->series));
        snprintf(ret->samples[ret->n].series, sizeof(ret->samples->series), "%s", line);
        ret->samples[ret->n++].value = strtod(space + 1, NULL);
    }
    buf_done(&text);
}

static double value_of(const struct scrape *s, const char *series)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (strcmp(s->samples[i].series, series) == 0)
            return s->samples[i].value;
    }
    ck_abort_msg("no series %s", series);
    return 0;
}

static bool only_grows(const char *series)
{
    return strstr(series, "_total") || strstr(series, "_bucket") || strstr(series, "_count") ||
           strstr(series, "_sum");
}

static void compare_scrapes(const struct scrape *before, const struct scrape *now)
{
    ck_assert_uint_eq(before->n, now->n);
    for (uint32_t i = 0; i < now->n; i++) {
        const struct sample *a = &before->samples[i], *b = &now->samples[i];

        ck_assert_str_eq(a->series, b->series);
        ck_assert_msg(b->value >= 0, "%s %f", b->series, b->value);
        if (only_grows(b->series))
            ck_assert_msg(b->value >= a->value, "%s fell from %f to %f", b->series, a->value,
                          b->value);
        if (strstr(b->series, "usage"))
            ck_assert_msg(b->value <= 1, "%s %f", b->series, b->value);
    }
}

static void check_rest(const struct scrape *s, double n_accepted, bool has_bank)
{
    double finished = 0;
    static const char *const at_rest[] = {
        "tellerd_requests_running{model=\"test\"}",
        "tellerd_requests_waiting{model=\"test\"}",
        "tellerd_requests_preempted{model=\"test\"}",
        "tellerd_sequences_running{model=\"test\"}",
        "tellerd_kv_blocks{model=\"test\",state=\"used\"}",
        "tellerd_kv_usage_ratio{model=\"test\"}",
        "vllm:num_requests_running{model_name=\"test\",engine=\"0\"}",
        "vllm:num_requests_waiting{model_name=\"test\",engine=\"0\"}",
        "vllm:kv_cache_usage_perc{model_name=\"test\",engine=\"0\"}",
    };

    for (size_t i = 0; i < sizeof(at_rest) / sizeof(*at_rest); i++)
        ck_assert_msg(value_of(s, at_rest[i]) == 0, "%s", at_rest[i]);
    for (int i = FINISH_STOP; i < FINISH_COUNT; i++) {
        char series[160];

        snprintf(series, sizeof(series),
                 "tellerd_requests_finished_total{model=\"test\",finish_reason=\"%s\"}",
                 finish_reason_name((enum finish_reason)i));
        finished += value_of(s, series);
    }
    ck_assert_double_eq(value_of(s, "tellerd_requests_accepted_total{model=\"test\"}"), n_accepted);
    ck_assert_double_eq(finished, n_accepted);
    ck_assert_double_eq(
        value_of(s, "vllm:generation_tokens_total{model_name=\"test\",engine=\"0\"}"),
        value_of(s, "tellerd_generation_tokens_total{model=\"test\"}"));
    ck_assert_double_eq(value_of(s, "tellerd_kv_bytes_per_token{model=\"test\"}"),
                        1024 + 512 + (has_bank ? 4 : 0));
}

/* --- the storm --------------------------------------------------------------------------- */

struct flight {
    uint64_t id;
    uint32_t kind;
    bool is_disturbed;
};

struct storm {
    struct harness h;
    struct outcome *alone[KINDS];
    struct flight flights[REQUESTS];
    uint32_t n_flights;
    unsigned seed;
};

static void submit_one(struct storm *s)
{
    struct flight *f = &s->flights[s->n_flights];
    struct gen_request *r;

    f->kind = draw(&s->seed, KINDS);
    r = request_of_kind(f->kind);
    r->priority = (int32_t)draw(&s->seed, 3) - 1;
    r->tenant = draw(&s->seed, 4);
    f->id = harness_submit(&s->h, r);
    s->n_flights++;
}

static void disturb_one(struct storm *s)
{
    struct flight *f = &s->flights[draw(&s->seed, s->n_flights)];

    if (harness_outcome(&s->h, f->id)->is_done)
        return;
    f->is_disturbed = true;
    if (draw(&s->seed, 3) == 0)
        engine_stop_choice(s->h.engine, f->id, draw(&s->seed, 4));
    else
        engine_cancel(s->h.engine, f->id);
}

static void check_flights(struct storm *s)
{
    uint32_t n_compared = 0;

    for (uint32_t i = 0; i < s->n_flights; i++) {
        const struct outcome *o = harness_outcome(&s->h, s->flights[i].id);

        ck_assert(o->is_done);
        ck_assert_int_ne(o->reason, FINISH_ERROR);
        if (s->flights[i].is_disturbed)
            continue;
        harness_same(o, s->alone[s->flights[i].kind]);
        n_compared++;
    }
    ck_assert_uint_gt(n_compared, s->n_flights / 4);
}

static void storm_run(struct storm *s, uint32_t disturb_of_100)
{
    struct scrape *before = xmalloc(sizeof(*before)), *now = xmalloc(sizeof(*now));

    for (uint32_t kind = 0; kind < KINDS; kind++)
        s->alone[kind] = harness_alone(&s->h, request_of_kind(kind));
    s->h.has_metrics = s->h.config.metrics_vllm = true;
    harness_open(&s->h);
    scrape(&s->h, before);
    while (s->n_flights < REQUESTS) {
        if (s->h.n_open < IN_FLIGHT)
            submit_one(s);
        if (draw(&s->seed, 100) < disturb_of_100)
            disturb_one(s);
        if (draw(&s->seed, 8) == 0) {
            sched_yield();
            harness_poll(&s->h);
        }
        if (draw(&s->seed, 64) == 0) {
            scrape(&s->h, now);
            compare_scrapes(before, now);
            *before = *now;
        }
    }
    harness_wait_all(&s->h);
    check_flights(s);
    scrape(&s->h, now);
    compare_scrapes(before, now);
    check_rest(now, REQUESTS, s->h.script.has_bank);
    ck_assert_uint_gt(harness_stats(&s->h).n_preemptions, 0);
    free(before);
    free(now);
    for (uint32_t kind = 0; kind < KINDS; kind++)
        free(s->alone[kind]);
    harness_close(&s->h);
}

static const struct {
    uint32_t n_blocks, block_size, max_rows, max_logit_rows, max_sequences, chunk, disturb;
    bool has_bank, prefix, collide;
} weathers[] = {
    {14, 16, 64, 12, 8, 32, 20, true, true, false},
    {24, 8, 32, 32, 16, 7, 0, true, true, true},
    {14, 16, 200, 20, 12, 0, 10, false, false, false},
    {40, 8, 24, 24, 24, 16, 30, true, true, false},
};

static struct hash128 poor_hash(const void *bytes, size_t len, uint64_t seed)
{
    struct hash128 hash = hash_bytes(bytes, len, seed);

    return (struct hash128){hash.low % 4, 0};
}

START_TEST(undisturbed_requests_give_their_text_in_any_weather)
{
    struct storm *s = xcalloc(1, sizeof(*s));

    harness_init(&s->h);
    s->seed = 100 + (unsigned)_i;
    s->h.script.n_blocks = weathers[_i].n_blocks;
    s->h.script.block_size = weathers[_i].block_size;
    s->h.script.max_rows = 256;
    s->h.script.max_logit_rows = weathers[_i].max_logit_rows;
    s->h.script.has_bank = s->h.script.has_sink = weathers[_i].has_bank;
    s->h.config.max_batch_tokens = weathers[_i].max_rows;
    s->h.config.max_sequences = weathers[_i].max_sequences;
    s->h.config.prefill_chunk = weathers[_i].chunk;
    s->h.config.prefix_cache = weathers[_i].prefix;
    s->h.config.prefix_hash = weathers[_i].collide ? poor_hash : NULL;
    s->h.config.n_context = (weathers[_i].n_blocks - 1) * weathers[_i].block_size;
    storm_run(s, weathers[_i].disturb);
    free(s);
}
END_TEST

static void add_cases(Suite *suite)
{
    TCase *storms = tcase_create("storms");

    tcase_set_timeout(storms, 240);
    tcase_add_loop_test(storms, undisturbed_requests_give_their_text_in_any_weather, 0,
                        (int)(sizeof(weathers) / sizeof(*weathers)));
    suite_add_tcase(suite, storms);
}

CHECK_MAIN("engine/stress", add_cases)
