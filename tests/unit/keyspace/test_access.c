/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When a key was last used, and how often.
 */
#include "support.h"

enum { START_S = 1700000000 };

struct fixture {
    struct keyspace *ks;
    struct test_key key;
    struct entry *entry;
};

/* Fills in *ret: the key's name stays where it is made. */
static void
setup(struct fixture *ret)
{
    ret->ks = test_keyspace(1);
    access_tick(keyspace_access(ret->ks), (uint64_t)START_S * 1000);
    ret->entry = test_put(ret->ks, test_key_set(&ret->key, 0, 1));
}

static void
tick(const struct fixture *f, uint64_t after_s)
{
    access_tick(keyspace_access(f->ks), (START_S + after_s) * 1000);
}

static void
count_uses(const struct fixture *f, uint32_t log_factor, uint32_t decay)
{
    const struct access_policy policy = { .counts = true,
                                          .log_factor = log_factor,
                                          .decay_minutes = decay };

    access_set_policy(keyspace_access(f->ks), &policy);
}

TEST(a_key_is_idle_since_its_last_use)
{
    struct fixture f;

    setup(&f);
    assert_int_equal(access_idle_s(keyspace_access(f.ks), f.entry), 0);
    tick(&f, 7);
    assert_int_equal(access_idle_s(keyspace_access(f.ks), f.entry), 7);
    (void)keyspace_find(f.ks, &f.key.key, 0); /* to look is no use */
    assert_int_equal(access_idle_s(keyspace_access(f.ks), f.entry), 7);
    access_note(keyspace_access(f.ks), f.entry);
    assert_int_equal(access_idle_s(keyspace_access(f.ks), f.entry), 0);
    tick(&f, 7 + ACCESS_SECONDS_MAX);
    assert_int_equal(access_idle_s(keyspace_access(f.ks), f.entry),
                     ACCESS_SECONDS_MAX);
    keyspace_free(f.ks);
}

TEST(a_clock_that_is_set_back_makes_no_key_old)
{
    struct fixture f;

    setup(&f);
    tick(&f, 100);
    access_note(keyspace_access(f.ks), f.entry);
    tick(&f, 40);
    assert_int_equal(access_idle_s(keyspace_access(f.ks), f.entry), 0);
    count_uses(&f, 10, 1);
    assert_int_equal(access_frequency(keyspace_access(f.ks), f.entry),
                     ACCESS_FREQUENCY_NEW);
    tick(&f, 47);
    assert_int_equal(access_idle_s(keyspace_access(f.ks), f.entry), 7);
    keyspace_free(f.ks);
}

/* Readers of one key must not fight for its line. */
TEST(nothing_is_written_twice_a_second)
{
    struct fixture f;

    setup(&f);
    tick(&f, 1);
    access_note(keyspace_access(f.ks), f.entry);
    atomic_store(&f.entry->access, f.entry->access | 99); /* a mark */
    access_note(keyspace_access(f.ks), f.entry);
    assert_int_equal(f.entry->access & ACCESS_FREQUENCY_MAX, 99 | 5);
    tick(&f, 2);
    assert_int_equal(access_idle_s(keyspace_access(f.ks), f.entry), 1);
    access_note(keyspace_access(f.ks), f.entry);
    assert_int_equal(access_idle_s(keyspace_access(f.ks), f.entry), 0);
    keyspace_free(f.ks);
}

TEST(reclaiming_moves_the_clock)
{
    struct fixture f;

    setup(&f);
    (void)keyspace_reclaim(f.ks, 0, (START_S + 12) * (uint64_t)1000, 100);
    assert_int_equal(access_idle_s(keyspace_access(f.ks), f.entry), 12);
    keyspace_free(f.ks);
}

