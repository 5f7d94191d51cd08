/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The text of rewritten.conf: which options it sets, and that it reads back.
 */
#include "conf/conf_rewrite.h"

#include "../test.h"
#include "conf/conf_load.h"

#include <stdio.h>
#include <stdlib.h>

static void
set(struct conf *conf, const char *name, const char *value)
{
    struct conf_error error;
    const struct conf_row *row = conf_find(slice_of(name));

    assert_non_null(row);
    if (!conf_set(conf, row, slice_of(value), &error)) {
        fail_msg("%s = %s: %s", name, value, error.text);
    }
}

/* Sets pairs of names and values, up to a NULL. */
static void
set_pairs(struct conf *conf, const char *const pairs[])
{
    conf_init(conf);
    for (size_t i = 0; pairs[i] != NULL; i += 2) {
        set(conf, pairs[i], pairs[i + 1]);
    }
}

/* Expects this text behind the comment at the head; NULL: a refusal. */
static void
check(const char *const pairs[], const char *const given_pairs[],
      const char *expected)
{
    struct conf conf;
    struct conf given;
    struct conf_error error;
    struct buf out = { 0 };

    set_pairs(&conf, pairs);
    set_pairs(&given, given_pairs);
    if (expected == NULL) {
        assert_false(conf_rewrite(&conf, &given, &out, &error));
        assert_string_equal("the value of requirepass has a line break, which "
                            "no line of a file can hold",
                            error.text);
    } else {
        const char *behind;

        assert_true(conf_rewrite(&conf, &given, &out, &error));
        buf_append(&out, "", 1);
        behind = strchr(out.data, '[');
        assert_string_equal(expected, behind != NULL ? behind : "");
    }
    buf_free(&out);
    conf_fini(&conf);
    conf_fini(&given);
}

#define PAIRS(...)                                                             \
    (const char *const[])                                                      \
    {                                                                          \
        __VA_ARGS__, NULL                                                      \
    }

TEST(only_options_with_another_value_are_written)
{
    check(PAIRS(NULL), PAIRS(NULL), "");
    check(PAIRS("timeout", "5", "maxclients", "50", "maxmemory", "1gb"),
          PAIRS("timeout", "5", "maxclients", "7"),
          "[network]\nmaxclients = 50\n\n[memory]\n"
          "maxmemory = 1073741824\n");
    /* Back to the default, which the file does not give. */
    check(PAIRS(NULL), PAIRS("timeout", "5"), "[network]\ntimeout = 0\n");
}

TEST(options_that_need_a_restart_are_left_to_the_file)
{
    check(PAIRS("port", "2", "dir", "/elsewhere", "threads", "3"), PAIRS(NULL),
          "");
}

TEST(an_option_is_written_by_its_own_name)
{
    check(PAIRS("bf-initial-size", "20"), PAIRS(NULL),
          "[bf]\nbloom-capacity = 20\n");
}

TEST(values_with_ends_that_a_reader_would_cut_stand_in_quotes)
{
    check(PAIRS("requirepass", " a ; b # "), PAIRS(NULL),
          "[security]\nrequirepass = \" a ; b # \"\n");
    check(PAIRS("requirepass", "\"x"), PAIRS(NULL),
          "[security]\nrequirepass = \"\"x\"\n");
    check(PAIRS("requirepass", "s ; # s"), PAIRS(NULL),
          "[security]\nrequirepass = s ; # s\n");
    check(PAIRS("save", ""), PAIRS(NULL), "[persistence]\nsave = \"\"\n");
}

TEST(a_value_that_no_line_can_hold_is_refused)
{
    check(PAIRS("requirepass", "a\nb"), PAIRS(NULL), NULL);
}

TEST(a_password_from_a_file_is_not_written)
{
    check(PAIRS("requirepass-file", "/run/secret", "requirepass", "sesame",
                "maxclients", "77"),
          PAIRS("requirepass-file", "/run/secret"),
          "[network]\nmaxclients = 77\n");
}

/* Another value than the default that the row takes; NULL: there is none. */
static const char *
other_value(const struct conf_row *row, char ret_text[64])
{
    static const char *const texts[] = {
        [CONF_SHARE] = "7%",
        [CONF_OCTAL] = "640",
        [CONF_STRING] = "elsewhere",
        [CONF_STRINGS] = "::1",
        [CONF_RATE] = "0.25",
        [CONF_SECRET] = " pass word ",
        [CONF_OUTPUT_LIMIT] = "normal 100000000 90000000 7",
        [CONF_SAVE] = "77 5 6 7",
        [CONF_EVENTS] = "KEg",
        [CONF_PERCENTILES] = "12 13.5",
    };

    if (row->host_port) {
        return "::1 7379";
    }
    if (row->when == CONF_RELOAD) { /* it would give the value of another */
        return NULL;
    }
    switch (row->type) {
    case CONF_BOOL:
        return strcmp(row->preset, "yes") == 0 ? "no" : "yes";
    case CONF_ENUM:
        for (const struct conf_choice *c = row->choices; c->name != NULL; c++) {
            if (strcmp(c->name, row->preset) != 0) {
                return c->name;
            }
        }
        return NULL;
    case CONF_INT:
    case CONF_BYTES:
        (void)snprintf(ret_text, 64, "%lld",
                       (long long)(strtoll(row->preset, NULL, 10) == row->min
                                       ? row->min + 1
                                       : row->min));
        return ret_text;
    default:
        return texts[row->type];
    }
}

static void
set_all(struct conf *conf)
{
    conf_init(conf);
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        const struct conf_row *row = &conf_table[i];
        char text[64];
        const char *value = other_value(row, text);

        if (value != NULL && row->only == NULL && !row->alias) {
            struct conf presets;

            conf_init(&presets);
            set(conf, row->name, value);
            assert_false(conf_same(conf, &presets, row));
            conf_fini(&presets);
        }
    }
}

TEST(every_option_reads_back)
{
    struct conf conf;
    struct conf given;
    struct conf_error error;
    struct buf out = { 0 };

    set_all(&conf);
    conf_init(&given);
    assert_true(conf_rewrite(&conf, &given, &out, &error));
    if (!conf_load_text(&given, "x", buf_slice(&out), NULL, &error)) {
        fail_msg("%s", error.text);
    }
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        if (conf_table[i].when == CONF_RUNTIME &&
            !conf_same(&conf, &given, &conf_table[i])) {
            fail_msg("%s is lost", conf_table[i].name);
        }
    }
    buf_free(&out);
    conf_fini(&conf);
    conf_fini(&given);
}

TEST(a_copy_has_all_values_and_is_its_own)
{
    struct conf_error error;
    struct conf conf;
    struct conf copy;

    set_all(&conf);
    assert_true(conf_copy(&conf, &copy, &error));
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        assert_true(conf_same(&conf, &copy, &conf_table[i]));
    }
    set(&conf, "requirepass", "other");
    assert_string_equal(" pass word ", copy.requirepass);
    conf_fini(&conf);
    conf_fini(&copy);
}
