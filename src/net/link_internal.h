/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What link.c and link_dial.c share. A link has a timer, a stream, and while a
 * name is looked up an async; it is freed when the last of them is closed, so
 * that whoever calls a hook can look at `closing` afterwards, whatever the hook
 * did.
 *
 *   LOOKING -> CONNECTING (address after address) -> OPEN -> LEAVING
 *
 * The timer is for what each state waits for at most; when something has failed
 * (link_fail_soon) it is what tells of it.
 */
#pragma once

#include "base/buf.h"
#include "net/link.h"

enum { LINK_MAGIC = 0x6c696e6b };

struct lookup;

enum link_state { LINK_LOOKING, LINK_CONNECTING, LINK_OPEN, LINK_LEAVING };

struct link {
    uint32_t magic;
    enum link_state state;
    bool closing; /* link_close was called */
    bool paused, reading;
    bool again;  /* what is kept is given when its turn comes */
    bool failed; /* closed comes, by the timer */
    bool is_socket, is_tcp;
    bool has_stream, has_async;
    unsigned handles; /* not through their close callback */
    const struct link_hooks *hooks;
    void *ctx;
    struct loop *loop;
    struct link *next, *prev; /* of the loop */
    /* In a list of those whose turn comes: they are not read from before. */
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
    const struct addrinfo *next_address; /* of the lookup */
    uv_connect_t connect;
    uint64_t deadline_ms; /* uv_now */

    int error; /* the last one, and its text */
    const char *reason;

    struct buf kept; /* what `bytes` has left unused */

    uv_write_t write;
    bool writing;
    struct buf sending, waiting;
    size_t sent_to; /* of sending, given to libuv */
    size_t peak;    /* of unsent bytes, since `drained` was told last */

    unsigned keepalive_s;
    char peer[ADDRESS_TEXT_MAX], local[ADDRESS_TEXT_MAX];
    char host[ADDRESS_TEXT_MAX];
};

/* A new link in its loop's list. */
void link_begin(struct link *link, struct loop *loop,
                const struct link_hooks *hooks, void *ctx);

/* In the close callback of a handle that is not used again. */
void link_handle_closed(uv_handle_t *handle);

void link_start_timer(struct link *link, uint64_t ms);

/* Told by `closed` from the loop, after ms: this may be inside a call of the
 * owner's. The first failure counts. error: errno. */
void link_fail_soon(struct link *link, int error, const char *reason,
                    uint64_t ms);

/* libuv's codes are negative errno values. */
static inline int
link_errno(int status)
{
    return -status;
}

/* The stream is connected; to be followed by link_settle. */
void link_become_open(struct link *link);

/* Of an open one: sends what waits. */
void link_flush(struct link *link);

/* Reads exactly while it is open and to be read from. */
void link_settle(struct link *link);

/* ---- link_dial.c --------------------------------------------------------- */

/* The timer of a link that is not open yet. */
void link_dial_timeout(struct link *link);
