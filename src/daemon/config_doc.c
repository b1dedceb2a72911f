/*
 * Texts made from the table of options: help, reference file, man page, and the dump of a live
 * configuration.
 */
#include "config.h"

#include <string.h>

#include "config_priv.h"

enum { HELP_INDENT = 8, HELP_COLUMNS = 80 };

/* Adds text in lines of at most HELP_COLUMNS columns, each after `prefix`. */
static void add_wrapped(struct buf *out, const char *prefix, const char *text)
{
    size_t room = HELP_COLUMNS - strlen(prefix);
    while (*text) {
        size_t n = strlen(text);
        if (n > room)
            for (n = room; n > 0 && text[n] != ' ';)
                n--;
        if (n == 0)
            n = strcspn(text, " "); /* a word longer than the line */
        buf_add_str(out, prefix);
        buf_add(out, text, n);
        buf_add_char(out, '\n');
        text += n;
        text += strspn(text, " ");
    }
}

/* " PATH" or " a|b|c": what follows the flag's name. */
static void add_operand(struct buf *out, const struct option *option)
{
    const char *what = option->unit;
    if (option->type == VALUE_SWITCH)
        return;
    if (option->type == VALUE_CHOICE)
        what = option->min;
    else if (option->type == VALUE_COUNT || option->type == VALUE_SHARE)
        what = "NUMBER";
    else if (option->type == VALUE_BYTES)
        what = "SIZE";
    else if (option->type == VALUE_DURATION)
        what = "TIME";
    else if (option->type == VALUE_MODE)
        what = "MODE";
    buf_add_char(out, ' ');
    buf_add_str(out, what);
}

/* "From 1 to 4096 sequences. A reload applies it."; begins with a blank when there is anything. */
static void add_facts(struct buf *out, const struct option *option)
{
    bool has_range = option->type == VALUE_COUNT || option->type == VALUE_BYTES ||
                     option->type == VALUE_DURATION || option->type == VALUE_SHARE;
    bool has_unit = option->type == VALUE_COUNT;
    if (has_range)
        buf_printf(out, " From %s to %s%s%s.", option->min, option->max, has_unit ? " " : "",
                   has_unit ? option->unit : "");
    if (option->type == VALUE_CHOICE) {
        buf_add_str(out, " One of");
        for (const char *at = option->min; *at;) {
            size_t n = strcspn(at, "|");
            buf_printf(out, "%s%.*s", at == option->min ? " " : ", ", (int)n, at);
            at += n + (at[n] == '|');
        }
        buf_add_char(out, '.');
    }
    if (option->reload)
        buf_add_str(out, " A reload applies it.");
}

/* "Default: 64." and the facts. */
static void add_default_and_facts(struct buf *out, const struct option *option)
{
    buf_printf(out, "Default: %s.", option->fallback[0] ? option->fallback : "empty");
    add_facts(out, option);
}

/* Help text, default when asked for, and facts, in wrapped lines. */
static void add_description(struct buf *out, const char *prefix, const struct option *option,
                            bool with_default)
{
    struct buf text;
    buf_init(&text, 4096);
    buf_add_str(&text, option->help);
    if (with_default) {
        buf_add_char(&text, ' ');
        add_default_and_facts(&text, option);
    } else {
        add_facts(&text, option);
    }
    add_wrapped(out, prefix, text.data);
    buf_done(&text);
}

static bool begins_section(size_t i)
{
    return i == 0 || strcmp(config_options[i - 1].section, config_options[i].section) != 0;
}

void config_write_help(struct buf *out)
{
    buf_add_str(out,
                "Usage: tellerd [--model PATH] [--listen ADDRESS] [OPTION]...\n"
                "Serves a language model over HTTP, in the manner of the OpenAI API.\n"
                "\n"
                "  -c, --config FILE     read FILE instead of " SYSCONFDIR "/tellerd/tellerd.conf\n"
                "  -t, --check           check the configuration, then exit (0, or 78 when "
                "it is bad)\n"
                "  -T, --dump            print the effective configuration, then exit\n"
                "      --print-config    print a configuration file with every option "
                "explained\n"
                "      --print-man-options  print the options as the manual page has them\n"
                "  -h, --help            print this\n"
                "  -V, --version         print the version and how it was built\n"
                "\n"
                "Each option can also stand in the file, in the section named here, and in "
                "the\n"
                "environment (--max-queued: TELLERD_MAX_QUEUED). Flags win over environment,\n"
                "environment over file. SIGHUP reloads: options that say so change at once, the\n"
                "others need a restart.\n");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &config_options[i];
        char name[OPTION_NAME_MAX];
        option_display(option, name);
        if (begins_section(i))
            buf_printf(out, "\n[%s]\n", option->section);
        buf_printf(out, "  --%s%s", option->type == VALUE_SWITCH ? "[no-]" : "", name);
        add_operand(out, option);
        buf_add_char(out, '\n');
        add_description(out, "        ", option, true);
    }
}

