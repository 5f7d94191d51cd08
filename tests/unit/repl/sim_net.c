/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_net.h"

#include "sim_node.h"

uint64_t
conn_id(const struct sim *sim, const struct conn *conn)
{
    return conn->generation << 16 | (uint64_t)(conn - sim->conns + 1);
}

struct conn *
conn_find(struct sim *sim, uint64_t id)
{
    struct conn *conn = &sim->conns[(id & 0xffff) - 1];

    return conn->used && conn->generation == id >> 16 ? conn : NULL;
}

void
conn_free(struct conn *conn)
{
    for (int i = 0; i < 2; i++) {
        buf_free(&conn->side[i].queue);
        buf_free(&conn->side[i].input);
    }
    *conn = (struct conn){ 0 };
}

static void
conn_free_if_over(struct conn *conn)
{
    if (conn->side[0].closed && conn->side[1].closed) {
        conn_free(conn);
    }
}

static size_t
side_waiting(const struct side *side)
{
    return side->queue.len - side->taken;
}

static void
side_take(struct side *side, size_t len)
{
    side->arrived += len;
    side->taken += len;
    if (side_waiting(side) == 0) {
        buf_reset(&side->queue, SOCKET_BYTES);
        side->taken = 0;
    } else if (side->taken > side->queue.len / 2) {
        buf_consume(&side->queue, side->taken);
        side->taken = 0;
    }
}

/* Discards the bytes that have not arrived. */
static void
side_lose(struct side *side)
{
    buf_reset(&side->queue, 0);
    side->taken = 0;
}

/* Tells a side that the connection has ended. */
static void
on_end(struct sim *sim, uint64_t id, uint64_t which)
{
    struct conn *conn = conn_find(sim, id);

    if (conn == NULL || conn->side[which].closed ||
        sim_stands_still(sim, conn->side[which].node, on_end, id, which)) {
        return;
    }
    conn->side[which].closed = true;
    if (node_is_there(sim, &conn->side[which])) {
        node_closed(sim, conn, (unsigned)which, "connection reset by peer");
    }
    conn = conn_find(sim, id);
    if (conn != NULL) {
        conn_free_if_over(conn);
    }
}

static void
conn_tell_end(struct sim *sim, struct conn *conn, unsigned which)
{
    if (!conn->side[which].dead) {
        sim_at(sim, conn->latency_ms, on_end, conn_id(sim, conn), which);
    }
}

void
conn_leave(struct sim *sim, struct conn *conn, unsigned which, bool graceful)
{
    struct side *other = &conn->side[!which];

    conn->side[which].closed = true;
    side_lose(&conn->side[which]);
    if (other->closed) {
        conn_free(conn);
    } else if (graceful && side_waiting(other) > 0) {
        other->fin = true;
    } else {
        conn_tell_end(sim, conn, !which);
    }
}

void
conn_cut(struct sim *sim, struct conn *conn)
{
    sim->counts.cuts++;
    for (unsigned i = 0; i < 2; i++) {
        side_lose(&conn->side[i]);
        if (sim_chance(sim, sim->dead_permille)) {
            conn->side[i].dead = true;
        }
        conn_tell_end(sim, conn, i);
        conn->side[i].dead = true;
    }
}

static void on_arrival(struct sim *sim, uint64_t id, uint64_t which);

static void
conn_move(struct sim *sim, struct conn *conn, unsigned which, uint64_t delay_ms)
{
    struct side *side = &conn->side[which];

    if (!side->on_its_way && !side->paused && !side->dead && !side->closed &&
        (side_waiting(side) > 0 || side->arrived == side->cut_at)) {
        side->on_its_way = true;
        sim_at(sim, delay_ms, on_arrival, conn_id(sim, conn), which);
    }
}

size_t
side_unsent(const struct side *side)
{
    size_t waiting = side_waiting(side);

    return waiting > SOCKET_BYTES ? waiting - SOCKET_BYTES : 0;
}

bool
conn_send(struct sim *sim, struct conn *conn, unsigned to, struct slice bytes)
{
    struct side *side = &conn->side[to];

    buf_append_slice(&side->queue, bytes);
    if (side->queue.failed) {
        side->queue.failed = false;
        return false;
    }
    side->sent += bytes.len;
    if (side->closed || side->dead) {
        return true; /* the bytes stay unsent, so that limits are reached */
    }
    if (side_unsent(side) > side->peak) {
        side->peak = side_unsent(side);
    }
    conn_move(sim, conn, to, conn->latency_ms);
    return true;
}

static void
flip_in(struct sim *sim, struct side *side, char *bytes, size_t len)
{
    if (side->flip_at - side->arrived < len) {
        bytes[side->flip_at - side->arrived] ^= (char)(1 << sim_below(sim, 8));
        side->flip_at = UINT64_MAX;
        sim->counts.flips++;
        sim_trace(sim, "flip to node %u", side->node);
    }
}

