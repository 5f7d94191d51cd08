/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Links that were taken over: bytes in any pieces, owners that use what they
 * like, other sides that do not read, and all the ways and moments to end.
 */
#include "net/link.h"
#include "net/loop_run.h"

#include "link_help.h"

#include <netinet/tcp.h>

/* Both by write(2): it may be a pipe. */
static void
put(const struct peer *peer, const char *text)
{
    assert_int_equal(strlen(text), write(peer->fd, text, strlen(text)));
}

static void
owner_expect(struct rig *rig, struct owner *owner, const char *text)
{
    rig_until(rig, owner->got.len >= strlen(text) || owner->closed > 0);
    rig_settle(rig);
    if (!slice_equal(buf_slice(&owner->got), slice_of(text))) {
        fail_msg("got [%.*s] and not [%s]", (int)owner->got.len,
                 owner->got.len > 0 ? owner->got.data : "", text);
    }
    owner->got.len = 0;
}

/* ---- bytes --------------------------------------------------------------- */

TEST(bytes_go_both_ways_and_an_end_is_told)
{
    for (unsigned kind = 0; kind < KINDS; kind++) {
        struct rig *rig = rig_new();
        struct owner owner = { 0 };
        struct peer peer = owner_take(rig, &owner, kind, false);

        put(&peer, "one");
        owner_expect(rig, &owner, "one");
        put(&peer, "two");
        owner_expect(rig, &owner, "two");
        if (kind != BY_PIPE) {
            assert_true(owner_send(&owner, slice_lit("three")));
            assert_int_equal(0, link_unsent(owner.link));
            peer_expect(rig, &peer, "three");
        }
        put(&peer, "end");
        peer_free(&peer);
        rig_until(rig, owner.closed == 1);
        owner_expect(rig, &owner, "end");
        assert_int_equal(0, owner.error);
        assert_string_equal("the other side closed the connection",
                            owner.reason);
        assert_int_equal(0, owner.opened);
        owner_free(&owner);
        rig_free(rig);
    }
}

TEST(unused_bytes_come_again_with_the_next_ones)
{
    struct rig *rig = rig_new();
    struct owner owner = { .whole = 4 };
    struct peer peer = owner_take(rig, &owner, BY_UNIX, false);

    put(&peer, "abc");
    rig_settle(rig);
    assert_int_equal(1, owner.calls); /* and not again without more */
    put(&peer, "defghij");
    owner_expect(rig, &owner, "abcdefgh");
    put(&peer, "kl");
    owner_expect(rig, &owner, "ijkl");
    assert_int_equal(3, owner.calls);
    owner_free(&owner);
    peer_free(&peer);
    rig_free(rig);
}

TEST(nothing_is_read_during_a_pause)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    struct peer peer = owner_take(rig, &owner, BY_UNIX, true);
    size_t sent = 0;

    owner_pause(&owner, true);
    while (write(peer.fd, "x", 1) == 1) {
        sent++;
    }
    rig_settle(rig);
    assert_int_equal(EAGAIN, errno);
    assert_int_equal(-1, write(peer.fd, "x", 1)); /* there is no room yet */
    assert_int_equal(0, owner.calls);
    owner_pause(&owner, false);
    assert_int_equal(0, owner.calls);
    rig_until(rig, owner.got.len == sent);
    owner_free(&owner);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_pause_ends_with_what_was_left_before_it)
{
    struct rig *rig = rig_new();
    struct owner owner = { .use = 2, .pauses = true };
    struct peer peer = owner_take(rig, &owner, BY_UNIX, false);

    put(&peer, "abcdefg");
    owner_expect(rig, &owner, "ab");
    put(&peer, "hi");
    rig_settle(rig);
    assert_int_equal(1, owner.calls);
    owner_pause(&owner, true);
    owner_pause(&owner, false); /* and then again: nobody is called now */
    owner_pause(&owner, true);
    rig_settle(rig);
    assert_int_equal(1, owner.calls);
    owner_pause(&owner, false);
    assert_int_equal(1, owner.calls);
    owner_expect(rig, &owner, "cd");
    assert_int_equal(2, owner.calls);
    owner.use = 0;
    owner_pause(&owner, false);
    owner_expect(rig, &owner, "efg");
    owner_pause(&owner, false);
    owner_expect(rig, &owner, "hi");
    owner_free(&owner);
    peer_free(&peer);
    rig_free(rig);
}

