/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Watches whether the data directory and the journal are still at their paths.
 * Loop 0.
 */
#pragma once

#include <stdbool.h>

struct journal_status;
struct persist;
struct persist_conf;

/* Begins to check whether the files are in their places, a few times a second.
 * Called in each tick of persist. */
void presence_tick(struct persist *persist);

/* presence_look_anew() requests a new check. presence_is_sure() returns whether
 * a check that began after this call has found all files in their places. */
void presence_look_anew(struct persist *persist);
bool presence_is_sure(const struct persist *persist);

/* Checks, at a start, the data directory, which may have disappeared during the
 * load. Call it before the journal begins. saves: the option `save` has rules.
 * False: there is no directory that can be used, which was logged. */
bool presence_check_start(struct persist *persist, bool saves);

/* Calls hooks.refilled once a directory that was lost has the data again. */
void presence_look_at_refill(struct persist *persist,
                             const struct persist_conf *conf,
                             const struct journal_status *status);

/* While presence_is_lost() is true, only presence_reopen() may begin a step,
 * which presence_reopened() ends. Until the next attempt is due, it lets
 * requested saves and reloads fail. */
bool presence_is_lost(const struct persist *persist);
void presence_reopen(struct persist *persist);
void presence_reopened(struct persist *persist);
