/*
 * The template interpreter: what templates render to (expected values measured with Jinja2 3.1.6 in
 * transformers' environment), which bytes are trusted, what is refused, and that every limit holds.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../support/check_main.h"
#include "tellerd/base/buf.h"
#include "tellerd/model/jinja.h"

/* Messages of the cases JIN-01 to JIN-09. */
static const char messages_json[] = "{\"messages\": [{\"role\": \"system\", \"content\": \"S\"},"
                                    " {\"role\": \"user\", \"content\": \"<b>\xC3\xA9 & 'q'</b>\"},"
                                    " {\"role\": \"assistant\", \"content\": \"A\"}]}";

static const struct jinja_variable trusted_variables[] = {
    {"bos_token", "<s>"}, {"eos_token", "</s>"}, {"pad_token", NULL}};

struct rendering {
    enum status status;
    struct error err;
    struct jinja_output output;
    char *marked; /* the text with trusted runs in brackets */
};

static void mark_runs(struct rendering *r)
{
    struct buf buf;
    buf_init(&buf, 1 << 20);
    size_t run = 0;
    for (size_t i = 0; i <= r->output.len; i++) {
        const struct text_run *t = &r->output.trusted[run];
        if (run < r->output.n_trusted && i == t->start + t->len) {
            buf_add_char(&buf, ']');
            run++;
            t++;
        }
        if (run < r->output.n_trusted && i == t->start)
            buf_add_char(&buf, '[');
        if (i < r->output.len)
            buf_add_char(&buf, r->output.bytes[i]);
    }
    r->marked = buf_take(&buf, NULL);
}

/* Renders with untrusted globals; limits may be NULL. */
static struct rendering render_with(const char *source, size_t len, const char *globals,
                                    const struct jinja_limits *limits, time_t now)
{
    static const char *const roles[] = {"system", "user", "assistant", NULL};
    static const struct jinja_checked_member checked = {"messages", "role", roles};
    struct rendering r = {0};
    struct jinja_template *tpl = NULL;
    json_t *json = json_loads(globals, JSON_ALLOW_NUL, NULL);
    ck_assert_ptr_nonnull(json);
    r.status = jinja_compile(source, len, "t", &tpl, &r.err);
    if (r.status == STATUS_OK) {
        struct jinja_input input = {.globals = json,
                                    .trusted = trusted_variables,
                                    .n_trusted = 3,
                                    .checked_member = &checked,
                                    .now = now,
                                    .limits = limits};
        r.status = jinja_render(tpl, &input, &r.output, &r.err);
    }
    jinja_template_free(tpl);
    json_decref(json);
    if (r.status == STATUS_OK)
        mark_runs(&r);
    return r;
}

static struct rendering render(const char *source, const char *globals)
{
    return render_with(source, strlen(source), globals, NULL, 0);
}

static void rendering_done(struct rendering *r)
{
    jinja_output_done(&r->output);
    free(r->marked);
}

struct row {
    const char *source;
    const char *expected;
};

static void check_texts(const struct row *rows, size_t n, const char *globals)
{
    for (size_t i = 0; i < n; i++) {
        struct rendering r = render(rows[i].source, globals);
        ck_assert_msg(r.status == STATUS_OK, "%s: %s", rows[i].source, r.err.text);
        ck_assert_msg(strcmp(r.output.bytes, rows[i].expected) == 0, "%s gave \"%s\", not \"%s\"",
                      rows[i].source, r.output.bytes, rows[i].expected);
        ck_assert_uint_eq(strlen(r.output.bytes), r.output.len);
        rendering_done(&r);
    }
}

#define CHECK_TEXTS(globals, ...)                  \
    check_texts((const struct row[]){__VA_ARGS__}, \
                sizeof((const struct row[]){__VA_ARGS__}) / sizeof(struct row), globals)

/* The same for the marked text. */
static void check_marks(const struct row *rows, size_t n, const char *globals)
{
    for (size_t i = 0; i < n; i++) {
        struct rendering r = render(rows[i].source, globals);
        ck_assert_msg(r.status == STATUS_OK, "%s: %s", rows[i].source, r.err.text);
        ck_assert_msg(strcmp(r.marked, rows[i].expected) == 0, "%s gave \"%s\", not \"%s\"",
                      rows[i].source, r.marked, rows[i].expected);
        rendering_done(&r);
    }
}

#define CHECK_MARKS(globals, ...)                  \
    check_marks((const struct row[]){__VA_ARGS__}, \
                sizeof((const struct row[]){__VA_ARGS__}) / sizeof(struct row), globals)

