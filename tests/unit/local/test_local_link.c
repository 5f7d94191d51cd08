/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A link to a server that is a thread of the test. It answers each piece of
 * bytes that has a command with what the test wants, and closes.
 */
#include "local/local_link.h"

#include "../test.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define MISSING                                                                \
    ">5\r\n$10\r\nbf.message\r\n$1\r\nk\r\n$2\r\nis\r\n$1\r\n1\r\n"            \
    "$7\r\nmissing\r\n"

struct host {
    int listener;
    char port[16];
    pthread_t thread;
    const char *_Atomic hello; /* the answer to HELLO */
    _Atomic unsigned closes;   /* connections that are closed at BF.SUBSCRIBE */
    const char *moved;         /* NULL, or the answer to BF.SUBSCRIBE */
    char heard[512];           /* the login */
};

static void
converse(struct host *host, int fd)
{
    char bytes[4096];
    ssize_t got;

    while ((got = read(fd, bytes, sizeof(bytes) - 1)) > 0) {
        const char *answer = "+OK\r\n";

        bytes[got] = '\0';
        if (strstr(bytes, "HELLO") != NULL) {
            (void)snprintf(host->heard, sizeof(host->heard), "%.500s", bytes);
            answer = atomic_load(&host->hello);
        } else if (strstr(bytes, "BF.SUBSCRIBE") != NULL) {
            answer = host->moved != NULL ? host->moved : MISSING;
            if (atomic_load(&host->closes) > 0) {
                atomic_fetch_sub(&host->closes, 1);
                return;
            }
        }
        (void)!write(fd, answer, strlen(answer));
    }
}

static void *
serve(void *arg)
{
    struct host *host = arg;
    int fd;

    while ((fd = accept(host->listener, NULL, NULL)) >= 0) {
        converse(host, fd);
        (void)close(fd);
    }
    return NULL;
}

static void
host_begin(struct host *host, const char *hello)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof(at);

    *host = (struct host){ .listener = -1 };
    atomic_init(&host->hello, hello);
    host->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(host->listener, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(host->listener, 8), 0);
    assert_int_equal(getsockname(host->listener, (struct sockaddr *)&at, &len),
                     0);
    (void)snprintf(host->port, sizeof(host->port), "%u", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&host->thread, NULL, serve, host), 0);
}

static void
host_end(struct host *host)
{
    (void)shutdown(host->listener, SHUT_RDWR);
    assert_int_equal(pthread_join(host->thread, NULL), 0);
    (void)close(host->listener);
}

static struct local_copy *
new_copy(void)
{
    const struct local_options options = { .key = slice_lit("k"),
                                           .max_stale_ms = 1000,
                                           .refresh_ms = 1000,
                                           .missing_is_absent = true };

    return local_copy_new(&options);
}

/* Steps until the copy says so. */
static void
await(struct local_link *link, enum local_answer answer)
{
    uint64_t end_ms = local_link_now_ms() + 60000;

    while (local_copy_contains(link->copy, slice_lit("x"),
                               local_link_now_ms()) != answer) {
        uint64_t now_ms = local_link_now_ms();

        assert_true(now_ms < end_ms);
        local_link_step(link, now_ms + 20);
    }
}

TEST(a_link_logs_in_and_selects_before_the_copy_speaks)
{
    struct local_copy *copy = new_copy();
    struct local_link link;
    struct host host;
    struct local_address address = { .host = "127.0.0.1",
                                     .user = slice_lit("me"),
                                     .password = slice_lit("secret"),
                                     .database = 3 };

    host_begin(&host, "%1\r\n+proto\r\n:3\r\n");
    address.port = host.port;
    local_link_init(&link, &address, copy, -1);
    await(&link, LOCAL_ABSENT);
    assert_non_null(strstr(host.heard, "AUTH\r\n$2\r\nme\r\n$6\r\nsecret"));
    assert_string_equal(link.error, "");
    assert_int_equal(link.connections, 1);
    local_link_close(&link);
    host_end(&host);
    local_copy_free(copy);
}

