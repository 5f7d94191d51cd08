/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The writer takes the whole queue at once and writes it in runs, one system
 * call each; after each run it publishes the new position and frees the pieces.
 * Small pieces are copied into one buffer, which is cheaper than an iovec for
 * each; large ones are written without a copy.
 *
 * Only the writer changes files, and only the syncer syncs. So the writer asks
 * for a sync before it leaves a file, and closes no file during a sync or
 * before a last one.
 */
#include "journal/journal_io.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/run_clock.h"
#include "base/thread.h"

#include <limits.h>
#include <time.h>

enum {
    RUN_IOVECS = IOV_MAX,
    RUN_COPY_BYTES = 256 * 1024, /* copied pieces, and seals */
    /* About the size of a run: small, so that `released` moves often. */
    RUN_BYTES = 8 * 1024 * 1024,
    COPY_MAX = 4096 /* larger pieces are not copied */
};

static const uint64_t SECOND_NS = 1000000000;

/* ---- seals --------------------------------------------------------------- */

bool
journal_io_seal(struct journal_sealer *sealer, const struct piece *piece,
                char *ret_seal)
{
    struct slice text = piece_text(piece);
    struct group_seal seal;

    if (!sealer->open) {
        group_hash_begin(sealer->hash, sealer->key);
        sealer->seal.bytes = 0;
        sealer->open = true;
    }
    group_hash_add(sealer->hash, text.data, text.len);
    sealer->seal.bytes += text.len;
    if (!piece->last) {
        return false;
    }
    sealer->open = false;
    sealer->seal.sequence++;
    seal = sealer->seal;
    /* A base may be ahead of the written groups. */
    if (seal.durable_sequence >= seal.sequence) {
        seal.durable_sequence = seal.sequence - 1;
    }
    group_write_seal(sealer->hash, sealer->key, &seal, ret_seal);
    return true;
}

/* ---- a run --------------------------------------------------------------- */

struct run {
    struct iovec iov[RUN_IOVECS];
    size_t count;
    size_t bytes;
    size_t copied;
    char copy[RUN_COPY_BYTES];
};

/* What the writer is writing. */
struct work {
    struct run *run;
    struct piece *next;           /* first piece that is in no run yet */
    struct journal_sealer sealer; /* sequence: of the last whole group */
    uint64_t position;            /* after all pieces before `next` */
    uint64_t group_end;           /* after the last whole group */
    uint64_t epoch;
    int fd;
};

static void
add_iovec(struct run *run, void *data, size_t len)
{
    run->iov[run->count++] = (struct iovec){ data, len };
}

static void
add_copy(struct run *run, const void *data, size_t len)
{
    char *to = run->copy + run->copied;
    struct iovec *last = run->count > 0 ? &run->iov[run->count - 1] : NULL;

    memcpy(to, data, len);
    run->copied += len;
    if (last != NULL && (char *)last->iov_base + last->iov_len == to) {
        last->iov_len += len;
    } else {
        add_iovec(run, to, len);
    }
}

/* Returns whether a piece of any size and its seal still fit. */
static bool
fits_another(const struct run *run)
{
    return run->bytes < RUN_BYTES && run->count + 2 <= RUN_IOVECS &&
           run->copied + COPY_MAX + GROUP_SEAL_BYTES <= sizeof(run->copy);
}

/* Fills the run with pieces. */
static void
fill_run(struct work *work)
{
    struct run *run = work->run;
    char seal[GROUP_SEAL_BYTES];

    run->count = run->bytes = run->copied = 0;
    while (work->next != NULL && fits_another(run)) {
        struct piece *piece = work->next;
        struct slice text = piece_text(piece);

        if (text.len <= COPY_MAX) {
            add_copy(run, text.data, text.len);
        } else {
            /* NOLINTNEXTLINE(performance-no-int-to-ptr): casts const away */
            add_iovec(run, (void *)(uintptr_t)text.data, text.len);
        }
        run->bytes += text.len;
        work->position += text.len;
        if (journal_io_seal(&work->sealer, piece, seal)) {
            add_copy(run, seal, sizeof(seal));
            run->bytes += sizeof(seal);
            work->position += sizeof(seal);
            work->group_end = work->position;
        }
        work->next = piece->next;
    }
}

