/*
 * A GGUF file from its first byte to an open checkpoint with its tokenizer.
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_priv.h"
#include "tellerd/model/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct checkpoint *cp)
{
    const struct hparams *hp = checkpoint_hparams(cp);
    struct tokenizer *tok;
    struct error err;
    float inv_freq[HPARAMS_MAX_HEAD_SIZE / 2];
    struct tensor t;
    size_t all, banks;
    hparams_rope_inv_freq(hp, checkpoint_tensor(cp, "rope_freqs.weight", &t) ? t.data : NULL,
                          inv_freq);
    checkpoint_bytes(cp, &all, &banks);
    checkpoint_fingerprint(cp);
    checkpoint_release_pages(cp);
    if (tokenizer_new(checkpoint_vocab(cp), &tok, &err) == STATUS_OK)
        tokenizer_free(tok);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct checkpoint *cp;
    struct error err;
    uint8_t *copy = malloc(size); /* aligned as a mapping is, and exactly sized */
    if (size > 0 && copy)
        memcpy(copy, data, size);
    if (checkpoint_open_bytes(copy, copy ? size : 0, &cp, &err) == STATUS_OK) {
        use(cp);
        checkpoint_close(cp);
    }
    free(copy);
    return 0;
}
