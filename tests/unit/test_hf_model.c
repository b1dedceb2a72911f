/*
 * Hugging Face directories: configuration, tensors and shards, settings.  The tokenizer's file is
 * in test_hf_tokenizer.c, the container in test_safetensors.c.
 */
#include "config.h"

#include "support/hf_case.h"

/* -- configuration ---------------------------------------------------------------------------- */

static void expect_config(const char *from, const char *to, const char *fragment)
{
    hf_case_edit("config.json", hf_case_config, from, to);
    hf_case_refuse(fragment);
}

/* Opens with one edit of config.json. */
static struct checkpoint *open_with(const char *from, const char *to)
{
    hf_case_edit("config.json", hf_case_config, from, to);
    return hf_case_open();
}

START_TEST(a_small_directory_is_read)
{
    struct checkpoint *cp = hf_case_open();
    const struct hparams *hp = checkpoint_hparams(cp);
    ck_assert_int_eq(hp->family, FAMILY_LLAMA);
    ck_assert_str_eq(hp->name, strrchr(dir.path, '/') + 1);
    ck_assert_uint_eq(hp->n_layers, 2);
    ck_assert_uint_eq(hp->head_size, 32);
    ck_assert_uint_eq(hp->rope_dims, 32);
    ck_assert_uint_eq(hp->n_embedding_rows, HF_CASE_ROWS);
    ck_assert(hp->tied_output && !hp->rope_interleaved && !hp->has_bank);
    ck_assert_float_eq(hp->rope_base, 10000.0f);
    const struct vocab_source *vocab = checkpoint_vocab(cp);
    ck_assert_uint_eq(vocab->n_tokens, 6);
    ck_assert_uint_eq(vocab->bos, 4);
    ck_assert_uint_eq(vocab->eos, 5);
    ck_assert_uint_eq(vocab->n_extra_eog, 0);
    struct tensor t;
    ck_assert(checkpoint_tensor(cp, "token_embd.weight", &t));
    ck_assert_uint_eq(t.columns, HF_CASE_C);
    ck_assert_uint_eq(t.rows, HF_CASE_ROWS);
    checkpoint_close(cp);
}
END_TEST

START_TEST(model_types_give_families)
{
    const struct {
        const char *type;
        enum model_family family;
    } rows[] = {{"mistral", FAMILY_LLAMA}, {"qwen2", FAMILY_QWEN2}, {"qwen3", FAMILY_QWEN3}};
    for (int i = 0; i < 3; i++) {
        char text[64];
        snprintf(text, sizeof text, "\"%s\"", rows[i].type);
        struct checkpoint *cp = open_with("\"llama\"", text);
        ck_assert_int_eq(checkpoint_hparams(cp)->family, rows[i].family);
        checkpoint_close(cp);
    }
    expect_config("\"llama\"", "\"gemma2\"", "model_type gemma2 is not supported");
    expect_config("\"llama\"", "5", "model_type must be a string");
    expect_config("\"model_type\"", "\"x\"", "model_type is missing");
    expect_config("\"llama\"", "\"nanochat\"", "relu2");
}
END_TEST

START_TEST(missing_and_odd_numbers_are_named)
{
    const char *const keys[] = {"num_hidden_layers",   "hidden_size",  "intermediate_size",
                                "num_attention_heads", "rms_norm_eps", "max_position_embeddings"};
    for (int i = 0; i < 6; i++) {
        char missing[64];
        snprintf(missing, sizeof missing, "%s is missing", keys[i]);
        expect_config(keys[i], "other_key", missing);
    }
    expect_config("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 0", "num_hidden_layers");
    expect_config("\"num_hidden_layers\": 2", "\"num_hidden_layers\": -1", "out of range");
    expect_config("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 4294967298", "out of range");
    expect_config("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 2.0", "whole number");
    expect_config("\"num_hidden_layers\": 2", "\"num_hidden_layers\": \"2\"", "whole number");
    expect_config("\"num_hidden_layers\": 2", "\"num_hidden_layers\": true", "whole number");
    expect_config("\"num_attention_heads\": 2", "\"num_attention_heads\": 0", "multiple");
    expect_config("\"num_key_value_heads\": 1", "\"num_key_value_heads\": 0", "head_count_kv");
    expect_config("\"num_key_value_heads\": 1", "\"num_key_value_heads\": 3", "head_count_kv");
    expect_config("\"hidden_size\": 64", "\"hidden_size\": 64, \"head_dim\": 33", "head_dim");
    expect_config("1e-05", "\"1e-05\"", "rms_norm_eps must be a number");
    expect_config("1e-05", "0", "rms_norm_eps");
    expect_config("true", "1", "tie_word_embeddings must be true or false");
}
END_TEST

