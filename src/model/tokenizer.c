/*
 * The tokenizer's public face: finds special tokens in a text, hands each stretch between them to
 * the kind of tokenizer that the vocabulary asks for, and counts what comes out; and the other way,
 * the bytes of a token.  Of the special tokens that start at one place the longest counts, and what
 * it covers is not looked at again (leftmost-longest, as the reference does).  User-defined tokens
 * are found everywhere, control tokens only where all of their text lies in one trusted run.
 */
#include "config.h"

#include "tellerd/model/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "tellerd/base/mem.h"
#include "tokenizer_priv.h"

void token_list_add(struct token_list *list, uint32_t id)
{
    if (list->len == list->cap) {
        list->cap = list->cap ? list->cap * 2 : 64;
        list->ids = xreallocarray(list->ids, list->cap, sizeof *list->ids);
    }
    list->ids[list->len++] = id;
}

void token_list_done(struct token_list *list)
{
    free(list->ids);
    *list = (struct token_list){0};
}

enum status tokenizer_new(const struct vocab_source *source, struct tokenizer **ret,
                          struct error *err)
{
    struct tokenizer *tok = xcalloc(1, sizeof *tok);
    tok->source = source;
    enum status status = vocab_build(tok, err);
    if (!status) {
        switch (source->kind) {
        case TOKENIZER_BPE:
            status = bpe_build(tok, err);
            break;
        case TOKENIZER_SPM: /* merges are given by tokenizer.json, scores by GGUF */
            status = source->n_merges > 0 ? bpe_build(tok, err) : spm_build(tok, err);
            break;
        case TOKENIZER_UNIGRAM:
            status = unigram_build(tok, err);
            break;
        }
    }
    if (status) {
        tokenizer_free(tok);
        return status;
    }
    *ret = tok;
    return STATUS_OK;
}

void tokenizer_free(struct tokenizer *tok)
{
    if (!tok)
        return;
    free(tok->types);
    free(tok->eog);
    free(tok->pieces);
    free(tok->piece_bytes);
    free(tok->lone_letters);
    text_index_done(&tok->index);
    trie_done(&tok->specials);
    trie_done(&tok->unigram_trie);
    merge_table_done(&tok->merges);
    free(tok);
}

/* -- encoding ---------------------------------------------------------------------------------- */

bool text_scratch_reserve(struct text_scratch *scratch, size_t n)
{
    if (n <= scratch->cap)
        return true;
    size_t cap = n + n / 2 + 64;
    free(scratch->bytes);
    scratch->bytes = malloc(cap);
    scratch->cap = scratch->bytes ? cap : 0;
    return scratch->bytes != NULL;
}

static void count_id(struct encoder *enc, uint32_t id)
{
    if (enc->n_ids++ < enc->max_ids)
        token_list_add(enc->out, id);
}

void encoder_emit(struct encoder *enc, uint32_t id)
{
    if (enc->bos_pending)
        count_id(enc, enc->tok->source->bos);
    enc->bos_pending = false;
    enc->after_unknown = false;
    count_id(enc, id);
}

/* A special token that stands in the text. */
static void emit_special(struct encoder *enc, uint32_t id)
{
    if (id == enc->tok->source->bos)
        enc->bos_pending = false;
    encoder_emit(enc, id);
}

void encoder_emit_unknown(struct encoder *enc, const char *bytes, size_t len)
{
    const struct tokenizer *tok = enc->tok;
    bool has_bytes = true;
    for (size_t i = 0; i < len; i++)
        has_bytes = has_bytes && tok->byte_ids[(unsigned char)bytes[i]] != TOKEN_NONE;
    for (size_t i = 0; has_bytes && i < len; i++)
        encoder_emit(enc, tok->byte_ids[(unsigned char)bytes[i]]);
    if (has_bytes || enc->after_unknown || tok->unknown == TOKEN_NONE)
        return;
    encoder_emit(enc, tok->unknown);
    enc->after_unknown = !tok->source->unknown_not_fused;
}

