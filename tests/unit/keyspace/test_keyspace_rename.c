/* SPDX-License-Identifier: BSD-3-Clause
 *
 * keyspace_rename: what goes along, and that it happens or does not.
 */
#include "support.h"

struct renaming {
    uint32_t from_db, to_db;
    unsigned from, to;
    bool target; /* something has the new name */
    uint64_t at_ms;
};

static const struct renaming renamings[] = {
    { 0, 0, 1, 2, false, 0 }, { 0, 0, 1, 2, true, 0 },  { 0, 0, 1, 2, true, 9 },
    { 0, 0, 1, 2, false, 9 }, { 0, 5, 1, 1, false, 9 }, { 5, 0, 1, 1, true, 9 },
    { 3, 4, 7, 8, true, 0 },
};

/* The old name in `from`, the new one in `to`; returns the entry. */
static struct entry *
prepare_renaming(struct keyspace *ks, const struct renaming *how,
                 struct test_key *from, struct test_key *to)
{
    struct entry *entry =
        test_put(ks, test_key_set(from, how->from_db, how->from));

    (void)test_key_set(to, how->to_db, how->to);
    entry->incarnation = 77;
    access_set_idle(keyspace_access(ks), entry, 1234);
    if (how->at_ms > 0) {
        assert_int_equal(keyspace_set_expiry(ks, &from->key, entry, how->at_ms),
                         OK);
    }
    if (how->target) {
        struct entry *target = test_put_sized(ks, &to->key, 100000);

        assert_int_equal(keyspace_set_expiry(ks, &to->key, target, 5), OK);
    }
    return entry;
}

TEST(rename_takes_the_filter_its_life_its_time_and_its_use_along)
{
    for (size_t i = 0; i < sizeof(renamings) / sizeof(renamings[0]); i++) {
        const struct renaming *how = &renamings[i];
        struct keyspace *ks = test_keyspace(1);
        struct test_key from;
        struct test_key to;
        struct entry *entry = prepare_renaming(ks, how, &from, &to);
        const void *lines = test_lines(&entry->bloom);
        struct key_version seen_from = keyspace_version(ks, &from.key, 0);
        struct key_version seen_to = keyspace_version(ks, &to.key, 0);

        assert_int_equal(keyspace_rename(ks, &from.key, entry, &to.key), OK);
        assert_null(keyspace_find(ks, &from.key, 0));
        entry = keyspace_find(ks, &to.key, 0);
        assert_non_null(entry);
        assert_ptr_equal(test_lines(&entry->bloom), lines);
        assert_int_equal(entry->incarnation, 77);
        assert_int_equal(access_idle_s(keyspace_access(ks), entry), 1234);
        assert_int_equal(keyspace_expiry(ks, &to.key, entry), how->at_ms);
        assert_true(keyspace_changed(ks, &from.key, seen_from, 0));
        assert_true(keyspace_changed(ks, &to.key, seen_to, 0));
        keyspace_wait_freed(ks);
        assert_int_equal(metric_sum(METRIC_BF_OBJECTS), 1);
        assert_int_equal(test_count(ks, how->to_db), 1);
        assert_int_equal(test_expires(ks, how->to_db), how->at_ms > 0);
        assert_int_equal(test_count(ks, how->from_db),
                         how->from_db == how->to_db);
        keyspace_free(ks);
    }
}

TEST(rename_survives_every_allocation_failure)
{
    for (size_t i = 0; i < sizeof(renamings) / sizeof(renamings[0]); i++) {
        const struct renaming *how = &renamings[i];
        bool fired = true;

        for (unsigned nth = 1; fired; nth++) {
            struct keyspace *ks = test_keyspace(1);
            struct test_key from;
            struct test_key to;
            struct entry *entry = prepare_renaming(ks, how, &from, &to);
            const struct entry *target = keyspace_find(ks, &to.key, 0);
            enum err err;

            mem_fail_at(nth);
            err = keyspace_rename(ks, &from.key, entry, &to.key);
            fired = mem_fail_clear();
            if (err != OK) {
                assert_int_equal(err, ERR_NOMEM);
                assert_ptr_equal(keyspace_find(ks, &from.key, 0), entry);
                assert_ptr_equal(keyspace_find(ks, &to.key, 0), target);
                assert_int_equal(keyspace_expiry(ks, &from.key, entry),
                                 how->at_ms);
                assert_int_equal(metric_sum(METRIC_BF_OBJECTS),
                                 1 + how->target);
            }
            keyspace_free(ks);
            assert_true(nth < 10);
        }
    }
}
