/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of persist, a state machine of loop 0: struct persist, and the
 * parts of it that have an owner. All of it belongs to loop 0 unless a line
 * says otherwise.
 *
 *   NONE -> SAVE -> NONE                        a snapshot
 *   NONE -> REPLACE -> NONE                     data from another server: its
 *           SAVE -> REPLACE -> NONE             file, or a snapshot of it
 *   NONE -> PREPARE -> BASE -> COMMIT -> NONE   a rewrite of the journal
 *   SAVE, BASE -> ENDING -> NONE                broken off
 *   NONE -> REOPEN -> NONE                      a data directory that was gone
 *
 * At the same time there may be a snapshot for replicas (persist_sync), which
 * lasts as long as their links need.
 *
 * A step that fails goes to NONE. DEBUG RELOAD is no step: it blocks loop 0
 * while the step is NONE (persist/reload.h).
 */
#pragma once

#include "base/file.h"
#include "base/slot_set.h"
#include "base/task.h"
#include "base/thread.h"
#include "journal/history.h"
#include "journal/journal.h"
#include "keyspace/walk_part.h"
#include "persist/persist_info.h"
#include "persist/persist_options.h"
#include "persist/recover.h"
#include "persist/requests.h"
#include "persist/retry.h"

#include <bloomery/bloom.h>
#include <pthread.h>

enum { PERSIST_REASON_MAX = 1024 };

enum persist_step {
    STEP_NONE,
    STEP_SAVE,    /* a snapshot is being written */
    STEP_REPLACE, /* a task replaces all older files by this snapshot, or by the
                     file that arrived */
    STEP_PREPARE, /* a task makes the next increment */
    STEP_BASE,    /* a base is being written */
    STEP_COMMIT,  /* a task makes the base the journal's */
    STEP_ENDING,  /* the writing was broken off, and has not ended yet */
    STEP_REOPEN,  /* a task opens the data directory again */
};

/* A copy of the options in force. persist->mutex guards it. */
struct persist_conf {
    struct conf_save save;
    bool appendonly, stop_writes, syncs; /* syncs: appendfsync is not "no" */
    uint64_t misconf_after_ns;
    uint64_t rewrite_percentage, rewrite_min_bytes;
};

/* The load. The loader thread owns it until `loading` is false. */
struct persist_load {
    struct bloom_env env; /* without limits */
    struct recover_result found;
    struct history history;
    uint64_t position;
    struct snapshot_progress progress; /* any thread */
    _Atomic uint64_t total_bytes, started_ms, started_ns;
    atomic_bool loading;
    bool refused; /* what persist_refuses_data returns */
};

/* The log. These fields change under the raised gate. Without a journal and a
 * tap, the position grows with the changes of the data. */
struct persist_log {
    uint64_t idle_position, idle_sequence;
    int64_t idle_changes;
    bool tapped;     /* there is a tap for replicas */
    unsigned walked; /* number of walks that have a tap */
    struct history history;
    bool unrecorded; /* the history began while there was no log to record it */
    struct stage stage; /* for recording a history */
};

/* A position in a history. */
struct persist_point {
    char history[HISTORY_ID_CHARS + 1];
    uint64_t position;
};

/* Snapshots. */
struct persist_save {
    struct retry retry;
    _Atomic int64_t changes_saved; /* any thread reads it */
    int64_t changes_written;       /* of the snapshot being written */
    /* The position of the snapshot being written. */
    struct persist_point written;
    struct persist_point stored; /* position of the newest stored snapshot */
    uint64_t last_ms;
};

/* Which manifest a start would find. */
enum manifest_doubt {
    DOUBT_NONE, /* the one that was stored last */
    DOUBT_ONE,  /* the last one, or `doubtful`: the files of both stay */
    DOUBT_MANY  /* one of more than two: no file is removed */
};

/* The journal's files. The task thread uses them during PREPARE and COMMIT. */
struct persist_files {
    struct manifest manifest; /* the last one known to be stored */
    bool has_manifest;        /* the manifest is that of the running journal */
    enum manifest_doubt doubt;
    struct manifest doubtful;
    uint64_t next_number;
    uint64_t unused;    /* number of the last increment, if the journal never
                           turned to it; else 0 */
    uint64_t old_bytes; /* of increments before the one being written */
};

/* A rewrite. The task thread owns the struct during PREPARE and COMMIT. */
struct persist_rewrite {
    enum journal_target how;
    uint64_t arrived; /* the value in persist_adopted when it began */
    uint64_t losses;  /* the value in persist_presence when it began */
    uint64_t number;  /* of the new base and increment */
    uint64_t position, sequence; /* of the base */
    struct journal_file file;
    struct manifest manifest; /* the manifest to store, or that was stored */
    bool keep_manifest;       /* PREPARE stores no manifest: nothing relies on
                                 the new file before COMMIT */
    uint64_t needed, limit_bytes; /* from persist_keep_log */
    int error;
    /* The manifest could not be stored, but may be on the disk. */
    bool doubtful;
    uint64_t base_bytes;
};

