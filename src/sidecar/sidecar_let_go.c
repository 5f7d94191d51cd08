/* SPDX-License-Identifier: BSD-3-Clause */
#include "sidecar/sidecar_let_go.h"

#include "base/log.h"
#include "cluster/fence_order.h"
#include "core/parts.h"
#include "keyspace/gate.h"
#include "keyspace/keyspace.h"
#include "keyspace/slot_keys.h"
#include "persist/persist.h"
#include "persist/save.h"
#include "sidecar/sidecar_mode_state.h"

#include <inttypes.h>
#include <stdio.h>

struct count {
    struct keyspace *ks;
    struct fence_order *order;
};

static void
note_key(void *ctx, const struct key *key, uint64_t expires_at_ms)
{
    const struct count *count = ctx;
    const struct entry *entry = keyspace_find(count->ks, key, 0);

    (void)expires_at_ms;
    if (entry != NULL) {
        count->order->filters++;
        count->order->items += bloom_items(&entry->bloom);
    }
}

static void
count_keys(const struct sidecar_mode *mode, struct fence_order *order)
{
    struct count count = { mode->loop0->service->keyspace, order };
    uint64_t cursor = 0;

    do {
        cursor =
            slot_keys_scan(count.ks, 0, &order->set, cursor, note_key, &count);
    } while (cursor != 0);
}

/* Returns 0 or errno. */
static int
save(struct sidecar_mode *mode, struct fence_order *order)
{
    struct persist *persist = mode->loop0->service->persist;
    struct gate *gate = keyspace_gate(mode->loop0->service->keyspace);
    char name[64];
    int error;

    (void)snprintf(name, sizeof(name), "let-go-%" PRIu64 ".snapshot",
                   clock_wall_ms());
    (void)snprintf(order->file, sizeof(order->file), "%s/%s",
                   persist_dir(persist), name);
    gate_raise(gate, 0);
    count_keys(mode, order);
    error = save_slots_here(persist, &order->set, name);
    gate_lower(gate, 0);
    return error;
}

static void
explain(struct fence_order *order, int error)
{
    if (error == EBUSY) {
        (void)snprintf(order->reason, sizeof(order->reason),
                       "a save or a rewrite of the journal is under way: say "
                       "it again when that has ended");
    } else {
        (void)snprintf(order->reason, sizeof(order->reason),
                       "the filters could not be saved in dir (%s), so the "
                       "slots stay",
                       strerror(error));
    }
}

void
sidecar_let_go_order(struct sidecar_mode *mode, struct fence_order *order)
{
    struct slot_set exported;
    int error;

    order->answer = (struct sidecar_answer){ .kind = SIDECAR_REFUSED,
                                             .reason = order->reason };
    if (!sidecar_let_go(mode->sidecar, &order->set, &exported, order->reason,
                        sizeof(order->reason))) {
        return;
    }
    error = save(mode, order);
    sidecar_let_go_end(mode->sidecar, &order->set, &exported, error == 0,
                       sidecar_mode_now_ms());
    if (error != 0) {
        explain(order, error);
        return;
    }
    order->answer.kind = SIDECAR_GONE;
    log_warn("server.sidecar", "saved the filters of slots that were let go",
             "file=\"%s\" slots=%u filters=%" PRIu64 " items=%" PRIu64,
             order->file, slot_set_count(&order->set), order->filters,
             order->items);
}
