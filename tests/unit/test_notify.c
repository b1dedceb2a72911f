#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/check_main.h"
#include "tellerd/base/clock.h"
#include "tellerd/daemon/notify.h"

/* The service manager's side: a datagram socket at a path or an abstract name. */
static int manager = -1;
static char name[64];
static char received[2048];

static void listen_at(const char *address)
{
    struct sockaddr_un socket_address = {.sun_family = AF_UNIX};
    size_t len = strlen(address);
    snprintf(name, sizeof name, "%s", address);
    memcpy(socket_address.sun_path, address, len);
    if (address[0] == '@')
        socket_address.sun_path[0] = '\0';
    socklen_t size =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (address[0] == '/' ? 1 : 0));
    manager = socket(AF_UNIX, SOCK_DGRAM, 0);
    ck_assert_int_ge(manager, 0);
    ck_assert_int_eq(bind(manager, (struct sockaddr *)&socket_address, size), 0);
    setenv("NOTIFY_SOCKET", address, 1);
}

static void setup(void)
{
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    char address[64];
    snprintf(address, sizeof address, "@test_notify.%d", (int)getpid());
    listen_at(address);
}

static void teardown(void)
{
    close(manager);
}

static const char *receive(void)
{
    ssize_t n = recv(manager, received, sizeof received - 1, MSG_DONTWAIT);
    received[n > 0 ? n : 0] = '\0';
    return received;
}

START_TEST(messages_are_those_of_the_protocol)
{
    struct notify notify;
    notify_init(&notify);
    ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
    notify_ready(&notify, "serving");
    ck_assert_str_eq(receive(), "READY=1\nSTATUS=serving");
    notify_stopping(&notify, "draining");
    ck_assert_str_eq(receive(), "STOPPING=1\nSTATUS=draining");
    notify_status(&notify, "loading %d%%\nREADY=1", 37);
    ck_assert_str_eq(receive(), "STATUS=loading 37% READY=1");
    notify_extend(&notify, UINT64_C(5000000000));
    ck_assert_str_eq(receive(), "EXTEND_TIMEOUT_USEC=5000000");
    notify_watchdog(&notify);
    ck_assert_str_eq(receive(), "WATCHDOG=1");
    notify_done(&notify);
    notify_ready(&notify, "nobody hears");
    ck_assert_str_eq(receive(), "");
}
END_TEST

START_TEST(reloading_carries_the_monotonic_time)
{
    struct notify notify;
    unsigned long long us = 0;
    notify_init(&notify);
    unsigned long long before = clock_ns() / 1000;
    notify_reloading(&notify);
    unsigned long long after = clock_ns() / 1000;
    ck_assert_int_eq(sscanf(receive(), "RELOADING=1\nMONOTONIC_USEC=%llu", &us), 1);
    ck_assert(before <= us && us <= after);
    notify_done(&notify);
}
END_TEST

START_TEST(a_path_works_too)
{
    struct notify notify;
    char folder[] = "/tmp/test_notify.XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/s", folder);
    close(manager);
    listen_at(path);
    notify_init(&notify);
    notify_watchdog(&notify);
    ck_assert_str_eq(receive(), "WATCHDOG=1");
    notify_done(&notify);
    unlink(path);
    rmdir(folder);
}
END_TEST

START_TEST(without_a_manager_nothing_happens)
{
    struct notify notify;
    unsetenv("NOTIFY_SOCKET");
    setenv("WATCHDOG_USEC", "1000000", 1);
    notify_init(&notify);
    ck_assert_int_eq(notify.fd, -1);
    ck_assert_uint_eq(notify.watchdog_ns, 0);
    notify_ready(&notify, "x");
    notify_done(&notify);
}
END_TEST

START_TEST(other_kinds_of_sockets_are_refused)
{
    static const char *const bad[] = {"vsock:2:1", "relative", "", "/", "@"};
    char long_name[200];
    struct notify notify;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv("NOTIFY_SOCKET", bad[i], 1);
        notify_init(&notify);
        ck_assert_int_eq(notify.fd, -1);
    }
    snprintf(long_name, sizeof long_name, "/%0150d", 0);
    setenv("NOTIFY_SOCKET", long_name, 1);
    notify_init(&notify);
    ck_assert_int_eq(notify.fd, -1);
}
END_TEST

/* The watchdog interval for these variables (NULL: not set). */
static uint64_t watchdog(const char *usec, const char *pid)
{
    struct notify notify;
    setenv("NOTIFY_SOCKET", name, 1);
    usec ? setenv("WATCHDOG_USEC", usec, 1) : unsetenv("WATCHDOG_USEC");
    pid ? setenv("WATCHDOG_PID", pid, 1) : unsetenv("WATCHDOG_PID");
    notify_init(&notify);
    notify_done(&notify);
    ck_assert_ptr_null(getenv("WATCHDOG_USEC"));
    ck_assert_ptr_null(getenv("WATCHDOG_PID"));
    return notify.watchdog_ns;
}

START_TEST(the_watchdog_is_fed_at_half_its_limit)
{
    char pid[32];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    ck_assert_uint_eq(watchdog("30000000", NULL), UINT64_C(15000000000));
    ck_assert_uint_eq(watchdog("30000000", pid), UINT64_C(15000000000));
    ck_assert_uint_eq(watchdog("30000000", "1"), 0);
    ck_assert_uint_eq(watchdog(NULL, NULL), 0);
    ck_assert_uint_eq(watchdog("junk", NULL), 0);
    ck_assert_uint_eq(watchdog("-1", NULL), 0);
    ck_assert_uint_eq(watchdog("18446744073709551615", NULL), 0);
}
END_TEST

static void add_cases(Suite *suite)
{
    static const TTest *const *const tests[] = {
        &messages_are_those_of_the_protocol,
        &reloading_carries_the_monotonic_time,
        &a_path_works_too,
        &without_a_manager_nothing_happens,
        &other_kinds_of_sockets_are_refused,
        &the_watchdog_is_fed_at_half_its_limit,
    };
    TCase *tcase = tcase_create("notify");
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(tcase, *tests[i]);
    suite_add_tcase(suite, tcase);
}

CHECK_MAIN("notify", add_cases)
