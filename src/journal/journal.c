/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The loops' side. A group is closed when the writer takes the queue, when the
 * next piece would make it too large, and where loop 0 needs a position. Its
 * seal has a fixed size, so positions are known long before the seal is made.
 *
 * Without files nothing is queued: the tap copies a piece before the mutex is
 * given back, and then the piece is freed.
 *
 * journal_append returns the position right behind the piece. Its group ends
 * later, and `released` only moves to ends of groups. So `released` reaches the
 * returned position exactly when the group is released.
 */
#include "journal/journal.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "journal/journal_io.h"
#include "journal/journal_state.h"

/* ---- life ---------------------------------------------------------------- */

static void
init_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attr;

    /* The mutex is held for some tens of nanoseconds, so a thread spins a
     * little before it sleeps. */
    CHECK(pthread_mutexattr_init(&attr) == 0);
    CHECK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP) == 0);
    CHECK(pthread_mutex_init(mutex, &attr) == 0);
    (void)pthread_mutexattr_destroy(&attr);
}

static void
init_cond(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    CHECK(pthread_condattr_init(&attr) == 0);
    CHECK(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(cond, &attr) == 0);
    (void)pthread_condattr_destroy(&attr);
}

struct journal *
journal_new(const struct journal_hooks *hooks)
{
    struct journal *journal = mem_lines(sizeof(*journal));

    init_mutex(&journal->mutex);
    init_cond(&journal->writer.work);
    init_cond(&journal->syncer.work);
    journal->hooks = *hooks;
    journal->writer.hash = group_hash_new();
    journal->file.fd = journal->next_file.fd = -1;
    journal->released = UINT64_MAX;
    journal->limit = UINT64_MAX;
    journal->syncer.policy = JOURNAL_EVERYSEC;
    journal_io_start(journal);
    return journal;
}

void
journal_halt(struct journal *journal)
{
    journal_io_stop(journal);
}

void
journal_free(struct journal *journal)
{
    if (journal == NULL) {
        return;
    }
    journal_io_stop(journal);
    journal_state_count(journal, -(int64_t)atomic_load(&journal->queued));
    journal_state_free_pieces(journal->queue[0].head, NULL);
    journal_state_free_pieces(journal->queue[1].head, NULL);
    journal_io_free_void(journal->writer.void_pieces, journal->writer.unused);
    file_close(journal->file.fd);
    file_close(journal->next_file.fd);
    group_hash_free(journal->writer.hash);
    (void)pthread_cond_destroy(&journal->writer.work);
    (void)pthread_cond_destroy(&journal->syncer.work);
    (void)pthread_mutex_destroy(&journal->mutex);
    mem_free_lines(journal, sizeof(*journal));
}

void
journal_set_sync(struct journal *journal, enum journal_sync sync)
{
    pthread_mutex_lock(&journal->mutex);
    journal->syncer.policy = sync;
    journal_state_release(journal);
    pthread_cond_signal(&journal->syncer.work);
    journal_state_unlock(journal);
}

void
journal_set_limit(struct journal *journal, size_t queue_bytes)
{
    bool had_room;

    pthread_mutex_lock(&journal->mutex);
    had_room = journal_has_room(journal);
    atomic_store_explicit(&journal->limit, queue_bytes, memory_order_relaxed);
    if (!had_room && journal_has_room(journal)) {
        journal->due |= DUE_MOVED;
    }
    journal_state_unlock(journal);
}

/* ---- any loop ------------------------------------------------------------ */

bool
journal_has_room(const struct journal *journal)
{
    return atomic_load_explicit(&journal->queued, memory_order_relaxed) <
           atomic_load_explicit(&journal->limit, memory_order_relaxed);
}

/* Sets bits, under the mutex. journal_kick clears bits without the mutex before
 * it acts on them. So it still acts on a bit that is set here already. */
static void
want_kick(struct journal *journal, unsigned bits)
{
    if ((atomic_load_explicit(&journal->kick, memory_order_relaxed) & bits) !=
        bits) {
        atomic_fetch_or_explicit(&journal->kick, bits, memory_order_release);
    }
}

