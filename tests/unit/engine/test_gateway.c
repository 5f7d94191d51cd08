/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A client at the end of a socket pair: how net and dispatch meet. One loop,
 * turned by hand.
 */
#include "engine/gateway.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/client.h"
#include "net/loop_run.h"
#include "net/registry.h"
#include "net/serve.h"
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DEADLINE_MS = 20000 };

struct site {
    struct rig *rig;
    struct net_limits limits;
    struct loop_env env;
    struct loop loop;
    _Atomic uint64_t released;
    atomic_bool gives_up;
};

struct peer {
    int fd;
    bool ended;
    struct buf got;
};

static struct site *
site_new(void)
{
    struct site *site = mem_zalloc(sizeof(*site));
    struct client_limits *limits;

    (void)signal(SIGPIPE, SIG_IGN); /* as the server does */
    site->rig = rig_new();
    limits = &site->rig->service.limits;
    limits->args_max = 1000;
    limits->bulk_max = 1 << 20;
    limits->unauth_args_max = 10;
    limits->unauth_bulk_max = 16384;
    limits->query_max = 1 << 20;
    site->rig->service.registry = registry_new();
    site->limits.maxclients = 100;
    site->env = (struct loop_env){ .limits = &site->limits,
                                   .handler = &gateway_handler,
                                   .registry = site->rig->service.registry,
                                   .released = &site->released,
                                   .gives_up = &site->gives_up };
    atomic_store(&site->released, UINT64_MAX);
    loop_init(&site->loop, 0, &site->env, site->rig->worker);
    site->rig->worker->loop = &site->loop;
    return site;
}

static void
site_free(struct site *site)
{
    loop_stop(&site->loop);
    loop_run(&site->loop);
    loop_fini(&site->loop);
    registry_free(site->rig->service.registry);
    rig_free(site->rig);
    mem_free(site);
}

static struct peer
peer_new(struct site *site)
{
    int ends[2];

    assert_int_equal(0,
                     socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(0, fcntl(ends[i], F_SETFL, O_NONBLOCK));
    }
    assert_true(registry_reserve(site->env.registry, PLACE_COMMON, 100));
    serve_open(&site->loop, ends[0], true);
    return (struct peer){ .fd = ends[1] };
}

static void
peer_free(struct peer *peer)
{
    (void)close(peer->fd);
    buf_free(&peer->got);
}

static void
peer_take(struct peer *peer)
{
    char piece[65536];
    ssize_t n;

    while (!peer->ended) {
        n = recv(peer->fd, piece, sizeof(piece), 0);
        if (n > 0) {
            buf_append(&peer->got, piece, (size_t)n);
        } else if (n < 0 && errno == EAGAIN) {
            return;
        } else {
            peer->ended = true;
        }
    }
}

/* Turns the loop until this many bytes have come, or the end. */
static void
wait_bytes(struct site *site, struct peer *peer, size_t bytes)
{
    uint64_t give_up = clock_mono_ns() + DEADLINE_MS * 1000000ULL;

    while (!peer->ended && peer->got.len < bytes) {
        assert_true(clock_mono_ns() < give_up);
        (void)uv_run(&site->loop.uv, UV_RUN_NOWAIT);
        peer_take(peer);
    }
}

static void
expect(struct site *site, struct peer *peer, const char *text)
{
    wait_bytes(site, peer, strlen(text));
    for (int i = 0; i < 10; i++) { /* nothing more may come */
        (void)uv_run(&site->loop.uv, UV_RUN_NOWAIT);
    }
    peer_take(peer);
    if (!slice_equal(buf_slice(&peer->got), slice_of(text))) {
        fail_msg("got [%.*s] and not [%s]", (int)peer->got.len,
                 peer->got.len > 0 ? peer->got.data : "", text);
    }
    peer->got.len = 0;
}

/* Waits until the loop has accepted the first connection. */
static struct client *
first_client(struct site *site)
{
    while (site->loop.conns.first == NULL) {
        (void)uv_run(&site->loop.uv, UV_RUN_NOWAIT);
    }
    return client_of(site->loop.conns.first);
}

