/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of the replica share: replica.c is what the owner calls,
 * replica_link.c the beginning and the end of a link, replica_talk.c the
 * handshake and what else is said, replica_stream.c what is gathered and cut
 * into pieces. One step after the other, each within the time-out:
 *
 *   WAITS -> DIALS -> [AUTHENTICATES] -> GREETS -> ANNOUNCES -> ASKS
 *     -> FOLLOWS                       +CONTINUE
 *     -> LOADS -> SWITCHES -> FOLLOWS  +FULLRESYNC; a snapshot arrives, is put
 *                                      in place
 *
 * and back to WAITS from everywhere when the link is lost, but from SWITCHES,
 * which ends first. IDLE follows nobody.
 *
 * A link may be lost in each of these calls: who goes on after one looks
 * whether `number` or `stage` is the same.
 */
#pragma once

#include "base/buf.h"
#include "repl/replica.h"

/* Kept of buffers that are not in use. */
enum { REPLICA_KEPT_BYTES = 64 << 10 };

enum stage {
    IDLE,
    WAITS,
    DIALS,
    AUTHENTICATES,
    GREETS,
    ANNOUNCES,
    ASKS,
    LOADS,
    SWITCHES,
    FOLLOWS
};

struct replica {
    struct replica_hooks hooks;

    /* Options. */
    uint64_t timeout_ms;
    size_t group_max;
    char *user, *password, *announce_ip;

    /* The primary; host NULL: none. */
    char *host;
    uint64_t epoch;
    unsigned primary_port, port; /* and our own */

    enum stage stage;
    bool paused;
    bool heard_since; /* anything, since PSYNC */
    bool ack_due;     /* at the end of what was read */
    bool progressed;  /* a group was applied on this link */
    bool distrusted, asked_all;
    bool bad_before; /* at bad_position */
    bool synced_once;
    bool failover, failover_done, failover_refused;
    char run_id[HISTORY_ID_CHARS + 1];

    uint64_t number;  /* of the link; 0: none */
    uint64_t numbers; /* the last one given */
    uint64_t stage_ms, heard_ms, acked_ms, retry_ms;
    uint64_t backoff_ms, doubt_ms, jitter;

    struct replica_place asked; /* with PSYNC */
    struct wire_answer answer;  /* the last +FULLRESYNC */
    struct wire_hello primary;  /* run_id "": spoke with nobody yet */
    struct wire_reader reader;
    struct buf gathered; /* behind the last whole piece */
    struct buf out;
    uint64_t position, sequence; /* behind the last good group */
    uint64_t bad_position;       /* where the stream was bad the last time */
    uint64_t told_synced; /* of our disk, with the last acknowledgement */
    uint64_t disk_due;    /* GETACK was heard here: we acknowledge what our disk
                             has until it has got there; 0: not due */

    uint64_t logged_ms;
    uint64_t down_ms, synced_ms, read_bytes, read_ms;
    char reason[STATUS_TEXT_MAX], logged[STATUS_TEXT_MAX];
};

/* ---- replica_link.c ------------------------------------------------------ */

/* Why there is no link. It may hold a stranger's words, which end up in the log
 * and in INFO. */
__attribute__((format(printf, 2, 3))) void
replica_link_explain(struct replica *replica, const char *format, ...);

void replica_link_enter(struct replica *replica, enum stage stage,
                        uint64_t now_ms);
void replica_link_dial(struct replica *replica, uint64_t now_ms);
void replica_link_pause(struct replica *replica);

/* Sends what `out` holds; false if the link was lost over it. */
bool replica_link_flush(struct replica *replica, uint64_t now_ms);

/* Forgets the link and what came over it. */
void replica_link_drop(struct replica *replica);

/* The link is of no use any more, for the reason that was explained. */
void replica_link_lose(struct replica *replica, uint64_t now_ms);

/* The same, since what the primary sends does not fit our data. */
void replica_link_doubt(struct replica *replica, uint64_t now_ms);

/* The same, since it cannot be read. why: static. */
void replica_link_bad(struct replica *replica, const char *why,
                      uint64_t now_ms);

/* ---- replica_talk.c ------------------------------------------------------ */

/* The link is there: the first word is ours. */
void replica_talk_begin(struct replica *replica, uint64_t now_ms);

/* What is to be answered, for messages. */
const char *replica_talk_step(const struct replica *replica);
void replica_talk_line(struct replica *replica, struct slice line,
                       uint64_t now_ms);

/* Says how far we are, or, before that means something, only that we are. */
void replica_talk_acknowledge(struct replica *replica, uint64_t now_ms);

/* The log is the primary's from this place on. */
void replica_talk_follow(struct replica *replica,
                         const struct replica_place *from, uint64_t key,
                         uint64_t now_ms);

/* ---- replica_stream.c ---------------------------------------------------- */

/* Reads what was gathered with what is fresh. */
void replica_stream_read(struct replica *replica, struct slice fresh,
                         uint64_t now_ms);
