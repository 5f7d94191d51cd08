/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loops on threads of their own: they serve, they are stopped from elsewhere
 * in any state, and they leave nothing behind. When turns end, and that no
 * wake-up is lost.
 */
#include "net/loop_run.h"

#include "rig.h"

#include <sched.h>

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
    serve_open(loop, (int)fd, true);
}

static struct peer
peer_on(struct threads *threads, struct loop *loop)
{
    int ends[2];

    assert_int_equal(0,
                     socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    assert_true(registry_reserve(threads->rig->registry, PLACE_COMMON, 1000));
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
    assert_true(registry_reserve(rig->registry, PLACE_COMMON, 1));
    assert_true(mailbox_post(&rig->loop.mailbox, stop_and_open, NULL,
                             (uint64_t)ends[0]));
    loop_run(&rig->loop);
    assert_true(peer_is_cut(&peer));
    assert_int_equal(0, rig->accepted);
    assert_true(registry_reserve(rig->registry, PLACE_COMMON,
                                 1)); /* its place is free */
    registry_release(rig->registry, PLACE_COMMON);
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

/* ---- turns --------------------------------------------------------------- */

TEST(a_turn_ends_once_behind_what_was_executed_in_it)
{
    struct rig *rig = rig_new();
    struct peer a = peer_new(rig, false);
    struct peer b = peer_new(rig, false);

    rig_settle(rig);
    assert_int_equal(0, rig->turn_ends); /* nothing was executed */
    peer_send_text(rig, &a, "A\r\nB\r\n");
    peer_send_text(rig, &b, "A\r\n");
    rig_settle(rig);
    assert_true(peer_has(&a, 8) && peer_has(&b, 4));
    assert_int_equal(1, rig->turn_ends);
    peer_free(&a);
    peer_free(&b);
    rig_free(rig);
}

struct order {
    struct rig *rig;
    unsigned executed_at_block; /* not yet told when the loop waits */
};

/* Runs in the phase in which the loop waits, before anything that came. */
static void
see_block(uv_prepare_t *prepare)
{
    struct order *order = prepare->data;

    order->executed_at_block += order->rig->loop.turn_open;
}

/* A loop that waits with work that nobody was told of would wait for long:
 * what is executed before the poll ends its turn before it, too. */
TEST(a_turn_ends_before_the_loop_waits)
{
    struct rig *rig = rig_new();
    struct order order = { .rig = rig };
    struct peer peer;
    uv_prepare_t prepare;

    /* Those that were started last run first: ours shall be behind. */
    assert_int_equal(0, uv_prepare_stop(&rig->loop.prepare));
    assert_int_equal(0, uv_prepare_init(&rig->loop.uv, &prepare));
    prepare.data = &order;
    assert_int_equal(0, uv_prepare_start(&prepare, see_block));
    assert_int_equal(
        0, uv_prepare_start(&rig->loop.prepare, rig->loop.prepare.prepare_cb));
    peer = peer_new(rig, true);
    rig->limits.output[OUTPUT_NORMAL].soft_bytes = 1000;
    peer_send_text(rig, &peer, "PAUSE 3\r\nFILL 100000\r\nB\r\nPAUSE 1\r\n");
    rig_until(rig, peer_has(&peer, 9 + 100000 + 4 + 9));
    rig_settle(rig);
    assert_int_equal(0, order.executed_at_block);
    assert_true(rig->turn_ends >= 4);
    uv_close((uv_handle_t *)&prepare, NULL);
    peer_free(&peer);
    rig_free(rig);
}

/* ---- wake-ups of other threads --------------------------------------------
 */

/* A made-up journal: requests append, a thread releases what was appended and
 * wakes the loops if that was anything. Each peer sends its next requests when
 * it has the replies, so that a lost wake-up is the end of its progress. */
struct fake_journal {
    struct threads *threads;
    _Atomic uint64_t appended;
    atomic_bool stop;
};

static bool
append(struct fake *fake, const struct slice *argv, size_t argc)
{
    struct fake_journal *journal = fake->rig->takes_ctx;
    struct conn *conn = &fake->conn;

    conn->hold_until = atomic_fetch_add(&journal->appended, 1) + 1;
    fake_echo(&conn->loop->reply, argv, argc);
    return true;
}

static void
release_appended(void *arg)
{
    struct fake_journal *journal = arg;
    struct rig *rig = journal->threads->rig;
    uint64_t released = 0;

    while (!atomic_load(&journal->stop)) {
        uint64_t appended = atomic_load(&journal->appended);

        if (appended == released) {
            (void)sched_yield();
            continue;
        }
        released = appended;
        atomic_store(&rig->released, released);
        for (unsigned i = 0; i < LOOPS; i++) {
            loop_wake(&journal->threads->loop[i]);
        }
    }
    metric_thread_exit();
}

TEST(no_wake_up_is_lost)
{
    enum { WAKE_ROUNDS = 1000 };
    struct threads *threads = threads_new();
    struct fake_journal journal = { .threads = threads };
    struct rig *rig = threads->rig;
    struct peer peer[LOOPS + 1];
    uv_thread_t thread;

    rig->released = 0;
    rig->takes = append;
    rig->takes_ctx = &journal;
    for (int i = 0; i <= LOOPS; i++) {
        peer[i] = peer_on(threads, &threads->loop[i % LOOPS]);
    }
    assert_int_equal(0, uv_thread_create(&thread, release_appended, &journal));
    for (unsigned k = 0; k < WAKE_ROUNDS * test_rounds(); k++) {
        for (int i = 0; i <= LOOPS; i++) {
            peer_send_text(rig, &peer[i], "A\r\n");
        }
        if (k % 2 == 0) { /* into what is just being held or released */
            for (int i = 0; i <= LOOPS; i++) {
                peer_send_text(rig, &peer[i], "B\r\n");
            }
        }
        for (int i = 0; i <= LOOPS; i++) {
            const char *text = k % 2 == 0 ? "+A\r\n+B\r\n" : "+A\r\n";

            rig_until(rig, peer_has(&peer[i], strlen(text)));
            assert_true(slice_equal(slice_of(text), buf_slice(&peer[i].got)));
            peer[i].got.len = 0;
        }
    }
    atomic_store(&journal.stop, true);
    assert_int_equal(0, uv_thread_join(&thread));
    for (int i = 0; i <= LOOPS; i++) {
        peer_free(&peer[i]);
    }
    threads_free(threads);
}
