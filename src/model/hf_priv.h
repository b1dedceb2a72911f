#ifndef TELLERD_MODEL_HF_PRIV_H
#define TELLERD_MODEL_HF_PRIV_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint_priv.h"

/* Parts of reading a Hugging Face directory; each takes one parsed file.  Texts are copied to the
 * checkpoint's arena, the JSON may go afterwards. */

/* config.json -> hparams (all but what the tensors decide: rows of the embedding, gammas; and
 * tied_output only when the key is there: *ret_has_tied). */
enum status hf_config_read(const json_t *config, struct hparams *hp, bool *ret_has_tied,
                           struct error *err) WARN_UNUSED;

/* tokenizer.json -> vocab: tokens, types, merges or scores, split, normaliser, post-processor. */
enum status hf_tokenizer_read(struct checkpoint *cp, const json_t *root,
                              struct error *err) WARN_UNUSED;
/* What the steps around tokenizer.json's model ask for (hf_pipeline.c): kind, split, prefixes, NFC.
 * An unknown step is an error that names it. */
enum status hf_pipeline_read(const json_t *root, struct vocab_source *vocab,
                             struct error *err) WARN_UNUSED;

/* tokenizer_config.json, config.json and generation_config.json (the last may be NULL, as may the
 * first) -> special ids, template, defaults; after hf_tokenizer_read. */
enum status hf_settings_read(struct checkpoint *cp, const json_t *tokenizer_config,
                             const json_t *config, const json_t *generation_config,
                             struct error *err) WARN_UNUSED;

/* All tensors of the directory under their GGUF names. */
enum status hf_tensors_read(struct checkpoint *cp, struct error *err) WARN_UNUSED;

/* The directory's path joined with a file's name; free() it. */
char *hf_path(const struct checkpoint *cp, const char *name);

#endif
