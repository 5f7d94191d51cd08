/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Worlds of two to five servers, each from a seed. First there are faults for
 * some seconds: connections end, stall or corrupt bytes; servers restart with
 * an older state or without data, change roles, run out of memory, fail to
 * fork. The oracle compares the data of the servers at the end of each group
 * and at each acknowledgement. Then the network heals, all servers follow one
 * of them, and all must agree within a bounded time. At last connections end a
 * few more times, which must not cost a full synchronization.
 *
 * BLOOMERY_ROUNDS=100 runs a hundred thousand worlds instead of a thousand.
 * BLOOMERY_SIM=<seed> repeats one world and prints its events.
 */
#include "conf/conf.h"

#include "journal/journal_tap.h"
#include "sim_node.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { WORLDS = 400 };
#else
enum { WORLDS = 1000 };
#endif

enum {
    FAULTS_MS = 20 * 1000,
    HEALED_MS = 120 * 1000,
    LAST_CUTS = 6,
    LAST_CUT_MS = 20 * 1000
};

/* The parameters of a world. */
struct plan {
    uint64_t write_ms, fault_ms, until_ms;
    size_t padding_max;
    bool writes, faults, floods;
    int primary;
};
static struct plan plan;

/* ---- writes and faults --------------------------------------------------- */

enum { WAITS_MAX = 1024 }; /* simulated WAITs at a time */

struct wait {
    uint64_t boot, epoch, position;
};
static struct wait waits[WAITS_MAX];
static size_t waits_next;

static void
on_waited(struct sim *sim, uint64_t index, uint64_t at)
{
    struct node *node = sim->nodes[index];
    const struct wait *wait = &waits[at];

    if (node->up && node->boot == wait->boot && node->leader == NOBODY &&
        node->epoch == wait->epoch) {
        sim->counts.waits += node_count_acked(node, wait->position);
    }
}

/* Simulates WAIT: asks for acknowledgements now, and some time later counts the
 * replicas that sent one. */
static void
wait_for_acks(struct sim *sim, struct node *node)
{
    size_t at = waits_next++ % WAITS_MAX;

    (void)journal_close_group(node->journal);
    waits[at] = (struct wait){ node->boot, node->epoch, node->position };
    node_stream(node);
    primary_ask_acks(node->primary,
                     (struct primary_ask){ node->position, node->position });
    sim_at(sim, sim_below(sim, 100), on_waited, node->index, at);
}

/* Whether a replica has newer data, so that the primary must not write. */
static bool
is_behind(struct sim *sim, const struct node *node)
{
    bool behind = primary_is_behind(node->primary);

    sim->counts.refused += behind;
    return behind;
}

static void
on_write(struct sim *sim, uint64_t index, uint64_t unused)
{
    struct node *node = sim->nodes[index];

    (void)unused;
    if (plan.writes) {
        sim_at(sim, 1 + sim_below(sim, 2 * plan.write_ms), on_write, index, 0);
    }
    if (!node->up || node->leader != NOBODY ||
        sim->stopped_until_ms[index] > sim->now_ms || is_behind(sim, node)) {
        return;
    }
    for (uint64_t i = sim_below(sim, 4); i > 0; i--) {
        node_write(node, plan.padding_max);
    }
    if (sim_chance(sim, 100)) {
        wait_for_acks(sim, node);
    }
}

static void
on_start(struct sim *sim, uint64_t index, uint64_t unused)
{
    struct node *node = sim->nodes[index];
    uint64_t back = sim_below(sim, 4);

    (void)unused;
    if (node->up) {
        return;
    }
    if (node->disk_count == 0 || sim_chance(sim, 100)) {
        node_boot(node, NULL);
        return;
    }
    back = back < node->disk_count ? back : 0;
    node_boot(node, &node->disks[(node->disks_seen - 1 - back) % DISKS_MAX]);
}

static struct node *
any_node(struct sim *sim)
{
    return sim->nodes[sim_below(sim, sim->node_count)];
}

static void
crash(struct sim *sim, struct node *node)
{
    if (node->up) {
        node_crash(node);
        sim_at(sim, sim_below(sim, 3000), on_start, node->index, 0);
    }
}

static struct conn *
any_conn(struct sim *sim)
{
    struct conn *found = NULL;
    uint64_t seen = 0;

    for (size_t i = 0; i < CONNS_MAX; i++) {
        if (sim->conns[i].used && sim_below(sim, ++seen) == 0) {
            found = &sim->conns[i];
        }
    }
    return found;
}

