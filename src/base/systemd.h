/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Notifies the service manager, as sd_notify(3) does, but without libsystemd:
 * by datagrams to the socket that NOTIFY_SOCKET names. Without that variable
 * every call does nothing and succeeds. Also knows the sockets that the service
 * manager has opened, as sd_listen_fds(3) does. systemd_init runs before other
 * threads start, the rest on loop 0.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The first descriptor of the sockets that the service manager has opened. */
enum { SYSTEMD_SOCKETS_FIRST = 3, SYSTEMD_SOCKETS_MAX = 64 };

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and opens the socket, so
 * that later calls need no free descriptor. Reads LISTEN_FDS and LISTEN_PID.
 * Removes the variables from the environment, so that no child process notifies
 * for us. False: there is a service manager, but its socket cannot be used. */
bool systemd_init(void);
void systemd_fini(void);

/* Returns whether a service manager wants notifications. */
bool systemd_is_used(void);

/* Sends a state: lines such as "READY=1", separated by '\n'. Never blocks.
 * False: it was not sent, which the caller can only log. */
bool systemd_notify(const char *state);

/* Sends STATUS=<text>, which `systemctl status` shows. No newline in the text.
 */
__attribute__((format(printf, 1, 2))) bool systemd_status(const char *format,
                                                          ...);

/* Sends RELOADING=1 with the time, for Type=notify-reload. READY=1 ends the
 * reload. */
bool systemd_reloading(void);

/* Returns how many sockets the service manager has opened for this process. */
unsigned systemd_sockets(void);

/* Returns how often to send "WATCHDOG=1": half of the time that the service
 * manager waits. 0: the unit has no watchdog. */
uint64_t systemd_watchdog_interval_ms(void);
