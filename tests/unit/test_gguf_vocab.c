/*
 * The vocabulary of GGUF files: arrays, special ids, kinds.  The cases MDL-06 and MDL-07 of the
 * case list are here.
 */
#include "config.h"

#include "support/gguf_case.h"

static void expect_value_error(const char *key, uint32_t value, const char *fragment)
{
    gguf_build_without(&b, key);
    gguf_build_u32(&b, key, value);
    gguf_build_tiny(&b);
    gguf_case_refuse(fragment);
}

/* MDL-06 */
START_TEST(special_ids_outside_the_vocabulary_are_refused)
{
    const char *const keys[] = {
        "tokenizer.ggml.bos_token_id",     "tokenizer.ggml.eos_token_id",
        "tokenizer.ggml.eot_token_id",     "tokenizer.ggml.eom_token_id",
        "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.padding_token_id"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        expect_value_error(keys[i], TINY_TOKENS, keys[i]);
        expect_value_error(keys[i], 999999, keys[i]);
        expect_value_error(keys[i], UINT32_MAX, keys[i]);
    }
    gguf_build_without(&b, "tokenizer.ggml.bos_token_id");
    gguf_build_without(&b, "tokenizer.ggml.eos_token_id");
    gguf_build_tiny(&b);
    struct checkpoint *cp = gguf_case_open();
    ck_assert_uint_eq(checkpoint_vocab(cp)->bos, TOKEN_NONE);
    ck_assert_uint_eq(checkpoint_vocab(cp)->eos, TOKEN_NONE);
    checkpoint_close(cp);
}
END_TEST

/* MDL-07 */
START_TEST(arrays_that_disagree_are_refused)
{
    const int32_t types[TINY_TOKENS + 1] = {1, 1, 1, 1, 3, 3, 1};
    const float scores[TINY_TOKENS] = {0};
    const int lengths[] = {0, TINY_TOKENS - 1, TINY_TOKENS + 1};
    for (int i = 0; i < 3; i++) {
        gguf_build_without(&b, "tokenizer.ggml.token_type");
        gguf_build_i32s(&b, "tokenizer.ggml.token_type", types, (uint64_t)lengths[i]);
        gguf_build_tiny(&b);
        gguf_case_refuse("tokenizer.ggml.token_type");
    }
    gguf_build_f32s(&b, "tokenizer.ggml.scores", scores, 0);
    gguf_build_tiny(&b);
    gguf_case_refuse("tokenizer.ggml.scores");
    gguf_build_f32s(&b, "tokenizer.ggml.scores", scores, TINY_TOKENS - 1);
    gguf_build_tiny(&b);
    gguf_case_refuse("tokenizer.ggml.scores");
    gguf_build_without(&b, "tokenizer.ggml.tokens");
    gguf_build_strings(&b, "tokenizer.ggml.tokens", NULL, 0);
    gguf_build_tiny(&b);
    gguf_case_refuse("tokenizer.ggml.tokens");
}
END_TEST

START_TEST(token_types_are_checked)
{
    int32_t types[TINY_TOKENS] = {1, 2, 3, 4, 5, 6};
    const int32_t bad[] = {0, 7, -1, INT32_MAX};
    for (int i = 0; i < 4; i++) {
        int32_t mixed[TINY_TOKENS] = {1, 1, 1, bad[i], 3, 3};
        gguf_build_without(&b, "tokenizer.ggml.token_type");
        gguf_build_i32s(&b, "tokenizer.ggml.token_type", mixed, TINY_TOKENS);
        gguf_build_tiny(&b);
        gguf_case_refuse("token 3 has the unknown type");
    }
    gguf_build_without(&b, "tokenizer.ggml.token_type");
    gguf_build_u32s(&b, "tokenizer.ggml.token_type", (const uint32_t *)types, TINY_TOKENS);
    gguf_build_tiny(&b);
    struct checkpoint *cp = gguf_case_open();
    for (uint8_t i = 0; i < TINY_TOKENS; i++)
        ck_assert_uint_eq(checkpoint_vocab(cp)->types[i], i + 1);
    checkpoint_close(cp);
}
END_TEST

START_TEST(more_tokens_than_embedding_rows_are_refused)
{
    gguf_build_without(&b, "token_embd.weight");
    gguf_build_tiny(&b);
    gguf_build_tensor(&b, "token_embd.weight", TINY_C, TINY_TOKENS - 1, 0.5f);
    gguf_case_refuse("there are 6 tokens");
    gguf_build_without(&b, "token_embd.weight");
    gguf_build_tiny(&b);
    gguf_build_tensor(&b, "token_embd.weight", TINY_C, TINY_TOKENS, 0.5f);
    checkpoint_close(gguf_case_open());
}
END_TEST

