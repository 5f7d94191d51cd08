/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A connection between a peer and a made-up client: bytes cut anywhere,
 * commands that pause in the middle of a batch, peers that do not read, and
 * all the ways to end.
 */
#include "net/conn.h"

#include "net/timeouts.h"
#include "rig.h"

#include <arpa/inet.h>

/* ---- requests in pieces -------------------------------------------------- */

static const char three_commands[] = "*2\r\n$3\r\nONE\r\n$2\r\n\r\n\r\n"
                                     "inline word\r\n"
                                     "*1\r\n$5\r\nTHREE\r\n";
static const char three_replies[] = "+ONE|\r\n\r\n+inline|word\r\n+THREE\r\n";

TEST(requests_may_be_cut_at_every_byte)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    size_t len = strlen(three_commands);

    for (size_t cut = 1; cut < len; cut++) {
        peer_send(rig, &peer, (struct slice){ three_commands, cut });
        rig_settle(rig);
        peer_send(rig, &peer,
                  (struct slice){ three_commands + cut, len - cut });
        peer_expect(rig, &peer, three_replies);
        assert_int_equal(0, rig->last->input_bytes);
    }
    peer_free(&peer);
    rig_free(rig);
}

TEST(requests_may_come_byte_by_byte)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);

    for (size_t i = 0; three_commands[i] != '\0'; i++) {
        peer_send(rig, &peer, (struct slice){ three_commands + i, 1 });
        rig_settle(rig);
    }
    peer_expect(rig, &peer, three_replies);
    peer_free(&peer);
    rig_free(rig);
}

TEST(unfinished_requests_are_counted)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    int64_t before = metric_sum(METRIC_CLIENT_INPUT_BYTES);

    peer_send_text(rig, &peer, "*2\r\n$1\r\nA\r\n$1000\r\n0123456789");
    rig_until(rig, rig->last->input_bytes >= 11);
    assert_int_equal(rig->last->input_bytes,
                     metric_sum(METRIC_CLIENT_INPUT_BYTES) - before);
    peer_free(&peer);
    rig_until(rig, rig->closed == 1);
    assert_int_equal(before, metric_sum(METRIC_CLIENT_INPUT_BYTES));
    rig_free(rig);
}

TEST(a_protocol_error_is_replied_to_and_ends_the_connection)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);

    peer_send_text(rig, &peer, "*1\r\n$1\r\nA\r\n*x\r\n*1\r\n$1\r\nB\r\n");
    rig_until(rig, peer_is_cut(&peer));
    assert_true(slice_equal(slice_lit("+A\r\n-PROTO_MULTIBULK\r\n"),
                            buf_slice(&peer.got)));
    peer_free(&peer);
    rig_free(rig);
}

/* ---- pausing ------------------------------------------------------------- */

TEST(a_command_that_pauses_in_a_batch_holds_up_those_behind_it)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct buf text = { 0 };

    write_command(&text, "A");
    write_command(&text, "PAUSE 3");
    write_command(&text, "B");
    write_command(&text, "PAUSE 1");
    write_command(&text, "PAUSE 0");
    write_command(&text, "C");
    peer_send(rig, &peer, buf_slice(&text));
    peer_expect(rig, &peer,
                "+A\r\n+PAUSE|3\r\n+B\r\n+PAUSE|1\r\n+PAUSE|0\r\n"
                "+C\r\n");
    assert_int_equal(6, fake_of(rig->last)->executed);
    assert_int_equal(6 + 4, fake_of(rig->last)->calls);
    buf_free(&text);
    peer_free(&peer);
    rig_free(rig);
}

/* The same with the pausing command in the reader: it began in a read before,
 * and others follow it in the read that ends it. */
