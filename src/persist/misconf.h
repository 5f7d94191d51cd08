/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When a server refuses writes and PING because its disk does not keep what it
 * should (-MISCONF): replies have waited for the journal for misconf-after, or
 * a snapshot has failed and stop-writes-on-bgsave-error is set. Loop 0.
 */
#pragma once

#include <stdbool.h>

struct journal_status;
struct persist;
struct persist_conf;

/* Returns whether replies have waited too long: for a base of a journal that
 * failed, or of other data, or for a disk that does not return from a write or
 * a sync. */
bool misconf_is_stuck(const struct persist_conf *conf,
                      const struct journal_status *status);

/* Begins or ends the refusal. */
void misconf_update(struct persist *persist, const struct persist_conf *conf,
                    const struct journal_status *status);
