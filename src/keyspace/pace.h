/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Limits long work beside the event loops: it uses an idle processor fully, but
 * only one third of a processor that others want. Its thread must keep its
 * priority, since it takes locks that the loops wait for. So it sleeps instead:
 * after another thread took its processor, twice as long as it has run.
 */
#pragma once

#include <stdint.h>

enum {
    PACE_LOOK_NS = 2 * 1000 * 1000, /* the least time between two looks */
    PACE_SLEEP_MAX_NS = 50 * 1000 * 1000
};

/* The thread's figures at the last look. */
struct pace {
    uint64_t wall_ns, cpu_ns;
    uint64_t preempted; /* how often another thread took the processor */
};

/* Begins to keep the pace. The same thread must call the other functions. */
void pace_begin(struct pace *pace);

/* Sleeps if it is time to. Call it often, without a lock. */
void pace_keep(struct pace *pace);

/* Stores the figures of a look, and returns how long to sleep. */
uint64_t pace_look(struct pace *pace, const struct pace *now);