TEST(a_command_in_pieces_pauses_and_loses_nothing)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct buf text = { 0 };

    write_command(&text, "PAUSE 3");
    write_command(&text, "B");
    write_command(&text, "C");
    for (size_t cut = 1; cut < text.len; cut++) {
        peer_send(rig, &peer, (struct slice){ text.data, cut });
        rig_settle(rig);
        peer_send(rig, &peer,
                  (struct slice){ text.data + cut, text.len - cut });
        peer_expect(rig, &peer, "+PAUSE|3\r\n+B\r\n+C\r\n");
    }
    assert_int_equal(3 * (text.len - 1), fake_of(rig->last)->executed);
    assert_int_equal(6 * (text.len - 1), fake_of(rig->last)->calls);
    buf_free(&text);
    peer_free(&peer);
    rig_free(rig);
}

TEST(an_inline_command_may_pause)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);

    peer_send_text(rig, &peer, "A\r\nPAUSE 2\r\nB\r\n");
    peer_expect(rig, &peer, "+A\r\n+PAUSE|2\r\n+B\r\n");
    peer_free(&peer);
    rig_free(rig);
}

TEST(nothing_is_read_while_a_command_is_paused)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    int64_t reads;

    peer_send_text(rig, &peer, "PAUSE 1000\r\n");
    rig_until(rig, fake_of(rig->last)->calls > 2);
    reads = metric_sum(METRIC_READS);
    peer_send_text(rig, &peer, "A\r\n");
    for (int i = 0; i < 100; i++) {
        rig_turn(rig);
    }
    assert_int_equal(reads, metric_sum(METRIC_READS));
    peer_expect(rig, &peer, "+PAUSE|1000\r\n+A\r\n");
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_paused_connection_leaves_the_loop_to_others)
{
    struct rig *rig = rig_new();
    struct peer slow = peer_new(rig, false);
    struct peer quick;

    peer_send_text(rig, &slow, "PAUSE 1000000\r\n");
    rig_until(rig, fake_of(rig->last)->calls > 2);
    quick = peer_new(rig, false);
    peer_send_text(rig, &quick, "A\r\n");
    peer_expect(rig, &quick, "+A\r\n");
    peer_free(&slow);
    peer_free(&quick);
    rig_free(rig);
}

/* Fifty commands that come in one read take longer than a turn: whoever asks
 * meanwhile is answered before they are all done. */
TEST(a_busy_connection_takes_turns_with_others)
{
    struct rig *rig = rig_new();
    struct peer busy = peer_new(rig, false);
    struct fake *fake = fake_of(rig->last);
    struct peer quick = peer_new(rig, false);
    struct buf text = { 0 };

    rig->one_by_one = true;
    for (int i = 0; i < 50; i++) {
        write_command(&text, "BUSY 1000");
    }
    peer_send(rig, &busy, buf_slice(&text));
    rig_until(rig, fake->executed > 0);
    assert_true(fake->executed < 50);
    peer_send_text(rig, &quick, "A\r\n");
    rig_until(rig, peer_has(&quick, 4));
    assert_true(fake->executed < 50);
    rig_until(rig, fake->executed == 50);
    rig_until(rig, peer_has(&busy, 50 * 12));
    rig_settle(rig);
    assert_int_equal(50 * 12, busy.got.len);
    assert_int_equal(50, fake->executed);
    buf_free(&text);
    peer_free(&busy);
    peer_free(&quick);
    rig_free(rig);
}

TEST(a_paused_connection_may_be_closed_by_another_paused_one)
{
    struct rig *rig = rig_new();
    struct peer a = peer_new(rig, false);
    struct conn *conn_a = rig->last;
    struct peer b = peer_new(rig, false);
    struct conn *conn_b = rig->last;

    /* Both are resumed in the same turn, and whichever comes first closes
     * itself or the other while that is still on its way. */
    for (int round = 0; round < 2; round++) {
        struct peer *victim = round == 0 ? &a : &b;
        struct peer *killer = round == 0 ? &b : &a;

        rig->victim = round == 0 ? conn_a : conn_b;
        peer_send_text(rig, victim, "PAUSE 1000000\r\n");
        peer_send_text(rig, killer, "PAUSE 3\r\nKILL\r\nALIVE\r\n");
        peer_expect(rig, killer, "+PAUSE|3\r\n+ALIVE\r\n");
        rig_until(rig, peer_is_cut(victim));
        peer_free(victim);
        if (round == 0) {
            a = peer_new(rig, false);
            conn_a = rig->last;
        }
    }
    peer_free(&a);
    rig_free(rig);
}

