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

static enum err
parse_stripes(struct slice text, uint32_t *ret_stripes)
{
    uint64_t stripes = 0;
    enum err err = parse_shape(text, UINT32_MAX, &stripes);

    *ret_stripes = (uint32_t)stripes;
    return err;
}

/* Parses the value of a word that only a log may have. */
static enum err
parse_replayed(enum insert_name name, struct slice value,
               struct bloom_insert *insert)
{
    struct bloom_params *params = &insert->params;

    switch (name) {
    case INSERT_STRIPES:
        return parse_stripes(value, &params->stripes);
    case INSERT_LINES:
        return parse_shape(value, UINT64_MAX, &params->lines);
    case INSERT_INCARNATION:
        return parse_shape(value, UINT64_MAX, &insert->incarnation);
    case INSERT_AT:
        return parse_shape(value, UINT64_MAX, &insert->at_ms);
    case INSERT_FINGERPRINT:
        return hex_parse_u64(value, &params->fingerprint) ? OK
                                                          : ERR_BF_UNKNOWN_ARG;
    case INSERT_LAYOUT:
        return parse_layout(value, &params->kind);
    case INSERT_GROWTH:
        params->flags = BLOOM_EXPANSION_ZERO;
        return slice_is_word(value, "0") ? OK : ERR_BF_UNKNOWN_ARG;
    default:
        return ERR_BF_UNKNOWN_ARG;
    }
}

static enum err
parse_valued(enum insert_name name, struct slice value,
             struct bloom_insert *insert)
{
    switch (name) {
    case INSERT_ERROR:
        return parse_rate(value, &insert->params.error_rate);
    case INSERT_CAPACITY:
        return parse_capacity(value, &insert->params.capacity);
    case INSERT_EXPANSION:
        return parse_expansion(value, &insert->params.expansion);
    case INSERT_TIGHTENING:
        return parse_tightening(value, &insert->params.tightening);
    case INSERT_SEED:
        insert->has_seed = true;
        return parse_seed(value, &insert->params);
    case INSERT_TARGET:
        insert->has_target = true;
        return parse_capacity(value, &insert->target);
    default:
        return parse_replayed(name, value, insert);
    }
}

/* Parses the value of a word, which stands at *at. A missing value is an arity
 * error; a word that takes no value is an unknown argument. */
static enum err
take_value(struct request *req, enum insert_name name, unsigned flags,
           size_t *at, struct bloom_insert *insert)
{
    if ((flags & INSERT_VALUE) == 0 ||
        ((flags & INSERT_LOG) != 0 && !req->obey)) {
        return ERR_BF_UNKNOWN_ARG;
    }
    if (*at == req->argc) {
        return request_arity_error(req);
    }
    return parse_valued(name, req->argv[(*at)++], insert);
}

/* Takes the word at *at, with its value or all that follow. */
static enum err
take_word(struct request *req, size_t *at, struct bloom_insert *insert)
{
    unsigned flags;
    enum insert_name name = insert_word(req->argv[(*at)++], &flags);
    const struct slice *rest = req->argv + *at;
    size_t left = req->argc - *at;

    switch (name) {
    case INSERT_NONSCALING:
        insert->params.expansion = 0;
        return OK;
    case INSERT_NOCREATE:
        insert->no_create = true;
        return OK;
    case INSERT_ITEMS:
        insert->items = rest;
        insert->count = left;
        *at = req->argc;
        return left > 0 ? OK : request_arity_error(req);
    case INSERT_PLACED:
        if (req->obey) {
            insert->placed = rest;
            insert->placed_count = left;
            *at = req->argc;
            return OK;
        }
        return ERR_BF_UNKNOWN_ARG;
    default:
        return take_value(req, name, flags, at, insert);
    }
}

enum err
grammar_valkey_insert(struct request *req, struct bloom_insert *insert)
{
    enum err err = OK;

    for (size_t at = 2; at < req->argc && err == OK;) {
        size_t before = at;

        err = grammar_own(req, &at, insert);
        if (err == OK && at == before) {
            err = take_word(req, &at, insert);
        }
    }
    return err;
}
