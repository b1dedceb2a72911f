#include "config.h"

/*
 * What the machine can do, as JSON: bytes a second that can be read (from memory and from caches)
 * and products a second by data type, with 1 thread and with all.  Figures of other benches are
 * given as shares of these.  The best of several short runs is shown: others were disturbed.
 *
 *   bench/limits [--threads N]
 *
 * An FMA counts as two operations.  Bytes are read in order, 64 a load.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tellerd/base/mem.h"

enum { ROUNDS = 7, MOST_THREADS = 64 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One thread's part of a run. */
struct part {
    pthread_t thread;
    pthread_barrier_t *start;
    double (*work)(const struct part *part); /* returns what was done: bytes or operations */
    const uint8_t *bytes;                    /* of a read */
    size_t n_bytes, repeats;
    double done, began, ended;
};

static void *part_main(void *arg)
{
    struct part *part = arg;
    pthread_barrier_wait(part->start);
    part->began = seconds();
    part->done = part->work(part);
    part->ended = seconds();
    return NULL;
}

/* The same work on n threads at once: units a second, best of the rounds. */
static double rate(uint32_t n, const struct part *model)
{
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        static struct part parts[MOST_THREADS];
        pthread_barrier_t start;
        pthread_barrier_init(&start, NULL, n);
        for (uint32_t i = 0; i < n; i++) {
            parts[i] = *model;
            parts[i].start = &start;
            parts[i].bytes = model->bytes ? model->bytes + i * model->n_bytes : NULL;
            if (pthread_create(&parts[i].thread, NULL, part_main, &parts[i]) != 0)
                abort();
        }
        double began = 1e300, ended = 0, done = 0;
        for (uint32_t i = 0; i < n; i++) {
            pthread_join(parts[i].thread, NULL);
            began = parts[i].began < began ? parts[i].began : began;
            ended = parts[i].ended > ended ? parts[i].ended : ended;
            done += parts[i].done;
        }
        pthread_barrier_destroy(&start);
        best = done / (ended - began) > best ? done / (ended - began) : best;
    }
    return best;
}

/* ---- what one thread does ---------------------------------------------------------------------
 */

#if defined(__x86_64__)
#include <immintrin.h>

enum { CHAINS = 12, TURNS = 1 << 21 };

/* CHAINS independent sums, TURNS times: more than the latency of any of these needs. */
#define PEAK(name, isa, type, zero, step, per_step)                              \
    __attribute__((target(isa))) static double name(const struct part *part)     \
    {                                                                            \
        type sum[CHAINS];                                                        \
        (void)part;                                                              \
        _Pragma("GCC unroll 12") for (int j = 0; j < CHAINS; j++) sum[j] = zero; \
        for (int i = 0; i < TURNS; i++) {                                        \
            _Pragma("GCC unroll 12") for (int j = 0; j < CHAINS; j++)            \
            {                                                                    \
                sum[j] = step;                                                   \
                __asm__ volatile("" : "+v"(sum[j]));                             \
            }                                                                    \
        }                                                                        \
        return (double)TURNS * CHAINS * per_step;                                \
    }
PEAK(f32_avx2, "avx2,fma", __m256, _mm256_setzero_ps(),
     _mm256_fmadd_ps(_mm256_set1_ps(0.5f), _mm256_set1_ps(0.25f), sum[j]), 16)
PEAK(int8_avx2, "avx2", __m256i, _mm256_setzero_si256(),
     _mm256_add_epi32(sum[j], _mm256_madd_epi16(_mm256_maddubs_epi16(sum[j], _mm256_set1_epi8(2)),
                                                _mm256_set1_epi16(1))),
     64)
PEAK(f32_avx512, "avx512f", __m512, _mm512_setzero_ps(),
     _mm512_fmadd_ps(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.25f), sum[j]), 32)
PEAK(int8_avx512, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512(),
     _mm512_dpbusd_epi32(sum[j], _mm512_set1_epi8(3), _mm512_set1_epi8(2)), 128)
