/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sentinels that answer, ask for a login, know nothing, are silent or are not
 * there. The test is the Sentinel; the time is a number.
 */
#include "local/local_sentinel.h"

#include "../test.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUESTION                                                               \
    "*3\r\n$8\r\nSENTINEL\r\n$23\r\nGET-MASTER-ADDR-BY-NAME\r\n$4\r\nmain\r\n"

struct fixture {
    struct local_url url;
    struct local_sentinel sentinel;
    int listeners[2];
    char ports[2][16];
    uint64_t now_ms;
};

static int
listen_somewhere(char ret_port[16])
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    (void)snprintf(ret_port, 16, "%u", ntohs(at.sin_port));
    return fd;
}

static void
begin(struct fixture *fix, const char *login)
{
    char text[200];
    const char *reason = "";

    *fix = (struct fixture){ .now_ms = 1000 };
    for (unsigned i = 0; i < 2; i++) {
        fix->listeners[i] = listen_somewhere(fix->ports[i]);
    }
    (void)snprintf(text, sizeof(text),
                   "redis+sentinel://%s127.0.0.1:%s,127.0.0.1:%s/main", login,
                   fix->ports[0], fix->ports[1]);
    assert_true(local_url_parse(text, &fix->url, &reason));
    local_sentinel_init(&fix->sentinel, &fix->url, NULL);
}

static void
end(struct fixture *fix)
{
    local_sentinel_close(&fix->sentinel);
    for (unsigned i = 0; i < 2; i++) {
        (void)close(fix->listeners[i]);
    }
}

/* Lets the Sentinel's side of the machine say, wait and hear. */
static void
step(struct fixture *fix, int wait_ms)
{
    struct pollfd polled;
    uint64_t next_ms =
        local_sentinel_prepare(&fix->sentinel, fix->now_ms, &polled);

    (void)poll(&polled, 1, next_ms > fix->now_ms ? wait_ms : 0);
    local_sentinel_react(&fix->sentinel, fix->now_ms, &polled);
}

/* Accepts its connection to one of them, and reads what it asks. */
static int
meet(struct fixture *fix, unsigned which, const char *question)
{
    char bytes[500];
    size_t wanted = strlen(question), got = 0;
    int fd;

    step(fix, 0);
    fd = accept(fix->listeners[which], NULL, NULL);
    assert_true(fd >= 0);
    step(fix, 0); /* it is connected: it writes */
    while (got < wanted) {
        ssize_t more = read(fd, bytes + got, sizeof(bytes) - 1 - got);

        assert_true(more > 0);
        got += (size_t)more;
    }
    bytes[got] = '\0';
    assert_string_equal(bytes, question);
    return fd;
}

static void
answer(struct fixture *fix, int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    step(fix, 60000);
}

TEST(a_sentinel_names_the_primary)
{
    struct fixture fix;
    int fd;

    begin(&fix, "");
    fd = meet(&fix, 0, QUESTION);
    answer(&fix, fd, "*2\r\n$1\r\nh\r\n$1\r\n9\r\n");
    assert_string_equal(fix.sentinel.host, "h");
    assert_string_equal(fix.sentinel.port, "9");
    assert_int_equal(fix.sentinel.named, 1);
    fix.now_ms += 1000; /* again, on this connection, and the same answer */
    step(&fix, 0);
    answer(&fix, fd, "*2\r\n$1\r\nh\r\n$1\r\n9\r\n");
    assert_int_equal(fix.sentinel.named, 1);
    fix.now_ms += 1000;
    step(&fix, 0);
    answer(&fix, fd, "*2\r\n$2\r\nh2\r\n$1\r\n9\r\n");
    assert_string_equal(fix.sentinel.host, "h2");
    assert_int_equal(fix.sentinel.named, 2);
    (void)close(fd);
    end(&fix);
}

