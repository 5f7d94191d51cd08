/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of persist share: persist.c (what happens next), directory.c,
 * place.c, save.c, sync.c, adopt.c, rewrite.c, reload.c, collapse.c and
 * persist_info.c. All of it belongs to loop 0, unless a line says otherwise.
 */
#pragma once

#include "base/file.h"
#include "persist/persist.h"
#include "persist/task.h"

#include <dirent.h>
#include <pthread.h>

enum { PERSIST_REASON_MAX = 1024, PERSIST_COLLAPSE_RANGES = 64 };

/* What is under way; one thing at a time. */
enum persist_step {
    STEP_NONE,
    STEP_SAVE,    /* a child writes a snapshot */
    STEP_REPLACE, /* a task puts it in the place of all that was there */
    STEP_SYNC,    /* a child writes a snapshot into a pipe */
    STEP_PREPARE, /* a task makes the next increment */
    STEP_BASE,    /* a child writes a base */
    STEP_COMMIT,  /* a task makes the base the journal's */
    STEP_ENDING,  /* a child was killed, and has to go */
    STEP_CLEAN,   /* a task removes what it left */
    STEP_REOPEN,  /* a task opens the data directory again */
};

/* Trying again after failures: twice as late each time. */
struct persist_retry {
    uint64_t failures; /* in a row */
    uint64_t not_before_ns;
};

/* What other threads ask for, by tickets: 1, 2, ... An outcome is that of all
 * tickets up to it. */
struct persist_requests {
    _Atomic uint64_t asked, done, failed; /* any thread */
    uint64_t taken; /* what runs is for all up to this one */
    uint64_t settled_done, settled_failed; /* to be told */
};

/* One rewrite; the task thread has it during PREPARE and COMMIT. */
struct persist_rewrite {
    enum journal_target how;
    uint64_t arrived;            /* of persist_adopted, when it began */
    uint64_t losses;             /* of persist_presence, when it began */
    uint64_t number;             /* of the new base and increment */
    uint64_t position, sequence; /* where the base stands */
    struct journal_file file;
    struct manifest manifest; /* that is stored, or was */
    bool keep_manifest;       /* PREPARE stores none: nothing relies on it */
    int error;
    bool doubtful; /* the manifest may have been stored, with an error */
    uint64_t base_bytes;
};

/* Snapshots for replicas, one at a time. */
struct persist_sync {
    bool wanted; /* asked for, not begun */
    bool open;   /* begun: the hook is to hear of the end */
    bool yields; /* one was made: now it is the turn of what else is due */
};

/* Data that came from another server is counted; so is which of it the snapshot
 * has that is being written, and which the one on the disk. */
struct persist_adopted {
    uint64_t arrived, forked, stored;
    int error; /* of putting it in place; the task's */
};

/* presence.c: whether the files are where they should be. */
struct persist_presence {
    struct task *task; /* looks; it has what stands up to `files` meanwhile */
    struct file_identity dir, journal;
    struct manifest manifest;
    bool asks_journal, asks_files;
    int dir_error, journal_error; /* what it found: 0, ENOENT, ... */
    bool looking;
    uint64_t number; /* next_number, when it began */
    uint64_t next_ns;
    uint64_t losses; /* of journals */
    /* A data directory that is gone: */
    int lost_error;
    struct persist_retry retry;
    int new_fd, new_lock_fd, reopen_error; /* the task's */
    bool saves; /* there are rules: it is to get a snapshot at once */
};

/* A copy of the options in force. */
struct persist_conf {
    struct conf_save save;
    bool appendonly, stop_writes, syncs; /* syncs: appendfsync is not "no" */
    uint64_t misconf_after_ns;
    uint64_t rewrite_percentage, rewrite_min_bytes;
};

struct persist_collapse {
    bool wanted;
    uint32_t db;
    uint64_t cursor;
    struct {
        char *at, *end;
    } ranges[PERSIST_COLLAPSE_RANGES];
    size_t count, done; /* of ranges; the task has them while it runs */
    _Atomic uint64_t pages;
};

