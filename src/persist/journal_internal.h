/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of the journal share: journal.c is the side of the loops,
 * journal_tap.c that of replication, journal_io.c the two threads,
 * journal_state.c what all of them do to the state.
 *
 * Two words for the hard part. The epoch counts the moments at which what was
 * queued so far, and what the writer has in hand, became void: a fault, a
 * rebase, off at once. Whoever did I/O without the mutex compares it
 * afterwards, and what came of the I/O counts only if it is the same.
 * And `need`: while a fault (or building) holds releases back, a base ends that
 * if it stands at or behind this position; UINT64_MAX if no base can, since the
 * file written to is suspect.
 */
#pragma once

#include "persist/group.h"
#include "persist/journal.h"

#include <pthread.h>

/* everysec releases nothing more when the oldest unsynced group is older: so
 * much, and the group that was being written, is what a loss of power may cost
 * at most. */
enum { JOURNAL_BOUND_NS = 1000000000 };

/* The writer sleeps, and something was appended; the tap got something. */
enum { KICK_WRITER = 1, KICK_TAP = 2 };

/* Pieces in order. */
struct journal_list {
    struct piece *head, *tail;
    uint64_t bytes; /* as journal_state_cost counts them */
};

/* A file that the writer is to close, though it was never written to. */
struct journal_doomed {
    struct journal_doomed *next;
    int fd;
};

/* Grouped by purpose, there is one of it. NOLINTNEXTLINE(*Padding) */
struct journal {
    /* Loops read these without the mutex; they change under it. */
    _Alignas(64) _Atomic uint64_t released;
    _Atomic uint64_t synced; /* what journal_synced tells */
    _Atomic uint64_t position;
    _Atomic uint64_t limit;  /* of queued */
    _Atomic uint64_t queued; /* cost of all that is not written yet */
    _Atomic unsigned kick;   /* KICK_*: what is for the next journal_kick */

    _Alignas(64) pthread_mutex_t mutex; /* guards all that follows */

    /* What is appended. queue[1] is for the file behind a rotation. The log
     * is there while it is on (queues for files) or tapped. */
    bool on;
    bool tapped;
    bool told;            /* hooks.tapped, since journal_close_group */
    bool idle;            /* the writer sleeps */
    uint32_t group_db;    /* that the open group is in */
    uint64_t group_bytes; /* of the open group; 0: there is none */
    uint64_t sequence;    /* of the last group that was closed */
    struct journal_list queue[2];

    /* The files. While a target is pending, `next` is its file. */
    struct journal_file file, next;
    uint64_t file_bytes;
    bool suspect; /* the file: it is not written or synced any more */
    bool pending;
    bool spoiled; /* the next file: something before it was given up */
    enum journal_target how;      /* ROTATE or REBASE */
    uint64_t mark, mark_sequence; /* where the next file begins */
    uint64_t closed_number, closed_bytes;
    struct journal_doomed *doomed;
    struct piece *void_pieces; /* to be freed by the writer */

    /* How far the log got: in the files; and without a gap, in files or in a
     * base. */
    uint64_t epoch;
    uint64_t written, written_sequence;
    uint64_t file_synced, file_synced_sequence;
    uint64_t durable, durable_sequence;
    bool building, faulted, closing;
    uint64_t need;
    int error;
    uint64_t fault_mono_ns;

    /* The syncer's. */
    enum journal_sync sync;
    uint64_t sync_wanted; /* up to here, whatever the policy */
    bool syncing;         /* inside file_sync */
    bool last_sync;       /* the file is left, but something of it is released
                             that is not synced: do that first */
    uint64_t unsynced_ns; /* when the oldest unsynced group was written; 0 */
    uint64_t later_ns;    /* the same, of those behind the sync under way */

    bool threads, stop;
    bool tell_moved, tell_event; /* hooks to be called */
    pthread_cond_t work;         /* for the writer */
    pthread_cond_t sync_work;    /* for the syncer */
    pthread_cond_t progress;     /* for journal_flush */
    pthread_t writer, syncer;

    struct journal_hooks hooks;
    struct journal_tap tap;
    struct group_hash *hash; /* the writer's */
    uint64_t write_errors, sync_errors, suspect_files, syncs, groups;
    uint64_t sync_ns_last, sync_ns_max, sync_ns_recent;
};

