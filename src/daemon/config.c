/*
 * The configuration from all its sources: defaults, files, environment, flags, in this order.
 */
#include "config.h"

#include "tellerd/daemon/config.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config_priv.h"
#include "tellerd/base/mem.h"
#include "tellerd/daemon/ini.h"

enum { CONFIG_FILE_MAX = 1024 * 1024, CONFIG_PATH_MAX = 4096 };

static const char default_file[] = SYSCONFDIR "/tellerd/tellerd.conf";

/* Variables that begin with TELLERD_ but are no options: the file, the client's, what tests set. */
static const char *const other_variables[] = {
    "TELLERD_CONFIG",    "TELLERD_URL",    "TELLERD_API_KEY", "TELLERD_CPU_PATH",
    "TELLERD_TEST_WAIT", "TELLERD_PYTHON", "TELLERD_SCRIPT",
};

/* What the command line holds besides options. */
struct command_line {
    enum config_command command;
    const char *file; /* of --config, or NULL */
};

static const struct option *option_at(size_t index)
{
    return &config_options[index];
}

static size_t index_of(const struct option *option)
{
    return (size_t)(option - config_options);
}

static void set_defaults(struct config *config)
{
    *config = (struct config){0};
    for (size_t i = 0; i < OPTION_COUNT; i++)
        REQUIRE(option_set(config, option_at(i), option_at(i)->fallback, false, NULL) == STATUS_OK);
}

void config_done(struct config *config)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        option_free(config, option_at(i));
    free(config->file);
    config->file = NULL;
}

/* "unknown key NAME; did you mean NAME?"; what: "key " or "flag --". */
static enum status unknown(struct error *err, const char *what, const char *name)
{
    const struct option *near = option_nearest(name);
    const char *dashes = strchr(what, '-') ? "--" : "";
    char hint[OPTION_NAME_MAX];
    if (!near)
        return error_set(err, STATUS_NOT_FOUND, "unknown %s%s", what, name);
    option_display(near, hint);
    return error_set(err, STATUS_NOT_FOUND, "unknown %s%s; did you mean %s%s?", what, name, dashes,
                     hint);
}

/* --- files ----------------------------------------------------------------- */

struct file_reader {
    struct config *config;
    bool seen[OPTION_COUNT]; /* in this file */
};

static bool is_section(const char *name)
{
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (strcmp(option_at(i)->section, name) == 0)
            return true;
    return false;
}

static enum status on_pair(void *ctx, const char *section, const char *key, const char *value,
                           struct error *err)
{
    struct file_reader *reader = ctx;
    const struct option *option = option_find(key);
    if (!option)
        return unknown(err, "key ", key);
    if (section[0] && !is_section(section))
        return error_set(err, STATUS_NOT_FOUND, "unknown section [%s]; %s belongs in [%s]", section,
                         key, option->section);
    if (section[0] && strcmp(section, option->section) != 0)
        return error_set(err, STATUS_NOT_FOUND, "%s belongs in [%s], not in [%s]", key,
                         option->section, section);
    size_t i = index_of(option);
    if (reader->seen[i] && option->type != VALUE_LIST)
        return error_set(err, STATUS_NOT_FOUND, "%s is there twice", key);
    enum status status = option_set(reader->config, option, value, reader->seen[i], err);
    if (status != STATUS_OK) {
        error_prefix(err, "%s", key);
        return status;
    }
    reader->seen[i] = true;
    reader->config->source[i] = CONFIG_FILE;
    return STATUS_OK;
}

static enum status read_file(struct config *config, const char *path, struct error *err)
{
    char *text;
    size_t len;
    enum status status = ini_read_file(path, CONFIG_FILE_MAX, &text, &len, err);
    if (status != STATUS_OK)
        return STATUS_BAD_CONFIG;
    struct file_reader reader = {.config = config};
    status = ini_parse(path, text, len, on_pair, &reader, err);
    free(text);
    return status;
}

