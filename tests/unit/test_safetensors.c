/*
 * The safetensors container, sound and hostile.  The cases MDL-09 to MDL-11 of the case list are
 * here.
 */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "safetensors_priv.h"
#include "support/check_main.h"

/* 8-byte aligned, exactly sized: a read beyond the end is seen by a sanitizer. */
static unsigned char *make_file(uint64_t header_len, const char *header, size_t n_header,
                                size_t n_data, size_t *ret_size)
{
    size_t size = 8 + n_header + n_data;
    unsigned char *bytes = malloc(size);
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, &header_len, 8);
    memcpy(bytes + 8, header, n_header);
    memset(bytes + 8 + n_header, 0, n_data);
    *ret_size = size;
    return bytes;
}

static void refuse_bytes(const unsigned char *bytes, size_t size, const char *fragment)
{
    struct safetensors file;
    struct error err = {0};
    ck_assert_int_eq(safetensors_parse(&file, bytes, size, &err), STATUS_BAD_FILE);
    ck_assert_msg(strstr(err.text, fragment) != NULL, "\"%s\" is not in \"%s\"", fragment,
                  err.text);
}

/* A file with this header and n_data bytes of data must be refused. */
static void refuse(const char *header, size_t n_data, const char *fragment)
{
    size_t size;
    unsigned char *bytes = make_file(strlen(header), header, strlen(header), n_data, &size);
    refuse_bytes(bytes, size, fragment);
    free(bytes);
}

static unsigned char *parse(const char *header, size_t n_header, size_t n_data,
                            struct safetensors *ret)
{
    size_t size;
    struct error err = {0};
    unsigned char *bytes = make_file(n_header, header, n_header, n_data, &size);
    enum status status = safetensors_parse(ret, bytes, size, &err);
    ck_assert_msg(status == STATUS_OK, "%s", err.text);
    return bytes;
}

static void accept(const char *header, size_t n_data, uint32_t n_tensors)
{
    struct safetensors file;
    unsigned char *bytes = parse(header, strlen(header), n_data, &file);
    ck_assert_uint_eq(file.n_entries, n_tensors);
    safetensors_done(&file);
    free(bytes);
}

#define TENSOR(name, dtype, shape, begin, end)                                                   \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end \
    "]}"

/* -- sound files ------------------------------------------------------------------------------ */

START_TEST(tensors_in_any_header_order_are_read_in_order_of_data)
{
    const char *header = "{" TENSOR("b", "F16", "[3,2]", "16", "28") "," TENSOR(
        "a", "F32", "[4]", "0", "16") "," TENSOR("c", "BF16", "[2,1,1]", "28", "32") "}   ";
    struct safetensors file;
    unsigned char *bytes = parse(header, strlen(header), 32, &file);
    ck_assert_uint_eq(file.n_entries, 3);
    const struct safetensors_entry *e = file.entries;
    ck_assert_mem_eq(e[0].name.bytes, "a", 2);
    ck_assert_int_eq(e[0].tensor.type, TENSOR_F32);
    ck_assert_uint_eq(e[0].tensor.columns, 4);
    ck_assert_uint_eq(e[0].tensor.rows, 1);
    ck_assert_uint_eq(e[0].tensor.n_dims, 1);
    ck_assert_ptr_eq(e[0].tensor.data, bytes + 8 + strlen(header));
    ck_assert_uint_eq(e[1].tensor.columns, 2);
    ck_assert_uint_eq(e[1].tensor.rows, 3);
    ck_assert_uint_eq(e[1].tensor.size_bytes, 12);
    ck_assert_uint_eq(e[2].tensor.columns, 1);
    ck_assert_uint_eq(e[2].tensor.rows, 2);
    ck_assert_uint_eq(e[2].offset, 8 + strlen(header) + 28);
    safetensors_done(&file);
    free(bytes);
}
END_TEST

START_TEST(scalars_empty_tensors_metadata_and_empty_files_are_sound)
{
    accept("{" TENSOR("s", "F32", "[]", "0", "4") "}", 4, 1);
    accept("{" TENSOR("e", "F32", "[0]", "0", "0") "}", 0, 1);
    accept("{" TENSOR("e", "F32", "[0,7]", "4", "4") "," TENSOR("s", "F32", "[1]", "0", "4") "}", 4,
           2);
    accept("{\"__metadata__\":{\"format\":\"pt\"}," TENSOR("s", "I8", "[3]", "0", "3") "}", 3, 1);
    accept("{}", 0, 0);
    accept("{}        ", 0, 0);
    accept("{\"__metadata__\":{}}", 0, 0);
}
END_TEST