uint64_t
journal_append(struct journal *journal, struct piece *piece)
{
    uint64_t position;
    uint64_t bytes = piece_text(piece).len;
    bool on;

    pthread_mutex_lock(&journal->mutex);
    on = journal_state_is_on(journal);
    CHECK(on || journal_state_is_tapped(journal));
    if (journal->group_bytes + bytes > GROUP_BYTES_MAX) {
        journal_state_close_group(journal);
    }
    if (journal->group_bytes > 0 && journal->group_db == piece->db_first) {
        bytes -= piece->select.len;
        piece->select = (struct slice){ piece->body.data, 0 };
    }
    journal->group_db = piece->db_last;
    journal->group_bytes += bytes;
    if (journal_state_is_tapped(journal)) {
        journal_state_tap_text(journal, piece_text(piece));
        if (!journal->tap_kicked) {
            journal->tap_kicked = true;
            want_kick(journal, KICK_TAP);
        }
    }
    if (on) {
        journal_state_push(journal, piece);
        if (journal->writer.sleeps) {
            want_kick(journal, KICK_WRITER);
        }
    }
    position = journal_state_advance(journal, bytes);
    pthread_mutex_unlock(&journal->mutex);
    if (!on) {
        piece_free(piece);
    }
    return position;
}

uint64_t
journal_position(const struct journal *journal)
{
    return atomic_load_explicit(&journal->position, memory_order_acquire);
}

/* journal_append sets the bits under the mutex: the writer's only while the
 * writer sleeps, the tap's only once since journal_close_group. So no signal is
 * lost, and one kick is enough. The loop that takes a bit acts for all loops.
 */
void
journal_kick(struct journal *journal)
{
    const struct journal_hooks *hooks = &journal->hooks;
    unsigned bits;

    if (atomic_load_explicit(&journal->kick, memory_order_relaxed) == 0) {
        return;
    }
    bits = atomic_exchange_explicit(&journal->kick, 0, memory_order_acq_rel);
    if ((bits & KICK_WRITER) != 0) {
        pthread_cond_signal(&journal->writer.work);
    }
    if ((bits & KICK_TAP) != 0 && hooks->tapped != NULL) {
        hooks->tapped(hooks->ctx);
    }
}

void
journal_bar(struct journal *journal)
{
    pthread_mutex_lock(&journal->mutex);
    journal_state_close_group(journal);
    journal->bar = journal_state_place(journal).position;
    journal->barred_mono_ns = clock_mono_ns();
    journal_state_unlock(journal);
}

void
journal_unbar(struct journal *journal)
{
    pthread_mutex_lock(&journal->mutex);
    journal->barred_mono_ns = 0;
    journal_state_release(journal);
    journal_state_unlock(journal);
}

const _Atomic uint64_t *
journal_released(const struct journal *journal)
{
    return &journal->released;
}

const _Atomic uint64_t *
journal_end(const struct journal *journal)
{
    return &journal->position;
}

uint64_t
journal_synced(const struct journal *journal)
{
    return atomic_load_explicit(&journal->synced, memory_order_acquire);
}

void
journal_want_sync(struct journal *journal, uint64_t position)
{
    pthread_mutex_lock(&journal->mutex);
    if (journal->syncer.wanted < position) {
        journal->syncer.wanted = position;
        pthread_cond_signal(&journal->syncer.work);
    }
    journal_state_unlock(journal);
}

/* ---- loop 0 -------------------------------------------------------------- */

/* Sets the first file. With a tap the log is on already, and its position
 * stays. */
static void
set_first(struct journal *journal, enum journal_target how,
          const struct journal_file *file, struct journal_place place)
{
    CHECK(journal->mode == JOURNAL_OFF && journal->next == NEXT_NONE);
    journal->epoch++;
    journal->mode = how == JOURNAL_BUILD ? JOURNAL_BUILDING : JOURNAL_ON;
    journal->suspect = false;
    journal->fault_mono_ns = 0;
    journal->need = place.position;
    journal->file = *file;
    journal->file_bytes = GROUP_FIRST_LINE_BYTES;
    journal_state_move(journal, place);
    journal->durable = place;
    journal->syncer.wanted = 0;
    journal_state_begin(journal, place);
}

/* Prepares for another next file: the present next one will be closed unused.
 */
static void
replace_next(struct journal *journal, struct journal_unused *unused)
{
    unused->fd = journal->next_file.fd;
    unused->next = journal->writer.unused;
    journal->writer.unused = unused;
    if (journal->next == NEXT_ROTATES) {
        journal_state_join(&journal->queue[0], &journal->queue[1]);
    }
}

