#ifndef TELLERD_MODEL_TOKENIZER_PRIV_H
#define TELLERD_MODEL_TOKENIZER_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/model/checkpoint.h"
#include "tellerd/model/tokenizer.h"

/*
 * Inside of the tokenizer.  A *stretch* is the text between two special tokens; a *piece* is a part
 * of it that no token can cross.  A *symbol* is what the merges join: a token id or, in SPM, a
 * character that is no token but part of one (ids from n_tokens up).
 */

enum {
    TOKENIZER_MAX_TOKENS = 1 << 24,
    TOKENIZER_MAX_MERGES = 1 << 26,
    TOKENIZER_MAX_TEXT = 1 << 30, /* bytes of one text: positions fit 32 bits with room */
};

/* -- texts to ids (tokenizer_index.c) ---------------------------------------------------------- */

/* Open addressing; the texts stay with the vocabulary. */
struct text_slot {
    uint32_t hash;
    uint32_t id; /* TOKEN_NONE: empty */
};
struct text_index {
    const struct text_view *tokens;
    struct text_slot *slots; /* [mask + 1], owned */
    uint32_t mask;
};
/* Empty tokens are left out; of equal ones the first is found. */
void text_index_init(struct text_index *index, const struct text_view *tokens, uint32_t n_tokens);
void text_index_done(struct text_index *index);
uint32_t text_index_find(const struct text_index *index, const char *text, size_t len);

/* Bytes to ids, a byte at a time. */
struct trie_edge {
    uint32_t key;   /* node << 8 | byte */
    uint32_t child; /* 0: empty */
};
struct trie {
    struct trie_edge *edges; /* [mask + 1], owned */
    uint32_t mask;
    uint32_t n_edges;
    uint32_t *ids; /* [n_nodes] TOKEN_NONE where no token ends; owned */
    uint32_t n_nodes;
    uint32_t cap_nodes;
    uint32_t first[256]; /* children of the root */
};
void trie_init(struct trie *trie);
void trie_done(struct trie *trie);
/* False when the trie would pass its 2^24 nodes.  A text that is there keeps its first id. */
bool trie_add(struct trie *trie, const char *text, size_t len, uint32_t id);
/* The child of node (0: root) for a byte, or 0. */
uint32_t trie_step(const struct trie *trie, uint32_t node, unsigned char byte);

/* -- merges (tokenizer_merge.c) ---------------------------------------------------------------- */

struct merge { /* left, right -> id, at rank: the lower the earlier */
    uint32_t left, right;
    uint32_t rank;
    uint32_t id;
};
struct merge_table {
    struct merge *slots; /* [mask + 1], owned; left TOKEN_NONE: empty */
    uint32_t mask;
};
/* Room for up to n_merges. */
void merge_table_init(struct merge_table *table, size_t n_merges);
void merge_table_done(struct merge_table *table);
/* Of equal pairs the first stays. */
void merge_table_add(struct merge_table *table, const struct merge *merge);
const struct merge *merge_table_find(const struct merge_table *table, uint32_t left,
                                     uint32_t right);

struct merge_symbol { /* in a list linked by index, MERGE_END at both ends */
    uint32_t id;      /* TOKEN_NONE: never merges */
    uint32_t prev, next;
    uint32_t rank;   /* of the pair with the next symbol, MERGE_END when they do not merge */
    uint32_t merged; /* what that pair becomes */
};
#define MERGE_END UINT32_MAX
/* One thread's memory for merging, kept from piece to piece. */
struct merge_work {
    struct merge_symbol *symbols; /* [cap] */
    uint64_t *heap;               /* [2 * cap] rank << 32 | position of the left symbol */
    size_t cap;
    size_t n_heap;
};
void merge_work_done(struct merge_work *work);
/* Room for n symbols; false when memory is out. */
bool merge_work_reserve(struct merge_work *work, size_t n);
/* Merges symbols[0..n), whose ids the caller has set, until no pair merges; symbols[0] is then the
 * first of the list.  Time n log n. */
void merge_run(const struct merge_table *table, struct merge_work *work, uint32_t n);

/* -- the tokenizer ----------------------------------------------------------------------------- */