static void check_error(const char *source, const char *globals, enum status status,
                        const char *text)
{
    struct rendering r = render(source, globals);
    ck_assert_msg(r.status == status, "%s: status %d, text \"%s\"", source, (int)r.status,
                  r.status == STATUS_OK ? r.output.bytes : r.err.text);
    ck_assert_msg(strcmp(r.err.text, text) == 0, "%s: \"%s\", not \"%s\"", source, r.err.text,
                  text);
    ck_assert_int_eq(r.err.status, status);
    rendering_done(&r);
}

/* ---- what templates render to ---- */

START_TEST(slices_and_reversed_loops)
{
    CHECK_TEXTS(
        messages_json,
        {"{% for m in messages[::-1] %}{{ loop.index0 }}{{ m.role[0] }} {% endfor %}", "0a 1u 2s "},
        {"{{ messages[1:]|length }}|{{ messages[-1].role }}|"
         "{{ messages[:-1]|map(attribute='role')|join(',') }}",
         "2|assistant|system,user"},
        {"{{ 'abcdef'[4:1:-2] }}{{ 'abcdef'[-2:] }}{{ 'abcdef'[10:] }}", "ecef"},
        {"{{ '\xC3\xA9\xE4\xB8\xAD\xC3\xBC'[::-1] }}{{ '\xC3\xA9\xE4\xB8\xAD\xC3\xBC'[1] }}",
         "\xC3\xBC\xE4\xB8\xAD\xC3\xA9\xE4\xB8\xAD"});
}
END_TEST

START_TEST(a_set_within_a_loop_stays_there_and_a_namespace_does_not)
{
    CHECK_TEXTS(
        messages_json,
        {"{% set n=0 %}{% for m in messages %}{% set n=n+1 %}{% endfor %}{{ n }}", "0"},
        {"{% set ns=namespace(n=0) %}{% for m in messages %}{% if m.role=='user' %}"
         "{% set ns.n=loop.index0 %}{% endif %}{% endfor %}{{ ns.n }}",
         "1"},
        {"{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}", "2"},
        {"{% for i in [1, 2] %}{{ y is defined }}{% set y = i %}{% endfor %}", "FalseFalse"});
}
END_TEST

START_TEST(tojson_writes_as_transformers_does)
{
    CHECK_TEXTS(
        messages_json,
        {"{{ messages[1]|tojson }}",
         "{\"role\": \"user\", \"content\": \"<b>\xC3\xA9 & 'q'</b>\"}"},
        {"{{ {'b':1,'a':[1,2.0,true,none]}|tojson }}", "{\"b\": 1, \"a\": [1, 2.0, true, null]}"},
        {"{{ {'a':[1]}|tojson(indent=2) }}", "{\n  \"a\": [\n    1\n  ]\n}"},
        {"{{ ['/', '</x>', '\\n\\t\\x01\"\\\\']|tojson }}",
         "[\"/\", \"</x>\", \"\\n\\t\\u0001\\\"\\\\\"]"},
        {"{{ {'b': 1, 'a': 2}|tojson(sort_keys=true, separators=(',', ':')) }}",
         "{\"a\":2,\"b\":1}"},
        {"{{ '\xF0\x9F\x98\x80'|tojson(ensure_ascii=true) }}", "\"\\ud83d\\ude00\""});
}
END_TEST

START_TEST(white_space_around_tags_follows_trim_and_lstrip_blocks)
{
    CHECK_TEXTS("{}", {"a\n  {% if true %}\n  b\n  {% endif %}\nc\n", "a\n  b\nc"},
                {"a\n  {%- if true -%}\n  b\n  {%- endif %}\nc", "abc"},
                {"{{- 'a' }}\n{{ 'b' -}}\n c", "a\nbc"}, {"{# c #}x{#- d -#} y", "xy"},
                {"a\n  {%+ if true +%}\nb{% endif %}", "a\n  \nb"}, {"x\n\n", "x\n"},
                {"  {{ 1 }}\n{# c #}\nx\r\ny", "  1\nx\ny"},
                {"{% raw %}{{ x }}{% endraw %}", "{{ x }}"});
}
END_TEST

START_TEST(generation_blocks_render_as_their_body)
{
    CHECK_TEXTS(messages_json, {"{% for m in messages %}{% generation %}{{ m.role[0] }}"
                                "{% endgeneration %}{% endfor %}",
                                "sua"});
}
END_TEST

START_TEST(undefined_and_none_are_told_apart)
{
    CHECK_TEXTS(messages_json,
                {"{{ tools is defined }} {{ tools is none }} {{ (tools|default('x')) }} "
                 "{{ missing }}|",
                 "False False x |"},
                {"{{ none is defined }} {{ 'a' is string }} {{ [] is iterable }} "
                 "{{ {} is mapping }} {{ 'a' is mapping }}",
                 "True True True True False"},
                {"{{ messages[0].nokey }}|", "|"}, {"{{ pad_token is none }}", "True"});
    check_error("{{ messages[5].role }}", messages_json, STATUS_TEMPLATE_FAILED,
                "t, line 1: list object has no element 5");
    check_error("\n{{ messages[0].a.b }}", messages_json, STATUS_TEMPLATE_FAILED,
                "t, line 2: 'dict object' has no attribute 'a'");
}
END_TEST

