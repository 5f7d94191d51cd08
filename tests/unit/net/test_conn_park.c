/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections whose command waits for something that is not theirs: called
 * again when the loop is woken or at a tick, and not before; and all the ways
 * to end meanwhile.
 */
#include "net/conn.h"

#include "net/timeouts.h"
#include "rig.h"

#include <sys/socket.h>

/* No tick for as long as a test takes: only wake-ups count. */
static void
stop_tick(struct rig *rig)
{
    assert_int_equal(0, uv_timer_stop(&rig->loop.tick));
    assert_int_equal(0, uv_timer_start(&rig->loop.tick, rig->loop.tick.timer_cb,
                                       1000000, 0));
}

static struct peer
parked_peer(struct rig *rig, const char *text)
{
    struct peer peer = peer_new(rig, false);

    peer_send_text(rig, &peer, text);
    rig_until(rig, conn_is_parked(rig->last));
    return peer;
}

TEST(a_parked_command_is_called_again_when_the_loop_is_woken)
{
    struct rig *rig = rig_new();
    int64_t blocked = metric_sum(METRIC_BLOCKED_CLIENTS);
    struct peer peer = parked_peer(rig, "A\r\nPARK x\r\nB\r\n");
    struct fake *fake = fake_of(rig->last);

    stop_tick(rig);
    assert_int_equal(blocked + 1, metric_sum(METRIC_BLOCKED_CLIENTS));
    assert_false(rig->last->reading);
    peer_expect(rig, &peer, "+A\r\n"); /* did not wait for those behind it */
    assert_int_equal(2, fake->calls);
    loop_wake(&rig->loop); /* in vain */
    rig_until(rig, fake->calls == 3 && conn_is_parked(rig->last));
    rig_settle(rig);
    assert_int_equal(3, fake->calls);
    rig->opens = true;
    rig_settle(rig);
    assert_int_equal(3, fake->calls);
    loop_wake(&rig->loop);
    peer_expect(rig, &peer, "+PARK|x\r\n+B\r\n");
    assert_int_equal(5, fake->calls);
    assert_int_equal(3, fake->executed);
    assert_int_equal(blocked, metric_sum(METRIC_BLOCKED_CLIENTS));
    assert_true(rig->last->reading);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_parked_command_is_called_again_at_a_tick)
{
    struct rig *rig = rig_new();
    struct peer peer = parked_peer(rig, "PARK x\r\n");
    uint64_t start_ms = uv_now(&rig->loop.uv);

    rig_until(rig, fake_of(rig->last)->calls == 4);
    assert_true(uv_now(&rig->loop.uv) - start_ms >= 2 * LOOP_TICK_MS);
    rig->opens = true;
    peer_expect(rig, &peer, "+PARK|x\r\n");
    /* And nobody ticks when nobody waits. */
    rig_until(rig, !uv_is_active((const uv_handle_t *)&rig->loop.tick));
    peer_free(&peer);
    rig_free(rig);
}

/* Both ways into the parser: a command in pieces is kept by the reader. */
TEST(a_command_in_pieces_parks_and_loses_nothing)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct buf text = { 0 };

    write_command(&text, "PARK x");
    write_command(&text, "B");
    for (size_t cut = 1; cut < text.len; cut++) {
        rig->opens = false;
        peer_send(rig, &peer, (struct slice){ text.data, cut });
        rig_settle(rig);
        peer_send(rig, &peer,
                  (struct slice){ text.data + cut, text.len - cut });
        rig_until(rig, conn_is_parked(rig->last));
        rig->opens = true;
        loop_wake(&rig->loop);
        peer_expect(rig, &peer, "+PARK|x\r\n+B\r\n");
        assert_int_equal(0, rig->last->input_bytes);
    }
    buf_free(&text);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_parked_connection_leaves_the_loop_to_others)
{
    struct rig *rig = rig_new();
    struct peer parked = parked_peer(rig, "PARK x\r\n");
    struct peer quick = peer_new(rig, false);

    peer_send_text(rig, &quick, "A\r\n");
    peer_expect(rig, &quick, "+A\r\n");
    peer_free(&parked);
    peer_free(&quick);
    rig_free(rig);
}

