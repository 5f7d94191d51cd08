/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The present use of memory, for INFO, MEMORY STATS and MEMORY DOCTOR. Any
 * loop, inside a section of the gate.
 */
#pragma once

#include "base/allocator.h"
#include "engine/service.h"

struct info_memory {
    uint64_t used, peak, started; /* used now; the most so far; at the start */
    uint64_t resident;            /* 0: unknown */
    uint64_t dataset;             /* filters */
    uint64_t clients;             /* all memory of client connections */
    uint64_t journal;             /* changes that wait to be written */
    uint64_t backlog;             /* the last changes, for replicas */
    uint64_t replicas;            /* output that replicas have not taken yet */
    uint64_t keys;
    struct allocator_figures allocator;
    bool has_allocator;
};

void info_memory_get(const struct service *service,
                     struct info_memory *ret_memory);

/* Return part / whole, in percent and as a ratio; 0 if whole is 0. */
double info_memory_percent(uint64_t part, uint64_t whole);
double info_memory_ratio(uint64_t a, uint64_t b);

/* Writes the section of INFO, except its metrics. used_memory is written here,
 * since the figures that it is compared with must be of the same moment. */
void info_memory_write(const struct service *service, struct buf *text);
