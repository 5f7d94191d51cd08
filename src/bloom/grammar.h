/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the grammars of both dialects (grammar_valkey.h, grammar_redis.h) share.
 */
#pragma once

#include "engine/request.h"

/* RedisBloom cuts rates above this. */
#define REDIS_RATE_MAX 0.25
/* In dialect redis the first layer of a filter that scales gets this part of
 * the rate that was asked for. */
#define REDIS_FIRST_TIGHTENING 0.5

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