static void
hurt_conn(struct sim *sim)
{
    struct conn *conn = any_conn(sim);
    struct side *side;

    if (conn == NULL) {
        return;
    }
    side = &conn->side[sim_below(sim, 3) == 0 ? ACCEPTER : DIALER];
    switch (sim_below(sim, 4)) {
    case 0:
        conn_cut(sim, conn);
        break;
    case 1:
        side->cut_at = side->arrived + 1 + sim_below(sim, 4000);
        break;
    case 2:
        side->stalled_until_ms = sim->now_ms + sim_below(sim, 6000);
        break;
    default:
        side->dead = side->dead || sim_chance(sim, 500);
        if (sim->flip_permille > 0) {
            conn->side[DIALER].flip_at =
                conn->side[DIALER].arrived + sim_below(sim, 2000);
            sim->nodes[conn->side[DIALER].node]->was_flipped = true;
        }
    }
}

static void
change_role(struct sim *sim, struct node *node)
{
    struct node *other = any_node(sim);

    if (!node->up) {
        return;
    }
    if (node->leader != NOBODY && sim_chance(sim, 400)) {
        node_promote(node);
    } else if (other != node || sim_chance(sim, 100)) {
        node_follow(node, (int)other->index,
                    node->leader == NOBODY && sim_chance(sim, 300));
    }
}

/* Writes more than fits into the socket, the link and one turn of the loop. */
static void
flood(struct node *node)
{
    for (int i = 0; i < 60 && node->up && node->leader == NOBODY &&
                    !primary_is_behind(node->primary);
         i++) {
        node_write(node, 60000);
    }
}

static void
on_fault(struct sim *sim, uint64_t unused, uint64_t unused_too)
{
    struct node *node = any_node(sim);
    uint64_t kind = sim_below(sim, 100);

    (void)unused;
    (void)unused_too;
    if (!plan.faults) {
        return;
    }
    sim_at(sim, 1 + sim_below(sim, 2 * plan.fault_ms), on_fault, 0, 0);
    if (kind < 60) {
        hurt_conn(sim);
    } else if (kind < 68) {
        crash(sim, node);
    } else if (kind < 85) {
        change_role(sim, node);
    } else if (kind < 89) {
        sim->stopped_until_ms[node->index] = sim->now_ms + sim_below(sim, 6000);
    } else if (kind < 93) {
        sim->refuse[node->index][any_node(sim)->index] ^= true;
    } else if (kind < 94 && plan.floods) {
        flood(node);
    } else if (kind < 96) {
        node->password = node->password == NULL ? "secret" : NULL;
    } else if (kind < 99) {
        node->options.password =
            node->options.password[0] == '\0' ? "secret" : "";
        if (node->up) {
            replica_set_options(node->replica, &node->options);
        }
    } else if (node->up) {
        node->was_flipped = true; /* a full synchronization is allowed */
        replica_distrust(node->replica);
    }
}

/* ---- a world ------------------------------------------------------------- */

static void
set_paces(struct sim *sim, struct node *node)
{
    static const size_t sizes[] = { 0, 1 << 10, 16 << 10, 200 << 10, 1 << 20 };

    node->limits.timeout_ms = 1500 + sim_below(sim, 3000);
    node->limits.ping_ms = 300 + sim_below(sim, 700);
    node->limits.sync_delay_ms = sim_below(sim, 500);
    node->limits.backlog_bytes = sizes[sim_below(sim, 5)];
    node->limits.replicas_max = 1 + sim_below(sim, 6);
    if (sim_chance(sim, 500)) {
        node->limits.hard_bytes = (32 << 10) + sim_below(sim, 500000);
        node->limits.soft_bytes = node->limits.hard_bytes / 4;
        node->limits.soft_ms = 500;
    } else {
        node->limits.hard_bytes = 8 << 20;
    }
    node->options.timeout_ms = 1500 + sim_below(sim, 3000);
    node->later_permille = sim_chance(sim, 300) ? 100 : 0;
    node->child_fails_permille = sim_chance(sim, 500) ? 200 : 0;
    node->drops_first_permille = sim_chance(sim, 300) ? 500 : 0;
    node->release_lag_max_ms =
        sim_chance(sim, 300) ? 1 + sim_below(sim, 200) : 0;
    node->snapshot_padding = 8 * (size_t)sim_below(sim, 2000);
}

