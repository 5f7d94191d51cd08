/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A connection between two servers, or a pipe from a child: bytes in, bytes
 * out, nothing parsed. Dialled, or taken over from a client's connection
 * (conn_detach). All of it on its loop's thread; hooks are called from there,
 * never from inside a call of these functions. After `closed` no hook is
 * called; link_close calls none at all. Links and conns may be closed in any
 * hook, this one or others.
 *
 * What `bytes` leaves unused is kept and given again: with more behind it when
 * more has come, or by itself after a pause. How much that may become without
 * a pause is for the hook to say: it closes a link that brings no end of it.
 */
#pragma once

#include "base/slice.h"
#include "net/address.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link;

struct link_hooks { /* NULL: nobody wants to know */
    /* A dialled one is connected. */
    void (*opened)(void *ctx, struct link *link);
    /* Borrowed for the call. From *ret_used (0 at first) on they are given
     * again. */
    void (*bytes)(void *ctx, struct link *link, struct slice bytes,
                  size_t *ret_used);
    /* The socket took what it had left of link_send, or half of it at least.
     * Not called for what it takes at once. */
    void (*drained)(void *ctx, struct link *link);
    /* Its end, the other side's (error 0) or an error's (errno); it is freed
     * when this returns. reason: for the log and INFO, "connection refused" and
     * such. What the other side sent before its end was given before, unless
     * the link was paused. */
    void (*closed)(void *ctx, struct link *link, int error, const char *reason);
};

/* Looks the host up and connects to its addresses, one after the other until
 * one answers, all within timeout_ms. Never NULL: what goes wrong is told by
 * closed. What is sent before it is open goes out when it is. */
struct link *link_dial(struct loop *loop, const char *host, unsigned port,
                       unsigned timeout_ms, const struct link_hooks *hooks,
                       void *ctx);

/* Takes the descriptor over: a stream socket, or the read end of a pipe. NULL:
 * it could not, and the descriptor is closed. */
struct link *link_take(struct loop *loop, int fd,
                       const struct link_hooks *hooks, void *ctx);

/* Copies and sends in order. False: no memory; the link should be closed, since
 * a part may be out. On a broken one the bytes are lost: closed comes. */
bool link_send(struct link *link, struct slice bytes);

/* What was sent and the socket has not taken. */
size_t link_unsent(const struct link *link);

/* While paused nothing is read, and `bytes` not called; nor is the other side's
 * end noticed, unless something is sent. */
void link_pause(struct link *link, bool paused);

/* Now; what is unsent is lost. Also from inside a hook. */
void link_close(struct link *link);

/* Closes when all is sent, or after timeout_ms; at once if it is not open. No
 * hook is called any more, and what comes in is dropped. */
void link_close_after(struct link *link, unsigned timeout_ms);

/* "ip:port" of the far and the near end, as in net/address.h; the host alone.
 * "" before it is open, and of a pipe. */
void link_peer_address(const struct link *link, char *ret_text);
void link_local_address(const struct link *link, char *ret_text);
void link_peer_host(const struct link *link, char *ret_text);

/* TCP keep-alive after so many seconds; 0: none. At first as for clients. */
void link_keepalive(struct link *link, unsigned seconds);

/* ---- for loop.c ---------------------------------------------------------- */

/* Closes all links of a loop: its end. */
void link_close_all(struct loop *loop);

/* Goes on with links that had to wait for their turn. */
void link_resume_all(struct loop *loop);