/* In the order of its uses, and there is one. NOLINTNEXTLINE(*Padding) */
struct persist {
    struct persist_options options;
    struct gate *gate;
    struct journal *journal;
    struct child *child;
    struct task *task;
    char *dir, *journal_dir, *journal_name, *snapshot_name;
    char *arrival_name; /* of the snapshot that is to replace everything */
    int dir_fd, journal_fd, lock_fd; /* -1: not open */
    struct persist_conf conf;
    struct bloom_env load_env; /* without limits */

    enum persist_step step;
    bool wants_clean; /* a killed child left a file */
    uint64_t step_started_ns;
    struct persist_retry save_retry, rewrite_retry;
    struct persist_rewrite rewrite;
    struct manifest manifest; /* the last one known to be stored */
    bool has_manifest;        /* and it is the running journal's */
    struct manifest doubtful; /* one that may have replaced it */
    bool has_doubtful;
    bool keeps_all;  /* there are more of these: no file is removed */
    bool fault_seen; /* and logged */
    uint64_t next_number;
    struct persist_collapse collapse;

    /* The log without a journal and a tap: a position that grows with changes.
     * Changes under the raised gate, as all of this. */
    uint64_t idle_position, idle_sequence;
    int64_t idle_changes;
    bool tapped;
    bool held; /* persist_hold */
    struct history history;
    bool unsaid;        /* it began while there was no log to say so */
    struct stage stage; /* for saying it */

    struct persist_sync sync;
    struct persist_adopted adopted;
    struct persist_presence presence;

    _Atomic int64_t changes_saved; /* any thread reads it */
    int64_t changes_forked;
    uint64_t last_save_ms;
    uint64_t old_bytes; /* of increments before the one being written */

    /* Between load and begin; the loader's while it runs. */
    struct recover_result recovered;
    struct history load_history;
    uint64_t load_position;
    struct snapshot_progress load_progress; /* any thread */
    _Atomic uint64_t load_total_bytes, load_started_ms, load_started_ns;
    atomic_bool loading;

    /* Requests and outcomes; any thread. */
    struct persist_requests saves, reloads;
    _Atomic uint64_t asked_rewrite, begun_rewrite;
    atomic_bool reload_keeps; /* one that is asked for wants no save before */
    atomic_bool gives_up;
    enum err refused_writes; /* as the hook was told */

    struct persist_info info;
    pthread_mutex_t mutex; /* guards conf, and published, for other threads */
    struct persist_info published;
};

/* place.c: the log's position and sequence now, under the raised gate. */
void place_now(struct persist *persist, uint64_t *ret_position,
               uint64_t *ret_sequence);

/* A job for the child: what stands at this place of the log. */
struct child_job persist_job(const struct persist *persist, int dir_fd,
                             const char *name, uint64_t position,
                             uint64_t sequence);

void persist_failed(struct persist_retry *retry, uint64_t first_ns,
                    uint64_t max_ns);
bool persist_may_try(const struct persist_retry *retry);

/* save.c: child_start, for whatever the child is to write. */
int save_fork(struct persist *persist, const struct child_job *job,
              uint64_t *ret_us);

/* place.c. Each under the raised gate. set: at the end of a load. rest: the log
 * is off from now on, its position goes on as that of changes. restart: all
 * data was exchanged for what stands in no history yet. */
void place_set(struct persist *persist);
void place_rest(struct persist *persist);
void place_restart(struct persist *persist);

/* directory.c: false only if there is certainly no such file. */
bool directory_has(int dir_fd, const char *name);

/* directory.c: locks one. Returns 0 or an errno value: EWOULDBLOCK if another
 * server uses it (logged). Blocks. */
int directory_lock(struct persist *persist, int dir_fd, int *ret_fd);

/* presence.c. tick: with each of persist's. While the directory is lost,
 * nothing else may begin but reopen, which moves the step on. */
void presence_tick(struct persist *persist);
bool presence_is_lost(const struct persist *persist);
void presence_reopen(struct persist *persist);
void presence_reopened(struct persist *persist);

/* save.c. Each moves the step on; the last two block, under the raised gate.
 * Errors are those of persist/child.h. */
