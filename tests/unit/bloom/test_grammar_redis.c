/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RedisBloom's grammar, word by word; what comes of it is in the transcripts
 * tests/command/bf-redis*.t and in the recorded calls (test_vectors.py).
 */
#include "bloom/grammar_redis.h"

#include "../engine/rig.h"
#include "../err_names.h"

#include "grammar_help.h"

struct reserve_case {
    const char *text;
    enum err err;
    uint64_t capacity;
    double rate;
    uint32_t expansion;
};

TEST(reserve_reads_numbers_and_options)
{
    static const struct reserve_case cases[] = {
        { "R k 0.01 100", OK, 100, 0.01, 9 },
        { "R k 0x0.1p0 1073741824", OK, 1 << 30, 0.0625, 9 },
        { "R k 0.26 1 EXPANSION 32768", OK, 1, 0.25, 32768 },
        { "R k 0.9 1 expansion 0", OK, 1, 0.25, 0 },
        { "R k 0.1 1 NonScaling", OK, 1, 0.1, 0 },
        { "R k 0.1 1 NONSCALING EXPANSION 0", OK, 1, 0.1, 0 },
        { "R k 0.1 1 a EXPANSION 3", OK, 1, 0.1, 3 },
        { "R EXPANSION 0.1 1 a b c", OK, 1, 0.1, 9 },
        { "R k 0.1 1 EXPANSION 3 EXPANSION", OK, 1, 0.1, 3 },
        { "R k 0.1 1 a b c d", ERR_ARITY, 0, 0, 0 },
        { "R k x y", ERR_BF_RATE, 0, 0, 0 },
        { "R k 0 y", ERR_BFR_RATE_RANGE, 0, 0, 0 },
        { "R k 1 y", ERR_BFR_RATE_RANGE, 0, 0, 0 },
        { "R k 0.1 y EXPANSION", ERR_BF_CAPACITY, 0, 0, 0 },
        { "R k 0.1 1073741825", ERR_BFR_CAPACITY_RANGE, 0, 0, 0 },
        { "R k 0.1 -1", ERR_BFR_CAPACITY_RANGE, 0, 0, 0 },
        { "R k 0.1 1 EXPANSION", ERR_BFR_NO_EXPANSION, 0, 0, 0 },
        { "R k 0.1 1 EXPANSION EXPANSION 3", ERR_BF_EXPANSION, 0, 0, 0 },
        { "R k 0.1 1 EXPANSION 32769", ERR_BFR_EXPANSION_RANGE, 0, 0, 0 },
        { "R k 0.1 1 EXPANSION 1 NONSCALING", ERR_BFR_NONSCALING, 0, 0, 0 },
        { "R k 0.1 1 EXPANSION 32769 NONSCALING", ERR_BFR_NONSCALING, 0, 0, 0 },
        { "R k 0.1 1 NONSCALING EXPANSION -1", ERR_BFR_NONSCALING, 0, 0, 0 },
        { "R k 0.1 1 NONSCALING EXPANSION x", ERR_BF_EXPANSION, 0, 0, 0 },
    };
    struct rig *rig = rig_new();

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct reserve_case *c = &cases[i];
        struct asked *asked = ask(rig, CMD_ID_BF_RESERVE, c->text);
        enum err err = grammar_redis_reserve(&asked->req, 2, &asked->insert);

        if (err != c->err ||
            (err == OK && (asked->insert.params.capacity != c->capacity ||
                           asked->insert.params.expansion != c->expansion ||
                           !(asked->insert.params.error_rate == c->rate)))) {
            fail_msg("[%s] gave %s", c->text, err_name(err));
        }
    }
    rig_free(rig);
}

TEST(nonscaling_by_default_still_cannot_expand)
{
    struct rig *rig = rig_new();
    struct asked *asked =
        ask(rig, CMD_ID_BF_RESERVE, "R k 0.1 1 EXPANSION 2 NONSCALING");

    asked->insert.params.expansion = 0;
    assert_int_equal(ERR_BFR_NONSCALING,
                     grammar_redis_reserve(&asked->req, 2, &asked->insert));
    asked = ask(rig, CMD_ID_BF_RESERVE, "R k 0.1 1 NONSCALING");
    asked->insert.params.expansion = 0;
    assert_int_equal(OK, grammar_redis_reserve(&asked->req, 2, &asked->insert));
    rig_free(rig);
}

struct insert_case {
    const char *text;
    enum err err;
    size_t count;
    uint64_t capacity;
    uint32_t expansion;
    bool no_create;
};

TEST(insert_tells_words_apart_by_letters)
{
    static const struct insert_case cases[] = {
        { "I k ITEMS a b", OK, 2, 1, 9, false },
        { "I k i ITEMS ", OK, 2, 1, 9, false },
        { "I k CAPACITY 5 NOCREATE items a", OK, 1, 5, 9, true },
        { "I k cap 5 noc i a", OK, 1, 5, 9, true },
        { "I k NX I a", OK, 1, 1, 0, false },
        { "I k NONSCALING EXPANSION 3 ITEMS a", OK, 1, 1, 0, false },
        { "I k e 3 ITEMS a", OK, 1, 1, 3, false },
        { "I k EX 3 EXPANSION 4 ITEMS a", OK, 1, 1, 4, false },
        { "I k ERR 0.1 ITEMS a", OK, 1, 1, 9, false },
        { "I k", ERR_ARITY, 0, 0, 0, false },
        { "I k ITEMS", ERR_ARITY, 0, 0, 0, false },
        { "I k CAPACITY", ERR_ARITY, 0, 0, 0, false },
        { "I k CAPACITY 5", ERR_ARITY, 0, 0, 0, false },
        { "I k CAPACITY ITEMS a", ERR_BFR_INSERT_CAPACITY, 0, 0, 0, false },
        { "I k c 0", ERR_BFR_INSERT_CAPACITY, 0, 0, 0, false },
        { "I k ERROR 1 ITEMS a", ERR_BFR_INSERT_RATE, 0, 0, 0, false },
        { "I k E x ITEMS a", ERR_BFR_INSERT_EXPANSION, 0, 0, 0, false },
        { "I k  ITEMS a", ERR_BFR_INSERT_WORD, 0, 0, 0, false },
        { "I k SEED x ITEMS a", ERR_BFR_INSERT_WORD, 0, 0, 0, false },
        { "I k ex ITEMS a", ERR_NOT_INTEGER, 0, 0, 0, false },
        { "I k EX 5 e 2 CAP 7 ITEMS a", OK, 1, 7, 2, false },
        { "I k EX", ERR_SYNTAX, 0, 0, 0, false },
    };
    struct rig *rig = rig_new();

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct insert_case *c = &cases[i];
        struct asked *asked = ask(rig, CMD_ID_BF_INSERT, c->text);
        struct bloom_insert *insert = &asked->insert;
        enum err err = grammar_redis_insert(&asked->req, insert);

        if (err != c->err ||
            (err == OK && (insert->count != c->count ||
                           insert->params.capacity != c->capacity ||
                           insert->params.expansion != c->expansion ||
                           insert->no_create != c->no_create))) {
            fail_msg("[%s] gave %s", c->text, err_name(err));
        }
    }
    rig_free(rig);
}
