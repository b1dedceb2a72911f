/*
 * What a checkpoint gives once it is open: value sources and banks, bytes, the fingerprint, pages.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/gguf_case.h"
#include "tellerd/model/checkpoint.h"

/* -- Bank of Values --------------------------------------------------------------------------- */

static const char *const sources[] = {"residual", "residual+bank", "bank", "bank"};

/* Four layers; the bank of layer 2 is shared by layer 3. */
static void build_bank_model(void)
{
    b.n_layers = 4;
    gguf_build_strings(&b, "llama.attention.value_source", sources, 4);
    gguf_build_u32(&b, "llama.value_bank.rows", TINY_ROWS + 1);
    gguf_build_u32s(&b, "llama.value_bank.source_layer", (uint32_t[]){0, 1, 2, 2}, 4);
    gguf_build_u32(&b, "llama.value_bank.sink_row", TINY_ROWS);
    gguf_build_string(&b, "llama.value_bank.gate", "sigmoid");
    gguf_build_u32(&b, "llama.value_bank.gate_channels", 12);
    gguf_build_f32(&b, "llama.value_bank.gate_scale", 3.0f);
    gguf_build_without(&b, "blk.2.attn_v.weight");
    gguf_build_without(&b, "blk.3.attn_v.weight");
    gguf_build_tiny(&b);
    gguf_build_tensor(&b, "blk.1.attn_v_bank.weight", TINY_K * TINY_D, TINY_ROWS + 1, 0.1f);
    gguf_build_tensor(&b, "blk.1.attn_v_gate.weight", 12, TINY_K, 0.1f);
    gguf_build_tensor(&b, "blk.2.attn_v_bank.weight", TINY_K * TINY_D, TINY_ROWS + 1, 0.2f);
    gguf_build_tensor(&b, "blk.2.attn_v_bank.gamma", 1, 0, 2.5f);
    gguf_build_tensor(&b, "blk.3.attn_v_bank.gamma", 1, 0, -12.0f);
}

START_TEST(value_sources_banks_and_gammas_are_read)
{
    build_bank_model();
    struct checkpoint *cp = gguf_case_open();
    const struct hparams *hp = checkpoint_hparams(cp);
    const enum value_source right[] = {VALUE_RESIDUAL, VALUE_RESIDUAL_BANK, VALUE_BANK, VALUE_BANK};
    const float gammas[] = {1.0f, 1.0f, 2.5f, -12.0f};
    for (uint32_t i = 0; i < 4; i++) {
        ck_assert_int_eq(hp->layers[i].source, right[i]);
        ck_assert_uint_eq(hp->layers[i].bank_layer, i < 3 ? i : 2);
        ck_assert_float_eq(hp->layers[i].gamma, gammas[i]);
        ck_assert_int_eq(hparams_layer_has_values(hp, i), i < 2);
    }
    ck_assert(hp->has_bank && hp->gate_sigmoid);
    ck_assert_uint_eq(hp->bank_rows, TINY_ROWS + 1);
    ck_assert_uint_eq(hp->sink_row, TINY_ROWS);
    ck_assert_uint_eq(hp->gate_channels, 12);
    ck_assert_float_eq(hp->gate_scale, 3.0f);
    size_t all, banks;
    checkpoint_bytes(cp, &all, &banks);
    ck_assert_uint_eq(banks, 2 * (TINY_ROWS + 1) * TINY_K * TINY_D * 4);
    ck_assert_uint_gt(all, banks);
    checkpoint_close(cp);
}
END_TEST

START_TEST(sources_that_are_all_residual_are_an_ordinary_model)
{
    const char *const residual[] = {"residual", "residual"};
    gguf_build_strings(&b, "llama.attention.value_source", residual, 2);
    gguf_build_u32(&b, "llama.value_bank.rows", 100);
    gguf_build_u32(&b, "llama.value_bank.sink_row", 99);
    gguf_build_tiny(&b);
    struct checkpoint *cp = gguf_case_open();
    ck_assert(!checkpoint_hparams(cp)->has_bank);
    ck_assert_uint_eq(checkpoint_hparams(cp)->bank_rows, 0);
    ck_assert_uint_eq(checkpoint_hparams(cp)->sink_row, HPARAMS_NO_ROW);
    checkpoint_close(cp);
}
END_TEST

static void build_bad_bank(const char *const *names, uint64_t n, uint32_t rows)
{
    gguf_build_strings(&b, "llama.attention.value_source", names, n);
    gguf_build_u32(&b, "llama.value_bank.rows", rows);
}

