/*
 * GGUF files, sound and hostile: what is read, and that every damaged file gives an error that
 * names what is wrong.  The cases MDL-01 to MDL-05 and MDL-08 of the case list are here.
 */
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/gguf_case.h"
#include "tellerd/model/checkpoint.h"

/* -- sound files ------------------------------------------------------------------------------ */

START_TEST(a_tiny_model_is_read)
{
    gguf_build_string(&b, "general.name", "tiny");
    gguf_build_tiny(&b);
    struct checkpoint *cp = gguf_case_open();
    const struct hparams *hp = checkpoint_hparams(cp);
    const struct vocab_source *vocab = checkpoint_vocab(cp);
    ck_assert_str_eq(hp->name, "tiny");
    ck_assert_int_eq(hp->family, FAMILY_LLAMA);
    ck_assert_uint_eq(hp->n_layers, 2);
    ck_assert_uint_eq(hp->head_size, TINY_D);
    ck_assert_uint_eq(hp->n_embedding_rows, TINY_ROWS);
    ck_assert(hp->tied_output && !hp->has_bank && !hp->attention_bias && hp->rope_interleaved);
    ck_assert_float_eq(hp->rope_base, 10000.0f);
    ck_assert_uint_eq(hp->rope_dims, TINY_D);
    ck_assert_uint_eq(vocab->n_tokens, TINY_TOKENS);
    ck_assert_mem_eq(vocab->tokens[2].bytes, "ab", 2);
    ck_assert_uint_eq(vocab->bos, 4);
    ck_assert_uint_eq(vocab->eos, 5);
    ck_assert_uint_eq(vocab->eot, TOKEN_NONE);
    ck_assert_uint_eq(vocab->unknown, TOKEN_NONE);
    ck_assert_ptr_null(checkpoint_chat_template(cp).bytes);
    ck_assert(checkpoint_defaults(cp)->temperature < 0.0f);
    struct tensor t;
    ck_assert(checkpoint_tensor(cp, "blk.1.ffn_down.weight", &t));
    ck_assert_uint_eq(t.columns, TINY_F);
    ck_assert_uint_eq(t.rows, TINY_C);
    ck_assert_uint_eq(t.n_dims, 2);
    ck_assert_uint_eq(t.size_bytes, TINY_F * TINY_C * 4);
    ck_assert_uint_eq((uintptr_t)t.data % 32, 0);
    ck_assert_float_eq(((const float *)t.data)[TINY_F * TINY_C - 1], 0.01f * 9);
    ck_assert(!checkpoint_tensor(cp, "blk.2.ffn_down.weight", &t));
    ck_assert(!checkpoint_tensor(cp, "", &t));
    checkpoint_close(cp);
}
END_TEST

START_TEST(version_2_and_unknown_keys_are_read)
{
    const char *const languages[] = {"en", "de"};
    uint64_t wide = 7;
    double real = 1.5;
    b.version = 2;
    gguf_build_strings(&b, "general.languages", languages, 2);
    gguf_build_raw(&b, "x.u8", 0, "a", 1);
    gguf_build_raw(&b, "x.i8", 1, "a", 1);
    gguf_build_raw(&b, "x.u16", 2, "ab", 2);
    gguf_build_raw(&b, "x.i16", 3, "ab", 2);
    gguf_build_raw(&b, "x.u64", 10, &wide, 8);
    gguf_build_raw(&b, "x.i64", 11, &wide, 8);
    gguf_build_raw(&b, "x.f64", 12, &real, 8);
    gguf_build_strings(&b, "x.none", NULL, 0);
    gguf_build_tiny(&b);
    checkpoint_close(gguf_case_open());
}
END_TEST

START_TEST(a_file_without_a_name_is_called_after_its_path)
{
    gguf_build_tiny(&b);
    struct checkpoint *cp = gguf_case_open();
    ck_assert_str_eq(checkpoint_hparams(cp)->name, "model");
    checkpoint_close(cp);
}
END_TEST

