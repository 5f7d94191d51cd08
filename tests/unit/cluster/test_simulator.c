/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Simulated clusters of six to eight nodes (sim.h). Slots move, nodes fail
 * over, come, go and follow others; nodes and daemons are killed, stopped and
 * restarted; links are cut in one direction or both; a node is cut off with its
 * daemon. Clients write and read all the time (sim_client.c says what they may
 * see). When all is healed, every slot must be served again.
 *
 * BLOOMERY_ROUNDS=100 runs 100 times as many worlds, BLOOMERY_SIM=<number> one,
 * with all that happens; with BLOOMERY_DISOWNS=1 one whose slots may have no
 * owner for a while.
 */
#include "../test.h"
#include "base/log.h"
#include "cluster/candidates.h"
#include "cluster/sidecar_state.h"
#include "conf/conf.h"
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { WORLDS = 25, SMALL_WORLDS = 5 };
#else
enum { WORLDS = 250, SMALL_WORLDS = 20 };
#endif

enum { FAULTS_MS = 15000, HEALED_MS = 60000 };

/* ---- what the operator does ---------------------------------------------- */

static int
some_node(void)
{
    int node = (int)sim_below(SIM_NODES);

    while (!sim_newest()->member[node].known) {
        node = (node + 1) % SIM_NODES;
    }
    return node;
}

static bool
is_primary(int node)
{
    const struct sim_member *member = &sim_newest()->member[node];

    return member->known && member->primary == SIM_NOBODY;
}

static int
some_primary(void)
{
    int node = some_node();

    while (!is_primary(node)) {
        node = (node + 1) % SIM_NODES;
    }
    return node;
}

static void
move_at(int to, uint64_t epoch)
{
    struct sim_version *version;

    if (!sim.node[to].up || sim.node[to].alone_ms != 0) {
        return;
    }
    version = sim_change_cluster();
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        if (sim_below(3) == 0 && sim_knows_lost(to, slot)) {
            version->owner[slot] = to;
            version->member[to].epoch = epoch;
        }
    }
    sim_tell("slots move to %d, at %" PRIu64, to, epoch);
    sim.moves++;
}

static void
move_slots(void)
{
    int to = some_primary();

    move_at(to, sim_next_epoch());
}

/* An operator gives slots to a node whose epoch stays as it is: SETSLOT NODE
 * without IMPORTING. It may be lower than that of the owner before. */
static void
move_without_epoch(void)
{
    int to = some_primary();

    move_at(to, sim_newest()->member[to].epoch);
}

/* Some slots are nobody's for a while: DELSLOTS at all nodes. */
static void
disown(void)
{
    struct sim_version *version = sim_change_cluster();

    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        if (sim_below(4) == 0) {
            version->owner[slot] = SIM_NOBODY;
        }
    }
    sim_tell("nobody owns some slots");
}

/* They are somebody's again: ADDSLOTS, which raises no epoch. */
static void
own_all(void)
{
    struct sim_version *version = sim_change_cluster();
    int to = some_primary();

    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        if (version->owner[slot] == SIM_NOBODY) {
            version->owner[slot] = to;
        }
    }
    sim_tell("slots without an owner are of %d", to);
}

/* All slots of a primary move to another one, and it follows that with its
 * replicas. */
static void
empty_node(void)
{
    int from = some_primary();
    int to = some_primary();
    uint64_t epoch = sim_next_epoch();
    struct sim_version *version;

    if (from == to || !sim.node[to].up || sim.node[to].alone_ms != 0) {
        return;
    }
    version = sim_change_cluster();
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        if (version->owner[slot] == from) {
            version->owner[slot] = to;
            version->member[to].epoch = epoch;
        }
    }
    for (int i = 0; i < SIM_NODES; i++) {
        if (i == from || version->member[i].primary == from) {
            version->member[i].primary = to;
        }
    }
    sim_tell("all slots of %d move to %d, which it follows", from, to);
    sim.moves++;
}

