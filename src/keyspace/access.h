/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When a key was last used, and how often: eviction by age or frequency and
 * OBJECT IDLETIME and FREQ need it. One word of the entry has both, so that
 * readers who share a lock may write it:
 *
 *   | 24 bits: second of the last use, modulo 194 days | 8 bits: frequency |
 *
 * The frequency is Redis's: a new key has 5, a use adds one with a probability
 * that falls as the number rises, and each period without use subtracts one.
 * Uses are counted only while an eviction policy needs it
 * (access_policy.counts); otherwise a key's word is written at most once a
 * second. The clock advances in access_tick and stands still while the wall
 * clock goes back: otherwise the key used last would seem to be unused for
 * almost 194 days.
 */
#pragma once

#include "keyspace/entry.h"

#include <stdbool.h>

enum {
    ACCESS_FREQUENCY_BITS = 8,
    ACCESS_FREQUENCY_MAX = (1 << ACCESS_FREQUENCY_BITS) - 1,
    ACCESS_FREQUENCY_NEW = 5,
    ACCESS_SECONDS_MAX = (1 << 24) - 1
};

/* What access_set_policy changes: under the raised gate, or before there are
 * loops. */
struct access_policy {
    bool counts; /* whether uses are counted; else only the time of the last one
                    is kept */
    uint32_t log_factor; /* the higher, the more uses for the same frequency */
    uint32_t decay_minutes; /* the period without use that subtracts one; 0: the
                               frequency never falls */
};

/* A keyspace has one. A use is recorded if the masked word of its entry differs
 * from `expected`. */
struct access {
    _Atomic uint32_t mask, expected;
    _Atomic uint32_t now_s; /* modulo 2^32 */
    struct access_policy policy;
    atomic_bool counts;        /* policy.counts, for access_tick, which reads it
                                  outside any section of the gate */
    uint64_t wall_ms, time_ms; /* at the last access_tick */
};

void access_init(struct access *access, uint64_t now_ms);

/* Advances the clock. One thread at a time. */
void access_tick(struct access *access, uint64_t now_ms);

void access_set_policy(struct access *access,
                       const struct access_policy *policy);

/* Records a use of a key, under its lock, shared or not. */
void access_record(const struct access *access, struct entry *entry);
static inline void
access_note(const struct access *access, struct entry *entry)
{
    uint32_t word = atomic_load_explicit(&entry->access, memory_order_relaxed) &
                    atomic_load_explicit(&access->mask, memory_order_relaxed);

    if (__builtin_expect(word != atomic_load_explicit(&access->expected,
                                                      memory_order_relaxed),
                         0)) {
        access_record(access, entry);
    }
}

/* Returns whether each use is recorded, not only the first in a second. */
static inline bool
access_counts(const struct access *access)
{
    return (atomic_load_explicit(&access->expected, memory_order_relaxed) &
            1) != 0;
}

/* Return the seconds since the last use, and the present frequency. */
uint32_t access_idle_s(const struct access *access, const struct entry *entry);
unsigned access_frequency(const struct access *access,
                          const struct entry *entry);

/* Set when the entry was last used (idle_s ago), and its frequency. */
void access_set_idle(const struct access *access, struct entry *entry,
                     uint64_t idle_s);
void access_set_frequency(struct entry *entry, unsigned frequency);

/* Set the word of a new entry, and of an entry that replaces FROM. */
void access_begin(const struct access *access, struct entry *entry);
void access_inherit(struct entry *entry, const struct entry *from);

/* Exchanges the clocks of two keyspaces that exchange their entries; the
 * policies stay. */
void access_exchange(struct access *a, struct access *b);
