/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The section Persistence of INFO, and its figures for the metrics and the
 * status page. Any loop.
 */
#pragma once

#include "base/buf.h"
#include "engine/service.h"

struct journal_status;
struct persist_info;

void info_persist_write(const struct service *service, struct buf *text);

/* Writes the fields of the section Stats about forks. */
void info_persist_write_forks(struct buf *text);

/* Resets the counts of saves and rewrites, for CONFIG RESETSTAT. */
void info_persist_reset(struct service *service);

/* Returns the position of the log; 0 without one. */
uint64_t info_persist_position(const struct service *service);

/* Copies the figures of persistence. */
void info_persist_get(const struct service *service,
                      struct persist_info *ret_info);

/* Returns "on", "off", "building", "holding", "closing" or "faulted". */
const char *info_persist_journal_state(const struct journal_status *journal);

/* Returns for how long the oldest unsynced change has waited; 0: there is none.
 */
uint64_t info_persist_unsynced_ns(const struct journal_status *journal);