/* Random commands, some pausing, in random pieces: each is executed once and
 * in order, whatever way through the parsers it took. */
static void
random_commands(uint64_t *random, struct buf *ret_text, struct buf *ret_replies)
{
    unsigned count = 1 + (unsigned)test_random_below(random, 300);

    for (unsigned i = 0; i < count; i++) {
        char line[64];
        unsigned kind = (unsigned)test_random_below(random, 10);

        if (kind < 3) {
            (void)snprintf(line, sizeof(line), "PAUSE %u",
                           (unsigned)test_random_below(random, 4));
        } else {
            (void)snprintf(line, sizeof(line), "word %u %u", i,
                           (unsigned)test_random_below(random, 1000000));
        }
        if (kind == 9 || kind == 0) {
            buf_printf(ret_text, "%s\r\n", line);
        } else {
            write_command(ret_text, line);
        }
        for (char *at = line; *at != '\0'; at++) {
            *at = *at == ' ' ? '|' : *at;
        }
        buf_printf(ret_replies, "+%s\r\n", line);
    }
    buf_append(ret_replies, "", 1);
}

TEST(random_commands_in_random_pieces_are_executed_once_and_in_order)
{
    uint64_t random = test_seed();
    struct rig *rig = rig_new();

    for (unsigned round = 0; round < 40 * test_rounds(); round++) {
        struct peer peer = peer_new(rig, false);
        struct buf text = { 0 };
        struct buf replies = { 0 };
        size_t sent = 0;

        rig->one_by_one = round % 3 == 0;
        random_commands(&random, &text, &replies);
        while (sent < text.len) {
            size_t n =
                1 + test_random_below(&random, round % 2 == 0 ? 40 : 4000);

            n = n < text.len - sent ? n : text.len - sent;
            peer_send(rig, &peer, (struct slice){ text.data + sent, n });
            sent += n;
            for (unsigned i = (unsigned)test_random_below(&random, 4); i > 0;
                 i--) {
                rig_turn(rig);
            }
        }
        peer_expect(rig, &peer, replies.data);
        assert_int_equal(0, rig->last->input_bytes);
        buf_free(&text);
        buf_free(&replies);
        peer_free(&peer);
    }
    rig_free(rig);
}

/* ---- peers that do not read ---------------------------------------------- */

enum { FILLS = 300, FILL_BYTES = 10000 };

static void
send_fills(struct rig *rig, struct peer *peer)
{
    struct buf text = { 0 };

    for (int i = 0; i < FILLS; i++) {
        write_command(&text, "FILL 10000");
    }
    peer_send(rig, peer, buf_slice(&text));
    buf_free(&text);
}

static void
expect_pattern(const struct buf *got, size_t bytes)
{
    assert_int_equal(bytes, got->len);
    for (size_t i = 0; i < bytes; i++) {
        if (got->data[i] != pattern_at(i)) {
            fail_msg("byte %zu of %zu is wrong", i, bytes);
        }
    }
}

