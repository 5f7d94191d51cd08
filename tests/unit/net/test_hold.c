/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replies that wait for a position: nothing goes out before it is released,
 * everything in order and soon after, whoever moves the position and whenever;
 * what is held counts like unsent bytes, but is nobody's fault.
 */
#include "net/hold.h"

#include "net/outbox.h"
#include "net/pending.h"
#include "net/timeouts.h"
#include "rig.h"

/* Moves the position as the journal does. */
static void
release(struct rig *rig, uint64_t position)
{
    atomic_store(&rig->released, position);
    loop_wake(&rig->loop);
}

static void
give_up(struct rig *rig)
{
    atomic_store(&rig->gives_up, true);
    loop_wake(&rig->loop);
}

/* A client that has sent this, which was executed, and nothing is released. */
static struct peer
holding_peer(struct rig *rig, bool small, const char *text)
{
    struct peer peer = peer_new(rig, small);

    rig->released = 0;
    peer_send_text(rig, &peer, text);
    rig_until(rig, rig->last->held_bytes > 0);
    rig_settle(rig);
    return peer;
}

static void
expect_nothing(struct rig *rig, struct peer *peer)
{
    rig_settle(rig);
    assert_false(peer_has(peer, 1));
    assert_false(peer->ended);
}

static void
expect_pattern(struct rig *rig, struct peer *peer, size_t from, size_t bytes)
{
    rig_until(rig, peer_has(peer, from + bytes) || peer->ended);
    assert_int_equal(from + bytes, peer->got.len);
    for (size_t i = 0; i < bytes; i++) {
        if (peer->got.data[from + i] != pattern_at(i)) {
            fail_msg("byte %zu of %zu is wrong", i, bytes);
        }
    }
}

/* ---- what waits, and for how long ---------------------------------------- */

TEST(replies_wait_until_their_position_is_released)
{
    struct rig *rig = rig_new();
    int64_t held = metric_sum(METRIC_HELD_CLIENTS);
    struct peer peer = holding_peer(rig, false, "HOLD 10\r\n");

    assert_int_equal(held + 1, metric_sum(METRIC_HELD_CLIENTS));
    expect_nothing(rig, &peer);
    release(rig, 9);
    expect_nothing(rig, &peer);
    assert_true(rig->loop.waiting);
    release(rig, 10);
    peer_expect(rig, &peer, "+HOLD|10\r\n");
    assert_int_equal(held, metric_sum(METRIC_HELD_CLIENTS));
    assert_false(rig->loop.waiting); /* others need not wake it again */
    peer_free(&peer);
    rig_free(rig);
}

TEST(replies_released_already_are_sent_at_once)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);

    rig->released = 10;
    peer_send_text(rig, &peer, "A\r\nHOLD 10\r\nB\r\n");
    peer_expect(rig, &peer, "+A\r\n+HOLD|10\r\n+B\r\n");
    assert_null(rig->last->hold);
    assert_false(rig->loop.waiting);
    peer_free(&peer);
    rig_free(rig);
}

/* The positions of an older log are not waited for in one that ends earlier. */
TEST(held_output_waits_for_the_end_of_a_new_log_at_most)
{
    struct rig *rig = rig_new();
    struct peer peer = holding_peer(rig, false, "HOLD 10\r\n");

    peer_send_text(rig, &peer, "HOLD 20\r\n");
    rig->log_end = 5;
    release(rig, 4);
    expect_nothing(rig, &peer);
    release(rig, 5);
    peer_expect(rig, &peer, "+HOLD|10\r\n+HOLD|20\r\n");
    peer_send_text(rig, &peer, "X\r\n"); /* at once: it wrote nothing since */
    peer_expect(rig, &peer, "+X\r\n");
    rig->log_end = 30;
    peer_send_text(rig, &peer, "HOLD 30\r\n");
    expect_nothing(rig, &peer);
    rig->log_end = 6; /* before anything is released */
    peer_send_text(rig, &peer, "X\r\n");
    expect_nothing(rig, &peer);
    release(rig, 6);
    peer_expect(rig, &peer, "+HOLD|30\r\n+X\r\n");
    peer_free(&peer);
    rig_free(rig);
}

