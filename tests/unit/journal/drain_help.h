/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The queue of a journal without a file, as the writer would write it.
 */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "journal/journal.h"
#include "journal/journal_io.h"
#include "journal/journal_state.h"

/* Appends everything queued to ret_bytes, sealed with this key; it counts as
 * written and synced. Only without a file (no target but JOURNAL_RESUME with fd
 * -1), when the threads leave the queue alone. */
static inline void
journal_drain(struct journal *journal, uint64_t key, struct buf *ret_bytes)
{
    struct journal_sealer sealer = { .hash = journal->writer.hash, .key = key };
    struct journal_list list;
    char seal[GROUP_SEAL_BYTES];

    pthread_mutex_lock(&journal->mutex);
    CHECK(!journal_state_is_served(journal));
    list = journal_state_take(journal);
    sealer.seal.sequence = journal->written.sequence;
    sealer.seal.durable_sequence = journal->durable.sequence;
    sealer.seal.unix_ms = clock_wall_ms();
    for (const struct piece *piece = list.head; piece != NULL;
         piece = piece->next) {
        buf_append_slice(ret_bytes, piece_text(piece));
        if (journal_io_seal(&sealer, piece, seal)) {
            buf_append(ret_bytes, seal, sizeof(seal));
        }
    }
    journal_state_void(journal, &list);
    journal_state_free_pieces(journal->writer.void_pieces, NULL);
    journal->writer.void_pieces = NULL;
    journal_state_written(journal, journal_state_place(journal));
    journal_state_synced(journal, journal_state_place(journal));
    journal_state_unlock(journal);
}
