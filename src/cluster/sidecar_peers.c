/* SPDX-License-Identifier: BSD-3-Clause
 *
 * There are never more peers than indices. The owners of slots are in the
 * topology, and the holders (`fresh`, `found`) have answered one of two
 * surveys. Only `source`, `comer` and `forced_from` may be of a single slot.
 */
#include "cluster/sidecar_peers.h"

#include "base/err.h"
#include "base/mem.h"

#include <stdio.h>

void
sidecar_peers_init(struct sidecar *sidecar)
{
    sidecar->peer_free = PEER_NONE;
}

void
sidecar_peers_fini(struct sidecar *sidecar)
{
    map_free(&sidecar->peers_by_id);
    mem_free(sidecar->peers);
}

static void
index_peer(struct sidecar *sidecar, struct sidecar_peer *peer)
{
    /* The entry in the map is small; mem_alloc would abort for lack of memory,
     * too. */
    CHECK(map_put(&sidecar->peers_by_id, slice_of(peer->id), peer));
}

/* Makes room for more peers. The existing ones move in memory. */
static void
grow_peers(struct sidecar *sidecar)
{
    size_t room = sidecar->peer_room * 2 + 16;
    struct sidecar_peer *more = mem_zalloc(room * sizeof(*more));

    if (sidecar->peer_count > 0) {
        memcpy(more, sidecar->peers, sidecar->peer_count * sizeof(*more));
    }
    mem_free(sidecar->peers);
    sidecar->peers = more;
    sidecar->peer_room = room;
    for (size_t at = 0; at < sidecar->peer_count; at++) {
        if (more[at].id[0] != '\0') {
            index_peer(sidecar, &more[at]);
        }
    }
}

static uint16_t
take_index(struct sidecar *sidecar)
{
    uint16_t at = sidecar->peer_free;

    if (at != PEER_NONE) {
        sidecar->peer_free = sidecar->peers[at].next_free;
        return at;
    }
    CHECK(sidecar->peer_count < PEER_NONE);
    if (sidecar->peer_count == sidecar->peer_room) {
        grow_peers(sidecar);
    }
    return (uint16_t)sidecar->peer_count++;
}

uint16_t
sidecar_peer_of(struct sidecar *sidecar, const char *id)
{
    struct sidecar_peer *peer = map_find(&sidecar->peers_by_id, slice_of(id));
    uint16_t at;

    if (peer != NULL) {
        return (uint16_t)(peer - sidecar->peers);
    }
    at = take_index(sidecar);
    peer = &sidecar->peers[at];
    *peer = (struct sidecar_peer){ .next_free = PEER_NONE };
    (void)snprintf(peer->id, sizeof(peer->id), "%s", id);
    index_peer(sidecar, peer);
    sidecar->peer_used++;
    return at;
}

/* ---- forgetting ---------------------------------------------------------- */

static void
mark(const struct sidecar *sidecar, bool *named, uint16_t at)
{
    if (at != PEER_NONE) {
        CHECK(at < sidecar->peer_count);
        named[at] = true;
    }
}

static void
mark_holder(const struct sidecar *sidecar, bool *named,
            const struct sidecar_holder *holder)
{
    if (holder->epoch != 0) {
        mark(sidecar, named, holder->peer);
    }
}

static void
mark_slots(const struct sidecar *sidecar, bool *named)
{
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        mark(sidecar, named, sidecar->slots[slot].owner_before);
        mark(sidecar, named, sidecar->slots[slot].source);
        mark(sidecar, named, sidecar->slots[slot].comer);
        mark(sidecar, named, sidecar_forced_from(sidecar, slot));
        mark_holder(sidecar, named, &sidecar->survey.fresh[slot]);
        mark_holder(sidecar, named, &sidecar->survey.found[slot]);
    }
}

static void
forget_peer(struct sidecar *sidecar, uint16_t at)
{
    struct sidecar_peer *peer = &sidecar->peers[at];

    (void)map_remove(&sidecar->peers_by_id, slice_of(peer->id));
    *peer = (struct sidecar_peer){ .next_free = sidecar->peer_free };
    sidecar->peer_free = at;
    sidecar->peer_used--;
}

void
sidecar_peers_forget(struct sidecar *sidecar)
{
    const struct topology *topology = sidecar->topology;
    bool *named;

    if (sidecar->peer_used <= topology->count) {
        return;
    }
    named = mem_zalloc(sidecar->peer_count * sizeof(*named));
    for (size_t i = 0; i < topology->count; i++) {
        mark(sidecar, named, sidecar_peer_of(sidecar, topology->nodes[i].id));
    }
    mark_slots(sidecar, named);
    for (size_t at = 0; at < sidecar->peer_count; at++) {
        const struct sidecar_peer *peer = &sidecar->peers[at];

        if (peer->id[0] != '\0' && !named[at] && peer->number == 0) {
            forget_peer(sidecar, (uint16_t)at);
        }
    }
    mem_free(named);
}
