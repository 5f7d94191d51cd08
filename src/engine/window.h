/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A window is what dispatch executes under one set of locks: one run, or
 * several short runs of a batch, which follow each other and have a key each,
 * with at most 64 items. The runs enter the gate once and lock their stripes
 * once, and what they will read is looked up ahead (ahead.h). Belongs to the
 * executing loop.
 */
#pragma once

#include "engine/ahead.h"
#include "proto/batch.h"

enum {
    WINDOW_RUNS = KEYSPACE_AHEAD_MAX,
    WINDOW_ITEMS = 64, /* items of all runs: no lock is held for more */
    /* The most stripes, if there are several loops. With more, two loops too
     * often want the same stripe: with 16 of 1024 each, one window in five
     * waits for another. */
    WINDOW_LOCKED = 16
};

struct window {
    uint32_t count;   /* runs here; dispatch lowers it to the executed ones */
    uint32_t counted; /* how many runs execute_count has counted */
    struct run run[WINDOW_RUNS];
    struct ahead ahead; /* the same runs, with their keys; dispatch fills it */
};

/* Finds the window that begins with the command at `first`. may_group: the
 * state of session and service lets commands run together. */
void window_gather_others(struct worker *worker, const struct batch *batch,
                          uint32_t end);
static inline void
window_gather(struct worker *worker, const struct batch *batch, uint32_t first,
              bool may_group)
{
    struct window *window = worker->window;
    uint32_t end;

    window->count = 1;
    window->counted = 0;
    run_gather(batch, first, may_group, NULL, window->run);
    end = first + window->run->count;
    if (may_group && batch->count - end >= AHEAD_FROM - 1 &&
        window->run->count < AHEAD_FROM) {
        window_gather_others(worker, batch, end);
    }
}

/* Returns whether the window is one run of one-item commands (run->many). Such
 * commands change nothing in their session. */
static inline bool
window_is_many(const struct window *window)
{
    return window->count == 1 && window->run[0].many;
}

static inline uint32_t
window_commands(const struct window *window)
{
    uint32_t commands = window->run[0].count;

    for (uint32_t i = 1; i < window->count; i++) {
        commands += window->run[i].count;
    }
    return commands;
}

/* Shortens the window: it ends before the first run, other than its first one,
 * that the server's state does not admit. Inside a section of the gate. */
void window_admit(struct request *req, struct window *window);
