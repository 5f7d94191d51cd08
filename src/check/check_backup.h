/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backup: copies one state of a data directory or journal, to which a live
 * server may be writing. The copy has every change that was acknowledged before
 * it began.
 */
#pragma once

#include "check/check.h"

void check_backup(struct check *check, const char *path, const char *out);

/* Writes the copy of a data directory to standard output (check_stream.h). */
void check_backup_stream(struct check *check, const char *path);

/* Fills OUT, a new or an empty directory, with copies of the files of a backup;
 * if the path is "-", of the backup on standard input. A server that starts
 * there is a primary that holds no slots (check_beside.h). */
void check_restore(struct check *check, const char *path, const char *out);
