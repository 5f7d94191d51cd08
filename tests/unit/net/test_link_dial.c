/* SPDX-License-Identifier: BSD-3-Clause
 *
 * From a host's name to an open link: addresses that refuse, that do not
 * answer, and that are not found, and ends at any moment.
 */
#include "net/link_dial.h"
#include "net/loop_run.h"

#include "link_help.h"
#include "resolver.h"

#include <poll.h>
#include <stddef.h>
#include <sys/un.h>

static void
dial(struct rig *rig, struct owner *owner, const char *host, unsigned port,
     unsigned timeout_ms)
{
    owner->inside = true;
    owner->link =
        link_dial(&rig->loop, host, port, timeout_ms, &owner_hooks, owner);
    owner->inside = false;
    assert_non_null(owner->link);
}

static struct peer
accept_one(int listening)
{
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);

    assert_true(fd >= 0);
    return peer_of(fd);
}

/* A port where nobody listens on any address. */
static unsigned
free_port(void)
{
    unsigned port = 0;

    (void)close(listen_on("0.0.0.0", &port, 1));
    return port;
}

TEST(a_dialled_link_opens_and_bytes_go_both_ways)
{
    static const char *const hosts[] = { "127.0.0.1", "a.name" };

    resolver_say(0, "127.0.0.1");
    for (size_t i = 0; i < 2; i++) {
        struct rig *rig = rig_new();
        struct owner owner = { 0 };
        unsigned port = 0;
        int listening = listen_on("127.0.0.1", &port, 1);
        struct peer peer;
        char text[ADDRESS_TEXT_MAX];
        char want[ADDRESS_TEXT_MAX];

        dial(rig, &owner, hosts[i], port, DEADLINE_MS);
        link_peer_address(owner.link, text);
        assert_string_equal("", text);
        rig_until(rig, owner.opened == 1);
        (void)snprintf(want, sizeof(want), "127.0.0.1:%u", port);
        link_peer_address(owner.link, text);
        assert_string_equal(want, text);
        link_peer_host(owner.link, text);
        assert_string_equal("127.0.0.1", text);
        peer = accept_one(listening);
        assert_true(owner_send(&owner, slice_lit("hello")));
        peer_expect(rig, &peer, "hello");
        peer_send_text(rig, &peer, "you");
        rig_until(rig, owner.got.len == 3);
        rig_settle(rig);
        assert_int_equal(0, owner.closed);
        owner_free(&owner);
        peer_free(&peer);
        (void)close(listening);
        rig_free(rig);
    }
}

TEST(bytes_sent_before_the_link_opens_go_out_in_order)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    unsigned port = 0;
    int listening = listen_on("127.0.0.1", &port, 1);
    size_t size = 1 << 20;
    char *bytes = mem_alloc(size);
    struct peer peer;

    pattern_fill(bytes, 0, size);
    dial(rig, &owner, "127.0.0.1", port, DEADLINE_MS);
    assert_true(owner_send(&owner, (struct slice){ bytes, 1000 }));
    assert_int_equal(1000, link_unsent(owner.link));
    rig_until(rig, owner.opened == 1);
    assert_true(
        owner_send(&owner, (struct slice){ bytes + 1000, size - 1000 }));
    peer = accept_one(listening);
    rig_until(rig, peer_has(&peer, size));
    assert_pattern(buf_slice(&peer.got), 0);
    mem_free(bytes);
    owner_free(&owner);
    peer_free(&peer);
    (void)close(listening);
    rig_free(rig);
}

TEST(a_link_closed_when_it_opens_sends_the_waiting_bytes)
{
    struct rig *rig = rig_new();
    struct owner owner = { .leaves = IN_OPENED };
    unsigned port = 0;
    int listening = listen_on("127.0.0.1", &port, 1);
    struct peer peer;

    dial(rig, &owner, "127.0.0.1", port, DEADLINE_MS);
    assert_true(owner_send(&owner, slice_lit("bye")));
    rig_until(rig, owner.opened == 1);
    peer = accept_one(listening);
    rig_until(rig, peer_is_cut(&peer));
    assert_int_equal(3, peer.got.len);
    owner_free(&owner);
    peer_free(&peer);
    (void)close(listening);
    rig_free(rig);
}

TEST(a_refused_connection_is_reported_later)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };

    dial(rig, &owner, "127.0.0.1", free_port(), DEADLINE_MS);
    assert_true(owner_send(&owner, slice_lit("lost")));
    assert_int_equal(0, owner.closed);
    rig_until(rig, owner.closed == 1);
    assert_int_equal(ECONNREFUSED, owner.error);
    assert_string_equal("connection refused", owner.reason);
    assert_int_equal(0, owner.opened);
    owner_free(&owner);
    rig_free(rig);
}

