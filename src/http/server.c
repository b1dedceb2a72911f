#include "config.h"

#include "tellerd/http/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "http_priv.h"
#include "tellerd/base/clock.h"
#include "tellerd/base/log.h"
#include "tellerd/base/mem.h"

/* Listeners, the turn's flush, the sweep of deadlines, drain and close. */

static void on_flush(uv_prepare_t *prepare)
{
    struct http_server *server = prepare->data;
    while (server->dirty) {
        struct connection *connection = server->dirty;
        server->dirty = connection->next_dirty;
        connection->is_dirty = false;
        connection_flush(connection);
    }
}

/* The next few connections, so that ten thousand idle ones hold nobody up. */
static void on_sweep(uv_timer_t *timer)
{
    struct http_server *server = timer->data;
    uint64_t now = clock_ns();
    struct connection *connection = server->next_swept ? server->next_swept : server->connections;
    for (int i = 0; connection && i < SWEEP_CONNECTIONS; i++) {
        server->next_swept = connection->next; /* connection_close moves it on, too */
        connection_sweep(connection, now);
        connection = server->next_swept;
    }
}

struct http_server *http_server_new(uv_loop_t *loop, const struct http_limits *limits,
                                    const struct http_handler *handler)
{
    struct http_server *server = xcalloc(1, sizeof *server);
    server->loop = loop;
    server->limits = *limits;
    server->handler = *handler;
    uv_prepare_init(loop, &server->flush);
    uv_timer_init(loop, &server->sweep);
    server->flush.data = server->sweep.data = server;
    server->n_open_handles = 2;
    uv_prepare_start(&server->flush, on_flush);
    uv_timer_start(&server->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    return server;
}

void http_server_set_limits(struct http_server *server, const struct http_limits *limits)
{
    server->limits = *limits;
}

void http_server_set_cors(struct http_server *server, const struct http_cors *cors)
{
    for (size_t i = 0; i < server->n_cors_origins; i++)
        free(server->cors_origins[i]);
    free(server->cors_origins);
    server->cors_origins = xcalloc(cors->n_origins, sizeof *server->cors_origins);
    server->n_cors_origins = cors->n_origins;
    for (size_t i = 0; i < cors->n_origins; i++)
        server->cors_origins[i] = xstrdup(cors->origins[i]);
}

/* --- listeners
 * ----------------------------------------------------------------------------------------------------
 */

static void on_connection(uv_stream_t *stream, int status)
{
    static struct log_limit limit;
    struct listener *listener = stream->data;
    if (status < 0) {
        if (log_allow(&limit, 1))
            log_warn("accept.failed address=%s reason=%s", listener->address, uv_err_name(status));
        return;
    }
    connection_accept(listener->server, stream, listener->tag);
}

static void on_listener_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    struct http_server *server = listener->server;
    connection_handle_closed(server);
}

static void close_listener(struct listener *listener)
{
    if (!listener->is_open)
        return;
    listener->is_open = false;
    uv_close(&listener->uv.handle,
             on_listener_closed); /* a unix socket that this process made is unlinked by libuv */
}

static struct listener *new_listener(struct http_server *server, bool is_tcp, int tag,
                                     struct error *err)
{
    if (server->n_listeners == MAX_LISTENERS) {
        error_set(err, STATUS_BAD_CONFIG, "at most %d listen addresses", MAX_LISTENERS);
        return NULL;
    }
    struct listener *listener = xcalloc(1, sizeof *listener);
    listener->server = server;
    listener->tag = tag;
    REQUIRE((is_tcp ? uv_tcp_init(server->loop, &listener->uv.tcp)
                    : uv_pipe_init(server->loop, &listener->uv.pipe, 0)) == 0);
    listener->uv.handle.data = listener;
    listener->is_open = true;
    server->n_open_handles++;
    server->listeners[server->n_listeners++] = listener;
    return listener;
}

static void address_text(const struct sockaddr *address, char *out, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
        uv_ip6_name(v6, host, sizeof host);
        snprintf(out, size, "http://[%s]:%u", host, ntohs(v6->sin6_port));
    } else {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        uv_ip4_name(v4, host, sizeof host);
        snprintf(out, size, "http://%s:%u", host, ntohs(v4->sin_port));
    }
}

/* What each accepted socket is to have, set on the listener, which hands it on: no call for each
 * connection.  A socket that cannot do it still serves. */
static void set_tcp_options(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
        {IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                       sizeof options[i].value) != 0)
            log_debug("listener.option name=%d reason=%s", options[i].name, strerror(errno));
}

static int start_listening(struct listener *listener)
{
    uv_os_fd_t fd;
    if (listener->uv.handle.type == UV_TCP && uv_fileno(&listener->uv.handle, &fd) == 0)
        set_tcp_options(fd);
    return uv_listen(&listener->uv.stream, LISTEN_BACKLOG, on_connection);
}

static void set_tcp_address(struct listener *listener)
{
    struct sockaddr_storage bound;
    int len = sizeof bound;
    if (uv_tcp_getsockname(&listener->uv.tcp, (struct sockaddr *)&bound, &len) == 0)
        address_text((const struct sockaddr *)&bound, listener->address, sizeof listener->address);
}

