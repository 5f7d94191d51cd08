/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a walk is limited to (keyspace/walk.h): one database, the keys of one
 * hash slot in all databases, or one key. Constant during the walk.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct walk_part {
    enum walk_part_of { WALK_PART_DB, WALK_PART_SLOT, WALK_PART_KEY } of;
    /* Of DB and KEY: the number that clients used for the database when the
     * walk began. The walk stays with it when SWAPDB gives it another. */
    uint32_t db;
    uint32_t slot;     /* of SLOT: keyspace/hash_slot.h */
    struct slice name; /* of KEY; borrowed */
};

/* Returns whether a name may belong to the part, in a database of which the
 * part has keys. */
bool walk_part_has_name(const struct walk_part *part, struct slice name);

/* Returns whether this key belongs to the part. db: as above. */
bool walk_part_has(const struct walk_part *part, uint32_t db,
                   struct slice name);

/* Returns whether keys of the part can be in this stripe. */
bool walk_part_has_stripe(const struct walk_part *part, unsigned stripe);
