/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ends the server: waits for replicas, saves the data, stops the loops. Loop 0.
 */
#pragma once

struct server;

/* Begin a stop, which ends the server when its replicas and the disk have
 * everything. If a stop fails, the server goes on; later it repeats a stop that
 * a signal began, but not one that SHUTDOWN began. shutdown_ask() is for
 * SHUTDOWN: any thread; ctx is the server. */
void shutdown_by_signal(struct server *server, int number);
void shutdown_ask(void *ctx, unsigned flags);

/* Takes the next step of a stop. Call it in each tick, and when the disk has
 * made progress. */
void shutdown_look(struct server *server);

/* Stops the loops without saving: there is no data yet, or it is saved already.
 */
void shutdown_loops(struct server *server);

/* Asks the service manager for more time. */
void shutdown_extend_timeout(void);
