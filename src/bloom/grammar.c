/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The times to live are those of SET, with its units, errors and limits.
 */
#include "bloom/grammar.h"

#include "core/deletable.h"
#include "core/turns.h"
#include "engine/effect_words.h"

enum { SECOND_MS = 1000 };

/* Parses a time to live, which a log has as PXAT only. */
static enum err
parse_expiry(struct request *req, struct slice text, int64_t unit_ms,
             bool absolute, struct bloom_insert *insert)
{
    int64_t at_ms = 0;

    if (insert->expires_at_ms != 0) {
        return ERR_SYNTAX;
    }
    if (!slice_to_i64(text, &at_ms)) {
        return ERR_NOT_INTEGER;
    }
    if (at_ms <= 0 || __builtin_mul_overflow(at_ms, unit_ms, &at_ms) ||
        (!absolute &&
         __builtin_add_overflow(at_ms, (int64_t)req->now_ms, &at_ms))) {
        return request_fail(req, ERR_INVALID_EXPIRE, "%s", req->command->name);
    }
    insert->expires_at_ms = (uint64_t)at_ms;
    return OK;
}

static enum err
parse_ex(struct request *req, struct slice value, struct bloom_insert *insert)
{
    return parse_expiry(req, value, SECOND_MS, false, insert);
}

static enum err
parse_px(struct request *req, struct slice value, struct bloom_insert *insert)
{
    return parse_expiry(req, value, 1, false, insert);
}

static enum err
parse_exat(struct request *req, struct slice value, struct bloom_insert *insert)
{
    return parse_expiry(req, value, SECOND_MS, true, insert);
}

static enum err
parse_pxat(struct request *req, struct slice value, struct bloom_insert *insert)
{
    return parse_expiry(req, value, 1, true, insert);
}

/* Parses the region of DELETABLE; without one, value is empty. */
static enum err
parse_deletable(struct request *req, struct slice value,
                struct bloom_insert *insert)
{
    uint64_t region = DELETABLE_REGION_DEFAULT;

    (void)req;
    if (insert->params.region != 0) {
        return ERR_SYNTAX;
    }
    if (insert->params.seconds != 0) {
        return ERR_BF_FORGETS_TWICE;
    }
    if (value.len > 0 &&
        (!slice_to_u64(value, &region) || !collision_is_region(region))) {
        return ERR_BF_REGION;
    }
    insert->params.kind = BLOOM_DELETABLE;
    insert->params.region = (uint32_t)region;
    return OK;
}

static enum err
parse_ageing(struct request *req, struct slice value,
             struct bloom_insert *insert)
{
    uint64_t seconds = 0;

    (void)req;
    if (insert->params.seconds != 0) {
        return ERR_SYNTAX;
    }
    if (insert->params.region != 0) {
        return ERR_BF_FORGETS_TWICE;
    }
    if (!slice_to_u64(value, &seconds) || seconds == 0 ||
        seconds > UINT32_MAX) {
        return ERR_BF_SECONDS;
    }
    insert->params.kind = BLOOM_AGEING;
    insert->params.seconds = (uint32_t)seconds;
    insert->params.generations = TURNS_GENERATIONS;
    return OK;
}

static enum err
parse_generations(struct request *req, struct slice value,
                  struct bloom_insert *insert)
{
    uint64_t generations = 0;

    (void)req;
    if (insert->params.seconds == 0 || !slice_to_u64(value, &generations) ||
        generations == 0 || generations > TURNS_GENERATIONS_MAX) {
        return ERR_BF_GENERATIONS;
    }
    insert->params.generations = (uint32_t)generations;
    return OK;
}

static enum err
parse_hash(struct request *req, struct slice value, struct bloom_insert *insert)
{
    (void)req;
    if (insert->has_hash) {
        return ERR_SYNTAX;
    }
    insert->has_hash = true;
    insert->params.flags &= ~(uint32_t)BLOOM_KEYED;
    if (slice_is_word(value, "keyed")) {
        insert->params.flags |= BLOOM_KEYED;
        return OK;
    }
    return slice_is_word(value, "plain") ? OK : ERR_BF_HASH;
}

static enum err
parse_same(struct request *req, struct slice value, struct bloom_insert *insert)
{
    (void)req;
    return slice_to_u64(value, &insert->same) && insert->same > 0
               ? OK
               : ERR_BF_INCARNATION_RANGE;
}

static enum err (*const own_words[INSERT_NAMES])(
    struct request *req, struct slice value, struct bloom_insert *insert) = {
    [INSERT_EX] = parse_ex,
    [INSERT_PX] = parse_px,
    [INSERT_EXAT] = parse_exat,
    [INSERT_PXAT] = parse_pxat,
    [INSERT_DELETABLE] = parse_deletable,
    [INSERT_AGEING] = parse_ageing,
    [INSERT_GENERATIONS] = parse_generations,
    [INSERT_HASH] = parse_hash,
    [INSERT_IFINCARNATION] = parse_same,
};

enum err
grammar_own(struct request *req, size_t *at, struct bloom_insert *insert)
{
    unsigned flags;
    enum insert_name name = insert_word(req->argv[*at], &flags);
    bool may_end = (flags & INSERT_MAY_END) != 0;
    struct slice value = { NULL, 0 };
    int64_t number;

    if (own_words[name] == NULL) {
        return OK;
    }
    insert->has_own = true;
    ++*at;
    if (*at < req->argc &&
        (!may_end || slice_to_i64(req->argv[*at], &number))) {
        value = req->argv[(*at)++];
    } else if (!may_end) {
        return ERR_SYNTAX;
    }
    return own_words[name](req, value, insert);
}

enum err
grammar_own_reserve(struct request *req, size_t from,
                    struct bloom_insert *insert, struct grammar_rest *ret_rest)
{
    enum err err = OK;

    *ret_rest = (struct grammar_rest){ .count = 0 };
    for (size_t at = from; at < req->argc && err == OK;) {
        size_t before = at;

        err = grammar_own(req, &at, insert);
        if (err == OK && at == before) {
            if (ret_rest->count < GRAMMAR_REST_MAX) {
                ret_rest->words[ret_rest->count] = req->argv[at];
            }
            ret_rest->count++;
            at++;
        }
    }
    return err == OK && insert->same != 0 ? ERR_SYNTAX : err;
}