TEST(a_link_that_was_closed_is_made_again)
{
    struct local_copy *copy = new_copy();
    struct local_link link;
    struct host host;
    struct local_address address = { .host = "127.0.0.1" };

    host_begin(&host, "%1\r\n+proto\r\n:3\r\n");
    atomic_store(&host.closes, 2);
    address.port = host.port;
    local_link_init(&link, &address, copy, -1);
    await(&link, LOCAL_ABSENT);
    assert_int_equal(link.connections, 3);
    assert_string_equal(link.error, "the server closed the connection");
    local_link_close(&link);
    host_end(&host);
    local_copy_free(copy);
}

TEST(a_refusal_is_told_without_the_password)
{
    struct local_copy *copy = new_copy();
    struct local_link link;
    struct host host;
    struct local_address address = { .host = "127.0.0.1",
                                     .password = slice_lit("secret") };

    host_begin(&host, "-WRONGPASS no\r\n");
    address.port = host.port;
    local_link_init(&link, &address, copy, -1);
    local_link_step(&link, local_link_now_ms());
    assert_string_equal(link.error, "the server refuses HELLO 3: WRONGPASS no");
    assert_int_equal(local_copy_stage(copy), LOCAL_UNLINKED);
    assert_true(link.pause_ms > 0);
    local_link_close(&link);
    host_end(&host);
    local_copy_free(copy);
}

TEST(another_descriptor_ends_a_step)
{
    struct local_copy *copy = new_copy();
    struct local_link link;
    struct host host;
    struct local_address address = { .host = "127.0.0.1" };
    int wake = eventfd(1, EFD_CLOEXEC);
    uint64_t begun_ms = local_link_now_ms();

    host_begin(&host, "%1\r\n+proto\r\n:3\r\n");
    address.port = host.port;
    local_link_init(&link, &address, copy, wake);
    for (int i = 0; i < 5; i++) {
        local_link_step(&link, begun_ms + 600000);
    }
    assert_true(local_link_now_ms() < begun_ms + 600000);
    local_link_close(&link);
    host_end(&host);
    local_copy_free(copy);
    (void)close(wake);
}

TEST(a_link_goes_where_the_key_has_moved)
{
    struct local_copy *copy = new_copy();
    struct local_link link;
    struct host first, second;
    struct local_address address = { .host = "127.0.0.1" };
    char moved[64];

    host_begin(&first, "%1\r\n+proto\r\n:3\r\n");
    host_begin(&second, "%1\r\n+proto\r\n:3\r\n");
    (void)snprintf(moved, sizeof(moved), "-MOVED 7 127.0.0.1:%s\r\n",
                   second.port);
    first.moved = moved;
    address.port = first.port;
    local_link_init(&link, &address, copy, -1);
    await(&link, LOCAL_ABSENT);
    assert_int_equal(link.connections, 2);
    assert_int_equal(link.cuts, 0);
    assert_string_equal(link.moved_port, second.port);
    local_link_close(&link);
    host_end(&first);
    host_end(&second);
    local_copy_free(copy);
}

TEST(a_connection_that_ends_behind_a_move_is_a_cut)
{
    struct local_copy *copy = new_copy();
    struct local_link link;
    struct host first, second;
    struct local_address address = { .host = "127.0.0.1" };
    char moved[64];

    host_begin(&first, "%1\r\n+proto\r\n:3\r\n");
    host_begin(&second, "%1\r\n+proto\r\n:3\r\n");
    (void)snprintf(moved, sizeof(moved), "-MOVED 7 127.0.0.1:%s\r\n",
                   second.port);
    first.moved = moved;
    address.port = first.port;
    local_link_init(&link, &address, copy, -1);
    await(&link, LOCAL_ABSENT);
    atomic_store(&second.closes, 1);
    while (link.cuts == 0 && link.connections == 2) {
        local_link_step(&link, local_link_now_ms() + 20);
    }
    assert_int_equal(link.cuts, 1);
    assert_int_equal(link.connections, 2);
    assert_string_equal(link.moved_host, "");
    assert_string_equal(link.error, "the server closed the connection");
    local_link_close(&link);
    host_end(&first);
    host_end(&second);
    local_copy_free(copy);
}

