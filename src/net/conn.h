/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One connection: a socket of one loop for life, bytes in, batches of commands
 * out to the handler, replies back. Embedded in its owner (command/client.h),
 * who frees it in the closed callback, the last thing that happens to it.
 *
 *   read -> stream_parse -> handler->execute -> loop->reply -> one try_write
 *
 * What the socket does not take goes to the outbox; while that is above the
 * soft limit nothing more is read or executed (back-pressure); beyond the hard
 * limit, or above the soft one for too long, the connection is cut.
 */
#pragma once

#include "base/buf.h"
#include "net/loop.h"
#include "proto/stream.h"

#include <stdatomic.h>

enum { CONN_MAGIC = 0x636f6e6e };

struct conn_handler {
    /* Makes the owner of a new connection; NULL refuses it (memory). */
    struct conn *(*accept)(struct loop *loop);
    /* Executes commands from `first` on, in order, replies into
     * conn->loop->reply. Returns the first that is not done: short of the
     * count when the connection closes, when a handler paused
     * (conn_resume_later was called), or when replies should be sent first. */
    uint32_t (*execute)(struct conn *conn, const struct batch *batch,
                        uint32_t first);
    /* Writes the reply to a protocol error; the connection closes after it. */
    void (*protocol_error)(struct conn *conn, const struct stream_error *error);
    /* What the client may send now. */
    void (*limits)(struct conn *conn, struct stream_limits *ret_limits);
    void (*closed)(struct conn *conn);
};

struct outbox; /* unsent replies and the write under way */

struct conn {
    uint32_t magic;
    bool closing;     /* uv_close was called */
    bool close_after; /* close when everything is sent */
    bool reading;
    bool resume_queued;
    bool is_unix;
    bool trusted; /* may leave as many replies unread as the limits say */
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    struct loop *loop;
    struct stream input;
    struct buf kept;          /* unparsed bytes while execution waits */
    struct outbox *outbox;    /* NULL when all is sent */
    struct conn *next, *prev; /* of the loop */
    struct conn *next_resumable;
    uint64_t id; /* registry's */
    struct conn *registry_next, *registry_prev;
    int fd;                                     /* for getpeername */
    _Atomic uint32_t input_bytes, output_bytes; /* for CLIENT LIST */
    uint64_t active_ms; /* uv_now of the last bytes read */
};

/* Takes an accepted descriptor; on failure it is closed and the owner freed
 * through closed. On the loop's thread. */
void conn_open(struct loop *loop, int fd, bool is_unix);

/* Closes now; unsent replies are lost. Idempotent. */
void conn_close(struct conn *conn);

/* From execute: call execute again for the rest, from the loop, soon. */
void conn_resume_later(struct conn *conn);

/* Any thread: asks the loop that has it to close the connection with this id.
 * False if its mailbox is full. */
bool conn_kill(struct loop *loop, uint64_t id);

/* "ip:port", "[ip6]:port" or "path:0" of the far and the near end. */
enum { CONN_ADDRESS_MAX = 128 };
void conn_peer_address(const struct conn *conn, char *ret_text);
void conn_local_address(const struct conn *conn, char *ret_text);
