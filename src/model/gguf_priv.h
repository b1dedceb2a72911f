#ifndef TELLERD_MODEL_GGUF_PRIV_H
#define TELLERD_MODEL_GGUF_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "name_table_priv.h"
#include "tellerd/backend/tensor.h"
#include "tellerd/base/status.h"
#include "tellerd/model/checkpoint.h"

/* A GGUF file's header, metadata and directory, as views of its bytes.  What the keys mean is
 * gguf_model.c's matter. */
enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPE_COUNT
};

/* Limits that no real file comes near; they bound what a hostile one can ask for. */
enum {
    GGUF_MAX_KEYS = 65536,
    GGUF_MAX_TENSORS = 65536,
    GGUF_MAX_KEY_BYTES = 65535,
    GGUF_MAX_TENSOR_NAME_BYTES = 64,
    GGUF_MAX_DIMS = 4,
    GGUF_DEFAULT_ALIGNMENT = 32,
    GGUF_MAX_ALIGNMENT = 65536,
};

struct gguf_value {
    enum gguf_type type;
    enum gguf_type element;    /* of an array */
    uint64_t count;            /* elements of an array, else 1 */
    const unsigned char *data; /* of a string: its bytes; else the value or elements, unaligned */
    size_t size;
};

struct gguf_tensor {
    struct text_view name;
    struct tensor tensor;
    size_t offset; /* from the start of the file */
};

struct gguf {
    uint32_t version;
    uint32_t alignment;
    uint32_t n_keys;
    struct text_view *keys;    /* [n_keys], owned */
    struct gguf_value *values; /* [n_keys], owned */
    struct name_table key_table;
    uint32_t n_tensors;
    struct gguf_tensor *tensors; /* [n_tensors], owned; names are unique, ranges do not overlap */
};

/*
 * Reads and checks a whole file in memory (bytes 8-byte aligned; borrowed until gguf_done).  On
 * failure nothing is left to free.  Any thread.  Errors: BAD_FILE naming key or tensor.
 */
enum status gguf_parse(struct gguf *ret, const unsigned char *bytes, size_t size,
                       struct error *err) WARN_UNUSED;
void gguf_done(struct gguf *file);

/* The value of a key, NULL when absent. */
const struct gguf_value *gguf_find(const struct gguf *file, const char *key);
const char *gguf_type_name(enum gguf_type type);

/* Element i of a number array (or the value, i = 0), which must be of that type. */
uint32_t gguf_u32_at(const struct gguf_value *value, uint64_t i);
float gguf_f32_at(const struct gguf_value *value, uint64_t i);
bool gguf_bool_at(const struct gguf_value *value, uint64_t i);
/* Views of all elements of an array of strings: ret[value->count]. */
void gguf_string_views(const struct gguf_value *value, struct text_view *ret);

#endif