START_TEST(banks_that_do_not_fit_are_refused)
{
    const char *const good[] = {"residual", "bank", "bank"}, *const bad[] = {"residual", "Bank"};
    build_bad_bank(good, 1, TINY_ROWS);
    gguf_build_tiny(&b);
    gguf_case_refuse("attention.value_source has 1 elements for 2 layers");
    build_bad_bank(good, 3, TINY_ROWS);
    gguf_build_tiny(&b);
    gguf_case_refuse("attention.value_source has 3 elements for 2 layers");
    build_bad_bank(bad, 2, TINY_ROWS);
    gguf_build_tiny(&b);
    gguf_case_refuse("value_source of layer 1 is \"Bank\"");
    build_bad_bank(good, 2, TINY_TOKENS - 1);
    gguf_build_tiny(&b);
    gguf_case_refuse("value_bank.rows is 5, but there are 6 tokens");
    build_bad_bank(good, 2, 0);
    gguf_build_tiny(&b);
    gguf_case_refuse("value_bank.rows");
    gguf_build_strings(&b, "llama.attention.value_source", good, 2);
    gguf_build_tiny(&b);
    gguf_case_refuse("value_bank.rows is missing");
    build_bad_bank(good, 2, TINY_ROWS);
    gguf_build_u32(&b, "llama.value_bank.sink_row", TINY_ROWS);
    gguf_build_tiny(&b);
    gguf_case_refuse("sink_row");
    build_bad_bank(good, 2, TINY_ROWS);
    gguf_build_u32(&b, "llama.value_bank.sink_row", UINT32_MAX);
    gguf_build_tiny(&b);
    gguf_case_refuse("sink_row");
    build_bad_bank(good, 2, TINY_ROWS);
    gguf_build_u32s(&b, "llama.value_bank.source_layer", (uint32_t[]){0, 2}, 2);
    gguf_build_tiny(&b);
    gguf_case_refuse("source_layer of layer 1 is 2");
    build_bad_bank(good, 2, TINY_ROWS);
    gguf_build_u32s(&b, "llama.value_bank.source_layer", (uint32_t[]){0}, 1);
    gguf_build_tiny(&b);
    gguf_case_refuse("source_layer has 1 elements");
    build_bad_bank(good, 2, TINY_ROWS);
    gguf_build_string(&b, "llama.value_bank.gate", "tanh");
    gguf_build_tiny(&b);
    gguf_case_refuse("value_bank.gate must be none or sigmoid");
    build_bad_bank(good, 2, TINY_ROWS);
    gguf_build_string(&b, "llama.value_bank.gate", "sigmoid");
    gguf_build_tiny(&b);
    gguf_case_refuse("value_bank.gate_channels is missing");
}
END_TEST

START_TEST(gammas_must_be_one_finite_number)
{
    for (int i = 0; i < 4; i++) {
        build_bank_model();
        b.n_tensors--; /* the last entry is blk.3's gamma: put another in its place */
        b.directory.len -= 8 + strlen("blk.3.attn_v_bank.gamma") + 4 + 8 + 4 + 8;
        gguf_build_tensor(&b, "blk.3.attn_v_bank.gamma", i == 0 ? 2 : 1, i == 1 ? 2 : 0,
                          i == 2   ? NAN
                          : i == 3 ? INFINITY
                                   : 1.0f);
        gguf_case_refuse("blk.3.attn_v_bank.gamma");
    }
}
END_TEST

START_TEST(a_bias_anywhere_means_biases)
{
    b.family = "qwen2";
    gguf_build_tiny(&b);
    gguf_build_tensor(&b, "blk.1.attn_k.bias", TINY_K * TINY_D, 0, 0.1f);
    struct checkpoint *cp = gguf_case_open();
    ck_assert(checkpoint_hparams(cp)->attention_bias);
    checkpoint_close(cp);
}
END_TEST

START_TEST(frequency_divisors_are_checked)
{
    const struct {
        uint64_t columns, rows;
        float value;
    } bad[] = {{TINY_D, 0, 1.0f},      {TINY_D / 2, 2, 1.0f},     {TINY_D / 2, 0, 0.0f},
               {TINY_D / 2, 0, -1.0f}, {TINY_D / 2, 0, INFINITY}, {TINY_D / 2, 0, NAN}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        gguf_build_tiny(&b);
        gguf_build_tensor(&b, "rope_freqs.weight", bad[i].columns, bad[i].rows, bad[i].value);
        gguf_case_refuse("rope_freqs.weight");
    }
}
END_TEST

START_TEST(an_output_tensor_unties_it)
{
    gguf_build_tiny(&b);
    gguf_build_tensor(&b, "output.weight", TINY_C, TINY_ROWS, 0.1f);
    struct checkpoint *cp = gguf_case_open();
    ck_assert(!checkpoint_hparams(cp)->tied_output);
    checkpoint_close(cp);
}
END_TEST

/* -- fingerprint ------------------------------------------------------------------------------ */

static struct hash128 fingerprint_of_built(void)
{
    struct checkpoint *cp = gguf_case_open();
    struct hash128 hash = checkpoint_fingerprint(cp);
    ck_assert(hash_equal(hash, checkpoint_fingerprint(cp)));
    checkpoint_close(cp);
    return hash;
}

