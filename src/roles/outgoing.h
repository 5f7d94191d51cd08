/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sends the log to our replicas. Loop 0, unless a line says otherwise.
 */
#pragma once

#include <stdint.h>
#include <uv.h>

struct replication;

/* Open and close the timer, with the loop. */
void outgoing_start(struct replication *r, uv_loop_t *uv);
void outgoing_stop(struct replication *r);

/* outgoing_open() begins to copy the log into the backlog. outgoing_close()
 * stops copying and frees the backlog, when no replica follows. */
void outgoing_open(struct replication *r);
void outgoing_close(struct replication *r);

/* Closes the present group and seals all closed ones. Returns the position up
 * to which replicas may have the log. */
uint64_t outgoing_seal(struct replication *r);

/* Send the released part of the log. outgoing_send() sends it now.
 * outgoing_look() sends it now if a client waits for an acknowledgement, else
 * within half a millisecond. outgoing_poke(), on any thread, wakes loop 0 to
 * send it. */
void outgoing_send(struct replication *r);
void outgoing_look(struct replication *r);
void outgoing_poke(struct replication *r);

/* Asks replicas to acknowledge this position as soon as they have it. Any
 * thread; it is called as a hook, with the struct replication as ctx. */
void outgoing_ask(void *ctx, uint64_t position);
