/*
 * config.json of a Hugging Face directory, up to validated hparams.
 */
#include "config.h"

#include <stdint.h>

#include "hf_priv.h"
#include "model_json_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hparams hp = {0};
    struct error err;
    json_t *root = NULL;
    bool has_tied;
    if (model_json_parse((const char *)data, size, &root, &err))
        return 0;
    if (json_is_object(root) && hf_config_read(root, &hp, &has_tied, &err) == STATUS_OK) {
        float inv_freq[HPARAMS_MAX_HEAD_SIZE / 2];
        hp.n_embedding_rows = 8;
        if (hparams_validate(&hp, &err) == STATUS_OK)
            hparams_rope_inv_freq(&hp, NULL, inv_freq);
    }
    hparams_done(&hp);
    json_decref(root);
    return 0;
}
