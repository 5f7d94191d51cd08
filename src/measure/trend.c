/* SPDX-License-Identifier: BSD-3-Clause
 *
 * If the loop was busy, or the process was stopped, points are missing. They
 * are added without figures, so that the axis still shows the time.
 */
#include "measure/trend.h"

static const uint64_t EVERY_NS = UINT64_C(1000000000) * TREND_EVERY_S;

bool
trend_is_due(const struct trend *trend, uint64_t now_ns)
{
    return trend->at_ns == 0 || now_ns - trend->at_ns >= EVERY_NS;
}

static void
push(struct trend *trend, struct trend_point point)
{
    trend->point[trend->next] = point;
    trend->next = (trend->next + 1) % TREND_POINTS;
    if (trend->count < TREND_POINTS) {
        trend->count++;
    }
}

static uint64_t
rise(uint64_t now, uint64_t before)
{
    return now >= before ? now - before : now;
}

static struct trend_point
make_point(const struct trend *trend, uint64_t took_ns, uint64_t commands,
           const struct stats_histogram *times)
{
    struct trend_point point = { 0 };
    struct stats_histogram fresh = { 0 };

    for (unsigned i = 0; i < STATS_BUCKETS; i++) {
        fresh.bucket[i] = rise(times->bucket[i], trend->times.bucket[i]);
        fresh.count += fresh.bucket[i];
    }
    if (fresh.count > 0) {
        point.p50_ns = stats_percentile_ns(&fresh, 50);
        point.p99_ns = stats_percentile_ns(&fresh, 99);
    }
    point.per_second =
        (double)rise(commands, trend->commands) * 1e9 / (double)took_ns;
    return point;
}

void
trend_take(struct trend *trend, uint64_t now_ns, uint64_t commands,
           const struct stats_histogram *times)
{
    uint64_t took_ns = now_ns - trend->at_ns;

    CHECK(now_ns > trend->at_ns);
    if (trend->at_ns > 0) {
        uint64_t missed = took_ns / EVERY_NS;

        for (uint64_t i = 1; i < missed && i <= TREND_POINTS; i++) {
            push(trend, (struct trend_point){ .per_second = -1 });
        }
        push(trend, make_point(trend, took_ns, commands, times));
    }
    trend->at_ns = now_ns;
    trend->commands = commands;
    trend->times = *times;
}

const struct trend_point *
trend_at(const struct trend *trend, unsigned i)
{
    unsigned first = trend->next + TREND_POINTS - trend->count;

    CHECK(i < trend->count);
    return &trend->point[(first + i) % TREND_POINTS];
}