/* It writes all of its pipeline before it reads the first reply. */
TEST(a_peer_that_does_not_read_yet_is_executed_up_to_the_hard_limit)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);
    struct fake *fake = fake_of(rig->last);

    rig->limits.output[OUTPUT_NORMAL].soft_bytes = 100000;
    rig->limits.output[OUTPUT_NORMAL].soft_seconds = 60;
    rig->limits.output[OUTPUT_NORMAL].hard_bytes = (uint64_t)FILLS * FILL_BYTES;
    send_fills(rig, &peer);
    rig_until(rig, fake->executed == FILLS);
    assert_true(rig->last->output_bytes > 100000);
    assert_true(rig->last->reading);
    rig_until(rig, peer_has(&peer, (size_t)FILLS * FILL_BYTES));
    rig_settle(rig);
    expect_pattern(&peer.got, (size_t)FILLS * FILL_BYTES);
    assert_int_equal(FILLS, fake->executed);
    assert_int_equal(0, rig->last->output_bytes);
    assert_int_equal(0, rig->last->input_bytes);
    assert_null(rig->last->outbox);
    assert_true(rig->last->reading);
    peer_free(&peer);
    rig_free(rig);
}

/* Whatever the limits say: who has not authenticated may not make us keep
 * more than 2 KB. */
TEST(an_untrusted_peer_that_does_not_read_is_cut_early)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);
    int64_t cuts = metric_sum(METRIC_OUTPUT_LIMIT_CUTS);

    rig->last->trusted = false;
    rig->limits.output[OUTPUT_NORMAL].hard_bytes = 1000000;
    peer_send_text(rig, &peer, "FILL 2048\r\n");
    rig_until(rig, peer_has(&peer, 2048));
    assert_false(conn_is_closing(rig->last));
    rig->one_by_one = true;
    send_fills(rig, &peer);
    rig_until(rig, rig->closed == 1);
    assert_int_equal(cuts + 1, metric_sum(METRIC_OUTPUT_LIMIT_CUTS));
    rig_until(rig, peer_is_cut(&peer));
    assert_true(peer.got.len < 5 * FILL_BYTES);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_peer_behind_the_hard_limit_is_cut)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);
    int64_t cuts = metric_sum(METRIC_OUTPUT_LIMIT_CUTS);

    rig->limits.output[OUTPUT_NORMAL].hard_bytes = 300000;
    send_fills(rig, &peer);
    rig_until(rig, rig->closed == 1);
    assert_int_equal(cuts + 1, metric_sum(METRIC_OUTPUT_LIMIT_CUTS));
    rig_until(rig, peer_is_cut(&peer));
    assert_true(peer.got.len < (size_t)FILLS * FILL_BYTES);
    peer_free(&peer);
    rig_free(rig);
}

TEST(one_reply_above_the_hard_limit_is_cut_too)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);

    rig->limits.output[OUTPUT_NORMAL].hard_bytes = 300000;
    peer_send_text(rig, &peer, "FILL 400000\r\n");
    rig_until(rig, rig->closed == 1);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_peer_above_the_soft_limit_for_too_long_is_cut)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);
    uint64_t start_ms;

    rig->limits.output[OUTPUT_NORMAL].soft_bytes = 50000;
    rig->limits.output[OUTPUT_NORMAL].soft_seconds = 1;
    peer_send_text(rig, &peer, "FILL 200000\r\n");
    rig_until(rig, rig->last->output_bytes > 50000);
    start_ms = uv_now(&rig->loop.uv);
    timeouts_check(rig->last);
    assert_false(conn_is_closing(rig->last));
    rig_until(rig, rig->closed == 1); /* by the timer of each second */
    assert_true(uv_now(&rig->loop.uv) - start_ms >= 1000);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_peer_that_comes_below_the_soft_limit_in_time_is_not_cut)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);
    uint64_t over_ms;

    rig->limits.output[OUTPUT_NORMAL].soft_bytes = 50000;
    rig->limits.output[OUTPUT_NORMAL].soft_seconds =
        0; /* the next check would cut */
    peer_send_text(rig, &peer, "FILL 200000\r\n");
    rig_until(rig, rig->last->output_bytes > 50000);
    over_ms = uv_now(&rig->loop.uv);
    rig_until(rig, (peer_take(&peer), rig->last->output_bytes < 40000 ||
                                          rig->last->outbox == NULL ||
                                          peer.got.len > 170000));
    rig_until(rig, uv_now(&rig->loop.uv) > over_ms + 5);
    timeouts_check(rig->last);
    assert_false(conn_is_closing(rig->last));
    rig_until(rig, peer_has(&peer, 200000));
    expect_pattern(&peer.got, 200000);
    peer_free(&peer);
    rig_free(rig);
}

