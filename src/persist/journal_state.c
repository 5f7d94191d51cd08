/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rules: what is released when, what a fault does, what a base ends.
 */
#include "persist/journal_internal.h"

#include "base/clock.h"
#include "base/metrics.h"

static const uint64_t SYNC_WAIT_MIN_NS = 100000000;
static const uint64_t SYNC_WAIT_MAX_NS = 900000000;

static uint64_t
max_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t
min_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

bool
journal_state_is_served(const struct journal *journal)
{
    return journal->threads && journal->file.fd >= 0;
}

bool
journal_state_owes(const struct journal *journal)
{
    return journal->on || (journal->closing && !journal->suspect);
}

/* Twice: what is written just after a sync began waits for that one, and for
 * its own. So with syncs below half a second all of them end within the bound,
 * also when the wait is over before the sync under way is. */
uint64_t
journal_state_sync_wait_ns(uint64_t took_ns)
{
    uint64_t most = JOURNAL_BOUND_NS - SYNC_WAIT_MIN_NS;
    uint64_t twice = took_ns < most / 2 ? 2 * took_ns : most;

    return min_of(JOURNAL_BOUND_NS - twice, SYNC_WAIT_MAX_NS);
}

/* ---- pieces -------------------------------------------------------------- */

uint64_t
journal_state_cost(const struct piece *piece)
{
    return piece_text(piece).len + sizeof(*piece);
}

void
journal_state_free_pieces(struct piece *head, const struct piece *end)
{
    while (head != end) {
        struct piece *next = head->next;

        piece_free(head);
        head = next;
    }
}

void
journal_state_join(struct journal_list *list, struct journal_list *more)
{
    if (more->head != NULL) {
        if (list->head == NULL) {
            list->head = more->head;
        } else {
            list->tail->next = more->head;
        }
        list->tail = more->tail;
        list->bytes += more->bytes;
    }
    *more = (struct journal_list){ 0 };
}

void
journal_state_count(struct journal *journal, int64_t cost)
{
    uint64_t before =
        atomic_load_explicit(&journal->queued, memory_order_relaxed);

    atomic_store_explicit(&journal->queued, before + (uint64_t)cost,
                          memory_order_relaxed);
    metric_add(METRIC_JOURNAL_QUEUED, cost);
}

static bool
is_rotating(const struct journal *journal)
{
    return journal->pending && journal->how == JOURNAL_ROTATE;
}

void
journal_state_push(struct journal *journal, struct piece *piece)
{
    struct journal_list *list = &journal->queue[is_rotating(journal)];
    uint64_t cost = journal_state_cost(piece);

    if (list->head == NULL) {
        list->head = piece;
    } else {
        list->tail->next = piece;
    }
    list->tail = piece;
    list->bytes += cost;
    journal_state_count(journal, (int64_t)cost);
}

void
journal_state_void(struct journal *journal, struct journal_list *list)
{
    if (list->head == NULL) {
        return;
    }
    list->tail->next = journal->void_pieces;
    journal->void_pieces = list->head;
    journal_state_count(journal, -(int64_t)list->bytes);
    journal->tell_moved = true; /* there is room */
    *list = (struct journal_list){ 0 };
}

void
journal_state_close_group(struct journal *journal)
{
    if (journal->group_bytes == 0) {
        return;
    }
    if (journal->on) {
        journal->queue[is_rotating(journal)].tail->last = true;
    }
    journal->group_bytes = 0;
    journal->sequence++;
    if (journal->tapped) {
        journal->tap.close(journal->tap.ctx, journal->sequence, NULL);
    }
    (void)journal_state_advance(journal, GROUP_SEAL_BYTES);
}

struct journal_list
journal_state_take(struct journal *journal)
{
    struct journal_list list = journal->queue[0];

    if (!is_rotating(journal)) {
        journal_state_close_group(journal);
    }
    journal->queue[0] = (struct journal_list){ 0 };
    return list;
}

/* ---- progress ------------------------------------------------------------ */

static void
make_durable(struct journal *journal, uint64_t position, uint64_t sequence)
{
    if (position > journal->durable) {
        journal->durable = position;
        journal->tell_moved = true; /* for who waits for synced */
    }
    journal->durable_sequence = max_of(journal->durable_sequence, sequence);
}

/* Where released may stand. */
static uint64_t
released_now(const struct journal *journal)
{
    uint64_t to = journal->durable;

    if (journal->building || !journal_state_owes(journal)) {
        return UINT64_MAX;
    }
    if (journal->faulted || journal->sync == JOURNAL_ALWAYS) {
        return to;
    }
    if (journal->sync == JOURNAL_EVERYSEC && journal->unsynced_ns > 0 &&
        clock_mono_ns() - journal->unsynced_ns > JOURNAL_BOUND_NS) {
        return to;
    }
    return max_of(to, journal->written);
}

void
journal_state_release(struct journal *journal)
{
    uint64_t before =
        atomic_load_explicit(&journal->released, memory_order_relaxed);
    uint64_t to = released_now(journal);
    bool tells = (journal->on || journal->closing) && !journal->building;

    atomic_store_explicit(&journal->synced, tells ? journal->durable : 0,
                          memory_order_release);
    if (before != UINT64_MAX) {
        to = max_of(to, before);
    }
    if (to != before) {
        /* Pairs with loops that look once more after they began to wait. */
        atomic_store(&journal->released, to);
        journal->tell_moved = journal->tell_moved || to > before;
    }
}

