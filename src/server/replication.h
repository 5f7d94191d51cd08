/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connects the state machines of repl with the rest of the server: gives them
 * links, snapshots and a clock. Loop 0, unless a line says otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct replication;
struct server;

struct replication *replication_new(struct server *server);
void replication_free(struct replication *replication);

/* Starts and closes timers; before loop 0 runs, and at its end. */
void replication_start_handles(struct server *server);
void replication_close_handles(struct server *server);

/* Begins to lead or to follow: the data is loaded. */
void replication_begin(struct server *server);

/* Makes loop 0 read the options in force. Any thread, under the raised gate. */
void replication_apply_conf(struct server *server);

/* Whether all replicas have acknowledged the whole log. Writes must be
 * paused. */
bool replication_is_even(struct server *server);

/* Closes all links; before the loops stop. */
void replication_stop(struct server *server);

/* Handles that DEBUG RELOAD or a primary replaced all data. Under the raised
 * gate. */
void replication_reloaded(struct server *server);

/* Hooks of persist: the log was released or tapped further (any thread); the
 * child with a snapshot for replicas began and ended. */
void replication_moved(struct server *server);
void replication_sync_began(struct server *server, int fd, int error,
                            uint64_t position, uint64_t sequence);
void replication_sync_ended(struct server *server, int error);
