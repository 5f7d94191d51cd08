/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What connections take is counted, given back, and bounded: the largest goes
 * first, and who must stay does. Every test of a rig looks at its end whether
 * all was given back.
 */
#include "net/usage.h"

#include "rig.h"

enum { PEERS = 5 };

static uint64_t
taken(const struct rig *rig)
{
    return rig->last->usage_bytes;
}

TEST(unfinished_requests_count)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct buf text = { 0 };

    assert_int_equal(0, taken(rig));
    buf_append_slice(&text, slice_lit("*3\r\n$4\r\nECHO\r\n$100000\r\n"));
    fake_fill(fake_of(rig->last), &text, 90000);
    peer_send(rig, &peer, buf_slice(&text));
    rig_until(rig, rig->last->input_bytes >= 90000);
    assert_in_range(taken(rig), 90000, 300000);
    assert_int_equal(taken(rig), rig->usage.total);
    text.len = 0;
    fake_fill(fake_of(rig->last), &text, 10000);
    buf_append_slice(&text, slice_lit("\r\n$1\r\nx\r\n"));
    peer_send(rig, &peer, buf_slice(&text));
    rig_until(rig, fake_of(rig->last)->executed == 1);
    rig_settle(rig);
    assert_int_equal(0, taken(rig));
    assert_int_equal(0, rig->usage.total);
    buf_free(&text);
    peer_free(&peer);
    rig_free(rig);
}

TEST(unread_and_held_replies_and_what_waits_behind_them_count)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);
    struct buf text = { 0 };

    peer_send_text(rig, &peer, "FILL 500000\r\n");
    rig_until(rig, rig->last->output_bytes > 400000);
    assert_in_range(taken(rig), 500000, 1100000);
    rig_until(rig, peer_has(&peer, 500000));
    rig_settle(rig);
    assert_int_equal(0, taken(rig));
    rig->released = 0;
    peer_send_text(rig, &peer, "HOLD 1\r\nFILL 500000\r\n");
    rig_until(rig, rig->last->held_bytes > 400000);
    assert_in_range(taken(rig), 500000, 1100000);
    for (int i = 0; i < 1000; i++) {
        write_command(&text, "PARK");
    }
    peer_send(rig, &peer, buf_slice(&text));
    rig_until(rig, rig->last->parked && rig->last->kept.len > 1000);
    assert_true(taken(rig) > 500000 + 1000);
    assert_int_equal(taken(rig), rig->usage.total);
    buf_free(&text);
    peer_free(&peer);
    rig_free(rig);
}

TEST(what_the_owner_says_counts)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);

    usage_set_owned(rig->last, 1000);
    assert_int_equal(1000, rig->usage.total);
    usage_set_owned(rig->last, 300);
    assert_int_equal(300, rig->usage.total);
    assert_int_equal(300, taken(rig));
    peer_free(&peer);
    rig_free(rig);
}

/* Each takes 1000 times its number, the third the most. */
static void
come(struct rig *rig, struct peer peers[PEERS], struct conn *conns[PEERS])
{
    static const unsigned bytes[PEERS] = { 1000, 4000, 5000, 2000, 3000 };

    for (int i = 0; i < PEERS; i++) {
        peers[i] = peer_new(rig, false);
        conns[i] = rig->last;
        usage_set_owned(conns[i], bytes[i]);
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
    usage_set_owned(conns[0], 1001);
    assert_true(rig->loop.above);
    rig->usage.limit = 6001;
    expect_left(rig, peers, "a--de");
    assert_int_equal(cuts + 2, metric_sum(METRIC_EVICTED_CLIENTS));
    rig_free(rig);
}

TEST(the_operator_and_who_asked_for_it_stay)
{
    struct rig *rig = rig_new();
    struct peer peers[PEERS];
    struct conn *conns[PEERS];

    come(rig, peers, conns);
    conns[2]->is_reserved = true;
    usage_set_exempt(conns[1], true);
    rig->usage.limit = 1;
    usage_set_owned(conns[0], 1001);
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
TEST(who_is_being_cut_counts_as_gone)
{
    struct rig *rig = rig_new();
    struct peer peers[PEERS];
    struct conn *conns[PEERS];

    come(rig, peers, conns);
    rig->usage.limit = 10000;
    usage_shed(&rig->loop);
    assert_int_equal(5000, rig->usage.condemned);
    assert_int_equal(15000, rig->usage.total);
    assert_false(usage_is_above(&rig->usage));
    usage_shed(&rig->loop);
    assert_int_equal(5000, rig->usage.condemned);
    usage_set_owned(conns[0], 1500); /* and then the next one goes */
    assert_true(usage_is_above(&rig->usage));
    expect_left(rig, peers, "a--de");
    assert_int_equal(0, rig->usage.condemned);
    rig_free(rig);
}

/* The mailbox was full: the seconds' look finds it. */
TEST(who_was_to_be_cut_and_was_not_asked_goes_all_the_same)
{
    struct rig *rig = rig_new();
    struct peer peers[PEERS];
    struct conn *conns[PEERS];

    come(rig, peers, conns);
    conns[3]->condemned_bytes = 2000;
    rig->usage.condemned = 2000;
    rig_until(rig, rig->closed == 1);
    expect_left(rig, peers, "abc-e");
    rig_free(rig);
}
