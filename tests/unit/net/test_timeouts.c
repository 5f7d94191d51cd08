/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who takes too long. The seconds are those that the test counts out, not the
 * clock's: the loop's own timer is stopped.
 */
#include "net/timeouts.h"

#include "rig.h"

static const char HALF[] = "*2\r\n$4\r\nECHO\r\n$100000\r\nxyz";

static struct rig *
rig_without_timer(void)
{
    struct rig *rig = rig_new();

    assert_int_equal(0, uv_timer_stop(&rig->loop.second));
    rig->limits.request_seconds = 3;
    return rig;
}

static void
send_now(struct rig *rig, struct peer *peer, const char *text)
{
    peer_send_text(rig, peer, text);
    rig_settle(rig);
}

static void
seconds(struct rig *rig, int count)
{
    for (int i = 0; i < count; i++) {
        assert_false(conn_is_closing(rig->last));
        timeouts_check(rig->last);
    }
}

static void
expect_cut_at(struct rig *rig, int second)
{
    seconds(rig, second - 1);
    assert_false(conn_is_closing(rig->last));
    seconds(rig, 1);
    assert_true(conn_is_closing(rig->last));
}

/* The second in which it connects does not count, since it is not a whole one.
 */
static struct peer
seen_peer(struct rig *rig, bool small)
{
    struct peer peer = peer_new(rig, small);

    seconds(rig, 1);
    return peer;
}

TEST(the_second_of_the_accept_does_not_count)
{
    struct rig *rig = rig_without_timer();
    struct peer peer = peer_new(rig, false);

    rig->limits.auth_seconds = 1;
    rig->last->trusted = false;
    expect_cut_at(rig, 2);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_request_that_stays_unfinished_is_cut_in_its_time)
{
    struct rig *rig = rig_without_timer();
    struct peer peer = seen_peer(rig, false);
    int64_t cuts = metric_sum(METRIC_REQUEST_TIMEOUTS);

    seconds(rig, 100); /* nothing was begun */
    send_now(rig, &peer, HALF);
    expect_cut_at(rig, 3);
    assert_int_equal(cuts + 1, metric_sum(METRIC_REQUEST_TIMEOUTS));
    peer_free(&peer);
    rig_free(rig);
}

TEST(zero_seconds_are_no_limit)
{
    struct rig *rig = rig_without_timer();
    struct peer peer = seen_peer(rig, false);

    rig->limits.request_seconds = 0;
    send_now(rig, &peer, HALF);
    rig->last->trusted = false;
    seconds(rig, 10000);
    assert_false(conn_is_closing(rig->last));
    peer_free(&peer);
    rig_free(rig);
}

TEST(bytes_of_a_request_give_it_more_time)
{
    struct rig *rig = rig_without_timer();
    struct peer peer = seen_peer(rig, false);
    char bytes[2001];

    rig->limits.request_min_rate = 1000;
    memset(bytes, 'x', 2000);
    bytes[2000] = '\0';
    send_now(rig, &peer, HALF);
    seconds(rig, 2);
    send_now(rig, &peer, bytes);
    expect_cut_at(rig, 3 + 2 - 2);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_request_that_is_executed_ends_its_time)
{
    struct rig *rig = rig_without_timer();
    struct peer peer = seen_peer(rig, false);

    for (int i = 0; i < 10; i++) {
        send_now(rig, &peer, "*2\r\n$4\r\nECHO\r\n$1\r\n");
        seconds(rig, 2);
        send_now(rig, &peer, "x\r\n"); /* and another begins at once */
    }
    send_now(rig, &peer, "*1");
    expect_cut_at(rig, 3);
    peer_free(&peer);
    rig_free(rig);
}

/* Half of an empty line each second, as if requests were begun and ended. */
TEST(bytes_that_execute_nothing_do_not_end_the_time_of_a_request)
{
    struct rig *rig = rig_without_timer();
    struct peer peer = seen_peer(rig, false);

    for (int i = 0; i < 2; i++) {
        send_now(rig, &peer, "\r");
        seconds(rig, 1);
        send_now(rig, &peer, "\n");
        seconds(rig, 5); /* nothing is unfinished here */
    }
    send_now(rig, &peer, "\r");
    expect_cut_at(rig, 1);
    peer_free(&peer);
    rig_free(rig);
}

TEST(no_time_passes_while_the_server_does_not_read)
{
    struct rig *rig = rig_without_timer();
    struct peer peer = seen_peer(rig, false);

    send_now(rig, &peer, "PARK\r\n*1\r\n$4\r\nPI");
    assert_true(conn_is_parked(rig->last));
    seconds(rig, 100);
    rig->opens = true;
    loop_wake(&rig->loop);
    rig_until(rig, rig->last->reading);
    assert_non_null(rig->last->input.partial);
    seconds(rig, 1); /* it was stopped for a part of that second */
    expect_cut_at(rig, 3);
    peer_free(&peer);
    rig_free(rig);
}

