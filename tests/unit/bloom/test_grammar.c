/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The words that neither module has.
 */
#include "bloom/grammar.h"

#include "../engine/rig.h"
#include "../err_names.h"

#include "grammar_help.h"

enum { NOW_MS = 1000000 };

struct expiry_case {
    const char *text;
    enum err err;
    uint64_t expires_at_ms;
};

static const struct expiry_case expiry_cases[] = {
    { "R k 0.01 5", OK, 0 },
    { "R k 0.01 5 EX 3", OK, NOW_MS + 3000 },
    { "R k 0.01 5 px 3", OK, NOW_MS + 3 },
    { "R k 0.01 5 ExAt 3", OK, 3000 },
    { "R k 0.01 5 PXAT 3", OK, 3 },
    { "R k 0.01 5 EX", ERR_SYNTAX, 0 },
    { "R k 0.01 5 EX 3 PX 3", ERR_SYNTAX, 0 },
    { "R k 0.01 5 EX 3 EX 3", ERR_SYNTAX, 0 },
    { "R k 0.01 5 EX 1.5", ERR_NOT_INTEGER, 0 },
    { "R k 0.01 5 EX ", ERR_NOT_INTEGER, 0 },
    { "R k 0.01 5 EX 9223372036854775808", ERR_NOT_INTEGER, 0 },
    { "R k 0.01 5 EX 0", ERR_INVALID_EXPIRE, 0 },
    { "R k 0.01 5 PXAT -1", ERR_INVALID_EXPIRE, 0 },
    { "R k 0.01 5 EX 9223372036854775807", ERR_INVALID_EXPIRE, 0 },
    { "R k 0.01 5 EXAT 9223372036854776", ERR_INVALID_EXPIRE, 0 },
    { "R k 0.01 5 PX 9223372036854775807", ERR_INVALID_EXPIRE, 0 },
    { "R k 0.01 5 PXAT 9223372036854775807", OK, INT64_MAX },
};

TEST(a_time_to_live_is_read_as_set_reads_it)
{
    struct rig *rig = rig_new();

    for (size_t i = 0; i < sizeof(expiry_cases) / sizeof(expiry_cases[0]);
         i++) {
        const struct expiry_case *c = &expiry_cases[i];
        struct asked *asked = ask(rig, CMD_ID_BF_RESERVE, c->text);
        struct grammar_rest rest;
        enum err err;

        asked->req.now_ms = NOW_MS;
        err = grammar_own_reserve(&asked->req, 4, &asked->insert, &rest);
        if (err != c->err ||
            (err == OK && asked->insert.expires_at_ms != c->expires_at_ms)) {
            fail_msg("[%s] gave %s", c->text, err_name(err));
        }
    }
    rig_free(rig);
}

TEST(other_words_stay_in_order_and_are_counted_beyond_the_room)
{
    struct rig *rig = rig_new();
    struct asked *asked =
        ask(rig, CMD_ID_BF_RESERVE, "R k 0.01 5 a EX 3 b EXPIRE c d");
    struct grammar_rest rest;

    asked->req.now_ms = NOW_MS;
    assert_int_equal(
        OK, grammar_own_reserve(&asked->req, 4, &asked->insert, &rest));
    assert_true(asked->insert.has_own);
    assert_int_equal(5, rest.count);
    assert_true(slice_equal(rest.words[0], slice_lit("a")));
    assert_true(slice_equal(rest.words[1], slice_lit("b")));
    assert_true(slice_equal(rest.words[2], slice_lit("EXPIRE")));
    rig_free(rig);
}

TEST(another_word_is_left_alone)
{
    struct rig *rig = rig_new();
    struct asked *asked = ask(rig, CMD_ID_BF_INSERT, "I k EXPANSION EX 3");
    size_t at = 2;

    assert_int_equal(OK, grammar_own(&asked->req, &at, &asked->insert));
    assert_int_equal(2, at);
    assert_false(asked->insert.has_own);
    rig_free(rig);
}

struct region_case {
    const char *text;
    enum err err;
    uint32_t region;
    size_t rest; /* words that are not our own */
};

static const struct region_case region_cases[] = {
    { "R k 0.01 5", OK, 0, 0 },
    { "R k 0.01 5 DELETABLE", OK, 2, 0 },
    { "R k 0.01 5 deletable 1", OK, 1, 0 },
    { "R k 0.01 5 DELETABLE 8 EX 3", OK, 8, 0 },
    { "R k 0.01 5 EX 3 DELETABLE NONSCALING", OK, 2, 1 },
    { "R k 0.01 5 DELETABLE x", OK, 2, 1 },
    { "R k 0.01 5 DELETABLE 3", ERR_BF_REGION, 0, 0 },
    { "R k 0.01 5 DELETABLE 0", ERR_BF_REGION, 0, 0 },
    { "R k 0.01 5 DELETABLE 16", ERR_BF_REGION, 0, 0 },
    { "R k 0.01 5 DELETABLE -1", ERR_BF_REGION, 0, 0 },
    { "R k 0.01 5 DELETABLE DELETABLE", ERR_SYNTAX, 0, 0 },
};

struct ageing_case {
    const char *text;
    enum err err;
    uint32_t seconds, generations;
    size_t rest; /* words that are not our own */
};

