/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every block of a keyspace moves, in whatever steps, and nobody notices.
 */
#include "keyspace/defrag.h"

#include "base/mem.h"
#include "keyspace/databases.h"
#include "keyspace/evict.h"
#include "keyspace/gate.h"
#include "support.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

enum { KEYS = 3000 };

/* Copies to new memory, which mem_free() counts as it did the old. */
static void *
move_always(void *block, size_t align)
{
    size_t bytes = malloc_usable_size(block);
    void *moved = mem_try_lines((bytes + 63) / 64 * 64);

    assert_non_null(moved);
    assert_int_equal((uintptr_t)block % align, 0);
    memcpy(moved, block, bytes);
    memset(block, 0xA5, bytes);
    mem_free(block);
    return moved;
}

static void *
move_some(void *block, size_t align)
{
    return (uintptr_t)block / 64 % 2 == 0 ? move_always(block, align) : NULL;
}

static void
fill(struct keyspace *ks)
{
    struct test_key key;

    for (uint32_t db = 0; db < 2; db++) {
        for (unsigned i = 0; i < KEYS; i++) {
            (void)test_put_sized(ks, test_key_set(&key, db, i), 1 + i % 50);
        }
    }
    for (unsigned i = 0; i < KEYS; i += 3) {
        const struct key *k = test_key_set(&key, 0, i);

        assert_int_equal(
            keyspace_set_expiry(ks, k, keyspace_find(ks, k, 0), 1000 + i), OK);
    }
}

static void
check(struct keyspace *ks, unsigned from)
{
    struct test_key key;

    for (uint32_t db = 0; db < 2; db++) {
        for (unsigned i = from; i < KEYS; i++) {
            const struct key *k = test_key_set(&key, db, i);
            struct entry *entry = keyspace_find(ks, k, 0);

            assert_non_null(entry);
            assert_int_equal(entry->incarnation, k->hash);
            assert_int_equal(bloom_capacity(&entry->bloom), 1 + i % 50);
            assert_int_equal(keyspace_expiry(ks, k, entry),
                             db == 0 && i % 3 == 0 ? 1000 + i : 0);
        }
    }
    assert_int_equal(test_count(ks, 0), KEYS - from);
}

static struct defrag_sums
turn(struct keyspace *ks, relocate_fn move, uint64_t budget_us)
{
    struct defrag_sums sums = { 0 };

    while (!keyspace_defrag(ks, 0, move, budget_us, &sums)) {
    }
    return sums;
}

TEST(a_turn_moves_every_block)
{
    struct keyspace *ks = test_keyspace(1);

    fill(ks);
    for (int i = 0; i < 3; i++) {
        struct defrag_sums sums = turn(ks, move_always, i == 0 ? 0 : 1000);

        assert_int_equal(sums.keys.moved, 2 * KEYS);
        assert_int_equal(sums.keys.stayed, 0);
        assert_int_equal(sums.filters.moved, 2 * KEYS); /* their lines */
        assert_true(sums.all.moved > 4 * KEYS);         /* and some tables */
        assert_int_equal(sums.all.stayed, 0);
        check(ks, 0);
    }
    assert_true(turn(ks, move_some, 1000).all.stayed > 0);
    check(ks, 0);
    test_reclaim_all(ks, 100000);
    assert_int_equal(test_expires(ks, 0), 0);
    keyspace_free(ks);
}

TEST(an_empty_keyspace_has_nothing_to_move)
{
    struct keyspace *ks = test_keyspace(1);
    struct defrag_sums sums = { 0 };

    assert_true(keyspace_defrag(ks, 0, move_always, 0, &sums));
    assert_int_equal(sums.all.moved + sums.all.stayed, 0);
    keyspace_free(ks);
}

/* A turn goes on while keys come and go between its steps. */
TEST(steps_meet_every_change)
{
    struct keyspace *ks = test_keyspace(1);
    struct defrag_sums sums = { 0 };
    uint64_t random = test_seed();
    struct test_key key;
    bool there[KEYS] = { false };

    for (unsigned step = 0; step < 20000; step++) {
        unsigned number = (unsigned)test_random_below(&random, KEYS);
        const struct key *k = test_key_set(&key, 0, number);

        if (there[number]) {
            assert_true(keyspace_delete(ks, k, 0));
        } else {
            (void)test_put(ks, k);
        }
        there[number] = !there[number];
        if (step % 4 == 0) {
            (void)keyspace_defrag(ks, 0, move_always, 0, &sums);
        }
    }
    for (unsigned i = 0; i < KEYS; i++) {
        assert_int_equal(
            there[i], keyspace_find(ks, test_key_set(&key, 0, i), 0) != NULL);
    }
    keyspace_free(ks);
}

TEST(a_candidate_that_has_moved_is_not_found)
{
    const struct evict_plan plan = { EVICT_ANY, false, 1, 1 };
    struct keyspace *ks = test_keyspace(1);
    struct evict_candidate candidate;
    struct test_key key;
    struct key found;
    bool expired;

    (void)test_put(ks, test_key_set(&key, 0, 1));
    assert_true(evict_choose(ks, 0, &plan, &candidate));
    (void)turn(ks, move_always, 1000);
    assert_null(evict_find(ks, &plan, &candidate, &found, &expired));
    assert_true(evict_choose(ks, 0, &plan, &candidate));
    assert_non_null(evict_find(ks, &plan, &candidate, &found, &expired));
    keyspace_free(ks);
}

/* ---- threads ------------------------------------------------------------- */

static atomic_bool over;

static void *
use(void *arg)
{
    struct keyspace *ks = arg;
    uint64_t random = test_seed();
    struct test_key key;

    while (!atomic_load(&over)) {
        const struct key *k =
            test_key_set(&key, 1, test_random_below(&random, KEYS));
        unsigned stripe = keyspace_stripe_of(k->hash);

        gate_enter(keyspace_gate(ks), 1);
        keyspace_lock(ks, 1, stripe, test_random_below(&random, 2) == 0);
        if (keyspace_find(ks, k, 0) == NULL) {
            abort();
        }
        keyspace_unlock(ks, 1, stripe);
        gate_leave(keyspace_gate(ks), 1);
    }
    metric_thread_exit();
    return NULL;
}

TEST(another_thread_uses_what_moves)
{
    struct keyspace *ks = test_keyspace(2);
    pthread_t thread;

    fill(ks);
    atomic_store(&over, false);
    assert_int_equal(pthread_create(&thread, NULL, use, ks), 0);
    for (int i = 0; i < 5; i++) {
        struct defrag_sums sums = { 0 };
        bool ended = false;

        while (!ended) {
            gate_enter(keyspace_gate(ks), 0);
            ended = keyspace_defrag(ks, 0, move_always, 50, &sums);
            gate_leave(keyspace_gate(ks), 0);
        }
        assert_int_equal(sums.keys.moved, 2 * KEYS);
    }
    atomic_store(&over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    check(ks, 0);
    keyspace_free(ks);
}
