/*
 * The safetensors container: a length, a JSON header, data.  Everything is checked before use: the
 * header's length against the file and the reference library's limit, each span against shape and
 * type, all spans against each other, so that they cover the data without holes or overlap.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model_json_priv.h"
#include "safetensors_priv.h"
#include "tellerd/base/mem.h"

struct dtype {
    const char *name;
    uint32_t bytes;
    bool is_usable;
    enum tensor_type type;
};

static const struct dtype dtypes[] = {
    {"F32", 4, true, TENSOR_F32}, {"F16", 2, true, TENSOR_F16}, {"BF16", 2, true, TENSOR_BF16},
    {"F64", 8, false, 0},         {"I64", 8, false, 0},         {"U64", 8, false, 0},
    {"I32", 4, false, 0},         {"U32", 4, false, 0},         {"I16", 2, false, 0},
    {"U16", 2, false, 0},         {"I8", 1, false, 0},          {"U8", 1, false, 0},
    {"BOOL", 1, false, 0},        {"F8_E4M3", 1, false, 0},     {"F8_E5M2", 1, false, 0},
};

static const struct dtype *find_dtype(struct text_view name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        if (name.len == strlen(dtypes[i].name) && memcmp(name.bytes, dtypes[i].name, name.len) == 0)
            return &dtypes[i];
    }
    return NULL;
}

/* -- one tensor ------------------------------------------------------------------------------- */

/* Shape -> rows and columns; false on a bad shape or a product that overflows. */
static bool read_shape(const json_t *shape, struct tensor *tensor, size_t *ret_elements)
{
    size_t elements = 1, n_dims = json_array_size(shape);
    tensor->n_dims = (uint32_t)n_dims;
    tensor->rows = tensor->columns = 1;
    if (n_dims > SAFETENSORS_MAX_DIMS)
        return false;
    for (size_t i = 0; i < n_dims; i++) {
        const json_t *dim = json_array_get(shape, i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return false;
        uint64_t n = (uint64_t)json_integer_value(dim);
        if (n > SIZE_MAX || !size_mul(elements, (size_t)n, &elements))
            return false;
        if (i + 1 == n_dims)
            tensor->columns = n;
        else if (__builtin_mul_overflow(tensor->rows, n, &tensor->rows))
            return false;
    }
    *ret_elements = elements;
    return true;
}

/* [begin, end] within the data. */
static bool read_span(const json_t *offsets, size_t data_size, size_t *ret_begin, size_t *ret_end)
{
    const json_t *first = json_array_get(offsets, 0), *second = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(second))
        return false;
    json_int_t begin = json_integer_value(first), end = json_integer_value(second);
    if (begin < 0 || end < begin || (uint64_t)end > data_size)
        return false;
    *ret_begin = (size_t)begin;
    *ret_end = (size_t)end;
    return true;
}

static enum status read_entry(const unsigned char *bytes, size_t data_start, size_t data_size,
                              const char *name, const json_t *value,
                              struct safetensors_entry *entry, struct error *err)
{
    struct json_reader r = {name, STATUS_OK, err};
    struct text_view dtype_name = {NULL, 0};
    size_t elements, span, begin, end;
    if (!json_is_object(value))
        return error_set(err, STATUS_BAD_FILE, "tensor %s: an object is expected", name);
    json_get_text(&r, value, "dtype", JSON_MUST, &dtype_name);
    const json_t *shape = json_get(&r, value, "shape", JSON_ARRAY, JSON_MUST);
    const json_t *offsets = json_get(&r, value, "data_offsets", JSON_ARRAY, JSON_MUST);
    if (r.status) {
        error_prefix(err, "tensor");
        return r.status;
    }
    const struct dtype *dtype = find_dtype(dtype_name);
    if (!dtype)
        return error_set(err, STATUS_BAD_FILE, "tensor %s: unknown dtype %.*s", name,
                         (int)(dtype_name.len < 32 ? dtype_name.len : 32), dtype_name.bytes);
    if (!read_shape(shape, &entry->tensor, &elements) || !size_mul(elements, dtype->bytes, &span))
        return error_set(err, STATUS_BAD_FILE,
                         "tensor %s: the shape must be a list of at most %d whole numbers whose "
                         "product does not overflow",
                         name, SAFETENSORS_MAX_DIMS);
    if (!read_span(offsets, data_size, &begin, &end))
        return error_set(err, STATUS_BAD_FILE,
                         "tensor %s: data_offsets must be [begin, end] within the %zu bytes of "
                         "data: is it a truncated download?",
                         name, data_size);
    if (end - begin != span)
        return error_set(err, STATUS_BAD_FILE,
                         "tensor %s: shape and dtype %s take %zu bytes, but data_offsets span %zu",
                         name, dtype->name, span, end - begin);
    entry->name = (struct text_view){name, strlen(name)};
    entry->dtype = dtype->name;
    entry->offset = data_start + begin;
    entry->size = span;
    entry->is_usable = dtype->is_usable && entry->offset % dtype->bytes == 0;
    entry->tensor.type = dtype->type;
    entry->tensor.data = bytes + entry->offset;
    entry->tensor.size_bytes = span;
    return STATUS_OK;
}

