/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A backup as one tar archive, written to standard output without seeking; see
 * check_unpack.h for the way back. The last entry, CHECK_SUMS_NAME, has the
 * SHA-256 sums of all files, as sha256sum prints them. So an archive that was
 * cut off lacks this entry, and in a changed archive the sums are wrong. A
 * function that returns false has printed the reason.
 */
#pragma once

#include "check/check.h"

/* The name of standard input or output on a command line. */
#define CHECK_STREAM_NAME "-"
#define CHECK_SUMS_NAME   "backup.sums"

/* Begins an archive; fails if standard output is a terminal. Paths are
 * CHECK_STREAM_NAME, or begin with it and a slash. */
struct check_stream *check_stream_new(struct check *check);
void check_stream_free(struct check_stream *stream);

bool check_stream_dir(struct check_stream *stream, const char *path);
bool check_stream_text(struct check_stream *stream, const char *path,
                       struct slice text);

/* Writes the first `bytes` bytes of a file, which is called `from` in messages.
 */
bool check_stream_file(struct check_stream *stream, const char *path, int fd,
                       uint64_t bytes, const char *from);

/* Ends the archive. Without this it cannot be restored. */
bool check_stream_end(struct check_stream *stream);
