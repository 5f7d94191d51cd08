/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the BF.* handlers share: the filter of a key, its creation with given
 * or default properties, and the effect that creates the same filter again:
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
 */
#pragma once

#include "command/request.h"

/* Fresh properties from the options bf.*. */
void bloom_make_defaults(const struct request *req,
                         struct bloom_params *ret_params);

/* Memory and limits for filters that this request makes or grows. */
const struct bloom_env *bloom_make_env(const struct request *req);

/* The error a client sees. */
enum err bloom_make_error(const struct request *req, enum bloom_status status);

/* Opens the key for writing; NULL if it is missing. */
struct bloom *bloom_make_open(struct request *req);

/* Opens the key for reading and counts the hit or miss; NULL if missing. */
struct bloom *bloom_make_find(struct request *req);

/* Creates the key, which is missing unless the request obeys. incarnation: 0
 * for a new one, which a request that obeys must not ask for: it repeats an add
 * to a key that was there, so that one is missing here is ERR_BF_NOT_FOUND.
 * items_max is how many items the effect will list. On failure nothing was
 * created. */
MUST_CHECK enum err bloom_make_create(struct request *req,
                                      const struct bloom_params *params,
                                      uint64_t incarnation, size_t items_max,
                                      struct bloom **ret_bloom);

/* Adds items in order and appends the reply: an array with 0 or 1 for each,
 * and, where an item fails, its error as the last, early element. Leaves
 * dirty and the effect (created: a started creating effect is completed with
 * the applied items). Fails before anything is added. */
MUST_CHECK enum err bloom_make_add_items(struct request *req,
                                         struct bloom *bloom,
                                         const struct slice *items,
                                         size_t count, bool created);

/* Parsing of numbers in valkey-bloom's way, each with its errors. */
enum err bloom_make_parse_rate(struct slice text, double *ret_rate);
enum err bloom_make_parse_tightening(struct slice text, double *ret_tightening);
enum err bloom_make_parse_capacity(struct slice text, uint64_t *ret_capacity);
enum err bloom_make_parse_expansion(struct slice text, uint32_t *ret_expansion);
