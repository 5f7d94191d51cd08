/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of a server, as a part of the ticks, so that reads go on: what is
 * being written is broken off, the last snapshot is written, if one is asked
 * for, and the journal is synced. Loop 0.
 */
#pragma once

#include "base/err.h"
#include "persist/persist_options.h"

struct journal_status;
struct persist;
struct persist_conf;

/* Moves the end on. Once a tick. */
void ending_tick(struct persist *persist, const struct persist_conf *conf,
                 const struct journal_status *status);

/* Returns whether no other step may begin, since the server ends. */
bool ending_keeps_off(const struct persist *persist,
                      const struct persist_conf *conf,
                      const struct journal_status *status);

/* ---- the server ---------------------------------------------------------- */

/* Begins the end, while nothing but this module changes data; the ticks move it
 * on. May be called again, with other wishes. */
void persist_end(struct persist *persist, const struct persist_end *how);
enum persist_ending_state persist_ending(const struct persist *persist);

/* Goes on serving. */
void persist_end_abort(struct persist *persist);

/* When it has ended: returns whether that still holds; otherwise the end goes
 * on. Under the raised gate, which is never to be lowered for writers after a
 * success. */
MUST_CHECK bool persist_end_settle(struct persist *persist);

/* Returns a number that changes while the disk works. */
uint64_t persist_end_progress(struct persist *persist);

/* Returns whether something is missing on the disk, and what. */
bool persist_end_misses(struct persist *persist,
                        struct persist_missing *ret_missing);
