/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the BF.* handlers share: the filter of a key, its creation with given
 * or default properties, the effect that creates the same filter again, and
 * what is told to others:
 *
 *   BF.INSERT key CAPACITY c ERROR f TIGHTENING t SEED <32 bytes>
 *       (EXPANSION e | NONSCALING) STRIPES s LINES l INCARNATION n
 *       [ITEMS item ...]
 *
 * STRIPES, LINES and INCARNATION are accepted from a replayed effect only
 * (req->obey): a filter keeps the shape it was made with, whatever exp() the
 * machine that reads it has, and the name's life its number. Whoever obeys it
 * replaces a key that is there: the original saw none, since its time was over,
 * which who replays does not look at.
 *
 * Effects have one grammar, valkey-bloom's, and nobody who obeys asks for the
 * dialect. What a client said in words that this grammar does not have becomes
 * a BF.MADD or the BF.INSERT above.
 *
 * Errors in dialect redis: a limit that RedisBloom does not have
 * (bf.bloom-memory-usage-limit) keeps its own text; what it has, its texts.
 * An array of answers ends with its first error in both: RedisBloom goes on
 * where a filter could not grow, and go-redis, which reads no further than the
 * first error, then takes the rest for the next reply.
 */
#pragma once

#include "engine/dialect.h"
#include "engine/observe.h"
#include "engine/request.h"

/* Fresh properties from the options bf.*. */
void bloom_make_defaults(const struct request *req,
                         struct bloom_params *ret_params);

/* Memory and limits for filters that this request makes or grows. */
static inline const struct bloom_env *
bloom_make_env(const struct request *req)
{
    return req->obey ? &req->service->obey_env : &req->service->bloom_env;
}

/* The error a client sees. */
enum err bloom_make_error(const struct request *req, enum bloom_status status);

/* The same where an item could not be added. */
enum err bloom_make_add_error(const struct request *req,
                              enum bloom_status status);

/* Opens the key for writing; NULL if it is missing. */
struct bloom *bloom_make_open(struct request *req);

/* Opens the key for reading and counts the hit or miss; NULL if missing. */
struct bloom *bloom_make_find(struct request *req);

/* Creates the key, which is missing unless the request obeys. incarnation: 0
 * for a new one, which a request that obeys must not ask for: it repeats an add
 * to a key that was there, so that one is missing here is ERR_BF_NOT_FOUND. In
 * dialect redis the first layer of a filter that scales gets half the rate.
 * items_max is how many items the effect will list. On failure nothing was
 * created. */
MUST_CHECK enum err bloom_make_create(struct request *req,
                                      const struct bloom_params *asked,
                                      uint64_t incarnation, size_t items_max,
                                      struct bloom **ret_bloom);

/* A number for a new life of a name, drawn at random. */
uint64_t bloom_make_incarnation(void);

/* Hashes COUNT items, each so many words behind the one before, and starts to
 * fetch what they need: of a few while the next few are hashed. */
static inline void
bloom_make_hash(const struct bloom *bloom, const struct slice *items,
                size_t step, size_t count, struct bloom_hash *ret_hashes)
{
    enum { FEW = 16 };

    for (size_t begin = 0; begin < count; begin += FEW) {
        size_t end = count - begin > FEW ? begin + FEW : count;

        for (size_t i = begin; i < end; i++, items += step) {
            ret_hashes[i] = bloom_hash(bloom, items->data, items->len);
        }
        bloom_prefetch_batch(bloom, &ret_hashes[begin], end - begin);
    }
}

/* What bloom_make_add_items is to do. */
struct bloom_adds {
    const struct slice *items;
    size_t count;
    bool created; /* by this command: its effect is to be completed */
    bool plain;   /* the command's own words are no effect: write a BF.MADD */
};

/* Adds items in order and appends the reply: an array with 0 or 1 for each,
 * and, where an item fails, its error as the last, early element. Leaves
 * dirty and the effect (created: a started creating effect is completed with
 * the applied items), and tells of the change. Fails before anything is
 * added. */
MUST_CHECK enum err bloom_make_add_items(struct request *req,
                                         struct bloom *bloom,
                                         const struct bloom_adds *adds);

/* Whether a client may name so many items in one command: an add is one step
 * for everybody else, so this bounds how long they wait. */
MUST_CHECK enum err bloom_make_check_items(struct request *req, size_t count);

/* Tells of a key that was opened for writing: bloom.add and bloom.reserve, in
 * this order, as they apply; without either the key still counts as changed for
 * who caches it, as it does for the modules. They are told in both dialects,
 * though RedisBloom tells nothing. */
void bloom_make_tell_all(struct request *req, bool added, bool created);
static inline void
bloom_make_tell(struct request *req, bool added, bool created)
{
    if (observe_is_on(req)) {
        bloom_make_tell_all(req, added, created);
    }
}

/* Whether answers of yes and no are booleans here. */
static inline bool
bloom_make_is_boolean(const struct request *req)
{
    return req->reply->resp == 3 && dialect_is_redis(req->service);
}

/* One such answer, and many: room for 4 bytes each must be there. */
__attribute__((always_inline)) static inline void
bloom_make_reply(struct request *req, bool yes)
{
    if (bloom_make_is_boolean(req)) {
        reply_bool(req->reply, yes);
    } else {
        reply_int(req->reply, yes);
    }
}
static inline void
bloom_make_reply_many(struct request *req, const bool *yes, size_t count)
{
    if (bloom_make_is_boolean(req)) {
        reply_booleans(req->reply, yes, count);
    } else {
        reply_flags(req->reply, yes, count);
    }
}
