/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A server of the simulator: the shipped backlog, primary, replica, history and
 * journal (without files), around data of a toy: some registers, and commands
 * of which no two give the same result in another order. It does with the
 * hooks what a real server does, at random paces, and it can fail as one can.
 */
#pragma once

#include "sim.h"

#include "persist/group.h"
#include "persist/journal.h"
#include "persist/journal_tap.h"
#include "repl/backlog.h"
#include "repl/primary.h"
#include "repl/primary_sync.h"
#include "repl/replica.h"
#include "repl/wire.h"

enum {
    REGISTERS = 32,
    DISKS_MAX = 8,
    WORDS_MAX = 8,
    GROUP_MAX = 1 << 20,
    NOBODY = -1
};

/* What a crash leaves: the state at the end of some group. */
struct disk {
    struct history history;
    uint64_t position, sequence;
    uint64_t registers[REGISTERS];
};

struct child {
    uint64_t generation; /* of events about it */
    bool runs, paused, on_its_way;
    struct buf bytes;
    size_t at, fails_at;
};

struct load {
    uint64_t generation;
    bool on;
    struct wire_answer answer;
    struct buf bytes;
};

struct node {
    struct sim *sim;
    unsigned index;
    bool up;
    uint64_t boot;
    char run_id[HISTORY_ID_CHARS + 1];
    int leader; /* whom it follows, or NOBODY: a primary */
    uint64_t epoch;
    const char *password;       /* that it wants */
    const char *other_password; /* that it sends */

    struct history history;
    uint64_t key;
    uint64_t position, sequence; /* behind the last closed group */
    uint64_t open_bytes;         /* of the open one */
    uint64_t registers[REGISTERS];
    bool absent; /* dropped to make room for what is being loaded */
    /* A primary since its start, with what a disk had: nobody has said since
     * then who leads. `ended`: the history of that data. */
    bool in_doubt;
    struct history_past ended;

    struct journal *journal;
    struct backlog *backlog;
    struct primary *primary;
    struct replica *replica;
    struct primary_limits limits;
    struct replica_options options;
    bool flush_due;
    uint64_t released;
    struct child child;
    struct load load;
    struct disk disks[DISKS_MAX];
    unsigned disk_count;
    unsigned disks_seen;

    /* What may go wrong, permille of the times that it can. */
    unsigned later_permille, child_fails_permille, drops_first_permille;
    uint64_t release_lag_max_ms; /* 0: everything is released */
    size_t snapshot_padding;
    uint64_t chain;   /* goes up whenever the servers above it change */
    bool was_flipped; /* a bit of what was sent to it */
};

/* For tests that choose where a connection ends: it was made; and it goes on
 * with the log from this position. */
static void (*node_dialled)(struct node *node, struct conn *conn);
static void (*node_continued)(struct node *node, struct conn *conn,
                              uint64_t from);

static inline struct node *
node_at(struct sim *sim, uint64_t index, uint64_t boot)
{
    struct node *node = sim->nodes[index];

    return node->up && node->boot == boot ? node : NULL;
}

static inline uint64_t
node_digest(const struct node *node)
{
    uint64_t digest = 1;

    for (size_t i = 0; i < REGISTERS; i++) {
        digest = sim_mix(digest ^ node->registers[i]);
    }
    return digest;
}

/* ---- RESP, as far as it is needed here ----------------------------------- */

static inline bool
read_count(struct slice data, size_t *at, char kind, size_t *ret_count)
{
    size_t i = *at;
    size_t count = 0;

    if (i >= data.len || data.data[i] != kind) {
        return false;
    }
    for (i++; i < data.len && data.data[i] != '\r'; i++) {
        count = count * 10 + (size_t)(data.data[i] - '0');
    }
    if (i + 2 > data.len || count > data.len) {
        return false;
    }
    *at = i + 2;
    *ret_count = count;
    return true;
}

/* Bytes of the command at the begin; 0: not all of it is there. */
static inline size_t
read_command(struct slice data, struct slice *argv, size_t *ret_argc)
{
    size_t at = 0;
    size_t argc;

    if (!read_count(data, &at, '*', &argc) || argc < 1 || argc > WORDS_MAX) {
        return 0;
    }
    for (size_t i = 0; i < argc; i++) {
        size_t len;

        if (!read_count(data, &at, '$', &len) || data.len - at < len + 2) {
            return 0;
        }
        argv[i] = (struct slice){ data.data + at, len };
        at += len + 2;
    }
    *ret_argc = argc;
    return at;
}

