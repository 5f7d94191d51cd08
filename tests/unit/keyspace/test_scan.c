/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SCAN's guarantee, its bounds, and random keys.
 */
#include "keyspace/databases.h"
#include "keyspace/gate.h"
#include "keyspace/scan.h"
#include "support.h"

#include <pthread.h>

enum { POOL = 20000 };

struct meeting {
    unsigned char met[POOL];
    size_t count;
    size_t stop_after;
};

static bool
meet(void *ctx, const struct entry *entry, uint64_t expires_at_ms)
{
    struct meeting *meeting = ctx;
    uint64_t number = number_of(entry);

    (void)expires_at_ms;
    assert_true(number < POOL);
    meeting->met[number] = 1;
    meeting->count++;
    return meeting->stop_after == 0 || meeting->count < meeting->stop_after;
}

static uint64_t
scan(struct keyspace *ks, uint32_t db, uint64_t cursor, size_t want,
     struct meeting *meeting)
{
    uint64_t next = keyspace_scan(ks, 0, db, cursor, want, want * 10 + 10, 0,
                                  meet, meeting);

    assert_true(next < (uint64_t)1 << 53);
    return next;
}

/* Puts, drops or renames (a drop and a put) keys of db 0; those divisible by
 * 64 stay, and so is the truth about what else stayed. */
static void
disturb(struct keyspace *ks, uint64_t *random, bool *present, bool *stays,
        bool grow)
{
    struct test_key key;

    for (int i = 0; i < 1000; i++) {
        unsigned n = (unsigned)test_random_below(random, POOL);
        const struct key *k = test_key_set(&key, 0, n);

        if (n % 64 == 0) {
            continue;
        }
        if (present[n]) {
            if (!grow || test_random_below(random, 8) == 0) {
                assert_true(keyspace_delete(ks, k, 0));
                present[n] = false;
                stays[n] = false;
            }
        } else if (grow || test_random_below(random, 8) == 0) {
            (void)test_put(ks, k);
            present[n] = true;
        }
    }
}

TEST(scan_meets_every_key_that_stays_while_tables_grow_and_shrink)
{
    static bool present[POOL];
    static bool stays[POOL];
    static struct meeting meeting;
    struct keyspace *ks = test_keyspace(1);
    uint64_t random = random_of(6);
    struct test_key key;

    for (unsigned i = 0; i < POOL; i += 64) {
        (void)test_put(ks, test_key_set(&key, 0, i));
        present[i] = true;
    }
    for (unsigned round = 0; round < 4 * test_rounds(); round++) {
        uint64_t cursor = 0;
        unsigned calls = 0;

        memcpy(stays, present, sizeof(stays));
        memset(&meeting, 0, sizeof(meeting));
        do {
            cursor = scan(ks, 0, cursor, 1 + test_random_below(&random, 100),
                          &meeting);
            disturb(ks, &random, present, stays, calls++ / 50 % 2 == 0);
        } while (cursor != 0);
        assert_true(calls > 20);
        for (unsigned i = 0; i < POOL; i++) {
            assert_true(!stays[i] || meeting.met[i]);
        }
    }
    keyspace_free(ks);
}

TEST(scan_at_rest_meets_every_live_key_of_its_database_once)
{
    static struct meeting meeting;
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;
    uint64_t cursor = 0;

    for (unsigned i = 0; i < 3000; i++) {
        const struct key *k = test_key_set(&key, 1 + i % 3, i);
        struct entry *entry = test_put(ks, k);

        if (i % 5 == 0) {
            assert_int_equal(keyspace_set_expiry(ks, k, entry, 10), OK);
        }
    }
    keyspace_flush_db(ks, 2);
    (void)test_put(ks, test_key_set(&key, 2, 1));
    for (uint32_t db = 0; db < 4; db++) {
        memset(&meeting, 0, sizeof(meeting));
        do {
            cursor =
                keyspace_scan(ks, 0, db, cursor, 7, 100, 10, meet, &meeting);
        } while (cursor != 0);
        assert_int_equal(meeting.count, db == 0 ? 0 : db == 2 ? 1 : 800);
        for (unsigned i = 0; i < 3000; i++) {
            bool live = db == 2 ? i == 1 : i % 5 != 0 && 1 + i % 3 == db;

            assert_int_equal(meeting.met[i], live && db != 0);
        }
    }
    keyspace_free(ks);
}

TEST(scan_of_few_keys_is_one_call_and_of_none_too)
{
    static struct meeting meeting;
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;

    memset(&meeting, 0, sizeof(meeting));
    assert_int_equal(scan(ks, 0, 0, 10, &meeting), 0);
    for (unsigned i = 0; i < 5; i++) {
        (void)test_put(ks, test_key_set(&key, 0, i));
    }
    assert_int_equal(scan(ks, 0, 0, 10, &meeting), 0);
    assert_int_equal(meeting.count, 5);
    for (unsigned i = 0; i < 5; i++) {
        assert_true(keyspace_delete(ks, test_key_set(&key, 0, i), 0));
    }
    assert_int_equal(keyspace_next_occupied(ks, 0), KEYSPACE_STRIPES);
    keyspace_free(ks);
}