TEST(to_send_nothing_is_not_to_wait)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct buf out = { 0 };

    rig->released = 0;
    rig->last->hold_until = 10;
    hold_send(rig->last, &out);
    rig->gives_up = true;
    hold_send(rig->last, &out);
    assert_int_equal(0, rig->last->held_bytes);
    assert_null(rig->loop.held);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_loop_whose_environment_names_no_position_holds_nothing)
{
    struct rig *rig = rig_new();
    struct peer peer;

    loop_stop(&rig->loop);
    loop_run(&rig->loop);
    loop_fini(&rig->loop);
    rig->env.released = NULL;
    rig->env.gives_up = NULL;
    loop_init(&rig->loop, 0, &rig->env, rig);
    peer = peer_new(rig, false);
    rig->released = 0;
    rig->gives_up = true;
    peer_send_text(rig, &peer, "HOLD 18446744073709551615\r\n");
    peer_expect(rig, &peer, "+HOLD|18446744073709551615\r\n");
    peer_free(&peer);
    rig_free(rig);
}

TEST(replies_behind_held_output_wait_behind_it)
{
    struct rig *rig = rig_new();
    struct peer peer = holding_peer(rig, false, "HOLD 10\r\n");

    peer_send_text(rig, &peer, "A\r\n");
    rig_settle(rig);
    peer_send_text(rig, &peer, "B\r\n*x\r\n"); /* and ends with an error */
    expect_nothing(rig, &peer);
    release(rig, 10);
    rig_until(rig, peer_is_cut(&peer));
    assert_true(
        slice_equal(slice_lit("+HOLD|10\r\n+A\r\n+B\r\n-PROTO_MULTIBULK\r\n"),
                    buf_slice(&peer.got)));
    peer_free(&peer);
    rig_free(rig);
}

TEST(the_first_replies_do_not_wait_for_the_position_of_later_ones)
{
    struct rig *rig = rig_new();
    struct peer peer = holding_peer(rig, false, "HOLD 10\r\n");

    peer_send_text(rig, &peer, "HOLD 20\r\n");
    rig_settle(rig);
    peer_send_text(rig, &peer, "HOLD 30\r\n");
    rig_settle(rig);
    release(rig, 15);
    peer_expect(rig, &peer, "+HOLD|10\r\n");
    peer_send_text(rig, &peer, "HOLD 40\r\n");
    rig_settle(rig);
    release(rig, 30); /* with what had gathered behind the first */
    peer_expect(rig, &peer, "+HOLD|20\r\n+HOLD|30\r\n");
    release(rig, 39);
    expect_nothing(rig, &peer);
    release(rig, 40);
    peer_expect(rig, &peer, "+HOLD|40\r\n");
    peer_free(&peer);
    rig_free(rig);
}

/* It has always something in flight, and the position is always behind. */
TEST(a_client_that_never_stops_has_its_replies_two_releases_later)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    size_t lines = 0;

    rig->released = 0;
    for (unsigned n = 1; n <= 300; n++) {
        char line[32];

        (void)snprintf(line, sizeof(line), "HOLD %u\r\n", n * 10);
        peer_send_text(rig, &peer, line);
        rig_until(rig, fake_of(rig->last)->executed == n);
        if (n % 3 == 0) { /* three requests go into one release */
            release(rig, n * 10 - 20);
            rig_settle(rig);
        }
        (void)peer_has(&peer, 0);
        for (; peer.got.len > 0; lines++) {
            buf_consume(&peer.got, strcspn(peer.got.data, "\n") + 1);
        }
        assert_true(lines + 8 >= n);
        assert_true(lines * 10 <= rig->released);
    }
    peer_free(&peer);
    rig_free(rig);
}

