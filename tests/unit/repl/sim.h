/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A world in one thread for the objects of src/repl: a clock, events in order
 * of time, random choices from a seed, and an oracle that knows the data that
 * each (history, position) stands for. sim_net.h has its network, sim_node.h
 * the servers that live in it.
 */
#pragma once

#include "../test.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "journal/history.h"

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
    bool closed;     /* it left, or was told of the end */
    bool paused;
    bool authenticated;
    struct buf queue; /* on the way to this side; valid from `taken` on */
    size_t taken;
    uint64_t arrived; /* bytes so far */
    uint64_t sent;    /* bytes to this side so far */
    uint64_t cut_at;  /* of `arrived`; UINT64_MAX: never */
    uint64_t flip_at; /* of `arrived`; UINT64_MAX: never */
    uint64_t stalled_until_ms;
    bool dead; /* no byte arrives any more, and no end is reported */
    bool fin;  /* ends when the queue is empty */
    bool on_its_way;
    size_t peak;      /* unsent bytes since the last drained event */
    struct buf input; /* ACCEPTER: an unfinished command */
};

struct conn {
    bool used;
    uint64_t generation;
    bool open;
    uint64_t piece_bytes; /* the most that arrives at once */
    uint64_t latency_ms;
    struct side side[2];
    char run_id[HISTORY_ID_CHARS + 1]; /* of the dialer, as it said */
    uint64_t continued, full;          /* answers to PSYNC */
    uint64_t log_at;                   /* where the log begins in `sent` */
    char named[HISTORY_ID_CHARS + 1];  /* the history of PSYNC, as it arrived */
    uint64_t from;
    uint64_t chain; /* node->chain of the acceptor when it answered hello */
    /* The dialer's acknowledgements, and its data at that moment. */
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
    unsigned memory_permille;          /* of calls in which memory ends */
    uint64_t stopped_until_ms[NODES_MAX];
    bool no_takeover; /* servers refuse a failover */
    bool trace;
    struct sim_counts counts;
};

__attribute__((format(printf, 2, 3))) void sim_trace(const struct sim *sim,
                                                     const char *format, ...);

/* Prints the seed of the world and the reason, and aborts. */
__attribute__((noreturn, format(printf, 2, 3))) void
sim_fail(const struct sim *sim, const char *format, ...);

#define SIM_CHECK(sim, x, ...)                                                 \
    do {                                                                       \
        if (!(x)) {                                                            \
            sim_fail(sim, __VA_ARGS__);                                        \
        }                                                                      \
    } while (0)

/* ---- chance -------------------------------------------------------------- */

uint64_t sim_mix(uint64_t x);
uint64_t sim_random(struct sim *sim);
uint64_t sim_below(struct sim *sim, uint64_t bound);
bool sim_chance(struct sim *sim, unsigned permille);
void sim_id(struct sim *sim, char *ret_id);

/* ---- events -------------------------------------------------------------- */

void sim_at(struct sim *sim, uint64_t delay_ms, event_fn run, uint64_t a,
            uint64_t b);

/* Whether the server stands still (SIGSTOP); then `run` is called when it
 * continues. */
bool sim_stands_still(struct sim *sim, uint64_t node, event_fn run, uint64_t a,
                      uint64_t b);

/* Between these two calls one allocation may fail. */
void sim_may_fail(struct sim *sim);
bool sim_failed(struct sim *sim);

/* Runs events until this time, or until `done` (NULL: never) returns true. */
bool sim_run(struct sim *sim, uint64_t until_ms, bool (*done)(struct sim *sim));

/* ---- oracle -------------------------------------------------------------- */

/* Compares a server's data with the oracle. The first server that reaches a
 * position defines it, if it may. */
void truth_meets(struct sim *sim, const char *id, uint64_t position,
                 uint64_t digest, bool may_say);

/* Finds the data of a position that a server has reached. */
bool truth_find(struct sim *sim, const char *id, uint64_t position,
                uint64_t *ret_digest);

/* ---- life ---------------------------------------------------------------- */

struct sim *sim_new(uint64_t seed);
void sim_free(struct sim *sim);