static void
send_text(struct peer *peer, const char *text)
{
    assert_int_equal(strlen(text),
                     send(peer->fd, text, strlen(text), MSG_NOSIGNAL));
}

static void
talk(struct site *site, struct peer *peer, const char *request,
     const char *reply)
{
    send_text(peer, request);
    expect(site, peer, reply);
}

TEST(a_client_is_served)
{
    struct site *site = site_new();
    struct peer a = peer_new(site);
    struct peer b = peer_new(site);

    talk(site, &a, "*3\r\n$6\r\nBF.ADD\r\n$1\r\nk\r\n$1\r\nx\r\n", ":1\r\n");
    talk(site, &b, "BF.EXISTS k x\r\nCLIENT ID\r\n", ":1\r\n:2\r\n");
    talk(site, &a, "CLIENT ID\r\n", ":1\r\n");
    peer_free(&a);
    peer_free(&b);
    site_free(site);
}

TEST(quit_is_answered_and_ends_the_connection)
{
    struct site *site = site_new();
    struct peer peer = peer_new(site);

    send_text(&peer, "PING\r\nQUIT\r\nBF.ADD k x\r\n");
    wait_bytes(site, &peer, SIZE_MAX);
    assert_true(
        slice_equal(slice_lit("+PONG\r\n+OK\r\n"), buf_slice(&peer.got)));
    run_text(site->rig, "DBSIZE", true);
    assert_true(slice_equal(slice_lit(":0\r\n"), buf_slice(&site->rig->out)));
    peer_free(&peer);
    site_free(site);
}

TEST(before_auth_the_limits_are_smaller_and_the_errors_others)
{
    static const char *const cases[][2] = {
        { "*11\r\n", "-ERR Protocol error: unauthenticated multibulk "
                     "length\r\n" },
        { "*2\r\n$4\r\nPING\r\n$16385\r\n",
          "-ERR Protocol error: unauthenticated bulk length\r\n" },
    };
    struct site *site = site_new();

    set_option(site->rig, "requirepass", "secret");
    for (int i = 0; i < 2; i++) {
        struct peer peer = peer_new(site);

        talk(site, &peer, "PING\r\n", "-NOAUTH Authentication required.\r\n");
        send_text(&peer, cases[i][0]);
        wait_bytes(site, &peer, SIZE_MAX);
        assert_true(slice_equal(slice_of(cases[i][1]), buf_slice(&peer.got)));
        peer_free(&peer);
        /* And the same is fine behind AUTH. */
        peer = peer_new(site);
        talk(site, &peer, "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n", "+OK\r\n");
        send_text(&peer, cases[i][0]);
        talk(site, &peer, "", "");
        assert_false(peer.ended);
        peer_free(&peer);
    }
    site_free(site);
}

TEST(a_large_command_right_behind_auth_is_taken)
{
    struct site *site = site_new();
    struct peer peer;
    struct buf text = { 0 };

    set_option(site->rig, "requirepass", "secret");
    peer = peer_new(site);
    buf_printf(&text, "%s",
               "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n"
               "*22\r\n$7\r\nBF.MADD\r\n$1\r\nk\r\n");
    for (int i = 0; i < 20; i++) {
        buf_printf(&text, "$2\r\n%02d\r\n", i);
    }
    buf_printf(&text, "%s", "*2\r\n$7\r\nBF.CARD\r\n$1\r\nk\r\n");
    buf_append(&text, "", 1);
    send_text(&peer, text.data);
    wait_bytes(site, &peer, 5 + 5 + 20 * 4 + 5);
    assert_memory_equal("+OK\r\n*20\r\n:1\r\n", peer.got.data, 14);
    assert_memory_equal(":20\r\n", peer.got.data + peer.got.len - 5, 5);
    buf_free(&text);
    peer_free(&peer);
    site_free(site);
}

