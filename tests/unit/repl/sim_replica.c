/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_replica.h"

void (*node_dialled)(struct node *node, struct conn *conn);

static struct conn *
link_of(struct node *node, uint64_t number)
{
    for (size_t i = 0; i < CONNS_MAX; i++) {
        struct conn *conn = &node->sim->conns[i];

        if (conn->used && conn->side[DIALER].node == node->index &&
            conn->side[DIALER].boot == node->boot &&
            conn->side[DIALER].number == number && !conn->side[DIALER].closed) {
            return conn;
        }
    }
    return NULL;
}

static void
replica_dial(void *ctx, uint64_t number, const char *host, unsigned port,
             uint64_t timeout_ms)
{
    struct node *node = ctx;
    struct conn *conn = conn_dial(node->sim, node->index, port);

    (void)timeout_ms; /* the replica checks the time itself */
    assert_string_equal("node", host);
    conn->side[DIALER].boot = node->boot;
    conn->side[DIALER].number = number;
    if (node_dialled != NULL) {
        node_dialled(node, conn);
    }
    node->was_flipped = node->was_flipped ||
                        conn->side[DIALER].flip_at != UINT64_MAX ||
                        conn->side[ACCEPTER].flip_at != UINT64_MAX;
}

/* Checks an acknowledgement that is sent, and records it. */
static void
note_ack(struct node *node, struct conn *conn, struct slice bytes)
{
    struct slice argv[WORDS_MAX];
    size_t argc = 0;
    uint64_t position;
    uint64_t synced;
    uint64_t digest;

    if (sim_read_command(bytes, argv, &argc) != bytes.len ||
        !wire_parse_ack(argv, argc, &position, &synced) || position == 0) {
        return;
    }
    SIM_CHECK(node->sim, position == node->position && node->open_bytes == 0,
              "node %u acknowledges %" PRIu64 " at %" PRIu64, node->index,
              position, node->position);
    SIM_CHECK(node->sim,
              truth_find(node->sim, node->history.id, position, &digest) ||
                  node->history.past[0].until == position,
              "node %u acknowledges what nobody had", node->index);
    conn->acks[conn->acks_sent % ACKS_MAX].position = position;
    conn->acks[conn->acks_sent % ACKS_MAX].digest = node_digest(node);
    conn->acks_sent++;
    node->sim->counts.acks++;
}

static bool
replica_send(void *ctx, uint64_t number, struct slice bytes)
{
    struct node *node = ctx;
    struct conn *conn = link_of(node, number);

    SIM_CHECK(node->sim, conn != NULL, "sent to no link");
    if (conn->acks_sent - conn->acks_heard == ACKS_MAX) {
        return false; /* as if the primary read too little */
    }
    if (bytes.len > 20 &&
        memcmp(bytes.data, "*3\r\n$5\r\nPSYNC\r\n$1\r\n?",
               sizeof("*3\r\n$5\r\nPSYNC\r\n$1\r\n?") - 1) == 0) {
        node->sim->counts.doubts += !node->absent;
        SIM_CHECK(node->sim, node->absent || node->was_flipped,
                  "node %u wants everything without a reason", node->index);
    }
    note_ack(node, conn, bytes);
    return conn_send(node->sim, conn, ACCEPTER, bytes);
}

static void
replica_close(void *ctx, uint64_t number)
{
    struct node *node = ctx;
    struct conn *conn = link_of(node, number);

    SIM_CHECK(node->sim, conn != NULL, "closed no link");
    if (!conn->open) {
        conn->side[ACCEPTER].closed = true;
    }
    conn_leave(node->sim, conn, DIALER, sim_chance(node->sim, 500));
}

static void
replica_pause(void *ctx, uint64_t number, bool paused)
{
    struct node *node = ctx;
    struct conn *conn = link_of(node, number);

    SIM_CHECK(node->sim, conn != NULL, "paused no link");
    conn_pause(node->sim, conn, DIALER, paused);
}

static void
replica_where(void *ctx, struct replica_place *ret_place)
{
    struct node *node = ctx;

    *ret_place = (struct replica_place){ .position = node->position,
                                         .sequence = node->sequence };
    SIM_CHECK(node->sim, node->open_bytes == 0, "asked within a group");
    if (!node->absent) {
        memcpy(ret_place->history, node->history.id,
               sizeof(ret_place->history));
    }
    if (node->disk_count > 0 && node->holds == 0) {
        ret_place->synced =
            node->disks[(node->disks_seen - 1) % DISKS_MAX].position;
    }
}

static void
on_go_on(struct sim *sim, uint64_t index, uint64_t boot)
{
    struct node *node = node_at(sim, index, boot);

    if (node != NULL && !sim_stands_still(sim, index, on_go_on, index, boot)) {
        replica_go_on(node->replica, sim->now_ms);
    }
}

static bool
holds_up(struct node *node)
{
    struct sim *sim = node->sim;

    if (!sim_chance(sim, node->later_permille)) {
        return false;
    }
    sim_at(sim, sim_below(sim, 50), on_go_on, node->index, node->boot);
    return true;
}

