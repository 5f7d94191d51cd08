/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The paths of the command line: finds out from their bytes what they are, and
 * opens and maps them. A function that returns false has printed the reason.
 */
#pragma once

#include "check/check.h"

enum check_kind {
    CHECK_KIND_UNKNOWN,
    CHECK_KIND_SNAPSHOT, /* a snapshot, or a base */
    CHECK_KIND_INCREMENT,
    CHECK_KIND_MANIFEST,
    CHECK_KIND_JOURNAL, /* a directory with a manifest, bases or increments */
    CHECK_KIND_DATA     /* any other directory */
};

enum { CHECK_PATH_MAX = 4096 };

/* Finds the kind of a file by its first bytes, or by its name if these are
 * damaged. */
bool check_file_kind(struct check *check, const char *path,
                     enum check_kind *ret_kind);

/* Calls visit for each name in a directory. Returns false if the directory
 * cannot be opened or visit returned false, which ends the walk. */
typedef bool check_name_fn(void *ctx, const char *name);
bool check_file_each(struct check *check, const char *path,
                     check_name_fn *visit, void *ctx);

/* The contents of a data directory, without temporary files and without
 * journals that a start set aside. */
enum { CHECK_SNAPSHOTS_MAX = 64 };
struct check_data {
    char path[CHECK_PATH_MAX];
    char journal[256]; /* name of the directory, or "" */
    char snapshots[CHECK_SNAPSHOTS_MAX][256];
    size_t count;
};
bool check_file_list(struct check *check, const char *path,
                     struct check_data *ret_data);

/* Makes "path/name". False if the path is too long. */
bool check_file_join(struct check *check, const char *path, const char *name,
                     char *ret_path);

/* Returns the last part of a path. */
const char *check_file_name(const char *path);

bool check_file_open(struct check *check, const char *path, int *ret_fd);

/* A mapped file. The descriptor may be closed afterwards. Pages that the disk
 * cannot read look like zeros, and a line on standard error names them. */
struct check_map {
    struct slice bytes;
    const char *path; /* borrowed until check_file_unmap */
};
bool check_file_map(struct check *check, int fd, size_t len, const char *path,
                    struct check_map *ret_map);
void check_file_unmap(struct check_map *map);

/* Returns whether a page of any mapped file could not be read. */
bool check_file_failed(void);
