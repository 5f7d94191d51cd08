/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Peers that speak TLS, by the filter that net has itself.
 */
#pragma once

#include "../tls/certs.h"
#include "rig.h"
#include "tls/tls.h"

struct tls_peer {
    struct peer raw;
    struct tls *tls;
    struct buf plain, sealed;
    enum tls_result result;
};

/* A rig whose listeners could speak TLS, with the settings of certs.h. */
struct rig *tls_rig_new(struct tls_contexts *contexts);
void tls_rig_free(struct rig *rig, struct tls_contexts *contexts);

/* A new client on the rig's loop and its other end, before the handshake.
 * small: as for peer_new. */
struct tls_peer tls_peer_new(struct rig *rig, bool small);

/* The side that was dialled, on a socket. */
struct tls_peer tls_peer_accepted(struct tls_contexts *contexts, int fd);
void tls_peer_free(struct tls_peer *peer);

/* Carries bytes in both directions, and turns the loop. */
void tls_peer_turn(struct rig *rig, struct tls_peer *peer);

/* Does the handshake. */
void tls_peer_begin(struct rig *rig, struct tls_peer *peer);

void tls_peer_send(struct rig *rig, struct tls_peer *peer, struct slice bytes);
void tls_peer_expect(struct rig *rig, struct tls_peer *peer, const char *text);
