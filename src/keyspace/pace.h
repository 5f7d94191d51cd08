/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Long work beside the event loops takes a processor that is idle, and one
 * third of a processor that others want. Such a thread must keep its priority,
 * since it takes locks that the loops wait for. So it sleeps instead: where
 * another thread took its processor, twice as long as it has run.
 */
#pragma once

#include <stdint.h>

enum {
    PACE_LOOK_NS = 2 * 1000 * 1000, /* between two looks, at least */
    PACE_SLEEP_MAX_NS = 50 * 1000 * 1000
};

/* The thread's figures at the last look. */
struct pace {
    uint64_t wall_ns, cpu_ns;
    uint64_t preempted; /* how often */
};

/* Begins. The thread that calls this calls the others. */
void pace_begin(struct pace *pace);

/* Sleeps if it is time to. Call it often, without a lock. */
void pace_keep(struct pace *pace);

/* Takes the figures of a look, and returns how long to sleep. */
uint64_t pace_look(struct pace *pace, const struct pace *now);
