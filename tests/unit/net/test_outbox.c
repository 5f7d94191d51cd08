/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bytes that a socket does not take: their order, their count, their limits,
 * and what becomes of them when memory or the peer is gone. Sends without a
 * request behind them, as messages from elsewhere will be.
 */
#include "net/outbox.h"

#include "rig.h"

/* Sends the next bytes of the client's pattern. */
static void
send_pattern(struct rig *rig, struct buf *out, size_t bytes)
{
    fake_fill(fake_of(rig->last), out, bytes);
    outbox_send(rig->last, out);
    assert_int_equal(0, out->len);
}

static void
expect_pattern(struct rig *rig, struct peer *peer, size_t bytes)
{
    rig_until(rig, peer_has(peer, bytes) || peer->ended);
    assert_int_equal(bytes, peer->got.len);
    for (size_t i = 0; i < bytes; i++) {
        if (peer->got.data[i] != pattern_at(i)) {
            fail_msg("byte %zu of %zu is wrong", i, bytes);
        }
    }
}

TEST(output_that_fits_the_socket_needs_no_outbox)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct buf out = { 0 };
    int64_t writes = metric_sum(METRIC_WRITES);
    int64_t bytes = metric_sum(METRIC_NET_OUTPUT);

    send_pattern(rig, &out, 1000);
    assert_null(rig->last->outbox);
    assert_int_equal(0, rig->last->output_bytes);
    assert_int_equal(writes + 1, metric_sum(METRIC_WRITES));
    assert_int_equal(bytes + 1000, metric_sum(METRIC_NET_OUTPUT));
    expect_pattern(rig, &peer, 1000);
    buf_free(&out);
    peer_free(&peer);
    rig_free(rig);
}

TEST(many_sends_arrive_in_order_however_the_peer_reads)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);
    struct buf out = { 0 };
    uint64_t seed = test_seed();
    uint64_t x;
    size_t total = 0;
    int64_t bytes = metric_sum(METRIC_NET_OUTPUT);

    for (int i = 0; i < 2000; i++) {
        size_t n;

        x = test_random(&seed);
        n = 1 + x % 5000;
        send_pattern(rig, &out, n);
        total += n;
        if (x >> 40 & 1) {
            rig_turn(rig);
        }
        if (x >> 41 & 1) {
            (void)peer_take(&peer);
        }
    }
    expect_pattern(rig, &peer, total);
    rig_settle(rig);
    assert_null(rig->last->outbox);
    assert_int_equal(bytes + (int64_t)total, metric_sum(METRIC_NET_OUTPUT));
    buf_free(&out);
    peer_free(&peer);
    rig_free(rig);
}

TEST(unsent_bytes_are_counted_until_they_are_gone)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);
    struct buf out = { 0 };
    int64_t before = metric_sum(METRIC_CLIENT_OUTPUT_BYTES);

    send_pattern(rig, &out, 500000);
    assert_in_range(rig->last->output_bytes, 400000, 500000);
    send_pattern(rig, &out, 100000);
    assert_in_range(rig->last->output_bytes, 500000, 600000);
    assert_int_equal(rig->last->output_bytes,
                     metric_sum(METRIC_CLIENT_OUTPUT_BYTES) - before);
    expect_pattern(rig, &peer, 600000);
    rig_settle(rig);
    assert_int_equal(0, rig->last->output_bytes);
    assert_int_equal(before, metric_sum(METRIC_CLIENT_OUTPUT_BYTES));
    buf_free(&out);
    peer_free(&peer);
    rig_free(rig);
}

TEST(the_soft_limit_is_over_above_it_only)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);
    struct buf out = { 0 };

    send_pattern(rig, &out, 300000); /* 0: there is none */
    assert_false(outbox_is_overdue(rig->last, UINT64_MAX));
    rig->limits.output[OUTPUT_NORMAL].soft_bytes = rig->last->output_bytes;
    assert_false(outbox_is_overdue(rig->last, UINT64_MAX));
    send_pattern(rig, &out, 1);
    assert_false(rig->last->full); /* its commands go on */
    rig->limits.output[OUTPUT_NORMAL].soft_seconds = 2;
    assert_false(outbox_is_overdue(rig->last, uv_now(&rig->loop.uv) + 2000));
    assert_true(outbox_is_overdue(rig->last, uv_now(&rig->loop.uv) + 2001));
    expect_pattern(rig, &peer, 300001);
    rig_settle(rig);
    buf_free(&out);
    peer_free(&peer);
    rig_free(rig);
}

TEST(the_hard_limit_cuts_above_it_only)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);
    struct buf out = { 0 };

    send_pattern(rig, &out, 300000);
    rig->limits.output[OUTPUT_NORMAL].hard_bytes = rig->last->output_bytes + 1;
    send_pattern(rig, &out, 1);
    assert_false(conn_is_closing(rig->last));
    send_pattern(rig, &out, 1);
    assert_true(conn_is_closing(rig->last));
    send_pattern(rig, &out, 10); /* nobody is there: dropped */
    rig_until(rig, peer_is_cut(&peer));
    buf_free(&out);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_peer_that_is_gone_ends_the_connection)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);
    struct buf out = { 0 };

    send_pattern(rig, &out, 300000); /* a write is under way */
    peer_free(&peer);
    rig_until(rig, rig->closed == 1);
    peer = peer_new(rig, true);
    peer_free(&peer);
    send_pattern(rig, &out, 10); /* found out by the direct write */
    assert_true(conn_is_closing(rig->last));
    rig_until(rig, rig->closed == 2);
    buf_free(&out);
    rig_free(rig);
}

TEST(without_memory_for_what_is_unsent_the_connection_ends)
{
    bool fired = true;

    for (unsigned nth = 1; fired; nth++) {
        struct rig *rig = rig_new();
        struct peer peer = peer_new(rig, true);
        struct buf first = { 0 };
        struct buf second = { 0 };

        fake_fill(fake_of(rig->last), &first, 100000);
        fake_fill(fake_of(rig->last), &second, 100000);
        mem_fail_at(nth);
        outbox_send(rig->last, &first);
        outbox_send(rig->last, &second);
        fired = mem_fail_clear();
        assert_int_equal(fired, conn_is_closing(rig->last));
        if (fired) {
            rig_until(rig, rig->closed == 1);
        } else {
            expect_pattern(rig, &peer, 200000);
        }
        buf_free(&first);
        buf_free(&second);
        peer_free(&peer);
        rig_free(rig);
        assert_true(nth < 100);
    }
}