TEST(all_is_sent_before_a_connection_that_says_bye_closes)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);

    peer_send_text(rig, &peer, "FILL 3000000\r\nBYE\r\nFILL 10\r\n");
    rig_settle(rig);
    assert_int_equal(0, rig->closed);
    rig_until(rig, peer_is_cut(&peer));
    assert_true(peer.got.len > 6);
    assert_memory_equal("+BYE\r\n", peer.got.data + peer.got.len - 6, 6);
    peer.got.len -= 6;
    expect_pattern(&peer.got, 3000000);
    peer_free(&peer);
    rig_free(rig);
}

/* Without a soft limit it has until the next look to take something. */
TEST(a_connection_that_says_bye_is_cut_only_if_its_peer_stands_still)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);

    peer_send_text(rig, &peer, "FILL 3000000\r\nBYE\r\n");
    rig_settle(rig);
    rig_until(rig, uv_now(&rig->loop.uv) > rig->last->active_ms);
    timeouts_check(rig->last);
    assert_false(conn_is_closing(rig->last));
    rig_until(rig, uv_now(&rig->loop.uv) > rig->last->active_ms);
    timeouts_check(rig->last);
    assert_true(conn_is_closing(rig->last));
    peer_free(&peer);
    rig_free(rig);
}

TEST(pauses_and_waiting_for_the_peer_may_meet)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, true);
    struct buf text = { 0 };

    rig->limits.output[OUTPUT_NORMAL].soft_bytes = 10000;
    rig->limits.output[OUTPUT_NORMAL].soft_seconds = DEADLINE_MS / 1000;
    for (int i = 0; i < 50; i++) {
        write_command(&text, "FILL 100000");
        write_command(&text, "PAUSE 2");
        write_command(&text, "FILL 1");
    }
    peer_send(rig, &peer, buf_slice(&text));
    rig_until(rig, peer_has(&peer, 50 * (100001 + 10)));
    rig_settle(rig);
    assert_int_equal(50 * 100011, peer.got.len);
    assert_int_equal(150, fake_of(rig->last)->executed);
    buf_free(&text);
    peer_free(&peer);
    rig_free(rig);
}

/* ---- ends ---------------------------------------------------------------- */

TEST(a_peer_may_leave_at_any_moment)
{
    static const char *const moments[] = {
        "",
        "*1\r\n$4\r\nPI",
        "A\r\n",
        "PAUSE 1000000\r\n",
        "FILL 1000000\r\n",
        "*2\r\n$5\r\nPAUSE\r\n$3\r\n100\r\n*1\r\n",
    };

    for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
        for (int turns = 0; turns < 4; turns++) {
            struct rig *rig = rig_new();
            struct peer peer = peer_new(rig, true);

            peer_send_text(rig, &peer, moments[i]);
            for (int k = 0; k < turns; k++) {
                rig_turn(rig);
            }
            peer_free(&peer);
            if (i != 3) { /* a paused one is not read from */
                rig_until(rig, rig->closed == 1);
            }
            rig_free(rig);
        }
    }
}

TEST(a_handler_may_close_its_connection_in_a_batch)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);

    peer_send_text(rig, &peer,
                   "*1\r\n$1\r\nA\r\n*1\r\n$3\r\nDIE\r\n"
                   "*1\r\n$1\r\nB\r\n");
    rig_until(rig, rig->closed == 1);
    assert_true(peer_is_cut(&peer));
    assert_int_equal(0, peer.got.len);
    peer_free(&peer);
    peer = peer_new(rig, false);
    peer_send_text(rig, &peer, "DIE\r\nB\r\n"); /* through the partial */
    rig_until(rig, rig->closed == 2);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_connection_that_closed_is_not_resumed)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);

    peer_send_text(rig, &peer, "LINGER\r\nA\r\n");
    rig_until(rig, rig->closed == 1);
    assert_null(rig->loop.resumable);
    rig_settle(rig);
    peer_free(&peer);
    rig_free(rig);
}

