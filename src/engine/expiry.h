/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Removes expired keys in the background: a slice at a time, from a timer of
 * loop 0. Each removal is a DEL in the log, so that files and replicas have it
 * at the same position. While the journal is full, and on a server that does
 * not decide about expiry (a replica), expired keys keep their memory; no
 * command sees them.
 */
#pragma once

#include "engine/service.h"

/* Returns whether this server may remove keys that no client asked it to
 * remove. A replica may not. A server in the grace after its start may not,
 * since it may become a replica. Nothing may be removed during a pause. Inside
 * a section of the gate. */
bool expiry_may_remove(const struct service *service);

/* Removes expired keys and what is left of flushed databases for about
 * budget_us. Returns true if there may be more to do at once. Outside the gate;
 * wakes the loops that have notices to deliver, and the journal. Loop 0, with
 * its worker. */
bool expiry_reclaim(struct worker *worker, uint64_t now_ms, uint64_t budget_us);

/* The hooks of struct keyspace_expiry, called with the worker of the thread
 * that reclaims. */
bool expiry_begin(struct worker *worker);
bool expiry_remove(struct worker *worker, const struct key *key);
void expiry_end(struct worker *worker, unsigned stripe);
