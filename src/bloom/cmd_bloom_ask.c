/* SPDX-License-Identifier: BSD-3-Clause
 *
 * BF.MEXISTS and BF.COUNTNEW, which look up many items and change nothing. A
 * command of more than a few items works in pieces: when it has worked long
 * enough (request_is_late), it releases its lock, other clients are served, and
 * it goes on with the next item. So it is not atomic: each piece sees the key
 * as it is then, and a missing key has no items (or is an error:
 * bf.missing-key). In EXEC all items are one piece.
 */
#include "access/handlers.h"
#include "base/hash.h"
#include "base/mem.h"
#include "bloom/bloom_make.h"

enum {
    FIRST_ITEM = 2,
    FEW = 4 * BLOOM_BATCH_MAX, /* items that are always one piece */
    HEADER_BYTES = 32
};

struct asking {
    size_t at;    /* argv position of the next item */
    bool answers; /* BF.MEXISTS: the answers so far are in `reply`, behind
                     `gap` bytes */
    struct buf reply;
    size_t gap;
    /* BF.COUNTNEW: how many are new, and which those are, by their place among
     * the arguments. An open hash that is at most half full; 0 is an empty
     * slot, since no item stands there. */
    int64_t fresh;
    uint32_t *slots;
    size_t mask;
};

static void
asking_free(void *state)
{
    struct asking *asking = state;

    buf_free(&asking->reply);
    mem_free(asking->slots);
    mem_free(asking);
}

/* Notes an item. Returns false if an equal item was noted already. */
static bool
see(struct asking *asking, const struct slice *argv, size_t at)
{
    size_t slot = (size_t)hash_name(argv[at]) & asking->mask;

    while (asking->slots[slot] != 0) {
        if (slice_equal(argv[asking->slots[slot]], argv[at])) {
            return false;
        }
        slot = (slot + 1) & asking->mask;
    }
    asking->slots[slot] = (uint32_t)at;
    return true;
}

static void
ask_batch(struct request *req, struct asking *asking, const struct bloom *bloom,
          size_t count)
{
    struct bloom_hash hashes[BLOOM_BATCH_MAX];
    bool found[BLOOM_BATCH_MAX] = { false };

    CHECK(count > 0 && count <= BLOOM_BATCH_MAX);
    if (bloom != NULL) {
        bloom_make_hash(bloom, req->argv + asking->at, 1, count, hashes);
        bloom_make_ask(req, bloom, hashes, count, found);
    }
    bloom_make_count_many(found, count);
    if (asking->answers) {
        bloom_make_reply_many(req, found, count);
    } else {
        for (size_t i = 0; i < count; i++) {
            asking->fresh +=
                !found[i] && see(asking, req->argv, asking->at + i);
        }
    }
    asking->at += count;
}

/* Finds the filter. Only the first piece counts as a hit or miss. */
static const struct bloom *
find_for_piece(struct request *req, const struct asking *asking)
{
    struct entry *entry;

    if (asking->at == FIRST_ITEM) {
        return bloom_make_find(req);
    }
    entry = keyspace_find(req->keyspace, &req->key, req->now_ms);
    return entry != NULL ? &entry->bloom : NULL;
}

static enum err
ask_filter(struct request *req, struct asking *asking)
{
    const struct bloom *bloom = find_for_piece(req, asking);
    size_t most = bloom != NULL ? bloom_together(bloom) : BLOOM_BATCH_MAX;
    enum err err = bloom_make_check_found(req, bloom);

    if (err != OK) {
        return err;
    }
    while (asking->at < req->argc) {
        size_t left = req->argc - asking->at;

        ask_batch(req, asking, bloom, left < most ? left : most);
        if (req->argc > FEW && asking->at < req->argc && request_is_late(req)) {
            return ERR_AGAIN;
        }
    }
    return OK;
}

/* ---- BF.MEXISTS ---------------------------------------------------------- */

