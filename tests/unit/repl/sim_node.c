/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_node.h"

/* ---- events of the network ----------------------------------------------- */

bool
node_is_there(const struct sim *sim, const struct side *side)
{
    const struct node *node = sim->nodes[side->node];

    return node->up && node->boot == side->boot;
}

bool
node_accepts(const struct sim *sim, unsigned node)
{
    return sim->nodes[node]->up;
}

void
node_opened(struct sim *sim, struct conn *conn)
{
    const struct side *side = &conn->side[DIALER];
    struct node *node = sim->nodes[side->node];

    conn->side[ACCEPTER].boot = sim->nodes[conn->side[ACCEPTER].node]->boot;
    replica_opened(node->replica, side->number, sim->now_ms);
}

void
node_bytes(struct sim *sim, struct conn *conn, unsigned which,
           struct slice bytes, size_t *ret_used)
{
    uint64_t id = conn_id(sim, conn);
    struct side *side = &conn->side[which];
    struct node *node = sim->nodes[side->node];
    size_t at = 0;

    *ret_used = bytes.len;
    if (which == DIALER) {
        sim_may_fail(sim);
        replica_bytes(node->replica, side->number, bytes, ret_used,
                      sim->now_ms);
        (void)sim_failed(sim);
        return;
    }
    buf_append_slice(&side->input, bytes);
    for (;;) {
        struct slice rest = { side->input.data + at, side->input.len - at };
        struct slice argv[WORDS_MAX];
        size_t argc = 0;
        size_t command = sim_read_command(rest, argv, &argc);

        if (command == 0) {
            break;
        }
        at += command;
        node_obey(node, conn, argv, argc);
        if (conn_find(sim, id) != conn || side->closed) {
            return;
        }
    }
    buf_consume(&side->input, at);
}

void
node_closed(struct sim *sim, struct conn *conn, unsigned which,
            const char *reason)
{
    const struct side *side = &conn->side[which];
    struct node *node = sim->nodes[side->node];

    if (which == DIALER) {
        replica_closed(node->replica, side->number, reason, sim->now_ms);
    } else {
        primary_detached(node->primary, conn_id(sim, conn));
    }
}

void
node_drained(struct sim *sim, struct conn *conn)
{
    const struct side *side = &conn->side[ACCEPTER];

    if (!side->closed && node_is_there(sim, side)) {
        primary_drained(sim->nodes[side->node]->primary, conn_id(sim, conn),
                        sim->now_ms);
    }
}

/* ---- life ---------------------------------------------------------------- */

/* Checks the memory of a primary: the backlog, the part that replicas have yet
 * to get, and a few blocks. */
static void
check_memory(struct node *node)
{
    const struct primary_limits *limits = &node->limits;
    uint64_t owed = limits->hard_bytes > limits->backlog_bytes
                        ? limits->hard_bytes
                        : limits->backlog_bytes;
    uint64_t bytes = backlog_bytes(node->backlog);
    bool looks = sim_chance(node->sim, 100);
    uint64_t sendable = backlog_sealed(node->backlog);

    /* and the part that is not released */
    sendable = sendable < node->released ? sendable : node->released;
    owed += node->position + node->open_bytes - sendable;
    SIM_CHECK(node->sim, bytes <= limits->backlog_bytes + owed + (1 << 20),
              "node %u keeps %" PRIu64 " bytes, from %" PRIu64
              " on, at %" PRIu64 ": more than %" PRIu64 " + %" PRIu64,
              node->index, bytes, backlog_first(node->backlog), node->position,
              limits->backlog_bytes, owed);
    for (size_t i = 0; i < CONNS_MAX && looks; i++) {
        const struct conn *conn = &node->sim->conns[i];

        /* one turn, and one block more */
        SIM_CHECK(node->sim,
                  !conn->used || conn->side[ACCEPTER].node != node->index ||
                      conn->side[ACCEPTER].closed ||
                      side_unsent(&conn->side[DIALER]) <=
                          owed + (1 << 20) + (128 << 10),
                  "node %u has too much unsent", node->index);
    }
}

static void
on_tick(struct sim *sim, uint64_t index, uint64_t boot)
{
    struct node *node = node_at(sim, index, boot);

    if (node == NULL || sim_stands_still(sim, index, on_tick, index, boot)) {
        return;
    }
    node_repair(node);
    primary_tick(node->primary, sim->now_ms);
    replica_tick(node->replica, sim->now_ms);
    check_memory(node);
    sim_at(sim, 100, on_tick, index, boot);
}

void
node_end_doubt(struct node *node)
{
    node->in_doubt = false;
    primary_set_ended(node->primary, NULL, 0);
}

void
node_follow(struct node *node, int leader, bool failover)
{
    struct replica_target target = { .host = "node",
                                     .port = (unsigned)leader,
                                     .failover = failover };

    node->epoch++;
    sim_trace(node->sim, "node %u follows node %d", node->index, leader);
    node_end_doubt(node);
    (void)journal_close_group(node->journal);
    node->leader = leader;
    node_change_chain(node, "it follows another one now");
    replica_follow(node->replica, &target, node->sim->now_ms);
}

/* Begins a new history here, or anew if there is no data. */
static void
new_history(struct node *node)
{
    char id[HISTORY_ID_CHARS + 1];
    struct slice argv[3] = { slice_lit("REPLCONF"), slice_lit("HISTORY") };

    sim_id(node->sim, id);
    argv[2] = slice_of(id);
    if (node->absent) {
        node->absent = false;
        history_begin(&node->history, id);
        primary_drop_all(node->primary, "the data is gone");
        backlog_begin(node->backlog, node->position);
        primary_set_history(node->primary, &node->history, node->key);
        node_check_place(node);
    } else {
        node_note_history(node, id);
    }
    node_append(node, argv, 3);
}

