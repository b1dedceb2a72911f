/* sd_notify by hand: the protocol is small and stable, and saves a library. */
#include "config.h"

#include "tellerd/daemon/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tellerd/base/clock.h"
#include "tellerd/base/log.h"

enum { NOTIFY_MAX = 1024, NS_PER_US = 1000 };

/* Decimal digits alone. */
static bool parse_u64(const char *text, uint64_t *ret)
{
    uint64_t value = 0;
    if (!text || !*text)
        return false;
    for (; *text; text++)
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return false;
    *ret = value;
    return true;
}

static uint64_t watchdog_interval(void)
{
    uint64_t limit_us, pid;
    if (!parse_u64(getenv("WATCHDOG_USEC"), &limit_us) || limit_us > UINT64_MAX / NS_PER_US)
        return 0;
    if (parse_u64(getenv("WATCHDOG_PID"), &pid) && pid != (uint64_t)getpid())
        return 0;
    return limit_us * NS_PER_US / 2;
}

/* An absolute path, or '@' for an abstract name. */
static bool read_address(const char *name, struct notify *notify)
{
    size_t len = strlen(name);
    if ((name[0] != '/' && name[0] != '@') || len < 2 || len >= sizeof notify->address.sun_path)
        return false;
    notify->address.sun_family = AF_UNIX;
    memcpy(notify->address.sun_path, name, len + 1);
    if (name[0] == '@')
        notify->address.sun_path[0] = '\0';
    /* an abstract name has no NUL at its end */
    notify->address_len = offsetof(struct sockaddr_un, sun_path) + len + (name[0] == '/' ? 1 : 0);
    return true;
}

void notify_init(struct notify *notify)
{
    const char *name = getenv("NOTIFY_SOCKET");
    *notify = (struct notify){.fd = -1, .watchdog_ns = watchdog_interval()};
    if (name && !read_address(name, notify)) {
        log_warn("notify.ignored reason=\"unknown kind of $NOTIFY_SOCKET\"");
    } else if (name) {
        notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (notify->fd < 0)
            log_warn("notify.ignored reason=\"%s\"", strerror(errno));
    }
    if (notify->fd < 0)
        notify->watchdog_ns = 0;
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

void notify_done(struct notify *notify)
{
    if (notify->fd >= 0)
        close(notify->fd);
    notify->fd = -1;
}

PRINTF_LIKE(2, 3)
static void send_message(struct notify *notify, const char *format, ...)
{
    char text[NOTIFY_MAX];
    if (notify->fd < 0)
        return;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0)
        return;
    size_t len = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    ssize_t sent;
    do
        sent = sendto(notify->fd, text, len, MSG_NOSIGNAL, (struct sockaddr *)&notify->address,
                      (socklen_t)notify->address_len);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        log_debug("notify.failed reason=\"%s\"", strerror(errno));
}

void notify_ready(struct notify *notify, const char *status)
{
    send_message(notify, "READY=1\nSTATUS=%s", status);
}

void notify_reloading(struct notify *notify)
{
    send_message(notify, "RELOADING=1\nMONOTONIC_USEC=%ju", (uintmax_t)(clock_ns() / NS_PER_US));
}

void notify_stopping(struct notify *notify, const char *status)
{
    send_message(notify, "STOPPING=1\nSTATUS=%s", status);
}

void notify_status(struct notify *notify, const char *format, ...)
{
    char text[NOTIFY_MAX / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20)
            *c = ' '; /* a line end would begin another variable */
    send_message(notify, "STATUS=%s", text);
}

void notify_extend(struct notify *notify, uint64_t ns)
{
    send_message(notify, "EXTEND_TIMEOUT_USEC=%ju", (uintmax_t)(ns / NS_PER_US));
}

void notify_watchdog(struct notify *notify)
{
    send_message(notify, "WATCHDOG=1");
}