enum status http_server_listen_tcp(struct http_server *server, const struct sockaddr *address,
                                   int tag, struct error *err)
{
    struct listener *listener = new_listener(server, true, tag, err);
    if (!listener)
        return STATUS_BAD_CONFIG;
    address_text(address, listener->address, sizeof listener->address);
    int code = uv_tcp_bind(&listener->uv.tcp, address, 0);
    if (code == 0)
        code = start_listening(listener);
    if (code != 0)
        return error_set(err, STATUS_BAD_CONFIG, "cannot listen on %s: %s", listener->address,
                         uv_strerror(code));
    set_tcp_address(listener);
    return STATUS_OK;
}

/* Whether path is a socket that nobody answers on: left over by a process that died. */
static bool is_stale_socket(const char *path)
{
    struct stat info;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (lstat(path, &info) != 0 || !S_ISSOCK(info.st_mode) ||
        strlen(path) >= sizeof address.sun_path)
        return false;
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool refused = connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 &&
                   errno == ECONNREFUSED;
    close(fd);
    return refused;
}

enum status http_server_listen_unix(struct http_server *server, const char *path, unsigned mode,
                                    int tag, struct error *err)
{
    if (strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return error_set(err, STATUS_BAD_CONFIG,
                         "cannot listen on unix:%s: the path is longer than %zu bytes", path,
                         sizeof((struct sockaddr_un *)0)->sun_path - 1);
    struct listener *listener = new_listener(server, false, tag, err);
    if (!listener)
        return STATUS_BAD_CONFIG;
    snprintf(listener->address, sizeof listener->address, "unix:%s", path);
    if (is_stale_socket(path))
        unlink(path);
    int code = uv_pipe_bind(&listener->uv.pipe, path);
    if (code != 0)
        return error_set(err, STATUS_BAD_CONFIG, "cannot listen on %s: %s", listener->address,
                         uv_strerror(code));
    if (chmod(path, mode) != 0)
        return error_set(err, STATUS_BAD_CONFIG, "cannot set the mode of %s: %s", path,
                         strerror(errno));
    code = start_listening(listener);
    if (code != 0)
        return error_set(err, STATUS_BAD_CONFIG, "cannot listen on %s: %s", listener->address,
                         uv_strerror(code));
    return STATUS_OK;
}

enum status http_server_listen_fd(struct http_server *server, int fd, int tag, struct error *err)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        return error_set(err, STATUS_BAD_CONFIG, "inherited descriptor %d is no socket: %s", fd,
                         strerror(errno));
    bool is_tcp = address.ss_family == AF_INET || address.ss_family == AF_INET6;
    struct listener *listener = new_listener(server, is_tcp, tag, err);
    if (!listener)
        return STATUS_BAD_CONFIG;
    int code = is_tcp ? uv_tcp_open(&listener->uv.tcp, fd) : uv_pipe_open(&listener->uv.pipe, fd);
    if (code == 0)
        code = start_listening(listener);
    if (code != 0)
        return error_set(err, STATUS_BAD_CONFIG, "cannot listen on inherited descriptor %d: %s", fd,
                         uv_strerror(code));
    if (is_tcp)
        set_tcp_address(listener);
    else
        snprintf(listener->address, sizeof listener->address, "unix:%s",
                 ((struct sockaddr_un *)&address)->sun_path);
    return STATUS_OK;
}

const char *http_server_address(const struct http_server *server, size_t i)
{
    return i < server->n_listeners ? server->listeners[i]->address : NULL;
}

/* --- the end
 * ------------------------------------------------------------------------------------------------------
 */

void http_server_drain(struct http_server *server)
{
    server->is_draining = true;
    for (size_t i = 0; i < server->n_listeners; i++)
        close_listener(server->listeners[i]);
    for (struct connection *connection = server->connections, *next; connection;
         connection = next) {
        next = connection->next;
        if (connection->state == CONNECTION_IDLE && connection_pending(connection) == 0)
            connection_close(connection);
        else if (connection->state == CONNECTION_IDLE)
            connection->close_after = true;
    }
}

void connection_handle_closed(struct http_server *server)
{
    if (--server->n_open_handles == 0 && server->on_closed)
        server->on_closed(server->on_closed_ctx);
}

static void on_own_handle_closed(uv_handle_t *handle)
{
    connection_handle_closed(handle->data);
}

void http_server_close(struct http_server *server, void (*done)(void *ctx), void *ctx)
{
    REQUIRE(!server->is_closing);
    server->is_closing = true;
    server->on_closed = done;
    server->on_closed_ctx = ctx;
    for (size_t i = 0; i < server->n_listeners; i++)
        close_listener(server->listeners[i]);
    on_flush(&server->flush); /* what the sockets take at once still leaves */
    while (server->connections)
        connection_close(server->connections);
    uv_close((uv_handle_t *)&server->flush, on_own_handle_closed);
    uv_close((uv_handle_t *)&server->sweep, on_own_handle_closed);
}

void http_server_free(struct http_server *server)
{
    if (!server)
        return;
    REQUIRE(server->n_open_handles == 0);
    for (size_t i = 0; i < server->n_listeners; i++)
        free(server->listeners[i]);
    for (size_t i = 0; i < server->n_cors_origins; i++)
        free(server->cors_origins[i]);
    free(server->cors_origins);
    free(server);
}

uint32_t http_server_connections(const struct http_server *server)
{
    return server->n_connections;
}

bool http_server_busy(const struct http_server *server)
{
    for (const struct connection *connection = server->connections; connection;
         connection = connection->next)
        if (connection->exchange.open || connection_pending(connection) > 0)
            return true;
    return false;
}
