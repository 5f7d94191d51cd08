/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What handlers call.
 */
#include "command/request.h"

#include "base/hash.h"

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

struct key
request_key(const struct request *req, size_t position)
{
    struct slice name = req->argv[position];

    return (struct key){ name, hash_name(name), req->session->db };
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

void
request_wait(struct request *req, void *state, void (*free_fn)(void *))
{
    request_pause(req, state, free_fn);
    req->session->parked = true;
}

void *
request_resumed(const struct request *req)
{
    return req->worker->in_exec ? NULL : req->session->again;
}

/* The words come first in the arena, then what they point to; both must not
 * move, so all of the space is reserved at once. */
enum err
request_effect_begin(struct request *req, size_t argc_max)
{
    enum { COPIES_BYTES = 2048 };
    struct buf *arena = &req->worker->arena;

    if (req->service->journal == NULL) {
        return OK;
    }
    buf_reset(arena, SIZE_MAX);
    if (buf_reserve(arena, argc_max * sizeof(struct slice) + COPIES_BYTES) ==
        NULL) {
        return ERR_NOMEM;
    }
    req->effect = (struct effect){ .kind = EFFECT_REWRITTEN,
                                   .argv = (struct slice *)(void *)arena->data,
                                   .argc_max = argc_max };
    arena->len = argc_max * sizeof(struct slice);
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
    char *to = arena->data + arena->len;

    if (req->effect.kind != EFFECT_REWRITTEN) {
        return bytes;
    }
    CHECK(arena->capacity - arena->len >= bytes.len);
    memcpy(to, bytes.data, bytes.len);
    arena->len += bytes.len;
    return (struct slice){ to, bytes.len };
}
