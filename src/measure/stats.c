/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each slot is one block with a cache line of space behind it, so that two
 * loops never write to the same line. The slot's loop publishes its histograms,
 * which stay until the end. It adds to its figures without a lock, so it could
 * overwrite a zero written by another thread. Therefore a reset only notes the
 * sums, and readers subtract them.
 */
#include "measure/stats.h"

#include "base/mem.h"

struct stats_block {
    struct stats_slot slot;
    char apart[64];
};

/* The sums of a command at the last reset. */
struct stats_before {
    struct stats_sum sum;
    struct stats_histogram *spread; /* NULL: there was none */
};

struct stats {
    unsigned threads, commands;
    struct stats_before *before; /* [commands] */
    uint64_t error_before[ERR_COUNT];
    struct stats_block *block[]; /* [threads] */
};

struct stats *
stats_new(unsigned threads, unsigned commands)
{
    struct stats *stats =
        mem_zalloc(sizeof(*stats) + threads * sizeof(struct stats_block *));

    stats->threads = threads;
    stats->commands = commands;
    stats->before = mem_zalloc(commands * sizeof(stats->before[0]));
    for (unsigned i = 0; i < threads; i++) {
        struct stats_block *block = mem_zalloc(sizeof(*block));

        /* Two more commands leave a cache line of space behind them. */
        block->slot.command =
            mem_zalloc((commands + 2) * sizeof(struct stats_command));
        block->slot.spreads = true;
        stats->block[i] = block;
    }
    return stats;
}

void
stats_free(struct stats *stats)
{
    if (stats == NULL) {
        return;
    }
    for (unsigned i = 0; i < stats->threads; i++) {
        struct stats_slot *slot = &stats->block[i]->slot;

        for (unsigned c = 0; c < stats->commands; c++) {
            mem_free(slot->command[c].spread);
        }
        mem_free(slot->command);
        mem_free(stats->block[i]);
    }
    for (unsigned c = 0; c < stats->commands; c++) {
        mem_free(stats->before[c].spread);
    }
    mem_free(stats->before);
    mem_free(stats);
}

struct stats_slot *
stats_slot(struct stats *stats, unsigned thread)
{
    CHECK(thread < stats->threads);
    return &stats->block[thread]->slot;
}

static uint64_t
figure(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

static struct stats_sum
sum_command(const struct stats *stats, unsigned command)
{
    struct stats_sum sum = { 0 };

    for (unsigned i = 0; i < stats->threads; i++) {
        const struct stats_command *from =
            &stats->block[i]->slot.command[command];

        sum.calls += figure(&from->calls);
        sum.ns += figure(&from->ns);
        sum.rejected += figure(&from->rejected);
        sum.failed += figure(&from->failed);
    }
    return sum;
}

struct stats_sum
stats_sum_command(const struct stats *stats, unsigned command)
{
    const struct stats_sum *before;
    struct stats_sum sum;

    CHECK(command < stats->commands);
    before = &stats->before[command].sum;
    sum = sum_command(stats, command);
    sum.calls -= before->calls;
    sum.ns -= before->ns;
    sum.rejected -= before->rejected;
    sum.failed -= before->failed;
    return sum;
}

static uint64_t
sum_error(const struct stats *stats, unsigned err)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < stats->threads; i++) {
        sum += figure(&stats->block[i]->slot.error[err]);
    }
    return sum;
}

uint64_t
stats_sum_error(const struct stats *stats, enum err err)
{
    CHECK(err < ERR_COUNT);
    return sum_error(stats, err) - stats->error_before[err];
}

/* ---- spreads ------------------------------------------------------------- */

struct stats_spread *
stats_new_spread(struct stats_command *stat)
{
    struct stats_spread *spread = mem_try_zalloc(sizeof(*spread));

    atomic_store_explicit(&stat->spread, spread, memory_order_release);
    return spread;
}

void
stats_set_spreads(struct stats *stats, bool on)
{
    for (unsigned i = 0; i < stats->threads; i++) {
        atomic_store_explicit(&stats->block[i]->slot.spreads, on,
                              memory_order_relaxed);
    }
}

static const struct stats_spread *
spread_of(const struct stats *stats, unsigned thread, unsigned command)
{
    return atomic_load_explicit(
        &stats->block[thread]->slot.command[command].spread,
        memory_order_acquire);
}

/* Adds up the histograms of a command. False: there are none, and the buckets
 * of `histogram` are not set. */
static bool
sum_spread(const struct stats *stats, unsigned command,
           struct stats_histogram *histogram)
{
    bool some = false;

