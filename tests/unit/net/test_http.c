/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections of metrics-port: answers, refusals, and that a client that is
 * slow, silent or one of many holds nothing.
 */
#include "net/http.h"

#include "rig.h"

#include <arpa/inet.h>

struct scene {
    struct rig *rig;
    struct http http;
    int listener;
    unsigned asked;
    size_t body; /* bytes to answer with */
};

static void
answer(void *ctx, const struct http_head *head, struct http_reply *reply)
{
    struct scene *scene = ctx;
    char *to;

    scene->asked++;
    if (slice_equal(head->path, slice_lit("/none"))) {
        http_fail(reply, 404, "no such thing");
        return;
    }
    reply->type = "text/x-test";
    to = buf_reserve(&reply->body, scene->body + 1);
    if (to != NULL) {
        memset(to, 'x', scene->body);
        reply->body.len = scene->body;
    }
}

static struct scene *
scene_new(void)
{
    struct scene *scene = mem_zalloc(sizeof(*scene));
    struct sockaddr_in address = { .sin_family = AF_INET };

    scene->rig = rig_new();
    scene->rig->limits.metrics_seconds = 60;
    scene->rig->limits.metrics_clients = 4;
    scene->body = 5;
    http_start(&scene->http, &scene->rig->loop, answer, scene);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    scene->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        0, bind(scene->listener, (struct sockaddr *)&address, sizeof(address)));
    assert_int_equal(0, listen(scene->listener, 16));
    return scene;
}

static void
scene_free(struct scene *scene)
{
    http_stop(&scene->http);
    rig_settle(scene->rig);
    (void)close(scene->listener);
    rig_free(scene->rig);
    mem_free(scene);
}

