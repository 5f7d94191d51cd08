/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A server gives up its data of a slot, its own or a copy, only when the daemon
 * of the slot's owner has it on its disk, and has fenced this server for the
 * slot or holds it at a higher epoch. Until then a server that should follow
 * another server does not follow it. It goes on leading, or following its
 * former leader. A replica whose primary has come back without the data keeps
 * its copy. Slots without keys delay a server only for a short time.
 */
#pragma once

#include "cluster/sidecar_hooks.h"

struct sidecar;

/* Returns whether, by the last survey, the owner's daemon has taken over the
 * slot. */
bool sidecar_is_taken(const struct sidecar *sidecar, unsigned slot);

/* Returns whether we may follow the daemon beside this node. */
bool sidecar_may_follow(struct sidecar *sidecar, const char *leader,
                        uint64_t now_ms);

/* Implements sidecar_may_copy (sidecar.h). */
bool sidecar_wait_may_copy(struct sidecar *sidecar, const char *history,
                           uint64_t now_ms);

/* Ends the wait: we follow now, need not follow any more, or have the leader's
 * data. */
void sidecar_wait_end(struct sidecar *sidecar);

/* Handles that we begin to lead without the server whose copy we have. All
 * slots but the complete ones stay copies. */
void sidecar_wait_lead(struct sidecar *sidecar,
                       const struct slot_set *complete);
