/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Expired keys and flushed databases go away in the background.
 */
#include "keyspace/databases.h"
#include "support.h"

#include <limits.h>

static void
fill(struct keyspace *ks, uint32_t db, unsigned count)
{
    struct test_key key;

    for (unsigned i = 0; i < count; i++) {
        (void)test_put(ks, test_key_set(&key, db, i));
    }
}

TEST(expired_keys_are_removed_when_their_time_is_over_and_not_before)
{
    struct keyspace *ks = test_keyspace(1);
    uint64_t random = random_of(5);
    int64_t expired = metric_sum(METRIC_EXPIRED_KEYS);
    static uint64_t times[5000];
    struct test_key key;

    fill(ks, 0, 5000);
    for (unsigned i = 0; i < 4000; i++) {
        const struct key *k = test_key_set(&key, 0, i);

        times[i] = 1 + test_random_below(&random, 1000);
        assert_int_equal(
            keyspace_set_expiry(ks, k, keyspace_find(ks, k, 0), times[i]), OK);
    }
    for (uint64_t now = 0; now <= 1000; now += 50) {
        unsigned left = 0;

        test_reclaim_all(ks, now);
        for (unsigned i = 0; i < 4000; i++) {
            left += times[i] > now;
        }
        assert_int_equal(test_count(ks, 0), left + 1000);
        assert_int_equal(test_expires(ks, 0), left);
        assert_int_equal(metric_sum(METRIC_EXPIRED_KEYS) - expired,
                         4000 - left);
        assert_int_equal(metric_sum(METRIC_BF_OBJECTS), left + 1000);
    }
    keyspace_free(ks);
}

TEST(reclaiming_stops_at_its_budget_and_goes_on_where_it_was)
{
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;
    unsigned calls = 1;
    uint64_t before;

    fill(ks, 0, 20000);
    for (unsigned i = 0; i < 20000; i++) {
        const struct key *k = test_key_set(&key, 0, i);

        assert_int_equal(
            keyspace_set_expiry(ks, k, keyspace_find(ks, k, 0), 10), OK);
    }
    for (before = 20001; keyspace_reclaim(ks, 0, 10, 0); calls++) {
        assert_true(test_count(ks, 0) < before); /* never idle */
        before = test_count(ks, 0);
    }
    assert_true(calls > 100);
    assert_int_equal(test_count(ks, 0), 0);
    keyspace_free(ks);
}

TEST(entries_of_a_flushed_database_are_invisible_and_go_away)
{
    struct keyspace *ks = test_keyspace(1);
    int64_t expired = metric_sum(METRIC_EXPIRED_KEYS);
    struct test_key key;
    unsigned calls = 1;

    fill(ks, 0, 3000);
    fill(ks, 1, 3000);
    for (unsigned i = 0; i < 3000; i += 2) {
        const struct key *k = test_key_set(&key, 1, i);

        assert_int_equal(
            keyspace_set_expiry(ks, k, keyspace_find(ks, k, 0), 10), OK);
    }
    keyspace_flush_db(ks, 1);
    assert_int_equal(test_count(ks, 1), 0);
    assert_int_equal(test_expires(ks, 1), 0);
    assert_int_equal(test_count(ks, 0), 3000);
    assert_int_equal(metric_sum(METRIC_BF_OBJECTS), 6000);
    assert_null(keyspace_find(ks, test_key_set(&key, 1, 5), 0));
    assert_false(keyspace_delete(ks, test_key_set(&key, 1, 5), 0));
    fill(ks, 1, 10); /* the same names again, beside the dead */
    assert_int_equal(test_count(ks, 1), 10);
    while (keyspace_reclaim(ks, 0, 20, 0)) {
        calls++;
    }
    assert_true(calls > 100);
    assert_int_equal(metric_sum(METRIC_EXPIRED_KEYS), expired);
    assert_int_equal(metric_sum(METRIC_BF_OBJECTS), 3010);
    assert_int_equal(test_count(ks, 0), 3000);
    assert_int_equal(test_count(ks, 1), 10);
    for (unsigned i = 0; i < 3000; i++) {
        assert_non_null(keyspace_find(ks, test_key_set(&key, 0, i), 20));
        assert_int_equal(
            keyspace_find(ks, test_key_set(&key, 1, i), 20) != NULL, i < 10);
    }
    keyspace_free(ks);
}

TEST(kept_expired_keys_are_not_removed_and_not_found)
{
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, 1);
    int64_t expired = metric_sum(METRIC_EXPIRED_KEYS);

    (void)test_put(ks, k);
    assert_int_equal(keyspace_set_expiry(ks, k, keyspace_find(ks, k, 0), 10),
                     OK);
    keyspace_keep_expired(ks, true);
    assert_false(keyspace_reclaim(ks, 0, 20, 100));
    assert_int_equal(test_count(ks, 0), 1);
    assert_null(keyspace_find(ks, k, 20));
    keyspace_keep_expired(ks, false);
    assert_false(keyspace_reclaim(ks, 0, 20, 100));
    assert_int_equal(test_count(ks, 0), 0);
    assert_int_equal(metric_sum(METRIC_EXPIRED_KEYS), expired + 1);
    keyspace_free(ks);
}

/* ---- who hears of it ----------------------------------------------------- */

struct hearing {
    struct keyspace *ks;
    unsigned begins, ends, removed;
    unsigned begins_allowed, removals_allowed; /* in all, and in a slice */
    unsigned in_slice;
    bool open;
};

static bool
on_begin(void *ctx, unsigned thread)
{
    struct hearing *hearing = ctx;

    assert_int_equal(0, thread);
    assert_false(hearing->open);
    if (hearing->begins == hearing->begins_allowed) {
        return false;
    }
    hearing->begins++;
    hearing->in_slice = 0;
    hearing->open = true;
    return true;
}

