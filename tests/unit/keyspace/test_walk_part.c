/* SPDX-License-Identifier: BSD-3-Clause */
#include "keyspace/walk_part.h"

#include "../test.h"
#include "base/slot_set.h"
#include "keyspace/keyspace.h"

TEST(parts_have_what_they_name)
{
    const struct slice a = slice_lit("{t}a");
    const struct slice b = slice_lit("{t}b");
    const struct slice c = slice_lit("c");
    const struct walk_part db = { .of = WALK_PART_DB, .db = 3 };
    struct slot_set slots = { { 0 } };
    const struct walk_part slot = { .of = WALK_PART_SLOTS, .slots = &slots };
    const struct walk_part key = { .of = WALK_PART_KEY, .db = 3, .name = a };

    slot_set_add(&slots, hash_slot_of(a));
    assert_true(walk_part_has(&db, 3, a) && walk_part_has(&db, 3, c));
    assert_false(walk_part_has(&db, 0, a));
    assert_true(walk_part_has(&slot, 0, a) && walk_part_has(&slot, 3, b));
    assert_false(walk_part_has(&slot, 3, c));
    assert_true(walk_part_has(&key, 3, a));
    assert_false(walk_part_has(&key, 3, b) || walk_part_has(&key, 0, a));
    assert_true(walk_part_has_name(&db, c) && walk_part_has_name(&key, a));
    assert_false(walk_part_has_name(&key, b));
}

TEST(only_a_key_has_one_stripe)
{
    const struct slot_set slots = { { 1 } };
    const struct walk_part parts[] = {
        { .of = WALK_PART_DB },
        { .of = WALK_PART_SLOTS, .slots = &slots },
        { .of = WALK_PART_KEY, .name = slice_lit("a") },
    };
    unsigned stripe = keyspace_stripe_of(key_hash(slice_lit("a")));

    for (size_t i = 0; i < 3; i++) {
        assert_true(walk_part_has_stripe(&parts[i], stripe));
        assert_int_equal(i < 2, walk_part_has_stripe(&parts[i], stripe ^ 1));
    }
}

TEST(slots_have_their_stripes_where_hashes_have_slots)
{
    struct slot_set slots = { { 0 } };
    const struct walk_part part = { .of = WALK_PART_SLOTS, .slots = &slots };

    slot_set_add(&slots, 31);
    slot_set_add(&slots, CLUSTER_SLOTS - 1);
    key_hash_by_slot(true);
    for (unsigned i = 0; i < KEYSPACE_STRIPES; i++) {
        assert_int_equal(i == 1 || i == KEYSPACE_STRIPES - 1,
                         walk_part_has_stripe(&part, i));
    }
    key_hash_by_slot(false);
}
