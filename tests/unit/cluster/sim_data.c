/* SPDX-License-Identifier: BSD-3-Clause */
#include "../test.h"
#include "cluster/candidates.h"
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void
sim_put(struct sim_daemon *d, unsigned slot, uint64_t items)
{
    struct sim_change *change = &d->log[d->length];
    uint64_t before = d->length > 0 ? change[-1].hash : 1;

    assert_true(d->length < SIM_LOG_MAX);
    *change = (struct sim_change){
        .slot = (uint8_t)slot,
        .items = items,
        .hash = (before ^ (items + slot)) * UINT64_C(0x9E3779B97F4A7C15) + 1
    };
    d->length++;
    d->items[slot] = items;
}

static bool
is_prefix(const struct sim_daemon *of, const struct sim_daemon *d)
{
    return d->length <= of->length &&
           (d->length == 0 ||
            of->log[d->length - 1].hash == d->log[d->length - 1].hash);
}

static void
synchronize(struct sim_daemon *d, const struct sim_daemon *leader)
{
    if (d->sync_ms == 0) {
        d->sync_ms =
            sim.now_ms + 20 + sim_below(sim_below(8) == 0 ? 3000 : 200);
    } else if (sim.now_ms >= d->sync_ms) {
        char history[HISTORY_ID_CHARS + 1];

        (void)snprintf(history, sizeof(history), "%040" PRIu64,
                       leader->history);
        if (!sidecar_may_copy(d->sidecar, history, sim.now_ms)) {
            d->sync_ms = sim.now_ms + 50 + sim_below(100);
            return;
        }
        sim_disk_replaced(d);
        memcpy(d->log, leader->log, leader->length * sizeof(*d->log));
        d->length = leader->length;
        memcpy(d->items, leader->items, sizeof(d->items));
        d->history = leader->history;
        d->sync_ms = 0;
        sim_tell("daemon %d has a copy of %d", sim_index(d), d->leader);
    }
}

/* One millisecond of a replica. */
void
sim_replicate(int index)
{
    struct sim_daemon *d = &sim.daemon[index];
    const struct sim_daemon *leader;
    size_t step;

    if (d->leader == SIM_NOBODY) {
        return;
    }
    d->linked = false;
    if (!sim_reaches(index, d->leader) ||
        sim.daemon[d->leader].leader == index) { /* a ring */
        d->sync_ms = 0;
        d->told = 0;
        return;
    }
    leader = &sim.daemon[d->leader];
    if (!is_prefix(leader, d)) {
        d->told = 0;
        synchronize(d, leader);
        return;
    }
    d->linked = true;
    d->history = leader->history;
    step = sim_below(4) == 0 ? 0 : 1 + sim_below(20);
    while (step-- > 0 && d->length < leader->length) {
        const struct sim_change *change = &leader->log[d->length];

        sim_put(d, change->slot, change->items);
    }
    if (d->length >= leader->tells_at) {
        sim_hear(d, leader);
    }
}

void
sim_run_pull(struct sim_daemon *d)
{
    struct sim_pull *pull = &d->pull;
    const struct sim_daemon *source = &sim.daemon[pull->source];

    if (!pull->runs) {
        return;
    }
    if (!sim_reaches(sim_index(d), pull->source)) {
        pull->broken_ms++;
        if (pull->broken_ms == 1) {
            pull->ready_ms = sim.now_ms + 20 + sim_below(400);
            sidecar_pull_broke(d->sidecar, sim.now_ms);
            sim_phases_look(d);
        } else if (pull->broken_ms > 300) {
            pull->runs = false;
            sidecar_pull_ended(d->sidecar, false, "the link is cut",
                               sim.now_ms);
            sim_phases_look(d);
        }
        return;
    }
    pull->broken_ms = 0;
    if (sim.now_ms < pull->ready_ms || sim_below(3) == 0) {
        return;
    }
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        if ((pull->slots >> slot & 1) != 0 &&
            d->items[slot] != source->items[slot]) {
            d->pulled[slot] |= source->items[slot] & ~d->items[slot];
            sim_put(d, slot, source->items[slot]);
        }
    }
    if (pull->until && source->length >= pull->position) {
        pull->runs = false;
        sidecar_pull_ended(d->sidecar, true, "", sim.now_ms);
        sim_phases_look(d);
    } else if (!pull->near) {
        pull->near = true;
        sidecar_pull_is_near(d->sidecar, sim.now_ms);
        sim_phases_look(d);
    }
}

struct candidate *
sim_candidates(int index, unsigned slot)
{
    struct candidate *all = NULL;
    struct slot_set set = { { 0 } };

    slot_set_add(&set, sim_slot(slot));
    for (int i = 0; i < SIM_NODES; i++) {
        const struct sim_daemon *d = &sim.daemon[i];
        struct candidate *candidate;
        char id[TOPOLOGY_ID_LEN + 1];
        char counts[32] = "";

        if (i != index &&
            (!sim_reaches(index, i) || (sim.plain >> i & 1) != 0)) {
            continue;
        }
        if (d->items[slot] != 0) {
            (void)snprintf(counts, sizeof(counts), "%u 1 %d\n", sim_slot(slot),
                           __builtin_popcountll(d->items[slot]));
        }
        sim_id_of(i, id);
        candidate = candidate_new(id, &set, sidecar_holdings(d->sidecar),
                                  slice_of(counts));
        assert_non_null(candidate);
        candidate->next = all;
        all = candidate;
    }
    return all;
}
