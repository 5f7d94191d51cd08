/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connects the state machines of repl with the rest of the server: gives them
 * links, snapshots and a clock. Loop 0, unless a line says otherwise.
 */
#pragma once

#include <stdbool.h>

struct replication;
struct server;

struct replication *replication_new(struct server *server);
void replication_free(struct replication *replication);

/* Start the timers, before loop 0 runs, and close them, at its end. */
void replication_start_handles(struct server *server);
void replication_close_handles(struct server *server);

/* Begins to lead or to follow. Call it once the data is loaded. */
void replication_begin(struct server *server);

/* Makes loop 0 read the options in force. Any thread, under the raised gate. */
void replication_apply_conf(struct server *server);

/* Reads hash secrets that were put into dir, and tries links again that lacked
 * one. */
void replication_read_secrets(struct server *server);

/* Returns whether all replicas have acknowledged the whole log. Writes must be
 * paused. */
bool replication_is_even(struct server *server);

/* Closes all links. Call it before the loops stop. */
void replication_stop(struct server *server);

/* Handles that DEBUG RELOAD or a primary replaced all data. Under the raised
 * gate. */
void replication_reloaded(struct server *server);

/* Makes loop 0 send to the replicas after the released position has moved or
 * the tap has received effects. It is called as a hook of the journal. Any
 * thread. */
void replication_moved(void *ctx);