static const struct ageing_case ageing_cases[] = {
    { "R k 0.01 5 AGEING 60", OK, 60, 8, 0 },
    { "R k 0.01 5 ageing 1 generations 64", OK, 1, 64, 0 },
    { "R k 0.01 5 AGEING 4294967295 EX 3 GENERATIONS 1", OK, UINT32_MAX, 1, 0 },
    { "R k 0.01 5 NONSCALING AGEING 5 EXPANSION 2", OK, 5, 8, 3 },
    { "R k 0.01 5 AGEIN 5", OK, 0, 0, 2 },
    { "R k 0.01 5 AGEING", ERR_SYNTAX, 0, 0, 0 },
    { "R k 0.01 5 AGEING 0", ERR_BF_SECONDS, 0, 0, 0 },
    { "R k 0.01 5 AGEING 4294967296", ERR_BF_SECONDS, 0, 0, 0 },
    { "R k 0.01 5 AGEING x", ERR_BF_SECONDS, 0, 0, 0 },
    { "R k 0.01 5 AGEING 5 AGEING 5", ERR_SYNTAX, 0, 0, 0 },
    { "R k 0.01 5 AGEING 5 GENERATIONS 0", ERR_BF_GENERATIONS, 0, 0, 0 },
    { "R k 0.01 5 AGEING 5 GENERATIONS 65", ERR_BF_GENERATIONS, 0, 0, 0 },
    { "R k 0.01 5 GENERATIONS 8 AGEING 5", ERR_BF_GENERATIONS, 0, 0, 0 },
    { "R k 0.01 5 AGEING 5 DELETABLE", ERR_BF_FORGETS_TWICE, 0, 0, 0 },
    { "R k 0.01 5 DELETABLE AGEING 5", ERR_BF_FORGETS_TWICE, 0, 0, 0 },
};

TEST(ageing_has_seconds_and_may_have_generations)
{
    struct rig *rig = rig_new();

    for (size_t i = 0; i < sizeof(ageing_cases) / sizeof(ageing_cases[0]);
         i++) {
        const struct ageing_case *c = &ageing_cases[i];
        struct asked *asked = ask(rig, CMD_ID_BF_RESERVE, c->text);
        struct grammar_rest rest;
        enum err err =
            grammar_own_reserve(&asked->req, 4, &asked->insert, &rest);

        if (err != c->err ||
            (err == OK && (asked->insert.params.seconds != c->seconds ||
                           asked->insert.params.generations != c->generations ||
                           rest.count != c->rest))) {
            fail_msg("[%s] gave %s, %u, %u", c->text, err_name(err),
                     asked->insert.params.seconds,
                     asked->insert.params.generations);
        }
    }
    rig_free(rig);
}

TEST(a_region_may_be_left_out)
{
    struct rig *rig = rig_new();

    for (size_t i = 0; i < sizeof(region_cases) / sizeof(region_cases[0]);
         i++) {
        const struct region_case *c = &region_cases[i];
        struct asked *asked = ask(rig, CMD_ID_BF_RESERVE, c->text);
        struct grammar_rest rest;
        enum err err =
            grammar_own_reserve(&asked->req, 4, &asked->insert, &rest);

        if (err != c->err ||
            (err == OK && (asked->insert.params.region != c->region ||
                           rest.count != c->rest))) {
            fail_msg("[%s] gave %s, %u", c->text, err_name(err),
                     asked->insert.params.region);
        }
    }
    rig_free(rig);
}

struct hash_case {
    const char *text;
    enum err err;
    uint32_t flags;
    size_t rest; /* words that are not our own */
};

static const struct hash_case hash_cases[] = {
    { "R k 0.01 5", OK, 0, 0 },
    { "R k 0.01 5 HASH keyed", OK, BLOOM_KEYED, 0 },
    { "R k 0.01 5 hash KEYED NONSCALING", OK, BLOOM_KEYED, 1 },
    { "R k 0.01 5 EX 3 DELETABLE HASH keyed", OK, BLOOM_KEYED, 0 },
    { "R k 0.01 5 DELETABLE 8 HASH keyed EX 3", OK, BLOOM_KEYED, 0 },
    { "R k 0.01 5 HASH plain", OK, 0, 0 },
    { "R k 0.01 5 HAS keyed", OK, 0, 2 }, /* words match whole */
    { "R k 0.01 5 HASH", ERR_SYNTAX, 0, 0 },
    { "R k 0.01 5 HASH keyed HASH keyed", ERR_SYNTAX, 0, 0 },
    { "R k 0.01 5 HASH plain HASH keyed", ERR_SYNTAX, 0, 0 },
    { "R k 0.01 5 HASH xxh3", ERR_BF_HASH, 0, 0 },
    { "R k 0.01 5 HASH NONSCALING", ERR_BF_HASH, 0, 0 },
};

TEST(a_hash_is_plain_or_keyed)
{
    struct rig *rig = rig_new();

    for (size_t i = 0; i < sizeof(hash_cases) / sizeof(hash_cases[0]); i++) {
        const struct hash_case *c = &hash_cases[i];
        struct asked *asked = ask(rig, CMD_ID_BF_RESERVE, c->text);
        struct grammar_rest rest;
        enum err err =
            grammar_own_reserve(&asked->req, 4, &asked->insert, &rest);

        if (err != c->err ||
            (err == OK && (asked->insert.params.flags != c->flags ||
                           rest.count != c->rest))) {
            fail_msg("[%s] gave %s, %u", c->text, err_name(err),
                     asked->insert.params.flags);
        }
    }
    rig_free(rig);
}
