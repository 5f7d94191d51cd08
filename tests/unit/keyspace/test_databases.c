/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Databases that are swapped and flushed.
 */
#include "keyspace/databases.h"

#include "keyspace/gate.h"
#include "support.h"

TEST(a_database_swapped_twice_has_changed_under_its_watchers)
{
    struct keyspace *ks = test_keyspace(1);
    struct test_key here;
    struct test_key elsewhere;
    struct key_version seen_here, seen_elsewhere;

    (void)test_put(ks, test_key_set(&here, 0, 1));
    (void)test_put(ks, test_key_set(&elsewhere, 2, 1));
    seen_here = keyspace_version(ks, &here.key, 0);
    seen_elsewhere = keyspace_version(ks, &elsewhere.key, 0);
    keyspace_swap_db(ks, 0, 1);
    assert_true(keyspace_changed(ks, &here.key, seen_here, 0));
    keyspace_swap_db(ks, 0, 1);
    assert_non_null(keyspace_find(ks, &here.key, 0));
    assert_true(keyspace_changed(ks, &here.key, seen_here, 0));
    assert_false(keyspace_changed(ks, &elsewhere.key, seen_elsewhere, 0));
    keyspace_free(ks);
}

TEST(swapped_databases_have_each_others_keys_and_counts)
{
    struct keyspace *ks = test_keyspace(4);
    struct test_key key;

    for (unsigned i = 0; i < 300; i++) {
        const struct key *k = test_key_set(&key, i % 3, i);

        assert_int_equal(keyspace_set_expiry(ks, k, test_put(ks, k), 1000), OK);
    }
    (void)test_put(ks, test_key_set(&key, 1, 301));
    gate_raise(keyspace_gate(ks), 0);
    keyspace_swap_db(ks, 0, 1);
    keyspace_swap_db(ks, 2, 2);
    gate_lower(keyspace_gate(ks), 0);
    assert_int_equal(test_count(ks, 0), 101);
    assert_int_equal(test_expires(ks, 0), 100);
    assert_int_equal(test_count(ks, 1), 100);
    assert_int_equal(test_count(ks, 2), 100);
    assert_non_null(keyspace_find(ks, test_key_set(&key, 0, 301), 0));
    assert_non_null(keyspace_find(ks, test_key_set(&key, 1, 0), 0));
    assert_null(keyspace_find(ks, test_key_set(&key, 0, 0), 0));
    keyspace_flush_db(ks, 0);
    assert_int_equal(test_count(ks, 0), 0);
    assert_int_equal(test_count(ks, 1), 100);
    assert_true(keyspace_delete(ks, test_key_set(&key, 1, 0), 0));
    assert_int_equal(test_count(ks, 1), 99);
    keyspace_free(ks);
}