START_TEST(names_are_cut_and_cleaned)
{
    char name[400];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    memcpy(name, "a\nb\xFF", 4);
    memcpy(name + 125, "\xC3\xA4\xC3\xA4", 4); /* would end in the middle */
    gguf_build_string(&b, "general.name", name);
    gguf_build_tiny(&b);
    struct checkpoint *cp = gguf_case_open();
    const char *got = checkpoint_hparams(cp)->name;
    ck_assert_mem_eq(got, "a_b_x", 5);
    ck_assert_uint_eq(strlen(got), 127);
    ck_assert_mem_eq(got + 125, "\xC3\xA4", 2);
    checkpoint_close(cp);
}
END_TEST

START_TEST(the_families_differ_as_documented)
{
    static const struct {
        const char *name;
        enum model_family family;
        enum qk_norm qk_norm;
        bool interleaved, nanochat;
    } rows[] = {{"llama", FAMILY_LLAMA, QK_NORM_NONE, true, false},
                {"qwen2", FAMILY_QWEN2, QK_NORM_NONE, false, false},
                {"qwen3", FAMILY_QWEN3, QK_NORM_BEFORE_ROPE, false, false},
                {"nanochat", FAMILY_NANOCHAT, QK_NORM_AFTER_ROPE, false, true}};
    for (int i = 0; i < 4; i++) {
        b.family = rows[i].name;
        if (rows[i].nanochat) {
            gguf_build_u32(&b, "nanochat.smear.channels", 24);
            gguf_build_f32(&b, "nanochat.final_logit_softcapping", 15.0f);
        }
        gguf_build_tiny(&b);
        if (rows[i].nanochat) {
            gguf_build_tensor(&b, "smear_gate.weight", 24, 1, 0.1f);
            gguf_build_tensor(&b, "smear_lambda", 1, 0, 0.5f);
        }
        struct checkpoint *cp = gguf_case_open();
        const struct hparams *hp = checkpoint_hparams(cp);
        ck_assert_int_eq(hp->family, rows[i].family);
        ck_assert_int_eq(hp->qk_norm, rows[i].qk_norm);
        ck_assert_int_eq(hp->rope_interleaved, rows[i].interleaved);
        ck_assert_int_eq(hp->rope_negative, rows[i].nanochat);
        ck_assert_int_eq(hp->norm_has_weights, !rows[i].nanochat);
        ck_assert_int_eq(hp->embedding_norm, rows[i].nanochat);
        ck_assert_int_eq(hp->smear, rows[i].nanochat);
        ck_assert_float_eq(hp->qk_scale, rows[i].nanochat ? 1.2f : 1.0f);
        ck_assert_float_eq(hp->logit_softcap, rows[i].nanochat ? 15.0f : 0.0f);
        ck_assert_int_eq(hp->activation,
                         rows[i].nanochat ? ACTIVATION_RELU_SQUARED : ACTIVATION_SWIGLU);
        checkpoint_close(cp);
    }
}
END_TEST

START_TEST(rope_and_windows_are_read)
{
    const uint8_t pattern[] = {1, 0};
    gguf_build_f32(&b, "llama.rope.freq_base", 5e5f);
    gguf_build_u32(&b, "llama.rope.dimension_count", 16);
    gguf_build_string(&b, "llama.rope.scaling.type", "linear");
    gguf_build_f32(&b, "llama.rope.scaling.factor", 4.0f);
    gguf_build_u32(&b, "llama.rope.scaling.original_context_length", 64);
    gguf_build_u32(&b, "llama.attention.sliding_window", 13);
    gguf_build_bools(&b, "llama.attention.sliding_window_pattern", pattern, 2);
    gguf_build_tiny(&b);
    gguf_build_tensor(&b, "rope_freqs.weight", 8, 0, 2.0f);
    struct checkpoint *cp = gguf_case_open();
    const struct hparams *hp = checkpoint_hparams(cp);
    ck_assert_float_eq(hp->rope_base, 5e5f);
    ck_assert_uint_eq(hp->rope_dims, 16);
    ck_assert_float_eq(hp->rope_linear_factor, 4.0f);
    ck_assert_uint_eq(hp->layers[0].window, 13);
    ck_assert_uint_eq(hp->layers[1].window, 0);
    checkpoint_close(cp);
    gguf_build_u32(&b, "llama.attention.sliding_window", 9);
    gguf_build_string(&b, "llama.rope.scaling.type", "none");
    gguf_build_f32(&b, "llama.rope.scaling.factor", 4.0f);
    gguf_build_tiny(&b);
    cp = gguf_case_open();
    ck_assert_uint_eq(checkpoint_hparams(cp)->layers[0].window, 9);
    ck_assert_uint_eq(checkpoint_hparams(cp)->layers[1].window, 9);
    ck_assert_float_eq(checkpoint_hparams(cp)->rope_linear_factor, 1.0f);
    checkpoint_close(cp);
}
END_TEST

