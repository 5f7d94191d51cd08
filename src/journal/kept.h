/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Kept increments: the manifest does not name them any more, but a merge on
 * heal may need them, so a rewrite leaves them in the journal's directory. The
 * file "kept" names them. It has the format of a manifest, but its base does
 * not count: its position is where the first increment begins, and all are
 * closed. They are valid only while the last one ends at the position of the
 * manifest's base.
 * Functions marked "I/O" do I/O, the others are pure.
 */
#pragma once

#include "journal/manifest.h"

#define KEPT_NAME "kept"

/* Reads the file. False: there is no usable file, and *ret_kept is empty. I/O.
 */
bool kept_load(int dir_fd, struct manifest *ret_kept);

/* Replaces the file, or removes it if no increment is kept. Returns 0 or errno.
 * I/O. */
MUST_CHECK int kept_store(int dir_fd, const struct manifest *kept);

/* Puts the kept increments before those of the manifest. The manifest then has
 * the position of the first increment. It does not change if the kept ones do
 * not belong to it. */
void kept_prepend(const struct manifest *kept, struct manifest *manifest);

/* Adds to *kept the increments of the manifest `before` that lie before the
 * base of `fresh`, and looks up their sizes. Then removes the oldest ones:
 * those that end at `needed` or before, and those beyond the limit. Returns the
 * bytes of those that are left. I/O. */
uint64_t kept_extend(int dir_fd, struct manifest *kept,
                     const struct manifest *before,
                     const struct manifest *fresh, uint64_t needed,
                     uint64_t limit_bytes);

/* Returns whether *kept names this file. */
bool kept_has(const struct manifest *kept, const char *name);
