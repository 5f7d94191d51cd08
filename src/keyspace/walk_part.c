/* SPDX-License-Identifier: BSD-3-Clause */
#include "keyspace/walk_part.h"

#include "base/hash.h"
#include "keyspace/hash_slot.h"
#include "keyspace/keyspace.h"

bool
walk_part_has_name(const struct walk_part *part, struct slice name)
{
    switch (part->of) {
    case WALK_PART_SLOT:
        return hash_slot_of(name) == part->slot;
    case WALK_PART_KEY:
        return slice_equal(name, part->name);
    case WALK_PART_DB:
        break;
    }
    return true;
}

bool
walk_part_has(const struct walk_part *part, uint32_t db, struct slice name)
{
    return (part->of == WALK_PART_SLOT || part->db == db) &&
           walk_part_has_name(part, name);
}

bool
walk_part_has_stripe(const struct walk_part *part, unsigned stripe)
{
    return part->of != WALK_PART_KEY ||
           keyspace_stripe_of(hash_name(part->name)) == stripe;
}
