/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Statistics of commands: calls, time, failures, and a histogram of the times.
 * Each loop has a slot that only it writes (relaxed atomics); INFO adds them
 * up. This room does not know the command table: a command is an index.
 *
 * The histogram (spread) has 32 buckets for each doubling of the time, so a
 * percentile read from it is at most 1/32 above the true one, and never below.
 * Buckets below 64 ns are exact; the last bucket counts all times above a
 * minute. A loop allocates the histogram of a command when it first runs it, so
 * unused commands cost no memory.
 *
 * Doublings end where they end in Redis's histograms, which have four times as
 * many buckets: a 128th above a power of two, at 1031 ns, 2063 ns, and so on.
 * So LATENCY HISTOGRAM shows the same steps with the same counts.
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
    STATS_NS_BITS = 36, /* times above 2^36 ns share the last bucket */
    STATS_BUCKETS = (STATS_NS_BITS - STATS_SUB_BITS + 1) * STATS_SUB
};

struct stats_spread {
    _Atomic uint64_t bucket[STATS_BUCKETS];
};

struct stats_command {
    _Atomic uint64_t calls, ns, rejected, failed;
    struct stats_spread *_Atomic spread; /* NULL: no time was counted yet */
};

struct stats_slot {
    struct stats_command *command; /* [commands] */
    atomic_bool spreads;           /* whether times are counted in buckets */
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

/* Returns the longest time of the first `bits` doublings: 2^bits plus a 128th
 * of it, minus one. */
static inline uint64_t
stats_step_ns(unsigned bits)
{
    uint64_t end = (uint64_t)1 << bits;

    return end + end / 128 - 1;
}

/* Returns the bucket of a time. Subtracting a 129th makes the doublings end at
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

/* Counts calls of a command that took took_ns together. With 0 calls, counts
 * the time of a part of an unfinished call. Only the slot's loop calls it. */
static inline void
stats_took(struct stats_slot *slot, unsigned command, uint64_t calls,
           uint64_t took_ns)
{
    struct stats_command *stat = &slot->command[command];

    stats_bump(&stat->calls, calls);
    stats_bump(&stat->ns, took_ns);
}

/* Returns the longest time of a bucket. */
uint64_t stats_bucket_end_ns(unsigned bucket);

/* Counts the time of each call from begin to end in the histogram, if
 * histograms are on and there is memory for one. */
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

/* Turns the histograms on (the default) or off. Any thread. */
void stats_set_spreads(struct stats *stats, bool on);

struct stats_sum {
    uint64_t calls, ns, rejected, failed;
};
struct stats_sum stats_sum_command(const struct stats *stats, unsigned command);
uint64_t stats_sum_error(const struct stats *stats, enum err err);

/* Adds up the buckets of all slots. False, with a count of 0, if no time was
 * counted. */
struct stats_histogram {
    uint64_t count;
    uint64_t bucket[STATS_BUCKETS];
};
bool stats_sum_spread(const struct stats *stats, unsigned command,
                      struct stats_histogram *ret_histogram);

/* Does the same for all commands together. */
bool stats_sum_spreads(const struct stats *stats,
                       struct stats_histogram *ret_histogram);

/* Returns the time that `percent` of the calls did not exceed, rounded up to
 * the end of a bucket. */
uint64_t stats_percentile_ns(const struct stats_histogram *histogram,
                             double percent);

/* Counts the calls that took at most stats_step_ns(bits). */
uint64_t stats_count_below(const struct stats_histogram *histogram,
                           unsigned bits);

/* Sets all sums to zero. Under the raised gate, so that no other thread adds up
 * meanwhile; loops may go on counting. */
void stats_reset(struct stats *stats);
