/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The journal's queue and its two threads. Loops append pieces (persist/
 * stage.h) while they hold the stripes, so the order here is the order of
 * execution; the writer seals them into groups and writes them; the syncer
 * syncs what was written, at once or once a second. Replies wait for the
 * released position, which these threads move:
 *
 *   appended >= written >= synced          (positions in the log, in bytes)
 *   released = synced (always) or written (everysec, no), or everything while
 *              the journal is off or only being built, or what it was before
 *              a fault until a new base holds all effects
 *
 * everysec releases nothing more while something written is not synced for a
 * second; on a disk that keeps up a sync begins early enough for that not to
 * happen. A file that is left because of a write error, or by a rebase, is
 * synced a last time if something of it was released; that bounds what a loss
 * of power costs, and counts for nothing else.
 *
 * A position given out by journal_append is released when its group, seal
 * included, is. Which files there are, and when, is decided by persist.c on
 * loop 0; the journal only knows the increment it writes to and the next one.
 *
 * The log is there while there are files (it is on) or a tap, or both. Where it
 * is counts in the same way with and without files; without them nothing is
 * queued, and everything is released. The tap is told what is appended, so what
 * a fault or a rebase makes void for the files is in its stream all the same.
 *
 * Locks: one mutex, a leaf below the stripes; never held during I/O.
 */
#pragma once

#include "base/buf.h"
#include "persist/stage.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct journal;

enum journal_sync { JOURNAL_ALWAYS, JOURNAL_EVERYSEC, JOURNAL_NO };

/* Called without the journal's mutex, mostly by its threads, but also by who
 * calls what says "loop 0" or "options" below. They must only leave a message,
 * and not wait. NULL: not told. */
struct journal_hooks {
    /* released or synced moved, or room came free: loops with waiting
     * connections should look. */
    void (*moved)(void *ctx);
    /* A fault, a target was reached, or it is off: loop 0 should call
     * journal_get_status. */
    void (*event)(void *ctx);
    /* journal_append gave the tap something, for the first time since
     * journal_close_group. From journal_kick, so any loop; perhaps once more
     * after the tap is gone. NULL: not told. */
    void (*tapped)(void *ctx);
    void *ctx;
};

/* Who follows the log beside the files: it hears of every byte in the order of
 * the log. Called under the journal's mutex, by whoever appends or closes a
 * group (the writer, too): it copies, and does no more. */
struct journal_tap {
    /* The log stands here, at the end of a group, and goes on: at
     * journal_set_tap and journal_move. What was told before is over. */
    void (*begin)(void *ctx, uint64_t position, uint64_t sequence);
    /* Bytes of the open group; the first ones begin it. */
    void (*text)(void *ctx, struct slice bytes);
    /* The group is closed, GROUP_SEAL_BYTES of seal behind it. seal: those
     * bytes, if it came sealed (journal_relay); NULL: who taps makes one. */
    void (*close)(void *ctx, uint64_t sequence, const char *seal);
    void *ctx;
};

/* Makes it, off: nothing may be appended, everything is released. Its threads
 * start here, where they may fail to (CHECKed), and sleep until the first file;
 * switching a journal on at run time starts none. */
struct journal *journal_new(const struct journal_hooks *hooks);

/* Stops the threads without writing what is queued; nothing is released any
 * more. Everything may still be called, but for targets. */
void journal_halt(struct journal *journal);

/* Halts, and closes the files. NULL is fine. */
void journal_free(struct journal *journal);

/* ---- options; any thread ------------------------------------------------- */
void journal_set_sync(struct journal *journal, enum journal_sync sync);
void journal_set_limit(struct journal *journal, size_t queue_bytes);

/* ---- any loop ------------------------------------------------------------ */

/* Whether the queue is below its limit; else the connection waits (a lock must
 * not be held then) and tries again when hooks.moved was called. A hint: it
 * may be exceeded by what loops append meanwhile. */
bool journal_has_room(const struct journal *journal);

/* Takes the piece. Returns the position behind it: wait until released
 * reaches it. Under the stripes that the effects changed, inside a section of
 * the gate, while the journal is on or tapped. */
uint64_t journal_append(struct journal *journal, struct piece *piece);

/* The position behind all that was appended. */
uint64_t journal_position(const struct journal *journal);

/* Wakes the writer, and calls hooks.tapped, if something was appended since;
 * once a turn of a loop. */
void journal_kick(struct journal *journal);

/* UINT64_MAX when everything is released. */
const _Atomic uint64_t *journal_released(const struct journal *journal);

/* Everything up to here is on the disk (WAITAOF): synced, or in a base. 0
 * while the journal is off or only being built. */
uint64_t journal_synced(const struct journal *journal);

/* Syncs what was appended up to here, whatever the policy: for who waits for
 * it. */
void journal_want_sync(struct journal *journal, uint64_t position);

/* ---- the tap, loop 0 ----------------------------------------------------- */

/* Begins (or, with NULL, ends) to tell the tap. Under the raised gate. While
 * there is a tap the log is on, with files or without: journal_append may be
 * called. If it was off, it goes on from *position and *sequence; if it was on,
 * where it is is told there, at the end of a group. */
void journal_set_tap(struct journal *journal, const struct journal_tap *tap,
                     uint64_t *position, uint64_t *sequence);

/* Closes the open group and returns where the log is: what the tap has been
 * told up to there is whole groups. Re-arms hooks.tapped. Any time. */
uint64_t journal_close_group(struct journal *journal);

