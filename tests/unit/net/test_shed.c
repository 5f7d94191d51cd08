/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memory of all connections together has a bound: the largest are cut
 * first, and the operator's and exempt ones never.
 */
#include "net/shed.h"

#include "rig.h"

enum { PEERS = 5 };

/* Each takes 1000 times its number, the third the most. */
static void
come(struct rig *rig, struct peer peers[PEERS], struct conn *conns[PEERS])
{
    static const unsigned bytes[PEERS] = { 1000, 4000, 5000, 2000, 3000 };

    for (int i = 0; i < PEERS; i++) {
        peers[i] = peer_new(rig, false);
        conns[i] = rig->last;
        conn_set_owned(conns[i], bytes[i]);
    }
    assert_int_equal(15000, rig->usage.total);
}

static void
expect_left(struct rig *rig, struct peer peers[PEERS], const char *left)
{
    rig_settle(rig);
    for (int i = 0; i < PEERS; i++) {
        if (peer_is_cut(&peers[i]) != (left[i] == '-')) {
            fail_msg("peer %d is %s", i, left[i] == '-' ? "left" : "cut");
        }
        peer_free(&peers[i]);
    }
}

TEST(the_largest_go_first_and_no_more_than_it_takes)
{
    struct rig *rig = rig_new();
    struct peer peers[PEERS];
    struct conn *conns[PEERS];
    int64_t cuts = metric_sum(METRIC_EVICTED_CLIENTS);

    come(rig, peers, conns);
    rig->usage.limit = 15000;
    rig_settle(rig);
    assert_false(rig->loop.above);
    conn_set_owned(conns[0], 1001);
    assert_true(rig->loop.above);
    rig->usage.limit = 6001;
    expect_left(rig, peers, "a--de");
    assert_int_equal(cuts + 2, metric_sum(METRIC_EVICTED_CLIENTS));
    rig_free(rig);
}

TEST(the_operator_and_exempt_clients_stay)
{
    struct rig *rig = rig_new();
    struct peer peers[PEERS];
    struct conn *conns[PEERS];

    come(rig, peers, conns);
    conns[2]->is_reserved = true;
    conns[1]->exempt = true;
    rig->usage.limit = 1;
    conn_set_owned(conns[0], 1001);
    rig_settle(rig);
    conns[2]->is_reserved = false; /* as it came in */
    expect_left(rig, peers, "-bc--");
    rig_free(rig);
}

TEST(a_limit_that_was_lowered_holds_within_a_second)
{
    struct rig *rig = rig_new();
    struct peer peers[PEERS];
    struct conn *conns[PEERS];

    come(rig, peers, conns);
    rig->usage.limit = 10000;
    rig_until(rig, rig->closed == 1);
    expect_left(rig, peers, "ab-de");
    rig_free(rig);
}

/* Its loop is asked once; until it has answered it counts as gone. */
TEST(a_client_that_is_being_cut_counts_as_gone)
{
    struct rig *rig = rig_new();
    struct peer peers[PEERS];
    struct conn *conns[PEERS];

    come(rig, peers, conns);
    rig->usage.limit = 10000;
    shed_largest(&rig->loop);
    assert_int_equal(5000, rig->usage.condemned);
    assert_int_equal(15000, rig->usage.total);
    assert_false(usage_is_above(&rig->usage));
    shed_largest(&rig->loop);
    assert_int_equal(5000, rig->usage.condemned);
    conn_set_owned(conns[0], 1500); /* and then the next one goes */
    assert_true(usage_is_above(&rig->usage));
    expect_left(rig, peers, "a--de");
    assert_int_equal(0, rig->usage.condemned);
    rig_free(rig);
}

/* The mailbox was full: the seconds' look finds it. */
TEST(a_condemned_client_goes_though_its_loop_was_not_asked)
{
    struct rig *rig = rig_new();
    struct peer peers[PEERS];
    struct conn *conns[PEERS];

    come(rig, peers, conns);
    conns[3]->usage.condemned_bytes = 2000;
    rig->usage.condemned = 2000;
    rig_until(rig, rig->closed == 1);
    expect_left(rig, peers, "abc-e");
    rig_free(rig);
}