static int is_drop_in(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return entry->d_name[0] != '.' && len > 5 && strcmp(entry->d_name + len - 5, ".conf") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Reads the *.conf files of the folder conf.d beside `file`, by name. */
static enum status read_drop_ins(struct config *config, const char *file, struct error *err)
{
    const char *slash = strrchr(file, '/');
    struct buf path;
    buf_init(&path, CONFIG_PATH_MAX);
    buf_add(&path, file, slash ? (size_t)(slash - file) + 1 : 0);
    buf_add_str(&path, "conf.d");
    struct dirent **entries = NULL;
    int n = path.overflow ? 0 : scandir(path.data, &entries, is_drop_in, by_name);
    size_t folder_len = path.len;
    enum status status = STATUS_OK;
    for (int i = 0; i < n; i++) {
        path.len = folder_len;
        buf_add_char(&path, '/');
        buf_add_str(&path, entries[i]->d_name);
        if (status == STATUS_OK)
            status = path.overflow
                         ? error_set(err, STATUS_BAD_CONFIG, "%s: path too long", path.data)
                         : read_file(config, path.data, err);
        free(entries[i]);
    }
    free(entries);
    buf_done(&path);
    return status;
}

static const char *variable_value(char *const env[], const char *name)
{
    size_t len = strlen(name);
    for (; env && *env; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    return NULL;
}

static enum status read_files(struct config *config, const struct command_line *line,
                              char *const env[], struct error *err)
{
    const char *file = line->file ? line->file : variable_value(env, "TELLERD_CONFIG");
    bool asked_for = file != NULL;
    if (!file)
        file = default_file;
    if (asked_for || access(file, F_OK) == 0) {
        enum status status = read_file(config, file, err);
        if (status != STATUS_OK)
            return status;
        config->file = xstrdup(file);
    }
    return read_drop_ins(config, file, err);
}

/* --- environment ------------------------------------------------------------- */

static enum status read_environment(struct config *config, char *const env[], struct error *err)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        char name[OPTION_NAME_MAX];
        option_variable(option_at(i), name);
        const char *value = variable_value(env, name);
        if (!value)
            continue;
        enum status status = option_set(config, option_at(i), value, false, err);
        if (status != STATUS_OK) {
            error_prefix(err, "environment %s", name);
            return status;
        }
        config->source[i] = CONFIG_ENVIRONMENT;
    }
    return STATUS_OK;
}

static bool is_known_variable(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof other_variables / sizeof other_variables[0]; i++)
        if (strlen(other_variables[i]) == len && memcmp(other_variables[i], name, len) == 0)
            return true;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        char known[OPTION_NAME_MAX];
        option_variable(option_at(i), known);
        if (strlen(known) == len && memcmp(known, name, len) == 0)
            return true;
    }
    return false;
}

static void warn_unknown_variables(char *const env[], struct buf *warnings)
{
    for (; warnings && env && *env; env++) {
        size_t len = strcspn(*env, "=");
        if (strncmp(*env, "TELLERD_", 8) == 0 && !is_known_variable(*env, len))
            buf_printf(warnings, "environment %.*s: no such option\n", (int)len, *env);
    }
}

/* --- flags ------------------------------------------------------------------- */

static const struct {
    const char *name;
    char letter;
    enum config_command command;
} commands[] = {
    {"--check", 't', CONFIG_CHECK},
    {"--dump", 'T', CONFIG_DUMP},
    {"--help", 'h', CONFIG_HELP},
    {"--version", 'V', CONFIG_VERSION},
    {"--print-config", '\0', CONFIG_PRINT_CONFIG},
    {"--print-man-options", '\0', CONFIG_PRINT_MAN},
};

/* Whether the word is a command; sets it. */
static bool take_command(const char *word, struct command_line *line)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        bool is_letter = commands[i].letter && word[0] == '-' && word[1] == commands[i].letter &&
                         word[2] == '\0';
        if (is_letter || strcmp(word, commands[i].name) == 0) {
            line->command = commands[i].command;
            return true;
        }
    }
    return false;
}

/* A flag split in two: --name=value, or --name and the next word. */
struct flag {
    char name[OPTION_NAME_MAX];
    const char *value; /* NULL: none was given */
    bool negated;      /* --no-name of a switch */
};

static enum status split_flag(const char *word, struct flag *ret, struct error *err)
{
    const char *name = word + 2, *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    if (len == 0 || len >= sizeof ret->name)
        return error_set(err, STATUS_BAD_CONFIG, "unknown flag %s; see --help", word);
    memcpy(ret->name, name, len);
    ret->name[len] = '\0';
    ret->value = equals ? equals + 1 : NULL;
    ret->negated = false;
    return STATUS_OK;
}

/* The option that the flag names; strips "no-" from a switch's name. */
static const struct option *option_of_flag(struct flag *flag)
{
    const struct option *option = option_find(flag->name);
    if (!option && strncmp(flag->name, "no-", 3) == 0 && !flag->value) {
        option = option_find(flag->name + 3);
        flag->negated = option && option->type == VALUE_SWITCH;
        if (!flag->negated)
            option = NULL;
    }
    return option;
}