START_TEST(kinds_of_vocabulary_have_their_defaults)
{
    const float scores[TINY_TOKENS] = {0, -1, -2, -3, 0, 0};
    const struct {
        const char *model, *pre;
        enum tokenizer_kind kind;
        enum tokenizer_split split;
        bool add_bos, prefix, nfc, ignore_merges;
    } rows[] = {
        {"gpt2", "default", TOKENIZER_BPE, SPLIT_GPT2, false, false, false, false},
        {"gpt2", "llama3", TOKENIZER_BPE, SPLIT_LLAMA3, true, false, false, true},
        {"gpt2", "llama-bpe", TOKENIZER_BPE, SPLIT_LLAMA3, true, false, false, true},
        {"gpt2", "qwen2", TOKENIZER_BPE, SPLIT_QWEN2, false, false, true, false},
        {"gpt2", "smollm", TOKENIZER_BPE, SPLIT_SMOLLM, false, false, false, false},
        {"gpt2", "nanochat", TOKENIZER_BPE, SPLIT_NANOCHAT, false, false, false, true},
        {"llama", "default", TOKENIZER_SPM, SPLIT_NONE, true, true, false, false},
        {"t5", "default", TOKENIZER_UNIGRAM, SPLIT_NONE, false, true, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gguf_build_without(&b, "tokenizer.ggml.model");
        gguf_build_without(&b, "tokenizer.ggml.pre");
        gguf_build_string(&b, "tokenizer.ggml.model", rows[i].model);
        gguf_build_string(&b, "tokenizer.ggml.pre", rows[i].pre);
        if (rows[i].kind != TOKENIZER_BPE)
            gguf_build_f32s(&b, "tokenizer.ggml.scores", scores, TINY_TOKENS);
        gguf_build_tiny(&b);
        struct checkpoint *cp = gguf_case_open();
        const struct vocab_source *vocab = checkpoint_vocab(cp);
        ck_assert_int_eq(vocab->kind, rows[i].kind);
        ck_assert_int_eq(vocab->split, rows[i].split);
        ck_assert_int_eq(vocab->add_bos, rows[i].add_bos);
        ck_assert_int_eq(vocab->add_space_prefix, rows[i].prefix);
        ck_assert_int_eq(vocab->nfc, rows[i].nfc);
        ck_assert_int_eq(vocab->ignore_merges, rows[i].ignore_merges);
        ck_assert(!vocab->add_eos);
        ck_assert_uint_eq(vocab->n_merges, rows[i].kind == TOKENIZER_BPE);
        checkpoint_close(cp);
    }
    gguf_build_without(&b, "tokenizer.ggml.model");
    gguf_build_string(&b, "tokenizer.ggml.model", "llama");
    gguf_build_tiny(&b);
    gguf_case_refuse("tokenizer.ggml.scores is missing");
}
END_TEST

START_TEST(flags_and_template_are_read)
{
    gguf_build_bool(&b, "tokenizer.ggml.add_bos_token", 1);
    gguf_build_bool(&b, "tokenizer.ggml.add_eos_token", 1);
    gguf_build_bool(&b, "tokenizer.ggml.add_space_prefix", 1);
    gguf_build_u32(&b, "tokenizer.ggml.eot_token_id", 3);
    gguf_build_u32(&b, "tokenizer.ggml.eom_token_id", 2);
    gguf_build_string(&b, "tokenizer.chat_template", "{{ messages }}");
    gguf_build_tiny(&b);
    struct checkpoint *cp = gguf_case_open();
    const struct vocab_source *vocab = checkpoint_vocab(cp);
    ck_assert(vocab->add_bos && vocab->add_eos && vocab->add_space_prefix);
    ck_assert_uint_eq(vocab->eot, 3);
    ck_assert_uint_eq(vocab->n_extra_eog, 1);
    ck_assert_uint_eq(vocab->extra_eog[0], 2);
    struct text_view text = checkpoint_chat_template(cp);
    ck_assert_uint_eq(text.len, 14);
    ck_assert_mem_eq(text.bytes, "{{ messages }}", 14);
    checkpoint_close(cp);
    gguf_build_without(&b, "tokenizer.ggml.bos_token_id");
    gguf_build_bool(&b, "tokenizer.ggml.add_bos_token", 1);
    gguf_build_tiny(&b);
    cp = gguf_case_open();
    ck_assert(!checkpoint_vocab(cp)->add_bos); /* there is none to add */
    checkpoint_close(cp);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD_FIXTURE(suite, "vocabulary", gguf_case_set_up, gguf_case_tear_down,
                      special_ids_outside_the_vocabulary_are_refused,
                      arrays_that_disagree_are_refused, token_types_are_checked,
                      more_tokens_than_embedding_rows_are_refused,
                      kinds_of_vocabulary_have_their_defaults, flags_and_template_are_read);
}

CHECK_MAIN("gguf_vocab", add_cases)
