/*
 * Talking to the model: chat (one answer, or a conversation in a terminal) and complete.
 */
#include "config.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl_priv.h"
#include "tellerd/base/mem.h"

enum { STOPS_MAX = 16, PROMPT_MAX = CTL_BODY_MAX };

/* Sampling and model as the flags say; json numbers, NULL when not given. */
struct ask {
    const char *model; /* NULL: the server's first */
    const char *system;
    const char *history; /* file; NULL: the usual one */
    bool no_history;
    json_t *fields; /* max_tokens, temperature, ... as they go into the request */
};

/* An answer as it comes in. */
struct answer {
    bool is_chat;
    struct buf text;
    bool is_cut;     /* finish_reason "length" */
    bool has_output; /* something was printed */
};

/* --- flags ------------------------------------------------------------------- */

enum { FLAG_SYSTEM = 256, FLAG_HISTORY, FLAG_NO_HISTORY, FLAG_FIELD };

static const struct option flags[] = {
    {"model", required_argument, NULL, 'm'},
    {"system", required_argument, NULL, FLAG_SYSTEM},
    {"history", required_argument, NULL, FLAG_HISTORY},
    {"no-history", no_argument, NULL, FLAG_NO_HISTORY},
    {"max-tokens", required_argument, NULL, FLAG_FIELD},
    {"temperature", required_argument, NULL, FLAG_FIELD},
    {"top-p", required_argument, NULL, FLAG_FIELD},
    {"top-k", required_argument, NULL, FLAG_FIELD},
    {"min-p", required_argument, NULL, FLAG_FIELD},
    {"seed", required_argument, NULL, FLAG_FIELD},
    {"stop", required_argument, NULL, 's'},
    {NULL, 0, NULL, 0},
};

/* Puts a number into the request, under the flag's name with underscores. */
static bool set_field(struct ask *ask, const char *flag, const char *text)
{
    char name[32];
    snprintf(name, sizeof name, "%s", flag);
    for (char *c = name; *c; c++)
        *c = *c == '-' ? '_' : *c;
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    if (!json_is_number(value)) {
        ctl_complain("--%s: \"%s\" is not a number", flag, text);
        json_decref(value);
        return false;
    }
    json_object_set_new(ask->fields, name, value);
    return true;
}

static bool add_stop(struct ask *ask, const char *text)
{
    json_t *stops = json_object_get(ask->fields, "stop");
    json_t *value = json_string(text);
    if (!stops) {
        stops = json_array();
        json_object_set_new(ask->fields, "stop", stops);
    }
    if (!value || json_array_size(stops) >= STOPS_MAX) {
        ctl_complain(value ? "--stop: too many" : "--stop: not UTF-8");
        json_decref(value);
        return false;
    }
    json_array_append_new(stops, value);
    return true;
}

/* Reads the flags; the words behind them begin at argv[optind]. */
static bool read_flags(struct ask *ask, int argc, char **argv)
{
    int flag, which = 0;
    optind = 0;
    *ask = (struct ask){.fields = json_object()};
    while ((flag = getopt_long(argc, argv, "+m:s:", flags, &which)) != -1) {
        bool ok = true;
        if (flag == 'm')
            ask->model = optarg;
        else if (flag == 's')
            ok = add_stop(ask, optarg);
        else if (flag == FLAG_SYSTEM)
            ask->system = optarg;
        else if (flag == FLAG_HISTORY)
            ask->history = optarg;
        else if (flag == FLAG_NO_HISTORY)
            ask->no_history = true;
        else
            ok = flag == FLAG_FIELD && set_field(ask, flags[which].name, optarg);
        if (!ok) {
            json_decref(ask->fields);
            return false;
        }
    }
    return true;
}

/* The words joined by blanks, or all of stdin when there are none or one "-". */
static bool read_prompt(int argc, char **argv, struct buf *ret)
{
    bool from_stdin = optind == argc || (optind + 1 == argc && strcmp(argv[optind], "-") == 0);
    char block[65536];
    size_t n;
    while (from_stdin && (n = fread(block, 1, sizeof block, stdin)) > 0)
        buf_add(ret, block, n);
    for (int i = optind; !from_stdin && i < argc; i++) {
        buf_add_str(ret, i > optind ? " " : "");
        buf_add_str(ret, argv[i]);
    }
    while (from_stdin && ret->len > 0 && ret->data[ret->len - 1] == '\n')
        ret->data[--ret->len] = '\0';
    if (ret->overflow)
        ctl_complain("the prompt is too long");
    return !ret->overflow;
}

/* --- requests ------------------------------------------------------------------ */