TEST(a_sentinel_gets_the_login_that_it_asks_for)
{
    struct fixture fix;
    int fd;

    begin(&fix, ":pw@");
    fd = meet(&fix, 0, QUESTION);
    answer(&fix, fd, "-NOAUTH Authentication required.\r\n");
    answer(&fix, fd, "+OK\r\n");
    answer(&fix, fd, "*2\r\n$1\r\nh\r\n$1\r\n9\r\n");
    assert_string_equal(fix.sentinel.host, "h");
    (void)close(fd);
    end(&fix);
}

/* The second one is asked, and when it fails, too, the error says why. */
static void
next_is_asked(struct fixture *fix, const char *error)
{
    int fd;

    assert_string_equal(fix->sentinel.error, "");
    fix->now_ms += 100;
    fd = meet(fix, 1, QUESTION);
    answer(fix, fd, "-IDONTKNOW it\r\n");
    assert_string_equal(fix->sentinel.error, error);
    assert_int_equal(fix->sentinel.named, 0);
    (void)close(fd);
}

TEST(the_next_one_is_asked_after_one_that_knows_nothing)
{
    struct fixture fix;
    int fd;

    begin(&fix, "");
    fd = meet(&fix, 0, QUESTION);
    answer(&fix, fd, "*-1\r\n");
    next_is_asked(&fix, "a Sentinel refuses: IDONTKNOW it");
    (void)close(fd);
    end(&fix);
}

TEST(what_cannot_be_dialled_is_not_taken)
{
    static const char *const bad[] = { "*2\r\n$2\r\n/x\r\n$1\r\n9\r\n",
                                       "*2\r\n$0\r\n\r\n$1\r\n9\r\n",
                                       "*2\r\n$1\r\nh\r\n$2\r\n/9\r\n",
                                       "*1\r\n$1\r\nh\r\n", ":1\r\n" };

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct fixture fix;
        int fd;

        begin(&fix, "");
        fd = meet(&fix, 0, QUESTION);
        answer(&fix, fd, bad[i]);
        assert_int_equal(fix.sentinel.named, 0);
        assert_int_equal(fix.sentinel.tries, 1);
        (void)close(fd);
        end(&fix);
    }
}

TEST(the_next_one_is_asked_after_one_that_is_silent_or_closes)
{
    struct fixture fix;
    int fd;

    begin(&fix, "");
    fd = meet(&fix, 0, QUESTION);
    fix.now_ms += 1000;
    step(&fix, 0);
    next_is_asked(&fix, "a Sentinel refuses: IDONTKNOW it");
    (void)close(fd);
    fix.now_ms += 100;
    fd = meet(&fix, 0, QUESTION);
    (void)close(fd);
    step(&fix, 60000);
    assert_int_equal(fix.sentinel.tries, 3);
    end(&fix);
}

TEST(the_next_one_is_asked_when_the_server_is_of_no_use)
{
    struct fixture fix;
    int fd, other;

    begin(&fix, "");
    local_sentinel_doubt(&fix.sentinel); /* before the first answer: nothing */
    fd = meet(&fix, 0, QUESTION);
    answer(&fix, fd, "*2\r\n$1\r\nh\r\n$1\r\n9\r\n");
    local_sentinel_doubt(&fix.sentinel);
    other = meet(&fix, 1, QUESTION);
    answer(&fix, other, "*2\r\n$1\r\ng\r\n$1\r\n9\r\n");
    assert_string_equal(fix.sentinel.host, "g");
    (void)close(fd);
    (void)close(other);
    end(&fix);
}

TEST(a_sentinel_that_is_not_there_is_told)
{
    struct fixture fix;

    begin(&fix, "");
    for (unsigned i = 0; i < 2; i++) {
        (void)close(fix.listeners[i]);
        fix.listeners[i] = -1;
    }
    for (unsigned i = 0; i < 2; i++) {
        step(&fix, 60000);
        fix.now_ms += 100;
    }
    assert_non_null(strstr(fix.sentinel.error, "Connection refused"));
    end(&fix);
}
