/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When a key was last used, and how often: what eviction by age or by
 * frequency goes by, and OBJECT IDLETIME and FREQ show. It is in one word of
 * the entry, so that readers who share a lock may write it:
 *
 *   | 24 bits: second of the last use, modulo 194 days | 8 bits: frequency |
 *
 * The frequency is Redis's: a new key has 5, a use adds one with a probability
 * that sinks as the number rises, and it loses one for each span of time in
 * which it was not used. Uses are counted only while a policy looks at them
 * (access_policy.counts), and nothing is written more than once a second
 * otherwise. The clock is that of the last keyspace_reclaim, which stands while
 * the wall clock goes back: else what was used last would seem to be unused for
 * almost 194 days.
 */
#pragma once

#include "keyspace/keyspace.h"

enum {
    ACCESS_FREQUENCY_BITS = 8,
    ACCESS_FREQUENCY_MAX = (1 << ACCESS_FREQUENCY_BITS) - 1,
    ACCESS_FREQUENCY_NEW = 5,
    ACCESS_SECONDS_MAX = (1 << 24) - 1
};

/* The first member of a keyspace, for what follows inline. A use is news if
 * the masked word of its entry is not `expected`. */
struct keyspace_clock {
    _Atomic uint32_t mask, expected;
    _Atomic uint32_t now_s; /* modulo 2^32 */
};

/* Under the raised gate, or before there are loops. */
struct access_policy {
    bool counts;            /* uses; else only the time of the last one */
    uint32_t log_factor;    /* the higher, the more uses for the same number */
    uint32_t decay_minutes; /* the span without use that costs one; 0: none */
};
void access_set_policy(struct keyspace *ks, const struct access_policy *policy);

/* While it is on, uses are not written down: every page of memory that changes
 * under a child process is copied. Any thread. */
void access_pause(struct keyspace *ks, bool on);

/* A use of a key, under its lock, shared or not. */
void access_note_told(struct keyspace *ks, struct entry *entry);
static inline void
access_note(struct keyspace *ks, struct entry *entry)
{
    const struct keyspace_clock *clock = (const struct keyspace_clock *)ks;
    uint32_t word = atomic_load_explicit(&entry->access, memory_order_relaxed) &
                    atomic_load_explicit(&clock->mask, memory_order_relaxed);

    if (__builtin_expect(word != atomic_load_explicit(&clock->expected,
                                                      memory_order_relaxed),
                         0)) {
        access_note_told(ks, entry);
    }
}

/* Whether each use is news, and not only the first of a second. */
static inline bool
access_counts(const struct keyspace *ks)
{
    const struct keyspace_clock *clock = (const struct keyspace_clock *)ks;

    return (atomic_load_explicit(&clock->expected, memory_order_relaxed) & 1) !=
           0;
}

/* Seconds since the last use, and the frequency as it is now. */
uint32_t access_idle_s(const struct keyspace *ks, const struct entry *entry);
unsigned access_frequency(const struct keyspace *ks, const struct entry *entry);

/* As if it had last been used so long ago, or so often. */
void access_set_idle(struct keyspace *ks, struct entry *entry, uint64_t idle_s);
void access_set_frequency(struct entry *entry, unsigned frequency);

/* ---- for the rest of this layer ------------------------------------------ */

void access_init(struct keyspace *ks, uint64_t now_ms);
void access_tick(struct keyspace *ks, uint64_t now_ms);
void access_begin(const struct keyspace *ks, struct entry *entry);
void access_exchange(struct keyspace *a, struct keyspace *b);
void access_inherit(struct entry *entry, const struct entry *from);
