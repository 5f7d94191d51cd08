/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A client whose connection gives its socket away goes on talking, to a link
 * on another loop, and notices nothing. Made-up clients know one more word:
 *
 *   DETACH    as the last of its batch: hands the socket over, or replies
 *             +REFUSED
 */
#include "net/conn.h"
#include "net/loop_run.h"

#include "link_help.h"

#include <sys/resource.h>

/* The other loop, and what it does there: it greets, and sends back what it
 * hears. */
struct other {
    struct rig *rig;
    struct loop loop;
    struct link *link; /* the other loop's */
    _Atomic unsigned taken, closed;
    int fd; /* not handed over; -1: it was */
    bool stays;
};

static void
echo(void *ctx, struct link *link, struct slice bytes, size_t *ret_used)
{
    (void)ctx;
    assert_true(link_send(link, bytes));
    *ret_used = bytes.len;
}

static void
on_closed(void *ctx, struct link *link, int error, const char *reason)
{
    struct other *other = ctx;

    (void)link;
    (void)error;
    (void)reason;
    atomic_fetch_add(&other->closed, 1);
}

static const struct link_hooks echo_hooks = { .bytes = echo,
                                              .closed = on_closed };

static void
take_there(struct loop *loop, void *ptr, uint64_t fd)
{
    struct other *other = ptr;

    other->link = link_take(loop, (int)fd, &echo_hooks, other);
    assert_non_null(other->link);
    assert_true(link_send(other->link, slice_lit("+WELCOME\r\n")));
    atomic_fetch_add(&other->taken, 1);
}

static bool
is_last(const struct conn *conn, const struct slice *argv)
{
    const struct batch *batch = &conn->loop->batch;

    return argv == &batch->argv[batch->command[batch->count - 1].first];
}

static bool
takes_detach(struct fake *fake, const struct slice *argv, size_t argc)
{
    struct other *other = fake->rig->takes_ctx;
    struct conn *conn = &fake->conn;
    struct tls *tls = NULL;
    int fd;

    (void)argc;
    if (!slice_is_word(argv[0], "DETACH")) {
        return false;
    }
    fd = is_last(conn, argv) ? serve_detach(conn, &tls) : -1;
    if (fd < 0) {
        assert_false(conn_is_closing(conn));
        buf_append(&conn->loop->reply, "+REFUSED\r\n", 10);
    } else if (other->stays) {
        other->fd = fd;
    } else {
        assert_true(mailbox_post(&other->loop.mailbox, take_there, other,
                                 (uint64_t)fd));
    }
    return true;
}

static struct other *
other_new(void)
{
    struct rig *rig = rig_new();
    struct other *other = mem_zalloc(sizeof(*other));

    other->rig = rig;
    other->fd = -1;
    rig->takes = takes_detach;
    rig->takes_ctx = other;
    loop_init(&other->loop, 1, &rig->env, rig);
    loop_start(&other->loop);
    return other;
}

static void
other_free(struct other *other)
{
    struct rig *rig = other->rig;

    loop_stop(&other->loop);
    loop_join(&other->loop);
    loop_fini(&other->loop);
    mem_free(other);
    rig_free(rig);
}

static struct peer
peer_by(struct rig *rig, enum kind kind)
{
    int ends[2];

    ends_of(kind, ends);
    assert_int_equal(0, fcntl(ends[0], F_SETFL, O_NONBLOCK));
    assert_true(
        registry_reserve(rig->registry, PLACE_COMMON, rig->limits.maxclients));
    serve_open(&rig->loop, ends[0], kind == BY_UNIX);
    return peer_of(ends[1]);
}

static void
count_conn(void *ctx, struct conn *conn)
{
    (void)conn;
    ++*(unsigned *)ctx;
}

/* Nothing of it is left where it was. */
static void
assert_gone(struct rig *rig, unsigned conns)
{
    unsigned count = 0;

    rig_until(rig, rig->closed + conns == rig->accepted);
    (void)registry_visit(rig->registry, 0, 100, count_conn, &count);
    assert_int_equal(conns, count);
    assert_int_equal(conns, rig->loop.open_conns);
    assert_int_equal(conns,
                     metric_sum(METRIC_CONNECTED_CLIENTS) - rig->gauges[0]);
    assert_true(registry_reserve(rig->registry, PLACE_COMMON, conns + 1));
    assert_false(registry_reserve(rig->registry, PLACE_COMMON, conns + 1));
    registry_release(rig->registry, PLACE_COMMON);
}

