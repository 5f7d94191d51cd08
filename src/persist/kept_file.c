/* SPDX-License-Identifier: BSD-3-Clause */
#include "persist/kept_file.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/task.h"
#include "persist/file_room.h"
#include "persist/retry.h"

#include <pthread.h>
#include <stdatomic.h>

enum { TEXT_BYTES_MAX = 2 << 20 };
#define RETRY_FIRST_NS 100000000ULL
#define RETRY_MAX_NS   5000000000ULL

struct kept_file {
    struct kept_file_options options;
    char *dir;
    struct task *task;
    pthread_mutex_t mutex; /* guards what follows; is locked before the task's
                              mutex */
    char *newest;
    bool stop;
    bool started;   /* the task runs: it has not called `done` yet */
    uint64_t asked; /* the last ticket */
    /* Set by the task: the last ticket that it attempted, and the last one that
     * it stored. */
    _Atomic uint64_t tried, kept;
    struct retry retry; /* for writes that failed */
    bool roomless;      /* room_bytes could not be reserved */
};

/* Reserves blocks for the next text. If the disk is full, later attempts do it.
 */
static void
make_disk_room(void *arg)
{
    struct kept_file *file = arg;
    int fd = -1;
    int error;

    if (file->options.room_bytes == 0) {
        return;
    }
    error = file_open_dir(file->dir, false, &fd);
    if (error == 0) {
        error =
            file_room_make(fd, file->options.name, file->options.room_bytes);
        file_close(fd);
    }
    if (error != 0 && !file->roomless) {
        log_warn("server.kept", "has no room for this file on a full disk",
                 "file=\"%s/%s" FILE_ROOM_SUFFIX "\" reason=\"%s\" "
                 "next=\"free space: until then a full disk stops writes of "
                 "the file\"",
                 file->dir, file->options.name, strerror(error));
    }
    file->roomless = error != 0;
}

/* Replaces the file. Returns 0 or errno. */
static int
store(const struct kept_file *file, const char *text)
{
    int fd = -1;
    int error = file_open_dir(file->dir, false, &fd);

    if (error == 0) {
        error = file->options.room_bytes == 0
                    ? file_replace(fd, file->options.name, slice_of(text))
                    : file_room_replace(fd, file->options.name, slice_of(text),
                                        file->options.room_bytes);
        file_close(fd);
    }
    return error;
}

static void
log_outcome(const struct kept_file *file, int error)
{
    if (error != 0) {
        log_repeated(LOG_ERROR, "server.kept", file->options.failed_event,
                     "file=\"%s/%s\" reason=\"%s\"", file->dir,
                     file->options.name, strerror(error));
    } else if (file->retry.failures > 0) {
        log_notice("server.kept", file->options.mended_event, "file=\"%s/%s\"",
                   file->dir, file->options.name);
    }
}

static void
note_outcome(struct kept_file *file, uint64_t ticket, int error)
{
    log_outcome(file, error);
    if (error != 0) {
        retry_failed(&file->retry, RETRY_FIRST_NS, RETRY_MAX_NS);
    } else {
        file->retry = (struct retry){ 0 };
        atomic_store(&file->kept, ticket);
    }
    atomic_store(&file->tried, ticket);
    file->options.written(file->options.ctx);
}

/* Stores the newest text, if it is not on the disk, and reserves blocks. */
static void
attempt(void *arg)
{
    struct kept_file *file = arg;
    char *text = NULL;
    uint64_t ticket;

    pthread_mutex_lock(&file->mutex);
    ticket = file->asked;
    if (ticket > file->kept) {
        text = mem_copy_text(slice_of(file->newest));
    }
    pthread_mutex_unlock(&file->mutex);
    if (text != NULL) {
        note_outcome(file, ticket, store(file, text));
        mem_free(text);
    }
    make_disk_room(file);
}

/* Starts the next attempt: at once for a new text, later if a text could not be
 * written or blocks could not be reserved. */
static void
on_attempted(void *ctx)
{
    struct kept_file *file = ctx;
    uint64_t time_ns = 0;
    bool is_new;

    pthread_mutex_lock(&file->mutex);
    is_new = file->asked > file->tried;
    if (!is_new) {
        time_ns = file->asked > file->kept ? file->retry.not_before_ns
                                           : clock_mono_ns() + RETRY_MAX_NS;
    }
    file->started =
        is_new || (!file->stop && (file->asked > file->kept || file->roomless));
    if (file->started) {
        task_start_at(file->task, attempt, file, time_ns);
    }
    pthread_mutex_unlock(&file->mutex);
}

/* Passes the newest text to the task, under the mutex. Returns its ticket. */
static uint64_t
ask_task(struct kept_file *file)
{
    if (file->started) {
        task_hurry(file->task);
    } else {
        task_start(file->task, attempt, file);
        file->started = true;
    }
    return ++file->asked;
}

/* Reads the text that an earlier run of the server has left, if there is one.
 * Its owner has read it, too, and has refused a bad one. */
static char *
read_text(const struct kept_file_options *options)
{
    char *text = mem_alloc(TEXT_BYTES_MAX + 1);
    char *copy = NULL;
    size_t len = 0;
    int fd = -1;

    if (file_open_dir(options->dir, false, &fd) == 0 &&
        file_read_name(fd, options->name, text, TEXT_BYTES_MAX, &len) == 0 &&
        len <= TEXT_BYTES_MAX) {
        copy = mem_copy_text((struct slice){ text, len });
    }
    file_close(fd);
    mem_free(text);
    return copy;
}

struct kept_file *
kept_file_new(const struct kept_file_options *options)
{
    struct kept_file *file = mem_zalloc(sizeof(*file));

    file->options = *options;
    file->dir = mem_copy_text(slice_of(options->dir));
    file->newest = read_text(options);
    CHECK(pthread_mutex_init(&file->mutex, NULL) == 0);
    file->task = task_new(options->thread, on_attempted, file);
    file->started = true;
    task_start(file->task, make_disk_room, file);
    return file;
}

void
kept_file_free(struct kept_file *file)
{
    if (file == NULL) {
        return;
    }
    pthread_mutex_lock(&file->mutex);
    file->stop = true;
    pthread_mutex_unlock(&file->mutex);
    task_free(file->task);
    pthread_mutex_destroy(&file->mutex);
    mem_free(file->newest);
    mem_free(file->dir);
    mem_free(file);
}

uint64_t
kept_file_write(struct kept_file *file, struct slice text)
{
    char *copy = mem_copy_text(text);
    char *old;
    uint64_t ticket;

    pthread_mutex_lock(&file->mutex);
    old = file->newest;
    file->newest = copy;
    ticket = ask_task(file);
    pthread_mutex_unlock(&file->mutex);
    mem_free(old);
    return ticket;
}

uint64_t
kept_file_write_again(struct kept_file *file)
{
    uint64_t ticket = 0;

    pthread_mutex_lock(&file->mutex);
    if (file->newest != NULL) {
        ticket = ask_task(file);
    }
    pthread_mutex_unlock(&file->mutex);
    return ticket;
}

int
kept_file_outcome(const struct kept_file *file, uint64_t ticket)
{
    /* Must be read before `kept`. */
    bool tried = atomic_load(&file->tried) >= ticket;

    if (atomic_load(&file->kept) >= ticket) {
        return 1;
    }
    return tried ? -1 : 0;
}
