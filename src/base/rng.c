/*
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011).
 * Key = seed, counter = (n, stream); the first of the four words of a block is the number.
 */
#include "config.h"

#include "tellerd/base/rng.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>

#include "tellerd/base/status.h"

enum { PHILOX_ROUNDS = 10 };

uint32_t rng_u32(uint64_t seed, uint64_t stream, uint64_t n)
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    uint32_t c0 = (uint32_t)n, c1 = (uint32_t)(n >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t a = UINT64_C(0xd2511f53) * c0, b = UINT64_C(0xcd9e8d57) * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9e3779b9; /* golden ratio */
        k1 += 0xbb67ae85; /* sqrt(3) - 1 */
    }
    return c0;
}

float rng_uniform(uint64_t seed, uint64_t stream, uint64_t n)
{
    return (float)(rng_u32(seed, stream, n) >> 8) * 0x1p-24f;
}

void rng_system_bytes(void *out, size_t len)
{
    unsigned char *at = out;
    while (len > 0) {
        ssize_t n = getrandom(at, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        REQUIRE(n > 0);
        at += n;
        len -= (size_t)n;
    }
}
