/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parses the arguments of BF.RESERVE and BF.INSERT as valkey-bloom 1.0.1 does:
 * its numbers, ranges, order of checks and texts. Effects have this grammar and
 * a few more words (bloom/bloom_make.h).
 */
#pragma once

#include "bloom/grammar.h"

/* Parse the arguments: they overwrite the defaults in *insert with what the
 * command says. FIRST is the argv position of the error rate. */
MUST_CHECK enum err grammar_valkey_reserve(struct request *req, size_t first,
                                           struct bloom_insert *insert);
MUST_CHECK enum err grammar_valkey_insert(struct request *req,
                                          struct bloom_insert *insert);