START_TEST(json_that_is_damaged_is_refused)
{
    expect_config("}", "", "not valid JSON");
    expect_config("{\"model_type\"", "{\"model_type\": \"x\", \"model_type\"", "not valid JSON");
    hf_case_write("config.json", "[]");
    hf_case_refuse("an object");
    hf_case_write("config.json", "");
    hf_case_refuse("empty");
    unlink(temp_dir_path(&dir, "config.json"));
    hf_case_refuse("no config.json");
}
END_TEST

START_TEST(unsupported_features_are_refused)
{
    expect_config("\"silu\"", "\"gelu\"", "hidden_act gelu is not supported");
    expect_config("{\"model_type\"", "{\"quantization_config\": {}, \"model_type\"",
                  "quantization_config");
    expect_config("{\"model_type\"", "{\"num_local_experts\": 8, \"model_type\"",
                  "num_local_experts");
    expect_config("{\"model_type\"", "{\"partial_rotary_factor\": 0.5, \"model_type\"",
                  "partial_rotary_factor");
    expect_config("{\"model_type\"",
                  "{\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4}, \"model_type\"",
                  "yarn is not supported");
    expect_config("{\"model_type\"", "{\"rope_scaling\": {\"type\": \"linear\"}, \"model_type\"",
                  "factor is missing");
    expect_config("{\"model_type\"", "{\"rope_scaling\": 2, \"model_type\"",
                  "rope_scaling must be an object");
}
END_TEST

START_TEST(rope_settings_are_read_in_both_spellings)
{
    struct checkpoint *cp =
        open_with("{", "{\"rope_theta\": 500000, \"rope_scaling\": {\"rope_type\": \"llama3\","
                       " \"factor\": 8.0, \"low_freq_factor\": 1, \"high_freq_factor\": 4.0,"
                       " \"original_max_position_embeddings\": 64}, ");
    const struct hparams *hp = checkpoint_hparams(cp);
    ck_assert(hp->rope_llama3);
    ck_assert_float_eq(hp->rope_base, 500000.0f);
    ck_assert_float_eq(hp->rope_factor, 8.0f);
    ck_assert_float_eq(hp->rope_low_freq_factor, 1.0f);
    ck_assert_float_eq(hp->rope_high_freq_factor, 4.0f);
    ck_assert_uint_eq(hp->rope_original_context, 64);
    checkpoint_close(cp);
    cp = open_with("{", "{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}, ");
    ck_assert_float_eq(checkpoint_hparams(cp)->rope_linear_factor, 2.0f);
    checkpoint_close(cp);
    cp =
        open_with("{", "{\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 7e4}, ");
    ck_assert_float_eq(checkpoint_hparams(cp)->rope_base, 7e4f);
    checkpoint_close(cp);
}
END_TEST

static void expect_windows(const char *type, const char *extra, uint32_t first, uint32_t second)
{
    char text[512];
    snprintf(text, sizeof text, "{\"model_type\": \"%s\", %s", type, extra);
    struct checkpoint *cp = open_with("{\"model_type\": \"llama\",", text);
    ck_assert_uint_eq(checkpoint_hparams(cp)->layers[0].window, first);
    ck_assert_uint_eq(checkpoint_hparams(cp)->layers[1].window, second);
    checkpoint_close(cp);
}

