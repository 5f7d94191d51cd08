/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/mem.h"
#include "keyspace/gate.h"
#include "keyspace/walk.h"
#include "keyspace/walk_internal.h"
#include "support.h"

/* A walk of a thread beside one loop, with a sink that may be stopped. */
struct beside {
    struct keyspace *ks;
    struct walk *walk;
    struct walk_sink sink;
    atomic_bool stop;
};

static void
beside_open(struct beside *beside)
{
    memset(beside, 0, sizeof(*beside));
    beside->ks = test_keyspace(1);
    beside->walk = walk_try_new(beside->ks);
    beside->sink.stop = &beside->stop;
    beside->walk->thread = 1;
    beside->walk->sink = &beside->sink;
    keyspace_share(beside->ks, true);
}

static void
beside_close(struct beside *beside)
{
    keyspace_share(beside->ks, false);
    walk_free(beside->walk);
    keyspace_free(beside->ks);
}

TEST(a_hold_is_a_section_of_the_gate_with_a_position)
{
    struct beside beside;
    struct walk_hold hold;

    beside_open(&beside);
    beside.ks->stripes[5].position = 40;
    beside.ks->stripes[6].position = 7;
    beside.walk->begin = 10;
    assert_true(walk_begin_hold(beside.walk, 5, false, &hold));
    assert_true(hold.entered);
    assert_int_equal(40, walk_hold_position(beside.walk));
    walk_end_hold(beside.walk, &hold);
    /* What a stripe had before the walk began is no news. */
    assert_true(walk_begin_hold(beside.walk, 6, true, &hold));
    assert_int_equal(10, walk_hold_position(beside.walk));
    walk_end_hold(beside.walk, &hold);
    assert_int_equal(2, beside.walk->holds);
    gate_raise(beside.ks->gate, 0); /* waits for nobody */
    gate_lower(beside.ks->gate, 0);
    beside_close(&beside);
}

TEST(a_walk_that_is_stopped_gets_no_hold_though_the_gate_is_raised)
{
    struct beside beside;
    struct walk_hold hold;

    beside_open(&beside);
    gate_raise(beside.ks->gate, 0);
    atomic_store(&beside.stop, true);
    assert_false(walk_begin_hold(beside.walk, 5, false, &hold));
    gate_lower(beside.ks->gate, 0);
    assert_false(walk_begin_hold(beside.walk, 5, false, &hold));
    assert_int_equal(0, beside.walk->holds);
    beside_close(&beside);
}

TEST(who_has_raised_the_gate_does_not_enter_it)
{
    struct beside beside;
    struct walk_hold hold;

    beside_open(&beside);
    beside.walk->thread = 0;
    gate_raise(beside.ks->gate, 0);
    assert_true(walk_begin_hold(beside.walk, 5, false, &hold));
    assert_false(hold.entered);
    walk_end_hold(beside.walk, &hold);
    gate_lower(beside.ks->gate, 0);
    beside_close(&beside);
}
