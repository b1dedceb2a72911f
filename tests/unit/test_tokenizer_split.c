/*
 * The splitters against the tables of cases measured with the published patterns, and at the places
 * where a hand-written splitter goes wrong.  tests/oracle/tokenizer_oracle.py compares them with
 * the patterns themselves over all of Unicode.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "support/check_main.h"
#include "tellerd/model/tokenizer.h"

enum { LONG_RUN = 1 << 18 };

struct joined {
    char text[1024];
    size_t len;
    size_t n_pieces;
    size_t n_bytes;
    size_t n_empty;
};

static void on_piece(void *ctx, const char *piece, size_t len)
{
    struct joined *joined = ctx;
    joined->n_empty += len == 0;
    joined->n_pieces++;
    joined->n_bytes += len;
    if (joined->len + len + 1 >= sizeof joined->text)
        return;
    if (joined->len > 0)
        joined->text[joined->len++] = '|';
    memcpy(joined->text + joined->len, piece, len);
    joined->len += len;
    joined->text[joined->len] = '\0';
}

static struct joined split(enum tokenizer_split kind, const char *text, size_t len)
{
    struct joined joined = {.len = 0};
    tokenizer_split_text(kind, text, len, on_piece, &joined);
    ck_assert_uint_eq(joined.n_bytes, len);
    ck_assert_uint_eq(joined.n_empty, 0);
    return joined;
}

/* Asserts that text splits into pieces, written with bars between. */
static void check(enum tokenizer_split kind, const char *text, const char *pieces)
{
    struct joined joined = split(kind, text, strlen(text));
    ck_assert_str_eq(joined.text, pieces);
}

/* One line of a table: GPT-2; Llama 3; Qwen2 (NULL: as Llama 3). */
struct row {
    const char *text, *gpt2, *llama3, *qwen2;
};

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        check(SPLIT_GPT2, rows[i].text, rows[i].gpt2);
        check(SPLIT_LLAMA3, rows[i].text, rows[i].llama3);
        check(SPLIT_QWEN2, rows[i].text, rows[i].qwen2 ? rows[i].qwen2 : rows[i].llama3);
    }
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof *(rows))

START_TEST(contractions_are_cut_as_each_family_does)
{
    static const struct row rows[] = {
        {"I'LL we'll", "I|'|LL| we|'ll", "I|'LL| we|'ll", NULL},
        {"I'LLama", "I|'|LLama", "I|'LL|ama", NULL},
        {"don't'S", "don|'t|'|S", "don|'t|'S", NULL},
        {"don\xE2\x80\x99t", "don|\xE2\x80\x99|t", "don|\xE2\x80\x99t", NULL},
        {"'", "'", "'", NULL},
        {"'l", "'|l", "'l", NULL},
        {"'r've", "'|r|'ve", "'r|'ve", NULL},
        {"a's b'd c'm", "a|'s| b|'d| c|'m", "a|'s| b|'d| c|'m", NULL},
        {"''s", "''|s", "''|s", NULL},
        {" 's", " '|s", " '|s", NULL},
    };
    CHECK_ROWS(rows);
    check(SPLIT_NANOCHAT, "I'LLama don't'S", "I|'LL|ama| don|'t|'S");
}
END_TEST

START_TEST(long_s_counts_as_s_where_case_is_ignored)
{
    check(SPLIT_LLAMA3, "a'\xC5\xBFx", "a|'\xC5\xBF|x");
    check(SPLIT_NANOCHAT, "a'\xC5\xBFx", "a|'\xC5\xBF|x");
    check(SPLIT_GPT2, "a'\xC5\xBFx", "a|'|\xC5\xBFx");
    check(SPLIT_LLAMA3, "a'\xE2\x84\xAAx",
          "a|'\xE2\x84\xAAx"); /* the Kelvin sign is just a letter */
}
END_TEST

