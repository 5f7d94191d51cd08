/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which key goes: what each plan looks at and chooses, that the choice is
 * looked at again under the lock, and that many threads may do it at a time.
 */
#include "keyspace/databases.h"
#include "keyspace/gate.h"
#include "support.h"

#include "keyspace/evict.h"

#include <pthread.h>

enum { KEYS = 4000, NOW_S = 1700000000 };

static const uint64_t NOW_MS = (uint64_t)NOW_S * 1000;

static struct keyspace *
filled(unsigned threads, unsigned keys)
{
    struct keyspace *ks = test_keyspace(threads);
    struct test_key key;

    access_tick(keyspace_access(ks), NOW_MS);
    for (unsigned i = 0; i < keys; i++) {
        (void)test_put(ks, test_key_set(&key, 0, i));
    }
    return ks;
}

static struct entry *
entry_of(struct keyspace *ks, unsigned number)
{
    struct test_key key;

    return keyspace_find(ks, test_key_set(&key, 0, number), 0);
}

static void
set_end(struct keyspace *ks, unsigned number, uint64_t at_ms)
{
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, number);

    assert_int_equal(keyspace_set_expiry(ks, k, entry_of(ks, number), at_ms),
                     OK);
}

/* Chooses and removes one; returns its number, or UINT64_MAX if it was over, or
 * gone. */
static uint64_t
evict_one(struct keyspace *ks, unsigned thread, const struct evict_plan *plan)
{
    struct evict_candidate candidate;
    struct entry *entry;
    bool expired = false;
    struct key key;
    uint64_t number = UINT64_MAX;

    assert_true(evict_choose(ks, thread, plan, &candidate));
    keyspace_lock(ks, thread, candidate.stripe, true);
    entry = evict_find(ks, plan, &candidate, &key, &expired);
    if (entry != NULL) {
        number = expired ? UINT64_MAX : number_of(entry);
        assert_int_equal(keyspace_stripe_of(key.hash), candidate.stripe);
        assert_int_equal(hash_name(key.name), key.hash);
        keyspace_remove(ks, &key, entry);
    }
    keyspace_unlock(ks, thread, candidate.stripe);
    return number;
}

TEST(an_empty_keyspace_has_nothing_to_evict)
{
    struct keyspace *ks = test_keyspace(1);
    struct evict_candidate candidate;

    for (int by = EVICT_OLDEST; by <= EVICT_SOONEST; by++) {
        const struct evict_plan plan = { (enum evict_by)by, by == EVICT_SOONEST,
                                         5, NOW_MS };

        assert_false(evict_choose(ks, 0, &plan, &candidate));
    }
    keyspace_free(ks);
}

/* Of 4000 keys the first 2000 are cold. Of five samples none is cold once in
 * 32 at first, and more often as the cold ones go. */
static unsigned
hot_among_evicted(enum evict_by by)
{
    struct keyspace *ks = filled(1, KEYS);
    const struct evict_plan plan = { by, false, 5, NOW_MS };
    unsigned hot = 0;

    for (unsigned i = 0; i < KEYS / 2; i++) {
        access_set_idle(keyspace_access(ks), entry_of(ks, i), 1000);
        access_set_frequency(entry_of(ks, KEYS / 2 + i), 50);
    }
    if (by == EVICT_RAREST) {
        const struct access_policy policy = { .counts = true };

        access_set_policy(keyspace_access(ks), &policy);
    }
    for (unsigned i = 0; i < KEYS / 4; i++) {
        hot += evict_one(ks, 0, &plan) >= KEYS / 2;
    }
    assert_int_equal(test_count(ks, 0), KEYS - KEYS / 4);
    keyspace_free(ks);
    return hot;
}

TEST(the_oldest_go_first)
{
    assert_in_range(hot_among_evicted(EVICT_OLDEST), 0, KEYS / 4 / 8);
}

TEST(the_least_used_go_first)
{
    assert_in_range(hot_among_evicted(EVICT_RAREST), 0, KEYS / 4 / 8);
}

TEST(by_chance_hot_and_cold_go_alike)
{
    assert_in_range(hot_among_evicted(EVICT_ANY), KEYS / 4 / 2 - 100,
                    KEYS / 4 / 2 + 100);
}

TEST(only_keys_with_a_time_to_live_are_volatile)
{
    for (int by = EVICT_OLDEST; by <= EVICT_SOONEST; by++) {
        const struct evict_plan plan = { (enum evict_by)by, true, 5, NOW_MS };
        struct keyspace *ks = filled(1, 1000);
        struct evict_candidate candidate;

        for (unsigned i = 0; i < 1000; i += 10) {
            set_end(ks, i, NOW_MS + 1000 + i);
        }
        for (unsigned i = 0; i < 100; i++) {
            assert_int_equal(evict_one(ks, 0, &plan) % 10, 0);
        }
        assert_false(evict_choose(ks, 0, &plan, &candidate));
        assert_int_equal(test_count(ks, 0), 900);
        keyspace_free(ks);
    }
}

