/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Our primary: the link, the groups and the snapshots that arrive. Loop 0.
 */
#pragma once

#include "engine/service.h"
#include "repl/replica_hooks.h"

struct replication;

/* Makes the replica's side of replication, which follows no primary yet. The
 * caller frees it. */
struct replica *following_init(struct replication *r);

/* Follows the primary of this role. failover: asks it to become the primary. */
void following_begin(struct replication *r, const struct role *role,
                     bool failover);
void following_end(struct replication *r);

/* Closes the link because of CLIENT KILL, or because our data was replaced. The
 * replica's side then connects again. */
void following_kill(struct replication *r, const char *reason);

/* Continues loading and storing a snapshot. Call it when the transfer's thread
 * or the journal has made progress. */
void following_look(struct replication *r);
