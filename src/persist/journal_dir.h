/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The files of the journal's directory: disk work without policy. Errors are
 * errno values. A task calls it, or loop 0 at a start.
 */
#pragma once

#include "journal/journal_file.h"
#include "journal/manifest.h"

struct persist;

/* Opens or makes the directory at its path. Marks a journal without a manifest
 * as being built. */
int journal_dir_open(struct persist *persist);

/* Removes files with temporary names that a kill has left, if there is a
 * directory. Called at a start, even if there will be no journal. */
void journal_dir_tidy(const struct persist *persist);

/* Keeps the increments from the position `needed` on that this manifest leaves
 * out, since a merge may need them (journal/kept.h). Call it before the
 * manifest is stored. Limit 0: keeps none. */
void journal_dir_keep(const struct persist *persist,
                      const struct manifest *fresh, uint64_t needed,
                      uint64_t limit_bytes);

/* Removes the files that are neither kept nor named by this manifest, or by
 * another one that may be stored. */
void journal_dir_clean(const struct persist *persist,
                       const struct manifest *manifest);

/* Removes all files, the manifest first. After an error the manifest may still
 * be there. */
int journal_dir_clear(struct persist *persist);

/* Gives the directory another name, logs `why`, and closes it. */
int journal_dir_set_aside(struct persist *persist, const char *why);

/* Creates an increment with its first line, and syncs it. */
int journal_dir_make_increment(struct persist *persist, uint64_t number,
                               struct journal_file *ret_file);

/* Returns the size of a file, 0 if it is unknown. */
uint64_t journal_dir_bytes(int dir_fd, const char *name);
