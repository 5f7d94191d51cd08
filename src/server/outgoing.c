/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loop 0 closes groups, seals them and sends replicas what is released: one
 * millisecond after the first change, or at once if a client waits for an
 * acknowledgement.
 */
#include "server/outgoing.h"

#include "base/clock.h"
#include "journal/journal.h"
#include "journal/journal_tap.h"
#include "persist/place.h"
#include "server/figures.h"
#include "server/kept_role.h"
#include "server/replication_state.h"

enum { FLUSH_MS = 1 };

void
outgoing_open(struct replication *r)
{
    struct journal_tap tap = backlog_tap(r->backlog);
    struct persist *persist = r->server->persist;

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
    persist_set_tap(r->server->persist, NULL);
    backlog_begin(r->backlog, 0);
    r->has_replicas = false;
    memset(r->grace.met, 0, sizeof(r->grace.met));
    r->grace.met_more = false;
    kept_role_update(r);
}

/* Closes the group. Returns up to where replicas may have the log: to its end
 * while all of it came from our primary, which has released it; else to where
 * it is released here. */
static uint64_t
close_group(const struct replication *r)
{
    struct journal *journal = persist_journal(r->server->persist);
    uint64_t position;
    bool released_above;

    gate_enter(replication_gate(r), 0);
    released_above = r->following.released_above &&
                     r->server->service.role.epoch == r->epoch;
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
    const struct server *server = ctx;
    struct replication *r = server->replication;
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

/* Whether a client waits for an acknowledgement. */
static bool
is_urgent(struct replication *r)
{
    bool asked;

    pthread_mutex_lock(&r->shared.mutex);
    asked = r->shared.ask.last > 0;
    pthread_mutex_unlock(&r->shared.mutex);
    return asked || primary_owes_ask(r->primary);
}

void
outgoing_send(struct replication *r)
{
    uint64_t released;

    atomic_store(&r->shared.stirred, false);
    if (r->life != REPLICATION_RUNS || !persist_is_tapped(r->server->persist)) {
        return;
    }
    released = outgoing_seal(r);
    if (primary_stream(r->primary, released, replication_now_ms())) {
        outgoing_stir(r);
    }
    primary_ask_acks(r->primary, take_ask(r));
    replica_disk_moved(r->replica, replication_now_ms());
    figures_settle(r);
}

static void
on_flush(uv_timer_t *timer)
{
    outgoing_send(timer->data);
}

void
outgoing_look(struct replication *r)
{
    if (is_urgent(r)) {
        outgoing_send(r);
    } else if (!uv_is_active((uv_handle_t *)&r->flush)) {
        (void)uv_timer_start(&r->flush, on_flush, FLUSH_MS, 0);
    }
}

void
outgoing_stir(struct replication *r)
{
    if (!atomic_exchange(&r->shared.stirred, true)) {
        (void)uv_async_send(&r->poke);
    }
}
