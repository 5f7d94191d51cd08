/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The thread takes one block of the queue at a time, and owns the file. If it
 * fails, the bytes that follow are dropped.
 */
#include "persist/incoming.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/task.h"

#include <errno.h>
#include <pthread.h>

enum {
    QUEUE_BYTES = 16 << 20, /* above it, the source waits */
    WRITING_BYTES = 8 << 20 /* after so many bytes the disk begins to write */
};

struct incoming_block {
    struct incoming_block *next;
    void *memory;
    struct slice bytes;
};

struct incoming {
    struct task *task;
    const char *dir, *name;
    /* The thread's: */
    int fd;
    uint64_t written, asked; /* bytes written, and how many of them the disk was
                                asked to write */

    pthread_mutex_t mutex; /* guards what follows; a leaf */
    pthread_cond_t moved;
    struct incoming_block *first, *last;
    size_t queued;
    bool ended, good, cancelled;
    enum incoming_state state;
    int error;
};

struct incoming *
incoming_new(void (*done)(void *ctx), void *ctx)
{
    struct incoming *incoming = mem_zalloc(sizeof(*incoming));

    incoming->fd = -1;
    CHECK(pthread_mutex_init(&incoming->mutex, NULL) == 0);
    CHECK(pthread_cond_init(&incoming->moved, NULL) == 0);
    incoming->task = task_new("arrival", done, ctx);
    return incoming;
}

/* ---- the source ---------------------------------------------------------- */

static bool
is_wanted(const struct incoming *incoming)
{
    return incoming->state == INCOMING_RUNS && incoming->error == 0 &&
           !incoming->cancelled;
}

static void
take_block(void *ctx, void *memory, struct slice bytes)
{
    struct incoming *incoming = ctx;
    struct incoming_block *block = mem_try_alloc(sizeof(*block));

    pthread_mutex_lock(&incoming->mutex);
    while (is_wanted(incoming) && incoming->queued >= QUEUE_BYTES) {
        pthread_cond_wait(&incoming->moved, &incoming->mutex);
    }
    if (!is_wanted(incoming) || block == NULL) {
        incoming->error = is_wanted(incoming) ? ENOMEM : incoming->error;
        pthread_cond_broadcast(&incoming->moved);
        pthread_mutex_unlock(&incoming->mutex);
        mem_free(block);
        mem_free(memory);
        return;
    }
    *block = (struct incoming_block){ NULL, memory, bytes };
    if (incoming->last != NULL) {
        incoming->last->next = block;
    } else {
        incoming->first = block;
    }
    incoming->last = block;
    incoming->queued += bytes.len;
    pthread_cond_broadcast(&incoming->moved);
    pthread_mutex_unlock(&incoming->mutex);
}

static void
end_input(void *ctx, bool good)
{
    struct incoming *incoming = ctx;

    pthread_mutex_lock(&incoming->mutex);
    incoming->ended = true;
    incoming->good = good;
    pthread_cond_broadcast(&incoming->moved);
    pthread_mutex_unlock(&incoming->mutex);
}

struct transfer_copy
incoming_copy(struct incoming *incoming)
{
    return (struct transfer_copy){ take_block, end_input, incoming };
}

/* ---- the thread ---------------------------------------------------------- */

/* Waits for a block. NULL: there are no more. */
static struct incoming_block *
next_block(struct incoming *incoming)
{
    struct incoming_block *block;

    pthread_mutex_lock(&incoming->mutex);
    while (incoming->first == NULL && !incoming->ended && is_wanted(incoming)) {
        pthread_cond_wait(&incoming->moved, &incoming->mutex);
    }
    block = is_wanted(incoming) ? incoming->first : NULL;
    if (block != NULL) {
        incoming->first = block->next;
        incoming->last = block->next != NULL ? incoming->last : NULL;
    }
    pthread_mutex_unlock(&incoming->mutex);
    return block;
}

static void
note_written(struct incoming *incoming, size_t bytes, int error)
{
    pthread_mutex_lock(&incoming->mutex);
    incoming->queued -= bytes;
    incoming->error = incoming->error != 0 ? incoming->error : error;
    pthread_cond_broadcast(&incoming->moved);
    pthread_mutex_unlock(&incoming->mutex);
}

static void
write_block(struct incoming *incoming, struct incoming_block *block)
{
    int error = file_write(incoming->fd, block->bytes.data, block->bytes.len);
    size_t bytes = block->bytes.len;

    mem_free(block->memory);
    mem_free(block);
    incoming->written += bytes;
    if (incoming->written - incoming->asked >= WRITING_BYTES) {
        file_start_writing(incoming->fd, incoming->asked,
                           incoming->written - incoming->asked);
        incoming->asked = incoming->written;
    }
    note_written(incoming, bytes, error);
}

