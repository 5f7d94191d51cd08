/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the BF.* handlers share: the filter of a key, its creation with given
 * or default properties, lookups of items, replies, events, and the effect that
 * creates the same filter again:
 *
 *   BF.INSERT key CAPACITY c ERROR f TIGHTENING t SEED <32 bytes>
 *       (EXPANSION e | NONSCALING)
 *       [LAYOUT name | DELETABLE r | AGEING s GENERATIONS g AT ms] [GROWTH 0]
 *       [HASH keyed FINGERPRINT f] STRIPES s LINES l INCARNATION n [PXAT ms]
 *       [ITEMS item ... | PLACED place item ...]
 *
 * LAYOUT, AT, GROWTH, FINGERPRINT to INCARNATION and PLACED (bloom/adds.h) are
 * accepted from a log only (req->obey). LAYOUT names a foreign kind. GROWTH 0
 * stands for BLOOM_EXPANSION_ZERO. FINGERPRINT has the fingerprint of the
 * secret (core/keyed.h); a server without this secret refuses the effect.
 * STRIPES and LINES keep the shape that the filter was made with, whatever
 * exp() this machine has. INCARNATION is a random number that tells this key
 * from earlier and later keys of the same name. A replayed creation replaces a
 * key that is there: the original key had expired, and a replay ignores the
 * clock.
 *
 * Effects have one grammar, valkey-bloom's, in both dialects. What a client
 * said in words that this grammar does not have becomes a BF.MADD or the
 * BF.INSERT above.
 *
 * Errors in dialect redis have RedisBloom's texts, except for a limit that is
 * not in it (bf.bloom-memory-usage-limit). In both dialects an array of replies
 * ends with its first error. RedisBloom goes on behind it, and go-redis, which
 * stops reading at the first error, then takes the rest for the next reply.
 */
#pragma once

#include "base/metrics.h"
#include "bloom/grammar.h"
#include "core/ageing.h"
#include "core/bloom.h"
#include "engine/dialect.h"
#include "engine/observe.h"
#include "engine/request.h"

/* Sets the properties that the options give, with a new seed. For kind
 * redisbloom, the grammar still has to adjust a nonscaling filter. */
void bloom_make_defaults(const struct request *req,
                         struct bloom_params *ret_params);

/* Returns whether the request has RedisBloom's grammar. */
static inline bool
bloom_make_reads_redis(const struct request *req)
{
    return !req->obey && dialect_is_redis(req->service);
}

/* Parses an error rate at argv position FIRST, and what follows it in a
 * BF.RESERVE, by the grammar of the request. Other fields of *insert stay as
 * they are. */
MUST_CHECK enum err bloom_make_parse_reserve(struct request *req, size_t first,
                                             struct bloom_insert *insert);

/* Returns the environment (memory and limits) for filters that this request
 * makes or grows. */
static inline const struct bloom_env *
bloom_make_env(const struct request *req)
{
    return req->obey ? &req->service->obey_env : &req->service->bloom_env;
}

/* Return the error that a client sees if a filter could not be made, or an item
 * could not be added. */
enum err bloom_make_error(const struct request *req, enum bloom_status status);
enum err bloom_make_add_error(const struct request *req,
                              enum bloom_status status);

/* Returns the error that names an unknown secret. */
enum err bloom_make_secret_error(struct request *req, uint64_t fingerprint);

/* Opens the key for writing; NULL if it is missing. */
struct bloom *bloom_make_open(struct request *req);

/* Opens the key for reading and counts the hit or miss; NULL if missing. */
struct bloom *bloom_make_find(struct request *req);

/* Returns whether the filter, which may be NULL, is incomplete (core/filter.h):
 * then items must be neither looked up nor added. */
static inline bool
bloom_make_is_unready(const struct bloom *bloom)
{
    return bloom != NULL && bloom_is_incomplete(bloom);
}

/* Returns whether a missing key is an error for commands that look up its items
 * (option bf.missing-key). */
static inline bool
bloom_make_must_exist(const struct request *req)
{
    return __builtin_expect(
        req->service->conf->bf_missing_key == CONF_MISSING_ERROR, 0);
}

/* Returns the error if items cannot be looked up in this filter, or OK. bloom
 * is NULL if the key is missing. */
static inline enum err
bloom_make_check_found(const struct request *req, const struct bloom *bloom)
{
    if (bloom == NULL) {
        return bloom_make_must_exist(req) ? ERR_BF_NOT_FOUND : OK;
    }
    return bloom_is_incomplete(bloom) ? ERR_BF_INCOMPLETE : OK;
}

