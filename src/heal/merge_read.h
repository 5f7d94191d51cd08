/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the heal files of a merge (merge_names.h), batch by batch, and stores
 * what was refused. Each function does I/O, on one thread at a time; arg is the
 * struct below.
 */
#pragma once

#include "heal/merge_names.h"
#include "journal/group.h"

#include <stddef.h>

struct merge_held;

struct merge_refusal {
    uint32_t command; /* index of the command in the batch */
    uint32_t item;    /* the first refused item of this command */
};

struct merge_read {
    /* Set by the owner: */
    const char *dir;
    uint64_t quarantine_max;
    struct merge_held *held; /* keeps all heal files open */
    /* Results: */
    char name[MERGE_NAME_MAX]; /* "": there is no file */
    int error;                 /* errno; EBADMSG: the file is damaged */
    uint64_t bytes_waiting;    /* of all heal files, set by merge_read_find */
    struct slice batch;        /* commands; empty: the file is done */
    uint32_t commands;
    bool set_aside; /* merge_read_finish has renamed the damaged file */
    /* For merge_read_store, set by the owner: */
    struct merge_refusal *refusals;
    size_t refused;
    uint64_t quarantined, lost; /* changes in the last merge_read_store */
    /* Used by merge_read.c only: */
    int fd, refused_fd;
    struct slice map;
    struct group_file first;
    uint64_t at;
    uint64_t quarantine_bytes;
};

/* Opens the first heal file. */
void merge_read_find(void *arg);
/* Reads the next batch. */
void merge_read_next(void *arg);
/* Appends the refused commands of the batch to their file. */
void merge_read_store(void *arg);
/* Removes the heal file, whose batches are all offered; renames it if it is
 * damaged. */
void merge_read_finish(void *arg);
/* Closes the heal file. */
void merge_read_end(struct merge_read *read);
