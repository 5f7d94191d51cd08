/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a start may rely on. The file says that a slot is held only when the
 * disk has the data that this means, and names histories and a position: data
 * of another history, or that ends before the position, holds nothing. Until
 * then a slot of ours that is served counts as claimed for others, so that its
 * source keeps what it has.
 */
#pragma once

#include "cluster/sidecar_hooks.h"

struct sidecar;

/* Compares the data with the file, once, before anything else happens. */
void sidecar_disk_check(struct sidecar *sidecar);

/* Holds slots at this epoch + 1 from now on, or no more (0). The data that this
 * means is here from this position of our log on. _same: the data is what was
 * held before. */
void sidecar_hold(struct sidecar *sidecar, const struct slot_set *set,
                  uint64_t epoch_plus_1, uint64_t position);
void sidecar_hold_same(struct sidecar *sidecar, const struct slot_set *set,
                       uint64_t epoch_plus_1);
void sidecar_hold_nothing(struct sidecar *sidecar);

/* Holds the slots of the claim, which is kept. */
void sidecar_hold_claim(struct sidecar *sidecar);

/* Notes what has reached the disk, and asks for what has not. */
void sidecar_disk_tick(struct sidecar *sidecar, uint64_t now_ms);

/* Writes the file, with the slots of a claim that KEEPS if the disk has them,
 * and tells our replicas what we hold. Returns the ticket. */
uint64_t sidecar_keep(struct sidecar *sidecar);

/* Whether a claim that KEEPS may be written, and served when that is done. */
bool sidecar_disk_may_keep(struct sidecar *sidecar);

/* The slots that we hold as our own, and that the disk does not have yet. */
struct slot_set sidecar_disk_loose(const struct sidecar *sidecar);