/* -- containers ------------------------------------------------------------------------------- */

START_TEST(files_that_are_no_gguf_are_refused)
{
    gguf_case_refuse_bytes("", 0, "not a GGUF file");
    gguf_case_refuse_bytes("GGU", 3, "not a GGUF file");
    gguf_case_refuse_bytes("GGUF", 4, "truncated");
    gguf_case_refuse_bytes("GGML\3\0\0\0", 8, "not a GGUF file");
    struct checkpoint *cp;
    struct error err = {0};
    ck_assert_int_eq(checkpoint_open("/nonexistent/model.gguf", &cp, &err), STATUS_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(err.text, "/nonexistent/model.gguf"));
    ck_assert_int_eq(checkpoint_open("/dev/null", &cp, &err), STATUS_IO);
    ck_assert_int_ne(checkpoint_open("", &cp, NULL), STATUS_OK);
}
END_TEST

START_TEST(other_versions_are_refused)
{
    const uint32_t versions[] = {0, 1, 4, 0x03000000, 0xFFFFFFFF};
    for (int i = 0; i < 5; i++) {
        b.version = versions[i];
        gguf_build_tiny(&b);
        gguf_case_refuse(versions[i] == 0x03000000 ? "big-endian" : "version");
    }
}
END_TEST

/* MDL-03 */
START_TEST(huge_counts_in_a_tiny_file_are_refused)
{
    gguf_build_tiny(&b);
    b.n_tensors = UINT64_C(1) << 60;
    gguf_case_refuse("tensors");
    b.n_tensors = UINT64_C(1) << 60;
    gguf_case_refuse("tensors");
    b.n_keys = UINT64_C(1) << 62;
    gguf_case_refuse("metadata keys");
    b.n_keys = UINT64_MAX;
    gguf_case_refuse("metadata keys");
    gguf_build_tiny(&b);
    b.n_keys = 65537;
    gguf_case_refuse("65536");
}
END_TEST

/* 24 bytes of header and one key that announces more than there is. */
static void expect_key_error(const void *key, size_t len, const char *fragment)
{
    unsigned char bytes[256] = "GGUF\3\0\0\0\0\0\0\0\0\0\0\0\1";
    memset(bytes + 24, 0, sizeof bytes - 24);
    memcpy(bytes + 24, key, len);
    gguf_case_refuse_bytes(bytes, 24 + len + 16, fragment);
}

START_TEST(huge_lengths_in_a_tiny_file_are_refused)
{
    expect_key_error("\0\0\0\0\0\0\0\x80k", 9, "metadata"); /* a key of 2^63 bytes */
    expect_key_error("\1\0\0\0\0\0\0\0k\10\0\0\0\0\0\0\0\0\1\0", 21, "string"); /* 2^40 bytes */
    expect_key_error("\1\0\0\0\0\0\0\0k\11\0\0\0\12\0\0\0\0\0\0\0\0\0\0\x20", 25,
                     "array"); /* 2^61 u64: times 8 is 0 */
    expect_key_error("\1\0\0\0\0\0\0\0k\11\0\0\0\10\0\0\0\0\0\0\0\0\0\0\x20", 25,
                     "array"); /* 2^61 strings */
    expect_key_error("\1\0\0\0\0\0\0\0k\11\0\0\0\11\0\0\0\1\0\0\0\0\0\0\0", 25, "arrays of arrays");
    expect_key_error("\1\0\0\0\0\0\0\0k\11\0\0\0\15\0\0\0\1\0\0\0\0\0\0\0", 25, "element type");
    expect_key_error("\1\0\0\0\0\0\0\0k\15\0\0\0", 13, "value type 13");
}
END_TEST

