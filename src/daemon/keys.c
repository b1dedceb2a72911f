/*
 * API keys from their file.  Text of keys lives only here, and is wiped before it is freed.
 */
#include "config.h"

#include "tellerd/daemon/keys.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tellerd/base/hash.h"
#include "tellerd/base/mem.h"
#include "tellerd/daemon/ini.h"

enum { KEYS_FILE_MAX = 1024 * 1024, KEY_SHORT = 16, KEY_MAX = 1024 };

static const char digest_prefix[] = "sha256:";

struct key_list {
    struct api_key *keys;
    size_t n;
    const char *path;
    unsigned line;
    struct buf *warnings;
    struct error *err;
};

struct word {
    const char *text;
    size_t len;
};

static enum status fail(const struct key_list *list, const char *why)
{
    return error_set(list->err, STATUS_BAD_CONFIG, "%s:%u: %s", list->path, list->line, why);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Takes the next word off [*at, end); len 0 when there is none. */
static struct word next_word(const char **at, const char *end)
{
    while (*at < end && is_blank(**at))
        ++*at;
    struct word word = {*at, 0};
    while (*at < end && !is_blank(**at)) {
        ++*at;
        word.len++;
    }
    return word;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static enum status read_digest(const struct key_list *list, struct word hex,
                               uint8_t digest[SHA256_BYTES])
{
    if (hex.len != 2 * SHA256_BYTES)
        return fail(list, "sha256: wants 64 hexadecimal digits");
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        int high = hex_digit(hex.text[2 * i]), low = hex_digit(hex.text[2 * i + 1]);
        if (high < 0 || low < 0)
            return fail(list, "sha256: wants 64 hexadecimal digits");
        digest[i] = (uint8_t)(high << 4 | low);
    }
    return STATUS_OK;
}

static enum status read_key(const struct key_list *list, struct word key,
                            uint8_t digest[SHA256_BYTES])
{
    size_t prefix = sizeof digest_prefix - 1;
    if (key.len >= prefix && memcmp(key.text, digest_prefix, prefix) == 0)
        return read_digest(list, (struct word){key.text + prefix, key.len - prefix}, digest);
    if (key.len > KEY_MAX)
        return fail(list, "the key is longer than 1024 characters");
    for (size_t i = 0; i < key.len; i++)
        if (key.text[i] <= ' ' || key.text[i] > '~')
            return fail(list, "a key is made of printable ASCII characters");
    if (key.len < KEY_SHORT && list->warnings)
        buf_printf(list->warnings, "%s:%u: the key is shorter than %d characters\n", list->path,
                   list->line, KEY_SHORT);
    sha256(key.text, key.len, digest);
    return STATUS_OK;
}

static enum status read_name(const struct key_list *list, struct word name, char *out)
{
    if (name.len >= API_KEY_NAME_MAX)
        return fail(list, "the name is longer than 63 characters");
    for (size_t i = 0; i < name.len; i++) {
        char c = name.text[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '.' || c == '_' || c == '-';
        if (!good)
            return fail(list, "a name is made of letters, digits, '.', '_' and '-'");
    }
    memcpy(out, name.text, name.len);
    out[name.len] = '\0';
    return STATUS_OK;
}

static enum status read_line(struct key_list *list, const char *at, const char *end)
{
    struct api_key key = {.name = "default"};
    struct word first = next_word(&at, end), second = next_word(&at, end);
    if (first.len == 0 || first.text[0] == '#')
        return STATUS_OK;
    if (next_word(&at, end).len > 0)
        return fail(list, "too many words; a line is NAME KEY, or KEY alone");
    enum status status = second.len > 0 ? read_name(list, first, key.name) : STATUS_OK;
    if (status == STATUS_OK)
        status = read_key(list, second.len > 0 ? second : first, key.digest);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < list->n; i++)
        if (digest_equal(list->keys[i].digest, key.digest))
            return fail(list, "this key is already there");
    list->keys = xreallocarray(list->keys, list->n + 1, sizeof *list->keys);
    list->keys[list->n++] = key;
    return STATUS_OK;
}

static enum status read_lines(struct key_list *list, const char *text, size_t len)
{
    const char *end = text + len;
    while (text < end) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        const char *next = line_end ? line_end + 1 : end;
        if (!line_end)
            line_end = end;
        if (line_end > text && line_end[-1] == '\r')
            line_end--;
        list->line++;
        enum status status = read_line(list, text, line_end);
        if (status != STATUS_OK)
            return status;
        text = next;
    }
    return STATUS_OK;
}

static enum status check_mode(const char *path, struct buf *warnings, struct error *err)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return STATUS_OK; /* reading says what is wrong; a pipe has no readers but us */
    if (st.st_mode & S_IWOTH)
        return error_set(err, STATUS_BAD_CONFIG,
                         "%s: everyone may write it (mode %04o); use chmod 0640", path,
                         (unsigned)st.st_mode & 07777);
    if ((st.st_mode & S_IROTH) && warnings)
        buf_printf(warnings, "%s: everyone may read it (mode %04o); use chmod 0640\n", path,
                   (unsigned)st.st_mode & 07777);
    return STATUS_OK;
}

enum status keys_load(const char *path, struct api_key **ret, size_t *ret_n, struct buf *warnings,
                      struct error *err)
{
    struct key_list list = {.path = path, .warnings = warnings, .err = err};
    char *text;
    size_t len;
    if (check_mode(path, warnings, err) != STATUS_OK ||
        ini_read_file(path, KEYS_FILE_MAX, &text, &len, err) != STATUS_OK) {
        if (err)
            err->status = STATUS_BAD_CONFIG;
        return STATUS_BAD_CONFIG;
    }
    enum status status = read_lines(&list, text, len);
    explicit_bzero(text, len);
    free(text);
    if (status == STATUS_OK && list.n == 0)
        status = error_set(err, STATUS_BAD_CONFIG, "%s: there is no key in it", path);
    if (status != STATUS_OK) {
        free(list.keys);
        return status;
    }
    *ret = list.keys;
    *ret_n = list.n;
    return STATUS_OK;
}