/* Frees the pieces of the run, and returns the sum of their costs. */
static uint64_t
free_run(struct piece *piece, const struct piece *end)
{
    uint64_t cost = 0;

    while (piece != end) {
        struct piece *next = piece->next;

        cost += journal_state_cost(piece);
        piece_free(piece);
        piece = next;
    }
    return cost;
}

static void
uncount(struct journal *journal, uint64_t cost)
{
    uint64_t before =
        atomic_load_explicit(&journal->queued, memory_order_relaxed);
    uint64_t limit =
        atomic_load_explicit(&journal->limit, memory_order_relaxed);

    journal_state_count(journal, -(int64_t)cost);
    if (before >= limit && before - cost < limit) {
        journal->due |= DUE_MOVED;
    }
}

/* Writes one run. False: a fault or a rebase has made the rest void. */
static bool
write_run(struct journal *journal, struct work *work)
{
    struct piece *first = work->next;
    uint64_t cost;
    int error;
    bool goes_on;

    fill_run(work);
    atomic_store(&journal->writer.call_ns, clock_mono_ns());
    error = file_writev(work->fd, work->run->iov, work->run->count);
    atomic_store(&journal->writer.call_ns, 0);
    cost = free_run(first, work->next);
    pthread_mutex_lock(&journal->mutex);
    journal->writer.answered = journal->asked;
    uncount(journal, cost);
    if (error != 0) {
        journal->writer.errors++;
    }
    if (journal->epoch == work->epoch && error != 0) {
        journal_state_leave(journal);
        journal_state_fault(journal, error);
    } else if (journal->epoch == work->epoch) {
        journal->file_bytes += work->run->bytes;
        journal_state_written(
            journal, (struct journal_place){ work->group_end,
                                             work->sealer.seal.sequence });
    }
    goes_on = journal->epoch == work->epoch && !journal->stop;
    work->sealer.seal.durable_sequence = journal->durable.sequence;
    journal_state_unlock(journal);
    return goes_on;
}

/* Writes everything that is queued for the file. The mutex is locked at the
 * function's beginning and end. */
static void
write_queue(struct journal *journal, struct run *run)
{
    struct journal_list list = journal_state_take(journal);
    struct work work = {
        .next = list.head,
        .sealer = { .hash = journal->writer.hash,
                    .key = journal->file.key,
                    .seal = { .sequence = journal->written.sequence,
                              .durable_sequence = journal->durable.sequence } },
        .position = journal->written.position,
        .group_end = journal->written.position,
        .epoch = journal->epoch,
        .fd = journal->file.fd,
    };
    bool goes_on = true;
    uint64_t cost;

    pthread_mutex_unlock(&journal->mutex);
    work.run = run;
    while (work.next != NULL && goes_on) {
        work.sealer.seal.unix_ms = clock_wall_ms();
        goes_on = write_run(journal, &work);
    }
    cost = free_run(work.next, NULL);
    pthread_mutex_lock(&journal->mutex);
    uncount(journal, cost);
}

/* ---- the writer ---------------------------------------------------------- */

void
journal_io_free_void(struct piece *pieces, struct journal_unused *unused)
{
    journal_state_free_pieces(pieces, NULL);
    while (unused != NULL) {
        struct journal_unused *next = unused->next;

        file_close(unused->fd);
        mem_free(unused);
        unused = next;
    }
}

/* Frees what became void, and calls the hooks that are due. False if there was
 * nothing to do. */
static bool
clean_up(struct journal *journal)
{
    struct piece *pieces = journal->writer.void_pieces;
    struct journal_unused *unused = journal->writer.unused;

    if (pieces == NULL && unused == NULL && journal->due == 0) {
        return false;
    }
    journal->writer.void_pieces = NULL;
    journal->writer.unused = NULL;
    journal_state_unlock(journal);
    journal_io_free_void(pieces, unused);
    pthread_mutex_lock(&journal->mutex);
    return true;
}