static inline uint64_t
read_number(struct slice text)
{
    uint64_t value = 0;

    (void)slice_to_u64(text, &value);
    return value;
}

/* ---- the log ------------------------------------------------------------- */

static inline void node_flush_soon(struct node *node);

static inline void
keep_on_disk(struct node *node)
{
    struct disk *disk = &node->disks[node->disks_seen++ % DISKS_MAX];

    disk->history = node->history;
    disk->position = node->position;
    disk->sequence = node->sequence;
    memcpy(disk->registers, node->registers, sizeof(disk->registers));
    if (node->disk_count < DISKS_MAX) {
        node->disk_count++;
    }
}

/* At the end of each group, on whoever has it: it is what this place means. */
static inline void
check_place(struct node *node)
{
    if (!node->absent) {
        truth_meets(node->sim, node->history.id, node->position,
                    node_digest(node), node->leader == NOBODY);
    }
}

static inline void
tap_begin(void *ctx, uint64_t position, uint64_t sequence)
{
    struct node *node = ctx;

    node->position = position;
    node->sequence = sequence;
    node->open_bytes = 0;
    backlog_begin(node->backlog, position);
}

static inline void
tap_text(void *ctx, struct slice bytes)
{
    struct node *node = ctx;
    struct journal_tap tap = backlog_tap(node->backlog);

    node->open_bytes += bytes.len;
    tap.text(tap.ctx, bytes);
}

static inline void
tap_close(void *ctx, uint64_t sequence, const char *seal)
{
    struct node *node = ctx;
    struct journal_tap tap = backlog_tap(node->backlog);

    tap.close(tap.ctx, sequence, seal);
    node->position += node->open_bytes + GROUP_SEAL_BYTES;
    node->open_bytes = 0;
    node->sequence = sequence;
    node->sim->counts.groups++;
    check_place(node);
    if (sim_chance(node->sim, 500)) {
        keep_on_disk(node);
    }
}

/* Threads are not made for each of a thousand worlds. */
static struct journal *journal_pool[NODES_MAX];
static size_t journal_pool_count;

static inline struct journal *
take_journal(struct node *node, uint64_t position, uint64_t sequence)
{
    static const struct journal_hooks none;
    struct journal_tap tap = { tap_begin, tap_text, tap_close, node };
    struct journal *journal = journal_pool_count > 0
                                  ? journal_pool[--journal_pool_count]
                                  : journal_new(&none);

    journal_set_tap(journal, &tap, &position, &sequence);
    return journal;
}

static inline void
give_journal(struct journal *journal)
{
    uint64_t position = 0;
    uint64_t sequence = 0;

    journal_set_tap(journal, NULL, &position, &sequence);
    journal_pool[journal_pool_count++] = journal;
}

static inline void
append(struct node *node, const struct slice *argv, size_t argc)
{
    static struct stage stage;

    SIM_CHECK(node->sim, stage_open(&stage, stage_effect_bytes(argv, argc)),
              "no memory for an effect");
    stage_add(&stage, 0, argv, argc);
    sim_may_fail(node->sim);
    (void)journal_append(node->journal, stage_close(&stage, false));
    (void)sim_failed(node->sim);
    node_flush_soon(node);
}

static inline void
note_history(struct node *node, const char *id)
{
    history_go_on(&node->history, id, node->position);
    primary_set_history(node->primary, &node->history, node->key);
}

