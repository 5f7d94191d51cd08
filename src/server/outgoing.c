/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The log's way to the replicas: loop 0 closes groups, seals them and gives
 * replicas what is released, a millisecond after the first change, or at once
 * if somebody waits for an acknowledgement.
 */
#include "base/clock.h"
#include "keyspace/gate.h"
#include "persist/journal.h"
#include "persist/journal_tap.h"
#include "persist/place.h"
#include "server/replication_internal.h"

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
        atomic_store(&r->streams, true);
    }
}

void
outgoing_close(struct replication *r)
{
    atomic_store(&r->streams, false);
    persist_set_tap(r->server->persist, NULL);
    backlog_begin(r->backlog, 0);
    r->has_replicas = false;
    memset(r->grace.met, 0, sizeof(r->grace.met));
    r->grace.met_more = false;
    replication_keep_role(r);
}

/* Closes the group, and says how far replicas may be given the log: what our
 * primary sent us it has released; what was written here since we lead is to be
 * released first. */
static uint64_t
close_group(const struct replication *r)
{
    struct journal *journal = persist_journal(r->server->persist);
    uint64_t position;
    bool even;

    gate_enter(replication_gate(r), 0);
    even = r->even && r->server->service.role.epoch == r->epoch;
    position = journal_close_group(journal);
    gate_leave(replication_gate(r), 0);
    return even ? position : atomic_load(journal_released(journal));
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
outgoing_ask(struct replication *r, uint64_t position)
{
    struct primary_ask ask = { position, position };

    pthread_mutex_lock(&r->mutex);
    primary_ask_add(&r->ask, ask);
    pthread_mutex_unlock(&r->mutex);
    (void)uv_async_send(&r->poke);
}

static struct primary_ask
take_ask(struct replication *r)
{
    struct primary_ask ask;

    pthread_mutex_lock(&r->mutex);
    ask = r->ask;
    r->ask = (struct primary_ask){ 0 };
    pthread_mutex_unlock(&r->mutex);
    return ask;
}

/* Somebody waits for an acknowledgement: what was released goes out at once. */
static bool
is_urgent(struct replication *r)
{
    bool asked;

    pthread_mutex_lock(&r->mutex);
    asked = r->ask.last > 0;
    pthread_mutex_unlock(&r->mutex);
    return asked || primary_owes_ask(r->primary);
}

void
outgoing_send(struct replication *r)
{
    uint64_t released;

    atomic_store(&r->stirred, false);
    if (!r->begun || r->stopped || !persist_is_tapped(r->server->persist)) {
        return;
    }
    released = outgoing_seal(r);
    if (primary_stream(r->primary, released, replication_now_ms())) {
        outgoing_stir(r);
    }
    primary_ask_acks(r->primary, take_ask(r));
    replica_disk_moved(r->replica, replication_now_ms());
    replication_settle(r);
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
    if (!atomic_exchange(&r->stirred, true)) {
        (void)uv_async_send(&r->poke);
    }
}