/* Asks for the server's first model; NULL after a complaint.  Free it. */
static char *first_model(const struct ctl_server *server, enum ctl_exit *ret_outcome)
{
    struct buf body;
    buf_init(&body, CTL_BODY_MAX);
    char *model = NULL;
    *ret_outcome = ctl_request(server, "/v1/models", NULL, &body);
    if (*ret_outcome == CTL_OK) {
        json_t *root = json_loadb(body.data ? body.data : "", body.len, 0, NULL);
        json_t *first = json_array_get(json_object_get(root, "data"), 0);
        const char *id = json_string_value(json_object_get(first, "id"));
        if (id)
            model = xstrdup(id);
        else
            ctl_complain("the server names no model");
        *ret_outcome = id ? CTL_OK : CTL_BROKEN;
        json_decref(root);
    }
    buf_done(&body);
    return model;
}

/* The text of a chunk's first choice; "" when it carries none. */
static const char *chunk_text(json_t *choice, bool is_chat, size_t *ret_len)
{
    json_t *text = is_chat ? json_object_get(json_object_get(choice, "delta"), "content")
                           : json_object_get(choice, "text");
    *ret_len = json_string_length(text);
    return *ret_len > 0 ? json_string_value(text) : "";
}

static bool on_chunk(void *ctx, const char *data, size_t len)
{
    struct answer *answer = ctx;
    json_t *root = json_loadb(data, len, JSON_ALLOW_NUL, NULL);
    if (!root) {
        ctl_complain("the server sent something that is no JSON");
        return false;
    }
    const char *message =
        json_string_value(json_object_get(json_object_get(root, "error"), "message"));
    if (message) {
        ctl_complain("the server says: %s", message);
        json_decref(root);
        return false;
    }
    json_t *choice = json_array_get(json_object_get(root, "choices"), 0);
    const char *reason = json_string_value(json_object_get(choice, "finish_reason"));
    size_t text_len;
    const char *text = chunk_text(choice, answer->is_chat, &text_len);
    if (text_len > 0) {
        ctl_print(text, text_len);
        fflush(stdout);
        answer->has_output = true;
        buf_add(&answer->text, text, text_len);
    }
    answer->is_cut |= reason && strcmp(reason, "length") == 0;
    json_decref(root);
    return true;
}

/* Sends body (taken) with the flags' fields, prints the answer as it comes, keeps its text. */
static enum ctl_exit ask_server(const struct ctl_server *server, const struct ask *ask,
                                bool is_chat, const char *model, json_t *body,
                                struct answer *answer)
{
    *answer = (struct answer){.is_chat = is_chat};
    buf_init(&answer->text, CTL_BODY_MAX);
    json_object_update(body, ask->fields);
    json_object_set_new(body, "model", json_string(model));
    json_object_set_new(body, "stream", json_true());
    char *text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    if (!text) {
        ctl_complain("out of memory");
        return CTL_USAGE;
    }
    ctl_catch_interrupts(true);
    enum ctl_exit outcome = ctl_stream(server, is_chat ? "/v1/chat/completions" : "/v1/completions",
                                       text, on_chunk, answer);
    ctl_catch_interrupts(false);
    free(text);
    if (answer->has_output)
        putchar('\n');
    fflush(stdout);
    if (answer->is_cut)
        ctl_complain("the answer was cut at its greatest length");
    return outcome;
}

/* {"role":...,"content":...}; NULL after a complaint when content is no UTF-8. */
static json_t *make_message(const char *role, const char *content, size_t len)
{
    json_t *text = json_stringn(content, len);
    if (!text) {
        ctl_complain("the text is not UTF-8");
        return NULL;
    }
    return json_pack("{s:s, s:o}", "role", role, "content", text);
}

/* --- conversation ---------------------------------------------------------------- */

struct talk {
    const struct ctl_server *server;
    const struct ask *ask;
    const char *model;
    json_t *messages;
};

static bool start_over(struct talk *talk)
{
    json_decref(talk->messages);
    talk->messages = json_array();
    if (!talk->ask->system)
        return true;
    json_t *message = make_message("system", talk->ask->system, strlen(talk->ask->system));
    if (message)
        json_array_append_new(talk->messages, message);
    return message != NULL;
}

/* Says something and hears the answer.  What was heard stays in the conversation, also when it was
 * interrupted; when nothing was, the question leaves it again. */
static enum ctl_exit say(struct talk *talk, const char *text, size_t len)
{
    struct answer answer;
    json_t *message = make_message("user", text, len);
    if (!message)
        return CTL_USAGE;
    json_array_append_new(talk->messages, message);
    json_t *body = json_object();
    json_object_set(body, "messages", talk->messages);
    enum ctl_exit outcome = ask_server(talk->server, talk->ask, true, talk->model, body, &answer);
    json_t *heard =
        answer.text.len > 0 ? make_message("assistant", answer.text.data, answer.text.len) : NULL;
    if (heard)
        json_array_append_new(talk->messages, heard);
    else if (outcome != CTL_OK)
        json_array_remove(talk->messages, json_array_size(talk->messages) - 1);
    buf_done(&answer.text);
    return outcome;
}

