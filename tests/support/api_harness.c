#include "config.h"

#include "support/api_harness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tellerd/base/mem.h"

/* --- in place of the engine, and around the allocator: the linker's --wrap ------------------ */

static struct api_harness *harness; /* the one that is open */
static unsigned long n_allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
enum status __wrap_engine_submit(struct engine *engine, struct gen_request *request,
                                 struct error *err);
void __wrap_engine_cancel(struct engine *engine, uint64_t id);
void __wrap_engine_stop_choice(struct engine *engine, uint64_t id, uint32_t choice);
uint32_t __wrap_engine_context(const struct engine *engine);
void __wrap_engine_stats(const struct engine *engine, struct engine_stats *ret);

void *__wrap_malloc(size_t size)
{
    n_allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    n_allocations++;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    n_allocations++;
    return __real_realloc(block, size);
}

enum status __wrap_engine_submit(struct engine *engine, struct gen_request *request,
                                 struct error *err)
{
    (void)engine;
    (void)err;
    REQUIRE(harness->n_submitted < API_HARNESS_STREAMS);
    harness->ids[harness->n_submitted] = request->id;
    harness->users[harness->n_submitted++] = request->user;
    gen_request_free(request);
    return STATUS_OK;
}

void __wrap_engine_cancel(struct engine *engine, uint64_t id)
{
    (void)engine;
    (void)id;
    harness->n_cancelled++;
}

void __wrap_engine_stop_choice(struct engine *engine, uint64_t id, uint32_t choice)
{
    (void)engine;
    (void)id;
    (void)choice;
}

uint32_t __wrap_engine_context(const struct engine *engine)
{
    (void)engine;
    return 1 << 20;
}

void __wrap_engine_stats(const struct engine *engine, struct engine_stats *ret)
{
    (void)engine;
    *ret = (struct engine_stats){.idle = true};
}

unsigned long api_harness_allocations(void)
{
    return n_allocations;
}

/* --- the parts ------------------------------------------------------------------------------ */

static void run_job(void *ctx, struct api_job *job)
{
    struct api_harness *h = ctx;
    if (h->holds_jobs) {
        REQUIRE(!h->held_job);
        h->held_job = job;
        return;
    }
    job->work(job);
    job->done(job);
}

void api_harness_run_job(struct api_harness *h)
{
    struct api_job *job = h->held_job;
    REQUIRE(job);
    h->held_job = NULL;
    job->work(job);
    job->done(job);
}

static void listen_anywhere(struct api_harness *h)
{
    struct error err = {0};
    unsigned port;
    h->address = (struct sockaddr_in){.sin_family = AF_INET};
    h->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(http_server_listen_tcp(h->http, (const struct sockaddr *)&h->address, API_LISTENER_MAIN,
                                   &err) == STATUS_OK);
    REQUIRE(sscanf(http_server_address(h->http, 0), "http://127.0.0.1:%u", &port) == 1);
    h->address.sin_port = htons((uint16_t)port);
}

void api_harness_open(struct api_harness *h, const struct tokenizer *tokenizer,
                      const struct chat_template *chat)
{
    static const struct generation_defaults defaults = {-1, -1, -1, -1, -1};
    const struct api_config config = {.max_body_bytes = 1 << 25, .version = "0"};
    const struct api_hooks hooks = {.run_job = run_job, .ctx = h};
    const struct http_limits limits = {
        .parse = {.max_header_bytes = 65536,
                  .max_line_bytes = 8192,
                  .max_headers = 100,
                  .max_body_bytes = 1 << 25},
        .max_connections = 100000,
        .max_requests = 1000000000,
        .header_timeout_ns = UINT64_MAX / 4,
        .body_timeout_ns = UINT64_MAX / 4,
        .idle_timeout_ns = UINT64_MAX / 4,
        .write_timeout_ns = UINT64_MAX / 4,
        .max_output_buffer = 1 << 20,
    };
    memset(h, 0, sizeof *h);
    harness = h;
    REQUIRE(uv_loop_init(&h->loop) == 0);
    h->metrics = metrics_new();
    h->api = api_new(&config, &hooks, h->metrics);
    struct http_handler handler = api_handler(h->api);
    h->http = http_server_new(&h->loop, &limits, &handler);
    listen_anywhere(h);
    struct api_model model = {
        .id = "harness-model-135m",
        .engine = (struct engine *)h, /* never followed */
        .tokenizer = tokenizer,
        .chat = chat,
        .no_chat_reason = "no template",
        .defaults = &defaults,
        .fingerprint = 0x1234abcd,
    };
    api_set_model(h->api, &model);
}

static void on_closed(void *ctx)
{
    (void)ctx;
}

void api_harness_close(struct api_harness *h)
{
    http_server_close(h->http, on_closed, NULL);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    http_server_free(h->http);
    api_free(h->api);
    metrics_free(h->metrics);
    REQUIRE(uv_loop_close(&h->loop) == 0);
    harness = NULL;
}

/* --- use ------------------------------------------------------------------------------------ */

void api_harness_turn(struct api_harness *h)
{
    for (int i = 0; i < 4; i++) /* accept, read, answer, write */
        uv_run(&h->loop, UV_RUN_NOWAIT);
}

int api_harness_post(struct api_harness *h, const char *path, const char *body)
{
    char request[API_HARNESS_BODY_MAX + 1024];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int n = snprintf(request, sizeof request,
                     "POST %s HTTP/1.1\r\nHost: h\r\nContent-Length: %zu\r\n\r\n%s", path,
                     strlen(body), body);
    REQUIRE(fd >= 0 && n > 0 && (size_t)n < sizeof request);
    REQUIRE(connect(fd, (const struct sockaddr *)&h->address, sizeof h->address) == 0);
    REQUIRE(write(fd, request, (size_t)n) == n);
    REQUIRE(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    for (uint32_t before = h->n_submitted, i = 0;
         h->n_submitted == before && !h->held_job && i < 1000; i++)
        uv_run(&h->loop, UV_RUN_NOWAIT);
    return fd;
}

static struct engine_event *add_event(struct api_harness *h, uint32_t i,
                                      enum engine_event_kind kind)
{
    struct engine_event *event = __real_calloc(1, sizeof *event);
    REQUIRE(event && i < h->n_submitted);
    event->kind = kind;
    event->request_id = h->ids[i];
    event->user = h->users[i];
    event->time_ns = 1;
    if (h->last)
        h->last->next = &event->node;
    else
        h->first = &event->node;
    h->last = &event->node;
    return event;
}

void api_harness_token(struct api_harness *h, uint32_t i, uint32_t id)
{
    add_event(h, i, EVENT_TOKEN)->token.id = id;
}

void api_harness_end(struct api_harness *h, uint32_t i, enum finish_reason reason)
{
    add_event(h, i, EVENT_CHOICE_DONE)->reason = reason;
    add_event(h, i, EVENT_DONE)->reason = reason;
}

void api_harness_deliver(struct api_harness *h)
{
    struct queue_node *first = h->first;
    h->first = h->last = NULL;
    api_engine_events(h->api, first);
    uv_run(&h->loop, UV_RUN_NOWAIT);
}