START_TEST(windows_follow_each_familys_rule)
{
    expect_windows("mistral", "", 0, 0);
    expect_windows("mistral", "\"sliding_window\": null,", 0, 0);
    expect_windows("mistral", "\"sliding_window\": 32,", 32, 32);
    expect_windows("qwen2", "\"sliding_window\": 32,", 0, 0);
    expect_windows("qwen2", "\"sliding_window\": 32, \"use_sliding_window\": false,", 0, 0);
    expect_windows(
        "qwen2", "\"sliding_window\": 32, \"use_sliding_window\": true, \"max_window_layers\": 1,",
        0, 32);
    expect_windows("llama", "\"sliding_window\": 32, \"sliding_window_pattern\": [true, false],",
                   32, 0);
    expect_windows("llama",
                   "\"sliding_window\": 32,"
                   " \"layer_types\": [\"full_attention\", \"sliding_attention\"],",
                   0, 32);
    expect_config("{", "{\"sliding_window_pattern\": [true], ", "1 elements for 2 layers");
    expect_config("{", "{\"sliding_window_pattern\": [true, 1], ", "true and false");
    expect_config("{", "{\"sliding_window_pattern\": 6, ", "must be a list");
    expect_config("{", "{\"layer_types\": [\"full_attention\", \"linear_attention\"], ",
                  "linear_attention");
    expect_config("{", "{\"layer_types\": [\"full_attention\", 1], ", "layer_types");
}
END_TEST

START_TEST(nanochats_extra_keys_are_read)
{
    const char *config = "{\"model_type\": \"nanochat\", \"num_hidden_layers\": 2,"
                         " \"hidden_size\": 64, \"intermediate_size\": 96,"
                         " \"num_attention_heads\": 2, \"rms_norm_eps\": 1e-05,"
                         " \"max_position_embeddings\": 128, \"hidden_act\": \"relu2\","
                         " \"tie_word_embeddings\": true, \"qk_scale\": 1.2,"
                         " \"final_logit_softcapping\": 15.0, \"smear_channels\": 24}";
    hf_case_write("config.json", config);
    struct checkpoint *cp = hf_case_open();
    const struct hparams *hp = checkpoint_hparams(cp);
    ck_assert_int_eq(hp->qk_norm, QK_NORM_AFTER_ROPE);
    ck_assert_float_eq(hp->qk_scale, 1.2f);
    ck_assert_float_eq(hp->logit_softcap, 15.0f);
    ck_assert(hp->smear && hp->rope_negative && !hp->norm_has_weights);
    ck_assert_uint_eq(hp->smear_channels, 24);
    ck_assert_uint_eq(hp->n_kv_heads, 2);
    checkpoint_close(cp);
}
END_TEST

/* -- Bank of Values --------------------------------------------------------------------------- */

START_TEST(a_bank_is_read)
{
    struct checkpoint *cp =
        open_with("{", "{\"value_bank\": {\"value_source\": [\"residual+bank\", \"bank\"],"
                       " \"rows\": 9, \"source_layer\": [1, 1], \"sink_row\": 8,"
                       " \"gate\": \"sigmoid\", \"gate_channels\": 12, \"gate_scale\": 3}, ");
    const struct hparams *hp = checkpoint_hparams(cp);
    ck_assert(hp->has_bank && hp->gate_sigmoid);
    ck_assert_int_eq(hp->layers[0].source, VALUE_RESIDUAL_BANK);
    ck_assert_int_eq(hp->layers[1].source, VALUE_BANK);
    ck_assert_uint_eq(hp->layers[0].bank_layer, 1);
    ck_assert_uint_eq(hp->bank_rows, 9);
    ck_assert_uint_eq(hp->sink_row, 8);
    ck_assert_uint_eq(hp->gate_channels, 12);
    ck_assert_float_eq(hp->gate_scale, 3.0f);
    checkpoint_close(cp);
}
END_TEST

static void expect_bank_error(const char *inside, const char *fragment)
{
    char text[512];
    snprintf(text, sizeof text, "{\"value_bank\": {%s}, ", inside);
    expect_config("{", text, fragment);
}