TEST(two_segments_that_are_both_released_are_one_write)
{
    struct rig *rig = rig_new();
    struct peer peer = holding_peer(rig, false, "HOLD 10\r\n");
    int64_t writes;

    peer_send_text(rig, &peer, "HOLD 20\r\n");
    rig_settle(rig);
    writes = metric_sum(METRIC_WRITES);
    release(rig, 20);
    peer_expect(rig, &peer, "+HOLD|10\r\n+HOLD|20\r\n");
    assert_int_equal(writes + 1, metric_sum(METRIC_WRITES));
    peer_free(&peer);
    rig_free(rig);
}

/* Each byte at most once, in order, and never before its time. */
TEST(random_positions_and_releases_keep_every_promise)
{
    enum { PEERS = 5, STEPS = 3000 };
    struct rig *rig = rig_new();
    struct peer peer[PEERS];
    uint64_t last[PEERS] = { 0 };
    uint64_t seen[PEERS] = { 0 };
    uint64_t seed = test_seed();
    uint64_t x;
    uint64_t top = 0;

    rig->released = 0;
    for (int i = 0; i < PEERS; i++) {
        peer[i] = peer_new(rig, false);
    }
    for (int step = 0; step < STEPS; step++) {
        int i;
        char line[32];

        x = test_random(&seed);
        i = (int)(x % PEERS);
        top += x >> 8 & 3;
        if ((x >> 16 & 3) != 0 && top > last[i]) {
            (void)snprintf(line, sizeof(line), "HOLD %llu\r\n",
                           (unsigned long long)top);
            peer_send_text(rig, &peer[i], line);
            last[i] = top;
        } else {
            atomic_store(&rig->released,
                         rig->released + (top - rig->released) / 2);
            if ((x >> 20 & 1) != 0) { /* others come later, by chance */
                loop_wake(&rig->loop);
            }
        }
        if (step == STEPS - 1) {
            release(rig, top);
            rig_settle(rig);
        } else if ((x >> 24 & 1) != 0) {
            rig_turn(rig);
        }
        for (i = 0; i < PEERS; i++) {
            (void)peer_has(&peer[i], 0);
            while (peer[i].got.len > 0) {
                char *end = memchr(peer[i].got.data, '\r', peer[i].got.len);
                uint64_t n = 0;

                assert_non_null(end);
                assert_true(slice_to_u64(
                    (struct slice){ peer[i].got.data + 6,
                                    (size_t)(end - peer[i].got.data) - 6 },
                    &n));
                assert_true(n > seen[i] && n <= rig->released);
                seen[i] = n;
                buf_consume(&peer[i].got, (size_t)(end - peer[i].got.data) + 2);
            }
        }
    }
    for (int i = 0; i < PEERS; i++) {
        assert_int_equal(last[i], seen[i]);
        peer_free(&peer[i]);
    }
    rig_free(rig);
}

struct mover {
    struct rig *rig;
    _Atomic uint64_t appended; /* 0: the end */
};

/* Releases what was appended as soon as it can. */
static void
move_released(void *arg)
{
    struct mover *mover = arg;
    uint64_t appended;

    while ((appended = atomic_load(&mover->appended)) != 0) {
        if (appended != mover->rig->released) {
            release(mover->rig, appended);
        }
    }
}

/* The other side stores and looks just when this one does: each has to see the
 * other, or the reply would wait until the next one comes. */