/* -- the file --------------------------------------------------------------------------------- */

static enum status check_metadata(json_t *value, struct error *err)
{
    const char *key;
    json_t *text;
    if (!json_is_object(value))
        return error_set(err, STATUS_BAD_FILE, "__metadata__ must be an object of strings");
    json_object_foreach(value, key, text)
    {
        if (!json_is_string(text))
            return error_set(err, STATUS_BAD_FILE, "__metadata__ must be an object of strings");
    }
    return STATUS_OK;
}

static int compare_entries(const void *a, const void *b)
{
    const struct safetensors_entry *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->size < y->size ? -1 : x->size > y->size;
}

static enum status check_cover(const struct safetensors *file, size_t data_start, size_t size,
                               struct error *err)
{
    size_t at = data_start;
    for (uint32_t i = 0; i < file->n_entries; i++) {
        const struct safetensors_entry *entry = &file->entries[i];
        if (entry->offset != at)
            return error_set(err, STATUS_BAD_FILE, "tensor %s: %s", entry->name.bytes,
                             entry->offset < at ? "overlaps the one before it"
                                                : "the bytes before it belong to no tensor");
        at += entry->size;
    }
    if (at != size)
        return error_set(err, STATUS_BAD_FILE, "the last %zu bytes belong to no tensor", size - at);
    return STATUS_OK;
}

static enum status read_entries(struct safetensors *file, const unsigned char *bytes,
                                size_t data_start, size_t size, struct error *err)
{
    const char *name;
    json_t *value;
    size_t n = json_object_size(file->header);
    if (n > SAFETENSORS_MAX_TENSORS)
        return error_set(err, STATUS_BAD_FILE, "%zu tensors; at most %d are allowed", n,
                         SAFETENSORS_MAX_TENSORS);
    file->entries = xcalloc(n, sizeof *file->entries);
    json_object_foreach(file->header, name, value)
    {
        enum status status;
        if (strcmp(name, "__metadata__") == 0)
            status = check_metadata(value, err);
        else
            status = read_entry(bytes, data_start, size - data_start, name, value,
                                &file->entries[file->n_entries++], err);
        if (status)
            return status;
    }
    qsort(file->entries, file->n_entries, sizeof *file->entries, compare_entries);
    return check_cover(file, data_start, size, err);
}

static enum status read_header(struct safetensors *file, const unsigned char *bytes, size_t size,
                               size_t *ret_data_start, struct error *err)
{
    uint64_t len;
    if (size < sizeof len)
        return error_set(err, STATUS_BAD_FILE,
                         "the file ends before its header: is it a truncated download?");
    memcpy(&len, bytes, sizeof len);
    if (len > SAFETENSORS_MAX_HEADER || len > size - sizeof len)
        return error_set(err, STATUS_BAD_FILE,
                         "the header has %" PRIu64
                         " bytes, more than the file holds or than %d: not a safetensors file, or "
                         "a truncated one",
                         len, SAFETENSORS_MAX_HEADER);
    if (len < 2 || bytes[sizeof len] != '{')
        return error_set(err, STATUS_BAD_FILE, "the header must be a JSON object");
    enum status status =
        model_json_parse((const char *)bytes + sizeof len, (size_t)len, &file->header, err);
    if (status)
        error_prefix(err, "header");
    *ret_data_start = sizeof len + (size_t)len;
    return status;
}

enum status safetensors_parse(struct safetensors *ret, const unsigned char *bytes, size_t size,
                              struct error *err)
{
    struct safetensors file = {NULL, 0, NULL};
    size_t data_start;
    enum status status = read_header(&file, bytes, size, &data_start, err);
    if (!status)
        status = read_entries(&file, bytes, data_start, size, err);
    if (status)
        safetensors_done(&file);
    else
        *ret = file;
    return status;
}

void safetensors_done(struct safetensors *file)
{
    json_decref(file->header);
    free(file->entries);
    *file = (struct safetensors){NULL, 0, NULL};
}
