/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One block a slot, with a cache line of room behind it, so that two loops do
 * not write the same line.
 */
#include "admin/stats.h"

#include "base/mem.h"

struct stats_block {
    struct stats_slot slot;
    char apart[64];
};

struct stats_place {
    struct stats_block *block;
};

struct stats {
    unsigned threads, commands;
    struct stats_place place[]; /* [threads] */
};

struct stats *
stats_new(unsigned threads, unsigned commands)
{
    struct stats *stats =
        mem_zalloc(sizeof(*stats) + threads * sizeof(stats->place[0]));

    stats->threads = threads;
    stats->commands = commands;
    for (unsigned i = 0; i < threads; i++) {
        struct stats_block *block = mem_zalloc(sizeof(*block));

        /* Two more than asked for: a line of room behind the commands. */
        block->slot.command =
            mem_zalloc((commands + 2) * sizeof(struct stats_command));
        stats->place[i].block = block;
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
        mem_free(stats->place[i].block->slot.command);
        mem_free(stats->place[i].block);
    }
    mem_free(stats);
}

struct stats_slot *
stats_slot(struct stats *stats, unsigned thread)
{
    CHECK(thread < stats->threads);
    return &stats->place[thread].block->slot;
}

static uint64_t
figure(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

struct stats_sum
stats_sum_command(const struct stats *stats, unsigned command)
{
    struct stats_sum sum = { 0 };

    CHECK(command < stats->commands);
    for (unsigned i = 0; i < stats->threads; i++) {
        const struct stats_command *from =
            &stats->place[i].block->slot.command[command];

        sum.calls += figure(&from->calls);
        sum.ns += figure(&from->ns);
        sum.rejected += figure(&from->rejected);
        sum.failed += figure(&from->failed);
    }
    return sum;
}

uint64_t
stats_sum_error(const struct stats *stats, enum err err)
{
    uint64_t sum = 0;

    CHECK(err < ERR_COUNT);
    for (unsigned i = 0; i < stats->threads; i++) {
        sum += figure(&stats->place[i].block->slot.error[err]);
    }
    return sum;
}

static void
clear(_Atomic uint64_t *at)
{
    atomic_store_explicit(at, 0, memory_order_relaxed);
}

void
stats_reset(struct stats *stats)
{
    for (unsigned i = 0; i < stats->threads; i++) {
        struct stats_slot *slot = &stats->place[i].block->slot;

        for (unsigned c = 0; c < stats->commands; c++) {
            clear(&slot->command[c].calls);
            clear(&slot->command[c].ns);
            clear(&slot->command[c].rejected);
            clear(&slot->command[c].failed);
        }
        for (unsigned e = 0; e < ERR_COUNT; e++) {
            clear(&slot->error[e]);
        }
    }
}
