/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections that speak TLS: the same commands, limits and ends as without it.
 */
#include "net/serve.h"

#include "link_help.h"
#include "net/timeouts.h"
#include "tls_help.h"

#define until(rig, peer, cond)                                                 \
    rig_until(rig, (tls_peer_turn(rig, peer), (cond)))

static void
send_text(struct rig *rig, struct tls_peer *peer, const char *text)
{
    tls_peer_send(rig, peer, slice_of(text));
}

TEST(commands_are_answered_over_tls)
{
    struct tls_contexts contexts;
    struct rig *rig = tls_rig_new(&contexts);
    struct tls_peer peer = tls_peer_new(rig, false);

    assert_false(conn_is_trusted(rig->last));
    tls_peer_begin(rig, &peer);
    send_text(rig, &peer, "PING\r\nECHO you\r\n");
    tls_peer_expect(rig, &peer, "+PING\r\n+ECHO|you\r\n");
    assert_true(conn_is_trusted(rig->last));
    assert_true(rig->usage.total > 10000); /* what TLS keeps counts */
    send_text(rig, &peer, "BYE\r\n");
    until(rig, &peer, peer.raw.ended);
    assert_int_equal(TLS_ENDED, peer.result); /* close_notify */
    tls_peer_expect(rig, &peer, "+BYE\r\n");
    tls_peer_free(&peer);
    tls_rig_free(rig, &contexts);
}

/* Small sockets: records are cut, and long replies wait in the outbox. */
TEST(long_replies_and_pipelines_arrive_whole_and_in_order)
{
    struct tls_contexts contexts;
    struct rig *rig = tls_rig_new(&contexts);
    struct tls_peer peer = tls_peer_new(rig, true);
    struct buf commands = { 0 };
    size_t want = 0;
    uint64_t seed = test_seed();

    tls_peer_begin(rig, &peer);
    for (int i = 0; i < 60; i++) {
        size_t n = 1 + test_random_below(&seed, i % 10 == 0 ? 700000 : 9000);

        buf_printf(&commands, "FILL %zu\r\n", n);
        want += n;
        if (test_random_below(&seed, 3) == 0) {
            tls_peer_send(rig, &peer, buf_slice(&commands));
            commands.len = 0;
        }
    }
    tls_peer_send(rig, &peer, buf_slice(&commands));
    until(rig, &peer, peer.plain.len >= want || peer.raw.ended);
    assert_int_equal(want, peer.plain.len);
    for (size_t i = 0; i < want; i++) {
        if (peer.plain.data[i] != pattern_at(i)) {
            fail_msg("byte %zu of %zu is wrong", i, want);
        }
    }
    rig_settle(rig);
    assert_null(rig->last->outbox);
    buf_free(&commands);
    tls_peer_free(&peer);
    tls_rig_free(rig, &contexts);
}

TEST(a_client_that_leaves_too_much_unread_is_cut)
{
    struct tls_contexts contexts;
    struct rig *rig = tls_rig_new(&contexts);
    struct tls_peer peer = tls_peer_new(rig, true);

    rig->limits.output[OUTPUT_NORMAL].hard_bytes = 100000;
    tls_peer_begin(rig, &peer);
    assert_true(tls_seal(peer.tls, slice_lit("FILL 90000\r\nFILL 90000\r\n"),
                         &peer.sealed));
    peer_send(rig, &peer.raw, buf_slice(&peer.sealed));
    peer.sealed.len = 0;
    rig_until(rig, rig->closed == 1);
    tls_peer_free(&peer);
    tls_rig_free(rig, &contexts);
}

/* The end of the client's half comes in the same read as commands, one of which
 * asks for another turn. */
TEST(commands_before_close_notify_are_still_executed)
{
    struct tls_contexts contexts;
    struct rig *rig = tls_rig_new(&contexts);
    struct tls_peer peer = tls_peer_new(rig, false);

    tls_peer_begin(rig, &peer);
    assert_true(
        tls_seal(peer.tls, slice_lit("A\r\nPAUSE 3\r\nB\r\n"), &peer.sealed));
    tls_end(peer.tls, &peer.sealed);
    tls_peer_expect(rig, &peer, "+A\r\n+PAUSE|3\r\n+B\r\n");
    until(rig, &peer, peer.raw.ended);
    rig_until(rig, rig->closed == 1);
    tls_peer_free(&peer);
    tls_rig_free(rig, &contexts);
}

TEST(garbage_instead_of_a_handshake_cuts)
{
    struct tls_contexts contexts;
    struct rig *rig = tls_rig_new(&contexts);
    struct tls_peer peer = tls_peer_new(rig, false);
    int64_t failures = metric_sum(METRIC_TLS_FAILURES);

    peer_send_text(rig, &peer.raw, "PING\r\n");
    rig_until(rig, rig->closed == 1);
    assert_int_equal(failures + 1, metric_sum(METRIC_TLS_FAILURES));
    tls_peer_free(&peer);
    tls_rig_free(rig, &contexts);
}

