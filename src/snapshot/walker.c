/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The thread walks, walks again in rounds until little is left, and waits for
 * loop 0, which ends the walk under the gate. Then it writes the effects from
 * the spool.
 */
#include "snapshot/walker.h"

#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/task.h"
#include "journal/spool.h"
#include "keyspace/gate.h"
#include "keyspace/make.h"
#include "keyspace/walk.h"
#include "snapshot/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    NAME_MAX_BYTES = 512,
    PIPE_BYTES = 1 << 20,
    ROUND_BYTES = 1 << 20 /* after a round of fewer, loop 0 may end the walk */
};

/* WALKS -> THROUGH -> ENDS, or back to WALKS. */
enum phase { PHASE_WALKS, PHASE_THROUGH, PHASE_ENDS };

struct walker {
    struct keyspace *ks;
    struct spool *spool;
    struct task *task;
    void (*poke)(void *ctx);
    void *poke_ctx;
    struct walk *walk;
    struct snapshot_writer *writer;
    bool running; /* loop 0: not reaped yet */
    bool walks;   /* loop 0: between walk_begin and walk_end */
    char name[NAME_MAX_BYTES], temporary[NAME_MAX_BYTES];
    struct walker_job job;
    struct snapshot_progress progress;
    int error; /* the thread's; loop 0 reads it at the end */
    atomic_bool cancelled, lags;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t moved;
    enum phase phase;
    struct snapshot_stamp end;
};

struct walker *
walker_new(struct keyspace *ks, struct spool *spool, void (*poke)(void *ctx),
           void *ctx)
{
    struct walker *walker = mem_zalloc(sizeof(*walker));

    walker->ks = ks;
    walker->spool = spool;
    walker->poke = poke;
    walker->poke_ctx = ctx;
    walker->walk = walk_try_new(ks);
    walker->writer = snapshot_writer_new();
    CHECK(walker->walk != NULL && walker->writer != NULL);
    CHECK(pthread_mutex_init(&walker->mutex, NULL) == 0);
    CHECK(pthread_cond_init(&walker->moved, NULL) == 0);
    walker->task = task_new("walk", poke, ctx);
    return walker;
}

void
walker_free(struct walker *walker)
{
    if (walker == NULL) {
        return;
    }
    walker_cancel(walker);
    task_free(walker->task);
    pthread_cond_destroy(&walker->moved);
    pthread_mutex_destroy(&walker->mutex);
    snapshot_writer_free(walker->writer);
    walk_free(walker->walk);
    mem_free(walker);
}

/* ---- the walk's sink ----------------------------------------------------- */

static int
check(struct walker *walker)
{
    if (atomic_load_explicit(&walker->cancelled, memory_order_relaxed)) {
        return ECANCELED;
    }
    return walker->job.still ? 0 : spool_error(walker->spool);
}

static struct snapshot_record
record_of(const struct walk_item *item)
{
    return (struct snapshot_record){
        .name = item->name,
        .db = item->db,
        .expires_at_ms = item->expires_at_ms,
        .incarnation = item->incarnation,
        .epoch = item->epoch,
        .copied_at = item->position,
    };
}

static int
on_item(void *ctx, const struct walk_item *item)
{
    struct walker *walker = ctx;
    struct snapshot_record record = record_of(item);
    int error = check(walker);

    if (error != 0) {
        return error;
    }
    return item->whole ? snapshot_put(walker->writer, &record, item->form)
                       : snapshot_put_head(walker->writer, &record, item->form);
}

static int
on_lines(void *ctx, uint32_t layer, uint64_t offset, struct slice lines,
         bool last)
{
    struct walker *walker = ctx;
    int error = check(walker);

    (void)layer;
    (void)offset;
    (void)last;
    return error != 0
               ? error
               : snapshot_put_lines(walker->writer, lines.data, lines.len);
}

static int
on_gone(void *ctx, const struct walk_item *item)
{
    struct walker *walker = ctx;
    struct snapshot_record record = record_of(item);

    return snapshot_void(walker->writer, &record);
}

static int
on_pieces(void *ctx, size_t most, const uint64_t *positions, size_t count)
{
    struct walker *walker = ctx;

    return snapshot_put_pieces(walker->writer, most, positions, count);
}

