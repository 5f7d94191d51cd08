/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The figures of sidecar mode: the section cluster of INFO, and the same for
 * metrics and the status page. Any loop, inside a section of the gate.
 */
#pragma once

#include "cluster/cluster.h"
#include "engine/service.h"

struct info_cluster {
    bool neighbour_up;
    uint64_t polls, views;
    uint64_t lease_ms, lease_left_ms, leases_lost;
    uint64_t cutover_ms; /* see sidecar_cutover_ms() */
    /* From here to `waiting`: zero until the neighbour has been read. */
    bool known;
    bool ok;      /* the neighbour says cluster_state:ok */
    bool primary; /* the neighbour is a primary */
    uint64_t current_epoch, my_epoch;
    size_t nodes;
    unsigned assigned; /* slots that have an owner */
    unsigned slots[SLOT_STATES];
    unsigned owned;    /* slots of this node, or of its primary */
    unsigned replicas; /* replicas of the same primary */
    unsigned silent;   /* silent servers */
    unsigned waiting;  /* slots whose data keeps this server from following its
                          node's primary */
    uint64_t waits_s;  /* for how long they have done so */
    struct slot_transfers transfers;
};

/* Collects the figures. False: the server is not in sidecar mode. */
bool info_cluster_get(const struct service *service,
                      struct info_cluster *ret_cluster);

/* Appends the addresses of silent servers, as many as a line of a log takes,
 * with a comma between two. */
void info_cluster_silent(const struct cluster_view *view, struct buf *out);

/* Returns "served" and the like. */
const char *info_cluster_state_name(enum slot_state state);

/* Divides the slots into parts of equal size, and writes a letter for each
 * part. It stands for the most urgent state in the part: m missing, h held, p
 * pulled, l leaving, e exported, s served, - away. S: all slots of the part are
 * served.
 */
enum { INFO_CLUSTER_PARTS = 256 };
void info_cluster_map(const struct cluster_view *view,
                      char ret_map[INFO_CLUSTER_PARTS + 1]);

/* Writes the section, without the counters. */
void info_cluster_write(const struct service *service, struct buf *text);