START_TEST(odd_banks_are_refused)
{
    const char *const two = "\"value_source\": [\"residual\", \"bank\"]";
    char text[256];
    expect_bank_error("", "value_source is missing");
    expect_bank_error(two, "rows is missing");
    expect_bank_error("\"value_source\": [\"bank\"], \"rows\": 8", "1 elements for 2 layers");
    expect_bank_error("\"value_source\": [\"bank\", \"x\"], \"rows\": 8", "layer 1");
    expect_bank_error("\"value_source\": [\"bank\", 1], \"rows\": 8", "layer 1");
    expect_bank_error("\"value_source\": \"bank\", \"rows\": 8", "must be a list");
    snprintf(text, sizeof text, "%s, \"rows\": 5", two);
    expect_bank_error(text, "rows is 5, but there are 6 tokens");
    snprintf(text, sizeof text, "%s, \"rows\": 8, \"sink_row\": 8", two);
    expect_bank_error(text, "sink_row is 8");
    snprintf(text, sizeof text, "%s, \"rows\": 8, \"source_layer\": [0, 2]", two);
    expect_bank_error(text, "source_layer of layer 1");
    snprintf(text, sizeof text, "%s, \"rows\": 8, \"source_layer\": [0, -1]", two);
    expect_bank_error(text, "source_layer of layer 1");
    snprintf(text, sizeof text, "%s, \"rows\": 8, \"gate\": \"tanh\"", two);
    expect_bank_error(text, "none or sigmoid");
    snprintf(text, sizeof text, "%s, \"rows\": 8, \"gate\": \"sigmoid\"", two);
    expect_bank_error(text, "gate_channels is missing");
    expect_config("{", "{\"value_bank\": [], ", "value_bank must be an object");
}
END_TEST

/* -- tensors ---------------------------------------------------------------------------------- */

START_TEST(tensors_get_their_gguf_names)
{
    const char *const pairs[][2] = {
        {"model.embed_tokens.weight", "token_embd.weight"},
        {"model.norm.weight", "output_norm.weight"},
        {"model.layers.0.input_layernorm.weight", "blk.0.attn_norm.weight"},
        {"model.layers.1.post_attention_layernorm.weight", "blk.1.ffn_norm.weight"},
        {"model.layers.1.self_attn.q_proj.weight", "blk.1.attn_q.weight"},
        {"model.layers.1.self_attn.k_proj.bias", "blk.1.attn_k.bias"},
        {"model.layers.1.self_attn.v_proj.weight", "blk.1.attn_v.weight"},
        {"model.layers.1.self_attn.o_proj.weight", "blk.1.attn_output.weight"},
        {"model.layers.1.self_attn.v_bank.weight", "blk.1.attn_v_bank.weight"},
        {"model.layers.1.self_attn.v_gate.weight", "blk.1.attn_v_gate.weight"},
        {"model.layers.1.mlp.gate_proj.weight", "blk.1.ffn_gate.weight"},
        {"model.layers.1.mlp.up_proj.weight", "blk.1.ffn_up.weight"},
        {"model.layers.1.mlp.down_proj.weight", "blk.1.ffn_down.weight"},
    };
    enum { N = sizeof pairs / sizeof pairs[0] };
    const char *names[N + 2] = {NULL};
    for (int i = 0; i < N; i++)
        names[i] = pairs[i][0];
    names[N] = "model.layers.0.self_attn.rotary_emb.inv_freq"; /* left out */
    hf_case_tensors("model.safetensors", names, HF_CASE_ROWS);
    struct checkpoint *cp = hf_case_open();
    struct tensor t;
    for (int i = 0; i < N; i++)
        ck_assert_msg(checkpoint_tensor(cp, pairs[i][1], &t), "%s", pairs[i][1]);
    size_t all, banks;
    checkpoint_bytes(cp, &all, &banks);
    ck_assert_uint_eq(all, N * HF_CASE_ROWS * HF_CASE_C * 4);
    ck_assert_uint_eq(banks, HF_CASE_ROWS * HF_CASE_C * 4);
    ck_assert(checkpoint_hparams(cp)->attention_bias);
    checkpoint_close(cp);
}
END_TEST

