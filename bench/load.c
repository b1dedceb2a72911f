#include "config.h"

/*
 * Closed-loop load over an OpenAI-style streaming endpoint: each of N workers sends its next
 * request as soon as its last one ended.  One line of JSON a level of concurrency.
 *
 *   bench/load --url http://127.0.0.1:8000 [--concurrency 1,8,16] [--requests N]
 *              [--prompt-tokens N] [--max-tokens N] [--shared-prefix N] [--seed N]
 *              [--temperature X] [--endpoint completions|chat] [--model NAME] [--extra JSON]
 *              [--api-key KEY] [--time-limit SECONDS] [--allow-remote]
 *
 * Requests of a level: --requests, else four for each worker (two from 16 workers on).
 *
 *   ttft   first byte of the request sent -> first event that carries text
 *   itl    gap between events with text of one request (events of one read share a time)
 *   tpot   (last - first event with text) / (completion tokens - 1), of one request
 *   gen_tok_s         all completion tokens / (first send -> last end)
 *   gen_tok_s_steady  the same while at least 90 % of the workers were busy
 *
 * Token counts are the server's (usage), else the number of events with text.  Prompts are random
 * common words, about one token each, different from the first word on, so that a prefix cache
 * helps only with --shared-prefix.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <llhttp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "tellerd/base/buf.h"
#include "tellerd/base/mem.h"
#include "tellerd/base/rng.h"

static const char *const words[] = {
    "time",     "year",    "people",   "way",       "day",        "man",    "thing",   "woman",
    "life",     "child",   "world",    "school",    "state",      "family", "student", "group",
    "country",  "problem", "hand",     "part",      "place",      "case",   "week",    "company",
    "system",   "program", "question", "work",      "government", "number", "night",   "point",
    "home",     "water",   "room",     "mother",    "area",       "money",  "story",   "fact",
    "month",    "lot",     "right",    "study",     "book",       "eye",    "job",     "word",
    "business", "issue",   "side",     "kind",      "head",       "house",  "service", "friend",
    "father",   "power",   "hour",     "game",      "line",       "end",    "member",  "law",
    "car",      "city",    "name",     "president", "team",       "minute", "idea",    "body",
    "back",     "parent",  "face",     "level",     "office",     "door",   "health",  "person",
    "art",      "war",     "history",  "party",     "result",     "change", "morning", "reason",
};
enum { N_WORDS = sizeof words / sizeof words[0], MAX_LEVELS = 32, SHARED_STREAM = 1 << 30 };

static struct {
    char host[64];
    int port;
    const char *model, *extra, *api_key, *endpoint;
    uint32_t levels[MAX_LEVELS], n_levels, requests, prompt_tokens, max_tokens, shared_prefix;
    uint64_t seed;
    double temperature, time_limit;
    bool allow_remote;
} options = {.host = "127.0.0.1",
             .port = 8000,

             .endpoint = "completions",
             .levels = {1},
             .n_levels = 1,
             .prompt_tokens = 128,
             .max_tokens = 128,
             .seed = 1,
             .time_limit = 600};

/* What became of one request. Times in seconds since the level began. */
struct record {
    double sent, ended, *events; /* of events with text */
    uint32_t n_events, cap_events;
    long prompt_tokens, completion_tokens; /* as the server said, or 0 */
    int status;
    char error[160];
};

struct worker {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    llhttp_t parser;
    struct buf request, line;
    struct record *record;
    struct level *level;
    bool is_open;
};

/* One level of concurrency. */
struct level {
    uv_loop_t *loop;
    uv_timer_t limit;
    struct worker *workers;
    struct record *records;
    uint32_t n_workers, n_requests, n_started, n_idle;
    uint64_t began_ns;
    uint64_t stream; /* so that no two levels send the same prompts */
};

static llhttp_settings_t parser_settings;

static double now_of(const struct level *level)
{
    return (double)(uv_hrtime() - level->began_ns) * 1e-9;
}

