/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How files change when the options in force are written into them.
 */
#include "conf/conf_rewrite.h"

#include "../test.h"
#include "conf/conf_load.h"
#include "conf/conf_print.h"
#include "conf/conf_value.h"

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

/* Rewrites `text`, which says what conf has, after the pairs are set. */
static void
check(const char *text, const char *const pairs[], const char *expected)
{
    struct conf conf;
    struct conf_error error;
    struct buf out = { 0 };

    conf_init(&conf);
    assert_true(conf_load_text(&conf, "x", slice_of(text), &error));
    for (size_t i = 0; pairs[i] != NULL; i += 2) {
        set(&conf, pairs[i], pairs[i + 1]);
    }
    if (!conf_rewrite(&conf, "x", slice_of(text), &out, &error)) {
        fail_msg("%s", error.text);
    }
    buf_append(&out, "", 1);
    assert_string_equal(expected, out.data);
    buf_free(&out);
    conf_fini(&conf);
}

#define PAIRS(...)                                                             \
    (const char *const[])                                                      \
    {                                                                          \
        __VA_ARGS__, NULL                                                      \
    }

TEST(a_file_that_says_what_is_in_force_stays_as_it_is)
{
    static const char text[] = "\xef\xbb\xbf# head\n\n"
                               "[Network]\n  Timeout=\t7\r\n; note\n"
                               "timeout: 8\n[save]\n[persistence]\n"
                               "save = 900 1\nsave = 300 10\n\n";

    check(text, PAIRS(NULL), text);
    check("", PAIRS(NULL), "");
}

TEST(values_change_where_they_stand)
{
    check("# head\n[network]\n  Timeout=\t7\r\n; note\n[bf]\n"
          "bloom-capacity :  10\n",
          PAIRS("timeout", "9", "bf.bloom-capacity", "20"),
          "# head\n[network]\n  Timeout=\t9\r\n; note\n[bf]\n"
          "bloom-capacity :  20\n");
    check("[network]\ntimeout = 1\ntimeout = 2\n", PAIRS("timeout", "3"),
          "[network]\ntimeout = 1\ntimeout = 3\n");
    check("[network]\ntimeout = 1", PAIRS("timeout", "0"),
          "[network]\ntimeout = 0\n");
    check("[security]\nrequirepass =\n", PAIRS("requirepass", "x"),
          "[security]\nrequirepass =x\n");
}

TEST(new_options_go_below_their_comment_or_to_the_end_of_their_section)
{
    check("[network]\n# timeout = 0\nport = 1\n\n[bf]\n\n[network]\n# x\n\n",
          PAIRS("timeout", "5", "maxclients", "50", "bf.bloom-capacity", "7"),
          "[network]\n# timeout = 0\ntimeout = 5\nport = 1\n\n[bf]\n"
          "bloom-capacity = 7\n\n[network]\n# x\nmaxclients = 50\n\n");
    check("[network]\nport = 1", PAIRS("maxmemory", "1gb"),
          "[network]\nport = 1\n\n[memory]\nmaxmemory = 1073741824\n");
    check("", PAIRS("dialect", "redis"), "[server]\ndialect = redis\n");
    /* A comment of another section is not that of the option. */
    check("[bf]\n# timeout = 0\n", PAIRS("timeout", "5"),
          "[bf]\n# timeout = 0\n\n[network]\ntimeout = 5\n");
}

TEST(what_shows_badly_stands_in_quotes)
{
    check("", PAIRS("requirepass", " a ; b # "),
          "[security]\nrequirepass = \" a ; b # \"\n");
    check("", PAIRS("requirepass", "\"x"),
          "[security]\nrequirepass = \"\"x\"\n");
    check("", PAIRS("save", ""), "[persistence]\nsave = \"\"\n");
}

TEST(rules_of_save_become_one_line)
{
    check("[persistence]\nsave = 900 1\n# between\nsave = 300 10\n",
          PAIRS("save", "60 1 5 2"),
          "[persistence]\n# between\nsave = 60 1 5 2\n");
}

TEST(options_that_need_a_restart_keep_their_line_and_are_added_without_one)
{
    struct conf conf;
    struct conf_error error;
    struct buf out = { 0 };

    conf_init(&conf);
    set(&conf, "port", "1");
    set(&conf, "threads", "3");
    assert_true(conf_rewrite(&conf, "x", slice_lit("[network]\nport = 2\n"),
                             &out, &error));
    buf_append(&out, "", 1);
    assert_string_equal("[network]\nport = 2\n\n[server]\nthreads = 3\n",
                        out.data);
    buf_free(&out);
    conf_fini(&conf);
}