struct tokenizer {
    const struct vocab_source *source;
    uint32_t n_tokens;
    uint8_t *types;           /* [n_tokens] enum token_type */
    uint8_t *eog;             /* [n_tokens] */
    struct text_view *pieces; /* [n_tokens] bytes in running text */
    char *piece_bytes;        /* behind the pieces that differ from the token's text */
    size_t max_token_bytes;
    struct text_index index;
    struct trie specials;   /* control, unknown and user-defined tokens */
    uint32_t byte_ids[256]; /* BPE: of the letter; SPM, unigram: of <0xNN>.  TOKEN_NONE: absent */
    uint32_t unknown;       /* what unknown characters become (SPM, unigram), or TOKEN_NONE */
    bool cuts_at_spaces;    /* SPM, unigram: no token has a space mark behind another character */

    struct merge_table merges; /* BPE, SPM */
    uint32_t *lone_letters;    /* SPM: [n_lone_letters] ascending; code i is symbol n_tokens + i */
    uint32_t n_lone_letters;

    struct trie unigram_trie;
    double unknown_score;
};

/* Whether ordinary text may come out as this token. */
static inline bool token_is_text(const struct tokenizer *tok, uint32_t id)
{
    return tok->types[id] == TOKEN_NORMAL || tok->types[id] == TOKEN_USER_DEFINED;
}

/* tokenizer_vocab.c: checks the source and fills everything up to cuts_at_spaces. */
enum status vocab_build(struct tokenizer *tok, struct error *err) WARN_UNUSED;
/* BAD_FILE naming array, place and text. */
enum status vocab_error(struct error *err, const char *array, size_t at, struct text_view text,
                        const char *problem);

/* The rest, by kind. */
enum status bpe_build(struct tokenizer *tok, struct error *err) WARN_UNUSED;
enum status spm_build(struct tokenizer *tok, struct error *err) WARN_UNUSED;
enum status unigram_build(struct tokenizer *tok, struct error *err) WARN_UNUSED;

/* -- encoding ---------------------------------------------------------------------------------- */

struct viterbi_node;

struct text_scratch {
    char *bytes;
    size_t cap;
};
/* Room for n bytes; false when memory is out. */
bool text_scratch_reserve(struct text_scratch *scratch, size_t n);

/* One call of tokenizer_encode. */
struct encoder {
    const struct tokenizer *tok;
    struct token_list *out;
    size_t n_ids; /* counted; no more than max_ids of them are stored */
    size_t max_ids;
    bool bos_pending;
    bool after_unknown; /* the last id stands for unknown characters: more of them add nothing */
    struct merge_work work;
    struct text_scratch marked; /* SPM, unigram: the stretch with space marks */
    struct text_scratch spelt;  /* BPE: a piece in letters of the byte alphabet */
    struct viterbi_node *nodes; /* [cap_nodes] */
    size_t cap_nodes;
};
void encoder_emit(struct encoder *enc, uint32_t id);
/* Bytes of one character that is no token: its <0xNN> tokens, else the unknown token once for
 * several. */
void encoder_emit_unknown(struct encoder *enc, const char *bytes, size_t len);
static inline bool encoder_is_full(const struct encoder *enc)
{
    return enc->n_ids > enc->max_ids;
}

/* Encode one stretch (one piece).  False when memory is out. */
bool bpe_encode(struct encoder *enc, const char *text, size_t len);
bool spm_encode(struct encoder *enc, const char *piece, size_t len);
bool unigram_encode(struct encoder *enc, const char *piece, size_t len);

/* Length of the character at text (len > 0); an ill-formed piece counts as one. */
size_t character_length(const char *text, size_t len);

/* End of the pre-token that starts at start < len. */
size_t split_piece(enum tokenizer_split split, const char *text, size_t len, size_t start);

/* Unicode normalisation form C (tokenizer_nfc.c).  *ret is text itself when nothing changes or it
 * is ill-formed, else malloced; NULL when memory is out.  Near-linear whatever the text. */
char *nfc_normalize(const char *text, size_t len, size_t *ret_len);
/* Whether nfc_normalize cannot change text. */
bool nfc_is_trivial(const char *text, size_t len);

/* Byte-level BPE's alphabet: the code point (below 0x144) that stands for a byte, and back (-1:
 * none). */
uint32_t byte_letter(unsigned char byte);
int letter_byte(uint32_t code);

#define SPACE_MARK "\xE2\x96\x81" /* U+2581 */
enum { SPACE_MARK_BYTES = 3 };

#endif
