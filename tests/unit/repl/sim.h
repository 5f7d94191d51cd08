/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A world in one thread for the repl objects: a clock, events in the order of
 * time, a network, and the oracle that knows what each (history, position)
 * means. Everything that happens comes from the seed. sim_node.h has the
 * servers that live in it.
 *
 * A connection is two queues of bytes. Each may be slow, stand still, lose its
 * end without a word, have a bit turned over, or end at any byte; the two sides
 * may learn of an end at different times, or never.
 */
#pragma once

#include "../test.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "persist/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    NODES_MAX = 5,
    CONNS_MAX = 256,
    SOCKET_BYTES = 4096, /* what a socket takes before it counts as unsent */
    ORACLE_SLOTS = 1 << 15,
    ACKS_MAX = 64
};

struct sim;

/* ---- events -------------------------------------------------------------- */

typedef void (*event_fn)(struct sim *sim, uint64_t a, uint64_t b);

struct event {
    uint64_t at_ms, order;
    event_fn run;
    uint64_t a, b;
};

/* ---- network ------------------------------------------------------------- */

enum { DIALER, ACCEPTER };

struct side {
    unsigned node;
    uint64_t boot;   /* of that node */
    uint64_t number; /* DIALER: the replica's name of the link */
    bool closed;     /* it left, or knows of the end */
    bool paused;
    bool authenticated;
    struct buf queue; /* on the way to this side, from `taken` on */
    size_t taken;
    uint64_t arrived; /* bytes so far */
    uint64_t sent;    /* bytes to this side so far */
    uint64_t cut_at;  /* of `arrived`; UINT64_MAX: never */
    uint64_t flip_at; /* of `arrived`; UINT64_MAX: never */
    uint64_t stalled_until_ms;
    bool dead; /* nothing arrives any more, and nobody is told */
    bool fin;  /* ends when the queue is empty */
    bool on_its_way;
    size_t peak;      /* unsent, since it was told that there is room */
    struct buf input; /* ACCEPTER: what is no whole command yet */
};

struct conn {
    bool used;
    uint64_t generation;
    bool open;
    uint64_t piece_bytes; /* arrives at once at most */
    uint64_t latency_ms;
    struct side side[2];
    char run_id[HISTORY_ID_CHARS + 1]; /* of the dialer, as it said */
    uint64_t continued, full;          /* answers to PSYNC */
    uint64_t log_at;                   /* of what is sent, the log begins */
    char named[HISTORY_ID_CHARS + 1];  /* the place asked for, as it arrived */
    uint64_t from;
    uint64_t chain; /* of the acceptor, when it told it: node->chain */
    /* What the dialer acknowledged, and the data that it had then. */
    struct {
        uint64_t position, digest;
    } acks[ACKS_MAX];
    unsigned acks_sent, acks_heard;
};

/* ---- oracle -------------------------------------------------------------- */

struct truth {
    uint64_t key; /* of history and position; 0: free */
    uint64_t position, digest;
};

/* ---- the world ----------------------------------------------------------- */

struct node;

struct sim_counts {
    uint64_t events, cuts, flips, boots, promotions, fulls, partials, acks;
    uint64_t doubts, groups, loads, waits, out_of_memory, refused;
};

struct sim {
    uint64_t seed, random;
    uint64_t now_ms;
    struct event *heap;
    size_t heap_count, heap_room;
    uint64_t order;
    struct conn conns[CONNS_MAX];
    uint64_t generation;
    struct truth *truths;
    size_t truth_count;
    struct node *nodes[NODES_MAX];
    unsigned node_count;
    /* Faults of the network; permille of connections or pieces. */
    unsigned flip_permille, dead_permille;
    uint64_t latency_max_ms;
    bool refuse[NODES_MAX][NODES_MAX]; /* a partition */
    unsigned memory_permille;          /* of calls in which it runs out */
    uint64_t stopped_until_ms[NODES_MAX];
    bool no_takeover; /* whoever is still asked to take over does not */
    bool trace;
    struct sim_counts counts;
};

