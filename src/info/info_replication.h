/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The section Replication of INFO, which Sentinels parse, and what other
 * sections show of replication. Any loop, inside a section of the gate.
 */
#pragma once

#include "base/buf.h"
#include "engine/service.h"

void info_replication_write(const struct service *service, struct buf *text);

/* Writes the counts of synchronizations, in the section Stats. */
void info_replication_write_syncs(const struct service *service,
                                  struct buf *text);

/* Resets these counts, for CONFIG RESETSTAT. */
void info_replication_reset(struct service *service);

/* The bytes of the backlog, and those that replicas have not received yet. */
struct info_replication_memory {
    uint64_t backlog, replicas;
};
void info_replication_memory(const struct service *service,
                             struct info_replication_memory *ret_memory);
