/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two keyspaces full of everything there is (times to live, databases that
 * were swapped and flushed, dead entries, growing tables), against a model of
 * each. Prints its seed.
 */
#include "keyspace/databases.h"
#include "keyspace/exchange.h"
#include "keyspace/gate.h"
#include "keyspace/scan.h"
#include "support.h"

#include "keyspace/access.h"

#include <pthread.h>

enum {
    DATABASES = 16,
    NAMES = 300,
    CHANGES = 2000,
    NOW_MS = 1000,
    LATER_MS = 3000,
    LARGE_CAPACITY = 100000, /* about 120 KB at 1 % */
    THREADS = 3,
    ROUNDS = 200
};

/* What a keyspace has to hold: the incarnation of each key, 0 for none, and
 * its time. */
struct model {
    uint64_t incarnation[DATABASES][NAMES];
    uint64_t at_ms[DATABASES][NAMES];
};

struct twin {
    struct keyspace *ks;
    struct model *model;
};

static struct twin
new_twin(unsigned threads)
{
    return (struct twin){ test_keyspace(threads),
                          mem_zalloc(sizeof(struct model)) };
}

static void
free_twin(struct twin *twin)
{
    keyspace_free(twin->ks);
    mem_free(twin->model);
}

static void
put(struct twin *twin, const struct key *key, uint64_t name,
    uint64_t incarnation, uint64_t at_ms)
{
    struct bloom *bloom = test_bloom(100);
    struct entry *entry = NULL;

    (void)keyspace_delete(twin->ks, key, 0);
    assert_int_equal(
        OK, keyspace_insert(twin->ks, key, bloom, incarnation, &entry));
    if (at_ms > 0) {
        assert_int_equal(OK, keyspace_set_expiry(twin->ks, key, entry, at_ms));
    }
    twin->model->incarnation[key->db][name] = incarnation;
    twin->model->at_ms[key->db][name] = at_ms;
}

static void
swap_model(struct model *model, uint32_t a, uint32_t b)
{
    for (unsigned i = 0; i < NAMES; i++) {
        uint64_t incarnation = model->incarnation[a][i];
        uint64_t at_ms = model->at_ms[a][i];

        model->incarnation[a][i] = model->incarnation[b][i];
        model->incarnation[b][i] = incarnation;
        model->at_ms[a][i] = model->at_ms[b][i];
        model->at_ms[b][i] = at_ms;
    }
}

static void
change_at_random(struct twin *twin, uint64_t *sequence)
{
    uint32_t db = (uint32_t)test_random_below(sequence, DATABASES);
    uint32_t other = (uint32_t)test_random_below(sequence, DATABASES);
    uint64_t name = test_random_below(sequence, NAMES);
    struct test_key key;
    const struct key *k = test_key_set(&key, db, name);

    switch (test_random_below(sequence, 64)) {
    case 0:
        keyspace_swap_db(twin->ks, db, other);
        if (db != other) {
            swap_model(twin->model, db, other);
        }
        break;
    case 1:
        keyspace_flush_db(twin->ks, db);
        memset(twin->model->incarnation[db], 0,
               sizeof(twin->model->incarnation[db]));
        break;
    case 2:
    case 3:
    case 4:
        (void)keyspace_delete(twin->ks, k, 0);
        twin->model->incarnation[db][name] = 0;
        break;
    default:
        put(twin, k, name, 1 + test_random_below(sequence, UINT32_MAX),
            1000 * test_random_below(sequence, 5));
    }
}

static void
check_counts(const struct twin *twin)
{
    for (uint32_t db = 0; db < DATABASES; db++) {
        uint64_t keys = 0;
        uint64_t expires = 0;

        for (unsigned i = 0; i < NAMES; i++) {
            keys += twin->model->incarnation[db][i] != 0;
            expires += twin->model->incarnation[db][i] != 0 &&
                       twin->model->at_ms[db][i] > 0;
        }
        assert_int_equal(keys, test_count(twin->ks, db));
        assert_int_equal(expires, test_expires(twin->ks, db));
    }
}

static bool
count_one(void *ctx, const struct entry *entry, uint64_t expires_at_ms)
{
    uint64_t *count = ctx;

    (void)entry;
    (void)expires_at_ms;
    (*count)++;
    return true;
}

static uint64_t
count_by_scan(struct keyspace *ks, uint32_t db)
{
    uint64_t count = 0;
    uint64_t cursor = 0;

    do {
        cursor =
            keyspace_scan(ks, 0, db, cursor, 10, 100, 0, count_one, &count);
    } while (cursor != 0);
    return count;
}

