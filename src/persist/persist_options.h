/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What persist uses, and the hooks that it calls.
 */
#pragma once

#include "conf/conf.h"
#include "keyspace/keyspace.h"

struct completion;
struct journal;

/* Which commands must wait until the walk of a full state has caught up or
 * ended. */
enum persist_parks {
    PARKS_NOTHING,
    PARKS_REMAKES, /* commands that change a whole filter, which the walk must
                      copy again: CMD_REMAKES */
    PARKS_WRITES   /* all writes, since the spool would have to keep them */
};

struct persist_hooks {
    /* Loop 0 should call persist_tick soon. Any thread. */
    void (*poke)(void *ctx);
    /* Loops should look at released positions and waiting connections. Any
     * thread. */
    void (*moved)(void *ctx);
    /* Effects go to this journal from now on; NULL: they go nowhere. Under the
     * raised gate. */
    void (*journaling)(void *ctx, struct journal *journal);
    /* Writes, and PING, are refused with these errors from now on (OK: they are
     * not refused). Loop 0. */
    void (*refusal)(void *ctx, enum err writes, enum err ping);
    /* From now on these commands wait. Loop 0, under the raised gate. */
    void (*parks)(void *ctx, enum persist_parks parks);
    /* All data was dropped and loaded again: client caches may be wrong. Loop
     * 0, under the raised gate. May be NULL. */
    void (*reloaded)(void *ctx);
    /* The data directory was gone. There is a new one at the same path: files
     * of other modules must be written there again. Loop 0. May be NULL. */
    void (*moved_in)(void *ctx);
    /* The new data directory now has the data, too. Files of other modules that
     * rely on that data must be written again. Loop 0. May be NULL. */
    void (*refilled)(void *ctx);
    /* The tap has received something: see struct journal_hooks. Any loop. */
    void (*tapped)(void *ctx);
    void *ctx;
};

/* Hooks for the code that requests snapshots (persist_ask_sync); all NULL if
 * there is none. */
struct persist_sync_hooks {
    /* The snapshot of persist_ask_sync is being written. It can be read from
     * fd, a pipe that the hook now owns, and will be the state at this place or
     * a later one. If fd is -1, it could not begin, because of `error`. Loop 0,
     * outside the gate. */
    void (*began)(void *ctx, int fd, int error, uint64_t position,
                  uint64_t sequence);
    /* That snapshot has become the state at this place; its end is being
     * written. Loop 0, under the raised gate. */
    void (*reached)(void *ctx, uint64_t position, uint64_t sequence);
    /* That snapshot has ended. error is 0: the writing end of the pipe is
     * closed. Else it is an error of persist/full_state.h: the pipe is useless,
     * and the hook closes it. Loop 0. */
    void (*ended)(void *ctx, int error);
    void *ctx;
};

struct persist_options {
    const struct conf *conf; /* read only inside a section of the gate, or with
                                the gate raised */
    struct keyspace *keyspace;
    const char *run_id;
    const struct completion *completion; /* snapshot/completion.h */
    struct persist_hooks hooks;
    struct persist_sync_hooks sync;
};

/* How to end (persist_end). */
struct persist_end {
    bool save;  /* write a snapshot: SHUTDOWN SAVE or the option `save` asks for
                   it */
    bool force; /* end even after errors */
};

enum persist_ending_state {
    PERSIST_SERVES, /* the server does not end */
    PERSIST_ENDS,
    PERSIST_ENDED, /* all that was asked for is on the disk, or the end is
                      forced */
    PERSIST_END_FAILED
};

/* What a forced end leaves behind. */
struct persist_missing {
    bool no_base;                             /* the journal has no base yet */
    bool no_save;                             /* the snapshot was not written */
    uint64_t unsynced_bytes, unwritten_bytes; /* of the journal */
};
