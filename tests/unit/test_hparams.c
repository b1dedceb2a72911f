/*
 * Which numbers a model may have, and the frequencies of RoPE against their formulas.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_main.h"
#include "tellerd/model/hparams.h"

static struct hparams_layer layers[4];
static struct hparams hp;

/* A sound model of four layers, the last two of them bank layers. */
static void make_sound(void)
{
    memset(layers, 0, sizeof layers);
    hp = (struct hparams){
        .family = FAMILY_LLAMA,
        .n_layers = 4,
        .embedding = 96,
        .n_heads = 6,
        .n_kv_heads = 2,
        .head_size = 32,
        .feed_forward = 100,
        .n_embedding_rows = 320,
        .n_context = 512,
        .norm_eps = 1e-5f,
        .norm_has_weights = true,
        .qk_scale = 1.0f,
        .rope_dims = 32,
        .rope_base = 10000.0f,
        .rope_linear_factor = 1.0f,
        .has_bank = true,
        .bank_rows = 321,
        .sink_row = 320,
        .gate_sigmoid = true,
        .gate_channels = 12,
        .gate_scale = 3.0f,
        .layers = layers,
    };
    for (uint32_t i = 0; i < 4; i++)
        layers[i] = (struct hparams_layer){VALUE_RESIDUAL, i, 0, 1.0f};
    layers[2].source = VALUE_BANK;
    layers[3].source = VALUE_RESIDUAL_BANK;
    layers[3].bank_layer = 2;
}

static void expect(const char *fragment)
{
    struct error err = {0};
    enum status status = hparams_validate(&hp, &err);
    if (!fragment) {
        ck_assert_msg(status == STATUS_OK, "%s", err.text);
    } else {
        ck_assert_int_eq(status, STATUS_BAD_FILE);
        ck_assert_int_eq(err.status, STATUS_BAD_FILE);
        ck_assert_msg(strstr(err.text, fragment) != NULL, "\"%s\" is not in \"%s\"", fragment,
                      err.text);
        ck_assert_int_eq(hparams_validate(&hp, NULL), STATUS_BAD_FILE);
    }
    make_sound();
}

#define EXPECT(field, number, fragment) \
    do {                                \
        hp.field = (number);            \
        expect(fragment);               \
    } while (0)

START_TEST(a_sound_model_passes)
{
    expect(NULL);
}
END_TEST

START_TEST(counts_have_limits_at_both_ends)
{
    EXPECT(n_layers, 0, "block_count");
    EXPECT(n_layers, HPARAMS_MAX_LAYERS + 1, "block_count");
    EXPECT(embedding, 0, "embedding_length");
    EXPECT(embedding, HPARAMS_MAX_EMBEDDING, NULL);
    EXPECT(embedding, HPARAMS_MAX_EMBEDDING + 1, "embedding_length");
    EXPECT(feed_forward, 0, "feed_forward_length");
    EXPECT(feed_forward, HPARAMS_MAX_FEED_FORWARD, NULL);
    EXPECT(feed_forward, HPARAMS_MAX_FEED_FORWARD + 1, "feed_forward_length");
    EXPECT(n_heads, 0, "head_count");
    EXPECT(n_heads, HPARAMS_MAX_HEADS, NULL);
    EXPECT(n_heads, HPARAMS_MAX_HEADS + 2, "head_count");
    EXPECT(n_kv_heads, 0, "head_count_kv");
    EXPECT(n_context, 0, "context_length");
    EXPECT(n_context, HPARAMS_MAX_CONTEXT, NULL);
    EXPECT(n_context, HPARAMS_MAX_CONTEXT + 1, "context_length");
    EXPECT(n_embedding_rows, 0, "embedding rows");
    EXPECT(n_embedding_rows, HPARAMS_MAX_VOCAB, NULL);
    EXPECT(n_embedding_rows, HPARAMS_MAX_VOCAB + 1, "embedding rows");
    EXPECT(family, FAMILY_COUNT, "family");
}
END_TEST