/* What a command does, on the primary and when it is obeyed. */
static inline void
execute(struct node *node, const struct slice *argv, size_t argc)
{
    uint64_t *at = NULL;
    uint64_t value = 0;

    if (argc == 4) {
        at = &node->registers[read_number(argv[1]) % REGISTERS];
        value = read_number(argv[2]);
    }
    if (argc == 4 && slice_equal(argv[0], slice_lit("SET"))) {
        *at = value;
    } else if (argc == 4 && slice_equal(argv[0], slice_lit("MIX"))) {
        *at = sim_mix(*at) ^ value;
    } else if (argc == 1 && slice_equal(argv[0], slice_lit("FLUSHALL"))) {
        memset(node->registers, 0, sizeof(node->registers));
    } else if (argc == 3 && slice_equal(argv[1], slice_lit("HISTORY"))) {
        char id[HISTORY_ID_CHARS + 1] = "";

        memcpy(id, argv[2].data, HISTORY_ID_CHARS);
        note_history(node, id);
    } else {
        SIM_CHECK(node->sim, slice_equal(argv[0], slice_lit("SELECT")),
                  "an effect that means nothing");
    }
}

static inline void
node_write(struct node *node, size_t padding_max)
{
    static char padding[65536];
    struct sim *sim = node->sim;
    char at[24];
    char value[24];
    struct slice argv[4] = { slice_lit("MIX") };
    size_t argc = 4;

    if (sim_chance(sim, 20)) {
        argv[0] = slice_lit("FLUSHALL");
        argc = 1;
    } else if (sim_chance(sim, 300)) {
        argv[0] = slice_lit("SET");
    }
    (void)snprintf(at, sizeof(at), "%" PRIu64, sim_below(sim, REGISTERS));
    (void)snprintf(value, sizeof(value), "%" PRIu64, sim_random(sim));
    argv[1] = slice_of(at);
    argv[2] = slice_of(value);
    argv[3] = (struct slice){ padding, (size_t)sim_below(sim, padding_max) };
    if (argv[3].len > 4) {
        memcpy(padding, "\n#XX", 4); /* no seal, though it begins like one */
    }
    append(node, argv, argc);
    execute(node, argv, argc);
}

/* ---- what goes out ------------------------------------------------------- */

static inline void node_follow(struct node *node, int leader, bool failover);
static inline void node_promote(struct node *node);

/* After it ran out of memory for its backlog. */
static inline void
repair(struct node *node)
{
    if (backlog_is_broken(node->backlog)) {
        (void)journal_close_group(node->journal);
        primary_drop_all(node->primary, "there was no memory");
        backlog_begin(node->backlog, node->position);
    }
}

static inline void
stream(struct node *node)
{
    uint64_t released = node->leader == NOBODY ? node->released : UINT64_MAX;
    bool more;

    repair(node);
    sim_may_fail(node->sim);
    (void)backlog_seal(node->backlog, node->key, node->sim->now_ms);
    more = primary_stream(node->primary, released, node->sim->now_ms);
    replica_disk_moved(node->replica, node->sim->now_ms);
    (void)sim_failed(node->sim);
    if (more) {
        node_flush_soon(node);
    }
}

static inline void
on_released(struct sim *sim, uint64_t index, uint64_t boot)
{
    struct node *node = node_at(sim, index, boot);

    if (node != NULL &&
        !sim_stands_still(sim, index, on_released, index, boot)) {
        node->released =
            node->release_lag_max_ms > 0 ? node->position : UINT64_MAX;
        stream(node);
    }
}

static inline void
on_flush(struct sim *sim, uint64_t index, uint64_t boot)
{
    struct node *node = node_at(sim, index, boot);

    if (node != NULL && !sim_stands_still(sim, index, on_flush, index, boot)) {
        node->flush_due = false;
        (void)journal_close_group(node->journal);
        stream(node);
        if (node->release_lag_max_ms > 0) {
            sim_at(sim, 1 + sim_below(sim, node->release_lag_max_ms),
                   on_released, index, boot);
        }
    }
}

static inline void
node_flush_soon(struct node *node)
{
    struct sim *sim = node->sim;

    if (!node->flush_due) {
        node->flush_due = true;
        sim_at(sim, sim_below(sim, 3), on_flush, node->index, node->boot);
    }
}

/* ---- the toy's snapshot -------------------------------------------------- */

/* history, position, sequence, registers, as much padding as it likes, and
 * behind it a sum of it all. */
enum { SNAPSHOT_HEAD = HISTORY_ID_CHARS + 16 };

static inline uint64_t
sum_of(struct slice data)
{
    uint64_t sum = data.len;

    for (size_t i = 0; i + 8 <= data.len; i += 8) {
        sum = sim_mix(sum ^ slice_load64(data.data + i));
    }
    return sum;
}

