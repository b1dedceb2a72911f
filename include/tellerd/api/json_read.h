#ifndef TELLERD_API_JSON_READ_H
#define TELLERD_API_JSON_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "tellerd/base/status.h"

/*
 * Reading fields of a request's JSON with exact types: null counts as absent everywhere; a number
 * is no string and no boolean; a whole number may be written as 10 or 10.0.  All return OK (and
 * leave *value alone when the field is absent) or INVALID with the field as param.
 */
enum { JSON_MAX_DEPTH = 64, JSON_MAX_VALUES = 1 << 21 };

/* Parses a body: an object, well-formed UTF-8, at most JSON_MAX_DEPTH deep, at most JSON_MAX_VALUES
 * values (each costs fifty times the byte or two it may be written in), no key twice.  Errors:
 * BAD_JSON. */
enum status json_read_body(const char *text, size_t len, json_t **ret,
                           struct error *err) WARN_UNUSED;

/* The field, or NULL when absent or null. */
json_t *json_field(const json_t *object, const char *name);
enum status json_read_bool(const json_t *object, const char *name, bool *value,
                           struct error *err) WARN_UNUSED;
enum status json_read_int(const json_t *object, const char *name, int64_t min, int64_t max,
                          int64_t *value, struct error *err) WARN_UNUSED;
enum status json_read_number(const json_t *object, const char *name, double min, double max,
                             double *value, struct error *err) WARN_UNUSED;
/* Borrowed string of the object; its length may hold NULs. */
enum status json_read_string(const json_t *object, const char *name, const char **value,
                             size_t *len, struct error *err) WARN_UNUSED;
/* A JSON number that is whole and in range, written as integer or real. */
bool json_whole(const json_t *value, int64_t min, int64_t max, int64_t *ret);

#endif
