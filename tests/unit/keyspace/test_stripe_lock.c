/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The lock of a stripe, by one thread that plays several, and among several
 * that meet in all ways. What it guards is plain memory, so that TSan would see
 * two threads meet; a lost wake-up would hang a test.
 */
#include "keyspace/stripe_lock.h"

#include "base/clock.h"
#include "base/err.h"
#include "support.h"

#include <pthread.h>

enum { THREADS = 4, NO_SLOT = THREADS, STRIPE = 7 };

static const uint64_t LONG_NS = 2000000; /* beyond any spinning */
static const uint64_t DEADLINE_NS = 8000000000;

struct world {
    struct stripe_lock lock, other;
    struct stripe_lock_slot slot[THREADS];
    struct stripe_lock_slots slots;
    uint64_t left, right; /* equal whenever no writer is there */
    atomic_uint failures;
    atomic_int inside; /* readers */
    atomic_bool stop;
};

struct actor {
    struct world *world;
    unsigned index;
    unsigned turns, writes_of_100, long_of_1000;
    uint64_t done;
    pthread_t thread;
};

static void
world_init(struct world *world)
{
    memset(world, 0, sizeof(*world));
    world->slots = (struct stripe_lock_slots){ world->slot, THREADS };
}

static void
share(struct world *world, unsigned thread)
{
    stripe_lock_shared(&world->lock, &world->slots, thread, STRIPE);
}

static void
own(struct world *world)
{
    stripe_lock_exclusive(&world->lock, &world->slots, STRIPE);
}

static void
release(struct world *world, unsigned thread)
{
    stripe_lock_release(&world->lock, &world->slots, thread, STRIPE);
}

static void
make_calm(struct world *world)
{
    for (int i = 0; i < STRIPE_LOCK_CALM; i++) {
        share(world, 0);
        release(world, 0);
    }
}

static bool
is_free(struct world *world)
{
    bool free = atomic_load(&world->lock.state) == 0;

    for (unsigned i = 0; i < THREADS; i++) {
        free = free && atomic_load(&world->slot[i].stripe) == 0;
    }
    return free;
}

static void
busy_ns(uint64_t ns)
{
    uint64_t end = clock_mono_ns() + ns;

    while (clock_mono_ns() < end) {
    }
}

/* ---- one thread ---------------------------------------------------------- */

TEST(readers_share_the_lock_whether_it_is_calm_or_not)
{
    struct world world;

    world_init(&world);
    for (int pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i <= NO_SLOT; i++) {
            share(&world, i);
        }
        for (unsigned i = 0; i <= NO_SLOT; i++) {
            release(&world, i);
        }
        assert_true(is_free(&world));
        own(&world);
        assert_false(is_free(&world));
        release(&world, NO_SLOT);
        assert_true(is_free(&world));
        make_calm(&world);
    }
}

TEST(readers_of_a_calm_lock_do_not_write_to_it)
{
    struct world world;

    world_init(&world);
    for (unsigned i = 1; i < STRIPE_LOCK_CALM; i++) {
        share(&world, 0);
        assert_int_equal(atomic_load(&world.lock.state), 1);
        release(&world, 0);
        assert_int_equal(atomic_load(&world.lock.reads), i);
    }
    make_calm(&world);
    share(&world, 2);
    assert_int_equal(atomic_load(&world.lock.state), 0);
    assert_int_equal(atomic_load(&world.lock.reads), STRIPE_LOCK_CALM);
    assert_int_equal(atomic_load(&world.slot[2].stripe), STRIPE + 1);
    release(&world, 2);
    assert_true(is_free(&world));
}

TEST(a_writer_ends_the_calm)
{
    struct world world;

    world_init(&world);
    make_calm(&world);
    own(&world);
    release(&world, 1);
    assert_int_equal(atomic_load(&world.lock.reads), 0);
    share(&world, 1);
    assert_int_equal(atomic_load(&world.lock.state), 1);
    release(&world, 1);
}

TEST(a_thread_can_read_two_stripes_at_a_time)
{
    struct world world;

    world_init(&world);
    make_calm(&world);
    for (int i = 0; i < STRIPE_LOCK_CALM; i++) {
        stripe_lock_shared(&world.other, &world.slots, 1, STRIPE + 1);
        stripe_lock_release(&world.other, &world.slots, 1, STRIPE + 1);
    }
    share(&world, 0);
    stripe_lock_shared(&world.other, &world.slots, 0, STRIPE + 1);
    assert_int_equal(atomic_load(&world.slot[0].stripe), STRIPE + 1);
    assert_int_equal(atomic_load(&world.other.state), 1);
    release(&world, 0);
    assert_int_equal(atomic_load(&world.other.state), 1);
    stripe_lock_release(&world.other, &world.slots, 0, STRIPE + 1);
    assert_int_equal(atomic_load(&world.other.state), 0);
    assert_true(is_free(&world));
}

