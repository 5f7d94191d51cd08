/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What one event loop has: its connections, the read and reply buffers that
 * they share, its handles, and how to wake it. Its thread alone uses it, except
 * for the mailbox and loop_wake. loop_run.h starts, runs and stops it. Loop 0
 * runs on the main thread and also has signals, timers and the listeners.
 */
#pragma once

#include "base/buf.h"
#include "base/slice.h"
#include "net/mailbox.h"
#include "proto/stream.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct conn;
struct conn_handler;
struct link;
struct registry;
struct tls_contexts;
struct usage;

enum {
    LOOP_READ_BYTES = 256 * 1024,
    LOOP_FLUSH_BYTES = 64 * 1024, /* replies of this length are sent early */
    LOOP_TURN_US = 2000,          /* the turn of one connection */
    LOOP_TICK_MS = 10 /* after this time parked connections are tried again */
};

/* Subscribers and monitors have output limits of their own, since they do not
 * choose how much they are sent. */
enum output_class { OUTPUT_NORMAL, OUTPUT_PUBSUB };
enum { OUTPUT_CLASSES = OUTPUT_PUBSUB + 1 };

/* Limits of the bytes that a client leaves unread; 0: none. */
struct output_limits {
    _Atomic uint64_t hard_bytes, soft_bytes, soft_seconds;
};

/* The options that net needs, for all loops. Atomic, since CONFIG SET stores
 * here while other loops read. */
struct net_limits {
    struct output_limits output[OUTPUT_CLASSES];
    _Atomic uint64_t idle_seconds;                      /* 0: never */
    _Atomic uint64_t auth_seconds;                      /* 0: no limit */
    _Atomic uint64_t request_seconds, request_min_rate; /* 0: no limit */
    _Atomic uint64_t keepalive_seconds;                 /* 0: never */
    _Atomic uint64_t maxclients, reserved_clients;
    _Atomic uint64_t metrics_seconds, metrics_clients; /* net/http.h */
    _Atomic bool local_only; /* protected mode, and no password is set */
};

/* What all loops share; outlives them. */
struct loop_env {
    const struct net_limits *limits;
    const struct conn_handler *handler;
    struct registry *registry;
    struct usage *usage;      /* NULL: not counted */
    struct tls_contexts *tls; /* NULL: nothing speaks TLS */
    /* The journal's position up to which output may be sent: output is held
     * until this reaches conn->hold_until. The thread that raises it stores
     * with seq_cst and then calls loop_wake for every loop. NULL: output is
     * never held. */
    const _Atomic uint64_t *released;
    /* While true, output that would be held is replaced (handler->give_up). It
     * is stored and announced like `released`. NULL: never. */
    const atomic_bool *gives_up;
    /* Where the log ends: no position behind it will be released. It only falls
     * when another log takes the place of this one. NULL: there is no log. */
    const _Atomic uint64_t *log_end;
};

struct conn_list {
    struct conn *first, *last;
};

/* Replies that are sent at the end of the turn (pending.h). */
struct pending {
    struct buf replies;
    struct conn *first, *last; /* without a `first`, `last` is undefined */
    uint64_t since_ns;         /* loop->now_ns when the first one was added */
};

/* The struct has more than 30 fields, since a loop is the whole state of one
 * thread: six libuv handles, the lists in which its connections wait, and the
 * buffers that they share. Only the loop's thread uses them, except `mailbox`
 * and `waiting`. */
struct loop {
    uv_loop_t uv;
    unsigned index;
    pthread_t thread;
    bool has_thread, stopping;
    struct mailbox mailbox;
    const struct loop_env *env;
    void *owner; /* the engine's worker */

    struct conn_list conns;            /* all that are open */
    struct conn *pushed, **pushed_end; /* with pushes that are not sent yet
                                          (push.h); oldest first */
    size_t pushed_bytes;               /* pushed bytes of all connections */
    struct link *links;                /* all that are open or being dialled */
    struct link *links_soon;           /* those that wait for their turn */
    uv_idle_t idle;      /* active while anything waits for its turn */
    uv_timer_t second;   /* timeouts */
    uint64_t second_ms;  /* uv_now when `second` last fired */
    uint32_t open_conns; /* connections whose close callback has not run yet */

    /* Connections that wait, by conn->wait: for their turn, or for an event or
     * for room (parked). A connection is in at most one of these lists. */
    struct conn *resumable, *parked, *parked_for_room;
    struct conn *turns; /* those of `resumable` that are served now */

    const _Atomic uint64_t *released; /* the environment's, never NULL */
    const atomic_bool *gives_up;      /* the environment's, never NULL */
    const _Atomic uint64_t *log_end;  /* the environment's, never NULL */
    struct conn *held, **held_end;    /* with held output; oldest first */
    atomic_bool waiting; /* output is held or connections are parked, so that
                            loop_wake must wake the loop */
    bool releasing;      /* a release of held output goes on (hold.h) */
    bool turn_open;      /* commands were executed since turn_end */
    bool above;          /* clients went above maxmemory-clients */
    uv_async_t wake;
    uv_timer_t tick; /* active while connections are parked */
    uv_check_t check;
    uv_prepare_t prepare;

    char *read_buffer; /* LOOP_READ_BYTES, shared by all reads */
    struct buf reply;  /* replies of the batch being executed */
    /* What a TLS connection or link has just received, and what it is about to
     * send. `sealed` is empty again before another connection needs it. */
    struct buf opened, sealed;
    struct pending pending; /* replies of this turn */
    uint64_t now_ns; /* the monotonic clock, as last read while executing */
    uint64_t turn_ends_ns; /* when the turn of the present connection ends */
    struct batch batch;
    struct conn *executing; /* execute was called for it and has not returned */
    size_t behind_batch;    /* its unparsed bytes behind the batch */
    struct stream_pool *pool;
};

/* Makes libuv's form of bytes to write. uv_buf_init takes an unsigned int, and
 * bytes may be more. libuv does not write through the pointer. */
static inline uv_buf_t
loop_uv_buf(struct slice bytes)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): only casts const away */
    return (uv_buf_t){ .base = (char *)(uintptr_t)bytes.data,
                       .len = bytes.len };
}

/* Keeps the loop from waiting for I/O: it serves `resumable` and `links_soon`
 * first. */
void loop_resume_soon(struct loop *loop);

/* Starts the tick: parked connections are resumed within LOOP_TICK_MS. */
void loop_tick_soon(struct loop *loop);

/* Lets loop_wake wake the loop from now on. Read (seq_cst) what loop_wake
 * announces only after this call. */
void loop_expect_wake(struct loop *loop);

/* Makes the loop examine its held output and its parked connections, if it has
 * any. Any thread, before loop_fini. Call it after storing what they wait for.
 */
void loop_wake(struct loop *loop);
