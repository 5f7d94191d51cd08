/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The section Replication of INFO, which Sentinels read line by line, and what
 * other sections say of replication. Any loop, inside a section of the gate.
 */
#pragma once

#include "base/buf.h"
#include "engine/service.h"

void info_replication_write(const struct service *service, struct buf *text);

/* Of the section Stats: how many synchronizations there were. */
void info_replication_write_syncs(const struct service *service,
                                  struct buf *text);

/* What CONFIG RESETSTAT sets to zero of that. */
void info_replication_reset(struct service *service);

/* The backlog's bytes, and those that replicas have yet to take. */
struct info_replication_memory {
    uint64_t backlog, replicas;
};
void info_replication_memory(const struct service *service,
                             struct info_replication_memory *ret_memory);
