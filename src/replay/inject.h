/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes commands that this server makes itself, or picks from the log of
 * another server whose keys it takes over. They are executed as those of a log
 * (obey.h), without limits, defaults or refusals; but their effects go into our
 * own log, so that journal, replicas and walks see them like a client's. Loop
 * 0, with a worker of its own.
 */
#pragma once

#include "engine/service.h"

#include <stdbool.h>
#include <stddef.h>

struct inject;

/* Makes the executor. worker: that of loop 0. */
struct inject *inject_new(struct worker *worker);
void inject_free(struct inject *inject);

/* Executes writes and SELECT in canonical RESP. The caller is inside a section
 * of the gate, has found room in the journal, and keeps each call short.
 * Refuses commands that need the raised gate (FLUSHALL, SWAPDB). If it returns
 * false, the commands before the failed one were executed. */
bool inject_run(struct inject *inject, struct slice commands, char *ret_reason,
                size_t reason_size);

/* Selects the database of the commands that follow. */
void inject_select(struct inject *inject, uint32_t db);

/* Wakes the journal's writer and the loops that have notices to deliver.
 * Outside the gate. */
void inject_wake(struct inject *inject);