TEST(scan_keeps_its_bounds)
{
    static struct meeting meeting;
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;
    uint64_t cursor = 0;
    size_t calls = 0;

    for (unsigned i = 0; i < POOL; i++) {
        (void)test_put(ks, test_key_set(&key, 0, i));
    }
    memset(&meeting, 0, sizeof(meeting));
    assert_int_not_equal(scan(ks, 0, 0, 100, &meeting), 0);
    assert_true(meeting.count >= 100 && meeting.count < 120);
    /* Another database: only the steps end a call. There are two to eight in a
     * stripe of twenty keys. */
    do {
        cursor = keyspace_scan(ks, 0, 5, cursor, 10, 300, 0, meet, &meeting);
        calls++;
    } while (cursor != 0);
    assert_true(calls >= 2 * KEYSPACE_STRIPES / 300 &&
                calls < 8 * KEYSPACE_STRIPES / 300);
    memset(&meeting, 0, sizeof(meeting));
    meeting.stop_after = 3;
    cursor = keyspace_scan(ks, 0, 0, 0, SIZE_MAX, SIZE_MAX, 0, meet, &meeting);
    assert_int_not_equal(cursor, 0);
    assert_true(meeting.count >= 3 && meeting.count < 20); /* a whole step */
    memset(&meeting, 0, sizeof(meeting));
    assert_int_equal(
        keyspace_scan(ks, 0, 0, 0, SIZE_MAX, SIZE_MAX, 0, meet, &meeting), 0);
    assert_int_equal(meeting.count, POOL);
    keyspace_free(ks);
}

TEST(scan_takes_any_cursor)
{
    static struct meeting meeting;
    struct keyspace *ks = test_keyspace(1);
    uint64_t random = random_of(7);
    struct test_key key;

    for (unsigned i = 0; i < 5000; i++) {
        (void)test_put(ks, test_key_set(&key, 0, i));
    }
    assert_int_equal(scan(ks, 0, (uint64_t)1 << 52, 10, &meeting), 0);
    assert_int_equal(scan(ks, 0, UINT64_MAX, 10, &meeting), 0);
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t cursor = test_random_below(&random, (uint64_t)1 << 53);
        unsigned calls = 0;

        for (int step = 0; step < 3 && cursor != 0; step++) {
            cursor = scan(ks, 0, cursor, 10, &meeting);
            assert_true(++calls < 100000);
        }
    }
    keyspace_free(ks);
}

TEST(the_owner_of_the_gate_scans_without_locks)
{
    static struct meeting meeting;
    struct keyspace *ks = test_keyspace(4);
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, 1);
    unsigned stripe = keyspace_stripe_of(k->hash);

    (void)test_put(ks, k);
    memset(&meeting, 0, sizeof(meeting));
    gate_raise(keyspace_gate(ks), 2);
    keyspace_lock(ks, 2, stripe, true); /* a lock taken again would hang */
    assert_int_equal(keyspace_scan(ks, 2, 0, 0, 10, 10, 0, meet, &meeting), 0);
    assert_true(keyspace_random(ks, 2, 0, 0, meet, &meeting));
    assert_int_equal(keyspace_set_expiry(ks, k, keyspace_find(ks, k, 0), 1),
                     OK);
    while (keyspace_reclaim(ks, 2, 1, 100)) {
    }
    keyspace_unlock(ks, 2, stripe);
    gate_lower(keyspace_gate(ks), 2);
    assert_int_equal(meeting.count, 2);
    assert_int_equal(test_count(ks, 0), 0);
    keyspace_free(ks);
}

/* ---- together with writers ----------------------------------------------- */

enum { WRITERS = 3, WRITER_TURNS = 4000, STAYING = 500 };

struct writer {
    struct keyspace *ks;
    unsigned index; /* of the thread */
    pthread_t thread;
};

static void *
write_keys(void *arg)
{
    struct writer *writer = arg;
    struct keyspace *ks = writer->ks;
    uint64_t random = random_of(200 + writer->index);
    struct test_key key;

    for (int i = 0; i < WRITER_TURNS; i++) {
        unsigned n = STAYING + (unsigned)test_random_below(&random, 3000);
        const struct key *k = test_key_set(&key, 0, n);
        unsigned stripe = keyspace_stripe_of(k->hash);

        gate_enter(keyspace_gate(ks), writer->index);
        keyspace_lock(ks, writer->index, stripe, true);
        if (keyspace_open(ks, k, 5, NULL) == NULL) {
            struct entry *entry = test_put(ks, k);

            if (n % 3 == 0) {
                CHECK(keyspace_set_expiry(ks, k, entry, 1 + n % 10) == OK);
            }
        } else {
            CHECK(keyspace_delete(ks, k, 5));
        }
        keyspace_unlock(ks, writer->index, stripe);
        gate_leave(keyspace_gate(ks), writer->index);
        if (i % 1000 == 0) {
            gate_raise(keyspace_gate(ks), writer->index);
            keyspace_swap_db(ks, 3, 4);
            keyspace_flush_db(ks, 3);
            gate_lower(keyspace_gate(ks), writer->index);
        }
    }
    metric_thread_exit();
    return NULL;
}

