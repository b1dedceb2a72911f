/*
 * GGUF container: header, metadata and tensor directory, checked as a whole.  Every count and
 * length is compared with the bytes that are left before anything is allocated or walked, all
 * products are overflow-checked, so a file of n bytes costs at most O(n log n) time and a small
 * multiple of n memory.  Keeps views only; knows nothing of models.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gguf_priv.h"
#include "tellerd/base/mem.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "model files are read in place");

struct cursor {
    const unsigned char *start;
    size_t at;
    size_t size;
};

static const uint8_t scalar_bytes[GGUF_TYPE_COUNT] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
    [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8,
};

const char *gguf_type_name(enum gguf_type type)
{
    static const char *const names[GGUF_TYPE_COUNT] = {
        "u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
        "bool", "string", "array", "u64", "i64", "f64",
    };
    return (unsigned)type < GGUF_TYPE_COUNT ? names[type] : "unknown";
}

static size_t left(const struct cursor *c)
{
    return c->size - c->at;
}

static bool take_bytes(struct cursor *c, size_t n, const unsigned char **ret)
{
    if (n > left(c))
        return false;
    *ret = c->start + c->at;
    c->at += n;
    return true;
}

static bool take_u32(struct cursor *c, uint32_t *ret)
{
    const unsigned char *p;
    if (!take_bytes(c, sizeof *ret, &p))
        return false;
    memcpy(ret, p, sizeof *ret);
    return true;
}

static bool take_u64(struct cursor *c, uint64_t *ret)
{
    const unsigned char *p;
    if (!take_bytes(c, sizeof *ret, &p))
        return false;
    memcpy(ret, p, sizeof *ret);
    return true;
}

/* A length and that many bytes. */
static bool take_string(struct cursor *c, struct text_view *ret)
{
    uint64_t len;
    const unsigned char *p;
    if (!take_u64(c, &len) || len > left(c) || !take_bytes(c, (size_t)len, &p))
        return false;
    *ret = (struct text_view){(const char *)p, (size_t)len};
    return true;
}

static enum status ends_early(struct error *err, const char *where)
{
    return error_set(err, STATUS_BAD_FILE,
                     "the file ends in the middle of %s: is it a truncated download?", where);
}

/* -- header ----------------------------------------------------------------------------------- */

static enum status take_header(struct cursor *c, struct gguf *file, struct error *err)
{
    const unsigned char *magic;
    if (!take_bytes(c, 4, &magic) || memcmp(magic, "GGUF", 4) != 0)
        return error_set(err, STATUS_BAD_FILE,
                         "not a GGUF file (it does not begin with \"GGUF\"); for Hugging Face "
                         "models give the directory");
    uint64_t n_tensors, n_keys;
    if (!take_u32(c, &file->version))
        return ends_early(err, "the header");
    if (file->version == 0x02000000 || file->version == 0x03000000)
        return error_set(err, STATUS_BAD_FILE, "this is a big-endian GGUF file; convert it again");
    if (file->version != 2 && file->version != 3)
        return error_set(err, STATUS_BAD_FILE,
                         "GGUF version %" PRIu32 " is not supported (2 and 3 are)", file->version);
    if (!take_u64(c, &n_tensors) || !take_u64(c, &n_keys))
        return ends_early(err, "the header");
    /* the least that a key (length, byte, type, value) and a tensor (name, one dimension) take */
    if (n_keys > GGUF_MAX_KEYS || n_keys > left(c) / 14)
        return error_set(err, STATUS_BAD_FILE,
                         "the header announces %" PRIu64
                         " metadata keys, more than the file holds or than %d",
                         n_keys, GGUF_MAX_KEYS);
    if (n_tensors > GGUF_MAX_TENSORS || n_tensors > left(c) / 33)
        return error_set(err, STATUS_BAD_FILE,
                         "the header announces %" PRIu64
                         " tensors, more than the file holds or than %d",
                         n_tensors, GGUF_MAX_TENSORS);
    file->n_keys = (uint32_t)n_keys;
    file->n_tensors = (uint32_t)n_tensors;
    return STATUS_OK;
}

/* -- metadata --------------------------------------------------------------------------------- */

static bool skip_strings(struct cursor *c, uint64_t count)
{
    struct text_view ignored;
    if (count > left(c) / 8)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        if (!take_string(c, &ignored))
            return false;
    }
    return true;
}