TEST(a_parked_connection_is_not_idle)
{
    struct rig *rig = rig_new();
    struct peer peer = parked_peer(rig, "PARK x\r\n");

    rig->limits.idle_seconds = 1;
    rig->last->active_ms = 0;
    timeouts_check(rig->last);
    assert_false(conn_is_closing(rig->last));
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_parked_connection_whose_replies_are_taken_stays_parked)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);

    rig->limits.output[OUTPUT_NORMAL].soft_bytes = 1000;
    peer_send_text(rig, &peer, "FILL 100000\r\nPARK x\r\n");
    rig_until(rig, rig->last->full || conn_is_parked(rig->last));
    rig_until(rig, peer_has(&peer, 100000));
    rig_until(rig, conn_is_parked(rig->last) && rig->last->outbox == NULL);
    peer.got.len = 0;
    rig->opens = true;
    loop_wake(&rig->loop);
    peer_expect(rig, &peer, "+PARK|x\r\n");
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_connection_may_be_parked_while_its_replies_are_held)
{
    struct rig *rig = rig_new();
    struct peer peer;

    rig->released = 0;
    peer = parked_peer(rig, "HOLD 10\r\nPARK x\r\nB\r\n");
    stop_tick(rig);
    rig_settle(rig);
    assert_true(rig->last->held_bytes > 0);
    atomic_store(&rig->released, 10);
    loop_wake(&rig->loop);
    peer_expect(rig, &peer, "+HOLD|10\r\n");
    rig_until(rig, conn_is_parked(rig->last));
    stop_tick(rig);
    rig->opens = true;
    loop_wake(&rig->loop);
    peer_expect(rig, &peer, "+PARK|x\r\n+B\r\n");
    peer_free(&peer);
    rig_free(rig);
}

/* ---- ends ---------------------------------------------------------------- */

TEST(parked_connections_may_be_closed_in_any_order)
{
    /* The newest is at the head of the list. */
    static const int orders[][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 0, 2 },
                                     { 1, 2, 0 }, { 0, 2, 1 }, { 2, 0, 1 } };

    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        struct rig *rig = rig_new();
        struct peer peer[3];
        uint64_t id[3];

        for (int k = 0; k < 3; k++) {
            peer[k] = parked_peer(rig, "PARK x\r\n");
            id[k] = conn_id(rig->last);
        }
        for (unsigned k = 0; k < 3; k++) {
            assert_true(serve_kill(&rig->loop, id[orders[i][k]]));
            rig_until(rig, rig->closed == k + 1);
            assert_true(peer_is_cut(&peer[orders[i][k]]));
        }
        assert_null(rig->loop.parked);
        for (int k = 0; k < 3; k++) {
            peer_free(&peer[k]);
        }
        rig_free(rig);
    }
}

/* Both go on in one turn, and whichever comes first kills the other. */
TEST(a_parked_connection_may_be_closed_by_another_parked_one)
{
    struct rig *rig = rig_new();

    for (unsigned round = 0; round < 2; round++) {
        struct peer a, b;
        struct conn *conn_a;

        rig->opens = false;
        a = parked_peer(rig, round == 0 ? "PARK x\r\nKILL\r\n" : "PARK x\r\n");
        conn_a = rig->last;
        b = parked_peer(rig, round == 0 ? "PARK x\r\n" : "PARK x\r\nKILL\r\n");
        rig->victim = round == 0 ? rig->last : conn_a;
        stop_tick(rig);
        rig->opens = true;
        loop_wake(&rig->loop);
        rig_until(rig, peer_is_cut(round == 0 ? &b : &a));
        peer_free(&a);
        peer_free(&b);
        rig_until(rig, rig->closed == 2 * round + 2);
    }
    rig_free(rig);
}

static bool
die_and_park(struct fake *fake, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    conn_close(&fake->conn);
    conn_park(&fake->conn, CONN_FOR_EVENT, 0);
    return true;
}

TEST(a_connection_that_closed_is_not_parked)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);

    rig->takes = die_and_park;
    peer_send_text(rig, &peer, "A\r\n");
    rig_until(rig, rig->closed == 1);
    assert_null(rig->loop.parked);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_loop_may_stop_while_connections_are_parked)
{
    struct rig *rig = rig_new();
    struct peer peer[3];

    for (int i = 0; i < 3; i++) {
        peer[i] = parked_peer(rig, "PARK x\r\n");
    }
    rig_free(rig);
    for (int i = 0; i < 3; i++) {
        assert_true(peer_is_cut(&peer[i]));
        peer_free(&peer[i]);
    }
}

