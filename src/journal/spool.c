/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The bytes lie in chunks: full ones, of which the thread takes the oldest, and
 * the one that is being filled. A chunk has parts of groups. Before each part,
 * a head says how many bytes it has, and whether it ends its group. Positions
 * need not be stored: the spool has every byte of the log since its beginning
 * except the seals, which all have the same length.
 */
#include "journal/spool.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "journal/group.h"

#include <errno.h>
#include <pthread.h>

enum {
    CHUNK_BYTES = 256 << 10,
    KEPT_BYTES =
        4 << 20, /* so much stays in memory, so that short walks need no file */
    GROUP_KEPT_BYTES = 2 << 20
};

struct part {
    uint32_t bytes, last;
};

struct spool_chunk {
    struct spool_chunk *next;
    uint64_t used;
    char data[CHUNK_BYTES];
};

struct spool {
    pthread_t thread;
    void (*poke)(void *ctx);
    void *poke_ctx;
    pthread_mutex_t mutex; /* locked inside the journal's; guards the rest */
    pthread_cond_t work, idle;
    bool stop, moving; /* moving: the thread writes a chunk */
    int error;
    /* fd is -1 without a file. While `moving`, only the thread uses it. */
    int dir_fd, fd;
    uint64_t limit_bytes, memory_bytes, file_bytes;
    bool crowded; /* set above three quarters of the limit, cleared below a half
                   */
    bool begun;
    uint64_t position, sequence; /* where the spool begins */
    struct spool_chunk *oldest, *newest;
    char *part; /* head of the open part, in the newest chunk; NULL: none */
    bool open_group;
};

static void
look_at_limit(struct spool *spool)
{
    uint64_t limit = spool->limit_bytes;
    bool crowded = spool->memory_bytes > limit / 2 &&
                   (spool->crowded || spool->memory_bytes > limit / 4 * 3);

    if (crowded != spool->crowded) {
        spool->crowded = crowded;
        spool->poke(spool->poke_ctx);
    }
}

/* ---- the thread ---------------------------------------------------------- */

static int
write_chunk(struct spool *spool, const struct spool_chunk *chunk)
{
    int error = 0;

    if (spool->fd < 0) {
        error = file_create_unnamed(spool->dir_fd, &spool->fd);
    }
    return error == 0 ? file_write(spool->fd, &chunk->used,
                                   sizeof(chunk->used) + (size_t)chunk->used)
                      : error;
}

static bool
has_work(const struct spool *spool)
{
    return spool->memory_bytes > KEPT_BYTES && spool->error == 0 &&
           spool->oldest != spool->newest;
}

/* Moves the oldest chunk to the file. The mutex is locked at its beginning and
 * end. */
static void
move_chunk(struct spool *spool)
{
    struct spool_chunk *chunk = spool->oldest;
    int error;

    spool->oldest = chunk->next;
    spool->moving = true;
    pthread_mutex_unlock(&spool->mutex);
    error = write_chunk(spool, chunk);
    pthread_mutex_lock(&spool->mutex);
    spool->moving = false;
    spool->memory_bytes -= sizeof(*chunk);
    look_at_limit(spool);
    if (error == 0) {
        spool->file_bytes += sizeof(chunk->used) + chunk->used;
    } else if (spool->error == 0) {
        spool->error = error;
    }
    pthread_cond_broadcast(&spool->idle);
    mem_free(chunk);
}

static void *
run_spool(void *arg)
{
    struct spool *spool = arg;

    pthread_mutex_lock(&spool->mutex);
    while (!spool->stop) {
        if (has_work(spool)) {
            move_chunk(spool);
        } else {
            pthread_cond_wait(&spool->work, &spool->mutex);
        }
    }
    pthread_mutex_unlock(&spool->mutex);
    metric_thread_exit();
    return NULL;
}

/* ---- life ---------------------------------------------------------------- */

struct spool *
spool_new(void (*poke)(void *ctx), void *ctx)
{
    struct spool *spool = mem_zalloc(sizeof(*spool));

    spool->poke = poke;
    spool->poke_ctx = ctx;
    CHECK(pthread_mutex_init(&spool->mutex, NULL) == 0);
    CHECK(pthread_cond_init(&spool->work, NULL) == 0);
    CHECK(pthread_cond_init(&spool->idle, NULL) == 0);
    spool->fd = -1;
    thread_must_start(&spool->thread, "spool", run_spool, spool);
    return spool;
}

static void
wait_idle(struct spool *spool)
{
    while (spool->moving) {
        pthread_cond_wait(&spool->idle, &spool->mutex);
    }
}

