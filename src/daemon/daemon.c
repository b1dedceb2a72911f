#include "config.h"

#include "tellerd/daemon/daemon.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon_priv.h"
#include "process_metrics_priv.h"
#include "tellerd/base/clock.h"
#include "tellerd/base/log.h"
#include "tellerd/base/mem.h"
#include "tellerd/daemon/activation.h"
#include "tellerd/daemon/listen_address.h"

/*
 * Start order: configuration, loop, metrics, api, sockets, loader.  The loop thread runs everything
 * here; the loader and the engine are threads of their own and talk by uv_async_send alone.
 */

extern char **environ;

/* --- the loop's turn
 * --------------------------------------------------------------------------------------------------------
 */

static void close_handles(struct daemon *daemon)
{
    uv_handle_t *handles[] = {(uv_handle_t *)&daemon->sigterm, (uv_handle_t *)&daemon->sigint,
                              (uv_handle_t *)&daemon->sighup, (uv_handle_t *)&daemon->tick,
                              (uv_handle_t *)&daemon->wake};
    for (size_t i = 0; i < sizeof handles / sizeof *handles; i++)
        if (!uv_is_closing(handles[i]))
            uv_close(handles[i], NULL);
}

/* STOPPING ends when nothing is owed any more: sockets, pool jobs, generations.  A loader that
 * still runs has read files only and may have minutes to go: nobody waits for it. */
static void finish_stopping(struct daemon *daemon)
{
    if (daemon->state != DAEMON_STOPPING || !daemon->http_closed || daemon->n_jobs > 0 ||
        api_generations(daemon->api) > 0)
        return;
    if (!daemon->loader_joined) {
        log_notice("stop.while_loading");
        _exit(daemon->exit_code);
    }
    daemon_move(daemon, DAEMON_STOPPED);
    close_handles(daemon);
}

static void take_events(struct daemon *daemon)
{
    api_engine_events(daemon->api, queue_drain(daemon->events));
}

static void on_wake(uv_async_t *async)
{
    struct daemon *daemon = async->data;
    daemon_load_poll(daemon);
    take_events(daemon);
    finish_stopping(daemon);
}

static void wake_loop(void *ctx)
{
    struct daemon *daemon = ctx;
    uv_async_send(&daemon->wake);
}

/* The loop is alive when this runs; the engine is when it is idle or its heartbeat is fresh. */
static void ping_watchdog(struct daemon *daemon, uint64_t now_ns)
{
    if (daemon->notify.watchdog_ns == 0 ||
        now_ns - daemon->last_ping_ns < daemon->notify.watchdog_ns / 2)
        return;
    if (daemon->engine) {
        struct engine_stats stats;
        engine_stats(daemon->engine, &stats);
        if (stats.failed || (!stats.idle && now_ns > stats.heartbeat_ns &&
                             now_ns - stats.heartbeat_ns > daemon->notify.watchdog_ns))
            return;
    }
    daemon->last_ping_ns = now_ns;
    notify_watchdog(&daemon->notify);
}

static void check_engine(struct daemon *daemon)
{
    struct engine_stats stats;
    if (!daemon->engine || daemon->state != DAEMON_SERVING)
        return;
    engine_stats(daemon->engine, &stats);
    if (!stats.failed)
        return;
    log_error("engine.failed: exiting so that the service manager starts anew");
    daemon->exit_code = 1;
    daemon_drain(daemon);
}

static void on_tick(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    uint64_t now = clock_ns();
    daemon_load_poll(daemon);
    api_tick(daemon->api, now);
    check_engine(daemon);
    ping_watchdog(daemon, now);
    daemon_drain_tick(daemon, now);
    finish_stopping(daemon);
    metric_set(daemon->state_metric, daemon->state == DAEMON_SERVING);
}