static enum status take_array(struct cursor *c, struct text_view key, struct gguf_value *value,
                              struct error *err)
{
    uint32_t element;
    uint64_t count;
    if (!take_u32(c, &element) || !take_u64(c, &count))
        return ends_early(err, "an array");
    if (element == GGUF_ARRAY)
        return error_set(err, STATUS_BAD_FILE, "key %.*s: arrays of arrays are not supported",
                         (int)key.len, key.bytes);
    if (element >= GGUF_TYPE_COUNT)
        return error_set(err, STATUS_BAD_FILE, "key %.*s: unknown element type %" PRIu32,
                         (int)key.len, key.bytes, element);
    value->element = (enum gguf_type)element;
    value->count = count;
    size_t begin = c->at;
    bool fits = element == GGUF_STRING
                    ? skip_strings(c, count)
                    : count <= left(c) / scalar_bytes[element] &&
                          take_bytes(c, (size_t)count * scalar_bytes[element], &value->data);
    if (!fits)
        return error_set(err, STATUS_BAD_FILE,
                         "key %.*s: an array of %" PRIu64 " elements does not fit in the file",
                         (int)key.len, key.bytes, count);
    value->data = c->start + begin;
    value->size = c->at - begin;
    for (uint64_t i = 0; element == GGUF_BOOL && i < count; i++) {
        if (value->data[i] > 1)
            return error_set(err, STATUS_BAD_FILE, "key %.*s: a bool must be 0 or 1", (int)key.len,
                             key.bytes);
    }
    return STATUS_OK;
}

static enum status take_value(struct cursor *c, struct text_view key, struct gguf_value *value,
                              struct error *err)
{
    uint32_t type;
    if (!take_u32(c, &type))
        return ends_early(err, "the metadata");
    if (type >= GGUF_TYPE_COUNT)
        return error_set(err, STATUS_BAD_FILE, "key %.*s: unknown value type %" PRIu32,
                         (int)key.len, key.bytes, type);
    value->type = (enum gguf_type)type;
    value->element = value->type;
    value->count = 1;
    if (type == GGUF_ARRAY)
        return take_array(c, key, value, err);
    if (type == GGUF_STRING) {
        struct text_view text;
        if (!take_string(c, &text))
            return error_set(err, STATUS_BAD_FILE, "key %.*s: the string does not fit in the file",
                             (int)key.len, key.bytes);
        value->data = (const unsigned char *)text.bytes;
        value->size = text.len;
        return STATUS_OK;
    }
    value->size = scalar_bytes[type];
    if (!take_bytes(c, value->size, &value->data))
        return ends_early(err, "the metadata");
    if (type == GGUF_BOOL && value->data[0] > 1)
        return error_set(err, STATUS_BAD_FILE, "key %.*s: a bool must be 0 or 1", (int)key.len,
                         key.bytes);
    return STATUS_OK;
}

static enum status take_metadata(struct cursor *c, struct gguf *file, struct error *err)
{
    file->keys = xcalloc(file->n_keys, sizeof *file->keys);
    file->values = xcalloc(file->n_keys, sizeof *file->values);
    name_table_init(&file->key_table, file->n_keys);
    for (uint32_t i = 0; i < file->n_keys; i++) {
        struct text_view *key = &file->keys[i];
        if (!take_string(c, key))
            return ends_early(err, "the metadata");
        if (key->len == 0 || key->len > GGUF_MAX_KEY_BYTES)
            return error_set(err, STATUS_BAD_FILE, "metadata key %" PRIu32 " is empty or too long",
                             i);
        enum status status = take_value(c, *key, &file->values[i], err);
        if (status)
            return status;
        file->key_table.entries[i] = (struct name_entry){*key, i};
    }
    struct text_view twice;
    if (!name_table_sort(&file->key_table, &twice))
        return error_set(err, STATUS_BAD_FILE, "key %.*s appears twice", (int)twice.len,
                         twice.bytes);
    return STATUS_OK;
}

static enum status read_alignment(struct gguf *file, struct error *err)
{
    const struct gguf_value *value = gguf_find(file, "general.alignment");
    file->alignment = GGUF_DEFAULT_ALIGNMENT;
    if (!value)
        return STATUS_OK;
    if (value->type != GGUF_U32)
        return error_set(err, STATUS_BAD_FILE, "key general.alignment must be u32, not %s",
                         gguf_type_name(value->type));
    uint32_t n = gguf_u32_at(value, 0);
    if (n < 8 || n > GGUF_MAX_ALIGNMENT || (n & (n - 1)) != 0)
        return error_set(err, STATUS_BAD_FILE,
                         "key general.alignment is %" PRIu32 "; it must be a power of two from 8 "
                         "to %d",
                         n, GGUF_MAX_ALIGNMENT);
    file->alignment = n;
    return STATUS_OK;
}