static bool is_mark_at(const char *text, size_t len, size_t at)
{
    return len - at >= SPACE_MARK_BYTES && memcmp(text + at, SPACE_MARK, SPACE_MARK_BYTES) == 0;
}

/* Writes the stretch with space marks, and the one in front where the file asks for it. */
static size_t mark_spaces(const struct vocab_source *source, const char *text, size_t len,
                          bool at_text_start, char *out)
{
    size_t n = 0;
    bool has_prefix =
        source->add_space_prefix && !(source->prefix_at_start_only && !at_text_start) &&
        !(source->prefix_not_before_space && (text[0] == ' ' || is_mark_at(text, len, 0)));
    if (has_prefix) {
        memcpy(out, SPACE_MARK, SPACE_MARK_BYTES);
        n += SPACE_MARK_BYTES;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] == ' ') {
            memcpy(out + n, SPACE_MARK, SPACE_MARK_BYTES);
            n += SPACE_MARK_BYTES;
        } else {
            out[n++] = text[i];
        }
    }
    return n;
}

/* End of the piece at start: before the next space mark, or the next one that stands behind another
 * character. */
static size_t marked_piece(const struct tokenizer *tok, const char *text, size_t len, size_t start)
{
    if (!tok->cuts_at_spaces)
        return len;
    size_t at = start;
    do {
        if (is_mark_at(text, len, at))
            at += SPACE_MARK_BYTES;
    } while (!tok->source->cuts_at_each_space && at < len && is_mark_at(text, len, at));
    while (at < len && !is_mark_at(text, len, at))
        at++;
    return at;
}

/* SPM and unigram: one stretch. */
static bool marked_encode(struct encoder *enc, const char *text, size_t len, bool at_text_start)
{
    const struct tokenizer *tok = enc->tok;
    if (!text_scratch_reserve(&enc->marked, SPACE_MARK_BYTES * (len + 1)))
        return false;
    const char *marked = enc->marked.bytes;
    size_t n = mark_spaces(tok->source, text, len, at_text_start, enc->marked.bytes);
    for (size_t start = 0; start < n && !encoder_is_full(enc);) {
        size_t end = marked_piece(tok, marked, n, start);
        bool done = tok->source->kind == TOKENIZER_SPM
                        ? spm_encode(enc, marked + start, end - start)
                        : unigram_encode(enc, marked + start, end - start);
        if (!done)
            return false;
        if (tok->source->cuts_at_each_space)
            enc->after_unknown = false;
        start = end;
    }
    return true;
}

/* Text between two special tokens; false when memory is out. */
static bool encode_stretch(struct encoder *enc, const char *text, size_t len, bool at_text_start)
{
    if (len == 0)
        return true;
    if (enc->tok->source->kind == TOKENIZER_BPE)
        return bpe_encode(enc, text, len);
    return marked_encode(enc, text, len, at_text_start);
}

/* The longest special token at `at` that may count there, or TOKEN_NONE; sets its end. */
static uint32_t special_at(const struct tokenizer *tok, const char *text, size_t len, size_t at,
                           size_t trusted_end, size_t *ret_end)
{
    uint32_t best = TOKEN_NONE, node = 0;
    while (at < len) {
        node = trie_step(&tok->specials, node, (unsigned char)text[at++]);
        if (node == 0)
            break;
        uint32_t id = tok->specials.ids[node];
        if (id != TOKEN_NONE && (tok->types[id] == TOKEN_USER_DEFINED || at <= trusted_end)) {
            best = id;
            *ret_end = at;
        }
    }
    return best;
}