static void fail(struct record *record, const char *what)
{
    if (!record->error[0])
        snprintf(record->error, sizeof record->error, "%s", what);
}

/* ---- requests ---------------------------------------------------------------------------------
 */

static char *prompt_of(uint64_t stream, uint32_t request)
{
    struct buf text;
    buf_init(&text, SIZE_MAX);
    for (uint32_t i = 0; i < options.prompt_tokens; i++) {
        bool shared = i < options.shared_prefix;
        uint64_t from = shared ? SHARED_STREAM : (stream << 32) + request;
        buf_add_str(&text, i ? " " : "");
        buf_add_str(&text, words[rng_u32(options.seed, from, i) % N_WORDS]);
    }
    return buf_take(&text, NULL);
}

static void request_write(struct worker *w, uint32_t index)
{
    char *prompt = prompt_of(w->level->stream, index);
    bool chat = strcmp(options.endpoint, "chat") == 0;
    json_t *body =
        json_pack("{s:s*, s:i, s:b, s:{s:b}, s:b, s:f}", "model", options.model, "max_tokens",
                  (int)options.max_tokens, "stream", 1, "stream_options", "include_usage", 1,
                  "ignore_eos", 1, "temperature", options.temperature);
    if (chat)
        json_object_set_new(body, "messages",
                            json_pack("[{s:s, s:s}]", "role", "user", "content", prompt));
    else
        json_object_set_new(body, "prompt", json_string(prompt));
    if (options.extra) {
        json_t *extra = json_loads(options.extra, 0, NULL);
        json_object_update(body, extra);
        json_decref(extra);
    }
    char *text = json_dumps(body, JSON_COMPACT);
    buf_reset(&w->request);
    buf_printf(&w->request,
               "POST /v1/%s HTTP/1.1\r\nHost: %s:%d\r\nContent-Type: application/json\r\n"
               "Accept: text/event-stream\r\nConnection: close\r\n%s%s%sContent-Length: %zu\r\n"
               "\r\n%s",
               chat ? "chat/completions" : "completions", options.host, options.port,
               options.api_key ? "Authorization: Bearer " : "",
               options.api_key ? options.api_key : "", options.api_key ? "\r\n" : "", strlen(text),
               text);
    free(text);
    free(prompt);
    json_decref(body);
}

/* ---- answers ----------------------------------------------------------------------------------
 */

static bool contains(const char *line, size_t n, const char *what)
{
    return memmem(line, n, what, strlen(what)) != NULL;
}

/* The number after "NAME": in an event that holds the usage. */
static long number_after(const char *line, const char *name)
{
    const char *at = strstr(line, name);
    return at ? strtol(at + strlen(name) + strspn(at + strlen(name), "\": "), NULL, 10) : 0;
}

/* Is there text in the event?  The servers at hand write no space after the colon, or one. */
static bool has_text(const char *line, size_t n)
{
    static const char *const keys[] = {"\"text\":", "\"content\":"};
    for (int i = 0; i < 2; i++) {
        const char *at = memmem(line, n, keys[i], strlen(keys[i]));
        if (!at)
            continue;
        at += strlen(keys[i]);
        at += *at == ' ';
        return at[0] == '"' && at[1] != '"';
    }
    return false;
}

static void add_event(struct record *record, double at)
{
    if (record->n_events == record->cap_events) {
        record->cap_events = record->cap_events ? 2 * record->cap_events : 128;
        record->events = xreallocarray(record->events, record->cap_events, sizeof(double));
    }
    record->events[record->n_events++] = at;
}

/* One line, NUL behind it. */
static void on_line(struct worker *w, const char *line, size_t n, double at)
{
    struct record *record = w->record;
    if (record->status != 200) {
        fail(record, line);
        return;
    }
    if (n < 5 || memcmp(line, "data:", 5) != 0)
        return;
    if (has_text(line, n))
        add_event(record, at);
    if (contains(line, n, "\"usage\":{") || contains(line, n, "\"usage\": {")) {
        record->prompt_tokens = number_after(line, "\"prompt_tokens\"");
        record->completion_tokens = number_after(line, "\"completion_tokens\"");
    }
    if (contains(line, n, "\"error\":{"))
        fail(record, line);
}

