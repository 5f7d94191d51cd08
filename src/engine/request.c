/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Errors, keys, pauses and rewritten effects of handlers.
 */
#include "engine/request.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/num.h"
#include "engine/dialect.h"

#include <stdarg.h>
#include <stdio.h>

enum err
request_fail(struct request *req, enum err err, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang 14 errs */
    (void)vsnprintf(req->worker->detail, sizeof(req->worker->detail), format,
                    ap);
    va_end(ap);
    return err;
}

enum err
request_arity_error(struct request *req)
{
    return request_fail(req, ERR_ARITY, "%s",
                        dialect_command_name(req->service, req->command));
}

struct key
request_key(const struct request *req, size_t position)
{
    struct slice name = req->argv[position];

    return key_named(name, req->session->db);
}

/* Refuses a database that clients of a cluster may not use, in the words of
 * Redis 7.0.15 or Valkey 9.1. */
static enum err
check_cluster_db(struct request *req, int64_t db)
{
    unsigned id = command_id(req->command);
    uint32_t databases = service_databases(req->service);
    bool one = databases == 1 && dialect_is_redis(req->service);

    if (one && id == CMD_ID_MOVE) {
        return request_fail(req, ERR_CUSTOM,
                            "MOVE is not allowed in cluster mode");
    }
    if (db == 0) {
        return OK;
    }
    if (one && id == CMD_ID_SELECT) {
        return request_fail(req, ERR_CUSTOM,
                            "SELECT is not allowed in cluster mode");
    }
    if (one && id == CMD_ID_COPY) {
        return request_fail(req, ERR_CUSTOM,
                            "Copying to another database is not allowed in "
                            "cluster mode");
    }
    return db < 0 || db >= databases ? ERR_DB_RANGE : OK;
}

enum err
request_parse_db(struct request *req, struct slice text, uint32_t *ret_db)
{
    int64_t db;

    if (!slice_to_i64(text, &db)) {
        return ERR_NOT_INTEGER;
    }
    if (db < INT32_MIN || db > INT32_MAX) {
        return request_fail(req, ERR_CUSTOM,
                            "value is out of range, value must between %d "
                            "and %d",
                            INT32_MIN, INT32_MAX);
    }
    if (req->service->cluster != NULL && !req->obey) {
        enum err err = check_cluster_db(req, db);

        if (err != OK) {
            return err;
        }
    }
    if (db < 0 || db >= keyspace_databases(req->keyspace)) {
        return ERR_DB_RANGE;
    }
    *ret_db = (uint32_t)db;
    return OK;
}

bool
request_may_pause(const struct request *req)
{
    return !req->worker->in_exec;
}

void
request_pause(struct request *req, void *state, void (*free_fn)(void *))
{
    CHECK(!req->worker->in_exec);
    req->session->again = state;
    req->session->again_free = free_fn;
}

bool
request_is_late(const struct request *req)
{
    enum { PIECE_NS = 500 * 1000 };

    return request_may_pause(req) &&
           clock_mono_ns() - req->worker->now_ns > PIECE_NS;
}

bool
request_piece_is_over(const struct request *req, uint32_t steps)
{
    enum { FIRST_STEPS = 16 };

    return request_is_late(req) ||
           (steps >= FIRST_STEPS && request_may_pause(req) &&
            request_resumed(req) == NULL);
}

enum err
request_end_piece(struct request *req, enum err err, void *state,
                  void (*free_fn)(void *), size_t bytes)
{
    bool resumed = request_resumed(req) != NULL;

    if (err == ERR_AGAIN && !resumed) {
        request_pause(req, state, free_fn);
    }
    if (err == ERR_AGAIN) {
        req->session->again_bytes = bytes;
    } else if (!resumed) {
        free_fn(state);
    }
    return err;
}

void
request_wait(struct request *req, void *state, void (*free_fn)(void *))
{
    request_pause(req, state, free_fn);
    req->session->wait = CONN_FOR_EVENT;
}

void
request_block(struct request *req, void *state, void (*free_fn)(void *))
{
    int runs = SESSION_RUNS;

    request_wait(req, state, free_fn);
    (void)atomic_compare_exchange_strong(&req->session->blocked, &runs,
                                         SESSION_BLOCKED);
}

/* The client stays blocked while its handler checks whether it still has to
 * wait, so that a CLIENT UNBLOCK at this moment finds it blocked and takes
 * effect when the loop is woken. Dispatch unblocks it when the command ends. */
enum session_block
request_unblocked(struct request *req)
{
    int how = atomic_load(&req->session->blocked);

    return how == SESSION_UNBLOCK_TIMEOUT || how == SESSION_UNBLOCK_ERROR
               ? (enum session_block)how
               : SESSION_RUNS;
}

void *
request_resumed(const struct request *req)
{
    return req->worker->in_exec ? NULL : req->session->again;
}

/* The arena has the words first, then the bytes that they point to. Neither may
 * move, so all space is reserved at once. */
enum err
request_effect_begin(struct request *req, size_t argc_max)
{
    enum { COPIES_BYTES = 2048, PLACE_BYTES = 6 };
    size_t words_bytes = argc_max * sizeof(struct slice);
    struct buf *arena = &req->worker->arena;

    if (req->service->journal == NULL || req->worker->silent) {
        return OK;
    }
    buf_reset(arena, SIZE_MAX);
    if (buf_reserve(arena, words_bytes + argc_max * PLACE_BYTES +
                               COPIES_BYTES) == NULL) {
        return ERR_NOMEM;
    }
    req->effect = (struct effect){ .kind = EFFECT_REWRITTEN,
                                   .argv = (struct slice *)(void *)arena->data,
                                   .argc_max = argc_max };
    arena->len = words_bytes;
    return OK;
}

void
request_effect_add(struct request *req, struct slice word)
{
    if (req->effect.kind == EFFECT_REWRITTEN) {
        CHECK(req->effect.argc < req->effect.argc_max);
        req->effect.argv[req->effect.argc++] = word;
    }
}

struct slice
request_arena_copy(struct request *req, struct slice bytes)
{
    struct buf *arena = &req->worker->arena;
    char *to;

    if (req->effect.kind != EFFECT_REWRITTEN) {
        return bytes;
    }
    to = arena->data + arena->len;
    CHECK(arena->capacity - arena->len >= bytes.len);
    memcpy(to, bytes.data, bytes.len);
    arena->len += bytes.len;
    return (struct slice){ to, bytes.len };
}

void
request_effect_add_number(struct request *req, uint64_t number)
{
    char text[NUM_U64_MAX];
    size_t len = num_format_u64(number, text);

    request_effect_add(req,
                       request_arena_copy(req, (struct slice){ text, len }));
}