TEST(a_reply_released_while_it_becomes_held_is_sent)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct mover mover = { .rig = rig, .appended = 1 };
    struct buf out = { 0 };
    uv_thread_t thread;
    uint64_t seed = test_seed();
    uint64_t x;

    rig->released = 1;
    assert_int_equal(0, uv_thread_create(&thread, move_released, &mover));
    for (uint64_t n = 2; n < test_times(30000); n++) {
        x = test_random(&seed);
        buf_append(&out, "x", 1);
        rig->last->hold_until = n;
        atomic_store(&mover.appended, n);
        for (uint64_t wait = x % 64; wait > 0; wait--) {
            atomic_signal_fence(memory_order_seq_cst);
        }
        hold_send(rig->last, &out);
        rig_until(rig, rig->last->held_bytes == 0);
        pending_flush(&rig->loop);
        assert_true(peer_has(&peer, 1));
        peer.got.len = 0;
    }
    atomic_store(&mover.appended, 0);
    assert_int_equal(0, uv_thread_join(&thread));
    buf_free(&out);
    peer_free(&peer);
    rig_free(rig);
}

/* ---- limits -------------------------------------------------------------- */

TEST(held_bytes_are_counted_as_unsent)
{
    struct rig *rig = rig_new();
    int64_t before = metric_sum(METRIC_CLIENT_OUTPUT_BYTES);
    struct peer peer = holding_peer(rig, false, "HOLD 1\r\n");

    assert_int_equal(9, rig->last->output_bytes);
    peer_send_text(rig, &peer, "HOLD 2\r\nFILL 1000\r\n");
    rig_until(rig, rig->last->output_bytes == 1018);
    assert_int_equal(before + 1018, metric_sum(METRIC_CLIENT_OUTPUT_BYTES));
    release(rig, 1);
    rig_until(rig, rig->last->output_bytes == 1009);
    release(rig, 2);
    rig_until(rig, rig->last->output_bytes == 0);
    assert_int_equal(before, metric_sum(METRIC_CLIENT_OUTPUT_BYTES));
    peer_free(&peer);
    rig_free(rig);
}

TEST(above_the_soft_limit_a_client_with_held_output_waits_and_is_not_cut)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct buf text = { 0 };
    int64_t cuts = metric_sum(METRIC_OUTPUT_LIMIT_CUTS);
    uint64_t executed;

    rig->limits.output[OUTPUT_NORMAL].soft_bytes = 1000;
    rig->limits.idle_seconds = 1;
    rig->released = 0;
    rig->one_by_one = true;
    write_command(&text, "HOLD 1");
    for (int i = 0; i < 1000; i++) {
        write_command(&text, "FILL 100");
    }
    peer_send(rig, &peer, buf_slice(&text));
    rig_until(rig, rig->last->full);
    rig_settle(rig);
    executed = fake_of(rig->last)->executed;
    assert_true(executed < 1000);
    assert_false(rig->last->reading);
    assert_false(outbox_is_overdue(rig->last, UINT64_MAX));
    rig->last->active_ms = 0;
    timeouts_check(rig->last);
    expect_nothing(rig, &peer);
    assert_int_equal(executed, fake_of(rig->last)->executed);
    release(rig, 1);
    rig_until(rig, fake_of(rig->last)->executed == 1001);
    expect_pattern(rig, &peer, strlen("+HOLD|1\r\n"), 100000);
    assert_true(rig->last->reading);
    assert_int_equal(cuts, metric_sum(METRIC_OUTPUT_LIMIT_CUTS));
    buf_free(&text);
    peer_free(&peer);
    rig_free(rig);
}

TEST(without_limits_there_is_a_bound_to_what_is_held)
{
    struct rig *rig = rig_new();
    struct peer peer = holding_peer(rig, false, "HOLD 1\r\n");
    struct buf text = { 0 };

    for (int i = 0; i < 40; i++) {
        write_command(&text, "FILL 1000000");
    }
    peer_send(rig, &peer, buf_slice(&text));
    rig_until(rig, rig->last->full);
    rig_settle(rig);
    assert_in_range(rig->last->held_bytes, 16 << 20, 18 << 20);
    release(rig, 1);
    expect_pattern(rig, &peer, strlen("+HOLD|1\r\n"), 40000000);
    buf_free(&text);
    peer_free(&peer);
    rig_free(rig);
}

