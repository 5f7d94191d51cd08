/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The last part of the log in memory, for replicas to read: the bytes of the
 * stream, seals included. Loops add to it under the journal's mutex
 * (backlog_tap is the journal's tap); everything else is loop 0's, which makes
 * the seals of groups that were closed since, lets replicas read up to there,
 * and frees what nobody needs. Neither side waits for the other.
 */
#pragma once

#include "persist/journal_hooks.h"

struct backlog;

/* Empty, at position 0. */
struct backlog *backlog_new(void);
void backlog_free(struct backlog *backlog);
struct journal_tap backlog_tap(struct backlog *backlog);

/* Empties it: the log goes on from here, the end of a group. Not broken any
 * more, and all memory is given back. Loop 0 under the raised gate, while no
 * group is open (journal_close_group, journal_set_tap or journal_move was
 * called there before). */
void backlog_begin(struct backlog *backlog, uint64_t position);

/* ---- loop 0 -------------------------------------------------------------- */

/* Seals, with this key and time, what was closed so far; returns where that
 * ends. */
uint64_t backlog_seal(struct backlog *backlog, uint64_t key, uint64_t unix_ms);

/* Bytes [first, sealed) can be read. There was no memory for what followed if
 * it is broken: then it has to begin anew, and all who read it too. */
uint64_t backlog_first(const struct backlog *backlog);
uint64_t backlog_sealed(const struct backlog *backlog);
bool backlog_is_broken(const struct backlog *backlog);

/* Some bytes from position on, contiguous, up to `end` at most; empty if there
 * are none. first <= position <= end <= sealed. Valid until the next trim. */
struct slice backlog_read(const struct backlog *backlog, uint64_t position,
                          uint64_t end);

/* Frees, a block at a time, what lies before both needed (UINT64_MAX: nobody
 * needs any) and the last `size` bytes. */
void backlog_trim(struct backlog *backlog, uint64_t needed, uint64_t size);

/* Memory, with what it costs to hold it. Any thread. */
uint64_t backlog_bytes(const struct backlog *backlog);
