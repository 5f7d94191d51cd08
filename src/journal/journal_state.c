/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes the transitions of the tables in the header.
 */
#include "journal/journal_state.h"

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

static struct journal_place
later_of(struct journal_place a, struct journal_place b)
{
    return (struct journal_place){ max_of(a.position, b.position),
                                   max_of(a.sequence, b.sequence) };
}

/* took_ns counts twice, because bytes that were written just after a sync began
 * wait for that sync and for their own. So if syncs take less than half a
 * second, all of them end within the bound, even if the wait ends before the
 * present sync does. */
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
    return piece_text(piece).len + sizeof(*piece) + piece->spare;
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

static void
append_piece(struct journal_list *list, struct piece *piece)
{
    if (list->head == NULL) {
        list->head = piece;
    } else {
        list->tail->next = piece;
    }
}

void
journal_state_join(struct journal_list *list, struct journal_list *more)
{
    if (more->head != NULL) {
        append_piece(list, more->head);
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

    CHECK(cost >= 0 || before >= (uint64_t)-cost);
    atomic_store_explicit(&journal->queued, before + (uint64_t)cost,
                          memory_order_relaxed);
    metric_add(METRIC_JOURNAL_QUEUED, cost);
}

void
journal_state_tap_text(struct journal *journal, struct slice bytes)
{
    for (unsigned i = 0; i < JOURNAL_TAPS; i++) {
        if (journal->taps[i].text != NULL) {
            journal->taps[i].text(journal->taps[i].ctx, bytes);
        }
    }
}

void
journal_state_tap_close(struct journal *journal, const char *seal)
{
    for (unsigned i = 0; i < JOURNAL_TAPS; i++) {
        if (journal->taps[i].text != NULL) {
            journal->taps[i].close(journal->taps[i].ctx, journal->sequence,
                                   seal);
        }
    }
}

void
journal_state_tap_begin(struct journal *journal)
{
    struct journal_place place = journal_state_place(journal);

    for (unsigned i = 0; i < JOURNAL_TAPS; i++) {
        if (journal->taps[i].text != NULL) {
            journal->taps[i].begin(journal->taps[i].ctx, place.position,
                                   place.sequence);
        }
    }
}

static struct journal_list *
open_queue(struct journal *journal)
{
    return &journal->queue[journal->next == NEXT_ROTATES];
}

void
journal_state_push(struct journal *journal, struct piece *piece)
{
    struct journal_list *list = open_queue(journal);
    uint64_t cost = journal_state_cost(piece);

    append_piece(list, piece);
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
    list->tail->next = journal->writer.void_pieces;
    journal->writer.void_pieces = list->head;
    journal_state_count(journal, -(int64_t)list->bytes);
    journal->due |= DUE_MOVED; /* the queue has room again */
    *list = (struct journal_list){ 0 };
}

void
journal_state_close_group(struct journal *journal)
{
    if (journal->group_bytes == 0) {
        return;
    }
    if (journal_state_is_on(journal)) {
        open_queue(journal)->tail->last = true;
    }
    journal->group_bytes = 0;
    journal->sequence++;
    journal_state_tap_close(journal, NULL);
    (void)journal_state_advance(journal, GROUP_SEAL_BYTES);
}

struct journal_list
journal_state_take(struct journal *journal)
{
    struct journal_list list = journal->queue[0];

    if (journal->next != NEXT_ROTATES) {
        journal_state_close_group(journal);
    }
    journal->queue[0] = (struct journal_list){ 0 };
    return list;
}

/* ---- progress ------------------------------------------------------------ */

static void
make_durable(struct journal *journal, struct journal_place place)
{
    if (place.position > journal->durable.position) {
        journal->due |= DUE_MOVED; /* for WAITAOF, which waits for synced */
    }
    journal->durable = later_of(journal->durable, place);
}

/* Returns how far the files let `released` go. */
static uint64_t
stored_now(const struct journal *journal)
{
    const struct journal_syncer *syncer = &journal->syncer;
    uint64_t durable = journal->durable.position;

    if (journal->mode != JOURNAL_ON && journal->mode != JOURNAL_HOLDING &&
        journal->mode != JOURNAL_CLOSING) {
        return UINT64_MAX;
    }
    if (journal_state_is_faulted(journal) || syncer->policy == JOURNAL_ALWAYS) {
        return durable;
    }
    if (syncer->policy == JOURNAL_EVERYSEC && syncer->unsynced_ns > 0 &&
        clock_mono_ns() - syncer->unsynced_ns > JOURNAL_BOUND_NS) {
        return durable;
    }
    return max_of(durable, journal->written.position);
}

static uint64_t
released_now(const struct journal *journal)
{
    uint64_t stored = stored_now(journal);

    return stored == UINT64_MAX || journal->barred_mono_ns == 0
               ? stored
               : min_of(stored, journal->bar);
}

void
journal_state_release(struct journal *journal)
{
    uint64_t before =
        atomic_load_explicit(&journal->released, memory_order_relaxed);
    uint64_t to = released_now(journal);
    bool has_base = journal_state_has_base(journal);

    CHECK(to == UINT64_MAX || to <= journal_state_place(journal).position);
    atomic_store_explicit(&journal->synced,
                          has_base ? journal->durable.position : 0,
                          memory_order_release);
    if (before != UINT64_MAX) {
        to = max_of(to, before);
    }
    if (to != before) {
        /* Sequentially consistent: a loop that begins to wait reads it once
         * more. */
        atomic_store(&journal->released, to);
        journal->due |= to > before ? DUE_MOVED : 0;
    }
}

void
journal_state_begin(struct journal *journal, struct journal_place place)
{
    journal->written = journal->file_synced = place;
    journal->syncer.unsynced_ns = journal->syncer.later_ns = 0;
}

void
journal_state_written(struct journal *journal, struct journal_place place)
{
    struct journal_syncer *syncer = &journal->syncer;
    bool first = syncer->unsynced_ns == 0;

    CHECK(place.position >= journal->written.position &&
          place.position <= journal_state_place(journal).position);
    if (place.position == journal->written.position) {
        return;
    }
    journal->writer.groups += place.sequence - journal->written.sequence;
    journal->written = place;
    if (first || (syncer->syncing && syncer->later_ns == 0)) {
        *(first ? &syncer->unsynced_ns : &syncer->later_ns) = clock_mono_ns();
    }
    if (first || syncer->policy == JOURNAL_ALWAYS) {
        pthread_cond_signal(&syncer->work);
    }
    journal_state_release(journal);
}

void
journal_state_synced(struct journal *journal, struct journal_place place)
{
    CHECK(place.position >= journal->file_synced.position &&
          place.position <= journal->written.position);
    journal->file_synced = place;
    journal->syncer.unsynced_ns = journal->syncer.later_ns;
    journal->syncer.later_ns = 0;
    if (!journal_state_is_faulted(journal) && journal_state_has_base(journal)) {
        make_durable(journal, place);
    }
    journal_state_release(journal);
}

void
journal_state_based(struct journal *journal, struct journal_place place)
{
    bool builds =
        journal->mode == JOURNAL_BUILDING || journal->mode == JOURNAL_HOLDING;

    if (journal->mode == JOURNAL_OFF) {
        return;
    }
    CHECK(place.position <= journal_state_place(journal).position);
    make_durable(journal, place);
    if (place.position >= journal->need &&
        (builds || journal_state_is_faulted(journal))) {
        journal->mode = builds ? JOURNAL_ON : journal->mode;
        journal->fault_mono_ns = 0;
        make_durable(journal, journal->file_synced);
    }
    journal_state_release(journal);
}

/* ---- the end of a file --------------------------------------------------- */

/* Bytes that a base has need no sync. Under `always` nothing unsynced is
 * released. A suspect file had its last sync, or is not worth one. */
void
journal_state_leave(struct journal *journal)
{
    uint64_t released =
        atomic_load_explicit(&journal->released, memory_order_relaxed);

    if (!journal->suspect && released != UINT64_MAX &&
        min_of(released, journal->written.position) >
            max_of(journal->file_synced.position, journal->durable.position)) {
        journal->syncer.last_sync = true;
        pthread_cond_signal(&journal->syncer.work);
    }
}

void
journal_state_begin_fault(struct journal *journal)
{
    if (!journal_state_is_faulted(journal)) {
        journal->fault_mono_ns = clock_mono_ns();
    }
}

static void
note_fault(struct journal *journal, int error)
{
    journal->suspect_files++;
    journal->error = error;
    journal->need = UINT64_MAX;
    journal_state_begin_fault(journal);
    journal->due |= DUE_EVENT;
}

/* Effects before the mark of a pending rotation are in the base that is being
 * written there, so the journal can go on in the next file. */
void
journal_state_fault(struct journal *journal, int error)
{
    journal->epoch++;
    journal->suspect = true;
    note_fault(journal, error);
    if (journal_state_is_closing(journal)) {
        journal->mode = JOURNAL_DROPPING;
        journal_state_void(journal, &journal->queue[0]);
        journal_state_void(journal, &journal->queue[1]);
    } else if (journal->next == NEXT_ROTATES) {
        journal_state_void(journal, &journal->queue[0]);
        journal_state_join(&journal->queue[0], &journal->queue[1]);
        journal->next = NEXT_REBASES;
        journal->need = journal->mark.position;
        journal_state_begin(journal, journal->mark);
    }
    journal_state_release(journal);
    pthread_cond_signal(&journal->writer.work);
}

void
journal_state_drop(struct journal *journal)
{
    CHECK(journal->mode != JOURNAL_OFF);
    journal->epoch++;
    journal->suspect = true;
    journal_state_void(journal, &journal->queue[0]);
    journal_state_void(journal, &journal->queue[1]);
    /* Without a base, the synced part counts for nothing. */
    if (!journal_state_has_base(journal)) {
        journal->durable = (struct journal_place){ 0 };
    }
    journal->mode = journal_state_is_served(journal) ||
                            (!journal->stop && journal->next_file.fd >= 0)
                        ? JOURNAL_DROPPING
                        : JOURNAL_OFF;
    journal->fault_mono_ns = 0;
}

/* There is no next file yet. journal_end_hold will set it. */
void
journal_state_hold(struct journal *journal, struct journal_place place)
{
    journal->epoch++;
    journal_state_void(journal, &journal->queue[0]);
    journal_state_void(journal, &journal->queue[1]);
    journal->mode = JOURNAL_HOLDING;
    if (journal->file.fd >= 0) {
        journal->next = NEXT_REBASES;
    } else {
        journal->next = NEXT_NONE;
        journal->suspect = false;
    }
    journal->mark = place;
    journal->need = place.position;
    journal_state_begin(journal, place);
    journal_state_begin_fault(journal);
    journal_state_release(journal);
    pthread_cond_signal(&journal->writer.work);
}

void
journal_state_give_up(struct journal *journal, int error)
{
    CHECK(journal_state_accepts(journal));
    if (journal->next == NEXT_REBASES) {
        journal->next = NEXT_SPOILED;
        note_fault(journal, error);
        journal_state_release(journal);
    } else {
        journal_state_leave(journal);
        journal_state_fault(journal, error);
    }
    if (!journal_state_accepts(journal)) {
        journal_state_void(journal, &journal->queue[0]);
    }
}

/* ---- hooks --------------------------------------------------------------- */

void
journal_state_unlock(struct journal *journal)
{
    const struct journal_hooks *hooks = &journal->hooks;
    unsigned due = journal->due;

    journal->due = 0;
    pthread_mutex_unlock(&journal->mutex);
    if ((due & DUE_MOVED) != 0 && hooks->moved != NULL) {
        hooks->moved(hooks->ctx);
    }
    if ((due & DUE_EVENT) != 0 && hooks->event != NULL) {
        hooks->event(hooks->ctx);
    }
}
