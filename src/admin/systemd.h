/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The service manager's notification protocol, sd_notify(3), spoken without
 * libsystemd: datagrams to the socket that NOTIFY_SOCKET names. Without that
 * variable every call here does nothing and succeeds. systemd_init runs once
 * before there are threads; the rest belongs to loop 0, whose being alive the
 * watchdog is about.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, removes them from the
 * environment, so that no child speaks for us, and opens one socket, so that
 * later notices need no free descriptor. False: there is a service manager,
 * but its socket cannot be used. */
bool systemd_init(void);
void systemd_fini(void);

/* Whether there is a service manager that wants to hear. */
bool systemd_is_used(void);

/* Sends one state: lines such as "READY=1" with '\n' between them. Never
 * blocks. False: it did not get through; there is nothing to do about it
 * beyond a line in the log. */
bool systemd_notify(const char *state);

/* STATUS=<text>, what `systemctl status` shows; the text has no newline. */
__attribute__((format(printf, 1, 2))) bool systemd_status(const char *format,
                                                          ...);

/* RELOADING=1 with the time that Type=notify-reload asks for. READY=1 ends
 * the reload. */
bool systemd_reloading(void);

/* How often to send "WATCHDOG=1": half of what the service manager waits.
 * 0: it does not ask for it. */
uint64_t systemd_watchdog_interval_ms(void);
