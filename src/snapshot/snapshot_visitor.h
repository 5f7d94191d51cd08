/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the reader of a snapshot calls with what it has read and checked.
 */
#pragma once

#include "snapshot/snapshot_source.h"
#include "snapshot/snapshot_stamp.h"

#include <bloomery/bloom.h>
#include <stdbool.h>
#include <stdint.h>

struct snapshot_visitor {
    /* Called with the header, if that is intact, before any filter. If it
     * returns false, the reading stops; the same holds for the other functions
     * that return a bool. Each function but filter may be NULL. */
    bool (*header)(void *ctx, const struct snapshot_stamp *begin,
                   uint32_t databases);
    /* Called before the first filter, with the number of keys that the header
     * announces, or with a lower one if the file is too short for so many. Not
     * called for a stream, whose length nobody knows. */
    void (*expect)(void *ctx, uint64_t keys);
    /* Called with a filter, whose memory comes from the reader's env. The
     * visitor then owns what the struct points to, also if it returns false.
     * The struct itself is only valid during the call, and the visitor may move
     * it. */
    bool (*filter)(void *ctx, const struct snapshot_record *record,
                   struct bloom *bloom);
    /* Called some keys ahead of filter, to prefetch what it will read; hash:
     * key_hash() of the name. */
    void (*soon)(void *ctx, uint64_t hash, uint32_t db);
    /* Called with a key (db, epoch and name). Filters of it that were shown
     * before do not count; one that is shown later does. */
    bool (*gone)(void *ctx, const struct snapshot_record *record);
    /* Called with each group of effects, behind all keys. */
    bool (*effects)(void *ctx, const struct snapshot_effects *effects);
    /* Called with the stamp of the end, at which the state is complete. */
    bool (*end)(void *ctx, const struct snapshot_stamp *end);
    /* Called, for a salvage, with each damaged stretch [from, to) that was
     * skipped. NULL: damage ends the reading. */
    void (*passed_over)(void *ctx, const struct snapshot_error *error,
                        uint64_t from, uint64_t to);
    /* How many threads make small filters; 0 or 1: only the caller's. The
     * caller's thread makes all calls, in the order of the file. */
    unsigned threads;
    void *ctx;
};
