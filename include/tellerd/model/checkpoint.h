#ifndef TELLERD_MODEL_CHECKPOINT_H
#define TELLERD_MODEL_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/backend/tensor.h"
#include "tellerd/base/hash.h"
#include "tellerd/base/status.h"
#include "tellerd/model/hparams.h"

/*
 * A model on disk: a GGUF file or a Hugging Face directory, mapped read-only and validated as a
 * whole when opened (a hostile file gives an error, never a crash), so that later code has no "if".
 * Views point into the mapping and live until checkpoint_close.
 */
struct checkpoint;

enum token_type {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN,
    TOKEN_CONTROL,
    TOKEN_USER_DEFINED,
    TOKEN_UNUSED,
    TOKEN_BYTE
};
enum tokenizer_kind { TOKENIZER_BPE, TOKENIZER_SPM, TOKENIZER_UNIGRAM };
enum tokenizer_split {
    SPLIT_GPT2,
    SPLIT_LLAMA3,
    SPLIT_QWEN2,
    SPLIT_SMOLLM,
    SPLIT_NANOCHAT,
    SPLIT_NONE,
    SPLIT_COUNT
};

/* Bytes in the mapping or in the checkpoint's arena; not NUL-terminated. */
struct text_view {
    const char *bytes;
    size_t len;
};

#define TOKEN_NONE UINT32_MAX

/* The vocabulary as read; tokenizer_new checks and indexes it. */
struct vocab_source {
    enum tokenizer_kind kind;
    enum tokenizer_split split;
    uint32_t n_tokens;
    const struct text_view
        *tokens;          /* GPT-2 byte alphabet for BPE, U+2581 for spaces in SPM/unigram */
    const uint8_t *types; /* [n_tokens] enum token_type; NULL: all normal */
    const float *scores;  /* [n_tokens] or NULL */
    uint32_t n_merges;
    const struct text_view *merges;  /* "left right"; BPE, and SPM read from
                                        tokenizer.json: then in place of scores */
    uint32_t bos, eos, eot, unknown; /* TOKEN_NONE when absent; not yet range-checked */
    uint32_t n_extra_eog;
    uint32_t extra_eog[16]; /* further end-of-generation ids (generation_config's list) */
    bool add_bos, add_eos, add_space_prefix;
    /* Hugging Face's Metaspace: no prefix where the text begins with a space / only at the start of
     * the whole text rather than after each control token.  Both false: as SentencePiece and the
     * Prepend normaliser do. */
    bool prefix_not_before_space, prefix_at_start_only;
    /* SPM, unigram: every space begins a piece, so that no token has a space behind another
     * character (Metaspace with split). */
    bool cuts_at_each_space;
    /* SPM: each unknown character is an unknown token, not several of them one (fuse_unk false). */
    bool unknown_not_fused;
    /* BPE: a pre-token that is a token as a whole is that token, whatever the merges say
     * (tokenizer.json's model.ignore_merges; GGUF: pre "llama-bpe" and "nanochat"). */
    bool ignore_merges;
    bool nfc; /* NFC normaliser (Qwen2) */
};

struct generation_defaults { /* from generation_config.json; negative = not given */
    float temperature, top_p, min_p, repetition_penalty;
    int32_t top_k;
};

/* Opens path (file or directory).  Errors: NOT_FOUND, IO, BAD_FILE; the text names file, key or
 * tensor.  Any one thread. */
enum status checkpoint_open(const char *path, struct checkpoint **ret,
                            struct error *err) WARN_UNUSED;
void checkpoint_close(struct checkpoint *cp);

const struct hparams *checkpoint_hparams(const struct checkpoint *cp);
const struct vocab_source *checkpoint_vocab(const struct checkpoint *cp);
/* Template text, or bytes NULL when the model has none. */
struct text_view checkpoint_chat_template(const struct checkpoint *cp);
const struct generation_defaults *checkpoint_defaults(const struct checkpoint *cp);
/* Finds a tensor by its GGUF name (docs/formats.md); false when the model has none of that name. */
bool checkpoint_tensor(const struct checkpoint *cp, const char *name, struct tensor *ret);
/* XXH3-128 over shapes, tensors (banks included) and vocabulary: root of the prefix cache's chain.
 * Computed once, at the first call. */
struct hash128 checkpoint_fingerprint(struct checkpoint *cp);
/* Bytes of all tensors, and of the banks among them. */
void checkpoint_bytes(const struct checkpoint *cp, size_t *ret_tensors, size_t *ret_banks);
/* Tells the kernel that the mapped weights are no longer needed in memory, but for the tables read
 * in place. */
void checkpoint_release_pages(struct checkpoint *cp);

#endif
