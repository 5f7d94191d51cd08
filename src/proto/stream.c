/* SPDX-License-Identifier: BSD-3-Clause
 *
 * At a command boundary the scanner is tried first. A command that it leaves
 * goes to a partial: an arena with a reader (first byte '*') or a line (any
 * other). The partial returns to the pool when its command has been executed,
 * so that an idle connection has no memory here.
 */
#include "proto/stream.h"

#include "base/mem.h"
#include "proto/inline.h"
#include "proto/reader.h"
#include "proto/scan.h"

enum {
    POOL_IDLE_MAX = 32,
    KEEP_BYTES = 8 * 1024, /* of arena and line, in an idle partial */
    LONG_ARGC = 4096       /* from here on the partial keeps the slices */
};

struct partial {
    struct partial *next;  /* in the pool */
    struct reader *reader; /* NULL until a multibulk command needs it */
    struct buf line;       /* of an unfinished inline command */
    struct arena arena;
    struct slice *argv; /* of a complete command above LONG_ARGC; or NULL */
    bool is_inline;
    bool is_complete; /* the arena has a command to execute */
};

struct stream_pool {
    struct partial *idle;
    size_t idle_count;
};

struct stream_pool *
stream_pool_new(void)
{
    return mem_zalloc(sizeof(struct stream_pool));
}

static void
partial_free(struct partial *partial)
{
    reader_free(partial->reader);
    buf_free(&partial->line);
    arena_fini(&partial->arena);
    mem_free(partial->argv);
    mem_free(partial);
}

void
stream_pool_free(struct stream_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    while (pool->idle != NULL) {
        struct partial *partial = pool->idle;

        pool->idle = partial->next;
        partial_free(partial);
    }
    mem_free(pool);
}

static enum err
attach(struct stream *stream, struct stream_pool *pool, char first_byte)
{
    struct partial *partial = pool->idle;

    if (partial != NULL) {
        pool->idle = partial->next;
        pool->idle_count--;
    } else {
        partial = mem_try_zalloc(sizeof(*partial));
        if (partial == NULL) {
            return ERR_NOMEM;
        }
    }
    stream->partial = partial;
    partial->is_inline = first_byte != '*';
    if (!partial->is_inline && partial->reader == NULL) {
        partial->reader = reader_new();
        if (partial->reader == NULL) {
            return ERR_NOMEM; /* stream_fini frees the partial */
        }
    }
    return OK;
}

/* Returns the partial to the pool; only at a command boundary. */
static void
detach(struct stream *stream, struct stream_pool *pool)
{
    struct partial *partial = stream->partial;

    stream->partial = NULL;
    if (pool->idle_count == POOL_IDLE_MAX) {
        partial_free(partial);
        return;
    }
    if (partial->reader != NULL && !reader_is_reusable(partial->reader)) {
        reader_free(partial->reader);
        partial->reader = NULL;
    }
    mem_free(partial->argv);
    partial->argv = NULL;
    buf_reset(&partial->line, KEEP_BYTES);
    arena_reset(&partial->arena, KEEP_BYTES);
    partial->is_complete = false;
    partial->next = pool->idle;
    pool->idle = partial;
    pool->idle_count++;
}

static enum stream_result
fail_parse(struct parse_error *ret_error, enum err err)
{
    *ret_error = (struct parse_error){ .err = err };
    return STREAM_ERROR;
}

/* Gives the batch the slices of the partial's command. A long command may pause
 * many times, and its slices are made only once. */
static bool
put_words(struct partial *partial, struct batch *batch, size_t argc)
{
    size_t bytes;

    if (argc <= LONG_ARGC) {
        if (!batch_reserve(batch, argc)) {
            return false;
        }
        arena_slices(&partial->arena, batch->argv);
        return true;
    }
    if (partial->argv == NULL) {
        if (!mem_multiply(argc, sizeof(*partial->argv), &bytes)) {
            return false;
        }
        partial->argv = mem_try_alloc(bytes);
        if (partial->argv == NULL) {
            return false;
        }
        arena_slices(&partial->arena, partial->argv);
    }
    batch_borrow(batch, partial->argv, argc);
    return true;
}

