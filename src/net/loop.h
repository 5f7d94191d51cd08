/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One event loop and its thread: the connections that belong to it, the read
 * and reply buffers that they share, the pool of readers. All of it is touched
 * by this thread alone, except the mailbox and loop_wake. Loop 0 runs on the
 * main thread and also has signals, timers and the listeners.
 */
#pragma once

#include "base/buf.h"
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
struct usage;

enum {
    LOOP_READ_BYTES = 256 * 1024,
    LOOP_FLUSH_BYTES = 64 * 1024, /* of replies: sent before more is executed */
    LOOP_TURN_US = 2000, /* one connection's turn, then others have theirs */
    LOOP_TICK_MS = 10 /* parked connections are called again, at the latest */
};

/* Whose output is limited how: who listens to messages or monitors does not
 * choose what it is sent, so that it has limits of its own. */
enum output_class { OUTPUT_NORMAL, OUTPUT_PUBSUB };
enum { OUTPUT_CLASSES = OUTPUT_PUBSUB + 1 };

/* Of bytes that a client leaves unread; 0: none. */
struct output_limits {
    _Atomic uint64_t hard_bytes, soft_bytes, soft_seconds;
};

/* What the network side needs of the configuration, for all loops. Atomic,
 * since CONFIG SET stores here while other loops read. */
struct net_limits {
    struct output_limits output[OUTPUT_CLASSES];
    _Atomic uint64_t idle_seconds;                      /* 0: never */
    _Atomic uint64_t auth_seconds;                      /* 0: no limit */
    _Atomic uint64_t request_seconds, request_min_rate; /* likewise */
    _Atomic uint64_t keepalive_seconds;                 /* 0: never */
    _Atomic uint64_t maxclients, reserved_clients;
    _Atomic bool local_only; /* protected mode, and no password is set */
};

/* What loops are made with; outlives them. */
struct loop_env {
    const struct net_limits *limits;
    const struct conn_handler *handler;
    struct registry *registry;
    struct usage *usage; /* NULL: what connections take is not counted */
    /* Output waits until this reaches conn->hold_until. Whoever moves it stores
     * with seq_cst, and calls loop_wake for every loop. NULL: nothing waits. */
    const _Atomic uint64_t *released;
    /* While true, what would have to wait is replaced (handler->give_up).
     * Stored and told like released. NULL: never. */
    const atomic_bool *gives_up;
};

struct conn_list {
    struct conn *first, *last;
};

/* What is sent at the end of the turn (pending.h). */
struct pending {
    struct buf replies;
    struct conn *first, *last; /* last: of no meaning without a first */
    uint64_t since_ns;         /* loop->now_ns, when the first came */
};

struct loop {
    uv_loop_t uv;
    unsigned index;
    pthread_t thread;
    bool has_thread, stopping;
    struct mailbox mailbox;
    const struct loop_env *env;
    void *owner; /* the command layer's worker */

    struct conn_list conns;  /* all that are open */
    struct conn *resumable;  /* paused handlers to call again */
    struct conn *pushed;     /* have pushes that are not sent yet (push.h) */
    size_t pushed_bytes;     /* of all of them */
    struct link *links;      /* all that are open or being dialled */
    struct link *links_soon; /* whose turn comes with those of resumable */
    uv_idle_t idle;          /* runs while there are any of either */
    uv_timer_t second;       /* idle and output timeouts */
    uint32_t open_conns;     /* not yet through their close callback */

    const _Atomic uint64_t *released; /* the environment's, never NULL */
    const atomic_bool *gives_up;      /* likewise */
    struct conn *held, **held_end;    /* have held output; oldest first */
    struct conn *parked, *parked_for_room;
    atomic_bool waiting; /* somebody is held or parked: loop_wake does it */
    bool turn_open;      /* something was executed since turn_end */
    bool above;          /* clients went above maxmemory-clients */
    uv_async_t wake;
    uv_timer_t tick; /* runs while connections are parked */
    uv_check_t check;
    uv_prepare_t prepare;

    char *read_buffer;      /* LOOP_READ_BYTES, shared by all reads */
    struct buf reply;       /* replies of the batch being executed */
    struct pending pending; /* replies of this turn */
    uint64_t now_ns;        /* mono clock, as read last while executing */
    uint64_t turn_ends_ns;  /* of the connection being served; likewise */
    struct batch batch;
    struct conn *executing; /* execute was called for it and has not returned */
    size_t behind_batch;    /* bytes of it that came behind the batch */
    struct stream_pool *pool;
};

/* Has libuv take its memory from base/mem.h, all of the reserve included. Call
 * it before anything else of libuv. */
void loop_use_mem(void);

/* Prepares a loop; threads start with loop_start (never for loop 0, whose
 * owner calls loop_run). Aborts if the kernel refuses descriptors at start. */
void loop_init(struct loop *loop, unsigned index, const struct loop_env *env,
               void *owner);
void loop_start(struct loop *loop);
void loop_run(struct loop *loop);

/* The loop looks at `resumable` before it waits again. */
void loop_resume_soon(struct loop *loop);

/* Any thread, before loop_fini: the loop looks at its held and its parked
 * connections soon. Cheap when there are none, and not lost when one becomes
 * held meanwhile, if the caller stored released before. */
void loop_wake(struct loop *loop);

/* From here on loop_wake wakes the loop. What it tells about must be read
 * (seq_cst) afterwards. */
void loop_expect_wake(struct loop *loop);

/* Parked connections are resumed at the latest in LOOP_TICK_MS. */
void loop_tick_soon(struct loop *loop);

/* The loop sends what is released, as far as sockets take it, closes its
 * connections and ends. loop_stop is for other threads, loop_stop_here for its
 * own. */
void loop_stop(struct loop *loop);
void loop_stop_here(struct loop *loop);
void loop_join(struct loop *loop);
void loop_fini(struct loop *loop);
