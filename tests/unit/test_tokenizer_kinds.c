/*
 * Byte-level BPE, SentencePiece BPE and unigram, one behaviour at a time, and long hostile texts
 * for each.  tests/oracle/tokenizer_oracle.py compares whole vocabularies with the published
 * libraries.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "support/check_main.h"
#include "support/vocab_builder.h"

#define MARK "\xE2\x96\x81"

/* -- byte-level BPE ---------------------------------------------------------------------------- */

START_TEST(merges_go_by_rank_and_then_from_the_left)
{
    struct vocab_builder b;
    vocab_bytes(&b, SPLIT_NONE);
    uint32_t bc = vocab_add_merge(&b, "b c", "bc");
    uint32_t ab = vocab_add_merge(&b, "a b", "ab");
    uint32_t aa = vocab_add_merge(&b, "a a", "aa");
    uint32_t aaaa = vocab_add_merge(&b, "aa aa", "aaaa");
    ck_assert(bc == 256 && ab == 257 && aa == 258 && aaaa == 259);
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "abc", "97 256");
    check_ids(tok, "ab", "257");
    check_ids(tok, "aaa", "258 97");
    check_ids(tok, "aaaaaaa", "259 258 97");
    check_ids(tok, "aab", "97 257");
    check_ids(tok, "", "");
    tokenizer_free(tok);
}
END_TEST

START_TEST(a_pair_that_another_merge_took_apart_is_forgotten)
{
    struct vocab_builder b;
    vocab_bytes(&b, SPLIT_NONE);
    vocab_add_merge(&b, "a b", "ab");   /* 256: takes b from bc */
    vocab_add_merge(&b, "b c", "bc");   /* 257 */
    vocab_add_merge(&b, "d e", "de");   /* 258 */
    vocab_add_merge(&b, "c de", "cde"); /* 259 */
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "abcde", "256 259");
    check_ids(tok, "bcde", "257 258");
    tokenizer_free(tok);
}
END_TEST

START_TEST(two_ways_to_one_token_keep_their_ranks)
{
    struct vocab_builder b;
    vocab_bytes(&b, SPLIT_NONE);
    vocab_add_merge(&b, "b c", "bc");   /* 256 */
    vocab_add_merge(&b, "a bc", "abc"); /* 257 */
    vocab_add_merge(&b, "c d", "cd");   /* 258 */
    vocab_add_merge(&b, "a b", "ab");   /* 259 */
    vocab_add_merge(&b, "ab c", "abc"); /* 257 again */
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "abcd", "257 100");
    check_ids(tok, "abd", "259 100");
    check_ids(tok, "xcd", "120 258");
    tokenizer_free(tok);
}
END_TEST

START_TEST(no_merge_crosses_a_pre_token)
{
    struct vocab_builder b;
    vocab_bytes(&b, SPLIT_GPT2);
    vocab_add_merge(&b, "a \xC4\xA0", "a\xC4\xA0");
    vocab_add_merge(&b, "1 2", "12");
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "a b12", "97 32 98 257");
    tokenizer_free(tok);
    b.source.split = SPLIT_SMOLLM;
    tok = vocab_tokenizer(&b);
    check_ids(tok, "a b12", "97 32 98 49 50");
    tokenizer_free(tok);
    b.source.split = SPLIT_NONE;
    tok = vocab_tokenizer(&b);
    check_ids(tok, "a b12", "256 98 257");
    tokenizer_free(tok);
}
END_TEST

START_TEST(a_whole_token_is_taken_without_merging_where_the_file_says_so)
{
    struct vocab_builder b;
    vocab_bytes(&b, SPLIT_GPT2);
    vocab_add(&b, "abc", TOKEN_NORMAL);       /* 256: no merge makes it */
    vocab_add(&b, "\xC4\xA0z", TOKEN_NORMAL); /* 257 " z" */
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "abc z", "97 98 99 32 122");
    tokenizer_free(tok);
    b.source.ignore_merges = true;
    tok = vocab_tokenizer(&b);
    check_ids(tok, "abc z abcd", "256 257 32 97 98 99 100");
    check_ids(tok, "\xE6\xAD\xAA", "230 173 170");
    tokenizer_free(tok);
}
END_TEST