START_TEST(what_cannot_be_used_is_said_so)
{
    struct safetensors file;
    const char *header = "{" TENSOR("i", "I64", "[1]", "0", "8") "}";
    unsigned char *bytes = parse(header, strlen(header), 8, &file);
    ck_assert(!file.entries[0].is_usable);
    safetensors_done(&file);
    free(bytes);
    /* 4-byte numbers at an odd place */
    header = "{" TENSOR("b", "I8", "[1]", "0", "1") "," TENSOR("f", "F32", "[1]", "1", "5") "}";
    bytes = parse(header, strlen(header), 5, &file);
    ck_assert_int_eq(file.entries[1].is_usable, (8 + strlen(header) + 1) % 4 == 0);
    safetensors_done(&file);
    free(bytes);
}
END_TEST

/* -- MDL-09: the header's length -------------------------------------------------------------- */

START_TEST(header_lengths_beyond_the_file_are_refused)
{
    size_t size;
    const uint64_t lengths[] = {UINT64_MAX,
                                UINT64_MAX - 4,
                                UINT64_MAX - 7,
                                UINT64_C(1) << 63,
                                101000000,
                                UINT64_C(1) << 32,
                                40,
                                3};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        unsigned char *bytes = make_file(lengths[i], "{}", 2, 0, &size);
        refuse_bytes(bytes, size, "header has");
        free(bytes);
    }
    for (uint64_t length = 0; length < 2; length++) {
        unsigned char *bytes = make_file(length, "{}", 2, 0, &size);
        refuse_bytes(bytes, size, "JSON object");
        free(bytes);
    }
}
END_TEST

START_TEST(files_shorter_than_a_length_are_refused)
{
    for (size_t size = 0; size < 8; size++) {
        unsigned char *bytes = calloc(size + 1, 1);
        refuse_bytes(bytes, size, "truncated");
        free(bytes);
    }
}
END_TEST

START_TEST(headers_that_are_no_object_are_refused)
{
    refuse("[]", 0, "JSON object");
    refuse("\"x\"", 0, "JSON object");
    refuse(" {}", 0, "JSON object");
    refuse("{\"a\":}", 0, "not valid JSON");
    refuse("{} x", 0, "not valid JSON");
    refuse("{\"a\":5}", 0, "tensor a: an object is expected");
    refuse("{\"a\":[]}", 0, "tensor a: an object is expected");
    refuse("{\"\xFF\":{}}", 0, "not valid JSON");
    size_t size;
    unsigned char *bytes = make_file(6, "{}\0\0\0\0", 6, 0, &size);
    refuse_bytes(bytes, size, "not valid JSON");
    free(bytes);
}
END_TEST

START_TEST(metadata_must_be_strings)
{
    refuse("{\"__metadata__\":{\"a\":1}}", 0, "__metadata__");
    refuse("{\"__metadata__\":{\"a\":null}}", 0, "__metadata__");
    refuse("{\"__metadata__\":[]}", 0, "__metadata__");
    refuse("{\"__metadata__\":null}", 0, "__metadata__");
}
END_TEST

START_TEST(deep_and_double_json_is_refused)
{
    char deep[1024];
    size_t n = 0;
    n += (size_t)snprintf(deep, sizeof deep, "{\"a\":");
    memset(deep + n, '[', 500);
    n += 500;
    memset(deep + n, ']', 500);
    n += 500;
    memcpy(deep + n, "}", 2);
    refuse(deep, 0, "nested deeper");
    refuse("{" TENSOR("a", "F32", "[1]", "0", "4") "," TENSOR("a", "F32", "[1]", "4", "8") "}", 8,
           "not valid JSON");
}
END_TEST

/* -- MDL-10: data_offsets --------------------------------------------------------------------- */

static void refuse_offsets(const char *offsets, size_t n_data, const char *fragment)
{
    char header[256];
    snprintf(header, sizeof header, "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]%s%s}}",
             offsets ? ",\"data_offsets\":" : "", offsets ? offsets : "");
    refuse(header, n_data, fragment);
}

