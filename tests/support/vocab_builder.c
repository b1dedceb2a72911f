/* Vocabularies made in tests. */
#include "config.h"

#include "vocab_builder.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tellerd/base/buf.h"
#include "tellerd/base/utf8.h"

enum { IDS_TEXT_MAX = 1 << 24 };

static void init(struct vocab_builder *b, enum tokenizer_kind kind)
{
    memset(b, 0, sizeof *b);
    b->source = (struct vocab_source){
        .kind = kind,
        .split = SPLIT_NONE,
        .tokens = b->tokens,
        .types = b->types,
        .scores = b->scores,
        .merges = b->merges,
        .bos = TOKEN_NONE,
        .eos = TOKEN_NONE,
        .eot = TOKEN_NONE,
        .unknown = TOKEN_NONE,
    };
}

/* The byte alphabet, written down a second time: the visible characters of Latin-1 stand for
 * themselves, the others are counted up from U+0100. */
void vocab_bytes(struct vocab_builder *b, enum tokenizer_split split)
{
    uint32_t next = 0x100;
    init(b, TOKENIZER_BPE);
    b->source.split = split;
    for (uint32_t byte = 0; byte < 256; byte++) {
        bool shown = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
        utf8_encode(shown ? byte : next++, b->letters[byte]);
        vocab_add(b, b->letters[byte], TOKEN_NORMAL);
    }
}

void vocab_marked(struct vocab_builder *b, enum tokenizer_kind kind)
{
    init(b, kind);
    b->source.unknown = vocab_add(b, "<unk>", TOKEN_UNKNOWN);
    b->source.bos = vocab_add(b, "<s>", TOKEN_CONTROL);
    b->source.eos = vocab_add(b, "</s>", TOKEN_CONTROL);
    b->source.add_space_prefix = true;
}

uint32_t vocab_add_bytes(struct vocab_builder *b)
{
    uint32_t first = b->source.n_tokens;
    for (unsigned byte = 0; byte < 256; byte++) {
        snprintf(b->letters[byte], sizeof b->letters[byte], "<0x%02X>", byte);
        vocab_add(b, b->letters[byte], TOKEN_BYTE);
    }
    return first;
}

uint32_t vocab_add(struct vocab_builder *b, const char *text, enum token_type type)
{
    uint32_t id = b->source.n_tokens++;
    ck_assert_uint_lt(id, VOCAB_MAX_TOKENS);
    b->tokens[id] = (struct text_view){text, strlen(text)};
    b->types[id] = (uint8_t)type;
    return id;
}

uint32_t vocab_add_scored(struct vocab_builder *b, const char *text, float score)
{
    uint32_t id = vocab_add(b, text, TOKEN_NORMAL);
    b->scores[id] = score;
    return id;
}

uint32_t vocab_add_merge(struct vocab_builder *b, const char *merge, const char *text)
{
    ck_assert_uint_lt(b->source.n_merges, VOCAB_MAX_MERGES);
    b->merges[b->source.n_merges++] = (struct text_view){merge, strlen(merge)};
    for (uint32_t id = 0; id < b->source.n_tokens; id++) {
        if (b->tokens[id].len == strlen(text) &&
            memcmp(b->tokens[id].bytes, text, strlen(text)) == 0)
            return id;
    }
    return vocab_add(b, text, TOKEN_NORMAL);
}

struct tokenizer *vocab_tokenizer(struct vocab_builder *b)
{
    struct tokenizer *tok = NULL;
    struct error err = {0};
    enum status status = tokenizer_new(&b->source, &tok, &err);
    ck_assert_msg(status == STATUS_OK, "%s", err.text);
    return tok;
}

void vocab_must_fail(struct vocab_builder *b, const char *part)
{
    struct tokenizer *tok = NULL;
    struct error err = {0};
    ck_assert_int_eq(tokenizer_new(&b->source, &tok, &err), STATUS_BAD_FILE);
    ck_assert_ptr_null(tok);
    ck_assert_msg(strstr(err.text, part) != NULL, "\"%s\" is not in \"%s\"", part, err.text);
    ck_assert_int_eq(tokenizer_new(&b->source, &tok, NULL), STATUS_BAD_FILE);
}

void check_ids_of(const struct tokenizer *tok, const char *text, size_t len,
                  const struct text_run *trusted, size_t n_trusted, bool add_bos, const char *ids)
{
    struct token_list list = {0};
    struct error err = {0};
    struct buf out;
    enum status status =
        tokenizer_encode(tok, text, len, trusted, n_trusted, add_bos, SIZE_MAX, &list, &err);
    ck_assert_msg(status == STATUS_OK, "%s", err.text);
    buf_init(&out, IDS_TEXT_MAX);
    buf_add_str(&out, "");
    for (size_t i = 0; i < list.len; i++)
        buf_printf(&out, "%s%u", i > 0 ? " " : "", list.ids[i]);
    ck_assert_str_eq(out.data, ids);
    buf_done(&out);
    token_list_done(&list);
}

void check_ids(const struct tokenizer *tok, const char *text, const char *ids)
{
    check_ids_of(tok, text, strlen(text), NULL, 0, false, ids);
}

void check_ids_trusted(const struct tokenizer *tok, const char *text, const char *ids)
{
    check_ids_of(tok, text, strlen(text), &(struct text_run){0, strlen(text)}, 1, false, ids);
}

void check_round_trip(const struct tokenizer *tok, const char *text, size_t len)
{
    struct token_list list = {0};
    struct buf out;
    ck_assert_int_eq(tokenizer_encode(tok, text, len, NULL, 0, false, SIZE_MAX, &list, NULL),
                     STATUS_OK);
    buf_init(&out, IDS_TEXT_MAX);
    for (size_t i = 0; i < list.len; i++) {
        struct text_view piece = tokenizer_piece(tok, list.ids[i], true);
        buf_add(&out, piece.bytes, piece.len);
    }
    ck_assert_uint_eq(out.len, len);
    ck_assert_mem_eq(out.data, text, len);
    buf_done(&out);
    token_list_done(&list);
}
