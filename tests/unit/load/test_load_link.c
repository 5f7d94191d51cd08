/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections of bloomery-load: each failure is printed once, and ends them.
 */
#include "load/load_link.h"

#include "../capture.h"
#include "../script.h"

static struct load
load_of(void)
{
    return (struct load){ .tool = { .name = "test" },
                          .timeout_s = 20,
                          .value_bytes = 100 };
}

/* Opens a connection, and closes it if that works. */
static bool
open_and_close(struct load *load, const struct load_peer *peer)
{
    struct load_link link;
    bool open = load_link_open(load, peer, &link);

    if (open) {
        load_link_close(&link);
    }
    return open;
}

/* Expects that a connection fails so, at a server with these replies. */
static void
expect_refused(struct load_peer peer, const char *const *replies,
               const char *text, const char *heard)
{
    struct load load = load_of();
    struct script script;
    bool open = true;

    script_begin(&script, replies);
    peer.address = script.path;
    EXPECT_PRINTED(STDERR_FILENO, open = open_and_close(&load, &peer), text);
    script_end(&script, heard);
    assert_false(open);
    assert_int_equal(LOAD_UNREADABLE, load.tool.status);
}

static void
write_password(char path[32], const char *text, size_t len)
{
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(len, write(fd, text, len));
    assert_int_equal(0, close(fd));
}

TEST(addresses_are_hosts_with_ports_or_paths)
{
    static const char *const addresses[] = { "", "host", "host:", ":7379" };

    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        struct load_peer peer = { .address = addresses[i] };
        struct load load = load_of();
        bool open = true;

        EXPECT_PRINTED(STDERR_FILENO, open = open_and_close(&load, &peer),
                       "is neither HOST:PORT nor the path of a socket");
        assert_false(open);
        assert_int_equal(LOAD_USAGE, load.tool.status);
    }
}

TEST(a_server_that_is_not_there_is_named)
{
    struct load_peer peer = { .address = "/tmp/nothing/here" };
    struct load load = load_of();
    bool open = true;

    EXPECT_PRINTED(STDERR_FILENO, open = open_and_close(&load, &peer),
                   "test: /tmp/nothing/here: cannot connect: ");
    assert_false(open);
    assert_int_equal(LOAD_UNREADABLE, load.tool.status);
}

TEST(what_answers_ping_with_an_error_or_not_at_all_is_refused)
{
    static const char *const refuses[] = { "-NOAUTH log in first\r\n", NULL };
    static const char *const closes[] = { SCRIPT_CLOSES, NULL };
    static const char *const foreign[] = { "HTTP/1.1 400 Bad Request\r\n",
                                           NULL };
    const struct load_peer peer = { .address = NULL };

    expect_refused(peer, refuses, ": NOAUTH log in first\n", "PING\n");
    expect_refused(peer, closes, ": closed the connection\n", "PING\n");
    expect_refused(peer, foreign, "does not speak the protocol of Redis",
                   "PING\n");
}

TEST(a_password_is_sent_without_its_line_end)
{
    static const char *const accepts[] = { "+OK\r\n", "+PONG\r\n", NULL };
    static const char *const refuses[] = { "-WRONGPASS no\r\n", NULL };
    char path[32] = "/tmp/load-link-XXXXXX";
    struct load_peer peer = { .password_file = path, .user = "u" };
    struct load load = load_of();
    struct script script;

    write_password(path, "p w\r\n", 5);
    script_begin(&script, accepts);
    peer.address = script.path;
    assert_true(open_and_close(&load, &peer));
    script_end(&script, "AUTH u p w\nPING\n");
    expect_refused(peer, refuses, "refuses the password: WRONGPASS no",
                   "AUTH u p w\n");
    assert_int_equal(0, unlink(path));
    expect_refused(peer, accepts, "No such file", "");
}

TEST(a_password_has_a_limit)
{
    static const char *const accepts[] = { "+OK\r\n", "+PONG\r\n", NULL };
    char path[32] = "/tmp/load-link-XXXXXX";
    struct load_peer peer = { .password_file = path };
    static char text[4097];

    memset(text, 'p', sizeof(text));
    write_password(path, text, sizeof(text));
    expect_refused(peer, accepts, "too long a password", "");
    assert_int_equal(0, unlink(path));
}

TEST(replies_come_in_order_and_none_is_awaited_twice)
{
    static const char *const replies[] = { "+PONG\r\n", ":1\r\n", "$1\r\nx\r\n",
                                           "*1\r\n+a\r\n", NULL };
    const struct slice words[] = { slice_lit("GET"), slice_lit("x") };
    struct load load = load_of();
    struct load_peer peer = { .address = NULL };
    struct load_link link;
    struct script script;
    struct slice reply;
    int64_t number = 0;

    script_begin(&script, replies);
    peer.address = script.path;
    assert_true(load_link_open(&load, &peer, &link));
    assert_false(load_link_next(&link, &reply)); /* none is awaited */
    load_link_say(&link, "INCR", "a", NULL);
    load_link_send(&link, words, 2);
    load_link_send_raw(&link, slice_lit("*1\r\n$1\r\nL\r\n"), 1);
    assert_int_equal(3, link.awaited);
    assert_true(load_link_reply(&link, &reply));
    assert_true(resp_integer(reply, &number) && number == 1);
    assert_true(load_link_reply(&link, &reply));
    assert_true(slice_equal(slice_lit("x"), resp_text(reply)));
    assert_true(load_link_reply(&link, &reply));
    assert_int_equal(0, link.awaited);
    load_link_close(&link);
    script_end(&script, "PING\nINCR a\nGET x\nL\n");
}

TEST(a_failure_is_printed_once_and_ends_the_link)
{
    static const char *const replies[] = { "+PONG\r\n", SCRIPT_CLOSES, NULL };
    struct load load = load_of();
    struct load_peer peer = { .address = NULL };
    struct load_link link;
    struct script script;
    struct slice reply;
    bool got = true;

    script_begin(&script, replies);
    peer.address = script.path;
    assert_true(load_link_open(&load, &peer, &link));
    EXPECT_PRINTED(STDERR_FILENO, got = load_link_ask(&link, &reply, "A", NULL),
                   "/s: closed the connection\n");
    assert_false(got);
    assert_true(link.failed);
    EXPECT_OUTPUT(STDERR_FILENO, load_link_fail(&link, "again"), "");
    assert_false(load_link_next(&link, &reply));
    load_link_close(&link);
    script_end(&script, "PING\nA\n");
}

TEST(a_server_that_owes_a_reply_for_too_long_has_failed)
{
    static const char *const replies[] = { "+PONG\r\n", NULL };
    struct load load = load_of();
    struct load_peer peer = { .address = NULL };
    struct load_link link;
    struct load_link *links[] = { &link };
    struct script script;
    bool good = true;

    script_begin(&script, replies);
    peer.address = script.path;
    assert_true(load_link_open(&load, &peer, &link));
    load_link_say(&link, "A", NULL);
    assert_true(load_link_wait(links, 1, 0));
    link.client.heard_ns -= UINT64_C(21000000000);
    EXPECT_PRINTED(STDERR_FILENO, good = load_link_wait(links, 1, 0),
                   "no reply for 20 s (--timeout)");
    assert_false(good);
    load_link_close(&link);
    script_end(&script, NULL);
}
