/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A fixed set of slots, whose values outlive the threads. Only its own thread
 * writes to a slot, so a reset does not change slots, but remembers the sums so
 * far.
 */
#include "base/metrics.h"

#include "base/err.h"

#include <stddef.h>

enum { SLOTS = 128 };

static struct metric_slot slots[SLOTS];
static _Atomic int slot_taken[SLOTS];
static _Atomic int slots_used; /* highest index ever taken, plus one */
static _Atomic int64_t sum_before[METRIC_COUNT]; /* at the last reset */

_Thread_local struct metric_slot *metric_own_slot;

const struct metric_row metric_table[METRIC_COUNT] = {
#define METRIC(id, k, u, n, t)                                                 \
    [METRIC_##id] = {                                                          \
        .name = (n), .text = (t), .kind = METRIC_##k, .unit = METRIC_IN_##u    \
    },
#include "tbl/metrics.def"
#undef METRIC
};

struct metric_slot *
metric_claim_slot(void)
{
    for (int i = 0; i < SLOTS; i++) {
        int free_mark = 0;

        if (atomic_compare_exchange_strong(&slot_taken[i], &free_mark, 1)) {
            int used = atomic_load(&slots_used);

            while (used <= i &&
                   !atomic_compare_exchange_weak(&slots_used, &used, i + 1)) {
            }
            metric_own_slot = &slots[i];
            return metric_own_slot;
        }
    }
    err_check_failed(__FILE__, __LINE__, "more threads than metric slots");
}

static int64_t
sum_slots(int metric)
{
    int used = atomic_load(&slots_used);
    int64_t sum = 0;

    for (int i = 0; i < used; i++) {
        sum +=
            atomic_load_explicit(&slots[i].value[metric], memory_order_relaxed);
    }
    return sum;
}

/* Reads sum_before first, so that a sum made during a reset is not negative. */
int64_t
metric_sum(enum metric metric)
{
    int64_t before = atomic_load(&sum_before[metric]);

    return sum_slots((int)metric) - before;
}

int64_t
metric_sum_ever(enum metric metric)
{
    return sum_slots((int)metric);
}

void
metric_reset_counters(void)
{
    for (int m = 0; m < METRIC_COUNT; m++) {
        if (metric_table[m].kind == METRIC_COUNTER) {
            atomic_store(&sum_before[m], sum_slots(m));
        }
    }
}

void
metric_thread_exit(void)
{
    if (metric_own_slot != NULL) {
        atomic_store(&slot_taken[metric_own_slot - slots], 0);
        metric_own_slot = NULL;
    }
}
