/*
 * SentencePiece's unigram model (T5): the cut of a piece into tokens whose scores have the greatest
 * sum, found character by character (Viterbi).  Where no token is exactly the next character, that
 * character may also count as unknown, at a score below every token's.  Sums are in double; of
 * equal sums the one found first stays, as in the reference.
 */
#include "config.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "tokenizer_priv.h"

static const double unknown_penalty = 10.0; /* below the least score: the published constant */

struct viterbi_node { /* the best way to a place: its last token is [start, place) */
    double score;
    uint32_t start;
    uint32_t id; /* TOKEN_NONE: an unknown character */
};

enum status unigram_build(struct tokenizer *tok, struct error *err)
{
    const struct vocab_source *source = tok->source;
    double least = DBL_MAX;
    trie_init(&tok->unigram_trie);
    for (uint32_t id = 0; id < tok->n_tokens; id++) {
        struct text_view text = source->tokens[id];
        if (!token_is_text(tok, id) || text.len == 0)
            continue;
        if (!isfinite(source->scores[id]))
            return vocab_error(err, "tokens", id, text, "the token's score is not finite");
        if (!trie_add(&tok->unigram_trie, text.bytes, text.len, id))
            return error_set(err, STATUS_BAD_FILE, "tokenizer: the tokens are too long");
        if (tok->types[id] == TOKEN_NORMAL && (double)source->scores[id] < least)
            least = (double)source->scores[id];
    }
    tok->unknown_score = (least < DBL_MAX ? least : 0.0) - unknown_penalty;
    return STATUS_OK;
}

static void offer(struct viterbi_node *node, double score, uint32_t start, uint32_t id)
{
    if (score > node->score)
        *node = (struct viterbi_node){score, start, id};
}

/* Extends the best way to `start` by every token that starts there; whether one of them is just the
 * next character. */
static bool extend(struct encoder *enc, const char *piece, size_t len, size_t start,
                   size_t letter_bytes)
{
    const struct tokenizer *tok = enc->tok;
    const struct trie *trie = &tok->unigram_trie;
    bool has_letter = false;
    uint32_t node = 0;
    for (size_t at = start; at < len;) {
        node = trie_step(trie, node, (unsigned char)piece[at++]);
        if (node == 0)
            break;
        uint32_t id = trie->ids[node];
        if (id == TOKEN_NONE)
            continue;
        double score = enc->nodes[start].score + (double)tok->source->scores[id];
        offer(&enc->nodes[at], score, (uint32_t)start, id);
        has_letter = has_letter || at - start == letter_bytes;
    }
    return has_letter;
}

/* Turns the links from each place to the token before it into links to the token behind it. */
static void turn_links(struct viterbi_node *nodes, size_t len)
{
    uint32_t end = (uint32_t)len, start = nodes[len].start, id = nodes[len].id;
    while (end > 0) {
        uint32_t next_start = nodes[start].start, next_id = nodes[start].id;
        nodes[start].start = end; /* now: where the token ends */
        nodes[start].id = id;
        end = start;
        start = next_start;
        id = next_id;
    }
}

bool unigram_encode(struct encoder *enc, const char *piece, size_t len)
{
    if (len + 1 > enc->cap_nodes) {
        size_t cap = len + len / 2 + 64;
        free(enc->nodes);
        enc->nodes = reallocarray(NULL, cap, sizeof *enc->nodes);
        enc->cap_nodes = enc->nodes ? cap : 0;
        if (!enc->nodes)
            return false;
    }
    struct viterbi_node *nodes = enc->nodes;
    nodes[0] = (struct viterbi_node){0.0, 0, TOKEN_NONE};
    for (size_t at = 1; at <= len; at++)
        nodes[at].score = -INFINITY;
    for (size_t at = 0, n_bytes; at < len; at += n_bytes) {
        n_bytes = character_length(piece + at, len - at);
        if (!extend(enc, piece, len, at, n_bytes))
            offer(&nodes[at + n_bytes], nodes[at].score + enc->tok->unknown_score, (uint32_t)at,
                  TOKEN_NONE);
    }
    turn_links(nodes, len);
    for (size_t at = 0; at < len; at = nodes[at].start) {
        if (nodes[at].id != TOKEN_NONE)
            encoder_emit(enc, nodes[at].id);
        else
            encoder_emit_unknown(enc, piece + at, nodes[at].start - at);
    }
    return true;
}