START_TEST(heads_must_fit_each_other)
{
    EXPECT(n_kv_heads, 1, NULL);
    EXPECT(n_kv_heads, 3, NULL);
    EXPECT(n_kv_heads, 6, NULL);
    EXPECT(n_kv_heads, 4, "head_count_kv");
    EXPECT(n_kv_heads, 12, "head_count_kv");
    EXPECT(head_size, 0, "key_length");
    EXPECT(head_size, 33, "multiples of 32");
    EXPECT(head_size, 48, "multiples of 32");
    EXPECT(head_size, HPARAMS_MAX_HEAD_SIZE, NULL);
    EXPECT(head_size, HPARAMS_MAX_HEAD_SIZE + 32, "key_length");
    EXPECT(rope_dims, 2, NULL);
    EXPECT(rope_dims, 0, "rope.dimension_count");
    EXPECT(rope_dims, 15, "rope.dimension_count");
    EXPECT(rope_dims, 34, "rope.dimension_count");
}
END_TEST

START_TEST(reals_must_be_finite_and_positive)
{
    const float bad[] = {0.0f, -1.0f, NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 5; i++) {
        EXPECT(norm_eps, bad[i], "epsilon");
        EXPECT(rope_base, bad[i], "freq_base");
        EXPECT(rope_linear_factor, bad[i], "rope.scaling.factor");
        hp.qk_norm = QK_NORM_AFTER_ROPE;
        EXPECT(qk_scale, bad[i], "qk_scale");
        if (bad[i] != 0.0f)
            EXPECT(logit_softcap, bad[i], "softcapping");
    }
    EXPECT(logit_softcap, 15.0f, NULL);
    EXPECT(qk_scale, 1.2f, "qk_scale");
    EXPECT(gate_scale, NAN, "gate_scale");
    EXPECT(layers[2].gamma, NAN, "blk.2.attn_v_bank.gamma");
    EXPECT(layers[3].gamma, -INFINITY, "blk.3.attn_v_bank.gamma");
    EXPECT(layers[3].gamma, -12.5f, NULL);
}
END_TEST

START_TEST(llama3_scaling_must_make_sense)
{
    for (int i = 0; i < 8; i++) {
        hp.rope_llama3 = true;
        hp.rope_factor = i == 1 ? 0.5f : i == 2 ? NAN : 8.0f;
        hp.rope_low_freq_factor = i == 3 ? 0.0f : i == 4 ? 4.0f : 1.0f;
        hp.rope_high_freq_factor = i == 5 ? INFINITY : 4.0f;
        hp.rope_original_context = i == 6 ? 0 : i == 7 ? UINT32_MAX : 8192;
        expect(i == 0 ? NULL : "llama3");
    }
}
END_TEST

START_TEST(banks_must_fit)
{
    EXPECT(bank_rows, 0, "value_bank.rows");
    EXPECT(bank_rows, HPARAMS_MAX_VOCAB + 1, "value_bank.rows");
    EXPECT(sink_row, 321, "sink_row");
    EXPECT(sink_row, UINT32_MAX - 1, "sink_row");
    EXPECT(sink_row, HPARAMS_NO_ROW, NULL);
    EXPECT(gate_channels, 0, "gate_channels");
    EXPECT(gate_channels, 97, "gate_channels");
    EXPECT(layers[3].bank_layer, 4, "source_layer of layer 3");
    EXPECT(layers[0].bank_layer, UINT32_MAX, "source_layer of layer 0");
    EXPECT(layers[1].source, (enum value_source)3, "value_source of layer 1");
    EXPECT(has_bank, false, "together");
    layers[2].source = layers[3].source = VALUE_RESIDUAL;
    expect("together");
    layers[2].source = layers[3].source = VALUE_RESIDUAL;
    hp.has_bank = false;
    expect("no layer reads a bank");
    layers[2].source = layers[3].source = VALUE_RESIDUAL;
    hp.has_bank = false;
    hp.sink_row = HPARAMS_NO_ROW;
    expect(NULL);
}
END_TEST

START_TEST(smear_channels_must_fit)
{
    hp.smear = true;
    EXPECT(smear_channels, 0, "smear.channels");
    hp.smear = true;
    EXPECT(smear_channels, 97, "smear.channels");
    hp.smear = true;
    EXPECT(smear_channels, 96, NULL);
}
END_TEST

