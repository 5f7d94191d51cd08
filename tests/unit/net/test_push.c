/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pushes: many leave in one write, behind the replies, held as long as the
 * highest of them has to wait; who takes none is cut.
 */
#include "net/push.h"

#include "net/hold.h"

#include "rig.h"

static struct conn *
connected(struct rig *rig, struct peer *peer)
{
    peer_send_text(rig, peer, "A\r\n");
    peer_expect(rig, peer, "+A\r\n");
    peer->got.len = 0;
    return rig->last;
}

TEST(many_pushes_leave_in_one_write)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct conn *conn = connected(rig, &peer);
    int64_t writes = metric_sum(METRIC_WRITES);

    push_add(conn, slice_lit("one "), 0);
    push_add(conn, slice_lit("two "), 0);
    push_add(conn, (struct slice){ NULL, 0 }, 0);
    push_add(conn, slice_lit("three"), 0);
    assert_int_equal(13, rig->loop.pushed_bytes);
    (void)push_flush(&rig->loop, UINT64_MAX);
    assert_int_equal(0, rig->loop.pushed_bytes);
    peer_expect(rig, &peer, "one two three");
    assert_int_equal(writes + 1, metric_sum(METRIC_WRITES));
    peer_free(&peer);
    rig_free(rig);
}

TEST(pushes_wait_for_the_highest_position_among_them)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct conn *conn = connected(rig, &peer);

    rig->released = 5;
    push_add(conn, slice_lit("a"), 9);
    push_add(conn, slice_lit("b"), 7);
    (void)push_flush(&rig->loop, UINT64_MAX);
    rig_settle(rig);
    assert_false(peer_has(&peer, 1));
    atomic_store(&rig->released, 8);
    loop_wake(&rig->loop);
    rig_settle(rig);
    assert_false(peer_has(&peer, 1));
    peer_send_text(rig, &peer, "R\r\n"); /* and replies wait behind them */
    rig_settle(rig);
    assert_false(peer_has(&peer, 1));
    atomic_store(&rig->released, 9);
    loop_wake(&rig->loop);
    peer_expect(rig, &peer, "ab+R\r\n");
    peer_free(&peer);
    rig_free(rig);
}

TEST(each_connection_gets_its_own)
{
    struct rig *rig = rig_new();
    struct peer one = peer_new(rig, false);
    struct conn *first = connected(rig, &one);
    struct peer two = peer_new(rig, false);
    struct conn *second = connected(rig, &two);

    push_add(first, slice_lit("1"), 0);
    push_add(second, slice_lit("2"), 0);
    push_add(first, slice_lit("3"), 0);
    (void)push_flush(&rig->loop, UINT64_MAX);
    (void)push_flush(&rig->loop, UINT64_MAX);
    peer_expect(rig, &one, "13");
    peer_expect(rig, &two, "2");
    peer_free(&one);
    peer_free(&two);
    rig_free(rig);
}

TEST(a_client_closed_before_the_flush_gets_nothing)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct conn *conn = connected(rig, &peer);

    push_add(conn, slice_lit("lost"), 0);
    conn_close(conn);
    push_add(conn, slice_lit("lost, too"), 0);
    (void)push_flush(&rig->loop, UINT64_MAX);
    rig_until(rig, peer_has(&peer, 1) || peer.ended);
    assert_int_equal(0, peer.got.len);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_client_with_too_many_unread_pushes_is_cut)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);
    struct conn *conn = connected(rig, &peer);
    int64_t cuts = metric_sum(METRIC_OUTPUT_LIMIT_CUTS);
    static char piece[10000];

    conn->output_class = OUTPUT_PUBSUB;
    rig->limits.output[OUTPUT_NORMAL].hard_bytes = 1;
    rig->limits.output[OUTPUT_PUBSUB].hard_bytes = 200000;
    for (unsigned i = 0; i < 100 && !conn_is_closing(conn); i++) {
        push_add(conn, (struct slice){ piece, sizeof(piece) }, 0);
        (void)push_flush(&rig->loop, UINT64_MAX);
        assert_true(i >= 20 || !conn_is_closing(conn));
    }
    assert_true(conn_is_closing(conn));
    assert_int_equal(cuts + 1, metric_sum(METRIC_OUTPUT_LIMIT_CUTS));
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_client_with_too_many_held_pushes_is_cut)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct conn *conn = connected(rig, &peer);
    int64_t cuts = metric_sum(METRIC_OUTPUT_LIMIT_CUTS);
    static char piece[10000];

    rig->limits.output[OUTPUT_NORMAL].hard_bytes = 100000;
    rig->released = 0;
    for (unsigned i = 0; i < 10; i++) {
        push_add(conn, (struct slice){ piece, sizeof(piece) }, 1);
        (void)push_flush(&rig->loop, UINT64_MAX);
        assert_false(conn_is_closing(conn));
    }
    push_add(conn, slice_lit("x"), 1);
    (void)push_flush(&rig->loop, UINT64_MAX);
    assert_true(conn_is_closing(conn));
    assert_int_equal(cuts + 1, metric_sum(METRIC_OUTPUT_LIMIT_CUTS));
    peer_free(&peer);
    rig_free(rig);
}

