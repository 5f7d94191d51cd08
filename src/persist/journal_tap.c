/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The log beyond the files: who follows it, and groups that come from another
 * server's. What a loop appends is in journal.c.
 */
#include "persist/journal_internal.h"

#include <errno.h>

void
journal_set_tap(struct journal *journal, const struct journal_tap *tap,
                uint64_t *position, uint64_t *sequence)
{
    pthread_mutex_lock(&journal->mutex);
    if (journal_state_has_log(journal)) {
        journal_state_close_group(journal);
        journal_state_tell(journal, position, sequence);
    } else if (tap != NULL) {
        journal_state_move(journal, *position, *sequence);
    }
    journal->tapped = tap != NULL;
    journal->told = false;
    if (tap != NULL) {
        journal->tap = *tap;
        tap->begin(tap->ctx, *position, *sequence);
    }
    journal_state_unlock(journal);
}

uint64_t
journal_close_group(struct journal *journal)
{
    uint64_t position;

    pthread_mutex_lock(&journal->mutex);
    journal_state_close_group(journal);
    journal->told = false;
    position = atomic_load_explicit(&journal->position, memory_order_relaxed);
    pthread_mutex_unlock(&journal->mutex);
    return position;
}

/* Whether the file gets this group. The queue is bounded here, since nobody
 * else waits for room. */
static bool
take_relayed(struct journal *journal, const struct piece *piece)
{
    while (journal_state_takes(journal) &&
           (piece == NULL || !journal_has_room(journal))) {
        journal_state_give_up(journal, piece == NULL ? ENOMEM : ENOBUFS);
    }
    return journal_state_takes(journal);
}

uint64_t
journal_relay(struct journal *journal, struct slice commands, uint64_t sequence,
              const char *seal)
{
    const struct journal_tap *tap = &journal->tap;
    /* It is switched on and off by this thread alone. */
    struct piece *piece = journal->on ? piece_try_copy(commands) : NULL;
    struct piece *freed;
    uint64_t position;

    pthread_mutex_lock(&journal->mutex);
    CHECK(journal->tapped && journal->group_bytes == 0);
    CHECK(sequence == journal->sequence + 1 && commands.len > 0);
    if (take_relayed(journal, piece)) {
        journal_state_push(journal, piece);
        piece = NULL;
        if (journal->idle) {
            pthread_cond_signal(&journal->work);
        }
    }
    tap->text(tap->ctx, commands);
    journal->sequence = sequence;
    position = journal_state_advance(journal, commands.len + GROUP_SEAL_BYTES);
    tap->close(tap->ctx, sequence, seal);
    freed = journal->void_pieces;
    journal->void_pieces = NULL;
    journal_state_unlock(journal);
    if (piece != NULL) {
        piece_free(piece);
    }
    journal_state_free_pieces(freed, NULL);
    return position;
}

/* A file that is still being closed is one of the old log: how far that got
 * says nothing here. */
void
journal_move(struct journal *journal, uint64_t position, uint64_t sequence)
{
    const struct journal_tap *tap = &journal->tap;

    pthread_mutex_lock(&journal->mutex);
    CHECK(journal->tapped && !journal->on);
    journal_state_close_group(journal);
    if (journal->closing) {
        journal_state_drop(journal);
        pthread_cond_signal(&journal->work);
        pthread_cond_broadcast(&journal->progress);
    }
    journal_state_move(journal, position, sequence);
    journal->durable = journal->durable_sequence = 0;
    journal_state_begin(journal, 0, 0);
    journal_state_release(journal);
    tap->begin(tap->ctx, position, sequence);
    journal_state_unlock(journal);
}
