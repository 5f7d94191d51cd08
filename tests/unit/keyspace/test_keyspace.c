/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keys, databases, versions and counts: single cases, and a long random run
 * against a plain array.
 */
#include "keyspace/databases.h"
#include "keyspace/gate.h"
#include "support.h"

#include <pthread.h>

TEST(a_key_is_found_in_its_database_only)
{
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;
    struct test_key other;
    const struct key *k = test_key_set(&key, 0, 1);
    struct entry *entry;

    assert_null(keyspace_find(ks, k, 0));
    entry = test_put(ks, k);
    assert_ptr_equal(keyspace_find(ks, k, 0), entry);
    assert_null(keyspace_find(ks, test_key_set(&other, 1, 1), 0));
    assert_null(keyspace_find(ks, test_key_set(&other, 0, 2), 0));
    assert_false(keyspace_delete(ks, test_key_set(&other, 1, 1), 0));
    assert_int_equal(test_count(ks, 0), 1);
    assert_int_equal(test_count(ks, 1), 0);
    assert_true(keyspace_delete(ks, k, 0));
    assert_false(keyspace_delete(ks, k, 0));
    assert_null(keyspace_find(ks, k, 0));
    keyspace_free(ks);
}

TEST(names_may_be_empty_or_hold_any_byte)
{
    static const struct slice names[] = {
        { "", 0 }, { "\0", 1 }, { "\0\0", 2 }, { "a\0b", 3 }, { "a\0c", 3 }
    };
    struct keyspace *ks = test_keyspace(1);
    struct entry *entries[5];

    for (unsigned i = 0; i < 5; i++) {
        struct key key = key_named(names[i], 0);

        assert_null(keyspace_open(ks, &key, 0, NULL));
        entries[i] = test_put(ks, &key);
    }
    for (unsigned i = 0; i < 5; i++) {
        struct key key = key_named(names[i], 0);

        assert_ptr_equal(keyspace_find(ks, &key, 0), entries[i]);
    }
    keyspace_free(ks);
}

TEST(a_key_is_created_whole_or_not_at_all)
{
    const struct bloom_env env = test_env();
    const struct bloom_params params = { .struct_size = sizeof(params),
                                         .capacity = 100,
                                         .error_rate = 0.01,
                                         .tightening = 0.5,
                                         .expansion = 2 };
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, 1);
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct keyspace *ks = test_keyspace(1);
        struct entry *entry = NULL;
        enum bloom_status status;

        mem_fail_at(nth);
        status = keyspace_create(ks, k, &params, &env, 7, &entry);
        fired = mem_fail_clear();
        assert_int_equal(status, fired ? BLOOM_NOMEM : BLOOM_OK);
        assert_ptr_equal(keyspace_find(ks, k, 0), entry);
        assert_int_equal(entry == NULL, fired);
        assert_int_equal(test_count(ks, 0), fired ? 0 : 1);
        assert_int_equal(metric_sum(METRIC_BF_OBJECTS), fired ? 0 : 1);
        if (!fired) {
            assert_int_equal(entry->incarnation, 7);
            assert_int_equal(bloom_capacity(&entry->bloom), 100);
        }
        keyspace_free(ks);
    }
}

TEST(insert_survives_every_allocation_failure)
{
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, 1);
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct keyspace *ks = test_keyspace(1);
        struct bloom *bloom = test_bloom(100);
        struct entry *entry = NULL;
        enum err err;

        mem_fail_at(nth);
        err = keyspace_insert(ks, k, bloom, 0, &entry);
        fired = mem_fail_clear();
        assert_int_equal(err, fired ? ERR_NOMEM : OK);
        assert_int_equal(entry == NULL, fired);
        assert_int_equal(keyspace_find(ks, k, 0) == NULL, fired);
        assert_int_equal(test_count(ks, 0), fired ? 0 : 1);
        assert_int_equal(metric_sum(METRIC_BF_OBJECTS), fired ? 0 : 1);
        assert_int_equal(keyspace_version(ks, k, 0).exists, !fired);
        if (fired) {
            test_bloom_free(bloom);
        }
        keyspace_free(ks);
        assert_true(nth < 10);
    }
}