static struct peer
open_client(struct scene *scene, bool denied)
{
    struct sockaddr_in address;
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int accepted;

    assert_int_equal(
        0, getsockname(scene->listener, (struct sockaddr *)&address, &len));
    assert_int_equal(0, connect(fd, (struct sockaddr *)&address, len));
    accepted =
        accept4(scene->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(accepted >= 0);
    http_open(&scene->http, accepted, denied);
    return peer_of(fd);
}

/* Waits for the end of an answer, and checks its status line and its end. */
static void
expect_answer(struct scene *scene, struct peer *peer, const char *status,
              const char *end)
{
    size_t len = strlen(end);

    rig_until(scene->rig, peer_is_cut(peer));
    buf_append(&peer->got, "", 1);
    if (strncmp(peer->got.data, status, strlen(status)) != 0 ||
        peer->got.len - 1 < len ||
        strcmp(peer->got.data + peer->got.len - 1 - len, end) != 0) {
        fail_msg("got [%s] and not [%s ... %s]", peer->got.data, status, end);
    }
}

static void
ask(struct scene *scene, const char *request, const char *status,
    const char *end)
{
    struct peer peer = open_client(scene, false);

    peer_send_text(scene->rig, &peer, request);
    expect_answer(scene, &peer, status, end);
    peer_free(&peer);
    rig_until(scene->rig, scene->http.count == 0);
}

TEST(http_answers_get_and_head_and_closes)
{
    struct scene *scene = scene_new();
    struct peer peer = open_client(scene, false);

    peer_send_text(scene->rig, &peer, "GET /a?b HTTP/1.1\r\nHost: loc");
    rig_settle(scene->rig);
    assert_int_equal(0, scene->asked);
    peer_send_text(scene->rig, &peer, "alhost\r\n\r\n");
    expect_answer(scene, &peer, "HTTP/1.1 200 OK\r\n", "\r\n\r\nxxxxx");
    assert_non_null(strstr(peer.got.data, "\r\nContent-Length: 5\r\n"));
    assert_non_null(strstr(peer.got.data, "\r\nContent-Type: text/x-test\r\n"));
    assert_non_null(strstr(peer.got.data, "\r\nConnection: close\r\n"));
    assert_non_null(
        strstr(peer.got.data, "\r\nX-Content-Type-Options: nosniff\r\n"));
    assert_null(strstr(peer.got.data, "Access-Control"));
    peer_free(&peer);
    rig_until(scene->rig, scene->http.count == 0);
    ask(scene, "HEAD /a HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\r\n\r\n");
    assert_int_equal(2, scene->asked);
    scene_free(scene);
}

TEST(http_refuses_with_a_status_and_a_reason)
{
    struct scene *scene = scene_new();

    ask(scene, "GET /none HTTP/1.0\r\n\r\n", "HTTP/1.1 404 Not Found\r\n",
        "404 Not Found: no such thing\n");
    assert_int_equal(1, scene->asked);
    ask(scene, "POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 405 Method Not Allowed\r\n", "answers GET and HEAD\n");
    ask(scene, "\x16\x03\x01", "HTTP/1.1 400 Bad Request\r\n",
        "HTTP/1.0 or HTTP/1.1\n");
    ask(scene, "GET / HTTP/2.0\r\n\r\n", "HTTP/1.1 505 ",
        "HTTP/1.0 and HTTP/1.1\n");
    ask(scene, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        "HTTP/1.1 421 Misdirected Request\r\n", "set Host likewise\n");
    assert_int_equal(1, scene->asked);
    scene_free(scene);
}

TEST(http_tells_a_client_that_protected_mode_denies)
{
    struct scene *scene = scene_new();
    struct peer peer = open_client(scene, true);

    peer_send_text(scene->rig, &peer, "GET / HTTP/1.0\r\n\r\n");
    expect_answer(scene, &peer, "HTTP/1.1 403 Forbidden\r\n", "are served\n");
    assert_int_equal(0, scene->asked);
    peer_free(&peer);
    scene_free(scene);
}

TEST(http_refuses_a_head_that_does_not_end)
{
    struct scene *scene = scene_new();
    struct peer peer = open_client(scene, false);
    char more[HTTP_HEAD_MAX];

    memset(more, 'a', sizeof(more));
    peer_send_text(scene->rig, &peer, "GET / HTTP/1.0\r\nA: ");
    peer_send(scene->rig, &peer, (struct slice){ more, sizeof(more) });
    expect_answer(scene, &peer, "HTTP/1.1 431 ", "at most 8192 bytes\n");
    peer_free(&peer);
    scene_free(scene);
}

TEST(http_serves_a_client_that_has_ended_its_half)
{
    struct scene *scene = scene_new();
    struct peer peer = open_client(scene, false);

    scene->body = HTTP_BODY_MAX - 1;
    peer_send_text(scene->rig, &peer, "GET / HTTP/1.0\r\n\r\n");
    assert_int_equal(0, shutdown(peer.fd, SHUT_WR));
    rig_until(scene->rig, peer_is_cut(&peer));
    assert_true(peer.got.len > HTTP_BODY_MAX);
    peer_free(&peer);
    rig_until(scene->rig, scene->http.count == 0);
    scene_free(scene);
}

TEST(http_has_a_longest_answer)
{
    struct scene *scene = scene_new();

    scene->body = HTTP_BODY_MAX + 1;
    ask(scene, "GET / HTTP/1.0\r\n\r\n", "HTTP/1.1 503 ",
        "no memory for the answer\n");
    scene_free(scene);
}

TEST(http_closes_the_oldest_connection_for_one_more)
{
    struct scene *scene = scene_new();
    int64_t cuts = metric_sum(METRIC_WEB_CUTS);
    struct peer peers[6];

    for (int i = 0; i < 6; i++) {
        peers[i] = open_client(scene, false);
        peer_send_text(scene->rig, &peers[i], "GET / HTTP/1.0\r\n");
        rig_settle(scene->rig);
    }
    assert_int_equal(4, scene->http.count);
    assert_int_equal(cuts + 2, metric_sum(METRIC_WEB_CUTS));
    for (int i = 0; i < 6; i++) {
        if (i < 2) {
            rig_until(scene->rig, peer_is_cut(&peers[i]));
            assert_int_equal(0, peers[i].got.len);
        } else {
            peer_send_text(scene->rig, &peers[i], "\r\n");
            expect_answer(scene, &peers[i], "HTTP/1.1 200 OK\r\n", "xxxxx");
        }
        peer_free(&peers[i]);
    }
    scene_free(scene);
}

/* One sends nothing, one does not end its head, and one does not read. */
TEST(http_cuts_what_lasts_too_long)
{
    struct scene *scene = scene_new();
    struct peer peers[3];

    scene->rig->limits.metrics_seconds = 1;
    scene->body = HTTP_BODY_MAX - 1;
    for (int i = 0; i < 3; i++) {
        peers[i] = open_client(scene, false);
    }
    peer_send_text(scene->rig, &peers[1], "GET / HTTP/1.0\r\n");
    peer_send_text(scene->rig, &peers[2], "GET / HTTP/1.0\r\n\r\n");
    rig_until(scene->rig, scene->asked == 1);
    assert_int_equal(3, scene->http.count);
    rig_until(scene->rig, scene->http.count == 0);
    for (int i = 0; i < 3; i++) {
        peer_free(&peers[i]);
    }
    scene_free(scene);
}

TEST(http_drops_a_client_that_goes_in_any_state)
{
    static const char *const sent[] = { "", "GET / HT",
                                        "GET / HTTP/1.0\r\n\r\n" };
    struct scene *scene = scene_new();

    scene->body = HTTP_BODY_MAX - 1;
    for (size_t i = 0; i < sizeof(sent) / sizeof(sent[0]); i++) {
        struct peer peer = open_client(scene, false);

        peer_send_text(scene->rig, &peer, sent[i]);
        rig_settle(scene->rig);
        assert_int_equal(1, scene->http.count);
        peer_free(&peer);
        rig_until(scene->rig, scene->http.count == 0);
    }
    scene_free(scene);
}

TEST(http_survives_a_lack_of_memory)
{
    struct scene *scene = scene_new();

    for (unsigned nth = 1; nth < 8; nth++) {
        struct peer peer;

        mem_fail_at(nth);
        peer = open_client(scene, false);
        (void)send(peer.fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL);
        rig_until(scene->rig, peer_is_cut(&peer));
        (void)mem_fail_clear();
        peer_free(&peer);
        rig_until(scene->rig, scene->http.count == 0);
    }
    scene_free(scene);
}