static int on_body(llhttp_t *parser, const char *at, size_t n)
{
    struct worker *w = parser->data;
    double now = now_of(w->level);
    w->record->status = parser->status_code;
    while (n > 0) {
        const char *end = memchr(at, '\n', n);
        size_t take = end ? (size_t)(end - at) : n;
        buf_add(&w->line, at, take);
        if (!end)
            return 0;
        if (take == 0 && w->line.len == 0) { /* an empty line */
            at++;
            n--;
            continue;
        }
        on_line(w, w->line.data, w->line.len, now);
        buf_reset(&w->line);
        at = end + 1;
        n -= take + 1;
    }
    return 0;
}

static int on_complete(llhttp_t *parser)
{
    struct worker *w = parser->data;
    w->record->status = parser->status_code;
    if (w->line.len > 0) {
        on_line(w, w->line.data, w->line.len, now_of(w->level));
    }
    return HPE_PAUSED; /* the answer is whole: no more is read */
}

/* ---- connections ------------------------------------------------------------------------------
 */

static void worker_next(struct worker *w);

static void on_closed(uv_handle_t *handle)
{
    struct worker *w = handle->data;
    w->is_open = false;
    worker_next(w);
}

static void finish(struct worker *w, const char *error)
{
    if (uv_is_closing((uv_handle_t *)&w->tcp))
        return;
    w->record->ended = now_of(w->level);
    if (error)
        fail(w->record, error);
    else if (w->record->status == 200 && w->record->n_events == 0)
        fail(w->record, "no event with text");
    uv_close((uv_handle_t *)&w->tcp, on_closed);
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf)
{
    static char bytes[1 << 16]; /* used up before the next read */
    (void)handle;
    (void)hint;
    *buf = uv_buf_init(bytes, sizeof bytes);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct worker *w = stream->data;
    if (n < 0) {
        finish(w, uv_strerror((int)n));
        return;
    }
    llhttp_errno_t code = llhttp_execute(&w->parser, buf->base, (size_t)n);
    if (code == HPE_PAUSED)
        finish(w, NULL);
    else if (code != HPE_OK)
        finish(w, llhttp_errno_name(code));
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct worker *w = connect->handle->data;
    if (status == UV_ECANCELED)
        return;
    w->record->sent = now_of(w->level);
    uv_buf_t bytes = uv_buf_init(w->request.data, (unsigned)w->request.len);
    if (status < 0)
        finish(w, uv_strerror(status));
    else if (uv_write(&w->write, connect->handle, &bytes, 1, NULL) < 0 ||
             uv_read_start(connect->handle, on_alloc, on_read) < 0)
        finish(w, "cannot send");
}

static void worker_next(struct worker *w)
{
    struct level *level = w->level;
    if (level->n_started == level->n_requests) {
        if (++level->n_idle == level->n_workers)
            uv_close((uv_handle_t *)&level->limit, NULL);
        return;
    }
    uint32_t index = level->n_started++;
    w->record = &level->records[index];
    buf_reset(&w->line);
    request_write(w, index);
    llhttp_init(&w->parser, HTTP_RESPONSE, &parser_settings);
    w->parser.data = w;
    struct sockaddr_storage address;
    if (strchr(options.host, ':'))
        uv_ip6_addr(options.host, options.port, (struct sockaddr_in6 *)&address);
    else
        uv_ip4_addr(options.host, options.port, (struct sockaddr_in *)&address);
    uv_tcp_init(level->loop, &w->tcp);
    uv_tcp_nodelay(&w->tcp, 1);
    w->tcp.data = w;
    w->is_open = true;
    int status = uv_tcp_connect(&w->connect, &w->tcp, (struct sockaddr *)&address, on_connected);
    if (status < 0)
        finish(w, uv_strerror(status));
}