START_TEST(a_byte_without_a_letter_is_left_out)
{
    struct vocab_builder b;
    vocab_bytes(&b, SPLIT_NONE);
    vocab_add_merge(&b, "a c", "ac");
    b.types['b'] = TOKEN_CONTROL;
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "abc", "256"); /* its neighbours are then neighbours, as in the reference */
    check_ids(tok, "b", "");
    tokenizer_free(tok);
}
END_TEST

/* -- NFC --------------------------------------------------------------------------------------- */

static void check_normal(struct vocab_builder *b, const char *text, const char *normal)
{
    struct tokenizer *tok = vocab_tokenizer(b);
    struct token_list list = {0};
    ck_assert_int_eq(
        tokenizer_encode(tok, text, strlen(text), NULL, 0, false, SIZE_MAX, &list, NULL),
        STATUS_OK);
    size_t n_equal = 0; /* bytes are ids */
    while (n_equal < list.len && list.ids[n_equal] == (unsigned char)normal[n_equal])
        n_equal++;
    ck_assert_uint_eq(list.len, strlen(normal));
    ck_assert_uint_eq(n_equal, list.len);
    token_list_done(&list);
    tokenizer_free(tok);
}

START_TEST(text_is_composed_where_the_file_says_so)
{
    static const char *const cases[][2] = {
        {"e\xCC\x81te\xCC\x81", "\xC3\xA9t\xC3\xA9"},
        {"q\xCC\x87\xCC\xA3", "q\xCC\xA3\xCC\x87"},               /* marks change places */
        {"\xE2\x84\xAB", "\xC3\x85"},                             /* Angstrom sign */
        {"\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8", "\xEA\xB0\x81"}, /* Hangul */
        {"\xE0\xA5\x98", "\xE0\xA4\x95\xE0\xA4\xBC"},             /* excluded from composition */
        {"a\xCC\x80\xFF", "a\xCC\x80\xFF"},                       /* ill-formed: as it is */
        {"\xEF\xAC\x81", "\xEF\xAC\x81"},                         /* compatibility only: stays */
        {"plain \xC3\xA9", "plain \xC3\xA9"},
    };
    struct vocab_builder b;
    vocab_bytes(&b, SPLIT_QWEN2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        b.source.nfc = false;
        check_normal(&b, cases[i][0], cases[i][0]);
        b.source.nfc = true;
        check_normal(&b, cases[i][0], cases[i][1]);
    }
}
END_TEST

START_TEST(a_long_run_of_marks_is_put_in_order)
{
    enum { HALF = 1 << 17 };
    struct vocab_builder b;
    char *text = malloc(4 * HALF + 2), *normal = malloc(4 * HALF + 2);
    text[0] = normal[0] = 'q';
    for (size_t i = 0; i < HALF; i++) {
        memcpy(text + 1 + 2 * i, "\xCC\x87", 2);          /* above */
        memcpy(text + 1 + 2 * (HALF + i), "\xCC\xA3", 2); /* below: comes first */
        memcpy(normal + 1 + 2 * i, "\xCC\xA3", 2);
        memcpy(normal + 1 + 2 * (HALF + i), "\xCC\x87", 2);
    }
    text[4 * HALF + 1] = normal[4 * HALF + 1] = '\0';
    vocab_bytes(&b, SPLIT_QWEN2);
    b.source.nfc = true;
    check_normal(&b, text, normal);
    free(text);
    free(normal);
}
END_TEST

/* -- SentencePiece BPE ------------------------------------------------------------------------- */

START_TEST(spm_merges_the_best_score_first)
{
    struct vocab_builder b;
    vocab_marked(&b, TOKENIZER_SPM);
    b.source.add_space_prefix = false;
    vocab_add_scored(&b, "a", -10);
    vocab_add_scored(&b, "b", -11);
    vocab_add_scored(&b, "c", -12);
    vocab_add_scored(&b, "ab", -2);  /* 6 */
    vocab_add_scored(&b, "bc", -1);  /* 7 */
    vocab_add_scored(&b, "abc", -3); /* 8 */
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "ab", "6");
    check_ids(tok, "abc", "8");
    check_ids(tok, "bcc", "7 5");
    check_ids(tok, "aab", "3 6");
    tokenizer_free(tok);
    b.source.n_tokens = 8; /* without abc */
    tok = vocab_tokenizer(&b);
    check_ids(tok, "abc", "3 7");
    tokenizer_free(tok);
}
END_TEST

