/*
 * SentencePiece's BPE (Llama 2, Mistral): neighbouring symbols merge when their joined text is a
 * token, the best score first.  The pairs that may merge are worked out once at load: each token,
 * cut in two at every character, where both halves are tokens or single characters.  Equal scores
 * share a rank, so that the leftmost pair goes first, as in SentencePiece.  Tokens marked unused
 * take no part.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/base/mem.h"
#include "tellerd/base/utf8.h"
#include "tokenizer_priv.h"

/* Work at load grows with the square of a token's length; real ones stay below 100 bytes. */
enum { MAX_JOINED_BYTES = 1024 };

struct scored {
    float score;
    uint32_t id;
};

static int compare_scored(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int compare_codes(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

size_t character_length(const char *text, size_t len)
{
    if ((unsigned char)text[0] < 0x80)
        return 1;
    uint32_t code;
    unsigned bad;
    unsigned n = utf8_decode(text, len, &code, &bad);
    return n > 0 ? n : bad;
}

static uint32_t text_token(const struct tokenizer *tok, const char *text, size_t len)
{
    uint32_t id = text_index_find(&tok->index, text, len);
    return id != TOKEN_NONE && token_is_text(tok, id) ? id : TOKEN_NONE;
}

/* Symbol of a character: its token, else what stands for it within longer tokens, else none. */
static uint32_t letter_symbol(const struct tokenizer *tok, const char *text, size_t len)
{
    uint32_t id = text_token(tok, text, len);
    if (id != TOKEN_NONE || tok->n_lone_letters == 0)
        return id;
    uint32_t code;
    unsigned bad;
    if (utf8_decode(text, len, &code, &bad) == 0)
        return TOKEN_NONE;
    const uint32_t *found = bsearch(&code, tok->lone_letters, tok->n_lone_letters,
                                    sizeof *tok->lone_letters, compare_codes);
    return found ? tok->n_tokens + (uint32_t)(found - tok->lone_letters) : TOKEN_NONE;
}

static uint32_t part_symbol(const struct tokenizer *tok, const char *text, size_t len)
{
    return character_length(text, len) == len ? letter_symbol(tok, text, len)
                                              : text_token(tok, text, len);
}

/* Tokens that merging can make, best score first; NULL and *err set when one is not usable. */
static struct scored *joined_tokens(const struct tokenizer *tok, size_t *ret_n, struct error *err)
{
    const struct vocab_source *source = tok->source;
    struct scored *list = xreallocarray(NULL, tok->n_tokens, sizeof *list);
    size_t n = 0;
    for (uint32_t id = 0; id < tok->n_tokens; id++) {
        struct text_view text = source->tokens[id];
        if (text.len < 2 || !utf8_valid(text.bytes, text.len) ||
            text_token(tok, text.bytes, text.len) != id ||
            character_length(text.bytes, text.len) == text.len)
            continue;
        const char *problem = NULL;
        if (text.len > MAX_JOINED_BYTES)
            problem = "the token is too long";
        else if (!isfinite(source->scores[id]))
            problem = "the token's score is not a finite number";
        if (problem) {
            vocab_error(err, "tokens", id, text, problem);
            free(list);
            return NULL;
        }
        list[n++] = (struct scored){source->scores[id], id};
    }
    qsort(list, n, sizeof *list, compare_scored);
    *ret_n = n;
    return list;
}

/* Finds the characters that are no token themselves; returns the number of places to cut. */
static size_t find_lone_letters(struct tokenizer *tok, const struct scored *list, size_t n)
{
    size_t n_cuts = 0, n_found = 0, cap = 0;
    for (size_t i = 0; i < n; i++) {
        struct text_view text = tok->source->tokens[list[i].id];
        for (size_t at = 0, len; at < text.len; at += len, n_cuts++) {
            len = character_length(text.bytes + at, text.len - at);
            if (text_token(tok, text.bytes + at, len) != TOKEN_NONE)
                continue;
            if (n_found == cap) {
                cap = cap ? cap * 2 : 64;
                tok->lone_letters =
                    xreallocarray(tok->lone_letters, cap, sizeof *tok->lone_letters);
            }
            unsigned bad;
            utf8_decode(text.bytes + at, len, &tok->lone_letters[n_found++], &bad);
        }
    }
    if (n_found > 0)
        qsort(tok->lone_letters, n_found, sizeof *tok->lone_letters, compare_codes);
    for (size_t i = 0; i < n_found; i++) {
        if (i == 0 || tok->lone_letters[i] != tok->lone_letters[i - 1])
            tok->lone_letters[tok->n_lone_letters++] = tok->lone_letters[i];
    }
    return n_cuts - n;
}

static void add_cuts(struct tokenizer *tok, uint32_t id, uint32_t rank)
{
    struct text_view text = tok->source->tokens[id];
    for (size_t at = character_length(text.bytes, text.len); at < text.len;
         at += character_length(text.bytes + at, text.len - at)) {
        uint32_t left = part_symbol(tok, text.bytes, at);
        if (left == TOKEN_NONE)
            continue;
        uint32_t right = part_symbol(tok, text.bytes + at, text.len - at);
        if (right != TOKEN_NONE)
            merge_table_add(&tok->merges, &(struct merge){left, right, rank, id});
    }
}

enum status spm_build(struct tokenizer *tok, struct error *err)
{
    size_t n;
    struct scored *list = joined_tokens(tok, &n, err);
    if (!list)
        return STATUS_BAD_FILE;
    size_t n_cuts = find_lone_letters(tok, list, n);
    enum status status = STATUS_OK;
    if (n_cuts > TOKENIZER_MAX_MERGES)
        status = error_set(err, STATUS_BAD_FILE, "tokenizer: the tokens are too long");
    merge_table_init(&tok->merges, status ? 0 : n_cuts);
    uint32_t rank = 0;
    for (size_t i = 0; i < n && !status; i++) {
        if (i > 0 && list[i].score != list[i - 1].score)
            rank++;
        add_cuts(tok, list[i].id, rank);
    }
    free(list);
    return status;
}

bool spm_encode(struct encoder *enc, const char *piece, size_t len)
{
    const struct tokenizer *tok = enc->tok;
    if (!merge_work_reserve(&enc->work, len))
        return false;
    struct merge_symbol *symbols = enc->work.symbols;
    uint32_t n = 0;
    for (size_t at = 0, n_bytes; at < len; at += n_bytes) {
        n_bytes = character_length(piece + at, len - at);
        symbols[n++].id = letter_symbol(tok, piece + at, n_bytes);
    }
    merge_run(&tok->merges, &enc->work, n);
    size_t at = 0;
    for (uint32_t i = 0; i != MERGE_END; i = symbols[i].next) {
        uint32_t end = symbols[i].next == MERGE_END ? n : symbols[i].next;
        size_t start = at;
        for (uint32_t j = i; j < end; j++)
            at += character_length(piece + at, len - at);
        if (symbols[i].id < tok->n_tokens)
            encoder_emit(enc, symbols[i].id);
        else
            encoder_emit_unknown(enc, piece + start, at - start);
    }
    return true;
}
