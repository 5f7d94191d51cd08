/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The struct that link.c, link_dial.c and link_take.c share. A link has a
 * timer, a stream, and, while a name is looked up, an async; it is freed when
 * the last of them is closed, so that a caller of a hook can still read its
 * state, whatever the hook did. Every state may become CLOSED; a link that is
 * made of a descriptor begins as OPEN.
 *
 *   LOOKING -> CONNECTING (address after address) -> OPEN -> LEAVING -> CLOSED
 *
 * With TLS, SECURING comes between CONNECTING and OPEN.
 *
 * The timer limits how long each state but OPEN may last. After a failure
 * (link_fail_soon) it calls the closed hook.
 */
#pragma once

#include "base/buf.h"
#include "net/address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum { LINK_MAGIC = 0x6c696e6b };

struct link_hooks;
struct loop;
struct lookup;
struct tls;

enum link_state {
    LINK_LOOKING,
    LINK_CONNECTING,
    LINK_SECURING, /* the TLS handshake */
    LINK_OPEN,
    LINK_LEAVING, /* link_close_after: sends what is left */
    LINK_CLOSED   /* link_close: its handles are closing */
};
enum link_kind { LINK_PIPE, LINK_UNIX, LINK_TCP };

/* The struct has more than 30 fields, since dialling, reading and writing share
 * one lifetime; all of them belong to the loop's thread. */
struct link {
    uint32_t magic;
    enum link_state state;
    bool paused, reading;
    bool again;  /* `kept` is given again at the next turn */
    bool failed; /* the timer will call the closed hook */
    enum link_kind kind;
    bool has_stream, has_async;
    unsigned handles; /* handles that are not closed yet */
    const struct link_hooks *hooks;
    void *ctx;
    struct loop *loop;
    struct link *next, *prev; /* in loop->links */
    /* In loop->links_soon while it waits for its turn, and is not read from. */
    struct link *next_soon, **soon_at;
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    uv_timer_t timer;

    /* dialling */
    uv_async_t async;
    struct lookup *lookup;
    const struct addrinfo *next_address; /* the lookup's next address */
    uv_connect_t connect;
    /* By the run clock: the deadline of the whole dialling, and of what `timer`
     * waits for. */
    uint64_t deadline_ms, timeout_ms;

    int error; /* the last error: errno and a text */
    const char *reason;

    struct tls *tls; /* NULL: plain */
    struct buf kept; /* received bytes that the bytes hook left unused */

    uv_write_t write;
    bool writing;
    struct buf sending, waiting;
    size_t sent_to; /* bytes of `sending` that libuv has */
    /* With TLS, `sending` and `sealed` are records and `waiting` is plain; its
     * first waiting_at bytes are in `sending` already. */
    struct buf sealed; /* is sent before `waiting` */
    size_t waiting_at;
    size_t peak; /* the most unsent bytes since the last call of `drained` */

    unsigned keepalive_s;
    char peer[ADDRESS_TEXT_MAX], local[ADDRESS_TEXT_MAX];
    char host[ADDRESS_TEXT_MAX];
};

/* Returns the errno value of libuv's code, which is its negative. */
static inline int
link_errno(int status)
{
    return -status;
}
