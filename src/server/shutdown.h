/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ends the server: waits for replicas, saves the data, stops the loops. Loop 0.
 */
#pragma once

struct server;

/* Saves the last state and stops the loops. May return before that, to wait for
 * replicas: data.c's tick calls it again. If saving fails, the server goes on,
 * and repeats the stop if a signal asked for it. */
void shutdown_begin(struct server *server);

/* Stops the loops without saving: there is no data yet, or it is saved. */
void shutdown_loops(struct server *server);

/* Asks the service manager for more time. */
void shutdown_extend_timeout(void);
