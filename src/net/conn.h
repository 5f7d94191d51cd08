/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One connection: a socket that belongs to one loop for life, the lists that it
 * waits in, and its end. Embedded in its owner (engine/client.h), which frees
 * it in the closed hook, the last event of a connection.
 *
 *   read -> stream_parse -> handler->execute -> loop->reply     serve.h
 *     -> held until the journal has released it                   hold.h
 *     -> short ones wait for the end of the loop's turn           pending.h
 *     -> one try_write; what the socket does not take is kept     outbox.h
 *
 * The bytes of TLS are opened before the first of these steps and sealed in the
 * last one (tls.h); all others see plain bytes.
 *
 * While too much is held, nothing more is read or executed. Unread replies do
 * not stop a connection: many clients write a whole pipeline before they read
 * the first reply, and would wait for ever. A client that leaves more than the
 * hard limit unread, or more than the soft limit for too long, is cut. Held
 * replies are not the client's fault and do not count.
 *
 * What a connection keeps counts towards maxmemory-clients (usage.h): its
 * unfinished request, the input behind a command that waits, unsent and held
 * replies, and what the owner adds (its own state, a transaction,
 * subscriptions). Buffers count with their capacity.
 */
#pragma once

#include "base/buf.h"
#include "net/address.h"
#include "net/loop.h"
#include "net/registry.h"
#include "net/usage.h"
#include "proto/stream.h"
#include "tls/tls.h"

#include <stdatomic.h>

enum { CONN_MAGIC = 0x636f6e6e };

/* The owner's hooks, called on the loop's thread. Those marked optional may be
 * NULL. */
struct conn_handler {
    /* Makes the owner of a new connection; NULL (no memory) refuses the
     * connection. */
    struct conn *(*accept)(struct loop *loop);
    /* Executes commands from `first` on, in order, appends whole replies to
     * conn->loop->reply, and raises conn->hold_until to the position that they
     * have to wait for. Returns the first command that is not done: less than
     * the count when the connection closes, when it has to wait (the hook has
     * called conn_resume_later or conn_park), or when replies should be sent
     * first. */
    uint32_t (*execute)(struct conn *conn, const struct batch *batch,
                        uint32_t first);
    /* Writes the reply to a protocol error; the connection closes after it. */
    void (*protocol_error)(struct conn *conn, const struct parse_error *error);
    /* Says what the client may send now. */
    void (*limits)(struct conn *conn, struct parse_limits *ret_limits);
    void (*closed)(struct conn *conn);
    /* Called before serve_kill closes the connection: other threads must no
     * longer see it when the client sees its end. Optional. */
    void (*killed)(struct conn *conn);
    /* Returns whether connections that wait for room may go on; one call is for
     * all of them. NULL: they always may. */
    bool (*has_room)(struct loop *loop);
    /* Called when commands were executed, and the loop is about to wait or to
     * serve the connections that wait for their turn. Optional. */
    void (*turn_end)(struct loop *loop);
    /* Appends what is sent instead of `held`: these are whole replies whose
     * position was not released, because the disk has failed for too long.
     * Needed where the environment has gives_up. */
    void (*give_up)(struct conn *conn, struct slice held,
                    struct buf *ret_replies);
};

/* A connection goes through these states in order. CONN_LEAVING: nothing more
 * is read or executed, the connection closes when everything is sent
 * (conn_leave). CONN_CLOSING: uv_close was called (conn_close), the closed hook
 * follows. */
enum conn_state { CONN_OPEN, CONN_LEAVING, CONN_CLOSING };

/* What an open connection waits for, other than input and the release of held
 * output. Meanwhile execute is not called.
 *
 *   from        to          when
 *   RUNS        FOR_TURN    conn_resume_later: the rest has to wait for others
 *   RUNS        FOR_EVENT   conn_park, until loop_wake or a tick
 *   RUNS        FOR_ROOM    conn_park, until has_room or a second
 *   FOR_EVENT   RETRIES     its event may have come
 *   FOR_ROOM    RETRIES     there may be room
 *   FOR_TURN    RUNS        its turn has come; the command may wait again
 *   RETRIES     RUNS        its turn has come; the command may wait again
 *   any         RUNS        conn_close
 */
