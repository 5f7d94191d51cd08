/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One connection: a socket of one loop for life, bytes in, batches of commands
 * out to the handler, replies back. Embedded in its owner (engine/client.h),
 * who frees it in the closed callback, the last thing that happens to it.
 *
 *   read -> stream_parse -> handler->execute -> loop->reply -> one try_write,
 *   for what is short at the end of the loop's turn
 *
 * What the socket does not take goes to the outbox, and what must not be seen
 * before the disk has it is held (hold.h). While too much is held nothing more
 * is read or executed. But what the client leaves unread does not stop it: many
 * clients write all of a pipeline before they read the first reply, and would
 * wait for ever. Whoever leaves more than the hard limit unread, or the soft
 * one for too long, is cut; what is held is not its fault and does not count
 * for that.
 *
 * Who is not read from is asked for once a second, so that a client that has
 * gone does not keep its place while it waits for something that may never
 * come. Has it only ended its own half, which for TCP cannot be told from a
 * close, it gets the replies that it is owed: a minute long if they wait for
 * the disk or for room in the journal, but a handler that waits is given up
 * after a second or two, as Redis gives up its blocked clients.
 */
#pragma once

#include "base/buf.h"
#include "net/address.h"
#include "net/loop.h"
#include "proto/stream.h"

#include <stdatomic.h>

enum { CONN_MAGIC = 0x636f6e6e };

struct conn_handler {
    /* Makes the owner of a new connection; NULL refuses it (memory). */
    struct conn *(*accept)(struct loop *loop);
    /* Executes commands from `first` on, in order, whole replies into
     * conn->loop->reply, and raises conn->hold_until to what they have to wait
     * for. Returns the first that is not done: short of the count when the
     * connection closes, when a handler paused (conn_resume_later or conn_park
     * was called), or when replies should be sent first. */
    uint32_t (*execute)(struct conn *conn, const struct batch *batch,
                        uint32_t first);
    /* Writes the reply to a protocol error; the connection closes after it. */
    void (*protocol_error)(struct conn *conn, const struct parse_error *error);
    /* What the client may send now. */
    void (*limits)(struct conn *conn, struct parse_limits *ret_limits);
    void (*closed)(struct conn *conn);
    /* It is closed next because of conn_kill: what others see of it ends
     * before its client sees the end. NULL: nobody wants to know. */
    void (*killed)(struct conn *conn);
    /* Whether execute may get on with who was parked for room. On the loop's
     * thread, for all of them at once; NULL: always. */
    bool (*has_room)(struct loop *loop);
    /* Something was executed, and the loop has no more at hand: it waits next,
     * or serves those that paused. NULL: nobody wants to know. */
    void (*turn_end)(struct loop *loop);
    /* Appends what is sent instead of `held`, which is whole replies and waits
     * for a disk that has failed for too long. Needed where the environment
     * has gives_up. */
    void (*give_up)(struct conn *conn, struct slice held,
                    struct buf *ret_replies);
};

/* What a handler that did not get on waits for. */
enum conn_wait { CONN_RUNS, CONN_FOR_EVENT, CONN_FOR_ROOM };

struct hold;   /* replies that wait for the disk */
struct outbox; /* unsent replies and the write under way */

