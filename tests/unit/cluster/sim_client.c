/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is promised: a daemon has all items that were acknowledged, but for
 *
 * - what was acknowledged by daemons that could not be reached when another one
 *   took over (they are lost from then on);
 * - in mode available, what the two sides of a partition acknowledge while both
 *   serve.
 *
 * In mode safe no two daemons serve a slot at the same time, ever.
 */
#include "../test.h"
#include "sim.h"

#include <inttypes.h>
#include <string.h>

/* Returns the items of the slot that the daemon can tell others of. What a pull
 * fetched that was broken off is held by nobody. */
static uint64_t
items_told(const struct sim_daemon *d, unsigned slot)
{
    uint64_t items = d->items[slot] & ~d->old[slot];

    return d->up && sidecar_holdings(d->sidecar)->held[sim_slot(slot)] == 0
               ? items & ~d->pulled[slot]
               : items;
}

/* What begins to be served must have all that was acknowledged, but for what
 * only daemons have that cannot be reached. */
void
sim_check_served(int index, unsigned slot)
{
    struct sim_daemon *d = &sim.daemon[index];
    uint64_t absent = sim.truth[slot] & ~sim.lost[slot] & ~d->items[slot];

    if (d->checked[slot]) {
        return;
    }
    d->checked[slot] = true;
    for (int i = 0; absent != 0 && i < SIM_NODES; i++) {
        const struct sim_daemon *other = &sim.daemon[i];
        uint64_t theirs = absent & items_told(other, slot);

        if (i != index && theirs != 0 && sim_is_calm(index, i) &&
            other->leader == SIM_NOBODY) {
            sim_fail("daemon %d serves slot %u without %#" PRIx64
                     " that daemon %d has",
                     index, slot, theirs, i);
        }
    }
    if (absent != 0) {
        sim_tell("daemon %d serves slot %u without %#" PRIx64, index, slot,
                 absent);
    }
    sim.lost[slot] |= absent;
}

/* Returns at which epoch the disk of a daemon says that it holds the slot. If
 * it is fetching the slot again without a journal, its disk said so a moment
 * ago, which others may go by. */
static uint64_t
held_on_disk(const struct sim_daemon *d, unsigned slot)
{
    bool fell = d->up && !d->disk.journals && d->fell_ms[slot] != 0 &&
                sim.now_ms - d->fell_ms[slot] <= SIM_KNOWS_MS &&
                sidecar_holdings(d->sidecar)->held[sim_slot(slot)] >=
                    d->fell_from[slot];

    return fell && d->fell_from[slot] > d->kept.held[slot] ? d->fell_from[slot]
                                                           : d->kept.held[slot];
}

/* Whether the disk of another daemon says that this slot is held later than d
 * holds it. */
static bool
is_held_higher(const struct sim_daemon *d, const struct sim_daemon *other,
               unsigned slot)
{
    const struct holdings *own = sidecar_holdings(d->sidecar);
    uint64_t held = own->held[sim_slot(slot)];
    uint64_t theirs = held_on_disk(other, slot);

    return held == 0 || theirs > held ||
           (theirs == held &&
            d->topology->owner[sim_slot(slot)] != TOPOLOGY_NOBODY &&
            &sim.daemon[sim_node_of(
                d->topology->nodes[d->topology->owner[sim_slot(slot)]].id)] ==
                other);
}

/* A daemon lets a copy go since another one has the data, as it said a moment
 * ago. If the directory of that one is removed in this moment the data is lost,
 * as it would be a moment later. Returns the items that are no such ones. */
static uint64_t
excuse(unsigned slot, uint64_t last)
{
    for (int i = 0; i < SIM_NODES; i++) {
        const struct sim_daemon *d = &sim.daemon[i];

        if (d->emptied_ms != 0 && sim.now_ms - d->emptied_ms <= SIM_KNOWS_MS) {
            sim.lost[slot] |= last & d->emptied[slot];
            last &= ~d->emptied[slot];
        }
    }
    return last;
}

void
sim_check_last(const struct sim_daemon *d, unsigned slot, bool follows)
{
    uint64_t last =
        d->items[slot] & sim.truth[slot] & ~sim.lost[slot] & ~d->old[slot];

    for (int i = 0; i < SIM_NODES; i++) {
        const struct sim_daemon *other = &sim.daemon[i];

        if (other != d && sim_newest()->member[i].known &&
            (!follows || is_held_higher(d, other, slot))) {
            last &= ~other->items[slot];
        }
    }
    last = excuse(slot, last);
    if (last != 0) {
        sim_fail("daemon %d has the last copy of %#" PRIx64
                 " of slot %u, and throws it away",
                 sim_index(d), last, slot);
    }
}

