/*
 * What a configuration must hold beyond the range of each value: files, addresses, and that nobody
 * is let in by accident.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_priv.h"
#include "tellerd/base/mem.h"
#include "tellerd/daemon/keys.h"
#include "tellerd/daemon/listen_address.h"

/* Descriptors besides connections: listeners, loop, model files, log. */
/* for all but the connections: listeners, refused connections, the loop's own, files */
enum { SPARE_DESCRIPTORS = 128 };

static enum status check_model(const struct config *config, struct error *err)
{
    struct stat st;
    if (config->model[0] == '\0')
        return error_set(err, STATUS_BAD_CONFIG,
                         "model: no model is given; use --model PATH, or model = PATH in the "
                         "configuration file");
    if (stat(config->model, &st) != 0)
        return error_set(err, STATUS_BAD_CONFIG, "model: %s: %s", config->model, strerror(errno));
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return error_set(err, STATUS_BAD_CONFIG, "model: %s: neither a file nor a directory",
                         config->model);
    if (access(config->model, S_ISDIR(st.st_mode) ? R_OK | X_OK : R_OK) != 0)
        return error_set(err, STATUS_BAD_CONFIG, "model: %s: %s", config->model, strerror(errno));
    return STATUS_OK;
}

static enum status check_engine(const struct config *config, struct error *err)
{
    uint64_t size = config->block_size;
    if ((size & (size - 1)) != 0)
        return error_set(err, STATUS_BAD_CONFIG, "block-size: %d is not 8, 16, 32 or 64",
                         (int)size);
    return STATUS_OK;
}

/* All addresses that were parsed so far. */
struct addresses {
    struct listen_address *items;
    size_t n;
};

static enum status add_address(struct addresses *all, const char *option, const char *text,
                               struct error *err)
{
    struct listen_address address;
    enum status status = listen_address_parse(text, &address, err);
    for (size_t i = 0; status == STATUS_OK && i < all->n; i++)
        if (listen_address_equal(&all->items[i], &address))
            status = error_set(err, STATUS_BAD_CONFIG, "address \"%s\" is there twice", text);
    if (status != STATUS_OK) {
        error_prefix(err, "%s", option);
        return status;
    }
    all->items = xreallocarray(all->items, all->n + 1, sizeof *all->items);
    all->items[all->n++] = address;
    return STATUS_OK;
}

static enum status check_addresses(const struct config *config, struct addresses *all,
                                   struct error *err)
{
    enum status status = STATUS_OK;
    bool open = config->insecure || config->api_keys_file[0];
    if (config->listen.n == 0)
        return error_set(err, STATUS_BAD_CONFIG, "listen: no address is given");
    for (size_t i = 0; status == STATUS_OK && i < config->listen.n; i++) {
        const char *text = config->listen.items[i];
        status = add_address(all, "listen", text, err);
        if (status == STATUS_OK && !open && !all->items[all->n - 1].local)
            status = error_set(err, STATUS_BAD_CONFIG,
                               "listen: other machines can reach %s: set api-keys-file, or "
                               "insecure = yes to serve them without keys",
                               text);
    }
    for (size_t i = 0; status == STATUS_OK && i < config->metrics_listen.n; i++)
        status = add_address(all, "metrics-listen", config->metrics_listen.items[i], err);
    if (status == STATUS_OK && config->control_socket[0]) {
        struct buf text;
        buf_init(&text, 8192);
        if (buf_add_str(&text, "unix:") && buf_add_str(&text, config->control_socket))
            status = add_address(all, "control-socket", text.data, err);
        else
            status = error_set(err, STATUS_BAD_CONFIG, "control-socket: the path is too long");
        buf_done(&text);
    }
    return status;
}

/* "*", or scheme://host[:port] and nothing behind it. */
static bool is_origin(const char *text)
{
    const char *colon = strstr(text, "://");
    if (strcmp(text, "*") == 0)
        return true;
    return colon && colon > text && colon[3] && !strpbrk(colon + 3, "/?# \"");
}

static enum status check_origins(const struct config *config, struct error *err)
{
    for (size_t i = 0; i < config->cors_origins.n; i++)
        if (!is_origin(config->cors_origins.items[i]))
            return error_set(err, STATUS_BAD_CONFIG,
                             "cors-origins: \"%s\" is no origin, such as https://example.org",
                             config->cors_origins.items[i]);
    return STATUS_OK;
}

static enum status check_keys(const struct config *config, struct buf *warnings, struct error *err)
{
    struct api_key *keys = NULL;
    size_t n;
    if (config->api_keys_file[0] == '\0')
        return STATUS_OK;
    enum status status = keys_load(config->api_keys_file, &keys, &n, warnings, err);
    if (status != STATUS_OK)
        error_prefix(err, "api-keys-file");
    free(keys);
    return status;
}

uint64_t config_possible_connections(const struct config *config)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max == RLIM_INFINITY ||
        config->max_connections + SPARE_DESCRIPTORS <= limit.rlim_max)
        return config->max_connections;
    return limit.rlim_max > SPARE_DESCRIPTORS ? limit.rlim_max - SPARE_DESCRIPTORS : 1;
}

static void warn_descriptors(const struct config *config, struct buf *warnings)
{
    uint64_t possible = config_possible_connections(config);
    if (warnings && possible < config->max_connections)
        buf_printf(warnings,
                   "max-connections: %ju connections need %ju open files, which is more than the "
                   "hard limit: %ju will be taken; raise the limit (LimitNOFILE= of the unit, "
                   "ulimit -Hn) or lower max-connections\n",
                   (uintmax_t)config->max_connections,
                   (uintmax_t)(config->max_connections + SPARE_DESCRIPTORS), (uintmax_t)possible);
}

enum status config_check(const struct config *config, struct buf *warnings, struct error *err)
{
    struct addresses all = {0};
    enum status status = check_model(config, err);
    if (status == STATUS_OK)
        status = check_engine(config, err);
    if (status == STATUS_OK)
        status = check_addresses(config, &all, err);
    if (status == STATUS_OK)
        status = check_origins(config, err);
    if (status == STATUS_OK)
        status = check_keys(config, warnings, err);
    if (status == STATUS_OK)
        warn_descriptors(config, warnings);
    free(all.items);
    return status;
}
