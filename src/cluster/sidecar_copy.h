/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A replica holds what its leader holds. The leader sends each change of its
 * holdings over the replication link, right behind the data that it is about,
 * so that the replica has it even if the leader dies a moment later. A leader
 * of version 1.0.0 sends no changes, so it is asked from time to time. An
 * answer is valid once our copy has reached the position in the leader's log
 * that the answer names. Other leaders are asked, too, until they have sent
 * what they hold over the present link.
 */
#pragma once

#include "cluster/sidecar_hooks.h"

struct sidecar;

/* Starts anew, because sidecar->leader has changed or the link to it is new. */
void sidecar_copy_reset(struct sidecar *sidecar);

/* Handles holdings that came over the leader's link. They are true at the
 * present end of our log. */
void sidecar_copy_told(struct sidecar *sidecar,
                       const struct holdings *holdings);

/* Asks the leader if that is necessary. Takes over what it holds once our log
 * has reached the same position. */
void sidecar_copy_tick(struct sidecar *sidecar, uint64_t now_ms);

/* If other data has replaced the copy (from another leader, or older data of
 * the same leader), sets that nothing is held here until the leader has said
 * what it holds. */
void sidecar_copy_check(struct sidecar *sidecar);

/* Handles an answer to the question to the leader. False: it answers another
 * question. */
bool sidecar_copy_answered(struct sidecar *sidecar, uint64_t number,
                           const struct sidecar_answer *answer);
