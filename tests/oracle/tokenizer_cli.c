/*
 * The tokenizer as a filter, for comparison with independent ones: JSON lines in, JSON lines out.
 *
 *     tokenizer_cli MODEL            {"text": "...", "trusted": [[start, len]...], "add_bos":
 * false}
 *                                    -> {"ids": [...], "bytes": "<hexadecimal of all pieces>"}
 *     tokenizer_cli --split NAME     {"text": "..."} -> {"lengths": [bytes of each piece...]}
 *     tokenizer_cli --unassigned     prints the ranges of code points unknown to this libutf8proc
 */
#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "tellerd/base/buf.h"
#include "tellerd/model/tokenizer.h"

enum { OUTPUT_MAX = 1 << 30, MAX_RUNS = 64, LAST_CODE = 0x10FFFF };

static const char *const split_names[SPLIT_COUNT] = {"gpt2",   "llama3",   "qwen2",
                                                     "smollm", "nanochat", "none"};

static void add_length(void *ctx, const char *piece, size_t len)
{
    struct buf *out = ctx;
    (void)piece;
    buf_add_str(out, out->data[out->len - 1] == '[' ? "" : ",");
    buf_add_u64(out, len);
}

static void add_piece(struct buf *out, struct text_view piece)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < piece.len; i++) {
        buf_add_char(out, digits[(unsigned char)piece.bytes[i] >> 4]);
        buf_add_char(out, digits[(unsigned char)piece.bytes[i] & 15]);
    }
}

static size_t read_runs(const json_t *list, struct text_run *runs)
{
    size_t n = json_array_size(list) < MAX_RUNS ? json_array_size(list) : MAX_RUNS;
    for (size_t i = 0; i < n; i++) {
        json_t *run = json_array_get(list, i);
        runs[i].start = (size_t)json_integer_value(json_array_get(run, 0));
        runs[i].len = (size_t)json_integer_value(json_array_get(run, 1));
    }
    return n;
}

static void encode(const struct tokenizer *tok, const json_t *line, const char *text, size_t len,
                   struct buf *out)
{
    struct text_run runs[MAX_RUNS];
    struct token_list list = {0};
    struct error err = {0};
    size_t n_runs = read_runs(json_object_get(line, "trusted"), runs);
    bool add_bos = json_is_true(json_object_get(line, "add_bos"));
    if (tokenizer_encode(tok, text, len, runs, n_runs, add_bos, SIZE_MAX, &list, &err)) {
        buf_add_str(out, "{\"error\":");
        buf_add_json(out, err.text, strlen(err.text));
    } else {
        buf_add_str(out, "{\"ids\":[");
        for (size_t i = 0; i < list.len; i++) {
            buf_add_str(out, i > 0 ? "," : "");
            buf_add_u64(out, list.ids[i]);
        }
        buf_add_str(out, "],\"bytes\":\"");
        for (size_t i = 0; i < list.len; i++)
            add_piece(out, tokenizer_piece(tok, list.ids[i], true));
        buf_add_char(out, '"');
    }
    buf_add_str(out, "}\n");
    token_list_done(&list);
}

/* Answers every line of stdin; with tok NULL by splitting. */
static int serve(const struct tokenizer *tok, enum tokenizer_split split)
{
    char *line = NULL;
    size_t cap = 0;
    struct buf out;
    ssize_t len;
    buf_init(&out, OUTPUT_MAX);
    while ((len = getline(&line, &cap, stdin)) > 0) {
        json_error_t why;
        json_t *json = json_loadb(line, (size_t)len, JSON_ALLOW_NUL, &why);
        json_t *text = json_object_get(json, "text");
        if (!text) {
            fprintf(stderr, "bad line: %s\n", why.text);
            return 2;
        }
        buf_reset(&out);
        if (tok) {
            encode(tok, json, json_string_value(text), json_string_length(text), &out);
        } else {
            buf_add_str(&out, "{\"lengths\":[");
            tokenizer_split_text(split, json_string_value(text), json_string_length(text),
                                 add_length, &out);
            buf_add_str(&out, "]}\n");
        }
        json_decref(json);
        fwrite(out.data, 1, out.len, stdout);
    }
    buf_done(&out);
    free(line);
    return 0;
}

static int print_unassigned(void)
{
    for (int code = 0, start = -1; code <= LAST_CODE + 1; code++) {
        bool unassigned = code <= LAST_CODE && utf8proc_category(code) == UTF8PROC_CATEGORY_CN;
        if (unassigned && start < 0)
            start = code;
        if (!unassigned && start >= 0) {
            printf("%d %d\n", start, code - 1);
            start = -1;
        }
    }
    return 0;
}

static int serve_model(const char *path)
{
    struct checkpoint *cp;
    struct tokenizer *tok;
    struct error err = {0};
    if (checkpoint_open(path, &cp, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    if (tokenizer_new(checkpoint_vocab(cp), &tok, &err)) {
        fprintf(stderr, "%s\n", err.text);
        checkpoint_close(cp);
        return 1;
    }
    int rc = serve(tok, SPLIT_NONE);
    tokenizer_free(tok);
    checkpoint_close(cp);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--unassigned") == 0)
        return print_unassigned();
    if (argc == 3 && strcmp(argv[1], "--split") == 0) {
        for (int i = 0; i < SPLIT_COUNT; i++) {
            if (strcmp(argv[2], split_names[i]) == 0)
                return serve(NULL, (enum tokenizer_split)i);
        }
    } else if (argc == 2) {
        return serve_model(argv[1]);
    }
    fprintf(stderr, "usage: tokenizer_cli MODEL | --split NAME | --unassigned\n");
    return 2;
}