/* MDL-05 */
START_TEST(every_cut_of_a_sound_file_is_refused)
{
    size_t size, header;
    b.n_layers = 1;
    gguf_build_tiny(&b);
    unsigned char *bytes = gguf_build_bytes(&b, &size);
    header = size - b.data.len;
    struct checkpoint *cp;
    struct error err;
    for (size_t n = 0; n < size; n += n < header ? 1 : n + 4096 < size ? 1021 : 1) {
        temp_dir_write(&dir, "model.gguf", bytes, n);
        ck_assert_int_eq(checkpoint_open(temp_dir_path(&dir, "model.gguf"), &cp, &err),
                         STATUS_BAD_FILE);
        ck_assert(err.text[0] != '\0');
    }
    ck_assert_int_eq(gguf_case_open_bytes(bytes, size, &cp, &err), STATUS_OK);
    checkpoint_close(cp);
    free(bytes);
}
END_TEST

START_TEST(every_damaged_header_byte_is_survived)
{
    size_t size, header;
    b.n_layers = 1;
    gguf_build_tiny(&b);
    unsigned char *bytes = gguf_build_bytes(&b, &size);
    header = size - b.data.len;
    const unsigned char values[] = {0x00, 0x7F, 0x80, 0xFF};
    for (size_t at = 0; at < header; at++) {
        unsigned char kept = bytes[at];
        for (int v = 0; v < 4; v++) {
            struct checkpoint *cp = NULL;
            struct error err = {0};
            bytes[at] = values[v];
            enum status status = gguf_case_open_bytes(bytes, size, &cp, &err);
            ck_assert(status == STATUS_OK || status == STATUS_BAD_FILE);
            ck_assert((status == STATUS_OK) == (cp != NULL));
            ck_assert(status == STATUS_OK || err.text[0] != '\0');
            checkpoint_close(cp);
        }
        bytes[at] = kept;
    }
    free(bytes);
}
END_TEST

/* MDL-04 */
START_TEST(odd_alignments_are_refused)
{
    const uint32_t bad[] = {0, 1, 3, 4, 24, 1 << 17, 1u << 30, 1u << 31, UINT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        gguf_build_u32(&b, "general.alignment", bad[i]);
        gguf_build_tiny(&b);
        gguf_case_refuse("general.alignment");
    }
    gguf_build_i32(&b, "general.alignment", 32);
    gguf_build_tiny(&b);
    gguf_case_refuse("general.alignment must be u32, not i32");
    gguf_build_string(&b, "general.alignment", "32");
    gguf_build_tiny(&b);
    gguf_case_refuse("general.alignment must be u32, not string");
    gguf_build_u32(&b, "general.alignment", 32);
    gguf_build_u32(&b, "general.alignment", 32);
    gguf_build_tiny(&b);
    gguf_case_refuse("general.alignment appears twice");
}
END_TEST

START_TEST(powers_of_two_from_8_to_65536_align)
{
    const uint32_t good[] = {8, 16, 32, 64, 4096, 65536};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        b.alignment = good[i];
        gguf_build_u32(&b, "general.alignment", good[i]);
        gguf_build_tiny(&b);
        struct checkpoint *cp = gguf_case_open();
        struct tensor t;
        ck_assert(checkpoint_tensor(cp, "blk.0.attn_q.weight", &t));
        ck_assert_float_eq(*(const float *)t.data, 0.01f);
        checkpoint_close(cp);
    }
}
END_TEST

/* -- the directory ---------------------------------------------------------------------------- */

static void expect_entry_error(uint32_t n_dims, const uint64_t *dims, uint32_t type,
                               uint64_t offset, const char *fragment)
{
    gguf_build_tiny(&b);
    gguf_build_entry(&b, "output.weight", n_dims, dims, type, offset);
    gguf_case_refuse(fragment);
}

