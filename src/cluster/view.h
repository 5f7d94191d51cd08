/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What commands see of the cluster: which daemon serves each slot, the address
 * of each node's daemon, and the replies of CLUSTER SLOTS, SHARDS and NODES.
 * Loop 0 makes a view from a topology. Once it is shown, only the view_set
 * functions change it, under the raised gate. The service points to it, and the
 * pointer changes under the raised gate. Ids are those of the neighbour's
 * nodes, addresses those of the daemons beside them.
 */
#pragma once

#include "cluster/view_state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An entry of sidecar-map: the address where clients find the daemon of a node.
 * Without an entry, the address follows from the node's address. */
struct view_address {
    struct slice id;
    struct slice host;
    unsigned port;
};

struct view_options {
    int port_offset; /* daemon's port - node's port */
    /* If it is not 0, both ports of a daemon are open, and the TLS port is the
     * plain one plus this. 0: only one port is open. */
    int tls_offset;
    bool tls_only; /* the only port is for TLS */
    struct cluster_settings settings;
    const struct view_address *addresses;
    size_t address_count;
};

/* Makes a view, which owns the topology from then on. states and sources are by
 * slot; sources may be NULL if no slot is PULLED. NULL: there is no memory, and
 * the caller keeps the topology. */
struct cluster_view *view_new(struct topology *topology,
                              const struct view_options *options,
                              const uint8_t *states, const uint16_t *sources);
void view_free(struct cluster_view *view); /* NULL is fine */

/* Notes which slots keep this server from following its node's primary: how
 * many, and the owner of the first one. */
void view_set_waiting(struct cluster_view *view, unsigned slots,
                      uint16_t owner);

/* Notes how many slots are missing because their owner's epoch has fallen. */
void view_set_fallen(struct cluster_view *view, unsigned slots);

/* Notes which daemons are silent, by node. */
void view_set_silent(struct cluster_view *view, const bool *silent);

/* Returns the node that owns the slot, or NULL. */
static inline const struct view_node *
view_owner(const struct cluster_view *view, unsigned slot)
{
    uint16_t owner = view->topology->owner[slot];

    return owner == TOPOLOGY_NOBODY ? NULL : &view->nodes[owner];
}

/* Returns the end of a redirect to the node: "host:port". */
static inline struct slice
view_redirect(const struct view_node *node, bool tls)
{
    return (struct slice){ node->redirect[tls], node->redirect_len[tls] };
}

/* Returns a reply for a client that does or does not speak TLS. */
static inline const struct view_text *
view_text_for(const struct cluster_view *view, enum view_reply which, bool tls,
              unsigned resp)
{
    return &view->reply[which][tls && view->has_both][resp == 3];
}

/* Reads one word of sidecar-map: "<node id>=<host>:<port>", the host of IPv6 in
 * brackets. False: malformed. */
bool view_parse_address(struct slice word, struct view_address *ret_address);
