/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keys whose time is over go, even if nobody asks for them: bit by bit, on loop
 * 0, from its timer. Each removal is an effect, a DEL, so that files and
 * replicas have it at the same place of the log; where the journal has no room
 * they stay a while longer, and so they do while this server is not the one to
 * decide. Nobody finds them meanwhile.
 */
#pragma once

#include "engine/service.h"

/* Whether this server may remove keys that no client asked it to: a replica
 * waits for what its primary says, one that may still turn out to be a replica
 * (the grace of a start) for the end of that, and in a pause nothing changes.
 * Inside a section of the gate. */
bool expiry_may_remove(const struct service *service);

/* Removes what is over, and what is left of flushed databases, for about
 * budget_us; true if there may be more to do at once. Outside the gate; wakes
 * who listens, and the journal. Loop 0, with its worker. */
bool expiry_reclaim(struct worker *worker, uint64_t now_ms, uint64_t budget_us);

/* For struct keyspace_expiry, with the worker of the thread that reclaims. */
bool expiry_begin(struct worker *worker);
bool expiry_remove(struct worker *worker, const struct key *key);
void expiry_end(struct worker *worker, unsigned stripe);
