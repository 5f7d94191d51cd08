/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of sidecar mode, which its files share. Loop 0 owns it, except
 * `cluster` (cluster/cluster.h).
 *
 *   sidecar_mode.c    the neighbour, the lease, sidecar-map, start and stop
 *   sidecar_owner.c   what the state machine has decided, views
 *   sidecar_word.c    an operator's commands about slots
 *   sidecar_report.c  slots without data, for the log
 */
#pragma once

#include "base/clock.h"
#include "base/run_clock.h"
#include "cluster/cluster.h"
#include "cluster/lease.h"
#include "cluster/sidecar.h"
#include "engine/loop0.h"
#include "engine/service.h"
#include "net/loop.h"
#include "roles/replication_state.h"
#include "sidecar/sidecar_report.h"

struct colleagues;
struct kept_file;
struct neighbour;
struct sidecar_inquiry;

enum {
    SIDECAR_ADDRESSES_MAX = 256,
    SIDECAR_PULL_NEAR_BYTES = 64 << 10 /* the pull is near when less than this
                                          of the source's log is left */
};

/* NOLINTNEXTLINE(*Padding): fields in the order of use; one object only */
struct sidecar_mode {
    const struct loop0 *loop0;
    struct replication *r;
    struct cluster cluster;          /* the service's `cluster` points to it */
    struct cluster_view *view_shown; /* the view of `cluster` */
    struct lease lease;
    bool leased; /* a lease has begun, and its end was not noticed yet */
    struct view_options view;
    struct topology *topology; /* the newest one */
    bool unpublished; /* there was no memory for a view of the topology */
    bool remade;      /* the options of views have changed */
    struct sidecar *sidecar; /* NULL before sidecar_mode_open */
    struct neighbour *neighbour;
    struct colleagues *colleagues;
    struct holdings *answered; /* storage for a daemon's answer */
    struct sidecar_inquiry *inquiry;
    struct kept_file *file;
    struct fence_order *fenced; /* orders whose answers wait for the disk */
    /* The FORCE-SERVE that waits for answers, or NULL. */
    struct fence_order *forcing;
    /* The topology whose servers are asked for `forcing`. */
    struct topology *asked;
    unsigned asked_open; /* how many of these servers have not answered yet */
    uint64_t save; /* the ticket of a snapshot that was asked for; 0: none */
    _Atomic uint64_t sync_to; /* a position that the journal was asked to sync;
                                 0: none */
    bool checked;             /* the data was compared with the file */
    char *map; /* a copy of sidecar-map, into which the addresses point */
    struct view_address addresses[SIDECAR_ADDRESSES_MAX];
    atomic_bool map_due;  /* sidecar-map has changed */
    unsigned warned_port; /* the port of the last check_own_port() warning */
    struct sidecar_report report;

    bool pull_near;         /* the present pull has nearly all */
    uint64_t pull_end;      /* our journal's end when nearly all had arrived; 0:
                               it has not yet */
    bool pull_linked;       /* the link of the pull was up at the last look */
    unsigned pull_attempts; /* snapshots of the pull, at the last look */
    bool pull_cut;          /* pull_progress.cut at the last look */
    uint64_t pull_lost_ms;  /* when the link was last there */
    char pull_failure[256]; /* why the pull did not begin; "": it has begun */

    uv_timer_t timer;
    unsigned tick_ms; /* interval of the timer */
    uv_async_t poke;
    atomic_bool started; /* poke may be sent */
};

/* Returns the clock of the sidecar's events; leases use clock_boot_ns. */
static inline uint64_t
sidecar_mode_now_ms(void)
{
    return run_clock_ms();
}

/* sidecar_mode_node() returns where the daemon beside a node listens, or NULL.
 * sidecar_mode_port() returns the port there. */
static inline const struct view_node *
sidecar_mode_node(const struct sidecar_mode *mode, const char *id)
{
    const struct cluster_view *view = mode->cluster.view;
    int node = view == NULL ? -1 : topology_find(view->topology, slice_of(id));

    return node < 0 || view->nodes[node].host[0] == '\0' ? NULL
                                                         : &view->nodes[node];
}

static inline unsigned
sidecar_mode_port(const struct sidecar_mode *mode, const struct view_node *node)
{
    return node->port[mode->r->uses_tls];
}
