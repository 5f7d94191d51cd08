/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A client on one end of a pair of sockets; the test is the server.
 */
#include "client/client.h"

#include "../test.h"
#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

static struct client client;
static int server;

static void
begin(size_t reply_max)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    client_init(&client, reply_max);
    client.fd = fds[0];
    server = fds[1];
}

static void
end(void)
{
    client_close(&client);
    (void)close(server);
}

static void
say(const char *text)
{
    assert_int_equal(write(server, text, strlen(text)), (int)strlen(text));
}

static uint64_t
soon(void)
{
    return clock_mono_ns() + 60 * SECOND_NS;
}

static void
assert_reply(const char *expected)
{
    struct slice reply;

    assert_true(client_reply(&client, soon(), &reply));
    assert_true(slice_equal(reply, slice_of(expected)));
}

static void
assert_fault(uint64_t deadline_ns, enum client_fault fault)
{
    struct slice reply;

    assert_false(client_reply(&client, deadline_ns, &reply));
    assert_int_equal(client.fault, fault);
    end();
}

TEST(a_command_is_sent_and_answered)
{
    const struct slice words[] = { slice_lit("PING"), slice_lit("x") };
    char got[128];
    ssize_t len;

    begin(100);
    client_send_login(&client, 3, slice_lit("me"), slice_lit("pw"));
    client_send(&client, words, 2);
    client_send_raw(&client, slice_lit("*0\r\n"));
    say("+x\r\n");
    assert_reply("+x\r\n");
    len = read(server, got, sizeof(got) - 1);
    assert_true(len > 0);
    got[len] = '\0';
    assert_string_equal(got, "*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n"
                             "$2\r\nme\r\n$2\r\npw\r\n"
                             "*2\r\n$4\r\nPING\r\n$1\r\nx\r\n*0\r\n");
    end();
}

TEST(replies_come_one_by_one_and_pushes_among_them)
{
    struct slice reply;

    begin(100);
    say("*2\r\n:1\r\n$2\r\nab\r\n>1\r\n+p\r\n:");
    assert_reply("*2\r\n:1\r\n$2\r\nab\r\n");
    assert_reply(">1\r\n+p\r\n");
    assert_false(client_next(&client, &reply));
    say("7\r\n");
    assert_reply(":7\r\n");
    end();
}

TEST(what_a_long_reply_needed_is_given_back)
{
    enum { PART = 64 * 1024, LONG = 14 * PART };
    static char part[PART];
    struct slice reply;
    char head[32];

    begin(LONG);
    (void)snprintf(head, sizeof(head), "$%d\r\n", LONG - 2);
    say(head);
    memset(part, 'x', PART);
    for (int sent = 0; sent < LONG; sent += PART) {
        memcpy(&part[PART - 2], sent + PART < LONG ? "xx" : "\r\n", 2);
        assert_int_equal(write(server, part, PART), PART);
        assert_int_equal(client_next(&client, &reply), false);
        assert_true(client_wait(&client, soon()));
        if (sent == 0) {
            client_trim(&client); /* what has come stays */
        }
    }
    say(":1\r\n:2");
    while (!client_next(&client, &reply)) {
        assert_true(client_wait(&client, soon()));
    }
    assert_int_equal(reply.len, strlen(head) + LONG);
    assert_reply(":1\r\n");
    assert_true(client.in.capacity > LONG);
    say("\r\n");
    assert_reply(":2\r\n");
    client_trim(&client);
    assert_true(client.in.capacity < LONG);
    say("+on\r\n");
    assert_reply("+on\r\n");
    end();
}

TEST(what_is_not_resp_is_not_waited_for)
{
    static const char *const bad[] = { "HTTP/1.1", "\r\n", "$x\r\n", "*-2\r\n",
                                       "+PONG\n" };

    for (size_t i = 0; i < 5; i++) {
        begin(100);
        say(bad[i]);
        assert_fault(soon(), CLIENT_FOREIGN);
    }
    begin(100);
    client.line_max = 8;
    say("+23456789");
    assert_fault(soon(), CLIENT_FOREIGN);
}

TEST(a_reply_longer_than_the_limit_is_refused_at_its_header)
{
    begin(100);
    client.value_max = 100;
    say("$101\r\n");
    assert_fault(soon(), CLIENT_TOO_LONG);
}

/* A list never ends, and has no value that is too long. */
TEST(many_short_values_meet_the_limit_too)
{
    char values[4096];
    struct slice reply;

    begin(100);
    say("*999999\r\n");
    for (size_t i = 0; i < sizeof(values); i += 4) {
        memcpy(values + i, ":1\r\n", 4);
    }
    while (client.fault == CLIENT_FINE) {
        assert_int_equal(write(server, values, sizeof(values)), sizeof(values));
        (void)client_wait(&client, soon());
        (void)client_next(&client, &reply);
    }
    assert_int_equal(client.fault, CLIENT_TOO_LONG);
    end();
}

TEST(a_closed_connection_gives_what_came_before)
{
    begin(100);
    say("+OK\r\n+O");
    assert_int_equal(shutdown(server, SHUT_RDWR), 0);
    assert_reply("+OK\r\n");
    assert_fault(soon(), CLIENT_CLOSED);
}

TEST(the_deadline_ends_a_wait)
{
    begin(100);
    say("+O");
    assert_fault(clock_mono_ns() + SECOND_NS / 100, CLIENT_LATE);
}

TEST(another_descriptor_ends_a_wait)
{
    begin(100);
    client.wake_fd = eventfd(1, EFD_CLOEXEC);
    assert_fault(soon(), CLIENT_LATE);
    (void)close(client.wake_fd);
}

TEST(the_first_fault_stays)
{
    begin(100);
    assert_false(client_fail(&client, CLIENT_LATE, 1));
    assert_false(client_fail(&client, CLIENT_READ, 2));
    assert_int_equal(client.fault, CLIENT_LATE);
    assert_int_equal(client.code, 1);
    end();
}

TEST(bytes_that_are_no_replies_are_consumed_by_the_caller)
{
    begin(100);
    say("abc");
    assert_true(client_wait(&client, soon()));
    assert_true(slice_equal(client_bytes(&client), slice_lit("abc")));
    client_consume(&client, 2);
    assert_true(slice_equal(client_bytes(&client), slice_lit("c")));
    client_consume(&client, 1);
    assert_int_equal(client_bytes(&client).len, 0);
    end();
}
