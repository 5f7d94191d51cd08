/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A replica holds what its leader holds. The leader tells each change over the
 * replication link, right behind the data that it means, so that the replica
 * has it even if the leader dies a moment later. A leader of 1.0.0 tells
 * nothing: it is asked from time to time, and its answer counts when the copy
 * has reached that place of its log. So is any other one until it has told what
 * it holds over the present link.
 */
#pragma once

#include "cluster/sidecar_hooks.h"

struct sidecar;

/* sidecar->leader is another one, or is followed anew. */
void sidecar_copy_reset(struct sidecar *sidecar);

/* The leader's link says this, at our present place. */
void sidecar_copy_told(struct sidecar *sidecar,
                       const struct holdings *holdings);

/* Asks if it is necessary, and compares the leader's place with ours. */
void sidecar_copy_tick(struct sidecar *sidecar, uint64_t now_ms);

/* If the data of another leader has replaced the copy, or older data of this
 * one, nothing is held here until the leader has said what it holds. */
void sidecar_copy_check(struct sidecar *sidecar);

/* Returns whether this answered the question. */
bool sidecar_copy_answered(struct sidecar *sidecar, uint64_t number,
                           const struct sidecar_answer *answer);
