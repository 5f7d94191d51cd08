/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What each command cost: calls, time, failures; one slot a loop, written by
 * it alone (relaxed atomics), summed by INFO. The admin layer does not know
 * the command table: a command is its index.
 */
#pragma once

#include "base/err.h"

#include <stdatomic.h>
#include <stdint.h>

struct stats_command {
    _Atomic uint64_t calls, ns, rejected, failed;
};

struct stats_slot {
    struct stats_command *command; /* [commands] */
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

struct stats_sum {
    uint64_t calls, ns, rejected, failed;
};
struct stats_sum stats_sum_command(const struct stats *stats, unsigned command);
uint64_t stats_sum_error(const struct stats *stats, enum err err);

/* Under the world gate. */
void stats_reset(struct stats *stats);
