/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A view is published under the raised gate: no loop is inside its section, and
 * the old view can be freed at once. The lease is an atomic.
 */
#include "server/sidecar_mode.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/cluster.h"
#include "engine/observe.h"
#include "keyspace/gate.h"
#include "keyspace/key_hash.h"
#include "server/neighbour.h"
#include "server/server_state.h"
#include "server/wake.h"

#include <stdio.h>

enum { MS = 1000000 };

struct sidecar_mode {
    struct server *server;
    struct cluster cluster; /* the service's */
    struct lease_options options;
    struct lease *sidecar;
    struct neighbour *neighbour;
    char *map; /* a copy of sidecar-map, into which the places point */
    struct view_place places[64];
    unsigned warned_port; /* for which the log has the warning */
};

/* ---- publishing ---------------------------------------------------------- */

/* Clients are sent to the port that the map gives this server. */
static void
check_own_port(struct sidecar_mode *mode, const struct cluster_view *view)
{
    const struct conf *conf = &mode->server->conf;
    unsigned port = view->nodes[view->topology->myself].port[0];
    int64_t own = conf->port > 0 ? conf->port : conf->tls_port;

    if (port != (unsigned)own && port != mode->warned_port) {
        mode->warned_port = port;
        log_warn("server.sidecar", "clients are sent to another port",
                 "announced=%u own=%lld advice=\"set port, "
                 "sidecar-port-offset or sidecar-map\"",
                 port, (long long)own);
    }
}

static void
publish(struct sidecar_mode *mode, struct cluster_view *view)
{
    struct gate *gate = keyspace_gate(mode->server->service.keyspace);
    const struct cluster_view *before = mode->cluster.view;

    gate_raise(gate, 0);
    mode->cluster.view = view;
    gate_lower(gate, 0);
    view_free((struct cluster_view *)(uintptr_t)before);
    (void)atomic_fetch_add(&mode->cluster.views, 1);
    log_info("server.sidecar", "the cluster has changed",
             "role=%s state=%s epoch=%llu served=%u nodes=%zu",
             view->primary ? "master" : "slave",
             view->topology->ok ? "ok" : "fail",
             (unsigned long long)view->topology->my_epoch,
             view->count[SLOT_SERVED], view->topology->count);
    check_own_port(mode, view);
    wake_loops(mode->server); /* commands that wait for a hand-off */
}

/* A lease that ends unnoticed is counted when the next one begins. */
static void
set_lease(struct sidecar_mode *mode, uint64_t until_ns)
{
    struct cluster *cluster = &mode->cluster;
    uint64_t before_ns = atomic_load(&cluster->lease_until_ns);

    if (before_ns != until_ns) {
        atomic_store_explicit(&cluster->lease_until_ns, until_ns,
                              memory_order_release);
        if (before_ns > 0 && (until_ns == 0 || clock_boot_ns() >= before_ns)) {
            (void)atomic_fetch_add(&cluster->leases_lost, 1);
            log_warn("server.sidecar", "the lease has ended", "%s", "");
        }
    }
}

static bool
on_polled(void *ctx, struct lease_poll *poll)
{
    struct sidecar_mode *mode = ctx;
    struct lease_outcome outcome;

    if (!poll->failed) {
        (void)atomic_fetch_add(&mode->cluster.polls, 1);
    }
    lease_polled(mode->sidecar, poll, &outcome);
    if (outcome.lease_until_ns == 0) {
        set_lease(mode, 0); /* before the new view takes time */
    }
    if (outcome.view != NULL) {
        publish(mode, outcome.view);
    }
    set_lease(mode, outcome.lease_until_ns);
    atomic_store(&mode->cluster.neighbour_up, neighbour_is_up(mode->neighbour));
    return !outcome.no_memory;
}