static uint64_t
scan_all_in_sections(struct keyspace *ks, struct meeting *meeting)
{
    uint64_t cursor = 0;
    uint64_t keys = 0;

    do {
        gate_enter(keyspace_gate(ks), 0);
        cursor = keyspace_scan(ks, 0, 0, cursor, 200, 2000, 5, meet, meeting);
        (void)keyspace_random(ks, 0, 0, 5, meet, meeting);
        (void)keyspace_reclaim(ks, 0, 5, 100);
        keys += test_count(ks, 0);
        gate_leave(keyspace_gate(ks), 0);
    } while (cursor != 0);
    return keys;
}

TEST(scan_meets_every_key_that_stays_while_other_threads_write)
{
    static struct meeting meeting;
    struct keyspace *ks = test_keyspace(1 + WRITERS);
    struct writer writers[WRITERS];
    struct test_key key;
    struct test_key dead;

    for (unsigned i = 0; i < STAYING; i++) {
        (void)test_put(ks, test_key_set(&key, 0, i));
        (void)test_put(ks, test_key_set(&dead, 3 + i % 2, i));
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){ .ks = ks, .index = i + 1 };
        CHECK(pthread_create(&writers[i].thread, NULL, write_keys,
                             &writers[i]) == 0);
    }
    for (int round = 0; round < 20; round++) {
        memset(&meeting, 0, sizeof(meeting));
        assert_true(scan_all_in_sections(ks, &meeting) >= STAYING);
        for (unsigned i = 0; i < STAYING; i++) {
            assert_true(meeting.met[i]);
        }
    }
    for (unsigned i = 0; i < WRITERS; i++) {
        CHECK(pthread_join(writers[i].thread, NULL) == 0);
    }
    test_reclaim_all(ks, 5);
    memset(&meeting, 0, sizeof(meeting));
    assert_int_equal(
        keyspace_scan(ks, 0, 0, 0, SIZE_MAX, SIZE_MAX, 5, meet, &meeting), 0);
    assert_int_equal(meeting.count, test_count(ks, 0));
    assert_int_equal(metric_sum(METRIC_BF_OBJECTS),
                     test_count(ks, 0) + test_count(ks, 3) + test_count(ks, 4));
    keyspace_free(ks);
}

/* ---- random keys --------------------------------------------------------- */

struct draw {
    unsigned drawn[POOL];
};

static bool
draw(void *ctx, const struct entry *entry, uint64_t expires_at_ms)
{
    struct draw *draws = ctx;

    (void)expires_at_ms;
    draws->drawn[number_of(entry)]++;
    return false;
}

/* Each of `keys` keys is drawn at least an eighth of its fair share: keys may
 * share a bucket or sit in a table twice as large as others. */
static void
assert_fair(struct keyspace *ks, uint32_t db, unsigned keys)
{
    static struct draw draws;
    unsigned each = 200;

    memset(&draws, 0, sizeof(draws));
    for (unsigned i = 0; i < keys * each; i++) {
        assert_true(keyspace_random(ks, 0, db, 0, draw, &draws));
    }
    for (unsigned i = 0; i < keys; i++) {
        assert_true(draws.drawn[i] >= each / 8);
    }
}

TEST(random_keys_are_drawn_about_evenly)
{
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;
    unsigned filled = 0;

    for (unsigned keys = 1; keys <= 64; keys *= 4) {
        for (; filled < keys; filled++) {
            (void)test_put(ks, test_key_set(&key, 2, filled));
        }
        assert_fair(ks, 2, keys);
    }
    for (unsigned i = 0; i < POOL; i++) { /* hidden among others */
        (void)test_put(ks, test_key_set(&key, 3, i));
    }
    assert_fair(ks, 2, filled);
    keyspace_free(ks);
}

TEST(a_random_key_is_found_if_there_is_one_live_key)
{
    static struct draw draws;
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;

    assert_false(keyspace_random(ks, 0, 0, 0, draw, &draws));
    for (unsigned i = 0; i < 2000; i++) {
        const struct key *k = test_key_set(&key, 0, i);

        assert_int_equal(keyspace_set_expiry(ks, k, test_put(ks, k), 10), OK);
    }
    (void)test_put(ks, test_key_set(&key, 1, 3000));
    assert_false(keyspace_random(ks, 0, 0, 10, draw, &draws));
    (void)test_put(ks, test_key_set(&key, 0, 4000));
    for (int i = 0; i < 100; i++) {
        assert_true(keyspace_random(ks, 0, 0, 10, draw, &draws));
    }
    assert_int_equal(draws.drawn[4000], 100);
    keyspace_flush_db(ks, 0);
    assert_false(keyspace_random(ks, 0, 0, 0, draw, &draws));
    keyspace_free(ks);
}