/* MDL-01 */
START_TEST(sizes_that_wrap_are_refused)
{
    expect_entry_error(2, (uint64_t[]){UINT64_C(1) << 32, UINT64_C(1) << 32}, 0, 0,
                       "tensor output.weight: size overflow");
    expect_entry_error(2, (uint64_t[]){INT64_MAX, 2}, 0, 0, "tensor output.weight: size overflow");
    expect_entry_error(2, (uint64_t[]){UINT64_MAX - 31, 2}, 8, 0,
                       "tensor output.weight: size overflow");
    expect_entry_error(4, (uint64_t[]){32, UINT64_C(1) << 32, UINT64_C(1) << 32, UINT64_C(1) << 32},
                       0, 0, "tensor output.weight: size overflow");
    expect_entry_error(2, (uint64_t[]){TINY_C, (UINT64_C(1) << 42) + 1}, 0, 0,
                       "tensor output.weight: ");
    expect_entry_error(2, (uint64_t[]){1, UINT64_C(1) << 62}, 0, 0,
                       "tensor output.weight: size overflow");
}
END_TEST

/* MDL-02 */
START_TEST(odd_dimensions_are_refused)
{
    const uint64_t dims[9] = {4, 4, 4, 4, 4, 4, 4, 4, 4};
    expect_entry_error(2, (uint64_t[]){0, 4}, 0, 0, "tensor output.weight: dimension 0 is 0");
    expect_entry_error(2, (uint64_t[]){4, 0}, 0, 0, "tensor output.weight: dimension 1 is 0");
    expect_entry_error(0, dims, 0, 0, "0 dimensions");
    expect_entry_error(5, dims, 0, 0, "5 dimensions");
    expect_entry_error(9, dims, 0, 0, "9 dimensions");
    expect_entry_error(UINT32_MAX, dims, 0, 0, "4294967295 dimensions");
}
END_TEST

START_TEST(unknown_types_and_broken_blocks_are_refused)
{
    const uint32_t types[] = {4, 5, 9, 10, 11, 15, 16, 20, 24, 29, 31, 1000, UINT32_MAX};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        expect_entry_error(1, (uint64_t[]){256}, types[i], 0, "quantise");
    expect_entry_error(2, (uint64_t[]){48, 4}, 8, 0, "whole number of q8_0 blocks");
    expect_entry_error(2, (uint64_t[]){128, 4}, 12, 0, "whole number of q4_k blocks");
}
END_TEST

/* MDL-05 */
START_TEST(data_outside_the_file_is_refused)
{
    const uint64_t dims[] = {TINY_C, 2};
    expect_entry_error(2, dims, 0, UINT64_C(1) << 40, "beyond the end");
    expect_entry_error(2, dims, 0, UINT64_MAX - 31, "beyond the end");
    expect_entry_error(2, dims, 0, UINT64_MAX - 30, "alignment");
    expect_entry_error(2, dims, 0, 7, "no multiple of the alignment");
    gguf_build_tiny(&b);
    uint64_t end = b.data.len;
    ck_assert_uint_eq(end % 32, 0);
    gguf_build_entry(&b, "output.weight", 1, (uint64_t[]){1}, 0, end);
    gguf_case_refuse("beyond the end");
    gguf_build_tiny(&b);
    gguf_build_entry(&b, "output.weight", 2, dims, 0, end - 32);
    gguf_case_refuse("beyond the end");
}
END_TEST

START_TEST(overlap_and_equal_names_are_refused)
{
    const uint64_t dims[] = {TINY_C, 2};
    expect_entry_error(2, dims, 0, 0, "overlap");
    expect_entry_error(1, (uint64_t[]){8}, 0, 32, "overlap");
    gguf_build_tiny(&b);
    gguf_build_tensor(&b, "token_embd.weight", TINY_C, TINY_ROWS, 1.0f);
    gguf_case_refuse("tensor token_embd.weight appears twice");
}
END_TEST

