/*
 * tellerctl: asks a tellerd for its state, tells it to drain or reload, and talks to its model.
 */
#include "config.h"

#include <curl/curl.h>
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl_priv.h"
#include "tellerd/base/mem.h"
#include "tellerd/base/utf8.h"

enum { KEY_FILE_MAX = 65536 };

static const char default_url[] = "http://127.0.0.1:8000";
static const char default_control[] = "/run/tellerd/control.sock";

static const char usage[] =
    "Usage: tellerctl [--url URL | --socket PATH] [--key-file FILE] COMMAND\n"
    "\n"
    "  status [--json]       state, model, load\n"
    "  models [--json]       models and their context\n"
    "  chat [FLAGS] [TEXT]   say TEXT (or stdin) and print the answer; a conversation in a "
    "terminal\n"
    "  complete [FLAGS] [TEXT]   continue TEXT (or stdin)\n"
    "  drain                 stop taking requests, finish the running ones, exit\n"
    "  reload                read the configuration anew; says what is wrong with it\n"
    "\n"
    "  --url URL        server, default $TELLERD_URL or http://127.0.0.1:8000\n"
    "  --socket PATH    unix socket of the server; status, drain and reload use the control\n"
    "                   socket, default $TELLERD_CONTROL_SOCKET or /run/tellerd/control.sock\n"
    "  --key-file FILE  file with the API key, default the variable TELLERD_API_KEY\n"
    "\n"
    "Flags of chat and complete: --model ID, --max-tokens N, --temperature T, --top-p P,\n"
    "--top-k K, --min-p P, --seed N, --stop TEXT; of chat: --system TEXT, --history FILE,\n"
    "--no-history.\n"
    "\n"
    "Exit status: 0 done, 1 the server refused, 2 wrong usage, 3 no server, 4 the answer broke\n"
    "off, 130 interrupted.\n";

static const struct {
    const char *name;
    enum ctl_exit (*run)(const struct ctl_server *server, int argc, char **argv);
    bool is_control; /* only the control socket offers it */
} commands[] = {
    {"status", ctl_status, false},     {"models", ctl_models, false}, {"chat", ctl_chat, false},
    {"complete", ctl_complete, false}, {"drain", ctl_drain, true},    {"reload", ctl_reload, true},
};

