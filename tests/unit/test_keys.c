#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/check_main.h"
#include "tellerd/daemon/keys.h"

static char path[64];
static struct api_key *keys;
static size_t n_keys;
static struct error err;
static struct buf warnings;

static void setup(void)
{
    snprintf(path, sizeof path, "/tmp/test_keys.XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    keys = NULL;
    n_keys = 99;
    buf_init(&warnings, 4096);
}

static void teardown(void)
{
    unlink(path);
    free(keys);
    buf_done(&warnings);
}

static enum status load_bytes(const char *content, size_t len)
{
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fwrite(content, 1, len, file);
    ck_assert_int_eq(fclose(file), 0);
    buf_reset(&warnings);
    buf_add(&warnings, "", 0);
    return keys_load(path, &keys, &n_keys, &warnings, &err);
}

static void load(const char *content)
{
    ck_assert_msg(load_bytes(content, strlen(content)) == STATUS_OK, "%s", err.text);
}

static void check_bad(const char *content, size_t len, const char *where)
{
    char wanted[128];
    snprintf(wanted, sizeof wanted, "%s:%s", path, where);
    ck_assert_int_eq(load_bytes(content, len), STATUS_BAD_CONFIG);
    ck_assert_msg(strncmp(err.text, wanted, strlen(wanted)) == 0, "%s", err.text);
    ck_assert_ptr_null(strstr(err.text, "secret"));
    ck_assert_uint_eq(n_keys, 99);
}

static void check_key(size_t i, const char *name, const char *key)
{
    uint8_t digest[SHA256_BYTES];
    sha256(key, strlen(key), digest);
    ck_assert_str_eq(keys[i].name, name);
    ck_assert_mem_eq(keys[i].digest, digest, SHA256_BYTES);
}

START_TEST(names_and_keys_in_all_forms)
{
    load("# keys\n\nalice sk-0123456789abcdef\n \t bob\tsk-fedcba9876543210 \r\n"
         "sk-bare-0123456789ab\n"
         "carol sha256:BA7816BF8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n"
         "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    ck_assert_uint_eq(n_keys, 5);
    check_key(0, "alice", "sk-0123456789abcdef");
    check_key(1, "bob", "sk-fedcba9876543210");
    check_key(2, "default", "sk-bare-0123456789ab");
    check_key(3, "carol", "abc");
    check_key(4, "default", "");
    ck_assert_str_eq(warnings.data, "");
}
END_TEST

START_TEST(bad_lines_are_named_and_never_quoted)
{
    check_bad("a secret-key-0123456 b\n", 23, "1: too many words");
    check_bad("\n\na/b secret-key-0123456\n", 25, "3: a name is made of");
    check_bad("a sha256:12\n", 12, "1: sha256: wants 64");
    check_bad("sha256:zz7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n", 72,
              "1: sha256: wants 64");
    check_bad("secret-\x01-0123456789\n", 20, "1: a key is made of");
    check_bad("secret-\xc3\xbc-0123456789\n", 21, "1: a key is made of");
    check_bad("secret-\0-0123456789\n", 20, "1: a key is made of");
    check_bad("a secret-0123456789\nb secret-0123456789\n", 40, "2: this key is already there");
    check_bad("# only comments\n", 16, " there is no key in it");
    check_bad("", 0, " there is no key in it");
    check_bad("0123456789012345678901234567890123456789012345678901234567890123 secretsecretsecret",
              83, "1: the name is longer");
}
END_TEST

START_TEST(a_long_key_is_refused)
{
    static char text[1100];
    memset(text, 'k', sizeof text);
    check_bad(text, 1025, "1: the key is longer");
    ck_assert_int_eq(load_bytes(text, 1024), STATUS_OK);
    text[1024] = '\0';
    check_key(0, "default", text);
}
END_TEST

START_TEST(short_keys_are_warned_of)
{
    load("a short\n");
    ck_assert_ptr_nonnull(strstr(warnings.data, ":1: the key is shorter than 16 characters\n"));
    ck_assert_ptr_null(strstr(warnings.data, "short\n"));
}
END_TEST

START_TEST(modes_that_are_too_open)
{
    const char *content = "a sk-0123456789abcdef\n";
    ck_assert_int_eq(chmod(path, 0644), 0);
    load(content);
    ck_assert_ptr_nonnull(strstr(warnings.data, "everyone may read it (mode 0644)"));
    free(keys);
    keys = NULL;
    n_keys = 99;
    ck_assert_int_eq(chmod(path, 0602), 0);
    check_bad(content, strlen(content), " everyone may write it (mode 0602)");
}
END_TEST

START_TEST(a_file_that_cannot_be_read)
{
    ck_assert_int_eq(keys_load("/nonexistent/keys", &keys, &n_keys, NULL, &err), STATUS_BAD_CONFIG);
    ck_assert_int_eq(err.status, STATUS_BAD_CONFIG);
    ck_assert_int_eq(keys_load("/tmp", &keys, &n_keys, NULL, NULL), STATUS_BAD_CONFIG);
}
END_TEST

static void add_cases(Suite *suite)
{
    static const TTest *const *const tests[] = {
        &names_and_keys_in_all_forms, &bad_lines_are_named_and_never_quoted,
        &a_long_key_is_refused,       &short_keys_are_warned_of,
        &modes_that_are_too_open,     &a_file_that_cannot_be_read,
    };
    TCase *tcase = tcase_create("keys");
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
}

CHECK_MAIN("keys", add_cases)
