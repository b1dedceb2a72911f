#ifndef TELLERD_SUPPORT_VOCAB_BUILDER_H
#define TELLERD_SUPPORT_VOCAB_BUILDER_H

/*
 * A vocabulary made in a test: start with one of the vocab_... functions, add tokens and merges
 * (texts are borrowed: literals), then vocab_tokenizer.  Fixed size, on the test's stack.
 */
#include <stdint.h>

#include "tellerd/model/tokenizer.h"

enum { VOCAB_MAX_TOKENS = 400, VOCAB_MAX_MERGES = 64 };

struct vocab_builder {
    struct vocab_source source;
    struct text_view tokens[VOCAB_MAX_TOKENS];
    uint8_t types[VOCAB_MAX_TOKENS];
    float scores[VOCAB_MAX_TOKENS];
    struct text_view merges[VOCAB_MAX_MERGES];
    char letters[256][8]; /* of the byte alphabet, or <0xNN> */
};

/* Byte-level BPE: ids 0-255 are the letters of the bytes. */
void vocab_bytes(struct vocab_builder *b, enum tokenizer_split split);
/* SPM or unigram: 0 <unk>, 1 <s>, 2 </s>; bos, eos and unknown set, a space prefix asked for. */
void vocab_marked(struct vocab_builder *b, enum tokenizer_kind kind);
/* Adds <0x00> to <0xFF>; returns the id of the first. */
uint32_t vocab_add_bytes(struct vocab_builder *b);

/* Add one entry; return its id. */
uint32_t vocab_add(struct vocab_builder *b, const char *text, enum token_type type);
uint32_t vocab_add_scored(struct vocab_builder *b, const char *text, float score);
/* Adds the merge and, when there is no such token yet, the token it makes (text "ab" of "a b");
 * returns its id. */
uint32_t vocab_add_merge(struct vocab_builder *b, const char *merge, const char *text);

/* tokenizer_new on it: must succeed. */
struct tokenizer *vocab_tokenizer(struct vocab_builder *b);
/* tokenizer_new on it must fail with BAD_FILE and a text that has `part` in it. */
void vocab_must_fail(struct vocab_builder *b, const char *part);

/*
 * Asserts that the text becomes these ids, written with spaces between ("1 2 3").  trusted: none
 * (check_ids) or the whole text (check_ids_trusted).
 */
void check_ids(const struct tokenizer *tok, const char *text, const char *ids);
void check_ids_trusted(const struct tokenizer *tok, const char *text, const char *ids);
void check_ids_of(const struct tokenizer *tok, const char *text, size_t len,
                  const struct text_run *trusted, size_t n_trusted, bool add_bos, const char *ids);
/* Asserts that the pieces of the text's ids, control tokens included, join to the text again. */
void check_round_trip(const struct tokenizer *tok, const char *text, size_t len);

#endif