TEST(all_addresses_of_a_host_are_tried)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    unsigned port = 0;
    int listening = listen_on("127.0.0.7", &port, 1);
    char text[ADDRESS_TEXT_MAX];

    /* The first cannot even be tried: it is no address to connect to. */
    resolver_say(0, "255.255.255.255 127.0.0.5 127.0.0.6 127.0.0.7 127.0.0.8");
    dial(rig, &owner, "many.names", port, DEADLINE_MS);
    rig_until(rig, owner.opened == 1 || owner.closed == 1);
    assert_int_equal(1, owner.opened);
    link_peer_host(owner.link, text);
    assert_string_equal("127.0.0.7", text);
    owner_free(&owner);
    resolver_say(0, "127.0.0.5 255.255.255.255");
    dial(rig, &owner, "many.names", port, DEADLINE_MS);
    rig_until(rig, owner.closed == 1);
    assert_int_not_equal(0, owner.error); /* of the last one */
    assert_int_not_equal(ECONNREFUSED, owner.error);
    owner_free(&owner);
    resolver_say(0, "");
    dial(rig, &owner, "no.names", port, DEADLINE_MS);
    rig_until(rig, owner.closed == 2);
    assert_string_equal("the host has no address", owner.reason);
    (void)close(listening);
    owner_free(&owner);
    rig_free(rig);
}

/* An address that takes no more connections answers none: Linux drops what
 * wants to connect when the backlog is full. */
struct silent {
    int listening, first[8];
    unsigned count;
};

static struct silent
be_silent(const char *host, unsigned port)
{
    struct silent silent = { .listening = listen_on(host, &port, 0) };
    struct sockaddr_in in = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port) };
    bool full = false;

    assert_int_equal(1, inet_pton(AF_INET, host, &in.sin_addr));
    while (!full && silent.count < 8) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        struct pollfd wait = { .fd = fd, .events = POLLOUT };

        silent.first[silent.count++] = fd;
        full = connect(fd, (struct sockaddr *)&in, sizeof(in)) != 0 &&
               poll(&wait, 1, 100) == 0;
    }
    assert_true(full);
    return silent;
}

static void
silent_free(const struct silent *silent)
{
    (void)close(silent->listening);
    for (unsigned i = 0; i < silent->count; i++) {
        (void)close(silent->first[i]);
    }
}

TEST(a_silent_address_leaves_time_for_the_others)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    unsigned port = 0;
    int listening = listen_on("127.0.0.1", &port, 1);
    struct silent silent = be_silent("127.0.0.5", port);
    char text[ADDRESS_TEXT_MAX];

    resolver_say(0, "127.0.0.5 127.0.0.1");
    dial(rig, &owner, "two.names", port, 300);
    rig_until(rig, owner.opened == 1 || owner.closed == 1);
    assert_int_equal(1, owner.opened);
    link_peer_host(owner.link, text);
    assert_string_equal("127.0.0.1", text);
    silent_free(&silent);
    (void)close(listening);
    owner_free(&owner);
    rig_free(rig);
}

TEST(nobody_answers_in_time)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    unsigned port = 0;
    int listening = listen_on("127.0.0.1", &port, 1);
    struct silent silent = be_silent("127.0.0.5", port);
    uint64_t began_ns = clock_mono_ns();

    resolver_say(0, "127.0.0.5 127.0.0.5 127.0.0.5");
    dial(rig, &owner, "a.name", port, 60);
    rig_until(rig, owner.closed == 1);
    assert_true(clock_mono_ns() - began_ns >= 50 * 1000000ULL);
    assert_int_equal(ETIMEDOUT, owner.error);
    assert_string_equal("connection timed out", owner.reason);
    silent_free(&silent);
    (void)close(listening);
    owner_free(&owner);
    rig_free(rig);
}

/* ---- names --------------------------------------------------------------- */

TEST(a_name_that_is_not_found_is_told)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };

    resolver_say(EAI_NONAME, "");
    dial(rig, &owner, "no.such.name", 1, DEADLINE_MS);
    rig_until(rig, owner.closed == 1);
    assert_int_equal(EHOSTUNREACH, owner.error);
    assert_string_equal(gai_strerror(EAI_NONAME), owner.reason);
    owner_free(&owner);
    rig_free(rig);
}

static void
wait_for_memory(struct rig *rig, uint64_t used)
{
    rig_until(rig, mem_used() == used);
}

TEST(a_resolver_that_is_stuck_is_not_waited_for)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    uint64_t used = mem_used();

    resolver_say(0, "127.0.0.1");
    resolver_stick(true);
    dial(rig, &owner, "a.name", 1, 30);
    rig_until(rig, owner.closed == 1);
    assert_int_equal(ETIMEDOUT, owner.error);
    assert_string_equal("the host's address was not found in time",
                        owner.reason);
    dial(rig, &owner, "another.name", 1, DEADLINE_MS);
    rig_until(rig, resolver_waiting() == 2);
    owner_close(&owner);
    rig_settle(rig);
    resolver_stick(false);
    wait_for_memory(rig, used);
    owner_free(&owner);
    assert_int_equal(1, owner.closed);
    rig_free(rig);
}