static void
fail_over(void)
{
    (void)sim_fail_over(some_primary());
}

static void
follow_another(void)
{
    int node = some_node();
    int primary = some_primary();

    if (!is_primary(node)) {
        sim_change_cluster()->member[node].primary = primary;
        sim_tell("node %d follows %d", node, primary);
    }
}

/* A new node, as a primary without slots or as a replica. */
static void
add_node(void)
{
    int primary = sim_below(2) == 0 ? SIM_NOBODY : some_primary();

    for (int i = 0; i < SIM_NODES; i++) {
        struct sim_daemon *d = &sim.daemon[i];
        struct sim_member *member;

        if (sim_newest()->member[i].known || d->up) {
            continue;
        }
        member = &sim_change_cluster()->member[i];
        *member = (struct sim_member){ .known = true,
                                       .life = member->life + 1,
                                       .primary = primary,
                                       .epoch = sim_next_epoch() };
        sim.node[i] = (struct sim_node){ .up = true, .seen = sim.versions };
        memset(&d->kept, 0, sizeof(d->kept));
        sim_disk_begin(d);
        memset(d->items, 0, sizeof(d->items));
        d->length = 0;
        d->history = 0;
        d->leader = SIM_NOBODY;
        sim_tell("node %d is added", i);
        sim_start(i);
        sim_nodes_look();
        return;
    }
}

static bool
all_is_served(void)
{
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        int owner = sim_newest()->owner[slot];

        if (owner == SIM_NOBODY || !sim_serves(owner, slot)) {
            return false;
        }
    }
    return true;
}

/* Removes a node without slots or replicas, with its daemon. */
static void
remove_node(void)
{
    int node = some_node();
    int used = 0;

    for (int i = 0; i < SIM_NODES; i++) {
        used += sim_newest()->member[i].known;
        if (sim_newest()->member[i].known &&
            sim_newest()->member[i].primary == node) {
            return;
        }
    }
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        if (sim_newest()->owner[slot] == node) {
            return;
        }
    }
    if (used <= 4 || !all_is_served()) {
        return;
    }
    sim_change_cluster()->member[node].known = false;
    sim.node[node].up = false;
    sim.node[node].back_ms = UINT64_MAX;
    if (sim.daemon[node].up) {
        sim_stop(node);
    }
    sim.daemon[node].up_at_ms = UINT64_MAX;
    sim_tell("node %d is removed", node);
    sim_nodes_look();
}

/* ---- what happens to it -------------------------------------------------- */

static void
kill_daemon(int node)
{
    if (sim.daemon[node].up) {
        sim_stop(node);
        sim.daemon[node].up_at_ms = sim.now_ms + 50 + sim_below(3000);
    }
}

/* Collects what disks of a daemon's replicas have of what it holds. False:
 * others hold any of it, too, and may let it go since this daemon has it. */
static bool
copies_have(int node, uint64_t ret_items[SIM_SLOTS])
{
    char id[TOPOLOGY_ID_LEN + 1];

    sim_id_of(node, id);
    memset(ret_items, 0, SIM_SLOTS * sizeof(*ret_items));
    for (int i = 0; i < SIM_NODES; i++) {
        const struct sim_daemon *d = &sim.daemon[i];
        bool follows =
            d->up && strcmp(sidecar_holdings(d->sidecar)->follows, id) == 0;

        for (unsigned slot = 0; i != node && slot < SIM_SLOTS; slot++) {
            uint64_t held =
                d->up ? sidecar_holdings(d->sidecar)->held[sim_slot(slot)]
                      : d->kept.held[slot];

            if (held == 0 || sim.daemon[node].kept.held[slot] == 0) {
                continue;
            }
            if (!follows) {
                return false;
            }
            if (d->disk.journals && d->disk.built_ms == 0 &&
                d->kept.held[slot] != 0) {
                ret_items[slot] |= d->items[slot];
            }
        }
    }
    return true;
}

