/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replies that wait for the end of the turn: when they go, in what order, and
 * what becomes of them when their connection ends before. Three clients send,
 * one after the other, and are served in this order in one turn.
 */
#include "net/pending.h"

#include "net/push.h"

#include "rig.h"

enum { A, B, C, PEERS };

/* What the test wants to know in the middle of the turn. */
struct watch {
    struct rig *rig;
    struct peer peer[PEERS];
    struct conn *conn[PEERS];
    bool a_has_it; /* when LOOK was executed */
};

/* LOOK: has A its reply already? PUSH: a push to A. */
static bool
look(struct fake *fake, const struct slice *argv, size_t argc)
{
    struct watch *watch = fake->rig->takes_ctx;

    (void)argc;
    if (slice_is_word(argv[0], "LOOK")) {
        watch->a_has_it = peer_has(&watch->peer[A], 1);
    } else if (slice_is_word(argv[0], "PUSH")) {
        push_add(watch->conn[A], slice_lit("pushed\r\n"), 0);
        (void)push_flush(&fake->rig->loop, UINT64_MAX);
    }
    return false;
}

static void
watch_begin(struct watch *watch)
{
    *watch = (struct watch){ .rig = rig_new() };
    for (int i = 0; i < PEERS; i++) {
        watch->peer[i] = peer_new(watch->rig, false);
        watch->conn[i] = watch->rig->last;
    }
    rig_settle(watch->rig);
    watch->rig->takes = look;
    watch->rig->takes_ctx = watch;
}

/* One turn in which A, B and C send this. */
static void
send_all(struct watch *watch, const char *a, const char *b, const char *c)
{
    const char *text[PEERS] = { a, b, c };

    for (int i = 0; i < PEERS; i++) {
        peer_send_text(watch->rig, &watch->peer[i], text[i]);
    }
    rig_turn(watch->rig);
}

static void
watch_end(struct watch *watch)
{
    for (int i = 0; i < PEERS; i++) {
        peer_free(&watch->peer[i]);
    }
    rig_free(watch->rig);
}

/* On a busy machine the turn itself may take so long that A's reply goes
 * before. */
TEST(short_replies_go_at_the_end_of_the_turn)
{
    uint64_t deadline_ns = clock_mono_ns() + DEADLINE_MS * 1000000ULL;
    struct watch watch;

    watch_begin(&watch);
    do {
        int64_t writes = metric_sum(METRIC_WRITES);

        send_all(&watch, "ONE\r\n", "LOOK\r\n", "THREE\r\n");
        assert_int_equal(writes + 3, metric_sum(METRIC_WRITES));
        assert_int_equal(0, watch.rig->loop.pending.replies.len);
        peer_expect(watch.rig, &watch.peer[A], "+ONE\r\n");
        peer_expect(watch.rig, &watch.peer[B], "+LOOK\r\n");
        peer_expect(watch.rig, &watch.peer[C], "+THREE\r\n");
    } while (watch.a_has_it && clock_mono_ns() < deadline_ns);
    assert_false(watch.a_has_it);
    watch_end(&watch);
}

TEST(nobody_waits_for_who_takes_long)
{
    struct watch watch;

    watch_begin(&watch);
    send_all(&watch, "ONE\r\n", "BUSY 3000\r\n", "LOOK\r\n");
    assert_true(watch.a_has_it);
    watch_end(&watch);
}

TEST(long_replies_go_at_once)
{
    struct watch watch;

    watch_begin(&watch);
    send_all(&watch, "FILL 20000\r\n", "LOOK\r\n", "X\r\n");
    assert_true(watch.a_has_it);
    watch_end(&watch);
}

TEST(pushes_come_behind_pending_replies)
{
    struct watch watch;

    watch_begin(&watch);
    send_all(&watch, "ONE\r\n", "PUSH\r\n", "LOOK\r\n");
    peer_expect(watch.rig, &watch.peer[A], "+ONE\r\npushed\r\n");
    peer_expect(watch.rig, &watch.peer[B], "+PUSH\r\n");
    watch_end(&watch);
}

