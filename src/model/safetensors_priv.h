#ifndef TELLERD_MODEL_SAFETENSORS_PRIV_H
#define TELLERD_MODEL_SAFETENSORS_PRIV_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/backend/tensor.h"
#include "tellerd/base/status.h"
#include "tellerd/model/checkpoint.h"

enum {
    SAFETENSORS_MAX_HEADER = 100 * 1000 * 1000, /* as the reference library */
    SAFETENSORS_MAX_TENSORS = 65536,
    SAFETENSORS_MAX_DIMS = 8,
};

struct safetensors_entry {
    struct text_view name; /* in the header */
    const char *dtype;     /* as the format calls it */
    bool is_usable;        /* F32, F16 or BF16 at an aligned place: tensor is filled */
    struct tensor tensor;  /* [rows, columns]: columns is the last dimension */
    size_t offset;         /* from the start of the file */
    size_t size;
};

struct safetensors {
    json_t *header;
    uint32_t n_entries;
    struct safetensors_entry *entries; /* [n_entries] in order of offset */
};

/*
 * Reads and checks a whole file in memory (8-byte aligned; borrowed until safetensors_done): header
 * within bounds, every byte of the data covered by one tensor, shape and type matching the span.
 * On failure nothing is left to free.  Any thread.  Errors: BAD_FILE naming the tensor.
 */
enum status safetensors_parse(struct safetensors *ret, const unsigned char *bytes, size_t size,
                              struct error *err) WARN_UNUSED;
void safetensors_done(struct safetensors *file);

#endif
