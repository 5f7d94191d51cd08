/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of a journal, and the rules for its changes: what is released and
 * when, what a fault does, and what a base ends. journal.c is the loops' side,
 * journal_tap.c replication's, journal_io.c the two threads.
 *
 * mode, changed under the mutex:
 *
 *            RESUME  BUILD     base done  off        off, now  fault     closed
 *   OFF      ON      BUILDING
 *   BUILDING                   ON         DROPPING   DROPPING  BUILDING
 *   HOLDING                    ON         DROPPING   DROPPING  HOLDING
 *   ON                         ON         CLOSING    DROPPING  ON
 *   CLOSING                                          DROPPING  DROPPING  OFF
 *   DROPPING                                         DROPPING            OFF
 *
 * Any mode goes to HOLDING when other data takes the place of ours (hold). ON
 * goes to DROPPING also while it is faulted. Without a file that the threads
 * write to, CLOSING and DROPPING are OFF at once. A fault does not leave ON: it
 * holds releases back until a base ends it, and fault_mono_ns says since when.
 *
 * next, the file after the present one:
 *
 *            rotation   rebase    fault of the file  given up  turned
 *   NONE     ROTATES    REBASES   NONE               NONE
 *   ROTATES  ROTATES    REBASES   REBASES            REBASES   NONE
 *   REBASES  REBASES    REBASES   REBASES            SPOILED   NONE
 *   SPOILED  REBASES    REBASES                                NONE
 *
 * A rotation that is asked for while the file is suspect is a rebase. The file
 * of a pending rebase may be anywhere in the writer's hands, so it cannot be
 * given up before the writer turns to it; it is SPOILED, and suspect from its
 * first byte.
 *
 * The epoch counts the moments at which everything queued, and everything that
 * the writer is writing, became void: a fault, a rebase, off at once. A thread
 * that did I/O without the mutex compares the epoch afterwards; the result
 * counts only if it is the same.
 *
 * While there is a fault (or the mode is BUILDING or HOLDING), a base ends it
 * if the base has everything up to the position `need`. `need` is UINT64_MAX if
 * no base can end it, since the file written to is suspect.
 */
#pragma once

#include "journal/group.h"
#include "journal/journal_file.h"
#include "journal/journal_hooks.h"
#include "journal/stage.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* everysec releases nothing more while the oldest unsynced group is older than
 * this. So a loss of power costs at most the changes of this time, and the
 * group that was being written. */
enum { JOURNAL_BOUND_NS = 1000000000 };

/* What the next journal_kick must do. KICK_WRITER: something was appended, and
 * the writer sleeps. KICK_TAP: the tap has received something. */
enum { KICK_WRITER = 1, KICK_TAP = 2 };

/* The hooks that must be called when the mutex is unlocked. */
enum { DUE_MOVED = 1, DUE_EVENT = 2 };

enum journal_mode {
    JOURNAL_OFF,
    JOURNAL_BUILDING, /* switched on, no base yet: everything is released */
    JOURNAL_HOLDING,  /* on, with other data, which no file has yet: nothing
                         behind its place is released */
    JOURNAL_ON,
    JOURNAL_CLOSING, /* turned off, the rest is still written and synced */
    JOURNAL_DROPPING /* turned off, the rest is dropped, files are closed */
};

enum journal_next { NEXT_NONE, NEXT_ROTATES, NEXT_REBASES, NEXT_SPOILED };

/* A place in the log, at the end of group `sequence`. */
struct journal_place {
    uint64_t position, sequence;
};

/* Pieces in order. */
struct journal_list {
    struct piece *head, *tail;
    uint64_t bytes; /* as journal_state_cost counts them */
};

/* A file (or none: -1) that was replaced before anything was written to it; the
 * writer closes it. */
struct journal_unused {
    struct journal_unused *next;
    int fd;
};

/* What the writer thread does. */
struct journal_writer {
    pthread_t thread;
    pthread_cond_t work;
    struct group_hash *hash; /* only the writer uses it, without the mutex */
    bool sleeps;
    uint64_t answered; /* the value of journal->asked that it has seen */
    /* When the writer entered file_writev; 0: it is not inside. */
    _Atomic uint64_t call_ns;
    struct piece *void_pieces;     /* to free */
    struct journal_unused *unused; /* to close */
    uint64_t errors, groups;
};