/* Delivers a copy of exact size, so that ASan finds reads beyond it. */
static void
give_piece(struct sim *sim, struct conn *conn, unsigned which, size_t len)
{
    uint64_t id = conn_id(sim, conn);
    struct side *side = &conn->side[which];
    char *piece = mem_alloc(len);
    size_t used = len;

    memcpy(piece, side->queue.data + side->taken, len);
    flip_in(sim, side, piece, len);
    node_bytes(sim, conn, which, (struct slice){ piece, len }, &used);
    mem_free(piece);
    if (conn_find(sim, id) == conn && !side->closed) {
        side_take(side, used);
    }
}

static void
on_arrival(struct sim *sim, uint64_t id, uint64_t which)
{
    struct conn *conn = conn_find(sim, id);
    struct side *side = conn != NULL ? &conn->side[which] : NULL;
    uint64_t len;

    if (side == NULL || side->closed ||
        sim_stands_still(sim, side->node, on_arrival, id, which)) {
        return;
    }
    side->on_its_way = false;
    if (side->dead || side->paused || !node_is_there(sim, side)) {
        return;
    }
    if (sim->now_ms < side->stalled_until_ms) {
        conn_move(sim, conn, (unsigned)which,
                  side->stalled_until_ms - sim->now_ms);
        return;
    }
    len = side_waiting(side);
    if (len > conn->piece_bytes) {
        len = conn->piece_bytes > 1 ? 1 + sim_below(sim, conn->piece_bytes) : 1;
    }
    if (len > side->cut_at - side->arrived) {
        len = side->cut_at - side->arrived;
    }
    if (len > 0) {
        give_piece(sim, conn, (unsigned)which, (size_t)len);
    }
    if (conn_find(sim, id) != conn || side->closed) {
        return;
    }
    if (side->arrived == side->cut_at) {
        conn_cut(sim, conn);
        return;
    }
    if (side->fin && side_waiting(side) == 0) {
        conn_tell_end(sim, conn, (unsigned)which);
        return;
    }
    conn_move(sim, conn, (unsigned)which, conn->piece_bytes < 1024 ? 0 : 1);
    if (which == DIALER && side->peak > 0 &&
        side_unsent(side) <= side->peak / 2) {
        side->peak = side_unsent(side);
        node_drained(sim, conn);
    }
}

void
conn_pause(struct sim *sim, struct conn *conn, unsigned which, bool paused)
{
    conn->side[which].paused = paused;
    conn_move(sim, conn, which, 0);
}

static bool
is_reachable(const struct sim *sim, const struct conn *conn)
{
    unsigned from = conn->side[DIALER].node;
    unsigned to = conn->side[ACCEPTER].node;

    return !sim->refuse[from][to] && node_accepts(sim, to);
}

static void
on_dialled(struct sim *sim, uint64_t id, uint64_t unused)
{
    struct conn *conn = conn_find(sim, id);

    (void)unused;
    if (conn == NULL || !node_is_there(sim, &conn->side[DIALER]) ||
        sim_stands_still(sim, conn->side[DIALER].node, on_dialled, id, 0)) {
        return;
    }
    if (conn->side[DIALER].dead) {
        return; /* as if packets were dropped */
    }
    if (!is_reachable(sim, conn)) {
        conn->side[ACCEPTER].closed = true;
        on_end(sim, id, DIALER);
        return;
    }
    conn->open = true;
    node_opened(sim, conn);
}

struct conn *
conn_dial(struct sim *sim, unsigned from, unsigned to)
{
    struct conn *conn = sim->conns;

    while (conn->used) {
        conn++;
        SIM_CHECK(sim, conn < sim->conns + CONNS_MAX, "raise CONNS_MAX");
    }
    *conn = (struct conn){ .used = true, .generation = ++sim->generation };
    conn->latency_ms = sim_below(sim, sim->latency_max_ms + 1);
    conn->piece_bytes = sim_chance(sim, 100)   ? 1 + sim_below(sim, 16)
                        : sim_chance(sim, 300) ? 1 + sim_below(sim, 1500)
                                               : 65536;
    for (unsigned i = 0; i < 2; i++) {
        conn->side[i].node = i == DIALER ? from : to;
        conn->side[i].cut_at = conn->side[i].flip_at = UINT64_MAX;
    }
    if (sim_chance(sim, sim->flip_permille)) {
        conn->side[DIALER].flip_at =
            sim_below(sim, UINT64_C(10) << sim_below(sim, 12));
    }
    if (sim_chance(sim, sim->flip_permille / 4)) {
        /* Within the handshake, since acknowledgements have no checksum. */
        conn->side[ACCEPTER].flip_at = sim_below(sim, 200);
    }
    conn->side[DIALER].dead = sim_chance(sim, sim->dead_permille / 4);
    sim_at(sim, 1 + conn->latency_ms, on_dialled, conn_id(sim, conn), 0);
    return conn;
}
