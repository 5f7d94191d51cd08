/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counters and gauges of tbl/metrics.def. Each thread adds to a slot that no
 * other thread writes (relaxed atomics, no locked instruction). Readers sum all
 * slots; a figure may be a moment old, but never torn. A thread gets a slot at
 * its first use, and passes it on by metric_thread_exit().
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum metric {
#define METRIC(id, kind, unit, name, text) METRIC_##id,
#include "tbl/metrics.def"
#undef METRIC
    METRIC_COUNT
};

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE };

/* The unit of the values: things, bytes, microseconds or milliseconds. */
enum metric_unit {
    METRIC_IN_COUNT,
    METRIC_IN_BYTES,
    METRIC_IN_US,
    METRIC_IN_MS
};

struct metric_slot {
    _Alignas(64) _Atomic int64_t value[METRIC_COUNT];
};

struct metric_row {
    const char *name, *text;
    enum metric_kind kind;
    enum metric_unit unit;
};

extern const struct metric_row metric_table[METRIC_COUNT];
extern _Thread_local struct metric_slot *metric_own_slot;

struct metric_slot *metric_claim_slot(void);

/* Adds to the calling thread's slot. In a library it does nothing: nobody reads
 * the figures, and the program may have more threads than there are slots. */
static inline void
metric_add(enum metric metric, int64_t n)
{
#ifdef BLOOMERY_LIBRARY
    (void)metric;
    (void)n;
#else
    struct metric_slot *slot = metric_own_slot;
    _Atomic int64_t *value;

    if (__builtin_expect(slot == NULL, 0)) {
        slot = metric_claim_slot();
    }
    value = &slot->value[metric];
    atomic_store_explicit(value,
                          atomic_load_explicit(value, memory_order_relaxed) + n,
                          memory_order_relaxed);
#endif
}

/* Returns the sum over all threads, since the last reset. */
int64_t metric_sum(enum metric metric);

/* Returns the sum since the start of the process. */
int64_t metric_sum_ever(enum metric metric);

/* Resets all counters to zero, while other threads may count; gauges stay. One
 * thread at a time: call it under the raised gate. */
void metric_reset_counters(void);

/* Releases the slot; its values stay in the sums. */
void metric_thread_exit(void);