START_TEST(spm_takes_the_leftmost_of_equal_scores)
{
    struct vocab_builder b;
    vocab_marked(&b, TOKENIZER_SPM);
    b.source.add_space_prefix = false;
    vocab_add_scored(&b, "a", -1);
    vocab_add_scored(&b, "b", -1);
    vocab_add_scored(&b, "ba", -1); /* 5 */
    vocab_add_scored(&b, "ab", -1); /* 6 */
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "aba", "6 3");
    check_ids(tok, "bab", "5 4");
    check_ids(tok, "abab", "6 6");
    tokenizer_free(tok);
}
END_TEST

START_TEST(spm_joins_characters_that_are_no_tokens_themselves)
{
    struct vocab_builder b;
    vocab_marked(&b, TOKENIZER_SPM);
    b.source.add_space_prefix = false;
    vocab_add_scored(&b, "a", -1);
    vocab_add_scored(&b, "q\xC3\xA9", -2);  /* 4: neither q nor é is a token */
    vocab_add_scored(&b, "aq\xC3\xA9", -3); /* 5 */
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "q\xC3\xA9", "4");
    check_ids(tok, "aq\xC3\xA9", "5");
    check_ids(tok, "aqa", "3 0 3");
    tokenizer_free(tok);
}
END_TEST

START_TEST(spm_spells_unknown_characters_in_bytes)
{
    struct vocab_builder b;
    vocab_marked(&b, TOKENIZER_SPM);
    vocab_add_scored(&b, MARK, -1); /* 3 */
    vocab_add_scored(&b, "a", -1);  /* 4 */
    uint32_t first = vocab_add_bytes(&b);
    ck_assert_uint_eq(first, 5);
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "a\xE6\xAD\xAA", "3 4 235 178 175");
    check_ids(tok, "\n", "3 15");
    check_ids(tok, "\xFF", "3 260");                  /* ill-formed */
    check_ids(tok, "<0x41>", "3 65 53 125 57 54 67"); /* the text of a byte token is text */
    tokenizer_free(tok);
}
END_TEST

START_TEST(several_unknown_characters_are_one_unknown_token)
{
    const enum tokenizer_kind kinds[] = {TOKENIZER_SPM, TOKENIZER_UNIGRAM};
    for (size_t i = 0; i < 2; i++) {
        struct vocab_builder b;
        vocab_marked(&b, kinds[i]);
        vocab_add_scored(&b, MARK, -1);
        vocab_add_scored(&b, "a", -1);
        struct tokenizer *tok = vocab_tokenizer(&b);
        check_ids(tok, "xyz", "3 0");
        check_ids(tok, "xyaz", "3 0 4 0");
        check_ids(tok, "x y", "3 0 3 0");
        check_ids_trusted(tok, "x</s>y", "3 0 2 3 0");
        tokenizer_free(tok);
    }
}
END_TEST

START_TEST(an_unused_token_is_never_made)
{
    const enum tokenizer_kind kinds[] = {TOKENIZER_SPM, TOKENIZER_UNIGRAM};
    for (size_t i = 0; i < 2; i++) {
        struct vocab_builder b;
        vocab_marked(&b, kinds[i]);
        b.source.add_space_prefix = false;
        vocab_add_scored(&b, "a", -1);
        vocab_add_scored(&b, "b", -1);
        b.types[vocab_add_scored(&b, "ab", -0.5f)] = TOKEN_UNUSED;
        struct tokenizer *tok = vocab_tokenizer(&b);
        check_ids(tok, "ab", "3 4");
        tokenizer_free(tok);
    }
}
END_TEST

START_TEST(the_space_prefix_follows_the_flags)
{
    struct vocab_builder b;
    vocab_marked(&b, TOKENIZER_SPM);
    vocab_add_scored(&b, MARK, -5);     /* 3 */
    vocab_add_scored(&b, "a", -5);      /* 4 */
    vocab_add_scored(&b, MARK "a", -1); /* 5 */
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "a", "5");
    check_ids(tok, " a", "3 5");
    check_ids(tok, "a a", "5 5");
    check_ids(tok, "", "");
    check_ids_trusted(tok, "<s>a</s>a", "1 5 2 5"); /* each stretch has its own */
    check_ids_trusted(tok, "<s></s>", "1 2");
    tokenizer_free(tok);
    b.source.prefix_not_before_space = true;
    tok = vocab_tokenizer(&b);
    check_ids(tok, "a", "5");
    check_ids(tok, " a", "5");
    check_ids(tok, MARK "a", "5");
    tokenizer_free(tok);
    b.source.prefix_at_start_only = true;
    tok = vocab_tokenizer(&b);
    check_ids_trusted(tok, "a</s>a", "5 2 4");
    check_ids_trusted(tok, "<s>a", "1 4");
    tokenizer_free(tok);
    b.source.add_space_prefix = false;
    tok = vocab_tokenizer(&b);
    check_ids(tok, "a a", "4 5");
    ck_assert(!tokenizer_strips_leading_space(tok));
    tokenizer_free(tok);
}
END_TEST

