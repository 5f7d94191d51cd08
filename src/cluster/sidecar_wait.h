/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A server gives up its data of a slot, its own or a copy, only when the daemon
 * of the slot's owner has it on its disk, and has fenced this server for the
 * slot or holds it at a higher epoch. Until then a server that should follow
 * another one does not: it goes on leading, or following its former leader. A
 * replica whose primary has come back without the data keeps its copy. Slots
 * without keys hold nobody back for long.
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

/* Does what sidecar_may_copy (sidecar.h) does. */
bool sidecar_wait_may_copy(struct sidecar *sidecar, const char *history,
                           uint64_t now_ms);

/* Ends the waiting: we need not follow any more, or have a copy. */
void sidecar_wait_end(struct sidecar *sidecar);

/* Handles that we lead, without the server whose copy we have: slots outside of
 * the claim stay copies. */
void sidecar_wait_lead(struct sidecar *sidecar, const struct slot_set *claimed);