PEAK(bf16_avx512, "avx512f,avx512bf16", __m512, _mm512_setzero_ps(),
     _mm512_dpbf16_ps(sum[j], (__m512bh)_mm512_set1_epi8(3), (__m512bh)_mm512_set1_epi8(2)), 64)

__attribute__((target("avx2"))) static double read_bytes(const struct part *part)
{
    for (size_t r = 0; r < part->repeats; r++) {
        __m256i all[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                          _mm256_setzero_si256()};
        for (const uint8_t *p = part->bytes; p < part->bytes + part->n_bytes; p += 128) {
            _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) all[j] =
                _mm256_or_si256(all[j], _mm256_load_si256((const __m256i *)(p + 32 * j)));
        }
        _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) __asm__ volatile("" : "+v"(all[j]));
    }
    return (double)part->n_bytes * (double)part->repeats;
}

static bool has(const char *what)
{
    __builtin_cpu_init();
    return strcmp(what, "avx2") == 0
               ? __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
           : strcmp(what, "avx512") == 0 ? __builtin_cpu_supports("avx512f") != 0
           : strcmp(what, "vnni") == 0   ? __builtin_cpu_supports("avx512vnni") != 0
                                         : __builtin_cpu_supports("avx512bf16") != 0;
}

static const struct {
    const char *name, *needs;
    double (*work)(const struct part *part);
} peaks[] = {
    {"f32_avx2", "avx2", f32_avx2},       {"int8_avx2", "avx2", int8_avx2},
    {"f32_avx512", "avx512", f32_avx512}, {"int8_avx512", "vnni", int8_avx512},
    {"bf16_avx512", "bf16", bf16_avx512},
};

static void print_limits(uint32_t all)
{
    static const size_t mib[] = {1, 8, 32, 96, 1024};
    size_t most = (size_t)1024 << 20;
    uint8_t *bytes = big_alloc(most, true);
    if (!bytes || !has("avx2")) {
        fprintf(stderr, "bench/limits: needs AVX2 and 1 GiB of memory\n");
        exit(1);
    }
    memset(bytes, 1, most);
    printf("{\"threads\": [1, %u], \"giga_operations_a_second\": {", all);
    const char *comma = "";
    for (size_t i = 0; i < sizeof peaks / sizeof peaks[0]; i++) {
        struct part part = {.work = peaks[i].work};
        if (!has(peaks[i].needs))
            continue;
        printf("%s\"%s\": [%.1f, %.1f]", comma, peaks[i].name, rate(1, &part) * 1e-9,
               rate(all, &part) * 1e-9);
        comma = ", ";
    }
    printf("}, \"read_gigabytes_a_second\": {");
    for (size_t i = 0; i < sizeof mib / sizeof mib[0]; i++) {
        size_t n = mib[i] << 20;
        struct part one = {.work = read_bytes, .bytes = bytes, .n_bytes = n};
        one.repeats = most / n > 8 ? most / n / 4 : 1;
        struct part shared = one; /* each thread its part of the set */
        shared.n_bytes = n / all / 128 * 128;
        printf("%s\"%zu MiB\": [%.1f, %.1f]", i ? ", " : "", mib[i], rate(1, &one) * 1e-9,
               rate(all, &shared) * 1e-9);
    }
    printf("}}\n");
    big_free(bytes, most);
}

#else
static void print_limits(uint32_t all)
{
    (void)all;
    fprintf(stderr, "bench/limits: knows x86-64 only\n");
    exit(1);
}
#endif

int main(int argc, char **argv)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    if (argc == 3 && strcmp(argv[1], "--threads") == 0)
        n = atol(argv[2]);
    else if (argc != 1)
        n = 0;
    if (n < 1 || n > MOST_THREADS) {
        fprintf(stderr, "usage: bench/limits [--threads N], N of 1 .. %d\n", MOST_THREADS);
        return 2;
    }
    print_limits((uint32_t)n);
    return 0;
}
