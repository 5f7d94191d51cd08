/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A data directory of a server that is down, for tests: a snapshot, a manifest,
 * a base and increments, written as a test wants them, and recovered.
 */
#pragma once

#include "../journal/log_help.h"
#include "../snapshot/snapshot_help.h"
#include "journal/manifest.h"
#include "persist/recover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

enum { INCREMENTS = 3, PER_INCREMENT = 4 };

#define SNAPSHOT_NAME "dump.blm"

struct place {
    char dir[32], journal_dir[48];
    int dir_fd, journal_fd;
    struct bloom_env env;
    struct manifest manifest;    /* what put_manifest writes */
    struct buf logs[INCREMENTS]; /* what put_increments writes */
    uint64_t begins[INCREMENTS * PER_INCREMENT];
    /* The replay. */
    uint64_t groups, last_sequence;
    uint64_t fail_at;    /* this group; 0: none */
    unsigned refuse_nth; /* allocation of the next run; 0: none */
    /* The last run. */
    struct keyspace *ks;
    struct snapshot_progress progress;
    _Atomic uint64_t total_bytes;
    struct history history;
    uint64_t position; /* where the group that is replayed begins */
    const char *note;  /* the first group says so; NULL: it does not */
    uint64_t positions[INCREMENTS * PER_INCREMENT];
    struct recover_result result;
    char reason[1024];
};

void place_open(struct place *place);

void place_close(struct place *place);

/* ---- files --------------------------------------------------------------- */

void put_file(int dir_fd, const char *name, struct slice content);

/* Of a keyspace, or with NULL of an empty one. */
void put_image(int dir_fd, const char *name, const struct keyspace *ks,
               uint64_t position, uint64_t sequence);

/* Empty, of this history. */
void put_image_of(int dir_fd, const char *name, const char *id);

void put_manifest(struct place *place);

void put_increments(struct place *place);

uint64_t log_bytes(const struct place *place);

/* An empty base-1 at position 1000, sequence 100, and incr-2 (closed), incr-3
 * and incr-4 (open) of four groups each: 101 to 112. Every seal names as
 * durable the group before the one before it. */
void put_journal(struct place *place);

/* Changes one bit of a file. */
void damage(int dir_fd, const char *name, uint64_t offset);

/* ---- running ------------------------------------------------------------- */

bool recover(struct place *place);

void assert_refused(struct place *place, const char *file, const char *what);

/* So many groups from the journal, of all positions a right sum. */
void assert_from_journal(struct place *place, uint64_t groups);
