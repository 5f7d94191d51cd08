/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The journal's two threads, and the seals that the writer adds to groups.
 */
#pragma once

#include "journal/journal_state.h"

/* Seals pieces into groups, in order. */
struct journal_sealer {
    struct group_hash *hash;
    uint64_t key;
    struct group_seal seal; /* seal.sequence is that of the last sealed group */
    bool open;              /* within a group */
};

/* Adds the next piece. Returns true if it is the last one of its group: then
 * ret_seal, of GROUP_SEAL_BYTES, is the group's seal. */
bool journal_io_seal(struct journal_sealer *sealer, const struct piece *piece,
                     char *ret_seal);

/* Starts the threads, once; they sleep until there is a file. */
void journal_io_start(struct journal *journal);

/* Stops the threads; does nothing if they were stopped before. */
void journal_io_stop(struct journal *journal);

/* Frees pieces that are void and closes files that were never used. */
void journal_io_free_void(struct piece *pieces, struct journal_unused *unused);