void save_begin(struct persist *persist);
void save_written(struct persist *persist, int error);
void save_ended(struct persist *persist, int error);
bool save_is_due(struct persist *persist, const struct persist_conf *conf);
int save_at_end(struct persist *persist, const struct persist_end *end);
int save_here(struct persist *persist);

/* sync.c. begin moves the step on; ended tells the hook of one that had begun.
 */
void sync_begin(struct persist *persist);
void sync_ended(struct persist *persist, int error);

/* adopt.c. While it is pending, the disk has what was there before the data of
 * another server came: a snapshot then gets another name, and is put in its
 * place by begin, which moves the step on, or by here, which blocks. finish is
 * for a start: does what was cut off. False: the reason was logged. */
bool adopt_is_pending(const struct persist *persist);
bool adopt_needs_disk(struct persist *persist, const struct persist_conf *conf);
const char *adopt_snapshot_name(const struct persist *persist);
void adopt_begin(struct persist *persist);
void adopt_replaced(struct persist *persist);
int adopt_here(struct persist *persist);
bool adopt_finish(struct persist *persist);

/* requests.c. Any thread: */
uint64_t requests_ask(struct persist_requests *requests);
enum persist_outcome requests_outcome(const struct persist_requests *requests,
                                      uint64_t ticket);
/* Loop 0: whether one waits; what begins now is for all that have asked; it has
 * ended; and that is told, if it is news. */
bool requests_are_due(const struct persist_requests *requests);
void requests_take(struct persist_requests *requests);
void requests_settle(struct persist_requests *requests, bool done);
bool requests_tell(struct persist_requests *requests);

/* reload.c: does what was asked for, and blocks. */
bool reload_is_due(const struct persist *persist);
void reload_run(struct persist *persist);

/* persist_info.c: what other threads may read until the next tick. */
void persist_publish(struct persist *persist,
                     const struct journal_status *status);

/* journal_dir.c: disk work, and no policy. list: NULL if it cannot be read;
 * else to be closed with closedir. open makes it, or opens what its path leads
 * to by now, and marks a journal without manifest as one that is being built.
 * set_aside gives it another name, and closes it. clean removes what neither
 * this manifest names nor one that may be stored; clear removes everything, the
 * manifest first: if it fails (an errno value), that may still be there.
 * make_increment: with its first line, on the disk. bytes: 0 if nobody can say.
 */
DIR *journal_dir_list(int dir_fd);
int journal_dir_open(struct persist *persist);
void journal_dir_clean(const struct persist *persist,
                       const struct manifest *manifest);
int journal_dir_clear(struct persist *persist);
int journal_dir_set_aside(struct persist *persist, const char *why);
int journal_dir_make_increment(struct persist *persist, uint64_t number,
                               struct journal_file *ret_file);
uint64_t journal_dir_bytes(int dir_fd, const char *name);

/* rewrite.c. Each moves the step on. */
void rewrite_begin(struct persist *persist, enum journal_target how);
void rewrite_prepared(struct persist *persist);
void rewrite_base_written(struct persist *persist, int error);
void rewrite_committed(struct persist *persist);

/* A task of it has ended that is no longer wanted. */
void rewrite_forget(struct persist *persist);

/* The journal has no files any more; the next one is built. */
void rewrite_start_over(struct persist *persist);

/* Kills the child that runs, whatever it does. */
void persist_end_child(struct persist *persist);
uint64_t rewrite_journal_bytes(const struct persist *persist,
                               const struct journal_status *status);

/* rewrite.c: at start, and at the end of a load. False: the reason was
 * logged. */
bool rewrite_resume(struct persist *persist);

/* At start: a journal that the snapshot has overtaken is not removed, but set
 * aside. False if the journal is on and that failed: the reason was logged. */
bool rewrite_set_aside(struct persist *persist, bool journals);

/* Above every number that the manifest names. */
uint64_t rewrite_next_number(const struct manifest *manifest);

/* collapse.c: after a child has ended, and with each tick while nothing else
 * is under way. */
void collapse_want(struct persist *persist);
void collapse_tick(struct persist *persist);
