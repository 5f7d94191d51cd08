/* SPDX-License-Identifier: BSD-3-Clause */
#include "tls_help.h"

struct rig *
tls_rig_new(struct tls_contexts *contexts)
{
    struct tls_settings settings = certs_settings();
    struct rig *rig;

    tls_contexts_init(contexts);
    certs_load(contexts, &settings);
    rig = rig_new();
    rig->env.tls = contexts;
    return rig;
}

void
tls_rig_free(struct rig *rig, struct tls_contexts *contexts)
{
    rig_free(rig);
    tls_contexts_fini(contexts);
}

struct tls_peer
tls_peer_new(struct rig *rig, bool small)
{
    struct tls_peer peer = { .result = TLS_MORE };
    int bytes = SMALL_SOCKET;
    int ends[2];

    assert_int_equal(0,
                     socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    for (int i = 0; i < 2 && small; i++) {
        (void)setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    }
    assert_true(
        registry_reserve(rig->registry, PLACE_COMMON, rig->limits.maxclients));
    assert_int_equal(0, fcntl(ends[0], F_SETFL, O_NONBLOCK));
    peer.tls = tls_new_dial(rig->env.tls, "localhost");
    assert_non_null(peer.tls);
    serve_open(&rig->loop, ends[0], SERVE_UNIX | SERVE_TLS);
    peer.raw = peer_of(ends[1]);
    return peer;
}

struct tls_peer
tls_peer_accepted(struct tls_contexts *contexts, int fd)
{
    struct tls_peer peer = { .result = TLS_MORE };

    peer.tls = tls_new_server(contexts);
    assert_non_null(peer.tls);
    peer.raw = peer_of(fd);
    return peer;
}

void
tls_peer_free(struct tls_peer *peer)
{
    peer_free(&peer->raw);
    tls_free(peer->tls);
    buf_free(&peer->plain);
    buf_free(&peer->sealed);
}

static void
open_received(struct tls_peer *peer)
{
    while (peer_take(&peer->raw)) {
        peer->result = tls_open(peer->tls, buf_slice(&peer->raw.got),
                                &peer->plain, &peer->sealed);
        peer->raw.got.len = 0;
    }
}

void
tls_peer_turn(struct rig *rig, struct tls_peer *peer)
{
    open_received(peer);
    if (peer->sealed.len > 0) {
        ssize_t n = send(peer->raw.fd, peer->sealed.data, peer->sealed.len,
                         MSG_NOSIGNAL);

        if (n >= 0) {
            buf_consume(&peer->sealed, (size_t)n);
        } else if (errno != EAGAIN) {
            peer->raw.ended = true;
            peer->sealed.len = 0;
        }
    }
    rig_turn(rig);
}

#define tls_until(rig, peer, cond)                                             \
    rig_until(rig, (tls_peer_turn(rig, peer), (cond)))

void
tls_peer_begin(struct rig *rig, struct tls_peer *peer)
{
    peer->result = tls_open(peer->tls, (struct slice){ NULL, 0 }, &peer->plain,
                            &peer->sealed);
    tls_until(rig, peer, tls_is_established(peer->tls) || peer->raw.ended);
    tls_until(rig, peer, peer->sealed.len == 0);
}

void
tls_peer_send(struct rig *rig, struct tls_peer *peer, struct slice bytes)
{
    assert_true(tls_seal(peer->tls, bytes, &peer->sealed));
    tls_until(rig, peer, peer->sealed.len == 0 || peer->raw.ended);
}

void
tls_peer_expect(struct rig *rig, struct tls_peer *peer, const char *text)
{
    tls_until(rig, peer, peer->plain.len >= strlen(text) || peer->raw.ended);
    if (!slice_equal(buf_slice(&peer->plain), slice_of(text))) {
        fail_msg("got [%.*s] and not [%s]", (int)peer->plain.len,
                 peer->plain.len > 0 ? peer->plain.data : "", text);
    }
    peer->plain.len = 0;
}