TEST(protocol_errors_are_answered_and_counted)
{
    static const char *const cases[][2] = {
        { "*x\r\n", "-ERR Protocol error: invalid multibulk length\r\n" },
        { "*1\r\n:5\r\n", "-ERR Protocol error: expected '$', got ':'\r\n" },
        { "*1\r\n$-5\r\n", "-ERR Protocol error: invalid bulk length\r\n" },
        { "say 'x\r\n",
          "-ERR Protocol error: unbalanced quotes in request\r\n" },
    };
    struct site *site = site_new();
    int64_t errors = metric_sum(METRIC_PROTOCOL_ERRORS);
    int64_t replies = metric_sum(METRIC_ERROR_REPLIES);

    for (int i = 0; i < 4; i++) {
        struct peer peer = peer_new(site);

        send_text(&peer, "PING\r\n");
        send_text(&peer, cases[i][0]);
        wait_bytes(site, &peer, SIZE_MAX);
        assert_memory_equal("+PONG\r\n", peer.got.data, 7);
        buf_consume(&peer.got, 7);
        if (!slice_equal(slice_of(cases[i][1]), buf_slice(&peer.got))) {
            fail_msg("[%.*s] and not [%s]", (int)peer.got.len, peer.got.data,
                     cases[i][1]);
        }
        peer_free(&peer);
    }
    assert_int_equal(errors + 4, metric_sum(METRIC_PROTOCOL_ERRORS));
    assert_int_equal(replies + 4, metric_sum(METRIC_ERROR_REPLIES));
    assert_int_equal(
        1, stats_sum_error(site->rig->service.stats, ERR_PROTO_EXPECTED));
    site_free(site);
}

TEST(an_http_client_is_cut_before_anything_runs)
{
    static const char *const requests[] = {
        "POST / HTTP/1.1\r\nBF.ADD k x\r\n",
        "GET / HTTP/1.1\r\nHost: here\r\nBF.ADD k x\r\n",
    };
    struct site *site = site_new();

    for (int i = 0; i < 2; i++) {
        struct peer peer = peer_new(site);

        send_text(&peer, requests[i]);
        wait_bytes(site, &peer, SIZE_MAX);
        run_text(site->rig, "DBSIZE", true);
        assert_true(
            slice_equal(slice_lit(":0\r\n"), buf_slice(&site->rig->out)));
        peer_free(&peer);
    }
    site_free(site);
}

TEST(replies_by_the_megabyte_come_in_order)
{
    enum { PINGS = 300 };
    struct site *site = site_new();
    struct peer peer = peer_new(site);
    struct buf text = { 0 };

    buf_printf(&text, "*2\r\n$4\r\nECHO\r\n$%d\r\n", 10000);
    for (int i = 0; i < 10000; i++) {
        buf_append(&text, "x", 1);
    }
    buf_printf(&text, "\r\nPING\r\n");
    for (int i = 0; i < PINGS; i++) {
        size_t sent = 0;

        while (sent < text.len) {
            ssize_t n =
                send(peer.fd, text.data + sent, text.len - sent, MSG_NOSIGNAL);

            sent += n > 0 ? (size_t)n : 0;
            (void)uv_run(&site->loop.uv, UV_RUN_NOWAIT);
        }
    }
    wait_bytes(site, &peer, PINGS * 10017);
    assert_int_equal(PINGS * 10017, peer.got.len);
    for (int i = 0; i < PINGS; i++) {
        const char *at = peer.got.data + i * 10017;

        assert_memory_equal("$10000\r\nxx", at, 10);
        assert_memory_equal("xx\r\n+PONG\r\n", at + 10006, 11);
    }
    buf_free(&text);
    peer_free(&peer);
    site_free(site);
}

