/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Our replicas: their links, and the snapshots for them. Loop 0, unless a line
 * says otherwise.
 */
#pragma once

#include "engine/service.h"
#include "repl/primary_hooks.h"

struct replication;

extern const struct primary_hooks followers_hooks;

/* Takes over the connection of a client that has sent PSYNC. It is called as
 * hand_over of struct replication_calls. Any thread. */
bool followers_take(void *ctx, struct handover *handover);

/* Drops a replica because of CLIENT KILL. */
void followers_kill(struct replication *r, uint64_t id);

/* Drops replicas whose user was deleted, if users have changed since the last
 * call. Loop 0, outside any section of the gate. */
void followers_revoke(struct replication *r);
void followers_close(struct replication *r);

/* Handle that a snapshot began (fd is its pipe; -1: it could not begin, because
 * of `error`), reached its position, and ended. They are called as hooks of
 * struct persist_sync_hooks; ctx is the struct replication. */
void followers_sync_began(void *ctx, int fd, int error, uint64_t position,
                          uint64_t sequence);
void followers_sync_reached(void *ctx, uint64_t position, uint64_t sequence);
void followers_sync_ended(void *ctx, int error);
