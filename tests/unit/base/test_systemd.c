/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The notification protocol against a socket of our own in the place of the
 * service manager's: by path and by abstract name.
 */
#include "base/systemd.h"

#include "../test.h"
#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Listens at the address and puts its name into NOTIFY_SOCKET. */
static int
listen_at(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t len = strlen(path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_true(len < sizeof(address.sun_path));
    memcpy(address.sun_path, path, len);
    if (path[0] == '@') {
        address.sun_path[0] = '\0';
    }
    assert_int_equal(
        bind(fd, (const struct sockaddr *)&address,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
        0);
    assert_int_equal(setenv("NOTIFY_SOCKET", path, 1), 0);
    return fd;
}

static void
expect_state(int fd, const char *state)
{
    char text[512];
    ssize_t len = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);

    assert_true(len >= 0);
    text[len] = '\0';
    assert_string_equal(text, state);
}

static void
talk(const char *path)
{
    int fd = listen_at(path);

    assert_false(systemd_is_used());
    assert_true(systemd_init());
    assert_true(systemd_is_used());
    assert_true(systemd_notify("READY=1"));
    expect_state(fd, "READY=1");
    assert_true(systemd_status("loaded %d of %d", 3, 7));
    expect_state(fd, "STATUS=loaded 3 of 7");
    systemd_fini();
    assert_true(systemd_notify("STOPPING=1"));
    assert_int_equal(recv(fd, (char[8]){ 0 }, 8, MSG_DONTWAIT), -1);
    (void)close(fd);
}

TEST(states_arrive_at_a_socket_with_a_path)
{
    char folder[] = "/tmp/bloomery-systemd-XXXXXX";
    char path[64];

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/notify", folder);
    talk(path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

TEST(states_arrive_at_an_abstract_socket)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "@bloomery-systemd-test-%d",
                   (int)getpid());
    talk(path);
}

TEST(without_a_service_manager_notices_succeed_and_go_nowhere)
{
    assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
    assert_int_equal(setenv("WATCHDOG_USEC", "30000000", 1), 0);
    assert_true(systemd_init());
    assert_true(systemd_notify("READY=1"));
    assert_int_equal(systemd_watchdog_interval_ms(), 0);
}

TEST(a_socket_that_cannot_be_used_is_reported_once_and_then_ignored)
{
    char too_long[300];
    const char *const bad[] = { "relative", "/", "", "/nonexistent/notify",
                                too_long };

    memset(too_long, 'x', sizeof(too_long) - 1);
    too_long[0] = '/';
    too_long[sizeof(too_long) - 1] = '\0';
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(setenv("NOTIFY_SOCKET", bad[i], 1), 0);
        assert_false(systemd_init());
        assert_true(systemd_notify("READY=1"));
    }
}

TEST(children_inherit_none_of_the_variables)
{
    char path[64];
    int fd;

    (void)snprintf(path, sizeof(path), "@bloomery-systemd-test-%d",
                   (int)getpid());
    fd = listen_at(path);
    assert_int_equal(setenv("WATCHDOG_USEC", "1", 1), 0);
    assert_int_equal(setenv("WATCHDOG_PID", "1", 1), 0);
    assert_true(systemd_init());
    assert_null(getenv("NOTIFY_SOCKET"));
    assert_null(getenv("WATCHDOG_USEC"));
    assert_null(getenv("WATCHDOG_PID"));
    systemd_fini();
    (void)close(fd);
}

static uint64_t
interval_for(const char *usec, const char *pid)
{
    char path[64];
    uint64_t interval_ms;
    int fd;

    (void)snprintf(path, sizeof(path), "@bloomery-systemd-test-%d",
                   (int)getpid());
    fd = listen_at(path);
    assert_int_equal(setenv("WATCHDOG_USEC", usec, 1), 0);
    if (pid != NULL) {
        assert_int_equal(setenv("WATCHDOG_PID", pid, 1), 0);
    }
    assert_true(systemd_init());
    interval_ms = systemd_watchdog_interval_ms();
    systemd_fini();
    (void)close(fd);
    return interval_ms;
}