START_TEST(odd_tensor_names_are_refused)
{
    gguf_build_tiny(&b);
    gguf_build_tensor(&b, "", 32, 1, 1.0f);
    gguf_case_refuse("name has 0 bytes");
    gguf_build_tiny(&b);
    gguf_build_tensor(&b, "0123456789012345678901234567890123456789012345678901234567890123x", 32,
                      1, 1.0f);
    gguf_case_refuse("name has 65 bytes");
    const char *const strange[] = {
        "blk.0.attn_qkv.weight",  "blk.2.attn_q.weight", "blk.00.attn_q.weight",
        "blk.0.attn_output.bias", "blk..attn_q.weight",  "blk.4294967296.attn_q.weight",
        "output_norm.bias",       "smear_lambda",        "blk.0.attn_q_norm.weight"};
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        gguf_build_tiny(&b);
        gguf_build_tensor(&b, strange[i], 32, 1, 1.0f);
        gguf_case_refuse("has no place in a llama model");
    }
}
END_TEST

/* -- keys ------------------------------------------------------------------------------------- */

/* MDL-08 */
START_TEST(odd_keys_are_refused)
{
    gguf_build_tiny(&b);
    gguf_build_u32(&b, "", 1);
    gguf_case_refuse("empty");
    gguf_build_tiny(&b);
    gguf_build_string(&b, "general.architecture", "llama");
    gguf_case_refuse("general.architecture appears twice");
    gguf_build_tiny(&b);
    gguf_build_bool(&b, "x.flag", 2);
    gguf_case_refuse("a bool must be 0 or 1");
    gguf_build_tiny(&b);
    gguf_build_bools(&b, "x.flags", (uint8_t[]){1, 255}, 2);
    gguf_case_refuse("a bool must be 0 or 1");
}
END_TEST

START_TEST(keys_of_other_types_are_refused)
{
    const char *const u32s[] = {"llama.block_count",
                                "llama.context_length",
                                "llama.embedding_length",
                                "llama.feed_forward_length",
                                "llama.attention.head_count",
                                "llama.attention.head_count_kv",
                                "llama.attention.key_length",
                                "llama.attention.value_length",
                                "llama.rope.dimension_count",
                                "llama.rope.scaling.original_context_length",
                                "llama.vocab_size",
                                "llama.attention.sliding_window",
                                "llama.value_bank.rows",
                                "llama.value_bank.sink_row",
                                "llama.value_bank.gate_channels",
                                "llama.smear.channels",
                                "tokenizer.ggml.bos_token_id",
                                "tokenizer.ggml.eos_token_id",
                                "tokenizer.ggml.eot_token_id",
                                "tokenizer.ggml.unknown_token_id",
                                "tokenizer.ggml.padding_token_id"};
    for (size_t i = 0; i < sizeof u32s / sizeof u32s[0]; i++) {
        gguf_build_without(&b, u32s[i]);
        gguf_build_string(&b, u32s[i], "2");
        gguf_build_tiny(&b);
        gguf_case_refuse(u32s[i]);
        gguf_build_without(&b, u32s[i]);
        gguf_build_f32(&b, u32s[i], 2.0f);
        gguf_build_tiny(&b);
        gguf_case_refuse("must be u32, not f32");
        gguf_build_without(&b, u32s[i]);
        gguf_build_i32(&b, u32s[i], -1);
        gguf_build_tiny(&b);
        gguf_case_refuse("must be u32, not i32");
        gguf_build_without(&b, u32s[i]);
        gguf_build_u32s(&b, u32s[i], (uint32_t[]){1, 1}, 2);
        gguf_build_tiny(&b);
        gguf_case_refuse("must be u32, not array");
    }
}
END_TEST

