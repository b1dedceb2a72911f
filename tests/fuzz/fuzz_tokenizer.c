/*
 * Text and trusted runs through every kind of tokenizer: the pieces must join to the text again,
 * and a control token may stand only where a trusted run covers it.
 *
 * Input: one byte that chooses the tokenizer, one of flags, three trusted runs of two bytes each
 * (gap, length), then the text.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/base/buf.h"
#include "tellerd/base/utf8.h"
#include "tellerd/model/tokenizer.h"

enum { N_RUNS = 3, HEAD_BYTES = 2 + 2 * N_RUNS, N_MARKED = 2, MAX_TOKENS = 320, LIMIT = 20 };
enum { FLAG_BOS = 1, FLAG_LIMIT = 2 };

#define MARK "\xE2\x96\x81"

struct vocabulary {
    struct vocab_source source;
    struct text_view tokens[MAX_TOKENS];
    uint8_t types[MAX_TOKENS];
    float scores[MAX_TOKENS];
    char letters[256][8];
};

static const struct text_view merges[] = {
    {"a a", 3},   {"aa aa", 5},        {"t h", 3},
    {"th e", 4},  {"\xC4\xA0 the", 6}, {"< |", 3},
    {"im _", 4},  {"i m", 3},          {"\xC4\xA0 \xC4\xA0", 5},
    {"<| im_", 6}};
static const char *const merged[] = {
    "aa", "aaaa", "th", "the", "\xC4\xA0the", "<|", "im", "im_", "\xC4\xA0\xC4\xA0", "<|im_"};
static const char *const words[] = {"a",       "t",    "h",        "e",   MARK,
                                    "aa",      "aaaa", "th",       "the", MARK "the",
                                    MARK MARK, "<|",   ("e" MARK), "im",  "<|im"};

static void add(struct vocabulary *v, const char *text, enum token_type type, float score)
{
    uint32_t id = v->source.n_tokens++;
    v->tokens[id] = (struct text_view){text, strlen(text)};
    v->types[id] = (uint8_t)type;
    v->scores[id] = score;
}

static void add_specials(struct vocabulary *v)
{
    v->source.bos = v->source.n_tokens;
    add(v, "<|im_start|>", TOKEN_CONTROL, 0);
    add(v, "<|im_end|>", TOKEN_CONTROL, 0);
    add(v, "<|im_end|>>", TOKEN_CONTROL, 0);
    add(v, "<tool>", TOKEN_USER_DEFINED, 0);
    add(v, "\n\n\n", TOKEN_USER_DEFINED, 0);
}

static struct tokenizer *make(struct vocabulary *v, enum tokenizer_kind kind,
                              enum tokenizer_split split)
{
    struct tokenizer *tok;
    v->source = (struct vocab_source){.kind = kind,
                                      .split = split,
                                      .tokens = v->tokens,
                                      .types = v->types,
                                      .scores = v->scores,
                                      .eos = TOKEN_NONE,
                                      .eot = TOKEN_NONE,
                                      .unknown = TOKEN_NONE};
    for (uint32_t byte = 0, next = 0x100; byte < 256; byte++) {
        bool shown = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
        if (kind == TOKENIZER_BPE)
            utf8_encode(shown ? byte : next++, v->letters[byte]);
        else
            snprintf(v->letters[byte], sizeof v->letters[byte], "<0x%02X>", (unsigned)byte);
        add(v, v->letters[byte], kind == TOKENIZER_BPE ? TOKEN_NORMAL : TOKEN_BYTE, 0);
    }
    if (kind == TOKENIZER_BPE) {
        for (size_t i = 0; i < sizeof merged / sizeof *merged; i++)
            add(v, merged[i], TOKEN_NORMAL, 0);
        v->source.merges = merges;
        v->source.n_merges = sizeof merges / sizeof *merges;
        v->source.ignore_merges = split == SPLIT_LLAMA3;
    } else {
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            add(v, words[i], TOKEN_NORMAL, -(float)i);
    }
    add_specials(v);
    if (tokenizer_new(&v->source, &tok, NULL))
        abort();
    return tok;
}

static struct tokenizer *choose(unsigned which)
{
    static struct vocabulary vocabularies[SPLIT_COUNT + N_MARKED];
    static struct tokenizer *tokenizers[SPLIT_COUNT + N_MARKED];
    which %= SPLIT_COUNT + N_MARKED;
    if (!tokenizers[which]) {
        enum tokenizer_kind kind = which < SPLIT_COUNT    ? TOKENIZER_BPE
                                   : which == SPLIT_COUNT ? TOKENIZER_SPM
                                                          : TOKENIZER_UNIGRAM;
        tokenizers[which] = make(&vocabularies[which], kind,
                                 which < SPLIT_COUNT ? (enum tokenizer_split)which : SPLIT_NONE);
    }
    return tokenizers[which];
}

/* Whether [start, end) lies within one run. */
static bool is_covered(const struct text_run *runs, size_t start, size_t end)
{
    for (int i = 0; i < N_RUNS; i++) {
        if (runs[i].start <= start && end <= runs[i].start + runs[i].len)
            return true;
    }
    return false;
}

/* Length of a space mark that stands in the text for what came out as a space, else 0. */
static size_t mark_length(const char *text, size_t len)
{
    return len >= 3 && memcmp(text, MARK, 3) == 0 ? 3 : 0;
}

/* Walks the ids along the text. */
static void check(const struct tokenizer *tok, const struct token_list *list, size_t first,
                  const char *text, size_t len, const struct text_run *runs)
{
    size_t at = 0;
    for (size_t i = first; i < list->len; i++) {
        struct text_view piece = tokenizer_piece(tok, list->ids[i], true);
        size_t start = at;
        for (size_t k = 0; k < piece.len; k++) {
            size_t mark = mark_length(text + at, len - at);
            if (at < len && piece.bytes[k] == text[at])
                at++;
            else if (mark && piece.bytes[k] == ' ')
                at += mark;
            else
                abort();
        }
        if (tokenizer_is_control(tok, list->ids[i]) && !is_covered(runs, start, at))
            abort();
    }
    if (at != len)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD_BYTES)
        return 0;
    const struct tokenizer *tok = choose(data[0]);
    bool add_bos = data[1] & FLAG_BOS;
    size_t max = data[1] & FLAG_LIMIT ? LIMIT : SIZE_MAX;
    struct text_run runs[N_RUNS];
    size_t at = 0;
    for (int i = 0; i < N_RUNS; i++) {
        runs[i].start = at + data[2 + 2 * i] + (i > 0);
        runs[i].len = data[3 + 2 * i];
        at = runs[i].start + runs[i].len;
    }
    const char *text = (const char *)data + HEAD_BYTES;
    size_t len = size - HEAD_BYTES;
    struct token_list list = {0};
    struct error err = {0};
    enum status status = tokenizer_encode(tok, text, len, runs, N_RUNS, add_bos, max, &list, &err);
    if (status == STATUS_TOO_LARGE) {
        if (list.len != max || err.n_prompt_tokens <= max)
            abort();
    } else if (status) {
        abort();
    } else {
        size_t first = 0;
        if (add_bos && (list.len == 0 || list.ids[0] != tokenizer_bos(tok)))
            abort();
        /* BOS is of the text where the text has it there */
        if (add_bos &&
            !(len >= 12 && memcmp(text, "<|im_start|>", 12) == 0 && is_covered(runs, 0, 12)))
            first = 1;
        check(tok, &list, first, text, len, runs);
    }
    token_list_done(&list);
    return 0;
}
