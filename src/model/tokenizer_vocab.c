/*
 * Checks a vocabulary as read from a file and indexes what all kinds of tokenizer share: types,
 * texts, the bytes of each token in running text, byte tokens, special tokens.  Nothing in the file
 * is trusted but that the arrays have the lengths that the source states.
 *
 * Tolerated: equal tokens (the first is found, each decodes), empty tokens (never found), ids of
 * special tokens that are absent.  A file without token types has normal tokens only, but for the
 * special ids.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/base/log.h"
#include "tellerd/base/mem.h"
#include "tellerd/base/utf8.h"
#include "tokenizer_priv.h"

enum { N_BYTE_LETTERS = 0x144, SHOWN_TEXT_BYTES = 96 };

/* Control tokens that end a generation in the models of this world, whatever the file says. */
static const char *const eog_names[] = {
    "<|im_end|>",    "<|eot_id|>", "<|end|>",           "<|endoftext|>", "<|end_of_text|>",
    "<end_of_turn>", "</s>",       "<|assistant_end|>", "<|eom_id|>",
};

uint32_t byte_letter(unsigned char byte)
{
    /* what Latin-1 can show stands for itself, the other 68 follow from 0x100 in their order */
    if ((byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD))
        return byte;
    if (byte <= 0x20)
        return 0x100u + byte;
    if (byte <= 0xA0)
        return 0x121u + byte - 0x7F;
    return 0x143;
}

int letter_byte(uint32_t code)
{
    if (code < 0x100)
        return byte_letter((unsigned char)code) == code ? (int)code : -1;
    if (code <= 0x120)
        return (int)(code - 0x100);
    if (code <= 0x142)
        return (int)(code - 0x121 + 0x7F);
    return code == 0x143 ? 0xAD : -1;
}

enum status vocab_error(struct error *err, const char *array, size_t at, struct text_view text,
                        const char *problem)
{
    char shown[SHOWN_TEXT_BYTES];
    log_quote(shown, sizeof shown, text.bytes ? text.bytes : "", text.len);
    return error_set(err, STATUS_BAD_FILE, "tokenizer: %s[%zu] \"%s\": %s", array, at, shown,
                     problem);
}

/* -- types and special ids --------------------------------------------------------------------- */

static enum status check_id(const struct tokenizer *tok, const char *name, uint32_t id,
                            struct error *err)
{
    if (id == TOKEN_NONE || id < tok->n_tokens)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_FILE,
                     "tokenizer: the %s token's id %u is outside the vocabulary of %u tokens", name,
                     id, tok->n_tokens);
}

static enum status check_ids(const struct tokenizer *tok, struct error *err)
{
    const struct vocab_source *source = tok->source;
    const struct {
        const char *name;
        uint32_t id;
    } ids[] = {{"bos", source->bos},
               {"eos", source->eos},
               {"eot", source->eot},
               {"unknown", source->unknown}};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        enum status status = check_id(tok, ids[i].name, ids[i].id, err);
        if (status)
            return status;
    }
    if (source->n_extra_eog > sizeof source->extra_eog / sizeof *source->extra_eog)
        return error_set(err, STATUS_BAD_FILE, "tokenizer: too many end-of-generation ids");
    for (uint32_t i = 0; i < source->n_extra_eog; i++) {
        enum status status = check_id(tok, "end-of-generation", source->extra_eog[i], err);
        if (status)
            return status;
    }
    return STATUS_OK;
}

static void set_type(struct tokenizer *tok, uint32_t id, enum token_type type)
{
    if (id != TOKEN_NONE)
        tok->types[id] = (uint8_t)type;
}

static enum status take_types(struct tokenizer *tok, struct error *err)
{
    const struct vocab_source *source = tok->source;
    tok->types = xmalloc(tok->n_tokens);
    if (source->types) {
        memcpy(tok->types, source->types, tok->n_tokens);
        for (uint32_t i = 0; i < tok->n_tokens; i++) {
            if (tok->types[i] < TOKEN_NORMAL || tok->types[i] > TOKEN_BYTE)
                return vocab_error(err, "tokens", i, source->tokens[i], "unknown token type");
        }
        return STATUS_OK;
    }
    memset(tok->types, TOKEN_NORMAL, tok->n_tokens);
    set_type(tok, source->unknown, TOKEN_UNKNOWN);
    set_type(tok, source->bos, TOKEN_CONTROL);
    set_type(tok, source->eos, TOKEN_CONTROL);
    set_type(tok, source->eot, TOKEN_CONTROL);
    for (uint32_t i = 0; i < source->n_extra_eog; i++)
        set_type(tok, source->extra_eog[i], TOKEN_CONTROL);
    return STATUS_OK;
}