/* ---- several ------------------------------------------------------------- */

/* Relaxed: it must be the lock that orders one after the other. */
static int
readers_inside(struct world *world, int come)
{
    return atomic_fetch_add_explicit(&world->inside, come,
                                     memory_order_relaxed);
}

static void
take_turn(struct actor *actor, bool writes, bool is_long)
{
    struct world *world = actor->world;

    if (writes) {
        own(world);
        if (readers_inside(world, 0) != 0 || world->left != world->right) {
            atomic_fetch_add(&world->failures, 1);
        }
        world->left++;
    } else {
        share(world, actor->index);
        (void)readers_inside(world, 1);
    }
    if (is_long) {
        busy_ns(LONG_NS);
    }
    if (writes) {
        world->right++;
        actor->done++;
    } else {
        if (world->left != world->right) {
            atomic_fetch_add(&world->failures, 1);
        }
        (void)readers_inside(world, -1);
    }
    release(world, actor->index);
}

static void *
act(void *arg)
{
    struct actor *actor = arg;
    uint64_t random = random_of(300 + actor->index);

    for (unsigned i = 0; i < actor->turns; i++) {
        take_turn(actor, test_random_below(&random, 100) < actor->writes_of_100,
                  test_random_below(&random, 1000) < actor->long_of_1000);
    }
    return NULL;
}

/* The last one has no slot. */
static void
run_actors(unsigned turns, unsigned writes_of_100, unsigned long_of_1000)
{
    struct actor actors[THREADS + 1];
    struct world world;
    uint64_t writes = 0;

    world_init(&world);
    for (unsigned i = 0; i <= THREADS; i++) {
        actors[i] = (struct actor){ .world = &world,
                                    .index = i,
                                    .turns = turns,
                                    .writes_of_100 = writes_of_100,
                                    .long_of_1000 = long_of_1000 };
        CHECK(pthread_create(&actors[i].thread, NULL, act, &actors[i]) == 0);
    }
    for (unsigned i = 0; i <= THREADS; i++) {
        CHECK(pthread_join(actors[i].thread, NULL) == 0);
        writes += actors[i].done;
    }
    assert_int_equal(atomic_load(&world.failures), 0);
    assert_int_equal(world.left, writes);
    assert_int_equal(world.right, writes);
    assert_true(is_free(&world));
}

TEST(writers_are_alone)
{
    run_actors(20000, 100, 0);
}

TEST(writers_are_alone_among_readers)
{
    run_actors(20000, 30, 0);
}

TEST(writers_are_alone_where_the_lock_is_calm_most_of_the_time)
{
    run_actors(30000, 1, 0);
}

TEST(nobody_sleeps_for_ever)
{
    run_actors(1500, 5, 10);
    run_actors(500, 50, 30);
}

/* Back to back until somebody says stop, or gives up. */
static void *
crowd(void *arg)
{
    struct actor *actor = arg;
    uint64_t end = clock_mono_ns() + DEADLINE_NS;

    while (!atomic_load(&actor->world->stop) && clock_mono_ns() < end) {
        take_turn(actor, actor->writes_of_100 > 0, false);
    }
    return NULL;
}

/* One more thread takes turns of the other kind; starved, it would only come
 * through when the others gave up. */
static void
run_crowd(bool crowd_writes)
{
    enum { TURNS = 300 };
    uint64_t end = clock_mono_ns() + DEADLINE_NS;
    struct actor actors[THREADS];
    struct world world;

    world_init(&world);
    for (unsigned i = 0; i < THREADS; i++) {
        actors[i] = (struct actor){ .world = &world,
                                    .index = i,
                                    .writes_of_100 = crowd_writes ? 100 : 0 };
        if (i > 0) {
            CHECK(pthread_create(&actors[i].thread, NULL, crowd, &actors[i]) ==
                  0);
        }
    }
    for (int i = 0; i < TURNS; i++) {
        take_turn(&actors[0], !crowd_writes, false);
    }
    assert_true(clock_mono_ns() < end);
    atomic_store(&world.stop, true);
    for (unsigned i = 1; i < THREADS; i++) {
        CHECK(pthread_join(actors[i].thread, NULL) == 0);
    }
    assert_int_equal(atomic_load(&world.failures), 0);
    assert_true(is_free(&world));
}

TEST(a_crowd_of_readers_does_not_starve_a_writer)
{
    run_crowd(false);
}

TEST(a_crowd_of_writers_does_not_starve_a_reader)
{
    run_crowd(true);
}
