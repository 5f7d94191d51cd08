/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table as a whole, row by row, and CONFIG GET, SET and reload.
 */
#include "conf/conf.h"

#include "../test.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

static const struct conf_row *
row_of(const char *name)
{
    const struct conf_row *row = conf_find(slice_of(name));

    assert_non_null(row);
    return row;
}

static void
expect_shown(const struct conf *conf, const char *name, const char *text)
{
    struct buf buf = { 0 };

    conf_get(conf, row_of(name), &buf);
    buf_append(&buf, "", 1);
    assert_string_equal(buf.data, text);
    buf_free(&buf);
}

static void
expect_set(struct conf *conf, const char *name, const char *value)
{
    struct conf_error error = { .text = "" };
    bool set = conf_set(conf, row_of(name), slice_of(value), &error);

    assert_string_equal(error.text, "");
    assert_true(set);
}

static void
expect_refused(struct conf *conf, const char *name, const char *value,
               const char *why)
{
    struct conf_error error = { .text = "" };
    struct buf before = { 0 };
    struct buf after = { 0 };

    conf_get(conf, row_of(name), &before);
    assert_false(conf_set(conf, row_of(name), slice_of(value), &error));
    assert_string_equal(error.text, why);
    conf_get(conf, row_of(name), &after);
    assert_true(slice_equal(buf_slice(&before), buf_slice(&after)));
    buf_free(&before);
    buf_free(&after);
}

TEST(every_row_is_whole_and_has_a_name_of_its_own)
{
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        const struct conf_row *row = &conf_table[i];
        size_t len;

        assert_non_null(row->name);
        assert_non_null(row->section);
        assert_non_null(row->preset);
        assert_non_null(row->text);
        assert_true(row->min <= row->max);
        assert_true(row->max > 0 || row->type == CONF_BOOL ||
                    row->type == CONF_ENUM || row->type == CONF_RATE ||
                    row->type == CONF_OUTPUT_LIMIT || row->type == CONF_SAVE ||
                    row->type == CONF_EVENTS || row->type == CONF_PERCENTILES);
        assert_true(row->base_name == NULL || row->type == CONF_STRING);
        assert_true((row->type == CONF_ENUM) == (row->choices != NULL));
        assert_true(row->type == CONF_STRINGS ||
                    (row->type == CONF_RATE) == (row->bad_range != NULL));
        assert_ptr_equal(conf_find(slice_of(row->name)), row);
        len = strlen(row->text);
        assert_true(len > 0 && row->text[len - 1] == '.');
        assert_true(strlen(conf_key(row)) > 0);
    }
}

TEST(sections_stand_together)
{
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        for (size_t j = i + 1; j < CONF_OPTION_COUNT; j++) {
            if (strcmp(conf_table[i].section, conf_table[j].section) == 0) {
                assert_string_equal(conf_table[j - 1].section,
                                    conf_table[j].section);
            }
        }
    }
}

TEST(names_are_found_in_any_case_and_nothing_else_is)
{
    assert_ptr_equal(conf_find(slice_lit("BF.Bloom-Capacity")),
                     &conf_table[CONF_OPTION_bf_capacity]);
    assert_null(conf_find(slice_lit("")));
    assert_null(conf_find(slice_lit("por")));
    assert_null(conf_find(slice_lit("ports")));
    assert_null(conf_find(slice_lit("bloom-capacity")));
    assert_null(conf_find((struct slice){ "port\0x", 6 }));
}

TEST(a_shown_default_sets_the_same_value)
{
    struct conf conf;
    struct conf_changes changes;
    struct conf other;

    conf_init(&conf);
    conf_init(&other);
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        struct buf text = { 0 };
        struct conf_error error = { .text = "" };

        conf_get(&conf, &conf_table[i], &text);
        assert_true(conf_set(&conf, &conf_table[i], buf_slice(&text), &error));
        assert_string_equal(error.text, "");
        buf_free(&text);
    }
    conf_take(&conf, &other, &changes);
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        assert_false(changes.changed[i]);
        assert_false(changes.needs_restart[i]);
    }
    conf_fini(&conf);
    conf_fini(&other);
}

