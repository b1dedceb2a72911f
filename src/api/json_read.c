#include "config.h"

#include "tellerd/api/json_read.h"

#include <math.h>
#include <string.h>

/* jansson's own limit is 2048 levels; what is walked later (templates, dumps) gets less. */
static bool too_deep(const json_t *value, unsigned depth)
{
    if (depth == 0)
        return true;
    if (json_is_array(value)) {
        size_t i;
        json_t *item;
        json_array_foreach(value, i, item) if (too_deep(item, depth - 1)) return true;
    } else if (json_is_object(value)) {
        const char *key;
        json_t *item;
        json_object_foreach((json_t *)value, key, item) if (too_deep(item, depth - 1)) return true;
    }
    return false;
}

/* How many values there are at most: brackets and commas outside of strings. */
static size_t count_values(const char *text, size_t len)
{
    size_t n = 0;
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string)
            n += c == ',' || c == '[' || c == '{';
    }
    return n;
}

enum status json_read_body(const char *text, size_t len, json_t **ret, struct error *err)
{
    json_error_t where;
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) ==
                        0) { /* a byte order mark is skipped: RFC 8259 section 8.1 */
        text += 3;
        len -= 3;
    }
    if (count_values(text, len) > JSON_MAX_VALUES)
        return error_set(err, STATUS_BAD_JSON, "the body holds more than %d values",
                         JSON_MAX_VALUES);
    json_t *body = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
    if (!body)
        return error_set(err, STATUS_BAD_JSON, "the body is not valid JSON: line %d, column %d: %s",
                         where.line, where.column, where.text);
    if (!json_is_object(body)) {
        json_decref(body);
        return error_set(err, STATUS_BAD_JSON, "the body must be a JSON object");
    }
    if (too_deep(body, JSON_MAX_DEPTH)) {
        json_decref(body);
        return error_set(err, STATUS_BAD_JSON, "the body is nested more than %d levels deep",
                         JSON_MAX_DEPTH);
    }
    *ret = body;
    return STATUS_OK;
}

json_t *json_field(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

enum status json_read_bool(const json_t *object, const char *name, bool *value, struct error *err)
{
    const json_t *field = json_field(object, name);
    if (!field)
        return STATUS_OK;
    if (!json_is_boolean(field))
        return error_param(err, STATUS_INVALID, name, "%s must be true or false", name);
    *value = json_is_true(field);
    return STATUS_OK;
}

bool json_whole(const json_t *value, int64_t min, int64_t max, int64_t *ret)
{
    int64_t whole;
    if (json_is_integer(value)) {
        whole = json_integer_value(value);
    } else if (json_is_real(value)) {
        double real = json_real_value(value);
        if (!(real > -9.0e18 && real < 9.0e18) || real != floor(real))
            return false;
        whole = (int64_t)real;
    } else {
        return false;
    }
    if (whole < min || whole > max)
        return false;
    *ret = whole;
    return true;
}

enum status json_read_int(const json_t *object, const char *name, int64_t min, int64_t max,
                          int64_t *value, struct error *err)
{
    const json_t *field = json_field(object, name);
    if (!field)
        return STATUS_OK;
    int64_t any;
    if (!json_whole(field, INT64_MIN, INT64_MAX, &any))
        return error_param(err, STATUS_INVALID, name, "%s must be a whole number", name);
    if (any < min || any > max)
        return error_param(err, STATUS_INVALID, name, "%s must be between %lld and %lld", name,
                           (long long)min, (long long)max);
    *value = any;
    return STATUS_OK;
}

enum status json_read_number(const json_t *object, const char *name, double min, double max,
                             double *value, struct error *err)
{
    const json_t *field = json_field(object, name);
    if (!field)
        return STATUS_OK;
    if (!json_is_number(field))
        return error_param(err, STATUS_INVALID, name, "%s must be a number", name);
    double number = json_number_value(field);
    if (!(number >= min && number <= max))
        return error_param(err, STATUS_INVALID, name, "%s must be between %g and %g", name, min,
                           max);
    *value = number;
    return STATUS_OK;
}

enum status json_read_string(const json_t *object, const char *name, const char **value,
                             size_t *len, struct error *err)
{
    const json_t *field = json_field(object, name);
    if (!field)
        return STATUS_OK;
    if (!json_is_string(field))
        return error_param(err, STATUS_INVALID, name, "%s must be a string", name);
    *value = json_string_value(field);
    if (len)
        *len = json_string_length(field);
    return STATUS_OK;
}
