/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parsing only: no key is looked up.
 */
#include "bloom/grammar_redis.h"

#include "base/num.h"
#include "core/bloom.h"

enum { EXPANSION_MAX = 32768, NOT_FOUND = GRAMMAR_REST_MAX };

static const int64_t capacity_max = 1 << 30;

/* The errors for a word that is not a number, and for one that is out of range.
 */
struct number_errors {
    enum err none, range;
};

static enum err
parse_rate(struct slice text, const struct number_errors *errors,
           double *ret_rate)
{
    double rate = 0;

    if (!num_parse_strtod(text, &rate)) {
        return errors->none;
    }
    if (!(rate > 0 && rate < 1)) {
        return errors->range;
    }
    *ret_rate = rate > REDIS_RATE_MAX ? REDIS_RATE_MAX : rate;
    return OK;
}

static enum err
parse_capacity(struct slice text, const struct number_errors *errors,
               uint64_t *ret_capacity)
{
    int64_t capacity = 0;

    if (!slice_to_i64(text, &capacity)) {
        return errors->none;
    }
    if (capacity < 1 || capacity > capacity_max) {
        return errors->range;
    }
    *ret_capacity = (uint64_t)capacity;
    return OK;
}

/* ---- BF.RESERVE ---------------------------------------------------------- */

/* Returns the place of a word among the options, or NOT_FOUND. */
static size_t
find_option(const struct grammar_rest *rest, const char *word)
{
    for (size_t at = 0; at < rest->count; at++) {
        if (slice_is_word(rest->words[at], word)) {
            return at;
        }
    }
    return NOT_FOUND;
}

/* Notes that a filter of RedisBloom's layout is nonscaling by its expansion. If
 * it is to be keyed, it will be refused. */
static void
note_zero(struct bloom_params *params)
{
    if (params->expansion == 0 && params->kind == BLOOM_REDISBLOOM) {
        params->flags |= BLOOM_EXPANSION_ZERO;
    }
}

/* Parses EXPANSION and NONSCALING. With NONSCALING or bf-expansion-factor 0,
 * any EXPANSION except 0 is refused before its range is checked. */
static enum err
parse_scaling(const struct grammar_rest *rest, struct bloom_params *params)
{
    size_t expansion_at = find_option(rest, "expansion");
    bool nonscaling =
        params->expansion == 0 || find_option(rest, "nonscaling") != NOT_FOUND;
    int64_t expansion = 0;

    if (expansion_at != NOT_FOUND) {
        if (expansion_at + 1 == rest->count) {
            return ERR_BFR_NO_EXPANSION;
        }
        if (!slice_to_i64(rest->words[expansion_at + 1], &expansion)) {
            return ERR_BF_EXPANSION;
        }
        if (expansion != 0 && nonscaling) {
            return ERR_BFR_NONSCALING;
        }
        if (expansion < 0 || expansion > EXPANSION_MAX) {
            return ERR_BFR_EXPANSION_RANGE;
        }
        params->expansion = (uint32_t)expansion;
    }
    note_zero(params);
    if (nonscaling) {
        params->expansion = 0;
    }
    return OK;
}

enum err
grammar_redis_reserve(struct request *req, size_t first,
                      struct bloom_insert *insert)
{
    static const struct number_errors rate = { ERR_BF_RATE,
                                               ERR_BFR_RATE_RANGE };
    static const struct number_errors capacity = { ERR_BF_CAPACITY,
                                                   ERR_BFR_CAPACITY_RANGE };
    struct bloom_params *params = &insert->params;
    struct grammar_rest rest;
    enum err own = grammar_own_reserve(req, first + 2, insert, &rest);
    enum err err;

    if (rest.count > GRAMMAR_REST_MAX) {
        return request_arity_error(req);
    }
    err = parse_rate(req->argv[first], &rate, &params->error_rate);
    if (err == OK) {
        err =
            parse_capacity(req->argv[first + 1], &capacity, &params->capacity);
    }
    if (err == OK) {
        err = own;
    }
    return err == OK ? parse_scaling(&rest, params) : err;
}

/* ---- BF.INSERT ----------------------------------------------------------- */

enum word {
    WORD_UNKNOWN,
    WORD_ITEMS,
    WORD_NOCREATE,
    WORD_NONSCALING,
    WORD_CAPACITY, /* from here on with a value */
    WORD_ERROR,
    WORD_EXPANSION
};

/* Returns a letter in lower case; 0 behind the end. */
static unsigned
letter(struct slice word, size_t at)
{
    return at < word.len ? (unsigned char)word.data[at] | 0x20U : 0;
}

/* RedisBloom recognises words by these letters alone, so ITEM, NX or CAP also
 * work. redis-py, Jedis, go-redis and other clients send the full words. */
static enum word
which_word(struct slice word)
{
    switch (letter(word, 0)) {
    case 'i':
        return WORD_ITEMS;
    case 'e':
        return letter(word, 1) == 'r' ? WORD_ERROR : WORD_EXPANSION;
    case 'c':
        return WORD_CAPACITY;
    case 'n':
        return letter(word, 2) == 'c' ? WORD_NOCREATE : WORD_NONSCALING;
    default:
        return WORD_UNKNOWN;
    }
}

static enum err
parse_value(enum word word, struct slice value, struct bloom_params *params)
{
    static const struct number_errors capacity = { ERR_BFR_INSERT_CAPACITY,
                                                   ERR_BFR_INSERT_CAPACITY };
    static const struct number_errors rate = { ERR_BFR_INSERT_RATE,
                                               ERR_BFR_INSERT_RATE };
    int64_t expansion = 0;

    if (word == WORD_CAPACITY) {
        return parse_capacity(value, &capacity, &params->capacity);
    }
    if (word == WORD_ERROR) {
        return parse_rate(value, &rate, &params->error_rate);
    }
    if (!slice_to_i64(value, &expansion) || expansion < 0 ||
        expansion > EXPANSION_MAX) {
        return ERR_BFR_INSERT_EXPANSION;
    }
    params->expansion = (uint32_t)expansion;
    return OK;
}

/* NONSCALING, or bf-expansion-factor 0, overrides EXPANSION in any order. */
enum err
grammar_redis_insert(struct request *req, struct bloom_insert *insert)
{
    bool nonscaling = insert->params.expansion == 0;
    enum err err = OK;

    for (size_t at = 2; at < req->argc && err == OK;) {
        size_t before = at;
        enum word word;

        err = grammar_own(req, &at, insert);
        if (err != OK || at > before) {
            continue;
        }
        word = which_word(req->argv[at++]);
        if (word == WORD_UNKNOWN) {
            return ERR_BFR_INSERT_WORD;
        }
        if (word == WORD_ITEMS) {
            insert->items = req->argv + at;
            insert->count = req->argc - at;
            break;
        }
        if (word >= WORD_CAPACITY) {
            if (at == req->argc) {
                break;
            }
            err = parse_value(word, req->argv[at++], &insert->params);
        }
        insert->no_create = insert->no_create || word == WORD_NOCREATE;
        nonscaling = nonscaling || word == WORD_NONSCALING;
    }
    if (err == OK && insert->count == 0) {
        return request_arity_error(req);
    }
    note_zero(&insert->params);
    if (nonscaling) {
        insert->params.expansion = 0;
    }
    return err;
}
