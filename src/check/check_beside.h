/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Copies the files of a data directory that are no data, as the list of files
 * says (snapshot/data_files.h).
 */
#pragma once

#include "check/check_make.h"
#include "snapshot/data_files.h"

/* Returns what a command does with a file: a column of the list. */
typedef enum file_deed check_deed_fn(const struct data_file *file);

/* Copies them all, from the directory `path` to `out`. A file that goes
 * meanwhile is left out. False: printed. */
bool check_beside_copy(struct check_made *made, const char *path,
                       const char *out, check_deed_fn *deed_of);

/* Writes a text that came from `from`, after the change that the deed asks for.
 * The text is changed. A restore says which option must name the users. */
enum { CHECK_BESIDE_TEXT_MAX = 16 << 20 };
bool check_beside_put(struct check_made *made, enum file_deed deed,
                      struct buf *text, const char *from, const char *to);

/* Copies one file of that size at most, as the deed asks. */
bool check_beside_copy_text(struct check_made *made, enum file_deed deed,
                            const char *from, const char *to);

/* The columns. */
enum file_deed check_beside_backup(const struct data_file *file);
enum file_deed check_beside_restore(const struct data_file *file);
enum file_deed check_beside_salvage(const struct data_file *file);
enum file_deed check_beside_cut(const struct data_file *file);