static void on_terminate(uv_signal_t *signal, int number)
{
    struct daemon *daemon = signal->data;
    (void)number;
    if (daemon->state < DAEMON_GRACE)
        daemon_drain(daemon);
    else
        daemon_force(daemon);
}

static void on_hangup(uv_signal_t *signal, int number)
{
    (void)number;
    daemon_reload(signal->data, NULL);
}

/* --- what the api borrows
 * ------------------------------------------------------------------------------------------------------
 */

struct pool_work {
    uv_work_t uv;
    struct daemon *daemon;
    struct api_job *job;
};

static void pool_work(uv_work_t *uv)
{
    struct pool_work *work = (struct pool_work *)uv;
    work->job->work(work->job);
}

static void pool_done(uv_work_t *uv, int status)
{
    struct pool_work *work = (struct pool_work *)uv;
    (void)status; /* never cancelled */
    work->daemon->n_jobs--;
    work->job->done(work->job);
    finish_stopping(work->daemon);
    free(work);
}

static void hook_run_job(void *ctx, struct api_job *job)
{
    struct daemon *daemon = ctx;
    struct pool_work *work = xcalloc(1, sizeof *work);
    work->daemon = daemon;
    work->job = job;
    daemon->n_jobs++;
    REQUIRE(uv_queue_work(&daemon->loop, &work->uv, pool_work, pool_done) == 0);
}

static void hook_drain(void *ctx)
{
    daemon_drain(ctx);
}

static enum status hook_reload(void *ctx, struct error *err)
{
    return daemon_reload(ctx, err);
}

/* --- start
 * ----------------------------------------------------------------------------------------------------------------------
 */

static enum status listen_list(struct daemon *daemon, const struct config_list *list, int tag,
                               struct error *err)
{
    for (size_t i = 0; i < list->n; i++) {
        struct listen_address address;
        TRY(listen_address_parse(list->items[i], &address, err));
        if (address.path[0])
            TRY(http_server_listen_unix(daemon->http, address.path, daemon->config.socket_mode, tag,
                                        err));
        else
            TRY(http_server_listen_tcp(daemon->http, (const struct sockaddr *)&address.socket, tag,
                                       err));
    }
    return STATUS_OK;
}

/* config_check looks at `listen`; a socket from the service manager must meet the same rule. */
static enum status check_inherited(struct daemon *daemon, const struct activation_socket *socket,
                                   struct error *err)
{
    if (listen_socket_is_local(socket->fd))
        return STATUS_OK;
    daemon->inherited_open = true;
    if (daemon->config.insecure || daemon->config.api_keys_file[0])
        return STATUS_OK;
    return error_set(err, STATUS_BAD_CONFIG,
                     "other machines can reach socket \"%s\" of the service manager: set "
                     "api-keys-file, or insecure = yes to serve them without keys",
                     socket->name);
}

/* Sockets that the service manager opened come by name; with any "api" (or unnamed) one, `listen`
 * is not opened again. */
static enum status listen_all(struct daemon *daemon, struct error *err)
{
    struct activation_socket sockets[ACTIVATION_MAX];
    size_t n_sockets = 0;
    TRY(activation_take(sockets, &n_sockets, err));
    bool has_api = false, has_metrics = false;
    for (size_t i = 0; i < n_sockets; i++) {
        bool is_metrics = strcmp(sockets[i].name, "metrics") == 0;
        has_api |= !is_metrics;
        has_metrics |= is_metrics;
        if (!is_metrics)
            TRY(check_inherited(daemon, &sockets[i], err));
        TRY(http_server_listen_fd(daemon->http, sockets[i].fd,
                                  is_metrics ? API_LISTENER_METRICS : API_LISTENER_MAIN, err));
    }
    if (!has_api)
        TRY(listen_list(daemon, &daemon->config.listen, API_LISTENER_MAIN, err));
    if (!has_metrics)
        TRY(listen_list(daemon, &daemon->config.metrics_listen, API_LISTENER_METRICS, err));
    if (daemon->config.control_socket[0])
        TRY(http_server_listen_unix(daemon->http, daemon->config.control_socket,
                                    daemon->config.socket_mode, API_LISTENER_CONTROL, err));
    for (size_t i = 0; http_server_address(daemon->http, i); i++)
        log_notice("listening address=%s", http_server_address(daemon->http, i));
    return STATUS_OK;
}