TEST(defaults_are_the_documented_ones)
{
    struct conf conf;

    conf_init(&conf);
    assert_string_equal(conf.bind, "127.0.0.1 -::1");
    assert_int_equal(conf.port, 7379);
    assert_string_equal(conf.unixsocket, "");
    assert_int_equal(conf.unixsocketperm, 0700);
    assert_int_equal(conf.maxclients, 10000);
    assert_true(conf.protected_mode);
    assert_int_equal(conf.threads, 0);
    assert_int_equal(conf.databases, 16);
    assert_int_equal(conf.loglevel, LOG_NOTICE);
    assert_string_equal(conf.requirepass, "");
    assert_int_equal(conf.proto_max_bulk_len, 64 << 20);
    assert_int_equal(conf.unauth_max_bulk_len, 2 << 10);
    assert_int_equal(conf.client_output_buffer_limit.of[0].hard_bytes,
                     256 << 20);
    assert_int_equal(conf.client_output_buffer_limit.of[0].soft_bytes,
                     64 << 20);
    assert_int_equal(conf.client_output_buffer_limit.of[0].soft_seconds, 60);
    assert_int_equal(conf.maxmemory, 0);
    assert_int_equal(conf.bf_capacity, 100);
    assert_int_equal(conf.bf_expansion, 2);
    assert_true(conf.bf_fp_rate.value == 0.01);
    assert_true(conf.bf_tightening_ratio.value == 0.5);
    assert_true(conf.bf_use_random_seed);
    assert_int_equal(conf.bf_memory_usage_limit, 134217728);
    assert_true(conf.bf_defrag_enabled);
    conf_fini(&conf);
}

TEST(every_number_takes_its_bounds_and_nothing_beyond)
{
    struct conf conf;

    conf_init(&conf);
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        const struct conf_row *row = &conf_table[i];
        bool octal = row->type == CONF_OCTAL;
        char text[32];
        char why[96];

        if (row->type != CONF_INT && row->type != CONF_BYTES && !octal) {
            continue;
        }
        (void)snprintf(why, sizeof(why),
                       octal ? "argument must be between %" PRIo64
                               " and %" PRIo64 " inclusive"
                             : "argument must be between %" PRId64
                               " and %" PRId64 " inclusive",
                       row->min, row->max);
        if (row->alias && strcmp(row->section, "bf") == 0) {
            (void)snprintf(why, sizeof(why),
                           "Value for `%s` must be in the range [%" PRId64
                           ", %" PRId64 "]",
                           row->name, row->min, row->max);
        }
        (void)snprintf(text, sizeof(text), octal ? "%" PRIo64 : "%" PRId64,
                       row->min);
        expect_set(&conf, row->name, text);
        expect_shown(&conf, row->name, text);
        (void)snprintf(text, sizeof(text), octal ? "%" PRIo64 : "%" PRId64,
                       row->max);
        expect_set(&conf, row->name, text);
        expect_shown(&conf, row->name, text);
        if (row->max < INT64_MAX) {
            (void)snprintf(text, sizeof(text), octal ? "%" PRIo64 : "%" PRId64,
                           row->max + 1);
            expect_refused(&conf, row->name, text, why);
        }
        if (row->min > 0 || row->type == CONF_INT) {
            (void)snprintf(text, sizeof(text), "%" PRId64, row->min - 1);
            expect_refused(&conf, row->name, text, why);
        }
    }
    conf_fini(&conf);
}

