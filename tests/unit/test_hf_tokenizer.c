/*
 * tokenizer.json and the settings around it: which pipelines are recognised, how arrays are built,
 * and that the rest is refused.
 */
#include "config.h"

#include "support/hf_case.h"

static struct checkpoint *open_with(const char *from, const char *to)
{
    hf_case_edit("tokenizer.json", hf_case_tokenizer, from, to);
    return hf_case_open();
}

static void expect(const char *from, const char *to, const char *fragment)
{
    hf_case_edit("tokenizer.json", hf_case_tokenizer, from, to);
    hf_case_refuse(fragment);
}

static void expect_text(struct text_view view, const char *text)
{
    ck_assert_uint_eq(view.len, strlen(text));
    ck_assert_mem_eq(view.bytes, text, view.len);
}

static const char pre_step[] = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false}";

/* -- tokens and merges ------------------------------------------------------------------------ */

START_TEST(tokens_types_and_merges_are_read)
{
    struct checkpoint *cp = hf_case_open();
    const struct vocab_source *vocab = checkpoint_vocab(cp);
    const char *const texts[] = {"a", "b", "ab", "c", "<s>", "</s>"};
    ck_assert_int_eq(vocab->kind, TOKENIZER_BPE);
    ck_assert_int_eq(vocab->split, SPLIT_GPT2);
    ck_assert_uint_eq(vocab->n_tokens, 6);
    for (int i = 0; i < 6; i++) {
        expect_text(vocab->tokens[i], texts[i]);
        ck_assert_uint_eq(vocab->types[i], i < 4 ? TOKEN_NORMAL : TOKEN_CONTROL);
    }
    ck_assert_ptr_null(vocab->scores);
    ck_assert_uint_eq(vocab->n_merges, 1);
    expect_text(vocab->merges[0], "a b");
    ck_assert(!vocab->nfc && !vocab->ignore_merges && !vocab->add_bos && !vocab->add_eos);
    ck_assert_uint_eq(vocab->unknown, TOKEN_NONE);
    checkpoint_close(cp);
}
END_TEST

