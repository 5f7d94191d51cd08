/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is freed in the background, and that it is freed.
 */
#include "keyspace/databases.h"
#include "support.h"

enum { LARGE_CAPACITY = 100000 /* about 120 KB at 1 % */ };

TEST(a_large_filter_is_freed_in_the_background_and_a_small_one_at_once)
{
    struct keyspace *ks = test_keyspace(1);
    int64_t freed = metric_sum(METRIC_LAZYFREED);
    uint64_t used = mem_used();
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, 1);

    (void)test_put(ks, k);
    assert_true(keyspace_delete(ks, k, 0));
    keyspace_wait_freed(ks);
    assert_int_equal(metric_sum(METRIC_LAZYFREED), freed);
    assert_int_equal(metric_sum(METRIC_BF_OBJECTS), 0);
    for (int i = 0; i < 50; i++) {
        (void)test_put_sized(ks, k, LARGE_CAPACITY);
        assert_true(keyspace_delete(ks, k, 0));
    }
    assert_null(keyspace_find(ks, k, 0));
    keyspace_wait_freed(ks);
    assert_int_equal(metric_sum(METRIC_LAZYFREED), freed + 50);
    assert_int_equal(metric_sum(METRIC_LAZYFREE_PENDING), 0);
    assert_int_equal(metric_sum(METRIC_BF_OBJECTS), 0);
    assert_true(mem_used() <= used + 4096); /* one stripe's first buckets */
    keyspace_free(ks);
}

TEST(flushing_again_and_again_without_memory_waits_and_never_fails)
{
    struct keyspace *ks = test_keyspace(1);
    int64_t freed = metric_sum(METRIC_LAZYFREED);
    struct test_key key;

    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 500; i++) {
            (void)test_put(ks, test_key_set(&key, i % 3, i));
        }
        mem_fail_at(1); /* a second set is refused: the first must come back */
        keyspace_flush_all(ks);
        (void)mem_fail_clear();
        assert_int_equal(test_count(ks, 0), 0);
    }
    keyspace_wait_freed(ks);
    assert_int_equal(metric_sum(METRIC_LAZYFREED), freed + 20 * 500);
    assert_int_equal(metric_sum(METRIC_LAZYFREE_PENDING), 0);
    assert_int_equal(metric_sum(METRIC_BF_OBJECTS), 0);
    keyspace_free(ks);
}

TEST(freeing_the_keyspace_frees_what_still_waits)
{
    uint64_t used = mem_used();
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;

    for (unsigned i = 0; i < 100; i++) {
        const struct key *k = test_key_set(&key, 0, i);
        struct entry *entry = test_put_sized(ks, k, LARGE_CAPACITY);

        assert_int_equal(keyspace_set_expiry(ks, k, entry, 1000), OK);
        if (i % 2 == 0) {
            assert_true(keyspace_delete(ks, k, 0));
        }
    }
    keyspace_free(ks);
    assert_int_equal(metric_sum(METRIC_LAZYFREE_PENDING), 0);
    assert_int_equal(metric_sum(METRIC_BF_OBJECTS), 0);
    assert_int_equal(mem_used(), used);
}

TEST(a_hundred_thousand_keys_are_flushed_at_once_and_freed_behind)
{
    struct keyspace *ks = test_keyspace(1);
    uint64_t used = mem_used();
    struct test_key key;

    for (unsigned i = 0; i < 100000; i++) {
        const struct key *k = test_key_set(&key, 3, i);
        struct entry *entry = test_put(ks, k);

        if (i % 4 == 0) {
            assert_int_equal(keyspace_set_expiry(ks, k, entry, 1000 + i), OK);
        }
    }
    assert_int_equal(test_count(ks, 3), 100000);
    assert_int_equal(test_expires(ks, 3), 25000);
    keyspace_flush_all(ks);
    assert_int_equal(test_count(ks, 3), 0);
    assert_int_equal(test_expires(ks, 3), 0);
    for (unsigned i = 0; i < 100000; i += 1000) {
        assert_null(keyspace_find(ks, test_key_set(&key, 3, i), 0));
    }
    keyspace_wait_freed(ks);
    assert_int_equal(metric_sum(METRIC_BF_OBJECTS), 0);
    assert_int_equal(metric_sum(METRIC_LAZYFREE_PENDING), 0);
    assert_int_equal(mem_used(), used);
    keyspace_free(ks);
}
