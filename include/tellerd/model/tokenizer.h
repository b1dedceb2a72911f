#ifndef TELLERD_MODEL_TOKENIZER_H
#define TELLERD_MODEL_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/base/status.h"
#include "tellerd/model/checkpoint.h"
#include "tellerd/model/text_run.h"

/*
 * Text to token ids and back.  Immutable after tokenizer_new, so any thread may use one tokenizer
 * at the same time.  Encoding takes time near-linear in the text, about 60 bytes of memory for each
 * byte of the longest piece, and stack that does not grow with it.
 */
struct tokenizer;

struct token_list { /* owned by the caller; token_list_done frees */
    uint32_t *ids;
    size_t len;
    size_t cap;
};
void token_list_add(struct token_list *list, uint32_t id);
void token_list_done(struct token_list *list);

/*
 * Checks and indexes the vocabulary (which must outlive the tokenizer).  Tolerated: equal tokens
 * and equal merges (the first counts), empty tokens.  Errors: BAD_FILE naming array and token,
 * NO_MEMORY.
 */
enum status tokenizer_new(const struct vocab_source *source, struct tokenizer **ret,
                          struct error *err) WARN_UNUSED;
void tokenizer_free(struct tokenizer *tok);

/*
 * Appends the ids of text (well-formed UTF-8; ill-formed bytes do no harm).  Control tokens (and
 * the unknown token) are recognised only where their whole text lies within one of the trusted runs
 * (none: all of it is ordinary text, which never becomes one); user-defined tokens everywhere; of
 * those that start at one place the longest.  What lies between two is encoded as a text of its
 * own, so that the result equals the reference tokenizer's.  add_bos puts BOS first unless the ids
 * already begin with it from a control token of the text.  Errors: TOO_LARGE when more than
 * max_tokens ids would come out: encoding then stops early, the first max_tokens of them have been
 * appended and n_prompt_tokens of err says how many were counted so far; or when the text is longer
 * than 1 GiB.  NO_MEMORY.
 */
enum status tokenizer_encode(const struct tokenizer *tok, const char *text, size_t len,
                             const struct text_run *trusted, size_t n_trusted, bool add_bos,
                             size_t max_tokens, struct token_list *out,
                             struct error *err) WARN_UNUSED;

/*
 * Bytes of one token as they stand in running text: the exact bytes (possibly part of a character);
 * empty for control tokens unless `with_control`.  For SPM the space mark is a space; the caller
 * drops one leading space at the start of a whole text when tokenizer_strips_leading_space.  The
 * bytes belong to the tokenizer.
 */
struct text_view tokenizer_piece(const struct tokenizer *tok, uint32_t id, bool with_control);
bool tokenizer_strips_leading_space(const struct tokenizer *tok);

uint32_t tokenizer_size(const struct tokenizer *tok);
/* Control and unknown tokens: markup that ordinary text never becomes. */
bool tokenizer_is_control(const struct tokenizer *tok, uint32_t id);
/* End of generation: eos, eot, the extra ids, and control tokens by their well-known names
 * (<|im_end|>, <|eot_id|>, <|endoftext|>, ...). */
bool tokenizer_is_eog(const struct tokenizer *tok, uint32_t id);
/* Whether the id may be sampled at all: false for unused tokens, the unknown token, and control
 * tokens that do not end a generation (they belong to the template). */
bool tokenizer_may_sample(const struct tokenizer *tok, uint32_t id);
uint32_t tokenizer_bos(const struct tokenizer *tok); /* TOKEN_NONE when absent */
uint32_t tokenizer_eos(const struct tokenizer *tok);
bool tokenizer_adds_bos(const struct tokenizer *tok); /* add_bos of the file: for raw prompts */
/* The id whose text is exactly this, TOKEN_NONE when none. */
uint32_t tokenizer_find(const struct tokenizer *tok, const char *text, size_t len);

/* Splits text into pre-tokens: calls fn for each piece.  For tests against the published patterns.
 */
void tokenizer_split_text(enum tokenizer_split split, const char *text, size_t len,
                          void (*fn)(void *ctx, const char *piece, size_t len), void *ctx);

#endif
