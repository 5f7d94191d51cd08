/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The journal: a queue and two threads. Loops append pieces (journal/stage.h)
 * while they hold the stripes, so the order here is the order of execution; the
 * writer seals pieces into groups and writes them; the syncer syncs what was
 * written, at once or once a second. Replies wait for the released position,
 * which the threads move:
 *
 *   appended >= written >= synced          (positions in the log, in bytes)
 *   released = synced (always) or written (everysec, no)
 *              or everything, while the journal is off or being built
 *              or unchanged from a fault, or from the arrival of another
 *              server's data, until a base has everything
 *
 * With everysec, nothing more is released while a written group has been
 * unsynced for more than a second. On a disk that keeps up, syncs begin early
 * enough to avoid that. When the writer leaves a file because of a write error
 * or a rebase, the file is synced a last time if part of it was released. That
 * limits what a loss of power costs, and moves no position.
 *
 * A position returned by journal_append is released together with its group,
 * seal included. persist.c decides on loop 0 which files there are and when;
 * the journal only knows the increment it writes to and the next one.
 *
 * The log is on while there are files or a tap (journal/journal_tap.h), or
 * both. Its positions advance in the same way with and without files; without
 * files nothing is queued, and everything is released. The tap receives every
 * append, also those that a fault or a rebase makes void for the files.
 *
 * Locks: one mutex, a leaf below the stripes; never held during I/O.
 */
#pragma once

#include "base/buf.h"
#include "journal/journal_file.h"
#include "journal/journal_hooks.h"
#include "journal/stage.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct journal;

/* Makes a journal that is off: nothing may be appended, everything is released.
 * Starts its threads (CHECKed), which sleep until the first file. So switching
 * a journal on at run time cannot fail for want of a thread. */
struct journal *journal_new(const struct journal_hooks *hooks);

/* Stops the threads without writing what is queued; nothing is released any
 * more. Afterwards everything may be called except journal_set_target. */
void journal_halt(struct journal *journal);

/* Halts, and closes the files. NULL is fine. */
void journal_free(struct journal *journal);

/* ---- options; any thread ------------------------------------------------- */
void journal_set_sync(struct journal *journal, enum journal_sync sync);
void journal_set_limit(struct journal *journal, size_t queue_bytes);

/* ---- any loop ------------------------------------------------------------ */

/* Returns whether the queue is below its limit. If not, the connection waits
 * (without a lock) and tries again after hooks.moved was called. This is a
 * hint: loops may append beyond the limit in the meantime. */
bool journal_has_room(const struct journal *journal);

/* Appends the piece, which the journal then owns, and returns the position
 * behind it, which `released` must reach before the reply. Call it under the
 * locks of the stripes that the effects changed, inside a section of the gate,
 * while the journal is on or tapped. */
uint64_t journal_append(struct journal *journal, struct piece *piece);

/* Returns the position behind everything that was appended. */
uint64_t journal_position(const struct journal *journal);

/* Wakes the writer, and calls hooks.tapped, if something was appended since the
 * last call. Call it once a turn of a loop. */
void journal_kick(struct journal *journal);

/* Returns the position up to which replies may go; UINT64_MAX: all may go. */
const _Atomic uint64_t *journal_released(const struct journal *journal);

/* Returns the position after everything that was appended. It falls when the
 * log of another server replaces this one, and it falls before the released
 * position does. */
const _Atomic uint64_t *journal_end(const struct journal *journal);

/* Returns the position up to which everything is on the disk (WAITAOF): synced,
 * or in a base. 0 while there is no base: the journal is off, being built, or
 * holds. */
uint64_t journal_synced(const struct journal *journal);

/* Asks for a sync up to this position, whatever the policy is: a client waits
 * for it. */
void journal_want_sync(struct journal *journal, uint64_t position);

/* ---- loop 0 -------------------------------------------------------------- */

/* Gives the journal a file. Under the raised gate; memory only. Closes the open
 * group, so that the position is the end of one.
 *
 * RESUME and BUILD (only while off and not closing) read *position and
 * *sequence, the place of the log, unless there is a tap: then the log knows
 * its place, and stores it there. The other targets always store the place, for
 * the base. A target that is set before the last one was reached replaces that
 * one, whose file is closed.
 *
 * If the old file has a fault before a rotation is reached, the rotation
 * becomes a rebase: the base at its mark has what the file lost, the next file
 * continues from there, and journal_base_done of that base ends the fault. A
 * rotation while the file is suspect is a rebase as well. */
