/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/slot_drop.h"

#include "base/log.h"
#include "base/mem.h"
#include "cluster/cluster.h"
#include "keyspace/key_hash.h"
#include "replay/inject.h"
#include "roles/following.h"
#include "roles/replication_state.h"
#include "server/server_state.h"
#include "server/sweep.h"

enum { PAUSE_MS = 1, PAUSE_FAILED_MS = 200 };

struct slot_drop {
    struct replication *r;
    struct inject *inject;
    struct slot_set slots;
    struct sweep sweep;
    uint64_t deleted;
};

struct slot_drop *
slot_drop_new(struct replication *r)
{
    struct slot_drop *drop = mem_zalloc(sizeof(*drop));

    drop->r = r;
    return drop;
}

void
slot_drop_free(struct slot_drop *drop)
{
    if (drop != NULL) {
        sweep_fini(&drop->sweep);
        inject_free(drop->inject);
        mem_free(drop);
    }
}

/* Begins with the first key of the slots that are left. */
static void
begin_sweep(struct slot_drop *drop)
{
    sweep_fini(&drop->sweep);
    drop->sweep = (struct sweep){ .inject = drop->inject,
                                  .ks = drop->r->server->service.keyspace,
                                  .slots = &drop->slots };
}

void
slot_drop_begin(struct server *server, const struct slot_set *slots)
{
    struct slot_drop *drop = server->replication->drop;

    CHECK(key_hash_has_slots());
    if (slot_set_is_empty(&drop->slots)) {
        drop->deleted = 0;
    }
    slot_set_unite(&drop->slots, slots);
    begin_sweep(drop);
    (void)uv_async_send(&drop->r->poke);
}

void
slot_drop_end(struct server *server, const struct slot_set *slots)
{
    struct slot_drop *drop = server->replication->drop;

    slot_set_subtract(&drop->slots, slots);
}

void
slot_drop_describe(const struct server *server, struct slot_set *ret_slots,
                   uint64_t *ret_deleted)
{
    const struct slot_drop *drop = server->replication->drop;

    *ret_slots = drop->slots;
    *ret_deleted = drop->deleted;
}

static void
on_pause_over(uv_timer_t *timer)
{
    struct slot_drop *drop = timer->data;

    if (drop->r->server->stop.stage == STOP_NONE) {
        slot_drop_look(drop);
    }
}

/* Takes out the slots whose keys are, or will be, this server's again. Inside
 * the gate. */
static void
spare(struct slot_drop *drop)
{
    const struct service *service = &drop->r->server->service;
    const struct cluster *cluster = service->cluster;
    const struct topology *topology;

    if (service->role.replica) {
        drop->slots = (struct slot_set){ { 0 } };
    }
    if (cluster == NULL || cluster->view == NULL) {
        return;
    }
    topology = cluster->view->topology;
    slot_set_foreach (&drop->slots, slot) {
        if (topology->owner[slot] == topology->myself) {
            slot_set_remove(&drop->slots, slot);
        }
    }
}

/* Deletes a slice. Returns how long to pause then. */
static uint64_t
step(struct slot_drop *drop)
{
    struct gate *gate = replication_gate(drop->r);
    char reason[STATUS_TEXT_MAX];
    uint64_t before = drop->sweep.deleted;
    bool good;

    if (!following_has_room(drop->r)) {
        return PAUSE_MS;
    }
    gate_enter(gate, 0);
    spare(drop);
    good = sweep_step(&drop->sweep, reason, sizeof(reason));
    gate_leave(gate, 0);
    inject_wake(drop->inject);
    drop->deleted += drop->sweep.deleted - before;
    if (!good) {
        log_repeated(LOG_WARN, "server.slots", "could not delete keys of slots",
                     "reason=\"%s\"", reason);
        begin_sweep(drop);
    }
    return good ? PAUSE_MS : PAUSE_FAILED_MS;
}

void
slot_drop_look(struct slot_drop *drop)
{
    uint64_t pause_ms;

    if (slot_set_is_empty(&drop->slots)) {
        return;
    }
    if (drop->inject == NULL) {
        drop->inject = inject_new(drop->r->server->workers[0]);
        begin_sweep(drop);
    }
    if (uv_is_active((uv_handle_t *)&drop->r->drop_pause)) {
        return;
    }
    pause_ms = step(drop);
    if (drop->sweep.done) {
        log_notice("server.slots", "deleted the keys of slots",
                   "slots=%u keys=%llu", slot_set_count(&drop->slots),
                   (unsigned long long)drop->deleted);
        drop->slots = (struct slot_set){ { 0 } };
        sweep_fini(&drop->sweep);
        return;
    }
    (void)uv_timer_start(&drop->r->drop_pause, on_pause_over, pause_ms, 0);
}
