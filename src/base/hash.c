/*
 * Hashes: XXH3-128 for tables and cache keys, SHA-256 (FIPS 180-4) for API keys and checksums.
 */
#include "config.h"

#include "tellerd/base/hash.h"

#include <string.h>
#include <xxhash.h>

enum { SHA256_BLOCK = 64, SHA256_ROUNDS = 64 };

struct hash128 hash_bytes(const void *bytes, size_t len, uint64_t seed)
{
    XXH128_hash_t h = XXH3_128bits_withSeed(bytes, len, seed);
    return (struct hash128){.low = h.low64, .high = h.high64};
}

/* Cube roots of the first 64 primes: the first 32 bits of their fractions. */
static const uint32_t sha256_k[SHA256_ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate_right(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static uint32_t load_be32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Takes one block into the state; names as in FIPS 180-4, section 6.2.2. */
static void sha256_block(uint32_t state[8], const uint8_t block[SHA256_BLOCK])
{
    uint32_t w[SHA256_ROUNDS], s[8];
    for (int t = 0; t < 16; t++)
        w[t] = load_be32(block + 4 * t);
    for (int t = 16; t < SHA256_ROUNDS; t++) {
        uint32_t s0 = rotate_right(w[t - 15], 7) ^ rotate_right(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotate_right(w[t - 2], 17) ^ rotate_right(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
    memcpy(s, state, sizeof s);
    for (int t = 0; t < SHA256_ROUNDS; t++) {
        uint32_t a = s[0], e = s[4];
        uint32_t sum1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
        uint32_t choice = (e & s[5]) ^ (~e & s[6]);
        uint32_t t1 = s[7] + sum1 + choice + sha256_k[t] + w[t];
        uint32_t sum0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
        uint32_t majority = (a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]);
        memmove(s + 1, s, 7 * sizeof s[0]);
        s[4] += t1;
        s[0] = t1 + sum0 + majority;
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

void sha256(const void *bytes, size_t len, uint8_t out[SHA256_BYTES])
{
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const uint8_t *at = bytes;
    size_t left = len;
    for (; left >= SHA256_BLOCK; left -= SHA256_BLOCK, at += SHA256_BLOCK)
        sha256_block(state, at);

    /* The rest, a one bit, zeros, and the length in bits: one block or two. */
    uint8_t tail[2 * SHA256_BLOCK] = {0};
    if (left > 0)
        memcpy(tail, at, left);
    tail[left] = 0x80;
    size_t tail_len = left + 9 <= SHA256_BLOCK ? SHA256_BLOCK : 2 * SHA256_BLOCK;
    uint64_t bits = (uint64_t)len * 8;
    for (int i = 0; i < 8; i++)
        tail[tail_len - 1 - (size_t)i] = (uint8_t)(bits >> (8 * i));
    for (size_t i = 0; i < tail_len; i += SHA256_BLOCK)
        sha256_block(state, tail + i);
    for (int i = 0; i < SHA256_BYTES; i++)
        out[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}

bool digest_equal(const uint8_t a[SHA256_BYTES], const uint8_t b[SHA256_BYTES])
{
    volatile uint8_t difference = 0;
    for (int i = 0; i < SHA256_BYTES; i++)
        difference |= a[i] ^ b[i];
    return difference == 0;
}
