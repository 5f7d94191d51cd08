/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The struct that view.c makes and view_text.c serialises: see view.h.
 */
#pragma once

#include "base/buf.h"
#include "cluster/topology.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum slot_state {
    SLOT_AWAY,     /* another node owns it, or nobody */
    SLOT_SERVED,   /* this node owns it, and its data is here */
    SLOT_PULLED,   /* this node owns it, but its data is still at another daemon
                    */
    SLOT_EXPORTED, /* another node owns it, and its daemon fetches the data */
    SLOT_HELD,     /* a hand-off is under way, or will be: commands wait */
    SLOT_MISSING,  /* this node owns it, and no daemon has its data */
    SLOT_LEAVING   /* another node owns it, but its daemon has not come for the
                      data yet: it is served for some more time */
};
enum { SLOT_STATES = SLOT_LEAVING + 1 };

/* The host that clients are sent to: cluster-preferred-endpoint-type. */
enum view_endpoint {
    VIEW_ENDPOINT_IP,
    VIEW_ENDPOINT_HOSTNAME,
    VIEW_ENDPOINT_UNKNOWN
};

/* Options of the neighbour that this daemon must follow, too. */
struct cluster_settings {
    uint64_t node_timeout_ms; /* cluster-node-timeout */
    bool full_coverage;       /* cluster-require-full-coverage */
    bool reads_when_down;     /* cluster-allow-reads-when-down */
    unsigned databases; /* cluster-databases; 1 if the node does not know it */
    enum view_endpoint endpoint;        /* cluster-preferred-endpoint-type */
    char shard_id[TOPOLOGY_ID_LEN + 1]; /* CLUSTER MYSHARDID; "": unknown */
};

enum view_reply { VIEW_SLOTS, VIEW_SHARDS, VIEW_NODES };
enum { VIEW_REPLIES = VIEW_NODES + 1 };

struct view_node {
    const struct topology_node *node;
    /* The daemon's address: from sidecar-map, or its node's. */
    const char *host;     /* "": unknown */
    const char *hostname; /* "": none */
    const char *endpoint; /* what clients use; NULL: unknown */
    unsigned slots;       /* number of slots that the node owns */
    unsigned port[2]; /* for plain clients, and for clients with TLS; 0: there
                         is none */
    bool failed;
    bool silent; /* the daemon did not answer the last survey */
    int next_replica, first_replica; /* lists by primary; -1 ends them */
    char place[TOPOLOGY_HOST_MAX]; /* host points here if it is from sidecar-map
                                    */
    char redirect[2][TOPOLOGY_HOST_MAX + 8]; /* "<endpoint>:<port>" */
    uint16_t redirect_len[2];
};

/* A serialised reply. At `gap` the server's own replication offset is inserted,
 * as a RESP integer. SIZE_MAX: nowhere. */
struct view_text {
    struct buf text;
    size_t gap;
};

struct cluster_view {
    struct topology *topology;          /* owned */
    struct view_node *nodes;            /* as many as the topology has */
    uint8_t state[CLUSTER_SLOTS];       /* enum slot_state */
    uint16_t source[CLUSTER_SLOTS];     /* node to ASK for a PULLED slot */
    unsigned count[SLOT_STATES];        /* slots by state */
    unsigned assigned, failing, failed; /* slots with any owner; with a PFAIL
                                           owner; with a FAIL owner */
    unsigned shards;                    /* primaries with slots: cluster_size */
    unsigned owned;     /* slots of this node, or of its primary */
    unsigned replicas;  /* replicas of the same primary, without those that are
                           FAIL */
    unsigned silent;    /* silent daemons */
    unsigned fallen;    /* missing slots whose owner's epoch has fallen */
    unsigned waiting;   /* slots whose data keeps this server from following its
                           node's primary */
    uint16_t waits_for; /* owner of the first of them, or NOBODY */
    bool primary;       /* this node is a primary */
    int leader;         /* index of this node, or of its primary if it
                           is a replica; -1: unknown */
    struct cluster_settings settings;
    bool has_plain, has_tls, has_both; /* which ports the daemons have */
    struct view_text reply[VIEW_REPLIES][2][2]; /* by TLS and RESP3 */
};
