/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_primary.h"

#include "sim_node.h"

void (*node_continued)(struct node *node, struct conn *conn, uint64_t from);

static struct conn *
client_of(struct node *node, uint64_t id)
{
    struct conn *conn = conn_find(node->sim, id);

    SIM_CHECK(node->sim,
              conn != NULL && conn->side[ACCEPTER].node == node->index &&
                  conn->side[ACCEPTER].boot == node->boot &&
                  !conn->side[ACCEPTER].closed,
              "no such replica");
    return conn;
}

/* A replica that names changes which this primary has lost must not get a full
 * synchronization. */
static void
check_full_sync(const struct node *node, const struct conn *conn)
{
    SIM_CHECK(node->sim,
              !node->in_doubt || strcmp(conn->named, node->ended.id) != 0 ||
                  conn->from <= node->ended.until,
              "node %u is to throw away what node %u has lost behind %" PRIu64,
              conn->side[DIALER].node, node->index, node->ended.until);
}

static bool
primary_send(void *ctx, uint64_t id, struct slice bytes)
{
    struct node *node = ctx;
    struct conn *conn = client_of(node, id);

    if (bytes.len > 9 && memcmp(bytes.data, "+CONTINUE", 9) == 0) {
        conn->continued++;
        conn->log_at = conn->side[DIALER].sent + bytes.len;
        node->sim->counts.partials++;
    } else if (bytes.len > 11 && memcmp(bytes.data, "+FULLRESYNC", 11) == 0) {
        conn->full++;
        node->sim->counts.fulls++;
        check_full_sync(node, conn);
    }
    return conn_send(node->sim, conn, DIALER, bytes);
}

static size_t
primary_unsent(void *ctx, uint64_t id)
{
    return side_unsent(&client_of(ctx, id)->side[DIALER]);
}

static void
primary_dropped(void *ctx, uint64_t id, const char *reason)
{
    struct node *node = ctx;

    sim_trace(node->sim, "node %u drops a replica: %s", node->index, reason);
    conn_leave(node->sim, client_of(node, id), ACCEPTER,
               sim_chance(node->sim, 500));
}

static void on_child(struct sim *sim, uint64_t index, uint64_t generation);

static void
child_moves(struct node *node)
{
    struct sim *sim = node->sim;

    if (node->child.runs && !node->child.paused && !node->child.on_its_way) {
        node->child.on_its_way = true;
        sim_at(sim, sim_below(sim, 4), on_child, node->index,
               node->child.generation);
    }
}

/* Delivers some bytes of the snapshot from the pipe, or its end. */
static void
on_child(struct sim *sim, uint64_t index, uint64_t generation)
{
    struct node *node = sim->nodes[index];
    struct child *child = &node->child;
    size_t len;

    if (!node->up || !child->runs || child->generation != generation ||
        sim_stands_still(sim, index, on_child, index, generation)) {
        return;
    }
    child->on_its_way = false;
    if (child->at >= child->fails_at || child->at == child->bytes.len) {
        child->runs = false;
        primary_sync_ended(node->primary, child->at < child->fails_at,
                           sim->now_ms);
        return;
    }
    len = 1 + (size_t)sim_below(sim, 8192);
    if (len > child->bytes.len - child->at) {
        len = child->bytes.len - child->at;
    }
    child->at += len;
    primary_sync_bytes(
        node->primary,
        (struct slice){ child->bytes.data + child->at - len, len },
        sim->now_ms);
    child_moves(node);
}

/* The snapshot is the state of this moment: later than it was announced. */
static void
on_reached(struct sim *sim, uint64_t index, uint64_t generation)
{
    struct node *node = sim->nodes[index];
    struct child *child = &node->child;
    bool fails = sim_chance(sim, node->child_fails_permille);

    if (!node->up || !child->runs || child->generation != generation ||
        sim_stands_still(sim, index, on_reached, index, generation)) {
        return;
    }
    if (node->absent || strcmp(child->history, node->history.id) != 0) {
        child->runs = false; /* a promotion cancels it */
        primary_sync_ended(node->primary, false, sim->now_ms);
        return;
    }
    (void)journal_close_group(node->journal);
    buf_reset(&child->bytes, 0);
    node_write_snapshot(node, &child->bytes);
    child->fails_at =
        fails ? (size_t)sim_below(sim, child->bytes.len) : SIZE_MAX;
    child->on_its_way = false;
    primary_sync_reached(node->primary, node->position);
    child_moves(node);
}