/* It wants to be called again for the rest, when others had their turns. */
TEST(a_pause_may_end_in_the_hook_that_began_it)
{
    struct rig *rig = rig_new();
    struct owner owner = { .use = 1, .yields = true };
    struct peer peer = owner_take(rig, &owner, BY_UNIX, false);

    put(&peer, "abcd");
    for (unsigned calls = 1; calls <= 4; calls++) {
        rig_until(rig, owner.calls == calls);
    }
    owner_expect(rig, &owner, "abcd");
    assert_int_equal(4, owner.calls);
    put(&peer, "ef");
    owner_expect(rig, &owner, "ef");
    owner_free(&owner);
    peer_free(&peer);
    rig_free(rig);
}

/* The end is behind what is left, and is told behind it. */
TEST(an_end_waits_for_what_was_left)
{
    struct rig *rig = rig_new();
    struct owner owner = { .use = 1, .pauses = true };
    struct peer peer = owner_take(rig, &owner, BY_PIPE, false);

    put(&peer, "abc");
    peer_free(&peer);
    owner_expect(rig, &owner, "a");
    owner_pause(&owner, false);
    owner_expect(rig, &owner, "b");
    owner_pause(&owner, false);
    owner_expect(rig, &owner, "c");
    assert_int_equal(0, owner.closed);
    owner_pause(&owner, false);
    rig_until(rig, owner.closed == 1);
    owner_free(&owner);
    rig_free(rig);
}

TEST(a_busy_sender_leaves_the_others_their_turns)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    struct peer peer = owner_take(rig, &owner, BY_UNIX, false);
    char *much = mem_zalloc(4 << 20);
    int bytes = 4 << 20;
    ssize_t sent;

    (void)setsockopt(peer.fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    sent = write(peer.fd, much, 4 << 20);
    if (sent > LOOP_READ_BYTES) {
        rig_until(rig, owner.calls > 0);
        assert_int_equal(1, owner.calls);
        assert_int_equal(LOOP_READ_BYTES, owner.got.len);
    }
    rig_until(rig, owner.got.len == (size_t)sent);
    mem_free(much);
    owner_free(&owner);
    peer_free(&peer);
    rig_free(rig);
}

TEST(bytes_that_a_socket_does_not_take_wait_in_order)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    struct peer peer = owner_take(rig, &owner, BY_UNIX, true);
    size_t size = 3 << 20;
    size_t unsent;
    char *bytes = mem_alloc(size);

    pattern_fill(bytes, 0, size);
    for (size_t at = 0; at < size; at += 4096) {
        assert_true(owner_send(&owner, (struct slice){ bytes + at, 4096 }));
    }
    unsent = link_unsent(owner.link);
    assert_true(unsent > size - 200000 && unsent < size);
    assert_int_equal(0, owner.drained);
    while (peer.got.len < size) {
        size_t before = owner.drained;

        rig_turn(rig);
        (void)peer_has(&peer, 0);
        assert_true(link_unsent(owner.link) <= unsent);
        unsent = link_unsent(owner.link);
        /* What is neither there nor here is on its way. */
        assert_true(peer.got.len + unsent <= size);
        assert_true(peer.got.len + unsent > size - 200000);
        assert_true(owner.drained <= before + 1);
    }
    rig_until(rig, link_unsent(owner.link) == 0);
    rig_settle(rig);
    assert_true(owner.drained >= 2); /* at halves, and at the end */
    assert_pattern(buf_slice(&peer.got), 0);
    mem_free(bytes);
    owner_free(&owner);
    peer_free(&peer);
    rig_free(rig);
}