static void find_eog(struct tokenizer *tok)
{
    const struct vocab_source *source = tok->source;
    tok->eog = xcalloc(tok->n_tokens, 1);
    if (source->eos != TOKEN_NONE)
        tok->eog[source->eos] = 1;
    if (source->eot != TOKEN_NONE)
        tok->eog[source->eot] = 1;
    for (uint32_t i = 0; i < source->n_extra_eog; i++)
        tok->eog[source->extra_eog[i]] = 1;
    for (size_t i = 0; i < sizeof eog_names / sizeof *eog_names; i++) {
        uint32_t id = text_index_find(&tok->index, eog_names[i], strlen(eog_names[i]));
        if (id != TOKEN_NONE && tok->types[id] == TOKEN_CONTROL)
            tok->eog[id] = 1;
    }
}

/* -- texts ------------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte of "<0xNN>", or -1: exactly two hexadecimal digits, no sign, no space. */
static int byte_token(struct text_view text)
{
    if (text.len != 6 || memcmp(text.bytes, "<0x", 3) != 0 || text.bytes[5] != '>')
        return -1;
    int high = hex_digit(text.bytes[3]), low = hex_digit(text.bytes[4]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* Writes a token of the byte alphabet as bytes; 0 when a character is not of the alphabet: then the
 * token stands for itself. */
static size_t decode_letters(struct text_view text, char *out)
{
    size_t n = 0;
    for (size_t at = 0; at < text.len;) {
        uint32_t code;
        unsigned bad;
        unsigned len = utf8_decode(text.bytes + at, text.len - at, &code, &bad);
        int byte = len > 0 ? letter_byte(code) : -1;
        if (byte < 0)
            return 0;
        out[n++] = (char)byte;
        at += len;
    }
    return n;
}

/* Writes text with its space marks as spaces. */
static size_t decode_marks(struct text_view text, char *out)
{
    size_t n = 0;
    for (size_t at = 0; at < text.len;) {
        if (text.len - at >= SPACE_MARK_BYTES &&
            memcmp(text.bytes + at, SPACE_MARK, SPACE_MARK_BYTES) == 0) {
            out[n++] = ' ';
            at += SPACE_MARK_BYTES;
        } else {
            out[n++] = text.bytes[at++];
        }
    }
    return n;
}

/* The bytes of one token in running text, at out when they are not the token's text itself. */
static enum status decode_token(struct tokenizer *tok, uint32_t id, char *out, struct error *err)
{
    struct text_view text = tok->source->tokens[id];
    size_t n = 0;
    if (tok->types[id] == TOKEN_BYTE) {
        int byte = byte_token(text);
        if (byte < 0)
            return vocab_error(err, "tokens", id, text, "a byte token must read <0xNN>");
        *out = (char)byte;
        tok->pieces[id] = (struct text_view){out, 1};
        return STATUS_OK;
    }
    if (tok->source->kind != TOKENIZER_BPE) {
        if (tok->types[id] != TOKEN_CONTROL && tok->types[id] != TOKEN_UNKNOWN)
            n = decode_marks(text, out);
    } else if (tok->types[id] == TOKEN_NORMAL || tok->types[id] == TOKEN_UNUSED) {
        n = decode_letters(text, out);
    }
    tok->pieces[id] = n > 0 ? (struct text_view){out, n} : text;
    return STATUS_OK;
}

static enum status take_texts(struct tokenizer *tok, struct error *err)
{
    const struct text_view *tokens = tok->source->tokens;
    size_t total = 0;
    for (uint32_t i = 0; i < tok->n_tokens; i++) {
        if (!size_add(total, tokens[i].len, &total))
            return error_set(err, STATUS_BAD_FILE, "tokenizer: the tokens are too long");
        if (tokens[i].len > tok->max_token_bytes)
            tok->max_token_bytes = tokens[i].len;
    }
    tok->pieces = xcalloc(tok->n_tokens, sizeof *tok->pieces);
    tok->piece_bytes = malloc(total + 1);
    if (!tok->piece_bytes)
        return error_set(err, STATUS_NO_MEMORY, "tokenizer: no memory for the tokens' texts");
    char *at = tok->piece_bytes;
    for (uint32_t id = 0; id < tok->n_tokens; id++) {
        enum status status = decode_token(tok, id, at, err);
        if (status)
            return status;
        if (tok->pieces[id].bytes == at)
            at += tok->pieces[id].len;
    }
    return STATUS_OK;
}

/* -- bytes and specials ------------------------------------------------------------------------ */

static void find_bytes(struct tokenizer *tok)
{
    for (int byte = 0; byte < 256; byte++)
        tok->byte_ids[byte] = TOKEN_NONE;
    if (tok->source->kind != TOKENIZER_BPE) {
        for (uint32_t id = tok->n_tokens; id-- > 0;) {
            if (tok->types[id] == TOKEN_BYTE)
                tok->byte_ids[(unsigned char)tok->pieces[id].bytes[0]] = id;
        }
        return;
    }
    for (int byte = 0; byte < 256; byte++) {
        char letter[4];
        unsigned len = utf8_encode(byte_letter((unsigned char)byte), letter);
        uint32_t id = text_index_find(&tok->index, letter, len);
        if (id != TOKEN_NONE && token_is_text(tok, id))
            tok->byte_ids[byte] = id;
    }
}

static bool has_all_bytes(const struct tokenizer *tok)
{
    for (int byte = 0; byte < 256; byte++) {
        if (tok->byte_ids[byte] == TOKEN_NONE)
            return false;
    }
    return true;
}

/* SPM and unigram: every character must come out as something, and never as a control token. */
static enum status take_unknown(struct tokenizer *tok, struct error *err)
{
    uint32_t unknown = tok->source->unknown;
    tok->unknown = TOKEN_NONE;
    if (tok->source->kind == TOKENIZER_BPE)
        return STATUS_OK;
    if (unknown != TOKEN_NONE &&
        (tok->types[unknown] == TOKEN_UNKNOWN || tok->types[unknown] == TOKEN_NORMAL))
        tok->unknown = unknown;
    else if (!has_all_bytes(tok))
        return error_set(err, STATUS_BAD_FILE,
                         "tokenizer: neither an unknown token nor all 256 byte tokens");
    return STATUS_OK;
}

static enum status take_specials(struct tokenizer *tok, struct error *err)
{
    trie_init(&tok->specials);
    for (uint32_t id = 0; id < tok->n_tokens; id++) {
        enum token_type type = tok->types[id];
        if (type != TOKEN_CONTROL && type != TOKEN_UNKNOWN && type != TOKEN_USER_DEFINED)
            continue;
        struct text_view text = tok->pieces[id]; /* a user-defined token's marks match spaces */
        if (text.len > 0 && !trie_add(&tok->specials, text.bytes, text.len, id))
            return error_set(err, STATUS_BAD_FILE, "tokenizer: the special tokens are too long");
    }
    return STATUS_OK;
}

/* Whether a space mark stands behind another character. */
static bool has_inner_mark(struct text_view text)
{
    for (size_t at = 1; at + SPACE_MARK_BYTES <= text.len; at++) {
        if (memcmp(text.bytes + at, SPACE_MARK, SPACE_MARK_BYTES) == 0 &&
            (at < SPACE_MARK_BYTES ||
             memcmp(text.bytes + at - SPACE_MARK_BYTES, SPACE_MARK, SPACE_MARK_BYTES) != 0))
            return true;
    }
    return false;
}

static bool can_cut_at_spaces(const struct tokenizer *tok)
{
    for (uint32_t id = 0; id < tok->n_tokens; id++) {
        if (token_is_text(tok, id) && has_inner_mark(tok->source->tokens[id]))
            return false;
    }
    return true;
}

enum status vocab_build(struct tokenizer *tok, struct error *err)
{
    const struct vocab_source *source = tok->source;
    if (source->n_tokens == 0 || !source->tokens)
        return error_set(err, STATUS_BAD_FILE, "tokenizer: the model has no tokens");
    if (source->n_tokens > TOKENIZER_MAX_TOKENS)
        return error_set(err, STATUS_BAD_FILE, "tokenizer: %u tokens are too many",
                         source->n_tokens);
    bool has_merges = source->kind == TOKENIZER_SPM && source->n_merges > 0;
    if (source->kind != TOKENIZER_BPE && !source->scores && !has_merges)
        return error_set(err, STATUS_BAD_FILE,
                         "tokenizer: scores are missing (tokenizer.ggml.scores)");
    tok->n_tokens = source->n_tokens;
    enum status status = check_ids(tok, err);
    if (!status)
        status = take_types(tok, err);
    if (!status)
        status = take_texts(tok, err);
    if (status)
        return status;
    text_index_init(&tok->index, source->tokens, source->n_tokens);
    find_eog(tok);
    find_bytes(tok);
    status = take_unknown(tok, err);
    if (!status)
        status = take_specials(tok, err);
    if (!status && source->kind != TOKENIZER_BPE)
        tok->cuts_at_spaces = source->cuts_at_each_space || can_cut_at_spaces(tok);
    return status;
}