void
spool_close(struct spool *spool)
{
    struct spool_chunk *chunk;
    int fd;

    pthread_mutex_lock(&spool->mutex);
    wait_idle(spool);
    chunk = spool->oldest;
    fd = spool->fd;
    spool->oldest = spool->newest = NULL;
    spool->part = NULL;
    spool->open_group = spool->begun = false;
    spool->fd = -1;
    spool->memory_bytes = spool->file_bytes = 0;
    spool->crowded = false;
    pthread_mutex_unlock(&spool->mutex);
    file_close(fd);
    while (chunk != NULL) {
        struct spool_chunk *next = chunk->next;

        mem_free(chunk);
        chunk = next;
    }
}

void
spool_free(struct spool *spool)
{
    if (spool == NULL) {
        return;
    }
    pthread_mutex_lock(&spool->mutex);
    spool->stop = true;
    pthread_cond_signal(&spool->work);
    pthread_mutex_unlock(&spool->mutex);
    CHECK(pthread_join(spool->thread, NULL) == 0);
    spool_close(spool);
    pthread_cond_destroy(&spool->idle);
    pthread_cond_destroy(&spool->work);
    pthread_mutex_destroy(&spool->mutex);
    mem_free(spool);
}

void
spool_open(struct spool *spool, int dir_fd, uint64_t limit_bytes)
{
    spool_close(spool);
    pthread_mutex_lock(&spool->mutex);
    spool->error = 0;
    spool->dir_fd = dir_fd;
    spool->limit_bytes = limit_bytes;
    pthread_mutex_unlock(&spool->mutex);
}

int
spool_error(struct spool *spool)
{
    int error;

    pthread_mutex_lock(&spool->mutex);
    error = spool->error;
    pthread_mutex_unlock(&spool->mutex);
    return error;
}

bool
spool_is_crowded(struct spool *spool)
{
    bool crowded;

    pthread_mutex_lock(&spool->mutex);
    crowded = spool->crowded;
    pthread_mutex_unlock(&spool->mutex);
    return crowded;
}

uint64_t
spool_bytes(struct spool *spool)
{
    uint64_t bytes;

    pthread_mutex_lock(&spool->mutex);
    bytes = spool->memory_bytes + spool->file_bytes;
    pthread_mutex_unlock(&spool->mutex);
    return bytes;
}

/* ---- the tap; under the journal's mutex ---------------------------------- */

static void
fail_spool(struct spool *spool, int error)
{
    if (spool->error == 0) {
        spool->error = error;
    }
}

static void
on_begin(void *ctx, uint64_t position, uint64_t sequence)
{
    struct spool *spool = ctx;

    pthread_mutex_lock(&spool->mutex);
    if (spool->begun) {
        fail_spool(spool, ESTALE);
    }
    spool->begun = true;
    spool->position = position;
    spool->sequence = sequence;
    pthread_mutex_unlock(&spool->mutex);
}

/* Adds a chunk. False: the spool has failed. */
static bool
add_chunk(struct spool *spool)
{
    struct spool_chunk *chunk;

    spool->part = NULL;
    if (spool->memory_bytes + sizeof(*chunk) > spool->limit_bytes) {
        fail_spool(spool, ENOBUFS);
        return false;
    }
    chunk = mem_try_alloc(sizeof(*chunk));
    if (chunk == NULL) {
        fail_spool(spool, ENOMEM);
        return false;
    }
    chunk->next = NULL;
    chunk->used = 0;
    spool->memory_bytes += sizeof(*chunk);
    look_at_limit(spool);
    if (spool->oldest == NULL || spool->newest == NULL) {
        spool->oldest = chunk;
    } else {
        spool->newest->next = chunk;
    }
    spool->newest = chunk;
    if (has_work(spool) && !spool->moving) {
        pthread_cond_signal(&spool->work);
    }
    return true;
}

/* Returns space for the next bytes in an open part, at least one byte. 0: the
 * spool has failed. */
static size_t
make_space(struct spool *spool)
{
    struct spool_chunk *chunk = spool->newest;

    if (spool->part != NULL && chunk->used < CHUNK_BYTES) {
        return (size_t)(CHUNK_BYTES - chunk->used);
    }
    if (spool->part != NULL || chunk == NULL ||
        CHUNK_BYTES - chunk->used <= sizeof(struct part)) {
        if (!add_chunk(spool)) {
            return 0;
        }
        chunk = spool->newest;
    }
    spool->part = chunk->data + chunk->used;
    memset(spool->part, 0, sizeof(struct part));
    chunk->used += sizeof(struct part);
    return (size_t)(CHUNK_BYTES - chunk->used);
}