static int
on_group(void *ctx, uint64_t position, uint64_t sequence, struct slice commands)
{
    struct walker *walker = ctx;
    struct snapshot_effects effects = { .position = position,
                                        .sequence = sequence,
                                        .commands = commands };

    return atomic_load(&walker->cancelled)
               ? ECANCELED
               : snapshot_put_effects(walker->writer, &effects);
}

/* ---- the thread ---------------------------------------------------------- */

static void
lag(struct walker *walker)
{
    if (!atomic_exchange(&walker->lags, true)) {
        walker->poke(walker->poke_ctx);
    }
}

/* Walks again until a round copied little. A round copies what commands marked
 * during the round before. If it copied more than half as much as that round,
 * the commands mark too fast. */
static int
walk_rounds(struct walker *walker, unsigned thread,
            const struct walk_sink *sink)
{
    uint64_t bytes = UINT64_MAX;
    int error = 0;

    while (walk_has_again(walker->walk) && bytes > ROUND_BYTES && error == 0) {
        uint64_t before = bytes;

        error = walk_run_again(walker->walk, thread, sink, &bytes);
        if (bytes > ROUND_BYTES && bytes > before / 2) {
            lag(walker);
        }
    }
    return error;
}

/* Waits for loop 0. Returns whether the walk is at its end. */
static bool
wait_for_end(struct walker *walker)
{
    bool ends;

    pthread_mutex_lock(&walker->mutex);
    walker->phase = PHASE_THROUGH;
    pthread_mutex_unlock(&walker->mutex);
    walker->poke(walker->poke_ctx);
    pthread_mutex_lock(&walker->mutex);
    while (walker->phase == PHASE_THROUGH && !atomic_load(&walker->cancelled)) {
        pthread_cond_wait(&walker->moved, &walker->mutex);
    }
    ends = walker->phase == PHASE_ENDS;
    pthread_mutex_unlock(&walker->mutex);
    return ends;
}

static int
walk_all(struct walker *walker)
{
    const struct walk_sink sink = { on_item,   on_lines,           on_gone,
                                    on_pieces, &walker->cancelled, walker };
    unsigned thread = walker->job.still ? 0 : walk_thread(walker->walk);
    int error = walk_run(walker->walk, thread, &sink);

    if (walker->job.still) {
        return error;
    }
    while (error == 0) {
        error = walk_rounds(walker, thread, &sink);
        if (error == 0 && wait_for_end(walker)) {
            return spool_read(walker->spool, on_group, walker);
        }
        error = error != 0 ? error : check(walker);
    }
    return error;
}

static int
write_snapshot(struct walker *walker, int fd)
{
    int error =
        snapshot_begin(walker->writer, &walker->job.begin,
                       keyspace_databases(walker->ks), fd, &walker->progress);

    if (error == 0) {
        error = walk_all(walker);
    }
    return error == 0 ? snapshot_end(walker->writer, &walker->end) : error;
}

/* Makes the pipe large, so that both sides seldom wait for each other, and
 * blocking, whatever flags the inherited end has. */
static int
write_pipe(struct walker *walker)
{
    int fd = walker->job.pipe_fd;
    int flags = fcntl(fd, F_GETFL);
    int error;

    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0) {
        error = errno;
    } else {
        (void)fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
        error = write_snapshot(walker, fd);
    }
    file_close(fd);
    return error;
}

/* Writes to a temporary name, syncs, renames, and syncs the directory. */
static int
write_file(struct walker *walker)
{
    const struct walker_job *job = &walker->job;
    int fd = -1;
    int error = file_create(job->dir_fd, walker->temporary, &fd);

    if (error != 0) {
        return error;
    }
    error = write_snapshot(walker, fd);
    if (error == 0) {
        error = file_sync(fd);
    }
    file_close(fd);
    if (error == 0 && atomic_load(&walker->cancelled)) {
        error = ECANCELED;
    }
    if (error == 0) {
        error = file_rename(job->dir_fd, walker->temporary, walker->name);
    }
    if (error == 0) {
        error = file_sync_dir(job->dir_fd);
        return error == 0 && job->dir != NULL
                   ? file_is_dir_at(job->dir_fd, job->dir)
                   : error;
    }
    (void)!file_unlink(job->dir_fd, walker->temporary);
    return error;
}

