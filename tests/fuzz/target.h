/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the fuzz targets share: their two entry points, the random numbers of
 * their generators, seals that hold, and texts whose lines are commands.
 */
#pragma once

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

/* Each target defines it; libFuzzer or replay.c calls it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes an input made from SEED, of at most MAX bytes, and returns its length.
 * A target need not have it. */
size_t fuzz_generate(uint64_t seed, uint8_t *to, size_t max);

/* Returns the next number of splitmix64 (Steele et al. 2014). */
uint64_t fuzz_next(uint64_t *random);

/* What the hashes of a seal cover: FUZZ_SEAL_HASHED bytes of its own, then,
 * from the beginning of the group up to there, the tag. */
enum { FUZZ_SEAL_HASHED = 70, FUZZ_SEAL_TAG_END = 86 };

#define FUZZ_KEY UINT64_C(0x1122334455667788)

/* Gives the seal at AT the length back to BEGIN, and hashes that hold. A seal
 * whose time ends in 7 keeps its own length. */
void fuzz_seal(char *data, size_t begin, size_t at);

/* A text as the commands of a log: a line is a command, its words as those of
 * an inline command, and a line "-" ends a group. Appends the next group to
 * `commands`, without the commands that leave_out, unless it is NULL, returns
 * true for. False: the text has ended, and nothing was appended. */
typedef bool fuzz_leave_out_fn(const struct slice *words, size_t count);
bool fuzz_next_group(struct slice *text, fuzz_leave_out_fn *leave_out,
                     struct buf *commands);
