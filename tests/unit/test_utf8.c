#include "config.h"

#include <string.h>

#include "support/check_main.h"
#include "tellerd/base/utf8.h"

static bool valid(const char *text)
{
    return utf8_valid(text, strlen(text));
}

START_TEST(every_scalar_value_goes_there_and_back)
{
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        if (code >= 0xd800 && code < 0xe000)
            continue;
        char bytes[4];
        uint32_t back;
        unsigned bad = 9;
        unsigned n = utf8_encode(code, bytes);
        if (utf8_decode(bytes, n, &back, &bad) != n || back != code || bad != 0 ||
            !utf8_valid(bytes, n) || utf8_complete_prefix(bytes, n) != n)
            ck_abort_msg("U+%04X", (unsigned)code);
        for (unsigned cut = 1; cut < n; cut++)
            if (utf8_decode(bytes, cut, &back, &bad) != 0 || bad != cut ||
                utf8_complete_prefix(bytes, cut) != 0)
                ck_abort_msg("U+%04X cut at %u", (unsigned)code, cut);
    }
}
END_TEST

START_TEST(well_formed_text_is_valid)
{
    ck_assert(utf8_valid("", 0));
    ck_assert(utf8_valid("a\0b", 3));
    ck_assert(valid("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80 and a long ASCII tail"));
    ck_assert(valid("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"));
}
END_TEST

START_TEST(ill_formed_text_is_not)
{
    static const char *const bad[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xe0\x9f\xbf",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
        "\xfe",
        "\xe2\x82",
        "\xf0\x9f\x98",
        "\xc3(",
        "long ascii first \xe2",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(!valid(bad[i]), "case %zu", i);
}
END_TEST

/* Unicode 15, section 3.9, table 3-8 and its neighbours: one replacement per maximal subpart. */
START_TEST(ill_formed_pieces_are_maximal_subparts)
{
    static const struct {
        const char *text;
        unsigned pieces[8];
    } cases[] = {
        {"\xc0\xaf", {1, 1}},
        {"\xe0\x80\xbf", {1, 1, 1}},
        {"\xf0\x81\x82", {1, 1, 1}},
        {"\xed\xa0\x80", {1, 1, 1}},
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf", {2, 1, 3, 2}},
        {"\xf4\x91\x92\x93\xff", {1, 1, 1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t len = strlen(cases[i].text), at = 0, n_pieces = 0;
        for (; at < len; n_pieces++) {
            uint32_t code = 0;
            unsigned bad = 0;
            ck_assert_uint_eq(utf8_decode(cases[i].text + at, len - at, &code, &bad), 0);
            ck_assert_uint_eq(code, 0xfffd);
            ck_assert_uint_eq(bad, cases[i].pieces[n_pieces]);
            at += bad;
        }
        ck_assert_uint_eq(at, len);
        ck_assert_uint_eq(utf8_length(cases[i].text, len), n_pieces);
    }
}
END_TEST

START_TEST(length_counts_characters)
{
    ck_assert_uint_eq(utf8_length("", 0), 0);
    ck_assert_uint_eq(utf8_length("abcdefghijk", 11), 11);
    ck_assert_uint_eq(utf8_length("a\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80", 10), 4);
    ck_assert_uint_eq(utf8_length("\xe2\x82x", 3), 2);
}
END_TEST

START_TEST(only_what_can_still_become_a_character_waits)
{
    static const struct {
        const char *text;
        size_t prefix;
    } cases[] = {
        {"", 0},
        {"abc", 3},
        {"abc\xe2\x82", 3},
        {"abc\xe2\x82\xac", 6},
        {"abc\xf0\x9f\x98", 3},
        {"\xf0\x9f", 0},
        {"a\xc3", 1},
        {"a\xff", 2},
        {"a\xe0\x80", 3}, /* E0 80 can never be completed */
        {"a\xed\xa0", 3}, /* a surrogate */
        {"a\xf4\x90", 3}, /* above U+10FFFF */
        {"a\x80\x80", 3}, /* stray continuations */
        {"\xf0\x9f\x98\x80\x80", 5},
        {"\xe2\x82\xac\xe2", 3},
        {"\x80\x80\x80\x80", 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_uint_eq(utf8_complete_prefix(cases[i].text, strlen(cases[i].text)),
                          cases[i].prefix);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "encoding", every_scalar_value_goes_there_and_back);
    CHECK_ADD(suite, "validity", well_formed_text_is_valid, ill_formed_text_is_not,
              ill_formed_pieces_are_maximal_subparts);
    CHECK_ADD(suite, "streaming", length_counts_characters,
              only_what_can_still_become_a_character_waits);
}

CHECK_MAIN("utf8", add_cases)