/* Returns true if everything written to the file is synced; otherwise asks for
 * a sync. */
static bool
is_synced(struct journal *journal)
{
    uint64_t written = journal->written.position;

    if (journal->file_synced.position < written) {
        if (journal->syncer.wanted < written) {
            journal->syncer.wanted = written;
        }
        pthread_cond_signal(&journal->syncer.work);
        return false;
    }
    return !journal->syncer.syncing;
}

/* Returns whether the syncer still needs the file. */
static bool
is_syncing(const struct journal *journal)
{
    return journal->syncer.syncing || journal->syncer.last_sync;
}

/* Turns to the next file, if that is due. */
static bool
turn_to_next(struct journal *journal)
{
    int fd = journal->file.fd;

    if (journal->next == NEXT_NONE || is_syncing(journal) ||
        journal->mode == JOURNAL_DROPPING) {
        return false;
    }
    if (journal->next == NEXT_ROTATES) {
        if (journal->queue[0].head != NULL || !is_synced(journal)) {
            return false;
        }
        CHECK(journal->written.position == journal->mark.position);
        journal->closed_number = journal->file.number;
        journal->closed_bytes = journal->file_bytes;
        journal_state_join(&journal->queue[0], &journal->queue[1]);
    }
    journal->file = journal->next_file;
    journal->file_bytes = GROUP_FIRST_LINE_BYTES;
    journal->next_file.fd = -1;
    journal->suspect = journal->next == NEXT_SPOILED;
    journal->next = NEXT_NONE;
    journal->due |= DUE_EVENT;
    journal_state_unlock(journal);
    file_close(fd);
    pthread_mutex_lock(&journal->mutex);
    return true;
}

/* Closes the files of a journal that was turned off, if that is due. */
static bool
close_files(struct journal *journal)
{
    int fd = journal->file.fd;
    int next_fd = journal->next_file.fd;

    if (!journal_state_is_closing(journal) || is_syncing(journal)) {
        return false;
    }
    if (journal->mode == JOURNAL_CLOSING &&
        (journal->next != NEXT_NONE || !is_synced(journal))) {
        return false;
    }
    CHECK(journal->queue[0].head == NULL && journal->queue[1].head == NULL);
    journal->file.fd = journal->next_file.fd = -1;
    journal->mode = JOURNAL_OFF;
    journal->next = NEXT_NONE;
    journal->suspect = false;
    journal->fault_mono_ns = journal->syncer.unsynced_ns = 0;
    journal_state_release(journal);
    journal->due |= DUE_EVENT;
    journal_state_unlock(journal);
    file_close(fd);
    file_close(next_fd);
    pthread_mutex_lock(&journal->mutex);
    return true;
}

static bool
may_write(const struct journal *journal)
{
    return journal->queue[0].head != NULL && !journal->suspect &&
           journal->file.fd >= 0 && !journal_state_rebases(journal);
}

static void *
run_writer(void *arg)
{
    struct journal *journal = arg;
    struct run *run = mem_alloc(sizeof(*run));

    pthread_mutex_lock(&journal->mutex);
    while (!journal->stop) {
        journal->writer.answered = journal->asked;
        if (clean_up(journal)) {
            continue;
        }
        if (may_write(journal)) {
            write_queue(journal, run);
        } else if (!turn_to_next(journal) && !close_files(journal)) {
            journal->writer.sleeps = true;
            pthread_cond_wait(&journal->writer.work, &journal->mutex);
            journal->writer.sleeps = false;
        }
    }
    pthread_mutex_unlock(&journal->mutex);
    mem_free(run);
    metric_thread_exit();
    return NULL;
}

/* ---- the syncer ---------------------------------------------------------- */