START_TEST(every_space_begins_a_piece_where_the_file_says_so)
{
    struct vocab_builder b;
    vocab_marked(&b, TOKENIZER_SPM);
    vocab_add_scored(&b, "a", -9);
    vocab_add_scored(&b, MARK, -9);
    vocab_add_scored(&b, MARK MARK, -1);        /* 5 */
    vocab_add_scored(&b, MARK "a", -2);         /* 6 */
    vocab_add_scored(&b, MARK "a" MARK "a", 0); /* 7 */
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "a  a", "6 5 3");
    tokenizer_free(tok);
    b.source.cuts_at_each_space = true;
    tok = vocab_tokenizer(&b);
    check_ids(tok, "a  a", "6 4 6");
    check_ids(tok, "  ", "4 4 4");
    tokenizer_free(tok);
}
END_TEST

START_TEST(each_unknown_character_is_one_token_where_the_file_says_so)
{
    struct vocab_builder b;
    vocab_marked(&b, TOKENIZER_SPM);
    vocab_add_scored(&b, MARK, -1);
    b.source.unknown_not_fused = true;
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "xy\xE6\xAD\xAA z", "3 0 0 0 3 0");
    tokenizer_free(tok);
}
END_TEST

START_TEST(spm_goes_by_merges_where_they_are_given)
{
    struct vocab_builder b;
    vocab_marked(&b, TOKENIZER_SPM);
    vocab_add_scored(&b, MARK, 0);
    vocab_add_scored(&b, "a", 0);
    vocab_add_scored(&b, "b", 0);
    vocab_add_merge(&b, "a b", "ab");           /* 6 */
    vocab_add_merge(&b, MARK " ab", MARK "ab"); /* 7 */
    vocab_add(&b, MARK "a", TOKEN_NORMAL);      /* 8: no merge makes it */
    b.source.scores = NULL;
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "ab a", "7 3 4");
    tokenizer_free(tok);
    vocab_add_merge(&b, MARK "  b", "ab");
    vocab_must_fail(&b, "merges[2]");
}
END_TEST

START_TEST(tokens_may_reach_across_spaces)
{
    struct vocab_builder b;
    vocab_marked(&b, TOKENIZER_SPM);
    b.source.add_space_prefix = false;
    vocab_add_scored(&b, "a", -9);
    vocab_add_scored(&b, MARK, -9);
    vocab_add_scored(&b, MARK MARK, -1);    /* 5 */
    vocab_add_scored(&b, "a" MARK, -2);     /* 6 */
    vocab_add_scored(&b, "a" MARK "a", -3); /* 7 */
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "a a", "7");
    check_ids(tok, "a  a", "3 5 3");
    tokenizer_free(tok);
}
END_TEST

START_TEST(a_user_defined_token_of_spaces_is_found_in_the_text)
{
    struct vocab_builder b;
    vocab_marked(&b, TOKENIZER_SPM);
    b.source.add_space_prefix = false;
    vocab_add_scored(&b, MARK, -1);
    vocab_add_scored(&b, "a", -1);
    vocab_add(&b, MARK MARK MARK, TOKEN_USER_DEFINED); /* 5 */
    vocab_add(&b, "\n\n", TOKEN_USER_DEFINED);         /* 6 */
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "a    a\n\na", "4 5 3 4 6 4");
    ck_assert_uint_eq(tokenizer_piece(tok, 5, false).len, 3);
    tokenizer_free(tok);
}
END_TEST

/* -- unigram ----------------------------------------------------------------------------------- */

