/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The joint between replication and the rest: gives the state machines of repl
 * their links, their snapshots and their clock, and does what they say. Loop 0,
 * unless a line says otherwise.
 */
#pragma once

#include "server/server.h"

struct replication;

struct replication *replication_new(struct server *server);
void replication_free(struct replication *replication);

/* Before the loops run, dir is locked: the role as it was kept, or configured.
 * False: the reason was logged. */
bool replication_open(struct server *server);

/* Timers and pokes; on loop 0, before it runs. */
void replication_start_handles(struct server *server);
void replication_close_handles(struct server *server);

/* The data is loaded: begins a history of its own, or to follow. */
void replication_begin(struct server *server);

/* Options in force changed. Under the raised gate, any loop: only asks loop 0
 * to look. */
void replication_apply_conf(struct server *server);

/* Whether all replicas have everything; for a shutdown that waits for them.
 * Writes do not go on meanwhile. */
bool replication_is_even(struct server *server);

/* Writes what is still to be written of the role; its thread wakes the loops,
 * so before they are freed. */
void replication_close_file(struct server *server);

/* Ends links; before the loops stop. */
void replication_stop(struct server *server);

/* All data was replaced, by DEBUG RELOAD or by a primary's: under the raised
 * gate. */
void replication_reloaded(struct server *server);

/* The data directory is another one: the role is written there again. */
void replication_keep_role_again(struct server *server);

/* persist's hooks: something was released or tapped (any thread), and the life
 * of a snapshot's child. */
void replication_moved(struct server *server);
void replication_sync_began(struct server *server, int fd, int error,
                            uint64_t position, uint64_t sequence);
void replication_sync_ended(struct server *server, int error);
