#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/check_main.h"
#include "tellerd/daemon/config.h"

enum { MAX_ARGUMENTS = 16 };

static char folder[64];
static char file[128];
static struct config config;
static enum config_command command;
static struct error err;
static struct buf text;

static void setup(void)
{
    char drop_ins[128];
    snprintf(folder, sizeof folder, "/tmp/test_config.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/t.conf", folder);
    snprintf(drop_ins, sizeof drop_ins, "%s/conf.d", folder);
    ck_assert_int_eq(mkdir(drop_ins, 0700), 0);
    buf_init(&text, 1 << 20);
    memset(&err, 0, sizeof err);
}

static void teardown(void)
{
    char line[256];
    snprintf(line, sizeof line, "rm -r %s", folder);
    ck_assert_int_eq(system(line), 0);
    buf_done(&text);
}

static const char *write_file(const char *name, const char *content)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    fputs(content, out);
    ck_assert_int_eq(fclose(out), 0);
    return path;
}

static const char *no_environment[] = {NULL};

/* Loads with flags, up to a NULL. */
static enum status load_env(const char *const env[], ...)
{
    const char *argv[MAX_ARGUMENTS + 1] = {"tellerd"};
    int argc = 1;
    va_list args;
    va_start(args, env);
    while (argc < MAX_ARGUMENTS && (argv[argc] = va_arg(args, const char *)))
        argc++;
    va_end(args);
    buf_reset(&text);
    return config_load(argc, (char *const *)argv, (char *const *)env, &config, &command, &text,
                       &err);
}
#define LOAD(...) load_env(no_environment, "--config", file, __VA_ARGS__, NULL)

/* Loads the content as the file; it must be good. */
static void load_file(const char *content)
{
    write_file("t.conf", content);
    enum status status = load_env(no_environment, "-c", file, NULL);
    ck_assert_msg(status == STATUS_OK, "%s", err.text);
}

static void check_bad_file(const char *content, const char *message)
{
    char wanted[512];
    write_file("t.conf", content);
    ck_assert_int_eq(load_env(no_environment, "-c", file, NULL), STATUS_BAD_CONFIG);
    snprintf(wanted, sizeof wanted, "%s:%s", file, message);
    ck_assert_str_eq(err.text, wanted);
}

START_TEST(defaults_are_those_of_the_table)
{
    load_file("");
    ck_assert_int_eq(command, CONFIG_RUN);
    ck_assert_str_eq(config.model, "");
    ck_assert_uint_eq(config.listen.n, 1);
    ck_assert_str_eq(config.listen.items[0], "127.0.0.1:8000");
    ck_assert_uint_eq(config.max_sequences, 64);
    ck_assert_uint_eq(config.max_body_bytes, 32u << 20);
    ck_assert_uint_eq(config.drain_timeout_ns, UINT64_C(30000000000));
    ck_assert_uint_eq(config.queue_timeout_ns, 0);
    ck_assert_double_eq(config.kv_cache_share, 0.3);
    ck_assert(config.prefix_cache && !config.insecure);
    ck_assert_uint_eq(config.socket_mode, 0660);
    ck_assert_str_eq(config.kv_type_k, "bf16");
    ck_assert_str_eq(config.file, file);
    ck_assert_int_eq(config.source[OPTION_listen], CONFIG_DEFAULT);
    config_done(&config);
}
END_TEST

START_TEST(files_give_values_of_every_type)
{
    load_file("model = \"/m # x.gguf\"\n"
              "[engine]\nkv-cache-bytes = 3G\nkv_cache_share = 25%\nprefix-cache = off\n"
              "kv-type-k = int8\n"
              "[server]\nlisten = 127.0.0.1:1, [::1]:2\nlisten = unix:/x\nsocket-mode = 600\n"
              "drain-timeout = 1500ms\n"
              "[limits]\nmax-queued = 7\nidle-timeout = 2m\nmax-body-bytes = 64KiB\n"
              "write-timeout = 9\n");
    ck_assert_str_eq(config.model, "/m # x.gguf");
    ck_assert_uint_eq(config.kv_cache_bytes, UINT64_C(3) << 30);
    ck_assert_double_eq(config.kv_cache_share, 0.25);
    ck_assert(!config.prefix_cache);
    ck_assert_str_eq(config.kv_type_k, "int8");
    ck_assert_uint_eq(config.listen.n, 3);
    ck_assert_str_eq(config.listen.items[1], "[::1]:2");
    ck_assert_str_eq(config.listen.items[2], "unix:/x");
    ck_assert_uint_eq(config.socket_mode, 0600);
    ck_assert_uint_eq(config.drain_timeout_ns, UINT64_C(1500000000));
    ck_assert_uint_eq(config.max_queued, 7);
    ck_assert_uint_eq(config.idle_timeout_ns, UINT64_C(120000000000));
    ck_assert_uint_eq(config.max_body_bytes, 65536);
    ck_assert_uint_eq(config.write_timeout_ns, UINT64_C(9000000000));
    ck_assert_int_eq(config.source[OPTION_listen], CONFIG_FILE);
    config_done(&config);
}
END_TEST

