/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memory that connections keep is counted, and subtracted when it is freed.
 * Every test with a rig checks at its end that nothing is left.
 */
#include "net/usage.h"

#include "rig.h"

static uint64_t
taken(const struct rig *rig)
{
    return rig->last->usage.bytes;
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
    rig_until(rig, conn_is_parked(rig->last) && rig->last->kept.len > 1000);
    assert_true(taken(rig) > 500000 + 1000);
    assert_int_equal(taken(rig), rig->usage.total);
    buf_free(&text);
    peer_free(&peer);
    rig_free(rig);
}

TEST(bytes_that_the_owner_reports_count)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);

    conn_set_owned(rig->last, 1000);
    assert_int_equal(1000, rig->usage.total);
    conn_set_owned(rig->last, 300);
    assert_int_equal(300, rig->usage.total);
    assert_int_equal(300, taken(rig));
    peer_free(&peer);
    rig_free(rig);
}
