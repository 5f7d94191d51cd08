/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Feeds the watchdog of the service manager while all threads that serve give a
 * sign of life: each event loop answers a mail, and the two threads of the
 * journal answer too (journal_answers). A thread that waits for a slow disk
 * counts as alive, since the server goes on without that disk and a restart
 * would not help. The timer runs on loop 0, so loop 0 is alive when it fires.
 */
#pragma once

struct server;

/* Allocates the memory. Call it before the loops run. */
void heartbeat_init(struct server *server);

/* Starts the timer, if there is a watchdog. */
void heartbeat_start(struct server *server);

/* Frees the memory. Call it after the last loop has ended. */
void heartbeat_fini(struct server *server);