START_TEST(other_keys_of_other_types_are_refused)
{
    const char *const others[] = {"general.architecture",
                                  "general.name",
                                  "llama.attention.layer_norm_rms_epsilon",
                                  "llama.rope.freq_base",
                                  "llama.rope.scaling.type",
                                  "llama.rope.scaling.factor",
                                  "llama.attention.sliding_window_pattern",
                                  "llama.attention.qk_scale",
                                  "llama.final_logit_softcapping",
                                  "llama.attention.value_source",
                                  "llama.value_bank.source_layer",
                                  "llama.value_bank.gate",
                                  "llama.value_bank.gate_scale",
                                  "tokenizer.ggml.model",
                                  "tokenizer.ggml.pre",
                                  "tokenizer.ggml.tokens",
                                  "tokenizer.ggml.token_type",
                                  "tokenizer.ggml.scores",
                                  "tokenizer.ggml.merges",
                                  "tokenizer.ggml.add_bos_token",
                                  "tokenizer.ggml.add_eos_token",
                                  "tokenizer.ggml.add_space_prefix",
                                  "tokenizer.chat_template"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        gguf_build_without(&b, others[i]);
        gguf_build_u32(&b, others[i], 1);
        gguf_build_tiny(&b);
        gguf_case_refuse(others[i]);
    }
    gguf_build_u32s(&b, "llama.attention.value_source", (uint32_t[]){1, 1}, 2);
    gguf_build_tiny(&b);
    gguf_case_refuse("must be an array of string, not of u32");
}
END_TEST

START_TEST(missing_keys_are_named)
{
    const char *const keys[] = {"general.architecture",
                                "llama.block_count",
                                "llama.context_length",
                                "llama.embedding_length",
                                "llama.feed_forward_length",
                                "llama.attention.head_count",
                                "llama.attention.layer_norm_rms_epsilon",
                                "tokenizer.ggml.model",
                                "tokenizer.ggml.tokens",
                                "tokenizer.ggml.merges"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "key %s is missing", keys[i]);
        gguf_build_without(&b, keys[i]);
        gguf_build_tiny(&b);
        gguf_case_refuse(text);
    }
    gguf_build_without(&b, "token_embd.weight");
    gguf_build_tiny(&b);
    gguf_case_refuse("token_embd.weight is missing");
}
END_TEST

static void expect_value_error(const char *key, uint32_t value, const char *fragment)
{
    gguf_build_without(&b, key);
    gguf_build_u32(&b, key, value);
    gguf_build_tiny(&b);
    gguf_case_refuse(fragment);
}

START_TEST(numbers_out_of_range_are_refused)
{
    expect_value_error("llama.block_count", 0, "block_count");
    expect_value_error("llama.block_count", 513, "block_count");
    expect_value_error("llama.block_count", UINT32_C(1) << 31, "block_count");
    expect_value_error("llama.context_length", 0, "context_length");
    expect_value_error("llama.context_length", (1 << 24) + 1, "context_length");
    expect_value_error("llama.embedding_length", 0, "embedding_length");
    expect_value_error("llama.embedding_length", 65538, "embedding_length");
    expect_value_error("llama.embedding_length", 65, "not a multiple of attention.head_count");
    expect_value_error("llama.feed_forward_length", 0, "feed_forward_length");
    expect_value_error("llama.attention.head_count", 0, "head_count 0");
    expect_value_error("llama.attention.head_count", 3, "head_count 3");
    expect_value_error("llama.attention.head_count", UINT32_MAX, "head_count");
    expect_value_error("llama.attention.head_count_kv", 0, "head_count_kv");
    expect_value_error("llama.attention.head_count_kv", 3, "head_count_kv");
    expect_value_error("llama.attention.head_count_kv", UINT32_MAX, "head_count_kv");
    expect_value_error("llama.attention.key_length", 0, "key_length");
    expect_value_error("llama.attention.key_length", 16, "multiples of 32");
    expect_value_error("llama.attention.key_length", 48, "multiples of 32");
    expect_value_error("llama.attention.key_length", 544, "key_length");
    expect_value_error("llama.rope.dimension_count", 0, "rope.dimension_count");
    expect_value_error("llama.rope.dimension_count", 31, "rope.dimension_count");
    expect_value_error("llama.rope.dimension_count", 34, "rope.dimension_count");
    expect_value_error("llama.vocab_size", TINY_ROWS + 1, "vocab_size");
    expect_value_error("llama.expert_count", 8, "llama.expert_count");
    expect_value_error("llama.smear.channels", 24, "nanochat only");
    gguf_build_u32(&b, "llama.attention.key_length", 32);
    gguf_build_u32(&b, "llama.attention.value_length", 64);
    gguf_build_tiny(&b);
    gguf_case_refuse("must be equal");
    gguf_build_raw(&b, "split.count", 2, "\3\0", 2);
    gguf_build_tiny(&b);
    gguf_case_refuse("one of 3 parts");
}
END_TEST

