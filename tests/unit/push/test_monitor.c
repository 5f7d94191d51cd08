/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The line of MONITOR, and the loops that get it.
 */
#include "push/monitor.h"

#include "../net/rig.h"
#include "net/push.h"

static const struct slice no_words = { NULL, 0 };

static void
expect_line(const struct slice *argv, size_t argc, const char *expected)
{
    struct monitor *monitor = monitor_new(2);
    struct receiver receiver = { .loop = 1 };
    struct notice_list list = { 0 };
    struct monitor_line line = { 1700000000000042, 7, "[::1]:5", argv, argc };

    monitor_feed(monitor, &line, &list);
    assert_int_equal(0, list.count); /* no monitors */
    monitor_join(monitor, &receiver);
    monitor_feed(monitor, &line, &list);
    assert_int_equal(1, list.count);
    assert_int_equal(1, list.posts[0].loop);
    assert_int_equal(NOTICE_MONITOR, list.posts[0].notice->kind);
    assert_int_equal(strlen(expected), list.posts[0].notice->payload.len);
    assert_memory_equal(expected, list.posts[0].notice->payload.data,
                        strlen(expected));
    monitor_leave(monitor, &receiver);
    notice_list_fini(&list);
    monitor_free(monitor);
}

TEST(a_line_shows_time_database_address_and_words)
{
    const struct slice argv[] = { slice_lit("bf.add"), slice_lit("k"),
                                  slice_lit("") };

    expect_line(argv, 3,
                "+1700000000.000042 [7 [::1]:5] \"bf.add\" \"k\" \"\"\r\n");
    expect_line(&no_words, 0, "+1700000000.000042 [7 [::1]:5]\r\n");
}

TEST(bytes_that_a_line_cannot_hold_are_escaped)
{
    const struct slice word = slice_lit("\a\b\t\n\r\"\\'\x01\x1f ~\x7f\xff\0");

    expect_line(&word, 1,
                "+1700000000.000042 [7 [::1]:5] "
                "\"\\a\\b\\t\\n\\r\\\"\\\\'\\x01\\x1f ~\\x7f\\xff\\x00\"\r\n");
}

static struct slice
first_payload(const struct notice_list *list)
{
    return list->posts[0].notice->payload;
}

TEST(long_commands_are_shortened)
{
    enum { WORDS = 100, LONG = 20000 };
    struct monitor *monitor = monitor_new(1);
    struct receiver receiver = { .loop = 0 };
    struct notice_list list = { 0 };
    struct slice argv[WORDS];
    struct monitor_line line = { .address = "x", .argv = argv };
    char *bytes = mem_alloc(LONG);
    struct slice got;

    memset(bytes, 'a', LONG);
    for (unsigned i = 0; i < WORDS; i++) {
        argv[i] = (struct slice){ bytes, LONG };
    }
    monitor_join(monitor, &receiver);
    line.argc = 1;
    monitor_feed(monitor, &line, &list);
    got = first_payload(&list);
    assert_memory_equal("aa... (3616 more bytes)\"\r\n",
                        got.data + got.len - 26, 26);
    notice_list_fini(&list);
    line.argc = WORDS;
    monitor_feed(monitor, &line, &list);
    got = first_payload(&list);
    assert_in_range(got.len, 128 * 1024, 160 * 1024);
    assert_memory_equal(" \"... (92 more arguments)\"\r\n",
                        got.data + got.len - 28, 28);
    notice_list_fini(&list);
    monitor_leave(monitor, &receiver);
    monitor_free(monitor);
    mem_free(bytes);
}

TEST(all_monitors_of_a_loop_get_it_until_they_leave)
{
    struct rig *rig = rig_new();
    struct monitor *monitor = monitor_new(1);
    struct peer peer[3];
    struct receiver receiver[3] = { { .loop = 0 } };
    struct notice *notice =
        notice_new(NOTICE_MONITOR, 0, no_words, slice_lit("+line\r\n"));

    for (unsigned i = 0; i < 3; i++) {
        peer[i] = peer_new(rig, false);
        receiver[i].conn = rig->last;
        monitor_join(monitor, &receiver[i]);
    }
    monitor_leave(monitor, &receiver[1]);
    assert_false(receiver[1].monitors);
    monitor_deliver(monitor, 0, notice);
    (void)push_flush(&rig->loop, UINT64_MAX);
    peer_expect(rig, &peer[0], "+line\r\n");
    peer_expect(rig, &peer[2], "+line\r\n");
    rig_settle(rig);
    assert_false(peer_has(&peer[1], 1));
    monitor_cut(monitor, 0);
    assert_true(conn_is_closing(receiver[0].conn) &&
                conn_is_closing(receiver[2].conn));
    assert_false(conn_is_closing(receiver[1].conn));
    monitor_leave(monitor, &receiver[2]);
    monitor_leave(monitor, &receiver[0]);
    notice_unref(notice);
    for (unsigned i = 0; i < 3; i++) {
        peer_free(&peer[i]);
    }
    monitor_free(monitor);
    rig_free(rig);
}

TEST(without_memory_for_a_line_it_is_lost_and_said_so)
{
    const struct slice word = slice_lit("x");

    for (unsigned nth = 1; nth <= 3; nth++) {
        struct monitor *monitor = monitor_new(2);
        struct receiver receiver = { .loop = 1 };
        struct notice_list list = { 0 };
        struct monitor_line line = { .address = "x", .argv = &word, .argc = 1 };

        monitor_join(monitor, &receiver);
        mem_fail_at(nth);
        monitor_feed(monitor, &line, &list);
        assert_true(mem_fail_clear());
        assert_int_equal(0, list.count);
        assert_int_equal(2, list.lost);
        monitor_leave(monitor, &receiver);
        notice_list_fini(&list);
        monitor_free(monitor);
    }
}