/* -- directory -------------------------------------------------------------------------------- */

static enum status take_shape(struct cursor *c, struct text_view name, struct tensor *tensor,
                              struct error *err)
{
    uint32_t n_dims;
    if (!take_u32(c, &n_dims))
        return ends_early(err, "the tensor directory");
    if (n_dims == 0 || n_dims > GGUF_MAX_DIMS)
        return error_set(err, STATUS_BAD_FILE,
                         "tensor %.*s: %" PRIu32 " dimensions; 1 to %d are "
                         "allowed",
                         (int)name.len, name.bytes, n_dims, GGUF_MAX_DIMS);
    tensor->n_dims = n_dims;
    tensor->rows = 1;
    for (uint32_t i = 0; i < n_dims; i++) {
        uint64_t dim;
        if (!take_u64(c, &dim))
            return ends_early(err, "the tensor directory");
        if (dim == 0)
            return error_set(err, STATUS_BAD_FILE, "tensor %.*s: dimension %" PRIu32 " is 0",
                             (int)name.len, name.bytes, i);
        if (i == 0)
            tensor->columns = dim;
        else if (__builtin_mul_overflow(tensor->rows, dim, &tensor->rows))
            return error_set(err, STATUS_BAD_FILE, "tensor %.*s: size overflow", (int)name.len,
                             name.bytes);
    }
    return STATUS_OK;
}

static enum status take_type(struct cursor *c, struct text_view name, struct tensor *tensor,
                             struct error *err)
{
    uint32_t type;
    if (!take_u32(c, &type))
        return ends_early(err, "the tensor directory");
    if (!tensor_type_known(type))
        return error_set(err, STATUS_BAD_FILE,
                         "tensor %.*s: element type %" PRIu32 " is not supported; supported are "
                         "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K: "
                         "quantise the model to one of them",
                         (int)name.len, name.bytes, type);
    tensor->type = (enum tensor_type)type;
    size_t row_bytes;
    if (tensor->columns % tensor_block_elements(tensor->type) != 0)
        return error_set(err, STATUS_BAD_FILE,
                         "tensor %.*s: a row of %" PRIu64 " is not a whole number of %s blocks",
                         (int)name.len, name.bytes, tensor->columns,
                         tensor_type_name(tensor->type));
    if (!tensor_row_bytes(tensor->type, tensor->columns, &row_bytes) || tensor->rows > SIZE_MAX ||
        !size_mul(row_bytes, tensor->rows, &tensor->size_bytes))
        return error_set(err, STATUS_BAD_FILE, "tensor %.*s: size overflow", (int)name.len,
                         name.bytes);
    return STATUS_OK;
}

/* Leaves the offset relative to the data; place_tensors makes it absolute. */
static enum status take_tensor(struct cursor *c, struct gguf_tensor *ret, struct error *err)
{
    if (!take_string(c, &ret->name))
        return ends_early(err, "the tensor directory");
    if (ret->name.len == 0 || ret->name.len > GGUF_MAX_TENSOR_NAME_BYTES)
        return error_set(err, STATUS_BAD_FILE, "a tensor's name has %zu bytes; 1 to %d are allowed",
                         ret->name.len, GGUF_MAX_TENSOR_NAME_BYTES);
    enum status status = take_shape(c, ret->name, &ret->tensor, err);
    if (!status)
        status = take_type(c, ret->name, &ret->tensor, err);
    if (status)
        return status;
    uint64_t offset;
    if (!take_u64(c, &offset))
        return ends_early(err, "the tensor directory");
    if (offset > SIZE_MAX)
        return error_set(err, STATUS_BAD_FILE, "tensor %.*s: offset overflow", (int)ret->name.len,
                         ret->name.bytes);
    ret->offset = (size_t)offset;
    return STATUS_OK;
}