/* Releases only what the disk has. */
static void
hold_back(struct node *node)
{
    node->released = node->release_lag_max_ms > 0 ? node->position : UINT64_MAX;
}

void
node_promote(struct node *node)
{
    sim_trace(node->sim, "node %u is a primary at %" PRIu64, node->index,
              node->position);
    node->sim->counts.promotions++;
    replica_stop(node->replica);
    node_end_doubt(node);
    node_change_chain(node, "it is a primary now");
    node->leader = NOBODY;
    hold_back(node);
    new_history(node);
}

static void
node_make_parts(struct node *node)
{
    struct replica_hooks replica_hooks = sim_replica_hooks;
    struct primary_hooks primary_hooks = sim_primary_hooks;

    replica_hooks.ctx = primary_hooks.ctx = node;
    sim_id(node->sim, node->run_id);
    node->backlog = backlog_new();
    node->primary = primary_new(node->backlog, &primary_hooks);
    node->replica = replica_new(node->run_id, &replica_hooks);
    primary_set_limits(node->primary, &node->limits);
    replica_set_options(node->replica, &node->options);
}

void
node_boot(struct node *node, const struct disk *disk)
{
    struct sim *sim = node->sim;
    char id[HISTORY_ID_CHARS + 1];

    node->up = true;
    node->boot++;
    node->flush_due = node->absent = node->in_doubt = false;
    node->load.on = node->load.stores = node->child.runs = false;
    node->holds = 0;
    node->child.generation++;
    node_make_parts(node);
    sim_id(sim, id);
    if (disk != NULL) {
        node->history = disk->history;
        memcpy(node->registers, disk->registers, sizeof(node->registers));
        node->position = disk->position;
        node->sequence = disk->sequence;
    } else {
        history_begin(&node->history, id);
        memset(node->registers, 0, sizeof(node->registers));
        node->position = node->sequence = 0;
        node->disk_count = 0;
        truth_meets(sim, id, 0, node_digest(node), true);
    }
    if (disk == NULL || sim_chance(sim, 100)) {
        node->key = sim_random(sim);
    }
    node->journal = node_take_journal(node, node->position, node->sequence);
    hold_back(node);
    primary_set_history(node->primary, &node->history, node->key);
    sim_trace(sim, "node %u starts at %.8s:%" PRIu64, node->index,
              node->history.id, node->position);
    if (node->leader == NOBODY) {
        if (disk != NULL) {
            node->in_doubt = true;
            memcpy(node->ended.id, node->history.id, sizeof(node->ended.id));
            node->ended.until = node->position;
            primary_set_ended(node->primary, &node->ended, 1);
            new_history(node);
        }
    } else {
        node_follow(node, node->leader, false);
    }
    sim_at(sim, 1 + sim_below(sim, 100), on_tick, node->index, node->boot);
}

static void
node_free_parts(struct node *node)
{
    node->up = false;
    if (node->replica == NULL) {
        return;
    }
    /* Its link is closed already: the hooks must not find it. */
    replica_free(node->replica);
    primary_free(node->primary);
    node_give_journal(node->journal);
    backlog_free(node->backlog);
    buf_free(&node->child.bytes);
    buf_free(&node->load.bytes);
    node->replica = NULL;
}

void
node_crash(struct node *node)
{
    struct sim *sim = node->sim;
    bool silent = sim_chance(sim, sim->dead_permille);

    sim_trace(sim, "node %u ends%s", node->index, silent ? " silently" : "");
    sim->counts.boots++;
    for (size_t i = 0; i < CONNS_MAX; i++) {
        struct conn *conn = &sim->conns[i];

        for (unsigned s = 0; s < 2 && conn->used; s++) {
            if (conn->side[s].node == node->index && !conn->side[s].closed &&
                conn->side[s].boot == node->boot &&
                (s == DIALER || conn->open)) {
                if (silent) {
                    conn->side[!s].dead = true;
                }
                if (s == DIALER && !conn->open) {
                    conn->side[ACCEPTER].closed = true;
                }
                if (s == ACCEPTER) {
                    conn_leave(sim, conn, s, false);
                } else {
                    conn->side[s].dead = true;
                }
            }
        }
    }
    node_free_parts(node);
    for (size_t i = 0; i < CONNS_MAX; i++) {
        struct conn *conn = &sim->conns[i];

        if (conn->used && conn->side[DIALER].node == node->index &&
            conn->side[DIALER].boot == node->boot &&
            !conn->side[DIALER].closed) {
            conn_leave(sim, conn, DIALER, false);
        }
    }
}

struct node *
node_new(struct sim *sim)
{
    struct node *node = mem_zalloc(sizeof(*node));

    SIM_CHECK(sim, sim->node_count < NODES_MAX, "raise NODES_MAX");
    node->sim = sim;
    node->index = sim->node_count;
    node->leader = NOBODY;
    node->limits = (struct primary_limits){ .timeout_ms = 3000,
                                            .ping_ms = 1000,
                                            .sync_delay_ms = 100,
                                            .backlog_bytes = 1 << 20,
                                            .replicas_max = 8 };
    node->options = (struct replica_options){ .timeout_ms = 3000,
                                              .group_max = GROUP_MAX,
                                              .user = "",
                                              .password = "",
                                              .announce_ip = "",
                                              .port = 7379 };
    sim->nodes[sim->node_count++] = node;
    return node;
}

void
node_free(struct node *node)
{
    node_free_parts(node);
    mem_free(node);
}
