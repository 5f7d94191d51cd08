/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A connection to a server, for a thread that may wait: commands are queued,
 * and replies are read in order. It needs neither libuv nor the log, never
 * aborts for lack of memory, and reports errors as values: the first one sets
 * `fault`, and from then on the client does nothing. The caller turns faults
 * into texts.
 *
 * With TLS, `out` is sealed when everything before it was written, and what
 * arrives is opened into `in`. client_dial.h connects. One thread at a time.
 */
#pragma once

#include "base/buf.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pollfd;
struct tls;

enum client_fault {
    CLIENT_FINE,
    CLIENT_NO_NAME,   /* the host was not found; code: of getaddrinfo */
    CLIENT_NO_SERVER, /* connect; code: errno */
    CLIENT_LATE,      /* the deadline passed, or wake_fd became readable */
    CLIENT_NO_MEMORY,
    CLIENT_TOO_LONG, /* a reply is too long */
    CLIENT_READ,     /* code: errno */
    CLIENT_WRITE,    /* code: errno */
    CLIENT_TLS,      /* tls_reason says why */
    CLIENT_TLS_SEAL,
    CLIENT_CLOSED, /* closed by the server while something was awaited */
    CLIENT_FOREIGN /* it does not speak RESP */
};

struct client {
    int fd;      /* -1: not connected */
    int wake_fd; /* ends each wait when it is readable; -1: none */
    struct buf in, out;
    size_t in_at, out_at;       /* bytes consumed and written */
    struct tls *tls;            /* NULL: plain */
    struct buf sealed, records; /* with TLS: records to be written, and records
                                   just received */
    size_t line_max;            /* limit of a line that begins a reply */
    size_t value_max;  /* limit of a value; longer ones are refused at their
                          header */
    uint64_t heard_ns; /* when bytes last came */
    bool ended;        /* the server has closed the connection */
    enum client_fault fault;
    int code;
};

/* Prepares a client, without connecting. reply_max: the most bytes of a value;
 * a whole reply may be a little longer. */
void client_init(struct client *client, size_t reply_max);
void client_close(struct client *client);

/* Sets the fault if there is none yet; returns false. */
bool client_fail(struct client *client, enum client_fault fault, int code);

/* ---- commands and replies ------------------------------------------------ */

/* Queues a command. */
void client_send(struct client *client, const struct slice *words,
                 size_t count);

/* Queues bytes that are RESP already. */
void client_send_raw(struct client *client, struct slice commands);

/* Queues the login: AUTH, or with protocol 3 HELLO (proto/compose.h). */
void client_send_login(struct client *client, unsigned protocol,
                       struct slice user, struct slice password);

/* Returns the next reply or push, with all values in it, if it has arrived.
 * Valid until the next read. */
bool client_next(struct client *client, struct slice *ret_reply);

/* Waits for the next reply; false: there is a fault. */
bool client_reply(struct client *client, uint64_t deadline_ns,
                  struct slice *ret_reply);

/* ---- bytes --------------------------------------------------------------- */

/* Returns the bytes that have arrived and are not consumed. */
struct slice client_bytes(const struct client *client);
void client_consume(struct client *client, size_t len);

/* Frees memory that long replies needed, unless unread bytes are left. */
void client_trim(struct client *client);

/* ---- waiting ------------------------------------------------------------- */

/* Writes what the socket takes, and sets what poll must wait for. */
void client_prepare(struct client *client, struct pollfd *ret_poll);

/* Reads once, if poll says that something came. Returns whether it has read
 * something. */
bool client_receive(struct client *client, const struct pollfd *polled);

/* Writes what the socket takes, waits until the deadline (at most a minute) for
 * bytes, and reads once. Returns whether something was read. */
bool client_wait(struct client *client, uint64_t deadline_ns);

/* Gives received records to TLS; empty records begin the handshake. */
void client_open_records(struct client *client, struct slice records);