TEST(one_client_may_kill_another_and_itself)
{
    struct site *site = site_new();
    struct peer a = peer_new(site);
    struct peer b = peer_new(site);

    talk(site, &a, "CLIENT KILL ID 2\r\n", ":1\r\n");
    wait_bytes(site, &b, SIZE_MAX);
    talk(site, &a, "CLIENT KILL ID 2\r\nPING\r\n", ":0\r\n+PONG\r\n");
    send_text(&a, "CLIENT KILL ID 1 SKIPME no\r\nPING\r\n");
    wait_bytes(site, &a, SIZE_MAX);
    assert_true(slice_equal(slice_lit(":1\r\n"), buf_slice(&a.got)));
    peer_free(&a);
    peer_free(&b);
    site_free(site);
}

/* What a session holds goes with its connection: texts, a transaction, a
 * handler that is paused. */
TEST(a_connection_that_ends_leaves_nothing_behind)
{
    uint64_t used = mem_used();
    int64_t multi = metric_sum(METRIC_MULTI_CLIENTS);
    struct site *site = site_new();
    struct peer peer = peer_new(site);

    talk(site, &peer,
         "CLIENT SETNAME me\r\nCLIENT SETINFO lib-name lib\r\nWATCH k\r\n"
         "MULTI\r\nBF.ADD k x\r\n",
         "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n");
    assert_int_equal(multi + 1, metric_sum(METRIC_MULTI_CLIENTS));
    peer_free(&peer);
    while (site->loop.open_conns > 0) {
        (void)uv_run(&site->loop.uv, UV_RUN_ONCE);
    }
    assert_int_equal(multi, metric_sum(METRIC_MULTI_CLIENTS));
    site_free(site);
    assert_int_equal(used, mem_used());
}

TEST(a_walk_that_pauses_holds_up_its_own_connection_only)
{
    struct site *site = site_new();
    struct peer slow = peer_new(site);
    struct peer quick = peer_new(site);
    char name[10000];
    uint64_t calls = 0;

    memset(name, 'a', sizeof(name));
    for (unsigned i = 0; i < 600; i++) {
        (void)snprintf(name, 16, "%u", i);
        name[strlen(name)] = 'a';
        batch_begin(site->rig);
        batch_command(site->rig);
        batch_word(site->rig, slice_lit("BF.ADD"));
        batch_word(site->rig, (struct slice){ name, sizeof(name) });
        batch_word(site->rig, slice_lit("item"));
        batch_run(site->rig);
    }
    send_text(&slow, "PING\r\nKEYS *[bc]*\r\nPING\r\n");
    while (site->loop.resumable == NULL) { /* it is paused */
        (void)uv_run(&site->loop.uv, UV_RUN_NOWAIT);
        assert_true(++calls < 1000000);
    }
    talk(site, &quick, "PING\r\n", "+PONG\r\n");
    expect(site, &slow, "+PONG\r\n*0\r\n+PONG\r\n");
    /* And one that leaves in the middle. */
    send_text(&slow, "KEYS *[bc]*\r\n");
    while (site->loop.resumable == NULL) {
        (void)uv_run(&site->loop.uv, UV_RUN_NOWAIT);
        assert_true(++calls < 1000000);
    }
    peer_free(&slow);
    peer_free(&quick);
    site_free(site);
}

/* ---- the journal ----------------------------------------------------------
 */

static void
release(struct site *site, uint64_t position)
{
    atomic_store(&site->released, position);
    loop_wake(&site->loop);
}

TEST(writer_and_readers_wait_until_a_write_is_released)
{
    struct site *site = site_new();
    struct peer writer = peer_new(site);
    struct peer reader = peer_new(site);
    struct peer other = peer_new(site);
    uint64_t position;

    talk(site, &writer, "BF.ADD old x\r\n", ":1\r\n");
    position = journal_position(site->rig->journal);
    release(site, position);
    talk(site, &writer, "BF.ADD new x\r\n", "");
    talk(site, &reader, "BF.EXISTS new x\r\n", "");
    talk(site, &other, "BF.EXISTS old x\r\nPING\r\n", ":1\r\n+PONG\r\n");
    talk(site, &writer, "PING\r\n", "");
    position = journal_position(site->rig->journal);
    release(site, position - 1);
    expect(site, &writer, "");
    release(site, position);
    expect(site, &writer, ":1\r\n+PONG\r\n");
    expect(site, &reader, ":1\r\n");
    assert_null(site->rig->worker->unkicked);
    peer_free(&writer);
    peer_free(&reader);
    peer_free(&other);
    site_free(site);
}