TEST(replace_changes_filter_incarnation_and_time)
{
    static const struct {
        uint64_t capacity, before_ms, after_ms;
    } cases[] = { { 100, 0, 0 },
                  { 100, 0, 7 },
                  { 100, 5, 0 },
                  { 100, 5, 7 },
                  { 1000000, 5, 7 } /* freed in the background */ };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct keyspace *ks = test_keyspace(1);
        struct test_key key;
        const struct key *k = test_key_set(&key, 3, 1);
        struct entry *entry = test_put_sized(ks, k, cases[i].capacity);
        struct bloom *bloom = test_bloom(200);
        const void *lines = test_lines(bloom);
        struct key_version before;

        if (cases[i].before_ms > 0) {
            assert_int_equal(
                keyspace_set_expiry(ks, k, entry, cases[i].before_ms), OK);
        }
        before = keyspace_version(ks, k, 0);
        assert_int_equal(
            keyspace_replace(ks, k, entry, bloom, 9, cases[i].after_ms), OK);
        assert_ptr_equal(keyspace_find(ks, k, 0), entry);
        assert_ptr_equal(test_lines(&entry->bloom), lines);
        assert_int_equal(entry->incarnation, 9);
        assert_int_equal(keyspace_expiry(ks, k, entry), cases[i].after_ms);
        assert_int_equal(test_expires(ks, 3), cases[i].after_ms > 0);
        assert_int_equal(test_count(ks, 3), 1);
        assert_true(keyspace_changed(ks, k, before, 0));
        keyspace_wait_freed(ks);
        assert_int_equal(metric_sum(METRIC_BF_OBJECTS), 1);
        assert_int_equal(metric_sum(METRIC_BF_CAPACITY), 200);
        keyspace_free(ks);
        assert_int_equal(metric_sum(METRIC_BF_OBJECTS), 0);
    }
}

TEST(replace_survives_every_allocation_failure)
{
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, 1);
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct keyspace *ks = test_keyspace(1);
        struct entry *entry = test_put(ks, k);
        const void *old = test_lines(&entry->bloom);
        struct bloom *bloom = test_bloom(200);
        const void *lines = test_lines(bloom);
        struct key_version before = keyspace_version(ks, k, 0);
        enum err err;

        mem_fail_at(nth);
        err = keyspace_replace(ks, k, entry, bloom, 9, 5);
        fired = mem_fail_clear();
        assert_int_equal(err, fired ? ERR_NOMEM : OK);
        assert_ptr_equal(test_lines(&entry->bloom), fired ? old : lines);
        assert_int_equal(entry->incarnation, fired ? k->hash : 9);
        assert_int_equal(keyspace_expiry(ks, k, entry), fired ? 0 : 5);
        assert_false(keyspace_changed(ks, k, before, 0) == fired);
        if (fired) {
            test_bloom_free(bloom);
        }
        keyspace_free(ks);
        assert_true(nth < 10);
    }
}

TEST(an_expiry_that_finds_no_memory_changes_nothing)
{
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, 1);
    struct entry *entry = test_put(ks, k);
    struct key_version before = keyspace_version(ks, k, 0);

    mem_fail_at(1);
    assert_int_equal(keyspace_set_expiry(ks, k, entry, 5), ERR_NOMEM);
    assert_true(mem_fail_clear());
    assert_int_equal(keyspace_expiry(ks, k, entry), 0);
    assert_int_equal(test_expires(ks, 0), 0);
    assert_false(keyspace_changed(ks, k, before, 0));
    assert_int_equal(keyspace_set_expiry(ks, k, entry, 5), OK);
    assert_int_equal(keyspace_expiry(ks, k, entry), 5);
    keyspace_free(ks);
}

