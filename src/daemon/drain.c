#include "config.h"

#include <unistd.h>

#include "daemon_priv.h"
#include "tellerd/base/clock.h"
#include "tellerd/base/log.h"

/*
 * The end, in order: readiness off (GRACE: still serving, so that balancers notice), listeners
 * closed and queued requests refused (DRAINING: what runs goes on), the rest cut with an error
 * (abort), sockets closed (STOPPING), engine stopped (STOPPED).
 */

static const struct {
    const char *name;
    unsigned to; /* bits of legal next states */
} states[] = {
    [DAEMON_LOADING] = {"loading",
                        1u << DAEMON_SERVING | 1u << DAEMON_DRAINING | 1u << DAEMON_STOPPING},
    [DAEMON_SERVING] = {"serving",
                        1u << DAEMON_GRACE | 1u << DAEMON_DRAINING | 1u << DAEMON_STOPPING},
    [DAEMON_GRACE] = {"grace", 1u << DAEMON_DRAINING | 1u << DAEMON_STOPPING},
    [DAEMON_DRAINING] = {"draining", 1u << DAEMON_STOPPING},
    [DAEMON_STOPPING] = {"stopping", 1u << DAEMON_STOPPED},
    [DAEMON_STOPPED] = {"stopped", 0},
};

const char *daemon_state_name(enum daemon_state state)
{
    return states[state].name;
}

void daemon_move(struct daemon *daemon, enum daemon_state to)
{
    REQUIRE(states[daemon->state].to & 1u << to);
    daemon->state = to;
    log_debug("daemon.state state=%s", states[to].name);
}

static void begin_draining(struct daemon *daemon)
{
    daemon_move(daemon, DAEMON_DRAINING);
    daemon->deadline_ns = clock_ns() + daemon->config.drain_timeout_ns;
    api_set_draining(daemon->api);
    http_server_drain(daemon->http);
    if (daemon->engine)
        engine_drain(daemon->engine, true);
    daemon_drain_tick(daemon, clock_ns());
}

void daemon_drain(struct daemon *daemon)
{
    if (daemon->state >= DAEMON_GRACE)
        return;
    log_notice("drain.begin generations=%u", api_generations(daemon->api));
    notify_stopping(&daemon->notify, "draining");
    if (daemon->state == DAEMON_LOADING || daemon->config.drain_grace_ns == 0) {
        begin_draining(daemon);
        return;
    }
    daemon_move(daemon, DAEMON_GRACE);
    api_set_leaving(daemon->api);
    daemon->deadline_ns = clock_ns() + daemon->config.drain_grace_ns;
}

static void on_forced(uv_timer_t *timer)
{
    (void)timer;
    log_warn("stop.forced: a step did not end in time");
    _exit(1);
}

void daemon_force(struct daemon *daemon)
{
    log_notice("stop.forced_by_signal generations=%u", api_generations(daemon->api));
    uv_timer_stop(&daemon->tick);
    uv_timer_start(&daemon->tick, on_forced, FORCED_EXIT_MS, 0);
    api_abort_all(daemon->api);
    daemon_stop(daemon);
}

void daemon_drain_tick(struct daemon *daemon, uint64_t now_ns)
{
    if (daemon->state == DAEMON_GRACE && now_ns >= daemon->deadline_ns) {
        begin_draining(daemon);
        return;
    }
    if (daemon->state != DAEMON_DRAINING)
        return;
    bool idle = api_generations(daemon->api) == 0 && !http_server_busy(daemon->http);
    if (idle && http_server_connections(daemon->http) == 0) {
        log_notice("drain.done");
        daemon_stop(daemon);
    } else if (daemon->abort_ns == 0 && (idle || now_ns >= daemon->deadline_ns)) {
        if (!idle)
            log_warn("drain.timeout generations=%u", api_generations(daemon->api));
        api_abort_all(daemon->api);
        daemon->abort_ns = now_ns; /* the last answers are on their way */
    } else if (daemon->abort_ns != 0 && now_ns - daemon->abort_ns > DRAIN_FLUSH_MS * 1000000ull) {
        daemon_stop(daemon);
    }
}

static void on_http_closed(void *ctx)
{
    struct daemon *daemon = ctx;
    daemon->http_closed = true;
    uv_async_send(&daemon->wake);
}

/* Closes the sockets now; the loop ends when they, the jobs and the generations are gone
 * (daemon.c). */
void daemon_stop(struct daemon *daemon)
{
    if (daemon->state >= DAEMON_STOPPING)
        return;
    daemon_move(daemon, DAEMON_STOPPING);
    api_set_draining(daemon->api);
    if (daemon->engine)
        engine_drain(daemon->engine, true);
    http_server_close(daemon->http, on_http_closed, daemon);
}
