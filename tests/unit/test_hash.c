#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_main.h"
#include "tellerd/base/hash.h"
#include "tellerd/base/mem.h"

static void check_sha256(const char *text, size_t len, const char *hex)
{
    uint8_t digest[SHA256_BYTES];
    char got[2 * SHA256_BYTES + 1];
    sha256(text, len, digest);
    for (int i = 0; i < SHA256_BYTES; i++)
        snprintf(got + 2 * i, 3, "%02x", digest[i]);
    ck_assert_str_eq(got, hex);
}

/* Examples of FIPS 180-4 and of NIST's byte-oriented test vectors (SHA256ShortMsg, LongMsg). */
START_TEST(sha256_gives_nist_digests)
{
    check_sha256("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_sha256("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check_sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                 "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                 112, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    check_sha256("\xd3", 1, "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1");
}
END_TEST

START_TEST(sha256_of_a_million_a)
{
    char *text = xmalloc(1000000);
    memset(text, 'a', 1000000);
    check_sha256(text, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(text);
}
END_TEST

/* One digest over the digests of all lengths 0..200 of 'x': every way the padding can fall.
 * Reference: Python's hashlib. */
START_TEST(sha256_pads_every_length)
{
    char text[200];
    uint8_t digests[201 * SHA256_BYTES];
    memset(text, 'x', sizeof text);
    for (size_t n = 0; n <= 200; n++)
        sha256(text, n, digests + n * SHA256_BYTES);
    check_sha256((const char *)digests, sizeof digests,
                 "2e9fcf76499976b60177466c31b8ab5caa7d4c6dd8dd97c8ce7b574af689ec94");
}
END_TEST

START_TEST(digests_compare_as_a_whole)
{
    uint8_t a[SHA256_BYTES] = {0}, b[SHA256_BYTES] = {0};
    ck_assert(digest_equal(a, b));
    for (int i = 0; i < SHA256_BYTES; i++) {
        b[i] = 0x80;
        ck_assert(!digest_equal(a, b));
        b[i] = 0;
    }
}
END_TEST

START_TEST(xxh3_is_the_published_function)
{
    struct hash128 empty = hash_bytes("", 0, 0);
    ck_assert_uint_eq(empty.low, 0x6001c324468d497f);
    ck_assert_uint_eq(empty.high, 0x99aa06d3014798d8);
}
END_TEST

START_TEST(bytes_length_and_seed_all_matter)
{
    struct hash128 base = hash_bytes("tokens", 6, 1);
    ck_assert(hash_equal(base, hash_bytes("tokens", 6, 1)));
    ck_assert(!hash_equal(base, hash_bytes("tokens", 6, 2)));
    ck_assert(!hash_equal(base, hash_bytes("tokens", 5, 1)));
    ck_assert(!hash_equal(base, hash_bytes("tokenS", 6, 1)));
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "SHA-256", sha256_gives_nist_digests, sha256_of_a_million_a,
              sha256_pads_every_length, digests_compare_as_a_whole);
    CHECK_ADD(suite, "XXH3", xxh3_is_the_published_function, bytes_length_and_seed_all_matter);
}

CHECK_MAIN("hash", add_cases)
