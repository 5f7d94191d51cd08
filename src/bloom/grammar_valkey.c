/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parsing only: no key is looked up.
 */
#include "bloom/grammar_valkey.h"

#include "base/hex.h"
#include "base/num.h"
#include "core/bloom.h"
#include "engine/effect_words.h"

enum { REST_PLAIN, REST_NONSCALING, REST_EXPANSION }; /* words */

/* ---- numbers ------------------------------------------------------------- */

/* Returns whether 0 < value < 1; false for NaN. */
static bool
is_open_unit(double value)
{
    return value > 0.0 && value < 1.0;
}

static enum err
parse_rate(struct slice text, double *ret_rate)
{
    if (!num_parse_double(text, ret_rate)) {
        return ERR_BF_RATE;
    }
    return is_open_unit(*ret_rate) ? OK : ERR_BF_RATE_RANGE;
}

static enum err
parse_tightening(struct slice text, double *ret_tightening)
{
    if (!num_parse_double(text, ret_tightening)) {
        return ERR_BF_TIGHTENING;
    }
    return is_open_unit(*ret_tightening) ? OK : ERR_BF_TIGHTENING_RANGE;
}

static enum err
parse_capacity(struct slice text, uint64_t *ret_capacity)
{
    int64_t value = 0;

    if (!num_parse_i64(text, &value) || value < 0) {
        return ERR_BF_CAPACITY;
    }
    *ret_capacity = (uint64_t)value;
    return value > 0 ? OK : ERR_BF_CAPACITY_RANGE;
}

static enum err
parse_expansion(struct slice text, uint32_t *ret_expansion)
{
    return num_parse_u32(text, ret_expansion) && *ret_expansion > 0
               ? OK
               : ERR_BF_EXPANSION;
}

/* ---- BF.RESERVE ---------------------------------------------------------- */

/* Parses the words behind rate and capacity: nothing, NONSCALING, or EXPANSION
 * n, each valid at its own length only. */
static enum err
parse_scaling(const struct grammar_rest *rest, struct bloom_params *params)
{
    if (rest->count == REST_PLAIN) {
        return OK;
    }
    if (rest->count == REST_NONSCALING &&
        slice_is_word(rest->words[0], "nonscaling")) {
        params->expansion = 0;
        return OK;
    }
    if (rest->count == REST_EXPANSION &&
        slice_is_word(rest->words[0], "expansion")) {
        return parse_expansion(rest->words[1], &params->expansion);
    }
    return ERR_BF_FAILED;
}

enum err
grammar_valkey_reserve(struct request *req, size_t first,
                       struct bloom_insert *insert)
{
    struct grammar_rest rest;
    enum err own = grammar_own_reserve(req, first + 2, insert, &rest);
    enum err err;

    if (rest.count > REST_EXPANSION) {
        return request_arity_error(req);
    }
    err = parse_rate(req->argv[first], &insert->params.error_rate);
    if (err == OK) {
        err = parse_capacity(req->argv[first + 1], &insert->params.capacity);
    }
    if (err == OK) {
        err = own;
    }
    return err == OK ? parse_scaling(&rest, &insert->params) : err;
}

/* ---- BF.INSERT ----------------------------------------------------------- */

static enum err
parse_seed(struct slice seed, struct bloom_params *params)
{
    if (seed.len != BLOOM_SEED_BYTES) {
        return ERR_BF_SEED;
    }
    memcpy(params->seed, seed.data, BLOOM_SEED_BYTES);
    return OK;
}

static enum err
parse_shape(struct slice text, uint64_t max, uint64_t *ret_value)
{
    return slice_to_u64(text, ret_value) && *ret_value > 0 && *ret_value <= max
               ? OK
               : ERR_BF_UNKNOWN_ARG;
}

static enum err
parse_layout(struct slice name, uint32_t *ret_kind)
{
    for (uint32_t kind = 0; kind <= BLOOM_VALKEYBLOOM; kind++) {
        if (slice_is_word(name, bloom_kind_name((enum bloom_kind)kind))) {
            *ret_kind = kind;
            return OK;
        }
    }
    return ERR_BF_UNKNOWN_ARG;
}