TEST(uses_count_only_while_a_policy_looks_at_them)
{
    struct fixture f;

    setup(&f);
    for (unsigned i = 0; i < 100; i++) {
        tick(&f, i);
        access_note(keyspace_access(f.ks), f.entry);
    }
    count_uses(&f, 0, 0);
    assert_int_equal(access_frequency(keyspace_access(f.ks), f.entry),
                     ACCESS_FREQUENCY_NEW);
    for (unsigned i = 0; i < 100; i++) {
        access_note(keyspace_access(f.ks), f.entry);
    }
    assert_int_equal(access_frequency(keyspace_access(f.ks), f.entry),
                     ACCESS_FREQUENCY_NEW + 100);
    for (unsigned i = 0; i < 1000; i++) {
        access_note(keyspace_access(f.ks), f.entry);
    }
    assert_int_equal(access_frequency(keyspace_access(f.ks), f.entry),
                     ACCESS_FREQUENCY_MAX);
    keyspace_free(f.ks);
}

/* With a factor of 10, the number rises as Redis's documentation says: about 10
 * after a hundred uses, 18 after a thousand, 49 after ten thousand, 142 after a
 * hundred thousand. */
TEST(the_number_of_uses_is_logarithmic)
{
    static const struct {
        unsigned uses, at_least, at_most;
    } cases[] = {
        { 100, 6, 17 },
        { 1000, 12, 28 },
        { 10000, 38, 66 },
        { 100000, 120, 165 },
    };

    for (unsigned i = 0; i < 4; i++) {
        struct fixture f;
        unsigned frequency;

        setup(&f);
        count_uses(&f, 10, 1);
        for (unsigned n = 0; n < cases[i].uses; n++) {
            access_note(keyspace_access(f.ks), f.entry);
        }
        frequency = access_frequency(keyspace_access(f.ks), f.entry);
        assert_in_range(frequency, cases[i].at_least, cases[i].at_most);
        keyspace_free(f.ks);
    }
}

TEST(the_number_sinks_with_the_minutes_without_use)
{
    struct fixture f;

    setup(&f);
    count_uses(&f, 0, 1);
    access_set_frequency(f.entry, 100);
    tick(&f, 600);
    assert_int_equal(access_frequency(keyspace_access(f.ks), f.entry), 90);
    count_uses(&f, 0, 5);
    assert_int_equal(access_frequency(keyspace_access(f.ks), f.entry), 98);
    count_uses(&f, 0, 0);
    assert_int_equal(access_frequency(keyspace_access(f.ks), f.entry), 100);
    count_uses(&f, 0, 1);
    access_note(keyspace_access(f.ks), f.entry); /* 90, and one more */
    assert_int_equal(access_frequency(keyspace_access(f.ks), f.entry), 91);
    tick(&f, 100000);
    assert_int_equal(access_frequency(keyspace_access(f.ks), f.entry), 0);
    keyspace_free(f.ks);
}

/* The turns of the minute count, however often it is used. */
TEST(a_key_that_is_used_each_half_minute_sinks_too)
{
    struct fixture f;

    setup(&f);
    count_uses(&f, 1000000000, 1); /* uses add nothing above 5 */
    access_set_frequency(f.entry, 100);
    for (unsigned s = 0; s <= 600; s += 30) {
        tick(&f, s);
        access_note(keyspace_access(f.ks), f.entry);
    }
    assert_in_range(access_frequency(keyspace_access(f.ks), f.entry), 89, 91);
    keyspace_free(f.ks);
}

TEST(idle_time_and_frequency_can_be_given)
{
    struct fixture f;

    setup(&f);
    access_set_frequency(f.entry, 77);
    access_set_idle(keyspace_access(f.ks), f.entry, 1000);
    assert_int_equal(access_idle_s(keyspace_access(f.ks), f.entry), 1000);
    assert_int_equal(f.entry->access & ACCESS_FREQUENCY_MAX, 77);
    access_set_idle(keyspace_access(f.ks), f.entry, UINT64_MAX);
    assert_int_equal(access_idle_s(keyspace_access(f.ks), f.entry),
                     ACCESS_SECONDS_MAX);
    keyspace_free(f.ks);
}
