/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Options of Redis that are accepted, and lines of redis.conf.
 */
#include "conf/conf_foreign.h"

#include "../test.h"
#include "conf/conf.h"

static const struct conf_notes no_notes;

TEST(options_that_do_no_harm_have_an_advice)
{
    static const char *const names[] = {
        "daemonize",          "SUPERVISED",
        "io-threads",         "hz",
        "syslog-enabled",     "lazyfree-lazy-expire",
        "oom-score-adj",      "oom-score-adj-values",
        "repl-diskless-sync", "zset-max-listpack-entries",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_non_null(conf_foreign_advice(slice_of(names[i])));
    }
    assert_null(conf_foreign_advice(slice_lit("")));
    assert_null(conf_foreign_advice(slice_lit("daemonizer")));
    assert_null(conf_foreign_advice(slice_lit("rename-command")));
}

/* Else the accepted one would hide ours. */
TEST(no_option_of_ours_is_among_them)
{
    for (size_t i = 0; i < CONF_OPTION_COUNT; i++) {
        const char *advice = conf_foreign_advice(slice_of(conf_table[i].name));

        assert_true(advice == NULL || conf_table[i].alias ||
                    strcmp(conf_table[i].name, "repl-diskless-sync-delay") ==
                        0);
    }
}

TEST(an_accepted_option_leaves_a_note)
{
    struct conf_notes notes = no_notes;
    struct slice rest, line, yes = slice_lit("yes");
    struct conf_error error;

    assert_true(conf_foreign_take(slice_lit("hz"), yes, "f:2", &notes, &error));
    assert_true(
        conf_foreign_take(slice_lit("daemonize"), yes, "f:3", NULL, &error));
    assert_true(
        conf_foreign_take(slice_lit("daemonize"), yes, "f:4", &notes, &error));
    rest = slice_of(notes.text);
    assert_true(conf_next_note(&rest, &line));
    assert_true(slice_equal(
        line, slice_lit("f:2: hz does nothing here: timers adapt by "
                        "themselves")));
    assert_true(conf_next_note(&rest, &line));
    assert_memory_equal(line.data, "f:4: daemonize does nothing here: ", 34);
    assert_false(conf_next_note(&rest, &line));
}

TEST(what_the_server_does_anyway_needs_no_note_and_what_it_cannot_is_refused)
{
    struct conf_notes notes = no_notes;
    struct conf_error error;

    assert_true(conf_foreign_take(slice_lit("cluster-enabled"), slice_lit("NO"),
                                  "f:1", &notes, &error));
    assert_true(conf_foreign_take(slice_lit("bind-source-addr"), slice_lit(""),
                                  "f:1", &notes, &error));
    assert_true(conf_foreign_take(slice_lit("shutdown-on-sigterm"),
                                  slice_lit("safe"), "f:1", &notes, &error));
    assert_string_equal(notes.text, "");
    assert_false(conf_foreign_take(slice_lit("cluster-enabled"),
                                   slice_lit("yes"), "f:1", &notes, &error));
    assert_non_null(strstr(error.text, "sidecar-of"));
    assert_true(conf_foreign_take(slice_lit("enable-protected-configs"),
                                  slice_lit("yes"), "f:1", &notes, &error));
    assert_non_null(strstr(notes.text, "stay fixed"));
}

TEST(a_line_of_redis_conf_is_known_by_its_blank)
{
    static const char *const lines[] = {
        "port 6379",          "  bind 127.0.0.1 -::1", "SAVE 3600 1",
        "save \"\"",          "daemonize\tyes",        "include /etc/x.conf",
        "rename-command A B", "requirepass foobared",
    };
    static const char *const others[] = {
        "",       "port",   "port =",    "port = 1", "port : 1",
        "port=1", "nope 1", "[network]", "# port 1", "maxclients   ",
    };
    struct conf_error error;

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_true(
            conf_foreign_explains("f:1", slice_of(lines[i]), false, &error));
        assert_non_null(strstr(error.text, "f:1: this file is in the syntax "
                                           "of redis.conf"));
        assert_null(strstr(error.text, "foobared"));
    }
    assert_true(
        conf_foreign_explains("f:1", slice_lit("port 6379"), false, &error));
    assert_non_null(strstr(error.text, "port = 6379 below [network]"));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_false(
            conf_foreign_explains("f:1", slice_of(others[i]), false, &error));
    }
}
