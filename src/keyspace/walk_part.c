/* SPDX-License-Identifier: BSD-3-Clause */
#include "keyspace/walk_part.h"

#include "base/slot_set.h"
#include "keyspace/key_hash.h"
#include "keyspace/keyspace.h"
#include "keyspace/slot_keys.h"

bool
walk_part_has_name(const struct walk_part *part, struct slice name)
{
    switch (part->of) {
    case WALK_PART_SLOTS:
        return slot_set_has(part->slots, hash_slot_of(name));
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
    return (part->of == WALK_PART_SLOTS || part->db == db) &&
           walk_part_has_name(part, name);
}

bool
walk_part_has_stripe(const struct walk_part *part, unsigned stripe)
{
    switch (part->of) {
    case WALK_PART_SLOTS:
        return !key_hash_has_slots() ||
               slot_keys_has_stripe(part->slots, stripe);
    case WALK_PART_KEY:
        return keyspace_stripe_of(key_hash(part->name)) == stripe;
    case WALK_PART_DB:
        break;
    }
    return true;
}
