/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A write to a huge page that a save child still shares breaks it into 4 KiB
 * pages for good: lookups take twice as long, and the next fork thirty times
 * (design.md, section 6). So after a child has ended, loop 0 walks all large
 * layers, a few stripes a tick, and the task thread asks the kernel to join
 * their pages again, 2 MiB at a time (MADV_COLLAPSE, Linux 6.1; without it
 * nothing happens).
 *
 * A range may be freed, or used for something else, before the task reaches it:
 * that is harmless, since the advice changes no contents.
 */
#include "persist/collapse.h"

#include "base/clock.h"
#include "base/huge.h"
#include "keyspace/gate.h"
#include "keyspace/scan.h"
#include "persist/persist_state.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { KEYS_A_TICK = 4096, BUCKETS_A_TICK = 4096 };

/* The most that one task takes, since others may wait for the thread. */
static const uint64_t TASK_NS = 20000000;

void
collapse_want(struct persist *persist)
{
    struct persist_collapse *collapse = &persist->collapse;

    collapse->wanted = true;
    collapse->db = 0;
    collapse->cursor = 0;
}

/* Notes the large layers of an entry. Layers for which there is no range left
 * are collapsed after a later save. */
static bool
note_layers(void *ctx, const struct entry *entry, uint64_t expires_at_ms)
{
    struct persist_collapse *collapse = ctx;
    size_t bytes = 0;
    const void *lines;

    (void)expires_at_ms;
    for (uint32_t i = 0;
         (lines = bloom_layer_lines(&entry->bloom, i, &bytes)) != NULL; i++) {
        if (bytes >= HUGE_PAGE_BYTES &&
            collapse->count < PERSIST_COLLAPSE_RANGES) {
            /* NOLINTNEXTLINE(performance-no-int-to-ptr): only casts const */
            char *at = (char *)(uintptr_t)lines;

            collapse->ranges[collapse->count].at = at;
            collapse->ranges[collapse->count++].end = at + huge_round(bytes);
        }
    }
    return collapse->count < PERSIST_COLLAPSE_RANGES / 2;
}

static void
collapse_ranges(void *arg)
{
    struct persist_collapse *collapse = arg;
    uint64_t end_ns = clock_mono_ns() + TASK_NS;

    while (collapse->done < collapse->count) {
        char **at = &collapse->ranges[collapse->done].at;

        if (*at >= collapse->ranges[collapse->done].end) {
            collapse->done++;
            continue;
        }
        if (clock_mono_ns() >= end_ns) {
            return;
        }
        if (madvise(*at, HUGE_PAGE_BYTES, MADV_COLLAPSE) == 0) {
            atomic_fetch_add(&collapse->pages, 1);
        } else if (errno == EINVAL) { /* not this kernel */
            collapse->done = collapse->count;
        }
        *at += HUGE_PAGE_BYTES;
    }
}

void
collapse_tick(struct persist *persist)
{
    struct persist_collapse *collapse = &persist->collapse;
    struct keyspace *ks = persist->options.keyspace;

    if (task_is_running(persist->task)) {
        return;
    }
    if (collapse->done < collapse->count) {
        task_start(persist->task, collapse_ranges, collapse);
        return;
    }
    if (!collapse->wanted) {
        return;
    }
    collapse->count = collapse->done = 0;
    gate_enter(persist->gate, 0);
    collapse->cursor =
        keyspace_scan(ks, 0, collapse->db, collapse->cursor, KEYS_A_TICK,
                      BUCKETS_A_TICK, clock_wall_ms(), note_layers, collapse);
    gate_leave(persist->gate, 0);
    if (collapse->cursor == 0) {
        collapse->db++;
        collapse->wanted = collapse->db < keyspace_databases(ks);
    }
    if (collapse->count > 0) {
        task_start(persist->task, collapse_ranges, collapse);
    }
}
