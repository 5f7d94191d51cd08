/* SPDX-License-Identifier: BSD-3-Clause */
#include "cluster/capacity.h"

#include "base/slot_set.h"

#include <math.h>

/* Returns how many of the filters one of so many primaries has at most, but for
 * one case in a thousand: a binomial distribution. */
static uint64_t
most_of(uint64_t filters, uint64_t primaries)
{
    double share = 1 / (double)primaries;
    double mean = (double)filters * share;
    double most = ceil(mean + 3 * sqrt(mean * (1 - share)));

    return most < (double)filters ? (uint64_t)most : filters;
}

/* Returns value * part / whole, without an overflow for part <= whole. */
static uint64_t
share_of(uint64_t value, uint64_t part, uint64_t whole)
{
    return value / whole * part + value % whole * part / whole;
}

bool
capacity_compute(const struct capacity_wish *wish,
                 struct capacity *ret_capacity)
{
    struct capacity got = { .servers = wish->primaries * (1 + wish->replicas) };
    uint64_t each;

    if (__builtin_add_overflow(wish->filter_bytes, CAPACITY_KEY_BYTES, &each) ||
        __builtin_mul_overflow(each, wish->filters, &got.all_bytes) ||
        got.all_bytes > UINT64_MAX / 4) {
        return false;
    }
    got.most_filters = most_of(wish->filters, wish->primaries);
    got.most_bytes = got.most_filters * each;
    got.server_bytes = got.most_bytes + got.most_bytes / 10 +
                       wish->beside_bytes + CAPACITY_PROCESS_BYTES;
    got.syncing_bytes = got.server_bytes + got.most_bytes;
    got.sync_seconds = (double)got.most_bytes / (double)wish->sync_rate;
    got.move_slots = wish->move_slots > 0
                         ? wish->move_slots
                         : CLUSTER_SLOTS / (wish->primaries + 1);
    got.move_bytes = share_of(got.all_bytes, got.move_slots, CLUSTER_SLOTS);
    got.move_seconds = (double)got.move_bytes / (double)wish->move_rate;
    *ret_capacity = got;
    return true;
}