START_TEST(digits_are_grouped_as_each_family_does)
{
    static const struct row rows[] = {
        {"12345678", "12345678", "123|456|78", "1|2|3|4|5|6|7|8"},
        {"it's 2024-01-05", "it|'s| 2024|-|01|-|05", "it|'s| |202|4|-|01|-|05",
         "it|'s| |2|0|2|4|-|0|1|-|0|5"},
        {"\xE0\xA5\xA7\xE0\xA5\xA8\xE0\xA5\xA9\xE0\xA5\xAA ab",
         "\xE0\xA5\xA7\xE0\xA5\xA8\xE0\xA5\xA9\xE0\xA5\xAA| ab",
         "\xE0\xA5\xA7\xE0\xA5\xA8\xE0\xA5\xA9|\xE0\xA5\xAA| ab",
         "\xE0\xA5\xA7|\xE0\xA5\xA8|\xE0\xA5\xA9|\xE0\xA5\xAA| ab"},
        {"\xE2\x85\xB7\xC2\xB2\xC2\xB3x", "\xE2\x85\xB7\xC2\xB2\xC2\xB3|x",
         "\xE2\x85\xB7\xC2\xB2\xC2\xB3|x", "\xE2\x85\xB7|\xC2\xB2|\xC2\xB3|x"},
    };
    CHECK_ROWS(rows);
    check(SPLIT_NANOCHAT, "12345 1", "12|34|5| |1");
}
END_TEST

START_TEST(smollm_cuts_digits_out_first)
{
    check(SPLIT_SMOLLM, "in 2024, a1b", "in| |2|0|2|4|,| a|1|b");
    check(SPLIT_SMOLLM, "a   1", "a|   |1"); /* the spaces end a text of their own */
    check(SPLIT_SMOLLM, "a   b", "a|  | b");
    check(SPLIT_SMOLLM, "1's", "1|'s");
    check(SPLIT_SMOLLM, "\xC2\xB2 \xE2\x85\xB7", "\xC2\xB2| |\xE2\x85\xB7");
}
END_TEST

#define SPACES7 "       "
START_TEST(spaces_and_newlines_are_cut_as_each_family_does)
{
    static const struct row rows[] = {
        {"a   b", "a|  | b", "a|  | b", NULL},
        {"x\n\n  y", "x|\n\n | y", "x|\n\n| | y", NULL},
        {"a \n b", "a| \n| b", "a| \n| b", NULL},
        {"end.\n\nNext", "end|.|\n|\n|Next", "end|.\n\n|Next", NULL},
        {"!!!\n", "!!!|\n", "!!!\n", NULL},
        {"a\r\nb", "a|\r|\n|b", "a|\r\n|b", NULL},
        {"\tfoo", "\t|foo", "\tfoo", NULL},
        {"trail  ", "trail|  ", "trail|  ", NULL},
        {"    if x:\n        y", "   | if| x|:|\n" SPACES7 "| y", "   | if| x|:\n|" SPACES7 "| y",
         NULL},
        {" \n \n x", " \n \n| x", " \n \n| x", NULL},
        {"\n \t ", "\n \t ", "\n| \t ", NULL},
        {" ", " ", " ", NULL},
        {"?\r\n\r\n x", "?|\r\n\r\n| x", "?\r\n\r\n| x", NULL},
    };
    CHECK_ROWS(rows);
    check(SPLIT_NANOCHAT, "x\n\n  y.\n\n", "x|\n\n| | y|.\n\n");
}
END_TEST

#define NBSP        "\xC2\xA0"
#define IDEOGRAPHIC "\xE3\x80\x80"
#define LINE_SEP    "\xE2\x80\xA8"
#define ZWSP        "\xE2\x80\x8B"
START_TEST(odd_spaces_are_spaces)
{
    static const struct row rows[] = {
        {"a" NBSP "b", "a|" NBSP "|b", "a|" NBSP "b", NULL},
        {"a" NBSP NBSP "b", "a|" NBSP "|" NBSP "|b", "a|" NBSP "|" NBSP "b", NULL},
        {"a" IDEOGRAPHIC "b", "a|" IDEOGRAPHIC "|b", "a|" IDEOGRAPHIC "b", NULL},
        {"x" LINE_SEP "y", "x|" LINE_SEP "|y", "x|" LINE_SEP "y", NULL},
        {ZWSP "x", ZWSP "|x", ZWSP "x", NULL},
        {"a\xC2\x85\xC2\x85", "a|\xC2\x85\xC2\x85", "a|\xC2\x85\xC2\x85", NULL},
        {"a\x1C\x1Fz", "a|\x1C\x1F|z", "a|\x1C\x1F|z", NULL}, /* not White_Space */
    };
    CHECK_ROWS(rows);
}
END_TEST