/* Makes the partial's command the batch. */
static enum stream_result
give_partial(struct partial *partial, struct batch *batch, size_t used,
             size_t *ret_used, struct parse_error *ret_error)
{
    size_t argc = partial->arena.count;

    if (argc > UINT32_MAX || !put_words(partial, batch, argc)) {
        return fail_parse(ret_error, ERR_NOMEM);
    }
    batch_add(batch, argc, 0);
    *ret_used = used;
    return STREAM_COMMANDS;
}

static enum parse_result
feed_partial(struct partial *partial, const struct parse_limits *limits,
             struct slice data, size_t *ret_used, struct parse_error *ret_error)
{
    return partial->is_inline
               ? inline_feed(&partial->line, limits, data, &partial->arena,
                             ret_used, ret_error)
               : reader_feed(partial->reader, limits, data, &partial->arena,
                             ret_used, ret_error);
}

enum stream_result
/* NOLINTNEXTLINE(readability-function-size): 8 parameters, one hot call */
stream_parse(struct stream *stream, struct stream_pool *pool,
             const struct parse_limits *limits, const char *data, size_t len,
             struct batch *batch, size_t *ret_used,
             struct parse_error *ret_error)
{
    size_t at = 0;

    batch_clear(batch);
    if (stream->partial != NULL && stream->partial->is_complete) {
        return give_partial(stream->partial, batch, 0, ret_used, ret_error);
    }
    while (at < len) {
        enum err err = OK;
        size_t used = 0;

        if (stream->partial == NULL) {
            err =
                scan_commands((struct slice){ data, len }, limits, batch, &at);
            if (batch->count > 0) {
                *ret_used = at;
                return STREAM_COMMANDS;
            }
            if (err == OK) {
                err = attach(stream, pool, data[at]);
            }
        }
        if (err != OK) {
            return fail_parse(ret_error, err);
        }
        switch (feed_partial(stream->partial, limits,
                             (struct slice){ data + at, len - at }, &used,
                             ret_error)) {
        case PARSE_MORE:
            at = len;
            break;
        case PARSE_COMMAND:
            stream->partial->is_complete = true;
            return give_partial(stream->partial, batch, at + used, ret_used,
                                ret_error);
        case PARSE_EMPTY:
            at += used;
            detach(stream, pool);
            break;
        case PARSE_ERROR:
            return STREAM_ERROR;
        }
    }
    *ret_used = len;
    return STREAM_MORE;
}

void
stream_done(struct stream *stream, struct stream_pool *pool)
{
    if (stream->partial != NULL && stream->partial->is_complete) {
        detach(stream, pool);
    }
}

void
stream_fini(struct stream *stream, struct stream_pool *pool)
{
    if (stream->partial == NULL) {
        return;
    }
    stream_done(stream, pool);
    if (stream->partial != NULL) {
        partial_free(stream->partial); /* in the middle of a command */
        stream->partial = NULL;
    }
}

size_t
stream_kept_bytes(const struct stream *stream)
{
    const struct partial *partial = stream->partial;

    if (partial == NULL) {
        return 0;
    }
    return partial->line.len + arena_kept_bytes(&partial->arena) +
           (partial->reader != NULL ? reader_kept_bytes(partial->reader) : 0);
}

size_t
stream_memory_bytes(const struct stream *stream)
{
    const struct partial *partial = stream->partial;
    size_t bytes;

    if (partial == NULL) {
        return 0;
    }
    bytes = sizeof(*partial) + partial->line.capacity +
            partial->arena.bytes.capacity +
            partial->arena.capacity * sizeof(*partial->arena.lens);
    if (partial->reader != NULL) {
        bytes += reader_memory_bytes(partial->reader);
    }
    return partial->argv == NULL
               ? bytes
               : bytes + partial->arena.count * sizeof(*partial->argv);
}
