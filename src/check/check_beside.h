/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Copies those files of a data directory that have neither filters nor effects,
 * as the list of files says (snapshot/data_files.h).
 */
#pragma once

#include "check/check_make.h"
#include "snapshot/data_files.h"

/* Returns what a command does with a file: a column of the list. */
typedef enum file_deed check_deed_fn(const struct data_file *file);

/* Copies all of these files from the directory `path` to `out`. A file that
 * disappears meanwhile is left out. False: the reason was printed. */
bool check_beside_copy(struct check_made *made, const char *path,
                       const char *out, check_deed_fn *deed_of);

/* Writes the text of the file `from`, after the change that the deed requires.
 * *text is changed. A restore prints that aclfile must name a file of users. */
enum { CHECK_BESIDE_TEXT_MAX = 16 << 20 };
bool check_beside_put(struct check_made *made, enum file_deed deed,
                      struct buf *text, const char *from, const char *to);

/* Copies one file of at most CHECK_BESIDE_TEXT_MAX bytes, as the deed requires.
 */
bool check_beside_copy_text(struct check_made *made, enum file_deed deed,
                            const char *from, const char *to);

/* Return the deed of a file in each column of the list. */
enum file_deed check_beside_backup(const struct data_file *file);
enum file_deed check_beside_restore(const struct data_file *file);
enum file_deed check_beside_salvage(const struct data_file *file);
enum file_deed check_beside_cut(const struct data_file *file);