TEST(closing_twice_is_closing_once)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct conn *conn = rig->last;

    conn_close(conn);
    conn_close(conn);
    rig_until(rig, rig->closed == 1);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_reply_without_memory_cuts_the_connection)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    struct peer other = peer_new(rig, false);

    peer_send_text(rig, &peer, "*1\r\n$1\r\nA\r\n*1\r\n$5\r\nNOMEM\r\n");
    rig_until(rig, peer_is_cut(&peer));
    assert_int_equal(0, peer.got.len);
    peer_send_text(rig, &other, "A\r\n");
    peer_expect(rig, &other, "+A\r\n");
    peer_free(&peer);
    peer_free(&other);
    rig_free(rig);
}

TEST(a_client_that_cannot_be_made_is_refused)
{
    struct rig *rig = rig_new();
    struct peer peer;

    rig->refuse = true;
    peer = peer_new(rig, false);
    assert_true(peer_is_cut(&peer));
    peer_free(&peer);
    /* Its place is free again. */
    rig->limits.maxclients = 1;
    rig->refuse = false;
    peer = peer_new(rig, false);
    peer_send_text(rig, &peer, "A\r\n");
    peer_expect(rig, &peer, "+A\r\n");
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_descriptor_that_cannot_be_used_frees_its_owner_and_its_place)
{
    struct rig *rig = rig_new();

    for (int is_unix = 0; is_unix < 2; is_unix++) {
        assert_true(registry_reserve(rig->registry, PLACE_COMMON, 1));
        serve_open(&rig->loop, -1, is_unix == 1);
        rig_until(rig, rig->closed == (unsigned)is_unix + 1);
    }
    assert_true(registry_reserve(rig->registry, PLACE_COMMON, 1));
    registry_release(rig->registry, PLACE_COMMON);
    rig_free(rig);
}

TEST(idle_connections_are_closed_when_the_option_says_so)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);
    uint64_t start_ms = uv_now(&rig->loop.uv);

    timeouts_check(rig->last);
    assert_false(conn_is_closing(rig->last)); /* 0 means never */
    rig->limits.idle_seconds = 1;
    timeouts_check(rig->last);
    assert_false(conn_is_closing(rig->last));
    rig_until(rig, rig->closed == 1);
    assert_true(uv_now(&rig->loop.uv) - start_ms >= 1000);
    peer_free(&peer);
    rig_free(rig);
}

TEST(kill_finds_its_connection_by_id)
{
    struct rig *rig = rig_new();
    struct peer a = peer_new(rig, false);
    uint64_t id = conn_id(rig->last);
    struct peer b = peer_new(rig, false);

    assert_true(conn_id(rig->last) > id);
    assert_true(serve_kill(&rig->loop, 4711)); /* nobody: nothing happens */
    assert_true(serve_kill(&rig->loop, id));
    assert_true(serve_kill(&rig->loop, id)); /* gone when it comes */
    rig_until(rig, peer_is_cut(&a));
    peer_send_text(rig, &b, "A\r\n");
    peer_expect(rig, &b, "+A\r\n");
    assert_int_equal(1, rig->closed);
    peer_free(&a);
    peer_free(&b);
    rig_free(rig);
}

