/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parses the arguments of BF.RESERVE and BF.INSERT as RedisBloom 8 does: its
 * numbers, ranges, order of checks and texts. Its undocumented behaviour is
 * kept, since programs may rely on it: BF.RESERVE ignores unknown words,
 * BF.INSERT recognises words by some of their letters, and rates above
 * REDIS_RATE_MAX become that. One difference: BF.RESERVE never takes the key
 * for an option.
 */
#pragma once

#include "bloom/grammar.h"

/* Parse the arguments: they overwrite the defaults in *insert with what the
 * command says. FIRST is the argv position of the error rate. */
MUST_CHECK enum err grammar_redis_reserve(struct request *req, size_t first,
                                          struct bloom_insert *insert);
MUST_CHECK enum err grammar_redis_insert(struct request *req,
                                         struct bloom_insert *insert);