/* Two links, one socket between them. */
static void
converse(struct rig *rig, uint64_t seed)
{
    enum { BYTES = 200000 };
    struct owner owner[2] = { { 0 }, { 0 } };
    uint64_t sent[2] = { 0, 0 };
    char bytes[3000];
    int ends[2];

    ends_of(test_random_below(&seed, 2) == 0 ? BY_UNIX : BY_TCP, ends);
    for (int i = 0; i < 2; i++) {
        int small = SMALL_SOCKET;

        (void)setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
        owner[i].link = link_take(&rig->loop, ends[i], &owner_hooks, &owner[i]);
        assert_non_null(owner[i].link);
    }
    while (owner[0].got.len < BYTES || owner[1].got.len < BYTES) {
        unsigned i = (unsigned)test_random_below(&seed, 2);
        size_t len = test_random_below(&seed, sizeof(bytes));

        owner[i].use = test_random_below(&seed, 3) == 0
                           ? 1 + test_random_below(&seed, 500)
                           : 0;
        owner[i].whole = test_random_below(&seed, 3) == 0
                             ? 1 + test_random_below(&seed, 500)
                             : 0;
        owner[i].pauses = test_random_below(&seed, 3) == 0;
        owner_pause(&owner[i], test_random_below(&seed, 3) == 0);
        if (sent[i] < 2 * BYTES && link_unsent(owner[i].link) < BYTES) {
            pattern_fill(bytes, sent[i], len);
            assert_true(owner_send(&owner[i], (struct slice){ bytes, len }));
            sent[i] += len;
        } else { /* there may be too little on the way for a whole piece */
            owner[1 - i].whole = 0;
            owner_pause(&owner[1 - i], true);
            owner_pause(&owner[1 - i], false);
        }
        rig_turn(rig);
    }
    for (int i = 0; i < 2; i++) {
        assert_pattern(buf_slice(&owner[i].got), 0);
        owner_free(&owner[i]);
    }
}

TEST(streams_arrive_whole_whatever_the_owners_do)
{
    uint64_t seed = test_seed();

    for (unsigned round = 0; round < 20 * test_rounds(); round++) {
        struct rig *rig = rig_new();

        converse(rig, test_random(&seed));
        rig_free(rig);
    }
}

TEST(bytes_of_sockets_are_counted_and_those_of_pipes_are_not)
{
    struct rig *rig = rig_new();
    int64_t in = metric_sum(METRIC_NET_REPL_INPUT);
    int64_t out = metric_sum(METRIC_NET_REPL_OUTPUT);
    struct owner owner = { 0 };
    struct owner piped = { 0 };
    struct peer peer = owner_take(rig, &owner, BY_TCP, true);
    struct peer child = owner_take(rig, &piped, BY_PIPE, false);
    char *bytes = mem_zalloc(1 << 20);

    put(&peer, "12345");
    put(&child, "1234567");
    owner_expect(rig, &owner, "12345");
    owner_expect(rig, &piped, "1234567");
    assert_int_equal(5, metric_sum(METRIC_NET_REPL_INPUT) - in);
    assert_true(owner_send(&owner, (struct slice){ bytes, 1 << 20 }));
    rig_until(rig, peer_has(&peer, 1 << 20));
    assert_int_equal(1 << 20, metric_sum(METRIC_NET_REPL_OUTPUT) - out);
    mem_free(bytes);
    owner_free(&owner);
    owner_free(&piped);
    peer_free(&peer);
    peer_free(&child);
    rig_free(rig);
}

/* ---- its end ------------------------------------------------------------- */

