/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Items of files on one connection: how the filter is made, how replies are
 * counted, and what ends it. test_load_items.py has several connections.
 */
#include "load/load_items.h"

#include "../capture.h"
#include "../script.h"

struct loaded {
    struct load load;
    char out[2048], err[2048];
};

/* Loads a file of this text into the filter k of a server with these replies.
 */
static struct loaded
load_text(const char *text, const char *capacity, const char *const *replies,
          const char *heard)
{
    struct loaded loaded = { .load = { .tool = { .name = "test" },
                                       .timeout_s = 20,
                                       .value_bytes = 100000,
                                       .connections = 1,
                                       .capacity = capacity } };
    char path[] = "/tmp/load-items-XXXXXX";
    const char *const paths[] = { path };
    struct script script;
    struct capture out, err;
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(strlen(text), write(fd, text, strlen(text)));
    assert_int_equal(0, close(fd));
    script_begin(&script, replies);
    loaded.load.to.address = script.path;
    capture_begin(&out, STDOUT_FILENO);
    capture_begin(&err, STDERR_FILENO);
    load_items(&loaded.load, "k", paths, 1);
    (void)snprintf(loaded.err, sizeof(loaded.err), "%.2000s",
                   capture_end(&err));
    (void)snprintf(loaded.out, sizeof(loaded.out), "%.2000s",
                   capture_end(&out));
    script_end(&script, heard);
    assert_int_equal(0, unlink(path));
    return loaded;
}

#define ASKED    "PING\nBF.CARD k\nEXISTS k\n"
#define MISSING  "+PONG\r\n", ":0\r\n", ":0\r\n"
#define IS_THERE "+PONG\r\n", ":5\r\n", ":1\r\n"

TEST(a_missing_filter_is_made_for_the_items_that_are_counted)
{
    static const char *const replies[] = { MISSING, "+OK\r\n",
                                           "*3\r\n:1\r\n:1\r\n:0\r\n", NULL };
    struct loaded loaded =
        load_text("a\nb\n\na\n", NULL, replies,
                  ASKED "BF.RESERVE k 0.01 3\nBF.MADD k a b a\n");

    assert_string_equal("", loaded.err);
    assert_int_equal(LOAD_DONE, loaded.load.tool.status);
    assert_contains(loaded.out, "k:\n"
                                "    items read         3\n"
                                "    added              2\n"
                                "    there before       1\n"
                                "    refused            0\n"
                                "    empty, left out    1\n"
                                "    capacity           3 (counted)\n"
                                "    error rate         0.01\n");
}

TEST(a_filter_that_is_there_is_used_as_it_is)
{
    static const char *const replies[] = { IS_THERE, "*1\r\n:1\r\n", NULL };
    struct loaded loaded = load_text("a", NULL, replies, ASKED "BF.MADD k a\n");

    assert_int_equal(LOAD_DONE, loaded.load.tool.status);
    assert_contains(loaded.out,
                    "filter             existed; --error and --capacity not");
}

TEST(items_behind_an_error_of_a_full_filter_are_refused)
{
    static const char *const replies[] = {
        IS_THERE, "*2\r\n:1\r\n-ERR non scaling filter is full\r\n", NULL
    };
    struct loaded loaded = load_text("a\nb\nc\n", NULL, replies, NULL);

    assert_contains(loaded.out, "    added              1\n");
    assert_contains(loaded.out, "    refused            2\n");
    assert_contains(loaded.err, "2 items were refused: ERR non scaling");
    assert_int_equal(LOAD_INCOMPLETE, loaded.load.tool.status);
}

TEST(refusals_of_the_server_end_it)
{
    static const char *const other[] = { "+PONG\r\n", "-WRONGTYPE no\r\n",
                                         ":1\r\n", NULL };
    static const char *const limit[] = { MISSING, "-ERR too large\r\n", NULL };
    static const char *const denied[] = { IS_THERE, "-NOPERM no\r\n", NULL };
    static const char *const closes[] = { IS_THERE, SCRIPT_CLOSES, NULL };
    struct loaded loaded = load_text("a\n", NULL, other, ASKED);

    assert_contains(loaded.err, "/s: WRONGTYPE no\n");
    assert_int_equal(LOAD_UNREADABLE, loaded.load.tool.status);
    loaded = load_text("a\n", "100", limit, ASKED "BF.RESERVE k 0.01 100\n");
    assert_contains(loaded.err, "/s: ERR too large\n");
    loaded = load_text("a\n", NULL, denied, NULL);
    assert_contains(loaded.err, "/s: NOPERM no\n");
    assert_contains(loaded.err, "to add the rest, repeat the command");
    loaded = load_text("a\n", NULL, closes, NULL);
    assert_contains(loaded.err, "/s: closed the connection\n");
    assert_int_equal(LOAD_UNREADABLE, loaded.load.tool.status);
}

TEST(a_capacity_that_is_no_number_is_a_mistake)
{
    static const char *const replies[] = { MISSING, NULL };
    struct loaded loaded = load_text("a\n", "many", replies, ASKED);

    assert_contains(loaded.err, "--capacity: is auto or a number of items");
    assert_int_equal(LOAD_USAGE, loaded.load.tool.status);
}

TEST(items_go_in_batches_of_256)
{
    static const char *const replies[] = { IS_THERE, "*0\r\n", "*0\r\n", NULL };
    char text[2 * 257 + 1];
    struct loaded loaded;

    for (size_t i = 0; i < 257; i++) {
        memcpy(text + 2 * i, "x\n", 2);
    }
    text[sizeof(text) - 1] = '\0';
    loaded = load_text(text, NULL, replies, NULL);
    assert_contains(loaded.out, "    items read         257\n");
    assert_contains(loaded.out, "    refused            257\n");
    assert_contains(loaded.err, "257 items were refused: behind the first");
}
