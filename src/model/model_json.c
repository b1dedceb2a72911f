/*
 * JSON of model directories: bounded parsing and typed access.  Keeps nothing; any thread.
 */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model_json_priv.h"
#include "tellerd/base/mapfile.h"

/* Whether depth and number of values are within bounds.  Counts what could be values; whether the
 * text is JSON at all is for the parser to find. */
static bool is_bounded(const char *text, size_t len)
{
    size_t depth = 0, values = 1;
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            depth++;
            values++;
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
        } else if (c == ',') {
            values++;
        }
        if (depth > MODEL_JSON_MAX_DEPTH || values > MODEL_JSON_MAX_VALUES)
            return false;
    }
    return true;
}

enum status model_json_parse(const char *text, size_t len, json_t **ret, struct error *err)
{
    json_error_t where;
    if (len > 0 && !is_bounded(text, len))
        return error_set(err, STATUS_BAD_FILE,
                         "more than %d values, or nested deeper than %d levels",
                         MODEL_JSON_MAX_VALUES, MODEL_JSON_MAX_DEPTH);
    json_t *root =
        len > 0 ? json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where) : NULL;
    if (!root && len == 0)
        return error_set(err, STATUS_BAD_FILE, "empty where JSON is expected");
    if (!root)
        return error_set(err, STATUS_BAD_FILE, "not valid JSON: line %d column %d: %s", where.line,
                         where.column, where.text);
    *ret = root;
    return STATUS_OK;
}

enum status model_json_load(const char *path, size_t max_bytes, json_t **ret, struct error *err)
{
    struct mapfile map;
    json_t *root = NULL;
    enum status status = mapfile_open(&map, path, err);
    if (status)
        return status;
    if (map.size > max_bytes)
        status = error_set(err, STATUS_BAD_FILE, "the file has %zu bytes; at most %zu are allowed",
                           map.size, max_bytes);
    else
        status = model_json_parse((const char *)map.data, map.size, &root, err);
    mapfile_close(&map);
    if (!status && !json_is_object(root)) {
        json_decref(root);
        status = error_set(err, STATUS_BAD_FILE, "an object {...} is expected");
    }
    if (status)
        error_prefix(err, "%s", path);
    else
        *ret = root;
    return status;
}

/* -- typed access ----------------------------------------------------------------------------- */

void json_reader_fail(struct json_reader *r, const char *format, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list args;
    if (r->status)
        return;
    va_start(args, format);
    if (vsnprintf(text, sizeof text, format, args) < 0)
        text[0] = '\0';
    va_end(args);
    r->status = error_set(r->err, STATUS_BAD_FILE, "%s: %s", r->where, text);
}

static const char *type_name(json_type type)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object",       [JSON_ARRAY] = "a list",  [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a whole number", [JSON_REAL] = "a number", [JSON_TRUE] = "true or false",
        [JSON_FALSE] = "true or false",    [JSON_NULL] = "null",
    };
    return names[type];
}

/* The member of any type but null. */
static json_t *get_any(struct json_reader *r, const json_t *object, const char *key,
                       enum json_need need)
{
    if (r->status)
        return NULL;
    json_t *value = json_object_get(object, key);
    if (value && !json_is_null(value))
        return value;
    if (need == JSON_MUST)
        JSON_FAIL(r, "%s is missing", key);
    return NULL;
}

json_t *json_get(struct json_reader *r, const json_t *object, const char *key, json_type type,
                 enum json_need need)
{
    json_t *value = get_any(r, object, key, need);
    if (value && json_typeof(value) != type) {
        JSON_FAIL(r, "%s must be %s", key, type_name(type));
        return NULL;
    }
    return value;
}

bool json_get_u32(struct json_reader *r, const json_t *object, const char *key, enum json_need need,
                  uint32_t *ret)
{
    json_t *value = json_get(r, object, key, JSON_INTEGER, need);
    if (!value)
        return false;
    json_int_t number = json_integer_value(value);
    if (number < 0 || number > UINT32_MAX) {
        JSON_FAIL(r, "%s is %" JSON_INTEGER_FORMAT ", out of range", key, number);
        return false;
    }
    *ret = (uint32_t)number;
    return true;
}

bool json_get_f32(struct json_reader *r, const json_t *object, const char *key, enum json_need need,
                  float *ret)
{
    json_t *value = get_any(r, object, key, need);
    if (!value)
        return false;
    if (!json_is_number(value)) {
        JSON_FAIL(r, "%s must be a number", key);
        return false;
    }
    *ret = (float)json_number_value(value);
    return true;
}

bool json_get_bool(struct json_reader *r, const json_t *object, const char *key, bool *ret)
{
    json_t *value = get_any(r, object, key, JSON_MAY);
    if (!value)
        return false;
    if (!json_is_boolean(value)) {
        JSON_FAIL(r, "%s must be true or false", key);
        return false;
    }
    *ret = json_is_true(value);
    return true;
}

bool json_get_text(struct json_reader *r, const json_t *object, const char *key,
                   enum json_need need, struct text_view *ret)
{
    json_t *value = json_get(r, object, key, JSON_STRING, need);
    if (!value)
        return false;
    *ret = json_text(value);
    return true;
}

struct text_view json_text(const json_t *string)
{
    return (struct text_view){json_string_value(string), json_string_length(string)};
}
