/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decides when the server refuses writes and PING because its disk does not
 * store what it should (-MISCONF): replies have waited for the journal for
 * misconf-after, or a snapshot has failed and stop-writes-on-bgsave-error is
 * set. Loop 0.
 */
#pragma once

#include <stdbool.h>

struct journal_status;
struct persist;
struct persist_conf;

/* Returns whether replies have waited too long: for a base after a fault of the
 * journal, for a base of other data, for the role to be written (journal_bar),
 * or for a write or a sync that does not return. */
bool misconf_is_stuck(const struct persist_conf *conf,
                      const struct journal_status *status);

/* Begins or ends the refusal, as the present state demands. */
void misconf_update(struct persist *persist, const struct persist_conf *conf,
                    const struct journal_status *status);
