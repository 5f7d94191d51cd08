/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One record at a time; that whole snapshots load is for test_recover.c and
 * test_transfer.c.
 */
#include "snapshot_help.h"

#include "persist/insert.h"

static const struct bloom_params small = { 100, 0.01, 0.5, 2, 0, 0, { 0 } };

static bool
insert(struct keyspace *ks, const struct snapshot_record *record, char *ret_why)
{
    const struct bloom_env env = test_env();

    return insert_record(ks, &env, record, make_filter(&small, 1), ret_why,
                         100);
}

TEST(a_record_becomes_a_key)
{
    struct keyspace *ks = test_keyspace(1);
    struct snapshot_record record = { slice_lit("a"), 3, 77, 5 };
    struct key key = key_of(record.name, 3);
    const struct entry *entry;
    char why[100] = "";

    assert_true(insert(ks, &record, why));
    entry = keyspace_find(ks, &key, 76);
    assert_non_null(entry);
    assert_int_equal(5, entry->incarnation);
    assert_int_equal(77, keyspace_expiry(ks, &key, entry));
    record.db = 4;
    record.expires_at_ms = 0;
    assert_true(insert(ks, &record, why));
    assert_int_equal(0, test_expires(ks, 4));
    assert_string_equal("", why);
    keyspace_free(ks);
}

TEST(a_record_that_cannot_be_one_is_refused_and_freed)
{
    struct keyspace *ks = test_keyspace(1);
    struct snapshot_record record = { slice_lit("a"), 3, 1, 5 };
    char why[100] = "";

    assert_true(insert(ks, &record, why));
    assert_false(insert(ks, &record, why)); /* though its time is over */
    assert_string_equal("two keys of the same name", why);
    record.db = 16;
    assert_false(insert(ks, &record, why));
    assert_string_equal("a key of database 16, but the option databases is 16",
                        why);
    assert_int_equal(1, count_all(ks));
    keyspace_free(ks);
    assert_int_equal(0, metric_sum(METRIC_BF_OBJECTS));
}

TEST(every_allocation_of_an_insertion_may_fail)
{
    const struct snapshot_record record = { slice_lit("a"), 0, 7, 1 };
    uint64_t used = mem_used();
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct keyspace *ks = test_keyspace(1);
        const struct bloom_env env = test_env();
        struct bloom *bloom = make_filter(&small, 1);
        char why[100] = "";
        bool done;

        mem_fail_at(nth);
        done = insert_record(ks, &env, &record, bloom, why, sizeof(why));
        fired = mem_fail_clear();
        assert_int_equal(!fired, done);
        assert_string_equal(fired ? "not enough memory" : "", why);
        keyspace_free(ks);
        assert_int_equal(used, mem_used());
    }
}