START_TEST(later_sources_win)
{
    const char *env[] = {"PATH=/bin", "TELLERD_MAX_QUEUED=3", "TELLERD_THREADS=4",
                         "TELLERD_LISTEN=127.0.0.1:3", NULL};
    write_file("t.conf", "max-queued = 1\nthreads = 1\nmax-headers = 11\ncontext = 1\n");
    write_file("conf.d/20.conf", "[limits]\nmax-queued = 2\nmax-headers = 22\n");
    write_file("conf.d/10.conf", "[limits]\nmax-headers = 33\nmax-connections = 44\n");
    write_file("conf.d/.hidden.conf", "nonsense");
    write_file("conf.d/30.conf~", "nonsense");
    ck_assert_int_eq(load_env(env, "-c", file, "--threads=5", "--threads", "6", "--listen",
                              "127.0.0.1:8", "--listen=127.0.0.1:9", NULL),
                     STATUS_OK);
    ck_assert_uint_eq(config.context, 1);
    ck_assert_uint_eq(config.max_headers, 22);
    ck_assert_uint_eq(config.max_connections, 44);
    ck_assert_uint_eq(config.max_queued, 3);
    ck_assert_uint_eq(config.threads, 6);
    ck_assert_uint_eq(config.listen.n, 2);
    ck_assert_str_eq(config.listen.items[0], "127.0.0.1:8");
    ck_assert_int_eq(config.source[OPTION_max_queued], CONFIG_ENVIRONMENT);
    ck_assert_int_eq(config.source[OPTION_threads], CONFIG_FLAG);
    config_done(&config);
}
END_TEST

START_TEST(the_environment_can_name_the_file)
{
    char variable[256];
    const char *env[] = {variable, NULL};
    snprintf(variable, sizeof variable, "TELLERD_CONFIG=%s", write_file("other", "context = 9\n"));
    ck_assert_int_eq(load_env(env, "--max-queued=1", NULL), STATUS_OK);
    ck_assert_uint_eq(config.context, 9);
    ck_assert_uint_eq(text.len, 0);
    config_done(&config);
}
END_TEST

START_TEST(unknown_variables_are_warned_of)
{
    const char *env[] = {"TELLERD_MAX_QUEUD=3", "TELLERD_CPU_PATH=avx2", NULL};
    write_file("t.conf", "");
    ck_assert_int_eq(load_env(env, "-c", file, NULL), STATUS_OK);
    ck_assert_str_eq(text.data, "environment TELLERD_MAX_QUEUD: no such option\n");
    config_done(&config);
}
END_TEST