enum conn_wait {
    CONN_RUNS,
    CONN_FOR_TURN,  /* in loop->resumable, at last in loop->turns */
    CONN_FOR_EVENT, /* in loop->parked */
    CONN_FOR_ROOM,  /* in loop->parked_for_room */
    CONN_RETRIES    /* in the same lists, after it was parked */
};

/* Output that waits for its position. Two segments: the first, whose position
 * is fixed, and the rest, which gathers what comes meanwhile and whose position
 * rises (hold.h). */
struct hold_segment {
    struct buf bytes;
    uint64_t until;
};
struct hold {
    struct hold_segment first, rest; /* if `first` is empty, so is `rest` */
    struct conn *next, **at;         /* in loop->held */
    bool used;                       /* it was used since the last hold_trim */
};

/* Output that the socket did not take: one write under way, and what comes
 * meanwhile (outbox.h). In a TLS connection, `sending` and `sealed` are
 * records, and `waiting` is plain text, which is sealed piece by piece when it
 * can be sent. */
struct outbox {
    uv_write_t write;
    struct buf sending, waiting;
    size_t waiting_at; /* bytes of `waiting` that are in `sending` already */
    struct buf sealed; /* is sent before `waiting` */
    uint64_t over_since_ms; /* over the soft limit; 0: it is not */
    size_t unsent_before;   /* unsent bytes at the last outbox_moved */
};

/* The struct has more than 30 fields, since a connection is a member of seven
 * lists and has what each stage of its output needs. All fields belong to the
 * loop's thread, except the atomic ones and `registered`. */
struct conn {
    uint32_t magic;
    enum conn_state state;
    enum conn_wait wait;
    bool reading;
    bool full;   /* too much is held: it has to wait */
    bool rested; /* there was a time without reading since the last look at
                    timeouts */
    bool is_unix;
    bool is_reserved;   /* it has a place that is reserved for the operator */
    atomic_bool exempt; /* exempt from maxmemory-clients: CLIENT NO-EVICT */
    bool trusted; /* authenticated: the configured output limits apply to it */
    enum output_class output_class; /* OUTPUT_PUBSUB is never idle */
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    struct loop *loop;
    struct tls *tls; /* NULL: plain */
    struct stream input;
    struct buf kept;        /* unparsed bytes while the connection waits */
    size_t parked_bytes;    /* bytes of `kept` that are the parked command; 0:
                               unknown */
    uint32_t pending_bytes; /* bytes in loop->pending; 0: none */
    uint32_t pending_at;    /* where they are in loop->pending */
    struct conn *next_pending;
    struct outbox *outbox; /* NULL when everything is sent */
    struct hold *hold;     /* may exist when nothing is held */
    size_t held_bytes;     /* 0: nothing is held */
    /* The position of the journal for which output waits from now on. It only
     * rises, unless the log is replaced by one that ends earlier. */
    uint64_t hold_until;
    struct conn *next, *prev;                /* in loop->conns */
    struct conn *next_waiting, **waiting_at; /* in the list of `wait` */
    struct buf pushed;                       /* not sent yet: push.h */
    struct conn *next_pushed, **pushed_at;   /* in loop->pushed; NULL: it is not
                                                there */
    struct registered registered;
    uint32_t parked_until; /* it stays parked until then: low bits of uv_now; 0:
                              any time */
    int fd;                /* for getpeername */
    _Atomic uint32_t input_bytes, output_bytes; /* for CLIENT LIST */
    uint64_t owned_bytes; /* the owner's part of usage; accept sets it first */
    struct usage_share usage;
    uint64_t active_ms; /* uv_now when it last executed a command or its client
                           took replies; an empty line does not count */
    /* For how many seconds the server has waited for the current request, and
     * for the password. Only seconds count in which it waited for nothing but
     * the client (timeouts.h). */
    uint32_t request_seconds, auth_seconds;
    uint64_t ended_ms; /* when its client was found to have ended its half of
                          the socket while the connection waits; 0: it has
                          not */
};

static inline uint64_t
conn_id(const struct conn *conn)
{
    return conn->registered.id;
}

/* Returns whether nothing more may be executed now. */
static inline bool
conn_must_wait(const struct conn *conn)
{
    return conn->state != CONN_OPEN || conn->wait != CONN_RUNS || conn->full;
}