/* It is killed, its directory is removed, and it starts again, soon. */
static void
empty_daemon(int node)
{
    struct sim_daemon *d = &sim.daemon[node];
    uint64_t copies[SIM_SLOTS];

    if (!d->up || d->leader != SIM_NOBODY || !copies_have(node, copies)) {
        return;
    }
    kill_daemon(node);
    d->up_at_ms = sim.now_ms + 10 + sim_below(sim_below(2) == 0 ? 100 : 3000);
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        sim.lost[slot] |= sim.truth[slot] & d->items[slot] & ~copies[slot];
        d->emptied[slot] = d->items[slot];
    }
    d->emptied_ms = sim.now_ms;
    memset(&d->kept, 0, sizeof(d->kept));
    sim_disk_begin(d);
    memset(d->items, 0, sizeof(d->items));
    d->length = 0;
    d->history = 0;
    sim.emptied++;
    sim_tell("daemon %d is empty", node);
}

static void
empty_some_daemon(void)
{
    empty_daemon(some_node());
}

static void
freeze_daemon(int node)
{
    struct sim_daemon *d = &sim.daemon[node];

    if (d->up && !d->frozen) {
        d->frozen = true;
        d->up_at_ms = sim.now_ms + 50 + sim_below(3000);
        sim_disturb(node);
        sim_tell("daemon %d is stopped", node);
    }
}

/* kills: its daemon sees at once that it is gone. If it lasts, it is failed
 * over. */
static void
lose_node(int node, bool kills)
{
    if (sim.node[node].up) {
        sim_tell("node %d %s", node, kills ? "is killed" : "is silent");
        sim.node[node].up = false;
        sim.node[node].refuses = kills;
        sim.node[node].back_ms = sim.now_ms + 50 + sim_below(5000);
        if (kills) {
            sim.daemon[node].poll_ms = sim.now_ms + 1;
        }
        sim_nodes_look();
    }
}

static void
lose_daemon(void)
{
    (sim_below(2) == 0 ? kill_daemon : freeze_daemon)(some_node());
}

static void
lose_one_node(void)
{
    lose_node(some_node(), sim_below(2) == 0);
}

static void
lose_both(void)
{
    int node = some_node();
    bool kills = sim_below(2) == 0;

    lose_node(node, kills);
    (kills ? kill_daemon : freeze_daemon)(node);
}

/* how: 0 from a to b, 1 from b to a, 2 both ways. */
static void
cut(int a, int b, uint64_t how)
{
    sim.cut[a][b] = sim.cut[a][b] || how != 1;
    sim.cut[b][a] = sim.cut[b][a] || how != 0;
    sim_disturb(a);
    sim_disturb(b);
}

static void
cut_link(void)
{
    int node = some_node();
    int other = some_node();
    uint64_t how = sim_below(3);

    if (node != other) {
        sim_tell("%d and %d are cut, %d", node, other, (int)how);
        cut(node, other, how);
        sim_nodes_look();
    }
}

static void
cut_off(void)
{
    int node = sim_below(2) == 0 ? some_primary() : some_node();
    uint64_t how = sim_below(3);

    sim_tell("%d is cut off, %d", node, (int)how);
    for (int i = 0; i < SIM_NODES; i++) {
        if (i != node) {
            cut(node, i, how);
        }
    }
    sim_nodes_look();
}

/* Returns a replica of the node that its cluster may elect; SIM_NOBODY. */
static int
replica_of(int node)
{
    for (int i = SIM_NODES; i-- > 0;) {
        if (sim_newest()->member[i].known &&
            sim_newest()->member[i].primary == node) {
            return i;
        }
    }
    return SIM_NOBODY;
}

static void
cut_side(int a, int b)
{
    if (a != b && a != SIM_NOBODY && b != SIM_NOBODY) {
        sim.side_cut_ms[a][b] = sim.side_cut_ms[b][a] =
            sim.now_ms + 100 + sim_below(900);
        sim_disturb(a);
        sim_disturb(b);
        sim_tell("daemons %d and %d are cut for a while", a, b);
    }
}