START_TEST(errors_in_files_name_the_place)
{
    check_bad_file("[limits]\nmax-queud = 3\n", "2:1: unknown key max-queud; did you mean "
                                                "max-queued?");
    check_bad_file("completely-different-thing = 3\n", "1:1: unknown key "
                                                       "completely-different-thing");
    check_bad_file("[engine]\nmax-queued = 3\n",
                   "2:1: max-queued belongs in [limits], not in [engine]");
    check_bad_file("[engin]\nthreads = 3\n",
                   "2:1: unknown section [engin]; threads belongs in [engine]");
    check_bad_file("threads = 1\nthreads = 2\n", "2:1: threads is there twice");
    check_bad_file("threads = 1\nmax_headers = 2\nmax-headers = 3\n",
                   "3:1: max-headers is there twice");
    check_bad_file("[limits]\nmax-queued = 0\n", "2:14: max-queued: 0 is not in 1..1000000");
    check_bad_file("threads = -1\n", "1:11: threads: \"-1\" is not a whole number");
    check_bad_file("threads = 257\n", "1:11: threads: 257 is not in 0..256");
    check_bad_file("threads = 99999999999999999999999\n",
                   "1:11: threads: \"99999999999999999999999\" is not a whole number");
    check_bad_file("kv-cache-bytes = 3X\n",
                   "1:18: kv-cache-bytes: \"3X\" is not a size, such as 512M or 8G");
    check_bad_file("kv-cache-bytes = 17T\n", "1:18: kv-cache-bytes: 17T is not in 0..16T");
    check_bad_file("kv-cache-bytes = 99999999999T\n",
                   "1:18: kv-cache-bytes: \"99999999999T\" is not a size, such as 512M or 8G");
    check_bad_file("idle-timeout = 5 parsecs\n", "1:16: idle-timeout: \"5 parsecs\" is not a time, "
                                                 "such as 500ms, 30s or 5m");
    check_bad_file("kv-cache-share = 1.5\n", "1:18: kv-cache-share: 1.5 is not in 0.01..0.95");
    check_bad_file("kv-cache-share = .\n",
                   "1:18: kv-cache-share: \".\" is not a share, such as 0.3 or 30%");
    check_bad_file("prefix-cache = maybe\n", "1:16: prefix-cache: \"maybe\" is not yes or no");
    check_bad_file("log-level = loud\n", "1:13: log-level: \"loud\" is not one of "
                                         "error|warn|notice|info|debug");
    check_bad_file("log-level =\n", "1:12: log-level: \"\" is not one of "
                                    "error|warn|notice|info|debug");
    check_bad_file("socket-mode = 888\n", "1:15: socket-mode: \"888\" is not a mode of up to four "
                                          "octal digits, such as 0660");
}
END_TEST

START_TEST(a_broken_drop_in_is_named)
{
    char wanted[256];
    write_file("t.conf", "");
    snprintf(wanted, sizeof wanted, "%s:1:2: '=' is missing after the key",
             write_file("conf.d/x.conf", "x"));
    ck_assert_int_eq(LOAD("-t"), STATUS_BAD_CONFIG);
    ck_assert_str_eq(err.text, wanted);
}
END_TEST

START_TEST(a_file_that_was_asked_for_must_be_there)
{
    ck_assert_int_eq(LOAD("-t"), STATUS_BAD_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, file));
    ck_assert_int_eq(load_env(no_environment, "-c", NULL), STATUS_BAD_CONFIG);
    ck_assert_str_eq(err.text, "--config: a file is missing");
}
END_TEST

START_TEST(errors_of_flags_and_variables_name_them)
{
    const char *env[] = {"TELLERD_THREADS=many", NULL};
    write_file("t.conf", "");
    ck_assert_int_eq(load_env(env, "-c", file, NULL), STATUS_BAD_CONFIG);
    ck_assert_str_eq(err.text, "environment TELLERD_THREADS: \"many\" is not a whole number");
    ck_assert_int_eq(LOAD("--threads", "x"), STATUS_BAD_CONFIG);
    ck_assert_str_eq(err.text, "--threads: \"x\" is not a whole number");
    ck_assert_int_eq(LOAD("--threads"), STATUS_BAD_CONFIG);
    ck_assert_str_eq(err.text, "--threads: a value is missing");
    ck_assert_int_eq(LOAD("--thread=3"), STATUS_BAD_CONFIG);
    ck_assert_str_eq(err.text, "unknown flag --thread; did you mean --threads?");
    ck_assert_int_eq(LOAD("--no-threads"), STATUS_BAD_CONFIG);
    ck_assert_int_eq(LOAD("--"), STATUS_BAD_CONFIG);
    ck_assert_int_eq(LOAD("--=x"), STATUS_BAD_CONFIG);
    ck_assert_int_eq(LOAD("-x"), STATUS_BAD_CONFIG);
    ck_assert_int_eq(LOAD("model.gguf"), STATUS_BAD_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "--model"));
}
END_TEST

START_TEST(switches_take_a_value_or_none)
{
    write_file("t.conf", "prefix-cache = no\n");
    ck_assert_int_eq(LOAD("--prefix-cache", "--insecure=true"), STATUS_OK);
    ck_assert(config.prefix_cache && config.insecure);
    config_done(&config);
    ck_assert_int_eq(LOAD("--no-prefix-cache", "--no-insecure"), STATUS_OK);
    ck_assert(!config.prefix_cache && !config.insecure);
    config_done(&config);
    ck_assert_int_eq(LOAD("--prefix_cache=yes"), STATUS_OK);
    ck_assert(config.prefix_cache);
    config_done(&config);
}
END_TEST

