/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Our replicas: their links, and the snapshots for them. Loop 0, unless a line
 * says otherwise.
 */
#pragma once

#include "engine/service.h"
#include "repl/primary_sync.h"

struct replication;

extern const struct primary_hooks followers_hooks;

/* Takes a client's connection that PSYNC made a replica's. Any thread; it has
 * the type of a hook. */
bool followers_take(void *ctx, struct handover *handover);

/* Drops a replica because of CLIENT KILL. */
void followers_kill(struct replication *r, uint64_t id);
void followers_close(struct replication *r);

/* The child with a snapshot began (fd: its pipe; -1: it could not, error) and
 * ended. */
void followers_sync_began(struct replication *r, int fd, int error,
                          const struct primary_sync *sync);
void followers_sync_ended(struct replication *r, int error);
