/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The side that is followed: which replicas there are, how far each is, who
 * gets a snapshot. A state machine of loop 0 without I/O or clock of its own:
 * the owner tells what happened and when, and the hooks do what follows, at
 * once; they may not call back into it. The simulator of tests/unit/repl links
 * this very object.
 *
 * A full synchronization is one snapshot for all who wait for it, at the pace
 * of the fastest. Whoever leaves more unsent than the output limits allow is
 * cut; nobody is waited for.
 */
#pragma once

#include "persist/history.h"
#include "repl/backlog.h"
#include "repl/status.h"

struct primary;

/* A replica as it introduces itself with PSYNC. */
struct primary_hello {
    uint64_t id; /* the owner's name of the link; never 0 */
    char run_id[HISTORY_ID_CHARS + 1];
    char address[STATUS_TEXT_MAX], local_address[STATUS_TEXT_MAX];
    char ip[STATUS_TEXT_MAX];
    unsigned port;
    char history[HISTORY_ID_CHARS + 1]; /* "": wants a full one */
    uint64_t position;
};

struct primary_hooks {
    /* Bytes for a link; false: no memory. */
    bool (*send)(void *ctx, uint64_t id, struct slice bytes);
    size_t (*unsent)(void *ctx, uint64_t id);
    /* The replica was dropped: it is forgotten already. reason: for the log. */
    void (*drop)(void *ctx, uint64_t id, const char *reason);
    /* A snapshot for those who wait, of a place at or behind what is sealed
     * now: answered by primary_sync_began, or by primary_sync_ended if it
     * cannot be. And the end of one that nobody wants any more: nothing is to
     * be told of it afterwards. */
    void (*ask_sync)(void *ctx);
    void (*cancel_sync)(void *ctx);
    /* The snapshot should pause, or go on. */
    void (*pause_sync)(void *ctx, bool paused);
    /* Positions that were acknowledged have moved. */
    void (*acked)(void *ctx);
    void *ctx;
};

struct primary_limits { /* options in force */
    uint64_t timeout_ms, ping_ms, sync_delay_ms;
    uint64_t backlog_bytes;
    size_t replicas_max;
    /* Of output that a replica has not taken, what it is owed from the backlog
     * included; 0: none. What the backlog holds anyway is always allowed. */
    uint64_t hard_bytes, soft_bytes, soft_ms;
};

struct primary *primary_new(struct backlog *backlog,
                            const struct primary_hooks *hooks);
void primary_free(struct primary *primary);
void primary_set_limits(struct primary *primary,
                        const struct primary_limits *limits);

/* Which history the backlog is of, and the seals' key. Replicas stay, they read
 * of a new history in the log; with another key those who follow are
 * dropped. */
void primary_set_history(struct primary *primary, const struct history *history,
                         uint64_t key);

/* Histories of which this server was the primary, and where they ended here
 * when it started. A replica that is further in one of them has changes which
 * are lost here, and which WAIT may have promised to clients. From then on
 * nobody gets a full synchronization, since that would throw them away. Called
 * anew (with count 0: our data counts, whatever replicas have) it forgets that.
 */
enum { PRIMARY_ENDED_MAX = 4 };
void primary_set_ended(struct primary *primary,
                       const struct history_past *ended, size_t count);

/* Such a replica has come. */
bool primary_is_behind(const struct primary *primary);

/* A replica asks to follow; answers +CONTINUE, +FULLRESYNC later, or an error
 * (then it was not taken; false: the link is to be closed when that is sent).
 * An older link of the same run id is dropped. */
bool primary_attach(struct primary *primary, const struct primary_hello *hello,
                    uint64_t now_ms);
void primary_detached(struct primary *primary, uint64_t id);

/* It acknowledged. Unknown ids are ignored; a position that it cannot have, and
 * one before what it had, drop it. Until a snapshot is in place any position
 * is but a sign of life. */
void primary_acked(struct primary *primary, uint64_t id, uint64_t position,
                   uint64_t synced, uint64_t now_ms);

/* The link has room again. */
void primary_drained(struct primary *primary, uint64_t id, uint64_t now_ms);

/* Sends what is sealed and released (position; UINT64_MAX: all), and trims. A
 * replica gets 1 MiB a call at most, so that no loop is held for long: if it
 * could take more (returns true) call it again in the next turn of the loop. */
bool primary_stream(struct primary *primary, uint64_t released,
                    uint64_t now_ms);

/* Positions that clients wait for replicas to acknowledge: the first and the
 * last of them. last 0: nobody waits. */
struct primary_ask {
    uint64_t first, last;
};
void primary_ask_add(struct primary_ask *ask, struct primary_ask more);

/* Asks the replicas that follow for an acknowledgement. Each ask stays due
 * until the replica was sent the log up to the asked position: an earlier
 * acknowledgement would not help the client. */
void primary_ask_acks(struct primary *primary, struct primary_ask ask);

/* Whether an ask is still due: primary_stream is urgent then. */
bool primary_owes_ask(const struct primary *primary);

/* Each 100 ms or so: snapshots, pings, time-outs, limits, trims. */
void primary_tick(struct primary *primary, uint64_t now_ms);

/* The snapshot asked for. bytes: about, of all of it. */
struct primary_sync {
    uint64_t position, sequence, bytes;
    /* As its header has it; "": the present one. */
    char history[HISTORY_ID_CHARS + 1];
};
void primary_sync_began(struct primary *primary,
                        const struct primary_sync *sync, uint64_t now_ms);
void primary_sync_bytes(struct primary *primary, struct slice bytes,
                        uint64_t now_ms);
void primary_sync_ended(struct primary *primary, bool good, uint64_t now_ms);

/* All go: this server follows another one now, or its data was replaced. */
void primary_drop_all(struct primary *primary, const char *reason);
/* One goes (CLIENT KILL); false: not there. */
bool primary_drop(struct primary *primary, uint64_t id, const char *reason);

/* For status_publish; fills the counts and the backlog's figures, but for
 * backlog_active, and `max` replicas at most, in the order in which they came.
 * Returns how many there are. */
size_t primary_describe(const struct primary *primary,
                        struct status_figures *ret_figures,
                        struct status_replica *ret_replicas, size_t max);
size_t primary_replicas(const struct primary *primary);