START_TEST(odd_offsets_are_refused)
{
    const char *const odd[] = {"[10,5]",
                               "[-1,7]",
                               "[-8,0]",
                               "[0]",
                               "[]",
                               "[0,4,8]",
                               "[\"0\",8]",
                               "[0,\"8\"]",
                               "[0.5,8]",
                               "[0,8.0]",
                               "[0,9]",
                               "[1,9]",
                               "[null,8]",
                               "[0,9223372036854775807]",
                               "[9223372036854775807,9223372036854775807]"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        refuse_offsets(odd[i], 8, "data_offsets must be [begin, end]");
    refuse_offsets("{}", 8, "data_offsets must be a list");
    refuse_offsets("\"0,8\"", 8, "data_offsets must be a list");
    refuse_offsets("null", 8, "data_offsets is missing");
    refuse_offsets(NULL, 8, "data_offsets is missing");
    refuse_offsets("[0,18446744073709551616]", 8, "not valid JSON");
}
END_TEST

START_TEST(overlap_holes_and_tails_are_refused)
{
    refuse("{" TENSOR("a", "F32", "[2]", "0", "8") "," TENSOR("b", "F32", "[2]", "4", "12") "}", 12,
           "overlap");
    refuse("{" TENSOR("a", "F32", "[2]", "0", "8") "," TENSOR("b", "F32", "[2]", "0", "8") "}", 8,
           "overlap");
    refuse("{" TENSOR("a", "F32", "[1]", "0", "4") "," TENSOR("b", "F32", "[1]", "8", "12") "}", 12,
           "belong to no tensor");
    refuse("{" TENSOR("a", "F32", "[1]", "4", "8") "}", 8, "belong to no tensor");
    refuse("{" TENSOR("a", "F32", "[1]", "0", "4") "}", 5, "last 1 bytes belong to no tensor");
    refuse("{}", 1, "last 1 bytes");
    refuse("{" TENSOR("e", "F32", "[0]", "4", "4") "}", 8, "belong to no tensor");
}
END_TEST

/* -- MDL-11: shape and dtype ------------------------------------------------------------------ */

START_TEST(spans_that_do_not_fit_the_shape_are_refused)
{
    refuse("{" TENSOR("a", "F32", "[4]", "0", "8") "}", 8, "take 16 bytes");
    refuse("{" TENSOR("a", "F32", "[1]", "0", "8") "}", 8, "take 4 bytes");
    refuse("{" TENSOR("a", "F32", "[]", "0", "8") "}", 8, "take 4 bytes");
    refuse("{" TENSOR("a", "F32", "[0]", "0", "8") "}", 8, "take 0 bytes");
    refuse("{" TENSOR("a", "BF16", "[2]", "0", "3") "}", 3, "take 4 bytes");
    refuse("{" TENSOR("a", "F16", "[1]", "0", "3") "}", 3, "take 2 bytes");
}
END_TEST

START_TEST(shapes_that_overflow_or_are_none_are_refused)
{
    const char *const shapes[] = {"[8589934592,8589934592]",
                                  "[4294967296,4294967296]",
                                  "[9223372036854775807]",
                                  "[9223372036854775807,2]",
                                  "[9223372036854775807,4,0]",
                                  "[4611686018427387904]",
                                  "[-1]",
                                  "[-1,-2]",
                                  "[2.0]",
                                  "[\"2\"]",
                                  "[null]",
                                  "[[2]]",
                                  "[1,1,1,1,1,1,1,1,2]"};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        char header[256];
        snprintf(header, sizeof header,
                 "{\"a\":{\"dtype\":\"F32\",\"shape\":%s,\"data_offsets\":[0,8]}}", shapes[i]);
        refuse(header, 8, "the shape must be a list");
    }
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8,
           "shape must be a list");
    refuse("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "shape is missing");
}
END_TEST

START_TEST(unknown_dtypes_are_refused)
{
    refuse("{" TENSOR("a", "F7", "[1]", "0", "4") "}", 4, "unknown dtype F7");
    refuse("{" TENSOR("a", "f32", "[1]", "0", "4") "}", 4, "unknown dtype f32");
    refuse("{" TENSOR("a", "", "[1]", "0", "4") "}", 4, "unknown dtype");
    refuse("{\"a\":{\"dtype\":4,\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
           "dtype must be a string");
    refuse("{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype is missing");
}
END_TEST

START_TEST(every_cut_of_a_sound_file_is_refused)
{
    size_t size;
    const char *header =
        "{" TENSOR("a", "F32", "[4]", "0", "16") "," TENSOR("b", "F16", "[2]", "16", "20") "}  ";
    unsigned char *bytes = make_file(strlen(header), header, strlen(header), 20, &size);
    for (size_t n = 0; n < size; n++) {
        unsigned char *cut = malloc(n + 1);
        memcpy(cut, bytes, n);
        refuse_bytes(cut, n, "");
        free(cut);
    }
    free(bytes);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "sound files", tensors_in_any_header_order_are_read_in_order_of_data,
              scalars_empty_tensors_metadata_and_empty_files_are_sound,
              what_cannot_be_used_is_said_so);
    CHECK_ADD(suite, "header", header_lengths_beyond_the_file_are_refused,
              files_shorter_than_a_length_are_refused, headers_that_are_no_object_are_refused,
              metadata_must_be_strings, deep_and_double_json_is_refused,
              every_cut_of_a_sound_file_is_refused);
    CHECK_ADD(suite, "offsets", odd_offsets_are_refused, overlap_holes_and_tails_are_refused);
    CHECK_ADD(suite, "shape and dtype", spans_that_do_not_fit_the_shape_are_refused,
              shapes_that_overflow_or_are_none_are_refused, unknown_dtypes_are_refused);
}

CHECK_MAIN("safetensors", add_cases)