TEST(a_write_without_room_in_the_journal_waits_and_blocks_nobody)
{
    struct site *site = site_new();
    struct peer writer = peer_new(site);
    struct peer other = peer_new(site);
    int64_t blocked = metric_sum(METRIC_BLOCKED_CLIENTS);

    talk(site, &writer, "BF.ADD k x\r\n", ":1\r\n");
    journal_set_limit(site->rig->journal, 1);
    talk(site, &writer, "BF.ADD k y\r\nPING\r\n", "");
    assert_int_equal(blocked + 1, metric_sum(METRIC_BLOCKED_CLIENTS));
    talk(site, &other, "BF.EXISTS k y\r\n", ":0\r\n");
    effects_clear(site->rig);
    loop_wake(&site->loop);
    expect(site, &writer, ":1\r\n+PONG\r\n");
    assert_int_equal(blocked, metric_sum(METRIC_BLOCKED_CLIENTS));
    peer_free(&writer);
    peer_free(&other);
    site_free(site);
}

/* A queue that is full because nothing is written any more gets no room. */
TEST(a_write_that_waits_for_room_hears_soon_that_writes_are_refused)
{
    struct site *site = site_new();
    struct peer writer = peer_new(site);

    talk(site, &writer, "BF.ADD k x\r\n", ":1\r\n");
    journal_set_limit(site->rig->journal, 1);
    talk(site, &writer, "BF.ADD k y\r\n", "");
    loop_wake(&site->loop); /* in vain */
    expect(site, &writer, "");
    assert_non_null(site->loop.parked_for_room);
    atomic_store(&site->rig->service.write_refusal, ERR_ENDING);
    loop_wake(&site->loop);
    expect(site, &writer, "-ERR the server is shutting down\r\n");
    assert_null(site->loop.parked_for_room);
    atomic_store(&site->rig->service.write_refusal, OK);
    effects_clear(site->rig);
    peer_free(&writer);
    site_free(site);
}

TEST(replies_that_waited_for_too_long_become_errors)
{
    static const char unknown[] = "-MISCONF applied, durability unknown: the "
                                  "journal cannot be written; see the "
                                  "server's log\r\n";
    struct site *site = site_new();
    struct peer peer = peer_new(site);
    char both[2 * sizeof(unknown)];

    release(site, 0);
    talk(site, &peer, "BF.ADD k x\r\nBF.MADD k a b\r\n", "");
    atomic_store(&site->gives_up, true);
    loop_wake(&site->loop);
    (void)snprintf(both, sizeof(both), "%s%s", unknown, unknown);
    expect(site, &peer, both);
    assert_int_equal(
        2, stats_sum_error(site->rig->service.stats, ERR_MISCONF_UNKNOWN));
    peer_free(&peer);
    site_free(site);
}

TEST(pushes_and_errors_are_passed_on_when_replies_are_given_up)
{
    struct site *site = site_new();
    struct peer peer = peer_new(site);
    struct buf out = { 0 };

    gateway_handler.give_up(
        &first_client(site)->conn,
        slice_lit(">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n-ERR x\r\n:1\r\n"
                  ">1\r\n+x\r\n"),
        &out);
    assert_memory_equal(
        ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n-ERR x\r\n-MISCONF", out.data,
        44);
    assert_memory_equal("\r\n>1\r\n+x\r\n", out.data + out.len - 10, 10);
    buf_free(&out);
    peer_free(&peer);
    site_free(site);
}

