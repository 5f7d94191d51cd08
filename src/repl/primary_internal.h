/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the three files of the primary's side share: primary.c decides, peer.c
 * does what concerns one replica, primary_sync.c has the snapshots.
 *
 * Functions that may drop the replica return false then: it is gone. Whoever
 * does something for several goes through them from the last one down, since
 * those behind a dropped one move up.
 */
#pragma once

#include "repl/primary.h"
#include "repl/wire.h"

/* In this order, or from ONLINE on. */
enum phase {
    PHASE_WAITS,    /* for a snapshot to begin */
    PHASE_SNAPSHOT, /* gets it; the log since then waits in the backlog */
    PHASE_TAIL,     /* has all of it and gets the log, but loads: only what is
                       heard of it says that it lives */
    PHASE_ONLINE,   /* acknowledged what it has */
};

struct peer {
    struct primary_hello hello;
    enum phase phase;
    /* Behind the snapshot or the last byte given. It is between two groups,
     * where lines may stand, when it has reached all that was sealed and
     * released at that moment. */
    uint64_t cursor;
    bool between;
    bool over;              /* the soft limit, since over_ms */
    struct primary_ask ask; /* due: GETACK is to be sent */
    uint64_t asked;         /* the last GETACK was sent here */
    uint64_t acked, synced;
    uint64_t acked_ms, since_ms, heard_ms, sent_ms, taken_ms, over_ms;
    uint64_t sent, taken; /* bytes in all: into the link, by its socket */
};

enum sync { SYNC_NONE, SYNC_ASKED, SYNC_RUNS };

struct primary {
    struct backlog *backlog;
    struct primary_hooks hooks;
    struct primary_limits limits;
    struct history history;
    struct history_past ended[PRIMARY_ENDED_MAX];
    size_t ended_count;
    bool behind; /* a replica is further in one of them */
    uint64_t key;
    struct peer **peers; /* in the order in which they came */
    size_t count, capacity;
    uint64_t released, ticked_ms;
    enum sync sync;
    bool paused;   /* SYNC_RUNS */
    uint64_t held; /* SYNC_ASKED: the snapshot is of no earlier place */
    struct buf text;
    uint64_t full_syncs, partial_syncs, refused_partial_syncs;
};

/* Drops all if the backlog is. */
bool primary_is_broken(struct primary *primary);

/* ---- peer.c -------------------------------------------------------------- */

struct peer *peer_find(const struct primary *primary, uint64_t id);
bool peer_is_any(const struct primary *primary, enum phase phase);
bool peer_follows(const struct peer *peer);
size_t peer_unsent(const struct primary *primary, const struct peer *peer);

void peer_forget(struct primary *primary, struct peer *peer);
void peer_drop(struct primary *primary, struct peer *peer, const char *reason);
void peer_drop_phase(struct primary *primary, enum phase phase,
                     const char *reason);

bool peer_send(struct primary *primary, struct peer *peer, struct slice bytes);
/* The same for what shows that we are there. */
bool peer_send_line(struct primary *primary, struct peer *peer,
                    struct slice line, uint64_t now_ms);
bool peer_answer(struct primary *primary, struct peer *peer,
                 const struct wire_answer *answer, uint64_t now_ms);

/* The log, as far as it may be given and the link has room. Sets *more if it
 * could take more than it is given at a time. */
bool peer_push(struct primary *primary, struct peer *peer, uint64_t now_ms,
               bool *more);
/* Sends GETACK if one is due and the replica was sent the position asked for.
 */
bool peer_get_ack(struct primary *primary, struct peer *peer);
bool peer_ping(struct primary *primary, struct peer *peer, uint64_t now_ms);

/* One of the output limits as it holds; 0: none. Never below the backlog: to
 * cut somebody who can resume from it anyway would help nobody. */
uint64_t peer_limit(const struct primary *primary, uint64_t bytes);
bool peer_check_limits(struct primary *primary, struct peer *peer,
                       uint64_t now_ms);
void peer_note_taken(struct primary *primary, struct peer *peer,
                     uint64_t now_ms);
bool peer_check_time(struct primary *primary, struct peer *peer,
                     uint64_t now_ms);

/* ---- primary_sync.c ------------------------------------------------------ */

/* Asks for one, once the first of those who wait has waited for the delay. */
void primary_sync_ask(struct primary *primary, uint64_t now_ms);

/* Somebody left: nobody may want the snapshot any more. */
void primary_sync_review(struct primary *primary);

/* Pauses it, or lets it go on, for the fastest who gets it. */
void primary_sync_keep_pace(struct primary *primary);