/* More than the hard limit comes together; the client has its time to read it,
 * and is cut as ever if it does not. */
TEST(held_output_does_not_cut_its_client_when_it_is_released)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);

    rig->limits.output[OUTPUT_NORMAL].hard_bytes = 300000;
    rig->limits.output[OUTPUT_NORMAL].soft_bytes = 250000;
    rig->limits.output[OUTPUT_NORMAL].soft_seconds = 5;
    rig->released = 0;
    peer_send_text(rig, &peer, "FILL 200000\r\n");
    rig_until(rig, rig->last->output_bytes > 100000);
    peer_send_text(rig, &peer, "HOLD 1\r\nFILL 200000\r\nFILL 50000\r\n");
    rig_until(rig, rig->last->held_bytes > 200000);
    rig_settle(rig);
    assert_true(rig->last->full);
    assert_false(outbox_is_overdue(rig->last, UINT64_MAX));
    release(rig, 1);
    rig_until(rig, rig->last->held_bytes == 0);
    assert_false(conn_is_closing(rig->last));
    assert_true(rig->last->output_bytes > 300000);
    assert_false(outbox_is_overdue(rig->last, uv_now(&rig->loop.uv) + 5000));
    assert_true(outbox_is_overdue(rig->last, uv_now(&rig->loop.uv) + 6000));
    rig_until(rig, peer_has(&peer, 450000 + 9));
    rig_settle(rig);
    assert_int_equal(450009, peer.got.len);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_connection_that_says_bye_stays_until_the_disk_has_it)
{
    struct rig *rig = rig_new();
    struct peer peer = holding_peer(rig, false, "HOLD 1\r\nBYE\r\n");

    rig->limits.idle_seconds = 1;
    rig->last->active_ms = 0;
    timeouts_check(rig->last);
    assert_false(conn_is_closing(rig->last));
    assert_false(outbox_is_overdue(rig->last, UINT64_MAX));
    expect_nothing(rig, &peer);
    release(rig, 1);
    rig_until(rig, peer_is_cut(&peer));
    assert_true(
        slice_equal(slice_lit("+HOLD|1\r\n+BYE\r\n"), buf_slice(&peer.got)));
    peer_free(&peer);
    rig_free(rig);
}

TEST(memory_for_held_output_is_given_back_when_it_is_not_used)
{
    struct rig *rig = rig_new();
    struct peer peer = holding_peer(rig, false, "HOLD 1\r\n");
    struct conn *conn = rig->last;
    uint64_t used;

    release(rig, 1);
    peer_expect(rig, &peer, "+HOLD|1\r\n");
    assert_non_null(conn->hold); /* for the next time */
    used = mem_used();
    timeouts_check(conn);
    assert_non_null(conn->hold); /* used since the last look */
    timeouts_check(conn);
    assert_null(conn->hold);
    assert_true(mem_used() < used);
    peer_send_text(rig, &peer, "HOLD 2\r\n");
    rig_until(rig, conn->held_bytes > 0);
    timeouts_check(conn);
    timeouts_check(conn);
    release(rig, 2);
    peer_expect(rig, &peer, "+HOLD|2\r\n");
    peer_free(&peer);
    rig_free(rig);
}

/* ---- giving up ----------------------------------------------------------- */