TEST(the_watchdog_is_served_at_half_its_time_and_only_by_its_process)
{
    char own[24];
    char other[24];

    (void)snprintf(own, sizeof(own), "%d", (int)getpid());
    (void)snprintf(other, sizeof(other), "%d", (int)getpid() + 1);
    assert_int_equal(interval_for("30000000", NULL), 15000);
    assert_int_equal(interval_for("30000000", own), 15000);
    assert_int_equal(interval_for("30000000", other), 0);
    assert_int_equal(interval_for("30000000", "x"), 0);
    assert_int_equal(interval_for("1", own), 1);
    assert_int_equal(interval_for("0", own), 0);
    assert_int_equal(interval_for("soon", own), 0);
}

static unsigned
sockets_for(const char *count, const char *pid)
{
    unsigned sockets;

    assert_int_equal(setenv("LISTEN_FDS", count, 1), 0);
    if (pid != NULL) {
        assert_int_equal(setenv("LISTEN_PID", pid, 1), 0);
    }
    assert_true(systemd_init());
    assert_null(getenv("LISTEN_FDS"));
    assert_null(getenv("LISTEN_PID"));
    sockets = systemd_sockets();
    systemd_fini();
    assert_int_equal(systemd_sockets(), 0);
    return sockets;
}

TEST(sockets_are_those_of_this_process_and_no_child_gets_them)
{
    int kept = dup(SYSTEMD_SOCKETS_FIRST); /* of this test's own */
    char own[24];
    char other[24];
    int pair[2];

    (void)snprintf(own, sizeof(own), "%d", (int)getpid());
    (void)snprintf(other, sizeof(other), "%d", (int)getpid() + 1);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(dup2(pair[0], SYSTEMD_SOCKETS_FIRST),
                     SYSTEMD_SOCKETS_FIRST);
    assert_int_equal(fcntl(SYSTEMD_SOCKETS_FIRST, F_GETFD), 0);
    assert_int_equal(sockets_for("1", other), 0);
    assert_int_equal(sockets_for("1", NULL), 0);
    assert_int_equal(sockets_for("one", own), 0);
    assert_int_equal(sockets_for("-1", own), 0);
    assert_int_equal(sockets_for("65", own), 0);
    assert_int_equal(sockets_for("0", own), 0);
    assert_int_equal(fcntl(SYSTEMD_SOCKETS_FIRST, F_GETFD), 0);
    assert_int_equal(sockets_for("1", own), 1);
    assert_int_equal(fcntl(SYSTEMD_SOCKETS_FIRST, F_GETFD), FD_CLOEXEC);
    (void)close(pair[0]);
    (void)close(pair[1]);
    if (kept >= 0) {
        (void)dup2(kept, SYSTEMD_SOCKETS_FIRST);
        (void)close(kept);
    } else {
        (void)close(SYSTEMD_SOCKETS_FIRST);
    }
}

TEST(a_reload_carries_the_monotonic_time)
{
    static const char head[] = "RELOADING=1\nMONOTONIC_USEC=";
    char path[64];
    char text[128];
    uint64_t before = clock_mono_ns() / 1000;
    ssize_t len;
    int fd;

    (void)snprintf(path, sizeof(path), "@bloomery-systemd-test-%d",
                   (int)getpid());
    fd = listen_at(path);
    assert_true(systemd_init());
    assert_true(systemd_reloading());
    len = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
    assert_true(len > 0);
    text[len] = '\0';
    assert_memory_equal(text, head, sizeof(head) - 1);
    assert_in_range(strtoull(text + sizeof(head) - 1, NULL, 10), before,
                    clock_mono_ns() / 1000);
    systemd_fini();
    (void)close(fd);
}

TEST(a_service_manager_that_went_away_does_not_stop_us)
{
    char path[64];
    int fd;

    (void)snprintf(path, sizeof(path), "@bloomery-systemd-test-%d",
                   (int)getpid());
    fd = listen_at(path);
    assert_true(systemd_init());
    (void)close(fd);
    assert_false(systemd_notify("WATCHDOG=1"));
    systemd_fini();
}