void
journal_state_begin(struct journal *journal, uint64_t position,
                    uint64_t sequence)
{
    journal->written = journal->file_synced = position;
    journal->written_sequence = journal->file_synced_sequence = sequence;
    journal->unsynced_ns = journal->later_ns = 0;
}

void
journal_state_written(struct journal *journal, uint64_t position,
                      uint64_t sequence)
{
    bool first = journal->unsynced_ns == 0;

    if (position == journal->written) {
        return;
    }
    journal->groups += sequence - journal->written_sequence;
    journal->written = position;
    journal->written_sequence = sequence;
    if (first || (journal->syncing && journal->later_ns == 0)) {
        *(first ? &journal->unsynced_ns : &journal->later_ns) = clock_mono_ns();
    }
    if (first || journal->sync == JOURNAL_ALWAYS) {
        pthread_cond_signal(&journal->sync_work);
    }
    journal_state_release(journal);
}

void
journal_state_synced(struct journal *journal, uint64_t position,
                     uint64_t sequence)
{
    journal->file_synced = position;
    journal->file_synced_sequence = sequence;
    journal->unsynced_ns = journal->later_ns;
    journal->later_ns = 0;
    if (!journal->faulted && !journal->building) {
        make_durable(journal, position, sequence);
    }
    journal_state_release(journal);
}

void
journal_state_based(struct journal *journal, uint64_t position,
                    uint64_t sequence)
{
    if (!journal->on && !journal->closing) {
        return;
    }
    make_durable(journal, position, sequence);
    if (position >= journal->need && (journal->faulted || journal->building)) {
        journal->faulted = journal->building = false;
        journal->fault_mono_ns = 0;
        make_durable(journal, journal->file_synced,
                     journal->file_synced_sequence);
    }
    journal_state_release(journal);
}

/* What a base has needs no sync. Under `always` nothing is released that does.
 * A suspect file had its last sync, or is not worth one. */
void
journal_state_leave(struct journal *journal)
{
    uint64_t to =
        atomic_load_explicit(&journal->released, memory_order_relaxed);

    if (!journal->suspect && to != UINT64_MAX &&
        min_of(to, journal->written) >
            max_of(journal->file_synced, journal->durable)) {
        journal->last_sync = true;
        pthread_cond_signal(&journal->sync_work);
    }
}

/* Effects before the mark of a pending rotation are in the base that is being
 * written there, so the journal can go on in the next file. */
void
journal_state_fault(struct journal *journal, int error)
{
    journal->epoch++;
    journal->suspect = true;
    journal->suspect_files++;
    journal->error = error;
    journal->need = UINT64_MAX;
    if (!journal->faulted) {
        journal->faulted = true;
        journal->fault_mono_ns = clock_mono_ns();
    }
    if (journal->closing) {
        journal_state_void(journal, &journal->queue[0]);
        journal_state_void(journal, &journal->queue[1]);
    } else if (is_rotating(journal)) {
        journal_state_void(journal, &journal->queue[0]);
        journal_state_join(&journal->queue[0], &journal->queue[1]);
        journal->how = JOURNAL_REBASE;
        journal->need = journal->mark;
        journal_state_begin(journal, journal->mark, journal->mark_sequence);
    }
    journal_state_release(journal);
    journal->tell_event = true;
    pthread_cond_signal(&journal->work);
    pthread_cond_broadcast(&journal->progress);
}

void
journal_state_drop(struct journal *journal)
{
    journal->epoch++;
    journal->suspect = true;
    journal_state_void(journal, &journal->queue[0]);
    journal_state_void(journal, &journal->queue[1]);
    if (journal->building) { /* there is no base before what was synced */
        journal->durable = journal->durable_sequence = 0;
    }
    journal->building = journal->faulted = false;
    journal->fault_mono_ns = 0;
}

bool
journal_state_takes(const struct journal *journal)
{
    return journal->on && !journal->spoiled &&
           (journal->pending || !journal->suspect);
}

/* The file of a pending rebase cannot be left before it is reached, for its
 * thread may be anywhere; so it is reached, and suspect from the first. */
void
journal_state_give_up(struct journal *journal, int error)
{
    if (journal->pending && !is_rotating(journal)) {
        journal->spoiled = true;
        journal->suspect_files++;
        journal->error = error;
        journal->need = UINT64_MAX;
        if (!journal->faulted) {
            journal->faulted = true;
            journal->fault_mono_ns = clock_mono_ns();
        }
        journal->tell_event = true;
        journal_state_release(journal);
    } else {
        journal_state_leave(journal);
        journal_state_fault(journal, error);
    }
    if (!journal_state_takes(journal)) {
        journal_state_void(journal, &journal->queue[0]);
    }
}

/* ---- hooks --------------------------------------------------------------- */

void
journal_state_unlock(struct journal *journal)
{
    const struct journal_hooks *hooks = &journal->hooks;
    bool moved = journal->tell_moved;
    bool event = journal->tell_event;

    journal->tell_moved = journal->tell_event = false;
    pthread_mutex_unlock(&journal->mutex);
    if (moved && hooks->moved != NULL) {
        hooks->moved(hooks->ctx);
    }
    if (event && hooks->event != NULL) {
        hooks->event(hooks->ctx);
    }
}
