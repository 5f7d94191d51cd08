/* SPDX-License-Identifier: BSD-3-Clause
 */
#include "cluster/view.h"

#include "base/err.h"
#include "base/mem.h"
#include "cluster/view_text.h"

#include <stdio.h>

enum { PORT_MAX = 65535 };

static const char *
choose_endpoint(const struct view_node *node, enum view_endpoint endpoint)
{
    switch (endpoint) {
    case VIEW_ENDPOINT_IP:
        break;
    case VIEW_ENDPOINT_HOSTNAME:
        return *node->hostname != '\0' ? node->hostname : "?";
    case VIEW_ENDPOINT_UNKNOWN:
        return NULL;
    }
    return node->host;
}

static unsigned
port_or_none(int64_t port)
{
    return port > 0 && port <= PORT_MAX ? (unsigned)port : 0;
}

static void
set_ports(struct view_node *node, int64_t port,
          const struct view_options *options)
{
    node->port[0] = port_or_none(port);
    node->port[1] = port_or_none(port + options->tls_offset);
}

static void
init_node(struct view_node *node, const struct topology_node *about,
          const struct view_options *options)
{
    node->node = about;
    node->failed = (about->flags & NODE_FAIL) != 0;
    node->first_replica = -1;
    node->next_replica = -1;
    node->host = about->host;
    node->hostname = about->hostname;
    node->endpoint = choose_endpoint(node, options->settings.endpoint);
    set_ports(node, (int64_t)about->port + options->port_offset, options);
}

/* Sets the addresses of the nodes that the option sidecar-map names. */
static void
apply_map(struct cluster_view *view, const struct view_options *options)
{
    /* If a node is named twice, the first entry counts. */
    for (size_t i = options->address_count; i-- > 0;) {
        const struct view_address *address = &options->addresses[i];
        int at = topology_find(view->topology, address->id);
        struct view_node *node = &view->nodes[at < 0 ? 0 : at];

        if (at < 0) {
            continue;
        }
        (void)snprintf(node->place, sizeof(node->place), "%.*s",
                       (int)address->host.len, address->host.data);
        node->host = node->place;
        node->hostname = "";
        node->endpoint = node->place;
        set_ports(node, address->port, options);
    }
}

static void
write_redirects(struct view_node *node)
{
    for (int tls = 0; tls < 2; tls++) {
        node->redirect_len[tls] = (uint16_t)snprintf(
            node->redirect[tls], sizeof(node->redirect[tls]), "%s:%u",
            node->endpoint != NULL ? node->endpoint : "", node->port[tls]);
    }
}

/* Links replicas to their primaries. Begins with the last one, so that each
 * list has the order of the nodes. */
static void
link_replicas(struct cluster_view *view)
{
    for (size_t i = view->topology->count; i-- > 0;) {
        struct view_node *node = &view->nodes[i];
        int primary = node->node->primary;

        if (primary >= 0) {
            node->next_replica = view->nodes[primary].first_replica;
            view->nodes[primary].first_replica = (int)i;
        }
    }
}

static void
count_slots(struct cluster_view *view)
{
    const struct topology *topology = view->topology;
    struct slot_set owners = { { 0 } }; /* indices of nodes, not slots */

    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        uint16_t owner = topology->owner[slot];

        CHECK(view->state[slot] < SLOT_STATES);
        view->count[view->state[slot]]++;
        if (owner == TOPOLOGY_NOBODY) {
            continue;
        }
        view->assigned++;
        view->nodes[owner].slots++;
        view->failed += (topology->nodes[owner].flags & NODE_FAIL) != 0;
        view->failing += (topology->nodes[owner].flags & NODE_PFAIL) != 0;
        slot_set_add(&owners, owner);
        view->owned += owner == view->leader;
    }
    view->shards = slot_set_count(&owners);
}

static void
count_replicas(struct cluster_view *view)
{
    int at = view->leader < 0 ? -1 : view->nodes[view->leader].first_replica;

    for (; at >= 0; at = view->nodes[at].next_replica) {
        view->replicas += !view->nodes[at].failed;
    }
}

