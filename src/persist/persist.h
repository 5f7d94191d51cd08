/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Persistence as one thing: when to save, rewrite, rebuild after a fault, and
 * what the journal's directory holds. A state machine of loop 0, driven by its
 * timer, by the end of child processes, and by the journal's events. What says
 * "any thread" below only leaves a request or reads figures.
 *
 *   dir/                 lock, <dbfilename>, *.tmp
 *   dir/<appenddirname>/ manifest, base-<n>, incr-<n>
 */
#pragma once

#include "conf/conf.h"
#include "keyspace/keyspace.h"
#include "persist/child.h"
#include "persist/history.h"
#include "persist/journal.h"
#include "persist/recover.h"
#include "persist/transfer.h"

#include <uv.h>

struct persist;

struct persist_hooks {
    /* Loop 0 should call persist_tick soon. Any thread. */
    void (*poke)(void *ctx);
    /* Loops should look at released positions and waiting connections. Any
     * thread. */
    void (*moved)(void *ctx);
    /* Effects go to this journal from now on; NULL: to nobody. Under the
     * raised gate. */
    void (*journaling)(void *ctx, struct journal *journal);
    /* What writes, and PING, are refused with from now on (OK: they are not).
     * Loop 0. */
    void (*refusal)(void *ctx, enum err writes, enum err ping);
    /* All data was dropped and loaded again: what clients keep of it may be
     * wrong. Loop 0, under the raised gate. NULL: nobody wants to know. */
    void (*reloaded)(void *ctx);
    /* The child of persist_ask_sync runs: what it writes can be read from fd, a
     * pipe, now the hook's; it is the state at this place. Or fd is -1: it
     * could not be forked (error). Loop 0, outside the gate. */
    void (*sync_began)(void *ctx, int fd, int error, uint64_t position,
                       uint64_t sequence);
    /* That child has ended: 0, or an error of persist/child.h; its end of the
     * pipe is closed. Loop 0. */
    void (*sync_ended)(void *ctx, int error);
    /* The data directory was gone, and is another one now, at the same path:
     * whoever keeps files there writes them again. Loop 0. NULL: nobody. */
    void (*moved_in)(void *ctx);
    /* The tap got something: journal_hooks. Any loop. */
    void (*tapped)(void *ctx);
    void *ctx;
};

struct persist_options {
    const struct conf *conf; /* read under the gate's protection only */
    struct keyspace *keyspace;
    const char *run_id;
    struct persist_hooks hooks;
};

struct persist *persist_new(const struct persist_options *options);
void persist_free(struct persist *persist);

/* ---- start, before or while the loops run -------------------------------- */

/* Opens dir and locks it. False: the reason was logged. */
bool persist_open(struct persist *persist);

/* Its path, absolute. After persist_open. */
const char *persist_dir(const struct persist *persist);

/* Loads what is there, on the calling thread, which alone touches the keyspace
 * meanwhile. False: the reason was logged, and the server must not serve.
 * replay: see recover.h. */
bool persist_load(struct persist *persist, const struct recover_replay *replay);

/* After the load, on loop 0, outside the gate: starts the journal if it is on.
 * False: the reason was logged. */
bool persist_begin(struct persist *persist);

/* ---- replication, loop 0 ------------------------------------------------- */

/* Whose log it is. Read inside a section of the gate, or under it. */
const struct history *persist_history(const struct persist *persist);

/* A new history begins here: a promotion, the start of a primary. Under the
 * raised gate, any loop. Where the log is on, it says so, in a group of its
 * own. */
void persist_renew_history(struct persist *persist);

/* What REPLCONF HISTORY does on who obeys: the group that has it begins at the
 * log's position now. Under the raised gate or at the load. What is no id is
 * ignored. */
void persist_note_history(struct persist *persist, struct slice id);

/* Follows the log, as journal_set_tap; NULL ends it. Afterwards effects go to
 * the journal (hooks.journaling). If the present history began while there was
 * no log to say so, the first group says it; so who follows another server,
 * whose history always comes from there, adds nothing. Raises the gate
 * itself. */
void persist_set_tap(struct persist *persist, const struct journal_tap *tap);
bool persist_is_tapped(const struct persist *persist);

/* Where the log is, at the end of a group. Under the raised gate, or on loop 0
 * of a replica. */
void persist_place(struct persist *persist, uint64_t *ret_position,
                   uint64_t *ret_sequence);

/* Asks for a child that writes a snapshot into a pipe; there has to be a tap.
 * It begins when no other child runs. Cancelling kills it, or withdraws the
 * wish; the hooks are called for one that had begun. */
void persist_ask_sync(struct persist *persist);
void persist_cancel_sync(struct persist *persist);

