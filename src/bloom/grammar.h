/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the grammars of both dialects (grammar_valkey.h, grammar_redis.h) share:
 * what a command may ask for, and the words that neither module has. These must
 * match completely and are tried first, since RedisBloom reads EX as EXPANSION.
 * They do not count in the numbers of words that the modules allow. All of them
 * have a value, which may be left out behind DELETABLE. GENERATIONS follows
 * AGEING. IFINCARNATION is BF.INSERT's only: the items are added only if the
 * key exists and has this incarnation, which DEBUG OBJECT shows. A former
 * primary sends it, if it has adds that the present primary lacks
 * (heal/merge.h).
 */
#pragma once

#include "engine/request.h"

/* RedisBloom lowers higher rates to this one. */
#define REDIS_RATE_MAX 0.25
/* In dialect redis, the first layer of a scaling filter gets the requested rate
 * times this. */
#define REDIS_FIRST_TIGHTENING 0.5

/* The request of a command that may create a missing filter. */
struct bloom_insert {
    struct bloom_params params;
    bool no_create;
    bool has_target; /* VALIDATESCALETO */
    bool has_own;    /* words that neither module has */
    uint64_t target;
    uint64_t expires_at_ms; /* 0: never */
    bool has_hash;          /* HASH */
    bool has_seed;          /* SEED */
    uint64_t incarnation;   /* of a replayed creation; else 0 */
    uint64_t same;          /* IFINCARNATION; 0: not given */
    uint64_t at_ms; /* in a replay on an ageing filter: the time of the add */
    const struct slice *items;
    size_t count;
    const struct slice *placed; /* in a replay: keyspace/redo.h */
    size_t placed_count;        /* number of these words */
    struct bloom **made;        /* NULL, or the filter that was made ahead */
};

/* Parses the word at argv position *at, and its value, if the word is one of
 * Bloomery's own, and moves *at behind them; else *at stays. Fails with
 * ERR_SYNTAX for a word without a value or a second time to live, and with the
 * errors of SET for a bad time to live. */
MUST_CHECK enum err grammar_own(struct request *req, size_t *at,
                                struct bloom_insert *insert);

/* The words of a BF.RESERVE behind the capacity that are not Bloomery's own. */
enum { GRAMMAR_REST_MAX = 3 };
struct grammar_rest {
    struct slice words[GRAMMAR_REST_MAX];
    size_t count; /* may exceed the maximum: then only the first words are
                     stored */
};

/* Parses Bloomery's own words of a BF.RESERVE from this argv position on, and
 * collects the others. */
MUST_CHECK enum err grammar_own_reserve(struct request *req, size_t from,
                                        struct bloom_insert *insert,
                                        struct grammar_rest *ret_rest);
