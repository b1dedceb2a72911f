#include "config.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check_main.h"
#include "tellerd/daemon/activation.h"

static struct activation_socket sockets[ACTIVATION_MAX];
static size_t n_sockets;
static struct error err;

/* The bodies run in a child of their own: descriptors from 3 on are libcheck's in the test process.
 * They check by REQUIRE, which aborts. */
static void in_child(void (*body)(void))
{
    int result = 0;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        body();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &result, 0), pid);
    ck_assert_int_eq(result, 0);
}

/* Puts a socket at descriptor `at`, listening or not. */
static void place_socket(int at, int type, int listening)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, type, 0);
    REQUIRE(fd >= 0);
    REQUIRE(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    if (listening)
        REQUIRE(listen(fd, 1) == 0);
    if (fd != at) {
        REQUIRE(dup2(fd, at) == at);
        close(fd);
    }
}

static void hand_over(const char *n, const char *names)
{
    char pid[32];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", n, 1);
    if (names)
        setenv("LISTEN_FDNAMES", names, 1);
    n_sockets = 99;
}

static void check_gone(void)
{
    REQUIRE(getenv("LISTEN_PID") == NULL);
    REQUIRE(getenv("LISTEN_FDS") == NULL);
    REQUIRE(getenv("LISTEN_FDNAMES") == NULL);
}

static void sockets_come_with_their_names_body(void)
{
    for (int fd = 3; fd < 6; fd++)
        place_socket(fd, SOCK_STREAM, 1);
    hand_over("3", "api:metrics:a-name-that-is-longer-than-the-field-holds");
    REQUIRE(activation_take(sockets, &n_sockets, &err) == STATUS_OK);
    REQUIRE(n_sockets == 3);
    REQUIRE(sockets[0].fd == 3);
    REQUIRE(strcmp(sockets[0].name, "api") == 0);
    REQUIRE(strcmp(sockets[1].name, "metrics") == 0);
    REQUIRE(strcmp(sockets[2].name, "a-name-that-is-longer-than-the-") == 0);
    REQUIRE((fcntl(5, F_GETFD) & FD_CLOEXEC) != 0);
    check_gone();
    REQUIRE(activation_take(sockets, &n_sockets, &err) == STATUS_OK);
    REQUIRE(n_sockets == 0);
}

START_TEST(sockets_come_with_their_names)
{
    in_child(sockets_come_with_their_names_body);
}
END_TEST

static void names_may_be_missing_body(void)
{
    place_socket(3, SOCK_STREAM, 1);
    place_socket(4, SOCK_STREAM, 1);
    hand_over("2", NULL);
    REQUIRE(activation_take(sockets, &n_sockets, &err) == STATUS_OK);
    REQUIRE(n_sockets == 2);
    REQUIRE(strcmp(sockets[0].name, "") == 0);
    hand_over("2", "one");
    REQUIRE(activation_take(sockets, &n_sockets, &err) == STATUS_OK);
    REQUIRE(strcmp(sockets[0].name, "one") == 0);
    REQUIRE(strcmp(sockets[1].name, "") == 0);
}

START_TEST(names_may_be_missing)
{
    in_child(names_may_be_missing_body);
}
END_TEST

static void sockets_for_another_process_are_left_body(void)
{
    hand_over("1", NULL);
    setenv("LISTEN_PID", "1", 1);
    REQUIRE(activation_take(sockets, &n_sockets, &err) == STATUS_OK);
    REQUIRE(n_sockets == 0);
    check_gone();
}

START_TEST(sockets_for_another_process_are_left)
{
    in_child(sockets_for_another_process_are_left_body);
}
END_TEST

static void junk_in_the_variables_is_no_socket_body(void)
{
    static const char *const junk[] = {"", "x", "-1", "1x", "99999999999"};
    for (size_t i = 0; i < sizeof junk / sizeof junk[0]; i++) {
        hand_over(junk[i], NULL);
        REQUIRE(activation_take(sockets, &n_sockets, &err) == STATUS_OK);
        REQUIRE(n_sockets == 0);
    }
}

START_TEST(junk_in_the_variables_is_no_socket)
{
    in_child(junk_in_the_variables_is_no_socket_body);
}
END_TEST

static void what_is_no_listening_stream_socket_is_refused_body(void)
{
    place_socket(3, SOCK_STREAM, 0);
    hand_over("1", NULL);
    REQUIRE(activation_take(sockets, &n_sockets, &err) == STATUS_BAD_CONFIG);
    place_socket(3, SOCK_DGRAM, 0);
    hand_over("1", NULL);
    REQUIRE(activation_take(sockets, &n_sockets, &err) == STATUS_BAD_CONFIG);
    close(3);
    hand_over("1", NULL);
    REQUIRE(activation_take(sockets, &n_sockets, &err) == STATUS_BAD_CONFIG);
    hand_over("17", NULL);
    REQUIRE(activation_take(sockets, &n_sockets, &err) == STATUS_BAD_CONFIG);
    REQUIRE(n_sockets == 99);
    check_gone();
}

START_TEST(what_is_no_listening_stream_socket_is_refused)
{
    in_child(what_is_no_listening_stream_socket_is_refused_body);
}
END_TEST

static void add_cases(Suite *suite)
{
    CHECK_ADD(suite, "activation", sockets_come_with_their_names, names_may_be_missing,
              sockets_for_another_process_are_left, junk_in_the_variables_is_no_socket,
              what_is_no_listening_stream_socket_is_refused);
}

CHECK_MAIN("activation", add_cases)
