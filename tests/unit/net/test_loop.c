/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loops on threads of their own: they serve, they are stopped from elsewhere
 * in any state, and they leave nothing behind.
 */
#include "net/loop.h"

#include "rig.h"

enum { LOOPS = 3, PEERS = 12, REQUESTS = 200 };

struct threads {
    struct rig *rig; /* for the environment; its own loop stays idle */
    struct loop loop[LOOPS];
};

static struct threads *
threads_new(void)
{
    struct rig *rig = rig_new();
    struct threads *threads = mem_zalloc(sizeof(*threads));

    threads->rig = rig;
    for (unsigned i = 0; i < LOOPS; i++) {
        loop_init(&threads->loop[i], i + 1, &rig->env, rig);
        loop_start(&threads->loop[i]);
    }
    return threads;
}

static void
threads_free(struct threads *threads)
{
    struct rig *rig = threads->rig;

    for (unsigned i = 0; i < LOOPS; i++) {
        loop_stop(&threads->loop[i]);
        loop_stop(&threads->loop[i]); /* asked twice, stopped once */
    }
    for (unsigned i = 0; i < LOOPS; i++) {
        loop_join(&threads->loop[i]);
        assert_int_equal(0, threads->loop[i].open_conns);
    }
    for (unsigned i = 0; i < LOOPS; i++) {
        loop_fini(&threads->loop[i]);
    }
    mem_free(threads);
    rig_free(rig);
}

static void
open_there(struct loop *loop, void *ptr, uint64_t fd)
{
    (void)ptr;
    conn_open(loop, (int)fd, true);
}

static struct peer
peer_on(struct threads *threads, struct loop *loop)
{
    int ends[2];

    assert_int_equal(0,
                     socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    assert_true(registry_reserve(threads->rig->registry, 1000));
    assert_int_equal(0, fcntl(ends[0], F_SETFL, O_NONBLOCK));
    assert_true(
        mailbox_post(&loop->mailbox, open_there, NULL, (uint64_t)ends[0]));
    return peer_of(ends[1]);
}

TEST(loops_on_threads_serve_their_connections)
{
    struct threads *threads = threads_new();
    struct peer peer[PEERS];

    for (int i = 0; i < PEERS; i++) {
        peer[i] = peer_on(threads, &threads->loop[i % LOOPS]);
    }
    for (int k = 0; k < REQUESTS; k++) {
        for (int i = 0; i < PEERS; i++) {
            peer_send_text(threads->rig, &peer[i], "PAUSE 1\r\nA\r\n");
        }
    }
    for (int i = 0; i < PEERS; i++) {
        rig_until(threads->rig, peer_has(&peer[i], REQUESTS * 14));
        for (size_t at = 0; at < REQUESTS * 14; at += 14) {
            assert_memory_equal("+PAUSE|1\r\n+A\r\n", peer[i].got.data + at,
                                14);
        }
    }
    for (int i = 0; i < PEERS; i++) {
        peer_free(&peer[i]);
    }
    rig_until(threads->rig, threads->rig->closed == PEERS);
    threads_free(threads);
}

TEST(a_stopped_loop_closes_what_it_has_in_any_state)
{
    static const char *const states[] = { "", "*2\r\n$1", "PAUSE 100000000\r\n",
                                          "FILL 3000000\r\n" };
    struct threads *threads = threads_new();
    struct peer peer[PEERS];

    for (int i = 0; i < PEERS; i++) {
        peer[i] = peer_on(threads, &threads->loop[i % LOOPS]);
        peer_send_text(threads->rig, &peer[i], states[i % 4]);
    }
    rig_until(threads->rig, threads->rig->accepted == PEERS);
    for (unsigned i = 0; i < LOOPS; i++) {
        loop_stop(&threads->loop[i]);
    }
    for (int i = 0; i < PEERS; i++) {
        rig_until(threads->rig, peer_is_cut(&peer[i]));
        peer_free(&peer[i]);
    }
    rig_until(threads->rig, threads->rig->closed == PEERS);
    threads_free(threads);
}

static void
stop_and_open(struct loop *loop, void *ptr, uint64_t fd)
{
    loop_stop(loop);
    /* Behind the stop, in the same box: refused, and the descriptor closed. */
    assert_true(mailbox_post(&loop->mailbox, open_there, ptr, fd));
}

TEST(a_descriptor_that_comes_behind_the_stop_is_refused)
{
    struct rig *rig = rig_new();
    struct peer peer;
    int ends[2];

    assert_int_equal(0,
                     socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    peer = peer_of(ends[1]);
    assert_true(registry_reserve(rig->registry, 1));
    assert_true(mailbox_post(&rig->loop.mailbox, stop_and_open, NULL,
                             (uint64_t)ends[0]));
    loop_run(&rig->loop);
    assert_true(peer_is_cut(&peer));
    assert_int_equal(0, rig->accepted);
    assert_true(registry_reserve(rig->registry, 1)); /* its place is free */
    registry_release(rig->registry);
    peer_free(&peer);
    loop_fini(&rig->loop);
    loop_init(&rig->loop, 0, &rig->env, rig); /* and loops start anew */
    rig_free(rig);
}

TEST(a_loop_waits_when_nothing_is_paused)
{
    struct rig *rig = rig_new();
    struct peer peer = peer_new(rig, false);

    peer_send_text(rig, &peer, "PAUSE 3\r\n");
    peer_expect(rig, &peer, "+PAUSE|3\r\n");
    assert_false(uv_is_active((const uv_handle_t *)&rig->loop.idle));
    peer_send_text(rig, &peer, "PAUSE 1000000\r\n");
    rig_until(rig, fake_of(rig->last)->is_paused);
    assert_true(uv_is_active((const uv_handle_t *)&rig->loop.idle));
    conn_close(rig->last); /* forgotten by the list of those to resume */
    assert_null(rig->loop.resumable);
    rig_settle(rig);
    assert_false(uv_is_active((const uv_handle_t *)&rig->loop.idle));
    peer_free(&peer);
    rig_free(rig);
}