/* While a daemon pulls, and its clients ASK the source, one of the links of the
 * two daemons is cut for a while, and the node of one of them fails over. */
static void
cut_side_link(int puller)
{
    int source = sim.daemon[puller].pull.source;
    int old = sim_below(2) == 0 ? source : puller;
    int ends[] = { puller, source, replica_of(puller), replica_of(source) };

    cut_side(ends[sim_below(4)], ends[sim_below(4)]);
    sim.side_cuts += sim_fail_over(old);
}

/* Such a pull may run; if none does, slots move. */
static void
fail_over_in_a_pull(void)
{
    sim.side_cut_comes = true;
    for (int i = 0; i < SIM_NODES; i++) {
        if (sim.daemon[i].up && sim.daemon[i].pull.runs) {
            return;
        }
    }
    move_slots();
}

static void
run_side_cut(void)
{
    for (int i = 0; sim.side_cut_comes && i < SIM_NODES; i++) {
        if (sim.daemon[i].up && sim.daemon[i].pull.runs &&
            sim_below(100) == 0) {
            sim.side_cut_comes = false;
            cut_side_link(i);
        }
    }
}

/* The operator of a daemon declares that what a slot had is lost. Every third
 * one names a node whose data is taken. */
static void
say_force(int index, unsigned slot, bool fallen)
{
    struct sim_daemon *d = &sim.daemon[index];
    struct slot_set set = { { 0 } };
    char from[TOPOLOGY_ID_LEN + 1] = "";
    char reason[256];
    struct candidate *all;

    slot_set_add(&set, sim_slot(slot));
    if (!sidecar_may_force(d->sidecar, &set, sim_has_lease(d), reason,
                           sizeof(reason))) {
        return;
    }
    if ((sim.now_ms + slot) % 3 == 0) {
        sim_id_of((int)(sim.now_ms / 3 % SIM_NODES), from);
    }
    all = sim_candidates(index, slot);
    if (sidecar_force_serve(d->sidecar, &set, from, all, reason,
                            sizeof(reason))) {
        sim_tell("slot %u is %s, says the operator of %d; from %s", slot,
                 fallen ? "ours all the same" : "lost", index, from);
        if (!fallen || from[0] != '\0') { /* else it is fetched, as ever */
            sim.lost[slot] = sim.truth[slot];
        }
        sim.forced++;
        sim.chosen +=
            d->sidecar->slots[sim_slot(slot)].forced_from != PEER_NONE;
    }
    candidates_free(all);
}

/* Returns whether no daemon holds the slot any more though its data may be on
 * some: a directory was removed, or a server without a journal was killed. */
static bool
is_held_by_nobody(unsigned slot)
{
    bool excused = false;

    for (int i = 0; i < SIM_NODES; i++) {
        const struct sim_daemon *d = &sim.daemon[i];

        if (d->up && d->sidecar->own->held[sim_slot(slot)] != 0) {
            return false;
        }
        excused |= d->emptied_ms != 0 || !d->disk.journals;
    }
    return excused;
}

/* Daemons then serve what they, or others that answer, have. healed: only of
 * slots that had nothing, or nothing any more, or that nobody holds. */
static void
force_serve(bool healed)
{
    for (int i = 0; i < SIM_NODES; i++) {
        struct sim_daemon *d = &sim.daemon[i];

        for (unsigned slot = 0; d->up && slot < SIM_SLOTS; slot++) {
            bool fallen = slot_set_has(&d->sidecar->fallen, sim_slot(slot));

            if (d->state[slot] == SLOT_MISSING &&
                (!healed || fallen || is_held_by_nobody(slot) ||
                 (sim.truth[slot] & ~sim.lost[slot]) == 0)) {
                say_force(i, slot, fallen);
            }
        }
    }
}

static void
join(void)
{
    sim_tell("no link is cut");
    for (int a = 0; a < SIM_NODES; a++) {
        for (int b = 0; b < SIM_NODES; b++) {
            if (sim.cut[a][b]) {
                sim.cut[a][b] = false;
                sim_disturb(a);
                sim_disturb(b);
            }
        }
    }
    sim_nodes_look();
    force_serve(false);
}