TEST(the_end_of_the_loop_closes_connections_in_every_state)
{
    struct rig *rig = rig_new();
    struct peer peer[4];

    rig->limits.output[OUTPUT_NORMAL].soft_bytes = 1000;
    for (int i = 0; i < 4; i++) {
        peer[i] = peer_new(rig, true);
    }
    peer_send_text(rig, &peer[1], "*1\r\n$10\r\nhalf");
    peer_send_text(rig, &peer[2], "PAUSE 1000000\r\n");
    peer_send_text(rig, &peer[3], "FILL 1000000\r\nA\r\n");
    rig_settle(rig);
    assert_int_equal(4, rig->loop.open_conns);
    for (int i = 0; i < 4; i++) {
        peer_free(&peer[i]);
    }
    rig_free(rig);
}

/* ---- memory -------------------------------------------------------------- */

/* Each allocation in turn fails while a connection parses in pieces, replies
 * more than the socket takes, and goes on. What cannot be kept ends the
 * connection; nothing aborts, nothing leaks. */
TEST(each_allocation_may_fail_while_a_connection_works)
{
    enum { REPLIES = 3005 + 50000 + 4 + 10 + 50000 };
    bool fired = true;
    unsigned nth = 1;
    unsigned survived = 0;

    for (; fired; nth++) {
        struct rig *rig = rig_new();
        struct peer peer = peer_new(rig, true);

        rig->limits.output[OUTPUT_NORMAL].soft_bytes = 10000;
        peer_send_text(rig, &peer, "*2\r\n$1\r\nA\r\n$3000\r\n012345");
        mem_fail_at(nth);
        rig_settle(rig);
        if (rig->closed == 0) {
            char rest[3000];
            struct slice piece = { rest, 2996 };

            memset(rest, 'x', sizeof(rest));
            rest[2994] = '\r';
            rest[2995] = '\n';
            peer_send(rig, &peer, piece);
            peer_send_text(rig, &peer,
                           "FILL 50000\r\n*1\r\n$1\r\nB\r\n"
                           "PAUSE 2\r\nFILL 50000\r\n");
            rig_settle(rig);
        }
        fired = mem_fail_clear();
        rig_until(rig, rig->closed == 1 || peer_has(&peer, REPLIES));
        survived += rig->closed == 0;
        peer_free(&peer);
        rig_free(rig);
        assert_true(nth < 1000);
    }
    assert_true(nth > 10);
    assert_true(survived >= 1); /* the last, where nothing failed */
}

/* ---- addresses ----------------------------------------------------------- */

TEST(addresses_are_shown_as_clients_know_them)
{
    struct rig *rig = rig_new();
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t len = sizeof(address);
    char expected[CONN_ADDRESS_MAX];
    char text[CONN_ADDRESS_MAX];
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int near;
    int far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct peer unix_peer = peer_new(rig, false);

    conn_local_address(rig->last, text);
    assert_string_equal(":0", text); /* a socket pair has no path */
    conn_peer_address(rig->last, text);
    assert_string_equal(":0", text);
    peer_free(&unix_peer);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(
        0, bind(listener, (struct sockaddr *)&address, sizeof(address)));
    assert_int_equal(0, listen(listener, 1));
    assert_int_equal(0,
                     getsockname(listener, (struct sockaddr *)&address, &len));
    assert_int_equal(
        0, connect(far, (struct sockaddr *)&address, sizeof(address)));
    near = accept(listener, NULL, NULL);
    assert_true(near >= 0);
    assert_true(registry_reserve(rig->registry, PLACE_COMMON, 2));
    serve_open(&rig->loop, near, false);
    conn_local_address(rig->last, text);
    (void)snprintf(expected, sizeof(expected), "127.0.0.1:%u",
                   ntohs(address.sin_port));
    assert_string_equal(expected, text);
    assert_int_equal(0, getsockname(far, (struct sockaddr *)&address, &len));
    conn_peer_address(rig->last, text);
    (void)snprintf(expected, sizeof(expected), "127.0.0.1:%u",
                   ntohs(address.sin_port));
    assert_string_equal(expected, text);
    (void)close(far);
    (void)close(listener);
    rig_free(rig);
}
