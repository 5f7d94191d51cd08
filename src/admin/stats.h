/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What each command cost: calls, time, failures, and how its times were spread;
 * one slot a loop, written by it alone (relaxed atomics), summed by INFO. The
 * admin layer does not know the command table: a command is its index.
 *
 * The spread is a histogram with 32 buckets for each doubling of the time, so
 * that a percentile read from it is at most 1/32 above the true one and never
 * below it. Below 64 ns buckets are exact; the last one takes what is longer
 * than a minute. A loop gets one for a command when it runs it for the first
 * time, so that a command that nobody uses costs no memory.
 *
 * Doublings end where those of Redis's histograms do, whose buckets are four
 * times as narrow: a 128th above a power of two, at 1031 ns, 2063 ns, and so
 * on. So LATENCY HISTOGRAM has the same steps and counts the same.
 */
#pragma once

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STATS_SUB_BITS = 5, /* 32 buckets for each doubling */
    STATS_SUB = 1 << STATS_SUB_BITS,
    STATS_NS_BITS = 36, /* longer times, of about 2^36 ns, are all the same */
    STATS_BUCKETS = (STATS_NS_BITS - STATS_SUB_BITS + 1) * STATS_SUB
};

struct stats_spread {
    _Atomic uint64_t bucket[STATS_BUCKETS];
};

struct stats_command {
    _Atomic uint64_t calls, ns, rejected, failed;
    struct stats_spread *_Atomic spread; /* NULL: nothing was counted yet */
};

struct stats_slot {
    struct stats_command *command; /* [commands] */
    atomic_bool spreads;           /* whether times are spread over buckets */
    _Atomic uint64_t error[ERR_COUNT];
};

struct stats;

struct stats *stats_new(unsigned threads, unsigned commands);
void stats_free(struct stats *stats);
struct stats_slot *stats_slot(struct stats *stats, unsigned thread);

static inline void
stats_bump(_Atomic uint64_t *figure, uint64_t n)
{
    atomic_store_explicit(
        figure, atomic_load_explicit(figure, memory_order_relaxed) + n,
        memory_order_relaxed);
}

/* The longest time of the first `bits` doublings: 2^bits and a 128th of it,
 * less one. */
static inline uint64_t
stats_step_ns(unsigned bits)
{
    uint64_t end = (uint64_t)1 << bits;

    return end + end / 128 - 1;
}

/* Which bucket a time belongs to. Without each 129th of them, times double at
 * powers of two. */
static inline unsigned
stats_bucket(uint64_t ns)
{
    const uint64_t last = stats_step_ns(STATS_NS_BITS);
    unsigned shift;

    ns = ns > last ? last : ns;
    ns -= (ns + 1) / 129;
    shift = 63U - STATS_SUB_BITS - (unsigned)__builtin_clzll(ns | STATS_SUB);
    return (shift << STATS_SUB_BITS) + (unsigned)(ns >> shift);
}

/* Counts so many calls of a command that took took_ns in all; 0 calls: a part
 * of one that goes on. By the slot's owner. */
static inline void
stats_took(struct stats_slot *slot, unsigned command, uint64_t calls,
           uint64_t took_ns)
{
    struct stats_command *stat = &slot->command[command];

    stats_bump(&stat->calls, calls);
    stats_bump(&stat->ns, took_ns);
}

/* Counts the time of each of so many calls, from begin to end, where it is
 * wanted. Without memory for the buckets it is not counted. */
struct stats_spread *stats_new_spread(struct stats_command *stat);
static inline void
stats_lasted(struct stats_slot *slot, unsigned command, uint64_t calls,
             uint64_t each_ns)
{
    struct stats_command *stat = &slot->command[command];
    struct stats_spread *spread;

    if (!atomic_load_explicit(&slot->spreads, memory_order_relaxed)) {
        return;
    }
    spread = atomic_load_explicit(&stat->spread, memory_order_relaxed);
    if (__builtin_expect(spread == NULL, 0)) {
        spread = stats_new_spread(stat);
        if (spread == NULL) {
            return;
        }
    }
    stats_bump(&spread->bucket[stats_bucket(each_ns)], calls);
}

/* Switches the spreading on (as at the beginning) or off. Any thread. */
void stats_set_spreads(struct stats *stats, bool on);

struct stats_sum {
    uint64_t calls, ns, rejected, failed;
};
struct stats_sum stats_sum_command(const struct stats *stats, unsigned command);
uint64_t stats_sum_error(const struct stats *stats, enum err err);

/* All slots' buckets of a command, and what can be read from them. False, with
 * a count of 0, if nothing was counted. */
struct stats_histogram {
    uint64_t count;
    uint64_t bucket[STATS_BUCKETS];
};
bool stats_sum_spread(const struct stats *stats, unsigned command,
                      struct stats_histogram *ret_histogram);

/* The time that `percent` of the calls did not exceed: the end of the bucket
 * in which that call is. */
uint64_t stats_percentile_ns(const struct stats_histogram *histogram,
                             double percent);

/* How many calls took stats_step_ns(bits) at most. */
uint64_t stats_count_below(const struct stats_histogram *histogram,
                           unsigned bits);

/* All sums begin anew. Under the world gate, so that nobody sums meanwhile;
 * loops may count, and nothing that they counted before comes back. */
void stats_reset(struct stats *stats);
