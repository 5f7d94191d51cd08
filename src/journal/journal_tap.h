/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The log beyond its files: the taps that copy it, for replicas and for a walk
 * (journal/spool.h), and groups that a replica relays from its primary's log.
 * Loop 0.
 */
#pragma once

#include "base/slice.h"
#include "journal/journal_hooks.h"

#include <stdint.h>

struct journal;

/* Sets the tap of this use, or removes it (NULL). Under the raised gate. While
 * there is a tap the log is on, with files or without: journal_append may be
 * called. A log that was off continues from *position and *sequence. A log that
 * was on closes its open group and stores its place there. */
void journal_set_tap(struct journal *journal, enum journal_tap_use use,
                     const struct journal_tap *tap, uint64_t *position,
                     uint64_t *sequence);

/* Closes the open group and returns the position of the log: the tap has
 * received whole groups up to it. Re-arms hooks.tapped. Any time. */
uint64_t journal_close_group(struct journal *journal);

/* Appends a group that another server has sealed, on a replica, which appends
 * nothing itself. The commands become one group here, which ends at the same
 * position as in the primary's log. `sequence` follows the last one, and no
 * group is open. Returns the position of the end. Wakes the writer; does not
 * call hooks.tapped, since the caller knows. Inside a section of the gate, with
 * a tap.
 *
 * A primary cannot be made to wait here. So if the queue is at its limit, or
 * there is no memory, the journal gives up the file: it drops what is queued,
 * and everything after it, until the next rebase. The journal then reports a
 * fault (ENOBUFS, ENOMEM), which a base ends. While the journal rotates, the
 * next file is given up only if the queue is too long without the old file's
 * part. After a fault that needs a rebase, nothing is queued before that
 * rebase. So the queue never costs more than the limit and one group. */
uint64_t journal_relay(struct journal *journal, struct slice commands,
                       uint64_t sequence, const char *seal);

/* Moves the log to another place, because other data has come, which no file
 * has. What was appended is dropped, and the files are left as they are. The
 * journal is on from now on, even if it was off, and nothing behind this place
 * is released until journal_end_hold, or until a rebase is done. Under the
 * raised gate, with a tap. */
void journal_hold(struct journal *journal, uint64_t position,
                  uint64_t sequence);

/* Moves the log to another place, because all data was replaced. The journal is
 * off; if it still closes its files, the rest is dropped. Closes an open group.
 * Under the raised gate, with a tap. */
void journal_move(struct journal *journal, uint64_t position,
                  uint64_t sequence);