struct conn {
    uint32_t magic;
    bool closing;     /* uv_close was called */
    bool close_after; /* close when everything is sent */
    bool reading;
    bool resume_queued;
    bool parked; /* called again when the loop is woken, or at a tick */
    bool full;   /* too much is held: has to wait */
    bool is_unix;
    bool is_reserved;    /* has a place that is kept for the operator */
    enum conn_wait wait; /* since execute was called last */
    enum output_class output_class; /* OUTPUT_PUBSUB is never idle, either */
    bool trusted;       /* may leave as many replies unread as the limits say */
    bool rested;        /* the server has not read all the time since the last
                           look at timeouts */
    atomic_bool exempt; /* asked not to be cut for what it takes */
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    struct loop *loop;
    struct stream input;
    struct buf kept;      /* unparsed bytes while execution waits */
    size_t parked_bytes;  /* of kept, the command that parked; 0: not known */
    size_t pending_bytes; /* of loop->pending, 0: none */
    size_t pending_at;    /* where they are */
    struct conn *next_pending;
    struct outbox *outbox; /* NULL when all is sent */
    struct hold *hold;     /* may be there when nothing is held */
    size_t held_bytes;     /* 0: nothing is held */
    /* Output from now on waits until *released is here; only rises. */
    uint64_t hold_until;
    struct conn *next, *prev; /* of the loop */
    struct conn *next_resumable;
    struct conn *next_parked, **parked_at;
    struct buf pushed; /* on its way within one callback: push.h */
    struct conn *next_pushed;
    uint64_t id; /* registry's */
    struct conn *registry_next, *registry_prev;
    struct conn *registry_same; /* the next one in its bucket of ids */
    int fd;                     /* for getpeername */
    _Atomic uint32_t input_bytes, output_bytes; /* for CLIENT LIST */
    uint32_t parked_until; /* the end of uv_now's bits; 0: at any time */
    /* What it takes (usage.h): the owner's part, of which accept sets the
     * first, and all of it; and how much that was when it was chosen to be cut,
     * which changes under the registry's lock. */
    uint64_t owned_bytes;
    _Atomic uint64_t usage_bytes, condemned_bytes;
    uint64_t active_ms; /* uv_now when it last had something executed or took
                           replies: an empty line is no sign of life */
    /* For how many seconds the request at hand, and the password, were waited
     * for while nothing but the client was (timeouts.h). */
    uint32_t request_seconds, auth_seconds;
    uint64_t ended_ms; /* its half was found ended while it waits; 0: not */
};

/* How a client came in. */
enum { CONN_UNIX = 1, CONN_RESERVED = 2 };

/* Takes an accepted descriptor, for which registry_reserve has found a place
 * (PLACE_RESERVED with CONN_RESERVED); on failure it is closed and the owner
 * freed through closed. On the loop's thread. */
void conn_open(struct loop *loop, int fd, unsigned how);

/* Closes now; replies that the socket does not take are lost. Idempotent. */
void conn_close(struct conn *conn);

/* From execute: call execute again for the rest, from the loop, soon. */
void conn_resume_later(struct conn *conn);

/* From execute: the same, but not before loop_wake was called or LOOP_TICK_MS
 * have passed, which also makes up for a loop_wake that came too early. */
void conn_park(struct conn *conn);

/* The same, but not for that long, whatever happens. */
void conn_park_for(struct conn *conn, uint32_t ms);

/* The same, but only once handler->has_room says so, or a second has passed:
 * for what many wait for at once. */
void conn_park_for_room(struct conn *conn);

/* Takes the socket out of the connection, which closes without the client
 * noticing; the descriptor goes on elsewhere (net/link.h). -1: it cannot be
 * done, since bytes of it wait here in one direction or the other, or for want
 * of descriptors; it stays open then.
 *
 * From execute, the last that is done there: when the last command of the batch
 * has been executed (whoever has more of them does not call), its reply, if
 * any, is in loop->reply, and hold_until is raised. The batch is over with this
 * call, its arguments end, and execute returns its count. Replies in
 * loop->reply are sent; -1 if they are held or the socket does not take them
 * all, or if more bytes of the client have come behind the batch. */
int conn_detach(struct conn *conn);

/* The connection of this loop with this id, by a walk over all of them; NULL if
 * there is none. On the loop's thread. */
struct conn *conn_find(struct loop *loop, uint64_t id);

/* Any thread: asks the loop that has it to close the connection with this id.
 * False if its mailbox is full. */
bool conn_kill(struct loop *loop, uint64_t id);

/* "ip:port", "[ip6]:port" or "path:0" of the far and the near end. */
enum { CONN_ADDRESS_MAX = ADDRESS_TEXT_MAX };
void conn_peer_address(const struct conn *conn, char *ret_text);
void conn_local_address(const struct conn *conn, char *ret_text);