static void
make_fault(void)
{
    static void (*const faults[])(void) = {
        move_slots,
        move_slots,
        move_without_epoch,
        move_slots,
        fail_over,
        fail_over,
        lose_daemon,
        lose_one_node,
        lose_both,
        cut_link,
        cut_link,
        cut_off,
        join,
        join,
        join,
        follow_another,
        add_node,
        remove_node,
        empty_node,
        fail_over_in_a_pull,
        empty_some_daemon,
        disown, /* only worlds that disown get these */
        disown,
        own_all,
        own_all,
        own_all,
    };
    size_t count = sizeof(faults) / sizeof(faults[0]) - (sim.disowns ? 0 : 5);

    faults[sim_below(count)]();
    sim.faults++;
}

/* ---- a world ------------------------------------------------------------- */

static void
check_healed(void)
{
    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        int owner = sim_newest()->owner[slot];
        const struct sim_daemon *d = &sim.daemon[owner];
        uint64_t absent;

        if (!sim_serves(owner, slot)) {
            sim_fail("slot %u is not served: owner %d leader %d state %u "
                     "source %d",
                     slot, owner, d->leader, d->state[slot], d->source[slot]);
        }
        sim_check_served(owner, slot);
        absent = sim.truth[slot] & ~sim.lost[slot] & ~d->items[slot];
        if (absent != 0) {
            sim_fail("slot %u lacks %#" PRIx64 " in the end", slot, absent);
        }
    }
}

static void
heal(void)
{
    uint64_t until_ms = sim.now_ms + HEALED_MS;

    join();
    for (int i = 0; i < SIM_NODES; i++) {
        if (sim_newest()->member[i].known) {
            sim.node[i].back_ms = sim.now_ms;
            sim.daemon[i].up_at_ms = sim.now_ms;
        }
    }
    if (sim.disowns) {
        own_all();
    }
    do {
        sim_run_ms();
        if (sim.now_ms % 10000 == 0) {
            force_serve(true);
        }
    } while (!all_is_served() && sim.now_ms < until_ms);
    check_healed();
}

static void
run_world(uint64_t number, bool told, bool disowns)
{
    uint64_t fault_ms = 60 + number % 1000;

    sim_begin(number * UINT64_C(0x9E3779B97F4A7C15), told);
    sim.disowns = disowns;
    while (sim.now_ms < FAULTS_MS) {
        sim_run_ms();
        run_side_cut();
        if (sim_below(fault_ms) == 0 && sim.now_ms > 2000) {
            make_fault();
        }
    }
    heal();
}

static uint64_t
count_bits(const uint64_t *masks)
{
    uint64_t count = 0;

    for (unsigned slot = 0; slot < SIM_SLOTS; slot++) {
        count += (uint64_t)__builtin_popcountll(masks[slot]);
    }
    return count;
}

/* A run of the tests simulates the same worlds each time; BLOOMERY_ROUNDS or
 * BLOOMERY_SEED ask for others. */
static uint64_t
first_world(void)
{
    return getenv("BLOOMERY_ROUNDS") == NULL && getenv("BLOOMERY_SEED") == NULL
               ? 1
               : test_seed();
}