static enum replica_applied
replica_apply(void *ctx, const struct wire_piece *group, char *ret_reason,
              size_t reason_size)
{
    struct node *node = ctx;
    struct slice rest = group->value;
    uint64_t position;

    if (holds_up(node)) {
        return REPLICA_LATER;
    }
    (void)ret_reason;
    (void)reason_size;
    while (rest.len > 0) {
        struct slice argv[WORDS_MAX];
        size_t argc = 0;
        size_t bytes = sim_read_command(rest, argv, &argc);

        SIM_CHECK(node->sim, bytes > 0, "a group that is none");
        node_execute(node, argv, argc);
        rest.data += bytes;
        rest.len -= bytes;
    }
    position = journal_relay(node->journal, group->value, group->sequence,
                             group->seal);
    SIM_CHECK(node->sim, position == node->position,
              "the journal of node %u is at %" PRIu64 ", not at %" PRIu64,
              node->index, position, node->position);
    node_flush_soon(node);
    return REPLICA_APPLIED;
}

static bool
replica_load_begin(void *ctx, const struct wire_answer *answer,
                   char *ret_reason, size_t reason_size)
{
    struct node *node = ctx;

    SIM_CHECK(node->sim, !node->load.on, "two loads at a time");
    if (sim_chance(node->sim, node->child_fails_permille)) {
        (void)snprintf(ret_reason, reason_size, "no thread");
        return false;
    }
    sim_trace(node->sim, "node %u loads", node->index);
    node->load.on = true;
    node->load.generation++;
    node->load.answer = *answer;
    buf_reset(&node->load.bytes, 0);
    if (sim_chance(node->sim, node->drops_first_permille)) {
        node->absent = true;
        primary_drop_all(node->primary, "the data is being replaced");
        memset(node->registers, 0, sizeof(node->registers));
    }
    return true;
}

/* Fails a load before its end. */
static void
on_load_failed(struct sim *sim, uint64_t index, uint64_t generation)
{
    struct node *node = sim->nodes[index];

    if (node->up && node->load.on && node->load.generation == generation) {
        node->load.on = false;
        replica_loaded(node->replica, false, "it is no good", sim->now_ms);
    }
}

static bool
replica_load_bytes(void *ctx, struct slice bytes)
{
    struct node *node = ctx;

    SIM_CHECK(node->sim, node->load.on, "bytes of no load");
    buf_append_slice(&node->load.bytes, bytes);
    if (sim_chance(node->sim, node->child_fails_permille / 8)) {
        sim_at(node->sim, 1, on_load_failed, node->index,
               node->load.generation);
    }
    return !holds_up(node);
}

/* The link is up when the disk has the data. What comes in between, a
 * promotion, another primary or a crash, meets a server whose disk has other
 * data. */
static void
on_stored(struct sim *sim, uint64_t index, uint64_t number)
{
    struct node *node = sim->nodes[index];

    if (!node->up || node->holds != number ||
        sim_stands_still(sim, index, on_stored, index, number)) {
        return;
    }
    node->holds = 0;
    node_keep_on_disk(node);
    if (node->load.stores) {
        node->load.stores = false;
        replica_loaded(node->replica, true, NULL, sim->now_ms);
    }
}

static void
on_loaded(struct sim *sim, uint64_t index, uint64_t generation)
{
    struct node *node = sim->nodes[index];
    const char *reason;

    if (!node->up || !node->load.on || node->load.generation != generation ||
        sim_stands_still(sim, index, on_loaded, index, generation)) {
        return;
    }
    reason = node_adopt(node);
    sim_trace(sim, "node %u %s", node->index,
              reason != NULL ? reason : "loaded");
    node->load.on = false;
    buf_reset(&node->load.bytes, 0);
    if (reason != NULL) {
        replica_loaded(node->replica, false, reason, sim->now_ms);
        return;
    }
    node->load.stores = true;
    sim_at(sim, sim_below(sim, 300), on_stored, node->index, node->holds);
}

static void
replica_load_end(void *ctx)
{
    struct node *node = ctx;
    struct sim *sim = node->sim;

    SIM_CHECK(sim, node->load.on, "the end of no load");
    sim_at(sim, sim_below(sim, 300), on_loaded, node->index,
           node->load.generation);
}

static void
replica_load_cancel(void *ctx)
{
    struct node *node = ctx;

    SIM_CHECK(node->sim, node->load.on || node->load.stores, "cancels no load");
    node->load.on = node->load.stores = false;
    buf_reset(&node->load.bytes, 0);
}

static void
replica_key(void *ctx, uint64_t key)
{
    struct node *node = ctx;
    bool other = key != node->key;

    node->key = key;
    primary_set_history(node->primary, &node->history, key);
    if (other) {
        primary_drop_all(node->primary, "the key has changed");
        backlog_begin(node->backlog, node->position);
    }
}

void
node_change_chain(struct node *node, const char *why)
{
    node->chain++;
    primary_drop_all(node->primary, why);
}

static void
replica_chained(void *ctx)
{
    node_change_chain(ctx, "the chain above it has changed");
}

const struct replica_hooks sim_replica_hooks = {
    .dial = replica_dial,
    .send = replica_send,
    .close = replica_close,
    .pause = replica_pause,
    .where = replica_where,
    .apply = replica_apply,
    .load_begin = replica_load_begin,
    .load_bytes = replica_load_bytes,
    .load_end = replica_load_end,
    .load_cancel = replica_load_cancel,
    .key = replica_key,
    .chained = replica_chained,
};