TEST(a_link_may_be_closed_in_every_hook)
{
    for (enum owner_hook hook = IN_BYTES; hook <= IN_CLOSED; hook++) {
        for (unsigned way = 0; way < 4; way++) {
            struct rig *rig = rig_new();
            struct owner other = { 0 };
            struct owner owner = { .closes_too = way % 2 == 0 ? &other : NULL };
            struct peer peer = owner_take(rig, &owner, BY_UNIX, true);
            struct peer far = owner_take(rig, &other, BY_UNIX, false);
            char *bytes = mem_zalloc(1 << 20);

            *(way < 2 ? &owner.closes : &owner.leaves) = hook;
            assert_true(owner_send(&owner, (struct slice){ bytes, 1 << 20 }));
            put(&peer, "abc");
            put(&far, "def");
            if (hook == IN_BYTES) {
                rig_until(rig, owner.calls == 1);
                assert_int_equal(3, owner.got.len);
            } else if (hook == IN_CLOSED) {
                peer_free(&peer);
                rig_until(rig, owner.closed == 1);
            } else {
                rig_until(rig, peer_has(&peer, 1) && owner.drained > 0);
            }
            if (peer.fd >= 0) { /* and what was left of it to be sent */
                rig_until(rig, peer_is_cut(&peer));
                assert_int_equal(hook == IN_CLOSED, owner.closed);
                assert_true(peer.got.len == 1 << 20 || way < 2);
            }
            assert_int_equal(way % 2 == 0, other.link == NULL);
            assert_int_equal(0, other.closed);
            mem_free(bytes);
            owner_free(&owner);
            owner_free(&other);
            peer_free(&peer);
            peer_free(&far);
            rig_free(rig);
        }
    }
}

/* Two that want another turn; the first one's owner closes the second. */
TEST(a_link_whose_turn_comes_may_be_closed_by_another)
{
    for (int first = 0; first < 2; first++) {
        struct rig *rig = rig_new();
        struct owner owner[2] = { { .use = 1, .pauses = true },
                                  { .use = 1, .pauses = true } };
        struct peer peer[2];

        for (int i = 0; i < 2; i++) {
            peer[i] = owner_take(rig, &owner[i], BY_UNIX, false);
            put(&peer[i], "abc");
            owner_expect(rig, &owner[i], "a");
            owner[i].closes = IN_BYTES;
            owner[i].closes_too = &owner[1 - i];
        }
        owner_pause(&owner[first], false);
        owner_pause(&owner[1 - first], false);
        rig_until(rig, owner[0].calls + owner[1].calls == 3);
        rig_settle(rig);
        assert_int_equal(3, owner[0].calls + owner[1].calls);
        for (int i = 0; i < 2; i++) {
            assert_true(peer_is_cut(&peer[i]));
            owner_free(&owner[i]);
            peer_free(&peer[i]);
        }
        rig_free(rig);
    }
}

TEST(the_last_bytes_of_the_other_side_come_before_its_end)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    struct peer peer = owner_take(rig, &owner, BY_TCP, false);

    assert_true(owner_send(&owner, slice_lit("unread")));
    rig_settle(rig);
    put(&peer, "-ERR go away");
    peer_free(&peer); /* with bytes unread: it is reset */
    assert_true(owner_send(&owner, slice_lit("more")));
    assert_true(owner_send(&owner, slice_lit("and more")));
    rig_until(rig, owner.closed == 1);
    owner_expect(rig, &owner, "-ERR go away");
    assert_string_equal(owner.error == 0
                            ? "the other side closed the connection"
                            : uv_strerror(-owner.error),
                        owner.reason);
    owner_free(&owner);
    rig_free(rig);
}

/* Nothing is read, so that only the write can tell. */
TEST(a_write_that_fails_is_told_even_in_a_pause)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    struct peer peer = owner_take(rig, &owner, BY_UNIX, false);

    owner_pause(&owner, true);
    peer_free(&peer);
    rig_settle(rig);
    assert_int_equal(0, owner.closed);
    assert_true(owner_send(&owner, slice_lit("lost")));
    assert_true(owner_send(&owner, slice_lit("lost as well")));
    assert_int_equal(0, link_unsent(owner.link));
    assert_int_equal(0, owner.closed);
    rig_until(rig, owner.closed == 1);
    assert_int_equal(EPIPE, owner.error);
    assert_string_equal("broken pipe", owner.reason);
    owner_free(&owner);
    rig_free(rig);
}