struct cluster_view *
view_new(struct topology *topology, const struct view_options *options,
         const uint8_t *states, const uint16_t *sources)
{
    struct cluster_view *view = mem_try_zalloc(sizeof(*view));
    const struct topology_node *myself = &topology->nodes[topology->myself];

    if (view == NULL) {
        return NULL;
    }
    view->nodes = mem_try_zalloc(topology->count * sizeof(*view->nodes));
    if (view->nodes == NULL) {
        mem_free(view);
        return NULL;
    }
    view->topology = topology;
    memcpy(view->state, states, sizeof(view->state));
    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        view->source[slot] = sources != NULL ? sources[slot] : TOPOLOGY_NOBODY;
        CHECK(view->state[slot] != SLOT_PULLED ||
              view->source[slot] < topology->count);
    }
    view->primary = (myself->flags & NODE_PRIMARY) != 0;
    view->leader = view->primary ? topology->myself : myself->primary;
    view->settings = options->settings;
    view->has_plain = !options->tls_only;
    view->has_both = options->tls_offset != 0;
    view->has_tls = options->tls_only || view->has_both;
    for (size_t i = 0; i < topology->count; i++) {
        init_node(&view->nodes[i], &topology->nodes[i], options);
    }
    apply_map(view, options);
    for (size_t i = 0; i < topology->count; i++) {
        write_redirects(&view->nodes[i]);
    }
    link_replicas(view);
    count_slots(view);
    count_replicas(view);
    if (!view_text_write(view)) {
        view->topology = NULL;
        view_free(view);
        return NULL;
    }
    return view;
}

void
view_free(struct cluster_view *view)
{
    if (view == NULL) {
        return;
    }
    for (int which = 0; which < VIEW_REPLIES; which++) {
        for (int i = 0; i < 4; i++) {
            buf_free(&view->reply[which][i / 2][i % 2].text);
        }
    }
    topology_free(view->topology);
    mem_free(view->nodes);
    mem_free(view);
}

void
view_set_waiting(struct cluster_view *view, unsigned slots, uint16_t owner)
{
    view->waiting = slots;
    view->waits_for = owner;
}

void
view_set_fallen(struct cluster_view *view, unsigned slots)
{
    view->fallen = slots;
}

void
view_set_silent(struct cluster_view *view, const bool *silent)
{
    view->silent = 0;
    for (size_t i = 0; i < view->topology->count; i++) {
        view->nodes[i].silent = silent[i];
        view->silent += silent[i];
    }
}

/* ---- the map ------------------------------------------------------------- */

static bool
is_address_id(struct slice id)
{
    for (size_t i = 0; i < id.len; i++) {
        char c = id.data[i];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
    }
    return id.len == TOPOLOGY_ID_LEN;
}

static bool
is_address_host(struct slice host)
{
    for (size_t i = 0; i < host.len; i++) {
        char c = host.data[i];

        if ((unsigned char)c <= ' ' || c == 0x7f || strchr("[]@,", c) != NULL) {
            return false;
        }
    }
    return host.len > 0 && host.len < TOPOLOGY_HOST_MAX;
}

bool
view_parse_address(struct slice word, struct view_address *ret_address)
{
    const char *equals = word.len > 0 ? memchr(word.data, '=', word.len) : NULL;
    struct view_address address;
    const char *colon;
    const char *from;
    size_t left;
    uint64_t port;

    if (equals == NULL) {
        return false;
    }
    address.id = (struct slice){ word.data, (size_t)(equals - word.data) };
    from = equals + 1;
    left = word.len - address.id.len - 1;
    colon = left > 0 ? memrchr(from, ':', left) : NULL;
    if (colon == NULL) {
        return false;
    }
    address.host = (struct slice){ from, (size_t)(colon - from) };
    if (!slice_to_u64((struct slice){ colon + 1, left - address.host.len - 1 },
                      &port) ||
        port == 0 || port > PORT_MAX) {
        return false;
    }
    if (address.host.len > 2 && from[0] == '[' && colon[-1] == ']') {
        address.host = (struct slice){ from + 1, address.host.len - 2 };
    }
    address.port = (unsigned)port;
    if (!is_address_id(address.id) || !is_address_host(address.host)) {
        return false;
    }
    *ret_address = address;
    return true;
}