TEST(lines_of_a_monitor_and_confirmations_are_passed_on_too)
{
    static const char told[] = "+1700000000.000001 [0 x] \"PING\"\r\n"
                               "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
    struct site *site = site_new();
    struct peer peer = peer_new(site);
    struct buf out = { 0 };
    struct client *client;

    client = first_client(site);
    client->session.was_subscribed = true;
    gateway_handler.give_up(&client->conn, slice_of(told), &out);
    assert_int_equal(sizeof(told) - 1, out.len);
    assert_memory_equal(told, out.data, out.len);
    buf_reset(&out, SIZE_MAX);
    gateway_handler.give_up(&client->conn, slice_lit("+OK\r\n"), &out);
    assert_memory_equal("-MISCONF", out.data, 8);
    buf_free(&out);
    peer_free(&peer);
    site_free(site);
}

/* Held messages are no answers either when their client has unsubscribed. */
TEST(messages_to_a_subscriber_in_resp2_are_passed_on_too)
{
    static const char message[] = "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n"
                                  "$1\r\nm\r\n";
    struct site *site = site_new();
    struct peer peer = peer_new(site);
    struct buf out = { 0 };
    struct client *client;

    client = first_client(site);
    gateway_handler.give_up(&client->conn, slice_of(message), &out);
    assert_memory_equal("-MISCONF", out.data, 8); /* an answer like any */
    buf_reset(&out, SIZE_MAX);
    atomic_store(&client->session.receiver.subscribed[0], 1);
    session_hears(&client->session);
    atomic_store(&client->session.receiver.subscribed[0], 0);
    session_hears(&client->session);
    assert_false(client->session.subscribed);
    gateway_handler.give_up(&client->conn, slice_of(message), &out);
    assert_int_equal(sizeof(message) - 1, out.len);
    assert_memory_equal(message, out.data, out.len);
    buf_free(&out);
    peer_free(&peer);
    site_free(site);
}

/* ---- a connection becomes a replica's ------------------------------------ */

static struct handover *taken;
static bool takes;

static bool
take(void *ctx, struct handover *handover)
{
    (void)ctx;
    taken = takes ? handover : NULL;
    return takes;
}

#define RUN_ID "0123456789abcdef0123456789abcdef01234567"
#define GREET  "REPLCONF bloomery 1 run " RUN_ID "\r\n"
#define HELLO  "+BLOOMERY 1 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa -\r\n"

static struct site *
site_with_replicas(bool takes_them)
{
    struct site *site = site_new();

    memset(site->rig->service.run_id, 'a', 40);
    site->rig->service.replication.hand_over = take;
    takes = takes_them;
    taken = NULL;
    return site;
}

static void
wait_taken(struct site *site)
{
    uint64_t give_up = clock_mono_ns() + DEADLINE_MS * 1000000ULL;

    while (taken == NULL) {
        assert_true(clock_mono_ns() < give_up);
        (void)uv_run(&site->loop.uv, UV_RUN_NOWAIT);
    }
}

TEST(psync_hands_the_socket_over_with_all_that_was_said)
{
    struct site *site = site_with_replicas(true);
    struct peer peer = peer_new(site);

    talk(site, &peer, GREET, HELLO);
    talk(site, &peer, "REPLCONF listening-port 7001 ip-address h.example\r\n",
         "+OK\r\n");
    send_text(&peer, "PSYNC " RUN_ID " 77 FAILOVER\r\n");
    wait_taken(site);
    assert_int_equal(1, taken->id);
    assert_int_equal(77, taken->position);
    assert_string_equal(RUN_ID, taken->history);
    assert_string_equal(RUN_ID, taken->run_id);
    assert_string_equal("h.example", taken->ip);
    assert_int_equal(7001, taken->port);
    assert_true(taken->failover);
    /* It is the same socket, and goes on when the client has gone. */
    while (site->loop.conns.first != NULL) {
        (void)uv_run(&site->loop.uv, UV_RUN_NOWAIT);
    }
    assert_int_equal(5, send(taken->fd, "hello", 5, MSG_NOSIGNAL));
    expect(site, &peer, "hello");
    assert_false(peer.ended);
    (void)close(taken->fd);
    session_free_handover(taken);
    peer_free(&peer);
    site_free(site);
}

