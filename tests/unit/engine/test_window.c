/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which commands stand in a window, and that they leave behind what they leave
 * one by one. (Any mixture of commands is in test_dispatch.c; several threads
 * are in test_dispatch_threads.c.)
 */
#include "engine/window.h"

#include "base/metrics.h"
#include "dispatch_help.h"
#include "rig.h"

/* Returns how many commands the window has that begins with the batch. */
static uint32_t
gathered(struct rig *rig, const char *commands, bool may_group)
{
    char text[4096];
    char *rest = text;
    uint32_t count;

    assert_true(strlen(commands) < sizeof(text));
    (void)strcpy(text, commands);
    batch_begin(rig);
    for (char *line; (line = strtok_r(rest, ";", &rest)) != NULL;) {
        batch_text(rig, line);
    }
    rig->worker->session = &rig->session;
    window_gather(rig->worker, &rig->batch, 0, may_group);
    count = window_commands(rig->worker->window);
    rig->worker->session = NULL;
    return count;
}

/* "BF.ADD k0 i;BF.ADD k1 i;..." */
static const char *
adds(unsigned count)
{
    static char text[4096];
    size_t len = 0;

    for (unsigned i = 0; i < count; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len,
                                "%sBF.ADD k%u i", i > 0 ? ";" : "", i);
    }
    assert_true(len < sizeof(text));
    return text;
}

/* What was found of a key ahead holds for its own database. */
TEST(a_key_moves_out_of_a_window)
{
    struct rig *rig = rig_new();

    run_text(rig, adds(4), true);
    rig->out.len = 0;
    run_text(rig,
             "BF.EXISTS k1 i;MOVE k0 1;BF.EXISTS k2 i;BF.EXISTS k3 i;"
             "BF.EXISTS k0 i;BF.ADD k0 i",
             true);
    expect_replies(rig, ":1\r\n:1\r\n:1\r\n:1\r\n:0\r\n:1\r\n");
    rig_free(rig);
}

/* FLUSHDB and SWAPDB leave the tables as they are. */
TEST(what_was_found_ahead_ends_with_the_window)
{
    static const char look[] = "BF.EXISTS k0 i;BF.EXISTS k1 i;BF.EXISTS k2 i;"
                               "BF.EXISTS k3 i;";
    static const char *const changes[] = { "SWAPDB 0 1", "FLUSHDB", "FLUSHALL",
                                           "SELECT 1" };

    for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct rig *rig = rig_new();
        char text[512];

        run_text(rig, adds(4), true);
        run_text(rig, "SELECT 2;BF.ADD other i;SELECT 0", true);
        rig->out.len = 0;
        (void)snprintf(text, sizeof(text), "%s%s;%sMULTI;%sEXEC", look,
                       changes[i], look, look);
        run_text(rig, text, true);
        expect_replies(rig, ":1\r\n:1\r\n:1\r\n:1\r\n+OK\r\n"
                            ":0\r\n:0\r\n:0\r\n:0\r\n+OK\r\n"
                            "+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
                            "*4\r\n:0\r\n:0\r\n:0\r\n:0\r\n");
        rig->out.len = 0;
        (void)snprintf(text, sizeof(text),
                       "SELECT 0;FLUSHALL;BF.ADD k0 i;BF.ADD k1 i;BF.ADD k2 i;"
                       "BF.ADD k3 i;MULTI;BF.EXISTS k0 i;%s;%sEXEC",
                       changes[i], look);
        run_text(rig, text, true);
        expect_replies(rig, "+OK\r\n+OK\r\n:1\r\n:1\r\n:1\r\n:1\r\n"
                            "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
                            "+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
                            "*6\r\n:1\r\n+OK\r\n"
                            ":0\r\n:0\r\n:0\r\n:0\r\n");
        rig_free(rig);
    }
}

/* A window sees what its earlier commands deleted and created. */
TEST(a_window_deletes_and_creates_what_it_has_found)
{
    struct rig *rig = rig_new();

    run_text(rig, adds(4), true);
    rig->out.len = 0;
    run_text(rig,
             "BF.EXISTS k1 i;UNLINK k0;BF.EXISTS k0 i;BF.ADD k0 j;"
             "BF.EXISTS k0 i;BF.EXISTS k0 j;BF.ADD k9 i;BF.EXISTS k9 i;"
             "PEXPIREAT k1 1;BF.EXISTS k1 i",
             true);
    expect_replies(rig, ":1\r\n:1\r\n:0\r\n:1\r\n:0\r\n:1\r\n:1\r\n"
                        ":1\r\n:1\r\n:0\r\n");
    rig_free(rig);
}

