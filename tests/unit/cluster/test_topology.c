/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lines as Redis 7.0.15 and Valkey 9.1 write them, and others.
 */
#include "cluster/topology.h"

#include "../test.h"
#include "base/mem.h"
#include "cluster_rig.h"

#include <stdio.h>
#include <string.h>

TEST(a_healthy_cluster_is_read_whole)
{
    struct topology *t = rig_topology(RIG_NODES, RIG_INFO, RIG_A);
    struct slot_set slots;

    assert_int_equal(t->count, 4);
    assert_int_equal(t->nodes_known, 4);
    assert_int_equal(t->myself, 0);
    assert_true(t->ok);
    assert_int_equal(t->current_epoch, 7);
    assert_int_equal(t->my_epoch, 1);
    assert_string_equal(t->nodes[0].id, RIG_A);
    assert_string_equal(t->nodes[0].host, "10.0.0.1");
    assert_int_equal(t->nodes[0].port, 7000);
    assert_int_equal(t->nodes[0].cport, 17000);
    assert_int_equal(t->nodes[0].flags, NODE_MYSELF | NODE_PRIMARY);
    assert_string_equal(t->nodes[1].hostname, "b.example");
    assert_int_equal(t->nodes[1].epoch, 2);
    assert_string_equal(t->nodes[2].host, "2001:db8::3");
    assert_int_equal(t->nodes[2].port, 7002);
    assert_int_equal(t->nodes[3].flags, NODE_REPLICA);
    assert_int_equal(t->nodes[3].primary, 0);
    assert_int_equal(t->nodes[0].primary, -1);
    assert_int_equal(t->owner[0], 0);
    assert_int_equal(t->owner[5460], 0);
    assert_int_equal(t->owner[5461], 1);
    assert_int_equal(t->owner[16383], 2);
    topology_slots_of(t, 1, &slots);
    assert_int_equal(slot_set_count(&slots), 5462);
    assert_int_equal(topology_find(t, slice_of(RIG_R)), 3);
    assert_int_equal(topology_find(t, slice_of("4")), -1);
    topology_free(t);
    topology_free(NULL);
}

TEST(a_node_without_an_address_or_in_a_handshake_is_left_out)
{
    struct topology *t = rig_topology(
        RIG_A " :7000@17000 myself,slave " RIG_B " 0 0 1 connected\n" RIG_B
              " 10.0.0.2:7001@17001 master,noaddr - 1 2 2 disconnected "
              "0-5\n" RIG_C
              " 10.0.0.3:7002@17002 handshake - 1 2 0 connected\n",
        "cluster_state:fail\n", RIG_A);

    assert_int_equal(t->count, 1);
    assert_int_equal(t->nodes_known, 3);
    assert_string_equal(t->nodes[0].host, "");
    assert_int_equal(t->nodes[0].primary, -1);
    assert_int_equal(t->owner[0], TOPOLOGY_NOBODY);
    assert_false(t->ok);
    topology_free(t);
}

TEST(flags_failures_and_what_follows_an_address_are_read)
{
    struct topology *t = rig_topology(
        RIG_A " [::1]:7000@17000,,shard-id=x,availability-zone= "
              "myself,master,nofailover - 0 0 1 connected\r\n" RIG_B
              " h-1.example:7001 slave,fail?,newflag " RIG_A
              " 0 0 18446744073709551615 disconnected\r\n" RIG_C
              " 10.0.0.3:7002@17002,shard-id=y master,fail - 0 0 3 "
              "disconnected 1 3-4 \r\n",
        RIG_INFO, RIG_A);

    assert_string_equal(t->nodes[0].host, "::1");
    assert_string_equal(t->nodes[0].hostname, "");
    assert_int_equal(t->nodes[0].flags,
                     NODE_MYSELF | NODE_PRIMARY | NODE_NOFAILOVER);
    assert_string_equal(t->nodes[1].host, "h-1.example");
    assert_int_equal(t->nodes[1].cport, 0);
    assert_int_equal(t->nodes[1].flags, NODE_REPLICA | NODE_PFAIL);
    assert_true(t->nodes[1].epoch == UINT64_MAX);
    assert_false(t->nodes[1].connected);
    assert_string_equal(t->nodes[2].hostname, "");
    assert_int_equal(t->nodes[2].flags, NODE_PRIMARY | NODE_FAIL);
    assert_int_equal(t->owner[1], 2);
    assert_int_equal(t->owner[2], TOPOLOGY_NOBODY);
    topology_free(t);
}

