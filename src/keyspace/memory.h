/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where the filters of a keyspace take their memory from, the limits on it, and
 * the bf_* gauges. A gauge falls only when the filter is freed, which may be a
 * while after its name was removed. Any thread.
 */
#pragma once

#include "keyspace/entry.h"

#include <stdbool.h>

/* What filters may take; changed under the raised gate. */
struct keyspace_memory {
    uint64_t maxmemory_bytes; /* 0: no limit */
    /* Whether keys are evicted to stay below maxmemory. If so, an allocation
     * that begins below the limit or slightly above it may exceed it, and the
     * next eviction corrects that; an allocation larger than maxmemory is
     * refused. Memory that the reaper is about to free counts as free. */
    bool evicts;
    /* Whether, without maxmemory, a part of the machine's memory is left to
     * other processes. False while data is loaded: what clients could once
     * store must load again. */
    bool shares;
};

/* Returns whether more than this is in use. Does not count memory that the
 * reaper is about to free, nor changes that wait to be written to the journal
 * or are kept for replicas. */
bool keyspace_is_over(uint64_t maxmemory_bytes);

/* Returns the environment of filters that live in a keyspace: memory is
 * counted, and refused beyond maxmemory_bytes or the machine's memory. CTX must
 * outlive the environment; it is read at each allocation. */
struct bloom_env keyspace_env(const struct keyspace_memory *ctx,
                              uint64_t size_limit_bytes);

/* A filter of a foreign kind may claim any number of items. The gauges count at
 * most so many of them, when the filter comes and when it goes. */
#define KEYSPACE_COUNTED_MAX ((uint64_t)1 << 44)

/* Moves the bf_* gauges from the filter's figures before a change to those
 * after it. Call it after adds. keyspace_insert() and keyspace_remove() keep
 * the gauges themselves. */
void keyspace_account(const struct bloom_info *before,
                      const struct bloom_info *after);

/* Adds a new filter to the gauges. */
void keyspace_account_new(const struct bloom *bloom);

/* Frees an entry that is in no table, with its filter. */
void keyspace_free_entry(struct entry *entry);

/* Frees an entry whose filter's bytes count as pending (METRIC_LAZYFREE_...),
 * and returns these bytes. They stop being pending first, because memory in use
 * falls as soon as freeing begins, and no byte may count as free twice when
 * keys are evicted. */
int64_t keyspace_free_pending(struct entry *entry);

/* Returns the bytes that one entry costs beside its filter, for MEMORY USAGE.
 */
size_t keyspace_entry_bytes(const struct entry *entry);
