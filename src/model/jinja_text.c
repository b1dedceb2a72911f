/*
 * Characters as Python classes them, and changes of case.  Classes come from utf8proc; where Python
 * goes by a wider property (a letter with a case mapping), the rule is written out here.
 */
#include "config.h"

#include <string.h>
#include <utf8proc.h>

#include "jinja_ops_priv.h"
#include "tellerd/base/utf8.h"

uint32_t jinja_char(const char *at, unsigned *ret_len)
{
    const unsigned char *b = (const unsigned char *)at;
    if (b[0] < 0x80) {
        *ret_len = 1;
        return b[0];
    }
    if (b[0] < 0xE0) {
        *ret_len = 2;
        return (uint32_t)(b[0] & 0x1F) << 6 | (b[1] & 0x3F);
    }
    if (b[0] < 0xF0) {
        *ret_len = 3;
        return (uint32_t)(b[0] & 0x0F) << 12 | (uint32_t)(b[1] & 0x3F) << 6 | (b[2] & 0x3F);
    }
    *ret_len = 4;
    return (uint32_t)(b[0] & 0x07) << 18 | (uint32_t)(b[1] & 0x3F) << 12 |
           (uint32_t)(b[2] & 0x3F) << 6 | (b[3] & 0x3F);
}

bool jinja_is_space(uint32_t c)
{
    if (c < 0x80)
        return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
           c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool jinja_is_alpha(uint32_t c)
{
    if (c < 0x80)
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool jinja_is_decimal(uint32_t c)
{
    if (c < 0x80)
        return c >= '0' && c <= '9';
    return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_ND;
}

bool jinja_is_digit(uint32_t c)
{
    return jinja_is_decimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 ||
           (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089) ||
           (c >= 0x2460 && c <= 0x2468) || (c >= 0x2474 && c <= 0x247C) ||
           (c >= 0x2488 && c <= 0x2490);
}

bool jinja_is_numeric(uint32_t c)
{
    if (jinja_is_digit(c))
        return true;
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return c >= 0x80 && (category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO);
}

static bool is_title(uint32_t c)
{
    return c >= 0x80 && utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_LT;
}

bool jinja_is_lower(uint32_t c)
{
    if (c < 0x80)
        return c >= 'a' && c <= 'z';
    return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_LL || c == 0xAA ||
           c == 0xBA || (c >= 0x2170 && c <= 0x217F) || (c >= 0x24D0 && c <= 0x24E9);
}

bool jinja_is_upper(uint32_t c)
{
    if (c < 0x80)
        return c >= 'A' && c <= 'Z';
    return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_LU ||
           (c >= 0x2160 && c <= 0x216F) || (c >= 0x24B6 && c <= 0x24CF);
}

bool jinja_is_cased(uint32_t c)
{
    return jinja_is_lower(c) || jinja_is_upper(c) || is_title(c);
}

bool jinja_is_printable(uint32_t c)
{
    if (c < 0x7F)
        return c >= 0x20;
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
        return false;
    default:
        return true;
    }
}

/* Characters that become several ones in upper case and are met in practice. */
static const char *long_upper(uint32_t c, bool title)
{
    switch (c) {
    case 0xDF:
        return title ? "Ss" : "SS";
    case 0x149:
        return "\xCA\xBCN";
    case 0xFB00:
        return title ? "Ff" : "FF";
    case 0xFB01:
        return title ? "Fi" : "FI";
    case 0xFB02:
        return title ? "Fl" : "FL";
    case 0xFB03:
        return title ? "Ffi" : "FFI";
    case 0xFB04:
        return title ? "Ffl" : "FFL";
    case 0xFB05:
    case 0xFB06:
        return title ? "St" : "ST";
    default:
        return NULL;
    }
}

/* A capital sigma at the end of a word has a small form of its own. */
static bool is_final_sigma(const struct jinja_string *s, size_t at, bool after_cased)
{
    unsigned len;
    (void)jinja_char(s->bytes + at, &len);
    return after_cased &&
           (at + len >= s->len || !jinja_is_cased(jinja_char(s->bytes + at + len, &len)));
}

static bool add_cased(struct jinja_rt *rt, struct jinja_sink *sink, const struct jinja_string *s,
                      size_t at, enum case_rule rule, bool after_cased)
{
    unsigned len;
    uint32_t c = jinja_char(s->bytes + at, &len);
    bool trusted = jinja_string_trusted_at(s, at);
    utf8proc_int32_t mapped;
    if (rule == CASE_LOWER) {
        mapped = utf8proc_tolower((utf8proc_int32_t)c);
        if (c == 0x3A3 && is_final_sigma(s, at, after_cased))
            mapped = 0x3C2;
        if (c == 0x130)
            return jinja_sink_add(rt, sink, "i\xCC\x87", 3, false);
    } else {
        const char *several = long_upper(c, rule == CASE_TITLE);
        if (several)
            return jinja_sink_add(rt, sink, several, strlen(several), false);
        mapped = rule == CASE_TITLE ? utf8proc_totitle((utf8proc_int32_t)c)
                                    : utf8proc_toupper((utf8proc_int32_t)c);
    }
    char out[4];
    return jinja_sink_add(rt, sink, out, utf8_encode((uint32_t)mapped, out), trusted);
}

/* The rule for one character, given those before it. */
static enum case_rule rule_here(enum case_rule rule, uint32_t c, size_t at, bool after_cased)
{
    switch (rule) {
    case CASE_TITLE:
        return after_cased ? CASE_LOWER : CASE_TITLE;
    case CASE_CAPITALIZE:
        return at == 0 ? CASE_TITLE : CASE_LOWER;
    case CASE_SWAP:
        return jinja_is_upper(c) ? CASE_LOWER : CASE_UPPER;
    default:
        return rule;
    }
}

bool jinja_string_case(struct jinja_rt *rt, const struct jinja_string *s, enum case_rule rule,
                       struct jinja_value *ret)
{
    struct jinja_sink *sink = jinja_sink_take(rt);
    if (!sink || !jinja_step(rt, s->len / 16 + 1))
        return false;
    bool after_cased = false;
    for (size_t at = 0; at < s->len;) {
        unsigned len;
        uint32_t c = jinja_char(s->bytes + at, &len);
        if (!add_cased(rt, sink, s, at, rule_here(rule, c, at, after_cased), after_cased))
            return false;
        after_cased = jinja_is_cased(c);
        at += len;
    }
    return jinja_sink_finish(rt, sink, ret);
}

bool jinja_string_words(struct jinja_rt *rt, const struct jinja_string *s, struct jinja_value *ret)
{
    struct jinja_sink *sink = jinja_sink_take(rt);
    if (!sink || !jinja_step(rt, s->len / 16 + 1))
        return false;
    bool start = true, after_cased = false;
    for (size_t at = 0; at < s->len;) {
        unsigned len;
        uint32_t c = jinja_char(s->bytes + at, &len);
        if (!add_cased(rt, sink, s, at, start ? CASE_UPPER : CASE_LOWER, after_cased))
            return false;
        start = c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || jinja_is_space(c);
        after_cased = jinja_is_cased(c);
        at += len;
    }
    return jinja_sink_finish(rt, sink, ret);
}