void journal_set_target(struct journal *journal, enum journal_target how,
                        const struct journal_file *file, uint64_t *position,
                        uint64_t *sequence);

/* Closes the open group and returns the place of the log, for snapshots. Under
 * the raised gate; journal on or tapped. */
void journal_mark(struct journal *journal, uint64_t *ret_position,
                  uint64_t *ret_sequence);

/* Says that the manifest now begins with a base that has everything up to
 * `position`, the end of group `sequence`. So everything up to it counts as
 * written and synced. Ends a fault, or building, if the position is not lower
 * than at the last REBASE (BUILD) and the file written to since then is sound.
 */
void journal_base_done(struct journal *journal, uint64_t position,
                       uint64_t sequence);

/* Makes the journal, which holds (journal_tap.h: journal_hold), wait for a base
 * up to the present place instead of an earlier one. What was appended in
 * between is dropped. Returns the place. Under the raised gate, while holding.
 */
void journal_hold_here(struct journal *journal, uint64_t *ret_position,
                       uint64_t *ret_sequence);

/* Ends the holding: the base that the journal waits for is on the disk, and
 * this file continues after it. False: the journal does not hold any more, or
 * something that was appended is lost, so that a later base is needed. Then the
 * caller keeps the file. */
MUST_CHECK bool journal_end_hold(struct journal *journal,
                                 const struct journal_file *file);

/* Until journal_unbar, releases nothing after the present place, whatever the
 * files have: a restart would not know yet that this server may accept writes.
 * While the journal is off or being built, everything is still released at
 * once. Under the raised gate. */
void journal_bar(struct journal *journal);
/* Ends the effect of journal_bar. May be called at any time, even without a
 * bar. */
void journal_unbar(struct journal *journal);

/* Says that all files of the journal were removed from outside. This is a fault
 * that a rebase ends. Does nothing while the journal is off. */
void journal_lose(struct journal *journal, int error);

/* Turns the journal off. Under the raised gate. What was appended is still
 * written and synced, then the files are closed (hooks.event), and everything
 * is released. With `now`, while building, and after a fault, even a later one,
 * the rest is dropped and everything is released at once. With a tap the log
 * goes on without files. */
void journal_turn_off(struct journal *journal, bool now);

enum journal_flushed { JOURNAL_FLUSHES, JOURNAL_FLUSHED, JOURNAL_FLUSH_FAILED };

/* Asks for everything appended to be written and synced, whatever the policy,
 * and returns whether it is; call it again after hooks.event. It fails during a
 * fault or without threads. It is done at once if there is nothing to write:
 * the journal is off, or was turned off so that the rest is dropped. Call it at
 * the end of the server, while nothing is appended. */
enum journal_flushed journal_flush(struct journal *journal);

/* More than 30 figures, for INFO and for loop 0's decisions. */
struct journal_status {
    bool on;                 /* effects go to files */
    bool tapped;             /* there is a tap */
    bool building;           /* switched on, no base yet */
    bool holding;            /* other data has come, no base of it yet */
    bool faulted;            /* a write or sync failed, and no base ended it */
    bool suspect;            /* faulted, and only REBASE can help */
    bool closing;            /* turned off, still writing */
    int error;               /* errno of the last fault */
    uint64_t fault_mono_ns;  /* when the present fault began; 0: none */
    uint64_t barred_mono_ns; /* since when there is a bar; 0: there is none */
    uint64_t file_number;    /* of the file written to */
    uint64_t file_bytes;     /* bytes in it, with the first line */
    bool rotating;           /* a target is set and not yet reached */
    /* The last file that was left complete and synced, and its bytes. */
    uint64_t closed_number, closed_bytes;
    uint64_t appended, written, synced, released; /* positions */
    uint64_t sequence, synced_sequence;
    uint64_t queue_bytes;      /* of queued pieces, with their overhead */
    uint64_t unsynced_mono_ns; /* when the oldest unsynced group was written;
                                  while faulted, fault_mono_ns; 0: none */
    uint64_t write_mono_ns;    /* when the write under way began; 0: none */
    uint64_t write_errors, sync_errors, suspect_files, syncs, groups;
    uint64_t sync_ns_last, sync_ns_max;
};
void journal_get_status(const struct journal *journal,
                        struct journal_status *ret_status);

/* Returns whether both threads have given a sign of life since the last call,
 * or are inside a call to the disk, which may last. Asks them for the next one.
 */
bool journal_answers(struct journal *journal);

/* Returns how long the longest sync since the last call took; 0: there was
 * none. */
uint64_t journal_take_longest_sync_ns(struct journal *journal);