/* What the syncer thread does. */
struct journal_syncer {
    pthread_t thread;
    pthread_cond_t work;
    enum journal_sync policy;
    uint64_t wanted;   /* sync up to this position, whatever the policy */
    bool syncing;      /* inside file_sync */
    bool flushes;      /* journal_flush waits for the end of a sync */
    uint64_t answered; /* the value of journal->asked that it has seen */
    bool last_sync;    /* the writer leaves the file, but part of it is released
                          and not synced: sync it once more */
    uint64_t unsynced_ns; /* when the oldest unsynced write was; 0: none */
    uint64_t later_ns; /* the same for writes after the sync under way began */
    uint64_t errors, syncs;
    uint64_t ns_last, ns_max, ns_recent; /* how long syncs took */
};

/* The struct has more than 30 fields, since one mutex guards all of them and
 * every rule needs most of them.
 * NOLINTNEXTLINE(*Padding): grouped by purpose; a server has only one */
struct journal {
    /* Loops read these fields without the mutex; they change only under it. */
    _Alignas(64) _Atomic uint64_t released;
    _Atomic uint64_t synced; /* what journal_synced returns */
    _Atomic uint64_t position;
    _Atomic uint64_t limit;  /* there is room while `queued` is below it */
    _Atomic uint64_t queued; /* cost of everything that is not written yet */
    _Atomic unsigned kick;   /* KICK_*: for the next journal_kick */

    _Alignas(64) pthread_mutex_t mutex; /* guards everything below */
    enum journal_mode mode;
    bool stop; /* the threads end, or have ended */

    /* What the loops append. queue[1] is for the next file of a rotation. */
    uint32_t group_db;    /* database of the open group */
    uint64_t group_bytes; /* of the open group; 0: there is none */
    uint64_t sequence;    /* of the last closed group */
    struct journal_list queue[2];
    struct journal_tap taps[JOURNAL_TAPS]; /* all zeros: not set */
    bool tapped;                           /* a tap is set */
    bool tap_kicked; /* hooks.tapped is due or was called since
                        journal_close_group */

    /* The files. While `next` is not NONE, next_file is the next one. */
    struct journal_file file, next_file;
    uint64_t file_bytes;
    bool suspect; /* a call on the file failed: no more writes and syncs */
    enum journal_next next;
    struct journal_place mark; /* where the next file begins */
    uint64_t closed_number, closed_bytes;

    /* How far the log is stored: `written` and `file_synced` in the files,
     * `durable` without a gap in files or in a base. */
    uint64_t epoch;
    struct journal_place written, file_synced, durable;
    uint64_t need;
    int error;
    uint64_t fault_mono_ns; /* when the present fault began; 0: none */
    uint64_t suspect_files;

    /* journal_bar: nothing after position `bar` is released. */
    uint64_t bar;
    uint64_t barred_mono_ns; /* since when there is a bar; 0: there is none */

    struct journal_writer writer;
    struct journal_syncer syncer;
    uint64_t asked; /* how often journal_answers was called */

    struct journal_hooks hooks;
    unsigned due; /* DUE_* */
};

/* Everything below is called under the mutex. */

/* Returns whether effects go to files. */
static inline bool
journal_state_is_on(const struct journal *journal)
{
    return journal->mode == JOURNAL_ON || journal->mode == JOURNAL_BUILDING ||
           journal->mode == JOURNAL_HOLDING;
}

/* Returns whether there is a base on which the written groups build. */
static inline bool
journal_state_has_base(const struct journal *journal)
{
    return journal->mode != JOURNAL_OFF && journal->mode != JOURNAL_BUILDING &&
           journal->mode != JOURNAL_HOLDING;
}

static inline bool
journal_state_is_closing(const struct journal *journal)
{
    return journal->mode == JOURNAL_CLOSING ||
           journal->mode == JOURNAL_DROPPING;
}

static inline bool
journal_state_is_faulted(const struct journal *journal)
{
    return journal->fault_mono_ns != 0;
}

static inline bool
journal_state_is_tapped(const struct journal *journal)
{
    return journal->tapped;
}

/* Returns whether there is a log: files or taps. */
static inline bool
journal_state_has_log(const struct journal *journal)
{
    return journal_state_is_on(journal) || journal_state_is_tapped(journal);
}

/* Returns whether the next file makes the present one void. */
static inline bool
journal_state_rebases(const struct journal *journal)
{
    return journal->next == NEXT_REBASES || journal->next == NEXT_SPOILED;
}

