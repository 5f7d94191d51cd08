/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The files and directories that salvage, truncate-to, backup and restore
 * write, or the entries of the tar archive that backup writes instead
 * (check_stream.h). They are new: what exists is never written to or replaced.
 * A command writes all of them or none: a failure removes what it had written.
 * A function that returns false has printed the reason.
 */
#pragma once

#include "check/check_file.h"
#include "check/check_stream.h"
#include "journal/manifest.h"

struct check_made {
    struct check *check;
    struct check_stream *stream; /* instead of files, or NULL */
    char **paths;                /* a directory stands before its contents */
    size_t count, capacity;
    bool copies; /* files are copied, not linked */
    bool fills;  /* `out` may be an empty directory, whose owner gets all */
    bool filled; /* `out` was an empty directory */
};

/* How a command makes `out` from `path`, for each kind of path. NULL: it cannot
 * make that kind. data: the data directory that has the journal, or NULL if the
 * command line named the journal itself. */
struct check_maker {
    bool (*snapshot)(void *ctx, const char *path, const char *out);
    bool (*increment)(void *ctx, const char *path, const char *out);
    bool (*journal)(void *ctx, const char *path, const char *out,
                    const struct check_data *data);
    /* Copies the other files of a data directory; NULL: none. */
    bool (*beside)(void *ctx, const char *path, const char *out);
    /* Fills a data directory, which exists, from standard input. */
    bool (*stream)(void *ctx, const char *out);
    const char *refusal; /* printed for a path of another kind */
    void *ctx;
};

/* Runs the maker for a path, or for each snapshot and the journal of a data
 * directory. The path "-" is standard input, if the maker has `stream`. With a
 * stream to write to, `out` is CHECK_STREAM_NAME. On failure removes everything
 * that was made. */
bool check_make_all(struct check_made *made, const char *path, const char *out,
                    const struct check_maker *maker);

bool check_make_dir(struct check_made *made, const char *path);
bool check_make_file(struct check_made *made, const char *path, int *ret_fd);

/* Writes to a descriptor of check_make_file. */
bool check_make_write(struct check_made *made, int fd, const char *path,
                      struct slice bytes);

/* Syncs the file and closes it. */
bool check_make_done(struct check_made *made, int fd, const char *path);

/* Makes a file of a text, which only its owner may read. */
bool check_make_text(struct check_made *made, const char *path,
                     struct slice text);

/* Copies the first len bytes of an open file, and syncs them. */
bool check_make_copy(struct check_made *made, int from_fd, uint64_t len,
                     const char *from, const char *to);

/* Hard-links a file that is never written to again, or copies it where a link
 * is impossible (another file system, a limit, no permission). */
bool check_make_link(struct check_made *made, int from_fd, const char *from,
                     const char *to);

/* Writes the manifest of a journal directory, after all its other files. */
bool check_make_manifest(struct check_made *made, const char *dir,
                         const struct manifest *manifest);