/* Each key says by itself in which database it is. */
static bool
is_in_model(void *ctx, uint32_t db, const struct entry *entry,
            uint64_t expires_at_ms)
{
    const struct twin *twin = ctx;
    uint64_t number = number_of(entry);

    assert_int_equal(db, keyspace_key_of(twin->ks, entry, 0).db);
    assert_int_equal(twin->model->incarnation[db][number], entry->incarnation);
    assert_int_equal(twin->model->at_ms[db][number], expires_at_ms);
    return true;
}

static void
check(struct twin *twin)
{
    assert_true(keyspace_each(twin->ks, is_in_model, twin));
    check_counts(twin);
    for (uint32_t db = 0; db < DATABASES; db++) {
        uint64_t count = 0;

        assert_int_equal(test_count(twin->ks, db), count_by_scan(twin->ks, db));
        assert_int_equal(
            test_count(twin->ks, db) > 0,
            keyspace_random(twin->ks, 0, db, 0, count_one, &count));
        for (unsigned i = 0; i < NAMES; i++) {
            uint64_t incarnation = twin->model->incarnation[db][i];
            struct test_key key;
            const struct key *k = test_key_set(&key, db, i);
            const struct entry *entry = keyspace_find(twin->ks, k, 0);

            assert_int_equal(incarnation != 0, entry != NULL);
            if (entry != NULL) {
                assert_int_equal(incarnation, entry->incarnation);
                assert_int_equal(twin->model->at_ms[db][i],
                                 keyspace_expiry(twin->ks, k, entry));
            }
        }
    }
}

static void
exchange(struct twin *a, struct twin *b)
{
    struct model *model = a->model;

    keyspace_exchange(a->ks, b->ks);
    a->model = b->model;
    b->model = model;
}

/* What is over by then goes from both. */
static void
reclaim(struct twin *twin, uint64_t now_ms)
{
    test_reclaim_all(twin->ks, now_ms);
    for (uint32_t db = 0; db < DATABASES; db++) {
        for (unsigned i = 0; i < NAMES; i++) {
            uint64_t at_ms = twin->model->at_ms[db][i];

            if (at_ms > 0 && at_ms <= now_ms) {
                twin->model->incarnation[db][i] = 0;
            }
        }
    }
    assert_int_equal(0, atomic_load(&twin->ks->dead));
    check(twin);
}

TEST(an_exchange_takes_everything_along)
{
    uint64_t sequence = random_of(1);

    for (unsigned round = 0; round < 20 * test_rounds(); round++) {
        unsigned threads = round % 2 == 0 ? 1 : 2;
        struct twin a = new_twin(threads);
        struct twin b = new_twin(threads);

        for (unsigned i = 0; i < CHANGES; i++) {
            change_at_random(&a, &sequence);
            if (round % 3 > 0) { /* else it is empty */
                change_at_random(&b, &sequence);
            }
        }
        (void)keyspace_reclaim(a.ks, 0, 0, 0); /* cursors somewhere */
        gate_raise(keyspace_gate(a.ks), 0);
        exchange(&a, &b);
        gate_lower(keyspace_gate(a.ks), 0);
        check(&a);
        check(&b);
        for (unsigned i = 0; i < CHANGES; i++) {
            change_at_random(&a, &sequence);
            change_at_random(&b, &sequence);
        }
        check(&a);
        reclaim(&b, NOW_MS);
        exchange(&b, &a);
        reclaim(&a, LATER_MS);
        reclaim(&b, LATER_MS);
        free_twin(&a);
        free_twin(&b);
        assert_int_equal(0, metric_sum(METRIC_BF_OBJECTS));
        assert_int_equal(0, metric_sum(METRIC_BF_MEMORY));
    }
}

/* ---- who watches --------------------------------------------------------- */

enum { WATCHED = 2 * NAMES }; /* half of the names are nowhere */

static void
watch_all(const struct keyspace *ks, struct key_version *versions)
{
    for (unsigned i = 0; i < WATCHED; i++) {
        struct test_key key;

        versions[i] =
            keyspace_version(ks, test_key_set(&key, i % 3, i), NOW_MS);
    }
}

static unsigned
count_changed(const struct keyspace *ks, const struct key_version *versions)
{
    unsigned changed = 0;

    for (unsigned i = 0; i < WATCHED; i++) {
        struct test_key key;

        changed += keyspace_changed(ks, test_key_set(&key, i % 3, i),
                                    versions[i], NOW_MS);
    }
    return changed;
}

/* Present, missing and expired ones, whatever the other one has; and the same
 * data once more, after it came back. */
