/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Links that dial with TLS: the handshake comes before `opened`, and everything
 * else is as without it.
 */
#include "net/link_dial.h"

#include "link_help.h"
#include "tls_help.h"

struct dialled {
    struct tls_contexts contexts;
    struct rig *rig;
    struct owner owner;
    int listening;
    unsigned port;
    struct tls_peer peer;
};

/* Dials, and accepts at the other end. */
static void
dial(struct dialled *d, const struct tls_settings *settings,
     unsigned timeout_ms)
{
    *d = (struct dialled){ .listening = -1 };
    d->rig = tls_rig_new(&d->contexts);
    if (settings != NULL) {
        certs_load(&d->contexts, settings);
    }
    d->listening = listen_on("127.0.0.1", &d->port, 1);
    d->owner.link = link_dial(&d->rig->loop, "127.0.0.1", d->port, timeout_ms,
                              &owner_hooks, &d->owner);
    link_secure(d->owner.link, tls_new_dial(&d->contexts, "127.0.0.1"));
    d->peer = tls_peer_accepted(
        &d->contexts,
        (rig_settle(d->rig), accept4(d->listening, NULL, NULL, SOCK_CLOEXEC)));
}

static void
hang_up(struct dialled *d)
{
    owner_free(&d->owner);
    tls_peer_free(&d->peer);
    (void)close(d->listening);
    tls_rig_free(d->rig, &d->contexts);
}

#define until(d, cond)                                                         \
    rig_until((d)->rig, (tls_peer_turn((d)->rig, &(d)->peer), (cond)))

TEST(a_dialled_link_opens_after_its_handshake)
{
    struct dialled d;

    dial(&d, NULL, DEADLINE_MS);
    assert_true(owner_send(&d.owner, slice_lit("early ")));
    rig_settle(d.rig);
    assert_int_equal(0, d.owner.opened);
    assert_true(link_unsent(d.owner.link) >= 6);
    until(&d, d.owner.opened == 1);
    assert_true(owner_send(&d.owner, slice_lit("hello")));
    tls_peer_expect(d.rig, &d.peer, "early hello");
    tls_peer_send(d.rig, &d.peer, slice_lit("you"));
    until(&d, d.owner.got.len == 3);
    assert_int_equal(0, link_unsent(d.owner.link));
    link_close(d.owner.link);
    d.owner.link = NULL;
    until(&d, d.peer.raw.ended);
    assert_int_equal(TLS_ENDED, d.peer.result);
    hang_up(&d);
}

TEST(long_streams_arrive_whole)
{
    enum { PIECE = 100000, PIECES = 40 };
    static char bytes[PIECE];
    struct dialled d;

    dial(&d, NULL, DEADLINE_MS);
    until(&d, d.owner.opened == 1);
    for (size_t i = 0; i < PIECES; i++) {
        pattern_fill(bytes, i * PIECE, PIECE);
        assert_true(owner_send(&d.owner, (struct slice){ bytes, PIECE }));
        tls_peer_turn(d.rig, &d.peer);
    }
    until(&d, d.peer.plain.len == (size_t)PIECE * PIECES);
    assert_pattern(buf_slice(&d.peer.plain), 0);
    assert_int_equal(0, link_unsent(d.owner.link));
    for (size_t i = 0; i < PIECES; i++) {
        pattern_fill(bytes, i * PIECE, PIECE);
        tls_peer_send(d.rig, &d.peer, (struct slice){ bytes, PIECE });
    }
    until(&d, d.owner.got.len == (size_t)PIECE * PIECES);
    assert_pattern(buf_slice(&d.owner.got), 0);
    hang_up(&d);
}

TEST(a_handshake_that_is_not_answered_ends_in_time)
{
    struct dialled d;

    dial(&d, NULL, 50);
    rig_until(d.rig, d.owner.closed == 1);
    assert_int_equal(0, d.owner.opened);
    assert_int_equal(ETIMEDOUT, d.owner.error);
    assert_string_equal("the TLS handshake took too long", d.owner.reason);
    hang_up(&d);
}

TEST(a_server_that_is_not_trusted_ends_the_link_with_the_reason)
{
    struct tls_settings settings = certs_settings();
    struct dialled d;

    settings.cert_file = certs_get()->stale;
    settings.key_file = certs_get()->stale;
    dial(&d, &settings, DEADLINE_MS);
    until(&d, d.owner.closed == 1);
    assert_int_equal(0, d.owner.opened);
    assert_string_equal("certificate has expired", d.owner.reason);
    hang_up(&d);
}

TEST(a_server_without_tls_ends_the_link_with_the_reason)
{
    struct dialled d;

    dial(&d, NULL, DEADLINE_MS);
    peer_send_text(d.rig, &d.peer.raw, "-ERR unknown command\r\n");
    rig_until(d.rig, d.owner.closed == 1);
    assert_int_equal(EPROTO, d.owner.error);
    assert_string_equal("wrong version number", d.owner.reason);
    hang_up(&d);
}

TEST(an_end_of_the_other_side_is_told_after_its_bytes)
{
    struct dialled d;

    dial(&d, NULL, DEADLINE_MS);
    until(&d, d.owner.opened == 1 && tls_is_established(d.peer.tls));
    assert_true(tls_seal(d.peer.tls, slice_lit("last"), &d.peer.sealed));
    tls_end(d.peer.tls, &d.peer.sealed);
    until(&d, d.owner.closed == 1);
    assert_int_equal(0, d.owner.error);
    assert_true(slice_equal(slice_lit("last"), buf_slice(&d.owner.got)));
    hang_up(&d);
}

TEST(a_link_that_closes_after_sends_its_records_first)
{
    static char bytes[3000000];
    struct dialled d;

    dial(&d, NULL, DEADLINE_MS);
    until(&d, d.owner.opened == 1);
    pattern_fill(bytes, 0, sizeof(bytes));
    assert_true(owner_send(&d.owner, (struct slice){ bytes, sizeof(bytes) }));
    link_close_after(d.owner.link, DEADLINE_MS);
    d.owner.link = NULL;
    until(&d, d.peer.raw.ended);
    assert_int_equal(sizeof(bytes), d.peer.plain.len);
    assert_pattern(buf_slice(&d.peer.plain), 0);
    hang_up(&d);
}

TEST(without_memory_for_tls_a_link_does_not_go_on_plain)
{
    struct dialled d;

    d = (struct dialled){ .listening = -1 };
    d.rig = tls_rig_new(&d.contexts);
    d.listening = listen_on("127.0.0.1", &d.port, 1);
    d.owner.link = link_dial(&d.rig->loop, "127.0.0.1", d.port, DEADLINE_MS,
                             &owner_hooks, &d.owner);
    link_secure(d.owner.link, NULL);
    rig_until(d.rig, d.owner.closed == 1);
    assert_int_equal(ENOMEM, d.owner.error);
    d.peer.raw.fd = -1;
    hang_up(&d);
}
