/* SPDX-License-Identifier: BSD-3-Clause */
#include "keyspace/key_hash.h"

#include "../test.h"
#include "keyspace/keyspace.h"

#include <stdio.h>

TEST(hashes_are_those_of_names_unless_the_process_has_slots)
{
    struct slice name = slice_lit("{user}1");

    assert_false(key_hash_has_slots());
    assert_true(key_hash(name) == hash_name(name));
    assert_true(key_named(name, 0).hash == hash_name(name));
}

TEST(hashes_by_slot_have_the_slot_and_the_rest_of_the_hash)
{
    key_hash_by_slot(true);
    assert_true(key_hash_has_slots());
    for (unsigned i = 0; i < 1000; i++) {
        char text[16];
        int len = snprintf(text, sizeof(text), "{%u}%u", i % 100, i);
        struct slice name = { text, (size_t)len };
        uint64_t hash = key_hash(name);

        assert_int_equal(hash_slot_of(name), key_slot(hash));
        assert_int_equal(hash_slot_of(name) / 16, keyspace_stripe_of(hash));
        assert_true((hash << 14 >> 14) == hash_name(name) >> 14);
        assert_true(key_named(name, 3).hash == hash);
    }
    key_hash_by_slot(false);
    assert_false(key_hash_has_slots());
}
