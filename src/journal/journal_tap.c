/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The log beyond its files: taps, groups of a primary, and new places.
 */
#include "journal/journal_tap.h"

#include "base/mem.h"
#include "journal/journal.h"
#include "journal/journal_state.h"

#include <errno.h>

void
journal_set_tap(struct journal *journal, enum journal_tap_use use,
                const struct journal_tap *tap, uint64_t *position,
                uint64_t *sequence)
{
    pthread_mutex_lock(&journal->mutex);
    if (journal_state_has_log(journal)) {
        journal_state_close_group(journal);
        *position = journal_state_place(journal).position;
        *sequence = journal->sequence;
    } else if (tap != NULL) {
        journal_state_move(journal,
                           (struct journal_place){ *position, *sequence });
    }
    journal->taps[use] = tap != NULL ? *tap : (struct journal_tap){ 0 };
    journal->tapped = false;
    for (unsigned i = 0; i < JOURNAL_TAPS; i++) {
        journal->tapped |= journal->taps[i].text != NULL;
    }
    journal->tap_kicked = false;
    if (tap != NULL) {
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
    journal->tap_kicked = false;
    position = journal_state_place(journal).position;
    pthread_mutex_unlock(&journal->mutex);
    return position;
}

/* Copies the group if the journal is on; NULL also without memory. Only loop 0
 * switches the journal on and off, so the copying needs no mutex. */
static struct piece *
copy_for_file(struct journal *journal, struct slice group)
{
    bool on;

    pthread_mutex_lock(&journal->mutex);
    on = journal_state_is_on(journal);
    pthread_mutex_unlock(&journal->mutex);
    return on ? piece_try_copy(group) : NULL;
}

/* Returns whether the file gets this group (NULL: there was no memory for it).
 * Without memory, or if the queue is full, the journal gives up the file, since
 * a primary cannot be made to wait. */
static bool
queue_accepts(struct journal *journal, const struct piece *piece)
{
    while (journal_state_accepts(journal) &&
           (piece == NULL || !journal_has_room(journal))) {
        journal_state_give_up(journal, piece == NULL ? ENOMEM : ENOBUFS);
    }
    return journal_state_accepts(journal);
}

uint64_t
journal_relay(struct journal *journal, struct slice commands, uint64_t sequence,
              const char *seal)
{
    struct piece *piece = copy_for_file(journal, commands);
    struct piece *freed;
    uint64_t position;

    pthread_mutex_lock(&journal->mutex);
    CHECK(journal_state_is_tapped(journal) && journal->group_bytes == 0);
    CHECK(sequence == journal->sequence + 1 && commands.len > 0);
    if (queue_accepts(journal, piece)) {
        journal_state_push(journal, piece);
        piece = NULL;
        if (journal->writer.sleeps) {
            pthread_cond_signal(&journal->writer.work);
        }
    }
    journal_state_tap_text(journal, commands);
    journal->sequence = sequence;
    position = journal_state_advance(journal, commands.len + GROUP_SEAL_BYTES);
    journal_state_tap_close(journal, seal);
    freed = journal->writer.void_pieces;
    journal->writer.void_pieces = NULL;
    journal_state_unlock(journal);
    if (piece != NULL) {
        piece_free(piece);
    }
    journal_state_free_pieces(freed, NULL);
    return position;
}

/* Replies that wait for positions of the old log are released, since these
 * positions mean nothing any more. */
void
journal_hold(struct journal *journal, uint64_t position, uint64_t sequence)
{
    struct journal_place place = { position, sequence };
    struct journal_unused *unused = mem_alloc(sizeof(*unused));

    pthread_mutex_lock(&journal->mutex);
    CHECK(journal_state_is_tapped(journal));
    journal_state_close_group(journal);
    *unused = (struct journal_unused){ journal->writer.unused,
                                       journal->next_file.fd };
    journal->writer.unused = unused;
    journal->next_file.fd = -1;
    journal_state_move(journal, place);
    journal->durable = place;
    journal->error = 0;
    journal->fault_mono_ns = 0;
    journal->file_bytes = 0;
    journal->syncer.wanted = 0;
    atomic_store(&journal->released, UINT64_MAX);
    journal->due |= DUE_MOVED;
    journal_state_hold(journal, place);
    journal_state_tap_begin(journal);
    journal_state_unlock(journal);
}

/* A file that is still being closed belongs to the old log. Its progress means
 * nothing for the new log, so what is queued for it is dropped. */
void
journal_move(struct journal *journal, uint64_t position, uint64_t sequence)
{
    pthread_mutex_lock(&journal->mutex);
    CHECK(journal_state_is_tapped(journal) && !journal_state_is_on(journal));
    journal_state_close_group(journal);
    if (journal_state_is_closing(journal)) {
        journal_state_drop(journal);
        pthread_cond_signal(&journal->writer.work);
    }
    journal_state_move(journal, (struct journal_place){ position, sequence });
    journal->durable = (struct journal_place){ 0 };
    journal_state_begin(journal, journal->durable);
    journal_state_release(journal);
    journal_state_tap_begin(journal);
    journal_state_unlock(journal);
}
