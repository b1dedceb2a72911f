#ifndef TELLERD_DAEMON_NOTIFY_H
#define TELLERD_DAEMON_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "tellerd/base/status.h"

/*
 * The service manager's notification protocol (sd_notify(3), without libsystemd): one datagram per
 * message to the socket that $NOTIFY_SOCKET names.  Without it every call does nothing.  Loop
 * thread only.
 */
struct notify {
    int fd; /* -1: nobody to tell */
    struct sockaddr_un address;
    size_t address_len;
    uint64_t watchdog_ns; /* ping at least this often (half the manager's limit); 0: no watchdog */
};

/* Reads $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID, and removes them, so that children do not
 * inherit them.  Never fails; a socket of another kind is ignored with a warning in the log. */
void notify_init(struct notify *notify);
void notify_done(struct notify *notify);

/* READY=1 and a status line; also the end of a reload. */
void notify_ready(struct notify *notify, const char *status);
/* RELOADING=1 with the monotonic time that Type=notify-reload wants. */
void notify_reloading(struct notify *notify);
void notify_stopping(struct notify *notify, const char *status);
/* One line for "systemctl status". */
void notify_status(struct notify *notify, const char *format, ...) PRINTF_LIKE(2, 3);
/* While starting, reloading or stopping: asks for so much more time from now. */
void notify_extend(struct notify *notify, uint64_t ns);
void notify_watchdog(struct notify *notify);

#endif