static void
assert_echo(struct rig *rig, struct peer *peer)
{
    char bytes[100000];

    peer_send_text(rig, peer, "PING\r\n");
    peer_expect(rig, peer, "PING\r\n");
    pattern_fill(bytes, 0, sizeof(bytes));
    for (size_t at = 0; at < sizeof(bytes); at += 20000) {
        peer_send(rig, peer, (struct slice){ bytes + at, 20000 });
        rig_until(rig, peer_has(peer, at + 20000));
    }
    assert_pattern(buf_slice(&peer->got), 0);
    peer->got.len = 0;
}

TEST(a_client_goes_on_with_a_link_of_another_loop)
{
    for (enum kind kind = BY_UNIX; kind <= BY_TCP; kind++) {
        struct other *other = other_new();
        struct rig *rig = other->rig;
        struct peer before = peer_by(rig, kind);
        struct peer peer = peer_by(rig, kind);
        struct peer after = peer_by(rig, kind);
        uint64_t id = conn_id(rig->last);

        peer_send_text(rig, &peer, "HELLO\r\n");
        peer_expect(rig, &peer, "+HELLO\r\n");
        peer_send_text(rig, &peer, "DETACH\r\n");
        peer_expect(rig, &peer, "+WELCOME\r\n");
        assert_gone(rig, 2);
        assert_null(conn_find(&rig->loop, id - 1));
        assert_non_null(conn_find(&rig->loop, id));
        assert_echo(rig, &peer);
        peer_send_text(rig, &before, "A\r\n");
        peer_send_text(rig, &after, "B\r\n");
        peer_expect(rig, &before, "+A\r\n");
        peer_expect(rig, &after, "+B\r\n");
        peer_free(&peer);
        rig_until(rig, other->closed == 1);
        peer_free(&before);
        peer_free(&after);
        other_free(other);
    }
}

TEST(the_other_side_of_a_link_is_cut_when_it_closes)
{
    struct other *other = other_new();
    struct peer peer = peer_by(other->rig, BY_TCP);

    peer_send_text(other->rig, &peer, "DETACH\r\n");
    peer_expect(other->rig, &peer, "+WELCOME\r\n");
    loop_stop(&other->loop);
    rig_until(other->rig, peer_is_cut(&peer));
    peer_free(&peer);
    other_free(other);
}

TEST(replies_before_it_in_the_batch_come_first)
{
    struct other *other = other_new();
    struct peer peer = peer_by(other->rig, BY_UNIX);

    peer_send_text(other->rig, &peer, "A\r\nB\r\nDETACH\r\n");
    peer_expect(other->rig, &peer, "+A\r\n+B\r\n+WELCOME\r\n");
    peer_free(&peer);
    other_free(other);
}

/* It came through the reader; or waited with what was kept. */
TEST(a_command_that_came_in_pieces_may_detach)
{
    static const char *const pieces[][2] = {
        { "*1\r\n$6\r\nDET", "ACH\r\n" },
        { "DET", "ACH\r\n" },
        { "PAUSE 3\r\nDETACH\r\n", "" },
        { "A\r\nPAUSE 3\r\n*1\r\n$6\r\nDET", "ACH\r\n" },
    };

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct other *other = other_new();
        struct peer peer = peer_by(other->rig, BY_UNIX);

        peer_send_text(other->rig, &peer, pieces[i][0]);
        rig_settle(other->rig);
        peer_send_text(other->rig, &peer, pieces[i][1]);
        rig_until(other->rig, other->taken == 1);
        assert_gone(other->rig, 0);
        rig_until(other->rig, peer_has(&peer, 10) &&
                                  memcmp(peer.got.data + peer.got.len - 10,
                                         "+WELCOME\r\n", 10) == 0);
        peer.got.len = 0;
        assert_echo(other->rig, &peer);
        peer_free(&peer);
        other_free(other);
    }
}

/* Behind it in its batch, in the next one, in part, in pieces. */
TEST(nothing_detaches_while_more_has_come)
{
    static const char *const requests[][3] = {
        { "DETACH\r\nA\r\n", "", "+REFUSED\r\n+A\r\n" },
        { "DETACH\r\n*1\r\n$1\r\n", "A\r\n", "+REFUSED\r\n+A\r\n" },
        { "DETACH\r\n*", "1\r\n$1\r\nA\r\n", "+REFUSED\r\n+A\r\n" },
        { "DET", "ACH\r\nA\r\n", "+REFUSED\r\n+A\r\n" },
        { "*1\r\n$6\r\nDET", "ACH\r\n*1\r\n$1\r\nA\r\n", "+REFUSED\r\n+A\r\n" },
        { "PAUSE 3\r\nDETACH\r\nA\r\n", "", "+PAUSE|3\r\n+REFUSED\r\n+A\r\n" },
    };

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        struct other *other = other_new();
        struct peer peer = peer_by(other->rig, BY_UNIX);

        peer_send_text(other->rig, &peer, requests[i][0]);
        rig_settle(other->rig);
        peer_send_text(other->rig, &peer, requests[i][1]);
        peer_expect(other->rig, &peer, requests[i][2]);
        peer_send_text(other->rig, &peer, "DETACH\r\n"); /* now it may */
        peer_expect(other->rig, &peer, "+WELCOME\r\n");
        peer_free(&peer);
        other_free(other);
    }
}

