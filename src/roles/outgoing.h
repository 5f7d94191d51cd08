/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The log's way to our replicas. Loop 0, unless a line says otherwise.
 */
#pragma once

#include <stdint.h>
#include <uv.h>

struct replication;

/* Open and close the timer, with the loop. */
void outgoing_start(struct replication *r, uv_loop_t *uv);
void outgoing_stop(struct replication *r);

/* Begins to copy the log into the backlog; or ends that, and frees the backlog,
 * since no replica follows. */
void outgoing_open(struct replication *r);
void outgoing_close(struct replication *r);

/* Seals what was written so far. Returns up to where replicas may have it. */
uint64_t outgoing_seal(struct replication *r);

/* Sends what is released: now; now if a client waits for an acknowledgement,
 * else within half a millisecond; or by loop 0, which it wakes (any thread). */
void outgoing_send(struct replication *r);
void outgoing_look(struct replication *r);
void outgoing_poke(struct replication *r);

/* Asks replicas to acknowledge this position as soon as they have it. Any
 * thread; it has the type of a hook, and ctx is the struct replication. */
void outgoing_ask(void *ctx, uint64_t position);
