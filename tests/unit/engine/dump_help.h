/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compares the keyspaces of a primary and of a session that repeated its
 * effects: DUMP payloads, incarnations and times to live.
 */
#pragma once

#include "base/hash.h"
#include "keyspace/scan.h"
#include "rig.h"

struct comparison {
    struct keyspace *other;
    size_t keys;
};

void dump_of(const struct entry *entry, struct buf *ret_dump);

/* Every key of `from` is in `to`, as the same bytes with the same time, and the
 * other way round. Returns how many. */
size_t compare_dumps(struct rig *from, struct rig *to);