static bool
on_remove(void *ctx, unsigned thread, const struct key *key)
{
    struct hearing *hearing = ctx;

    assert_int_equal(0, thread);
    assert_true(hearing->open);
    assert_non_null(keyspace_find(hearing->ks, key, 0)); /* still there */
    if (hearing->in_slice == hearing->removals_allowed) {
        return false;
    }
    hearing->in_slice++;
    hearing->removed++;
    return true;
}

static void
on_end(void *ctx, unsigned thread, unsigned stripe)
{
    struct hearing *hearing = ctx;

    assert_int_equal(0, thread);
    assert_true(hearing->open && stripe < KEYSPACE_STRIPES);
    hearing->ends++;
    hearing->open = false;
}

/* Half of `count` keys end at 10. */
static struct keyspace *
heard_by(struct hearing *hearing, unsigned count)
{
    struct keyspace_options options = {
        .threads = 1,
        .databases = 16,
        .expiry = { on_begin, on_remove, on_end, hearing },
    };
    struct keyspace *ks = keyspace_new(&options);
    struct test_key key;

    hearing->ks = ks;
    fill(ks, 3, count);
    for (unsigned i = 0; i < count; i += 2) {
        const struct key *k = test_key_set(&key, 3, i);

        assert_int_equal(
            keyspace_set_expiry(ks, k, keyspace_find(ks, k, 0), 10), OK);
    }
    return ks;
}

TEST(the_hooks_see_each_removal_that_they_allow)
{
    struct hearing hearing = { .begins_allowed = UINT_MAX,
                               .removals_allowed = UINT_MAX };
    struct keyspace *ks = heard_by(&hearing, 4000);

    test_reclaim_all(ks, 9);
    assert_int_equal(0, hearing.begins);
    test_reclaim_all(ks, 10);
    assert_int_equal(2000, hearing.removed);
    assert_int_equal(hearing.begins, hearing.ends);
    assert_int_equal(2000, test_count(ks, 3));
    keyspace_free(ks);
}

TEST(removals_wait_until_they_are_allowed)
{
    struct hearing hearing = { .begins_allowed = 3,
                               .removals_allowed = UINT_MAX };
    struct keyspace *ks = heard_by(&hearing, 4000);

    assert_false(keyspace_reclaim(ks, 0, 10, 1000000)); /* nothing at once */
    assert_int_equal(3, hearing.ends);
    assert_int_equal(4000 - hearing.removed, test_count(ks, 3));
    assert_in_range(hearing.removed, 3, 1999);
    hearing.begins_allowed = UINT_MAX;
    test_reclaim_all(ks, 10);
    assert_int_equal(2000, hearing.removed);
    keyspace_free(ks);
}

TEST(a_slice_ends_where_it_is_told_to_and_another_goes_on)
{
    struct hearing hearing = { .begins_allowed = UINT_MAX,
                               .removals_allowed = 1 };
    int64_t expired = metric_sum(METRIC_EXPIRED_KEYS);
    struct keyspace *ks = heard_by(&hearing, 4000);

    test_reclaim_all(ks, 10);
    assert_int_equal(2000, hearing.removed);
    assert_int_equal(2000, hearing.ends);
    assert_int_equal(expired + 2000, metric_sum(METRIC_EXPIRED_KEYS));
    assert_int_equal(2000, test_count(ks, 3));
    keyspace_free(ks);
}

TEST(the_dead_are_no_news)
{
    struct hearing hearing = { .begins_allowed = UINT_MAX,
                               .removals_allowed = UINT_MAX };
    struct keyspace *ks = heard_by(&hearing, 1000);

    fill(ks, 4, 10); /* else a flush would take all at once */
    keyspace_flush_db(ks, 3);
    while (keyspace_reclaim_dead(ks, 0, 0)) {
    }
    assert_int_equal(metric_sum(METRIC_BF_OBJECTS), 10);
    test_reclaim_all(ks, 10);
    assert_int_equal(0, hearing.removed);
    keyspace_free(ks);
}

TEST(the_dead_go_alone)
{
    struct hearing hearing = { .begins_allowed = UINT_MAX,
                               .removals_allowed = UINT_MAX };
    struct keyspace *ks = heard_by(&hearing, 1000);

    while (keyspace_reclaim_dead(ks, 0, 1000)) {
    }
    assert_int_equal(1000, test_count(ks, 3));
    assert_int_equal(0, hearing.begins);
    keyspace_free(ks);
}

TEST(dead_entries_do_not_come_back_when_generations_run_out)
{
    const uint32_t first = 65000; /* soon to run out, and then all of them */
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;
    struct test_key other_key;
    const struct key *other = test_key_set(&other_key, 1, 1);

    (void)test_put(ks, other); /* else a flush would take all at once */
    atomic_store(&ks->db_ids[0], first << 16);
    atomic_store(&ks->slot_ids[0], first << 16);
    for (unsigned i = first; i < first + 65536 + 1000; i++) {
        /* What bore this name last is of the same generation. */
        const struct key *k = test_key_set(&key, 0, i % 65536);

        assert_null(keyspace_find(ks, k, 0));
        (void)test_put(ks, k);
        keyspace_flush_db(ks, 0);
        assert_int_equal(test_count(ks, 0), 0);
    }
    assert_true(metric_sum(METRIC_BF_OBJECTS) <= 65537);
    assert_non_null(keyspace_find(ks, other, 0));
    test_reclaim_all(ks, 0);
    assert_int_equal(metric_sum(METRIC_BF_OBJECTS), 1);
    keyspace_free(ks);
}