static inline bool
conn_is_closing(const struct conn *conn)
{
    return conn->state == CONN_CLOSING;
}

/* Returns whether the client has shown who it is. A TLS client has not done so
 * before the end of the handshake, even where no password is set. */
static inline bool
conn_is_trusted(const struct conn *conn)
{
    return conn->trusted &&
           (conn->tls == NULL || tls_is_established(conn->tls));
}

static inline bool
conn_is_parked(const struct conn *conn)
{
    return conn->wait == CONN_FOR_EVENT || conn->wait == CONN_FOR_ROOM;
}

/* ---- waiting; called from execute ---------------------------------------- */

/* Makes the loop call execute again for the rest soon, after it has served
 * other connections. */
void conn_resume_later(struct conn *conn);

/* Makes the loop call execute again for the rest when that may succeed. WAIT is
 * CONN_FOR_EVENT (after loop_wake, or within LOOP_TICK_MS, in case loop_wake
 * came too early) or CONN_FOR_ROOM (once handler->has_room says so, or within a
 * second; for an event that many connections wait for at once). Does not call
 * execute before at_least_ms have passed. */
void conn_park(struct conn *conn, enum conn_wait wait, uint32_t at_least_ms);

/* conn_begin_turns() moves loop->resumable to loop->turns, if all earlier turns
 * are done. conn_next_turn() takes the first connection out of loop->turns;
 * NULL if there is none. */
void conn_begin_turns(struct loop *loop);
struct conn *conn_next_turn(struct loop *loop);

/* Move parked connections to `resumable`: those whose event may have come, and
 * all that wait for room. */
void conn_unpark_all(struct loop *loop);
void conn_unpark_for_room(struct loop *loop);

/* Notes that output has left: if the connection had to wait for that, it goes
 * on soon. */
void conn_output_left(struct conn *conn);

/* ---- the end ------------------------------------------------------------- */

/* Closes when the replies so far are sent. */
void conn_leave(struct conn *conn);

/* Closes now; unsent, held and pending replies are lost (pending_close sends
 * the pending ones first). Idempotent. */
void conn_close(struct conn *conn);

/* Closes the connection and logs that memory was short for its replies. */
void conn_cut_no_memory(struct conn *conn);

/* ---- the memory of a connection ------------------------------------------ */

/* Counts unparsed input again. */
void conn_count_input(struct conn *conn);

/* Counts unsent and held output again, notes since when it is above the soft
 * limit, and sets conn->full. Returns the bytes that are unsent. */
size_t conn_count_output(struct conn *conn);

/* Notes that the owner's part of the connection's memory has changed. */
void conn_set_owned(struct conn *conn, uint64_t bytes);

/* Return the limits of the connection's unread output, and the hard limit that
 * applies now; 0: there is none. */
const struct output_limits *conn_output_limits(const struct conn *conn);
uint64_t conn_hard_limit(const struct conn *conn);

/* Takes the connection out of loop->held; the caller must call
 * conn_count_output next. */
void conn_drop_held(struct conn *conn);

/* Takes the connection out of loop->pushed; it must be there. */
static inline void
conn_leave_pushed(struct conn *conn)
{
    *conn->pushed_at = conn->next_pushed;
    if (conn->next_pushed != NULL) {
        conn->next_pushed->pushed_at = conn->pushed_at;
    } else {
        conn->loop->pushed_end = conn->pushed_at;
    }
    conn->pushed_at = NULL;
}

/* Free conn->hold, when nothing is held, and conn->outbox. */
void conn_free_hold(struct conn *conn);
void conn_free_outbox(struct conn *conn);

/* ---- id and addresses ---------------------------------------------------- */

/* Adds an accepted connection to its loop and to the registry. */
void conn_join(struct conn *conn);

/* Returns the loop's connection with this id, by a walk over all of them; NULL
 * if there is none. */
struct conn *conn_find(struct loop *loop, uint64_t id);

/* Write "ip:port", "[ip6]:port" or "path:0" of the far and of the near end. */
enum { CONN_ADDRESS_MAX = ADDRESS_TEXT_MAX };
void conn_peer_address(const struct conn *conn, char *ret_text);
void conn_local_address(const struct conn *conn, char *ret_text);

/* Returns whether the far end is on this machine, or has shown a certificate.
 */
bool conn_is_near(const struct conn *conn);