static void create_metrics(struct daemon *daemon)
{
    char labels[256] = "";
    daemon->metrics = metrics_new();
    metrics_label(labels, sizeof labels, "version", PACKAGE_VERSION);
    metric_set(metrics_gauge(daemon->metrics, "tellerd_build_info",
                             "Version of this daemon; always 1.", labels),
               1);
    daemon->state_metric =
        metrics_gauge(daemon->metrics, "tellerd_ready", "Whether requests are served.", "");
    daemon->load_seconds = metrics_gauge(daemon->metrics, "tellerd_model_load_seconds",
                                         "Time from start to ready.", "");
    daemon->reload_ok = metrics_gauge(daemon->metrics, "tellerd_config_last_reload_successful",
                                      "Whether the last reload was applied.", "");
    daemon->reload_time =
        metrics_gauge(daemon->metrics, "tellerd_config_last_reload_success_timestamp_seconds",
                      "When a reload was last applied.", "");
    metric_set(daemon->reload_ok, 1);
    process_metrics_create(daemon->metrics);
}

/* As many open files as are allowed; what that means for max-connections, config_check has said. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        log_warn("descriptors.few reason=\"the soft limit of open files cannot be raised to %llu\"",
                 (unsigned long long)limit.rlim_max);
}

static void init_handles(struct daemon *daemon)
{
    REQUIRE(uv_loop_init(&daemon->loop) == 0);
    uv_signal_init(&daemon->loop, &daemon->sigterm);
    uv_signal_init(&daemon->loop, &daemon->sigint);
    uv_signal_init(&daemon->loop, &daemon->sighup);
    uv_timer_init(&daemon->loop, &daemon->tick);
    uv_async_init(&daemon->loop, &daemon->wake, on_wake);
    daemon->sigterm.data = daemon->sigint.data = daemon->sighup.data = daemon->tick.data =
        daemon->wake.data = daemon;
    uv_signal_start(&daemon->sigterm, on_terminate, SIGTERM);
    uv_signal_start(&daemon->sigint, on_terminate, SIGINT);
    uv_signal_start(&daemon->sighup, on_hangup, SIGHUP);
    uv_timer_start(&daemon->tick, on_tick, TICK_MS, TICK_MS);
}

static void create_parts(struct daemon *daemon)
{
    struct http_limits limits;
    struct api_config api;
    struct api_hooks hooks = {hook_run_job, hook_drain, hook_reload, daemon};
    init_handles(daemon);
    create_metrics(daemon);
    daemon->events = queue_new(0, wake_loop, daemon);
    daemon_api_config(&daemon->config, &api);
    daemon_http_limits(&daemon->config, &limits);
    daemon->api = api_new(&api, &hooks, daemon->metrics);
    struct http_handler handler = api_handler(daemon->api);
    daemon->http = http_server_new(&daemon->loop, &limits, &handler);
    daemon_set_cors(daemon);
}

static void free_event(struct queue_node *node)
{
    free(node);
}

static void destroy_parts(struct daemon *daemon)
{
    if (daemon->engine)
        engine_free(daemon->engine);
    model_unload(&daemon->model);
    queue_free(daemon->events, free_event);
    http_server_free(daemon->http);
    api_free(daemon->api);
    metrics_free(daemon->metrics);
    notify_done(&daemon->notify);
    REQUIRE(uv_loop_close(&daemon->loop) == 0);
}

static int run(struct daemon *daemon)
{
    struct error err = {0};
    signal(SIGPIPE, SIG_IGN);
    notify_init(&daemon->notify);
    daemon->started_ns = clock_ns();
    raise_descriptor_limit();
    create_parts(daemon);
    enum status status = daemon_load_keys(daemon, &daemon->config, &err);
    if (status == STATUS_OK)
        status = listen_all(daemon, &err);
    if (status != STATUS_OK) {
        log_error("start.failed reason=\"%s\"", err.text);
        daemon->exit_code = EXIT_CONFIG;
        daemon->loader_joined = true;
        daemon_stop(daemon);
    } else {
        daemon_load_start(daemon);
    }
    uv_run(&daemon->loop, UV_RUN_DEFAULT);
    destroy_parts(daemon);
    return daemon->exit_code;
}

/* --- the command line
 * ------------------------------------------------------------------------------------------------------------
 */

