/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_data.h"

#include "sim_node.h"

struct node *
node_at(struct sim *sim, uint64_t index, uint64_t boot)
{
    struct node *node = sim->nodes[index];

    return node->up && node->boot == boot ? node : NULL;
}

uint64_t
node_digest(const struct node *node)
{
    uint64_t digest = 1;

    for (size_t i = 0; i < REGISTERS; i++) {
        digest = sim_mix(digest ^ node->registers[i]);
    }
    return digest;
}

/* ---- RESP, as far as it is needed here ----------------------------------- */

static bool
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

size_t
sim_read_command(struct slice data, struct slice *argv, size_t *ret_argc)
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

uint64_t
sim_read_number(struct slice text)
{
    uint64_t value = 0;

    (void)slice_to_u64(text, &value);
    return value;
}

/* ---- the log ------------------------------------------------------------- */

void
node_keep_on_disk(struct node *node)
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

void
node_check_place(struct node *node)
{
    if (!node->absent) {
        truth_meets(node->sim, node->history.id, node->position,
                    node_digest(node), node->leader == NOBODY);
    }
}

static void
tap_begin(void *ctx, uint64_t position, uint64_t sequence)
{
    struct node *node = ctx;

    node->position = position;
    node->sequence = sequence;
    node->open_bytes = 0;
    backlog_begin(node->backlog, position);
}

static void
tap_text(void *ctx, struct slice bytes)
{
    struct node *node = ctx;
    struct journal_tap tap = backlog_tap(node->backlog);

    node->open_bytes += bytes.len;
    tap.text(tap.ctx, bytes);
}

static void
tap_close(void *ctx, uint64_t sequence, const char *seal)
{
    struct node *node = ctx;
    struct journal_tap tap = backlog_tap(node->backlog);

    tap.close(tap.ctx, sequence, seal);
    node->position += node->open_bytes + GROUP_SEAL_BYTES;
    node->open_bytes = 0;
    node->sequence = sequence;
    node->sim->counts.groups++;
    node_check_place(node);
    if (node->holds == 0 && sim_chance(node->sim, 500)) {
        node_keep_on_disk(node);
    }
}

static struct journal *journal_pool[NODES_MAX];

static size_t journal_pool_count;

struct journal *
node_take_journal(struct node *node, uint64_t position, uint64_t sequence)
{
    static const struct journal_hooks none;
    struct journal_tap tap = { tap_begin, tap_text, tap_close, node };
    struct journal *journal = journal_pool_count > 0
                                  ? journal_pool[--journal_pool_count]
                                  : journal_new(&none);

    journal_set_tap(journal, JOURNAL_TAP_REPLICAS, &tap, &position, &sequence);
    return journal;
}

void
node_give_journal(struct journal *journal)
{
    uint64_t position = 0;
    uint64_t sequence = 0;

    journal_set_tap(journal, JOURNAL_TAP_REPLICAS, NULL, &position, &sequence);
    journal_pool[journal_pool_count++] = journal;
}

void
node_append(struct node *node, const struct slice *argv, size_t argc)
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

void
node_note_history(struct node *node, const char *id)
{
    history_go_on(&node->history, id, node->position);
    primary_set_history(node->primary, &node->history, node->key);
}

void
node_execute(struct node *node, const struct slice *argv, size_t argc)
{
    uint64_t *at = NULL;
    uint64_t value = 0;

    if (argc == 4) {
        at = &node->registers[sim_read_number(argv[1]) % REGISTERS];
        value = sim_read_number(argv[2]);
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
        node_note_history(node, id);
    } else {
        SIM_CHECK(node->sim, slice_equal(argv[0], slice_lit("SELECT")),
                  "an effect that means nothing");
    }
}

void
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
        memcpy(padding, "\n#XX", 4); /* no seal, but begins like one */
    }
    node_append(node, argv, argc);
    node_execute(node, argv, argc);
}

/* ---- what goes out ------------------------------------------------------- */

void
node_repair(struct node *node)
{
    if (backlog_is_broken(node->backlog)) {
        (void)journal_close_group(node->journal);
        primary_drop_all(node->primary, "there was no memory");
        backlog_begin(node->backlog, node->position);
    }
}

void
node_stream(struct node *node)
{
    uint64_t released = node->leader == NOBODY ? node->released : UINT64_MAX;
    bool more;

    node_repair(node);
    sim_may_fail(node->sim);
    (void)backlog_seal(node->backlog, node->key, node->sim->now_ms);
    more = primary_stream(node->primary, released, node->sim->now_ms);
    replica_disk_moved(node->replica, node->sim->now_ms);
    (void)sim_failed(node->sim);
    if (more) {
        node_flush_soon(node);
    }
}

static void
on_released(struct sim *sim, uint64_t index, uint64_t boot)
{
    struct node *node = node_at(sim, index, boot);

    if (node != NULL &&
        !sim_stands_still(sim, index, on_released, index, boot)) {
        node->released =
            node->release_lag_max_ms > 0 ? node->position : UINT64_MAX;
        node_stream(node);
    }
}

static void
on_flush(struct sim *sim, uint64_t index, uint64_t boot)
{
    struct node *node = node_at(sim, index, boot);

    if (node != NULL && !sim_stands_still(sim, index, on_flush, index, boot)) {
        node->flush_due = false;
        (void)journal_close_group(node->journal);
        node_stream(node);
        if (node->release_lag_max_ms > 0) {
            sim_at(sim, 1 + sim_below(sim, node->release_lag_max_ms),
                   on_released, index, boot);
        }
    }
}

void
node_flush_soon(struct node *node)
{
    struct sim *sim = node->sim;

    if (!node->flush_due) {
        node->flush_due = true;
        sim_at(sim, sim_below(sim, 3), on_flush, node->index, node->boot);
    }
}

/* ---- the toy's snapshot -------------------------------------------------- */

/* A snapshot: history, position, sequence, registers, padding, and a sum of all
 * that. */

enum { SNAPSHOT_HEAD = HISTORY_ID_CHARS + 16 };

static uint64_t
sum_of(struct slice data)
{
    uint64_t sum = data.len;

    for (size_t i = 0; i + 8 <= data.len; i += 8) {
        sum = sim_mix(sum ^ slice_load64(data.data + i));
    }
    return sum;
}

void
node_write_snapshot(struct node *node, struct buf *out)
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

const char *
node_adopt(struct node *node)
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
        return "the snapshot is of another state than the primary announced";
    }
    primary_drop_all(node->primary, "the data was replaced");
    memcpy(node->registers, data.data + SNAPSHOT_HEAD, sizeof(node->registers));
    node->absent = false;
    history_begin(&node->history, answer->history);
    journal_move(node->journal, answer->position, answer->sequence);
    primary_set_history(node->primary, &node->history, node->key);
    node_check_place(node);
    node->holds = node->load.generation + 1;
    node->sim->counts.loads++;
    return NULL;
}
