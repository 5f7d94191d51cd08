/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a start finds on the disk, and which of it is the newest complete
 * state: the snapshot, or the journal's base with its increments, whichever
 * stands further in the log. Applies the rule about damage (design.md 6):
 * refused at or before the highest durable_sequence that any later intact seal
 * names, cut after it.
 */
#pragma once

#include "conf/conf.h"
#include "keyspace/keyspace.h"
#include "persist/history.h"
#include "persist/manifest.h"
#include "persist/snapshot.h"

/* How commands of a group are executed: all of its bytes, RESP commands one
 * after the other, with limits, defaults and the clock ignored. False: one of
 * them is none, or failed, and ret_reason says so. */
struct recover_replay {
    bool (*group)(void *ctx, struct slice commands, char *ret_reason,
                  size_t reason_size);
    void *ctx;
};

struct recover_options {
    int dir_fd;     /* of dir */
    int journal_fd; /* of its journal directory; -1: there is none */
    const char *snapshot_name;
    const char *dir, *journal_dir; /* for messages */
    struct keyspace *keyspace;
    const struct bloom_env *env; /* without limits */
    const struct recover_replay *replay;
    /* Begins with the id of the snapshot or base; whoever replays a group tells
     * it of changes, which are at *position: there the group begins. Of what
     * has no id, or was salvaged, nobody knows how it compares with what others
     * have: it ends with a random one and no past. NULL: nobody wants to know.
     */
    struct history *history;
    uint64_t *position;
    struct snapshot_progress *progress; /* bytes: of all files */
    _Atomic uint64_t *total_bytes;
};

struct recover_result {
    bool from_journal, from_snapshot; /* neither: there was nothing */
    bool journal_stale;      /* there is one, but the snapshot is newer */
    bool journal_unfinished; /* it was being built or removed: nothing of it
                                counts */
    bool nameless;           /* what was loaded was begun without an id */
    uint64_t position, sequence;
    bool has_snapshot; /* loaded or not */
    struct snapshot_stamp snapshot;
    uint64_t journal_position; /* where a journal ends, loaded or not */
    uint64_t keys, groups;
    /* Of the journal, if it was loaded: all increments closed at what is valid,
     * those too of which nothing is but the first line, so that their numbers
     * are not used again. They are not synced: a kill leaves what only the page
     * cache has. */
    struct manifest manifest;
    bool has_manifest;
    char cut[400]; /* what was cut off, or "" */
};

/* A journal that cannot be loaded is refused even if there is a snapshot, and
 * the other way round: which of them is wanted is for the operator to say, by
 * moving the other one away. A snapshot that stands behind the journal is not
 * read beyond its header. At equal positions the journal is loaded: whatever
 * changes the keyspace without the journal has to move the position.
 *
 * So positions alone decide, although a directory knows many histories: each
 * goes on from a place of the one before it, and positions rise through all of
 * them. They do not if the data comes from another server. That is why such
 * data first gets a name of its own and the old state is removed before the
 * name is the snapshot's (persist/adopt.c); until then it is not looked at
 * here. Of a snapshot that somebody has put beside the journal of another
 * server, the one further on is loaded: ids cannot tell, since a base does not
 * say which histories went before its own.
 *
 * False: nothing may be served, and ret_reason says what, where (file, offset),
 * how much follows intact, and what to run. The keyspace is then to be thrown
 * away. */
bool recover_run(const struct recover_options *options,
                 struct recover_result *ret_result, char *ret_reason,
                 size_t reason_size);

/* The snapshot alone, which is only read if `check`: everything in it is looked
 * at, and nothing is kept. Else it goes into the keyspace, which is empty.
 * There has to be one. False: ret_reason says why not, as that of recover_run.
 */
bool recover_snapshot(const struct recover_options *options, bool check,
                      char *ret_reason, size_t reason_size);
