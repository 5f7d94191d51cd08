/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the paths of the command line are, by their bytes, and how they are
 * read.
 */
#pragma once

#include "tools/check.h"

enum check_kind {
    CHECK_KIND_UNKNOWN,
    CHECK_KIND_SNAPSHOT, /* a base is one too */
    CHECK_KIND_INCREMENT,
    CHECK_KIND_MANIFEST,
    CHECK_KIND_JOURNAL, /* a directory with a manifest, or files named as one */
    CHECK_KIND_DATA     /* a directory with snapshots or one journal */
};
const char *check_kind_name(enum check_kind kind);

enum { CHECK_PATH_MAX = 4096 };

/* Says why not if it cannot be read, and the result is UNREADABLE. Damage at a
 * file's very beginning leaves its name to tell. */
bool check_file_kind(struct check *check, const char *path,
                     enum check_kind *ret_kind);

/* What a data directory holds. Temporary files are left out, and journals
 * that a start set aside. */
enum { CHECK_SNAPSHOTS_MAX = 64 };
struct check_data {
    char path[CHECK_PATH_MAX];
    char journal[256]; /* name of the directory, or "" */
    char snapshots[CHECK_SNAPSHOTS_MAX][256];
    size_t count;
};
bool check_file_list(struct check *check, const char *path,
                     struct check_data *ret_data);

/* path/name. False, and said, if that is too long. */
bool check_file_join(struct check *check, const char *path, const char *name,
                     char *ret_path);

/* The last part of a path. */
const char *check_file_name(const char *path);

/* A whole file. The descriptor may be closed afterwards. Where the medium fails
 * while it is read, zeros are seen, and a line on standard error says so. */
struct check_map {
    struct slice bytes;
    const char *path; /* borrowed until check_file_unmap */
};
bool check_file_map(struct check *check, int fd, size_t len, const char *path,
                    struct check_map *ret_map);
void check_file_unmap(struct check_map *map);

/* Whether that happened. */
bool check_file_failed(void);