static enum status place_tensor(const struct cursor *c, const struct gguf *file, size_t data_start,
                                struct gguf_tensor *t, struct error *err)
{
    size_t data_size = data_start < c->size ? c->size - data_start : 0;
    if (t->offset % file->alignment != 0)
        return error_set(err, STATUS_BAD_FILE,
                         "tensor %.*s: offset %zu is no multiple of the alignment %" PRIu32,
                         (int)t->name.len, t->name.bytes, t->offset, file->alignment);
    if (t->offset > data_size || t->tensor.size_bytes > data_size - t->offset)
        return error_set(err, STATUS_BAD_FILE,
                         "tensor %.*s: %zu bytes at offset %zu reach beyond the end of the file "
                         "(%zu bytes of data): is it a truncated download?",
                         (int)t->name.len, t->name.bytes, t->tensor.size_bytes, t->offset,
                         data_size);
    t->offset += data_start;
    t->tensor.data = c->start + t->offset;
    return STATUS_OK;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct gguf_tensor *x = *(struct gguf_tensor *const *)a;
    const struct gguf_tensor *y = *(struct gguf_tensor *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static enum status check_overlap(const struct gguf *file, struct error *err)
{
    struct gguf_tensor **sorted = xcalloc(file->n_tensors, sizeof(struct gguf_tensor *));
    for (uint32_t i = 0; i < file->n_tensors; i++)
        sorted[i] = &file->tensors[i];
    qsort(sorted, file->n_tensors, sizeof *sorted, compare_offsets);
    enum status status = STATUS_OK;
    for (uint32_t i = 1; i < file->n_tensors && !status; i++) {
        const struct gguf_tensor *a = sorted[i - 1], *b = sorted[i];
        if (b->offset - a->offset < a->tensor.size_bytes)
            status = error_set(err, STATUS_BAD_FILE, "tensors %.*s and %.*s overlap",
                               (int)a->name.len, a->name.bytes, (int)b->name.len, b->name.bytes);
    }
    free(sorted);
    return status;
}

static enum status check_names(const struct gguf *file, struct error *err)
{
    struct name_table names;
    struct text_view twice;
    name_table_init(&names, file->n_tensors);
    for (uint32_t i = 0; i < file->n_tensors; i++)
        names.entries[i] = (struct name_entry){file->tensors[i].name, i};
    bool unique = name_table_sort(&names, &twice);
    name_table_done(&names);
    if (unique)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_FILE, "tensor %.*s appears twice", (int)twice.len,
                     twice.bytes);
}

static enum status take_directory(struct cursor *c, struct gguf *file, struct error *err)
{
    file->tensors = xcalloc(file->n_tensors, sizeof *file->tensors);
    for (uint32_t i = 0; i < file->n_tensors; i++) {
        enum status status = take_tensor(c, &file->tensors[i], err);
        if (status)
            return status;
    }
    enum status status = check_names(file, err);
    if (status)
        return status;
    size_t data_start; /* c->at is at most the file's size, so this cannot overflow */
    if (!size_add(c->at, file->alignment - 1, &data_start))
        return ends_early(err, "the tensor directory");
    data_start &= ~(size_t)(file->alignment - 1);
    for (uint32_t i = 0; i < file->n_tensors; i++) {
        status = place_tensor(c, file, data_start, &file->tensors[i], err);
        if (status)
            return status;
    }
    return check_overlap(file, err);
}

enum status gguf_parse(struct gguf *ret, const unsigned char *bytes, size_t size, struct error *err)
{
    struct cursor c = {bytes, 0, size};
    struct gguf file;
    memset(&file, 0, sizeof file);
    enum status status = take_header(&c, &file, err);
    if (!status)
        status = take_metadata(&c, &file, err);
    if (!status)
        status = read_alignment(&file, err);
    if (!status)
        status = take_directory(&c, &file, err);
    if (status)
        gguf_done(&file);
    else
        *ret = file;
    return status;
}

void gguf_done(struct gguf *file)
{
    free(file->keys);
    free(file->values);
    name_table_done(&file->key_table);
    free(file->tensors);
    memset(file, 0, sizeof *file);
}

/* -- values ----------------------------------------------------------------------------------- */

const struct gguf_value *gguf_find(const struct gguf *file, const char *key)
{
    uint32_t i = name_table_find(&file->key_table, key, strlen(key));
    return i == NAME_TABLE_NONE ? NULL : &file->values[i];
}

uint32_t gguf_u32_at(const struct gguf_value *value, uint64_t i)
{
    uint32_t n;
    memcpy(&n, value->data + i * sizeof n, sizeof n);
    return n;
}

float gguf_f32_at(const struct gguf_value *value, uint64_t i)
{
    float x;
    memcpy(&x, value->data + i * sizeof x, sizeof x);
    return x;
}

bool gguf_bool_at(const struct gguf_value *value, uint64_t i)
{
    return value->data[i] != 0;
}

void gguf_string_views(const struct gguf_value *value, struct text_view *ret)
{
    struct cursor c = {value->data, 0, value->size};
    for (uint64_t i = 0; i < value->count; i++) {
        bool whole = take_string(&c, &ret[i]);
        REQUIRE(whole); /* gguf_parse has walked it */
    }
}