static struct sim *
make_world(uint64_t seed)
{
    struct sim *sim = sim_new(seed);
    uint64_t count = 2 + sim_below(sim, NODES_MAX - 1);

    plan = (struct plan){ .writes = true, .faults = true };
    plan.write_ms = 5 + sim_below(sim, 100);
    plan.fault_ms = 30 + sim_below(sim, 400);
    plan.padding_max = sim_chance(sim, 100) ? 30000 : 1 + sim_below(sim, 600);
    plan.floods = sim_chance(sim, 100);
    sim->flip_permille = sim_chance(sim, 300) ? 300 : 0;
    sim->dead_permille = sim_chance(sim, 500) ? 200 : 0;
    sim->memory_permille = sim_chance(sim, 200) ? 50 : 0;
    sim->latency_max_ms = sim_below(sim, 30);
    for (uint64_t i = 0; i < count; i++) {
        struct node *node = node_new(sim);

        set_paces(sim, node);
        node->leader = i == 0 ? NOBODY : (int)sim_below(sim, i);
    }
    for (uint64_t i = 0; i < count; i++) {
        node_boot(sim->nodes[i], NULL);
        sim_at(sim, sim_below(sim, 20), on_write, i, 0);
    }
    sim_at(sim, sim_below(sim, 1000), on_fault, 0, 0);
    return sim;
}

static void
free_world(struct sim *sim)
{
    for (unsigned i = 0; i < sim->node_count; i++) {
        node_free(sim->nodes[i]);
    }
    sim_free(sim);
}

/* ---- the end ------------------------------------------------------------- */

static void
heal_node(struct sim *sim, struct node *node)
{
    node->limits.replicas_max = NODES_MAX;
    node->limits.hard_bytes = 8 << 20;
    node->limits.soft_bytes = 0;
    node->limits.backlog_bytes = 1 << 20;
    node->password = NULL;
    node->options.password = "";
    node->child_fails_permille = 0;
    if (node->up) {
        primary_set_limits(node->primary, &node->limits);
        replica_set_options(node->replica, &node->options);
    } else {
        on_start(sim, node->index, 0);
    }
}

/* Stops new faults, and lets all servers follow one of them. Connections
 * that are open keep their faults until a time-out closes them. A server that
 * is stopped goes on at stopped_until_ms. */
static void
heal(struct sim *sim)
{
    unsigned order[NODES_MAX] = { 0 };

    plan.faults = false;
    plan.write_ms = 50;
    sim->no_takeover = true;
    sim->flip_permille = sim->dead_permille = sim->memory_permille = 0;
    memset(sim->refuse, 0, sizeof(sim->refuse));
    for (unsigned i = 0; i < sim->node_count; i++) {
        heal_node(sim, sim->nodes[i]);
        order[i] = i;
    }
    for (unsigned i = sim->node_count; i-- > 1;) {
        unsigned j = (unsigned)sim_below(sim, i + 1);
        unsigned other = order[j];

        order[j] = order[i];
        order[i] = other;
    }
    plan.primary = (int)order[0];
    for (unsigned i = 0; i < sim->node_count; i++) {
        struct node *node = sim->nodes[order[i]];
        int leader = i == 0 ? NOBODY : (int)order[sim_below(sim, i)];

        if (i == 0 && node->leader != NOBODY) {
            node_promote(node);
        } else if (i == 0) {
            node_end_doubt(node); /* REPLICAOF NO ONE */
        } else if (i > 0 && node->leader != leader) {
            node_follow(node, leader, false);
        }
    }
}

/* Whether all servers have the primary's history, position and data, and are
 * connected. */
static bool
agree(struct sim *sim)
{
    const struct node *primary = sim->nodes[plan.primary];

    for (unsigned i = 0; i < sim->node_count; i++) {
        const struct node *node = sim->nodes[i];

        if (!node->up || node->open_bytes > 0 ||
            node->position != primary->position ||
            strcmp(node->history.id, primary->history.id) != 0 ||
            node_digest(node) != node_digest(primary) ||
            (node != primary && !replica_is_connected(node->replica))) {
            return false;
        }
    }
    return true;
}

