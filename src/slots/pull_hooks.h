/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The types that the pull (pull.h) and its owner exchange.
 */
#pragma once

#include "base/slot_set.h"
#include "engine/service.h"
#include "repl/status.h"

#include <stdatomic.h>

struct loop0;
struct slot_drop;

/* What a pull gets from its owner. */
struct pull_roles {
    const struct loop0 *loop0;
    struct slot_drop *drop;
    atomic_bool *settles; /* set by the pull while it waits for the journal */
    void (*poke)(void *ctx); /* makes loop 0 call pull_look; any thread */
    void *ctx;
};

struct pull_hooks {
    /* Called when the pull has ended. good: everything up to the position of
     * pull_until was executed here, and is as durable as appendfsync makes
     * acknowledged writes. Otherwise `reason` says why the pull was given up; a
     * part of the keys may be here. Called on loop 0, never from inside a
     * function of pull.h. */
    void (*ended)(void *ctx, bool good, const char *reason);
    void *ctx;
};

enum pull_state {
    PULL_QUEUED,   /* begins with loop 0's next look */
    PULL_CONNECTS, /* connects, or waits to try again: see reason */
    PULL_LOADS,    /* the snapshot arrives */
    PULL_ADOPTS,   /* the keys of the snapshot are adopted */
    PULL_FOLLOWS,  /* it executes the source's log as it arrives */
    PULL_SETTLES   /* it has executed everything, and waits for our journal */
};

struct pull_progress {
    enum pull_state state;
    struct slot_set slots;
    char host[ROLE_HOST_MAX];
    unsigned port;
    uint64_t age_ms;      /* since the pull left QUEUED; 0 in QUEUED */
    uint64_t keys, bytes; /* adopted; in PULL_LOADS, received */
    unsigned attempts;    /* connections that have led to a snapshot */
    bool cut; /* the connection ended, but its snapshot is still being loaded */
    /* In PULL_FOLLOWS: the executed position of the source's log; the bytes
     * that have arrived but are not executed yet; and the age of the last group
     * when it was executed, by the clocks of both servers. */
    uint64_t position, lag_bytes, lag_ms;
    char reason[STATUS_TEXT_MAX]; /* why there is no link; "": unknown */
};

/* Counts of all pulls since the start. */
struct pull_counts {
    uint64_t done, failed;
    uint64_t cutover_us;       /* from the last pull_until to the end */
    char why[STATUS_TEXT_MAX]; /* why the last failed pull failed */
};