/* A group that another server has sealed, on a replica, which appends nothing
 * of its own: its commands become one group here, with the position behind it
 * that it has there. sequence follows the last one, and no group is open.
 * Returns that position. The writer is woken; hooks.tapped is not called, since
 * who would be told is who calls. Loop 0, inside a section of the gate, with a
 * tap.
 *
 * Nobody can be told to wait here, so the rule is: a group that finds the queue
 * at its limit (or no memory) gives up the file. What is queued is dropped, and
 * so is all that comes, until the next rebase; for everybody else that is a
 * fault (ENOBUFS, ENOMEM) that a base ends. With a rotation at hand the next
 * file is given up only if the queue is too long without the old one's part.
 * Where a fault makes a rebase necessary, nothing is queued before that one. So
 * what is queued never costs more than the limit and one group. */
uint64_t journal_relay(struct journal *journal, struct slice commands,
                       uint64_t sequence, const char *seal);

/* The log goes on elsewhere: all data was replaced. No file (turned off with
 * `now` before), no group open. Under the raised gate, with a tap. */
void journal_move(struct journal *journal, uint64_t position,
                  uint64_t sequence);

/* ---- loop 0 -------------------------------------------------------------- */

/* An increment that was just created, its first line written and synced. */
struct journal_file {
    int fd;       /* the journal closes it when it is done with it */
    uint64_t key; /* of its first line */
    uint64_t number;
};

enum journal_target {
    /* First file since start: what recovery found is on the disk, positions go
     * on from the given ones, releases begin at once. */
    JOURNAL_RESUME,
    /* First file of a journal switched on at run time: everything stays
     * released until journal_base_done. */
    JOURNAL_BUILD,
    /* What was appended so far goes to the old file, which is synced before
     * the first write to the new one; what comes, to the new one. */
    JOURNAL_ROTATE,
    /* After a fault: what was appended so far is dropped, since the base that
     * is written now has it; nothing is released until journal_base_done.
     * Without a fault before it, it begins one. */
    JOURNAL_REBASE,
};

/* Under the raised gate; memory only. Closes the open group, so that the
 * position is the end of one. *position and *sequence are read with RESUME and
 * BUILD (where the log stands; only while off and not closing) unless there is
 * a tap, since the log knows where it is then; with that, and with the others,
 * they are told, for the base. A second target before the first was reached
 * replaces it (its file is closed).
 *
 * A fault of the old file before a rotation is reached turns that into a
 * rebase: the base at its mark has what is lost, the next file goes on from
 * there, and journal_base_done of that base ends the fault. A rotation while
 * the file is suspect is a rebase as well. */
void journal_set_target(struct journal *journal, enum journal_target how,
                        const struct journal_file *file, uint64_t *position,
                        uint64_t *sequence);

/* Under the raised gate: closes the open group and tells where the log is; for
 * snapshots. Journal on or tapped. */
void journal_mark(struct journal *journal, uint64_t *ret_position,
                  uint64_t *ret_sequence);

/* The manifest now begins with a base that holds everything up to position,
 * group `sequence`: that counts as written and synced. A fault, or building,
 * is over if the position is not before that of the last REBASE (BUILD) and
 * the file written to since is sound. */
void journal_base_done(struct journal *journal, uint64_t position,
                       uint64_t sequence);

/* All of its files are gone, by somebody's hand: a fault that a rebase ends.
 * Nothing if it is off. */
void journal_lose(struct journal *journal, int error);

/* Under the raised gate: off. What was appended is still written and synced,
 * then the files are closed (event). Everything is released when that is done;
 * at once with `now`, which drops the rest, and so does a fault, before or
 * while closing, and building. With a tap the log goes on without files. */
void journal_turn_off(struct journal *journal, bool now);

/* Blocks until all that was appended is written and synced, whatever the
 * policy; false if it is not (a fault, no threads). True at once if nothing is
 * owed: it is off, or was turned off in a way that drops the rest. For the end
 * of the server, while nobody appends. */
bool journal_flush(struct journal *journal);

struct journal_status {
    bool on;                /* appending to files */
    bool tapped;            /* there is a tap */
    bool building;          /* switched on, no base yet */
    bool faulted;           /* a write or sync failed, and no base ended it */
    bool suspect;           /* faulted, and only REBASE can help */
    bool closing;           /* turned off, still writing */
    int error;              /* errno of the last fault */
    uint64_t fault_mono_ns; /* when the present fault began; 0: none */
    uint64_t file_number;   /* that is written to */
    uint64_t file_bytes;    /* in it, first line included */
    bool rotating;          /* a target is set and not yet reached */
    /* The last file that was left in full: synced, so many bytes. */
    uint64_t closed_number, closed_bytes;
    uint64_t appended, written, synced, released; /* positions */
    uint64_t sequence, synced_sequence;
    uint64_t queue_bytes;      /* with what it costs to hold them */
    uint64_t unsynced_mono_ns; /* when the oldest unsynced group was written;
                                  while faulted, fault_mono_ns; 0: none */
    uint64_t write_errors, sync_errors, suspect_files, syncs, groups;
    uint64_t sync_ns_last, sync_ns_max;
};
void journal_get_status(const struct journal *journal,
                        struct journal_status *ret_status);

/* The longest sync since the last call of this; 0: there was none. */
uint64_t journal_take_longest_sync_ns(struct journal *journal);

/* For tests, and for what else wants the stream: takes all that is queued,
 * sealed as it would be written with this key, and appends it to ret_bytes;
 * it counts as written and synced. Only without a file (no target but
 * JOURNAL_RESUME with fd -1): the threads leave the queue alone then. */
void journal_drain(struct journal *journal, uint64_t key,
                   struct buf *ret_bytes);