START_TEST(layers_say_whether_they_cache_values)
{
    ck_assert(hparams_layer_has_values(&hp, 0));
    ck_assert(!hparams_layer_has_values(&hp, 2));
    ck_assert(hparams_layer_has_values(&hp, 3));
}
END_TEST

START_TEST(the_value_id_is_the_token_but_for_the_sink)
{
    ck_assert_uint_eq(hparams_value_id(&hp, 7, 0), 320);
    ck_assert_uint_eq(hparams_value_id(&hp, 7, 1), 7);
    hp.sink_row = HPARAMS_NO_ROW;
    ck_assert_uint_eq(hparams_value_id(&hp, 7, 0), 7);
}
END_TEST

/* -- RoPE ------------------------------------------------------------------------------------- */

static float inv_freq[HPARAMS_MAX_HEAD_SIZE / 2];

static void expect_freq(uint32_t i, double right)
{
    ck_assert_msg(fabs(inv_freq[i] - right) <= 1e-7 * fabs(right), "%u: %.9g, not %.9g", i,
                  (double)inv_freq[i], right);
}

START_TEST(frequencies_fall_geometrically)
{
    hp.rope_dims = 16;
    hparams_rope_inv_freq(&hp, NULL, inv_freq);
    for (uint32_t i = 0; i < 8; i++)
        expect_freq(i, 1.0 / pow(10000.0, i / 8.0));
    hp.rope_negative = true;
    hparams_rope_inv_freq(&hp, NULL, inv_freq);
    expect_freq(3, -1.0 / pow(10000.0, 3 / 8.0));
}
END_TEST

START_TEST(linear_scaling_and_divisors_divide)
{
    float divisors[16];
    for (int i = 0; i < 16; i++)
        divisors[i] = 1.0f + (float)i;
    hp.rope_linear_factor = 4.0f;
    hparams_rope_inv_freq(&hp, divisors, inv_freq);
    for (uint32_t i = 0; i < 16; i++)
        expect_freq(i, 1.0 / pow(10000.0, i / 16.0) / 4.0 / (1.0 + i));
}
END_TEST

/* Written from the published description: wavelengths against the original context. */
START_TEST(llama3_scaling_keeps_short_waves_and_stretches_long_ones)
{
    unsigned kept = 0, stretched = 0;
    hp.head_size = hp.rope_dims = 128;
    hp.rope_base = 500000.0f;
    hp.rope_llama3 = true;
    hp.rope_factor = 8.0f;
    hp.rope_low_freq_factor = 1.0f;
    hp.rope_high_freq_factor = 4.0f;
    hp.rope_original_context = 8192;
    hparams_rope_inv_freq(&hp, NULL, inv_freq);
    for (uint32_t i = 0; i < 64; i++) {
        double plain = pow(500000.0, -(double)i / 64.0);
        double wavelength = 2.0 * 3.14159265358979323846 / plain;
        double smooth = (8192.0 / wavelength - 1.0) / 3.0;
        double right = wavelength < 8192.0 / 4.0 ? plain
                       : wavelength > 8192.0     ? plain / 8.0
                                                 : (1.0 - smooth) * plain / 8.0 + smooth * plain;
        expect_freq(i, right);
        kept += wavelength < 8192.0 / 4.0;
        stretched += wavelength > 8192.0;
    }
    ck_assert(kept > 10 && stretched > 10 && kept + stretched < 64);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD_FIXTURE(suite, "validation", make_sound, NULL, a_sound_model_passes,
                      counts_have_limits_at_both_ends, heads_must_fit_each_other,
                      reals_must_be_finite_and_positive, llama3_scaling_must_make_sense,
                      banks_must_fit, smear_channels_must_fit);
    CHECK_ADD_FIXTURE(suite, "values", make_sound, NULL, layers_say_whether_they_cache_values,
                      the_value_id_is_the_token_but_for_the_sink);
    CHECK_ADD_FIXTURE(suite, "rope", make_sound, NULL, frequencies_fall_geometrically,
                      linear_scaling_and_divisors_divide,
                      llama3_scaling_keeps_short_waves_and_stretches_long_ones);
}

CHECK_MAIN("hparams", add_cases)