static inline __attribute__((format(printf, 2, 3))) void
sim_trace(const struct sim *sim, const char *format, ...)
{
    va_list ap;

    if (!sim->trace) {
        return;
    }
    (void)printf("%8" PRIu64 "  ", sim->now_ms);
    va_start(ap, format);
    (void)vprintf(format, ap);
    va_end(ap);
    (void)printf("\n");
}

/* Says which world it was, and ends. */
static inline __attribute__((noreturn, format(printf, 2, 3))) void
sim_fail(const struct sim *sim, const char *format, ...)
{
    va_list ap;

    (void)fflush(stdout);
    (void)fprintf(stderr,
                  "BLOOMERY_SIM=%#" PRIx64 " at %" PRIu64 " ms: ", sim->seed,
                  sim->now_ms);
    va_start(ap, format);
    (void)vfprintf(stderr, format, ap);
    va_end(ap);
    (void)fprintf(stderr, "\n");
    abort();
}

#define SIM_CHECK(sim, x, ...)                                                 \
    do {                                                                       \
        if (!(x)) {                                                            \
            sim_fail(sim, __VA_ARGS__);                                        \
        }                                                                      \
    } while (0)

/* ---- chance -------------------------------------------------------------- */

static inline uint64_t
sim_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static inline uint64_t
sim_random(struct sim *sim)
{
    sim->random += UINT64_C(0x9e3779b97f4a7c15);
    return sim_mix(sim->random);
}

static inline uint64_t
sim_below(struct sim *sim, uint64_t bound)
{
    return sim_random(sim) % bound;
}

static inline bool
sim_chance(struct sim *sim, unsigned permille)
{
    return permille > 0 && sim_below(sim, 1000) < permille;
}

static inline void
sim_id(struct sim *sim, char *ret_id)
{
    for (int i = 0; i < HISTORY_ID_CHARS; i++) {
        ret_id[i] = "0123456789abcdef"[sim_random(sim) & 15];
    }
    ret_id[HISTORY_ID_CHARS] = '\0';
}

/* ---- events -------------------------------------------------------------- */

static inline bool
event_before(const struct event *x, const struct event *y)
{
    return x->at_ms < y->at_ms || (x->at_ms == y->at_ms && x->order < y->order);
}

static inline void
sim_at(struct sim *sim, uint64_t delay_ms, event_fn run, uint64_t a, uint64_t b)
{
    struct event event = { sim->now_ms + delay_ms, sim->order++, run, a, b };
    size_t at = sim->heap_count++;

    if (at == sim->heap_room) {
        sim->heap_room = at == 0 ? 1 << 14 : 2 * at;
        sim->heap =
            mem_try_realloc(sim->heap, sim->heap_room * sizeof(*sim->heap));
        SIM_CHECK(sim, sim->heap != NULL, "no memory for events");
    }
    while (at > 0 && event_before(&event, &sim->heap[(at - 1) / 2])) {
        sim->heap[at] = sim->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    sim->heap[at] = event;
}

static inline struct event
sim_next(struct sim *sim)
{
    struct event first = sim->heap[0];
    struct event last = sim->heap[--sim->heap_count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= sim->heap_count) {
            break;
        }
        if (child + 1 < sim->heap_count &&
            event_before(&sim->heap[child + 1], &sim->heap[child])) {
            child++;
        }
        if (!event_before(&sim->heap[child], &last)) {
            break;
        }
        sim->heap[at] = sim->heap[child];
        at = child;
    }
    sim->heap[at] = last;
    return first;
}

/* A server that stands still (SIGSTOP) does this when it goes on. */
static inline bool
sim_stands_still(struct sim *sim, uint64_t node, event_fn run, uint64_t a,
                 uint64_t b)
{
    uint64_t until_ms = sim->stopped_until_ms[node];

    if (until_ms <= sim->now_ms) {
        return false;
    }
    sim_at(sim, until_ms - sim->now_ms, run, a, b);
    return true;
}

/* Between the two one allocation may fail. */
static inline void
sim_may_fail(struct sim *sim)
{
    if (sim_chance(sim, sim->memory_permille)) {
        mem_fail_at(1 + (unsigned)sim_below(sim, 3));
    }
}