static void
on_begun(struct sim *sim, uint64_t index, uint64_t generation)
{
    struct node *node = sim->nodes[index];
    struct child *child = &node->child;
    struct primary_sync sync = { 0 };

    if (!node->up || child->generation != generation ||
        sim_stands_still(sim, index, on_begun, index, generation)) {
        return;
    }
    if (node->absent || sim_chance(sim, node->child_fails_permille / 3)) {
        primary_sync_ended(node->primary, false, sim->now_ms);
        return;
    }
    (void)journal_close_group(node->journal);
    child->runs = true;
    child->paused = false;
    child->on_its_way = true; /* no bytes before it has reached its position */
    child->at = 0;
    sync.position = node->position;
    sync.sequence = node->sequence;
    sync.bytes = 1;
    memcpy(sync.history, node->history.id, sizeof(sync.history));
    memcpy(child->history, node->history.id, sizeof(child->history));
    primary_sync_began(node->primary, &sync, sim->now_ms);
    if (child->generation == generation) {
        sim_at(sim, sim_below(sim, 200), on_reached, index, generation);
    }
}

static void
primary_ask_sync(void *ctx, const struct slot_set *slots)
{
    (void)slots;
    struct node *node = ctx;
    struct sim *sim = node->sim;

    SIM_CHECK(sim, !node->child.runs, "asked for while one runs");
    node->child.generation++;
    sim_at(sim, sim_below(sim, 300), on_begun, node->index,
           node->child.generation);
}

static void
primary_cancel_sync(void *ctx)
{
    struct node *node = ctx;

    node->child.generation++;
    node->child.runs = false;
}

static void
primary_pause_sync(void *ctx, bool paused)
{
    struct node *node = ctx;

    node->child.paused = paused;
    child_moves(node);
}

static void
primary_heard_ack(void *ctx)
{
    (void)ctx;
}

const struct primary_hooks sim_primary_hooks = {
    .send = primary_send,
    .unsent = primary_unsent,
    .drop = primary_dropped,
    .ask_sync = primary_ask_sync,
    .cancel_sync = primary_cancel_sync,
    .pause_sync = primary_pause_sync,
    .acked = primary_heard_ack,
};

/* ---- commands of its clients --------------------------------------------- */

static void
answer(struct node *node, struct conn *conn, const char *text)
{
    (void)conn_send(node->sim, conn, DIALER, slice_of(text));
}

static void
answer_hello(struct node *node, struct conn *conn, struct slice run_id)
{
    struct wire_hello hello = { .version = WIRE_VERSION };
    struct buf text = { 0 };

    conn->chain = node->chain;
    memcpy(conn->run_id, run_id.data, HISTORY_ID_CHARS);
    memcpy(hello.run_id, node->run_id, sizeof(hello.run_id));
    if (node->leader != NOBODY) {
        hello.chain_count = replica_chain(node->replica, hello.chain);
    }
    wire_write_hello(&text, &hello);
    (void)conn_send(node->sim, conn, DIALER, buf_slice(&text));
    buf_free(&text);
}

/* Returns why the server cannot be followed now, as an error reply; or NULL. */
static const char *
unfit(struct node *node)
{
    if (node->absent) {
        return "-LOADING the data is being replaced\r\n";
    }
    if (node->leader != NOBODY && !replica_is_connected(node->replica)) {
        return "-NOMASTERLINK it has no primary at present\r\n";
    }
    return NULL;
}

static void
obey_psync(struct node *node, struct conn *conn, const struct slice *argv,
           size_t argc)
{
    struct sim *sim = node->sim;
    struct primary_hello hello = { .id = conn_id(sim, conn) };
    uint64_t partials = conn->continued;
    uint64_t first = backlog_first(node->backlog);
    const char *words = conn->chain != node->chain
                            ? "-ERR the chain has changed, try again\r\n"
                            : unfit(node);
    bool could;

    memcpy(hello.run_id, conn->run_id, sizeof(hello.run_id));
    if (argv[1].len == HISTORY_ID_CHARS) {
        memcpy(hello.history, argv[1].data, HISTORY_ID_CHARS);
        hello.position = sim_read_number(argv[2]);
    }
    if (argc == 4 && node->leader != NOBODY && words == NULL &&
        !sim->no_takeover && hello.position == node->position) {
        node_promote(node);
    }
    if (words != NULL) {
        answer(node, conn, words);
        conn_leave(sim, conn, ACCEPTER, true);
        return;
    }
    /* The replica may ask for the position of a snapshot, where a group ends.
     */
    (void)backlog_seal(node->backlog, node->key, sim->now_ms);
    could = history_covers(&node->history, argv[1], hello.position) &&
            hello.position >= first &&
            hello.position <= backlog_sealed(node->backlog) &&
            primary_replicas(node->primary) < node->limits.replicas_max &&
            !backlog_is_broken(node->backlog);
    sim_trace(sim, "node %u asks node %u for %.8s:%" PRIu64 ": %s",
              conn->side[DIALER].node, node->index, hello.history,
              hello.position, could ? "continues" : "no");
    memcpy(conn->named, hello.history, sizeof(conn->named));
    conn->from = hello.position;
    sim_may_fail(sim);
    if (!primary_attach(node->primary, &hello, sim->now_ms)) {
        (void)sim_failed(sim);
        conn_leave(sim, conn, ACCEPTER, true);
        return;
    }
    if (sim_failed(sim)) {
        return;
    }
    SIM_CHECK(sim, !could || conn->continued > partials,
              "node %u could continue at node %u", conn->side[DIALER].node,
              node->index);
    if (node_continued != NULL && could) {
        node_continued(node, conn, hello.position);
    }
}