/* ---- room ---------------------------------------------------------------- */

TEST(a_client_parked_for_room_is_called_when_there_is_some_and_once_a_second)
{
    struct rig *rig = rig_new();
    struct peer peer = parked_peer(rig, "ROOM x\r\nB\r\n");
    struct fake *fake = fake_of(rig->last);
    struct peer other;

    stop_tick(rig);
    assert_int_equal(1, fake->calls);
    for (int i = 0; i < 3; i++) {
        rig->loop.tick.timer_cb(&rig->loop.tick);
        loop_wake(&rig->loop);
        rig_settle(rig);
    }
    assert_int_equal(1, fake->calls); /* all in vain */
    rig->loop.second.timer_cb(&rig->loop.second);
    rig_settle(rig);
    assert_int_equal(2, fake->calls);

    rig->has_room = true;
    loop_wake(&rig->loop); /* not forgotten that it waits */
    rig_until(rig, fake->calls == 3);
    stop_tick(rig);
    rig->loop.tick.timer_cb(&rig->loop.tick);
    rig_until(rig, fake->calls == 4);
    rig->opens = true;
    loop_wake(&rig->loop);
    peer_expect(rig, &peer, "+ROOM|x\r\n+B\r\n");
    assert_null(rig->loop.parked_for_room);

    /* Who waits for something else does not wait for room. */
    rig->opens = rig->has_room = false;
    other = parked_peer(rig, "PARK y\r\n");
    fake = fake_of(rig->last);
    peer_send_text(rig, &peer, "ROOM x\r\n");
    rig_until(rig, rig->loop.parked_for_room != NULL);
    loop_wake(&rig->loop);
    rig_until(rig, fake->calls == 2 && conn_is_parked(rig->last));
    rig->opens = true;
    loop_wake(&rig->loop);
    peer_expect(rig, &other, "+PARK|y\r\n");
    assert_non_null(rig->loop.parked_for_room);
    peer_free(&peer);
    peer_free(&other);
    rig_free(rig);
}

/* ---- what is behind ------------------------------------------------------ */

/* It may be much, and there may be many of them: a call in vain does not look
 * at it. */
TEST(calling_a_parked_command_does_not_parse_the_commands_behind_it)
{
    enum { BEHIND = 100 };
    static const char *const words[] = { "PARK x", "ROOM x" };

    for (size_t w = 0; w < sizeof(words) / sizeof(*words); w++) {
        struct rig *rig = rig_new();
        struct peer peer = peer_new(rig, false);
        struct buf text = { 0 };
        struct buf want = { 0 };
        struct fake *fake = fake_of(rig->last);

        for (int i = 0; i < BEHIND; i++) {
            buf_printf(&want, "+A|%d\r\n", i);
            buf_printf(&text, "*2\r\n$1\r\nA\r\n$%d\r\n%d\r\n",
                       i < 10    ? 1
                       : i < 100 ? 2
                                 : 3,
                       i);
            if (i % 50 == 20) {
                write_command(&text, words[w]);
                buf_printf(&want, "+%.4s|x\r\n", words[w]);
            }
        }
        buf_append(&want, "", 1);
        peer_send(rig, &peer, buf_slice(&text));
        rig->has_room = true;
        for (uint64_t calls = 0; calls < 5; calls++) {
            rig_until(rig, conn_is_parked(rig->last));
            stop_tick(rig);
            assert_int_equal(calls == 0 ? BEHIND + 2 : 1,
                             rig->loop.batch.count);
            assert_int_equal(text.len > rig->last->kept.len, 1);
            assert_int_equal(21 + 1 + calls, fake->calls);
            loop_wake(&rig->loop);
            rig_until(rig, !conn_is_parked(rig->last));
            rig_until(rig, conn_is_parked(rig->last));
        }
        rig->opens = true;
        loop_wake(&rig->loop);
        peer_expect(rig, &peer, want.data);
        assert_int_equal(0, rig->last->input_bytes);
        buf_free(&text);
        buf_free(&want);
        peer_free(&peer);
        rig_free(rig);
    }
}