START_TEST(equal_models_have_equal_fingerprints)
{
    build_bank_model();
    struct hash128 first = fingerprint_of_built();
    gguf_build_string(&b, "general.name", "another name"); /* says nothing about the numbers */
    build_bank_model();
    ck_assert(hash_equal(first, fingerprint_of_built()));
    /* nor does the order in the file */
    gguf_build_tiny(&b);
    gguf_build_tensor(&b, "output.weight", TINY_C, TINY_ROWS, 0.1f);
    struct hash128 last = fingerprint_of_built();
    gguf_build_tensor(&b, "output.weight", TINY_C, TINY_ROWS, 0.1f);
    gguf_build_tiny(&b);
    ck_assert(hash_equal(last, fingerprint_of_built()));
}
END_TEST

START_TEST(one_byte_of_any_tensor_changes_the_fingerprint)
{
    enum { PLACES = 30 };
    size_t size;
    struct checkpoint *cp;
    struct hash128 seen[PLACES + 1];
    build_bank_model();
    unsigned char *bytes = gguf_build_bytes(&b, &size);
    /* what lies before the last 64 bytes is matrices without padding; the very last is a gamma's */
    size_t data = size - b.data.len, step = (size - 64 - data) / (PLACES - 1);
    for (size_t i = 0; i <= PLACES; i++) {
        size_t at = i < PLACES - 1 ? data + i * step : size - 1;
        bytes[at] ^= i < PLACES; /* the last turn leaves the file as it was built */
        const char *path = temp_dir_write(&dir, "model.gguf", bytes, size);
        ck_assert_int_eq(checkpoint_open(path, &cp, NULL), STATUS_OK);
        seen[i] = checkpoint_fingerprint(cp);
        checkpoint_close(cp);
        bytes[at] ^= i < PLACES;
        for (size_t k = 0; k < i; k++)
            ck_assert(!hash_equal(seen[k], seen[i]));
    }
    free(bytes);
}
END_TEST

START_TEST(settings_and_vocabulary_change_the_fingerprint)
{
    struct hash128 seen[8];
    for (int i = 0; i < 8; i++) {
        if (i == 1)
            gguf_build_f32(&b, "llama.rope.freq_base", 10001.0f);
        if (i == 2)
            gguf_build_u32(&b, "llama.attention.sliding_window", 16);
        if (i == 3)
            gguf_build_bool(&b, "tokenizer.ggml.add_bos_token", 1);
        if (i == 4)
            gguf_build_without(&b, "tokenizer.ggml.tokens");
        if (i == 4)
            gguf_build_strings(&b, "tokenizer.ggml.tokens",
                               (const char *const[]){"a", "b", "ab", "d", "<s>", "</s>"},
                               TINY_TOKENS);
        if (i == 5)
            gguf_build_without(&b, "tokenizer.ggml.merges");
        if (i == 5)
            gguf_build_strings(&b, "tokenizer.ggml.merges", NULL, 0);
        if (i == 6)
            gguf_build_without(&b, "tokenizer.ggml.pre");
        if (i == 6)
            gguf_build_string(&b, "tokenizer.ggml.pre", "smollm");
        if (i == 7)
            gguf_build_f32(&b, "llama.rope.scaling.factor", 2.0f);
        gguf_build_tiny(&b);
        seen[i] = fingerprint_of_built();
        for (int k = 0; k < i; k++)
            ck_assert(!hash_equal(seen[k], seen[i]));
    }
}
END_TEST

START_TEST(released_pages_read_the_same_again)
{
    build_bank_model();
    struct checkpoint *cp = gguf_case_open();
    struct tensor matrix, bank;
    ck_assert(checkpoint_tensor(cp, "blk.0.attn_q.weight", &matrix));
    ck_assert(checkpoint_tensor(cp, "blk.2.attn_v_bank.weight", &bank));
    struct hash128 before = hash_bytes(matrix.data, matrix.size_bytes, 0);
    checkpoint_release_pages(cp);
    ck_assert(hash_equal(before, hash_bytes(matrix.data, matrix.size_bytes, 0)));
    ck_assert_float_eq(*(const float *)bank.data, 0.2f);
    checkpoint_close(cp);
    checkpoint_close(NULL);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD_FIXTURE(suite, "Bank of Values", gguf_case_set_up, gguf_case_tear_down,
                      value_sources_banks_and_gammas_are_read,
                      sources_that_are_all_residual_are_an_ordinary_model,
                      banks_that_do_not_fit_are_refused, gammas_must_be_one_finite_number);
    CHECK_ADD_FIXTURE(suite, "tensors", gguf_case_set_up, gguf_case_tear_down,
                      a_bias_anywhere_means_biases, frequency_divisors_are_checked,
                      an_output_tensor_unties_it, released_pages_read_the_same_again);
    CHECK_ADD_FIXTURE(suite, "fingerprint", gguf_case_set_up, gguf_case_tear_down,
                      equal_models_have_equal_fingerprints,
                      one_byte_of_any_tensor_changes_the_fingerprint,
                      settings_and_vocabulary_change_the_fingerprint);
}

CHECK_MAIN("checkpoint", add_cases)