TEST(a_queued_write_may_fail)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    struct peer peer = owner_take(rig, &owner, BY_UNIX, true);
    char *bytes = mem_zalloc(1 << 20);

    owner_pause(&owner, true);
    assert_true(owner_send(&owner, (struct slice){ bytes, 1 << 20 }));
    assert_true(link_unsent(owner.link) > 0);
    peer_free(&peer);
    rig_until(rig, owner.closed == 1);
    assert_int_equal(EPIPE, owner.error);
    assert_int_equal(0, owner.drained);
    mem_free(bytes);
    owner_free(&owner);
    rig_free(rig);
}

TEST(a_link_that_closes_after_sends_the_rest_first)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    struct peer peer = owner_take(rig, &owner, BY_UNIX, true);
    size_t size = 1 << 20;
    char *bytes = mem_alloc(size);

    pattern_fill(bytes, 0, size);
    assert_true(owner_send(&owner, (struct slice){ bytes, size }));
    link_close_after(owner.link, DEADLINE_MS);
    owner.link = NULL;
    put(&peer, "nobody hears this");
    rig_until(rig, peer_is_cut(&peer));
    assert_int_equal(size, peer.got.len);
    assert_pattern(buf_slice(&peer.got), 0);
    assert_int_equal(0, owner.calls + owner.drained + owner.closed);
    assert_null(rig->loop.links);
    mem_free(bytes);
    owner_free(&owner);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_link_that_closes_after_does_not_wait_for_ever)
{
    for (int ends = 0; ends < 2; ends++) {
        struct rig *rig = rig_new();
        struct owner owner = { 0 };
        struct peer peer = owner_take(rig, &owner, BY_UNIX, true);
        char *bytes = mem_zalloc(1 << 20);

        assert_true(owner_send(&owner, (struct slice){ bytes, 1 << 20 }));
        link_close_after(owner.link, ends != 0 ? DEADLINE_MS : 20);
        owner.link = NULL;
        if (ends != 0) { /* its own half; then all of it */
            assert_int_equal(0, shutdown(peer.fd, SHUT_WR));
            rig_settle(rig);
            assert_non_null(rig->loop.links);
            peer_free(&peer);
        }
        rig_until(rig, rig->loop.links == NULL);
        assert_int_equal(0, owner.closed);
        mem_free(bytes);
        owner_free(&owner);
        peer_free(&peer);
        rig_free(rig);
    }
}

TEST(a_link_that_closes_after_with_nothing_unsent_is_gone)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    struct peer peer = owner_take(rig, &owner, BY_UNIX, false);

    assert_true(owner_send(&owner, slice_lit("bye")));
    link_close_after(owner.link, DEADLINE_MS);
    owner.link = NULL;
    assert_null(rig->loop.links);
    rig_until(rig, peer_is_cut(&peer));
    assert_int_equal(3, peer.got.len);
    owner_free(&owner);
    peer_free(&peer);
    rig_free(rig);
}