/* Returns the state of a paused command, or a new one; NULL without memory. */
static struct asking *
take_up(const struct request *req)
{
    struct asking *asking = request_resumed(req);

    if (asking == NULL) {
        asking = mem_try_zalloc(sizeof(*asking));
        if (asking != NULL) {
            asking->at = FIRST_ITEM;
        }
    }
    return asking;
}

/* Keeps the state of a command that pauses, and frees it at the end. */
static enum err
put_down(struct request *req, struct asking *asking, enum err err)
{
    size_t bytes = asking->slots != NULL ? (asking->mask + 1) * sizeof(uint32_t)
                                         : req->argc * sizeof(bool);

    return request_end_piece(req, err, asking, asking_free,
                             sizeof(*asking) + bytes);
}

/* Reserves the space for the reply before anything is looked up: a reply above
 * the limit of the output is refused at once. */
static enum err
begin_answers(const struct request *req, struct buf *out)
{
    size_t count = req->argc - FIRST_ITEM;
    struct reply reply = { out, req->reply->resp };

    if (buf_reserve(out, HEADER_BYTES + 4 * count) == NULL) {
        return out->over ? ERR_REPLY_LIMIT : ERR_NOMEM;
    }
    reply_array(&reply, count);
    return OK;
}

/* Writes the replies of each piece into a buffer that becomes the reply, so
 * that the fresh memory is touched a piece at a time, too. */
static enum err
answer_many(struct request *req, struct asking *asking)
{
    struct reply into = { &asking->reply, req->reply->resp };
    struct reply *reply = req->reply;
    enum err err = OK;

    if (!asking->answers) {
        asking->answers = true;
        asking->reply.limit = reply->buf->limit;
        err = begin_answers(req, &asking->reply);
        asking->gap = asking->reply.len;
    }
    if (err == OK) {
        req->reply = &into;
        err = ask_filter(req, asking);
        req->reply = reply;
    }
    if (err == OK) {
        reply_array(reply, req->argc - FIRST_ITEM);
        reply_give(reply, &asking->reply, asking->gap);
    }
    return err;
}

enum err
cmd_bf_mexists(struct request *req)
{
    struct asking few = { .at = FIRST_ITEM, .answers = true };
    struct asking *asking;
    enum err err = bloom_make_check_items(req, req->argc - FIRST_ITEM);

    if (err == OK && req->argc <= FEW) {
        err = begin_answers(req, req->reply->buf);
        return err == OK ? ask_filter(req, &few) : err;
    }
    asking = err == OK ? take_up(req) : NULL;
    if (asking == NULL) {
        return err == OK ? ERR_NOMEM : err;
    }
    return put_down(req, asking, answer_many(req, asking));
}

/* ---- BF.COUNTNEW --------------------------------------------------------- */

static bool
open_slots(const struct request *req, struct asking *asking)
{
    size_t slots = 16;
    size_t bytes = 0;

    while (slots < 2 * req->argc) {
        slots *= 2;
    }
    if (req->argc > UINT32_MAX ||
        !mem_multiply(slots, sizeof(*asking->slots), &bytes)) {
        return false;
    }
    asking->slots = mem_try_zalloc(bytes);
    asking->mask = slots - 1;
    return asking->slots != NULL;
}

/* Counts the distinct items that are not in the filter; all of them if it is
 * missing. Items are compared by their bytes: an item that an add would take
 * for present, because of a false positive among the items added before it, is
 * counted. */
enum err
cmd_bf_countnew(struct request *req)
{
    struct asking *asking;
    enum err err = bloom_make_check_items(req, req->argc - FIRST_ITEM);

    if (err != OK) {
        return err;
    }
    asking = take_up(req);
    if (asking == NULL) {
        return ERR_NOMEM;
    }
    err = asking->slots != NULL || open_slots(req, asking)
              ? ask_filter(req, asking)
              : ERR_NOMEM;
    if (err == OK) {
        reply_int(req->reply, asking->fresh);
    }
    return put_down(req, asking, err);
}
