#include "config.h"

/*
 * What the API costs for a generated token: the events of a step are given to it as the engine's
 * are, and each of N clients gets its server-sent event through a loopback socket.
 *
 *   bench/api MODEL [--streams N] [--steps N] [--path chat|completions]
 *
 * Prints, for a step and for a token: the thread's processor time in the API (events to bytes) and
 * in the loop's turn (the write), allocations of our own code, and write calls.  The best of ten
 * rounds is shown: others were disturbed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/api_harness.h"
#include "tellerd/base/log.h"
#include "tellerd/base/mem.h"
#include "tellerd/daemon/model_load.h"

enum { ROUNDS = 10 };

struct round {
    uint64_t api_ns, turn_ns, n_writes;
    unsigned long n_allocations;
};

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Write calls of this process so far, as the kernel counts them; 0 where it does not. */
static uint64_t write_calls(void)
{
    unsigned long long n = 0;
    char line[256];
    FILE *file = fopen("/proc/self/io", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "syscw: %llu", &n) == 1)
            break;
    if (file)
        fclose(file);
    return n;
}

static size_t read_away(const int *fds, uint32_t n)
{
    static char bytes[1 << 16];
    size_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        ssize_t got;
        while ((got = read(fds[i], bytes, sizeof bytes)) > 0)
            total += (size_t)got;
    }
    return total;
}

static struct round run_round(struct api_harness *h, const int *fds, uint32_t n_streams,
                              uint32_t n_steps, size_t *ret_bytes)
{
    struct round round = {0};
    uint32_t n_tokens = 200; /* ids of ordinary words and letters */
    for (uint32_t step = 0; step < n_steps; step++) {
        for (uint32_t i = 0; i < n_streams; i++)
            api_harness_token(h, i, 300 + (step * 7 + i) % n_tokens);
        struct queue_node *first = h->first;
        h->first = h->last = NULL;
        uint64_t writes = write_calls();
        unsigned long allocations = api_harness_allocations();
        uint64_t start = cpu_ns();
        api_engine_events(h->api, first);
        uint64_t middle = cpu_ns();
        uv_run(&h->loop, UV_RUN_NOWAIT);
        uint64_t end = cpu_ns();
        round.api_ns += middle - start;
        round.turn_ns += end - middle;
        round.n_allocations += api_harness_allocations() - allocations;
        round.n_writes += write_calls() - writes;
        *ret_bytes += read_away(fds, n_streams);
    }
    return round;
}

static void measure(const struct loaded_model *model, uint32_t n_streams, uint32_t n_steps,
                    bool chat)
{
    struct api_harness h;
    int fds[API_HARNESS_STREAMS];
    size_t bytes = 0;
    struct round best = {0};
    api_harness_open(&h, model->tokenizer, model->chat);
    for (uint32_t i = 0; i < n_streams; i++)
        fds[i] = chat ? api_harness_post(&h, "/v1/chat/completions",
                                         "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"
                                         "\"stream\":true,\"max_tokens\":100000}")
                      : api_harness_post(&h, "/v1/completions",
                                         "{\"prompt\":\"hi\",\"stream\":true,"
                                         "\"max_tokens\":100000}");
    REQUIRE(h.n_submitted == n_streams);
    run_round(&h, fds, n_streams, 10, &bytes); /* heads, first buffers */
    bytes = 0;
    for (int r = 0; r < ROUNDS; r++) {
        struct round round = run_round(&h, fds, n_streams, n_steps, &bytes);
        if (r == 0 || round.api_ns + round.turn_ns < best.api_ns + best.turn_ns)
            best = round;
    }
    double n = (double)n_steps * n_streams;
    printf("%4u streams: %6.0f ns/token (api %5.0f, write %6.0f), %.3f allocations/token, "
           "%.3f writes/stream and turn, %.0f bytes/token\n",
           n_streams, (double)(best.api_ns + best.turn_ns) / n, (double)best.api_ns / n,
           (double)best.turn_ns / n, (double)best.n_allocations / n, (double)best.n_writes / n,
           (double)bytes / n / ROUNDS);
    for (uint32_t i = 0; i < n_streams; i++)
        api_harness_end(&h, i, FINISH_LENGTH);
    api_harness_deliver(&h);
    for (uint32_t i = 0; i < n_streams; i++)
        close(fds[i]);
    api_harness_close(&h);
}

int main(int argc, char **argv)
{
    static struct config config; /* zeros, but for the model */
    struct loaded_model model;
    struct error err = {0};
    unsigned long n_streams = 0, n_steps = 500;
    bool chat = true;
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--streams") == 0)
            n_streams = strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--steps") == 0)
            n_steps = strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--path") == 0)
            chat = strcmp(argv[i + 1], "chat") == 0;
        else
            argc = 0;
    }
    if (argc < 2 || argc % 2 || n_streams > API_HARNESS_STREAMS || n_steps == 0) {
        fprintf(stderr, "usage: bench/api MODEL [--streams N] [--steps N] "
                        "[--path chat|completions]\n");
        return 2;
    }
    log_init(LOG_ERROR, LOG_TEXT);
    config.model = argv[1];
    static char no_name[1];
    config.model_name = no_name;
    if (model_load_text(&config, &model, &err) != STATUS_OK) {
        fprintf(stderr, "bench/api: %s\n", err.text);
        return 1;
    }
    static const uint32_t usual[] = {1, 16, 64, 256};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (n_streams == 0 || i == 0)
            measure(&model, n_streams ? (uint32_t)n_streams : usual[i], (uint32_t)n_steps, chat);
    model_unload(&model);
    return 0;
}