/* Time is up: what runs has failed, and nothing more is sent. */
static void on_limit(uv_timer_t *timer)
{
    struct level *level = timer->data;
    level->n_requests = level->n_started;
    for (uint32_t i = 0; i < level->n_workers; i++) {
        if (level->workers[i].is_open)
            finish(&level->workers[i], "time limit");
    }
}

/* ---- figures ----------------------------------------------------------------------------------
 */

struct values {
    double *at;
    size_t n, cap;
};

static void values_add(struct values *v, double x)
{
    if (v->n == v->cap) {
        v->cap = v->cap ? 2 * v->cap : 1024;
        v->at = xreallocarray(v->at, v->cap, sizeof(double));
    }
    v->at[v->n++] = x;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Percentile p of sorted values, between neighbours in proportion. */
static double percentile(const struct values *v, double p)
{
    double k = (double)(v->n - 1) * p / 100;
    size_t below = (size_t)k, above = below + 1 < v->n ? below + 1 : below;
    return v->at[below] + (v->at[above] - v->at[below]) * (k - (double)below);
}

/* Milliseconds, rounded to 10 us; frees the values. */
static json_t *summary(struct values *v)
{
    json_t *ret = json_object();
    static const int points[] = {50, 90, 99};
    double sum = 0;
    if (v->n == 0)
        return ret;
    qsort(v->at, v->n, sizeof(double), compare);
    for (size_t i = 0; i < v->n; i++)
        sum += v->at[i];
    json_object_set_new(ret, "mean", json_real(round(sum / (double)v->n * 1e5) / 100));
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        char name[8];
        snprintf(name, sizeof name, "p%d", points[i]);
        json_object_set_new(ret, name, json_real(round(percentile(v, points[i]) * 1e5) / 100));
    }
    json_object_set_new(ret, "max", json_real(round(v->at[v->n - 1] * 1e5) / 100));
    free(v->at);
    return ret;
}

static bool is_good(const struct record *r)
{
    return r->status == 200 && !r->error[0];
}

static long completion_of(const struct record *r)
{
    return r->completion_tokens > 0 ? r->completion_tokens : (long)r->n_events;
}

/* Tokens a second between the moment when 90 % of the workers became busy and the one when they
 * no longer were; `scale`: tokens of an event.  0 when there is no such time. */
static double steady(const struct level *level, double scale)
{
    struct values begins = {0}, ends = {0};
    for (uint32_t i = 0; i < level->n_started; i++) {
        if (is_good(&level->records[i])) {
            values_add(&begins, level->records[i].sent);
            values_add(&ends, level->records[i].ended);
        }
    }
    size_t need = (size_t)(0.9 * level->n_workers);
    need = need > 0 ? need : 1;
    if (begins.n < need)
        return 0;
    qsort(begins.at, begins.n, sizeof(double), compare);
    qsort(ends.at, ends.n, sizeof(double), compare);
    double from = begins.at[need - 1], to = ends.at[ends.n - need];
    size_t n = 0;
    for (uint32_t i = 0; i < level->n_started; i++) {
        const struct record *r = &level->records[i];
        for (uint32_t j = 0; is_good(r) && j < r->n_events; j++)
            n += r->events[j] >= from && r->events[j] <= to;
    }
    free(begins.at);
    free(ends.at);
    return to > from ? scale * (double)n / (to - from) : 0;
}

static double rounded(double x)
{
    return round(x * 10) / 10;
}