static void
drop_blocks(struct incoming *incoming)
{
    while (incoming->first != NULL) {
        struct incoming_block *block = incoming->first;

        incoming->first = block->next;
        mem_free(block->memory);
        mem_free(block);
    }
    incoming->last = NULL;
    incoming->queued = 0;
}

/* Decides under the mutex whether the file is kept, so that blocks that arrive
 * later are dropped. Returns whether the file is still wanted. */
static bool
settle_file(struct incoming *incoming)
{
    bool ready = is_wanted(incoming) && incoming->good;

    incoming->state = ready                 ? INCOMING_READY
                      : incoming->cancelled ? INCOMING_NONE
                                            : INCOMING_FAILED;
    drop_blocks(incoming);
    pthread_cond_broadcast(&incoming->moved);
    return ready;
}

static void
remove_file(void *arg)
{
    struct incoming *incoming = arg;
    int dir_fd = -1;

    if (file_open_dir(incoming->dir, false, &dir_fd) == 0) {
        (void)!file_unlink(dir_fd, incoming->name);
        file_close(dir_fd);
    }
}

/* Creates the file. The directory at the path may be another one meanwhile:
 * then persist will find no file. */
static int
create(struct incoming *incoming)
{
    int dir_fd = -1;
    int error = file_open_dir(incoming->dir, false, &dir_fd);

    if (error == 0) {
        error = file_create(dir_fd, incoming->name, &incoming->fd);
        file_close(dir_fd);
    }
    return error;
}

static void
run_blocks(void *arg)
{
    struct incoming *incoming = arg;
    struct incoming_block *block;
    int error = create(incoming);
    bool ready;

    note_written(incoming, 0, error);
    while ((block = next_block(incoming)) != NULL) {
        write_block(incoming, block);
    }
    pthread_mutex_lock(&incoming->mutex);
    ready = is_wanted(incoming) && incoming->good;
    pthread_mutex_unlock(&incoming->mutex);
    if (ready) {
        note_written(incoming, 0, file_sync(incoming->fd));
    }
    file_close(incoming->fd);
    incoming->fd = -1;
    pthread_mutex_lock(&incoming->mutex);
    ready = settle_file(incoming);
    pthread_mutex_unlock(&incoming->mutex);
    if (!ready && error == 0) {
        remove_file(incoming);
    }
}

/* ---- loop 0 -------------------------------------------------------------- */

bool
incoming_begin(struct incoming *incoming, const char *dir, const char *name)
{
    if (task_is_running(incoming->task)) {
        return false;
    }
    incoming->dir = dir;
    incoming->name = name;
    incoming->written = incoming->asked = 0;
    incoming->ended = incoming->good = incoming->cancelled = false;
    incoming->error = 0;
    incoming->state = INCOMING_RUNS;
    task_start(incoming->task, run_blocks, incoming);
    return true;
}

void
incoming_cancel(struct incoming *incoming)
{
    bool stored;

    pthread_mutex_lock(&incoming->mutex);
    stored = incoming->state == INCOMING_READY;
    incoming->cancelled = true;
    if (incoming->state != INCOMING_RUNS) {
        incoming->state = INCOMING_NONE;
    }
    pthread_cond_broadcast(&incoming->moved);
    pthread_mutex_unlock(&incoming->mutex);
    if (stored) {
        task_wait(incoming->task); /* the task has nearly ended */
        task_start(incoming->task, remove_file, incoming);
    }
}

enum incoming_state
incoming_state(struct incoming *incoming, int *ret_error)
{
    enum incoming_state state;

    pthread_mutex_lock(&incoming->mutex);
    state = incoming->cancelled ? INCOMING_NONE : incoming->state;
    *ret_error = incoming->error;
    pthread_mutex_unlock(&incoming->mutex);
    return state;
}

void
incoming_forget(struct incoming *incoming)
{
    pthread_mutex_lock(&incoming->mutex);
    CHECK(incoming->state != INCOMING_RUNS);
    incoming->state = INCOMING_NONE;
    pthread_mutex_unlock(&incoming->mutex);
}

void
incoming_free(struct incoming *incoming)
{
    if (incoming == NULL) {
        return;
    }
    incoming_cancel(incoming);
    task_free(incoming->task);
    (void)pthread_cond_destroy(&incoming->moved);
    (void)pthread_mutex_destroy(&incoming->mutex);
    mem_free(incoming);
}