static void expect_tensor_error(const char *name, const char *fragment)
{
    hf_case_tensors("model.safetensors",
                    (const char *const[]){"model.embed_tokens.weight", name, NULL}, HF_CASE_ROWS);
    hf_case_refuse(fragment);
}

START_TEST(unknown_tensors_are_refused)
{
    expect_tensor_error("model.layers.0.self_attn.o_proj.bias", "is not known");
    expect_tensor_error("model.layers.0.mlp.experts.0.w1.weight", "is not known");
    expect_tensor_error("model.layers.99999.mlp.up_proj.weight", "is not known");
    expect_tensor_error("model.layers..mlp.up_proj.weight", "is not known");
    expect_tensor_error("token_embd.weight", "is not known");
    expect_tensor_error("model.layers.2.mlp.up_proj.weight", "has no place");
    expect_tensor_error("model.layers.01.mlp.up_proj.weight", "has no place");
    expect_tensor_error("model.layers.0.self_attn.q_norm.weight", "has no place");
    expect_tensor_error("model.smear_lambda", "has no place");
}
END_TEST

START_TEST(the_output_is_tied_as_the_configuration_says)
{
    const char *const both[] = {"model.embed_tokens.weight", "lm_head.weight", NULL};
    const char *const tie = "\"tie_word_embeddings\": true,";
    struct tensor t;
    hf_case_tensors("model.safetensors", both, HF_CASE_ROWS);
    struct checkpoint *cp = hf_case_open(); /* a copy of the embedding: left out */
    ck_assert(checkpoint_hparams(cp)->tied_output && !checkpoint_tensor(cp, "output.weight", &t));
    checkpoint_close(cp);
    cp = open_with(tie, "\"tie_word_embeddings\": false,");
    ck_assert(!checkpoint_hparams(cp)->tied_output && checkpoint_tensor(cp, "output.weight", &t));
    checkpoint_close(cp);
    cp = open_with(tie, "");
    ck_assert(!checkpoint_hparams(cp)->tied_output);
    checkpoint_close(cp);
    hf_case_tensors("model.safetensors", both + 1, HF_CASE_ROWS);
    hf_case_refuse("model.embed_tokens.weight is missing");
    hf_case_tensors("model.safetensors", (const char *const[]){both[0], NULL}, HF_CASE_ROWS);
    hf_case_edit("config.json", hf_case_config, tie, "\"tie_word_embeddings\": false,");
    hf_case_refuse("lm_head.weight is missing");
}
END_TEST

START_TEST(fewer_rows_than_tokens_are_refused)
{
    const char *const names[] = {"model.embed_tokens.weight", NULL};
    hf_case_tensors("model.safetensors", names, 6);
    checkpoint_close(hf_case_open());
    hf_case_tensors("model.safetensors", names, 5);
    hf_case_refuse("there are 6 tokens");
    hf_case_tensors("model.safetensors", names, 0);
    hf_case_refuse("0 rows");
}
END_TEST

/* -- shards ----------------------------------------------------------------------------------- */

static void write_shards(void)
{
    unlink(temp_dir_path(&dir, "model.safetensors"));
    hf_case_tensors("one.safetensors",
                    (const char *const[]){"model.embed_tokens.weight", "model.norm.weight", NULL},
                    HF_CASE_ROWS);
    hf_case_tensors("two.safetensors",
                    (const char *const[]){"model.layers.0.mlp.up_proj.weight", NULL}, HF_CASE_ROWS);
}

#define SHARD_INDEX                                                               \
    "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {"                       \
    "\"model.embed_tokens.weight\": \"one.safetensors\", \"model.norm.weight\": " \
    "\"one.safetensors\", \"model.layers.0.mlp.up_proj.weight\": \"two.safetensors\"}}"
#define INDEX_NAME "model.safetensors.index.json"