/* Sets the next file. Returns `spare` if it was not needed. */
static struct journal_unused *
set_next(struct journal *journal, enum journal_target how,
         const struct journal_file *file, struct journal_unused *spare)
{
    /* The file that a rotation leaves must be sound. */
    bool rebases = how == JOURNAL_REBASE || journal_state_rebases(journal) ||
                   journal->suspect;

    CHECK(journal_state_is_on(journal) && file->fd >= 0);
    if (journal->next != NEXT_NONE) {
        replace_next(journal, spare);
        spare = NULL;
    }
    journal->next = rebases ? NEXT_REBASES : NEXT_ROTATES;
    journal->next_file = *file;
    journal->mark = journal_state_place(journal);
    if (rebases) {
        journal_state_leave(journal);
        journal->epoch++;
        journal->need = journal->mark.position;
        journal_state_begin_fault(journal);
        journal_state_void(journal, &journal->queue[0]);
        journal_state_begin(journal, journal->mark);
    }
    return spare;
}

void
journal_set_target(struct journal *journal, enum journal_target how,
                   const struct journal_file *file, uint64_t *position,
                   uint64_t *sequence)
{
    struct journal_unused *spare = mem_alloc(sizeof(*spare));
    struct journal_place place = { *position, *sequence };

    pthread_mutex_lock(&journal->mutex);
    journal_state_close_group(journal);
    if (journal_state_has_log(journal)) {
        place = journal_state_place(journal);
    }
    if (how == JOURNAL_RESUME || how == JOURNAL_BUILD) {
        set_first(journal, how, file, place);
    } else {
        spare = set_next(journal, how, file, spare);
    }
    journal_state_release(journal);
    pthread_cond_signal(&journal->writer.work);
    journal_state_unlock(journal);
    mem_free(spare);
    *position = place.position;
    *sequence = place.sequence;
}

void
journal_mark(struct journal *journal, uint64_t *ret_position,
             uint64_t *ret_sequence)
{
    pthread_mutex_lock(&journal->mutex);
    CHECK(journal_state_has_log(journal));
    journal_state_close_group(journal);
    *ret_position = journal_state_place(journal).position;
    *ret_sequence = journal->sequence;
    pthread_mutex_unlock(&journal->mutex);
}

void
journal_base_done(struct journal *journal, uint64_t position, uint64_t sequence)
{
    pthread_mutex_lock(&journal->mutex);
    journal_state_based(journal, (struct journal_place){ position, sequence });
    journal_state_unlock(journal);
}

void
journal_hold_here(struct journal *journal, uint64_t *ret_position,
                  uint64_t *ret_sequence)
{
    pthread_mutex_lock(&journal->mutex);
    CHECK(journal->mode == JOURNAL_HOLDING);
    journal_state_close_group(journal);
    journal_state_hold(journal, journal_state_place(journal));
    *ret_position = journal_state_place(journal).position;
    *ret_sequence = journal->sequence;
    journal_state_unlock(journal);
}

/* If the writer is still writing to the old file, it takes the new file
 * later. */
bool
journal_end_hold(struct journal *journal, const struct journal_file *file)
{
    bool good;

    CHECK(file->fd >= 0);
    pthread_mutex_lock(&journal->mutex);
    good = journal->mode == JOURNAL_HOLDING && journal->need != UINT64_MAX &&
           journal->next_file.fd < 0 &&
           (journal->next == NEXT_REBASES || journal->file.fd < 0);
    if (good && journal->next == NEXT_REBASES) {
        journal->next_file = *file;
    } else if (good) {
        journal->file = *file;
        journal->file_bytes = GROUP_FIRST_LINE_BYTES;
    }
    if (good) {
        journal->error = 0;
        journal_state_based(journal, journal->written);
        pthread_cond_signal(&journal->writer.work);
    }
    journal_state_unlock(journal);
    return good;
}

/* A pending rotation first becomes a rebase, which is then given up, too: its
 * file was lost with the others. */
void
journal_lose(struct journal *journal, int error)
{
    pthread_mutex_lock(&journal->mutex);
    /* The pieces of the group are dropped. */
    journal_state_close_group(journal);
    while (journal_state_accepts(journal)) {
        journal_state_give_up(journal, error);
    }
    journal_state_unlock(journal);
}