    histogram->count = 0;
    for (unsigned i = 0; i < stats->threads; i++) {
        const struct stats_spread *from = spread_of(stats, i, command);

        if (from != NULL && !some) {
            memset(histogram->bucket, 0, sizeof(histogram->bucket));
            some = true;
        }
        for (unsigned b = 0; from != NULL && b < STATS_BUCKETS; b++) {
            uint64_t count = figure(&from->bucket[b]);

            histogram->bucket[b] += count;
            histogram->count += count;
        }
    }
    return some;
}

bool
stats_sum_spread(const struct stats *stats, unsigned command,
                 struct stats_histogram *ret_histogram)
{
    const struct stats_histogram *before;

    CHECK(command < stats->commands);
    before = stats->before[command].spread;
    if (sum_spread(stats, command, ret_histogram) && before != NULL) {
        ret_histogram->count -= before->count;
        for (unsigned b = 0; b < STATS_BUCKETS; b++) {
            ret_histogram->bucket[b] -= before->bucket[b];
        }
    }
    return ret_histogram->count > 0;
}

bool
stats_sum_spreads(const struct stats *stats,
                  struct stats_histogram *ret_histogram)
{
    struct stats_histogram one;

    *ret_histogram = (struct stats_histogram){ 0 };
    for (unsigned c = 0; c < stats->commands; c++) {
        if (stats_sum_spread(stats, c, &one)) {
            ret_histogram->count += one.count;
            for (unsigned b = 0; b < STATS_BUCKETS; b++) {
                ret_histogram->bucket[b] += one.bucket[b];
            }
        }
    }
    return ret_histogram->count > 0;
}

uint64_t
stats_bucket_end_ns(unsigned bucket)
{
    unsigned shift = bucket < STATS_SUB ? 0 : (bucket >> STATS_SUB_BITS) - 1;
    uint64_t sub = bucket - (shift << STATS_SUB_BITS);

    uint64_t end = (sub + 1) << shift;

    return end + end / 128 - 1; /* see stats_bucket() */
}

uint64_t
stats_percentile_ns(const struct stats_histogram *histogram, double percent)
{
    double place = percent / 100 * (double)histogram->count + 0.5;
    uint64_t wanted = place < 1 ? 1 : (uint64_t)place;
    uint64_t seen = 0;
    unsigned last = 0;

    for (unsigned b = 0; b < STATS_BUCKETS && seen < wanted; b++) {
        seen += histogram->bucket[b];
        last = histogram->bucket[b] > 0 ? b : last;
    }
    return stats_bucket_end_ns(last);
}

uint64_t
stats_count_below(const struct stats_histogram *histogram, unsigned bits)
{
    unsigned end = bits < STATS_NS_BITS ? stats_bucket(stats_step_ns(bits) + 1)
                                        : STATS_BUCKETS;
    uint64_t count = 0;

    for (unsigned b = 0; b < end; b++) {
        count += histogram->bucket[b];
    }
    return count;
}

/* ---- reset --------------------------------------------------------------- */

/* Sets the buckets to zero, if there is no memory to note them. A loop that
 * counts at this moment may restore one of them. */
static void
empty_spreads(struct stats *stats, unsigned command)
{
    for (unsigned i = 0; i < stats->threads; i++) {
        struct stats_spread *spread =
            stats->block[i]->slot.command[command].spread;

        for (unsigned b = 0; spread != NULL && b < STATS_BUCKETS; b++) {
            atomic_store_explicit(&spread->bucket[b], 0, memory_order_relaxed);
        }
    }
}

static bool
has_spread(const struct stats *stats, unsigned command)
{
    bool some = false;

    for (unsigned i = 0; i < stats->threads; i++) {
        some = some || spread_of(stats, i, command) != NULL;
    }
    return some;
}

void
stats_reset(struct stats *stats)
{
    for (unsigned c = 0; c < stats->commands; c++) {
        struct stats_before *before = &stats->before[c];

        before->sum = sum_command(stats, c);
        if (!has_spread(stats, c)) {
            continue;
        }
        if (before->spread == NULL) {
            before->spread = mem_try_alloc(sizeof(*before->spread));
        }
        if (before->spread != NULL) {
            (void)sum_spread(stats, c, before->spread);
        } else {
            empty_spreads(stats, c);
        }
    }
    for (unsigned e = 0; e < ERR_COUNT; e++) {
        stats->error_before[e] = sum_error(stats, e);
    }
}