static void
expect_agreement(struct sim *sim, uint64_t within_ms)
{
    plan.writes = false;
    if (sim_run(sim, sim->now_ms + within_ms, agree)) {
        return;
    }
    for (unsigned i = 0; i < sim->node_count; i++) {
        const struct node *node = sim->nodes[i];
        struct status_figures figures = { 0 };

        replica_describe(node->replica, &figures);
        (void)fprintf(stderr,
                      "node %u: leader %d, %.8s:%" PRIu64 ", digest %" PRIx64
                      ", sealed %" PRIu64 ", released %" PRIu64
                      ", link %d, reason %s\n",
                      i, node->leader, node->history.id, node->position,
                      node_digest(node), backlog_sealed(node->backlog),
                      node->released, (int)figures.link, figures.reason);
    }
    sim_fail(sim, "no agreement within %" PRIu64 " ms", within_ms);
}

static void
write_for(struct sim *sim, uint64_t ms)
{
    plan.writes = true;
    sim_at(sim, 0, on_write, (uint64_t)plan.primary, 0);
    (void)sim_run(sim, sim->now_ms + ms, NULL);
}

/* Ends connections one at a time: the backlog must suffice to resume each. */
static void
cut_a_few_times(struct sim *sim)
{
    uint64_t fulls = sim->counts.fulls;
    uint64_t doubts = sim->counts.doubts;

    for (int i = 0; i < LAST_CUTS; i++) {
        struct conn *conn;

        write_for(sim, sim_below(sim, 300));
        conn = any_conn(sim);
        if (conn != NULL) {
            conn_cut(sim, conn);
        }
        write_for(sim, sim_below(sim, 300));
        expect_agreement(sim, LAST_CUT_MS);
    }
    /* A replica that distrusts its data may have connected since. */
    SIM_CHECK(sim, sim->counts.fulls == fulls || sim->counts.doubts > doubts,
              "%" PRIu64 " full synchronizations that were not needed",
              sim->counts.fulls - fulls);
}

static void
run_world(uint64_t seed, bool trace, struct sim_counts *ret_counts)
{
    struct sim *sim = make_world(seed);

    sim->trace = trace;
    (void)sim_run(sim, sim->now_ms + FAULTS_MS, NULL);
    sim_trace(sim, "---- heals");
    heal(sim);
    (void)sim_run(sim, sim->now_ms + 2000, NULL);
    sim_trace(sim, "---- writes end");
    expect_agreement(sim, HEALED_MS);
    sim_trace(sim, "---- last cuts");
    cut_a_few_times(sim);
    *ret_counts = sim->counts;
    free_world(sim);
}

static void
add_counts(struct sim_counts *all, const struct sim_counts *one)
{
    all->events += one->events;
    all->cuts += one->cuts;
    all->flips += one->flips;
    all->boots += one->boots;
    all->promotions += one->promotions;
    all->fulls += one->fulls;
    all->partials += one->partials;
    all->acks += one->acks;
    all->doubts += one->doubts;
    all->groups += one->groups;
    all->loads += one->loads;
    all->waits += one->waits;
    all->out_of_memory += one->out_of_memory;
    all->refused += one->refused;
}

TEST(no_world_ends_with_other_data_than_its_primary)
{
    const char *only = getenv("BLOOMERY_SIM");
    uint64_t worlds = (uint64_t)WORLDS * test_rounds();
    struct sim_counts all = { 0 };

    log_set_level((enum log_level)CONF_LOG_NOTHING);
    for (uint64_t i = 0; i < worlds; i++) {
        struct sim_counts one = { 0 };

        if (only != NULL) {
            run_world(strtoull(only, NULL, 0), true, &one);
            return;
        }
        run_world(test_seed() + i, false, &one);
        add_counts(&all, &one);
    }
    (void)printf("%" PRIu64 " worlds: %" PRIu64 " events, %" PRIu64
                 " groups, %" PRIu64 " acks, %" PRIu64 " cuts, %" PRIu64
                 " flips, %" PRIu64 " crashes, %" PRIu64 " promotions, %" PRIu64
                 " partial and %" PRIu64 " full synchronizations, %" PRIu64
                 " loads, %" PRIu64 " doubts, %" PRIu64
                 " acks counted by WAIT, %" PRIu64
                 " times out of memory, %" PRIu64
                 " writes refused by primaries with older data\n",
                 worlds, all.events, all.groups, all.acks, all.cuts, all.flips,
                 all.boots, all.promotions, all.partials, all.fulls, all.loads,
                 all.doubts, all.waits, all.out_of_memory, all.refused);
    assert_true(all.refused > 0 && all.waits > 0 && all.out_of_memory > 0 &&
                all.flips > 0 && all.boots > 0 && all.fulls > 0 &&
                all.partials > 0);
}
