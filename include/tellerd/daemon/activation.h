#ifndef TELLERD_DAEMON_ACTIVATION_H
#define TELLERD_DAEMON_ACTIVATION_H

#include <stddef.h>

#include "tellerd/base/status.h"

/* Sockets that a service manager opened and handed over (sd_listen_fds(3), without libsystemd). */
enum { ACTIVATION_NAME_MAX = 32, ACTIVATION_MAX = 16 };

struct activation_socket {
    int fd;                         /* listening stream socket, close-on-exec */
    char name[ACTIVATION_NAME_MAX]; /* FileDescriptorName= of the unit: "api", "metrics" */
};

/*
 * Takes the sockets that $LISTEN_PID, $LISTEN_FDS and $LISTEN_FDNAMES describe into
 * ret[ACTIVATION_MAX], and removes the variables; *ret_n = 0 when there are none for this process.
 * The caller owns the descriptors.  Once, at start, before other descriptors are opened.  Errors:
 * BAD_CONFIG when they are too many or one is no listening stream socket.
 */
enum status activation_take(struct activation_socket *ret, size_t *ret_n,
                            struct error *err) WARN_UNUSED;

#endif