TEST(short_commands_on_different_keys_make_a_window)
{
    struct rig *rig = rig_new();

    assert_int_equal(3, gathered(rig, adds(4), true) - 1);
    assert_int_equal(WINDOW_RUNS, gathered(rig, adds(100), true));
    assert_int_equal(
        8, gathered(rig,
                    "BF.EXISTS a x;BF.ADD b x;TTL c;EXPIRE d 100;DEL e;"
                    "BF.MADD f x y;EXISTS g h;BF.CARD a",
                    true));
    assert_int_equal(5, gathered(rig,
                                 "BF.ADD a x;BF.ADD a y;BF.ADD b x;"
                                 "BF.ADD c x;BF.ADD c y",
                                 true));
    rig_free(rig);
}

TEST(too_few_commands_make_no_window)
{
    struct rig *rig = rig_new();

    assert_int_equal(1, gathered(rig, adds(1), true));
    assert_int_equal(1, gathered(rig, adds(3), true));
    assert_int_equal(1, gathered(rig, adds(8), false));
    rig_free(rig);
}

TEST(a_run_of_one_key_is_a_window_of_its_own)
{
    struct rig *rig = rig_new();

    assert_int_equal(4, gathered(rig,
                                 "BF.ADD a 1;BF.ADD a 2;BF.ADD a 3;"
                                 "BF.ADD a 4;BF.ADD b 1;BF.ADD c 1;BF.ADD d 1",
                                 true));
    rig_free(rig);
}

TEST(a_window_ends_before_what_must_stand_alone)
{
    static const char *const alone[] = {
        "PING",     /* has no key */
        "nope x",   /* is unknown */
        "KEYS *",   /* locks by itself */
        "FLUSHALL", /* raises the gate */
        "COPY a b", /* works before it locks */
        "DUMP a",   /* may be slow */
        "MULTI",    /* changes the session */
    };
    struct rig *rig = rig_new();
    char text[128];

    for (size_t i = 0; i < sizeof(alone) / sizeof(alone[0]); i++) {
        (void)snprintf(text, sizeof(text), "TTL a;TTL b;%s;TTL c;TTL d",
                       alone[i]);
        assert_int_equal(2, gathered(rig, text, true));
        (void)snprintf(text, sizeof(text), "%s;TTL b;TTL c;TTL d;TTL e",
                       alone[i]);
        assert_int_equal(1, gathered(rig, text, true));
    }
    rig_free(rig);
}

TEST(a_refused_command_stands_alone)
{
    struct rig *rig = rig_new();

    assert_int_equal(2,
                     gathered(rig, "TTL a;TTL b;BF.ADD a;TTL c;TTL d", true));
    run_text(rig, "BF.ADD a; TTL b; TTL c; TTL d; TTL e; TTL", true);
    expect_replies(rig,
                   "-ERR wrong number of arguments for 'BF.ADD' command\r\n"
                   ":-2\r\n:-2\r\n:-2\r\n:-2\r\n"
                   "-ERR wrong number of arguments for 'ttl' command\r\n");
    rig_free(rig);
}

TEST(a_window_has_few_items)
{
    struct rig *rig = rig_new();
    struct buf text = { 0 };

    for (int command = 0; command < 4; command++) {
        buf_printf(&text, "%sBF.MADD k%d", command > 0 ? ";" : "", command);
        for (int item = 0; item < WINDOW_ITEMS / 2; item++) {
            buf_printf(&text, " i%d", item);
        }
    }
    buf_append(&text, "", 1);
    assert_int_equal(2, gathered(rig, text.data, true));
    buf_free(&text);
    rig_free(rig);
}

TEST(several_loops_lock_fewer_stripes_at_a_time)
{
    struct rig *rig = rig_new_threads(2);

    assert_int_equal(WINDOW_LOCKED, gathered(rig, adds(100), true));
    rig->worker->alone = true; /* locks nothing */
    assert_int_equal(WINDOW_RUNS, gathered(rig, adds(100), true));
    rig->worker->alone = false;
    rig_free(rig);
}