/* ---- journal_io.c -------------------------------------------------------- */

/* Seals pieces into groups, in order. */
struct journal_sealer {
    struct group_hash *hash;
    uint64_t key;
    struct group_seal seal; /* sequence: of the group sealed last */
    bool open;              /* within a group */
};

/* The next piece: true if its group ends with it, and then ret_seal, of
 * GROUP_SEAL_BYTES, stands behind it. */
bool journal_io_seal(struct journal_sealer *sealer, const struct piece *piece,
                     char *ret_seal);

/* The threads touch nothing before there is a file. */
void journal_io_start(struct journal *journal); /* once */
void journal_io_stop(struct journal *journal);  /* fine if they do not run */

/* ---- journal_state.c; under the mutex ------------------------------------ */

/* Whether the threads have a file to write to. */
bool journal_state_is_served(const struct journal *journal);

/* Whether what was appended is still to be written and synced. */
bool journal_state_owes(const struct journal *journal);

/* everysec: how long after the oldest unsynced write a sync begins, if the last
 * one took so long. */
uint64_t journal_state_sync_wait_ns(uint64_t took_ns);

/* Adds to `queued`, and to the gauge of it, or takes away. */
void journal_state_count(struct journal *journal, int64_t cost);

/* What a piece adds to `queued`. */
uint64_t journal_state_cost(const struct piece *piece);

/* Whether there is a log: files or a tap. */
static inline bool
journal_state_has_log(const struct journal *journal)
{
    return journal->on || journal->tapped;
}

/* Where the log stands. */
static inline void
journal_state_tell(const struct journal *journal, uint64_t *ret_position,
                   uint64_t *ret_sequence)
{
    *ret_position =
        atomic_load_explicit(&journal->position, memory_order_relaxed);
    *ret_sequence = journal->sequence;
}

static inline void
journal_state_move(struct journal *journal, uint64_t position,
                   uint64_t sequence)
{
    atomic_store_explicit(&journal->position, position, memory_order_release);
    journal->sequence = sequence;
}

/* Returns the position, so many bytes further on. */
static inline uint64_t
journal_state_advance(struct journal *journal, uint64_t bytes)
{
    uint64_t position =
        atomic_load_explicit(&journal->position, memory_order_relaxed) + bytes;

    atomic_store_explicit(&journal->position, position, memory_order_release);
    return position;
}

void journal_state_close_group(struct journal *journal);

/* Into the queue of the file that it is for. */
void journal_state_push(struct journal *journal, struct piece *piece);

/* What is queued for the file, closed; cost stays counted until it is
 * written. */
struct journal_list journal_state_take(struct journal *journal);

/* A list becomes void. */
void journal_state_void(struct journal *journal, struct journal_list *list);

/* `more` goes behind `list`, and is empty then. */
void journal_state_join(struct journal_list *list, struct journal_list *more);

/* The files begin anew at this place. */
void journal_state_begin(struct journal *journal, uint64_t position,
                         uint64_t sequence);

void journal_state_written(struct journal *journal, uint64_t position,
                           uint64_t sequence);
void journal_state_synced(struct journal *journal, uint64_t position,
                          uint64_t sequence);

/* Everything up to here is in a base. */
void journal_state_based(struct journal *journal, uint64_t position,
                         uint64_t sequence);

/* The file is not written to any more, though its syncs are sound so far;
 * before what follows changes how far the log got. */
void journal_state_leave(struct journal *journal);

/* The file is suspect from now on. */
void journal_state_fault(struct journal *journal, int error);

/* It is off, and what is queued is not written any more. */
void journal_state_drop(struct journal *journal);

/* Whether what is queued now can still get into a file that counts. */
bool journal_state_takes(const struct journal *journal);

/* What is queued, and what comes before the next rebase, is given up: a fault
 * without the disk having said so. Only while it takes. A rotation that is
 * pending becomes a rebase, which may take again. */
void journal_state_give_up(struct journal *journal, int error);

/* Moves released and synced as far as the rest of the state allows. */
void journal_state_release(struct journal *journal);

/* Unlocks the mutex, and calls the hooks that are due. */
void journal_state_unlock(struct journal *journal);

void journal_state_free_pieces(struct piece *head, const struct piece *end);
