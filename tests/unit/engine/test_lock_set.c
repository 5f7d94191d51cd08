/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a set of commands asks for, and that taking it keeps others out: they
 * come in only after it was given back, whichever order their threads run in.
 */
#include "engine/lock_set.h"

#include "base/hash.h"
#include "base/metrics.h"
#include "rig.h"

#include <pthread.h>

static void
add(struct lock_set *set, enum command_id id, const char *a, const char *b)
{
    const struct slice argv[] = { slice_of(command_rows[id].name), slice_of(a),
                                  slice_of(b) };

    lock_set_add(set, &command_rows[id], argv, 3);
}

static unsigned
stripe_of(const char *name)
{
    return keyspace_stripe_of(hash_name(slice_of(name)));
}

static bool
has_stripe(const struct lock_set *set, unsigned stripe)
{
    unsigned cursor = 0;
    unsigned seen;

    while (lock_set_next(set, &cursor, &seen)) {
        if (seen == stripe) {
            return true;
        }
    }
    return false;
}

/* Counts the stripes, which must ascend. */
static unsigned
count_stripes(const struct lock_set *set)
{
    unsigned count = 0;
    unsigned cursor = 0;
    unsigned last = 0;
    unsigned stripe;

    for (; lock_set_next(set, &cursor, &stripe); count++) {
        assert_true(count == 0 || last < stripe);
        last = stripe;
    }
    return count;
}

TEST(a_set_has_the_stripes_of_all_keys_once)
{
    struct lock_set set = { 0 };

    add(&set, CMD_ID_DEL, "alpha", "beta");
    assert_int_equal(2, count_stripes(&set));
    assert_true(has_stripe(&set, stripe_of("alpha")));
    assert_true(has_stripe(&set, stripe_of("beta")));
    add(&set, CMD_ID_BF_ADD, "alpha", "gamma"); /* gamma is an item */
    assert_int_equal(2, count_stripes(&set));
    lock_set_add_key(&set, slice_lit("gamma"));
    assert_true(has_stripe(&set, stripe_of("gamma")));
}

/* From none to all of them, with repeats, in any order. */
TEST(a_set_of_any_size_has_each_stripe_once)
{
    bool in[KEYSPACE_STRIPES] = { false };
    struct lock_set set;
    uint64_t random = 14;
    unsigned count = 0;

    lock_set_init(&set);
    assert_int_equal(0, count_stripes(&set));
    for (unsigned i = 0; i < 20000; i++) {
        unsigned stripe;

        random = random * 6364136223846793005U + 1442695040888963407U;
        stripe = (unsigned)(random >> 40) % (i < 40 ? 8 : KEYSPACE_STRIPES);
        lock_set_add_stripe(&set, stripe);
        count += !in[stripe];
        in[stripe] = true;
        if (i < 200 || i % 1000 == 0) {
            assert_int_equal(count, count_stripes(&set));
            assert_true(has_stripe(&set, stripe));
        }
    }
    assert_int_equal(KEYSPACE_STRIPES, count_stripes(&set));
}

TEST(reads_share_and_one_write_excludes)
{
    struct lock_set set = { 0 };

    add(&set, CMD_ID_BF_EXISTS, "alpha", "item");
    assert_false(set.exclusive || set.world);
    add(&set, CMD_ID_BF_ADD, "beta", "item");
    add(&set, CMD_ID_BF_EXISTS, "alpha", "item");
    assert_true(set.exclusive);
    assert_false(set.world);
}

TEST(only_world_commands_take_the_world)
{
    struct lock_set set = { 0 };

    add(&set, CMD_ID_PING, "alpha", "");
    add(&set, CMD_ID_KEYS, "alpha", "");
    assert_int_equal(0, count_stripes(&set));
    assert_false(set.exclusive || set.world);
    add(&set, CMD_ID_FLUSHALL, "async", "");
    assert_true(set.world);
}

static void
take(const struct lock_set *set, struct worker *worker)
{
    lock_set_enter(set, worker);
    lock_set_lock(set, worker);
}

static void
give_back(const struct lock_set *set, struct worker *worker)
{
    lock_set_unlock(set, worker);
    lock_set_leave(set, worker);
}

TEST(a_set_has_the_highest_position_of_its_stripes)
{
    struct rig *rig = rig_new();
    struct keyspace *ks = rig->service.keyspace;
    struct lock_set set = { 0 };

    assert_int_equal(0, lock_set_position(&set, ks));
    add(&set, CMD_ID_DEL, "alpha", "beta");
    keyspace_set_position(ks, stripe_of("alpha"), 7);
    keyspace_set_position(ks, stripe_of("beta"), 5);
    keyspace_set_position(ks, stripe_of("gamma"), 9);
    assert_int_equal(7, lock_set_position(&set, ks));
    lock_set_write_position(&set, ks, 11);
    assert_int_equal(11, keyspace_position(ks, stripe_of("alpha")));
    assert_int_equal(11, keyspace_position(ks, stripe_of("beta")));
    assert_int_equal(9, keyspace_position(ks, stripe_of("gamma")));
    set.world = true;
    lock_set_write_position(&set, ks, 12);
    assert_int_equal(12, keyspace_position(ks, stripe_of("gamma")));
    assert_int_equal(12, keyspace_position(ks, KEYSPACE_STRIPES - 1));
    rig_free(rig);
}