START_TEST(commands_are_seen_wherever_they_stand)
{
    static const struct {
        const char *flag;
        enum config_command command;
    } cases[] = {
        {"-t", CONFIG_CHECK},
        {"--check", CONFIG_CHECK},
        {"-T", CONFIG_DUMP},
        {"--dump", CONFIG_DUMP},
        {"-h", CONFIG_HELP},
        {"--help", CONFIG_HELP},
        {"-V", CONFIG_VERSION},
        {"--version", CONFIG_VERSION},
        {"--print-config", CONFIG_PRINT_CONFIG},
        {"--print-man-options", CONFIG_PRINT_MAN},
    };
    write_file("t.conf", "");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(LOAD("--threads=3", cases[i].flag, "--threads", "4"), STATUS_OK);
        ck_assert_int_eq(command, cases[i].command);
        config_done(&config);
    }
    /* a value that looks like a command is a value */
    ck_assert_int_eq(LOAD("--model-name", "-t"), STATUS_OK);
    ck_assert_int_eq(command, CONFIG_RUN);
    ck_assert_str_eq(config.model_name, "-t");
    config_done(&config);
}
END_TEST

START_TEST(help_needs_no_good_file)
{
    write_file("t.conf", "nonsense");
    ck_assert_int_eq(LOAD("--help"), STATUS_OK);
    config_done(&config);
}
END_TEST

START_TEST(a_dump_reads_back_the_same)
{
    struct buf again;
    load_file("model = \" a;b # \\\"\\\\ \"\n[server]\nlisten = 127.0.0.1:1, unix:/x\n"
              "[limits]\nidle-timeout = 90s\nmax-body-bytes = 1500K\nqueue-timeout = 250ms\n"
              "[engine]\nkv-cache-share = 0.125\n");
    buf_reset(&text);
    config_write_dump(&config, &text);
    ck_assert_ptr_nonnull(strstr(text.data, "idle-timeout = 90s  # file\n"));
    ck_assert_ptr_nonnull(strstr(text.data, "max-body-bytes = 1500K  # file\n"));
    ck_assert_ptr_nonnull(strstr(text.data, "queue-timeout = 250ms  # file\n"));
    ck_assert_ptr_nonnull(strstr(text.data, "threads = 0\n"));
    config_done(&config);
    buf_init(&again, 1 << 20);
    char *first = buf_take(&text, NULL);
    load_file(first);
    config_write_dump(&config, &again);
    char *a = first, *b = again.data;
    /* only the sources differ: everything came from a file now */
    while (*a && *b) {
        size_t n = strcspn(a, "\n"), k = strcspn(b, "\n");
        char *note_a = memmem(a, n, "  # ", 4), *note_b = memmem(b, k, "  # ", 4);
        size_t len = note_a ? (size_t)(note_a - a) : n;
        if (note_b && note_b != a)
            ck_assert_uint_eq(len, (size_t)(note_b - b));
        ck_assert_mem_eq(a, b, len);
        a += n + 1;
        b += k + 1;
    }
    free(first);
    buf_done(&again);
    config_done(&config);
}
END_TEST

START_TEST(the_reference_file_is_valid_and_changes_nothing)
{
    struct buf defaults, with_file;
    const char *argv[] = {"tellerd", "-c", "/dev/null", NULL};
    buf_init(&defaults, 1 << 20);
    buf_init(&with_file, 1 << 20);
    ck_assert_int_eq(config_load(3, (char *const *)argv, NULL, &config, &command, NULL, &err),
                     STATUS_OK);
    config_write_dump(&config, &defaults);
    config_done(&config);
    buf_reset(&text);
    config_write_reference(&text);
    char *reference = buf_take(&text, NULL);
    load_file(reference);
    config_write_dump(&config, &with_file);
    config_done(&config);
    ck_assert_str_eq(strchr(defaults.data, '\n'), strchr(with_file.data, '\n'));
    /* and with every value in force, it still says what the defaults say */
    for (char *c = reference; (c = strstr(c, "\n#")); c++)
        if (c[2] != ' ' && c[2] != '\n')
            c[1] = ' ';
    load_file(reference);
    ck_assert_uint_eq(config.max_sequences, 64);
    ck_assert_int_eq(config.source[OPTION_max_sequences], CONFIG_FILE);
    config_done(&config);
    free(reference);
    buf_done(&defaults);
    buf_done(&with_file);
}
END_TEST

