/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Filters that commands of RedisBloom make: which rule holds, and that the dump
 * loads as the filter that was asked for.
 */
#include "load/load_create.h"

#include "../capture.h"
#include "../script.h"
#include "core/payload.h"

static struct load
load_of(void)
{
    return (struct load){ .tool = { .name = "test" },
                          .timeout_s = 20,
                          .value_bytes = 1000 };
}

/* ---- the rule ------------------------------------------------------------ */

TEST(versions_say_whether_rates_are_capped)
{
    static const struct {
        const char *product;
        bool known, caps;
    } rows[] = {
        { "", false, false },
        { "redis", false, false },
        { "redis 7.0.15", true, false },
        { "redis 8.0.1", true, true },
        { "8", true, true },
        { "2.4.5", true, false },
        { "valkey 9.0.0", true, false },
        { "VALKEY 8", true, false },
        { "redis x.8", false, false },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct load_rule rule = { .known = false };

        load_create_version(&rule, slice_of(rows[i].product));
        assert_int_equal(rows[i].known, rule.known);
        assert_int_equal(rows[i].caps, rule.caps);
        load_create_version(&rule, slice_lit("redis 8"));
        assert_true(rule.known); /* the first that says so counts */
        assert_int_equal(rows[i].caps || !rows[i].known, rule.caps);
    }
}

TEST(the_command_line_is_checked)
{
    static const struct {
        const char *rate, *capacity, *version, *text;
    } rows[] = {
        { "0", NULL, NULL, "--error: is a rate between 0 and 1" },
        { "1", NULL, NULL, "--error: is" },
        { "x", NULL, NULL, "--error: is" },
        { NULL, "0", NULL, "--capacity: is a number of items" },
        { NULL, "-1", NULL, "--capacity: is" },
        { NULL, NULL, "new", "--source-version: is a version of Redis" },
    };
    struct load_rule rule;
    struct load load = load_of();

    assert_true(load_create_begin(&load, &rule));
    assert_true(rule.rate > 0.0099 && rule.rate < 0.0101);
    assert_int_equal(100, rule.capacity);
    assert_int_equal(2, rule.expansion);
    assert_false(rule.known);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool good = true;

        load = load_of();
        load.error_rate = rows[i].rate;
        load.capacity = rows[i].capacity;
        load.source_version = rows[i].version;
        EXPECT_PRINTED(STDERR_FILENO, good = load_create_begin(&load, &rule),
                       rows[i].text);
        assert_false(good);
        assert_int_equal(LOAD_USAGE, load.tool.status);
    }
    load = load_of();
    load.error_rate = "0.5";
    load.capacity = "7";
    load.source_version = "8.0";
    assert_true(load_create_begin(&load, &rule));
    assert_true(rule.rate > 0.49 && rule.rate < 0.51 && rule.caps);
    assert_int_equal(7, rule.capacity);
}

/* Asks a server with these replies. */
static void
ask(const char *const *replies, const struct load *load, struct load_rule *rule)
{
    struct load dialing = load_of();
    struct load_peer peer = { .address = NULL };
    struct load_link link;
    struct script script;

    script_begin(&script, replies);
    peer.address = script.path;
    assert_true(load_link_open(&dialing, &peer, &link));
    load_create_ask(&link, load, rule);
    load_link_close(&link);
    script_end(&script, "PING\nINFO modules\nMODULE LIST\nCONFIG GET bf-*\n");
}

TEST(a_source_tells_its_version_and_defaults_and_the_command_line_wins)
{
    static const char *const replies[] = {
        "+PONG\r\n",
        "$32\r\nmodule:name=bf,ver=80001,api=1\r\n\r\n",
        "*1\r\n*4\r\n$4\r\nname\r\n$2\r\nbf\r\n$4\r\nargs\r\n"
        "*4\r\n$10\r\nERROR_RATE\r\n$3\r\n0.2\r\n$12\r\nINITIAL_SIZE\r\n"
        "$2\r\n50\r\n",
        "*4\r\n$19\r\nbf-expansion-factor\r\n$1\r\n4\r\n"
        "$15\r\nbf-initial-size\r\n$2\r\n60\r\n",
        NULL,
    };
    static const char *const refusals[] = { "+PONG\r\n", "-ERR a\r\n",
                                            "-ERR b\r\n", "-ERR c\r\n", NULL };
    struct load load = load_of();
    struct load_rule rule;

    assert_true(load_create_begin(&load, &rule));
    ask(replies, &load, &rule);
    assert_true(rule.known && rule.caps);
    assert_true(rule.rate > 0.19 && rule.rate < 0.21);
    assert_int_equal(60, rule.capacity);
    assert_int_equal(4, rule.expansion);
    load.capacity = "7";
    load.error_rate = "0.3";
    load.source_version = "7.2";
    assert_true(load_create_begin(&load, &rule));
    ask(replies, &load, &rule);
    assert_false(rule.caps);
    assert_true(rule.rate > 0.29);
    assert_int_equal(7, rule.capacity);
    ask(refusals, &load, &rule);
    assert_int_equal(7, rule.capacity);
}

/* ---- commands ------------------------------------------------------------ */

struct made {
    enum load_create result;
    size_t items;
    struct bloom_info info; /* of the filter */
    struct bloom_params params;
    struct bloom_layer_info layer;
};