static void print_level(const struct level *level, double cpu_s)
{
    struct values ttft = {0}, itl = {0}, tpot = {0}, whole = {0};
    long prompt = 0, completion = 0, events = 0, good = 0;
    double wall = 0;
    json_t *errors = json_object();
    for (uint32_t i = 0; i < level->n_started; i++) {
        const struct record *r = &level->records[i];
        wall = r->ended > wall ? r->ended : wall;
        if (!is_good(r)) {
            char name[200];
            snprintf(name, sizeof name, "%d %s", r->status, r->error);
            json_t *count = json_object_get(errors, name);
            json_object_set_new(errors, name, json_integer(json_integer_value(count) + 1));
            continue;
        }
        good++;
        prompt += r->prompt_tokens;
        completion += completion_of(r);
        events += r->n_events;
        values_add(&ttft, r->events[0] - r->sent);
        values_add(&whole, r->ended - r->sent);
        for (uint32_t j = 1; j < r->n_events; j++)
            values_add(&itl, r->events[j] - r->events[j - 1]);
        if (completion_of(r) > 1)
            values_add(&tpot, (r->events[r->n_events - 1] - r->events[0]) /
                                  (double)(completion_of(r) - 1));
    }
    double scale = events ? (double)completion / (double)events : 1;
    json_t *out = json_pack(
        "{s:i, s:i, s:i, s:o, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:f}",
        "concurrency", (int)level->n_workers, "requests", (int)level->n_requests, "ok", (int)good,
        "errors", errors, "prompt_tokens", (int)prompt, "completion_tokens", (int)completion,
        "text_events", (int)events, "wall_s", wall, "gen_tok_s", rounded((double)completion / wall),
        "gen_tok_s_steady", rounded(steady(level, scale)), "prompt_tok_s",
        rounded((double)prompt / wall), "req_s", (double)good / wall, "ttft_ms", summary(&ttft),
        "itl_ms", summary(&itl), "tpot_ms", summary(&tpot), "e2e_ms", summary(&whole),
        "client_cpu_s", cpu_s);
    char *text = json_dumps(out, JSON_COMPACT | JSON_REAL_PRECISION(7));
    puts(text);
    fflush(stdout);
    free(text);
    json_decref(out);
}

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Runs a level; false when a request failed. */
static bool run_level(uint32_t n_workers, uint64_t stream, double time_limit)
{
    uint32_t n = options.requests ? options.requests : n_workers * (n_workers < 16 ? 4 : 2);
    struct level level = {.loop = uv_default_loop(),
                          .n_workers = n_workers < n ? n_workers : n,
                          .n_requests = n,
                          .stream = stream,
                          .began_ns = uv_hrtime()};
    double cpu = cpu_now();
    bool all_good = true;
    level.workers = xcalloc(level.n_workers, sizeof *level.workers);
    level.records = xcalloc(n, sizeof *level.records);
    uv_timer_init(level.loop, &level.limit);
    level.limit.data = &level;
    uv_timer_start(&level.limit, on_limit, (uint64_t)(time_limit * 1000), 0);
    for (uint32_t i = 0; i < level.n_workers; i++) {
        level.workers[i].level = &level;
        buf_init(&level.workers[i].request, SIZE_MAX);
        buf_init(&level.workers[i].line, SIZE_MAX);
        worker_next(&level.workers[i]);
    }
    uv_run(level.loop, UV_RUN_DEFAULT);
    print_level(&level, cpu_now() - cpu);
    for (uint32_t i = 0; i < n; i++) {
        all_good &= is_good(&level.records[i]);
        free(level.records[i].events);
    }
    for (uint32_t i = 0; i < level.n_workers; i++) {
        buf_done(&level.workers[i].request);
        buf_done(&level.workers[i].line);
    }
    free(level.workers);
    free(level.records);
    return all_good;
}

/* ---- options ----------------------------------------------------------------------------------
 */

static void usage(const char *what)
{
    fprintf(stderr, "bench/load: %s; see the head of bench/load.c\n", what);
    exit(2);
}