START_TEST(every_option_is_in_every_text)
{
    static const char *const names[] = {
#define OPTION(name, ...) #name,
#include "tellerd/daemon/options.def"
#undef OPTION
    };
    void (*const writers[])(struct buf *) = {config_write_help, config_write_reference};
    for (size_t w = 0; w < 2; w++) {
        buf_reset(&text);
        writers[w](&text);
        ck_assert(!text.overflow);
        for (size_t i = 0; i < OPTION_COUNT; i++) {
            char name[64];
            snprintf(name, sizeof name, "%s", names[i]);
            for (char *c = name; *c; c++)
                *c = *c == '_' ? '-' : *c;
            ck_assert_msg(strstr(text.data, name) != NULL, "%s", name);
        }
        /* but for the one with the path of the file, which depends on the build */
        for (const char *line = text.data; *line; line += strcspn(line, "\n") + 1)
            if (strncmp(line, "  -c, --config", 14) != 0)
                ck_assert_uint_le(strcspn(line, "\n"), 90);
    }
    buf_reset(&text);
    config_write_man(&text);
    ck_assert_ptr_nonnull(strstr(text.data, ".B kv\\-cache\\-bytes\n"));
}
END_TEST

/* Loads the content, before it a model that is there. */
static void load_with_model(const char *content)
{
    char all[1024], model[256];
    snprintf(model, sizeof model, "%s", write_file("m.gguf", "x"));
    snprintf(all, sizeof all, "model = %s\n%s", model, content);
    load_file(all);
}

START_TEST(a_reload_takes_only_what_may_change)
{
    struct config live;
    struct buf restart;
    load_with_model("[limits]\nmax-queued = 1\n[log]\nlog-level = warn\n"
                    "[server]\ncors-origins = https://a\n");
    live = config;
    load_with_model("model-name = b\n[limits]\nmax-queued = 2\n[engine]\nthreads = 3\n");
    buf_init(&restart, 1000);
    ck_assert_int_eq(config_reload(&live, &config, &restart, NULL, &err), STATUS_OK);
    config_done(&config);
    ck_assert_str_eq(restart.data, "model-name threads");
    ck_assert_str_eq(live.model_name, "");
    ck_assert_uint_eq(live.threads, 0);
    ck_assert_uint_eq(live.max_queued, 2);
    ck_assert_str_eq(live.log_level, "info");
    ck_assert_uint_eq(live.cors_origins.n, 0);
    ck_assert_int_eq(live.source[OPTION_log_level], CONFIG_DEFAULT);
    buf_done(&restart);
    config_done(&live);
}
END_TEST

START_TEST(a_reload_never_leaves_an_open_address_without_keys)
{
    struct config live;
    char content[512], keys[256];
    snprintf(keys, sizeof keys, "%s", write_file("keys", "a sk-0123456789abcdef\n"));
    snprintf(content, sizeof content,
             "[server]\nlisten = 0.0.0.0:1\n[auth]\napi-keys-file = %s\n"
             "[limits]\nmax-queued = 1\n",
             keys);
    load_with_model(content);
    live = config;
    /* good by itself, but the old address stays until a restart */
    load_with_model("[server]\nlisten = 127.0.0.1:1\n[limits]\nmax-queued = 2\n");
    ck_assert_int_eq(config_check(&config, NULL, &err), STATUS_OK);
    ck_assert_int_eq(config_reload(&live, &config, NULL, NULL, &err), STATUS_BAD_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "other machines can reach 0.0.0.0:1"));
    ck_assert_str_eq(live.api_keys_file, keys);
    ck_assert_uint_eq(live.max_queued, 1);
    ck_assert_int_eq(live.source[OPTION_api_keys_file], CONFIG_FILE);
    ck_assert_uint_eq(config.max_queued, 2);
    config_done(&config);
    config_done(&live);
}
END_TEST

/* config_check of a file that begins with a good model. */
static enum status check(const char *content)
{
    load_with_model(content);
    buf_reset(&text);
    buf_add(&text, "", 0);
    enum status status = config_check(&config, &text, &err);
    config_done(&config);
    return status;
}

START_TEST(a_good_configuration_passes)
{
    ck_assert_msg(check("") == STATUS_OK, "%s", err.text);
    ck_assert_int_eq(check("[server]\nlisten = [::1]:0, unix:/run/x, 127.0.0.1:0, 127.0.0.1:0\n"
                           "metrics-listen = 0.0.0.0:9000\ncontrol-socket = /run/c\n"
                           "cors-origins = *, http://localhost:3000\n"),
                     STATUS_OK);
    ck_assert_int_eq(check("[server]\nlisten = 0.0.0.0:8000\n[auth]\ninsecure = yes\n"), STATUS_OK);
}
END_TEST