/* Returns the daemon that executes a command on the slot, or SIM_NOBODY. */
static int
find_server(unsigned slot)
{
    int at = (int)sim_below(SIM_NODES);
    bool asking = false;

    for (int hops = 0; hops < 5; hops++) {
        const struct sim_daemon *d = &sim.daemon[at];
        uint16_t node;

        if (!d->up || d->frozen || d->topology == NULL) {
            return SIM_NOBODY;
        }
        switch ((enum slot_state)d->state[slot]) {
        case SLOT_SERVED:
        case SLOT_LEAVING:
        case SLOT_EXPORTED:
            if (sim_serves(at, slot) || (asking && sim_gives(at, slot))) {
                return at;
            }
            break;
        case SLOT_PULLED:
            at = sim_node_of(d->topology->nodes[d->source[slot]].id);
            asking = true;
            continue;
        case SLOT_HELD:
        case SLOT_MISSING:
            return SIM_NOBODY;
        case SLOT_AWAY:
            break;
        }
        node = d->topology->owner[sim_slot(slot)];
        asking = false;
        if (node == TOPOLOGY_NOBODY) {
            return SIM_NOBODY;
        }
        at = sim_node_of(d->topology->nodes[node].id);
    }
    return SIM_NOBODY;
}

bool
sim_answers(unsigned slot)
{
    return find_server(slot) != SIM_NOBODY;
}

/* Whether the node has known all that there is to know for a while. */
static bool
is_informed(int node)
{
    return sim.node[node].deaf_ms == 0 &&
           sim.now_ms > sim.node[node].learns_ms + SIM_CALM_MS;
}

/* No two daemons may serve a slot, but for the two sides of a partition. */
static void
check_alone(int at, unsigned slot)
{
    for (int i = 0; i < SIM_NODES; i++) {
        if (i != at && sim_serves(i, slot) && sim_serves(at, slot) &&
            (sim.safe ||
             (sim_is_calm(at, i) && is_informed(at) && is_informed(i)))) {
            sim_fail("daemons %d and %d serve slot %u", at, i, slot);
        }
    }
}

/* Whether the daemon is on the wrong side of a partition, or was until a moment
 * ago: it serves what its node lost meanwhile for half of a lease more. */
static bool
is_cut_off(int at, unsigned slot)
{
    int owner = sim_newest()->owner[slot];

    if (sim.safe) {
        return false;
    }
    if (owner == SIM_NOBODY) {
        return !is_informed(at);
    }
    return at == owner ? sim.daemon[at].state[slot] == SLOT_LEAVING
                       : !(sim_is_calm(at, owner) && is_informed(at));
}

/* A daemon that has an item that was lost does not have it as acknowledged
 * again. */
static void
note_old(int at, unsigned slot, uint64_t item)
{
    for (int i = 0; i < SIM_NODES; i++) {
        if (i != at) {
            sim.daemon[i].old[slot] |= item & sim.lost[slot];
        }
    }
}

void
sim_run_client(void)
{
    unsigned slot = (unsigned)sim_below(SIM_SLOTS);
    int at = find_server(slot);
    struct sim_daemon *d;
    uint64_t absent;
    bool split;

    if (at == SIM_NOBODY) {
        sim.refused++;
        return;
    }
    d = &sim.daemon[at];
    check_alone(at, slot);
    split = is_cut_off(at, slot);
    sim.split += split;
    sim_check_served(at, slot);
    absent = sim.truth[slot] & ~sim.lost[slot] & ~d->items[slot];
    if (absent != 0 && !split) {
        sim_fail("daemon %d misses items %#" PRIx64 " of slot %u", at, absent,
                 slot);
    }
    if (sim_below(3) == 0) {
        uint64_t item = UINT64_C(1) << sim_below(64);

        sim_put(d, slot, d->items[slot] | item);
        d->unsaved[slot] |= d->disk.journals ? 0 : item;
        note_old(at, slot, item);
        sim.truth[slot] |= item;
        sim.lost[slot] = split ? sim.lost[slot] | item : sim.lost[slot] & ~item;
        sim.writes++;
    }
}
