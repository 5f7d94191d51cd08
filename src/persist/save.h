/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Snapshots: when one is due, and what its end means. Errors are those of
 * persist/full_state.h. Loop 0.
 */
#pragma once

#include <stdbool.h>

struct persist;
struct persist_conf;

bool save_is_due(struct persist *persist, const struct persist_conf *conf);

/* Each of these moves the step on. */
void save_begin(struct persist *persist);
void save_written(struct persist *persist, int error);
/* Notes that the present state is the one that is being written. Under the
 * raised gate. */
void save_note(struct persist *persist);
void save_ended(struct persist *persist, int error);

/* Blocks, under the raised gate, and returns an error. */
int save_here(struct persist *persist);