TEST(an_expired_key_is_missing_for_reads_and_removed_by_writes)
{
    struct keyspace *ks = test_keyspace(1);
    int64_t expired = metric_sum(METRIC_EXPIRED_KEYS);
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, 1);
    struct entry *entry = test_put(ks, k);

    assert_int_equal(keyspace_set_expiry(ks, k, entry, 100), OK);
    assert_int_equal(test_expires(ks, 0), 1);
    assert_ptr_equal(keyspace_find(ks, k, 99), entry);
    assert_null(keyspace_find(ks, k, 100));
    assert_int_equal(test_count(ks, 0), 1);
    assert_null(keyspace_open(ks, k, 100, NULL));
    assert_int_equal(test_count(ks, 0), 0);
    assert_int_equal(test_expires(ks, 0), 0);
    assert_int_equal(metric_sum(METRIC_EXPIRED_KEYS), expired + 1);
    entry = test_put(ks, k);
    assert_int_equal(keyspace_set_expiry(ks, k, entry, 100), OK);
    assert_false(keyspace_delete(ks, k, 200));
    assert_int_equal(metric_sum(METRIC_EXPIRED_KEYS), expired + 2);
    entry = test_put(ks, k);
    assert_false(keyspace_clear_expiry(ks, k, entry));
    assert_int_equal(keyspace_set_expiry(ks, k, entry, 100), OK);
    assert_int_equal(keyspace_set_expiry(ks, k, entry, 300), OK);
    assert_int_equal(test_expires(ks, 0), 1);
    assert_ptr_equal(keyspace_find(ks, k, 299), entry);
    assert_true(keyspace_clear_expiry(ks, k, entry));
    assert_int_equal(test_expires(ks, 0), 0);
    assert_ptr_equal(keyspace_find(ks, k, UINT64_MAX), entry);
    keyspace_free(ks);
}

/* ---- what WATCH sees ----------------------------------------------------- */

/* Compares with the version that was seen, and sees the new one. */
static void
expect_changed(struct keyspace *ks, const struct key *k,
               struct key_version *seen)
{
    assert_true(keyspace_changed(ks, k, *seen, 0));
    *seen = keyspace_version(ks, k, 0);
}

TEST(a_watched_key_changes_at_every_write_and_at_no_read)
{
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, 1);
    struct entry *entry = test_put(ks, k);
    struct key_version seen = keyspace_version(ks, k, 0);

    assert_true(seen.exists);
    (void)keyspace_find(ks, k, 0);
    assert_false(keyspace_changed(ks, k, seen, 0));
    assert_ptr_equal(keyspace_open(ks, k, 0, NULL), entry);
    expect_changed(ks, k, &seen);
    assert_int_equal(keyspace_set_expiry(ks, k, entry, 100), OK);
    expect_changed(ks, k, &seen);
    assert_true(keyspace_clear_expiry(ks, k, entry));
    expect_changed(ks, k, &seen);
    assert_true(keyspace_delete(ks, k, 0));
    assert_true(keyspace_changed(ks, k, seen, 0));
    (void)test_put(ks, k);
    assert_true(keyspace_changed(ks, k, seen, 0));
    keyspace_free(ks);
}

/* From the look on until the next version, however often that is compared. */
TEST(an_entry_says_whether_its_version_is_watched)
{
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, 1);
    struct entry *entry = test_put(ks, k);
    struct key_version seen;

    assert_false(keyspace_is_watched(entry));
    seen = keyspace_version(ks, k, 0);
    assert_true(keyspace_is_watched(entry));
    assert_false(keyspace_changed(ks, k, seen, 0));
    assert_true(keyspace_version(ks, k, 0).version == seen.version);
    assert_ptr_equal(keyspace_open(ks, k, 0, NULL), entry);
    assert_false(keyspace_is_watched(entry));
    assert_true(keyspace_changed(ks, k, seen, 0));
    assert_false(keyspace_is_watched(entry));
    keyspace_free(ks);
}

TEST(a_watched_missing_key_that_came_and_went_has_changed)
{
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;
    struct test_key other;
    const struct key *k = test_key_set(&key, 0, 1);
    struct key_version seen = keyspace_version(ks, k, 0);

    (void)test_put(ks, test_key_set(&other, 1, 1)); /* in the same stripe */
    assert_false(seen.exists);
    assert_false(keyspace_changed(ks, k, seen, 0));
    (void)test_put(ks, k);
    assert_true(keyspace_delete(ks, k, 0));
    expect_changed(ks, k, &seen);
    (void)test_put(ks, k);
    keyspace_flush_db(ks, 0);
    expect_changed(ks, k, &seen);
    (void)test_put(ks, k);
    keyspace_swap_db(ks, 0, 9);
    expect_changed(ks, k, &seen);
    (void)test_put(ks, k);
    keyspace_flush_all(ks);
    assert_true(keyspace_changed(ks, k, seen, 0));
    keyspace_free(ks);
}

