/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of a server. It takes several ticks, so that reads go on. Files that
 * are being written are given up, a last snapshot is written if it was
 * requested, and the journal is synced. Loop 0.
 */
#pragma once

#include "base/err.h"
#include "persist/persist_options.h"

struct journal_status;
struct persist;
struct persist_conf;

/* Takes the next step of the end. Call it in each tick. */
void ending_tick(struct persist *persist, const struct persist_conf *conf,
                 const struct journal_status *status);

/* Returns whether no other step may begin, since the server ends. */
bool ending_keeps_off(const struct persist *persist,
                      const struct persist_conf *conf,
                      const struct journal_status *status);

/* ---- called by the server ------------------------------------------------ */

/* Begins the end. No command may change data from then on. Ticks take its
 * steps. It may be called again with other options. */
void persist_end(struct persist *persist, const struct persist_end *how);
enum persist_ending_state persist_ending(const struct persist *persist);

/* Cancels the end: the server goes on serving. */
void persist_end_abort(struct persist *persist);

/* Returns, after PERSIST_ENDED, whether everything is still on the disk; if
 * not, the end continues. Call it under the raised gate: after true, no writer
 * may run any more. */
MUST_CHECK bool persist_end_settle(struct persist *persist);

/* Returns a number that changes while the disk works. */
uint64_t persist_end_progress(struct persist *persist);

/* Returns whether something is not on the disk, and describes it. */
bool persist_end_misses(struct persist *persist,
                        struct persist_missing *ret_missing);
