/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keeps the heal files (merge_names.h) open. If dir is lost, the open files are
 * the only copy of adds that this server has acknowledged, and are written to
 * the new dir. Called on the thread of the merge.
 */
#pragma once

#include "heal/merge_names.h"

#include <stddef.h>

enum { MERGE_HELD_MAX = 16 }; /* a server has one or two */

struct merge_held {
    struct merge_held_file {
        char name[MERGE_NAME_MAX];
        int fd;
    } files[MERGE_HELD_MAX];
    size_t count;
    /* For merge_held_write_again(): */
    const char *dir;
    int error; /* errno */
};

/* Opens a file, if it is not open yet. */
void merge_held_add(struct merge_held *held, int dir_fd, const char *name);

/* Closes a file that has been removed. */
void merge_held_remove(struct merge_held *held, const char *name);

/* Writes the files again that dir does not have. arg: the struct merge_held. */
void merge_held_write_again(void *arg);

void merge_held_fini(struct merge_held *held);