TEST(nothing_detaches_while_replies_wait)
{
    struct other *other = other_new();
    struct rig *rig = other->rig;
    struct peer peer = peer_new(rig, true);

    peer_send_text(rig, &peer, "FILL 300000\r\n");
    rig_settle(rig);
    peer_send_text(rig, &peer, "DETACH\r\n"); /* the socket takes no more */
    rig_settle(rig);
    rig_until(rig, peer_has(&peer, 300010));
    assert_memory_equal("+REFUSED\r\n", peer.got.data + 300000, 10);
    peer.got.len = 0;
    rig->released = 0;
    peer_send_text(rig, &peer, "HOLD 7\r\nDETACH\r\n");
    rig_settle(rig);
    assert_false(peer_has(&peer, 1));
    peer_send_text(rig, &peer, "DETACH\r\n");
    rig_settle(rig);
    rig->released = 7;
    loop_wake(&rig->loop);
    peer_expect(rig, &peer, "+HOLD|7\r\n+REFUSED\r\n+REFUSED\r\n");
    peer_send_text(rig, &peer, "DETACH\r\n");
    peer_expect(rig, &peer, "+WELCOME\r\n");
    assert_gone(rig, 0);
    peer_free(&peer);
    other_free(other);
}

TEST(without_descriptors_a_connection_stays)
{
    struct other *other = other_new();
    struct peer peer = peer_by(other->rig, BY_TCP);
    struct rlimit limit;
    struct rlimit none;

    assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &limit));
    none = (struct rlimit){ 3, limit.rlim_max };
    assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &none));
    peer_send_text(other->rig, &peer, "DETACH\r\n");
    peer_expect(other->rig, &peer, "+REFUSED\r\n");
    assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &limit));
    peer_send_text(other->rig, &peer, "A\r\nDETACH\r\n");
    peer_expect(other->rig, &peer, "+A\r\n+WELCOME\r\n");
    peer_free(&peer);
    other_free(other);
}

/* From elsewhere than a command. */
TEST(a_connection_that_rests_may_be_detached)
{
    struct other *other = other_new();
    struct peer peer = peer_by(other->rig, BY_UNIX);
    struct peer two = peer_by(other->rig, BY_UNIX);
    struct conn *conn = other->rig->last;
    struct tls *tls = NULL;
    int fd;

    peer_send_text(other->rig, &two, "*1\r\n$1\r\n");
    rig_settle(other->rig);
    assert_int_equal(-1, serve_detach(conn, &tls));
    peer_send_text(other->rig, &two, "A\r\n");
    peer_expect(other->rig, &two, "+A\r\n");
    peer_send_text(other->rig, &two, "*2\r\n$5\r\n"); /* and later on, too */
    rig_settle(other->rig);
    assert_int_equal(-1, serve_detach(conn, &tls));
    peer_send_text(other->rig, &two, "PAUSE\r\n$9\r\n100000000\r\n");
    rig_settle(other->rig);
    assert_int_equal(-1, serve_detach(conn, &tls));
    conn_close(conn);
    assert_int_equal(-1, serve_detach(conn, &tls));
    fd = serve_detach(other->rig->loop.conns.first, &tls);
    assert_true(fd >= 0);
    assert_gone(other->rig, 0);
    assert_int_equal(2, write(fd, "ok", 2));
    peer_expect(other->rig, &peer, "ok");
    (void)close(fd);
    rig_until(other->rig, peer_is_cut(&peer));
    peer_free(&peer);
    peer_free(&two);
    other_free(other);
}

/* The end of a connection is not the end of its socket, and events for it that
 * were on their way are nobody's. */
TEST(bytes_that_come_while_it_moves_are_the_links)
{
    struct other *other = other_new();
    struct rig *rig = other->rig;
    struct peer peer = peer_by(rig, BY_TCP);

    other->stays = true;
    peer_send_text(rig, &peer, "DETACH\r\n");
    rig_until(rig, other->fd >= 0);
    peer_send_text(rig, &peer, "NEW WORDS\r\n");
    assert_gone(rig, 0);
    rig_settle(rig);
    assert_true(mailbox_post(&other->loop.mailbox, take_there, other,
                             (uint64_t)other->fd));
    peer_expect(rig, &peer, "+WELCOME\r\nNEW WORDS\r\n");
    peer_free(&peer);
    other_free(other);
}
