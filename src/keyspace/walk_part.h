/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a walk is limited to (keyspace/walk.h): one database, the keys of
 * some hash slots in all databases, or one key. Constant during the walk.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct slot_set; /* base/slot_set.h */

struct walk_part {
    enum walk_part_of { WALK_PART_DB, WALK_PART_SLOTS, WALK_PART_KEY } of;
    /* For DB and KEY: the number that clients used for the database when the
     * walk began. The walk stays with this database when SWAPDB gives it
     * another number. */
    uint32_t db;
    const struct slot_set *slots; /* of SLOTS; borrowed */
    struct slice name;            /* of KEY; borrowed */
};

/* Returns whether a name may belong to the part, in a database of which the
 * part has keys. */
bool walk_part_has_name(const struct walk_part *part, struct slice name);

/* Returns whether this key belongs to the part. db: the number as in struct
 * walk_part. */
bool walk_part_has(const struct walk_part *part, uint32_t db,
                   struct slice name);

/* Returns whether keys of the part can be in this stripe. Slots have their
 * stripes only if key_hash_has_slots(). */
bool walk_part_has_stripe(const struct walk_part *part, unsigned stripe);
