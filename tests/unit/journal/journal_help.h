/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A journal on files in memory, on a disk that the helper plays: it
 * replaces write, writev and fdatasync. It knows which part of each file is
 * synced, can delay calls, fails the nth one, and notices what must never
 * happen: a suspect file touched again (but for one last sync after a write
 * failed), a file written to before the one before it is synced, a position
 * released that is not on the disk.
 *
 * What is appended is computed from (source, number), so what the files hold
 * can be checked against the positions that were given out.
 */
#pragma once

#include "../test.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "journal/group.h"
#include "journal/journal.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { FILES_MAX = 64, DEADLINE_S = 60 };

struct disk_file {
    int fd; /* our own; the journal closes its own */
    ino_t inode;
    uint64_t key, begin; /* position of the log */
    uint64_t synced;     /* bytes */
    uint64_t groups_end; /* of the whole groups that were found in these */
    bool suspect;        /* a call failed */
    bool left;           /* by a rebase: need not be synced */
    bool gone;           /* of data that was replaced: no base needs it */
    unsigned allowed[2]; /* calls, now that it is suspect */
};

enum disk_call { DISK_WRITE, DISK_SYNC, DISK_CALLS };

enum { POLICIES = 3 };

extern const enum journal_sync policies[POLICIES];

extern struct disk {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    struct disk_file files[FILES_MAX];
    size_t count;
    bool hold[DISK_CALLS];
    unsigned inside[DISK_CALLS]; /* calls held up */
    unsigned nth[DISK_CALLS];    /* this one fails; 0: none */
    bool for_good, fired;
    uint64_t failed; /* calls */
    const struct journal *journal;
    uint64_t base; /* position of the base in the manifest */
    const char *wrong;
} disk;

uint64_t size_of(int fd);

/* Lets calls of this kind wait, or go on. */
void disk_hold(enum disk_call call, bool hold);

void disk_fail(enum disk_call call, unsigned nth, bool for_good);

/* Switches faults off; true if one fired. */
bool disk_heal(void);

bool disk_is_inside(enum disk_call call);

/* ---- the rig ------------------------------------------------------------- */

struct rig {
    struct journal *journal;
    _Atomic uint64_t moved, events, tapped;
    atomic_bool hangs, hanging; /* the hook `moved`, on the writer's thread */
    atomic_bool always;         /* check each release */
    uint64_t numbers;
};

/* Waits for a condition. */
#define until(condition)                                                       \
    do {                                                                       \
        uint64_t deadline_ns =                                                 \
            clock_mono_ns() + DEADLINE_S * UINT64_C(1000000000);               \
        while (!(condition)) {                                                 \
            assert_true(clock_mono_ns() < deadline_ns);                        \
            (void)nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);    \
        }                                                                      \
    } while (0)

uint64_t released(const struct rig *rig);

struct journal_status status_of(const struct rig *rig);

/* Waits until everything is synced; false if that fails. */
bool flush(const struct rig *rig);

/* Gives the journal a file. The disk waits meanwhile, since the begin of the
 * file is only known afterwards. */
uint64_t set_target(struct rig *rig, enum journal_target how, uint64_t position,
                    uint64_t *ret_sequence);

void base_done(struct rig *rig, uint64_t position, uint64_t sequence);

/* Other data takes the place of the log's, at this place. */
void hold(struct rig *rig, uint64_t position, uint64_t sequence);
/* Its base is at this position; a new file follows. */
bool end_hold(struct rig *rig, uint64_t position);

struct rig *rig_new(enum journal_sync sync);

/* On, from this position on. */
struct rig *rig_resumed(enum journal_sync sync, uint64_t position);

void rig_free(struct rig *rig);

/* ---- what is appended ---------------------------------------------------- */

struct entry {
    uint64_t position;
    uint32_t source, number;
};

struct source {
    struct rig *rig;
    struct stage stage;
    uint32_t id, next;
    struct entry *entries; /* one for each piece */
    size_t max;
};

uint64_t mix(uint64_t x);

/* A piece is these effects. */
struct recipe {
    unsigned effects;
    bool txn;
    size_t item; /* bytes */
    uint64_t seed;
};

struct source source_of(struct rig *rig, uint32_t id);

void source_fini(struct source *source);

/* Appends the next piece. */
uint64_t append(struct source *source);

uint64_t append_and_kick(struct source *source);

/* Appends a piece and waits until it is released. */
uint64_t append_released(struct source *source);

/* Appends a piece and waits until the disk holds a call of this kind. */
uint64_t append_stuck(struct source *source, enum disk_call call);

/* Appends a piece whose write fails and waits until the file is suspect. */
void append_failed(struct source *source);

/* A thread that appends to its source until `enough`, and now and then waits
 * for a release. */
enum { APPENDERS = 3 };
extern atomic_bool enough;
void *append_until_enough(void *source);

/* ---- what is in the files ------------------------------------------------ */

/* The entries of all sources in the order of the log, those behind `from`. */
struct expected {
    struct entry *entries;
    size_t count, next;
};

struct expected expect(const struct source *sources, size_t count,
                       uint64_t from);

/* All groups of a text that begins at this position of the log, group
 * `sequence` having been the last. */
uint64_t check_groups(struct expected *expected, struct slice data,
                      uint64_t offset, uint64_t key, uint64_t position,
                      uint64_t *sequence);

/* Checks that the files from this position on hold exactly what was appended
 * behind it; skips files that were not used. */
void check_files(const struct source *sources, size_t count, uint64_t from,
                 uint64_t sequence);

/* ---- the end of a test --------------------------------------------------- */

/* Switches faults off and frees the source and its rig. */
void finish(struct source *source);

/* Checks the files before it frees. */
void finish_checked(struct source *source, uint64_t from, uint64_t sequence);

/* Stores the base of the newest target, waits until everything up to `last` is
 * released, checks and frees. */
void finish_with_base(struct source *source, uint64_t position,
                      uint64_t sequence, uint64_t last);