TEST(every_watched_key_has_changed_the_missing_ones_too)
{
    uint64_t sequence = random_of(2);
    struct twin a = new_twin(1);
    struct twin b = new_twin(1);
    struct key_version first[WATCHED], second[WATCHED];

    for (unsigned i = 0; i < CHANGES; i++) {
        change_at_random(&a, &sequence);
    }
    watch_all(a.ks, first);
    assert_int_equal(0, count_changed(a.ks, first));
    exchange(&a, &b);
    assert_int_equal(WATCHED, count_changed(a.ks, first));
    for (unsigned round = 0; round < 4; round++) {
        watch_all(a.ks, second);
        assert_int_equal(0, count_changed(a.ks, second));
        exchange(&a, &b);
        assert_int_equal(WATCHED, count_changed(a.ks, first));
        assert_int_equal(WATCHED, count_changed(a.ks, second));
        for (unsigned i = 0; i < CHANGES; i++) {
            change_at_random(&b, &sequence);
        }
    }
    free_twin(&a);
    free_twin(&b);
}

/* Entries bring their versions along; a later write must not give one that
 * somebody has seen. */
TEST(changes_after_an_exchange_are_seen_one_by_one)
{
    struct twin a = new_twin(1);
    struct twin b = new_twin(1);
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, 7);
    struct key_version seen;

    put(&b, k, 7, 1, 0);
    for (unsigned i = 0; i < 50; i++) {
        assert_non_null(keyspace_open(b.ks, k, 0, NULL));
    }
    exchange(&a, &b);
    for (unsigned i = 0; i < 100; i++) {
        seen = keyspace_version(a.ks, k, 0);
        assert_true(seen.exists);
        assert_false(keyspace_changed(a.ks, k, seen, 0));
        assert_non_null(keyspace_open(a.ks, k, 0, NULL));
        assert_true(keyspace_changed(a.ks, k, seen, 0));
    }
    seen = keyspace_version(a.ks, k, 0);
    assert_true(keyspace_delete(a.ks, k, 0));
    assert_true(keyspace_changed(a.ks, k, seen, 0));
    put(&b, k, 7, 1, 0);
    seen = keyspace_version(a.ks, k, 0);
    assert_false(seen.exists);
    put(&a, k, 7, 1, 0);
    assert_true(keyspace_delete(a.ks, k, 0));
    assert_true(keyspace_changed(a.ks, k, seen, 0));
    free_twin(&a);
    free_twin(&b);
}

/* ---- last uses and positions --------------------------------------------- */

TEST(last_uses_go_by_the_clock_that_they_were_noted_by)
{
    struct twin a = new_twin(1);
    struct twin b = new_twin(1);
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, 7);
    uint64_t now_ms = clock_wall_ms();
    const struct access_policy policy = { .counts = true };

    put(&b, k, 7, 1, 0);
    access_set_idle(keyspace_access(b.ks), keyspace_find(b.ks, k, 0), 500);
    access_set_policy(keyspace_access(a.ks), &policy);
    access_tick(keyspace_access(a.ks),
                now_ms + 90000000); /* a day, and back again */
    access_tick(keyspace_access(a.ks), now_ms);
    access_tick(keyspace_access(b.ks), now_ms);
    exchange(&a, &b);
    access_tick(keyspace_access(a.ks), now_ms);
    assert_in_range(
        access_idle_s(keyspace_access(a.ks), keyspace_find(a.ks, k, 0)), 500,
        501);
    access_tick(keyspace_access(a.ks), now_ms + 20000);
    assert_in_range(
        access_idle_s(keyspace_access(a.ks), keyspace_find(a.ks, k, 0)), 520,
        521);
    assert_true(access_counts(keyspace_access(a.ks))); /* settings stay */
    assert_false(access_counts(keyspace_access(b.ks)));
    access_note(keyspace_access(a.ks), keyspace_find(a.ks, k, 0));
    assert_int_equal(
        0, access_idle_s(keyspace_access(a.ks), keyspace_find(a.ks, k, 0)));
    free_twin(&a);
    free_twin(&b);
}

TEST(positions_stay)
{
    struct twin a = new_twin(1);
    struct twin b = new_twin(1);

    keyspace_set_all_positions(a.ks, 5);
    keyspace_set_all_positions(b.ks, 9);
    exchange(&a, &b);
    assert_int_equal(5, keyspace_position(a.ks, 1000));
    assert_int_equal(9, keyspace_position(b.ks, 1000));
    free_twin(&a);
    free_twin(&b);
}

/* ---- getting rid of the old data ----------------------------------------- */