TEST(a_loop_ends_with_links_in_any_state)
{
    enum { LINKS = 6 };
    struct rig *rig = rig_new();
    struct owner owner[LINKS] = { { 0 }, { .use = 1 }, { 0 },
                                  { 0 }, { 0 },        { .use = 1 } };
    struct peer peer[LINKS];
    char *bytes = mem_zalloc(1 << 20);

    for (int i = 0; i < LINKS; i++) {
        peer[i] = owner_take(rig, &owner[i], BY_UNIX, true);
        put(&peer[i], "abc");
    }
    rig_until(rig, owner[LINKS - 1].calls == 1);
    owner_pause(&owner[1], true);
    owner_pause(&owner[1], false); /* its turn would come */
    assert_true(owner_send(&owner[2], (struct slice){ bytes, 1 << 20 }));
    assert_true(owner_send(&owner[3], (struct slice){ bytes, 1 << 20 }));
    link_close_after(owner[3].link, DEADLINE_MS);
    peer_free(&peer[4]);
    assert_true(owner_send(&owner[4], slice_lit("lost"))); /* is to be told */
    owner_pause(&owner[5], true);
    loop_stop_here(&rig->loop);
    mem_free(bytes);
    for (int i = 0; i < LINKS; i++) {
        buf_free(&owner[i].got);
    }
    rig_free(rig);
    for (int i = 0; i < LINKS; i++) {
        assert_int_equal(0, owner[i].closed);
        assert_true(i == 4 || peer_is_cut(&peer[i]));
        peer_free(&peer[i]);
    }
}

TEST(without_memory_bytes_end_a_link)
{
    struct rig *rig = rig_new();
    struct owner owner = { .whole = 100 };
    struct peer peer = owner_take(rig, &owner, BY_UNIX, true);
    char *bytes = mem_zalloc(1 << 20);

    mem_fail_at(1);
    assert_false(owner_send(&owner, (struct slice){ bytes, 1 << 20 }));
    assert_true(mem_fail_clear());
    assert_int_equal(0, owner.closed); /* that is for the owner to do */
    put(&peer, "abc");
    buf_reserve(&owner.got, 100);
    mem_fail_at(1);
    rig_until(rig, owner.closed == 1);
    assert_true(mem_fail_clear());
    assert_int_equal(ENOMEM, owner.error);
    mem_free(bytes);
    owner_free(&owner);
    peer_free(&peer);
    rig_free(rig);
}

static void
assert_addresses(const struct owner *owner, const char *peer, const char *local,
                 const char *host)
{
    char text[ADDRESS_TEXT_MAX];

    link_peer_address(owner->link, text);
    assert_string_equal(peer, text);
    link_local_address(owner->link, text);
    assert_string_equal(local, text);
    link_peer_host(owner->link, text);
    assert_string_equal(host, text);
}

TEST(a_link_knows_its_ends_even_when_the_other_one_is_gone)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    struct owner piped = { 0 };
    struct peer peer = owner_take(rig, &owner, BY_TCP, false);
    struct peer child = owner_take(rig, &piped, BY_PIPE, false);
    char far[ADDRESS_TEXT_MAX];
    char near[ADDRESS_TEXT_MAX];

    address_local(peer.fd, false, far);
    address_peer(peer.fd, false, near);
    assert_addresses(&owner, far, near, "127.0.0.1");
    assert_addresses(&piped, "", "", "");
    owner_pause(&owner, true);
    peer_free(&peer);
    rig_settle(rig);
    assert_addresses(&owner, far, near, "127.0.0.1");
    owner_free(&owner);
    owner_free(&piped);
    peer_free(&child);
    rig_free(rig);
}

static int
option_of(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof(value);

    assert_int_equal(0, getsockopt(fd, level, name, &value, &len));
    return value;
}

TEST(tcp_sends_at_once_and_asks_whether_the_other_side_lives)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    int ends[2];
    int fd;

    rig->limits.keepalive_seconds = 77;
    ends_of(BY_TCP, ends);
    fd = ends[0];
    owner.link = link_take(&rig->loop, fd, &owner_hooks, &owner);
    assert_int_equal(1, option_of(fd, IPPROTO_TCP, TCP_NODELAY));
    assert_int_equal(1, option_of(fd, SOL_SOCKET, SO_KEEPALIVE));
    assert_int_equal(77, option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE));
    link_keepalive(owner.link, 0);
    assert_int_equal(0, option_of(fd, SOL_SOCKET, SO_KEEPALIVE));
    link_keepalive(owner.link, 5);
    assert_int_equal(5, option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE));
    (void)close(ends[1]);
    owner_free(&owner);
    rig_free(rig);
}