START_TEST(shards_are_read_by_their_index)
{
    struct tensor t;
    write_shards();
    hf_case_write(INDEX_NAME, SHARD_INDEX);
    struct checkpoint *cp = hf_case_open();
    ck_assert(checkpoint_tensor(cp, "token_embd.weight", &t));
    ck_assert(checkpoint_tensor(cp, "output_norm.weight", &t));
    ck_assert(checkpoint_tensor(cp, "blk.0.ffn_up.weight", &t));
    struct hash128 hash = checkpoint_fingerprint(cp);
    checkpoint_release_pages(cp);
    checkpoint_close(cp);
    cp = hf_case_open();
    ck_assert(hash_equal(hash, checkpoint_fingerprint(cp)));
    checkpoint_close(cp);
}
END_TEST

static void expect_index_error(const char *from, const char *to, const char *fragment)
{
    hf_case_edit(INDEX_NAME, SHARD_INDEX, from, to);
    hf_case_refuse(fragment);
}

START_TEST(an_index_that_disagrees_with_its_files_is_refused)
{
    write_shards();
    expect_index_error("weight_map", "weights", "weight_map is missing");
    expect_index_error("\"two.safetensors\"", "\"three.safetensors\"", "three.safetensors");
    expect_index_error("\"two.safetensors\"", "\"../two.safetensors\"", "plain file name");
    expect_index_error("\"two.safetensors\"", "\"/etc/passwd\"", "plain file name");
    expect_index_error("\"two.safetensors\"", "\".\"", "plain file name");
    expect_index_error("\"two.safetensors\"", "\"\"", "plain file name");
    expect_index_error("\"two.safetensors\"", "2", "plain file name");
    expect_index_error("\"two.safetensors\"", "\"one.safetensors\"", "lists 3 tensors");
    expect_index_error("\"model.norm.weight\": \"one", "\"model.norm.weight\": \"two",
                       "tensor model.norm.weight is here");
    expect_index_error("\"model.norm.weight\"", "\"model.norm.bias\"",
                       "tensor model.norm.weight is here");
    expect_index_error("{\"metadata\"", "{\"metadata\": ", "not valid JSON");
    hf_case_tensors("two.safetensors",
                    (const char *const[]){"model.layers.0.mlp.up_proj.weight",
                                          "model.layers.0.mlp.down_proj.weight", NULL},
                    HF_CASE_ROWS);
    hf_case_write(INDEX_NAME, SHARD_INDEX);
    hf_case_refuse("down_proj.weight is here");
}
END_TEST

START_TEST(without_an_index_there_must_be_one_file)
{
    unlink(temp_dir_path(&dir, "model.safetensors"));
    hf_case_refuse("no *.safetensors file");
    hf_case_write("pytorch_model.bin", "x");
    hf_case_refuse("convert the model to safetensors");
    hf_case_tensors("weights.safetensors", (const char *const[]){"model.embed_tokens.weight", NULL},
                    HF_CASE_ROWS);
    checkpoint_close(hf_case_open());
    hf_case_tensors("more.safetensors", (const char *const[]){"model.norm.weight", NULL},
                    HF_CASE_ROWS);
    hf_case_refuse("several *.safetensors files");
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD_FIXTURE(suite, "configuration", hf_case_set_up, hf_case_tear_down,
                      a_small_directory_is_read, model_types_give_families,
                      missing_and_odd_numbers_are_named, json_that_is_damaged_is_refused,
                      unsupported_features_are_refused, rope_settings_are_read_in_both_spellings,
                      windows_follow_each_familys_rule, nanochats_extra_keys_are_read);
    CHECK_ADD_FIXTURE(suite, "Bank of Values", hf_case_set_up, hf_case_tear_down, a_bank_is_read,
                      odd_banks_are_refused);
    CHECK_ADD_FIXTURE(suite, "tensors", hf_case_set_up, hf_case_tear_down,
                      tensors_get_their_gguf_names, unknown_tensors_are_refused,
                      the_output_is_tied_as_the_configuration_says,
                      fewer_rows_than_tokens_are_refused);
    CHECK_ADD_FIXTURE(
        suite, "shards", hf_case_set_up, hf_case_tear_down, shards_are_read_by_their_index,
        an_index_that_disagrees_with_its_files_is_refused, without_an_index_there_must_be_one_file);
}

CHECK_MAIN("hf_model", add_cases)