static struct made
make(const struct load_rule *rule, const char *text)
{
    struct made made = { .info = { .struct_size = sizeof(made.info) },
                         .params = { .struct_size = sizeof(made.params) },
                         .layer = { .struct_size = sizeof(made.layer) } };
    struct slice rest = slice_of(text);
    struct slice words[16];
    struct buf value = { 0 };
    size_t count = 0;

    while (count < 16 && slice_next_word(&rest, &words[count])) {
        count++;
    }
    made.result = load_create_filter(rule, words, count, &value, &made.items);
    if (made.result == LOAD_CREATE_MADE) {
        struct bloom *bloom = NULL;
        struct filling filling;

        buf_append(&value, "\x0a\0\0\0\0\0\0\0\0\0", 10); /* its end */
        assert_int_equal(BLOOM_OK, payload_begin(value.data, value.len, NULL,
                                                 &filling, &bloom));
        assert_int_equal(BLOOM_OK,
                         filling_finish(&filling, value.data, bloom, NULL));
        bloom_get_info(bloom, &made.info);
        bloom_get_params(bloom, &made.params);
        assert_true(bloom_get_layer(bloom, 0, &made.layer));
        bloom_free(bloom, NULL);
    }
    buf_free(&value);
    return made;
}

static const struct load_rule before_8 = {
    .known = true, .rate = 0.01, .capacity = 100, .expansion = 2
};

TEST(filters_have_what_the_command_or_the_source_says)
{
    static const struct {
        const char *text;
        uint64_t capacity;
        unsigned expansion;
        size_t items;
    } rows[] = {
        { "BF.ADD k a", 100, 2, 1 },
        { "bf.madd k a b c", 100, 2, 3 },
        { "BF.RESERVE k 0.001 1000", 1000, 2, 0 },
        { "BF.RESERVE k 0.001 1000 EXPANSION 4", 1000, 4, 0 },
        { "BF.RESERVE k 0.001 1000 NONSCALING", 1000, 0, 0 },
        { "BF.RESERVE k 0.001 1000 EXPANSION 0", 1000, 0, 0 },
        { "BF.INSERT k ITEMS a b", 100, 2, 2 },
        { "BF.INSERT k CAPACITY 70 ERROR 0.2 ITEMS a", 70, 2, 1 },
        { "BF.INSERT k EXPANSION 3 ITEMS a", 100, 3, 1 },
        { "BF.INSERT k NONSCALING ITEMS a", 100, 0, 1 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct made made = make(&before_8, rows[i].text);

        if (made.result != LOAD_CREATE_MADE) {
            fail_msg("not made: %s", rows[i].text);
        }
        assert_int_equal(rows[i].items, made.items);
        assert_int_equal(rows[i].capacity, made.info.capacity);
        assert_int_equal(rows[i].expansion, made.params.expansion);
        assert_int_equal(0, made.info.items);
        assert_int_equal(1, made.info.layers);
    }
}

TEST(other_commands_and_mistakes_make_none)
{
    static const char *const texts[] = {
        "BF.CARD k",
        "BF.RESERVE k",
        "BF.RESERVE k 0.01",
        "BF.RESERVE k 0 100",
        "BF.RESERVE k 1 100",
        "BF.RESERVE k 0.01 0",
        "BF.RESERVE k 0.01 100 EXPANSION x",
        "BF.RESERVE k 0.01 100 EXPANSION 4294967296",
        "BF.RESERVE k 0.01 18446744073709551615",
        "BF.INSERT k CAPACITY",
        "BF.INSERT k CAPACITY 0 ITEMS a",
        "BF.INSERT k ERROR 2 ITEMS a",
        "BF.INSERT k NOCREATE ITEMS a",
        "BF.INSERT k TIGHTENING 0.5 ITEMS a",
        "BF.INSERT k CAPACITY 10",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (make(&before_8, texts[i]).result != LOAD_CREATE_OTHER) {
            fail_msg("made: %s", texts[i]);
        }
    }
}

TEST(what_a_large_rate_means_depends_on_the_version)
{
    static const char text[] = "BF.RESERVE k 0.5 1000 NONSCALING";
    struct load_rule rule = before_8;
    struct made kept = make(&rule, text);
    struct made capped;

    rule.caps = true;
    capped = make(&rule, text);
    assert_int_equal(LOAD_CREATE_MADE, kept.result);
    assert_int_equal(LOAD_CREATE_MADE, capped.result);
    assert_true(capped.layer.lines > kept.layer.lines);
    rule.known = false;
    assert_int_equal(LOAD_CREATE_UNKNOWN, make(&rule, text).result);
    assert_int_equal(LOAD_CREATE_MADE,
                     make(&rule, "BF.RESERVE k 0.25 1000").result);
}

/* The zeros of the bits go as LZF in pieces of several lengths. */
TEST(every_length_of_bits_unpacks)
{
    char text[64];

    for (unsigned capacity = 1; capacity < 3000; capacity += 7) {
        (void)snprintf(text, sizeof(text), "BF.RESERVE k 0.01 %u", capacity);
        assert_int_equal(capacity, make(&before_8, text).info.capacity);
    }
}

static size_t
items_of(const char *text)
{
    struct slice rest = slice_of(text), words[16];
    size_t count = 0;

    while (count < 16 && slice_next_word(&rest, &words[count])) {
        count++;
    }
    return load_create_items(words, count);
}

TEST(the_items_of_an_insert_are_its_last_words)
{
    assert_int_equal(2, items_of("BF.INSERT k ITEMS a b"));
    assert_int_equal(1, items_of("bf.insert k EXPANSION 0 ITEMS a"));
    assert_int_equal(1, items_of("BF.INSERT k ERROR_RATE 0.01 CAP 9 i a"));
    assert_int_equal(0, items_of("BF.INSERT k TIGHTENING 0.5 ITEMS a"));
    assert_int_equal(0, items_of("BF.INSERT k ITEMS"));
    assert_int_equal(0, items_of("BF.MADD k a b"));
}