void ctl_complain(const char *format, ...)
{
    va_list args;
    fflush(stdout);
    fputs("tellerctl: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

void ctl_print(const char *text, size_t len)
{
    static int to_terminal = -1;
    if (to_terminal < 0)
        to_terminal = isatty(STDOUT_FILENO);
    for (size_t at = 0; to_terminal && at < len;) {
        uint32_t code;
        unsigned bad;
        unsigned n = utf8_decode(text + at, len - at, &code, &bad);
        bool control =
            (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0);
        if (n == 0 || control)
            fputs("\xef\xbf\xbd", stdout);
        else
            fwrite(text + at, 1, n, stdout);
        at += n > 0 ? n : bad;
    }
    if (!to_terminal)
        fwrite(text, 1, len, stdout);
}

/* The last word of the first line that is neither empty nor a comment: "KEY", or "NAME KEY" as the
 * daemon's file has it.  NULL after a complaint. */
static char *read_key_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = NULL, *key = NULL;
    size_t size = 0;
    if (!file) {
        ctl_complain("--key-file: %s: %s", path, strerror(errno));
        return NULL;
    }
    while (!key && getline(&line, &size, file) > 0 && strlen(line) < KEY_FILE_MAX) {
        char *start = line + strspn(line, " \t");
        start[strcspn(start, "\r\n")] = '\0';
        for (size_t n = strlen(start); n > 0 && strchr(" \t", start[n - 1]);)
            start[--n] = '\0';
        char *blank = strrchr(start, ' '), *tab = strrchr(start, '\t');
        char *word = blank > tab ? blank + 1 : tab ? tab + 1 : start;
        if (start[0] != '\0' && start[0] != '#')
            key = xstrdup(word);
    }
    free(line);
    fclose(file);
    if (!key)
        ctl_complain("--key-file: %s: there is no key in it", path);
    return key;
}

/* "Authorization: Bearer KEY" (free it); false after a complaint, *ret NULL without a key. */
static bool make_key_header(const char *key_file, char **ret)
{
    const char *variable = getenv("TELLERD_API_KEY");
    char *key = key_file                  ? read_key_file(key_file)
                : variable && variable[0] ? xstrdup(variable)
                                          : NULL;
    struct buf header;
    *ret = NULL;
    if (!key)
        return key_file == NULL;
    bool good = true;
    for (const char *c = key; *c; c++)
        good &= *c > ' ' && *c <= '~';
    if (good) {
        buf_init(&header, 2 * KEY_FILE_MAX);
        buf_printf(&header, "Authorization: Bearer %s", key);
        *ret = buf_take(&header, NULL);
    } else {
        ctl_complain("a key is made of printable ASCII characters");
    }
    free(key);
    return good;
}

struct arguments {
    const char *url;
    const char *socket;
    const char *key_file;
};

/* Reads the flags before the command; -1 to go on, else the exit status. */
static int read_arguments(int argc, char **argv, struct arguments *ret)
{
    static const struct option flags[] = {
        {"url", required_argument, NULL, 'u'},      {"socket", required_argument, NULL, 's'},
        {"key-file", required_argument, NULL, 'k'}, {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},        {NULL, 0, NULL, 0},
    };
    int flag;
    *ret = (struct arguments){.url = getenv("TELLERD_URL")};
    while ((flag = getopt_long(argc, argv, "+u:s:k:hV", flags, NULL)) != -1) {
        switch (flag) {
        case 'u':
            ret->url = optarg;
            break;
        case 's':
            ret->socket = optarg;
            break;
        case 'k':
            ret->key_file = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            return CTL_OK;
        case 'V':
            printf("tellerctl %s, libcurl %s\n", PACKAGE_VERSION,
                   curl_version_info(CURLVERSION_NOW)->version);
            return CTL_OK;
        default:
            fputs(usage, stderr);
            return CTL_USAGE;
        }
    }
    return -1;
}

/* Chooses between URL and sockets: control commands go to the control socket, and so does status
 * where there is one. */
static void choose_server(const struct arguments *arguments, bool is_control, bool is_status,
                          struct ctl_server *server)
{
    const char *control = getenv("TELLERD_CONTROL_SOCKET");
    bool elsewhere = arguments->url || arguments->socket;
    if (!control || !control[0])
        control = default_control;
    server->url = arguments->url && arguments->url[0] ? arguments->url : default_url;
    server->socket = arguments->socket;
    if (!server->socket && (is_control || (is_status && !elsewhere && access(control, F_OK) == 0)))
        server->socket = control;
    if (server->socket)
        server->url = "http://localhost";
}

static int run(const struct arguments *arguments, int argc, char **argv)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(argv[0], commands[i].name) != 0)
            continue;
        struct ctl_server server = {0};
        char *key_header, *url;
        choose_server(arguments, commands[i].is_control, commands[i].run == ctl_status, &server);
        if (!make_key_header(arguments->key_file, &key_header))
            return CTL_USAGE;
        url = xstrdup(server.url);
        for (size_t n = strlen(url); n > 0 && url[n - 1] == '/';)
            url[--n] = '\0';
        server.url = url;
        server.key_header = key_header;
        enum ctl_exit outcome = commands[i].run(&server, argc, argv);
        free(url);
        free(key_header);
        return outcome;
    }
    ctl_complain("unknown command \"%s\"; see --help", argv[0]);
    return CTL_USAGE;
}

int main(int argc, char **argv)
{
    struct arguments arguments;
    setlocale(LC_CTYPE, "");
    int outcome = read_arguments(argc, argv, &arguments);
    if (outcome >= 0)
        return outcome;
    if (optind == argc) {
        fputs(usage, stderr);
        return CTL_USAGE;
    }
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
        ctl_complain("cannot start libcurl");
        return CTL_UNREACHABLE;
    }
    outcome = run(&arguments, argc - optind, argv + optind);
    curl_global_cleanup();
    if (fflush(stdout) != 0 && outcome == CTL_OK)
        outcome = CTL_BROKEN;
    return outcome;
}
