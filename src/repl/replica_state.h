/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of the replica's side, which its files share: replica.c handles the
 * owner's events, replica_stream.c cuts the arriving bytes into pieces,
 * replica_talk.c does the handshake and the other lines, replica_secrets.c asks
 * for hash secrets, replica_link.c begins and ends links. Each of these files
 * calls only files that come later in this list.
 *
 * Each call may lose the link. So a caller that continues after a call compares
 * link.number or the stage first.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "repl/replica_hooks.h"
#include "repl/status.h"

/* REPLICA_KEPT_BYTES: the most memory that an empty buffer keeps. */
enum { REPLICA_KEPT_BYTES = 64 << 10, REPLICA_TEXTS = 3 };

/* The stages. DIALS to ANNOUNCES must each end within the time-out. From ASKS
 * on, the primary must not be silent for so long:
 *
 *   WAITS -> DIALS -> [AUTHENTICATES] -> GREETS -> [SECRETS] -> ANNOUNCES
 *   ANNOUNCES -> ASKS
 *   ASKS -> FOLLOWS                        +CONTINUE
 *   ASKS -> LOADS -> SWITCHES -> FOLLOWS   +FULLRESYNC
 *
 * A lost link leads to WAITS, and from there to DIALS. In SWITCHES the snapshot
 * is complete, so a lost link does not end the stage. It ends when the snapshot
 * is in place; if the link is lost by then, it leads to DIALS. From IDLE the
 * owner's replica_follow leads to DIALS; replica_stop leads to IDLE. */
enum replica_stage {
    STAGE_IDLE, /* follows no primary */
    STAGE_WAITS,
    STAGE_DIALS,
    STAGE_AUTHENTICATES,
    STAGE_GREETS,
    STAGE_SECRETS,
    STAGE_ANNOUNCES,
    STAGE_ASKS,
    STAGE_LOADS,
    STAGE_SWITCHES,
    STAGE_FOLLOWS
};

#define REPLICA_NO_POSITION UINT64_MAX

/* One link; all of it is forgotten when the link ends. */
struct replica_link {
    uint64_t number;   /* 0: there is no link */
    bool paused;       /* reading is paused */
    bool heard_answer; /* bytes have arrived since PSYNC was sent */
    bool ack_due;      /* acknowledge when the present bytes are read */
    bool progressed;   /* a group was applied */
    struct replica_place asked; /* the place that PSYNC named; history "": it
                                   asked for a snapshot */
    struct wire_reader reader;
    uint64_t synced_acked; /* disk position last acknowledged */
    /* Our position when a GETACK arrived, if our disk had not reached it: until
     * it has, acknowledge the disk's progress. 0: none. */
    uint64_t disk_due;
};

/* When to connect again, and whether to ask for a snapshot then. The struct
 * outlives links. */
struct replica_retry {
    uint64_t at_ms; /* in STAGE_WAITS: when to connect */
    uint64_t backoff_ms;
    uint64_t doubt_ms; /* least pause after groups that did not fit our data */
    uint64_t refused_ms;   /* pause after snapshots that could not be loaded */
    uint64_t jitter;       /* state of a generator */
    uint64_t bad_position; /* position of the last bad seal, or
                              REPLICA_NO_POSITION */
    bool distrusted;       /* the next attempt asks for a snapshot */
    bool renews; /* the link was lost only to get a new handshake, so a pull
                    goes on */
};

enum {
    REPLICA_SECRETS_MAX = 65,
    REPLICA_SECRETS_PAGE = 32, /* fingerprints in a line */
    REPLICA_SECRET_CHARS = 32
};

/* The hash secrets that this link asks for, in STAGE_SECRETS. */
struct replica_secrets {
    size_t listed; /* fingerprints that the primary has listed so far */
    bool asks;     /* all are listed; now it asks for secrets */
    size_t count, at;
    uint64_t wanted[REPLICA_SECRETS_MAX];
    char arrived[REPLICA_SECRET_CHARS + 1]; /* a secret for the owner */
    char refusal[128]; /* why the primary gave no secret; "": it gave all */
};

struct replica {
    struct replica_hooks hooks;
    char run_id[HISTORY_ID_CHARS + 1];
    struct replica_options options;
    char *texts[REPLICA_TEXTS]; /* the texts that `options` points to */
    char *slots; /* the slots to take over; "": it follows the primary */

    char *host; /* of the primary; NULL: none */
    unsigned port;
    enum replica_failover failover;
    /* The primary's introduction; run_id "": none yet. */
    struct wire_hello primary;

    enum replica_stage stage;
    uint64_t stage_ms; /* when the stage began */
    struct replica_link link;
    struct replica_retry retry;
    struct replica_secrets secrets;
    uint64_t links;      /* how many links there have been */
    struct buf gathered; /* bytes that arrived after the last whole piece */
    struct buf out;      /* scratch, empty between calls */
    uint64_t position, sequence; /* the end of the last good group */
    struct wire_answer answer;   /* the last answer to PSYNC */

    uint64_t heard_ms, acked_ms, down_ms, synced_ms;
    uint64_t read_bytes, read_ms; /* in STAGE_LOADS: how much of the snapshot
                                     has arrived, and when */
    char reason[STATUS_TEXT_MAX]; /* why there is no link; "": not known */
    char logged[STATUS_TEXT_MAX]; /* the last reason that was logged */
    /* Why the last snapshot could not be loaded, for the primary; "": it was
     * loaded. */
    char refused[STATUS_TEXT_MAX];
    uint64_t logged_ms;
};

static inline bool
replica_loads(const struct replica *replica)
{
    return replica->stage == STAGE_LOADS || replica->stage == STAGE_SWITCHES;
}

static inline bool
replica_asks_failover(const struct replica *replica)
{
    return replica->failover == REPLICA_FAILOVER_ASKED ||
           replica->failover == REPLICA_FAILOVER_REFUSED;
}