static void write_out(void (*write)(struct buf *out))
{
    struct buf out;
    buf_init(&out, 4 << 20);
    write(&out);
    fwrite(out.data, 1, out.len, stdout);
    buf_done(&out);
}

static int check(const struct config *config)
{
    struct error err = {0};
    struct buf warnings;
    buf_init(&warnings, 1 << 16);
    enum status status = config_check(config, &warnings, &err);
    if (warnings.len)
        fprintf(stderr, "%s", warnings.data);
    buf_done(&warnings);
    if (status != STATUS_OK) {
        fprintf(stderr, "tellerd: %s\n", err.text);
        return EXIT_CONFIG;
    }
    return 0;
}

static void dump(const struct config *config)
{
    struct buf out;
    buf_init(&out, 4 << 20);
    config_write_dump(config, &out);
    fwrite(out.data, 1, out.len, stdout);
    buf_done(&out);
}

static int serve(struct daemon *daemon)
{
    enum log_level level = LOG_INFO;
    log_level_parse(daemon->config.log_level, &level);
    log_init(level, strcmp(daemon->config.log_format, "json") == 0 ? LOG_JSON : LOG_TEXT);
    if (!daemon->config.model[0]) {
        fprintf(stderr, "tellerd: no model: give --model FILE-or-DIR, or model = ... in the "
                        "configuration file\n");
        return EXIT_CONFIG;
    }
    int code = check(&daemon->config);
    return code ? code : run(daemon);
}

static int do_command(struct daemon *daemon, enum config_command command)
{
    int code;
    switch (command) {
    case CONFIG_RUN:
        return serve(daemon);
    case CONFIG_CHECK:
        code = check(&daemon->config);
        if (code == 0)
            printf("the configuration is good\n");
        return code;
    case CONFIG_DUMP:
        dump(&daemon->config);
        return 0;
    case CONFIG_HELP:
        write_out(config_write_help);
        return 0;
    case CONFIG_VERSION:
        printf("%s\n%s\n", PACKAGE_STRING, BUILD_SUMMARY);
        return 0;
    case CONFIG_PRINT_CONFIG:
        write_out(config_write_reference);
        return 0;
    case CONFIG_PRINT_MAN:
        write_out(config_write_man);
        return 0;
    }
    return 0;
}

int daemon_main(int argc, char **argv, model_load_fn load)
{
    struct daemon *daemon = xcalloc(1, sizeof *daemon);
    enum config_command command;
    struct error err = {0};
    struct buf warnings;
    daemon->argc = argc;
    daemon->argv = argv;
    daemon->load = load;
    buf_init(&warnings, 1 << 16);
    enum status status =
        config_load(argc, argv, environ, &daemon->config, &command, &warnings, &err);
    if (warnings.len)
        fprintf(stderr, "%s", warnings.data);
    buf_done(&warnings);
    int code = EXIT_CONFIG;
    if (status != STATUS_OK) {
        fprintf(stderr, "tellerd: %s\n", err.text);
    } else {
        code = do_command(daemon, command);
        config_done(&daemon->config);
    }
    free(daemon);
    return code;
}
