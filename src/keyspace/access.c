/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Readers that share a lock may overwrite one another's counts. That does no
 * harm, since a use is counted only with a probability anyway.
 */
#include "keyspace/access.h"

#include "base/random.h"

enum { MINUTE_S = 60, CHANCES = 1 << 30 };

static const uint32_t SECONDS_MASK = ~(uint32_t)ACCESS_FREQUENCY_MAX;

static uint32_t
now_of(const struct access *access)
{
    return atomic_load_explicit(&access->now_s, memory_order_relaxed);
}

static uint32_t
load(const struct entry *entry)
{
    return atomic_load_explicit(&entry->access, memory_order_relaxed);
}

static void
store(struct entry *entry, uint32_t now_s, unsigned frequency)
{
    atomic_store_explicit(&entry->access,
                          now_s << ACCESS_FREQUENCY_BITS | frequency,
                          memory_order_relaxed);
}

/* Sets the values that access_note compares. While uses are counted, each use
 * is recorded; otherwise only the first one in a second. */
static void
publish(struct access *access)
{
    uint32_t mask = SECONDS_MASK;
    uint32_t expected = now_of(access) << ACCESS_FREQUENCY_BITS;

    if (atomic_load_explicit(&access->counts, memory_order_relaxed)) {
        mask = 0;
        expected = 1;
    }
    atomic_store_explicit(&access->mask, mask, memory_order_relaxed);
    atomic_store_explicit(&access->expected, expected, memory_order_relaxed);
}

void
access_init(struct access *access, uint64_t now_ms)
{
    access->policy =
        (struct access_policy){ .log_factor = 10, .decay_minutes = 1 };
    access->wall_ms = access->time_ms = now_ms;
    access_tick(access, now_ms);
}

void
access_tick(struct access *access, uint64_t now_ms)
{
    access->time_ms += now_ms > access->wall_ms ? now_ms - access->wall_ms : 0;
    access->wall_ms = now_ms;
    atomic_store_explicit(&access->now_s, (uint32_t)(access->time_ms / 1000),
                          memory_order_relaxed);
    publish(access);
}

void
access_set_policy(struct access *access, const struct access_policy *policy)
{
    access->policy = *policy;
    atomic_store_explicit(&access->counts, policy->counts,
                          memory_order_relaxed);
    publish(access);
}

void
access_begin(const struct access *access, struct entry *entry)
{
    store(entry, now_of(access), ACCESS_FREQUENCY_NEW);
}

void
access_inherit(struct entry *entry, const struct entry *from)
{
    atomic_store_explicit(&entry->access, load(from), memory_order_relaxed);
}

void
access_exchange(struct access *a, struct access *b)
{
    uint64_t wall_ms = a->wall_ms;
    uint64_t time_ms = a->time_ms;
    uint32_t now_s = now_of(a);

    a->wall_ms = b->wall_ms;
    b->wall_ms = wall_ms;
    a->time_ms = b->time_ms;
    b->time_ms = time_ms;
    atomic_store_explicit(&a->now_s, now_of(b), memory_order_relaxed);
    atomic_store_explicit(&b->now_s, now_s, memory_order_relaxed);
    publish(a);
    publish(b);
}

/* ---- reading a use ------------------------------------------------------- */

uint32_t
access_idle_s(const struct access *access, const struct entry *entry)
{
    uint32_t used_s = load(entry) >> ACCESS_FREQUENCY_BITS;

    return (now_of(access) - used_s) & ACCESS_SECONDS_MAX;
}

/* Lowers the frequency by the minutes that began on the clock since the last
 * use, not by the full minutes since then. Otherwise a key that is used every
 * half minute would keep its frequency for ever. */
unsigned
access_frequency(const struct access *access, const struct entry *entry)
{
    unsigned frequency = load(entry) & ACCESS_FREQUENCY_MAX;
    uint32_t now_s = now_of(access);
    uint32_t used_s = now_s - access_idle_s(access, entry);
    uint32_t spans;

    if (access->policy.decay_minutes == 0) {
        return frequency;
    }
    spans =
        (now_s / MINUTE_S - used_s / MINUTE_S) / access->policy.decay_minutes;
    return spans < frequency ? frequency - spans : 0;
}

/* ---- writing a use ------------------------------------------------------- */

static bool
chance(const struct access *access, unsigned frequency)
{
    unsigned above =
        frequency > ACCESS_FREQUENCY_NEW ? frequency - ACCESS_FREQUENCY_NEW : 0;
    uint64_t against = (uint64_t)above * access->policy.log_factor + 1;

    return frequency < ACCESS_FREQUENCY_MAX &&
           random_below(CHANCES) < CHANCES / against;
}

void
access_record(const struct access *access, struct entry *entry)
{
    unsigned frequency = load(entry) & ACCESS_FREQUENCY_MAX;

    if (access->policy.counts) {
        frequency = access_frequency(access, entry);
        frequency += chance(access, frequency) ? 1 : 0;
    }
    store(entry, now_of(access), frequency);
}

void
access_set_idle(const struct access *access, struct entry *entry,
                uint64_t idle_s)
{
    uint32_t idle =
        idle_s < ACCESS_SECONDS_MAX ? (uint32_t)idle_s : ACCESS_SECONDS_MAX;

    store(entry, now_of(access) - idle, load(entry) & ACCESS_FREQUENCY_MAX);
}

void
access_set_frequency(struct entry *entry, unsigned frequency)
{
    store(entry, load(entry) >> ACCESS_FREQUENCY_BITS, frequency);
}