/* A server may not lead a program to a socket of its machine. */
TEST(a_link_does_not_go_to_a_path)
{
    struct local_copy *copy = new_copy();
    struct local_link link;
    struct host host;
    struct local_address address = { .host = "127.0.0.1" };

    host_begin(&host, "%1\r\n+proto\r\n:3\r\n");
    host.moved = "-MOVED 7 /run/other.sock:1\r\n";
    address.port = host.port;
    local_link_init(&link, &address, copy, -1);
    while (link.cuts == 0) {
        local_link_step(&link, local_link_now_ms() + 20);
    }
    assert_int_equal(link.fault, BLOOMERY_LOCAL_REFUSED);
    assert_string_equal(link.error, "MOVED 7 /run/other.sock:1");
    assert_int_equal(link.connections, 1);
    local_link_close(&link);
    host_end(&host);
    local_copy_free(copy);
}

/* Each of two servers names the other one: there are pauses. */
TEST(a_link_does_not_follow_for_ever)
{
    struct local_copy *copy = new_copy();
    struct local_link link;
    struct host host;
    struct local_address address = { .host = "127.0.0.1" };
    char moved[64];

    host_begin(&host, "%1\r\n+proto\r\n:3\r\n");
    (void)snprintf(moved, sizeof(moved), "-MOVED 7 :%s\r\n", host.port);
    host.moved = moved;
    address.port = host.port;
    local_link_init(&link, &address, copy, -1);
    while (link.cuts < 2) {
        local_link_step(&link, local_link_now_ms() + 20);
    }
    assert_int_equal(link.fault, BLOOMERY_LOCAL_REFUSED);
    assert_true(link.connections <= 12);
    local_link_close(&link);
    host_end(&host);
    local_copy_free(copy);
}

TEST(a_replica_is_refused_unless_it_may_be_one)
{
    struct local_copy *copy = new_copy();
    struct local_link link;
    struct host host;
    struct local_address address = { .host = "127.0.0.1" };

    host_begin(&host, "%2\r\n+proto\r\n:3\r\n+role\r\n+replica\r\n");
    address.port = host.port;
    local_link_init(&link, &address, copy, -1);
    local_link_step(&link, local_link_now_ms());
    assert_int_equal(link.fault, BLOOMERY_LOCAL_REPLICA);
    assert_string_equal(link.error, "the server is a replica");
    link.replica = true;
    await(&link, LOCAL_ABSENT);
    local_link_close(&link);
    host_end(&host);
    local_copy_free(copy);
}

/* The link asks for the role now and then, by HELLO. */
TEST(a_server_that_becomes_a_replica_or_refuses_the_link_is_left)
{
    static const struct {
        const char *hello, *error;
        enum bloomery_local_code fault;
    } rows[] = {
        { "%2\r\n+proto\r\n:3\r\n+role\r\n+replica\r\n",
          "the server has become a replica", BLOOMERY_LOCAL_REPLICA },
        { "-NOPERM no\r\n", "the server refuses HELLO: NOPERM no",
          BLOOMERY_LOCAL_REFUSED },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct local_copy *copy = new_copy();
        struct local_link link;
        struct host host;
        struct local_address address = { .host = "127.0.0.1" };
        uint64_t end_ms = local_link_now_ms() + 60000;

        host_begin(&host, "%1\r\n+proto\r\n:3\r\n");
        address.port = host.port;
        local_link_init(&link, &address, copy, -1);
        await(&link, LOCAL_ABSENT);
        atomic_store(&host.hello, rows[i].hello);
        link.role_at_ms = 0;
        while (link.fault == BLOOMERY_LOCAL_OK) {
            assert_true(local_link_now_ms() < end_ms);
            local_link_step(&link, local_link_now_ms() + 20);
        }
        assert_int_equal(link.fault, rows[i].fault);
        assert_string_equal(link.error, rows[i].error);
        local_link_close(&link);
        host_end(&host);
        local_copy_free(copy);
    }
}

TEST(an_old_server_does_not_give_the_password_away)
{
    struct local_copy *copy = new_copy();
    struct local_link link;
    struct host host;
    struct local_address address = { .host = "127.0.0.1",
                                     .password = slice_lit("secret") };

    host_begin(&host, "-ERR unknown command `HELLO`, with args beginning with: "
                      "`3`, `AUTH`, `default`, `secret`, \r\n");
    address.port = host.port;
    local_link_init(&link, &address, copy, -1);
    local_link_step(&link, local_link_now_ms());
    assert_int_equal(link.fault, BLOOMERY_LOCAL_FOREIGN);
    assert_string_equal(link.error, "the server has no command: HELLO 3");
    local_link_close(&link);
    host_end(&host);
    local_copy_free(copy);
}
