/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Walks over the keys of hash slots. The slots of a stripe share its table, so
 * a walk reads all entries of the stripes of its slots, in slices: a stripe is
 * locked for some steps at a time, as in keyspace/scan.h. The caller holds no
 * stripe lock, and is inside a section of the gate. Only if
 * key_hash_has_slots().
 */
#pragma once

#include "base/buf.h"
#include "base/slot_set.h"
#include "keyspace/keyspace.h"

/* Called for each key, which is borrowed for the call. expires_at_ms is 0
 * without a time to live, and may have passed. */
typedef void (*slot_keys_fn)(void *ctx, const struct key *key,
                             uint64_t expires_at_ms);

/* Visits the keys of these slots in all databases, one slice of at most
 * SCAN_SLICE steps a call. Returns the cursor of the next slice, 0 when all
 * were visited. It has the guarantee of SCAN: a key that exists from the first
 * call to the last is visited at least once. */
uint64_t slot_keys_scan(struct keyspace *ks, unsigned thread,
                        const struct slot_set *set, uint64_t cursor,
                        slot_keys_fn visit, void *ctx);

/* Names some keys: those of a slot and a database that have not expired. */
struct slot_keys {
    uint32_t slot, db;
    uint64_t now_ms;
};

/* Adds the number of these keys in a slice to *ret_count. */
uint64_t slot_keys_count(struct keyspace *ks, unsigned thread,
                         const struct slot_keys *keys, uint64_t cursor,
                         uint64_t *ret_count);

/* Appends the names of these keys in a slice. Returns 0 also when the list has
 * `most` names, or without memory: then names->list.failed is set. A name may
 * come twice while the table changes. */
struct slot_names {
    struct buf list; /* read it with buf_next_item() */
    size_t count, most;
};
uint64_t slot_keys_names(struct keyspace *ks, unsigned thread,
                         const struct slot_keys *keys, uint64_t cursor,
                         struct slot_names *names);

/* Returns whether keys of these slots can be in this stripe. */
bool slot_keys_has_stripe(const struct slot_set *set, unsigned stripe);
