#ifndef TELLERD_MODEL_MODEL_JSON_PRIV_H
#define TELLERD_MODEL_MODEL_JSON_PRIV_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tellerd/base/status.h"
#include "tellerd/model/checkpoint.h"

/*
 * JSON of model directories.  Size, depth and number of values are bounded before jansson sees the
 * text, since what it builds is many times larger.
 */
enum {
    MODEL_JSON_MAX_DEPTH = 64,
    MODEL_JSON_MAX_VALUES = 8 << 20, /* a vocabulary of 256 Ki tokens with merges has 2 Mi */
    MODEL_JSON_SMALL_BYTES = 16 << 20,
    MODEL_JSON_LARGE_BYTES = 128 << 20, /* tokenizer.json, the index of shards */
};

/* Parses a text.  The result is the caller's (json_decref).  Errors: BAD_FILE with line and column.
 */
enum status model_json_parse(const char *text, size_t len, json_t **ret,
                             struct error *err) WARN_UNUSED;
/* Parses a file of at most max_bytes, whose root must be an object.  Errors: NOT_FOUND, IO,
 * BAD_FILE; the text begins with the path. */
enum status model_json_load(const char *path, size_t max_bytes, json_t **ret,
                            struct error *err) WARN_UNUSED;

/*
 * Typed reading of an object's members that goes on without effect after the first failure.  A
 * member that is null counts as absent.
 */
struct json_reader {
    const char *where; /* "config.json", for the error's text */
    enum status status;
    struct error *err;
};

#define JSON_FAIL(reader, ...) json_reader_fail(reader, __VA_ARGS__)
void json_reader_fail(struct json_reader *r, const char *format, ...) PRINTF_LIKE(2, 3);

enum json_need { JSON_MAY, JSON_MUST };

/* The member, or NULL when it is absent, of another type, or something failed before. */
json_t *json_get(struct json_reader *r, const json_t *object, const char *key, json_type type,
                 enum json_need need);
/* These leave *ret as it is when the member is absent, and say whether it was there.  Whole numbers
 * must be written as such. */
bool json_get_u32(struct json_reader *r, const json_t *object, const char *key, enum json_need need,
                  uint32_t *ret);
bool json_get_f32(struct json_reader *r, const json_t *object, const char *key, enum json_need need,
                  float *ret);
bool json_get_bool(struct json_reader *r, const json_t *object, const char *key, bool *ret);
bool json_get_text(struct json_reader *r, const json_t *object, const char *key,
                   enum json_need need, struct text_view *ret);
struct text_view json_text(const json_t *string);

#endif
