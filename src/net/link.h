/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A connection between two servers, or a pipe from the thread that saves: bytes
 * in, bytes out, nothing parsed. It is dialled (link_dial.h), or made of a
 * descriptor (link_take.h). Everything happens on its loop's thread; hooks are
 * called from there, never from inside these functions. After `closed` no hook
 * is called; link_close calls none at all. Any hook may close this link, other
 * links and connections.
 *
 * Bytes that the hook `bytes` leaves unused are kept and given again: with more
 * behind them when more has come, or alone after a pause. While the link is not
 * paused, only the hook limits the kept bytes: it must close a link that sends
 * too much.
 */
#pragma once

#include "base/slice.h"
#include "net/address.h"
#include "net/loop.h"
#include "tls/tls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link;

struct link_hooks { /* each may be NULL */
    /* A dialled link is connected. */
    void (*opened)(void *ctx, struct link *link);
    /* Received bytes, borrowed for the call. Those from *ret_used (0 at first)
     * on are given again. */
    void (*bytes)(void *ctx, struct link *link, struct slice bytes,
                  size_t *ret_used);
    /* The socket has taken at least half of what link_send had left unsent. Not
     * called for bytes that the socket takes at once. */
    void (*drained)(void *ctx, struct link *link);
    /* The link has ended, by the other side (error 0) or by an error (errno);
     * it is freed when this returns. `reason` is for the log and INFO, such as
     * "connection refused". Bytes that the other side sent before its end were
     * given before, unless the link was paused. */
    void (*closed)(void *ctx, struct link *link, int error, const char *reason);
};

/* Makes the link speak TLS. The link owns `tls` from then on; NULL, which means
 * that there was no memory, ends the link. Call it right after link_dial (then
 * `opened` follows the handshake, for which the dialling's timeout holds too)
 * or after link_take of a connection's socket. */
void link_secure(struct link *link, struct tls *tls);

/* Copies and sends in order. Returns false without memory; then close the link,
 * since a part may be sent. On a broken link the bytes are lost, and `closed`
 * follows. */
bool link_send(struct link *link, struct slice bytes);

/* Returns the bytes that the socket has not taken yet. */
size_t link_unsent(const struct link *link);

/* Pauses or resumes a link. While it is paused, it is not read from, and the
 * hook `bytes` is not called. The end of the other side is then noticed only if
 * something is sent. */
void link_pause(struct link *link, bool paused);

/* Closes now; unsent bytes are lost. Hooks may call it, too. */
void link_close(struct link *link);

/* Closes when everything is sent, or after timeout_ms; at once if the link is
 * not open. No hook is called any more, and received bytes are dropped. */
void link_close_after(struct link *link, unsigned timeout_ms);

/* Write "ip:port" of the far and of the near end, as in net/address.h, and the
 * far host alone. They write "" before the link is open, and for a pipe. */
void link_peer_address(const struct link *link, char *ret_text);
void link_local_address(const struct link *link, char *ret_text);
void link_peer_host(const struct link *link, char *ret_text);

/* Sets TCP keep-alive to so many seconds; 0: none. The default is the
 * setting for clients' connections. */
void link_keepalive(struct link *link, unsigned seconds);

/* ---- for loop_run.c ------------------------------------------------------ */

/* Closes all links of a loop that ends. */
void link_close_all(struct loop *loop);

/* Continues with the links that waited for their turn. */
void link_resume_all(struct loop *loop);

/* ---- for link_dial.c and link_take.c ------------------------------------ */

/* Initialises a link and adds it to its loop. */
void link_begin(struct link *link, struct loop *loop,
                const struct link_hooks *hooks, void *ctx);

/* The close callback of a handle that is not used again. */
void link_handle_closed(uv_handle_t *handle);

/* Makes the loop call the closed hook after `ms`, since the owner may be inside
 * one of its calls now. Only the first failure counts. error: errno. */
void link_fail_soon(struct link *link, int error, const char *reason,
                    uint64_t ms);

/* Opens a link whose stream is connected, or whose TLS handshake is done: fills
 * in the addresses and sets the options. */
void link_become_open(struct link *link);

/* Sends what waits, on an open link. */
void link_flush(struct link *link);

/* Begins the TLS handshake of a link that has dialled. */
void link_begin_handshake(struct link *link);

/* Starts or stops reading: a link is read from while it is connected, not
 * paused, and does not wait for its turn. */
void link_settle(struct link *link);