TEST(open_slots_are_marks)
{
    struct topology *t =
        rig_topology(RIG_A " 1.1.1.1:1@2 myself,master - 0 0 1 connected 0-5 "
                           "[77->-" RIG_B "] [99-<-" RIG_C "]\n" RIG_B
                           " 1.1.1.2:1@2 master - 0 0 1 connected\n",
                     RIG_INFO, RIG_A);

    assert_int_equal(t->mark_count, 2);
    assert_int_equal(t->marks[0].slot, 77);
    assert_int_equal(t->marks[0].node, 1);
    assert_false(t->marks[0].importing);
    assert_int_equal(t->marks[1].slot, 99);
    assert_int_equal(t->marks[1].node, TOPOLOGY_NOBODY);
    assert_true(t->marks[1].importing);
    topology_free(t);
}

#define ME RIG_A " 1.1.1.1:1@2 myself,master - 0 0 1 connected"

TEST(malformed_and_contradicting_texts_are_refused_with_a_reason)
{
    static const struct {
        const char *nodes, *info, *myid, *reason;
    } cases[] = {
        { "", RIG_INFO, RIG_A, "there are no nodes, or too many" },
        { "x\n", RIG_INFO, RIG_A, "a line has fewer than 8 fields: 'x'" },
        { "x 1.1.1.1:1@2 myself,master - 0 0 1 connected\n", RIG_INFO, RIG_A,
          "a node's id is not 40 hex digits: 'x'" },
        { RIG_A "  1.1.1.1:1@2 myself,master - 0 0 1 connected\n", RIG_INFO,
          RIG_A, "a line has fewer than 8 fields" },
        { RIG_A " 1.1.1.1 myself,master - 0 0 1 connected\n", RIG_INFO, RIG_A,
          "a node's address is malformed: '1.1.1.1'" },
        { RIG_A " 1.1.1.1:65536@2 myself,master - 0 0 1 connected\n", RIG_INFO,
          RIG_A, "a node's address is malformed" },
        { RIG_A " 1.1.1.1:1@x myself,master - 0 0 1 connected\n", RIG_INFO,
          RIG_A, "a node's address is malformed" },
        { RIG_A " 1.1\r.1:1@2 myself,master - 0 0 1 connected\n", RIG_INFO,
          RIG_A, "a node's address is malformed: '1.1?.1:1@2'" },
        { RIG_A " 1.1.1.1:1@2 myself,master,slave - 0 0 1 connected\n",
          RIG_INFO, RIG_A, "a node is both master and slave" },
        { RIG_A " 1.1.1.1:1@2 myself,master - 0 0 x connected\n", RIG_INFO,
          RIG_A, "a node's epoch is no number: 'x'" },
        { RIG_A " 1.1.1.1:1@2 myself,slave x 0 0 1 connected\n", RIG_INFO,
          RIG_A, "a primary's id is malformed: 'x'" },
        { ME "\n" ME "\n", RIG_INFO, RIG_A, "a node is listed twice" },
        { ME "\n" RIG_B " 1.1.1.1:1@2 myself,master - 0 0 1 connected\n",
          RIG_INFO, RIG_A, "two nodes are 'myself'" },
        { RIG_B " 1.1.1.1:1@2 master - 0 0 1 connected\n", RIG_INFO, RIG_A,
          "no node is 'myself'" },
        { ME "\n", RIG_INFO, RIG_B, "CLUSTER MYID is not the id of 'myself'" },
        { ME "\n", "cluster_my_epoch:1\n", RIG_A,
          "CLUSTER INFO has no cluster_state" },
        { ME "\n", "cluster_state:ok\ncluster_my_epoch:-\n", RIG_A,
          "an epoch of CLUSTER INFO is no number" },
        { ME " 5-\n", RIG_INFO, RIG_A, "a range of slots is malformed: '5-'" },
        { ME " 16384\n", RIG_INFO, RIG_A, "a range of slots is malformed" },
        { ME " 5 4-6\n", RIG_INFO, RIG_A, "a slot has two owners: '4-6'" },
        { ME " [5->-x]\n", RIG_INFO, RIG_A, "an open slot is malformed" },
        { ME " [\n", RIG_INFO, RIG_A, "an open slot is malformed: '['" },
        { ME " [x->-" RIG_B "]\n", RIG_INFO, RIG_A,
          "an open slot is malformed" },
        { RIG_A " 1.1.1.1:1@2 myself,slave - 0 0 1 connected 5\n", RIG_INFO,
          RIG_A, "a node that is no master has slots: '5'" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct topology *t = NULL;
        char reason[TOPOLOGY_REASON_MAX] = "";

        assert_false(topology_parse(slice_of(cases[i].nodes),
                                    slice_of(cases[i].info),
                                    slice_of(cases[i].myid), &t, reason));
        assert_null(t);
        if (strncmp(reason, cases[i].reason, strlen(cases[i].reason)) != 0) {
            fail_msg("case %zu: %s", i, reason);
        }
    }
}

TEST(a_host_name_that_is_too_long_is_refused)
{
    char text[1024];
    char host[300];
    struct topology *t = NULL;
    char reason[TOPOLOGY_REASON_MAX];

    for (size_t len = 255; len <= 256; len++) {
        memset(host, 'h', len);
        host[len] = '\0';
        (void)snprintf(text, sizeof(text),
                       RIG_A " %s:1@2,%s myself,master - 0 0 1 connected", host,
                       host);
        assert_int_equal(topology_parse(slice_of(text), slice_of(RIG_INFO),
                                        slice_of(RIG_A), &t, reason),
                         len == 255);
    }
    assert_int_equal(strlen(t->nodes[0].hostname), 255);
    topology_free(t);
}

TEST(no_memory_is_a_reason)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct topology *t = NULL;
        char reason[TOPOLOGY_REASON_MAX] = "";
        bool good;

        mem_fail_at(nth);
        good = topology_parse(slice_of(ME " [5->-" RIG_B "]\n"),
                              slice_of(RIG_INFO), slice_of(RIG_A), &t, reason);
        fired = mem_fail_clear();
        assert_int_equal(good, !fired);
        assert_int_equal(reason[0] != '\0', fired);
        topology_free(t);
    }
}

