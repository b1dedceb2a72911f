#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "daemon_priv.h"
#include "tellerd/base/clock.h"
#include "tellerd/base/log.h"
#include "tellerd/base/mem.h"
#include "tellerd/daemon/keys.h"

/* SIGHUP and tellerctl reload: everything is read and checked first, then applied as a whole, or
 * not at all. */

extern char **environ;

void daemon_http_limits(const struct config *config, struct http_limits *ret)
{
    *ret = (struct http_limits){
        .parse = {.max_header_bytes = config->max_header_bytes,
                  .max_line_bytes = config->max_header_line_bytes,
                  .max_headers = config->max_headers,
                  .max_body_bytes = config->max_body_bytes},
        .max_connections = (uint32_t)config_possible_connections(config),
        .max_requests = (uint32_t)config->keepalive_requests,
        .header_timeout_ns = config->header_timeout_ns,
        .body_timeout_ns = config->body_timeout_ns,
        .body_min_rate = config->body_min_rate,
        .idle_timeout_ns = config->idle_timeout_ns,
        .write_timeout_ns = config->write_timeout_ns,
        .max_output_buffer = config->max_output_buffer,
    };
}

void daemon_api_config(const struct config *config, struct api_config *ret)
{
    *ret = (struct api_config){
        .max_body_bytes = config->max_body_bytes,
        .queue_timeout_ns = config->queue_timeout_ns,
        .keepalive_ns = config->sse_keepalive_ns,
        .metrics_need_key = config->metrics_auth,
        .version = PACKAGE_VERSION,
    };
}

enum status daemon_load_keys(struct daemon *daemon, const struct config *config, struct error *err)
{
    struct api_key *keys = NULL;
    size_t n_keys = 0;
    if (config->api_keys_file[0])
        TRY(keys_load(config->api_keys_file, &keys, &n_keys, NULL, err));
    api_set_keys(daemon->api, keys, n_keys);
    free(keys);
    return STATUS_OK;
}

void daemon_set_cors(struct daemon *daemon)
{
    struct http_cors cors = {(const char *const *)daemon->config.cors_origins.items,
                             daemon->config.cors_origins.n};
    http_server_set_cors(daemon->http, &cors);
}

static void apply(struct daemon *daemon)
{
    struct http_limits limits;
    struct api_config api;
    enum log_level level;
    daemon_http_limits(&daemon->config, &limits);
    daemon_api_config(&daemon->config, &api);
    http_server_set_limits(daemon->http, &limits);
    api_set_config(daemon->api, &api);
    daemon_set_cors(daemon);
    if (log_level_parse(daemon->config.log_level, &level))
        log_set_level(level);
    if (daemon->engine)
        engine_set_limits(daemon->engine, (uint32_t)daemon->config.max_queued,
                          daemon->config.max_queued_tokens);
}

static void log_lines(struct buf *warnings)
{
    for (char *line = warnings->data; line && *line;) {
        size_t len = strcspn(line, "\n");
        log_warn("configuration.warning text=\"%.*s\"", (int)len, line);
        line += len + (line[len] == '\n');
    }
}

static enum status reload(struct daemon *daemon, struct error *err)
{
    struct config fresh;
    enum config_command command;
    struct buf restart, warnings;
    TRY(config_load(daemon->argc, daemon->argv, environ, &fresh, &command, NULL, err));
    buf_init(&restart, 4096);
    buf_init(&warnings, 65536);
    struct api_key *keys = NULL;
    size_t n_keys = 0;
    /* the keys first: whatever fails, fails before anything was changed */
    enum status status = STATUS_OK;
    if (fresh.api_keys_file[0])
        status = keys_load(fresh.api_keys_file, &keys, &n_keys, NULL, err);
    else if (daemon->inherited_open && !daemon->config.insecure)
        status = error_set(err, STATUS_BAD_CONFIG,
                           "api-keys-file: other machines can reach the service manager's socket; "
                           "it cannot be served without keys");
    if (status == STATUS_OK)
        status = config_reload(&daemon->config, &fresh, &restart, &warnings, err);
    if (status == STATUS_OK) {
        api_set_keys(daemon->api, keys, n_keys);
        apply(daemon);
        log_lines(&warnings);
        if (restart.len > 0)
            log_warn("reload.needs_restart options=\"%s\"", restart.data);
    }
    free(keys);
    buf_done(&restart);
    buf_done(&warnings);
    config_done(&fresh);
    return status;
}

enum status daemon_reload(struct daemon *daemon, struct error *err)
{
    struct error own = {0};
    notify_reloading(&daemon->notify);
    enum status status = reload(daemon, &own);
    if (status == STATUS_OK) {
        log_notice("reload.done");
        metric_set(daemon->reload_time, clock_wall());
    } else {
        log_error("reload.failed reason=\"%s\"", own.text);
    }
    metric_set(daemon->reload_ok, status == STATUS_OK);
    if (daemon->state == DAEMON_SERVING)
        notify_ready(&daemon->notify, daemon->model.id);
    if (err)
        *err = own;
    return status;
}