static inline void
write_snapshot(struct node *node, struct buf *out)
{
    uint64_t sum;
    char *to;

    buf_append(out, node->history.id, HISTORY_ID_CHARS);
    buf_append(out, &node->position, 8);
    buf_append(out, &node->sequence, 8);
    buf_append(out, node->registers, sizeof(node->registers));
    to = buf_reserve(out, node->snapshot_padding + 8);
    memset(to, 'x', node->snapshot_padding);
    out->len += node->snapshot_padding;
    sum = sum_of(buf_slice(out));
    buf_append(out, &sum, 8);
}

static inline const char *
adopt(struct node *node)
{
    const struct wire_answer *answer = &node->load.answer;
    struct slice data = buf_slice(&node->load.bytes);

    if (node->load.bytes.failed) {
        return "there is no memory for it";
    }
    if (data.len < SNAPSHOT_HEAD + sizeof(node->registers) + 8 ||
        data.len % 8 != 0) {
        return "the snapshot is torn";
    }
    data.len -= 8;
    if (sum_of(data) != slice_load64(data.data + data.len)) {
        return "the snapshot is damaged";
    }
    if (memcmp(data.data, answer->history, HISTORY_ID_CHARS) != 0 ||
        slice_load64(data.data + HISTORY_ID_CHARS) != answer->position ||
        slice_load64(data.data + HISTORY_ID_CHARS + 8) != answer->sequence) {
        return "the snapshot is of another state than was said";
    }
    primary_drop_all(node->primary, "the data was replaced");
    memcpy(node->registers, data.data + SNAPSHOT_HEAD, sizeof(node->registers));
    node->absent = false;
    history_begin(&node->history, answer->history);
    journal_move(node->journal, answer->position, answer->sequence);
    primary_set_history(node->primary, &node->history, node->key);
    check_place(node);
    keep_on_disk(node);
    node->sim->counts.loads++;
    return NULL;
}

/* ---- hooks of its replica ------------------------------------------------ */

static inline struct conn *
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