TEST(no_item_is_missed_and_every_slot_is_served_again)
{
    const char *only = getenv("BLOOMERY_SIM");
    uint64_t worlds = only != NULL ? 1 : WORLDS * test_rounds();
    uint64_t first = only != NULL ? strtoull(only, NULL, 0) : first_world();
    bool disowns = only != NULL && getenv("BLOOMERY_DISOWNS") != NULL;
    uint64_t sums[13] = { 0 };

    log_set_level(only != NULL ? LOG_INFO : (enum log_level)CONF_LOG_NOTHING);
    for (uint64_t i = 0; i < worlds; i++) {
        (void)printf("\rBLOOMERY_SIM=%#" PRIx64, first + i);
        run_world(first + i, only != NULL, disowns);
        sums[0] += sim.writes;
        sums[1] += sim.refused;
        sums[2] += sim.split;
        sums[3] += sim.faults;
        sums[4] += sim.moves;
        sums[5] += sim.failovers;
        sums[6] += count_bits(sim.lost);
        sums[7] += sim.forced;
        sums[8] += sim.same;
        sums[9] += sim.side_cuts;
        sums[10] += sim.tellings;
        sums[11] += sim.emptied;
        sums[12] += sim.chosen;
        sim_end();
    }
    (void)printf(
        "\r%" PRIu64 " worlds, %" PRIu64 " writes, %" PRIu64
        " refused, %" PRIu64 " in a partition, %" PRIu64 " faults, %" PRIu64
        " moves, %" PRIu64 " failovers, %" PRIu64
        " items lost with daemons that were not there, %" PRIu64
        " slots forced, %" PRIu64 " answers that nothing has changed, %" PRIu64
        " failovers in a pull, %" PRIu64
        " times holdings told over a link, %" PRIu64
        " directories removed, %" PRIu64 " times data chosen\n",
        worlds, sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6],
        sums[7], sums[8], sums[9], sums[10], sums[11], sums[12]);
    assert_true(sums[0] > worlds * 100 &&
                (only != NULL ||
                 (sums[8] > 0 && sums[9] > 0 && sums[10] > 0 && sums[12] > 0)));
}

/* Their holders serve them until somebody owns them again. This prints the ways
 * from phase to phase of the worlds of both tests. */
TEST(slots_that_nobody_owned_for_a_while_are_served_again)
{
    uint64_t worlds =
        getenv("BLOOMERY_SIM") != NULL ? 0 : SMALL_WORLDS / 2 * test_rounds();
    uint64_t first = first_world();

    log_set_level((enum log_level)CONF_LOG_NOTHING);
    for (uint64_t i = 0; i < worlds; i++) {
        (void)printf("\rBLOOMERY_DISOWNS=1 BLOOMERY_SIM=%#" PRIx64, first + i);
        run_world(first + i, false, true);
        sim_end();
    }
    (void)printf("\n");
    sim_phases_print();
}

/* The directory of a primary is removed when its replica, whose node follows
 * another one now, has just heard that the primary has all. */
TEST(a_copy_goes_by_what_was_said_a_moment_ago)
{
    log_set_level((enum log_level)CONF_LOG_NOTHING);
    run_world(UINT64_C(0x491ce4ab21f8e984), false,
              false); /* it leaves its primary */
    sim_end();
    run_world(UINT64_C(0x6fd93d7c0d2ed80), false,
              false); /* and copies another one */
    sim_end();
}

/* ---- the new owner dies -------------------------------------------------- */

/* Runs until the daemon serves the slot. */
static void
await_served(int *node, unsigned slot)
{
    uint64_t until_ms = sim.now_ms + 20000;

    while (!sim_serves(*node, slot)) {
        if (sim.now_ms >= until_ms) {
            sim_fail("node %d does not serve slot %u", *node, slot);
        }
        sim_run_ms();
    }
}

static void
kill_for_good(int node)
{
    sim_stop(node);
    sim.daemon[node].up_at_ms = UINT64_MAX;
    lose_node(node, true);
    sim.node[node].back_ms = UINT64_MAX;
}