TEST(a_watched_key_that_expires_has_changed_and_its_removal_changes_no_more)
{
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;
    const struct key *k = test_key_set(&key, 0, 1);
    struct entry *entry = test_put(ks, k);
    struct key_version seen;

    assert_int_equal(keyspace_set_expiry(ks, k, entry, 100), OK);
    seen = keyspace_version(ks, k, 99);
    assert_true(keyspace_changed(ks, k, seen, 100));
    seen = keyspace_version(ks, k, 100);
    assert_false(seen.exists);
    test_reclaim_all(ks, 100);
    assert_int_equal(test_count(ks, 0), 0);
    assert_false(keyspace_changed(ks, k, seen, 100));
    keyspace_free(ks);
}

/* ---- whole databases ----------------------------------------------------- */

TEST(a_watched_missing_key_does_not_mind_what_else_its_stripe_loses)
{
    struct keyspace *ks = test_keyspace(1);
    struct test_key key;
    struct test_key other;
    const struct key *k = test_key_set(&key, 0, 1);
    struct key_version seen;

    for (uint32_t i = 0; i < 20; i++) {
        (void)test_put(ks, test_key_set(&other, 1, i));
    }
    seen = keyspace_version(ks, k, 0);
    for (uint32_t i = 0; i < 20; i++) {
        assert_true(keyspace_delete(ks, test_key_set(&other, 1, i), 0));
        if (keyspace_stripe_of(other.key.hash) == keyspace_stripe_of(k->hash)) {
            assert_false(keyspace_changed(ks, k, seen, 0));
        }
    }
    assert_false(keyspace_changed(ks, k, seen, 0));
    (void)test_put(ks, k);
    assert_true(keyspace_delete(ks, k, 0));
    assert_true(keyspace_changed(ks, k, seen, 0));
    keyspace_free(ks);
}

/* ---- a long random run --------------------------------------------------- */

enum { DBS = 3, NAMES = 300 };

struct model_key {
    bool exists;
    uint64_t expires_ms; /* 0: never */
    uint64_t writes;     /* a new number at each write */
    uint64_t losses;     /* how often it went, in whatever way */
};

struct watch {
    struct key_version seen;
    struct model_key then;
    bool on;
};

struct model {
    struct keyspace *ks;
    uint64_t random;
    struct model_key keys[DBS][NAMES];
    struct watch watches[DBS][NAMES];
    uint64_t now_ms, writes;
};

static void
model_lose(struct model_key *key)
{
    if (key->exists) {
        key->exists = false;
        key->losses++;
    }
}

static void
model_advance(struct model *model)
{
    model->now_ms += test_random_below(&model->random, 20);
    for (unsigned db = 0; db < DBS; db++) {
        for (unsigned n = 0; n < NAMES; n++) {
            struct model_key *key = &model->keys[db][n];

            if (key->expires_ms != 0 && key->expires_ms <= model->now_ms) {
                model_lose(key);
            }
        }
    }
}

static void
write_key(struct model *model, const struct key *k, struct model_key *key)
{
    struct entry *entry = keyspace_open(model->ks, k, model->now_ms, NULL);

    assert_int_equal(entry != NULL, key->exists);
    if (entry == NULL) {
        (void)test_put(model->ks, k);
        key->exists = true;
        key->expires_ms = 0;
    }
    key->writes = ++model->writes;
}

static void
expire_key(struct model *model, const struct key *k, struct model_key *key)
{
    struct entry *entry = keyspace_open(model->ks, k, model->now_ms, NULL);
    bool clear = test_random_below(&model->random, 4) == 0;

    assert_int_equal(entry != NULL, key->exists);
    if (entry == NULL) {
        return;
    }
    key->writes = ++model->writes;
    if (clear) {
        assert_int_equal(keyspace_clear_expiry(model->ks, k, entry),
                         key->expires_ms != 0);
        key->expires_ms = 0;
    } else {
        key->expires_ms =
            model->now_ms + 1 + test_random_below(&model->random, 2000);
        assert_int_equal(
            keyspace_set_expiry(model->ks, k, entry, key->expires_ms), OK);
    }
}

