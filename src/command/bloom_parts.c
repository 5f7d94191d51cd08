/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The limit of a part is found from argv and the position alone, so that the
 * room that dispatch makes before the locks are taken and what the handler
 * uses are the same.
 */
#include "command/bloom_parts.h"

#include "base/clock.h"
#include "base/mem.h"
#include "command/effect.h"

enum {
    PART_NS = 500 * 1000,
    HEAD_WORDS = 2, /* name and key, in any case */
    PART_WORDS = 16 * 1024,
    PART_BYTES = 256 * 1024, /* of the effect: a chunk of the stage */
    END_BYTES = 320          /* an error, and the header */
};

static bool
may_pause(const struct request *req)
{
    return !req->obey && request_may_pause(req);
}

/* Where the part that begins at this word ends. Bytes count only if there is
 * an effect to put them in. */
static size_t
end_of_part(const struct request *req, size_t from)
{
    size_t end = req->argc - from > PART_WORDS ? from + PART_WORDS : req->argc;
    size_t first = from > HEAD_WORDS ? from : HEAD_WORDS;
    size_t bytes = 0;

    if (req->service->journal == NULL ||
        (req->command->flags & CMD_WRITE) == 0) {
        return end;
    }
    for (size_t i = first; i < end; i++) {
        bytes += req->argv[i].len;
        if (bytes > PART_BYTES && i > first) {
            return i;
        }
    }
    return end;
}

static size_t
begin_of_part(const struct request *req)
{
    const struct bloom_parts *parts = bloom_parts_resumed(req);

    return parts != NULL ? parts->at : 0;
}

size_t
bloom_parts_room(const struct request *req)
{
    size_t from = begin_of_part(req);
    size_t end = may_pause(req) ? end_of_part(req, from) : req->argc;

    if (from == 0) {
        return effect_bytes(req->command, req->argv, end);
    }
    return effect_bytes(req->command, req->argv, HEAD_WORDS) +
           stage_effect_bytes(req->argv + from, end - from);
}

size_t
bloom_parts_limit(const struct request *req, const struct slice *items,
                  size_t count)
{
    size_t at;
    size_t end;

    if (count == 0 || !may_pause(req)) {
        return count;
    }
    at = (size_t)(items - req->argv);
    end = end_of_part(req, begin_of_part(req));
    return end > at ? end - at : 0;
}

bool
bloom_parts_is_over(const struct request *req)
{
    return may_pause(req) && clock_mono_ns() - req->worker->now_ns > PART_NS;
}

static void
parts_free(void *state)
{
    struct bloom_parts *parts = state;

    buf_free(&parts->answers);
    mem_free(parts);
}

struct bloom_parts *
bloom_parts_begin(struct request *req, size_t count)
{
    struct bloom_parts *parts = mem_try_zalloc(sizeof(*parts));
    struct reply header;
    size_t bytes;

    if (parts == NULL) {
        return NULL;
    }
    if (!mem_multiply(count, BLOOM_PARTS_ANSWER, &bytes) ||
        buf_reserve(&parts->answers, bytes + END_BYTES) == NULL) {
        mem_free(parts);
        return NULL;
    }
    header = (struct reply){ &parts->answers, req->reply->resp };
    reply_array(&header, count); /* holds its place, for reply_give */
    parts->gap = parts->answers.len;
    request_pause(req, parts, parts_free);
    return parts;
}

void
bloom_parts_keep(struct request *req, struct bloom_parts *parts, size_t mark,
                 const struct slice *next_item)
{
    struct buf *out = req->reply->buf;

    buf_append(&parts->answers, out->data + mark, out->len - mark);
    out->len = mark;
    parts->at = (size_t)(next_item - req->argv);
}

void
bloom_parts_finish(struct request *req, struct bloom_parts *parts,
                   size_t header, size_t body, size_t count)
{
    struct buf *out = req->reply->buf;
    size_t len = out->len - body;

    if (parts != NULL) {
        buf_append(&parts->answers, out->data + body, len);
        out->len = header;
        reply_array(req->reply, count);
        reply_give(req->reply, &parts->answers, parts->gap);
        return;
    }
    /* The header is shorter than, or as long as, the one that is there. */
    out->len = header;
    reply_array(req->reply, count);
    memmove(out->data + out->len, out->data + body, len);
    out->len += len;
}

enum err
bloom_parts_reserve(struct request *req, const struct bloom_parts *parts,
                    size_t part, size_t count)
{
    struct buf *out = req->reply->buf;
    size_t answers = part * BLOOM_PARTS_ANSWER;

    if (parts != NULL) {
        answers += parts->answers.len;
    } else if (part < count && out->limit > 0 &&
               (out->len > out->limit ||
                count > (out->limit - out->len) / BLOOM_PARTS_ANSWER)) {
        return ERR_REPLY_LIMIT;
    }
    return buf_reserve(out, answers + END_BYTES) != NULL ? OK : ERR_NOMEM;
}
