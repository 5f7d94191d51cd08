/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The types that pulls (pull.h) and their owner exchange.
 */
#pragma once

#include "base/slot_set.h"
#include "engine/service.h"
#include "journal/history.h"
#include "repl/status.h"

struct pull_hooks {
    /* The claim has ended, or a pull that copied ahead. good: everything up to
     * the position of pull_until was executed here, and is as safe as
     * appendfsync makes replies (with `always`, on the disk). Otherwise
     * `reason` says why it was given up: a part of the keys may be here. Called
     * from loop 0, never from inside these functions but pull_release. May be
     * NULL. */
    void (*ended)(void *ctx, uint64_t id, bool good, const char *reason);
    void *ctx;
};

enum pull_state {
    PULL_QUEUED,
    PULL_CONNECTS, /* or waits to try again: see reason */
    PULL_LOADS,    /* the snapshot arrives */
    PULL_ADOPTS,   /* its keys become ours */
    PULL_FOLLOWS,  /* executes the source's log as it comes */
    PULL_SETTLES   /* has executed all, and waits for our journal */
};

struct pull_progress {
    uint64_t id;
    enum pull_state state;
    struct slot_set slots;
    char host[ROLE_HOST_MAX];
    unsigned port;
    bool ahead;           /* copies slots that nobody has claimed yet */
    bool claimed;         /* it, or some of its slots */
    uint64_t age_ms;      /* since it left QUEUED; 0: it has not */
    uint64_t keys, bytes; /* adopted, or while it LOADS, received */
    unsigned attempts;    /* connections that led to a snapshot */
    /* FOLLOWS: of the source's log, what was executed; what has come and waits;
     * and how old the last group was when it was executed, by the clocks of
     * both servers. */
    char history[HISTORY_ID_CHARS + 1];
    uint64_t position, lag_bytes, lag_ms;
    char reason[STATUS_TEXT_MAX]; /* why there is no link; "": not known */
};