/* The host of a new owner dies as soon as its replica has its data. */
TEST(a_replica_has_what_its_primary_took_over_a_moment_ago)
{
    const int to = 0;
    const int replica = 3; /* of node 0, as sim_nodes.c begins */
    const unsigned slot = 1;

    log_set_level((enum log_level)CONF_LOG_NOTHING);
    for (uint64_t world = 1; world <= SMALL_WORLDS; world++) {
        struct sim_version *version;
        uint64_t epoch;

        sim_begin(world * UINT64_C(0x9E3779B97F4A7C15), false);
        sim.plain = 0;
        while (sim.now_ms < 3000) {
            sim_run_ms();
        }
        epoch = sim_next_epoch();
        version = sim_change_cluster();
        version->owner[slot] = to;
        version->member[to].epoch = epoch;
        await_served(&sim_newest()->owner[slot], slot);
        while (sim.daemon[replica].length < sim.daemon[to].length) {
            sim_run_ms();
        }
        kill_for_good(to);
        while (sim_newest()->owner[slot] == to) {
            sim_run_ms();
        }
        assert_int_equal(sim_newest()->owner[slot], replica);
        await_served(&sim_newest()->owner[slot], slot);
        sim_end();
    }
}

/* Node 0 dies when slot 0 has just moved to node 1, whose daemon is down. Of
 * the copies that are left, the one of node 5 has all; node 5 takes over the
 * other slots. Node 3 has less. */
TEST(the_longer_copy_wins_when_its_server_leads)
{
    log_set_level((enum log_level)CONF_LOG_NOTHING);
    for (uint64_t world = 1; world <= 20; world++) {
        struct sim_version *version;

        sim_begin(world * UINT64_C(0x9E3779B97F4A7C15), false);
        sim_change_cluster()->member[5].primary = 0;
        while (sim.now_ms < 6000) {
            sim_run_ms();
        }
        sim.side_cut_ms[0][3] = sim.side_cut_ms[3][0] = UINT64_MAX;
        while (sim.now_ms < 7000 ||
               sim.daemon[5].length < sim.daemon[0].length) {
            sim_run_ms();
        }
        assert_true(sim.daemon[3].items[0] != sim.daemon[0].items[0]);
        version = sim_change_cluster();
        version->owner[0] = 1;
        version->member[1].epoch = sim_next_epoch();
        sim_stop(1);
        sim.daemon[1].up_at_ms = sim.now_ms + 12000;
        kill_for_good(0);
        await_served(&sim_newest()->owner[0], 0);
        assert_int_equal(sim.daemon[5].leader, SIM_NOBODY);
        assert_int_equal(
            sim.truth[0] & ~sim.daemon[1].items[0] & sim.daemon[5].items[0], 0);
        sim_end();
    }
}

/* Slots move one after another, and each is copied for up to 0.4 s, some for
 * 5 s. Returns the longest time for which no daemon answers for one of them. */
static uint64_t
move_one_after_another(const unsigned *moved, size_t count)
{
    uint64_t since_ms[SIM_SLOTS] = { 0 };
    uint64_t until_ms = sim.now_ms + 10000;
    uint64_t longest_ms = 0;

    for (uint64_t ms = 0; sim.now_ms < until_ms; ms++) {
        if (ms % 30 == 0 && ms / 30 < count) {
            uint64_t epoch = sim_next_epoch();
            struct sim_version *version = sim_change_cluster();

            version->owner[moved[ms / 30]] = 0;
            version->member[0].epoch = epoch;
        }
        sim_run_ms();
        for (size_t i = 0; i < count; i++) {
            if (sim_answers(moved[i])) {
                since_ms[i] = 0;
            } else if (since_ms[i] == 0) {
                since_ms[i] = sim.now_ms;
            } else if (sim.now_ms - since_ms[i] > longest_ms) {
                longest_ms = sim.now_ms - since_ms[i];
            }
        }
    }
    return longest_ms;
}

TEST(no_slot_waits_for_the_copies_of_those_that_moved_before)
{
    static const unsigned moved[] = { 1, 4, 7 };

    log_set_level((enum log_level)CONF_LOG_NOTHING);
    for (uint64_t world = 1; world <= SMALL_WORLDS; world++) {
        sim_begin(world * UINT64_C(0x9E3779B97F4A7C15), false);
        sim.plain = 0;
        while (sim.now_ms < 3000) {
            sim_run_ms();
        }
        assert_true(move_one_after_another(moved, 3) < 350);
        sim_end();
    }
}