static void
rename_key(struct model *model, const struct key *k, struct model_key *key)
{
    uint32_t db = (uint32_t)test_random_below(&model->random, DBS);
    unsigned n = (unsigned)test_random_below(&model->random, NAMES);
    struct model_key *target = &model->keys[db][n];
    struct entry *entry = keyspace_open(model->ks, k, model->now_ms, NULL);
    struct test_key name;

    if (entry == NULL || target == key) {
        key->writes = ++model->writes; /* it was opened */
        return;
    }
    assert_int_equal(
        keyspace_rename(model->ks, k, entry, test_key_set(&name, db, n)), OK);
    *target = (struct model_key){ .exists = true,
                                  .expires_ms = key->expires_ms,
                                  .writes = ++model->writes,
                                  .losses = target->losses + target->exists };
    model_lose(key);
}

static void
check_watch(struct model *model, const struct key *k,
            const struct model_key *key, struct watch *watch)
{
    struct key_version seen = keyspace_version(model->ks, k, model->now_ms);
    bool changed = watch->then.exists != key->exists ||
                   (key->exists ? watch->then.writes != key->writes
                                : watch->then.losses != key->losses);

    assert_int_equal(seen.exists, key->exists);
    if (watch->on && changed) {
        assert_true(keyspace_changed(model->ks, k, watch->seen, model->now_ms));
    }
    if (watch->on && !changed && key->exists) {
        assert_false(
            keyspace_changed(model->ks, k, watch->seen, model->now_ms));
    }
    *watch = (struct watch){ seen, *key, true };
}

static void
check_key(struct model *model, const struct key *k, const struct model_key *key)
{
    const struct entry *entry = keyspace_find(model->ks, k, model->now_ms);

    assert_int_equal(entry != NULL, key->exists);
    if (entry != NULL) {
        assert_int_equal(keyspace_expiry(model->ks, k, entry), key->expires_ms);
    }
}

static void
change_world(struct model *model)
{
    uint32_t a = (uint32_t)test_random_below(&model->random, DBS);
    uint32_t b = (uint32_t)test_random_below(&model->random, DBS);
    uint64_t choice = test_random_below(&model->random, 8);

    if (choice == 0) {
        keyspace_flush_all(model->ks);
    } else if (choice < 4) {
        keyspace_flush_db(model->ks, a);
    } else {
        keyspace_swap_db(model->ks, a, b);
    }
    for (unsigned n = 0; n < NAMES; n++) {
        struct model_key *first = &model->keys[a][n];
        struct model_key *second = &model->keys[b][n];

        if (choice == 0) {
            for (unsigned db = 0; db < DBS; db++) {
                model_lose(&model->keys[db][n]);
            }
        } else if (choice < 4) {
            model_lose(first);
        } else if (a != b) {
            struct model_key swapped = *first;
            uint64_t losses[2] = { first->losses + first->exists,
                                   second->losses + second->exists };

            *first = *second;
            *second = swapped;
            first->losses = losses[0];
            second->losses = losses[1];
            first->writes = ++model->writes; /* another key, to its watchers */
            second->writes = ++model->writes;
        }
    }
}

static void
check_counts(struct model *model)
{
    int64_t objects = 0;

    test_reclaim_all(model->ks, model->now_ms);
    keyspace_wait_freed(model->ks);
    for (uint32_t db = 0; db < DBS; db++) {
        uint64_t keys = 0;
        uint64_t expires = 0;

        for (unsigned n = 0; n < NAMES; n++) {
            const struct model_key *key = &model->keys[db][n];

            keys += key->exists;
            expires += key->exists && key->expires_ms != 0;
        }
        assert_int_equal(test_count(model->ks, db), keys);
        assert_int_equal(test_expires(model->ks, db), expires);
        objects += (int64_t)keys;
    }
    assert_int_equal(metric_sum(METRIC_BF_OBJECTS), objects);
    assert_int_equal(atomic_load(&model->ks->dead), 0);
}

