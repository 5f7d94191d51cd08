/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Space for the effects of several names is reserved before the stripe is
 * locked; a slice of removals is one piece of the journal. A name that does not
 * fit ends the slice, and the next slice reserves enough for it.
 */
#include "engine/expiry.h"

#include "base/run_clock.h"
#include "engine/effect.h"
#include "engine/observe.h"
#include "engine/pause.h"
#include "keyspace/gate.h"
#include "keyspace/reclaim.h"

enum { ROOM_BYTES = 16 * 1024 };

/* The grace ends by the clock, so no raised gate is needed to see its end. */
static bool
in_grace(const struct service *service)
{
    uint64_t until_ms =
        atomic_load_explicit(&service->grace_until_ms, memory_order_relaxed);

    return __builtin_expect(until_ms > 0, 0) && run_clock_ms() < until_ms;
}

bool
expiry_may_remove(const struct service *service)
{
    return !service->role.replica && !in_grace(service) &&
           !pause_waits(service, CMD_WRITE);
}

bool
expiry_reclaim(struct worker *worker, uint64_t now_ms, uint64_t budget_us)
{
    struct service *service = worker->service;
    struct keyspace *ks = service->keyspace;
    bool more;

    gate_enter(keyspace_gate(ks), worker->index);
    pause_forget(service);
    keyspace_keep_expired(ks, !expiry_may_remove(service) ||
                                  atomic_load(&service->keeps_expired));
    more = keyspace_reclaim(ks, worker->index, now_ms, budget_us);
    gate_leave(keyspace_gate(ks), worker->index);
    observe_wake(worker);
    effect_kick(worker);
    return more;
}

/* ---- one slice ----------------------------------------------------------- */

bool
expiry_begin(struct worker *worker)
{
    size_t bytes = ROOM_BYTES;

    if (bytes < worker->expiry_wants) {
        bytes = worker->expiry_wants;
    }
    if (effect_open(worker, bytes) != OK) {
        return false;
    }
    worker->hold = 0;
    worker->expiry_room = bytes;
    worker->expiry_wants = 0;
    return true;
}

bool
expiry_remove(struct worker *worker, const struct key *key)
{
    size_t bytes = effect_delete_bytes(key->name);

    CHECK(worker->session == NULL); /* between batches */
    if (bytes > worker->expiry_room) {
        worker->expiry_wants = bytes;
        return false;
    }
    worker->expiry_room -= bytes;
    effect_delete(worker, key);
    observe_expired(worker, key);
    return true;
}

void
expiry_end(struct worker *worker, unsigned stripe)
{
    effect_close_stripe(worker, stripe);
    observe_close(worker);
}
