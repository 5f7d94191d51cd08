/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The files of the journal's directory: disk work, no policy. Errors are errno
 * values. A task, or loop 0 at a start.
 */
#pragma once

#include "journal/journal_file.h"
#include "journal/manifest.h"

struct persist;

/* Opens or makes the directory at its path, and marks a journal without a
 * manifest as one that is being built. */
int journal_dir_open(struct persist *persist);

/* Removes what a kill has left under temporary names, if there is a directory.
 * At a start, also if there will be no journal. */
void journal_dir_tidy(const struct persist *persist);

/* Before this manifest is stored: keeps the increments that it leaves out, from
 * the position that a merge may need (journal/kept.h). Limit 0: none. */
void journal_dir_keep(const struct persist *persist,
                      const struct manifest *fresh, uint64_t needed,
                      uint64_t limit_bytes);

/* Removes the files that neither this manifest names nor one that may be
 * stored, and that are not kept. */
void journal_dir_clean(const struct persist *persist,
                       const struct manifest *manifest);

/* Removes all files, the manifest first. After an error the manifest may still
 * be there. */
int journal_dir_clear(struct persist *persist);

/* Gives the directory another name, and closes it. */
int journal_dir_set_aside(struct persist *persist, const char *why);

/* Makes an increment with its first line, on the disk. */
int journal_dir_make_increment(struct persist *persist, uint64_t number,
                               struct journal_file *ret_file);

/* Returns the size of a file, 0 if it is unknown. */
uint64_t journal_dir_bytes(int dir_fd, const char *name);
