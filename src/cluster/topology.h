/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A cluster as one of its nodes sees it at one moment: the replies of CLUSTER
 * NODES, INFO and MYID of one transaction, parsed. Redis 7.0 and Valkey up to
 * 9.1 write them. Nodes in a handshake, or without an address, are left out,
 * since no client can be redirected there. The slots that they own are left
 * out, too. Whatever is malformed or contradicts itself is refused with a
 * reason. Once parsed, it never changes, except the count of its users. No I/O
 * and no clock.
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "base/slice.h"
#include "base/slot_set.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TOPOLOGY_ID_LEN = 40,
    TOPOLOGY_NODES_MAX = 4096,
    TOPOLOGY_HOST_MAX = 256, /* with the NUL */
    TOPOLOGY_NOBODY = UINT16_MAX,
    TOPOLOGY_REASON_MAX = 256
};

enum topology_flag {
    NODE_MYSELF = 1,
    NODE_PRIMARY = 2,
    NODE_REPLICA = 4,
    NODE_PFAIL = 8, /* only the reporting node finds it unreachable */
    NODE_FAIL = 16, /* a majority finds it unreachable */
    NODE_NOFAILOVER = 32
};

struct topology_node {
    char id[TOPOLOGY_ID_LEN + 1];
    char host[TOPOLOGY_HOST_MAX]; /* an address without brackets; "": unknown */
    char hostname[TOPOLOGY_HOST_MAX]; /* as announced; "": none */
    unsigned port, cport;             /* cport 0: unknown */
    uint32_t flags;                   /* bits of enum topology_flag */
    int primary; /* index of a replica's primary; -1: none, or not listed */
    uint64_t epoch;
    bool connected; /* the reporting node has a link to it */
};

/* A slot that is being moved by marks (MIGRATING, IMPORTING), which only the
 * line of the reporting node has. */
struct topology_mark {
    uint16_t slot;
    uint16_t node;  /* the other node; TOPOLOGY_NOBODY if it is not listed */
    bool importing; /* importing from that node; else migrating to it */
};

struct topology {
    struct topology_node *nodes;
    size_t count;
    struct map by_id;              /* the nodes */
    uint16_t owner[CLUSTER_SLOTS]; /* index of a primary, or TOPOLOGY_NOBODY */
    int myself;                    /* index of the reporting node */
    bool ok;                       /* it says cluster_state:ok */
    uint64_t current_epoch, my_epoch;
    size_t nodes_known; /* in CLUSTER NODES, including the nodes left out */
    struct topology_mark *marks;
    size_t mark_count;
    unsigned users; /* each of them calls topology_free(); loop 0 */
};

/* Parses the three texts. False: *ret_topology is untouched, and ret_reason
 * says what is wrong. */
bool topology_parse(struct slice nodes, struct slice info, struct slice myid,
                    struct topology **ret_topology,
                    char ret_reason[TOPOLOGY_REASON_MAX]);

/* topology_share() adds a user, and topology_free() takes one away; the last
 * one frees the topology. NULL may be freed. Loop 0. */
struct topology *topology_share(struct topology *topology);
void topology_free(struct topology *topology);

/* Appends the part of the texts that topology_parse uses, without the times and
 * message counts, which differ in each reply. Texts with equal results have
 * equal topologies. */
void topology_strip(struct slice nodes, struct slice info, struct slice myid,
                    struct buf *out);

/* Returns the index of the node with this id, or -1. */
int topology_find(const struct topology *topology, struct slice id);

/* Collects the slots that a node owns. */
void topology_slots_of(const struct topology *topology, int node,
                       struct slot_set *ret_set);
