/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of the primary's side, which its files share: primary.c decides,
 * primary_sync.c sends snapshots, peer.c handles one replica, primary_pace.c
 * pauses and cancels snapshots. Each of them calls only those named after it.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "repl/backlog.h"
#include "repl/primary_hooks.h"

/* The phases of a replica. One that gets a snapshot goes through all of them;
 * one that resumes is ONLINE at once:
 *
 *   NEW -> WAITS -> SNAPSHOT -> TAIL -> ONLINE      NEW -> ONLINE
 */
enum phase {
    PHASE_NEW,
    PHASE_WAITS,    /* waits for a snapshot to begin */
    PHASE_SNAPSHOT, /* receives the snapshot; the backlog keeps the log from its
                       position on, as soon as that is known */
    PHASE_TAIL,     /* has received the snapshot and gets the log, but is still
                       loading: its acknowledgements only show that it is
                       alive */
    PHASE_ONLINE,   /* acknowledges what it has executed */
};

/* The cursor of a replica while the position of its snapshot is not known. */
#define PEER_NOWHERE UINT64_MAX

struct peer {
    struct primary_hello hello;
    enum phase phase;
    /* The position up to which it was sent the snapshot or the log. */
    uint64_t cursor;
    /* The cursor is at the end of a group, so a line may be sent. */
    bool between_groups;
    struct primary_ask ask; /* positions for which GETACK must still be sent */
    uint64_t asked;         /* the cursor when the last GETACK was sent */
    uint64_t told;          /* the number of the last holdings sent; 0: none */
    uint64_t acked, synced;
    uint64_t acked_ms, since_ms, heard_ms, sent_ms, taken_ms;
    uint64_t over_since_ms; /* since when it is above the soft limit; 0: it is
                               below */
    /* Bytes given to its link; bytes that its socket took. */
    uint64_t sent, taken;
};

/* The snapshot:
 *
 *   NONE -> ASKED -> RUNS <-> PAUSED      any -> NONE when it ends or is
 *                                         cancelled
 */
enum sync { SYNC_NONE, SYNC_ASKED, SYNC_RUNS, SYNC_PAUSED };

struct primary {
    struct backlog *backlog;
    struct primary_hooks hooks;
    struct primary_limits limits;
    struct history history;
    struct history_past ended[PRIMARY_ENDED_MAX];
    size_t ended_count;
    bool behind; /* a replica has more of an ended history than we have */
    uint64_t key;
    struct peer **peers; /* in order of arrival */
    size_t count, capacity;
    uint64_t furthest; /* position that a replica has acknowledged; 0: none */
    uint64_t released;
    enum sync sync;
    bool sync_pulls; /* the snapshot has only the slots in sync_slots */
    struct slot_set sync_slots;
    struct buf text;      /* scratch, empty between calls */
    struct buf holdings;  /* the last text of primary_tell */
    uint64_t holdings_at; /* the text is true from this position on */
    uint64_t tells;       /* number of texts so far; 0: none */
    uint64_t full_syncs, partial_syncs, refused_partial_syncs;
};

static inline void
peer_enter(struct peer *peer, enum phase phase)
{
    CHECK(phase == peer->phase + 1 ||
          (peer->phase == PHASE_NEW && phase == PHASE_ONLINE));
    peer->phase = phase;
}

/* Returns whether the replica is sent the log. */
static inline bool
peer_follows(const struct peer *peer)
{
    return peer->phase >= PHASE_TAIL;
}

static inline size_t
peer_unsent(const struct primary *primary, const struct peer *peer)
{
    return primary->hooks.unsent(primary->hooks.ctx, peer->hello.id);
}

static inline void
primary_enter_sync(struct primary *primary, enum sync sync)
{
    CHECK(sync == SYNC_NONE || sync == primary->sync + 1 ||
          (primary->sync == SYNC_PAUSED && sync == SYNC_RUNS));
    primary->sync = sync;
}

/* Returns whether a replica waits for the snapshot that was requested. */
static inline bool
primary_sync_serves(const struct primary *primary, const struct peer *peer)
{
    return peer->phase == PHASE_WAITS &&
           peer->hello.pulls == primary->sync_pulls &&
           (!peer->hello.pulls ||
            slot_set_equal(&peer->hello.slots, &primary->sync_slots));
}

static inline bool
primary_sync_runs(const struct primary *primary)
{
    return primary->sync >= SYNC_RUNS;
}

/* Returns the limit in force for a configured one; 0: none. It is never below
 * the size of the backlog: a replica that is dropped while the backlog has all
 * that it lacks would only come back and resume. */
static inline uint64_t
primary_output_limit(const struct primary *primary, uint64_t bytes)
{
    return bytes == 0 || bytes > primary->limits.backlog_bytes
               ? bytes
               : primary->limits.backlog_bytes;
}