/* What was held leaves without a look at the limit: a reply may be late. But
 * nothing keeps those who push from more. */
TEST(a_client_with_too_many_unread_pushes_that_were_held_is_cut)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);
    struct conn *conn = connected(rig, &peer);
    static char piece[10000];
    unsigned pushed = 0;

    conn->output_class = OUTPUT_PUBSUB;
    rig->limits.output[OUTPUT_PUBSUB].hard_bytes = 200000;
    while (pushed < 2000 && !conn_is_closing(conn)) {
        rig->released = pushed;
        pushed++;
        push_add(conn, (struct slice){ piece, sizeof(piece) }, pushed);
        (void)push_flush(&rig->loop, UINT64_MAX);
        rig->released = pushed;
        (void)hold_release(&rig->loop, UINT64_MAX);
    }
    assert_true(conn_is_closing(conn));
    peer_free(&peer);
    rig_free(rig);
}

TEST(much_for_one_or_for_all_is_sent_before_the_flush)
{
    enum { PEERS = 70 };
    struct rig *rig = rig_new();
    struct peer peer[PEERS];
    struct conn *conn[PEERS];
    static char piece[60000];

    for (unsigned i = 0; i < PEERS; i++) {
        peer[i] = peer_new(rig, false);
        conn[i] = connected(rig, &peer[i]);
        push_add(conn[i], (struct slice){ piece, sizeof(piece) }, 0);
        assert_true(rig->loop.pushed_bytes < (4 << 20));
    }
    assert_null(conn[0]->pushed_at); /* 70 x 60000 > 4 MiB: the oldest leaves */
    assert_int_equal(69 * sizeof(piece), rig->loop.pushed_bytes);
    push_add(conn[1], (struct slice){ piece, sizeof(piece) }, 0);
    assert_null(conn[1]->pushed_at); /* it alone has 120000 */
    push_add(conn[0], (struct slice){ piece, sizeof(piece) }, 0);
    assert_int_equal(69 * sizeof(piece), rig->loop.pushed_bytes);
    (void)push_flush(&rig->loop, UINT64_MAX);
    rig_until(rig, peer_has(&peer[0], 2 * sizeof(piece)));
    rig_until(rig, peer_has(&peer[1], 2 * sizeof(piece)));
    rig_until(rig, peer_has(&peer[PEERS - 1], sizeof(piece)));
    for (unsigned i = 0; i < PEERS; i++) {
        peer_free(&peer[i]);
    }
    rig_free(rig);
}

/* No time is left from the start, so a flush does the least that it may. */
TEST(a_flush_that_is_late_leaves_the_rest_for_another)
{
    enum { PEERS = 40, AT_ONCE = 16 };
    struct rig *rig = rig_new();
    struct peer peer[PEERS];
    struct conn *conn[PEERS];

    for (unsigned i = 0; i < PEERS; i++) {
        peer[i] = peer_new(rig, false);
        conn[i] = connected(rig, &peer[i]);
        push_add(conn[i], slice_lit("pushed"), 0);
    }
    assert_false(push_flush(&rig->loop, 0));
    assert_int_equal((PEERS - AT_ONCE) * 6, rig->loop.pushed_bytes);
    rig_until(rig, peer_has(&peer[0], 6));
    rig_until(rig, peer_has(&peer[AT_ONCE - 1], 6));
    assert_false(peer_has(&peer[AT_ONCE], 1));
    /* A reply does not overtake a push, and who has gone hinders nobody. */
    peer_send_text(rig, &peer[AT_ONCE], "A\r\n");
    peer_expect(rig, &peer[AT_ONCE], "pushed+A\r\n");
    conn_close(conn[AT_ONCE + 1]);
    conn_close(conn[PEERS - 1]);
    push_add(conn[0], slice_lit("again"), 0);
    assert_false(push_flush(&rig->loop, 0));
    assert_true(push_flush(&rig->loop, 0));
    assert_int_equal(0, rig->loop.pushed_bytes);
    rig_until(rig, peer_has(&peer[PEERS - 2], 6));
    peer_expect(rig, &peer[0], "pushedagain");
    for (unsigned i = 0; i < PEERS; i++) {
        peer_free(&peer[i]);
    }
    rig_free(rig);
}

TEST(without_memory_for_a_push_its_connection_is_cut)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct conn *conn = connected(rig, &peer);

    mem_fail_at(1);
    push_add(conn, slice_lit("x"), 0);
    assert_true(mem_fail_clear());
    assert_true(conn_is_closing(conn));
    (void)push_flush(&rig->loop, UINT64_MAX);
    rig_until(rig, peer_has(&peer, 1) || peer.ended);
    assert_int_equal(0, peer.got.len);
    peer_free(&peer);
    rig_free(rig);
}
