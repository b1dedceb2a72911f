#ifndef TELLERD_SUPPORT_GGUF_BUILD_H
#define TELLERD_SUPPORT_GGUF_BUILD_H

/*
 * GGUF files for tests, sound or not: keys and tensors are appended as told, nothing is checked.
 * gguf_build_tiny writes a whole tiny model; keys and tensors named by gguf_build_without before
 * are left out of it, so that the test can put others in their place.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/base/buf.h"

enum { GGUF_BUILD_MAX_WITHOUT = 16 };

struct gguf_build {
    struct buf meta, directory, data;
    uint64_t n_keys, n_tensors;
    uint32_t version;
    uint32_t alignment; /* of the data as written; the key is the test's matter */
    const char *without[GGUF_BUILD_MAX_WITHOUT];
    unsigned n_without;
    const char *family; /* of the tiny model */
    uint32_t n_layers;
};

void gguf_build_init(struct gguf_build *b);
void gguf_build_done(struct gguf_build *b);
void gguf_build_without(struct gguf_build *b, const char *name);

/* Keys. */
void gguf_build_u32(struct gguf_build *b, const char *key, uint32_t value);
void gguf_build_i32(struct gguf_build *b, const char *key, int32_t value);
void gguf_build_f32(struct gguf_build *b, const char *key, float value);
void gguf_build_bool(struct gguf_build *b, const char *key, uint8_t value);
void gguf_build_string(struct gguf_build *b, const char *key, const char *value);
void gguf_build_strings(struct gguf_build *b, const char *key, const char *const *values,
                        uint64_t n);
void gguf_build_u32s(struct gguf_build *b, const char *key, const uint32_t *values, uint64_t n);
void gguf_build_i32s(struct gguf_build *b, const char *key, const int32_t *values, uint64_t n);
void gguf_build_f32s(struct gguf_build *b, const char *key, const float *values, uint64_t n);
void gguf_build_bools(struct gguf_build *b, const char *key, const uint8_t *values, uint64_t n);
/* A key with its type number and raw value bytes. */
void gguf_build_raw(struct gguf_build *b, const char *key, uint32_t type, const void *bytes,
                    size_t len);

/* A tensor entry as given, without data. */
void gguf_build_entry(struct gguf_build *b, const char *name, uint32_t n_dims, const uint64_t *dims,
                      uint32_t type, uint64_t offset);
/* An F32 tensor [rows, columns] (rows 0: a vector) with data, every number `value`. */
void gguf_build_tensor(struct gguf_build *b, const char *name, uint64_t columns, uint64_t rows,
                       float value);

enum { /* of the tiny model */
       TINY_C = 64,
       TINY_H = 2,
       TINY_K = 1,
       TINY_D = 32,
       TINY_F = 32,
       TINY_ROWS = 10,
       TINY_TOKENS = 6,
};
/* family (default llama) of n_layers (default 2) layers; tokens a b ab c <s> </s>. */
void gguf_build_tiny(struct gguf_build *b);

/* The file's bytes; malloced, b stays usable. */
unsigned char *gguf_build_bytes(const struct gguf_build *b, size_t *ret_size);

#endif
