#ifndef TELLERD_DAEMON_LISTEN_ADDRESS_H
#define TELLERD_DAEMON_LISTEN_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tellerd/base/status.h"

/* An address to listen at, as options give it. */
struct listen_address {
    struct sockaddr_storage socket; /* TCP; family AF_UNSPEC for a unix socket */
    socklen_t socket_len;
    char path[sizeof((struct sockaddr_un *)0)->sun_path]; /* unix socket; else "" */
    bool local; /* only this machine can reach it: loopback or unix */
};

/*
 * Parses HOST:PORT, [V6]:PORT, PORT (on 127.0.0.1), *:PORT (all IPv4) or unix:/PATH; HOST is a
 * number or localhost.  Asks no name server.  Any thread.  Errors: BAD_CONFIG; the text quotes the
 * address.
 */
enum status listen_address_parse(const char *text, struct listen_address *ret,
                                 struct error *err) WARN_UNUSED;
/* Whether only this machine can reach the bound socket; false when that cannot be told. */
bool listen_socket_is_local(int fd);
/* Whether both are the same place (port 0 never is). */
bool listen_address_equal(const struct listen_address *a, const struct listen_address *b);

#endif