TEST(psync_waits_until_what_came_before_it_is_answered)
{
    struct site *site = site_with_replicas(true);
    struct peer peer = peer_new(site);

    send_text(&peer, GREET "PING\r\nPSYNC ? -1\r\n");
    wait_taken(site);
    expect(site, &peer, HELLO "+PONG\r\n");
    assert_string_equal("", taken->history);
    assert_int_equal(0, taken->position);
    assert_false(taken->failover);
    (void)close(taken->fd);
    session_free_handover(taken);
    peer_free(&peer);
    site_free(site);
}

TEST(psync_with_something_behind_it_is_an_error)
{
    struct site *site = site_with_replicas(true);
    struct peer peer = peer_new(site);

    talk(site, &peer, GREET, HELLO);
    send_text(&peer, "PSYNC ? -1\r\nPING\r\n");
    wait_bytes(site, &peer, SIZE_MAX);
    assert_memory_equal(
        "-ERR the connection cannot become a replica's: ", peer.got.data, 47);
    assert_null(taken);
    peer_free(&peer);
    site_free(site);
}

TEST(a_replica_that_nobody_takes_is_told_so)
{
    struct site *site = site_with_replicas(false);
    struct peer peer = peer_new(site);

    talk(site, &peer, GREET, HELLO);
    send_text(&peer, "PSYNC ? -1\r\n");
    wait_bytes(site, &peer, SIZE_MAX);
    assert_true(slice_equal(slice_lit("-ERR replicas are not taken now\r\n"),
                            buf_slice(&peer.got)));
    peer_free(&peer);
    site_free(site);
}

static size_t
two_above(void *ctx, char (*ret_chain)[41])
{
    (void)ctx;
    memcpy(ret_chain[0], RUN_ID, 41);
    memcpy(ret_chain[1], RUN_ID, 41);
    return 2;
}

TEST(a_replica_hears_who_is_above)
{
    struct site *site = site_with_replicas(true);
    struct peer peer = peer_new(site);

    site->rig->service.replication.chain = two_above;
    talk(site, &peer, GREET,
         "+BLOOMERY 1 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa " RUN_ID
         "," RUN_ID "\r\n");
    peer_free(&peer);
    site_free(site);
}

/* ---- whom a long command makes wait ---------------------------------------
 */

static struct {
    struct peer *first;
    size_t got; /* by the first before the turn ended */
} seen;

static void
see_end_of_turn(struct loop *loop)
{
    peer_take(seen.first);
    seen.got = seen.first->got.len;
    gateway_handler.turn_end(loop);
}

/* Two clients in one turn: what the first has got when the second command has
 * been executed and the turn has not ended. */
static size_t
got_before_the_end(const char *second)
{
    struct conn_handler handler = gateway_handler;
    struct site *site = site_new();
    struct peer peers[2] = { peer_new(site), peer_new(site) };

    handler.turn_end = see_end_of_turn;
    site->env.handler = &handler;
    site->rig->service.limits.args_max = 10000;
    for (int i = 0; i < 10; i++) {
        (void)uv_run(&site->loop.uv, UV_RUN_NOWAIT);
    }
    seen.first = &peers[0];
    send_text(&peers[0], "PING\r\n");
    send_text(&peers[1], second);
    (void)uv_run(&site->loop.uv, UV_RUN_NOWAIT);
    expect(site, &peers[0], "+PONG\r\n");
    wait_bytes(site, &peers[1], 1);
    peer_free(&peers[0]);
    peer_free(&peers[1]);
    site_free(site);
    return seen.got;
}

TEST(nobody_waits_for_the_command_of_another_that_may_last)
{
    char many[8192] = "EXISTS";

    assert_int_equal(0, got_before_the_end("EXISTS x\r\n"));
    assert_int_equal(7, got_before_the_end("INFO server\r\n"));
    for (size_t len = strlen(many); len < 2 * 1100; len += 2) {
        memcpy(many + len, " x", 3);
    }
    (void)strcat(many, "\r\n");
    assert_int_equal(7, got_before_the_end(many));
}
