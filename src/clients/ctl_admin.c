/*
 * What an operator asks: status, models, drain, reload.
 */
#include "config.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "ctl_priv.h"

/* Reads "[--json]" and nothing else. */
static bool read_arguments(int argc, char **argv, bool *ret_json)
{
    static const struct option flags[] = {{"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};
    int flag;
    *ret_json = false;
    optind = 0;
    while ((flag = getopt_long(argc, argv, "", flags, NULL)) != -1) {
        if (flag != 'j')
            return false;
        *ret_json = true;
    }
    if (optind < argc)
        ctl_complain("%s: unexpected argument \"%s\"", argv[0], argv[optind]);
    return optind == argc;
}

/* Prints a line end after JSON that was printed as it came. */
static void print_raw(const struct buf *answer)
{
    fwrite(answer->data ? answer->data : "", 1, answer->len, stdout);
    putchar('\n');
}

static json_t *parse(const struct buf *answer)
{
    json_t *root = json_loadb(answer->data ? answer->data : "", answer->len, 0, NULL);
    if (!json_is_object(root)) {
        ctl_complain("the answer is not what was expected; is this a tellerd?");
        json_decref(root);
        return NULL;
    }
    return root;
}

static void print_text(const char *text)
{
    ctl_print(text, strlen(text));
}

/* Prints each member of the object on a line: name, value. */
static void print_members(json_t *root)
{
    const char *name;
    json_t *value;
    json_object_foreach(root, name, value)
    {
        char *text = json_dumps(value, JSON_ENCODE_ANY);
        size_t pad = strlen(name) < 18 ? 18 - strlen(name) : 1;
        print_text(name);
        printf("%*s", (int)pad, "");
        print_text(json_is_string(value) ? json_string_value(value) : text ? text : "");
        putchar('\n');
        free(text);
    }
}

enum ctl_exit ctl_status(const struct ctl_server *server, int argc, char **argv)
{
    bool as_json;
    if (!read_arguments(argc, argv, &as_json))
        return CTL_USAGE;
    struct buf answer;
    buf_init(&answer, CTL_BODY_MAX);
    /* the control socket knows more; the port says whether it is ready */
    enum ctl_exit outcome =
        ctl_request(server, server->socket ? "/control/status" : "/readyz", NULL, &answer);
    if (outcome == CTL_OK && as_json) {
        print_raw(&answer);
    } else if (outcome == CTL_OK) {
        json_t *root = parse(&answer);
        if (root)
            print_members(root);
        else
            outcome = CTL_BROKEN;
        json_decref(root);
    }
    buf_done(&answer);
    return outcome;
}

static void print_model(json_t *model)
{
    const char *id = json_string_value(json_object_get(model, "id"));
    json_t *context = json_object_get(model, "max_model_len");
    print_text(id ? id : "?");
    if (json_is_integer(context))
        printf("\t%lld tokens", (long long)json_integer_value(context));
    putchar('\n');
}

enum ctl_exit ctl_models(const struct ctl_server *server, int argc, char **argv)
{
    bool as_json;
    if (!read_arguments(argc, argv, &as_json))
        return CTL_USAGE;
    struct buf answer;
    buf_init(&answer, CTL_BODY_MAX);
    enum ctl_exit outcome = ctl_request(server, "/v1/models", NULL, &answer);
    if (outcome == CTL_OK && as_json) {
        print_raw(&answer);
    } else if (outcome == CTL_OK) {
        json_t *root = parse(&answer);
        json_t *list = json_object_get(root, "data");
        for (size_t i = 0; i < json_array_size(list); i++)
            print_model(json_array_get(list, i));
        outcome = root ? CTL_OK : CTL_BROKEN;
        json_decref(root);
    }
    buf_done(&answer);
    return outcome;
}

/* A call that says what it did in {"status":...}. */
static enum ctl_exit control(const struct ctl_server *server, int argc, char **argv,
                             const char *path)
{
    bool as_json;
    if (!read_arguments(argc, argv, &as_json))
        return CTL_USAGE;
    struct buf answer;
    buf_init(&answer, CTL_BODY_MAX);
    enum ctl_exit outcome = ctl_request(server, path, "{}", &answer);
    if (outcome == CTL_OK && as_json) {
        print_raw(&answer);
    } else if (outcome == CTL_OK) {
        json_t *root = parse(&answer);
        const char *status = json_string_value(json_object_get(root, "status"));
        print_text(status ? status : "done");
        putchar('\n');
        json_decref(root);
    }
    buf_done(&answer);
    return outcome;
}

enum ctl_exit ctl_drain(const struct ctl_server *server, int argc, char **argv)
{
    return control(server, argc, argv, "/control/drain");
}

enum ctl_exit ctl_reload(const struct ctl_server *server, int argc, char **argv)
{
    return control(server, argc, argv, "/control/reload");
}
