/*
 * A safetensors file: container, header, spans.
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "safetensors_priv.h"
#include "tellerd/base/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors file;
    struct error err;
    uint8_t *copy = malloc(size); /* aligned as a mapping is, and exactly sized */
    if (size > 0 && copy)
        memcpy(copy, data, size);
    if (safetensors_parse(&file, copy, copy ? size : 0, &err) == STATUS_OK) {
        for (uint32_t i = 0; i < file.n_entries; i++)
            hash_bytes(file.entries[i].tensor.data, file.entries[i].tensor.size_bytes, 0);
        safetensors_done(&file);
    }
    free(copy);
    return 0;
}
