/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a server has of a slot, as leader or as a copy, goes only when the
 * daemon of the slot's owner has it on its disk, and has fenced this one for it
 * or holds it at a higher epoch. Until then a server that should follow another
 * one does not: it goes on leading, or following the one before. A replica
 * whose primary has come back without the data keeps its copy. Slots without
 * keys hold nobody back for long.
 */
#pragma once

#include "cluster/sidecar_hooks.h"

struct sidecar;

/* Whether the last survey says that the owner's daemon has taken the slot. */
bool sidecar_is_taken(const struct sidecar *sidecar, unsigned slot);

/* Whether we may follow the daemon beside this node. */
bool sidecar_may_follow(struct sidecar *sidecar, const char *leader,
                        uint64_t now_ms);

/* As sidecar_may_copy in sidecar.h. */
bool sidecar_wait_may_copy(struct sidecar *sidecar, const char *history,
                           uint64_t now_ms);

/* We need not follow any more, or have a copy. */
void sidecar_wait_end(struct sidecar *sidecar);

/* We lead without the server whose copy we have: what the claim does not have
 * stays a copy. */
void sidecar_wait_lead(struct sidecar *sidecar, const struct slot_set *claimed);
