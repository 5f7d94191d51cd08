/* SPDX-License-Identifier: BSD-3-Clause */
#include "slots/slot_drop.h"

#include "base/log.h"
#include "base/mem.h"
#include "cluster/cluster.h"
#include "engine/loop0.h"
#include "engine/service.h"
#include "keyspace/gate.h"
#include "keyspace/key_hash.h"
#include "repl/status.h"
#include "replay/inject.h"
#include "slots/sweep.h"

enum { PAUSE_MS = 1, PAUSE_FAILED_MS = 200 };

struct slot_drop {
    const struct loop0 *loop0;
    void (*poke)(void *ctx);
    void *ctx;
    uv_timer_t pause;
    struct inject *inject;
    struct slot_set slots;
    struct sweep sweep;
    uint64_t deleted;
};

struct slot_drop *
slot_drop_new(const struct loop0 *loop0, void (*poke)(void *ctx), void *ctx)
{
    struct slot_drop *drop = mem_zalloc(sizeof(*drop));

    drop->loop0 = loop0;
    drop->poke = poke;
    drop->ctx = ctx;
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

/* Begins a sweep of the slots that are left. */
static void
begin_sweep(struct slot_drop *drop)
{
    sweep_fini(&drop->sweep);
    drop->sweep = (struct sweep){ .inject = drop->inject,
                                  .ks = drop->loop0->service->keyspace,
                                  .slots = &drop->slots };
}

void
slot_drop_begin(struct slot_drop *drop, const struct slot_set *slots)
{
    CHECK(key_hash_has_slots());
    if (slot_set_is_empty(&drop->slots)) {
        drop->deleted = 0;
    }
    slot_set_unite(&drop->slots, slots);
    begin_sweep(drop);
    drop->poke(drop->ctx);
}

void
slot_drop_end(struct slot_drop *drop, const struct slot_set *slots)
{
    slot_set_subtract(&drop->slots, slots);
}

void
slot_drop_describe(const struct slot_drop *drop, struct slot_set *ret_slots,
                   uint64_t *ret_deleted)
{
    *ret_slots = drop->slots;
    *ret_deleted = drop->deleted;
}

static void
on_pause_over(uv_timer_t *timer)
{
    struct slot_drop *drop = timer->data;

    if (atomic_load(&drop->loop0->service->ending) == SERVICE_RUNS) {
        slot_drop_look(drop);
    }
}

/* Takes out the slots whose keys this server needs again, now or soon. Inside a
 * section of the gate. */
static void
spare(struct slot_drop *drop)
{
    const struct service *service = drop->loop0->service;
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

/* Deletes a slice. Returns how many ms to pause after it. */
static uint64_t
step(struct slot_drop *drop)
{
    struct gate *gate = keyspace_gate(drop->loop0->service->keyspace);
    char reason[STATUS_TEXT_MAX];
    uint64_t before = drop->sweep.deleted;
    bool good;

    if (!service_takes_logs(drop->loop0->service)) {
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
        drop->inject = inject_new(drop->loop0->worker);
        begin_sweep(drop);
    }
    if (uv_is_active((uv_handle_t *)&drop->pause)) {
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
    (void)uv_timer_start(&drop->pause, on_pause_over, pause_ms, 0);
}

void
slot_drop_start(struct slot_drop *drop, uv_loop_t *uv)
{
    CHECK(uv_timer_init(uv, &drop->pause) == 0);
    drop->pause.data = drop;
}

void
slot_drop_stop(struct slot_drop *drop)
{
    (void)uv_timer_stop(&drop->pause);
}

void
slot_drop_close(struct slot_drop *drop)
{
    uv_close((uv_handle_t *)&drop->pause, NULL);
}
