#ifndef TELLERD_DAEMON_PRIV_H
#define TELLERD_DAEMON_PRIV_H

/* Inside layer daemon: the one struct of a running daemon.  Loop thread only, but for what loading
 * writes (see load.c). */

#include <stdatomic.h>
#include <uv.h>

#include "tellerd/api/api.h"
#include "tellerd/base/metrics.h"
#include "tellerd/base/queue.h"
#include "tellerd/daemon/config.h"
#include "tellerd/daemon/daemon.h"
#include "tellerd/daemon/notify.h"
#include "tellerd/engine/engine.h"
#include "tellerd/http/server.h"

enum {
    TICK_MS = 250,        /* keep-alive comments, watchdog, drain */
    FORCED_EXIT_MS = 900, /* a second SIGTERM: what does not end by itself by then is left */
    DRAIN_FLUSH_MS = 500, /* last answers leave before the sockets close */
};

/* Legal moves: LOADING -> SERVING -> GRACE -> DRAINING -> STOPPING -> STOPPED; LOADING and SERVING
 * -> DRAINING, any -> STOPPING. */
enum daemon_state {
    DAEMON_LOADING,
    DAEMON_SERVING,
    DAEMON_GRACE,
    DAEMON_DRAINING,
    DAEMON_STOPPING,
    DAEMON_STOPPED
};

struct daemon {
    struct config config;
    int argc;
    char **argv;
    model_load_fn load;
    enum daemon_state state;
    int exit_code;
    uv_loop_t loop;
    uv_signal_t sigterm, sigint, sighup;
    uv_timer_t tick;
    uv_async_t wake; /* engine events are waiting, or loading has moved on */
    uv_thread_t loader;
    struct metrics *metrics;
    struct metric *state_metric, *load_seconds, *reload_ok, *reload_time;
    struct queue *events;
    struct engine *engine;
    struct http_server *http;
    struct api *api;
    struct loaded_model model;
    struct error load_error; /* written by the loader, read after load_done */
    enum status load_status;
    _Atomic unsigned load_progress; /* per mille */
    _Atomic bool load_done;
    bool loader_joined;
    struct notify notify;
    uint64_t started_ns, deadline_ns, abort_ns, last_ping_ns, last_extend_ns;
    uint32_t n_jobs; /* in the pool */
    bool http_closed;
    bool inherited_open; /* the service manager's socket can be reached by other machines */
};

/* load.c: the loading thread, and what the loop does when it has ended. */
void daemon_load_start(struct daemon *daemon);
void daemon_load_poll(struct daemon *daemon);

/* reload.c */
enum status daemon_reload(struct daemon *daemon, struct error *err);
/* Loads the keys of config into the api. */
enum status daemon_load_keys(struct daemon *daemon, const struct config *config, struct error *err);
void daemon_http_limits(const struct config *config, struct http_limits *ret);
void daemon_api_config(const struct config *config, struct api_config *ret);
void daemon_set_cors(struct daemon *daemon);

/* drain.c */
void daemon_drain(struct daemon *daemon);
void daemon_force(struct daemon *daemon);
void daemon_drain_tick(struct daemon *daemon, uint64_t now_ns);
void daemon_stop(struct daemon *daemon);

/* Name of a state for logs and the service manager. */
const char *daemon_state_name(enum daemon_state state);
/* Moves to a state, checked against the legal moves. */
void daemon_move(struct daemon *daemon, enum daemon_state to);

#endif