#define ACUTE  "\xCC\x81"
#define VIRAMA "\xE0\xA5\x8D"
#define SIGN_E "\xE0\xA5\x87"
START_TEST(combining_marks_are_not_letters)
{
    static const struct row rows[] = {
        {"e" ACUTE "te" ACUTE, "e|" ACUTE "|te|" ACUTE, "e|" ACUTE "te|" ACUTE, NULL},
        {"\xE0\xA4\xA8\xE0\xA4\xAE\xE0\xA4\xB8" VIRAMA "\xE0\xA4\xA4" SIGN_E,
         "\xE0\xA4\xA8\xE0\xA4\xAE\xE0\xA4\xB8|" VIRAMA "|\xE0\xA4\xA4|" SIGN_E,
         "\xE0\xA4\xA8\xE0\xA4\xAE\xE0\xA4\xB8|" VIRAMA "\xE0\xA4\xA4|" SIGN_E, NULL},
    };
    CHECK_ROWS(rows);
}
END_TEST

START_TEST(no_split_leaves_the_text_whole)
{
    check(SPLIT_NONE, "a b\n1", "a b\n1");
    ck_assert_uint_eq(split(SPLIT_NONE, "", 0).n_pieces, 0);
    ck_assert_uint_eq(split(SPLIT_GPT2, "", 0).n_pieces, 0);
}
END_TEST

START_TEST(ill_formed_bytes_count_as_symbols)
{
    for (int kind = 0; kind < SPLIT_COUNT; kind++) {
        split((enum tokenizer_split)kind, "\xFF\xC0\xAF", 3);
        split((enum tokenizer_split)kind, "a\xE2\x82", 3);
        split((enum tokenizer_split)kind, "'\xC5", 2);
        split((enum tokenizer_split)kind, " \xF0\x9F\x98", 4);
    }
    check(SPLIT_GPT2, "a \xE2\x82z", "a| \xE2\x82|z");
}
END_TEST

START_TEST(nul_bytes_are_text)
{
    struct joined joined = split(SPLIT_GPT2, "a\0\0b", 4);
    ck_assert_uint_eq(joined.n_pieces, 3);
}
END_TEST

START_TEST(a_long_run_of_one_class_is_one_piece_or_many_short_ones)
{
    static const struct {
        const char *unit;
        size_t pieces[SPLIT_COUNT]; /* for LONG_RUN units, then "x" */
    } runs[] = {
        {"A", {1, 1, 1, 1, 1, 1}},
        {"=", {2, 2, 2, 2, 2, 1}},
        {" ", {2, 2, 2, 2, 2, 1}},
        {"\n", {3, 2, 2, 3, 2, 1}},
        {"7", {2, (LONG_RUN + 2) / 3 + 1, LONG_RUN + 1, LONG_RUN + 1, (LONG_RUN + 1) / 2 + 1, 1}},
        {"\xF0\x9F\x98\x80", {2, 2, 2, 2, 2, 1}},
    };
    char *text = malloc(4 * LONG_RUN + 1);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        size_t unit = strlen(runs[i].unit);
        for (size_t n = 0; n < LONG_RUN; n++)
            memcpy(text + n * unit, runs[i].unit, unit);
        text[LONG_RUN * unit] = 'x';
        for (int kind = 0; kind < SPLIT_COUNT; kind++) {
            struct joined joined = split((enum tokenizer_split)kind, text, LONG_RUN * unit + 1);
            ck_assert_msg(joined.n_pieces == runs[i].pieces[kind], "run %zu, split %d: %zu pieces",
                          i, kind, joined.n_pieces);
        }
    }
    free(text);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "published tables", contractions_are_cut_as_each_family_does,
              long_s_counts_as_s_where_case_is_ignored, digits_are_grouped_as_each_family_does,
              smollm_cuts_digits_out_first, spaces_and_newlines_are_cut_as_each_family_does,
              odd_spaces_are_spaces, combining_marks_are_not_letters);
    CHECK_ADD(suite, "edges", no_split_leaves_the_text_whole, ill_formed_bytes_count_as_symbols,
              nul_bytes_are_text, a_long_run_of_one_class_is_one_piece_or_many_short_ones);
}

CHECK_MAIN("tokenizer_split", add_cases)