static bool
strips_alike(const char *a, const char *b)
{
    struct buf texts[2] = { { 0 }, { 0 } };
    bool equal;

    topology_strip(slice_of(a), slice_of(RIG_INFO), slice_of(RIG_A), &texts[0]);
    topology_strip(slice_of(b),
                   slice_of("cluster_state:ok\r\ncluster_current_epoch:7\r\n"
                            "cluster_my_epoch:1\r\n"
                            "cluster_stats_messages_sent:124\r\n"),
                   slice_of(RIG_A), &texts[1]);
    equal = slice_equal(buf_slice(&texts[0]), buf_slice(&texts[1]));
    buf_free(&texts[0]);
    buf_free(&texts[1]);
    return equal;
}

TEST(times_and_counts_of_messages_are_no_difference)
{
    assert_true(strips_alike(
        RIG_A " 1.1.1.1:1@2 myself,master - 0 0 1 connected 1-5\n",
        RIG_A " 1.1.1.1:1@2 myself,master - 12 345 1 connected 1-5\n"));
    assert_false(strips_alike(
        RIG_A " 1.1.1.1:1@2 myself,master - 0 0 1 connected 1-5\n",
        RIG_A " 1.1.1.1:1@2 myself,master - 0 0 1 connected 1-6\n"));
    assert_false(
        strips_alike(RIG_A " 1.1.1.1:1@2 myself,master - 0 0 1 connected\n",
                     RIG_A " 1.1.1.1:1@2 myself,master - 0 0 2 connected\n"));
    assert_false(strips_alike(
        RIG_A " 1.1.1.1:1@2 myself,master - 0 0 1 connected\n",
        RIG_A " 1.1.1.1:1@2 myself,master,fail? - 0 0 1 connected\n"));
}