TEST(a_closed_client_gets_its_pending_replies)
{
    struct watch watch;

    watch_begin(&watch);
    watch.rig->victim = watch.conn[A];
    send_all(&watch, "ONE\r\n", "KILL\r\n", "BYE\r\n");
    peer_expect(watch.rig, &watch.peer[A], "+ONE\r\n");
    assert_true(peer_is_cut(&watch.peer[A]));
    peer_expect(watch.rig, &watch.peer[C], "+BYE\r\n");
    assert_true(peer_is_cut(&watch.peer[C]));
    assert_false(peer_is_cut(&watch.peer[B]));
    watch_end(&watch);
}

/* Its end is found when the reply is written, among the others. */
TEST(a_client_that_has_gone_takes_nothing_from_the_others)
{
    struct watch watch;

    watch_begin(&watch);
    for (int i = 0; i < PEERS; i++) {
        peer_send_text(watch.rig, &watch.peer[i], "X\r\n");
    }
    peer_free(&watch.peer[B]);
    rig_until(watch.rig, watch.rig->closed == 1);
    peer_expect(watch.rig, &watch.peer[A], "+X\r\n");
    peer_expect(watch.rig, &watch.peer[C], "+X\r\n");
    watch_end(&watch);
}

TEST(replies_that_wait_for_their_client_keep_their_order)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);

    while (rig->last->outbox == NULL) {
        peer_send_text(rig, &peer, "FILL 8000\r\n");
        rig_turn(rig);
    }
    /* It is served on while its replies wait. */
    for (unsigned i = 0; i < 5; i++) {
        peer_send_text(rig, &peer, "FILL 8000\r\n");
        rig_turn(rig);
    }
    assert_true(rig->last->reading);
    rig_until(rig, peer_has(&peer, fake_of(rig->last)->filled));
    for (size_t i = 0; i < peer.got.len; i++) {
        assert_int_equal(pattern_at(i), peer.got.data[i]);
    }
    peer_free(&peer);
    rig_free(rig);
}

static bool
note_call(struct fake *fake, const struct slice *argv, size_t argc)
{
    bool *called = fake->rig->takes_ctx;

    (void)argv;
    (void)argc;
    *called = true;
    return false;
}

static void
push_to_last(void *ctx)
{
    struct rig *rig = ctx;

    rig->loop.now_ns = clock_mono_ns(); /* another was served just now */
    push_add(rig->last, slice_lit("pushed\r\n"), 0);
    (void)push_flush(&rig->loop, UINT64_MAX);
}

/* It has a push pending when its command comes, and is gone. */
TEST(a_client_found_gone_executes_nothing)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    bool called = false;

    rig_settle(rig);
    mailbox_on_poke(&rig->loop.mailbox, push_to_last, rig);
    rig->takes = note_call;
    rig->takes_ctx = &called;
    peer_send_text(rig, &peer, "X\r\n");
    peer_free(&peer);
    atomic_store(&rig->loop.mailbox.poke, true); /* it is run's to answer */
    rig_until(rig, rig->closed == 1);
    assert_false(called);
    rig_free(rig);
}

/* More than the buffer of a turn is meant for: nothing is lost or mixed up. */
TEST(many_replies_of_many_clients_arrive_whole)
{
    enum { CLIENTS = 60, BYTES = 5000 };
    struct rig *rig = rig_new();
    struct peer peer[CLIENTS];

    for (int i = 0; i < CLIENTS; i++) {
        peer[i] = peer_new(rig, false);
    }
    for (int i = 0; i < CLIENTS; i++) {
        peer_send_text(rig, &peer[i], "FILL 5000\r\n");
    }
    rig_turn(rig);
    for (int i = 0; i < CLIENTS; i++) {
        rig_until(rig, peer_has(&peer[i], BYTES));
        assert_int_equal(BYTES, peer[i].got.len);
        for (size_t at = 0; at < BYTES; at++) {
            assert_int_equal(pattern_at(at), peer[i].got.data[at]);
        }
        peer_free(&peer[i]);
    }
    rig_free(rig);
}