START_TEST(unigram_takes_the_cut_with_the_greatest_sum)
{
    struct vocab_builder b;
    vocab_marked(&b, TOKENIZER_UNIGRAM);
    b.source.add_space_prefix = false;
    vocab_add_scored(&b, "a", -3);      /* 3 */
    vocab_add_scored(&b, "b", -3);      /* 4 */
    vocab_add_scored(&b, "ab", -7);     /* 5: worse than a, b */
    vocab_add_scored(&b, "bc", -2);     /* 6 */
    vocab_add_scored(&b, "abc", -5.5f); /* 7: worse than a, bc */
    vocab_add_scored(&b, "aa", -6);     /* 8: as good as a, a; found first */
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "ab", "3 4");
    check_ids(tok, "abc", "3 6");
    check_ids(tok, "aa", "8");
    check_ids(tok, "c", "0");
    check_ids(tok, "", "");
    tokenizer_free(tok);
}
END_TEST

START_TEST(an_unknown_character_costs_ten_more_than_the_worst_token)
{
    struct vocab_builder b;
    vocab_marked(&b, TOKENIZER_UNIGRAM);
    b.source.add_space_prefix = false;
    vocab_add_scored(&b, "xy", -8); /* 3 */
    vocab_add_scored(&b, "z", -8);  /* 4 */
    vocab_add_scored(&b, "yz", -1); /* 5 */
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "xyz", "3 4"); /* -16; an unknown x, then yz: -18 - 1 */
    tokenizer_free(tok);
    b.scores[3] = -12;
    b.scores[4] = -11;
    b.scores[5] = -0.5f;
    tok = vocab_tokenizer(&b);
    check_ids(tok, "xyz", "0 5"); /* -22 - 0.5; the other way -23 */
    tokenizer_free(tok);
}
END_TEST

START_TEST(unigram_spells_unknown_characters_in_bytes)
{
    struct vocab_builder b;
    vocab_marked(&b, TOKENIZER_UNIGRAM);
    vocab_add_scored(&b, MARK, -1);
    vocab_add_scored(&b, "a", -1);
    vocab_add_bytes(&b);
    struct tokenizer *tok = vocab_tokenizer(&b);
    check_ids(tok, "a\xC3\xA9", "3 4 200 174");
    tokenizer_free(tok);
}
END_TEST

/* -- long texts -------------------------------------------------------------------------------- */

enum { LONG_TEXT = 1 << 17 };

static const char *const units[] = {"A",
                                    "Z",
                                    "=",
                                    " ",
                                    "\n",
                                    "7",
                                    "ab",
                                    "a ",
                                    "<|",
                                    "<|im_end|",
                                    "\xF0\x9F\x98\x80",
                                    "\xE6\xAD\xAA",
                                    "\xCC\x81\xCC\x96",
                                    "\xFF"};

/* A text of n bytes or a little less, one unit over and over. */
static size_t repeat(char *text, size_t n, const char *unit)
{
    size_t len = strlen(unit), at = 0;
    for (; at + len <= n; at += len)
        memcpy(text + at, unit, len);
    return at;
}

static void encode_long_texts(struct vocab_builder *b)
{
    struct tokenizer *tok = vocab_tokenizer(b);
    char *text = malloc(LONG_TEXT);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        struct token_list list = {0};
        struct text_run all = {0, repeat(text, LONG_TEXT, units[i])};
        ck_assert_int_eq(
            tokenizer_encode(tok, text, all.len, &all, 1, false, SIZE_MAX, &list, NULL), STATUS_OK);
        ck_assert_uint_ge(list.len, 1);
        ck_assert_uint_le(list.len, LONG_TEXT + 1);
        token_list_done(&list);
    }
    free(text);
    tokenizer_free(tok);
}

/* Merges that double: A, AA, AAAA, ... */
static void add_doubling(struct vocab_builder *b, char texts[][2][2200], const char *letter)
{
    memcpy(texts[0][0], letter, strlen(letter) + 1);
    for (int i = 1; i < 8; i++) {
        char *half = texts[i - 1][0];
        size_t len = strlen(half);
        char *merge = texts[i][1];
        memcpy(merge, half, len);
        merge[len] = ' ';
        memcpy(merge + len + 1, half, len + 1);
        memcpy(texts[i][0], half, len);
        memcpy(texts[i][0] + len, half, len + 1);
        vocab_add_merge(b, merge, texts[i][0]);
    }
}