TEST(no_time_passes_while_too_much_is_held)
{
    struct rig *rig = rig_without_timer();
    struct peer peer = seen_peer(rig, false);

    rig->limits.output[OUTPUT_NORMAL].hard_bytes = 1000;
    rig->released = 0;
    send_now(rig, &peer, "HOLD 1\r\nFILL 600\r\n");
    assert_true(rig->last->full);
    send_now(rig, &peer, "*1\r\n");
    seconds(rig, 100);
    rig->released = 1;
    loop_wake(&rig->loop);
    rig_until(rig, rig->last->reading && rig->last->input.partial != NULL);
    seconds(rig, 1);
    expect_cut_at(rig, 3);
    peer_free(&peer);
    rig_free(rig);
}

/* ---- before the password ------------------------------------------------- */

TEST(the_password_is_waited_for_whatever_is_sent_instead)
{
    struct rig *rig = rig_without_timer();
    struct peer peer = seen_peer(rig, false);

    rig->limits.auth_seconds = 10;
    rig->last->trusted = false;
    for (int i = 0; i < 9; i++) {
        send_now(rig, &peer, "NOAUTH\r\n");
        seconds(rig, 1);
    }
    send_now(rig, &peer, "NOAUTH\r\n*1\r\n");
    expect_cut_at(rig, 1);
    peer_free(&peer);
    rig_free(rig);
}

TEST(the_password_in_time_ends_the_wait)
{
    struct rig *rig = rig_without_timer();
    struct peer peer = seen_peer(rig, false);

    rig->limits.auth_seconds = 10;
    rig->last->trusted = false;
    seconds(rig, 9);
    rig->last->trusted = true;
    seconds(rig, 100);
    rig->last->trusted = false; /* RESET: it is as new */
    expect_cut_at(rig, 10);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_password_that_the_server_keeps_waiting_is_not_late)
{
    struct rig *rig = rig_without_timer();
    struct peer peer = seen_peer(rig, false);

    rig->limits.auth_seconds = 10;
    rig->last->trusted = false;
    send_now(rig, &peer, "PARK\r\n");
    seconds(rig, 100);
    assert_false(conn_is_closing(rig->last));
    peer_free(&peer);
    rig_free(rig);
}

TEST(little_is_kept_of_what_comes_behind_a_password_that_waits)
{
    struct rig *rig = rig_without_timer();
    struct peer peer = seen_peer(rig, false);
    struct buf text = { 0 };

    rig->last->trusted = false;
    buf_append_slice(&text, slice_lit("PARK\r\n"));
    for (int i = 0; i < 10000; i++) {
        buf_append_slice(&text, slice_lit("PING\r\n"));
    }
    assert_true(send(peer.fd, text.data, text.len, MSG_NOSIGNAL) > 50000);
    rig_until(rig, conn_is_parked(rig->last));
    rig_settle(rig);
    assert_in_range(rig->last->kept.capacity, 1, 1024);
    buf_free(&text);
    peer_free(&peer);
    rig_free(rig);
}

/* ---- idle ---------------------------------------------------------------- */

/* As if it had been silent for that long. */
static void
set_silence(struct rig *rig, uint64_t ms)
{
    uv_update_time(&rig->loop.uv);
    rig->last->active_ms = uv_now(&rig->loop.uv) - ms;
}

TEST(empty_lines_are_no_sign_of_life)
{
    struct rig *rig = rig_without_timer();
    struct peer peer = seen_peer(rig, false);

    rig->limits.idle_seconds = 60;
    set_silence(rig, 60000);
    send_now(rig, &peer, "A\r\n");
    seconds(rig, 1);
    assert_false(conn_is_closing(rig->last)); /* a command is one */
    set_silence(rig, 60000);
    send_now(rig, &peer, "\r\n*0\r\n\n*-1\r\n");
    seconds(rig, 1);
    assert_true(conn_is_closing(rig->last));
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_client_that_sends_a_long_request_is_not_idle)
{
    struct rig *rig = rig_without_timer();
    struct peer peer = seen_peer(rig, false);

    rig->limits.idle_seconds = 60;
    send_now(rig, &peer, HALF);
    set_silence(rig, 60000);
    seconds(rig, 2);
    assert_false(conn_is_closing(rig->last));
    expect_cut_at(rig, 1); /* but its request takes too long */
    peer_free(&peer);
    rig_free(rig);
}