/* ${XDG_STATE_HOME:-~/.local/state}/tellerctl/history, its folders made; false without a home. */
static bool usual_history(struct buf *path)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && state[0] == '/')
        buf_add_str(path, state);
    else if (home && home[0] == '/')
        buf_printf(path, "%s/.local/state", home);
    else
        return false;
    buf_add_str(path, "/tellerctl");
    if (path->overflow)
        return false;
    for (char *slash = strchr(path->data + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path->data, 0700); /* mostly there already */
        *slash = '/';
    }
    (void)mkdir(path->data, 0700);
    return buf_add_str(path, "/history");
}

static void start_lines(const struct ask *ask)
{
    struct buf path;
    buf_init(&path, 4096);
    if (ask->no_history)
        ctl_line_start(NULL);
    else if (ask->history)
        ctl_line_start(ask->history);
    else
        ctl_line_start(usual_history(&path) ? path.data : NULL);
    buf_done(&path);
}

static const char talk_help[] = "/reset  forget the conversation\n"
                                "/quit   end (also Ctrl-D)\n"
                                "Ctrl-C cuts an answer short.\n";

static enum ctl_exit converse(struct talk *talk)
{
    char *line;
    start_lines(talk->ask);
    printf("%s; /help helps\n", talk->model);
    while ((line = ctl_line_read("> "))) {
        ctl_line_add(line);
        enum ctl_exit outcome = CTL_OK;
        bool quit = strcmp(line, "/quit") == 0 || strcmp(line, "/exit") == 0;
        if (strcmp(line, "/reset") == 0)
            start_over(talk);
        else if (strcmp(line, "/help") == 0)
            fputs(talk_help, stdout);
        else if (line[strspn(line, " \t")] != '\0' && !quit)
            outcome = say(talk, line, strlen(line));
        free(line);
        if (outcome == CTL_UNREACHABLE)
            return outcome;
        if (quit)
            break;
    }
    if (!line)
        putchar('\n');
    return CTL_OK;
}

/* --- commands ---------------------------------------------------------------------- */

static enum ctl_exit chat(const struct ctl_server *server, const struct ask *ask, const char *model,
                          int argc, char **argv)
{
    struct talk talk = {.server = server, .ask = ask, .model = model};
    enum ctl_exit outcome = CTL_USAGE;
    if (start_over(&talk)) {
        if (optind == argc && isatty(STDIN_FILENO)) {
            outcome = converse(&talk);
        } else {
            struct buf text;
            buf_init(&text, PROMPT_MAX);
            buf_add(&text, "", 0);
            if (read_prompt(argc, argv, &text))
                outcome = say(&talk, text.data, text.len);
            buf_done(&text);
        }
    }
    json_decref(talk.messages);
    return outcome;
}

static enum ctl_exit complete(const struct ctl_server *server, const struct ask *ask,
                              const char *model, int argc, char **argv)
{
    struct buf text;
    struct answer answer;
    enum ctl_exit outcome = CTL_USAGE;
    buf_init(&text, PROMPT_MAX);
    buf_add(&text, "", 0);
    if (read_prompt(argc, argv, &text)) {
        json_t *prompt = json_stringn(text.data, text.len);
        if (prompt) {
            outcome = ask_server(server, ask, false, model, json_pack("{s:o}", "prompt", prompt),
                                 &answer);
            buf_done(&answer.text);
        } else {
            ctl_complain("the text is not UTF-8");
        }
    }
    buf_done(&text);
    return outcome;
}

static enum ctl_exit run(const struct ctl_server *server, int argc, char **argv, bool is_chat)
{
    struct ask ask;
    enum ctl_exit outcome = CTL_OK;
    char *found = NULL;
    if (!read_flags(&ask, argc, argv))
        return CTL_USAGE;
    int first_word = optind;
    if (!ask.model)
        found = first_model(server, &outcome);
    optind = first_word;
    if (outcome == CTL_OK)
        outcome =
            (is_chat ? chat : complete)(server, &ask, ask.model ? ask.model : found, argc, argv);
    free(found);
    json_decref(ask.fields);
    return outcome;
}

enum ctl_exit ctl_chat(const struct ctl_server *server, int argc, char **argv)
{
    return run(server, argc, argv, true);
}

enum ctl_exit ctl_complete(const struct ctl_server *server, int argc, char **argv)
{
    return run(server, argc, argv, false);
}