START_TEST(values_print_and_compute_as_in_python)
{
    CHECK_TEXTS("{}",
                {"{{ true }} {{ none }} {{ 1.0 }} {{ [1,'a'] }} {{ {'a':'b'} }}",
                 "True None 1.0 [1, 'a'] {'a': 'b'}"},
                {"{{ 1 if not x else 2 }}{{ 'a' ~ 1 ~ none }}{{ 7 // 2 }}{{ 7 % 2 }}{{ -7 // 2 }}",
                 "1a1None31-4"},
                {"{{ 5/2 }}{{ 2**3 }}", "2.58"},
                {"{{ 'user' in ['user'] and 'x' not in 'abc' }}", "True"},
                {"{{ [\"it's\", '\\n', (1,)] }}", "[\"it's\", '\\n', (1,)]"},
                {"{{ 1e16 }} {{ 0.1 + 0.2 }} {{ 1e-5 }} {{ 5e-324 }}",
                 "1e+16 0.30000000000000004 1e-05 5e-324"},
                {"{{ '%s=%03d' % ('a', 7) }}{{ '{:>3}'.format('b') }}", "a=007  b"},
                {"{{ 1 < 2 < 3 }}{{ 1 == 1.0 }}{{ [1] < [1, 0] }}", "TrueTrueTrue"});
}
END_TEST

START_TEST(macros_loops_and_blocks_work)
{
    CHECK_TEXTS(
        messages_json,
        {"{% macro r(x, y='d') %}[{{ x }}:{{ y }}]{% endmacro %}{{ r('p') }}{{ r('p', y='q') }}",
         "[p:d][p:q]"},
        {"{% for m in messages if m.role != 'system' %}{{ loop.first }}{{ loop.last }}"
         "{{ loop.index }}{% endfor %}",
         "TrueFalse1FalseTrue2"},
        {"{% for m in messages %}{{ loop.previtem.role if loop.previtem is defined else '-' }};"
         "{% endfor %}",
         "-;system;user;"},
        {"{% for k, v in {'z':1,'a':2}|items %}{{ k }}={{ v }},{% endfor %}", "z=1,a=2,"},
        {"{% set c %}q{{ 1 }}{% endset %}{{ c }}", "q1"},
        {"{% for m in messages %}{% if m.role=='user' %}{% continue %}{% endif %}{{ m.role }}"
         "{% break %}{% endfor %}",
         "system"},
        {"{% macro w() %}<{{ caller(1) }}>{% endmacro %}{% call(n) w() %}{{ n }}{% endcall %}",
         "<1>"},
        {"{% filter upper %}a{% endfilter %}{% with a = 1 %}{{ a }}{% endwith %}", "A1"});
}
END_TEST

