/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Snapshots: decides when one is due, and handles its end. Errors are those of
 * persist/full_state.h. Loop 0.
 */
#pragma once

#include <stdbool.h>

struct persist;
struct persist_conf;
struct slot_set;

bool save_is_due(struct persist *persist, const struct persist_conf *conf);

/* Each of these functions takes the next step (persist_state.h). */
void save_begin(struct persist *persist);
void save_written(struct persist *persist, int error);
/* Notes that the snapshot being written has all changes up to now. Under the
 * raised gate. */
void save_note(struct persist *persist);
void save_ended(struct persist *persist, int error);

/* Writes a snapshot at once, and blocks. Call it under the raised gate. Returns
 * 0 or an error. */
int save_here(struct persist *persist);

/* Writes, in the same way, a snapshot of the keys of these slots into a file of
 * this name in dir. It is for an operator: no start loads it. EBUSY: something
 * else is being written. */
int save_slots_here(struct persist *persist, const struct slot_set *slots,
                    const char *name);