static void read_url(const char *url)
{
    struct in_addr v4;
    char rest[8];
    if (sscanf(url, "http://[%63[^]]]:%d%7s", options.host, &options.port, rest) < 2 &&
        sscanf(url, "http://%63[^:/]:%d%7s", options.host, &options.port, rest) < 2)
        usage("--url is http://ADDRESS:PORT");
    if (strcmp(options.host, "localhost") == 0)
        strcpy(options.host, "127.0.0.1");
    bool local = strcmp(options.host, "::1") == 0 ||
                 (inet_pton(AF_INET, options.host, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127);
    if (!local && !options.allow_remote)
        usage("loopback addresses only, unless --allow-remote is given first");
}

static uint32_t count_of(const char *text, uint32_t least)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (end == text || (*end && *end != ',') || n < least || n > 1000000)
        usage("a number is out of range");
    return (uint32_t)n;
}

static void read_levels(const char *text)
{
    options.n_levels = 0;
    for (; text; text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL) {
        if (options.n_levels == MAX_LEVELS)
            usage("too many levels");
        options.levels[options.n_levels++] = count_of(text, 1);
    }
}

static void read_options(int argc, char **argv)
{
    enum {
        URL,
        CONCURRENCY,
        REQUESTS,
        PROMPT,
        MAX,
        SHARED,
        SEED,
        TEMPERATURE,
        ENDPOINT,
        MODEL,
        EXTRA,
        KEY,
        LIMIT,
        REMOTE
    };
    static const struct option table[] = {{"url", 1, NULL, URL},
                                          {"concurrency", 1, NULL, CONCURRENCY},
                                          {"requests", 1, NULL, REQUESTS},
                                          {"prompt-tokens", 1, NULL, PROMPT},
                                          {"max-tokens", 1, NULL, MAX},
                                          {"shared-prefix", 1, NULL, SHARED},
                                          {"seed", 1, NULL, SEED},
                                          {"temperature", 1, NULL, TEMPERATURE},
                                          {"endpoint", 1, NULL, ENDPOINT},
                                          {"model", 1, NULL, MODEL},
                                          {"extra", 1, NULL, EXTRA},
                                          {"api-key", 1, NULL, KEY},
                                          {"time-limit", 1, NULL, LIMIT},
                                          {"allow-remote", 0, NULL, REMOTE},
                                          {NULL, 0, NULL, 0}};
    for (int o; (o = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        switch (o) {
        case URL:
            read_url(optarg);
            break;
        case CONCURRENCY:
            read_levels(optarg);
            break;
        case REQUESTS:
            options.requests = count_of(optarg, 1);
            break;
        case PROMPT:
            options.prompt_tokens = count_of(optarg, 1);
            break;
        case MAX:
            options.max_tokens = count_of(optarg, 1);
            break;
        case SHARED:
            options.shared_prefix = count_of(optarg, 0);
            break;
        case SEED:
            options.seed = count_of(optarg, 0);
            break;
        case TEMPERATURE:
            options.temperature = atof(optarg);
            break;
        case ENDPOINT:
            options.endpoint = optarg;
            break;
        case MODEL:
            options.model = optarg;
            break;
        case EXTRA:
            options.extra = optarg;
            break;
        case KEY:
            options.api_key = optarg;
            break;
        case LIMIT:
            options.time_limit = atof(optarg);
            break;
        case REMOTE:
            options.allow_remote = true;
            break;
        default:
            usage("unknown option");
        }
    }
    json_t *extra = options.extra ? json_loads(options.extra, 0, NULL) : NULL;
    if (options.extra && !json_is_object(extra))
        usage("--extra is a JSON object");
    json_decref(extra);
    if (optind < argc || !(options.time_limit > 0))
        usage("unknown argument, or a time limit that is none");
}

int main(int argc, char **argv)
{
    bool all_good = true;
    read_options(argc, argv);
    llhttp_settings_init(&parser_settings);
    parser_settings.on_body = on_body;
    parser_settings.on_message_complete = on_complete;
    double left = options.time_limit;
    for (uint32_t i = 0; i < options.n_levels && left > 0; i++) {
        uint64_t start = uv_hrtime();
        all_good &= run_level(options.levels[i], i + 1, left);
        left -= (double)(uv_hrtime() - start) * 1e-9;
    }
    uv_loop_close(uv_default_loop());
    return all_good ? 0 : 1;
}