TEST(a_window_keeps_replies_and_effects_in_order)
{
    struct rig *rig = rig_new();

    run_text(rig, "BF.RESERVE a 0.01 100; BF.RESERVE b 0.01 100", true);
    effects_clear(rig);
    run_text(rig,
             "BF.ADD a x; BF.ADD b x; BF.EXISTS c x; BF.ADD a x; BF.ADD a y; "
             "DEL b; BF.EXISTS b x; BF.EXISTS a y; EXPIRE b 10; DEL a d",
             true);
    expect_replies(rig, ":1\r\n:1\r\n:0\r\n:0\r\n:1\r\n:1\r\n:0\r\n:1\r\n"
                        ":0\r\n:1\r\n");
    effects_take(rig);
    assert_int_equal(5, rig->effects.count);
    buf_append(&rig->effects.text, "", 1);
    assert_non_null(strstr(rig->effects.text.data, "BF.ADD a x"));
    assert_true(strstr(rig->effects.text.data, "BF.ADD a x") <
                strstr(rig->effects.text.data, "BF.ADD b x"));
    assert_true(strstr(rig->effects.text.data, "BF.ADD a y") <
                strstr(rig->effects.text.data, "DEL b"));
    rig_free(rig);
}

/* The tables grow, and their entries go, under what was looked up ahead. */
TEST(a_window_may_change_what_was_looked_up)
{
    enum { KEYS_EACH = 30 };
    struct rig *rig = rig_new();
    char line[LINE_MAX_BYTES];

    for (int round = 0; round < 50; round++) {
        batch_begin(rig);
        for (int i = 0; i < KEYS_EACH; i++) {
            static const char *const forms[] = { "BF.ADD @ x", "DEL @",
                                                 "BF.EXISTS @ x",
                                                 "BF.ADD @ y" };

            for (int f = 0; f < 4; f++) {
                const char *at = strchr(forms[f], '@');

                (void)snprintf(line, sizeof(line), "%.*sr%d.%d%s",
                               (int)(at - forms[f]), forms[f], round, i,
                               at + 1);
                batch_text(rig, line);
            }
        }
        batch_run(rig);
        for (int i = 0; i < KEYS_EACH; i++) {
            assert_memory_equal(":1\r\n:1\r\n:0\r\n:1\r\n",
                                rig->out.data + (size_t)i * 16, 16);
        }
    }
    assert_int_equal(50 * KEYS_EACH, count_keys(rig, 0));
    rig_free(rig);
}

/* An error is the reply of its command alone. */
TEST(an_error_in_a_window_ends_nothing)
{
    struct rig *rig = rig_new();

    run_text(rig, "BF.RESERVE full 0.01 1 NONSCALING; BF.ADD full x", true);
    run_text(rig, "BF.ADD a x; BF.ADD full y; BF.ADD b x; GET a; BF.ADD a x",
             true);
    expect_replies(rig, ":1\r\n-ERR non scaling filter is full\r\n:1\r\n"
                        "-WRONGTYPE Operation against a key holding the wrong "
                        "kind of value\r\n:0\r\n");
    rig_free(rig);
}

TEST(commands_of_a_window_are_counted_one_by_one)
{
    struct rig *rig = rig_new();
    const struct stats_command *stats = rig->worker->stats->command;
    int64_t before = metric_sum(METRIC_COMMANDS);

    batch_begin(rig);
    for (int i = 0; i < 60; i++) {
        char line[LINE_MAX_BYTES];

        (void)snprintf(line, sizeof(line),
                       i % 3 == 0 ? "TTL k%d" : "BF.ADD k%d x", i);
        batch_text(rig, line);
    }
    batch_run(rig);
    assert_int_equal(20, stats[CMD_ID_TTL].calls);
    assert_int_equal(40, stats[CMD_ID_BF_ADD].calls);
    assert_int_equal(60, metric_sum(METRIC_COMMANDS) - before);
    rig_free(rig);
}

/* Without it, the window could exceed maxmemory by all that it creates. */
TEST(commands_that_need_memory_are_admitted_singly_when_it_is_scarce)
{
    struct rig *rig = rig_new();
    struct window *window = rig->worker->window;
    struct request *req = rig->worker->request;

    rig->worker->session = &rig->session;
    (void)gathered(rig, adds(8), true);
    rig->worker->session = &rig->session;
    execute_prepare(req, window->run, 0);
    window_admit(req, window);
    assert_int_equal(8, window->count);
    rig->service.memory.maxmemory_bytes = 1 << 20;
    window_admit(req, window);
    assert_int_equal(1, window->count);
    (void)gathered(rig, "TTL a;TTL b;TTL c;TTL d;BF.ADD e x", true);
    rig->worker->session = &rig->session;
    execute_prepare(req, window->run, 0);
    window_admit(req, window);
    assert_int_equal(4, window->count);
    rig->worker->session = NULL;
    rig->service.memory.maxmemory_bytes = 0;
    rig_free(rig);
}