TEST(a_loop_ends_while_the_resolver_is_stuck)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };
    struct loop *loop = mem_zalloc(sizeof(*loop));
    uint64_t used = mem_used();

    resolver_stick(true);
    loop_init(loop, 1, &rig->env, rig);
    owner.link =
        link_dial(loop, "a.name", 1, DEADLINE_MS, &owner_hooks, &owner);
    rig_until(rig, resolver_waiting() == 1);
    loop_stop_here(loop);
    loop_run(loop);
    loop_fini(loop);
    assert_int_equal(0, owner.closed);
    resolver_stick(false);
    wait_for_memory(rig, used);
    mem_free(loop);
    rig_free(rig);
}

TEST(without_memory_for_a_lookup_a_dial_fails)
{
    struct rig *rig = rig_new();
    struct owner owner = { 0 };

    for (unsigned nth = 1; nth < 3; nth++) {
        mem_fail_at(nth);
        dial(rig, &owner, "127.0.0.1", 1, DEADLINE_MS);
        assert_true(mem_fail_clear());
        rig_until(rig, owner.closed == nth);
        assert_int_equal(ENOMEM, owner.error);
    }
    owner_free(&owner);
    rig_free(rig);
}

/* ---- ends at any moment -------------------------------------------------- */

static const char *const fates[] = { "127.0.0.1", "127.0.0.9",
                                     "127.0.0.9 127.0.0.1", "",
                                     "255.255.255.255 127.0.0.1" };

TEST(a_dial_may_be_given_up_at_any_moment)
{
    unsigned port = 0;
    int listening = listen_on("127.0.0.1", &port, 64);

    for (size_t fate = 0; fate < sizeof(fates) / sizeof(fates[0]); fate++) {
        resolver_say(0, fates[fate]);
        for (int turns = 0; turns < 12; turns++) {
            for (int ends = 0; ends < 2; ends++) {
                struct rig *rig = rig_new();
                struct owner owner = { 0 };
                uint64_t used = mem_used();

                dial(rig, &owner, "a.name", port, DEADLINE_MS);
                for (int i = 0; i < turns; i++) {
                    rig_turn(rig);
                    (void)usleep(i < 6 ? 50 : 0); /* the thread has its turn */
                }
                if (ends == 0) {
                    owner_close(&owner);
                } else {
                    link_close_all(&rig->loop); /* as the loop's end does */
                }
                rig_settle(rig);
                wait_for_memory(rig, used);
                rig_free(rig);
            }
        }
    }
    (void)close(listening);
}

/* In the very turn in which an address refuses, and after that: who begins to
 * be read from is looked at last. */
TEST(a_dial_may_be_given_up_by_another_links_hook)
{
    unsigned port = free_port();

    resolver_say(0, "127.0.0.9 127.0.0.8 127.0.0.7");
    for (int turns = 0; turns < 16; turns++) {
        struct rig *rig = rig_new();
        struct owner owner = { 0 };
        struct owner other = { .closes = IN_BYTES, .closes_too = &owner };
        uint64_t used = mem_used();
        struct peer peer = owner_take(rig, &other, BY_UNIX, false);

        owner_pause(&other, true);
        assert_int_equal(1, send(peer.fd, "x", 1, MSG_NOSIGNAL));
        dial(rig, &owner, "a.name", port, DEADLINE_MS);
        for (int i = 0; i < turns; i++) {
            rig_turn(rig);
            (void)usleep(i < 4 ? 100 : 0); /* the thread has its turn */
        }
        owner_pause(&other, false);
        rig_until(rig, other.calls == 1);
        rig_settle(rig);
        assert_null(owner.link);
        assert_null(rig->loop.links);
        owner_free(&owner);
        owner_free(&other);
        peer_free(&peer);
        wait_for_memory(rig, used);
        rig_free(rig);
    }
}

TEST(a_dialled_link_may_be_closed_in_every_hook)
{
    static const enum owner_hook hooks[] = { IN_OPENED, IN_BYTES, IN_CLOSED };

    resolver_say(0, "127.0.0.1");
    for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++) {
        struct rig *rig = rig_new();
        struct owner owner = { .closes = hooks[i] };
        unsigned port = 0;
        int listening = listen_on("127.0.0.1", &port, 1);
        struct peer peer;

        dial(rig, &owner, "a.name", port, DEADLINE_MS);
        rig_until(rig, owner.opened == 1);
        peer = accept_one(listening);
        assert_int_equal(1, send(peer.fd, "x", 1, MSG_NOSIGNAL));
        if (hooks[i] == IN_CLOSED) {
            rig_until(rig, owner.calls == 1);
            peer_free(&peer);
        }
        rig_until(rig, owner.link == NULL);
        rig_settle(rig);
        assert_int_equal(hooks[i] == IN_CLOSED, owner.closed);
        owner_free(&owner);
        peer_free(&peer);
        (void)close(listening);
        rig_free(rig);
    }
}