static void
model_step(struct model *model)
{
    uint32_t db = (uint32_t)test_random_below(&model->random, DBS);
    unsigned n = (unsigned)test_random_below(&model->random, NAMES);
    struct model_key *key = &model->keys[db][n];
    uint64_t choice = test_random_below(&model->random, 100);
    struct test_key name;
    const struct key *k = test_key_set(&name, db, n);

    if (choice < 30) {
        write_key(model, k, key);
    } else if (choice < 45) {
        assert_int_equal(keyspace_delete(model->ks, k, model->now_ms),
                         key->exists);
        model_lose(key);
    } else if (choice < 60) {
        expire_key(model, k, key);
    } else if (choice < 65) {
        rename_key(model, k, key);
    } else if (choice < 72) {
        model_advance(model);
    } else if (choice < 85) {
        check_watch(model, k, key, &model->watches[db][n]);
    } else {
        check_key(model, k, key);
    }
}

TEST(keyspace_agrees_with_an_array_under_random_operations)
{
    static struct model model;

    memset(&model, 0, sizeof(model));
    model.ks = test_keyspace(1);
    model.random = random_of(8);
    for (unsigned i = 0; i < 100000 * test_rounds(); i++) {
        uint64_t rare = test_random_below(&model.random, 5000);

        model_step(&model);
        if (rare < 10) {
            change_world(&model);
        } else if (rare < 13) {
            check_counts(&model);
        } else if (rare < 50) {
            (void)keyspace_reclaim(model.ks, 0, model.now_ms, 0);
        }
    }
    check_counts(&model);
    keyspace_free(model.ks);
}

/* ---- locks --------------------------------------------------------------- */

enum { READERS = 4, WRITES = 200 };

static const uint64_t HOLD_NS = 20000;
static const uint64_t DEADLINE_NS = 8000000000;

struct contest {
    struct keyspace *ks;
    atomic_bool stop;
    atomic_uint readers;
    uint64_t value[2]; /* plain: the lock guards it */
    atomic_uint failures;
};

static void *
read_on(void *arg)
{
    struct contest *contest = arg;
    unsigned thread = atomic_fetch_add(&contest->readers, 1);
    uint64_t end = clock_mono_ns() + DEADLINE_NS;

    while (!atomic_load(&contest->stop) && clock_mono_ns() < end) {
        uint64_t until = clock_mono_ns() + HOLD_NS;

        keyspace_lock(contest->ks, thread, 7, false);
        while (clock_mono_ns() < until) {
            if (contest->value[0] != contest->value[1]) {
                atomic_fetch_add(&contest->failures, 1);
            }
        }
        keyspace_unlock(contest->ks, thread, 7);
    }
    return NULL;
}

TEST(a_writer_gets_its_turn_among_four_readers)
{
    struct contest contest = { .ks = test_keyspace(READERS + 1) };
    uint64_t end = clock_mono_ns() + DEADLINE_NS;
    pthread_t readers[READERS];

    for (int i = 0; i < READERS; i++) {
        CHECK(pthread_create(&readers[i], NULL, read_on, &contest) == 0);
    }
    for (int i = 0; i < WRITES; i++) {
        keyspace_lock(contest.ks, READERS, 7, true);
        contest.value[0]++;
        contest.value[1]++;
        keyspace_unlock(contest.ks, READERS, 7);
    }
    /* Starved, it would only have come through when the readers gave up. */
    assert_true(clock_mono_ns() < end);
    atomic_store(&contest.stop, true);
    for (int i = 0; i < READERS; i++) {
        CHECK(pthread_join(readers[i], NULL) == 0);
    }
    assert_int_equal(atomic_load(&contest.failures), 0);
    assert_int_equal(contest.value[0], WRITES);
    keyspace_free(contest.ks);
}

/* The length of a long name takes more bytes. */
TEST(names_of_any_length_are_kept)
{
    static const size_t lengths[] = { 0, 1, 11, 126, 127, 128, 255, 70000 };
    struct keyspace *ks = test_keyspace(1);
    static char text[70000];
    struct key key = { .name = { text, 0 } };

    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        key.name.len = lengths[i];
        key.hash = hash_name(key.name);
        assert_null(keyspace_find(ks, &key, 0));
        (void)test_put(ks, &key);
    }
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct entry *entry;

        key.name.len = lengths[i];
        key.hash = hash_name(key.name);
        entry = keyspace_find(ks, &key, 0);
        assert_non_null(entry);
        assert_int_equal(entry_name(entry).len, lengths[i]);
        assert_memory_equal(entry_name(entry).data, text, lengths[i]);
        assert_true(keyspace_delete(ks, &key, 0));
    }
    keyspace_free(ks);
}
