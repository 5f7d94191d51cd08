/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The two threads. The writer takes the whole queue at once, and writes it in
 * runs: one system call each, then what it covered is published and freed.
 * Small pieces are copied one behind the other, which is cheaper than an iovec
 * each; large ones are written where they lie.
 *
 * The writer alone changes files; the syncer alone syncs. So before the writer
 * leaves a file it has that synced by asking, and it closes none while a sync
 * is under way, or a last one is still to come.
 */
#include "persist/journal_internal.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/thread.h"

#include <limits.h>
#include <time.h>

enum {
    RUN_IOVECS = IOV_MAX,
    RUN_COPY_BYTES = 256 * 1024, /* copied, and seals */
    RUN_BYTES = 8 * 1024 * 1024, /* about; so that released moves along */
    COPY_MAX = 4096              /* larger pieces are not copied */
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
    /* A base may have overtaken what is written. */
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

/* What the writer has in hand. */
struct work {
    struct run *run;
    struct piece *next;           /* first piece that is in no run yet */
    struct journal_sealer sealer; /* its sequence: of the last whole group */
    uint64_t position;            /* behind all pieces before `next` */
    uint64_t group_end;           /* behind the last whole group */
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

/* Room for a piece of any size and its seal. */
static bool
has_room(const struct run *run)
{
    return run->bytes < RUN_BYTES && run->count + 2 <= RUN_IOVECS &&
           run->copied + COPY_MAX + GROUP_SEAL_BYTES <= sizeof(run->copy);
}

/* Puts pieces into the run. */
static void
fill_run(struct work *work)
{
    struct run *run = work->run;
    char seal[GROUP_SEAL_BYTES];

    run->count = run->bytes = run->copied = 0;
    while (work->next != NULL && has_room(run)) {
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

/* Gives the pieces of the run back; returns what they cost. */
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
        journal->tell_moved = true;
    }
}

/* Writes some of what is in hand. False: what is left of it is void. */
static bool
write_run(struct journal *journal, struct work *work)
{
    struct piece *first = work->next;
    uint64_t cost;
    int error;
    bool goes_on;

    fill_run(work);
    error = file_writev(work->fd, work->run->iov, work->run->count);
    cost = free_run(first, work->next);
    pthread_mutex_lock(&journal->mutex);
    uncount(journal, cost);
    if (error != 0) {
        journal->write_errors++;
    }
    if (journal->epoch == work->epoch && error != 0) {
        journal_state_leave(journal);
        journal_state_fault(journal, error);
    } else if (journal->epoch == work->epoch) {
        journal->file_bytes += work->run->bytes;
        journal_state_written(journal, work->group_end,
                              work->sealer.seal.sequence);
    }
    goes_on = journal->epoch == work->epoch && !journal->stop;
    work->sealer.seal.durable_sequence = journal->durable_sequence;
    journal_state_unlock(journal);
    return goes_on;
}

/* All that is queued for the file. Enters and leaves with the mutex. */
static void
write_queue(struct journal *journal, struct run *run)
{
    struct journal_list list = journal_state_take(journal);
    struct work work = {
        .next = list.head,
        .sealer = { .hash = journal->hash,
                    .key = journal->file.key,
                    .seal = { .sequence = journal->written_sequence,
                              .durable_sequence = journal->durable_sequence } },
        .position = journal->written,
        .group_end = journal->written,
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

/* Gives back what became void, and tells what is to be told. True if there was
 * something. */
static bool
clean(struct journal *journal)
{
    struct piece *pieces = journal->void_pieces;
    struct journal_doomed *doomed = journal->doomed;

    if (pieces == NULL && doomed == NULL && !journal->tell_moved &&
        !journal->tell_event) {
        return false;
    }
    journal->void_pieces = NULL;
    journal->doomed = NULL;
    journal_state_unlock(journal);
    journal_state_free_pieces(pieces, NULL);
    while (doomed != NULL) {
        struct journal_doomed *next = doomed->next;

        file_close(doomed->fd);
        mem_free(doomed);
        doomed = next;
    }
    pthread_mutex_lock(&journal->mutex);
    return true;
}

/* True if all that was written to the file is synced; else asks for it. */
static bool
is_synced(struct journal *journal)
{
    if (journal->file_synced < journal->written) {
        if (journal->sync_wanted < journal->written) {
            journal->sync_wanted = journal->written;
        }
        pthread_cond_signal(&journal->sync_work);
        return false;
    }
    return !journal->syncing;
}

/* Turns to the next file, if it is time. */
static bool
turn(struct journal *journal)
{
    int fd = journal->file.fd;

    if (!journal->pending || journal->syncing || journal->last_sync ||
        (journal->closing && journal->suspect)) {
        return false;
    }
    if (journal->how == JOURNAL_ROTATE) {
        if (journal->queue[0].head != NULL || !is_synced(journal)) {
            return false;
        }
        CHECK(journal->written == journal->mark);
        journal->closed_number = journal->file.number;
        journal->closed_bytes = journal->file_bytes;
        journal_state_join(&journal->queue[0], &journal->queue[1]);
    }
    journal->file = journal->next;
    journal->file_bytes = GROUP_FIRST_LINE_BYTES;
    journal->next.fd = -1;
    journal->suspect = journal->spoiled;
    journal->pending = journal->spoiled = false;
    journal->tell_event = true;
    journal_state_unlock(journal);
    file_close(fd);
    pthread_mutex_lock(&journal->mutex);
    return true;
}

/* The end of being turned off, if it is time. */
static bool
end(struct journal *journal)
{
    int fd = journal->file.fd;
    int next_fd = journal->next.fd;

    if (!journal->closing || journal->syncing || journal->last_sync) {
        return false;
    }
    if (!journal->suspect && (journal->pending || !is_synced(journal))) {
        return false;
    }
    journal->file.fd = journal->next.fd = -1;
    journal->closing = journal->pending = false;
    journal->suspect = journal->faulted = false;
    journal->fault_mono_ns = journal->unsynced_ns = 0;
    journal_state_release(journal);
    journal->tell_event = true;
    pthread_cond_broadcast(&journal->progress);
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
           journal->file.fd >= 0 &&
           !(journal->pending && journal->how == JOURNAL_REBASE);
}

static void *
run_writer(void *arg)
{
    struct journal *journal = arg;
    struct run *run = mem_alloc(sizeof(*run));

    pthread_mutex_lock(&journal->mutex);
    while (!journal->stop) {
        if (clean(journal)) {
            continue;
        }
        if (may_write(journal)) {
            write_queue(journal, run);
        } else if (!turn(journal) && !end(journal)) {
            journal->idle = true;
            pthread_cond_wait(&journal->work, &journal->mutex);
            journal->idle = false;
        }
    }
    pthread_mutex_unlock(&journal->mutex);
    mem_free(run);
    metric_thread_exit();
    return NULL;
}

/* ---- the syncer ---------------------------------------------------------- */

/* When a sync is due: UINT64_MAX without one. */
static uint64_t
sync_due(const struct journal *journal)
{
    if (journal->last_sync) {
        return 0;
    }
    if (journal->written <= journal->file_synced || journal->suspect ||
        journal->file.fd < 0 ||
        (journal->pending && journal->how == JOURNAL_REBASE)) {
        return UINT64_MAX;
    }
    if (journal->sync_wanted > journal->file_synced ||
        journal->sync == JOURNAL_ALWAYS) {
        return 0;
    }
    if (journal->sync == JOURNAL_NO) {
        return UINT64_MAX;
    }
    return journal->unsynced_ns +
           journal_state_sync_wait_ns(journal->sync_ns_last);
}

/* Enters and leaves with the mutex. A last sync can only help what was released
 * already, so it moves nothing, and its failure is just counted. There is none
 * behind a sync that failed: it would tell nothing. */
static void
sync_file(struct journal *journal)
{
    uint64_t position = journal->written;
    uint64_t sequence = journal->written_sequence;
    uint64_t epoch = journal->epoch;
    bool last = journal->last_sync;
    int fd = journal->file.fd;
    uint64_t began_ns, took_ns;
    int error;

    journal->syncing = true;
    journal->last_sync = false;
    journal->later_ns = 0;
    pthread_mutex_unlock(&journal->mutex);
    began_ns = clock_mono_ns();
    error = file_sync(fd);
    took_ns = clock_mono_ns() - began_ns;
    pthread_mutex_lock(&journal->mutex);
    journal->syncing = false;
    journal->syncs++;
    journal->sync_ns_last = took_ns;
    if (took_ns > journal->sync_ns_max) {
        journal->sync_ns_max = took_ns;
    }
    if (took_ns > journal->sync_ns_recent) {
        journal->sync_ns_recent = took_ns;
    }
    if (error != 0) {
        journal->sync_errors++;
        journal->last_sync = false;
    }
    if (journal->epoch == epoch && !last) {
        if (error != 0) {
            journal_state_fault(journal, error);
        } else {
            journal_state_synced(journal, position, sequence);
        }
    }
    if (journal->pending || journal->closing) {
        pthread_cond_signal(&journal->work);
    }
    pthread_cond_broadcast(&journal->progress);
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

        if (due_ns == UINT64_MAX) {
            pthread_cond_wait(&journal->sync_work, &journal->mutex);
        } else if (due_ns > clock_mono_ns()) {
            struct timespec until = {
                .tv_sec = (time_t)(due_ns / SECOND_NS),
                .tv_nsec = (long)(due_ns % SECOND_NS),
            };

            (void)pthread_cond_timedwait(&journal->sync_work, &journal->mutex,
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
    journal->threads = true; /* nobody else has it yet */
    thread_must_start(&journal->writer, "journal-writer", run_writer, journal);
    thread_must_start(&journal->syncer, "journal-syncer", run_syncer, journal);
}

void
journal_io_stop(struct journal *journal)
{
    bool runs;

    pthread_mutex_lock(&journal->mutex);
    runs = journal->threads;
    journal->threads = false;
    journal->stop = true;
    pthread_cond_signal(&journal->work);
    pthread_cond_signal(&journal->sync_work);
    pthread_cond_broadcast(&journal->progress);
    pthread_mutex_unlock(&journal->mutex);
    if (runs) {
        CHECK(pthread_join(journal->writer, NULL) == 0);
        CHECK(pthread_join(journal->syncer, NULL) == 0);
    }
}
