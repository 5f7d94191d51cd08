/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One record at a time; that whole snapshots load is for test_recover.c and
 * test_transfer.c.
 */
#include "snapshot_help.h"

#include "keyspace/arrival.h"
#include "snapshot/insert.h"

static const struct bloom_params small = PARAMS(100, 0.01, 0.5, 2);
static struct bloom_env test_environment;

static struct insert
begin(void)
{
    test_environment = test_env();
    return (struct insert){ .keyspace = test_keyspace(1),
                            .env = &test_environment };
}

static bool
put(struct insert *insert, const struct snapshot_record *record, unsigned adds)
{
    struct bloom *bloom = make_filter(&small, adds);
    bool done = insert_filter(insert, record, bloom);

    mem_free(bloom); /* only the struct */
    return done;
}

static bool
end(struct insert *insert, uint64_t keys)
{
    const struct snapshot_stamp stamp = { .position = 99, .keys = keys };

    return insert_end(insert, &stamp);
}

static void *
open_nothing(const struct walk_part *part)
{
    (void)part;
    return NULL;
}

TEST(effects_that_nothing_can_execute_are_refused)
{
    const struct completion without_memory = { .open = open_nothing };
    const struct snapshot_effects effects = { .position = 7 };
    struct insert insert = begin();

    assert_false(insert_effects(&insert, &effects));
    assert_string_equal(insert.why,
                        "it has effects, which cannot be executed here");
    keyspace_free(insert.keyspace);
    insert = begin();
    insert.completion = &without_memory;
    assert_false(insert_effects(&insert, &effects));
    assert_string_equal(insert.why,
                        "its effects need more memory than there is");
    insert_fini(&insert);
    keyspace_free(insert.keyspace);
}

TEST(a_record_becomes_a_key)
{
    struct insert insert = begin();
    struct keyspace *ks = insert.keyspace;
    struct snapshot_record record = { slice_lit("a"), 3, 77, 5, 0, 12 };
    struct key key = key_of(record.name, 3);
    const struct entry *entry;

    assert_true(put(&insert, &record, 1));
    entry = keyspace_find(ks, &key, 76);
    assert_non_null(entry);
    assert_int_equal(5, entry->incarnation);
    assert_int_equal(77, keyspace_expiry(ks, &key, entry));
    assert_int_equal(12, arrival_copied(entry));
    record.db = 4;
    record.expires_at_ms = 0;
    assert_true(put(&insert, &record, 1));
    assert_int_equal(0, test_expires(ks, 4));
    assert_true(end(&insert, 2));
    assert_string_equal("", insert.why);
    keyspace_free(ks);
}

TEST(of_two_records_the_later_counts_and_none_before_a_void)
{
    struct insert insert = begin();
    struct keyspace *ks = insert.keyspace;
    struct snapshot_record record = { slice_lit("a"), 3, 77, 5, 0, 0 };
    struct key key = key_of(record.name, 3);

    assert_true(put(&insert, &record, 1));
    record.expires_at_ms = 0;
    assert_true(put(&insert, &record, 2));
    assert_int_equal(2, bloom_items(&keyspace_find(ks, &key, 0)->bloom));
    assert_int_equal(0, test_expires(ks, 3));
    assert_true(insert_gone(&insert, &record));
    assert_true(insert_gone(&insert, &record)); /* of nothing */
    assert_null(keyspace_find(ks, &key, 0));
    assert_true(put(&insert, &record, 3));
    assert_true(end(&insert, 1));
    assert_int_equal(3, bloom_items(&keyspace_find(ks, &key, 0)->bloom));
    keyspace_free(ks);
    assert_int_equal(0, metric_sum(METRIC_BF_OBJECTS));
}

TEST(each_epoch_has_keys_of_its_own)
{
    struct insert insert = begin();
    struct snapshot_record record = { slice_lit("a"), 3, 77, 5, 0, 0 };
    struct key key = key_of(record.name, 3);

    assert_true(put(&insert, &record, 1));
    record.epoch = 2;
    assert_true(insert_gone(&insert, &record)); /* only of this epoch */
    record.epoch = 0;
    record.name = slice_lit("b");
    assert_true(put(&insert, &record, 1));
    assert_true(end(&insert, 2));
    assert_non_null(keyspace_find(insert.keyspace, &key, 0));
    keyspace_free(insert.keyspace);
}

TEST(a_key_of_a_flush_that_never_was_is_refused)
{
    struct insert insert = begin();
    struct snapshot_record record = { slice_lit("a"), 3, 77, 5, 1, 0 };

    assert_true(put(&insert, &record, 1));
    assert_false(end(&insert, 0));
    assert_string_equal("a key of a flush that never was", insert.why);
    keyspace_free(insert.keyspace);
}

TEST(a_record_that_cannot_be_one_is_refused_and_freed)
{
    struct insert insert = begin();
    struct snapshot_record record = { slice_lit("a"), 16, 1, 5, 0, 0 };
    static const char why[] =
        "a key of database 16, but the option databases is 16";

    assert_false(put(&insert, &record, 1));
    assert_string_equal(why, insert.why);
    insert.why[0] = '\0';
    insert.failed = false;
    assert_false(insert_gone(&insert, &record));
    assert_string_equal(why, insert.why);
    keyspace_free(insert.keyspace);
    assert_int_equal(0, metric_sum(METRIC_BF_OBJECTS));
}

TEST(the_number_of_keys_must_be_as_the_end_says)
{
    struct insert insert = begin();
    struct snapshot_record record = { slice_lit("a"), 0, 0, 5, 0, 0 };

    assert_true(put(&insert, &record, 1));
    assert_false(end(&insert, 2));
    assert_string_equal("the number of its keys is 1, but its end says 2",
                        insert.why);
    assert_true(end(&insert, SNAPSHOT_KEYS_UNKNOWN));
    insert.incomplete = true;
    assert_true(end(&insert, 2));
    keyspace_free(insert.keyspace);
}

TEST(every_allocation_of_an_insertion_may_fail)
{
    const struct snapshot_record record = { slice_lit("a"), 0, 7, 1, 0, 0 };
    uint64_t used = mem_used();
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct insert insert = begin();
        struct bloom *bloom = make_filter(&small, 1);
        bool done;

        mem_fail_at(nth);
        done = insert_filter(&insert, &record, bloom);
        fired = mem_fail_clear();
        mem_free(bloom);
        assert_int_equal(!fired, done);
        assert_string_equal(fired ? "not enough memory" : "", insert.why);
        keyspace_free(insert.keyspace);
        assert_int_equal(used, mem_used());
    }
}