/* RedisBloom's names: one value, whoever sets it. */
TEST(an_alias_is_another_name_of_the_same_value)
{
    struct conf conf, fresh;
    struct conf_changes changes;
    struct conf_error error;

    conf_init(&conf);
    expect_shown(&conf, "bf-error-rate", "0.01");
    expect_set(&conf, "bf-error-rate", "0x0.1p0");
    expect_shown(&conf, "bf.bloom-fp-rate", "0.0625"); /* no hex there */
    assert_true(conf.bf_fp_rate.value == 0.0625);
    assert_true(conf_copy(&conf, &fresh, &error));
    assert_string_equal("0.0625", fresh.bf_fp_rate.text);
    conf_fini(&fresh);
    expect_set(&conf, "bf-error-rate", "5e-2");
    expect_shown(&conf, "bf.bloom-fp-rate", "5e-2");
    expect_set(&conf, "bf-error-rate", "0.9");
    expect_shown(&conf, "bf-error-rate", "0.25");
    expect_set(&conf, "bf.bloom-fp-rate", "0.5");
    expect_shown(&conf, "bf-error-rate", "0.5");
    expect_set(&conf, "bf-initial-size", "1073741824");
    assert_int_equal(1073741824, conf.bf_capacity);
    expect_set(&conf, "bf.bloom-expansion", "40000");
    expect_shown(&conf, "bf-expansion-factor", "40000");
    conf_init(&fresh);
    conf_take(&conf, &fresh, &changes);
    assert_true(changes.changed[CONF_OPTION_bf_capacity]);
    assert_false(changes.changed[CONF_OPTION_redis_initial_size]);
    expect_shown(&conf, "bf-error-rate", "0.01");
    conf_fini(&conf);
    conf_fini(&fresh);
}

TEST(a_password_is_never_shown)
{
    struct conf conf;

    conf_init(&conf);
    expect_shown(&conf, "requirepass", "");
    expect_set(&conf, "requirepass", "correct horse; battery");
    expect_shown(&conf, "requirepass", "********");
    assert_string_equal(conf.requirepass, "correct horse; battery");
    expect_set(&conf, "requirepass", "");
    expect_shown(&conf, "requirepass", "");
    conf_fini(&conf);
}

static bool
set_pairs(struct conf *conf, const char *const *texts, size_t count,
          struct conf_changes *ret_changes, char *ret_why)
{
    struct slice pairs[16];
    struct conf_error error = { .text = "" };
    bool set;

    assert_true(count <= 8);
    for (size_t i = 0; i < 2 * count; i++) {
        pairs[i] = slice_of(texts[i]);
    }
    set = conf_set_many(conf, pairs, count, ret_changes, &error);
    memcpy(ret_why, error.text, sizeof(error.text));
    return set;
}

TEST(several_values_are_set_together)
{
    const char *const pairs[] = { "Timeout",     "60",     "maxmemory", "1gb",
                                  "requirepass", "secret", "save",      "" };
    struct conf conf;
    struct conf_changes changes;
    char why[CONF_ERROR_MAX];

    conf_init(&conf);
    assert_true(set_pairs(&conf, pairs, 4, &changes, why));
    assert_int_equal(conf.timeout, 60);
    assert_int_equal(conf.maxmemory, 1 << 30);
    assert_string_equal(conf.requirepass, "secret");
    assert_true(changes.changed[CONF_OPTION_timeout]);
    assert_true(changes.changed[CONF_OPTION_maxmemory]);
    assert_true(changes.changed[CONF_OPTION_requirepass]);
    assert_true(changes.changed[CONF_OPTION_save]);
    assert_int_equal(conf.save.count, 0);
    assert_false(changes.changed[CONF_OPTION_port]);
    conf_fini(&conf);
}

TEST(one_bad_value_sets_none)
{
    const char *const pairs[] = { "requirepass", "secret", "timeout", "60",
                                  "maxclients",  "0",      "save",    "" };
    struct conf conf;
    struct conf_changes changes;
    char why[CONF_ERROR_MAX];

    conf_init(&conf);
    assert_false(set_pairs(&conf, pairs, 4, &changes, why));
    assert_string_equal(
        why, "CONFIG SET failed (possibly related to argument 'maxclients') - "
             "argument must be between 1 and 1000000 inclusive");
    assert_int_equal(conf.timeout, 0);
    assert_string_equal(conf.requirepass, "");
    conf_fini(&conf);
}