START_TEST(long_texts_take_bpe_near_linear_time)
{
    static char texts[3][8][2][2200];
    struct vocab_builder b;
    vocab_bytes(&b, SPLIT_LLAMA3);
    add_doubling(&b, texts[0], "A");
    add_doubling(&b, texts[1], "\xC4\xA0");
    add_doubling(&b, texts[2], "=");
    vocab_add(&b, "<|im_end|>", TOKEN_CONTROL);
    b.source.nfc = true;
    encode_long_texts(&b);
    b.source.split = SPLIT_NONE;
    b.source.ignore_merges = true;
    encode_long_texts(&b);
}
END_TEST

START_TEST(long_texts_take_spm_and_unigram_near_linear_time)
{
    const enum tokenizer_kind kinds[] = {TOKENIZER_SPM, TOKENIZER_UNIGRAM};
    static char texts[2][8][2][2200];
    for (size_t i = 0; i < 2; i++) {
        struct vocab_builder b;
        vocab_marked(&b, kinds[i]);
        vocab_add_scored(&b, "A", -100);
        vocab_add_scored(&b, "=", -100);
        vocab_add_scored(&b, MARK, -100);
        add_doubling(&b, texts[0], "A");
        add_doubling(&b, texts[1], MARK);
        for (uint32_t id = 6; id < b.source.n_tokens; id++)
            b.scores[id] = -(float)id;
        b.source.n_merges = 0;
        vocab_add(&b, "<|im_end|>", TOKEN_CONTROL);
        encode_long_texts(&b);
        vocab_add_bytes(&b);
        encode_long_texts(&b);
    }
}
END_TEST

START_TEST(long_runs_come_out_in_the_longest_tokens)
{
    static char texts[8][2][2200];
    struct vocab_builder b;
    char *text = malloc(LONG_TEXT);
    vocab_bytes(&b, SPLIT_GPT2);
    add_doubling(&b, texts, "A");
    struct tokenizer *tok = vocab_tokenizer(&b);
    struct token_list list = {0};
    size_t len = repeat(text, LONG_TEXT - 3, "A");
    ck_assert_int_eq(tokenizer_encode(tok, text, len, NULL, 0, false, SIZE_MAX, &list, NULL),
                     STATUS_OK);
    ck_assert_uint_eq(list.len, LONG_TEXT / 128 - 1 + 7 - 1); /* and 125 = 64+32+16+8+4+1 */
    check_round_trip(tok, text, len);
    token_list_done(&list);
    free(text);
    tokenizer_free(tok);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "byte-level BPE", merges_go_by_rank_and_then_from_the_left,
              a_pair_that_another_merge_took_apart_is_forgotten,
              two_ways_to_one_token_keep_their_ranks, no_merge_crosses_a_pre_token,
              a_whole_token_is_taken_without_merging_where_the_file_says_so,
              a_byte_without_a_letter_is_left_out);
    CHECK_ADD(suite, "NFC", text_is_composed_where_the_file_says_so,
              a_long_run_of_marks_is_put_in_order);
    CHECK_ADD(
        suite, "SentencePiece BPE", spm_merges_the_best_score_first,
        spm_takes_the_leftmost_of_equal_scores, spm_joins_characters_that_are_no_tokens_themselves,
        spm_spells_unknown_characters_in_bytes, several_unknown_characters_are_one_unknown_token,
        an_unused_token_is_never_made, the_space_prefix_follows_the_flags,
        tokens_may_reach_across_spaces, every_space_begins_a_piece_where_the_file_says_so,
        each_unknown_character_is_one_token_where_the_file_says_so,
        spm_goes_by_merges_where_they_are_given,
        a_user_defined_token_of_spaces_is_found_in_the_text);
    CHECK_ADD(suite, "unigram", unigram_takes_the_cut_with_the_greatest_sum,
              an_unknown_character_costs_ten_more_than_the_worst_token,
              unigram_spells_unknown_characters_in_bytes);
    TCase *lengths = tcase_create("long texts");
    tcase_set_timeout(lengths, 120); /* quadratic work on these would take hours, not minutes */
    tcase_add_test(lengths, long_texts_take_bpe_near_linear_time);
    tcase_add_test(lengths, long_texts_take_spm_and_unigram_near_linear_time);
    tcase_add_test(lengths, long_runs_come_out_in_the_longest_tokens);
    suite_add_tcase(suite, lengths);
}

CHECK_MAIN("tokenizer_kinds", add_cases)