/* Returns whether the threads have a file to write to. */
static inline bool
journal_state_is_served(const struct journal *journal)
{
    return !journal->stop && journal->file.fd >= 0;
}

/* Returns whether what was appended must still be written and synced. */
static inline bool
journal_state_owes(const struct journal *journal)
{
    return journal_state_is_on(journal) || journal->mode == JOURNAL_CLOSING;
}

/* Returns whether a piece that is queued now can still reach a valid file. */
static inline bool
journal_state_accepts(const struct journal *journal)
{
    return journal_state_is_on(journal) && journal->next != NEXT_SPOILED &&
           (journal->next != NEXT_NONE || !journal->suspect);
}

/* Returns the place of the log. */
static inline struct journal_place
journal_state_place(const struct journal *journal)
{
    return (struct journal_place){ atomic_load_explicit(&journal->position,
                                                        memory_order_relaxed),
                                   journal->sequence };
}

/* Moves the log to another place. */
static inline void
journal_state_move(struct journal *journal, struct journal_place place)
{
    atomic_store_explicit(&journal->position, place.position,
                          memory_order_release);
    journal->sequence = place.sequence;
}

/* Pass bytes of the open group, or its end, to all taps. */
void journal_state_tap_text(struct journal *journal, struct slice bytes);
void journal_state_tap_close(struct journal *journal, const char *seal);

/* Lets all taps begin at the place of the log. */
void journal_state_tap_begin(struct journal *journal);

/* Advances the position by `bytes` and returns the new position. */
static inline uint64_t
journal_state_advance(struct journal *journal, uint64_t bytes)
{
    uint64_t position =
        atomic_load_explicit(&journal->position, memory_order_relaxed) + bytes;

    atomic_store_explicit(&journal->position, position, memory_order_release);
    return position;
}

/* Returns how long after the oldest unsynced write everysec begins a sync, if
 * the last sync took took_ns. */
uint64_t journal_state_sync_wait_ns(uint64_t took_ns);

/* Returns what a piece adds to `queued`. */
uint64_t journal_state_cost(const struct piece *piece);

/* Adds to `queued` and to its metric; a negative cost subtracts. */
void journal_state_count(struct journal *journal, int64_t cost);

void journal_state_close_group(struct journal *journal);

/* Queues a piece for the file that it belongs to. */
void journal_state_push(struct journal *journal, struct piece *piece);

/* Takes the pieces that are queued for the present file, as closed groups.
 * Their cost stays counted until they are written. */
struct journal_list journal_state_take(struct journal *journal);

/* Makes a list void: the writer frees it. */
void journal_state_void(struct journal *journal, struct journal_list *list);

/* Appends the pieces of `more` to `list`, which leaves `more` empty. */
void journal_state_join(struct journal_list *list, struct journal_list *more);

/* Notes that the files begin anew at this place. */
void journal_state_begin(struct journal *journal, struct journal_place place);

/* Note that the file is written up to this place, that it is synced up to it,
 * or that a base has everything up to it. */
void journal_state_written(struct journal *journal, struct journal_place place);
void journal_state_synced(struct journal *journal, struct journal_place place);
void journal_state_based(struct journal *journal, struct journal_place place);

/* Holds releases behind this place until a base has everything up to it. The
 * writer closes the files. */
void journal_state_hold(struct journal *journal, struct journal_place place);

/* Leaves the file, before the places of the log are changed. Asks for a last
 * sync if a part of the file is released, not synced and in no base, unless the
 * file is suspect. */
void journal_state_leave(struct journal *journal);

/* Marks the file suspect: a write or a sync failed. */
void journal_state_fault(struct journal *journal, int error);

/* Begins a fault, unless there is one already. It lasts until a base is done.
 */
void journal_state_begin_fault(struct journal *journal);

/* Drops what is queued and turns the journal off. */
void journal_state_drop(struct journal *journal);

/* Gives up all that is queued, and all that is appended before the next rebase.
 * This is a fault, though no call to the disk has failed. Call it only while
 * journal_state_accepts. A pending rotation becomes a rebase, after which the
 * journal accepts again. */
void journal_state_give_up(struct journal *journal, int error);

/* Moves released and synced as far as the rest of the state allows. */
void journal_state_release(struct journal *journal);

/* Unlocks the mutex and calls the hooks that are due. */
void journal_state_unlock(struct journal *journal);

void journal_state_free_pieces(struct piece *head, const struct piece *end);
