/* SPDX-License-Identifier: BSD-3-Clause */
#include "info/info_cluster.h"

#include "base/clock.h"
#include "info/info_put.h"

/* The states of slots, with their urgency and their letters in a map. */
static const struct {
    const char *name;
    unsigned char urgency;
    char letter;
} states[SLOT_STATES] = {
    [SLOT_AWAY] = { "away", 0, '-' },
    [SLOT_SERVED] = { "served", 1, 's' },
    [SLOT_EXPORTED] = { "exported", 2, 'e' },
    [SLOT_LEAVING] = { "leaving", 3, 'l' },
    [SLOT_PULLED] = { "pulled", 4, 'p' },
    [SLOT_HELD] = { "held", 5, 'h' },
    [SLOT_MISSING] = { "missing", 6, 'm' },
};

const char *
info_cluster_state_name(enum slot_state state)
{
    return states[state].name;
}

static void
add_view(struct info_cluster *figures, const struct cluster_view *view)
{
    figures->known = true;
    figures->ok = view->topology->ok;
    figures->primary = view->primary;
    figures->current_epoch = view->topology->current_epoch;
    figures->my_epoch = view->topology->my_epoch;
    figures->nodes = view->topology->count;
    figures->assigned = view->assigned;
    figures->owned = view->owned;
    figures->replicas = view->replicas;
    figures->silent = view->silent;
    figures->waiting = view->waiting;
    for (unsigned i = 0; i < SLOT_STATES; i++) {
        figures->slots[i] = view->count[i];
    }
}

bool
info_cluster_get(const struct service *service,
                 struct info_cluster *ret_cluster)
{
    const struct cluster *cluster = service->cluster;
    uint64_t now_ns = clock_boot_ns();
    uint64_t until_ns;

    if (cluster == NULL) {
        return false;
    }
    until_ns = atomic_load(&cluster->lease_until_ns);
    *ret_cluster = (struct info_cluster){
        .neighbour_up = atomic_load(&cluster->neighbour_up),
        .polls = atomic_load(&cluster->polls),
        .views = atomic_load(&cluster->views),
        .lease_ms = atomic_load(&cluster->lease_ms),
        .lease_left_ms = until_ns > now_ns ? (until_ns - now_ns) / 1000000 : 0,
        .leases_lost = atomic_load(&cluster->leases_lost),
        .cutover_ms = atomic_load(&cluster->cutover_ms),
        .transfers = { .state = "" },
    };
    if (atomic_load(&cluster->waits_ms) != 0) {
        ret_cluster->waits_s =
            clock_ms_since(atomic_load(&cluster->waits_ms)) / 1000;
    }
    if (cluster->view != NULL) {
        add_view(ret_cluster, cluster->view);
    }
    if (service->slots.transfers != NULL) {
        service->slots.transfers(service->slots.ctx, &ret_cluster->transfers);
    }
    return true;
}

void
info_cluster_map(const struct cluster_view *view,
                 char ret_map[INFO_CLUSTER_PARTS + 1])
{
    enum { SIZE = CLUSTER_SLOTS / INFO_CLUSTER_PARTS };

    for (unsigned part = 0; part < INFO_CLUSTER_PARTS; part++) {
        const uint8_t *slot = &view->state[(size_t)part * SIZE];
        unsigned served = 0;
        uint8_t worst = SLOT_AWAY;

        for (unsigned i = 0; i < SIZE; i++) {
            served += slot[i] == SLOT_SERVED;
            if (states[slot[i]].urgency > states[worst].urgency) {
                worst = slot[i];
            }
        }
        ret_map[part] = states[worst].letter;
        if (served == SIZE) {
            ret_map[part] = 'S';
        }
    }
    ret_map[INFO_CLUSTER_PARTS] = '\0';
}

void
info_cluster_silent(const struct cluster_view *view, struct buf *out)
{
    enum { NAMES_MAX = 16 };
    unsigned count = 0;

    for (size_t i = 0; i < view->topology->count; i++) {
        const struct view_node *node = &view->nodes[i];

        if (node->silent && count < NAMES_MAX) {
            buf_append_slice(out, slice_of(count > 0 ? "," : ""));
            buf_append_slice(out, slice_of(node->host));
            buf_printf(out, ":%u", node->port[!view->has_plain]);
        }
        count += node->silent;
    }
    if (count > NAMES_MAX) {
        buf_printf(out, ",and %u more", count - NAMES_MAX);
    }
}

/* Writes about the slots that keep this server from following its node's
 * primary: since when, and which server has to take them. */
static void
write_waiting(const struct info_cluster *figures,
              const struct cluster_view *view, struct buf *text)
{
    info_put_number(text, "cluster_slots_epoch_fell", view->fallen);
    info_put_number(text, "cluster_slots_waiting", view->waiting);
    if (view->waiting == 0) {
        return;
    }
    info_put_number(text, "cluster_slots_waiting_seconds", figures->waits_s);
    buf_append_slice(text, slice_lit("cluster_slots_waiting_for:"));
    if (view->waits_for == TOPOLOGY_NOBODY) {
        buf_append_slice(text, slice_lit("nobody"));
    } else {
        const struct view_node *node = &view->nodes[view->waits_for];

        buf_append_slice(text, slice_of(node->host));
        buf_printf(text, ":%u", node->port[!view->has_plain]);
    }
    buf_append_slice(text, slice_lit("\r\n"));
}

static void
write_silent(const struct cluster_view *view, struct buf *text)
{
    info_put_number(text, "cluster_silent_servers", view->silent);
    if (view->silent > 0) {
        buf_append_slice(text, slice_lit("cluster_silent_addresses:"));
        info_cluster_silent(view, text);
        buf_append_slice(text, slice_lit("\r\n"));
    }
}

static void
write_view(const struct info_cluster *figures, struct buf *text)
{
    info_put_text(text, "cluster_state", figures->ok ? "ok" : "fail");
    info_put_text(text, "cluster_role", figures->primary ? "master" : "slave");
    info_put_number(text, "cluster_current_epoch", figures->current_epoch);
    info_put_number(text, "cluster_my_epoch", figures->my_epoch);
    for (unsigned i = 0; i < SLOT_STATES; i++) {
        buf_printf(text, "cluster_slots_%s:%u\r\n", states[i].name,
                   figures->slots[i]);
    }
    info_put_number(text, "cluster_slots_owned", figures->owned);
    info_put_number(text, "cluster_replicas", figures->replicas);
}

void
info_cluster_write(const struct service *service, struct buf *text)
{
    struct info_cluster figures;
    bool sidecar = info_cluster_get(service, &figures);

    info_put_number(text, "cluster_enabled", sidecar);
    if (!sidecar) {
        return;
    }
    info_put_text(text, "cluster_neighbour_link",
                  figures.neighbour_up ? "up" : "down");
    info_put_number(text, "cluster_polls", figures.polls);
    info_put_number(text, "cluster_lease_ms", figures.lease_ms);
    info_put_number(text, "cluster_lease_left_ms", figures.lease_left_ms);
    info_put_number(text, "cluster_leases_lost", figures.leases_lost);
    info_put_number(text, "cluster_last_cutover_ms", figures.cutover_ms);
    info_put_number(text, "cluster_views", figures.views);
    if (figures.known) {
        write_view(&figures, text);
        write_silent(service->cluster->view, text);
        write_waiting(&figures, service->cluster->view, text);
    }
    info_put_number(text, "cluster_transfers", figures.transfers.count);
}
