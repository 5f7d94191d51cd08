/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Epochs side by side, their counts at the end, and versions.
 */
#include "support.h"

#include "keyspace/arrival.h"
#include "keyspace/databases.h"

static struct entry *
find(struct keyspace *ks, uint64_t number)
{
    struct test_key key;

    return keyspace_find(ks, test_key_set(&key, 2, number), 0);
}

static void
put(struct keyspace *ks, uint64_t number)
{
    struct test_key key;

    (void)test_put(ks, test_key_set(&key, 2, number));
}

TEST(the_last_epoch_is_the_one_that_counts)
{
    struct keyspace *ks = test_keyspace(2);

    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        arrival_set_epoch(ks, 2, epoch);
        for (uint64_t i = 0; i < 10 * (epoch + 1); i++) {
            put(ks, i);
        }
    }
    arrival_set_epoch(ks, 2, 0);
    assert_non_null(find(ks, 9));
    assert_null(find(ks, 10));
    arrival_set_epoch(ks, 2, 2);
    assert_true(arrival_end(ks, 0, true));
    assert_int_equal(30, test_count(ks, 2));
    assert_int_equal(60, keyspace_entries(ks));
    keyspace_purge_dead(ks);
    assert_int_equal(30, keyspace_entries(ks));
    keyspace_flush_db(ks, 2);
    assert_int_equal(0, test_count(ks, 2));
    keyspace_free(ks);
}

/* There are more flushes than numbers of epochs. */
TEST(no_number_of_flushes_brings_a_key_back)
{
    struct keyspace *ks = test_keyspace(1);
    struct test_key other;

    (void)test_put(ks, test_key_set(&other, 3, 1));
    for (uint32_t epoch = 0; epoch < 65536; epoch += 257) {
        arrival_set_epoch(ks, 2, epoch);
        put(ks, epoch % 100);
    }
    arrival_set_epoch(ks, 2, 0);
    for (unsigned i = 1; i < 2 * 65536; i++) {
        arrival_flush(ks, 2);
        if (i >= 65536) {
            for (uint64_t name = 0; name < 100 && i % 100 == 0; name++) {
                assert_null(find(ks, name));
            }
        } else if (i % 257 == 0) {
            assert_non_null(find(ks, i % 100));
        }
        if (i == 100000) {
            put(ks, 5);
        }
    }
    assert_true(arrival_end(ks, 0, true));
    assert_int_equal(0, test_count(ks, 2));
    assert_int_equal(1, test_count(ks, 3));
    keyspace_free(ks);
}

TEST(a_key_of_a_later_epoch_is_refused)
{
    struct keyspace *ks = test_keyspace(1);

    arrival_set_epoch(ks, 2, 65535);
    put(ks, 1);
    arrival_set_epoch(ks, 2, 65534);
    assert_false(arrival_end(ks, 0, true));
    keyspace_free(ks);
}

TEST(versions_are_none_that_a_watch_has_seen)
{
    struct keyspace *ks = test_keyspace(1);
    struct key_version seen, none;
    struct test_key key, other;

    put(ks, 1);
    test_key_set(&key, 2, 1);
    test_key_set(&other, 2, 7);
    seen = keyspace_version(ks, &key.key, 0);
    none = keyspace_version(ks, &other.key, 0);
    arrival_set_copied(find(ks, 1), seen.version);
    assert_int_equal(seen.version, arrival_copied(find(ks, 1)));
    assert_true(arrival_end(ks, 1000, false));
    assert_true(keyspace_changed(ks, &key.key, seen, 0));
    assert_true(keyspace_changed(ks, &other.key, none, 0));
    seen = keyspace_version(ks, &key.key, 0);
    assert_false(keyspace_changed(ks, &key.key, seen, 0));
    assert_non_null(keyspace_open(ks, &key.key, 0, NULL));
    assert_true(keyspace_changed(ks, &key.key, seen, 0));
    keyspace_free(ks);
}
