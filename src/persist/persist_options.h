/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What persist uses, and the hooks that it calls.
 */
#pragma once

#include "conf/conf.h"
#include "keyspace/keyspace.h"

struct completion;
struct journal;

/* What clients have to wait with, until the walk of a full state has ended or
 * caught up. */
enum persist_parks {
    PARKS_NOTHING,
    PARKS_REMAKES, /* commands that it would have to follow: CMD_REMAKES */
    PARKS_WRITES   /* all that the spool would have to keep */
};

struct persist_hooks {
    /* Loop 0 should call persist_tick soon. Any thread. */
    void (*poke)(void *ctx);
    /* Loops should look at released positions and waiting connections. Any
     * thread. */
    void (*moved)(void *ctx);
    /* Effects go to this journal from now on; NULL: nowhere. Under the raised
     * gate. */
    void (*journaling)(void *ctx, struct journal *journal);
    /* Writes, and PING, are refused with these errors from now on (OK: they are
     * not). Loop 0. */
    void (*refusal)(void *ctx, enum err writes, enum err ping);
    /* This waits from now on. Loop 0, under the raised gate. */
    void (*parks)(void *ctx, enum persist_parks parks);
    /* All data was dropped and loaded again: client caches may be wrong. Loop
     * 0, under the raised gate. May be NULL. */
    void (*reloaded)(void *ctx);
    /* The data directory was gone, and is another one now, at the same path:
     * files of other modules there must be written again. Loop 0. May be NULL.
     */
    void (*moved_in)(void *ctx);
    /* It has the data, too: files that say so must be written again. Loop 0.
     * May be NULL. */
    void (*refilled)(void *ctx);
    /* The tap received something: journal_hooks. Any loop. */
    void (*tapped)(void *ctx);
    void *ctx;
};

/* For who asks for snapshots (persist_ask_sync); else all are NULL. */
struct persist_sync_hooks {
    /* The snapshot of persist_ask_sync is being written. It can be read from
     * fd, a pipe that the hook now owns, and is the state at this place or a
     * later one. Or fd is -1: it could not begin (error). Loop 0, outside the
     * gate. */
    void (*began)(void *ctx, int fd, int error, uint64_t position,
                  uint64_t sequence);
    /* That snapshot is the state at this place: its end is being written. Loop
     * 0, under the raised gate. */
    void (*reached)(void *ctx, uint64_t position, uint64_t sequence);
    /* That snapshot has ended: 0, and the writing end of the pipe is closed. Or
     * an error of persist/full_state.h: the pipe is of no use, and the hook
     * closes it. Loop 0. */
    void (*ended)(void *ctx, int error);
    void *ctx;
};

struct persist_options {
    const struct conf *conf; /* read under the gate's protection only */
    struct keyspace *keyspace;
    const char *run_id;
    const struct completion *completion; /* snapshot/completion.h */
    struct persist_hooks hooks;
    struct persist_sync_hooks sync;
};

/* How to end (persist_end). */
struct persist_end {
    bool save;  /* by SHUTDOWN SAVE or the rules */
    bool force; /* errors do not matter */
};

enum persist_ending_state {
    PERSIST_SERVES, /* it does not end */
    PERSIST_ENDS,
    PERSIST_ENDED, /* all that is asked for is on the disk, or it is forced */
    PERSIST_END_FAILED
};

/* What a forced end leaves behind. */
struct persist_missing {
    bool no_base;                             /* the journal has none yet */
    bool no_save;                             /* the snapshot failed */
    uint64_t unsynced_bytes, unwritten_bytes; /* of the journal */
};
