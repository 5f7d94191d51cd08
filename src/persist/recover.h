/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Finds the files on the disk at a start and loads the newest complete state:
 * the snapshot, or the journal's base with its increments, whichever has the
 * higher position in the log. Damage is refused at or before the highest
 * durable_sequence that any later intact seal names; after it, the journal is
 * cut (journal/verify.h).
 */
#pragma once

#include "conf/conf.h"
#include "journal/history.h"
#include "journal/manifest.h"
#include "keyspace/keyspace.h"
#include "snapshot/snapshot_stamp.h"

/* How groups of the journal are executed. `group` executes all commands of a
 * group, which is RESP, without regard to limits, defaults and the clock.
 * False: one of them is no command, or has failed, and ret_reason says so. */
struct recover_replay {
    bool (*group)(void *ctx, struct slice commands, char *ret_reason,
                  size_t reason_size);
    void *ctx;
};

struct recover_options {
    int dir_fd;     /* the open dir */
    int journal_fd; /* the open journal directory; -1: there is none */
    const char *snapshot_name;
    const char *dir, *journal_dir; /* for messages */
    struct keyspace *keyspace;
    const struct bloom_env *env; /* without limits */
    const struct recover_replay *replay;
    const struct completion *completion;
    /* Begins with the id of the snapshot or base. A replayed group that changes
     * the history does so at *position, where the group begins. A state without
     * an id, or one that was salvaged, cannot be compared with another
     * server's: it gets a random id and no past. May be NULL. */
    struct history *history;
    uint64_t *position;
    struct snapshot_progress *progress; /* its bytes are those of all files */
    _Atomic uint64_t *total_bytes;
};

struct recover_result {
    bool from_journal, from_snapshot; /* both false: there was nothing */
    bool journal_stale;      /* there is a journal, but the snapshot is newer */
    bool journal_unfinished; /* the journal was being built or removed, and is
                                ignored */
    bool without_id;         /* the loaded state began without an id */
    uint64_t position, sequence;
    bool has_snapshot; /* there is a snapshot, loaded or not */
    struct snapshot_stamp snapshot;
    uint64_t journal_position; /* the end of a journal, loaded or not */
    uint64_t keys, groups;
    /* The journal's manifest, if it was loaded. All increments are closed at
     * the end of their valid part, even those with nothing but the first line,
     * so that their numbers are not used again. They are not synced: after a
     * kill their bytes may be in the page cache only. */
    struct manifest manifest;
    bool has_manifest;
    char cut[400]; /* the end that was cut off, or "" */
};

/* Loads the newest state. A journal that cannot be loaded is refused even if
 * there is a snapshot, and the other way round: the operator decides which of
 * them is wanted, by moving the other one away. If the snapshot is older than
 * the journal, only its header is read. At equal positions the journal is
 * loaded: every change of the keyspace without the journal moves the position.
 *
 * So positions alone decide, although a directory sees many histories: each
 * continues from a place of the one before it, and positions rise through all
 * of them. Data from another server would break that. So such data first gets a
 * name of its own, and the old state is removed before the name becomes the
 * snapshot's (persist/adopt.c); until then this function ignores it. If an
 * operator puts a snapshot beside the journal of another server, the one with
 * the higher position is loaded. Ids cannot help, since a base does not say
 * which histories came before its own.
 *
 * False: the server must not serve, and ret_reason says what is wrong, where
 * (file, offset), how much after it is intact, and what to run. The keyspace
 * must then be thrown away. */
bool recover_run(const struct recover_options *options,
                 struct recover_result *ret_result, char *ret_reason,
                 size_t reason_size);

/* Loads only the snapshot, into the keyspace, which must be empty. With
 * `check`, reads the whole snapshot but keeps nothing; the keyspace may have
 * keys. There must be a snapshot. False: ret_reason says why, as for
 * recover_run. */
bool recover_snapshot(const struct recover_options *options, bool check,
                      char *ret_reason, size_t reason_size);
