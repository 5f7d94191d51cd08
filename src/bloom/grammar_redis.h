/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The words behind BF.RESERVE and BF.INSERT as RedisBloom 8 reads them: its
 * numbers, ranges, order of checks and texts. What it does beyond its
 * documentation is done here too, since programs may live by it: BF.RESERVE
 * passes over words that it does not know, BF.INSERT looks at letters of a word
 * and not at all of it, and rates above REDIS_RATE_MAX are cut to that. Only
 * BF.RESERVE does not take the key for an option.
 */
#pragma once

#include "bloom/grammar.h"

/* Both start from the defaults that are in *params, and overwrite what the
 * command says. */
MUST_CHECK enum err grammar_redis_reserve(struct request *req,
                                          struct bloom_params *params);
MUST_CHECK enum err grammar_redis_insert(struct request *req,
                                         struct bloom_insert *insert);
