/*
 * Byte-level BPE (GPT-2, Llama 3, Qwen2, SmolLM2, nanochat): normalise, split into pre-tokens, and
 * merge the letters that stand for each one's bytes.  As in the reference, a byte whose letter is
 * no token is left out of the merging; and no merge is used that makes a control token, so that
 * ordinary text never becomes one.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "tellerd/base/mem.h"
#include "tellerd/base/utf8.h"
#include "tokenizer_priv.h"

/* One entry "left right" of the merges. */
static enum status add_merge(struct tokenizer *tok, uint32_t rank, char *joined, struct error *err)
{
    struct text_view text = tok->source->merges[rank];
    const char *space = text.len > 0 ? memchr(text.bytes, ' ', text.len) : NULL;
    if (!space)
        return vocab_error(err, "merges", rank, text, "no space between two tokens");
    size_t left_len = (size_t)(space - text.bytes), right_len = text.len - left_len - 1;
    if (left_len == 0 || right_len == 0 || memchr(space + 1, ' ', right_len))
        return vocab_error(err, "merges", rank, text, "not two tokens with one space between");
    uint32_t left = text_index_find(&tok->index, text.bytes, left_len);
    if (left == TOKEN_NONE)
        return vocab_error(err, "merges", rank, text, "the left part is not a token");
    uint32_t right = text_index_find(&tok->index, space + 1, right_len);
    if (right == TOKEN_NONE)
        return vocab_error(err, "merges", rank, text, "the right part is not a token");
    memcpy(joined, text.bytes, left_len); /* both are tokens: joined has room */
    memcpy(joined + left_len, space + 1, right_len);
    uint32_t id = text_index_find(&tok->index, joined, left_len + right_len);
    if (id == TOKEN_NONE)
        return vocab_error(err, "merges", rank, text, "the joined parts are not a token");
    if (tok->types[id] != TOKEN_CONTROL && tok->types[id] != TOKEN_UNKNOWN)
        merge_table_add(&tok->merges, &(struct merge){left, right, rank, id});
    return STATUS_OK;
}

enum status bpe_build(struct tokenizer *tok, struct error *err)
{
    const struct vocab_source *source = tok->source;
    if (source->n_merges > TOKENIZER_MAX_MERGES)
        return error_set(err, STATUS_BAD_FILE, "tokenizer: %u merges are too many",
                         source->n_merges);
    merge_table_init(&tok->merges, source->n_merges);
    char *joined = malloc(2 * tok->max_token_bytes + 1);
    if (!joined)
        return error_set(err, STATUS_NO_MEMORY, "tokenizer: no memory for the merges");
    enum status status = STATUS_OK;
    for (uint32_t rank = 0; rank < source->n_merges && !status; rank++)
        status = add_merge(tok, rank, joined, err);
    free(joined);
    return status;
}

/* The token whose whole text is this piece, or TOKEN_NONE. */
static uint32_t whole_token(struct encoder *enc, const char *piece, size_t len)
{
    const struct tokenizer *tok = enc->tok;
    char *spelt = enc->spelt.bytes;
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += utf8_encode(byte_letter((unsigned char)piece[i]), spelt + n);
    uint32_t id = text_index_find(&tok->index, spelt, n);
    return id != TOKEN_NONE && token_is_text(tok, id) ? id : TOKEN_NONE;
}

static bool encode_piece(struct encoder *enc, const char *piece, size_t len)
{
    const struct tokenizer *tok = enc->tok;
    if (tok->source->ignore_merges && len <= tok->max_token_bytes) {
        if (!text_scratch_reserve(&enc->spelt, 2 * len))
            return false;
        uint32_t id = whole_token(enc, piece, len);
        if (id != TOKEN_NONE) {
            encoder_emit(enc, id);
            return true;
        }
    }
    if (!merge_work_reserve(&enc->work, len))
        return false;
    struct merge_symbol *symbols = enc->work.symbols;
    uint32_t n = 0;
    for (size_t i = 0; i < len; i++) {
        uint32_t id = tok->byte_ids[(unsigned char)piece[i]];
        if (id != TOKEN_NONE)
            symbols[n++].id = id;
    }
    if (n == 0)
        return true;
    merge_run(&tok->merges, &enc->work, n);
    for (uint32_t i = 0; i != MERGE_END; i = symbols[i].next)
        encoder_emit(enc, symbols[i].id);
    return true;
}

static bool encode_pieces(struct encoder *enc, const char *text, size_t len)
{
    enum tokenizer_split split = enc->tok->source->split;
    for (size_t start = 0; start < len && !encoder_is_full(enc);) {
        size_t end = split_piece(split, text, len, start);
        if (!encode_piece(enc, text + start, end - start))
            return false;
        start = end;
    }
    return true;
}

bool bpe_encode(struct encoder *enc, const char *text, size_t len)
{
    if (!enc->tok->source->nfc || nfc_is_trivial(text, len))
        return encode_pieces(enc, text, len);
    size_t normal_len;
    char *normal = nfc_normalize(text, len, &normal_len);
    if (!normal)
        return false;
    bool done = encode_pieces(enc, normal, normal_len);
    if (normal != text)
        free(normal);
    return done;
}