void
journal_turn_off(struct journal *journal, bool now)
{
    pthread_mutex_lock(&journal->mutex);
    CHECK(journal_state_is_on(journal));
    journal_state_close_group(journal);
    if (now || journal->mode == JOURNAL_BUILDING ||
        journal_state_is_faulted(journal) || journal->suspect ||
        !journal_state_is_served(journal)) {
        journal_state_drop(journal);
    } else {
        journal->mode = JOURNAL_CLOSING;
    }
    journal->syncer.wanted = journal_state_place(journal).position;
    journal_state_release(journal);
    pthread_cond_signal(&journal->writer.work);
    pthread_cond_signal(&journal->syncer.work);
    journal_state_unlock(journal);
}

enum journal_flushed
journal_flush(struct journal *journal)
{
    enum journal_flushed flushed = JOURNAL_FLUSHED;
    uint64_t target;
    bool faulted;

    pthread_mutex_lock(&journal->mutex);
    if (journal_state_owes(journal)) {
        journal_state_close_group(journal);
        target = journal_state_place(journal).position;
        faulted = journal_state_is_faulted(journal);
        if (faulted || journal->file_synced.position < target) {
            flushed = faulted || !journal_state_is_served(journal)
                          ? JOURNAL_FLUSH_FAILED
                          : JOURNAL_FLUSHES;
        }
        if (flushed == JOURNAL_FLUSHES) {
            journal->syncer.wanted = target;
            journal->syncer.flushes = true;
            pthread_cond_signal(&journal->writer.work);
            pthread_cond_signal(&journal->syncer.work);
        }
    }
    journal_state_unlock(journal);
    return flushed;
}

bool
journal_answers(struct journal *journal)
{
    struct journal_writer *writer = &journal->writer;
    struct journal_syncer *syncer = &journal->syncer;
    bool answered;

    pthread_mutex_lock(&journal->mutex);
    answered = (writer->answered == journal->asked ||
                atomic_load(&writer->call_ns) != 0) &&
               (syncer->answered == journal->asked || syncer->syncing);
    journal->asked++;
    pthread_cond_signal(&writer->work);
    pthread_cond_signal(&syncer->work);
    pthread_mutex_unlock(&journal->mutex);
    return answered;
}

void
journal_get_status(const struct journal *journal,
                   struct journal_status *ret_status)
{
    /* Only the mutex changes, and that is not part of the state.
     * NOLINTNEXTLINE(performance-no-int-to-ptr): only casts const away */
    struct journal *j = (struct journal *)(uintptr_t)journal;
    const struct journal_syncer *syncer = &j->syncer;

    pthread_mutex_lock(&j->mutex);
    *ret_status = (struct journal_status){
        .on = journal_state_is_on(j),
        .tapped = journal_state_is_tapped(j),
        .building = j->mode == JOURNAL_BUILDING,
        .holding = j->mode == JOURNAL_HOLDING,
        .faulted = journal_state_is_faulted(j) &&
                   (j->mode != JOURNAL_HOLDING || j->error != 0),
        .closing = journal_state_is_closing(j),
        .error = j->error,
        .fault_mono_ns = j->fault_mono_ns,
        .barred_mono_ns = j->barred_mono_ns,
        .file_number = j->file.number,
        .file_bytes = j->file_bytes,
        .rotating = j->next != NEXT_NONE,
        .suspect = journal_state_is_on(j) && !journal_state_accepts(j),
        .closed_number = j->closed_number,
        .closed_bytes = j->closed_bytes,
        .appended = j->position,
        .written = j->written.position > j->durable.position
                       ? j->written.position
                       : j->durable.position,
        .synced = j->durable.position,
        .released = j->released,
        .sequence = j->sequence,
        .synced_sequence = j->durable.sequence,
        .queue_bytes = j->queued,
        .unsynced_mono_ns = journal_state_is_faulted(j) ? j->fault_mono_ns
                                                        : syncer->unsynced_ns,
        .write_mono_ns = atomic_load(&j->writer.call_ns),
        .write_errors = j->writer.errors,
        .sync_errors = syncer->errors,
        .suspect_files = j->suspect_files,
        .syncs = syncer->syncs,
        .groups = j->writer.groups,
        .sync_ns_last = syncer->ns_last,
        .sync_ns_max = syncer->ns_max,
    };
    pthread_mutex_unlock(&j->mutex);
}

uint64_t
journal_take_longest_sync_ns(struct journal *journal)
{
    uint64_t longest_ns;

    pthread_mutex_lock(&journal->mutex);
    longest_ns = journal->syncer.ns_recent;
    journal->syncer.ns_recent = 0;
    pthread_mutex_unlock(&journal->mutex);
    return longest_ns;
}