static inline void
replica_dial(void *ctx, uint64_t number, const char *host, unsigned port,
             uint64_t timeout_ms)
{
    struct node *node = ctx;
    struct conn *conn = conn_dial(node->sim, node->index, port);

    (void)timeout_ms; /* who dials looks at the time, too */
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

/* What it claims here, it has to have. */
static inline void
note_ack(struct node *node, struct conn *conn, struct slice bytes)
{
    struct slice argv[WORDS_MAX];
    size_t argc = 0;
    uint64_t position;
    uint64_t synced;
    uint64_t digest;

    if (read_command(bytes, argv, &argc) != bytes.len ||
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

static inline bool
replica_send(void *ctx, uint64_t number, struct slice bytes)
{
    struct node *node = ctx;
    struct conn *conn = link_of(node, number);

    SIM_CHECK(node->sim, conn != NULL, "sent to no link");
    if (conn->acks_sent - conn->acks_heard == ACKS_MAX) {
        return false; /* the primary takes too little */
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

static inline void
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

static inline void
replica_pause(void *ctx, uint64_t number, bool paused)
{
    struct node *node = ctx;
    struct conn *conn = link_of(node, number);

    SIM_CHECK(node->sim, conn != NULL, "paused no link");
    conn_pause(node->sim, conn, DIALER, paused);
}

static inline void
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
    if (node->disk_count > 0) {
        ret_place->synced =
            node->disks[(node->disks_seen - 1) % DISKS_MAX].position;
    }
}

static inline void
on_go_on(struct sim *sim, uint64_t index, uint64_t boot)
{
    struct node *node = node_at(sim, index, boot);

    if (node != NULL && !sim_stands_still(sim, index, on_go_on, index, boot)) {
        replica_go_on(node->replica, sim->now_ms);
    }
}

static inline bool
holds_up(struct node *node)
{
    struct sim *sim = node->sim;

    if (!sim_chance(sim, node->later_permille)) {
        return false;
    }
    sim_at(sim, sim_below(sim, 50), on_go_on, node->index, node->boot);
    return true;
}

static inline enum replica_applied
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
        size_t bytes = read_command(rest, argv, &argc);

        SIM_CHECK(node->sim, bytes > 0, "a group that is none");
        execute(node, argv, argc);
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

static inline bool
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

/* What came is found to be bad before all of it is there. */
static inline void
on_load_failed(struct sim *sim, uint64_t index, uint64_t generation)
{
    struct node *node = sim->nodes[index];

    if (node->up && node->load.on && node->load.generation == generation) {
        node->load.on = false;
        replica_loaded(node->replica, false, "it is no good", sim->now_ms);
    }
}

static inline bool
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

static inline void
on_loaded(struct sim *sim, uint64_t index, uint64_t generation)
{
    struct node *node = sim->nodes[index];
    const char *reason;

    if (!node->up || !node->load.on || node->load.generation != generation ||
        sim_stands_still(sim, index, on_loaded, index, generation)) {
        return;
    }
    reason = adopt(node);
    sim_trace(sim, "node %u %s", node->index,
              reason != NULL ? reason : "loaded");
    node->load.on = false;
    buf_reset(&node->load.bytes, 0);
    replica_loaded(node->replica, reason == NULL, reason, sim->now_ms);
}

static inline void
replica_load_end(void *ctx)
{
    struct node *node = ctx;
    struct sim *sim = node->sim;

    SIM_CHECK(sim, node->load.on, "the end of no load");
    sim_at(sim, sim_below(sim, 300), on_loaded, node->index,
           node->load.generation);
}

static inline void
replica_load_cancel(void *ctx)
{
    struct node *node = ctx;

    SIM_CHECK(node->sim, node->load.on, "cancels no load");
    node->load.on = false;
    buf_reset(&node->load.bytes, 0);
}

/* What is kept has seals of another key then. */
static inline void
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

/* Whoever follows has to hear of it, and so has who was told and has not asked
 * to follow yet. */
static inline void
change_chain(struct node *node, const char *why)
{
    node->chain++;
    primary_drop_all(node->primary, why);
}

static inline void
replica_chained(void *ctx)
{
    change_chain(ctx, "the chain above it has changed");
}

/* ---- hooks of its primary ------------------------------------------------ */

static inline struct conn *
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

/* Nobody who has what this primary has lost, and says so, is told to throw it
 * away. */
static inline void
check_full_sync(const struct node *node, const struct conn *conn)
{
    SIM_CHECK(node->sim,
              !node->in_doubt || strcmp(conn->named, node->ended.id) != 0 ||
                  conn->from <= node->ended.until,
              "node %u is to throw away what node %u has lost behind %" PRIu64,
              conn->side[DIALER].node, node->index, node->ended.until);
}

static inline bool
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

static inline size_t
primary_unsent(void *ctx, uint64_t id)
{
    return side_unsent(&client_of(ctx, id)->side[DIALER]);
}

static inline void
primary_dropped(void *ctx, uint64_t id, const char *reason)
{
    struct node *node = ctx;

    sim_trace(node->sim, "node %u drops a replica: %s", node->index, reason);
    conn_leave(node->sim, client_of(node, id), ACCEPTER,
               sim_chance(node->sim, 500));
}

static inline void on_child(struct sim *sim, uint64_t index,
                            uint64_t generation);

static inline void
child_moves(struct node *node)
{
    struct sim *sim = node->sim;

    if (node->child.runs && !node->child.paused && !node->child.on_its_way) {
        node->child.on_its_way = true;
        sim_at(sim, sim_below(sim, 4), on_child, node->index,
               node->child.generation);
    }
}

/* Some bytes of the snapshot come through the pipe, or its end does. */
static inline void
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

static inline void
on_fork(struct sim *sim, uint64_t index, uint64_t generation)
{
    struct node *node = sim->nodes[index];
    struct child *child = &node->child;
    struct primary_sync sync = { 0 };
    bool fails = sim_chance(sim, node->child_fails_permille);

    if (!node->up || child->generation != generation ||
        sim_stands_still(sim, index, on_fork, index, generation)) {
        return;
    }
    if (node->absent || (fails && sim_chance(sim, 300))) {
        primary_sync_ended(node->primary, false, sim->now_ms);
        return;
    }
    (void)journal_close_group(node->journal);
    buf_reset(&child->bytes, 0);
    write_snapshot(node, &child->bytes);
    child->runs = true;
    child->paused = child->on_its_way = false;
    child->at = 0;
    child->fails_at =
        fails ? (size_t)sim_below(sim, child->bytes.len) : SIZE_MAX;
    sync.position = node->position;
    sync.sequence = node->sequence;
    sync.bytes = child->bytes.len;
    memcpy(sync.history, node->history.id, sizeof(sync.history));
    primary_sync_began(node->primary, &sync, sim->now_ms);
    if (child->generation == generation) {
        child_moves(node);
    }
}

static inline void
primary_ask_sync(void *ctx)
{
    struct node *node = ctx;
    struct sim *sim = node->sim;

    SIM_CHECK(sim, !node->child.runs, "asked for while one runs");
    node->child.generation++;
    sim_at(sim, sim_below(sim, 300), on_fork, node->index,
           node->child.generation);
}

static inline void
primary_cancel_sync(void *ctx)
{
    struct node *node = ctx;

    node->child.generation++;
    node->child.runs = false;
}

static inline void
primary_pause_sync(void *ctx, bool paused)
{
    struct node *node = ctx;

    node->child.paused = paused;
    child_moves(node);
}

static inline void
primary_heard_ack(void *ctx)
{
    (void)ctx;
}

/* ---- what clients of it say ---------------------------------------------- */

static inline void
answer(struct node *node, struct conn *conn, const char *text)
{
    (void)conn_send(node->sim, conn, DIALER, slice_of(text));
}

static inline void
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

/* Why it cannot be followed at present; NULL: it can. */
static inline const char *
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

static inline void
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
        hello.position = read_number(argv[2]);
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
    /* It may ask for the place of a snapshot, where a group was closed. */
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

/* The data that this place is, in the node's view of it. */
static inline bool
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

/* Whoever is told this counts on it: the data was there when it was said, and
 * was what the one who hears it takes it for. */
static inline void
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

/* What WAIT counts for this position; each that is counted has it. */
static inline size_t
count_acked(struct node *node, uint64_t position)
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

static inline bool
is_known(const struct node *node, const struct side *side)
{
    return node->password == NULL || side->authenticated;
}

static inline void
obey(struct node *node, struct conn *conn, const struct slice *argv,
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

/* ---- what the network tells ---------------------------------------------- */

static bool
node_is_there(const struct sim *sim, const struct side *side)
{
    const struct node *node = sim->nodes[side->node];

    return node->up && node->boot == side->boot;
}

static bool
node_accepts(const struct sim *sim, unsigned node)
{
    return sim->nodes[node]->up;
}

static void
node_opened(struct sim *sim, struct conn *conn)
{
    const struct side *side = &conn->side[DIALER];
    struct node *node = sim->nodes[side->node];

    conn->side[ACCEPTER].boot = sim->nodes[conn->side[ACCEPTER].node]->boot;
    replica_opened(node->replica, side->number, sim->now_ms);
}

static void
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
        size_t command = read_command(rest, argv, &argc);

        if (command == 0) {
            break;
        }
        at += command;
        obey(node, conn, argv, argc);
        if (conn_find(sim, id) != conn || side->closed) {
            return;
        }
    }
    buf_consume(&side->input, at);
}

static void
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

static void
node_drained(struct sim *sim, struct conn *conn)
{
    const struct side *side = &conn->side[ACCEPTER];

    if (!side->closed && node_is_there(sim, side)) {
        primary_drained(sim->nodes[side->node]->primary, conn_id(sim, conn),
                        sim->now_ms);
    }
}

/* ---- life ---------------------------------------------------------------- */

/* The most that a primary may hold: what it keeps, what it owes, and a few
 * blocks. */
static inline void
check_memory(struct node *node)
{
    const struct primary_limits *limits = &node->limits;
    uint64_t owed = limits->hard_bytes > limits->backlog_bytes
                        ? limits->hard_bytes
                        : limits->backlog_bytes;
    uint64_t bytes = backlog_bytes(node->backlog);
    bool looks = sim_chance(node->sim, 100);
    uint64_t sendable = backlog_sealed(node->backlog);

    /* And what cannot be sent yet. */
    sendable = sendable < node->released ? sendable : node->released;
    owed += node->position + node->open_bytes - sendable;
    SIM_CHECK(node->sim, bytes <= limits->backlog_bytes + owed + (1 << 20),
              "node %u keeps %" PRIu64 " bytes, from %" PRIu64
              " on, at %" PRIu64 ": more than %" PRIu64 " + %" PRIu64,
              node->index, bytes, backlog_first(node->backlog), node->position,
              limits->backlog_bytes, owed);
    for (size_t i = 0; i < CONNS_MAX && looks; i++) {
        const struct conn *conn = &node->sim->conns[i];

        /* A turn's worth, and the block that reached it. */
        SIM_CHECK(node->sim,
                  !conn->used || conn->side[ACCEPTER].node != node->index ||
                      conn->side[ACCEPTER].closed ||
                      side_unsent(&conn->side[DIALER]) <=
                          owed + (1 << 20) + (128 << 10),
                  "node %u has too much unsent", node->index);
    }
}

static inline void
on_tick(struct sim *sim, uint64_t index, uint64_t boot)
{
    struct node *node = node_at(sim, index, boot);

    if (node == NULL || sim_stands_still(sim, index, on_tick, index, boot)) {
        return;
    }
    repair(node);
    primary_tick(node->primary, sim->now_ms);
    replica_tick(node->replica, sim->now_ms);
    check_memory(node);
    sim_at(sim, 100, on_tick, index, boot);
}

/* It was said who leads. */
static inline void
node_end_doubt(struct node *node)
{
    node->in_doubt = false;
    primary_set_ended(node->primary, NULL, 0);
}

static inline void
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
    change_chain(node, "it follows another one now");
    replica_follow(node->replica, &target, node->sim->now_ms);
}

/* A new history goes on from here, if there is something to go on from. */
static inline void
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
        check_place(node);
    } else {
        note_history(node, id);
    }
    append(node, argv, 3);
}