TEST(when_the_disk_is_given_up_other_replies_take_the_place_of_held_ones)
{
    struct rig *rig = rig_new();
    struct peer peer = holding_peer(rig, false, "HOLD 10\r\nA\r\n");

    peer_send_text(rig, &peer, "HOLD 20\r\n");
    rig_settle(rig);
    give_up(rig);
    peer_expect(rig, &peer, "-GIVEN UP\r\n-GIVEN UP\r\n-GIVEN UP\r\n");
    peer_send_text(rig, &peer, "B\r\nHOLD 30\r\n"); /* would have to wait too */
    peer_expect(rig, &peer, "-GIVEN UP\r\n-GIVEN UP\r\n");
    peer_send_text(rig, &peer, "B\r\n"); /* waits for nothing by itself */
    peer_expect(rig, &peer, "+B\r\n");
    atomic_store(&rig->released, 30);
    atomic_store(&rig->gives_up, false);
    peer_send_text(rig, &peer, "C\r\n");
    peer_expect(rig, &peer, "+C\r\n");
    peer_send_text(rig, &peer, "HOLD 40\r\n");
    expect_nothing(rig, &peer);
    release(rig, 40);
    peer_expect(rig, &peer, "+HOLD|40\r\n");
    peer_free(&peer);
    rig_free(rig);
}

TEST(released_replies_are_sent_when_the_rest_is_given_up)
{
    struct rig *rig = rig_new();
    struct peer peer = holding_peer(rig, false, "HOLD 10\r\n");

    peer_send_text(rig, &peer, "HOLD 20\r\n");
    rig_settle(rig);
    atomic_store(&rig->released, 10);
    give_up(rig);
    peer_expect(rig, &peer, "+HOLD|10\r\n-GIVEN UP\r\n");
    peer_free(&peer);
    rig_free(rig);
}

TEST(given_up_connections_close_and_resume_as_others)
{
    struct rig *rig = rig_new();
    struct peer bye = holding_peer(rig, false, "HOLD 10\r\nBYE\r\n");
    struct peer full;

    rig->limits.output[OUTPUT_NORMAL].soft_bytes = 1000;
    full = holding_peer(rig, false, "HOLD 10\r\n");
    peer_send_text(rig, &full, "FILL 2000\r\n");
    rig_until(rig, rig->last->full);
    release(rig, 10);
    rig_until(rig, peer_has(&full, 2010) && peer_is_cut(&bye));
    full.got.len = 0;
    peer_send_text(rig, &full, "HOLD 20\r\n");
    rig_settle(rig);
    give_up(rig);
    peer_expect(rig, &full, "-GIVEN UP\r\n");
    assert_true(rig->last->reading);
    peer_free(&bye);
    peer_free(&full);
    rig_free(rig);
}

/* ---- ends ---------------------------------------------------------------- */

TEST(connections_may_end_while_they_hold_output)
{
    struct rig *rig = rig_new();
    struct peer a = holding_peer(rig, false, "HOLD 10\r\n");
    struct conn *conn_a = rig->last;
    struct peer b = holding_peer(rig, false, "HOLD 10\r\n");
    struct peer c = holding_peer(rig, false, "HOLD 10\r\n");
    struct peer d = holding_peer(rig, false, "HOLD 10\r\n");

    peer_free(&b); /* in the middle, by its peer */
    rig_until(rig, rig->closed == 1);
    assert_true(serve_kill(&rig->loop, conn_id(rig->last))); /* the last */
    rig_until(rig, rig->closed == 2);
    assert_true(peer_is_cut(&d));
    assert_int_equal(0, d.got.len);
    rig->victim = conn_a; /* the first, by another one that holds */
    peer_send_text(rig, &c, "KILL\r\nC\r\n");
    rig_until(rig, rig->closed == 3);
    assert_true(peer_is_cut(&a));
    release(rig, 10);
    peer_expect(rig, &c, "+HOLD|10\r\n+C\r\n");
    assert_null(rig->loop.held);
    peer_free(&a);
    peer_free(&c);
    peer_free(&d);
    rig_free(rig);
}

TEST(a_release_finds_peers_that_are_gone)
{
    struct rig *rig = rig_new();
    struct peer a = holding_peer(rig, false, "HOLD 10\r\n");
    struct peer b = holding_peer(rig, false, "HOLD 10\r\n");
    struct peer c = holding_peer(rig, false, "HOLD 10\r\n");

    peer_free(&a);
    peer_free(&b);
    /* Before the loop has read of their ends. */
    atomic_store(&rig->released, 10);
    (void)hold_release(&rig->loop, UINT64_MAX);
    assert_null(rig->loop.held);
    peer_expect(rig, &c, "+HOLD|10\r\n");
    rig_until(rig, rig->closed == 2);
    peer_free(&c);
    rig_free(rig);
}