void config_write_reference(struct buf *out)
{
    buf_add_str(out,
                "# Configuration of tellerd; see tellerd.conf(5). All options are here with their\n"
                "# defaults. This file was made by `tellerd --print-config`.\n"
                "#\n"
                "# Files named *.conf in the folder conf.d beside this one are read after it.\n"
                "# The environment (TELLERD_MAX_QUEUED) and flags (--max-queued) win over files.\n"
                "# Sizes: 512K, 32M, 8G. Times: 500ms, 30s, 5m, 1h. Switches: yes, no.\n"
                "# `tellerd -t` checks, `tellerd -T` shows what holds. SIGHUP reloads: options\n"
                "# that say so change at once, the others need a restart.\n");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &config_options[i];
        char name[OPTION_NAME_MAX];
        option_display(option, name);
        if (begins_section(i))
            buf_printf(out, "\n[%s]\n", option->section);
        buf_add_char(out, '\n');
        add_description(out, "# ", option, false);
        buf_printf(out, "#%s =%s%s\n", name, option->fallback[0] ? " " : "", option->fallback);
    }
}

/* roff: hyphens are \-, backslashes doubled, a line must not begin with a control character. */
static void add_roff(struct buf *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        buf_add_str(out, "\\&");
    for (; *text; text++) {
        if (*text == '-')
            buf_add_str(out, "\\-");
        else if (*text == '\\')
            buf_add_str(out, "\\e");
        else
            buf_add_char(out, *text);
    }
}

/* Adds text, one sentence a line as man pages are written. */
static void add_roff_sentences(struct buf *out, const char *text)
{
    while (*text) {
        const char *end = strstr(text, ". ");
        size_t n = end ? (size_t)(end - text) + 1 : strlen(text);
        char line[1024];
        size_t kept = n < sizeof line ? n : sizeof line - 1;
        memcpy(line, text, kept);
        line[kept] = '\0';
        add_roff(out, line);
        buf_add_char(out, '\n');
        text += n + (end ? 1 : 0);
    }
}

void config_write_man(struct buf *out)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &config_options[i];
        struct buf facts;
        char name[OPTION_NAME_MAX];
        option_display(option, name);
        if (begins_section(i))
            buf_printf(out, ".SS [%s]\n", option->section);
        buf_add_str(out, ".TP\n.B ");
        add_roff(out, name);
        buf_add_char(out, '\n');
        add_roff_sentences(out, option->help);
        buf_init(&facts, 1024);
        add_default_and_facts(&facts, option);
        add_roff_sentences(out, facts.data);
        buf_done(&facts);
    }
}

/* Whether a value would read back differently without quotes. */
static bool needs_quotes(const char *text)
{
    size_t len = strlen(text);
    return len > 0 && (strpbrk(text, "#;\"\\") || text[0] == ' ' || text[0] == '\t' ||
                       text[len - 1] == ' ' || text[len - 1] == '\t');
}

static void add_value(struct buf *out, const char *text)
{
    if (!needs_quotes(text)) {
        buf_add_str(out, text);
        return;
    }
    buf_add_char(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            buf_add_char(out, '\\');
        buf_add_char(out, *text);
    }
    buf_add_char(out, '"');
}

void config_write_dump(const struct config *config, struct buf *out)
{
    static const char *const sources[] = {"", "  # file", "  # environment", "  # flag"};
    buf_printf(out, "# configuration file: %s\n", config->file ? config->file : "none");
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &config_options[i];
        struct buf text;
        char name[OPTION_NAME_MAX];
        option_display(option, name);
        if (begins_section(i))
            buf_printf(out, "\n[%s]\n", option->section);
        buf_init(&text, 1 << 20);
        buf_add(&text, "", 0);
        option_write(config, option, &text);
        buf_printf(out, "%s =%s", name, text.len > 0 ? " " : "");
        add_value(out, text.data);
        buf_add_str(out, sources[config->source[i]]);
        buf_add_char(out, '\n');
        buf_done(&text);
    }
}
