/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Figures of the last ten minutes, as points of five seconds. So the status
 * page has its curves at once, and all who open it see the same. Only loop 0
 * uses it.
 */
#pragma once

#include "measure/stats.h"

enum { TREND_POINTS = 120, TREND_EVERY_S = 5 };

struct trend_point {
    double per_second;       /* commands; below 0: not measured */
    uint64_t p50_ns, p99_ns; /* 0: no call was timed */
};

struct trend {
    struct trend_point point[TREND_POINTS]; /* a ring */
    unsigned count, next;
    uint64_t at_ns; /* time of the last point; 0: there is none */
    uint64_t commands;
    struct stats_histogram times;
};

/* Returns whether the next point is due. */
bool trend_is_due(const struct trend *trend, uint64_t now_ns);

/* Adds a point, computed from the sums so far. CONFIG RESETSTAT may have made
 * these smaller. */
void trend_take(struct trend *trend, uint64_t now_ns, uint64_t commands,
                const struct stats_histogram *times);

/* Returns the point at an index below trend->count; 0 is the oldest. */
const struct trend_point *trend_at(const struct trend *trend, unsigned i);
