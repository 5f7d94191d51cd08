/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Looking ahead finds the entries that a search one by one finds, whatever the
 * tables look like.
 */
#include "keyspace/ahead.h"

#include "support.h"

enum { NAMES = 20000, STEP = 37 };

static void
expect_as_found(struct keyspace *ks, uint64_t first, size_t count)
{
    struct test_key names[KEYSPACE_AHEAD_MAX];
    struct key keys[KEYSPACE_AHEAD_MAX] = { 0 };

    for (size_t i = 0; i < count; i++) {
        keys[i] = *test_key_set(&names[i], i % 5 == 4, first + i * STEP);
        keys[i].name.data = names[i].name;
    }
    keyspace_look_ahead(ks, keys, count);
    for (size_t i = 0; i < count; i++) {
        struct key plain = key_named(keys[i].name, keys[i].db);

        assert_ptr_equal(keyspace_find(ks, &plain, 0), keys[i].entry);
    }
}

TEST(what_is_looked_up_ahead_is_what_a_search_finds)
{
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;

    expect_as_found(ks, 0, 0);
    expect_as_found(ks, 0, KEYSPACE_AHEAD_MAX);
    for (uint64_t i = 0; i < NAMES; i += 2) {
        (void)test_put(ks, test_key_set(&key, 0, i));
        if (i % 1000 == 0) {
            expect_as_found(ks, 0, KEYSPACE_AHEAD_MAX);
        }
    }
    for (uint64_t first = 0; first < NAMES; first += 1000) {
        expect_as_found(ks, first, 1);
        expect_as_found(ks, first, KEYSPACE_AHEAD_MAX);
    }
    for (uint64_t i = 0; i < NAMES; i += 4) {
        assert_true(keyspace_delete(ks, test_key_set(&key, 0, i), 0));
    }
    for (uint64_t first = 0; first < NAMES; first += 1000) {
        expect_as_found(ks, first, KEYSPACE_AHEAD_MAX);
    }
    keyspace_free(ks);
}

/* The command that comes sees to it: it removes the entry, with an effect. */
TEST(an_expired_key_is_found_ahead)
{
    struct keyspace *ks = test_keyspace(1);
    struct test_key name;
    const struct key *key = test_key_set(&name, 0, 1);
    struct key found = *key;
    struct entry *entry = test_put(ks, key);

    assert_int_equal(OK, keyspace_set_expiry(ks, key, entry, 10));
    assert_null(keyspace_find(ks, key, 20));
    keyspace_look_ahead(ks, &found, 1);
    assert_ptr_equal(entry, found.entry);
    keyspace_free(ks);
}

/* The later commands of a window see what the earlier ones did. */
TEST(a_search_does_not_rely_on_what_was_found_before_a_change)
{
    struct keyspace *ks = test_keyspace(1);
    struct test_key name;
    struct key key = *test_key_set(&name, 0, 1);
    struct entry *entry;

    keyspace_look_ahead(ks, &key, 1);
    assert_null(key.entry);
    assert_null(keyspace_find(ks, &key, 0));
    entry = test_put(ks, &key);
    assert_ptr_equal(entry, keyspace_find(ks, &key, 0));
    keyspace_look_ahead(ks, &key, 1);
    assert_ptr_equal(entry, keyspace_open(ks, &key, 0, NULL));
    assert_true(keyspace_delete(ks, &key, 0));
    assert_null(keyspace_find(ks, &key, 0));
    keyspace_free(ks);
}
