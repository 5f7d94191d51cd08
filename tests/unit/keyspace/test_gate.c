/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The gate among four threads. What it guards is plain memory, so that TSan
 * would see two threads meet.
 */
#include "keyspace/gate.h"
#include "support.h"

#include <pthread.h>

enum { THREADS = 4, TURNS = 3000 };

static const uint64_t LONG_NS = 2000000; /* beyond any spinning */

struct world {
    struct gate *gate;
    uint64_t left, right;      /* equal whenever nobody is the owner */
    uint64_t entered[THREADS]; /* each by its thread, inside */
    uint64_t raised[THREADS];  /* by owners */
    atomic_uint failures;
};

struct actor {
    struct world *world;
    unsigned index;
    bool slow;
    pthread_t thread;
};

static void
busy_ns(uint64_t ns)
{
    uint64_t end = clock_mono_ns() + ns;

    while (clock_mono_ns() < end) {
    }
}

static void
take_section(struct actor *actor, bool slow)
{
    struct world *world = actor->world;

    gate_enter(world->gate, actor->index);
    if (world->left != world->right ||
        gate_is_mine(world->gate, actor->index)) {
        atomic_fetch_add(&world->failures, 1);
    }
    world->entered[actor->index]++;
    if (slow) {
        busy_ns(LONG_NS);
    }
    if (world->left != world->right) {
        atomic_fetch_add(&world->failures, 1);
    }
    gate_leave(world->gate, actor->index);
}

static void
take_world(struct actor *actor, bool slow)
{
    struct world *world = actor->world;
    uint64_t sum = 0;

    gate_raise(world->gate, actor->index);
    if (!gate_is_mine(world->gate, actor->index) ||
        gate_is_mine(world->gate, (actor->index + 1) % THREADS)) {
        atomic_fetch_add(&world->failures, 1);
    }
    world->left++;
    for (unsigned i = 0; i < THREADS; i++) {
        sum += world->entered[i];
    }
    if (slow) {
        busy_ns(LONG_NS);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        sum -= world->entered[i];
    }
    if (sum != 0) {
        atomic_fetch_add(&world->failures, 1);
    }
    world->right++;
    world->raised[actor->index]++;
    gate_lower(world->gate, actor->index);
    if (gate_is_mine(world->gate, actor->index)) {
        atomic_fetch_add(&world->failures, 1);
    }
}

static void *
act(void *arg)
{
    struct actor *actor = arg;
    uint64_t random = random_of(100 + actor->index);

    for (int i = 0; i < TURNS; i++) {
        bool slow = actor->slow && test_random_below(&random, 100) == 0;

        if (test_random_below(&random, 10) == 0) {
            take_world(actor, slow);
        } else {
            take_section(actor, slow);
        }
    }
    metric_thread_exit();
    return NULL;
}

static void
run_actors(bool slow)
{
    struct world world = { .gate = gate_try_new(THREADS) };
    struct actor actors[THREADS];
    uint64_t raised = 0;
    uint64_t entered = 0;

    for (unsigned i = 0; i < THREADS; i++) {
        actors[i] = (struct actor){ .world = &world, .index = i, .slow = slow };
        CHECK(pthread_create(&actors[i].thread, NULL, act, &actors[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        CHECK(pthread_join(actors[i].thread, NULL) == 0);
        raised += world.raised[i];
        entered += world.entered[i];
    }
    assert_int_equal(atomic_load(&world.failures), 0);
    assert_int_equal(raised + entered, THREADS * TURNS);
    assert_int_equal(world.left, raised);
    assert_int_equal(world.right, raised);
    gate_free(world.gate);
}

TEST(the_owner_of_the_gate_is_alone)
{
    run_actors(false);
}

TEST(the_owner_of_the_gate_is_alone_when_sections_are_long)
{
    run_actors(true);
}

TEST(with_one_thread_the_gate_still_knows_its_owner)
{
    struct gate *gate = gate_try_new(1);

    gate_enter(gate, 0);
    gate_leave(gate, 0);
    assert_false(gate_is_mine(gate, 0));
    gate_raise(gate, 0);
    assert_true(gate_is_mine(gate, 0));
    gate_lower(gate, 0);
    assert_false(gate_is_mine(gate, 0));
    gate_free(gate);
}

TEST(trying_to_enter_fails_where_entering_would_wait)
{
    struct gate *gate = gate_try_new(2);

    assert_true(gate_try_enter(gate, 0));
    gate_leave(gate, 0);
    gate_raise(gate, 1);
    assert_false(gate_try_enter(gate, 0));
    gate_lower(gate, 1);
    gate_raise(gate, 1); /* it is outside */
    gate_lower(gate, 1);
    assert_true(gate_try_enter(gate, 0));
    gate_leave(gate, 0);
    gate_free(gate);
}

TEST(a_thread_that_has_no_section_can_raise_the_gate)
{
    struct gate *gate = gate_try_new(2);

    gate_raise(gate, 7);
    assert_true(gate_is_mine(gate, 7));
    assert_false(gate_is_mine(gate, 0));
    gate_lower(gate, 7);
    gate_enter(gate, 0);
    gate_leave(gate, 0);
    gate_free(gate);
}

TEST(several_loops_share_the_gate_whoever_has_raised_it)
{
    struct gate *gate = gate_try_new(2);

    gate_raise(gate, 1);
    gate_share(gate, true);
    assert_false(gate_try_enter(gate, 0));
    gate_share(gate, false);
    gate_lower(gate, 1);
    assert_true(gate_try_enter(gate, 0));
    gate_leave(gate, 0);
    gate_free(gate);
}

TEST(one_loop_shares_the_gate_with_the_walking_thread)
{
    struct gate *gate = gate_try_new(1);

    gate_share(gate, true);
    gate_raise(gate, 0);
    assert_false(gate_try_enter(gate, 1));
    gate_lower(gate, 0);
    assert_true(gate_try_enter(gate, 1));
    gate_leave(gate, 1);
    gate_share(gate, false);
    gate_free(gate);
}