TEST(config_set_complains_in_redis_words)
{
    static const struct {
        const char *pairs[4];
        size_t count;
        const char *why;
    } cases[] = {
        { { "nope", "1" },
          1,
          "Unknown option or number of arguments for CONFIG SET - 'nope'" },
        { { "PORT", "1" },
          1,
          "CONFIG SET failed (possibly related to argument 'PORT') - can't "
          "set immutable config" },
        { { "timeout", "x", "TIMEOUT", "1" },
          2,
          "CONFIG SET failed (possibly related to argument 'TIMEOUT') - "
          "duplicate parameter" },
        { { "Timeout", "x", "nope", "1" },
          2,
          "Unknown option or number of arguments for CONFIG SET - 'nope'" },
        { { "Timeout", "x" },
          1,
          "CONFIG SET failed (possibly related to argument 'timeout') - "
          "argument couldn't be parsed into an integer" },
        { { "BF.BLOOM-FP-RATE", "1.5" },
          1,
          "CONFIG SET failed (possibly related to argument "
          "'bf.bloom-fp-rate') - ERR (0 < error rate range < 1)" },
    };
    struct conf conf;

    conf_init(&conf);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct conf_changes changes;
        char why[CONF_ERROR_MAX];

        assert_false(
            set_pairs(&conf, cases[i].pairs, cases[i].count, &changes, why));
        assert_string_equal(why, cases[i].why);
        assert_int_equal(conf.timeout, 0);
    }
    conf_fini(&conf);
}

TEST(a_huge_unknown_name_is_quoted_in_part)
{
    enum { NAME_BYTES = 100000 };
    char *name = mem_alloc(NAME_BYTES);
    struct slice pairs[2] = { { name, NAME_BYTES }, slice_lit("1") };
    struct conf conf;
    struct conf_changes changes;
    struct conf_error error;

    conf_init(&conf);
    memset(name, 'n', NAME_BYTES);
    assert_false(conf_set_many(&conf, pairs, 1, &changes, &error));
    assert_in_range(strlen(error.text), 128, 256);
    mem_free(name);
    conf_fini(&conf);
}

TEST(a_reload_takes_run_time_values_and_names_those_that_need_a_restart)
{
    struct conf conf;
    struct conf fresh;
    struct conf_changes changes;

    conf_init(&conf);
    conf_init(&fresh);
    expect_set(&conf, "requirepass", "old");
    expect_set(&fresh, "requirepass", "new");
    expect_set(&fresh, "port", "1234");
    expect_set(&fresh, "bf.bloom-fp-rate", "1e-3");
    expect_set(&fresh, "bind", "127.0.0.1   -::1");
    conf_take(&conf, &fresh, &changes);
    conf_fini(&fresh);

    assert_string_equal(conf.requirepass, "new");
    assert_true(conf.bf_fp_rate.value == 0.001);
    expect_shown(&conf, "bf.bloom-fp-rate", "1e-3");
    assert_int_equal(conf.port, 7379);
    assert_true(changes.changed[CONF_OPTION_requirepass]);
    assert_true(changes.changed[CONF_OPTION_bf_fp_rate]);
    assert_true(changes.needs_restart[CONF_OPTION_port]);
    assert_false(changes.changed[CONF_OPTION_port]);
    assert_false(changes.needs_restart[CONF_OPTION_bind]);
    conf_fini(&conf);
}

static void
expect_limits(const struct conf *conf, const char *expected)
{
    struct buf text = { 0 };

    conf_get(conf, conf_find(slice_lit("client-output-buffer-limit")), &text);
    buf_append(&text, "", 1);
    assert_string_equal(expected, text.data);
    buf_free(&text);
}

TEST(an_output_limit_changes_the_classes_that_are_named)
{
    const struct conf_row *row =
        conf_find(slice_lit("client-output-buffer-limit"));
    struct slice pair[2] = { slice_lit("client-output-buffer-limit") };
    struct conf_changes changes;
    struct conf_error error;
    struct conf conf;

    conf_init(&conf);
    expect_limits(&conf,
                  "normal 268435456 67108864 60 slave 268435456 67108864 60 "
                  "pubsub 33554432 8388608 60");
    assert_true(conf_set(&conf, row, slice_lit("pubsub 1 2 3"), &error));
    expect_limits(&conf, "normal 268435456 67108864 60 slave 268435456 "
                         "67108864 60 pubsub 1 2 3");
    pair[1] = slice_lit("normal 4 5 6");
    assert_true(conf_set_many(&conf, pair, 1, &changes, &error));
    expect_limits(&conf,
                  "normal 4 5 6 slave 268435456 67108864 60 pubsub 1 2 3");
    assert_true(changes.changed[row - conf_table]);
    assert_true(conf_set_many(&conf, pair, 1, &changes, &error));
    assert_false(changes.changed[row - conf_table]);
    conf_fini(&conf);
}
