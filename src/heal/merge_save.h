/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The saving side of a merge (merge.h): finds the part of our log that the
 * primary lacks, lets the thread collect its names, looks up their
 * incarnations, and lets the thread write the files. The part comes from the
 * backlog; or from the journal, if the backlog lacks some of it. Loop 0.
 *
 *   NONE -> COLLECT -> COLLECTS -> RESOLVES -> WRITE -> WRITES -> NONE
 *   COLLECTS -> COLLECT   the journal does not have all of it yet, or a rewrite
 *                         has removed a file
 *
 * In COLLECT and in WRITE, the save waits until the thread is free.
 */
#pragma once

#include "heal/merge_log.h"
#include "repl/wire.h"

struct backlog;
struct loop0;
struct merge_state;
struct primary;
struct replica;

/* What a merge gets from the room roles. The struct does not change, but loop 0
 * changes the values of `key`, `epoch` and `has_replicas`. */
struct merge_roles {
    const struct loop0 *loop0;
    struct backlog *backlog;
    struct merge_state *state;
    const struct primary *primary;
    struct replica *replica;
    const uint64_t *key;   /* key of the seals */
    const uint64_t *epoch; /* epoch of the role that the links follow */
    /* The server has had replicas, by the role file. */
    const bool *has_replicas;
    /* Seals the backlog up to the end of the log. Loop 0. */
    void (*seal)(void *ctx);
    /* Makes loop 0 call merge_look soon. Any thread. */
    void (*poke)(void *ctx);
    void *ctx;
};

struct merge_options {
    bool on;
    const char *dir;     /* the data directory; stays valid */
    const char *journal; /* the name of the journal's directory in dir; NULL:
                            the journal is off */
    uint64_t quarantine_max, timeout_ms;
};

enum merge_save_stage {
    MERGE_SAVE_NONE,
    MERGE_SAVE_COLLECT,
    MERGE_SAVE_COLLECTS,
    MERGE_SAVE_RESOLVES,
    MERGE_SAVE_WRITE,
    MERGE_SAVE_WRITES
};

/* Embedded in struct merge; only merge_save.c uses it. */
struct merge_save {
    const struct merge_roles *roles;
    struct merge_held *held;
    enum merge_save_stage stage;
    struct merge_log log;
    bool lent;       /* the backlog is lent to the thread */
    size_t resolved; /* how many names were looked up */
    uint64_t give_up_ms, again_ms;
    /* The log of which a part was last saved, or found to be lost, and the end
     * of that part. */
    char history[HISTORY_ID_CHARS + 1];
    uint64_t end;
};

/* Begins to save. False: there is nothing to save, or the part is lost, which
 * is logged and counted. */
bool merge_save_begin(struct merge_save *save,
                      const struct merge_options *options,
                      const struct wire_answer *answer);

/* Returns the function that the thread must call now, with save->log; NULL:
 * none. */
typedef void (*merge_save_fn)(void *log);
merge_save_fn merge_save_job(struct merge_save *save);

/* Continues after the thread has called that function. Returns how many bytes
 * must be offered. */
uint64_t merge_save_done(struct merge_save *save);

/* Looks up some incarnations, if that is due. */
void merge_save_look(struct merge_save *save);

/* Frees the save. Call it after the thread has ended. */
void merge_save_end(struct merge_save *save);