START_TEST(merges_may_be_pairs)
{
    struct checkpoint *cp = open_with("[\"a b\"]", "[[\"a\", \"b\"], \"ab c\"]");
    ck_assert_uint_eq(checkpoint_vocab(cp)->n_merges, 2);
    expect_text(checkpoint_vocab(cp)->merges[0], "a b");
    expect_text(checkpoint_vocab(cp)->merges[1], "ab c");
    checkpoint_close(cp);
    const char *const bad[] = {"[[\"a\"]]",    "[[\"a\", \"b\", \"c\"]]",
                               "[[\"a\", 1]]", "[[\"a \", \"b\"]]",
                               "[5]",          "[null]",
                               "[{}]",         "[[]]"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect("[\"a b\"]", bad[i], "model.merges[0]");
    expect("[\"a b\"]", "\"a b\"", "merges must be a list");
    expect("\"merges\"", "\"x\"", "merges is missing");
}
END_TEST

START_TEST(added_tokens_may_extend_the_vocabulary_with_holes)
{
    struct checkpoint *cp =
        open_with("{\"id\": 4,", "{\"id\": 7, \"content\": \"<tool>\"}, {\"id\": 4,");
    const struct vocab_source *vocab = checkpoint_vocab(cp);
    ck_assert_uint_eq(vocab->n_tokens, 8);
    ck_assert_uint_eq(vocab->types[6], TOKEN_UNUSED);
    ck_assert_uint_eq(vocab->tokens[6].len, 0);
    ck_assert_ptr_nonnull(vocab->tokens[6].bytes);
    ck_assert_uint_eq(vocab->types[7], TOKEN_USER_DEFINED);
    expect_text(vocab->tokens[7], "<tool>");
    checkpoint_close(cp);
    cp =
        open_with("{\"id\": 4,", "{\"id\": 3, \"content\": \"c\", \"special\": true}, {\"id\": 4,");
    ck_assert_uint_eq(checkpoint_vocab(cp)->types[3], TOKEN_CONTROL);
    checkpoint_close(cp);
}
END_TEST

START_TEST(odd_ids_and_texts_are_refused)
{
    expect("\"a\": 0", "\"a\": 1", "two tokens have the id 1");
    expect("\"a\": 0", "\"a\": -1", "the id of token \"a\"");
    expect("\"a\": 0", "\"a\": \"0\"", "the id of token \"a\"");
    expect("\"a\": 0", "\"a\": 0.0", "the id of token \"a\"");
    expect("\"a\": 0", "\"a\": 4194304", "the id of token \"a\"");
    expect("\"a\": 0", "\"a\": 4294967296", "the id of token \"a\"");
    expect("\"a\": 0", "\"a\": 4194303", "the greatest id is 4194303 for 6 tokens only");
    expect("\"a\": 0", "\"b\": 0", "not valid JSON");
    expect("\"id\": 4", "\"id\": -4", "the id of token \"<s>\"");
    expect("\"id\": 4", "\"id\": 99999999", "the id of token \"<s>\"");
    expect("\"id\": 4, ", "", "the id of token \"<s>\"");
    expect("\"id\": 4", "\"id\": 3", "has another text");
    expect("\"content\": \"<s>\"", "\"content\": 5", "content must be a string");
    expect("\"content\": \"<s>\"", "\"x\": 5", "content is missing");
    expect("\"special\": true", "\"special\": 1", "special must be true or false");
    expect("\"vocab\": {", "\"vocab\": 5, \"x\": {", "vocab must be an object");
    expect("\"model\"", "\"x\"", "model is missing");
    expect("\"type\": \"BPE\"", "\"type\": \"WordPiece\"", "WordPiece is not supported");
    hf_case_write("tokenizer.json",
                  "{\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false},"
                  " \"model\": {\"vocab\": {}, \"merges\": []}}");
    hf_case_refuse("model.vocab is empty");
    unlink(temp_dir_path(&dir, "tokenizer.json"));
    hf_case_refuse("tokenizer.json is missing");
}
END_TEST

START_TEST(settings_of_the_model_that_change_tokens_are_refused)
{
    expect("\"unk_token\": null", "\"dropout\": 0.1", "dropout");
    expect("\"unk_token\": null", "\"continuing_subword_prefix\": \"##\"",
           "continuing_subword_prefix");
    expect("\"unk_token\": null", "\"end_of_word_suffix\": \"</w>\"", "end_of_word_suffix");
    expect("\"unk_token\": null", "\"unk_token\": \"<unk>\"", "unk_token is not in the vocabulary");
    struct checkpoint *cp =
        open_with("\"unk_token\": null", "\"unk_token\": \"<s>\", \"end_of_word_suffix\": \"\", "
                                         "\"dropout\": null, \"ignore_merges\": true");
    ck_assert(checkpoint_vocab(cp)->ignore_merges);
    ck_assert_uint_eq(checkpoint_vocab(cp)->unknown, 4);
    ck_assert_uint_eq(checkpoint_vocab(cp)->types[4], TOKEN_CONTROL);
    checkpoint_close(cp);
}
END_TEST

/* -- pipelines -------------------------------------------------------------------------------- */

#define BYTE_LEVEL(regex) \
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": " regex "}"
#define SEQUENCE(first, second) \
    "{\"type\": \"Sequence\", \"pretokenizers\": [" first ", " second "]}"
#define SPLIT(regex)                                                   \
    SEQUENCE("{\"type\": \"Split\", \"pattern\": {\"Regex\": \"" regex \
             "\"}, \"behavior\": \"Isolated\", \"invert\": false}",    \
             BYTE_LEVEL("false"))
#define TAIL   " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define CL100K "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}"

START_TEST(the_known_split_patterns_are_recognised)
{
    const struct {
        const char *step;
        enum tokenizer_split split;
    } rows[] = {
        {BYTE_LEVEL("true"), SPLIT_GPT2},
        {BYTE_LEVEL("false"), SPLIT_NONE},
        {SEQUENCE("{\"type\": \"Digits\", \"individual_digits\": true}", BYTE_LEVEL("true")),
         SPLIT_SMOLLM},
        {SPLIT(CL100K "{1,3}|" TAIL), SPLIT_LLAMA3},
        {SPLIT(CL100K "|" TAIL), SPLIT_QWEN2},
        {SPLIT(
             "'(?i:[sdmt]|ll|ve|re)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?+\\\\p{L}+|\\\\p{N}{1,2}| "
             "?[^\\\\s\\\\p{L}\\\\p{N}]++[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]|\\\\s+(?!\\\\S)|\\\\s+"),
         SPLIT_NANOCHAT},
        {SPLIT("'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| ?\\\\p{N}+| ?[^\\\\s\\\\p{L}\\\\p{N}]+|"
               "\\\\s+(?!\\\\S)|\\\\s+"),
         SPLIT_GPT2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct checkpoint *cp = open_with(pre_step, rows[i].step);
        ck_assert_int_eq(checkpoint_vocab(cp)->kind, TOKENIZER_BPE);
        ck_assert_int_eq(checkpoint_vocab(cp)->split, rows[i].split);
        checkpoint_close(cp);
    }
}
END_TEST

START_TEST(unknown_pipelines_are_refused_by_name)
{
    expect(pre_step, SPLIT("\\\\w+"), "w+");
    expect(pre_step, SPLIT(CL100K "{1,4}|" TAIL), "pre_tokenizer step Split");
    expect(pre_step,
           SEQUENCE("{\"type\": \"Split\", \"pattern\": {\"String\": \" \"}, \"behavior\":"
                    " \"Isolated\"}",
                    BYTE_LEVEL("false")),
           "pre_tokenizer step Split");
    expect(pre_step, SEQUENCE("{\"type\": \"Whitespace\"}", BYTE_LEVEL("true")), "Whitespace");
    expect(pre_step, SEQUENCE("{\"type\": \"Digits\"}", BYTE_LEVEL("true")), "Digits");
    expect(pre_step, "{\"type\": \"Whitespace\"}", "Whitespace");
    expect(pre_step, "{\"type\": \"ByteLevel\"}", "add_prefix_space");
    expect(pre_step, "{\"type\": 5}", "type must be a string");
    expect(pre_step, "{}", "type is missing");
    expect(pre_step, "5", "pre_tokenizer must be an object");
    expect(pre_step, "{\"type\": \"Sequence\", \"pretokenizers\": [5]}", "not an object");
    expect(pre_step, "null", "this kind of tokenizer is not supported");
    expect("\"normalizer\": null", "\"normalizer\": {\"type\": \"Lowercase\"}", "Lowercase");
    expect("\"normalizer\": null", "\"normalizer\": {\"type\": \"NFKC\"}", "NFKC");
    expect("\"normalizer\": null",
           "\"normalizer\": {\"type\": \"Prepend\", \"prepend\": \"\\u2581\"}", "without Replace");
    expect("\"normalizer\": null",
           "\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"Regex\": \" +\"},"
           " \"content\": \" \"}",
           "Replace");
}
END_TEST

START_TEST(nfc_is_recognised)
{
    const char *const forms[] = {
        "\"normalizer\": {\"type\": \"NFC\"}",
        "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}]}"};
    for (int i = 0; i < 2; i++) {
        struct checkpoint *cp = open_with("\"normalizer\": null", forms[i]);
        ck_assert(checkpoint_vocab(cp)->nfc);
        checkpoint_close(cp);
    }
}
END_TEST

/* -- SentencePiece and unigram ---------------------------------------------------------------- */

#define SPM_HEAD "{\"added_tokens\": [{\"id\": 0, \"content\": \"<unk>\", \"special\": true}], "
#define SPM_MODEL                                                                                  \
    "\"model\": {\"type\": \"BPE\", \"unk_token\": \"<unk>\", \"byte_fallback\": true, \"vocab\":" \
    " {\"<unk>\": 0, \"<0x0A>\": 1, \"\\u2581\": 2, \"a\": 3, \"\\u2581a\": 4},"                   \
    " \"merges\": [\"\\u2581 a\"]}}"
#define SPM_STEPS                                                                           \
    "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Prepend\","    \
    " \"prepend\": \"\\u2581\"}, {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}," \
    " \"content\": \"\\u2581\"}]}, \"pre_tokenizer\": null, "

static void use_ids(uint32_t bos, uint32_t eos)
{
    char ids[64];
    snprintf(ids, sizeof ids, "\"bos_token_id\": %u,\n \"eos_token_id\": %u", bos, eos);
    hf_case_edit("config.json", hf_case_config, "\"bos_token_id\": 4,\n \"eos_token_id\": 5", ids);
}

START_TEST(bpe_with_byte_fallback_is_sentencepiece)
{
    use_ids(3, 4);
    hf_case_write("tokenizer.json", SPM_HEAD SPM_STEPS SPM_MODEL);
    struct checkpoint *cp = hf_case_open();
    const struct vocab_source *vocab = checkpoint_vocab(cp);
    ck_assert_int_eq(vocab->kind, TOKENIZER_SPM);
    ck_assert_int_eq(vocab->split, SPLIT_NONE);
    ck_assert_uint_eq(vocab->types[0], TOKEN_UNKNOWN);
    ck_assert_uint_eq(vocab->types[1], TOKEN_BYTE);
    ck_assert_uint_eq(vocab->types[2], TOKEN_NORMAL);
    ck_assert_uint_eq(vocab->unknown, 0);
    ck_assert_uint_eq(vocab->n_merges, 1);
    ck_assert(vocab->add_space_prefix && !vocab->prefix_at_start_only);
    ck_assert(!vocab->prefix_not_before_space);
    checkpoint_close(cp);
}
END_TEST

static void expect_metaspace(const char *more, bool prefix, bool start_only)
{
    char text[1024];
    snprintf(text, sizeof text,
             SPM_HEAD
             "\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"\\u2581\"%s},"
             " %s",
             more, SPM_MODEL);
    hf_case_write("tokenizer.json", text);
    struct checkpoint *cp = hf_case_open();
    ck_assert_int_eq(checkpoint_vocab(cp)->kind, TOKENIZER_SPM);
    ck_assert_int_eq(checkpoint_vocab(cp)->add_space_prefix, prefix);
    ck_assert_int_eq(checkpoint_vocab(cp)->prefix_not_before_space, prefix);
    ck_assert_int_eq(checkpoint_vocab(cp)->prefix_at_start_only, start_only);
    checkpoint_close(cp);
}

START_TEST(metaspace_is_read_with_its_schemes)
{
    use_ids(3, 4);
    expect_metaspace(", \"prepend_scheme\": \"always\"", true, false);
    expect_metaspace(", \"prepend_scheme\": \"first\", \"split\": false", true, true);
    expect_metaspace(", \"prepend_scheme\": \"never\"", false, false);
    expect_metaspace(", \"add_prefix_space\": true", true, false);
    expect_metaspace(", \"add_prefix_space\": false", false, false);
    expect_metaspace("", true, false);
    hf_case_write(
        "tokenizer.json", SPM_HEAD
        "\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"_\"}, " SPM_MODEL);
    hf_case_refuse("Metaspace");
    hf_case_write("tokenizer.json",
                  SPM_HEAD "\"pre_tokenizer\": {\"type\": \"Metaspace\", \"prepend_scheme\":"
                           " \"last\"}, " SPM_MODEL);
    hf_case_refuse("Metaspace");
    hf_case_write("tokenizer.json",
                  SPM_HEAD "\"normalizer\": {\"type\": \"NFC\"},"
                           " \"pre_tokenizer\": {\"type\": \"Metaspace\"}, " SPM_MODEL);
    hf_case_refuse("NFC");
}
END_TEST

START_TEST(unigram_is_read)
{
    use_ids(1, 2);
    const char *text = "{\"pre_tokenizer\": {\"type\": \"Metaspace\"}, \"model\": {\"type\":"
                       " \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"<unk>\", 0], [\"a\", -1.5],"
                       " [\"\\u2581a\", -2]]}}";
    hf_case_write("tokenizer.json", text);
    struct checkpoint *cp = hf_case_open();
    const struct vocab_source *vocab = checkpoint_vocab(cp);
    ck_assert_int_eq(vocab->kind, TOKENIZER_UNIGRAM);
    ck_assert_uint_eq(vocab->n_tokens, 3);
    ck_assert_uint_eq(vocab->types[0], TOKEN_UNKNOWN);
    ck_assert_float_eq(vocab->scores[1], -1.5f);
    ck_assert_float_eq(vocab->scores[2], -2.0f);
    ck_assert_uint_eq(vocab->n_merges, 0);
    checkpoint_close(cp);
    hf_case_edit("tokenizer.json", text, "\"unk_id\": 0", "\"unk_id\": 3");
    hf_case_refuse("unk_id");
    hf_case_edit("tokenizer.json", text, "[\"a\", -1.5]", "[\"a\"]");
    hf_case_refuse("model.vocab[1]");
    hf_case_edit("tokenizer.json", text, "[\"a\", -1.5]", "[1, -1.5]");
    hf_case_refuse("model.vocab[1]");
    hf_case_edit("tokenizer.json", text, "[\"a\", -1.5]", "\"a\"");
    hf_case_refuse("model.vocab[1]");
}
END_TEST

/* -- special tokens --------------------------------------------------------------------------- */

#define TEMPLATE(single)                                                                  \
    "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [" single "],"    \
    " \"special_tokens\": {\"<s>\": {\"id\": \"<s>\", \"ids\": [4]}, \"</s>\": {\"ids\":" \
    " [5]}, \"x\": {\"ids\": [6]}}}"
#define SPECIAL(name) "{\"SpecialToken\": {\"id\": \"" name "\", \"type_id\": 0}}"
#define SEQUENCE_A    "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}"

START_TEST(the_post_processor_adds_first_and_last_tokens)
{
    const char *const none = "\"post_processor\": null";
    struct checkpoint *cp = open_with(none, TEMPLATE(SPECIAL("<s>") ", " SEQUENCE_A));
    ck_assert(checkpoint_vocab(cp)->add_bos && !checkpoint_vocab(cp)->add_eos);
    ck_assert_uint_eq(checkpoint_vocab(cp)->bos, 4);
    checkpoint_close(cp);
    cp = open_with(none, TEMPLATE(SEQUENCE_A ", " SPECIAL("<s>")));
    ck_assert(!checkpoint_vocab(cp)->add_bos && checkpoint_vocab(cp)->add_eos);
    ck_assert_uint_eq(checkpoint_vocab(cp)->eos, 4);
    ck_assert_uint_eq(checkpoint_vocab(cp)->extra_eog[0], 5); /* config.json's */
    checkpoint_close(cp);
    cp = open_with(none, "\"post_processor\": {\"type\": \"Sequence\", \"processors\": ["
                         "{\"type\": \"ByteLevel\"}, {\"type\": \"TemplateProcessing\","
                         " \"single\": [{\"SpecialToken\": {\"id\": \"<s>\"}}, {\"Sequence\": {}}],"
                         " \"special_tokens\": {\"<s>\": {\"ids\": [4]}}}]}");
    ck_assert(checkpoint_vocab(cp)->add_bos);
    checkpoint_close(cp);
}
END_TEST

START_TEST(odd_post_processors_are_refused)
{
    const char *const none = "\"post_processor\": null";
    expect(none, TEMPLATE(SPECIAL("<s>") ", " SPECIAL("</s>") ", " SEQUENCE_A), "more than one");
    expect(none, TEMPLATE(SPECIAL("y") ", " SEQUENCE_A), "special token \"y\"");
    expect(none, TEMPLATE(SPECIAL("x") ", " SEQUENCE_A), "special token \"x\"");
}
END_TEST

START_TEST(add_bos_token_counts_more_than_the_post_processor)
{
    hf_case_write("tokenizer_config.json", "{\"add_bos_token\": false, \"bos_token\": \"<s>\"}");
    struct checkpoint *cp =
        open_with("\"post_processor\": null", TEMPLATE(SPECIAL("<s>") ", " SEQUENCE_A));
    ck_assert(!checkpoint_vocab(cp)->add_bos);
    checkpoint_close(cp);
    hf_case_write("tokenizer_config.json", "{\"add_bos_token\": true}");
    hf_case_write("tokenizer.json", hf_case_tokenizer);
    cp = hf_case_open();
    ck_assert(checkpoint_vocab(cp)->add_bos);
    ck_assert_uint_eq(checkpoint_vocab(cp)->bos, 4);
    checkpoint_close(cp);
}
END_TEST

START_TEST(special_tokens_are_found_by_their_text)
{
    hf_case_write("tokenizer_config.json",
                  "{\"bos_token\": null, \"eos_token\": {\"content\": \"c\"}}");
    hf_case_write("generation_config.json", "{\"eos_token_id\": [5, 3, 2]}");
    struct checkpoint *cp = hf_case_open();
    const struct vocab_source *vocab = checkpoint_vocab(cp);
    ck_assert_uint_eq(vocab->bos, 4);
    ck_assert_uint_eq(vocab->eos, 3);
    ck_assert_uint_eq(vocab->n_extra_eog, 2);
    ck_assert_uint_eq(vocab->extra_eog[0], 5);
    ck_assert_uint_eq(vocab->extra_eog[1], 2);
    checkpoint_close(cp);
    hf_case_write("tokenizer_config.json", "{\"eos_token\": \"<none>\"}");
    hf_case_refuse("eos_token \"<none>\" is not in the vocabulary");
    hf_case_write("tokenizer_config.json", "{\"eos_token\": 5}");
    hf_case_refuse("eos_token must be a string");
    hf_case_write("tokenizer_config.json", "{\"eos_token\": {}}");
    hf_case_refuse("eos_token must be a string");
}
END_TEST

START_TEST(end_ids_outside_the_vocabulary_are_refused)
{
    const char *const bad[] = {"6",         "-1",    "4294967296", "[5, 6]",
                               "[5, null]", "\"5\"", "5.0",        "[[5]]"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"eos_token_id\": %s}", bad[i]);
        hf_case_write("generation_config.json", text);
        hf_case_refuse("generation_config.json: eos_token_id");
    }
    hf_case_write("generation_config.json", "{\"eos_token_id\": null}");
    checkpoint_close(hf_case_open());
    hf_case_edit("config.json", hf_case_config, "\"bos_token_id\": 4", "\"bos_token_id\": 6");
    hf_case_refuse("bos_token_id is 6");
}
END_TEST

/* -- template and defaults -------------------------------------------------------------------- */

START_TEST(the_chat_template_is_found_in_all_its_places)
{
    struct checkpoint *cp = hf_case_open();
    ck_assert_ptr_null(checkpoint_chat_template(cp).bytes);
    checkpoint_close(cp);
    hf_case_write("tokenizer_config.json", "{\"chat_template\": \"one\\n\"}");
    cp = hf_case_open();
    expect_text(checkpoint_chat_template(cp), "one\n");
    checkpoint_close(cp);
    hf_case_write("tokenizer_config.json",
                  "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"x\"},"
                  " {\"name\": \"default\", \"template\": \"two\"}]}");
    cp = hf_case_open();
    expect_text(checkpoint_chat_template(cp), "two");
    checkpoint_close(cp);
    hf_case_write("chat_template.jinja", "three");
    cp = hf_case_open();
    expect_text(checkpoint_chat_template(cp), "three");
    checkpoint_close(cp);
    unlink(temp_dir_path(&dir, "chat_template.jinja"));
    hf_case_write("tokenizer_config.json",
                  "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"x\"}]}");
    hf_case_refuse("without one that is named \"default\"");
    hf_case_write("tokenizer_config.json", "{\"chat_template\": 5}");
    hf_case_refuse("chat_template must be a string");
}
END_TEST

START_TEST(sampling_defaults_are_read_and_checked)
{
    hf_case_write("generation_config.json",
                  "{\"temperature\": 0.6, \"top_p\": 0.9, \"top_k\": 20, \"min_p\": 0.05,"
                  " \"repetition_penalty\": 1.1, \"do_sample\": true}");
    struct checkpoint *cp = hf_case_open();
    const struct generation_defaults *d = checkpoint_defaults(cp);
    ck_assert_float_eq(d->temperature, 0.6f);
    ck_assert_float_eq(d->top_p, 0.9f);
    ck_assert_float_eq(d->min_p, 0.05f);
    ck_assert_float_eq(d->repetition_penalty, 1.1f);
    ck_assert_int_eq(d->top_k, 20);
    checkpoint_close(cp);
    hf_case_write("generation_config.json", "{}");
    cp = hf_case_open();
    d = checkpoint_defaults(cp);
    ck_assert(d->temperature < 0.0f && d->top_p < 0.0f && d->min_p < 0.0f && d->top_k < 0 &&
              d->repetition_penalty < 0.0f);
    checkpoint_close(cp);
    const char *const bad[] = {"\"temperature\": -0.1",  "\"temperature\": 2.5",
                               "\"temperature\": \"1\"", "\"top_p\": 1.5",
                               "\"min_p\": -1",          "\"repetition_penalty\": 0",
                               "\"top_k\": -1",          "\"top_k\": 1.5"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "{%s}", bad[i]);
        hf_case_write("generation_config.json", text);
        hf_case_refuse("generation_config.json: ");
    }
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD_FIXTURE(
        suite, "tokens", hf_case_set_up, hf_case_tear_down, tokens_types_and_merges_are_read,
        merges_may_be_pairs, added_tokens_may_extend_the_vocabulary_with_holes,
        odd_ids_and_texts_are_refused, settings_of_the_model_that_change_tokens_are_refused);
    CHECK_ADD_FIXTURE(suite, "pipelines", hf_case_set_up, hf_case_tear_down,
                      the_known_split_patterns_are_recognised,
                      unknown_pipelines_are_refused_by_name, nfc_is_recognised);
    CHECK_ADD_FIXTURE(suite, "SentencePiece", hf_case_set_up, hf_case_tear_down,
                      bpe_with_byte_fallback_is_sentencepiece, metaspace_is_read_with_its_schemes,
                      unigram_is_read);
    CHECK_ADD_FIXTURE(
        suite, "special tokens", hf_case_set_up, hf_case_tear_down,
        the_post_processor_adds_first_and_last_tokens, odd_post_processors_are_refused,
        add_bos_token_counts_more_than_the_post_processor, special_tokens_are_found_by_their_text,
        end_ids_outside_the_vocabulary_are_refused);
    CHECK_ADD_FIXTURE(suite, "settings", hf_case_set_up, hf_case_tear_down,
                      the_chat_template_is_found_in_all_its_places,
                      sampling_defaults_are_read_and_checked);
}

CHECK_MAIN("hf_tokenizer", add_cases)
