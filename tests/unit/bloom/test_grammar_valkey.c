/* SPDX-License-Identifier: BSD-3-Clause
 *
 * valkey-bloom's grammar, word by word, and what effects may say beyond it;
 * what comes of it is in the transcripts tests/command/bf.*.t.
 */
#include "bloom/grammar_valkey.h"

#include "../engine/rig.h"
#include "../err_names.h"

#include "grammar_help.h"

struct grammar_case {
    const char *text;
    enum err err;
    uint64_t capacity;
    uint32_t expansion;
};

TEST(reserve_takes_its_tail_at_its_own_length_only)
{
    static const struct grammar_case cases[] = {
        { "R k 0.01 +5", OK, 5, 9 },
        { "R k 0.01 5 NONSCALING", OK, 5, 0 },
        { "R k 0.01 5 expansion +2", OK, 5, 2 },
        { "R k 0.01 5 expansion", ERR_BF_FAILED, 0, 0 },
        { "R k 0.01 5 NONSCALING x", ERR_BF_FAILED, 0, 0 },
        { "R k 0.01 5 EXPANSION 0", ERR_BF_EXPANSION, 0, 0 },
        { "R k 0.01 0 x", ERR_BF_CAPACITY_RANGE, 0, 0 },
        { "R k 0.01 -1 x", ERR_BF_CAPACITY, 0, 0 },
        { "R k nan 5 x", ERR_BF_RATE_RANGE, 0, 0 },
        { "R k x y z", ERR_BF_RATE, 0, 0 },
        { "R k 0.01 5 EXPANSION 2 x", ERR_ARITY, 0, 0 },
    };
    struct rig *rig = rig_new();

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct grammar_case *c = &cases[i];
        struct asked *asked = ask(rig, CMD_ID_BF_RESERVE, c->text);
        enum err err = grammar_valkey_reserve(&asked->req, 2, &asked->insert);

        if (err != c->err ||
            (err == OK && (asked->insert.params.capacity != c->capacity ||
                           asked->insert.params.expansion != c->expansion))) {
            fail_msg("[%s] gave %s", c->text, err_name(err));
        }
    }
    rig_free(rig);
}

TEST(insert_takes_whole_words_and_the_last_one_wins)
{
    static const struct grammar_case cases[] = {
        { "I k", OK, 1, 9 },
        { "I k NONSCALING EXPANSION 3 ITEMS a", OK, 1, 3 },
        { "I k EXPANSION 3 NONSCALING", OK, 1, 0 },
        { "I k capacity 5 CAPACITY 6", OK, 6, 9 },
        { "I k SEED <seed> TIGHTENING 0.1 ERROR 0.1", OK, 1, 9 },
        { "I k ITEMS", ERR_ARITY, 0, 0 },
        { "I k CAPACITY", ERR_ARITY, 0, 0 },
        { "I k CAP 5", ERR_BF_UNKNOWN_ARG, 0, 0 },
        { "I k SEED x", ERR_BF_SEED, 0, 0 },
        { "I k TIGHTENING 1", ERR_BF_TIGHTENING_RANGE, 0, 0 },
        { "I k TIGHTENING x", ERR_BF_TIGHTENING, 0, 0 },
        { "I k LINES 5", ERR_BF_UNKNOWN_ARG, 0, 0 },
    };
    struct rig *rig = rig_new();

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct grammar_case *c = &cases[i];
        struct asked *asked = ask(rig, CMD_ID_BF_INSERT, c->text);
        enum err err = grammar_valkey_insert(&asked->req, &asked->insert);

        if (err != c->err ||
            (err == OK && (asked->insert.params.capacity != c->capacity ||
                           asked->insert.params.expansion != c->expansion))) {
            fail_msg("[%s] gave %s", c->text, err_name(err));
        }
    }
    rig_free(rig);
}

TEST(a_replayed_insert_gives_shape_and_incarnation)
{
    struct rig *rig = rig_new();
    struct asked *asked = ask(rig, CMD_ID_BF_INSERT,
                              "I k STRIPES 2 LINES 3 INCARNATION 4 ITEMS a");

    asked->req.obey = true;
    assert_int_equal(OK, grammar_valkey_insert(&asked->req, &asked->insert));
    assert_int_equal(2, asked->insert.params.stripes);
    assert_int_equal(3, asked->insert.params.lines);
    assert_int_equal(4, asked->insert.incarnation);
    assert_int_equal(1, asked->insert.count);
    asked = ask(rig, CMD_ID_BF_INSERT, "I k STRIPES 4294967296");
    asked->req.obey = true;
    assert_int_equal(ERR_BF_UNKNOWN_ARG,
                     grammar_valkey_insert(&asked->req, &asked->insert));
    rig_free(rig);
}
