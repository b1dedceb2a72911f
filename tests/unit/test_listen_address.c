#include "config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/check_main.h"
#include "tellerd/daemon/listen_address.h"

static struct listen_address parse(const char *text)
{
    struct listen_address address;
    struct error err;
    ck_assert_msg(listen_address_parse(text, &address, &err) == STATUS_OK, "%s", err.text);
    return address;
}

static void check_v4(const char *text, const char *host, unsigned port, bool local)
{
    struct listen_address address = parse(text);
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address.socket;
    char got[INET_ADDRSTRLEN];
    ck_assert_int_eq(address.socket.ss_family, AF_INET);
    ck_assert_str_eq(inet_ntop(AF_INET, &v4->sin_addr, got, sizeof got), host);
    ck_assert_uint_eq(ntohs(v4->sin_port), port);
    ck_assert_int_eq(address.local, local);
    ck_assert_uint_eq(address.socket_len, sizeof *v4);
}

START_TEST(ipv4_addresses)
{
    check_v4("127.0.0.1:8000", "127.0.0.1", 8000, true);
    check_v4("127.9.9.9:0", "127.9.9.9", 0, true);
    check_v4("localhost:65535", "127.0.0.1", 65535, true);
    check_v4("8080", "127.0.0.1", 8080, true);
    check_v4("0.0.0.0:80", "0.0.0.0", 80, false);
    check_v4("*:80", "0.0.0.0", 80, false);
    check_v4("192.168.1.2:80", "192.168.1.2", 80, false);
}
END_TEST

START_TEST(ipv6_addresses)
{
    static const struct {
        const char *text;
        bool local;
    } cases[] = {
        {"[::1]:8000", true},           {"[::]:8000", false},           {"[fe80::1]:1", false},
        {"[::ffff:127.0.0.1]:1", true}, {"[::ffff:10.0.0.1]:1", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct listen_address address = parse(cases[i].text);
        ck_assert_int_eq(address.socket.ss_family, AF_INET6);
        ck_assert_int_eq(address.local, cases[i].local);
    }
    struct listen_address one = parse("[::1]:8000");
    ck_assert_uint_eq(ntohs(((struct sockaddr_in6 *)&one.socket)->sin6_port), 8000);
}
END_TEST

START_TEST(unix_sockets)
{
    struct listen_address address = parse("unix:/run/tellerd/api.sock");
    ck_assert_str_eq(address.path, "/run/tellerd/api.sock");
    ck_assert_int_eq(address.socket.ss_family, AF_UNSPEC);
    ck_assert(address.local);
    char text[200];
    snprintf(text, sizeof text, "unix:/%0106d", 0);
    ck_assert_uint_eq(strlen(parse(text).path), 107);
}
END_TEST

START_TEST(everything_else_is_refused_with_a_reason)
{
    char long_path[200];
    snprintf(long_path, sizeof long_path, "unix:/%0107d", 0);
    const char *const bad[] = {
        "",
        "127.0.0.1",
        ":8000",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:x",
        "127.0.0.1:-1",
        "127.0.0.1: 1",
        "127.0.0.1:000001",
        "::1:8000",
        "[::1]",
        "[::1]8000",
        "[::1:8000",
        "[127.0.0.1]:80",
        "[]:80",
        "[x]:80",
        "example.org:80",
        "1.2.3:80",
        "256.1.1.1:80",
        "http://127.0.0.1:80",
        "unix:",
        "unix:rel",
        "unix:@x",
        long_path,
        "70000",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct listen_address address;
        struct error err;
        ck_assert_msg(listen_address_parse(bad[i], &address, &err) == STATUS_BAD_CONFIG, "%s",
                      bad[i]);
        ck_assert_int_eq(strncmp(err.text, "address \"", 9), 0);
    }
}
END_TEST

static bool equal(const char *a, const char *b)
{
    struct listen_address first = parse(a), second = parse(b);
    return listen_address_equal(&first, &second);
}

START_TEST(the_same_place_is_recognised)
{
    ck_assert(equal("127.0.0.1:1", "localhost:1"));
    ck_assert(equal("[::1]:1", "[0:0::1]:1"));
    ck_assert(equal("unix:/a", "unix:/a"));
    ck_assert(!equal("unix:/a", "unix:/b"));
    ck_assert(!equal("127.0.0.1:1", "127.0.0.1:2"));
    ck_assert(!equal("127.0.0.1:0", "127.0.0.1:0"));
    ck_assert(!equal("127.0.0.1:1", "[::1]:1"));
    ck_assert(!equal("127.0.0.1:1", "unix:/a"));
}
END_TEST

/* Whether a socket bound to that address is local. */
static bool bound_is_local(const char *text)
{
    struct listen_address address = parse(text);
    int fd = socket(address.socket.ss_family, SOCK_STREAM, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address.socket, address.socket_len), 0);
    bool local = listen_socket_is_local(fd);
    close(fd);
    return local;
}

START_TEST(bound_sockets_tell_whether_they_are_local)
{
    ck_assert(bound_is_local("127.0.0.1:0"));
    ck_assert(!bound_is_local("0.0.0.0:0"));
    int unix_socket = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert(listen_socket_is_local(unix_socket));
    close(unix_socket);
    ck_assert(!listen_socket_is_local(-1));
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "listen address", ipv4_addresses, ipv6_addresses, unix_sockets,
              everything_else_is_refused_with_a_reason, the_same_place_is_recognised,
              bound_sockets_tell_whether_they_are_local);
}

CHECK_MAIN("listen_address", add_cases)
