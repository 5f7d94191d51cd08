/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The slots are those that CLUSTER KEYSLOT of Redis replies with.
 */
#include "keyspace/hash_slot.h"

#include "../test.h"

TEST(hash_slots_are_those_of_redis_cluster)
{
    static const struct {
        const char *name;
        uint32_t slot;
    } cases[] = {
        { "123456789", 12739 }, { "somekey", 11058 }, { "hash_tag", 2515 },
        { "foo", 12182 },       { "bar", 5061 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(cases[i].slot, hash_slot_of(slice_of(cases[i].name)));
    }
    assert_int_equal(0, hash_slot_of(slice_lit("")));
}

TEST(names_with_one_tag_have_one_slot)
{
    static const struct {
        const char *name, *like;
    } cases[] = {
        { "foo{hash_tag}", "hash_tag" },
        { "{foo}.b{bar}", "foo" },
        { "a{foo}b}c", "foo" },
        { "foo{{bar}}zap", "{bar" },
    };
    static const char *const whole[] = { "{}foo", "foo{}{bar}", "foo{bar",
                                         "}foo{", "{" };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(hash_slot_of(slice_of(cases[i].like)),
                         hash_slot_of(slice_of(cases[i].name)));
    }
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        assert_int_not_equal(hash_slot_of(slice_lit("foo")),
                             hash_slot_of(slice_of(whole[i])));
        assert_int_not_equal(hash_slot_of(slice_lit("bar")),
                             hash_slot_of(slice_of(whole[i])));
    }
}