/* Look up items at the time of the request. */
static inline bool
bloom_make_has(const struct request *req, const struct bloom *bloom,
               struct bloom_hash hash)
{
    return __builtin_expect(bloom_kind(bloom) == BLOOM_AGEING, 0)
               ? bloom_contains_at(bloom, hash, req->now_ms)
               : bloom_contains(bloom, hash);
}
static inline void
bloom_make_ask(const struct request *req, const struct bloom *bloom,
               const struct bloom_hash *hashes, size_t count, bool *ret_found)
{
    if (__builtin_expect(bloom_kind(bloom) == BLOOM_AGEING, 0)) {
        ageing_contains_batch(bloom, hashes, count, req->now_ms, ret_found);
    } else {
        bloom_contains_batch(bloom, hashes, count, ret_found);
    }
}

/* Count items that were looked up, even under a missing key, and those that
 * were found. */
static inline void
bloom_make_count(size_t asked, size_t found)
{
    metric_add(METRIC_ITEMS_ASKED, (int64_t)asked);
    metric_add(METRIC_ITEMS_FOUND, (int64_t)found);
}
static inline void
bloom_make_count_many(const bool *found, size_t count)
{
    size_t sum = 0, i = 0;

    for (; i + 8 <= count; i += 8) { /* adds up eight bytes of 0 or 1 */
        sum += slice_load64((const char *)found + i) *
                   UINT64_C(0x0101010101010101) >>
               56;
    }
    for (; i < count; i++) {
        sum += found[i];
    }
    bloom_make_count(count, sum);
}

/* Returns whether adds to the filter need special care: it forgets items
 * (bloom/adds.h), or it is incomplete. */
static inline bool
bloom_make_is_special(const struct bloom *bloom)
{
    return __builtin_expect(
        (bloom->traits & ~BLOOM_TRAIT_KEYED) >= BLOOM_DELETABLE, 0);
}

/* Puts a filter under its name, which must be missing unless the request
 * replays a log: then it replaces what is there. On failure the caller still
 * owns the filter. */
MUST_CHECK enum err bloom_make_settle(struct request *req, struct bloom *bloom,
                                      uint64_t incarnation,
                                      struct bloom **ret_bloom);

/* Halves the rate of the first layer, if the layout or the dialect requires it.
 */
void bloom_make_tighten(const struct request *req, struct bloom_params *params);

/* Refuses properties that do not fit the layout or the option bloom-layout. */
MUST_CHECK enum err bloom_make_check_layout(struct request *req,
                                            const struct bloom_params *params);

/* Creates the key, which must be missing unless the request replays a log, with
 * its time to live, and begins an effect with space for the items. A replayed
 * command without an incarnation was an add to a key that existed when it was
 * logged. That key is missing now, so it fails with ERR_BF_NOT_FOUND. In
 * dialect redis, and in layout redisbloom, the first layer of a scaling filter
 * gets half the rate. On failure nothing was created. A time that is past makes
 * a key that has expired, as SET does. If *insert->made is a filter, the key
 * gets it, and *insert->made becomes NULL. */
MUST_CHECK enum err bloom_make_create(struct request *req,
                                      const struct bloom_insert *insert,
                                      struct bloom **ret_bloom);

/* Makes the filter that bloom_make_create() would make for this request, but
 * puts it under no key. The request is no replay. NULL: bloom_make_create()
 * would fail. */
struct bloom *bloom_make_ahead(struct request *req,
                               const struct bloom_insert *insert);

/* For a filter that is emptied: bloom_make_begin_again() begins the effect that
 * creates it anew, and bloom_make_describe() completes the effect once the
 * filter is empty. expires_at_ms: 0 if the key never expires. */
MUST_CHECK enum err bloom_make_begin_again(struct request *req);
void bloom_make_describe(struct request *req, const struct bloom *bloom,
                         uint64_t incarnation, uint64_t expires_at_ms);

/* The most words of an effect besides those that create the filter, with a
 * place for each item (bloom/adds.h). */
#define BLOOM_PLACED_WORDS(items) (5 + 2 * (items))

/* Returns the incarnation; if it is 0, a random one for a new key. */
uint64_t bloom_make_incarnation(uint64_t incarnation);

/* Hashes COUNT items, which are STEP words apart, and prefetches their lines:
 * those of a few items while the next few are hashed. */
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

/* Fails if a client names too many items in one command (option
 * bf.max-items-per-command): they are added in one piece, while others wait. */
MUST_CHECK enum err bloom_make_check_items(struct request *req, size_t count);

/* Reports a key that was opened for writing: publishes the events bloom.add and
 * bloom.reserve, in this order, if they apply. Even without an event, clients
 * that cache the key get an invalidation, as from the modules. Both dialects
 * have the events, though RedisBloom has none. */
void bloom_make_notify_slow(struct request *req, bool added, bool created);
static inline void
bloom_make_notify(struct request *req, bool added, bool created)
{
    if (observe_is_on(req)) {
        bloom_make_notify_slow(req, added, created);
    }
}

/* Returns whether the replies to this request use booleans for yes and no. */
static inline bool
bloom_make_is_boolean(const struct request *req)
{
    return req->reply->resp == 3 && dialect_is_redis(req->service);
}

/* Append one yes or no, or many. For many, the caller has reserved 4 bytes for
 * each. */
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
