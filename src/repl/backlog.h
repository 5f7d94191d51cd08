/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The last part of the log in memory, for replicas to read: the bytes of the
 * stream, seals included. All loops append under the journal's mutex
 * (backlog_tap is the journal's tap). Loop 0 does everything else: it writes
 * the seals of closed groups, reads up to the last seal, and frees what no
 * replica needs. Neither side waits for the other.
 */
#pragma once

#include "journal/journal_hooks.h"

struct backlog;

/* Makes an empty backlog at position 0. */
struct backlog *backlog_new(void);
void backlog_free(struct backlog *backlog);
struct journal_tap backlog_tap(struct backlog *backlog);

/* Empties the backlog and frees its memory; it is no longer broken. The log
 * continues from `position`, the end of a group. Only loop 0 calls this, under
 * the raised gate, while no group is open (after journal_close_group,
 * journal_set_tap or journal_move). */
void backlog_begin(struct backlog *backlog, uint64_t position);

/* ---- loop 0 -------------------------------------------------------------- */

/* Writes the seals of all closed groups, with this key and time. Returns the
 * end of the last one. */
uint64_t backlog_seal(struct backlog *backlog, uint64_t key, uint64_t unix_ms);

/* Bytes [first, sealed) can be read. The backlog is broken if there was no
 * memory for more bytes. Then call backlog_begin, and drop all replicas that
 * read from it. */
uint64_t backlog_first(const struct backlog *backlog);
uint64_t backlog_sealed(const struct backlog *backlog);
bool backlog_is_broken(const struct backlog *backlog);

/* Returns contiguous bytes from `position` on, at most up to `end`; no bytes if
 * both are equal. first <= position <= end <= sealed. Valid until the next
 * trim. */
struct slice backlog_read(const struct backlog *backlog, uint64_t position,
                          uint64_t end);

/* Lends the bytes [position, end) to another thread, as slices that follow each
 * other; ret_slices has room for `max` of them. Until backlog_return nothing of
 * the backlog is freed, not even by backlog_begin. Returns how many slices
 * there are; 0 if there are none or more than `max`: then nothing is lent. */
size_t backlog_lend(struct backlog *backlog, uint64_t position, uint64_t end,
                    struct slice *ret_slices, size_t max);
void backlog_return(struct backlog *backlog);

/* Returns the most slices that so many bytes take. */
size_t backlog_slices(uint64_t bytes);

/* Frees whole blocks that end before `needed` (UINT64_MAX: no reader needs any)
 * and before the last `size` bytes. Frees nothing while bytes are lent. */
void backlog_trim(struct backlog *backlog, uint64_t needed, uint64_t size);

/* Returns the memory in use, overhead included. Any thread. */
uint64_t backlog_bytes(const struct backlog *backlog);
