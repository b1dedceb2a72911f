#ifndef TELLERD_BASE_HASH_H
#define TELLERD_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash128 {
    uint64_t low;
    uint64_t high;
};

/* XXH3-128 of the bytes, seeded by `seed` (chain: pass the parent's hash among the bytes).  Not for
 * secrets.  Any thread. */
struct hash128 hash_bytes(const void *bytes, size_t len, uint64_t seed);
static inline bool hash_equal(struct hash128 a, struct hash128 b)
{
    return a.low == b.low && a.high == b.high;
}

enum { SHA256_BYTES = 32 };
/* SHA-256 (FIPS 180-4) of the bytes.  Any thread. */
void sha256(const void *bytes, size_t len, uint8_t out[SHA256_BYTES]);
/* Whether two digests are equal, in time that does not depend on their content. */
bool digest_equal(const uint8_t a[SHA256_BYTES], const uint8_t b[SHA256_BYTES]);

#endif
