/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each state of a slot, as commands see it. What leads to them is in the other
 * tests of the sidecar.
 */
#include "cluster/sidecar_show.h"

#include "../test.h"
#include "base/mem.h"
#include "sidecar_rig.h"

#include <stdio.h>
#include <string.h>

#define MOVED                                                                  \
    RIG_A                                                                      \
    " 10.0.0.1:7000@17000 myself,master - 0 0 9 connected 0-5461\n" RIG_B      \
    " 10.0.0.2:7001@17001 master - 0 1 2 connected 5462-10922\n"

TEST(only_slots_of_our_node_are_ours)
{
    struct rig rig;

    rig_init(&rig, NULL);
    rig_poll(&rig, RIG_NODES);
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        assert_int_equal(rig.state[slot], slot <= 5460 ? SLOT_HELD : SLOT_AWAY);
        assert_int_equal(rig.source[slot], TOPOLOGY_NOBODY);
    }
    rig_fini(&rig);
}

TEST(clients_are_sent_to_a_source_that_is_in_the_cluster)
{
    const struct sidecar_answer keys = { .kind = SIDECAR_HAS_KEYS };
    struct rig rig;

    rig_init(&rig, NULL);
    rig_poll(&rig, RIG_NODES);
    rig_poll(&rig, MOVED);
    rig_tick(&rig, 50);
    for (int round = 0; round < 4 && !rig.pulls; round++) {
        for (size_t i = 0; i < rig.asks; i++) {
            if (rig.ask[i].question == SIDECAR_ASK_FENCE_EMPTY) {
                rig_answer(&rig, RIG_B, SIDECAR_ASK_FENCE_EMPTY, &keys);
                break;
            }
        }
        rig_tick(&rig, 50);
    }
    assert_true(rig.pulls);
    assert_int_equal(rig.state[5461], SLOT_PULLED);
    assert_int_equal(rig.source[5461], 1);
    assert_int_equal(rig.source[0], TOPOLOGY_NOBODY);
    rig_poll(&rig, RIG_A
             " 10.0.0.1:7000@17000 myself,master - 0 0 9 connected 0-5461\n");
    assert_int_equal(rig.state[5461], SLOT_HELD); /* B was forgotten */
    rig_fini(&rig);
}

TEST(slots_are_missing_while_a_replica_has_newer_data)
{
    struct holdings *file = rig_file(RIG_A, 1);
    struct rig rig;

    rig_init(&rig, file);
    rig_poll(&rig, RIG_NODES);
    assert_int_equal(rig.state[0], SLOT_SERVED);
    sidecar_set_behind(rig.sidecar, true);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[0], SLOT_MISSING);
    assert_int_equal(rig.state[16383], SLOT_AWAY);
    sidecar_set_behind(rig.sidecar, false);
    rig_tick(&rig, 50);
    assert_int_equal(rig.state[0], SLOT_SERVED);
    mem_free(file);
    rig_fini(&rig);
}
