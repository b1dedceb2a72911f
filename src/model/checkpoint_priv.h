#ifndef TELLERD_MODEL_CHECKPOINT_PRIV_H
#define TELLERD_MODEL_CHECKPOINT_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hparams_priv.h"
#include "name_table_priv.h"
#include "tellerd/base/arena.h"
#include "tellerd/base/mapfile.h"
#include "tellerd/model/checkpoint.h"

struct gguf;

enum {
    CHECKPOINT_MAX_FILES = 1024,
    /* views, texts and numbers of the vocabulary; a 4 Mi token vocabulary takes 200 MiB */
    CHECKPOINT_ARENA_BYTES = 1 << 30,
    CHECKPOINT_MAX_TEMPLATE_BYTES = 1 << 20,
};

struct checkpoint_tensor {
    struct text_view name; /* GGUF name; in the mapping or the arena */
    struct tensor tensor;
    size_t offset; /* of the data in its file */
    uint32_t file;
};

struct checkpoint {
    char *path;
    struct arena arena;
    struct mapfile *files; /* [n_files] */
    uint32_t n_files;
    struct checkpoint_tensor *tensors; /* [n_tensors] */
    uint32_t n_tensors;
    struct name_table names;
    struct hparams hparams;
    struct vocab_source vocab;
    struct text_view chat_template;
    struct generation_defaults defaults;
    bool has_fingerprint;
    struct hash128 fingerprint;
};

/* Zeroed memory of the checkpoint's arena; NULL, with err set to BAD_FILE, when the arena is full.
 */
void *checkpoint_alloc(struct checkpoint *cp, size_t count, size_t size, struct error *err);
/* A copy of text in the arena; false as above. */
bool checkpoint_copy_text(struct checkpoint *cp, const char *text, size_t len,
                          struct text_view *ret, struct error *err);

/*
 * The readers fill files, tensors, hparams, vocab, template and defaults from an opened file (a
 * directory); what both forms share is checked afterwards in checkpoint.c.  On failure cp is left
 * for checkpoint_close.
 */
enum status gguf_model_read(struct checkpoint *cp, const struct gguf *file,
                            struct error *err) WARN_UNUSED;
enum status hf_model_read(struct checkpoint *cp, struct error *err) WARN_UNUSED;
/* A GGUF file already in memory (8-byte aligned, outlives the checkpoint): for tests and fuzzing.
 */
enum status checkpoint_open_bytes(const unsigned char *bytes, size_t size, struct checkpoint **ret,
                                  struct error *err) WARN_UNUSED;

/* Range-checks a special id read as `key`.  Errors: BAD_FILE. */
enum status checkpoint_check_id(const struct checkpoint *cp, const char *key, uint32_t id,
                                struct error *err) WARN_UNUSED;

/* Adds an end-of-generation id unless it is known as one.  Errors: BAD_FILE when there are too
 * many. */
enum status checkpoint_add_eog(struct checkpoint *cp, const char *key, uint32_t id,
                               struct error *err) WARN_UNUSED;

#endif