START_TEST(what_cannot_work_is_refused_with_its_option)
{
    static const struct {
        const char *content;
        const char *message;
    } cases[] = {
        {"[engine]\nblock-size = 24\n", "block-size: 24 is not 8, 16, 32 or 64"},
        {"[server]\nlisten =\n", "listen: no address is given"},
        {"[server]\nlisten = 127.0.0.1\n", "listen: address \"127.0.0.1\": the port is missing"},
        {"[server]\nlisten = 0.0.0.0:1\n", "listen: other machines can reach 0.0.0.0:1"},
        {"[server]\nlisten = 127.0.0.1:1, localhost:1\n",
         "listen: address \"localhost:1\" is there twice"},
        {"[server]\nmetrics-listen = 127.0.0.1:8000\n",
         "metrics-listen: address \"127.0.0.1:8000\" is there twice"},
        {"[server]\ncontrol-socket = rel\n", "control-socket: address \"unix:rel\""},
        {"[server]\ncors-origins = example.org\n", "cors-origins: \"example.org\" is no origin"},
        {"[server]\ncors-origins = https://a/b\n", "cors-origins: \"https://a/b\" is no origin"},
        {"[auth]\napi-keys-file = /nonexistent/keys\n", "api-keys-file: /nonexistent/keys"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(check(cases[i].content), STATUS_BAD_CONFIG);
        ck_assert_msg(strncmp(err.text, cases[i].message, strlen(cases[i].message)) == 0, "%s",
                      err.text);
    }
}
END_TEST

/* Lowers a limit for good: of the test's own process. */
START_TEST(connections_that_open_files_do_not_allow_are_not_taken)
{
    enum { HARD = 300, SPARE = 128 };
    static const struct {
        const char *content;
        unsigned possible;
    } cases[] = {
        {"[limits]\nmax-connections = 172\n", HARD - SPARE}, /* just enough */
        {"[limits]\nmax-connections = 173\n", HARD - SPARE},
        {"[limits]\nmax-connections = 100000\n", HARD - SPARE},
        {"[limits]\nmax-connections = 5\n", 5},
    };
    const struct rlimit limit = {HARD, HARD};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        load_with_model(cases[i].content);
        buf_reset(&text);
        buf_add(&text, "", 0);
        ck_assert_int_eq(config_check(&config, &text, &err), STATUS_OK);
        ck_assert_uint_eq(config_possible_connections(&config), cases[i].possible);
        ck_assert_int_eq(strstr(text.data, "raise the limit") != NULL,
                         config.max_connections > cases[i].possible);
        config_done(&config);
    }
}
END_TEST

START_TEST(a_model_must_be_there)
{
    load_file("");
    ck_assert_int_eq(config_check(&config, NULL, &err), STATUS_BAD_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "no model is given"));
    config_done(&config);
    load_file("model = /nonexistent\n");
    ck_assert_int_eq(config_check(&config, NULL, &err), STATUS_BAD_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "/nonexistent"));
    config_done(&config);
    load_file("model = /dev/null\n");
    ck_assert_int_eq(config_check(&config, NULL, &err), STATUS_BAD_CONFIG);
    config_done(&config);
}
END_TEST

static void add_cases(Suite *suite)
{
    static const TTest *const *const tests[] = {
        &defaults_are_those_of_the_table,
        &files_give_values_of_every_type,
        &later_sources_win,
        &the_environment_can_name_the_file,
        &unknown_variables_are_warned_of,
        &errors_in_files_name_the_place,
        &a_broken_drop_in_is_named,
        &a_file_that_was_asked_for_must_be_there,
        &errors_of_flags_and_variables_name_them,
        &switches_take_a_value_or_none,
        &commands_are_seen_wherever_they_stand,
        &help_needs_no_good_file,
        &a_dump_reads_back_the_same,
        &the_reference_file_is_valid_and_changes_nothing,
        &every_option_is_in_every_text,
        &a_reload_takes_only_what_may_change,
        &a_reload_never_leaves_an_open_address_without_keys,
        &a_good_configuration_passes,
        &what_cannot_work_is_refused_with_its_option,
        &connections_that_open_files_do_not_allow_are_not_taken,
        &a_model_must_be_there,
    };
    TCase *tcase = tcase_create("config");
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
}

CHECK_MAIN("config", add_cases)