static void
run_walk(void *arg)
{
    struct walker *walker = arg;

    walker->error =
        walker->job.to_pipe ? write_pipe(walker) : write_file(walker);
}

/* ---- loop 0 -------------------------------------------------------------- */

static void
begin_walk(struct walker *walker, const struct walker_job *job)
{
    CHECK(!walker->running);
    walker->job = *job;
    walker->temporary[0] = '\0';
    if (!job->to_pipe) {
        CHECK(strlen(job->name) + sizeof(".tmp") <= NAME_MAX_BYTES);
        (void)snprintf(walker->name, sizeof(walker->name), "%s", job->name);
        (void)snprintf(walker->temporary, sizeof(walker->temporary), "%s.tmp",
                       job->name);
    }
    atomic_store(&walker->progress.bytes, 0);
    atomic_store(&walker->progress.keys, 0);
    atomic_store(&walker->cancelled, false);
    atomic_store(&walker->lags, false);
    walker->phase = PHASE_WALKS;
    if (job->part != NULL) {
        walker->job.begin.keys = SNAPSHOT_KEYS_UNKNOWN; /* nobody counts it */
    }
    walker->end = walker->job.begin;
    walk_begin(walker->walk, job->begin.position, job->part);
    walker->walks = true;
}

void
walker_start(struct walker *walker, const struct walker_job *job)
{
    begin_walk(walker, job);
    walker->running = true;
    task_start(walker->task, run_walk, walker);
}

int
walker_write_here(struct walker *walker, const struct walker_job *job)
{
    CHECK(job->still && !job->to_pipe);
    begin_walk(walker, job);
    run_walk(walker);
    walker_drop(walker);
    return walker->error;
}

bool
walker_is_running(struct walker *walker)
{
    return walker->running;
}

bool
walker_is_through(struct walker *walker)
{
    bool through;

    pthread_mutex_lock(&walker->mutex);
    through = walker->running && walker->phase == PHASE_THROUGH;
    pthread_mutex_unlock(&walker->mutex);
    return through;
}

bool
walker_is_even(const struct walker *walker)
{
    return !walk_has_again(walker->walk);
}

bool
walker_lags(const struct walker *walker)
{
    return walker->walks && atomic_load(&walker->lags);
}

static void
move_on(struct walker *walker, enum phase phase)
{
    pthread_mutex_lock(&walker->mutex);
    CHECK(walker->phase == PHASE_THROUGH);
    walker->phase = phase;
    pthread_cond_signal(&walker->moved);
    pthread_mutex_unlock(&walker->mutex);
}

void
walker_end(struct walker *walker, const struct snapshot_stamp *end)
{
    walker->end = *end; /* the thread waits */
    if (walker->job.part != NULL) {
        walker->end.keys = SNAPSHOT_KEYS_UNKNOWN; /* nobody counts a part */
    }
    walker_drop(walker);
    move_on(walker, PHASE_ENDS);
}

void
walker_go_on(struct walker *walker)
{
    atomic_store(&walker->lags, true);
    move_on(walker, PHASE_WALKS);
}

bool
walker_has_walk(const struct walker *walker)
{
    return walker->walks;
}

void
walker_drop(struct walker *walker)
{
    walk_end(walker->walk);
    walker->walks = false;
}

bool
walker_reap(struct walker *walker, int *ret_error)
{
    if (!walker->running || task_is_running(walker->task)) {
        return false;
    }
    walker->running = false;
    *ret_error = walker->error;
    return true;
}

void
walker_cancel(struct walker *walker)
{
    pthread_mutex_lock(&walker->mutex);
    atomic_store(&walker->cancelled, true);
    pthread_cond_signal(&walker->moved);
    pthread_mutex_unlock(&walker->mutex);
}

void
walker_get_figures(struct walker *walker, struct walker_figures *ret_figures)
{
    struct walk_figures walked = walk_figures(walker->walk);

    *ret_figures = (struct walker_figures){
        .bytes = atomic_load(&walker->progress.bytes),
        .keys = atomic_load(&walker->progress.keys),
        .keys_total = walker->job.begin.keys,
        .holds = walked.holds,
        .rounds = walked.rounds,
        .spool_bytes = spool_bytes(walker->spool),
    };
}