/* No time is left from the start, so a call does the least that it may. */
TEST(a_release_that_is_late_goes_on_in_later_turns)
{
    enum { PEERS = 40, AT_ONCE = 16 };
    struct rig *rig = rig_new();
    struct peer peer[PEERS];
    unsigned held = 0;

    for (unsigned i = 0; i < PEERS; i++) {
        peer[i] =
            holding_peer(rig, false, i == 0 ? "HOLD 11\r\n" : "HOLD 10\r\n");
    }
    atomic_store(&rig->released, 10);
    assert_false(hold_release(&rig->loop, 0));
    for (struct conn *c = rig->loop.held; c != NULL; c = c->hold->next) {
        held++;
    }
    assert_int_equal(PEERS - AT_ONCE, held);
    peer_expect(rig, &peer[AT_ONCE], "+HOLD|10\r\n");
    assert_false(peer_has(&peer[AT_ONCE + 1], 1));
    assert_false(hold_release(&rig->loop, 0));
    assert_true(hold_release(&rig->loop, 0));
    peer_expect(rig, &peer[PEERS - 1], "+HOLD|10\r\n");
    assert_false(peer_has(&peer[0], 1));
    release(rig, 11);
    peer_expect(rig, &peer[0], "+HOLD|11\r\n");
    assert_null(rig->loop.held);
    for (unsigned i = 0; i < PEERS; i++) {
        peer_free(&peer[i]);
    }
    rig_free(rig);
}

/* A handler that waits for its socket's peer goes on in the turn in which held
 * output is released, and kills others that are looked at in the same turn. */
TEST(a_released_connection_may_kill_one_that_is_released_with_it)
{
    struct rig *rig = rig_new();
    struct peer a, b;
    struct conn *conn_a;

    rig->limits.output[OUTPUT_NORMAL].soft_bytes = 5;
    for (int round = 0; round < 2; round++) {
        a = holding_peer(rig, false, "HOLD 10\r\n");
        conn_a = rig->last;
        b = holding_peer(rig, false, "HOLD 10\r\n");
        rig->victim = round == 0 ? rig->last : conn_a;
        conn_a = round == 0 ? conn_a : rig->last;
        peer_send_text(rig, round == 0 ? &a : &b, "KILL\r\nALIVE\r\n");
        rig_settle(rig); /* not read: both are full */
        assert_int_equal(2 * round, rig->closed);
        release(rig, 10);
        peer_expect(rig, round == 0 ? &a : &b, "+HOLD|10\r\n+ALIVE\r\n");
        assert_int_equal(2 * round + 1, rig->closed);
        peer_free(&a);
        peer_free(&b);
        rig_until(rig, rig->closed == 2U * (unsigned)round + 2);
    }
    rig_free(rig);
}

TEST(a_stopping_loop_sends_what_is_released_and_nothing_else)
{
    struct rig *rig = rig_new();
    struct peer a = holding_peer(rig, false, "HOLD 10\r\n");
    struct peer b = holding_peer(rig, false, "HOLD 20\r\n");

    peer_send_text(rig, &a, "HOLD 20\r\n");
    rig_settle(rig);
    atomic_store(&rig->released, 10); /* nobody wakes it but the stop */
    rig_free(rig);
    assert_true(peer_is_cut(&a));
    assert_true(peer_is_cut(&b));
    assert_true(slice_equal(slice_lit("+HOLD|10\r\n"), buf_slice(&a.got)));
    assert_int_equal(0, b.got.len);
    peer_free(&a);
    peer_free(&b);
}

/* Each allocation in turn fails while output is held, joined, released and
 * given up: it ends that connection and no other. */
