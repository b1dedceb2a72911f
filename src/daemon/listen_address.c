/* Addresses to listen at, from text; numbers only, so that starting never waits for a resolver. */
#include "config.h"

#include "tellerd/daemon/listen_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

enum { HOST_MAX = 64 };

static enum status bad(struct error *err, const char *text, const char *why)
{
    return error_set(err, STATUS_BAD_CONFIG, "address \"%s\": %s", text, why);
}

static enum status parse_unix(const char *text, const char *path, struct listen_address *ret,
                              struct error *err)
{
    struct listen_address address = {.local = true};
    size_t len = strlen(path);
    if (path[0] != '/')
        return bad(err, text, "the path after unix: must begin with /");
    if (len >= sizeof address.path)
        return bad(err, text, "the path is too long for a unix socket (at most 107 bytes)");
    memcpy(address.path, path, len + 1);
    address.socket.ss_family = AF_UNSPEC;
    *ret = address;
    return STATUS_OK;
}

/* 0..65535 in plain digits. */
static bool parse_port(const char *text, unsigned *ret)
{
    unsigned port = 0;
    size_t len = strlen(text);
    if (len == 0 || len > 5 || strspn(text, "0123456789") != len)
        return false;
    for (; *text; text++)
        port = port * 10 + (unsigned)(*text - '0');
    if (port > 65535)
        return false;
    *ret = port;
    return true;
}

static bool is_loopback(const struct sockaddr_storage *socket)
{
    if (socket->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)socket;
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)socket)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

/* Splits host and port; brackets are taken off and *ret_bracketed says so. */
static enum status split(const char *text, char host[HOST_MAX], bool *ret_bracketed,
                         unsigned *ret_port, struct error *err)
{
    const char *colon = strrchr(text, ':'), *start = text;
    bool bracketed = text[0] == '[';
    if (!colon && parse_port(text, ret_port)) {
        memcpy(host, "127.0.0.1", sizeof "127.0.0.1");
        *ret_bracketed = false;
        return STATUS_OK;
    }
    if (!colon)
        return bad(err, text, "the port is missing; write HOST:PORT, [V6]:PORT or unix:/PATH");
    const char *end = colon;
    if (bracketed) {
        if (colon[-1] != ']')
            return bad(err, text, "the port is missing after ]");
        start++;
        end--;
    }
    size_t len = (size_t)(end - start);
    if (len == 0)
        return bad(err, text, "the host is missing; * means all IPv4 addresses");
    if (!bracketed && memchr(start, ':', len))
        return bad(err, text, "an IPv6 address goes in brackets: [V6]:PORT");
    if (len >= HOST_MAX)
        return bad(err, text, "the host is too long");
    if (!parse_port(colon + 1, ret_port))
        return bad(err, text, "the port is not a number from 0 to 65535");
    memcpy(host, start, len);
    host[len] = '\0';
    *ret_bracketed = bracketed;
    return STATUS_OK;
}

static enum status parse_v4(const char *text, const char *host, unsigned port,
                            struct listen_address *ret, struct error *err)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const char *number = strcmp(host, "localhost") == 0 ? "127.0.0.1"
                         : strcmp(host, "*") == 0       ? "0.0.0.0"
                                                        : host;
    if (inet_pton(AF_INET, number, &v4.sin_addr) != 1)
        return bad(err, text, "the host is not an IPv4 address, localhost or *");
    memcpy(&ret->socket, &v4, sizeof v4);
    ret->socket_len = sizeof v4;
    return STATUS_OK;
}

/* By getaddrinfo, which also reads a scope: [fe80::1%eth0]. */
static enum status parse_v6(const char *text, const char *host, unsigned port,
                            struct listen_address *ret, struct error *err)
{
    struct addrinfo hints = {.ai_family = AF_INET6,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    struct sockaddr_in6 v6;
    if (getaddrinfo(host, "0", &hints, &found) != 0)
        return bad(err, text, "not an IPv6 address in the brackets");
    memcpy(&v6, found->ai_addr, sizeof v6);
    freeaddrinfo(found);
    v6.sin6_port = htons((uint16_t)port);
    memcpy(&ret->socket, &v6, sizeof v6);
    ret->socket_len = sizeof v6;
    return STATUS_OK;
}

enum status listen_address_parse(const char *text, struct listen_address *ret, struct error *err)
{
    char host[HOST_MAX];
    bool bracketed = false;
    unsigned port = 0;
    struct listen_address address = {0};
    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(text, text + 5, ret, err);
    enum status status = split(text, host, &bracketed, &port, err);
    if (status == STATUS_OK)
        status = bracketed ? parse_v6(text, host, port, &address, err)
                           : parse_v4(text, host, port, &address, err);
    if (status != STATUS_OK)
        return status;
    address.local = is_loopback(&address.socket);
    *ret = address;
    return STATUS_OK;
}

bool listen_socket_is_local(int fd)
{
    struct sockaddr_storage bound = {0};
    socklen_t len = sizeof bound;
    if (getsockname(fd, (struct sockaddr *)&bound, &len) != 0)
        return false;
    if (bound.ss_family == AF_INET || bound.ss_family == AF_INET6)
        return is_loopback(&bound);
    return bound.ss_family == AF_UNIX;
}

static unsigned port_of(const struct listen_address *address)
{
    if (address->socket.ss_family == AF_INET)
        return ((const struct sockaddr_in *)&address->socket)->sin_port;
    return ((const struct sockaddr_in6 *)&address->socket)->sin6_port;
}

bool listen_address_equal(const struct listen_address *a, const struct listen_address *b)
{
    if (a->path[0] || b->path[0])
        return strcmp(a->path, b->path) == 0;
    if (a->socket_len != b->socket_len || port_of(a) == 0)
        return false;
    return memcmp(&a->socket, &b->socket, a->socket_len) == 0;
}
