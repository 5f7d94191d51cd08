/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemons beside nodes that come and go.
 */
#include "cluster/sidecar_peers.h"

#include "../test.h"
#include "base/buf.h"
#include "base/mem.h"
#include "sidecar_rig.h"

#include <stdio.h>
#include <string.h>

TEST(a_node_has_one_place)
{
    char id[TOPOLOGY_ID_LEN + 1];
    struct rig rig;

    rig_init(&rig, NULL);
    for (int round = 0; round < 2; round++) {
        for (uint16_t i = 0; i < 100; i++) {
            (void)snprintf(id, sizeof(id), "%040u", i);
            assert_int_equal(sidecar_peer_of(rig.sidecar, id), i);
        }
    }
    rig_fini(&rig);
}

/* A with all slots but the first, and new nodes, of which one has that slot. */
static void
poll_new_nodes(struct rig *rig, unsigned round, unsigned count)
{
    struct buf text = { 0 };

    buf_printf(&text,
               RIG_A " 10.0.0.1:7000@17000 myself,master - 0 0 1 connected "
                     "1-16383\n");
    for (unsigned i = 0; i < count; i++) {
        buf_printf(&text,
                   "%020u%020u 10.0.0.2:7000@17000 master - 0 0 2 "
                   "connected%s\n",
                   round, i, i == 0 ? " 0" : "");
    }
    buf_append(&text, "", 1);
    assert_false(text.failed);
    rig_poll(rig, text.data);
    buf_free(&text);
}

TEST(nodes_may_come_and_go_for_ever)
{
    enum { ROUNDS = 25, NODES = 4000 };
    struct rig rig;

    rig_init(&rig, NULL);
    for (unsigned round = 0; round < ROUNDS; round++) {
        poll_new_nodes(&rig, round, NODES);
        assert_true(rig.sidecar->peer_count <= 2 * NODES + 2);
    }
    poll_new_nodes(&rig, ROUNDS, 1);
    assert_int_equal(rig.sidecar->peer_used, 2);
    rig_fini(&rig);
}

TEST(a_place_that_something_names_is_not_used_again)
{
    char id[TOPOLOGY_ID_LEN + 1];
    struct rig rig;
    struct sidecar *sidecar;
    uint16_t owner;

    (void)snprintf(id, sizeof(id), "%020u%020u", 0, 0);
    rig_init(&rig, NULL);
    sidecar = rig.sidecar;
    poll_new_nodes(&rig, 0, 2);
    owner = sidecar_peer_of(sidecar, id);
    sidecar->slots[7].source = owner;
    poll_new_nodes(&rig, 1, 2);
    assert_string_equal(sidecar->peers[owner].id, id);
    sidecar->slots[7].source = PEER_NONE;
    sidecar->slots[9].comer = owner;
    poll_new_nodes(&rig, 2, 2);
    assert_string_equal(sidecar->peers[owner].id, id);
    sidecar->slots[9].comer = PEER_NONE;
    sidecar->survey.found[3] =
        (struct sidecar_holder){ .epoch = 2, .peer = owner };
    poll_new_nodes(&rig, 3, 2);
    assert_string_equal(sidecar->peers[owner].id, id);
    memset(&sidecar->survey.found[3], 0, sizeof(struct sidecar_holder));
    sidecar->peers[owner].number = 99; /* a question without an answer */
    poll_new_nodes(&rig, 4, 2);
    assert_string_equal(sidecar->peers[owner].id, id);
    sidecar->peers[owner].number = 0;
    poll_new_nodes(&rig, 5, 2);
    assert_string_not_equal(sidecar->peers[owner].id, id);
    assert_int_equal(sidecar->peer_used, 3);
    rig_fini(&rig);
}