/* Only what its disk has is for others. */
static inline void
hold_back(struct node *node)
{
    node->released = node->release_lag_max_ms > 0 ? node->position : UINT64_MAX;
}

static inline void
node_promote(struct node *node)
{
    sim_trace(node->sim, "node %u is a primary at %" PRIu64, node->index,
              node->position);
    node->sim->counts.promotions++;
    replica_stop(node->replica);
    node_end_doubt(node);
    change_chain(node, "it is a primary now");
    node->leader = NOBODY;
    hold_back(node);
    new_history(node);
}

static inline void
node_make_parts(struct node *node)
{
    const struct replica_hooks below = {
        replica_dial,
        replica_send,
        replica_close,
        replica_pause,
        replica_where,
        replica_apply,
        replica_load_begin,
        replica_load_bytes,
        replica_load_end,
        replica_load_cancel,
        replica_key,
        replica_chained,
        node,
    };
    const struct primary_hooks above = {
        primary_send,        primary_unsent,
        primary_dropped,     primary_ask_sync,
        primary_cancel_sync, primary_pause_sync,
        primary_heard_ack,   node,
    };

    sim_id(node->sim, node->run_id);
    node->backlog = backlog_new();
    node->primary = primary_new(node->backlog, &above);
    node->replica = replica_new(node->run_id, &below);
    primary_set_limits(node->primary, &node->limits);
    replica_set_options(node->replica, &node->options);
}

/* From this state, or from nothing. */
static inline void
node_boot(struct node *node, const struct disk *disk)
{
    struct sim *sim = node->sim;
    char id[HISTORY_ID_CHARS + 1];

    node->up = true;
    node->boot++;
    node->flush_due = node->absent = node->in_doubt = false;
    node->load.on = node->child.runs = false;
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
    node->journal = take_journal(node, node->position, node->sequence);
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

static inline void
node_free_parts(struct node *node)
{
    node->up = false;
    if (node->replica == NULL) {
        return;
    }
    /* Its link is no more: no hook finds it. */
    replica_free(node->replica);
    primary_free(node->primary);
    give_journal(node->journal);
    backlog_free(node->backlog);
    buf_free(&node->child.bytes);
    buf_free(&node->load.bytes);
    node->replica = NULL;
}

/* Others learn of it at once, or never. */
static inline void
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

static inline struct node *
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

static inline void
node_free(struct node *node)
{
    node_free_parts(node);
    mem_free(node);
}
