/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The words behind BF.RESERVE and BF.INSERT as valkey-bloom 1.0.1 reads them:
 * its numbers, ranges, order of checks and texts. This is also the grammar of
 * effects, with a few words more (bloom/bloom_make.h).
 */
#pragma once

#include "bloom/grammar.h"

/* Both start from the defaults that are in *params, and overwrite what the
 * command says. */
MUST_CHECK enum err grammar_valkey_reserve(struct request *req,
                                           struct bloom_params *params);
MUST_CHECK enum err grammar_valkey_insert(struct request *req,
                                          struct bloom_insert *insert);
