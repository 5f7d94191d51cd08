/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The types that the primary's side (primary.h) and its owner exchange. The
 * owner is the server, or a simulator in a test.
 */
#pragma once

#include "base/slot_set.h"
#include "journal/history.h"
#include "repl/status.h"

/* How many ended histories primary_set_ended takes. */
enum { PRIMARY_ENDED_MAX = 4 };

/* A replica as it introduces itself with PSYNC. */
struct primary_hello {
    uint64_t id; /* the owner's number of the link; never 0 */
    char run_id[HISTORY_ID_CHARS + 1];
    char address[STATUS_TEXT_MAX], local_address[STATUS_TEXT_MAX];
    char ip[STATUS_TEXT_MAX];
    char user[STATUS_TEXT_MAX]; /* the user as which it logged in */
    unsigned port;
    /* "": the replica asks for a snapshot. */
    char history[HISTORY_ID_CHARS + 1];
    uint64_t position;
    /* It only takes over these slots: its snapshot has no other keys, and
     * neither WAIT nor min-replicas-to-write count it. It resumes only after a
     * new handshake for a hash secret (REPLICA_RENEW). */
    bool pulls;
    struct slot_set slots;
    bool wants_holdings; /* primary_tell informs it */
};

/* What the owner does for the primary's side. A hook must not call back into
 * that side. */
struct primary_hooks {
    /* Sends bytes over a link. False: no memory. */
    bool (*send)(void *ctx, uint64_t id, struct slice bytes);
    size_t (*unsent)(void *ctx, uint64_t id);
    /* Closes the link of a replica that was just removed. reason: for the
     * log. */
    void (*drop)(void *ctx, uint64_t id, const char *reason);
    /* Starts a snapshot of the log's present end or a later position, with the
     * keys of these slots only, or with all keys if slots is NULL. `slots`
     * stays valid until the snapshot ends. The owner answers with
     * primary_sync_began, or with primary_sync_ended if it cannot make one. */
    void (*ask_sync)(void *ctx, const struct slot_set *slots);
    /* Cancels that snapshot. The owner reports nothing about it afterwards. */
    void (*cancel_sync)(void *ctx);
    void (*pause_sync)(void *ctx, bool paused);
    /* Acknowledged positions have moved. */
    void (*acked)(void *ctx);
    void *ctx;
};

struct primary_limits { /* the options in force */
    uint64_t timeout_ms, ping_ms, sync_delay_ms;
    uint64_t backlog_bytes;
    /* How many bytes of the log that no replica has acknowledged the backlog
     * keeps in addition, if there has been a replica (merge-on-heal); 0: none.
     */
    uint64_t merge_bytes;
    size_t replicas_max;
    /* Limits of the output that a replica has not taken, including the part of
     * the log that it has yet to be sent; 0: no limit. A replica may always be
     * as far behind as the backlog reaches. */
    uint64_t hard_bytes, soft_bytes, soft_ms;
};

/* Positions that clients wait for replicas to acknowledge: the first and the
 * last of them. If last is 0, no client waits. */
struct primary_ask {
    uint64_t first, last;
};