/* Returns when a sync is due; UINT64_MAX if none is. */
static uint64_t
sync_due(const struct journal *journal)
{
    const struct journal_syncer *syncer = &journal->syncer;
    uint64_t synced = journal->file_synced.position;

    if (syncer->last_sync) {
        return 0;
    }
    if (journal->written.position <= synced || journal->suspect ||
        journal->file.fd < 0 || journal_state_rebases(journal)) {
        return UINT64_MAX;
    }
    if (syncer->wanted > synced || syncer->policy == JOURNAL_ALWAYS) {
        return 0;
    }
    if (syncer->policy == JOURNAL_NO) {
        return UINT64_MAX;
    }
    return syncer->unsynced_ns + journal_state_sync_wait_ns(syncer->ns_last);
}

static void
note_sync(struct journal_syncer *syncer, uint64_t took_ns, int error)
{
    syncer->syncing = false;
    syncer->syncs++;
    syncer->ns_last = took_ns;
    if (took_ns > syncer->ns_max) {
        syncer->ns_max = took_ns;
    }
    if (took_ns > syncer->ns_recent) {
        syncer->ns_recent = took_ns;
    }
    if (error != 0) {
        syncer->errors++;
        syncer->last_sync = false;
    }
}

/* Syncs the file. The mutex is locked at the function's beginning and end. A
 * last sync only protects what was released already, so it moves no position,
 * and its failure is only counted. After a failed sync there is no last one,
 * since its result would mean nothing. */
static void
sync_file(struct journal *journal)
{
    struct journal_syncer *syncer = &journal->syncer;
    struct journal_place place = journal->written;
    uint64_t epoch = journal->epoch;
    bool last = syncer->last_sync;
    int fd = journal->file.fd;
    uint64_t began_ns, took_ns;
    int error;

    syncer->syncing = true;
    syncer->last_sync = false;
    syncer->later_ns = 0;
    pthread_mutex_unlock(&journal->mutex);
    began_ns = run_clock_ns();
    error = file_sync(fd);
    took_ns = run_clock_ns() - began_ns;
    pthread_mutex_lock(&journal->mutex);
    note_sync(syncer, took_ns, error);
    if (journal->epoch == epoch && !last) {
        if (error != 0) {
            journal_state_fault(journal, error);
        } else {
            journal_state_synced(journal, place);
        }
    }
    if (journal->next != NEXT_NONE || journal_state_is_closing(journal)) {
        pthread_cond_signal(&journal->writer.work);
    }
    if (syncer->flushes) {
        syncer->flushes = false;
        journal->due |= DUE_EVENT;
    }
    journal_state_unlock(journal);
    pthread_mutex_lock(&journal->mutex);
}

static void *
run_syncer(void *arg)
{
    struct journal *journal = arg;

    pthread_mutex_lock(&journal->mutex);
    while (!journal->stop) {
        uint64_t due_ns = sync_due(journal);

        journal->syncer.answered = journal->asked;
        if (due_ns == UINT64_MAX) {
            pthread_cond_wait(&journal->syncer.work, &journal->mutex);
        } else if (due_ns > clock_mono_ns()) {
            struct timespec until = {
                .tv_sec = (time_t)(due_ns / SECOND_NS),
                .tv_nsec = (long)(due_ns % SECOND_NS),
            };

            (void)pthread_cond_timedwait(&journal->syncer.work, &journal->mutex,
                                         &until);
        } else {
            sync_file(journal);
        }
    }
    pthread_mutex_unlock(&journal->mutex);
    metric_thread_exit();
    return NULL;
}

/* ---- life ---------------------------------------------------------------- */

void
journal_io_start(struct journal *journal)
{
    thread_must_start(&journal->writer.thread, "journal-writer", run_writer,
                      journal);
    thread_must_start(&journal->syncer.thread, "journal-syncer", run_syncer,
                      journal);
}

void
journal_io_stop(struct journal *journal)
{
    bool runs;

    pthread_mutex_lock(&journal->mutex);
    runs = !journal->stop;
    journal->stop = true;
    pthread_cond_signal(&journal->writer.work);
    pthread_cond_signal(&journal->syncer.work);
    pthread_mutex_unlock(&journal->mutex);
    if (runs) {
        CHECK(pthread_join(journal->writer.thread, NULL) == 0);
        CHECK(pthread_join(journal->syncer.thread, NULL) == 0);
    }
}