/* Sets an option from argv[*at], and moves *at over its value.  config NULL: only looks. */
static enum status take_flag(int argc, char *const argv[], int *at, struct config *config,
                             struct error *err)
{
    struct flag flag;
    enum status status = split_flag(argv[*at], &flag, err);
    if (status != STATUS_OK)
        return status;
    const struct option *option = option_of_flag(&flag);
    if (!option) {
        unknown(err, "flag --", flag.name);
        return STATUS_BAD_CONFIG;
    }
    if (option->type == VALUE_SWITCH && !flag.value)
        flag.value = flag.negated ? "no" : "yes";
    if (!flag.value && *at + 1 >= argc)
        return error_set(err, STATUS_BAD_CONFIG, "--%s: a value is missing", flag.name);
    if (!flag.value)
        flag.value = argv[++*at];
    if (!config)
        return STATUS_OK;
    size_t i = index_of(option);
    bool append = config->source[i] == CONFIG_FLAG;
    status = option_set(config, option, flag.value, append, err);
    if (status != STATUS_OK)
        error_prefix(err, "--%s", flag.name);
    else
        config->source[i] = CONFIG_FLAG;
    return status;
}

/* -c FILE, --config FILE, --config=FILE at argv[*at]; whether it was one. */
static bool take_file(int argc, char *const argv[], int *at, struct command_line *line)
{
    const char *word = argv[*at];
    if (strncmp(word, "--config=", 9) == 0) {
        line->file = word + 9;
        return true;
    }
    if (strcmp(word, "-c") != 0 && strcmp(word, "--config") != 0)
        return false;
    line->file = *at + 1 < argc ? argv[++*at] : "";
    return true;
}

/* Goes over the command line: once to find the command and the file (config NULL), once to set
 * options. */
static enum status read_arguments(int argc, char *const argv[], struct command_line *line,
                                  struct config *config, struct error *err)
{
    for (int at = 1; at < argc; at++) {
        if (take_command(argv[at], line) || take_file(argc, argv, &at, line))
            continue;
        if (strncmp(argv[at], "--", 2) != 0)
            return error_set(err, STATUS_BAD_CONFIG,
                             "unexpected argument \"%s\" (a model is given with --model); see "
                             "--help",
                             argv[at]);
        enum status status = take_flag(argc, argv, &at, config, err);
        if (status != STATUS_OK)
            return status;
    }
    if (line->file && line->file[0] == '\0')
        return error_set(err, STATUS_BAD_CONFIG, "--config: a file is missing");
    return STATUS_OK;
}

enum status config_load(int argc, char *const argv[], char *const env[], struct config *ret,
                        enum config_command *ret_command, struct buf *warnings, struct error *err)
{
    struct command_line line = {.command = CONFIG_RUN};
    struct config config;
    enum status status = read_arguments(argc, argv, &line, NULL, err);
    if (status != STATUS_OK)
        return status;
    set_defaults(&config);
    if (line.command <= CONFIG_DUMP) {
        status = read_files(&config, &line, env, err);
        if (status == STATUS_OK)
            status = read_environment(&config, env, err);
        if (status == STATUS_OK)
            status = read_arguments(argc, argv, &line, &config, err);
        if (status != STATUS_OK) {
            config_done(&config);
            return status;
        }
        warn_unknown_variables(env, warnings);
    }
    *ret = config;
    *ret_command = line.command;
    return STATUS_OK;
}

/* --- reload -------------------------------------------------------------------- */

static bool same_value(const struct config *a, const struct config *b, const struct option *option)
{
    struct buf text_a, text_b;
    buf_init(&text_a, CONFIG_FILE_MAX);
    buf_init(&text_b, CONFIG_FILE_MAX);
    option_write(a, option, &text_a);
    option_write(b, option, &text_b);
    bool same = text_a.len == text_b.len &&
                (text_a.len == 0 || memcmp(text_a.data, text_b.data, text_a.len) == 0);
    buf_done(&text_a);
    buf_done(&text_b);
    return same;
}

/* Exchanges what a reload may change; twice is as if never. */
static void swap_reloadable(struct config *a, struct config *b)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (!option_at(i)->reload)
            continue;
        enum config_source source = a->source[i];
        a->source[i] = b->source[i];
        b->source[i] = source;
        option_swap(a, b, option_at(i));
    }
}

enum status config_reload(struct config *live, struct config *fresh, struct buf *restart,
                          struct buf *warnings, struct error *err)
{
    TRY(config_check(fresh, warnings, err));
    swap_reloadable(live, fresh);
    enum status status = config_check(live, NULL, err);
    if (status != STATUS_OK) {
        swap_reloadable(live, fresh);
        error_prefix(err, "together with what only a restart changes");
        return status;
    }
    for (size_t i = 0; restart && i < OPTION_COUNT; i++) {
        char name[OPTION_NAME_MAX];
        if (option_at(i)->reload || same_value(live, fresh, option_at(i)))
            continue;
        option_display(option_at(i), name);
        buf_add_str(restart, restart->len > 0 ? " " : "");
        buf_add_str(restart, name);
    }
    return STATUS_OK;
}