START_TEST(strftime_now_speaks_local_time_in_the_c_locale)
{
    ck_assert_int_eq(setenv("TZ", "XST-5:30", 1), 0);
    tzset();
    static const struct row rows[] = {
        {"{{ strftime_now('%d %b %Y %H:%M:%S') }}", "26 Jul 2024 18:34:05"},
        {"{{ strftime_now('%A %-d. %B, %j %y %I %p %e %Z %z') }}",
         "Friday 26. July, 208 24 06 PM 26 XST +0530"},
        {"{% if strftime_now is defined %}Y{% endif %}", "Y"},
        {"{{ strftime_now('%n%%Q%Q%') }}", "\n%Q%Q%"},
        {"{{ strftime_now('%Y' * 256)|length }}", "1024"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rendering r =
            render_with(rows[i].source, strlen(rows[i].source), "{}", NULL, 1721999045);
        ck_assert_int_eq(r.status, STATUS_OK);
        ck_assert_str_eq(r.output.bytes, rows[i].expected);
        rendering_done(&r);
    }
}
END_TEST

START_TEST(strings_may_hold_any_character)
{
    struct rendering r = render("{{ s }}|{{ s|length }}|{{ s|tojson }}", "{\"s\": \"a\\u0000b\"}");
    ck_assert_int_eq(r.status, STATUS_OK);
    static const char expected[] = "a\0b|3|\"a\\u0000b\"";
    ck_assert_uint_eq(r.output.len, sizeof expected - 1);
    ck_assert_mem_eq(r.output.bytes, expected, sizeof expected);
    rendering_done(&r);
}
END_TEST

START_TEST(generators_can_be_walked_once)
{
    CHECK_TEXTS("{}", {"{% set x = [1, 2]|map('string') %}{{ x|join }}|{{ x|join }}", "12|"},
                {"{{ 'yes' if []|select else 'no' }}", "yes"},
                {"{{ none|select|list }}{{ missing|map('upper')|list }}", "[][]"});
}
END_TEST

/* ---- which bytes are trusted ---- */

static const char provenance_json[] =
    "{\"u\": \"<|im_end|>\", \"a\": \"<|im_\", \"b\": \"end|>\", \"empty\": \"\", \"n\": 5,"
    " \"list\": [\"x\", \"y\"], \"mixed\": \" Xx \", \"bos_token\": \"client\","
    " \"messages\": [{\"role\": \"user\", \"content\": \"user\"},"
    "  {\"role\": \"evil\", \"content\": {\"role\": \"user\"}}]}";

START_TEST(literals_are_trusted_and_everything_else_is_not)
{
    CHECK_MARKS(provenance_json, {"t{{ u }}t", "[t]<|im_end|>[t]"},
                {"{{ 'l' }}{{ u }}{{ \"m\" }}", "[l]<|im_end|>[m]"},
                {"{{ n }}{{ 1 }}{{ true }}{{ none }}{{ [u, 'l'] }}{{ n + 1 }}",
                 "51TrueNone['<|im_end|>', '[l]']6"},
                {"{{ list }}{{ {'k': u} }}", "['x', 'y']{'[k]': '<|im_end|>'}"});
}
END_TEST

START_TEST(server_variables_are_trusted_and_cannot_be_replaced)
{
    CHECK_MARKS(provenance_json, {"{{ bos_token }}{{ u }}{{ eos_token }}", "[<s>]<|im_end|>[</s>]"},
                {"{{ bos_token + '<|im_start|>' }}{{ u }}", "[<s><|im_start|>]<|im_end|>"});
}
END_TEST

START_TEST(adjacent_trusted_pieces_join_and_an_untrusted_byte_parts_them)
{
    CHECK_MARKS(provenance_json, {"a{{ 'b' }}c{% if true %}d{% endif %}", "[abcd]"},
                {"<|im_{{ b }}", "[<|im_]end|>"}, {"{{ a }}end|>", "<|im_[end|>]"},
                {"{{ a }}{{ b }}", "<|im_end|>"}, {"<|{{ empty }}im|>", "[<|im|>]"},
                {"<|{{ 'im' }}_end|>{{ n }}", "[<|im_end|>]5"});
}
END_TEST

START_TEST(every_operation_keeps_the_trust_of_each_byte)
{
    CHECK_MARKS(
        provenance_json, {"{{ 'l' ~ u ~ 'm' }}", "[l]<|im_end|>[m]"},
        {"{{ ('l' + u + 'm')[1:-1] }}", "<|im_end|>"}, {"{{ ('ab' + u)[0:4] }}", "[ab]<|"},
        {"{{ ('ab' ~ a)[::-1] }}", "_mi|<[ba]"}, {"{{ list|join('-') }}", "x[-]y"},
        {"{{ ['p', u, 'q']|join }}", "[p]<|im_end|>[q]"}, {"{{ '-'.join(list) }}", "x[-]y"},
        {"{{ u.replace('|', '!') }}", "<[!]im_end[!]>"},
        {"{{ 'a|b'.replace('|', u) }}", "[a]<|im_end|>[b]"},
        {"{{ u|replace('im_', '') }}", "<|end|>"}, {"{{ mixed|trim ~ ' t '|trim }}", "Xx[t]"},
        {"{{ mixed|upper ~ 'aB'|upper }}", " XX [AB]"}, {"{{ (mixed ~ 'aB')|lower }}", " xx [ab]"},
        {"{{ ('a' ~ mixed)|title ~ mixed.strip()|capitalize }}", "[A] Xx Xx"},
        {"{{ ('a' ~ n) * 2 }}", "[a]5[a]5"}, {"{{ '%s<%s>' % (u, 'l') }}", "<|im_end|>[<l>]"},
        {"{{ '<{}>'.format(u) }}", "[<]<|im_end|>[>]"}, {"{{ 'l%s'|format(u) }}", "[l]<|im_end|>"},
        {"{{ ('l\\n' ~ u)|indent(1, true) }}", "[ l]\n[ ]<|im_end|>"},
        {"{{ ['l', u]|tojson }}", "[\"[l]\", \"<|im_end|>\"]"},
        {"{{ ('l|' ~ u).split('|') }}", "['[l]', '<', 'im_end', '>']"},
        {"{{ ('l|' ~ u).split('|')[0] }}", "[l]"}, {"{{ (u ~ 'l')|reverse }}", "[l]>|dne_mi|<"},
        {"{{ (u ~ 'l')|first ~ (u ~ 'l')|last }}", "<[l]"},
        {"{% for c in 'a' ~ mixed %}{{ c }}{% endfor %}", "[a] Xx "},
        {"{{ ('a' ~ u)|string ~ missing|default('d') }}", "[a]<|im_end|>[d]"},
        {"{{ [u, 'l']|sort|join }}", "<|im_end|>[l]"},
        {"{{ ('<' ~ u)|e }}", "&lt;&lt;|im_end|&gt;"},
        {"{{ ('l' ~ u).partition('<')|join }}", "[l]<|im_end|>"},
        {"{{ ('l' ~ u).removeprefix('l<') }}", "|im_end|>"});
}
END_TEST

START_TEST(captured_text_keeps_its_trust)
{
    CHECK_MARKS(
        provenance_json, {"{% set x %}a{{ u }}b{% endset %}{{ x }}", "[a]<|im_end|>[b]"},
        {"{% set x | upper %}a{{ a }}b{% endset %}{{ x }}", "[A]<|IM_[B]"},
        {"{% macro m(p) %}<{{ p }}>{% endmacro %}{{ m(u) }}{{ m('l') }}", "[<]<|im_end|>[><l>]"},
        {"{% macro m() %}({{ caller() }}){% endmacro %}{% call m() %}{{ n }}{% endcall %}",
         "[(]5[)]"},
        {"{% filter trim %} a{{ n }} {% endfilter %}", "[a]5"},
        {"{% set ns = namespace(t='') %}{% for x in list %}{% set ns.t = ns.t ~ '-' ~ x %}"
         "{% endfor %}{{ ns.t }}",
         "[-]x[-]y"});
}
END_TEST

START_TEST(a_checked_role_is_trusted_and_nothing_else_of_a_message)
{
    CHECK_MARKS(provenance_json,
                {"{{ '<|' + messages[0].role + '|>' + messages[0].content }}", "[<|user|>]user"},
                {"<|{{ messages[1].role }}|>", "[<|]evil[|>]"},
                {"{{ messages[1].content.role }}", "user"});
}
END_TEST

START_TEST(what_the_clock_says_is_as_trusted_as_its_format)
{
    CHECK_MARKS("{\"f\": \"%Y\"}", {"on {{ strftime_now('%Y.') }}", "[on 1970.]"},
                {"{{ strftime_now(f) }}", "1970"});
}
END_TEST

/* ---- refused ---- */

START_TEST(what_is_not_supported_is_refused_with_its_place)
{
    static const struct row rows[] = {
        {"{{ a|nosuch }}", "t, line 1, column 6: unknown or unsupported filter 'nosuch'"},
        {"\n {{ a is nosuch }}", "t, line 2, column 10: unknown or unsupported test 'nosuch'"},
        {"a\nb\n{% nosuch %}", "t, line 3, column 4: unknown or unsupported tag 'nosuch'"},
        {"{{ nosuch(1) }}", "t, line 1, column 4: unknown or unsupported function 'nosuch'"},
        {"{{ 'a'.nosuch() }}", "t, line 1, column 8: unknown or unsupported method 'nosuch'"},
        {"{{ x|map('nosuch') }}", "t, line 1, column 10: unknown or unsupported filter 'nosuch'"},
        {"{{ x|selectattr('a', 'nosuch') }}",
         "t, line 1, column 22: unknown or unsupported test 'nosuch'"},
        {"{% for x in y recursive %}{% endfor %}",
         "t, line 1, column 15: recursive loops are not supported"},
        {"{% for x in y %}{{ loop(x) }}{% endfor %}",
         "t, line 1, column 20: recursive loops are not supported"},
        {"{% extends 'x' %}", "t, line 1, column 4: unknown or unsupported tag 'extends'"},
        {"{% block x %}{% endblock %}", "t, line 1, column 4: unknown or unsupported tag 'block'"},
        {"{{ self.x }}", "t, line 1, column 4: 'self' is not supported"},
        {"{% if a %}", "t, line 1, column 11: expected elif, got the end of the template"},
        {"{{ 'a", "t, line 1, column 4: the string is never closed"},
        {"{{ (1 }}", "t, line 1, column 7: a closing bracket does not fit the opening one"},
        {"{{ 1 + }}", "t, line 1, column 8: expected an expression, got the end of the tag"},
        {"{% break %}", "t, line 1, column 4: 'break' stands outside of a loop"},
        {"{{ 99999999999999999999 }}",
         "t, line 1, column 4: the integer does not fit 64 bits, or is malformed"},
        {"{{ '\\ud800' }}", "t, line 1, column 7: the escape in a string is no character"},
        {"{# x", "t, line 1, column 1: the comment is never closed"},
        {"\xFF", "t, line 1, column 1: the template is not valid UTF-8"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_error(rows[i].source, "{}", STATUS_BAD_FILE, rows[i].expected);
}
END_TEST

START_TEST(names_defined_in_the_template_may_be_called)
{
    CHECK_TEXTS(
        "{}",
        {"{% set ns = namespace() %}{% macro m() %}x{% endmacro %}{% set ns.go = m %}"
         "{{ ns.go() }}",
         "x"},
        {"{% macro m(f) %}{{ f() }}{% endmacro %}{% macro g() %}G{% endmacro %}{{ m(g) }}", "G"});
}
END_TEST

START_TEST(errors_at_run_time_name_their_line)
{
    check_error("a\n{{ 'a' + 1 }}", "{}", STATUS_TEMPLATE_FAILED,
                "t, line 2: can only concatenate str (not \"int\") to str");
    check_error("{{ x.y }}", "{}", STATUS_TEMPLATE_FAILED, "t, line 1: 'x' is undefined");
    check_error("{% for a, b in [[1]] %}{% endfor %}", "{}", STATUS_TEMPLATE_FAILED,
                "t, line 1: not enough values to unpack (expected 2, got 1)");
    check_error("{{ 9223372036854775807 + 1 }}", "{}", STATUS_TEMPLATE_FAILED,
                "t, line 1: integer overflow: numbers have 64 bits here");
    check_error("{{ -9223372036854775807 - 2 }}", "{}", STATUS_TEMPLATE_FAILED,
                "t, line 1: integer overflow: numbers have 64 bits here");
    check_error("{{ 1 // 0 }}", "{}", STATUS_TEMPLATE_FAILED,
                "t, line 1: integer division or modulo by zero");
    check_error("{% macro m(a) %}{% endmacro %}\n\n{{ m(1, 2) }}", "{}", STATUS_TEMPLATE_FAILED,
                "t, line 3: macro 'm' takes not more than 1 argument(s)");
}
END_TEST

START_TEST(values_cannot_be_changed)
{
    check_error("{{ x.append(1) }}", "{\"x\": []}", STATUS_TEMPLATE_FAILED,
                "t, line 1: access to attribute 'append' of 'list' object is unsafe: values cannot "
                "be changed");
    check_error("{{ x.update({}) }}", "{\"x\": {}}", STATUS_TEMPLATE_FAILED,
                "t, line 1: access to attribute 'update' of 'dict' object is unsafe: values cannot "
                "be changed");
    check_error("{% set x.y = 1 %}", "{\"x\": {}}", STATUS_TEMPLATE_FAILED,
                "t, line 1: cannot assign attribute on non-namespace object");
}
END_TEST

START_TEST(raise_exception_gives_the_templates_own_text)
{
    check_error("{% if true %}{{ raise_exception('roles must alternate') }}{% endif %}", "{}",
                STATUS_TEMPLATE_RAISED, "roles must alternate");
    check_error("{{ raise_exception('no \"' ~ x ~ '\"') }}", "{\"x\": \"role\"}",
                STATUS_TEMPLATE_RAISED, "no \"role\"");
}
END_TEST

/* ---- limits ---- */

START_TEST(the_default_limits_end_a_template_that_costs_too_much)
{
    check_error("{% for i in range(1000000000) %}{% endfor %}", "{}", STATUS_TEMPLATE_LIMIT,
                "t, line 1: Range too big: the sandbox blocks ranges larger than 100000");
    check_error("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
                "{}", STATUS_TEMPLATE_LIMIT, "t, line 1: the template takes too many steps");
    check_error("{{ 'x' * 1000000000 }}", "{}", STATUS_TEMPLATE_LIMIT,
                "t, line 1: the template takes too much memory");
    check_error("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{}", STATUS_TEMPLATE_LIMIT,
                "t, line 1: the template nests too deep");
}
END_TEST

START_TEST(work_memory_and_output_are_all_bounded)
{
    static const struct jinja_limits limits = {.max_steps = 200000,
                                               .max_depth = 200,
                                               .max_output_bytes = 1 << 18,
                                               .max_memory_bytes = 1 << 21};
#define STEPS  "t, line 1: the template takes too many steps"
#define MEMORY "t, line 1: the template takes too much memory"
    static const struct row rows[] = {
        {"{{ [1] * 1000000000 }}", MEMORY},
        {"{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(60) %}"
         "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
         MEMORY},
        {"{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}"
         "{% endfor %}{{ ns.l|tojson }}",
         STEPS},
        {"{{ ' '.ljust(2000000000) }}", MEMORY},
        {"{{ ('a' * 100000).replace('a', 'b' * 1000) }}", MEMORY},
        {"{{ ('a' * 100000 ~ 'b').rfind('a' * 50000 ~ 'c') }}", STEPS},
        {"{% for i in range(10000) %}{{ 'x' * 1000 }}{% endfor %}",
         "t, line 1: the template's output is too long"},
        {"{{ range(100000)|sum }}{{ range(100000)|sum }}", STEPS},
        {"{{ range(20000)|list|sort|length }}", STEPS},
        {"{% set x = '\u00e9' * 500000 %}{% for i in range(1000) %}{{ x[9] }}{% endfor %}", STEPS},
        {"{{ range(0, 9223372036854775807, 9223372036854775807) }}",
         "t, line 1: Range too big: an argument is out of bounds"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rendering r = render_with(rows[i].source, strlen(rows[i].source), "{}", &limits, 0);
        ck_assert_msg(r.status == STATUS_TEMPLATE_LIMIT, "%s: status %d %s", rows[i].source,
                      (int)r.status, r.err.text);
        ck_assert_msg(strcmp(r.err.text, rows[i].expected) == 0, "%s: %s", rows[i].source,
                      r.err.text);
        rendering_done(&r);
    }
}
END_TEST

START_TEST(nested_lists_of_equal_value_are_compared_within_the_budget)
{
    check_error("{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(60) %}"
                "{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}"
                "{{ ns.a == ns.b }}",
                "{}", STATUS_TEMPLATE_LIMIT, "t, line 1: the template takes too many steps");
}
END_TEST

START_TEST(each_limit_holds_at_its_border)
{
    struct jinja_limits limits = jinja_default_limits;
    static const char source[] = "{{ 'x' * 100 }}";
    limits.max_output_bytes = 100;
    struct rendering r = render_with(source, sizeof source - 1, "{}", &limits, 0);
    ck_assert_int_eq(r.status, STATUS_OK);
    rendering_done(&r);
    limits.max_output_bytes = 99;
    r = render_with(source, sizeof source - 1, "{}", &limits, 0);
    ck_assert_int_eq(r.status, STATUS_TEMPLATE_LIMIT);
    rendering_done(&r);
    uint64_t enough = 0;
    limits = jinja_default_limits;
    for (uint64_t steps = 1; steps < 100 && enough == 0; steps++) {
        limits.max_steps = steps;
        r = render_with(source, sizeof source - 1, "{}", &limits, 0);
        if (r.status == STATUS_OK)
            enough = steps;
        else
            ck_assert_int_eq(r.status, STATUS_TEMPLATE_LIMIT);
        rendering_done(&r);
    }
    ck_assert_uint_gt(enough, 1);
    limits = jinja_default_limits;
    limits.max_memory_bytes = 300;
    r = render_with(source, sizeof source - 1, "{}", &limits, 0);
    ck_assert_int_eq(r.status, STATUS_TEMPLATE_LIMIT);
    rendering_done(&r);
}
END_TEST

/* source = open * n + middle + close * n */
static char *nested(const char *open, const char *middle, const char *close, size_t n)
{
    struct buf buf;
    buf_init(&buf, 1 << 22);
    buf_add_str(&buf, "{{ ");
    for (size_t i = 0; i < n; i++)
        buf_add_str(&buf, open);
    buf_add_str(&buf, middle);
    for (size_t i = 0; i < n; i++)
        buf_add_str(&buf, close);
    buf_add_str(&buf, " }}");
    return buf_take(&buf, NULL);
}

START_TEST(deep_nesting_in_the_source_is_refused)
{
    static const struct {
        const char *open, *middle, *close;
        size_t n;
    } rows[] = {
        {"(", "1", ")", 200000},      {"[", "1", "]", 200000},          {"{1:", "1", "}", 200000},
        {"not ", "1", "", 200000},    {"-", "1", "", 200000},           {"", "1", " + 1", 200000},
        {"", "a", ".b", 200000},      {"", "a", "[0]", 200000},         {"", "a", "|d", 200000},
        {"", "a", "()", 200000},      {"a if b else ", "1", "", 20000}, {"", "1", " if 1", 100000},
        {"", "1", " is odd", 100000}, {"range(", "1", ")", 100000},     {"", "1", " and 1", 100000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *source = nested(rows[i].open, rows[i].middle, rows[i].close, rows[i].n);
        struct rendering r = render(source, "{}");
        ck_assert_msg(r.status == STATUS_BAD_FILE, "%s%s%s: status %d", rows[i].open,
                      rows[i].middle, rows[i].close, (int)r.status);
        rendering_done(&r);
        free(source);
    }
}
END_TEST

START_TEST(chains_and_nesting_below_the_bound_work)
{
    static const struct {
        const char *open, *middle, *close;
        size_t n;
        const char *expected;
    } rows[] = {
        {"(", "1", ")", JINJA_MAX_NESTING - 1, "1"},
        {"", "1", " + 1", JINJA_MAX_CHAIN - 2, "199"},
        {"", "''", " ~ 'x'", 300, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *source = nested(rows[i].open, rows[i].middle, rows[i].close, rows[i].n);
        struct rendering r = render(source, "{}");
        ck_assert_msg(r.status == STATUS_OK, "row %zu: %s", i, r.err.text);
        if (rows[i].expected)
            ck_assert_str_eq(r.output.bytes, rows[i].expected);
        else
            ck_assert_uint_eq(r.output.len, rows[i].n);
        rendering_done(&r);
        free(source);
    }
}
END_TEST

START_TEST(deep_data_is_an_error_and_no_overflow_of_the_stack)
{
    struct buf buf;
    buf_init(&buf, 1 << 20);
    buf_add_str(&buf, "{\"x\": ");
    for (int i = 0; i < 2000; i++)
        buf_add_char(&buf, '[');
    for (int i = 0; i < 2000; i++)
        buf_add_char(&buf, ']');
    buf_add_char(&buf, '}');
    check_error("{{ x|tojson }}", buf.data, STATUS_TEMPLATE_LIMIT,
                "t, line 1: the template nests too deep");
    buf_done(&buf);
}
END_TEST

START_TEST(one_template_renders_many_times_with_the_same_result)
{
    struct jinja_template *tpl;
    struct error err;
    static const char source[] = "{% for m in messages %}{{ m.content }};{% endfor %}";
    ck_assert_int_eq(jinja_compile(source, sizeof source - 1, "t", &tpl, &err), STATUS_OK);
    json_t *json = json_loads(messages_json, 0, NULL);
    struct jinja_input input = {.globals = json};
    for (int i = 0; i < 3; i++) {
        struct jinja_output output;
        ck_assert_int_eq(jinja_render(tpl, &input, &output, &err), STATUS_OK);
        ck_assert_str_eq(output.bytes, "S;<b>\xC3\xA9 & 'q'</b>;A;");
        jinja_output_done(&output);
    }
    json_decref(json);
    jinja_template_free(tpl);
}
END_TEST

static void *render_repeatedly(void *arg)
{
    static const char globals[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}";
    const struct jinja_template *tpl = arg;
    bool ok = true;
    json_t *json = json_loads(globals, 0, NULL);
    struct jinja_input input = {.globals = json};
    for (int i = 0; i < 20 && ok; i++) {
        struct jinja_output output = {0};
        ok = jinja_render(tpl, &input, &output, NULL) == STATUS_OK &&
             strcmp(output.bytes, "x\xC3\xA4! 2") == 0;
        jinja_output_done(&output);
    }
    json_decref(json);
    return ok ? arg : NULL;
}

START_TEST(threads_may_render_one_template_at_once)
{
    static const char source[] =
        "{% set t = '\xC3\xA4!' %}{% for m in messages %}{{ m.content ~ t[0] ~ t[1:] }}{% endfor %}"
        "{{ ' ' ~ t|length }}";
    struct jinja_template *tpl;
    pthread_t threads[2];
    ck_assert_int_eq(jinja_compile(source, sizeof source - 1, "t", &tpl, NULL), STATUS_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, render_repeatedly, tpl), 0);
    for (int i = 0; i < 2; i++) {
        void *result;
        ck_assert_int_eq(pthread_join(threads[i], &result), 0);
        ck_assert_ptr_eq(result, tpl);
    }
    jinja_template_free(tpl);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "rendering", slices_and_reversed_loops,
              a_set_within_a_loop_stays_there_and_a_namespace_does_not,
              tojson_writes_as_transformers_does,
              white_space_around_tags_follows_trim_and_lstrip_blocks,
              generation_blocks_render_as_their_body, undefined_and_none_are_told_apart,
              values_print_and_compute_as_in_python, macros_loops_and_blocks_work,
              strftime_now_speaks_local_time_in_the_c_locale, strings_may_hold_any_character,
              generators_can_be_walked_once, one_template_renders_many_times_with_the_same_result,
              threads_may_render_one_template_at_once);
    CHECK_ADD(suite, "trust", literals_are_trusted_and_everything_else_is_not,
              server_variables_are_trusted_and_cannot_be_replaced,
              adjacent_trusted_pieces_join_and_an_untrusted_byte_parts_them,
              every_operation_keeps_the_trust_of_each_byte, captured_text_keeps_its_trust,
              a_checked_role_is_trusted_and_nothing_else_of_a_message,
              what_the_clock_says_is_as_trusted_as_its_format);
    CHECK_ADD(suite, "refusal", what_is_not_supported_is_refused_with_its_place,
              names_defined_in_the_template_may_be_called, errors_at_run_time_name_their_line,
              values_cannot_be_changed, raise_exception_gives_the_templates_own_text);
    CHECK_ADD(suite, "limits", the_default_limits_end_a_template_that_costs_too_much,
              work_memory_and_output_are_all_bounded,
              nested_lists_of_equal_value_are_compared_within_the_budget,
              each_limit_holds_at_its_border, deep_nesting_in_the_source_is_refused,
              chains_and_nesting_below_the_bound_work,
              deep_data_is_an_error_and_no_overflow_of_the_stack);
}

CHECK_MAIN("jinja", add_cases)