/* A full state that is written while commands go on (persist/full_state.h): its
 * thread, and the log that belongs to it. */
struct full_state {
    struct persist *persist;
    struct walker *walker;
    struct spool *spool;
    enum journal_tap_use use;
};

/* Snapshots for replicas, one at a time. */
struct persist_sync {
    bool wanted; /* requested, but not begun */
    bool open;   /* begun; its end will call options.sync.ended */
    bool ending; /* it was broken off, and has not ended yet */
    uint64_t started_ns;
    bool limited; /* the requested one is limited to wanted_slots */
    struct slot_set wanted_slots;
    struct slot_set slots; /* the slots of the running snapshot, and its part */
    struct walk_part part;
};

/* The arrivals of data from another server, as counts: `arrived` is the number
 * of arrivals so far. `written` is that number for the file that is to get its
 * final name, and `stored` for the file on the disk. */
struct persist_adopted {
    uint64_t arrived, written, stored;
    bool has_file; /* there is a file of the last arrival, without its final
                      name */
    bool failed;   /* a step of the adoption has failed */
    uint64_t position, sequence; /* the place of the file or snapshot */
    /* The same place with its history, and the count of changes there. */
    struct persist_point point;
    int64_t changes;
    bool from_file; /* for the task: use that file */
    bool journals;  /* for the task: the file also becomes a base */
    int error;      /* errno of the replacement; 0: none */
};

/* presence.c: whether the files are where they should be. */
struct persist_presence {
    struct task *task; /* while it runs, it owns the fields up to `available` */
    struct file_identity dir, lock, journal;
    struct manifest manifest;
    bool asks_journal, asks_files;
    int dir_error, journal_error; /* what the task found: 0, ENOENT, ... */
    uint64_t available;           /* bytes of the file system of dir */
    bool looking;
    uint64_t number; /* value of next_number when the look began */
    uint64_t next_ns;
    bool sure; /* a look that began after presence_look_anew found all files */
    bool anew; /* the look under way began before presence_look_anew */
    uint64_t losses; /* how often the journal was lost */
    /* When the data directory is gone: */
    int lost_error;
    struct retry retry;
    int new_fd, new_lock_fd, reopen_error; /* set by the task */
    bool saves; /* the option `save` has rules: a new directory gets a snapshot
                 */
    bool refills;           /* the data is not in the new directory yet */
    uint64_t refill_ticket; /* ticket of the snapshot that refills it; 0: a
                               journal does */
};

/* A secret of another server that is being written (persist/learn.c). */
struct persist_learning {
    pthread_t thread;
    atomic_int state;
    int dir_fd, error; /* the thread owns them until it is done */
    uint8_t secret[BLOOM_SECRET_BYTES];
    uint64_t fingerprint;
};

/* The secret of keyed filters. own: its file is in the server's dir. */
struct persist_secret {
    bool own;
    uint8_t bytes[BLOOM_SECRET_BYTES];
};

/* The end of the server (ending.c). */
struct persist_ending {
    enum persist_ending_state state;
    struct persist_end how;
    bool saving, saved;       /* the last snapshot was begun; is on the disk */
    uint64_t saves, failures; /* the counts of saves when it was begun */
    bool complete; /* everything that should be on the disk is on it */
};

/* The struct has more than 30 fields: each part above has one owner, and all
 * steps use the rest. There is only one struct persist.
 * NOLINTNEXTLINE(*Padding): its fields are grouped by use, not by size */
struct persist {
    struct persist_options options;
    struct gate *gate;
    struct journal *journal;
    struct full_state own;    /* snapshots, and bases of the journal */
    struct full_state synced; /* snapshots for replicas */
    uint64_t spool_limit;     /* bytes in memory */
    bool spool_waits; /* a spool at its limit lets writes wait; otherwise it
                         fails */
    struct task *task;
    struct incoming *incoming;

    char *dir, *journal_dir, *journal_name, *snapshot_name;
    char *arrival_name;  /* name of the snapshot that will replace everything */
    char *incoming_name; /* name of the file of arriving data */
    int dir_fd, journal_fd, lock_fd; /* -1: not open */

    enum persist_step step;
    uint64_t step_started_ns;
    bool fault_seen; /* the present fault was noticed and logged */
    uint64_t needed, needed_max_bytes; /* the arguments of persist_keep_log */
    bool suspended; /* the data was dropped: persist_suspend */
    struct persist_load load;
    struct persist_log log;
    struct persist_save save;
    struct persist_files files;
    struct persist_rewrite rewrite;
    struct retry rewrite_retry;
    struct persist_sync sync;
    struct persist_adopted adopted;
    struct persist_presence presence;
    struct persist_secret secret;
    struct persist_ending ending;
    struct persist_learning learning;
    struct persist_info info; /* loop 0's own figures */

    struct requests requests[PERSIST_REQUESTS]; /* any thread */
    atomic_bool gives_up;
    enum err refused_writes; /* the error that hooks.refusal was last given for
                                writes */

    pthread_mutex_t mutex; /* guards what follows, for other threads */
    struct persist_conf conf;
    struct persist_info published;
};