static void
change_part(struct spool *spool, uint32_t more, bool last)
{
    struct part part;

    memcpy(&part, spool->part, sizeof(part));
    part.bytes += more;
    part.last = last;
    memcpy(spool->part, &part, sizeof(part));
}

static void
on_text(void *ctx, struct slice bytes)
{
    struct spool *spool = ctx;

    pthread_mutex_lock(&spool->mutex);
    spool->open_group = true;
    while (bytes.len > 0 && spool->error == 0) {
        size_t step = make_space(spool);

        if (step == 0) {
            break;
        }
        step = step < bytes.len ? step : bytes.len;
        memcpy(spool->newest->data + spool->newest->used, bytes.data, step);
        spool->newest->used += step;
        change_part(spool, (uint32_t)step, false);
        bytes.data += step;
        bytes.len -= step;
    }
    pthread_mutex_unlock(&spool->mutex);
}

static void
on_close(void *ctx, uint64_t sequence, const char *seal)
{
    struct spool *spool = ctx;

    (void)sequence;
    (void)seal;
    pthread_mutex_lock(&spool->mutex);
    if (spool->open_group && spool->error == 0) {
        CHECK(spool->part != NULL); /* the newest chunk stays in memory */
        change_part(spool, 0, true);
    }
    spool->part = NULL;
    spool->open_group = false;
    pthread_mutex_unlock(&spool->mutex);
}

struct journal_tap
spool_tap(struct spool *spool)
{
    return (struct journal_tap){ on_begin, on_text, on_close, spool };
}

/* ---- reading ------------------------------------------------------------- */

struct reader {
    spool_group_fn fn;
    void *ctx;
    uint64_t position, sequence; /* the end of the last whole group */
    struct buf group;            /* the parts of the present group */
};

static int
read_chunk(struct reader *reader, const struct spool_chunk *chunk)
{
    const char *at = chunk->data;
    const char *end = at + chunk->used;
    int error = 0;

    while (at < end && error == 0) {
        struct part part;

        memcpy(&part, at, sizeof(part));
        buf_append(&reader->group, at + sizeof(part), part.bytes);
        at += sizeof(part) + part.bytes;
        if (reader->group.failed) {
            return ENOMEM;
        }
        if (part.last) {
            error = reader->fn(reader->ctx, reader->position,
                               ++reader->sequence, buf_slice(&reader->group));
            reader->position += reader->group.len + GROUP_SEAL_BYTES;
            buf_reset(&reader->group, GROUP_KEPT_BYTES);
        }
    }
    return error;
}

/* Reads the chunks of the file. Each one follows its length. */
static int
read_file(struct spool *spool, struct reader *reader)
{
    struct spool_chunk *chunk;
    uint64_t at = 0;
    int error = 0;
    size_t len;

    if (spool->file_bytes == 0) {
        return 0;
    }
    chunk = mem_try_alloc(sizeof(*chunk));
    if (chunk == NULL) {
        return ENOMEM;
    }
    while (at < spool->file_bytes && error == 0) {
        error = file_read_at(spool->fd, &chunk->used, sizeof(chunk->used), at,
                             &len);
        if (error == 0) {
            CHECK(chunk->used <= CHUNK_BYTES);
            at += sizeof(chunk->used);
            error = file_read_at(spool->fd, chunk->data, (size_t)chunk->used,
                                 at, &len);
            at += chunk->used;
        }
        if (error == 0) {
            error = read_chunk(reader, chunk);
        }
    }
    mem_free(chunk);
    return error;
}

int
spool_read(struct spool *spool, spool_group_fn fn, void *ctx)
{
    struct reader reader = { .fn = fn, .ctx = ctx };
    int error;

    pthread_mutex_lock(&spool->mutex);
    wait_idle(spool);
    error = spool->error;
    /* After an error the thread moves no more chunks. */
    spool->error = error == 0 ? ESTALE : error;
    pthread_mutex_unlock(&spool->mutex);
    reader.position = spool->position;
    reader.sequence = spool->sequence;
    if (error == 0) {
        error = read_file(spool, &reader);
    }
    for (const struct spool_chunk *chunk = spool->oldest;
         chunk != NULL && error == 0; chunk = chunk->next) {
        error = read_chunk(&reader, chunk);
    }
    buf_free(&reader.group);
    return error;
}