/* Parses LAYOUT to INCARNATION of a replayed creation, and AT. */
static enum err
parse_replayed(struct slice word, struct slice value,
               struct bloom_insert *insert)
{
    struct bloom_params *params = &insert->params;
    uint64_t stripes = 0;
    enum err err;

    if (slice_is_word(word, "lines")) {
        return parse_shape(value, UINT64_MAX, &params->lines);
    }
    if (slice_is_word(word, "incarnation")) {
        return parse_shape(value, UINT64_MAX, &insert->incarnation);
    }
    if (slice_is_word(word, "at")) {
        return parse_shape(value, UINT64_MAX, &insert->at_ms);
    }
    if (slice_is_word(word, "fingerprint")) {
        return hex_parse_u64(value, &params->fingerprint) ? OK
                                                          : ERR_BF_UNKNOWN_ARG;
    }
    if (slice_is_word(word, "layout")) {
        return parse_layout(value, &params->kind);
    }
    if (slice_is_word(word, "growth")) {
        params->flags = BLOOM_EXPANSION_ZERO;
        return slice_is_word(value, "0") ? OK : ERR_BF_UNKNOWN_ARG;
    }
    if (!slice_is_word(word, "stripes")) {
        return ERR_BF_UNKNOWN_ARG;
    }
    err = parse_shape(value, UINT32_MAX, &stripes);
    params->stripes = (uint32_t)stripes;
    return err;
}

static enum err
parse_valued(const struct request *req, struct slice word, struct slice value,
             struct bloom_insert *insert)
{
    if (slice_is_word(word, "error")) {
        return parse_rate(value, &insert->params.error_rate);
    }
    if (slice_is_word(word, "capacity")) {
        return parse_capacity(value, &insert->params.capacity);
    }
    if (slice_is_word(word, "expansion")) {
        return parse_expansion(value, &insert->params.expansion);
    }
    if (slice_is_word(word, "tightening")) {
        return parse_tightening(value, &insert->params.tightening);
    }
    if (slice_is_word(word, "seed")) {
        insert->has_seed = true;
        return parse_seed(value, &insert->params);
    }
    if (slice_is_word(word, "validatescaleto")) {
        insert->has_target = true;
        return parse_capacity(value, &insert->target);
    }
    return req->obey ? parse_replayed(word, value, insert) : ERR_BF_UNKNOWN_ARG;
}

/* Returns whether a word needs a value. Without the value it is an arity error;
 * any other word is an unknown argument. */
static bool
takes_value(const struct request *req, struct slice word)
{
    unsigned flags = insert_word(word);

    return (flags & INSERT_VALUE) != 0 &&
           ((flags & INSERT_LOG) == 0 || req->obey);
}

enum err
grammar_valkey_insert(struct request *req, struct bloom_insert *insert)
{
    size_t at = 2;

    while (at < req->argc) {
        size_t before = at;
        enum err err = grammar_own(req, &at, insert);
        struct slice word;

        if (err != OK) {
            return err;
        }
        if (at > before) {
            continue;
        }
        word = req->argv[at++];
        if (slice_is_word(word, "nonscaling")) {
            insert->params.expansion = 0;
        } else if (slice_is_word(word, "nocreate")) {
            insert->no_create = true;
        } else if (slice_is_word(word, "items")) {
            insert->items = req->argv + at;
            insert->count = req->argc - at;
            return insert->count > 0 ? OK : request_arity_error(req);
        } else if (req->obey && slice_is_word(word, "placed")) {
            insert->placed = req->argv + at;
            insert->placed_count = req->argc - at;
            return OK;
        } else if (!takes_value(req, word)) {
            return ERR_BF_UNKNOWN_ARG;
        } else if (at == req->argc) {
            return request_arity_error(req);
        } else {
            err = parse_valued(req, word, req->argv[at++], insert);
            if (err != OK) {
                return err;
            }
        }
    }
    return OK;
}
