/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The nodes' own cluster is simple and always right: it has one history of
 * versions. A node learns each version late, and later when it cannot be
 * reached. A primary without a majority is replaced, and says that the cluster
 * fails after the node timeout, or at once if it comes back alone, and for that
 * long after it has a majority again. Other nodes may be faster, so for a while
 * both may believe that they own the slots.
 */
#include "../test.h"
#include "cluster_rig.h"
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    FIRST_NODES = 6,
    DETECT_MS = SIM_NODE_TIMEOUT_MS / 2 + 100, /* until another one leads */
    WAKE_MS = 15,   /* until a node that was stopped knows: less than
                       LEASE_SETTLE_MS */
    HEAL_MS = 500,  /* likewise, one that was cut off */
    CHANGE_MS = 100 /* until a node that lost a role or a slot gets it again:
                       a manual failover waits for a tick of the node, and a
                       node refuses to import a slot that it owns */
};

struct sim_version *
sim_newest(void)
{
    return &sim.version[sim.versions - 1];
}

/* Begins a version that differs from the last one by what the caller does. */
struct sim_version *
sim_change_cluster(void)
{
    struct sim_version *next = &sim.version[sim.versions];

    assert_true(sim.versions < SIM_VERSIONS_MAX);
    *next = sim.version[sim.versions > 0 ? sim.versions - 1 : 0];
    sim.versions++;
    next->at_ms = sim.now_ms;
    for (int i = 0; i < SIM_NODES; i++) {
        next->lag_ms[i] = sim_below(8) == 0 ? sim_below(500) : sim_below(40);
    }
    return next;
}

uint64_t
sim_next_epoch(void)
{
    uint64_t most = 0;

    for (int i = 0; i < SIM_NODES; i++) {
        uint64_t epoch = sim_newest()->member[i].epoch;

        most = epoch > most ? epoch : most;
    }
    return most + 1;
}

/* A node that was removed and is added again is another one. */
void
sim_id_of(int node, char ret_id[TOPOLOGY_ID_LEN + 1])
{
    unsigned life = sim_newest()->member[node].life;

    (void)snprintf(ret_id, TOPOLOGY_ID_LEN + 1, "%040u",
                   life * SIM_NODES + (unsigned)node + 1);
}

int
sim_node_of(const char *id)
{
    return (atoi(id + TOPOLOGY_ID_LEN - 5) - 1) % SIM_NODES;
}

void
sim_nodes_begin(void)
{
    struct sim_version *first = sim_change_cluster();

    for (int i = 0; i < SIM_NODES; i++) {
        bool primary = i < FIRST_NODES / 2;

        first->member[i] =
            (struct sim_member){ .known = i < FIRST_NODES,
                                 .primary =
                                     primary ? SIM_NOBODY : i - FIRST_NODES / 2,
                                 .epoch = (uint64_t)i + 1 };
        sim.node[i].up = i < FIRST_NODES;
        sim.node[i].seen = 1;
    }
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        first->owner[slot] = (int)(slot % (FIRST_NODES / 2));
    }
}

/* ---- what a node knows --------------------------------------------------- */

static void
learn(int index)
{
    struct sim_node *node = &sim.node[index];

    if (!node->up || node->deaf_ms != 0 || sim.now_ms < node->learns_ms) {
        return;
    }
    while (node->seen < sim.versions) {
        const struct sim_version *next = &sim.version[node->seen];

        if (next->at_ms + next->lag_ms[index] > sim.now_ms) {
            return;
        }
        if (next[-1].member[index].primary == SIM_NOBODY &&
            next->member[index].primary != SIM_NOBODY) {
            node->demoted_ms = sim.now_ms;
        }
        for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
            if (next[-1].owner[slot] == index && next->owner[slot] != index) {
                node->lost_ms[slot] = sim.now_ms;
            }
        }
        node->seen++;
    }
}

static bool
is_ok(const struct sim_node *node)
{
    return sim.now_ms >= node->fails_until_ms &&
           (node->alone_ms == 0 ||
            sim.now_ms - node->alone_ms < SIM_NODE_TIMEOUT_MS);
}

static size_t
append_node(char *text, size_t size, const struct sim_version *version, int i,
            int myself)
{
    const struct sim_member *member = &version->member[i];
    char id[TOPOLOGY_ID_LEN + 1];
    char primary[TOPOLOGY_ID_LEN + 1] = "-";
    bool leads = member->primary == SIM_NOBODY;
    size_t len;

    sim_id_of(i, id);
    if (!leads) {
        sim_id_of(member->primary, primary);
    }
    len = (size_t)snprintf(
        text, size, "%s 127.0.0.1:%d@%d %s%s %s 0 0 %" PRIu64 " connected", id,
        7000 + i, 17000 + i, i == myself ? "myself," : "",
        leads ? "master" : "slave", primary,
        version->member[leads ? i : member->primary].epoch);
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        if (version->owner[slot] == i) {
            len +=
                (size_t)snprintf(text + len, size - len, " %u", sim_slot(slot));
        }
    }
    return len + (size_t)snprintf(text + len, size - len, "\n");
}