TEST(reads_without_a_stripe_reach_beyond_the_set)
{
    struct lock_set set = { 0 };

    add(&set, CMD_ID_BF_EXISTS, "alpha", "item");
    add(&set, CMD_ID_FLUSHALL, "async", "");
    add(&set, CMD_ID_PING, "alpha", "");
    assert_false(set.beyond);
    add(&set, CMD_ID_DBSIZE, "", "");
    assert_true(set.beyond);
}

TEST(a_worker_that_is_alone_takes_no_lock)
{
    struct rig *rig = rig_new_threads(2);
    struct worker *alone = dispatch_new_worker(&rig->service, 1);
    struct lock_set key = { 0 };
    struct lock_set world = { .world = true };

    alone->alone = true;
    add(&key, CMD_ID_BF_ADD, "alpha", "item");
    take(&key, rig->worker);
    take(&key, alone); /* would wait for ever */
    take(&world, alone);
    give_back(&world, alone);
    give_back(&key, alone);
    give_back(&key, rig->worker);
    dispatch_free_worker(alone);
    rig_free(rig);
}

struct other {
    struct rig *rig;
    struct lock_set set;
    struct worker *worker;
    int *guarded; /* plain: a race on it is what TSan looks for */
    _Atomic bool started;
    int seen;
};

static void *
take_elsewhere(void *arg)
{
    struct other *other = arg;

    atomic_store(&other->started, true);
    take(&other->set, other->worker);
    other->seen = *other->guarded;
    *other->guarded += 1;
    give_back(&other->set, other->worker);
    metric_thread_exit();
    return NULL;
}

/* True if the other saw what was written last before mine was given back. */
static bool
keeps_out(struct rig *rig, const struct lock_set *mine,
          const struct lock_set *theirs)
{
    int guarded = 0;
    struct other other = { .rig = rig, .set = *theirs, .guarded = &guarded };
    pthread_t thread;

    other.worker = dispatch_new_worker(&rig->service, 1);
    take(mine, rig->worker);
    assert_int_equal(0, pthread_create(&thread, NULL, take_elsewhere, &other));
    while (!atomic_load(&other.started)) {
    }
    for (int i = 1; i <= 100000; i++) { /* time for it to come in wrongly */
        *(volatile int *)&guarded = i;
    }
    give_back(mine, rig->worker);
    assert_int_equal(0, pthread_join(thread, NULL));
    dispatch_free_worker(other.worker);
    return other.seen == 100000 && guarded == 100001;
}

TEST(a_taken_set_keeps_others_out)
{
    struct rig *rig = rig_new_threads(2);
    struct lock_set keys = { 0 };
    struct lock_set key = { 0 };
    struct lock_set shared = { 0 };
    struct lock_set world = { .world = true };

    add(&keys, CMD_ID_DEL, "alpha", "beta");
    add(&key, CMD_ID_BF_ADD, "beta", "item");
    add(&shared, CMD_ID_BF_EXISTS, "beta", "item");
    for (int i = 0; i < 5; i++) {
        assert_true(keeps_out(rig, &keys, &key));
        assert_true(keeps_out(rig, &key, &keys));
        assert_true(keeps_out(rig, &keys, &shared));
        assert_true(keeps_out(rig, &shared, &keys));
        assert_true(keeps_out(rig, &world, &keys));
        assert_true(keeps_out(rig, &keys, &world));
        assert_true(keeps_out(rig, &world, &world));
    }
    rig_free(rig);
}

/* Two sets with the same keys named in different orders: no deadlock. */
struct crosser {
    struct rig *rig;
    unsigned index;
    const char *a, *b;
};

static void *
cross(void *arg)
{
    struct crosser *crosser = arg;
    struct worker *worker =
        dispatch_new_worker(&crosser->rig->service, crosser->index);

    for (int i = 0; i < 3000; i++) {
        struct lock_set set = { 0 };

        add(&set, CMD_ID_DEL, crosser->a, crosser->b);
        set.world = i % 100 == 0;
        take(&set, worker);
        give_back(&set, worker);
    }
    dispatch_free_worker(worker);
    metric_thread_exit();
    return NULL;
}

TEST(sets_are_taken_in_one_order_whoever_names_the_keys)
{
    struct rig *rig = rig_new_threads(2);
    struct crosser crosser[] = { { rig, 0, "alpha", "beta" },
                                 { rig, 1, "beta", "alpha" } };
    pthread_t thread[2];

    for (int i = 0; i < 2; i++) {
        assert_int_equal(0,
                         pthread_create(&thread[i], NULL, cross, &crosser[i]));
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(0, pthread_join(thread[i], NULL));
    }
    rig_free(rig);
}
