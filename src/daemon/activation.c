/* Socket activation by hand: descriptors from 3 on, as many as $LISTEN_FDS says. */
#include "config.h"

#include "tellerd/daemon/activation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_FD = 3 };

static bool parse_small(const char *text, unsigned long *ret)
{
    size_t len = text ? strlen(text) : 0;
    if (len == 0 || len > 9 || strspn(text, "0123456789") != len)
        return false;
    unsigned long value = 0;
    for (; *text; text++)
        value = value * 10 + (unsigned long)(*text - '0');
    *ret = value;
    return true;
}

static bool socket_option_is(int fd, int name, int wanted)
{
    int value;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, name, &value, &len) == 0 && value == wanted;
}

/* Copies the next name of "a:b:c" and moves *names behind it; "" when there are no more. */
static void take_name(const char **names, char out[ACTIVATION_NAME_MAX])
{
    size_t n = *names ? strcspn(*names, ":") : 0;
    size_t kept = n < ACTIVATION_NAME_MAX ? n : ACTIVATION_NAME_MAX - 1;
    if (kept > 0)
        memcpy(out, *names, kept);
    out[kept] = '\0';
    if (*names)
        *names = (*names)[n] == ':' ? *names + n + 1 : NULL;
}

static enum status take_all(size_t n, const char *names, struct activation_socket *ret,
                            struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        int fd = FIRST_FD + (int)i;
        if (!socket_option_is(fd, SO_TYPE, SOCK_STREAM) || !socket_option_is(fd, SO_ACCEPTCONN, 1))
            return error_set(err, STATUS_BAD_CONFIG,
                             "descriptor %d from the service manager is no listening stream socket",
                             fd);
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
            return error_set(err, STATUS_BAD_CONFIG, "descriptor %d: %s", fd, strerror(errno));
        ret[i].fd = fd;
        take_name(&names, ret[i].name);
    }
    return STATUS_OK;
}

enum status activation_take(struct activation_socket *ret, size_t *ret_n, struct error *err)
{
    unsigned long pid, n = 0;
    enum status status = STATUS_OK;
    bool ours = parse_small(getenv("LISTEN_PID"), &pid) && pid == (unsigned long)getpid() &&
                parse_small(getenv("LISTEN_FDS"), &n);
    if (!ours)
        n = 0;
    if (n > ACTIVATION_MAX)
        status = error_set(err, STATUS_BAD_CONFIG,
                           "the service manager hands over %lu sockets, at most %d are taken", n,
                           ACTIVATION_MAX);
    else
        status = take_all(n, getenv("LISTEN_FDNAMES"), ret, err);
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (status == STATUS_OK)
        *ret_n = n;
    return status;
}
