#ifndef TELLERD_MODEL_HPARAMS_PRIV_H
#define TELLERD_MODEL_HPARAMS_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/base/status.h"
#include "tellerd/model/hparams.h"

/* Names of families ("llama"); NULL beyond the last. */
const char *hparams_family_name(enum model_family family);
bool hparams_family_parse(const char *name, size_t len, enum model_family *ret);
/* "residual", "bank", "residual+bank" */
bool hparams_source_parse(const char *name, size_t len, enum value_source *ret);

/* Zeroes hp and sets what the family alone decides, and the defaults of optional numbers.
 * rope_interleaved is the GGUF form's. */
void hparams_init(struct hparams *hp, enum model_family family);
/* Makes n_layers plain layers (residual, own bank, full attention).  Errors: BAD_FILE when the
 * number is out of range. */
enum status hparams_make_layers(struct hparams *hp, uint32_t n_layers,
                                struct error *err) WARN_UNUSED;
/* Copies a display name, cut to fit at the end of a character; control characters become '_'. */
void hparams_set_name(struct hparams *hp, const char *name, size_t len);

#endif
