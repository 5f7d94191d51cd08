/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes what the log of another server says about the slots that we take
 * over. Commands on other keys are skipped. MULTI and EXEC are skipped, too: no
 * client is served these slots yet, and the cut-over never lies inside a group.
 * FLUSHALL and FLUSHDB delete the keys of the slots here. SWAPDB, and a command
 * with keys both in these slots and in others, cannot be executed: then the
 * pull begins anew. Loop 0.
 */
#pragma once

#include "base/slice.h"
#include "base/slot_set.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inject;
struct keyspace;
struct pull_log;

struct pull_log *pull_log_new(struct inject *inject, struct keyspace *ks,
                              const struct slot_set *slots);
void pull_log_free(struct pull_log *log);

/* Executes a group that begins at this position. Inside a section of the gate,
 * with room in the journal. If it returns false, a part of the group may have
 * been executed. */
bool pull_log_group(struct pull_log *log, struct slice commands,
                    uint64_t position, uint64_t sequence, char *ret_reason,
                    size_t reason_size);