static inline bool
sim_failed(struct sim *sim)
{
    bool fired = sim->memory_permille > 0 && mem_fail_clear();

    sim->counts.out_of_memory += fired;
    return fired;
}

/* Until that time; `done` (NULL: never) ends it earlier. */
static inline bool
sim_run(struct sim *sim, uint64_t until_ms, bool (*done)(struct sim *sim))
{
    while (sim->heap_count > 0 && sim->heap[0].at_ms <= until_ms) {
        struct event event = sim_next(sim);

        sim->now_ms = event.at_ms;
        sim->counts.events++;
        event.run(sim, event.a, event.b);
        if (done != NULL && sim->counts.events % 16 == 0 && done(sim)) {
            return true;
        }
    }
    sim->now_ms = until_ms;
    return false;
}

/* ---- oracle -------------------------------------------------------------- */

static inline uint64_t
truth_key(const char *id, uint64_t position)
{
    return (sim_mix(slice_load64(id) ^ sim_mix(slice_load64(id + 8))) ^
            sim_mix(position)) |
           1;
}

/* Where it is, or a free one. */
static inline struct truth *
truth_slot(struct sim *sim, const char *id, uint64_t position)
{
    uint64_t key = truth_key(id, position);

    for (uint64_t at = sim_mix(key);; at++) {
        struct truth *truth = &sim->truths[at % ORACLE_SLOTS];

        if (truth->key == 0 ||
            (truth->key == key && truth->position == position)) {
            return truth;
        }
    }
}

/* The first who gets to a place says what it means, all others must agree. */
static inline void
truth_meets(struct sim *sim, const char *id, uint64_t position, uint64_t digest,
            bool may_say)
{
    struct truth *truth = truth_slot(sim, id, position);

    if (truth->key == 0) {
        SIM_CHECK(sim, may_say, "nobody was ever at %.8s:%" PRIu64, id,
                  position);
        SIM_CHECK(sim, ++sim->truth_count < ORACLE_SLOTS / 4 * 3,
                  "raise ORACLE_SLOTS");
        truth->key = truth_key(id, position);
        truth->position = position;
        truth->digest = digest;
        return;
    }
    SIM_CHECK(sim, truth->digest == digest, "other data at %.8s:%" PRIu64, id,
              position);
}

/* Whether somebody was there, and what it meant. */
static inline bool
truth_find(struct sim *sim, const char *id, uint64_t position,
           uint64_t *ret_digest)
{
    struct truth *truth = truth_slot(sim, id, position);

    *ret_digest = truth->digest;
    return truth->key != 0;
}

/* ---- network: what sim_node.h hears -------------------------------------- */

static void node_opened(struct sim *sim, struct conn *conn);
static void node_bytes(struct sim *sim, struct conn *conn, unsigned side,
                       struct slice bytes, size_t *ret_used);
static void node_closed(struct sim *sim, struct conn *conn, unsigned side,
                        const char *reason);
static void node_drained(struct sim *sim, struct conn *conn);
static bool node_is_there(const struct sim *sim, const struct side *side);
static bool node_accepts(const struct sim *sim, unsigned node);

/* ---- network ------------------------------------------------------------- */

static inline uint64_t
conn_id(const struct sim *sim, const struct conn *conn)
{
    return conn->generation << 16 | (uint64_t)(conn - sim->conns + 1);
}

static inline struct conn *
conn_find(struct sim *sim, uint64_t id)
{
    struct conn *conn = &sim->conns[(id & 0xffff) - 1];

    return conn->used && conn->generation == id >> 16 ? conn : NULL;
}

static inline void
conn_free(struct conn *conn)
{
    for (int i = 0; i < 2; i++) {
        buf_free(&conn->side[i].queue);
        buf_free(&conn->side[i].input);
    }
    *conn = (struct conn){ 0 };
}

static inline void
conn_free_if_over(struct conn *conn)
{
    if (conn->side[0].closed && conn->side[1].closed) {
        conn_free(conn);
    }
}