/* A handshake that ends after every number of its bytes. */
TEST(a_client_may_go_at_any_byte_of_its_handshake)
{
    struct tls_contexts contexts;
    struct rig *rig = tls_rig_new(&contexts);
    size_t len = 1;

    for (size_t cut = 0; cut < len; cut += 1 + cut / 32) {
        struct tls_peer peer = tls_peer_new(rig, false);

        (void)tls_open(peer.tls, (struct slice){ NULL, 0 }, &peer.plain,
                       &peer.sealed);
        len = peer.sealed.len;
        peer_send(rig, &peer.raw, (struct slice){ peer.sealed.data, cut });
        tls_peer_free(&peer);
        rig_until(rig, rig->closed == rig->accepted);
    }
    tls_rig_free(rig, &contexts);
}

TEST(a_handshake_that_stalls_is_cut_in_the_time_for_the_password)
{
    struct tls_contexts contexts;
    struct rig *rig = tls_rig_new(&contexts);
    struct tls_peer peer = tls_peer_new(rig, false);

    assert_int_equal(0, uv_timer_stop(&rig->loop.second));
    rig->limits.auth_seconds = 3;
    (void)tls_open(peer.tls, (struct slice){ NULL, 0 }, &peer.plain,
                   &peer.sealed);
    peer_send(rig, &peer.raw, (struct slice){ peer.sealed.data, 100 });
    rig_settle(rig);
    timeouts_check(rig->last); /* the second of the accept does not count */
    for (int i = 0; i < 3; i++) {
        assert_false(conn_is_closing(rig->last));
        timeouts_check(rig->last);
    }
    assert_true(conn_is_closing(rig->last));
    tls_peer_free(&peer);
    tls_rig_free(rig, &contexts);
}

TEST(a_record_that_stays_unfinished_is_cut_like_a_request)
{
    struct tls_contexts contexts;
    struct rig *rig = tls_rig_new(&contexts);
    struct tls_peer peer = tls_peer_new(rig, false);

    assert_int_equal(0, uv_timer_stop(&rig->loop.second));
    rig->limits.request_seconds = 3;
    rig->limits.idle_seconds = 1000;
    tls_peer_begin(rig, &peer);
    send_text(rig, &peer, "PING\r\n");
    tls_peer_expect(rig, &peer, "+PING\r\n");
    timeouts_check(rig->last);
    assert_true(tls_seal(peer.tls, slice_lit("PING\r\n"), &peer.sealed));
    peer_send(rig, &peer.raw, (struct slice){ peer.sealed.data, 5 });
    rig_settle(rig);
    for (int i = 0; i < 3; i++) {
        assert_false(conn_is_closing(rig->last));
        timeouts_check(rig->last);
    }
    assert_true(conn_is_closing(rig->last));
    tls_peer_free(&peer);
    tls_rig_free(rig, &contexts);
}

TEST(without_memory_no_tls_client_is_accepted)
{
    struct tls_contexts contexts;
    struct rig *rig = tls_rig_new(&contexts);
    int ends[2];

    for (unsigned nth = 1; nth < 3; nth++) {
        ends_of(BY_UNIX, ends);
        assert_true(registry_reserve(rig->registry, PLACE_COMMON,
                                     rig->limits.maxclients));
        mem_fail_at(nth);
        serve_open(&rig->loop, ends[0], SERVE_UNIX | SERVE_TLS);
        assert_true(mem_fail_clear());
        assert_int_equal(0, rig->loop.open_conns);
        (void)close(ends[1]);
    }
    tls_rig_free(rig, &contexts);
}

/* ---- a connection that becomes a link ------------------------------------ */

struct taken {
    struct owner owner;
    bool done;
};

static bool
take_over(struct fake *fake, const struct slice *argv, size_t argc)
{
    struct taken *taken = fake->rig->takes_ctx;
    struct tls *tls = NULL;
    int fd;

    (void)argc;
    if (!slice_is_word(argv[0], "DETACH")) {
        return false;
    }
    fd = serve_detach(&fake->conn, &tls);
    assert_true(fd >= 0);
    assert_non_null(tls);
    taken->owner.link =
        link_take(fake->conn.loop, fd, &owner_hooks, &taken->owner);
    link_secure(taken->owner.link, tls);
    assert_true(link_send(taken->owner.link, slice_lit("+WELCOME\r\n")));
    taken->done = true;
    return true;
}

TEST(a_detached_connection_goes_on_with_its_tls)
{
    struct tls_contexts contexts;
    struct rig *rig = tls_rig_new(&contexts);
    struct tls_peer peer = tls_peer_new(rig, false);
    struct taken taken = { .done = false };

    rig->takes = take_over;
    rig->takes_ctx = &taken;
    tls_peer_begin(rig, &peer);
    send_text(rig, &peer, "PING\r\n");
    tls_peer_expect(rig, &peer, "+PING\r\n");
    send_text(rig, &peer, "DETACH\r\n");
    tls_peer_expect(rig, &peer, "+WELCOME\r\n");
    assert_int_equal(TLS_MORE, peer.result); /* no close_notify */
    send_text(rig, &peer, "to the link");
    until(rig, &peer, taken.owner.got.len == 11);
    assert_int_equal(1, rig->closed);
    owner_free(&taken.owner);
    until(rig, &peer, peer.raw.ended);
    assert_int_equal(TLS_ENDED, peer.result);
    tls_peer_free(&peer);
    tls_rig_free(rig, &contexts);
}
