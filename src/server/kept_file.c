/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/kept_file.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/file_room.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { RETRY_MS_MIN = 100, RETRY_MS_MAX = 5000, TEXT_BYTES_MAX = 2 << 20 };

struct kept_file {
    struct kept_file_options options;
    char *dir;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t work;
    char *newest;
    bool stop;
    uint64_t asked; /* the last ticket */
    /* The thread's: the last tickets that it attempted and that it stored. */
    _Atomic uint64_t tried, kept;
    uint64_t retry_ms; /* pause before the next attempt; 0: none has failed */
    bool roomless;     /* there should be room, and is none */
};

/* Reserves blocks for the next text. The disk may be full: then later attempts
 * do it. Under the mutex, which it unlocks meanwhile. */
static void
make_room(struct kept_file *file)
{
    int fd = -1;
    int error;

    if (file->options.room_bytes == 0) {
        return;
    }
    pthread_mutex_unlock(&file->mutex);
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
    pthread_mutex_lock(&file->mutex);
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
    } else if (file->retry_ms > 0) {
        log_notice("server.kept", file->options.mended_event, "file=\"%s/%s\"",
                   file->dir, file->options.name);
    }
}

static uint64_t
next_retry_ms(uint64_t retry_ms)
{
    if (retry_ms == 0) {
        return RETRY_MS_MIN;
    }
    return retry_ms < RETRY_MS_MAX / 2 ? retry_ms * 2 : RETRY_MS_MAX;
}

/* Stores the newest text. Under the mutex, which it unlocks meanwhile. */
static void
attempt(struct kept_file *file)
{
    char *text = mem_copy_text(slice_of(file->newest));
    uint64_t ticket = file->asked;
    int error;

    pthread_mutex_unlock(&file->mutex);
    error = store(file, text);
    mem_free(text);
    log_outcome(file, error);
    file->retry_ms = error != 0 ? next_retry_ms(file->retry_ms) : 0;
    if (error == 0) {
        atomic_store(&file->kept, ticket);
    }
    atomic_store(&file->tried, ticket);
    file->options.written(file->options.ctx);
    pthread_mutex_lock(&file->mutex);
}

/* Waits for a new text, or for the time of the next attempt. Under the
 * mutex. */
static void
wait_for_work(struct kept_file *file)
{
    uint64_t pause_ms = file->retry_ms > 0 ? file->retry_ms
                        : file->roomless   ? RETRY_MS_MAX
                                           : 0;
    uint64_t until_ns = clock_mono_ns() + pause_ms * 1000000;
    struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000),
                              .tv_nsec = (long)(until_ns % 1000000000) };
    int rc = 0;

    while (!file->stop && file->asked == file->tried && rc == 0) {
        rc = pause_ms > 0
                 ? pthread_cond_timedwait(&file->work, &file->mutex, &until)
                 : pthread_cond_wait(&file->work, &file->mutex);
    }
}

static void *
run(void *arg)
{
    struct kept_file *file = arg;
    bool stop = false;

    pthread_mutex_lock(&file->mutex);
    make_room(file);
    while (!stop) {
        wait_for_work(file);
        stop = file->stop;
        if (file->asked > file->kept) {
            attempt(file);
        }
        make_room(file);
    }
    pthread_mutex_unlock(&file->mutex);
    metric_thread_exit();
    return NULL;
}

/* Reads the text that an earlier life has left, if there is one. Its owner has
 * read it, too, and has refused a bad one. */
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
    pthread_condattr_t monotonic;

    file->options = *options;
    file->dir = mem_copy_text(slice_of(options->dir));
    file->newest = read_text(options);
    CHECK(pthread_mutex_init(&file->mutex, NULL) == 0);
    CHECK(pthread_condattr_init(&monotonic) == 0);
    CHECK(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(&file->work, &monotonic) == 0);
    pthread_condattr_destroy(&monotonic);
    thread_must_start(&file->thread, options->thread, run, file);
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
    pthread_cond_signal(&file->work);
    pthread_mutex_unlock(&file->mutex);
    CHECK(pthread_join(file->thread, NULL) == 0);
    pthread_cond_destroy(&file->work);
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
    file->asked++;
    ticket = file->asked;
    pthread_cond_signal(&file->work);
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
        ticket = ++file->asked;
        pthread_cond_signal(&file->work);
    }
    pthread_mutex_unlock(&file->mutex);
    return ticket;
}

int
kept_file_outcome(const struct kept_file *file, uint64_t ticket)
{
    bool tried = atomic_load(&file->tried) >= ticket; /* before kept */

    if (atomic_load(&file->kept) >= ticket) {
        return 1;
    }
    return tried ? -1 : 0;
}
