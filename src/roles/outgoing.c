/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loop 0 closes groups, seals them, and sends replicas the released part of the
 * log. A group costs as much CPU time as some commands. So changes in quick
 * succession, as a busy client makes them, are gathered for half a millisecond.
 * After a pause, or if a client waits for an acknowledgement, a change is sent
 * at once: a client that writes here and then reads from a replica finds the
 * change there. The timer is one of the kernel, since libuv's timers count
 * milliseconds.
 */
#include "roles/outgoing.h"

#include "base/clock.h"
#include "journal/journal.h"
#include "journal/journal_tap.h"
#include "persist/place.h"
#include "roles/figures.h"
#include "roles/kept_role.h"
#include "roles/replication_state.h"

#include <sys/timerfd.h>
#include <unistd.h>

enum {
    PAUSE_NS = 80 * 1000, /* a client on this machine writes again sooner */
    GATHER_NS = 500 * 1000,
};

void
outgoing_open(struct replication *r)
{
    struct journal_tap tap = backlog_tap(r->backlog);
    struct persist *persist = r->loop0->service->persist;

    if (!persist_is_tapped(persist)) {
        persist_set_tap(persist, &tap);
        gate_enter(replication_gate(r), 0);
        primary_set_history(r->primary, persist_history(persist), r->key);
        gate_leave(replication_gate(r), 0);
        atomic_store(&r->shared.streams, true);
    }
}

void
outgoing_close(struct replication *r)
{
    atomic_store(&r->shared.streams, false);
    persist_set_tap(r->loop0->service->persist, NULL);
    backlog_begin(r->backlog, 0);
    r->has_replicas = false;
    memset(r->grace.met, 0, sizeof(r->grace.met));
    r->grace.met_more = false;
    kept_role_update(r);
}

/* Closes the group. Returns the position up to which replicas may have the log.
 * If all of our log came from our primary, which has released it, that is the
 * end of the group. Otherwise it is the position that is released here. */
static uint64_t
close_group(const struct replication *r)
{
    struct journal *journal = persist_journal(r->loop0->service->persist);
    uint64_t position;
    bool released_above;

    gate_enter(replication_gate(r), 0);
    released_above = r->following.released_above &&
                     r->loop0->service->role.epoch == r->epoch;
    position = journal_close_group(journal);
    gate_leave(replication_gate(r), 0);
    return released_above ? position : atomic_load(journal_released(journal));
}

uint64_t
outgoing_seal(struct replication *r)
{
    uint64_t released = close_group(r);

    (void)backlog_seal(r->backlog, r->key, clock_wall_ms());
    return released;
}

/* ---- asking for acknowledgements ----------------------------------------- */

void
outgoing_ask(void *ctx, uint64_t position)
{
    struct replication *r = ctx;
    struct primary_ask ask = { position, position };

    pthread_mutex_lock(&r->shared.mutex);
    primary_ask_add(&r->shared.ask, ask);
    pthread_mutex_unlock(&r->shared.mutex);
    (void)uv_async_send(&r->poke);
}

static struct primary_ask
take_ask(struct replication *r)
{
    struct primary_ask ask;

    pthread_mutex_lock(&r->shared.mutex);
    ask = r->shared.ask;
    r->shared.ask = (struct primary_ask){ 0 };
    pthread_mutex_unlock(&r->shared.mutex);
    return ask;
}

/* Returns whether a client waits for an acknowledgement. */
static bool
is_urgent(struct replication *r)
{
    bool asked;

    pthread_mutex_lock(&r->shared.mutex);
    asked = r->shared.ask.last > 0;
    pthread_mutex_unlock(&r->shared.mutex);
    return asked || primary_owes_ask(r->primary);
}

/* Returns the position up to which replicas may have the log now. */
static uint64_t
reach(const struct replication *r)
{
    const struct journal *journal = persist_journal(r->loop0->service->persist);
    uint64_t position = journal_position(journal);
    uint64_t released = atomic_load(journal_released(journal));

    return r->following.released_above || released > position ? position
                                                              : released;
}

void
outgoing_send(struct replication *r)
{
    uint64_t released;

    atomic_store(&r->shared.poked, false);
    if (r->life != REPLICATION_RUNS ||
        !persist_is_tapped(r->loop0->service->persist)) {
        return;
    }
    released = outgoing_seal(r);
    if (reach(r) != r->flush.streamed) {
        r->flush.streamed = reach(r);
        r->flush.sent_ns = clock_mono_ns();
    }
    r->flush.more = primary_stream(r->primary, released, replication_now_ms());
    if (r->flush.more) {
        outgoing_poke(r);
    }
    primary_ask_acks(r->primary, take_ask(r));
    replica_disk_moved(r->replica, replication_now_ms());
    figures_settle(r);
}

/* ---- the gap between groups ---------------------------------------------- */

static void
on_gap_over(uv_poll_t *poll, int status, int events)
{
    struct replication *r = poll->data;
    uint64_t times;

    (void)status;
    (void)events;
    (void)!read(r->flush.fd, &times, sizeof(times));
    r->flush.armed = false;
    outgoing_send(r);
}

void
outgoing_start(struct replication *r, uv_loop_t *uv)
{
    r->flush.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    CHECK(r->flush.fd >= 0);
    CHECK(uv_poll_init(uv, &r->flush.poll, r->flush.fd) == 0);
    r->flush.poll.data = r;
    CHECK(uv_poll_start(&r->flush.poll, UV_READABLE, on_gap_over) == 0);
}

static void
on_stopped(uv_handle_t *handle)
{
    struct replication *r = handle->data;

    (void)close(r->flush.fd);
}

void
outgoing_stop(struct replication *r)
{
    uv_close((uv_handle_t *)&r->flush.poll, on_stopped);
}

static void
arm(struct replication *r, uint64_t after_ns)
{
    const struct itimerspec due = { .it_value = { .tv_nsec = (long)after_ns } };

    r->flush.armed = true;
    CHECK(timerfd_settime(r->flush.fd, 0, &due, NULL) == 0);
}

void
outgoing_look(struct replication *r)
{
    uint64_t since_ns;

    if (r->flush.more || is_urgent(r)) {
        outgoing_send(r);
        return;
    }
    if (r->flush.armed) {
        return;
    }
    atomic_store(&r->shared.poked, false);
    if (reach(r) == r->flush.streamed) {
        return; /* replication_moved wakes us when more is released */
    }
    since_ns = clock_mono_ns() - r->flush.sent_ns;
    if (since_ns >= PAUSE_NS) {
        outgoing_send(r);
    } else {
        arm(r, GATHER_NS - since_ns);
    }
}

void
outgoing_poke(struct replication *r)
{
    if (!atomic_exchange(&r->shared.poked, true)) {
        (void)uv_async_send(&r->poke);
    }
}