/* ---- clients that have gone ---------------------------------------------- */

/* What the loop does once a second, a while later. */
static void
look_again(struct rig *rig, uint64_t ms_later)
{
    struct conn *conn = rig->last;

    if (conn->ended_ms != 0) {
        conn->ended_ms -= ms_later;
    }
    timeouts_check(conn);
}

TEST(a_peer_that_is_gone_does_not_keep_its_place_while_it_waits)
{
    static const char *const texts[] = { "PARK x\r\n", "ROOM x\r\n",
                                         "HOLD 10\r\nPARK x\r\n" };

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct rig *rig = rig_new();
        struct peer peer;

        rig->released = 0;
        peer = parked_peer(rig, texts[i]);
        look_again(rig, 0);
        assert_false(conn_is_closing(rig->last));
        peer_free(&peer);
        look_again(rig, 0);
        rig_until(rig, rig->closed == 1);
        assert_int_equal(0, rig->loop.open_conns);
        rig_free(rig);
    }
}

/* As Redis gives up a blocked client. What is answered at once is answered. */
TEST(a_handler_does_not_wait_long_for_who_has_ended)
{
    struct rig *rig = rig_new();
    struct peer peer = parked_peer(rig, "PARK x\r\n");

    assert_int_equal(0, shutdown(peer.fd, SHUT_WR));
    look_again(rig, 0);
    assert_false(conn_is_closing(rig->last));
    rig->opens = true;
    peer_expect(rig, &peer, "+PARK|x\r\n");
    rig_until(rig, rig->closed == 1); /* read at last */
    peer_free(&peer);

    rig->opens = false;
    peer = parked_peer(rig, "PARK x\r\n");
    assert_int_equal(0, shutdown(peer.fd, SHUT_WR));
    look_again(rig, 0);
    assert_false(conn_is_closing(rig->last));
    look_again(rig, 1000);
    assert_true(conn_is_closing(rig->last));
    rig_until(rig, rig->closed == 2);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_client_that_ended_its_half_may_wait_for_room_for_a_minute)
{
    struct rig *rig = rig_new();
    struct peer peer = parked_peer(rig, "ROOM x\r\nROOM y\r\n");

    assert_int_equal(0, shutdown(peer.fd, SHUT_WR));
    for (int i = 0; i < 50; i++) {
        look_again(rig, 1000);
        assert_false(conn_is_closing(rig->last));
    }
    rig->opens = rig->has_room = true;
    loop_wake(&rig->loop);
    peer_expect(rig, &peer, "+ROOM|x\r\n+ROOM|y\r\n");
    rig_until(rig, rig->closed == 1);
    peer_free(&peer);

    rig->opens = rig->has_room = false;
    peer = parked_peer(rig, "ROOM x\r\n");
    assert_int_equal(0, shutdown(peer.fd, SHUT_WR));
    look_again(rig, 0);
    look_again(rig, 61 * 1000);
    assert_true(conn_is_closing(rig->last));
    rig_until(rig, rig->closed == 2);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_peer_that_left_while_parked_is_found_out)
{
    struct rig *rig = rig_new();
    struct peer peer = parked_peer(rig, "PARK x\r\n");

    peer_free(&peer);
    rig_settle(rig);
    assert_int_equal(0, rig->closed); /* it is not read from */
    rig->opens = true;
    loop_wake(&rig->loop);
    rig_until(rig, rig->closed == 1);
    rig_free(rig);
}

TEST(a_client_parked_for_a_time_is_not_called_before)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    uint64_t calls;
    uint64_t began;

    peer_send_text(rig, &peer, "PARK\r\n");
    rig_until(rig, conn_is_parked(rig->last));
    calls = fake_of(rig->last)->calls;
    began = uv_now(&rig->loop.uv);
    rig->last->parked_until = (uint32_t)began + 200;
    rig->opens = true;
    loop_wake(&rig->loop);
    rig_settle(rig);
    assert_int_equal(calls, fake_of(rig->last)->calls);
    peer_expect(rig, &peer, "+PARK\r\n");
    assert_true(uv_now(&rig->loop.uv) - began >= 200);
    assert_int_equal(calls + 1, fake_of(rig->last)->calls);
    assert_int_equal(0, rig->last->parked_until);
    peer_free(&peer);
    rig_free(rig);
}