/* All data is replaced by that of `fresh` (made with the same databases and
 * threads), which has the old data afterwards: the state of another server's
 * log at this place. What the disk has is of another history now: it stays
 * until a snapshot of the new one is written, which begins with the next tick,
 * and is never taken for newer than that (adopt.c says how); then a journal
 * begins anew if it is on. If that fails it is tried again, with the figures of
 * a save. hooks.reloaded is called. On loop 0, under the raised gate, with a
 * tap, which hears where the log goes on. */
struct persist_arrival {
    struct keyspace *fresh; /* NULL: the data stays, but is no state of the log
                               any more */
    const char *history;    /* NULL: one of its own, that nobody knows */
    uint64_t position, sequence;
};
void persist_adopt(struct persist *persist,
                   const struct persist_arrival *arrival);

/* The data was dropped, to make room for what is on its way: until
 * persist_adopt nothing of it is saved, not at the end either, nor given to
 * anybody, and the disk keeps what it has. Under the raised gate. */
void persist_hold(struct persist *persist);

/* ---- loop 0 -------------------------------------------------------------- */

/* Every 100 ms, after poke, and when a child has ended. Outside the gate. */
void persist_tick(struct persist *persist);

/* Copies the options in force. Under the raised gate; for the first time when
 * the hooks can be called, before the load. */
void persist_apply_conf(struct persist *persist);

/* The end. Under the raised gate, never to be lowered for writers: saves if
 * asked to (blocking), writes and syncs the journal. False if the save failed
 * or the journal could not be synced; then the server may go on. idle is
 * called now and then. */
struct persist_end {
    bool save;  /* by SHUTDOWN SAVE or the rules */
    bool force; /* errors do not matter */
    void (*idle)(void *ctx);
    void *ctx;
};
bool persist_stop(struct persist *persist, const struct persist_end *end);

/* Ends the threads: no hook is called any more. Figures can still be read. */
void persist_halt(struct persist *persist);

/* ---- any thread ---------------------------------------------------------- */

struct journal *persist_journal(struct persist *persist);

/* Asks for a snapshot or a rewrite that begins after now; the returned ticket
 * tells about it. */
uint64_t persist_ask_save(struct persist *persist);
uint64_t persist_ask_rewrite(struct persist *persist);
enum persist_outcome { PERSIST_PENDING, PERSIST_DONE, PERSIST_FAILED };
enum persist_outcome persist_save_outcome(const struct persist *persist,
                                          uint64_t ticket);

/* DEBUG RELOAD: asks for all data to be dropped and loaded from the snapshot,
 * which is written before, if `save`. Without, what is in memory and not in the
 * snapshot is lost, so that the log moves and a history without a past begins,
 * before hooks.reloaded. The world stands still meanwhile; nothing is dropped
 * before the snapshot was found intact. */
uint64_t persist_ask_reload(struct persist *persist, bool save);
enum persist_outcome persist_reload_outcome(const struct persist *persist,
                                            uint64_t ticket);

/* True: replies that wait for a position are to be answered with
 * ERR_MISCONF_UNKNOWN instead. */
const atomic_bool *persist_gives_up(const struct persist *persist);

/* In the order of INFO. NOLINTNEXTLINE(*Padding): there are two of them */
struct persist_info {
    /* loading */
    bool loading;
    uint64_t loading_started_s, loading_total_bytes, loading_loaded_bytes;
    uint64_t loading_eta_s;
    double loading_percent;
    uint64_t load_keys, load_ms; /* of the last load */
    /* snapshots */
    uint64_t changes; /* since the last save */
    bool saving;
    bool syncing;  /* a child writes a snapshot for replicas */
    bool adopting; /* data of another server is not on the disk yet */
    uint64_t last_save_s;
    bool last_save_ok;
    int64_t last_save_seconds, current_save_seconds; /* -1: none */
    int64_t current_sync_seconds;
    uint64_t saves, save_failures; /* in a row */
    uint64_t save_cow_bytes;       /* of the last one */
    /* the child that runs, or zeros */
    uint64_t cow_bytes, cow_peak_bytes, cow_age_s, child_keys, child_keys_total;
    uint64_t child_bytes;
    double child_percent;
    uint64_t fork_us; /* of the last fork */
    uint64_t forks;
    /* the journal */
    bool appendonly, rewriting, rewrite_scheduled, last_rewrite_ok;
    int64_t last_rewrite_seconds, current_rewrite_seconds;
    uint64_t rewrites, rewrite_failures; /* in a row */
    uint64_t rewrites_begun;             /* up to this ticket */
    uint64_t rewrite_cow_bytes;
    uint64_t journal_bytes, base_bytes; /* all files; at the last rewrite */
    uint64_t manifest_generation;
    bool misconf;
    struct journal_status journal;
    uint64_t collapsed_pages; /* huge pages restored after forks */
};
void persist_get_info(struct persist *persist, struct persist_info *ret_info);
