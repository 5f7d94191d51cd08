/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Snapshots: when one is due, and what its end means. Errors are those of
 * persist/full_state.h. Loop 0.
 */
#pragma once

#include <stdbool.h>

struct persist;
struct persist_conf;
struct persist_end;

bool save_is_due(struct persist *persist, const struct persist_conf *conf);

/* Each of these moves the step on. */
void save_begin(struct persist *persist);
void save_written(struct persist *persist, int error);
/* Notes that the present state is the one that is being written. Under the
 * raised gate. */
void save_note(struct persist *persist);
void save_ended(struct persist *persist, int error);

/* Both block, under the raised gate, and return an error. save_at_end calls
 * end->idle now and then. */
int save_at_end(struct persist *persist, const struct persist_end *end);
int save_here(struct persist *persist);
