/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Times to live in an AOF or a replication stream. Who executes their commands
 * must expire nothing by a clock: the source deletes a key when its time is
 * over, and the commands have that deletion. But the server has a clock. A
 * command that gives a filter more time may come later than the end of the
 * former time, and the filter with its items would be gone by then.
 *
 * So load_target_put_off() puts off the times that end soon, by so much that
 * they end never, and the right ones are set at the end. A time that is put off
 * is larger by LOAD_LATER_MS: so the server itself takes it along when a filter
 * is renamed, copied or moved.
 */
#pragma once

#include "base/num.h"
#include "load/load_target.h"

enum { LOAD_TTL_WORDS_MAX = 12 };

/* A command with a time that was put off. */
struct load_ttl {
    struct slice words[LOAD_TTL_WORDS_MAX + 1];
    char digits[NUM_U64_MAX];
};

/* Returns the words of EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT or RESTORE with the
 * time put off, and their number; they are in *ret_ttl. Returns the words
 * themselves if nothing is to be put off. */
const struct slice *load_ttl_words(struct load_target *target,
                                   const struct slice *words, size_t *count,
                                   struct load_ttl *ret_ttl);

/* Sets the times that were put off, at the end; those that are over delete
 * their filters. False: the reason was printed. */
bool load_ttl_release(struct load_target *target);
