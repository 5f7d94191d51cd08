/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The words behind BF.RESERVE and BF.INSERT as valkey-bloom 1.0.1 reads them:
 * its numbers, ranges, order of checks and texts. This is also the grammar of
 * effects, with a few words more (bloom/bloom_make.h).
 */
#pragma once

#include "engine/request.h"

/* What a BF.INSERT asks for, in either dialect. */
struct bloom_insert {
    struct bloom_params params;
    bool no_create;
    bool has_target; /* VALIDATESCALETO */
    uint64_t target;
    uint64_t incarnation; /* of a replayed creation; else 0 */
    const struct slice *items;
    size_t count;
};

/* Both start from the defaults that are in *params, and overwrite what the
 * command says. */
MUST_CHECK enum err bloom_valkey_reserve(struct request *req,
                                         struct bloom_params *params);
MUST_CHECK enum err bloom_valkey_insert(struct request *req,
                                        struct bloom_insert *insert);