struct topology *
sim_show(int node, size_t *version)
{
    static const char fails[] = "cluster_state:fail" RIG_INFO_REST;
    const struct sim_version *shown;
    char text[4096];
    char id[TOPOLOGY_ID_LEN + 1];
    bool ok = is_ok(&sim.node[node]);
    size_t len = 0;
    size_t number;

    number = sim.node[node].seen * 2 + ok;
    if (number == *version) {
        return NULL;
    }
    *version = number;
    shown = &sim.version[sim.node[node].seen - 1];
    for (int i = 0; i < SIM_NODES; i++) {
        if (shown->member[i].known) {
            len += append_node(text + len, sizeof(text) - len, shown, i, node);
        }
    }
    sim_id_of(node, id);
    return rig_topology(text, ok ? RIG_INFO : fails, id);
}

bool
sim_knows_lost(int node, unsigned slot)
{
    return sim_newest()->owner[slot] != node &&
           sim.version[sim.node[node].seen - 1].owner[slot] != node &&
           sim.now_ms - sim.node[node].lost_ms[slot] >= CHANGE_MS;
}

/* ---- failures ------------------------------------------------------------ */

/* A node asks for votes if it knows that it is a replica. */
static bool
may_be_elected(int index, int old)
{
    const struct sim_node *node = &sim.node[index];
    const struct sim_version *known = &sim.version[node->seen - 1];

    return sim_newest()->member[index].known &&
           sim_newest()->member[index].primary == old && node->up &&
           node->alone_ms == 0 && known->member[index].known &&
           known->member[index].primary != SIM_NOBODY &&
           sim.now_ms - node->demoted_ms >= CHANGE_MS;
}

bool
sim_fail_over(int old)
{
    int next = SIM_NOBODY;
    uint64_t epoch = sim_next_epoch();
    struct sim_version *version;

    for (int i = 0; i < SIM_NODES; i++) {
        if (may_be_elected(i, old)) {
            next = i;
        }
    }
    if (next == SIM_NOBODY) {
        return false;
    }
    version = sim_change_cluster();
    for (int i = 0; i < SIM_NODES; i++) {
        if (version->member[i].primary == old || i == old) {
            version->member[i].primary = next;
        }
    }
    version->member[next].primary = SIM_NOBODY;
    version->member[next].epoch = epoch;
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        if (version->owner[slot] == old) {
            version->owner[slot] = next;
        }
    }
    sim_tell("node %d takes over from %d", next, old);
    sim.failovers++;
    return true;
}

/* Whether packets arrive from (both: and at) more than half of the others. */
static bool
has_majority(int node, bool both)
{
    int others = 0;
    int good = 0;

    for (int i = 0; i < SIM_NODES; i++) {
        if (i != node && sim_newest()->member[i].known) {
            others++;
            good += !sim.cut[i][node] && (!both || !sim.cut[node][i]);
        }
    }
    return good * 2 > others;
}

static void
give_up(struct sim_node *node)
{
    if (node->given_up_ms == 0) {
        node->given_up_ms =
            sim.now_ms + DETECT_MS + sim_below(SIM_NODE_TIMEOUT_MS);
    }
}

void
sim_nodes_look(void)
{
    for (int i = 0; i < SIM_NODES; i++) {
        struct sim_node *node = &sim.node[i];

        if (has_majority(i, false)) {
            if (node->deaf_ms != 0) {
                node->learns_ms = sim.now_ms + sim_below(HEAL_MS);
            }
            node->deaf_ms = 0;
        } else if (node->deaf_ms == 0) {
            node->deaf_ms = sim.now_ms;
        }
        if (has_majority(i, true)) {
            if (node->alone_ms != 0 && !is_ok(node)) {
                node->fails_until_ms = sim.now_ms + SIM_NODE_TIMEOUT_MS;
            }
            node->alone_ms = 0;
        } else if (node->alone_ms == 0) {
            node->alone_ms = sim.now_ms;
            if (sim.now_ms < node->learns_ms) { /* it was alone all the time:
                                 what makes a majority tells what is new */
                node->alone_ms -= SIM_NODE_TIMEOUT_MS;
            }
        }
        if (!node->up || node->alone_ms != 0) {
            give_up(node);
        } else {
            node->given_up_ms = 0;
        }
    }
}

void
sim_nodes_run(void)
{
    for (int i = 0; i < SIM_NODES; i++) {
        struct sim_node *node = &sim.node[i];

        if (!sim_newest()->member[i].known) {
            continue;
        }
        if (node->given_up_ms == sim.now_ms &&
            sim_newest()->member[i].primary == SIM_NOBODY) {
            (void)sim_fail_over(i);
        }
        if (!node->up && sim.now_ms >= node->back_ms) {
            node->up = true;
            node->refuses = false;
            node->learns_ms = sim.now_ms + sim_below(WAKE_MS);
            sim_tell("node %d is back", i);
            sim_nodes_look();
            if (node->alone_ms != 0) { /* it says so at once */
                node->alone_ms = sim.now_ms - SIM_NODE_TIMEOUT_MS;
            }
        }
        learn(i);
    }
}
