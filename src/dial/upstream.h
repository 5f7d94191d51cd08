/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The link of a struct replica (repl/replica.h) to the server whose log it
 * reads: dials, sends, and reports what happens. Loop 0.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct link;
struct loop0;
struct replica;

struct upstream {
    const struct loop0 *loop0;
    struct replica *replica;
    unsigned keepalive_s; /* options in force */
    bool uses_tls;
    struct link *link; /* NULL: none */
    uint64_t number;   /* the state machine's name of it */
    uint64_t id;       /* for CLIENT LIST */
    /* Called when the state machine has handled an event of the link. */
    void (*moved)(void *ctx);
    void *ctx;
};

/* The hooks of a struct replica (repl/replica_hooks.h) for its link. */
void upstream_dial(struct upstream *up, uint64_t number, const char *host,
                   unsigned port, uint64_t timeout_ms);
bool upstream_send(struct upstream *up, uint64_t number, struct slice bytes);
void upstream_close(struct upstream *up, uint64_t number);
void upstream_pause(struct upstream *up, uint64_t number, bool paused);

/* Closes the link, which the state machine then takes as lost. */
void upstream_kill(struct upstream *up, const char *reason);