TEST(another_name_of_an_option_is_not_added)
{
    check("[bf]\nbf-initial-size = 10\n", PAIRS("bf.bloom-capacity", "20"),
          "[bf]\nbf-initial-size = 20\n");
    check("", PAIRS("bf.bloom-capacity", "20"), "[bf]\nbloom-capacity = 20\n");
}

static void
check_refused(const char *text, const char *password, const char *why)
{
    struct conf conf;
    struct conf_error error;
    struct buf out = { 0 };

    conf_init(&conf);
    set(&conf, "requirepass", password);
    assert_false(conf_rewrite(&conf, "x", slice_of(text), &out, &error));
    assert_string_equal(why, error.text);
    buf_free(&out);
    conf_fini(&conf);
}

TEST(what_cannot_be_written_is_refused)
{
    check_refused("", "a\nb",
                  "the value of requirepass has a line break, which no line of "
                  "a file can hold");
    check_refused("[network]\nnope = 1\n", "a",
                  "x:2: unknown option 'nope' in section [network]");
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

TEST(a_password_from_a_file_is_not_written)
{
    struct conf_error error;
    struct buf out = { 0 };
    struct conf conf;
    struct conf base;

    conf_init(&conf);
    conf_init(&base);
    set(&conf, "requirepass-file", "/run/secret");
    set(&base, "requirepass-file", "/run/secret");
    set(&conf, "requirepass", "sesame");
    set(&conf, "maxclients", "77");
    assert_true(conf_rewrite(
        &conf, "x", slice_lit("[security]\nrequirepass-file = /run/secret\n"),
        &out, &error));
    buf_append(&out, "", 1);
    assert_null(strstr(out.data, "sesame"));
    assert_non_null(strstr(out.data, "maxclients = 77"));
    buf_free(&out);
    assert_true(conf_rewrite_beside(&conf, &base, &out, &error));
    buf_append(&out, "", 1);
    assert_null(strstr(out.data, "sesame"));
    assert_non_null(strstr(out.data, "maxclients = 77"));
    buf_free(&out);
    conf_fini(&conf);
    conf_fini(&base);
}

static void
check_all(const struct conf *conf, struct slice text)
{
    struct conf_error error;
    struct buf out = { 0 };
    struct buf again = { 0 };
    struct conf fresh;

    if (!conf_rewrite(conf, "x", text, &out, &error)) {
        fail_msg("%s", error.text);
    }
    conf_init(&fresh);
    assert_true(conf_load_text(&fresh, "x", buf_slice(&out), &error));
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        if (!conf_same(conf, &fresh, &conf_table[i])) {
            fail_msg("%s is lost", conf_table[i].name);
        }
    }
    /* There is nothing left to do. */
    assert_true(conf_rewrite(conf, "x", buf_slice(&out), &again, &error));
    assert_true(slice_equal(buf_slice(&out), buf_slice(&again)));
    buf_free(&out);
    buf_free(&again);
    conf_fini(&fresh);
}

TEST(every_option_is_kept)
{
    struct conf conf;
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);

    assert_non_null(to);
    conf_print_file(to);
    assert_int_equal(0, fclose(to));
    set_all(&conf);
    check_all(&conf, slice_lit(""));
    check_all(&conf, (struct slice){ text, len });
    free(text);
    conf_fini(&conf);
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

TEST(the_file_beside_says_only_what_differs)
{
    struct conf conf;
    struct conf base;
    struct conf fresh;
    struct conf_error error;
    struct buf out = { 0 };

    conf_init(&conf);
    conf_init(&base);
    conf_init(&fresh);
    set(&base, "timeout", "5");
    set(&base, "port", "1");
    set(&conf, "timeout", "5");
    set(&conf, "port", "2"); /* what the file says was meant for next time */
    set(&conf, "dir", "/elsewhere");
    set(&conf, "threads", "3");
    set(&conf, "maxclients", "50");
    assert_true(conf_rewrite_beside(&conf, &base, &out, &error));
    buf_append(&out, "", 1);
    assert_non_null(strstr(out.data, "\n[network]\nmaxclients = 50\n"
                                     "\n[server]\nthreads = 3\n"));
    assert_null(strstr(out.data, "port"));
    assert_null(strstr(out.data, "timeout"));
    assert_null(strstr(out.data, "\ndir"));
    out.len--;
    assert_true(conf_load_text(&fresh, "x", buf_slice(&out), &error));
    assert_int_equal(50, fresh.maxclients);
    buf_free(&out);
    conf_fini(&conf);
    conf_fini(&base);
    conf_fini(&fresh);
}