START_TEST(reals_out_of_range_are_refused)
{
    const struct {
        const char *key;
        float value;
    } rows[] = {
        {"llama.attention.layer_norm_rms_epsilon", 0.0f},
        {"llama.attention.layer_norm_rms_epsilon", -1e-5f},
        {"llama.attention.layer_norm_rms_epsilon", NAN},
        {"llama.attention.layer_norm_rms_epsilon", INFINITY},
        {"llama.rope.freq_base", 0.0f},
        {"llama.rope.freq_base", -1.0f},
        {"llama.rope.freq_base", NAN},
        {"llama.rope.scaling.factor", 0.0f},
        {"llama.rope.scaling.factor", NAN},
        {"llama.attention.qk_scale", 1.2f}, /* of another family */
        {"llama.final_logit_softcapping", -1.0f},
        {"llama.final_logit_softcapping", NAN},
        {"llama.value_bank.gate_scale", NAN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gguf_build_without(&b, rows[i].key);
        gguf_build_f32(&b, rows[i].key, rows[i].value);
        gguf_build_tiny(&b);
        gguf_case_refuse(strchr(rows[i].key, '.') + 1);
    }
}
END_TEST

START_TEST(names_that_are_not_known_are_listed_with_those_that_are)
{
    gguf_build_without(&b, "general.architecture");
    gguf_build_string(&b, "general.architecture", "gemma3");
    gguf_build_tiny(&b);
    gguf_case_refuse("gemma3 is not supported; llama, qwen2");
    gguf_build_string(&b, "llama.rope.scaling.type", "yarn");
    gguf_build_tiny(&b);
    gguf_case_refuse("yarn is not supported");
    gguf_build_without(&b, "tokenizer.ggml.model");
    gguf_build_string(&b, "tokenizer.ggml.model", "bert");
    gguf_build_tiny(&b);
    gguf_case_refuse("bert is not supported");
    gguf_build_without(&b, "tokenizer.ggml.pre");
    gguf_build_string(&b, "tokenizer.ggml.pre", "tekken");
    gguf_build_tiny(&b);
    gguf_case_refuse("tekken is not supported");
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD_FIXTURE(suite, "sound files", gguf_case_set_up, gguf_case_tear_down,
                      a_tiny_model_is_read, version_2_and_unknown_keys_are_read,
                      a_file_without_a_name_is_called_after_its_path, names_are_cut_and_cleaned,
                      the_families_differ_as_documented, rope_and_windows_are_read);
    CHECK_ADD_FIXTURE(suite, "container", gguf_case_set_up, gguf_case_tear_down,
                      files_that_are_no_gguf_are_refused, other_versions_are_refused,
                      huge_counts_in_a_tiny_file_are_refused,
                      huge_lengths_in_a_tiny_file_are_refused, every_cut_of_a_sound_file_is_refused,
                      every_damaged_header_byte_is_survived, odd_alignments_are_refused,
                      powers_of_two_from_8_to_65536_align);
    CHECK_ADD_FIXTURE(suite, "directory", gguf_case_set_up, gguf_case_tear_down,
                      sizes_that_wrap_are_refused, odd_dimensions_are_refused,
                      unknown_types_and_broken_blocks_are_refused, data_outside_the_file_is_refused,
                      overlap_and_equal_names_are_refused, odd_tensor_names_are_refused);
    CHECK_ADD_FIXTURE(suite, "keys", gguf_case_set_up, gguf_case_tear_down, odd_keys_are_refused,
                      keys_of_other_types_are_refused, other_keys_of_other_types_are_refused,
                      missing_keys_are_named, numbers_out_of_range_are_refused,
                      reals_out_of_range_are_refused,
                      names_that_are_not_known_are_listed_with_those_that_are);
}

CHECK_MAIN("gguf", add_cases)
