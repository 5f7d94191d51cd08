/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The files and directories that are made. They are new: what exists is never
 * written to or replaced. All of them or none: a failure takes away what was
 * made before it. Each function that returns false has said why.
 */
#pragma once

#include "persist/manifest.h"
#include "tools/check.h"

struct check_made {
    struct check *check;
    char **paths; /* a directory stands before what is in it */
    size_t count, capacity;
};

void check_made_undo(struct check_made *made); /* removes all of it */
void check_made_fini(struct check_made *made); /* it stays */

/* Whether nothing has this name. Everything that is made refuses to replace;
 * this finds it out before hours of reading. */
bool check_make_vacant(struct check_made *made, const char *path);

bool check_make_dir(struct check_made *made, const char *path);
bool check_make_file(struct check_made *made, const char *path, int *ret_fd);

/* fd is one of check_make_file. */
bool check_make_write(struct check_made *made, int fd, const char *path,
                      struct slice bytes);

/* Syncs and closes. */
bool check_make_done(struct check_made *made, int fd, const char *path);

/* Copies the first len bytes of an open file, and syncs them. */
bool check_make_copy(struct check_made *made, int from_fd, uint64_t len,
                     const char *from, const char *to);

/* Gives a file that nobody writes to any more a second name, or copies it
 * where that is impossible (another file system, a limit, no permission). */
bool check_make_link(struct check_made *made, int from_fd, const char *from,
                     const char *to);

/* The manifest of a journal directory, after all its other files. */
bool check_make_manifest(struct check_made *made, const char *dir,
                         const struct manifest *manifest);

/* Makes the names in a directory durable; or those beside a path. */
bool check_make_sync_dir(struct check_made *made, const char *path);
bool check_make_sync_parent(struct check_made *made, const char *path);
