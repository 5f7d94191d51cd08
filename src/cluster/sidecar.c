/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A slot that the neighbour owns is served; a replica serves none.
 */
#include "cluster/sidecar.h"

#include "base/err.h"
#include "base/mem.h"

enum { MS = 1000000, TIMEOUT_DEFAULT_MS = 15000, LEASE_MAX_MS = 1000 };

struct sidecar {
    const struct sidecar_options *options;
    struct cluster_settings settings;
    uint64_t lease_until_ns;
    uint64_t renew_from_ns; /* earlier questions renew nothing */
    bool has_view;          /* of what the neighbour said last */
    bool silent;            /* the next answer is the first after a silence */
    uint8_t states[CLUSTER_SLOTS];
};

struct sidecar *
sidecar_new(const struct sidecar_options *options)
{
    struct sidecar *sidecar = mem_zalloc(sizeof(*sidecar));

    sidecar->options = options;
    sidecar->settings = (struct cluster_settings){
        .node_timeout_ms = TIMEOUT_DEFAULT_MS,
        .full_coverage = true,
        .databases = 1,
    };
    sidecar->silent = true;
    return sidecar;
}

void
sidecar_free(struct sidecar *sidecar)
{
    mem_free(sidecar);
}

void
sidecar_set(struct sidecar *sidecar, const struct cluster_settings *settings)
{
    sidecar->settings = *settings;
}

uint64_t
sidecar_lease_ns(const struct sidecar *sidecar)
{
    uint64_t lease_ms = sidecar->settings.node_timeout_ms / 4;

    if (sidecar->options->lease_ns > 0) {
        return sidecar->options->lease_ns;
    }
    return (lease_ms < LEASE_MAX_MS ? lease_ms : LEASE_MAX_MS) * MS;
}

/* ---- the view ------------------------------------------------------------ */

static void
choose_states(struct sidecar *sidecar, const struct topology *topology)
{
    const struct topology_node *myself = &topology->nodes[topology->myself];
    bool primary = (myself->flags & NODE_PRIMARY) != 0;

    for (unsigned slot = 0; slot < CLUSTER_SLOTS; slot++) {
        sidecar->states[slot] =
            primary && topology->owner[slot] == topology->myself ? SLOT_SERVED
                                                                 : SLOT_AWAY;
    }
}

static void
make_view(struct sidecar *sidecar, struct topology *topology,
          struct sidecar_outcome *outcome)
{
    struct view_options options = sidecar->options->view;

    options.settings = sidecar->settings;
    choose_states(sidecar, topology);
    outcome->view = view_new(topology, &options, sidecar->states, NULL);
    sidecar->has_view = outcome->view != NULL;
    if (!sidecar->has_view) {
        topology_free(topology);
        outcome->no_memory = true;
    }
}

/* ---- the lease ----------------------------------------------------------- */

static void
renew(struct sidecar *sidecar, const struct sidecar_poll *poll)
{
    uint64_t until_ns = poll->sent_ns + sidecar_lease_ns(sidecar);

    if (sidecar->silent ||
        poll->heard_ns - poll->sent_ns > sidecar->options->poll_ns) {
        sidecar->silent = false;
        sidecar->renew_from_ns = poll->heard_ns + SIDECAR_SETTLE_NS;
    } else if (poll->sent_ns >= sidecar->renew_from_ns && sidecar->has_view &&
               until_ns > sidecar->lease_until_ns) {
        sidecar->lease_until_ns = until_ns;
    }
}

void
sidecar_polled(struct sidecar *sidecar, struct sidecar_poll *poll,
               struct sidecar_outcome *ret_outcome)
{
    *ret_outcome = (struct sidecar_outcome){ .view = NULL };
    CHECK(poll->heard_ns >= poll->sent_ns);
    if (poll->gone) {
        sidecar->lease_until_ns = 0;
        sidecar->silent = true;
    } else if (!poll->failed) {
        if (poll->topology != NULL) {
            make_view(sidecar, poll->topology, ret_outcome);
            poll->topology = NULL;
        }
        renew(sidecar, poll);
    }
    if (!sidecar->has_view) { /* the published view is no longer true */
        sidecar->lease_until_ns = 0;
    }
    ret_outcome->lease_until_ns = sidecar->lease_until_ns;
}