/* Finds the data of a position in the node's history. */
static bool
meaning_of(struct node *node, uint64_t position, uint64_t *ret_digest)
{
    const struct history *history = &node->history;

    if (truth_find(node->sim, history->id, position, ret_digest)) {
        return true;
    }
    for (size_t i = 0; i < HISTORY_PAST_MAX && history->past[i].id[0]; i++) {
        if (position <= history->past[i].until &&
            truth_find(node->sim, history->past[i].id, position, ret_digest)) {
            return true;
        }
    }
    return false;
}

/* Checks an acknowledgement: the replica had this position when it sent it,
 * with the data that the primary means by it. */
static void
obey_ack(struct node *node, struct conn *conn, uint64_t position,
         uint64_t synced)
{
    struct sim *sim = node->sim;
    uint64_t digest = 0;

    if (position > 0) {
        unsigned at = conn->acks_heard++ % ACKS_MAX;

        SIM_CHECK(sim, position == conn->acks[at].position,
                  "an acknowledgement that was not given");
        SIM_CHECK(sim,
                  node->leader != NOBODY || conn->full > 0 ||
                      position <= conn->from || position <= node->released,
                  "node %u got what was not released", conn->side[DIALER].node);
        SIM_CHECK(sim,
                  !meaning_of(node, position, &digest) ||
                      digest == conn->acks[at].digest,
                  "node %u counts on other data of node %u at %" PRIu64,
                  node->index, conn->side[DIALER].node, position);
    }
    primary_acked(node->primary, conn_id(sim, conn), position, synced,
                  sim->now_ms);
}

size_t
node_count_acked(struct node *node, uint64_t position)
{
    struct status_replica replicas[NODES_MAX * 2];
    struct status_figures figures = { 0 };
    size_t count =
        primary_describe(node->primary, &figures, replicas, NODES_MAX * 2);
    size_t counted = 0;

    for (size_t i = 0; i < count && i < NODES_MAX * 2; i++) {
        const struct conn *conn = conn_find(node->sim, replicas[i].id);
        const struct node *other;

        SIM_CHECK(node->sim, conn != NULL, "counts one that left");
        other = node->sim->nodes[conn->side[DIALER].node];
        if (replicas[i].state != STATUS_ONLINE ||
            replicas[i].acked < position) {
            continue;
        }
        counted++;
        SIM_CHECK(node->sim,
                  conn->side[DIALER].closed || !other->up ||
                      other->boot != conn->side[DIALER].boot ||
                      other->position >= position,
                  "node %u is counted for %" PRIu64 " and is at %" PRIu64,
                  other->index, position, other->position);
    }
    return counted;
}

static bool
is_known(const struct node *node, const struct side *side)
{
    return node->password == NULL || side->authenticated;
}

void
node_obey(struct node *node, struct conn *conn, const struct slice *argv,
          size_t argc)
{
    uint64_t position;
    uint64_t synced;
    struct side *side = &conn->side[ACCEPTER];

    if (slice_equal(argv[0], slice_lit("AUTH"))) {
        side->authenticated =
            node->password != NULL &&
            slice_equal(argv[argc - 1], slice_of(node->password));
        answer(node, conn,
               side->authenticated ? "+OK\r\n" : "-WRONGPASS no\r\n");
    } else if (wire_parse_ack(argv, argc, &position, &synced)) {
        obey_ack(node, conn, position, synced);
    } else if (!is_known(node, side)) {
        answer(node, conn, "-NOAUTH Authentication required.\r\n");
    } else if (argc >= 3 && slice_equal(argv[0], slice_lit("PSYNC"))) {
        obey_psync(node, conn, argv, argc);
    } else if (argc == 5 && slice_equal(argv[1], slice_lit("bloomery")) &&
               argv[4].len == HISTORY_ID_CHARS) {
        answer_hello(node, conn, argv[4]);
    } else {
        answer(node, conn, "+OK\r\n");
    }
}
