/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A replica holds what its leader holds. The leader sends each change of its
 * holdings over the replication link, right behind the data that it is about,
 * so that the replica has it even if the leader dies a moment later. A leader
 * of version 1.0.0 sends no changes: it is asked from time to time, and its
 * answer counts when the copy has reached that place of its log. Other leaders
 * are asked, too, until they have sent what they hold over the present link.
 */
#pragma once

#include "cluster/sidecar_hooks.h"

struct sidecar;

/* Starts anew, since sidecar->leader has changed, or is followed over a new
 * link. */
void sidecar_copy_reset(struct sidecar *sidecar);

/* Handles holdings that came over the leader's link, at our present place. */
void sidecar_copy_told(struct sidecar *sidecar,
                       const struct holdings *holdings);

/* Asks the leader if that is necessary, and compares its place with ours. */
void sidecar_copy_tick(struct sidecar *sidecar, uint64_t now_ms);

/* If other data has replaced the copy (another leader's, or older data of this
 * one), sets that nothing is held here until the leader has said what it holds.
 */
void sidecar_copy_check(struct sidecar *sidecar);

/* Returns whether this answered the question. */
bool sidecar_copy_answered(struct sidecar *sidecar, uint64_t number,
                           const struct sidecar_answer *answer);