/* The whole text; false when memory is out. */
static bool encode_text(struct encoder *enc, const char *text, size_t len,
                        const struct text_run *trusted, size_t n_trusted)
{
    size_t stretch = 0, run = 0;
    for (size_t at = 0; at < len && !encoder_is_full(enc);) {
        while (run < n_trusted && trusted[run].start + trusted[run].len <= at)
            run++;
        bool is_trusted = run < n_trusted && trusted[run].start <= at;
        size_t trusted_end = is_trusted ? trusted[run].start + trusted[run].len : 0;
        size_t end = at + 1;
        uint32_t id = special_at(enc->tok, text, len, at, trusted_end, &end);
        if (id != TOKEN_NONE) {
            if (!encode_stretch(enc, text + stretch, at - stretch, stretch == 0))
                return false;
            emit_special(enc, id);
            stretch = end;
        }
        at = end;
    }
    return encoder_is_full(enc) || encode_stretch(enc, text + stretch, len - stretch, stretch == 0);
}

enum status tokenizer_encode(const struct tokenizer *tok, const char *text, size_t len,
                             const struct text_run *trusted, size_t n_trusted, bool add_bos,
                             size_t max_tokens, struct token_list *out, struct error *err)
{
    if (len > TOKENIZER_MAX_TEXT)
        return error_set(err, STATUS_TOO_LARGE, "a text of %zu bytes is too long", len);
    struct encoder enc = {.tok = tok,
                          .out = out,
                          .max_ids = max_tokens,
                          .bos_pending = add_bos && tok->source->bos != TOKEN_NONE};
    bool done = encode_text(&enc, text, len, trusted, n_trusted);
    if (done && enc.bos_pending)
        count_id(&enc, tok->source->bos);
    merge_work_done(&enc.work);
    free(enc.marked.bytes);
    free(enc.spelt.bytes);
    free(enc.nodes);
    if (!done)
        return error_set(err, STATUS_NO_MEMORY, "no memory to tokenize %zu bytes", len);
    if (!encoder_is_full(&enc))
        return STATUS_OK;
    enum status status =
        error_set(err, STATUS_TOO_LARGE, "the text has more than %zu tokens", max_tokens);
    if (err)
        err->n_prompt_tokens = enc.n_ids < UINT32_MAX ? (unsigned)enc.n_ids : UINT32_MAX;
    return status;
}

/* -- tokens ------------------------------------------------------------------------------------ */

static bool is_markup(const struct tokenizer *tok, uint32_t id)
{
    return tok->types[id] == TOKEN_CONTROL || tok->types[id] == TOKEN_UNKNOWN;
}

struct text_view tokenizer_piece(const struct tokenizer *tok, uint32_t id, bool with_control)
{
    if (id >= tok->n_tokens || (is_markup(tok, id) && !with_control))
        return (struct text_view){"", 0};
    return tok->pieces[id];
}

bool tokenizer_strips_leading_space(const struct tokenizer *tok)
{
    return tok->source->kind != TOKENIZER_BPE && tok->source->add_space_prefix;
}

uint32_t tokenizer_size(const struct tokenizer *tok)
{
    return tok->n_tokens;
}

bool tokenizer_is_control(const struct tokenizer *tok, uint32_t id)
{
    return id < tok->n_tokens && is_markup(tok, id);
}

bool tokenizer_is_eog(const struct tokenizer *tok, uint32_t id)
{
    return id < tok->n_tokens && tok->eog[id];
}

bool tokenizer_may_sample(const struct tokenizer *tok, uint32_t id)
{
    return id < tok->n_tokens && tok->types[id] != TOKEN_UNUSED &&
           (tok->eog[id] || !is_markup(tok, id));
}

uint32_t tokenizer_bos(const struct tokenizer *tok)
{
    return tok->source->bos;
}

uint32_t tokenizer_eos(const struct tokenizer *tok)
{
    return tok->source->eos;
}

bool tokenizer_adds_bos(const struct tokenizer *tok)
{
    return tok->source->add_bos && tok->source->bos != TOKEN_NONE;
}

uint32_t tokenizer_find(const struct tokenizer *tok, const char *text, size_t len)
{
    return len > 0 ? text_index_find(&tok->index, text, len) : TOKEN_NONE;
}