TEST(the_soonest_end_goes_first_exactly)
{
    const struct evict_plan plan = { EVICT_SOONEST, true, 1, NOW_MS };
    struct keyspace *ks = filled(1, 1000);

    for (unsigned i = 0; i < 1000; i++) {
        set_end(ks, i, NOW_MS + 1 + (i * 7) % 1000);
    }
    for (unsigned n = 0; n < 1000; n++) {
        assert_int_equal(evict_one(ks, 0, &plan) * 7 % 1000, n);
    }
    keyspace_free(ks);
}

/* The dead are removed by themselves. So many samples see all three entries. */
TEST(expired_keys_are_evicted_first)
{
    const struct evict_plan plan = { EVICT_OLDEST, false, 200, NOW_MS };
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;

    access_tick(keyspace_access(ks), NOW_MS);
    for (uint32_t db = 0; db < 3; db++) {
        (void)test_put(ks, test_key_set(&key, db, 0));
    }
    set_end(ks, 0, NOW_MS);
    keyspace_flush_db(ks, 1);
    access_set_idle(keyspace_access(ks), keyspace_find(ks, &key.key, NOW_MS),
                    100000);
    assert_int_equal(evict_one(ks, 0, &plan), UINT64_MAX);
    assert_int_equal(metric_sum(METRIC_BF_OBJECTS), 2);
    assert_int_equal(evict_one(ks, 0, &plan), UINT64_MAX);
    assert_int_equal(metric_sum(METRIC_BF_OBJECTS), 1);
    assert_int_equal(evict_one(ks, 0, &plan), 0);
    keyspace_free(ks);
}

TEST(a_candidate_that_is_gone_or_another_is_not_found)
{
    const struct evict_plan plan = { EVICT_ANY, false, 1, NOW_MS };
    struct keyspace *ks = filled(1, 1);
    struct evict_candidate candidate;
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, 0);
    struct key found;
    bool expired;

    assert_true(evict_choose(ks, 0, &plan, &candidate));
    assert_true(keyspace_delete(ks, k, NOW_MS));
    assert_null(evict_find(ks, &plan, &candidate, &found, &expired));
    (void)test_put(ks, k);
    assert_true(evict_choose(ks, 0, &plan, &candidate));
    candidate.incarnation++;
    assert_null(evict_find(ks, &plan, &candidate, &found, &expired));
    candidate.incarnation--;
    assert_non_null(evict_find(ks, &plan, &candidate, &found, &expired));
    assert_int_equal(found.db, 0);
    keyspace_swap_db(ks, 0, 5);
    assert_non_null(evict_find(ks, &plan, &candidate, &found, &expired));
    assert_int_equal(found.db, 5);
    keyspace_free(ks);
}

/* ---- threads ------------------------------------------------------------- */

struct hand {
    struct keyspace *ks;
    unsigned index;
    unsigned evicted;
};

static void *
churn(void *arg)
{
    struct hand *hand = arg;
    struct keyspace *ks = hand->ks;
    const struct evict_plan plan = { EVICT_OLDEST, false, 5, NOW_MS };
    struct test_key key;

    for (unsigned i = 0; i < 3000; i++) {
        const struct key *k =
            test_key_set(&key, 0, KEYS + hand->index * 10000 + i);
        unsigned stripe = keyspace_stripe_of(k->hash);

        gate_enter(keyspace_gate(ks), hand->index);
        hand->evicted += evict_one(ks, hand->index, &plan) != UINT64_MAX;
        keyspace_lock(ks, hand->index, stripe, true);
        (void)test_put(ks, k);
        keyspace_unlock(ks, hand->index, stripe);
        gate_leave(keyspace_gate(ks), hand->index);
    }
    metric_thread_exit();
    return NULL;
}

TEST(four_threads_evict_each_key_once)
{
    struct keyspace *ks = filled(4, KEYS);
    struct hand hands[4];
    pthread_t threads[4];
    unsigned evicted = 0;

    for (unsigned i = 0; i < 4; i++) {
        hands[i] = (struct hand){ ks, i, 0 };
        assert_int_equal(pthread_create(&threads[i], NULL, churn, &hands[i]),
                         0);
    }
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        evicted += hands[i].evicted;
    }
    assert_int_equal(test_count(ks, 0), KEYS + 4 * 3000 - evicted);
    keyspace_free(ks);
}