static inline size_t
side_waiting(const struct side *side)
{
    return side->queue.len - side->taken;
}

static inline void
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

/* What is on its way gets lost. */
static inline void
side_lose(struct side *side)
{
    buf_reset(&side->queue, 0);
    side->taken = 0;
}

/* The other side left, or the network did: this one learns of it. */
static inline void
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

static inline void
conn_tell_end(struct sim *sim, struct conn *conn, unsigned which)
{
    if (!conn->side[which].dead) {
        sim_at(sim, conn->latency_ms, on_end, conn_id(sim, conn), which);
    }
}

/* A side leaves: nothing is told to it any more. The other one gets what was
 * sent to it, if it is graceful, and learns of the end then. */
static inline void
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

/* The network ends it. One side may never learn of it. */
static inline void
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

static inline void
conn_move(struct sim *sim, struct conn *conn, unsigned which, uint64_t delay_ms)
{
    struct side *side = &conn->side[which];

    if (!side->on_its_way && !side->paused && !side->dead && !side->closed &&
        (side_waiting(side) > 0 || side->arrived == side->cut_at)) {
        side->on_its_way = true;
        sim_at(sim, delay_ms, on_arrival, conn_id(sim, conn), which);
    }
}

static inline size_t
side_unsent(const struct side *side)
{
    size_t waiting = side_waiting(side);

    return waiting > SOCKET_BYTES ? waiting - SOCKET_BYTES : 0;
}

/* False: no memory. */
static inline bool
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
        return true; /* nobody takes it: it waits, so that limits are met */
    }
    if (side_unsent(side) > side->peak) {
        side->peak = side_unsent(side);
    }
    conn_move(sim, conn, to, conn->latency_ms);
    return true;
}

static inline void
flip_in(struct sim *sim, struct side *side, char *bytes, size_t len)
{
    if (side->flip_at - side->arrived < len) {
        bytes[side->flip_at - side->arrived] ^= (char)(1 << sim_below(sim, 8));
        side->flip_at = UINT64_MAX;
        sim->counts.flips++;
        sim_trace(sim, "flip to node %u", side->node);
    }
}

/* A copy of its own, so that reading behind its end is found. */
static inline void
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

static inline void
conn_pause(struct sim *sim, struct conn *conn, unsigned which, bool paused)
{
    conn->side[which].paused = paused;
    conn_move(sim, conn, which, 0);
}

static inline bool
is_reachable(const struct sim *sim, const struct conn *conn)
{
    unsigned from = conn->side[DIALER].node;
    unsigned to = conn->side[ACCEPTER].node;

    return !sim->refuse[from][to] && node_accepts(sim, to);
}

static inline void
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

/* boot of the other end is filled when it is reached. */
static inline struct conn *
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
        /* Of the handshake: acknowledgements have no sum of their own. */
        conn->side[ACCEPTER].flip_at = sim_below(sim, 200);
    }
    conn->side[DIALER].dead = sim_chance(sim, sim->dead_permille / 4);
    sim_at(sim, 1 + conn->latency_ms, on_dialled, conn_id(sim, conn), 0);
    return conn;
}

/* ---- life ---------------------------------------------------------------- */

static inline struct sim *
sim_new(uint64_t seed)
{
    static struct truth *truths; /* large: one for all */
    struct sim *sim = mem_zalloc(sizeof(*sim));

    if (truths == NULL) {
        truths = mem_zalloc(ORACLE_SLOTS * sizeof(*truths));
    }
    sim->seed = seed;
    sim->random = sim_mix(seed);
    sim->truths = truths;
    sim->now_ms = 1000;
    sim->latency_max_ms = 5;
    return sim;
}

static inline void
sim_free(struct sim *sim)
{
    for (size_t i = 0; i < CONNS_MAX; i++) {
        if (sim->conns[i].used) {
            conn_free(&sim->conns[i]);
        }
    }
    memset(sim->truths, 0, ORACLE_SLOTS * sizeof(*sim->truths));
    mem_free(sim->heap);
    mem_free(sim);
}