static void
on_settled(void *ctx, const struct cluster_settings *settings)
{
    struct sidecar_mode *mode = ctx;

    lease_set(mode->sidecar, settings);
    atomic_store(&mode->cluster.lease_ms, lease_length_ns(mode->sidecar) / MS);
}

/* ---- life ---------------------------------------------------------------- */

static bool
read_map(struct sidecar_mode *mode, char *ret_reason)
{
    struct view_options *view = &mode->options.view;
    struct slice rest;
    struct slice word;

    mode->map = mem_copy_text(slice_of(mode->server->conf.sidecar_map));
    rest = slice_of(mode->map);
    view->places = mode->places;
    while (slice_next_word(&rest, &word)) {
        CHECK(view->place_count <
              sizeof(mode->places) / sizeof(mode->places[0]));
        if (!view_parse_place(word, &mode->places[view->place_count])) {
            (void)snprintf(ret_reason, SIDECAR_MODE_REASON_MAX,
                           "sidecar-map: '%.*s' is not node-id=host:port",
                           slice_shown(word), word.data);
            return false;
        }
        view->place_count++;
    }
    return true;
}

static void
read_options(struct sidecar_mode *mode)
{
    const struct conf *conf = &mode->server->conf;
    struct view_options *view = &mode->options.view;

    mode->options.poll_ns = (uint64_t)conf->sidecar_poll_ms * MS;
    mode->options.lease_ns = (uint64_t)conf->sidecar_lease_ms * MS;
    view->port_offset = (int)conf->sidecar_port_offset;
    view->tls_only = conf->port == 0 && conf->tls_port > 0;
    if (conf->port > 0 && conf->tls_port > 0) {
        view->tls_offset = (int)(conf->tls_port - conf->port);
    }
}

bool
sidecar_mode_init(struct server *server,
                  char ret_reason[SIDECAR_MODE_REASON_MAX])
{
    const struct conf *conf = &server->conf;
    struct neighbour_hooks hooks = { .polled = on_polled,
                                     .settled = on_settled };
    struct neighbour_place place;
    struct sidecar_mode *mode;

    if (conf->sidecar_of[0] == '\0') {
        return true;
    }
    if (!neighbour_parse(conf->sidecar_of, &place)) {
        (void)snprintf(ret_reason, SIDECAR_MODE_REASON_MAX,
                       "sidecar-of: '%s' is neither host:port nor "
                       "[address]:port nor the path of a unix socket",
                       conf->sidecar_of);
        return false;
    }
    if (conf->replicaof[0] != '\0') {
        (void)snprintf(ret_reason, SIDECAR_MODE_REASON_MAX,
                       "replicaof cannot be set together with sidecar-of: the "
                       "cluster says which server follows which");
        return false;
    }
    mode = mem_zalloc(sizeof(*mode));
    mode->server = server;
    server->sidecar = mode;
    if (!read_map(mode, ret_reason)) {
        return false;
    }
    read_options(mode);
    key_hash_by_slot(true);
    mode->sidecar = lease_new(&mode->options);
    hooks.ctx = mode;
    mode->neighbour = neighbour_new(server, &place, &hooks);
    server->service.cluster = &mode->cluster;
    observe_flag(&server->service, OBSERVED_ROUTES, true);
    return true;
}

void
sidecar_mode_fini(struct server *server)
{
    struct sidecar_mode *mode = server->sidecar;

    if (mode != NULL) {
        neighbour_free(mode->neighbour);
        lease_free(mode->sidecar);
        view_free((struct cluster_view *)(uintptr_t)mode->cluster.view);
        mem_free(mode->map);
        mem_free(mode);
        server->sidecar = NULL;
    }
}

void
sidecar_mode_start(struct server *server)
{
    if (server->sidecar != NULL) {
        neighbour_start(server->sidecar->neighbour);
    }
}

void
sidecar_mode_stop(struct server *server)
{
    if (server->sidecar != NULL) {
        neighbour_stop(server->sidecar->neighbour);
    }
}
