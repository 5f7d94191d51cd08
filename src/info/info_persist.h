/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The section Persistence of INFO. Any loop.
 */
#pragma once

#include "base/buf.h"
#include "engine/service.h"

void info_persist_write(const struct service *service, struct buf *text);

/* Writes the fields of the section Stats about forks. */
void info_persist_write_forks(struct buf *text);

/* Resets the counts of saves and rewrites, for CONFIG RESETSTAT. */
void info_persist_reset(struct service *service);

/* Returns the position of the log; 0 without one. */
uint64_t info_persist_position(const struct service *service);
