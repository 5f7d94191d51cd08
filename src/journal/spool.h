/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keeps the log from the beginning of a walk to its end: a tap of the journal
 * that keeps whole groups, which follow the records in a full state.
 *
 * Loops append under the journal's mutex, so appending only copies into memory.
 * A thread of the spool moves all but the latest part into a file without a
 * name, which disappears with the process. If the loops produce more than the
 * file takes, the spool is crowded: the loops should wait. At its limit the
 * spool fails, and with it the walk.
 */
#pragma once

#include "journal/journal_hooks.h"

#include <stdbool.h>

struct spool;

/* Starts the thread (CHECKed), which sleeps until there is work. poke: called
 * on any thread when spool_is_crowded has changed, under the spool's mutex and
 * perhaps the journal's: it must not call the spool or the journal. */
struct spool *spool_new(void (*poke)(void *ctx), void *ctx);
void spool_free(struct spool *spool); /* NULL is fine */

/* Empties the spool and opens it; its file, if it needs one, is in this
 * directory. Call it while no tap is set; the tap may be set afterwards. */
void spool_open(struct spool *spool, int dir_fd, uint64_t limit_bytes);
struct journal_tap spool_tap(struct spool *spool);

/* Returns the first error: of the file, ENOMEM, ENOBUFS (more than the limit in
 * memory), or ESTALE (the log was moved). Any thread. */
int spool_error(struct spool *spool);

/* Returns whether much is in memory that the file has not taken yet. Any
 * thread. */
bool spool_is_crowded(struct spool *spool);

/* Calls fn with each group, in order, until it returns an error. Call it after
 * the tap was removed; it waits for the spool's thread. Returns 0, fn's error,
 * or an error of spool_error. */
typedef int (*spool_group_fn)(void *ctx, uint64_t position, uint64_t sequence,
                              struct slice commands);
int spool_read(struct spool *spool, spool_group_fn fn, void *ctx);

/* Empties the spool: frees all memory and the file. Call it after the tap was
 * removed. */
void spool_close(struct spool *spool);

/* Returns how many bytes the spool has, in memory and in the file. Any thread.
 */
uint64_t spool_bytes(struct spool *spool);