/* What a replica does: it tries again when it hears of the end. */
struct stubborn {
    struct rig *rig;
    struct link *link;
    unsigned port, closed, tries;
};

static void stubborn_closed(void *ctx, struct link *link, int error,
                            const char *reason);

static const struct link_hooks stubborn_hooks = { .closed = stubborn_closed };

static void
stubborn_dial(struct stubborn *stubborn)
{
    stubborn->tries++;
    stubborn->link = link_dial(&stubborn->rig->loop, "127.0.0.1",
                               stubborn->port, 1000, &stubborn_hooks, stubborn);
}

static void
stubborn_closed(void *ctx, struct link *link, int error, const char *reason)
{
    struct stubborn *stubborn = ctx;

    (void)reason;
    assert_ptr_equal(stubborn->link, link);
    assert_int_equal(stubborn->rig->loop.stopping ? ECANCELED : ECONNREFUSED,
                     error);
    stubborn->closed++;
    stubborn->link = NULL;
    if (stubborn->tries < 5) {
        stubborn_dial(stubborn);
    }
}

TEST(a_link_may_be_dialled_when_another_has_closed)
{
    struct rig *rig = rig_new();
    struct stubborn stubborn = { .rig = rig, .port = free_port() };

    stubborn_dial(&stubborn);
    rig_until(rig, stubborn.closed == 5);
    assert_null(stubborn.link);
    rig_free(rig);
}

TEST(a_loop_that_stops_dials_nobody)
{
    struct rig *rig = rig_new();
    struct stubborn stubborn = { .rig = rig, .port = free_port() };

    loop_stop_here(&rig->loop);
    stubborn_dial(&stubborn);
    link_pause(stubborn.link, true);
    link_pause(stubborn.link, false);
    assert_int_equal(0, stubborn.closed);
    loop_run(&rig->loop);
    assert_int_equal(5, stubborn.closed);
    loop_fini(&rig->loop);
    loop_init(&rig->loop, 0, &rig->env, rig); /* for rig_free */
    rig_free(rig);
}

/* ---- unix sockets -------------------------------------------------------- */

static int
listen_at(const char *path)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    (void)snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
    (void)unlink(path);
    assert_int_equal(0, bind(fd, (struct sockaddr *)&un, sizeof(un)));
    assert_int_equal(0, listen(fd, 1));
    return fd;
}

TEST(a_unix_socket_is_dialled_by_its_path)
{
    struct rig *rig = rig_new();
    struct owner owner = { .inside = true };
    char path[64];
    struct peer peer;
    int listening;

    (void)snprintf(path, sizeof(path), "/tmp/bloomery-dial-%d", (int)getpid());
    listening = listen_at(path);
    owner.link =
        link_dial_unix(&rig->loop, path, DEADLINE_MS, &owner_hooks, &owner);
    owner.inside = false;
    rig_until(rig, owner.opened == 1);
    peer = accept_one(listening);
    assert_true(owner_send(&owner, slice_lit("hello")));
    peer_expect(rig, &peer, "hello");
    peer_send_text(rig, &peer, "you");
    rig_until(rig, owner.got.len == 3);
    owner_free(&owner);
    peer_free(&peer);
    (void)close(listening);
    (void)unlink(path);
    rig_free(rig);
}

TEST(a_path_without_a_socket_is_reported_later)
{
    struct rig *rig = rig_new();
    struct owner owner = { .inside = true };

    owner.link = link_dial_unix(&rig->loop, "/nonexistent/socket", DEADLINE_MS,
                                &owner_hooks, &owner);
    owner.inside = false;
    assert_int_equal(0, owner.closed);
    rig_until(rig, owner.closed == 1);
    assert_int_equal(0, owner.opened);
    owner_free(&owner);
    rig_free(rig);
}

TEST(a_unix_link_may_be_closed_before_it_opens)
{
    struct rig *rig = rig_new();
    struct owner owner = { .inside = true };

    owner.link = link_dial_unix(&rig->loop, "/nonexistent/socket", DEADLINE_MS,
                                &owner_hooks, &owner);
    owner.inside = false;
    link_close(owner.link);
    owner.link = NULL;
    rig_settle(rig);
    assert_int_equal(0, owner.closed);
    owner_free(&owner);
    rig_free(rig);
}
