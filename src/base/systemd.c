/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All notifications leave through one connected datagram socket.
 */
#include "base/systemd.h"

#include "base/clock.h"
#include "base/slice.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int notify_fd = -1;
static uint64_t watchdog_interval_ms;
static unsigned sockets;

/* Connects to a path, or to an abstract name, which begins with '@'. */
static bool
open_socket(const char *path)
{
    struct sockaddr_un address;
    size_t len = strlen(path);
    int fd;

    memset(&address, 0, sizeof(address));
    address.sun_family = AF_UNIX;
    if ((path[0] != '/' && path[0] != '@') || len < 2 ||
        len >= sizeof(address.sun_path)) {
        return false;
    }
    memcpy(address.sun_path, path, len);
    if (path[0] == '@') {
        address.sun_path[0] = '\0';
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return false;
    }
    if (connect(fd, (const struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) !=
        0) {
        (void)close(fd);
        return false;
    }
    notify_fd = fd;
    return true;
}

/* Returns whether the variable names another process: then it was meant for a
 * parent, which has only passed on its environment. */
static bool
is_for_another(const char *variable)
{
    const char *text = getenv(variable);
    uint64_t pid = 0;

    return text != NULL &&
           (!slice_to_u64(slice_of(text), &pid) || pid != (uint64_t)getpid());
}

/* Counts the sockets, and lets no child process inherit them. */
static unsigned
read_sockets(void)
{
    const char *text = getenv("LISTEN_FDS");
    uint64_t count = 0;

    if (text == NULL || !slice_to_u64(slice_of(text), &count) ||
        count > SYSTEMD_SOCKETS_MAX || getenv("LISTEN_PID") == NULL ||
        is_for_another("LISTEN_PID")) {
        return 0;
    }
    for (int i = 0; i < (int)count; i++) {
        (void)fcntl(SYSTEMD_SOCKETS_FIRST + i, F_SETFD, FD_CLOEXEC);
    }
    return (unsigned)count;
}

/* Returns half of the watchdog's time-out, 0 without a watchdog. WATCHDOG_PID
 * names the process that the watchdog watches. */
static uint64_t
read_watchdog(void)
{
    const char *usec_text = getenv("WATCHDOG_USEC");
    uint64_t usec = 0;
    uint64_t interval_ms;

    if (usec_text == NULL || !slice_to_u64(slice_of(usec_text), &usec) ||
        usec == 0) {
        return 0;
    }
    if (is_for_another("WATCHDOG_PID")) {
        return 0;
    }
    interval_ms = usec / 2000;
    return interval_ms > 0 ? interval_ms : 1;
}

bool
systemd_init(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    bool usable = true;

    systemd_fini();
    if (path != NULL) {
        usable = open_socket(path);
        watchdog_interval_ms = usable ? read_watchdog() : 0;
    }
    sockets = read_sockets();
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDNAMES");
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
    return usable;
}

bool
systemd_is_used(void)
{
    return notify_fd >= 0;
}

void
systemd_fini(void)
{
    if (notify_fd >= 0) {
        (void)close(notify_fd);
    }
    notify_fd = -1;
    watchdog_interval_ms = 0;
    sockets = 0;
}

bool
systemd_notify(const char *state)
{
    size_t len = strlen(state);

    return notify_fd < 0 ||
           send(notify_fd, state, len, MSG_NOSIGNAL) == (ssize_t)len;
}

bool
systemd_status(const char *format, ...)
{
    char text[256];
    char state[sizeof(text) + sizeof("STATUS=")];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    (void)snprintf(state, sizeof(state), "STATUS=%s", text);
    return systemd_notify(state);
}

bool
systemd_reloading(void)
{
    char state[80];

    (void)snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
                   clock_mono_ns() / 1000);
    return systemd_notify(state);
}

unsigned
systemd_sockets(void)
{
    return sockets;
}

uint64_t
systemd_watchdog_interval_ms(void)
{
    return watchdog_interval_ms;
}