TEST(each_allocation_may_fail_while_output_is_held)
{
    bool fired = true;
    unsigned nth = 1;
    unsigned survived = 0;

    for (; fired; nth++) {
        struct rig *rig = rig_new();
        struct peer other = peer_new(rig, false);
        struct peer peer = peer_new(rig, true);

        rig->released = 0;
        mem_fail_at(nth);
        peer_send_text(rig, &peer, "HOLD 10\r\n");
        rig_settle(rig);
        if (rig->closed == 0) {
            peer_send_text(rig, &peer, "HOLD 20\r\nFILL 3000\r\n");
            rig_settle(rig);
            release(rig, 20);
            rig_settle(rig);
        }
        if (rig->closed == 0) {
            peer_send_text(rig, &peer, "HOLD 30\r\nFILL 50000\r\n");
            rig_settle(rig);
        }
        if (rig->closed == 0) {
            peer_send_text(rig, &peer, "HOLD 40\r\n");
            rig_settle(rig);
            atomic_store(&rig->released, 30);
            give_up(rig);
            rig_settle(rig);
        }
        fired = mem_fail_clear();
        rig_until(rig,
                  rig->closed == 1 || peer_has(&peer, 30 + 3000 + 50000 + 11));
        survived += rig->closed == 0;
        rig->gives_up = false;
        rig->released = UINT64_MAX;
        peer_send_text(rig, &other, "A\r\n");
        peer_expect(rig, &other, "+A\r\n");
        peer_free(&peer);
        peer_free(&other);
        rig_free(rig);
        assert_true(nth < 1000);
    }
    assert_true(nth > 5);
    assert_true(survived >= 2); /* the join does without; and the last */
}

/* ---- half a connection --------------------------------------------------- */

/* printf ... | nc: what it did is on its way to the disk, and it still reads.
 */
TEST(a_client_that_ended_its_half_gets_its_held_replies)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);

    rig->released = 0;
    peer_send_text(rig, &peer, "HOLD 10\r\nA\r\n");
    rig_until(rig, rig->last->held_bytes > 0);
    assert_int_equal(0, shutdown(peer.fd, SHUT_WR));
    rig_settle(rig);
    timeouts_check(rig->last);
    assert_int_equal(0, rig->closed);
    atomic_store(&rig->released, 10);
    loop_wake(&rig->loop);
    peer_expect(rig, &peer, "+HOLD|10\r\n+A\r\n");
    rig_until(rig, rig->closed == 1);
    assert_true(peer_is_cut(&peer));
    peer_free(&peer);
    rig_free(rig);
}

/* A close looks the same over TCP: it does not keep its place for ever. */
TEST(a_client_that_ended_its_half_is_kept_for_a_minute_at_most)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);

    rig->released = 0;
    peer_send_text(rig, &peer, "HOLD 10\r\n");
    rig_until(rig, rig->last->held_bytes > 0);
    assert_int_equal(0, shutdown(peer.fd, SHUT_WR));
    rig_until(rig, !rig->last->reading);
    timeouts_check(rig->last);
    rig->last->ended_ms -= 59 * 1000;
    timeouts_check(rig->last);
    assert_false(conn_is_closing(rig->last));
    rig->last->ended_ms -= 2 * 1000;
    timeouts_check(rig->last);
    rig_until(rig, rig->closed == 1);
    peer_free(&peer);
    rig_free(rig);
}

/* It cannot read: nobody waits. */
TEST(a_client_that_has_gone_is_not_kept_for_held_replies)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);

    rig->released = 0;
    peer_send_text(rig, &peer, "HOLD 10\r\n");
    rig_until(rig, rig->last->held_bytes > 0);
    peer_free(&peer);
    rig_until(rig, !rig->last->reading);
    timeouts_check(rig->last);
    rig_until(rig, rig->closed == 1);
    rig_free(rig);
}