TEST(a_discarded_keyspace_is_freed_in_the_background)
{
    uint64_t sequence = random_of(3);
    struct twin a = new_twin(2);
    struct test_key key;
    uint64_t used = mem_used();
    int64_t freed = metric_sum(METRIC_LAZYFREED);
    uint64_t entries;
    int64_t objects;
    struct twin b = new_twin(2);

    for (unsigned i = 0; i < CHANGES; i++) {
        change_at_random(&b, &sequence);
    }
    (void)test_put_sized(b.ks, test_key_set(&key, 0, NAMES), LARGE_CAPACITY);
    entries = keyspace_entries(b.ks);
    objects = metric_sum(METRIC_BF_OBJECTS);
    put(&a, test_key_set(&key, 0, 1), 1, 1, 0);
    keyspace_discard(a.ks, b.ks);
    mem_free(b.model);
    assert_non_null(keyspace_find(a.ks, &key.key, 0));
    keyspace_wait_freed(a.ks);
    assert_int_equal(freed + (int64_t)entries, metric_sum(METRIC_LAZYFREED));
    assert_int_equal(0, metric_sum(METRIC_LAZYFREE_PENDING));
    assert_int_equal(0, metric_sum(METRIC_LAZYFREE_PENDING_BYTES));
    assert_int_equal(objects - (int64_t)entries + 1,
                     metric_sum(METRIC_BF_OBJECTS));
    (void)keyspace_delete(a.ks, &key.key, 0);
    a.model->incarnation[0][1] = 0;
    keyspace_discard(a.ks, test_keyspace(2)); /* empty */
    keyspace_discard(a.ks, NULL);
    assert_in_range(mem_used(), used - 4096, used + 4096); /* buckets */
    free_twin(&a);
}

/* ---- beside loops that go on --------------------------------------------- */

/* Loops look keys up and make new ones, each inside its section; there are two
 * worlds, told apart by their incarnations, and nobody must see both in one
 * section. */
struct contest {
    struct keyspace *ks;
    atomic_bool stop;
    atomic_uint mixed, seen;
};

struct loop {
    struct contest *contest;
    unsigned thread;
    pthread_t id;
};

static uint64_t
look_up(const struct loop *loop, uint64_t number)
{
    struct keyspace *ks = loop->contest->ks;
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, number);
    unsigned stripe = keyspace_stripe_of(k->hash);
    const struct entry *entry;
    uint64_t world;

    keyspace_lock(ks, loop->thread, stripe, true);
    entry = keyspace_open(ks, k, 0, NULL);
    world = entry != NULL ? entry->incarnation : 0;
    keyspace_unlock(ks, loop->thread, stripe);
    return world;
}

static void *
loop_on(void *arg)
{
    struct loop *loop = arg;
    struct contest *contest = loop->contest;
    struct gate *gate = keyspace_gate(contest->ks);
    uint64_t keys;
    uint64_t expires;

    while (!atomic_load(&contest->stop)) {
        uint64_t world;

        gate_enter(gate, loop->thread);
        world = look_up(loop, 0);
        for (uint64_t i = 1; i < 20; i++) {
            if (look_up(loop, i) != world) {
                atomic_fetch_add(&contest->mixed, 1);
            }
        }
        atomic_fetch_add(&contest->seen, 1);
        gate_leave(gate, loop->thread);
        keyspace_count(contest->ks, 0, &keys, &expires); /* without locks */
    }
    metric_thread_exit();
    return NULL;
}

static void
fill_world(struct keyspace *ks, uint64_t world)
{
    struct test_key key;

    for (uint64_t i = 0; i < 20 + world; i++) {
        struct entry *entry = NULL;

        assert_int_equal(OK, keyspace_insert(ks, test_key_set(&key, 0, i),
                                             test_bloom(100), world, &entry));
    }
}

TEST(loops_see_the_one_world_or_the_other)
{
    struct contest contest = { .ks = test_keyspace(THREADS) };
    struct gate *gate = keyspace_gate(contest.ks);
    struct loop loops[THREADS];
    unsigned seen = 0;

    fill_world(contest.ks, 1);
    for (unsigned i = 1; i < THREADS; i++) {
        loops[i] = (struct loop){ .contest = &contest, .thread = i };
        CHECK(pthread_create(&loops[i].id, NULL, loop_on, &loops[i]) == 0);
    }
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct keyspace *fresh = test_keyspace(THREADS);

        fill_world(fresh, 1 + (round + 1) % 2);
        while (atomic_load(&contest.seen) == seen) {
        }
        gate_raise(gate, 0);
        seen = atomic_load(&contest.seen);
        keyspace_exchange(contest.ks, fresh);
        gate_lower(gate, 0);
        assert_int_equal(20 + 1 + (round + 1) % 2, test_count(contest.ks, 0));
        keyspace_discard(contest.ks, fresh);
    }
    atomic_store(&contest.stop, true);
    for (unsigned i = 1; i < THREADS; i++) {
        CHECK(pthread_join(loops[i].id, NULL) == 0);
    }
    assert_int_equal(0, atomic_load(&contest.mixed));
    keyspace_free(contest.ks);
    assert_int_equal(0, metric_sum(METRIC_BF_OBJECTS));
}
