/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decides what the next start may rely on. The file says that a slot is held
 * only when its data is on the disk. It names histories and a position: data of
 * another history, or data that ends before the position, holds nothing. Until
 * a served slot is in the file, we report it to other daemons as claimed, so
 * that its source keeps its data.
 */
#pragma once

#include "cluster/sidecar_hooks.h"

struct sidecar;

/* Compares the data with the file. Does so once; call it before all other
 * functions. */
void sidecar_disk_check(struct sidecar *sidecar);

/* Set the epoch + 1 at which slots are held from now on (0: no longer held).
 * Their data is here once our log has reached this position.
 * sidecar_hold_same() keeps the slots' positions, since their data stays the
 * same. */
void sidecar_hold(struct sidecar *sidecar, const struct slot_set *set,
                  uint64_t epoch_plus_1, uint64_t position);
void sidecar_hold_same(struct sidecar *sidecar, const struct slot_set *set,
                       uint64_t epoch_plus_1);
void sidecar_hold_nothing(struct sidecar *sidecar);

/* Sets that the slots of the claim are held. Call it when the file says so. */
void sidecar_hold_claim(struct sidecar *sidecar);

/* Notes what has reached the disk, and requests that the rest is stored. */
void sidecar_disk_tick(struct sidecar *sidecar, uint64_t now_ms);

/* Writes the file, and tells our replicas what we hold. The slots of a claim in
 * the state KEEPS are included if their data is on the disk. Returns the
 * ticket. */
uint64_t sidecar_keep(struct sidecar *sidecar);

/* Returns whether the slots of a claim in the state KEEPS may be written to the
 * file, and served when that is done. */
bool sidecar_disk_may_keep(struct sidecar *sidecar);

/* Returns the slots that we hold as our own, but whose data is not on the disk
 * yet. */
struct slot_set sidecar_disk_loose(const struct sidecar *sidecar);
