/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Saves a part of our log in the files of a merge (merge_names.h). Each
 * function does I/O, on one thread at a time.
 */
#pragma once

#include "journal/history.h"
#include "journal/verify.h"
#include "replay/merge_sift.h"

struct manifest;
struct merge_held;

struct merge_log {
    /* Set by the owner: */
    const char *dir;
    char history[HISTORY_ID_CHARS + 1]; /* history of our log */
    uint64_t position, end;             /* the part of the log */
    uint64_t key;                       /* key of its seals */
    /* The bytes of the part; NULL: read them from the journal. */
    struct slice *slices;
    size_t count;
    char *journal_dir; /* its path */
    bool skips_kept;   /* increments that rewrites have kept cannot be used */
    uint64_t quarantine_max; /* limit of all quarantine files */
    struct merge_held *held; /* keeps the heal file open */
    /* Results: */
    int error; /* errno */
    struct merge_sift *sift;
    uint64_t offered;    /* items in the heal file */
    uint64_t heal_bytes; /* bytes of the heal file; 0: nothing is offered */
    uint64_t quarantined, lost; /* changes */
    /* Bytes at the beginning of the part that are in no file. */
    uint64_t missing;
    /* Used by merge_log.c only: */
    int raw_fd;
    struct slice raw;
    struct manifest *manifest;
    struct verify_file *files; /* files of the journal */
};

/* Reads the part of the log and collects its names in log->sift. Afterwards the
 * slices are no longer used. arg: the struct merge_log. */
void merge_log_collect(void *arg);

/* Writes and syncs the files, once the names have their incarnations. */
void merge_log_write(void *arg);
void merge_log_end(struct merge_log *log);
