/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Readers that share a lock may lose one another's counts; that is as good as
 * the chance by which uses are counted anyway.
 */
#include "keyspace/access.h"

#include "base/random.h"
#include "keyspace/keyspace_internal.h"

enum { MINUTE_S = 60, CHANCES = 1 << 30 };

static const uint32_t SECONDS_MASK = ~(uint32_t)ACCESS_FREQUENCY_MAX;

_Static_assert(offsetof(struct keyspace, clock) == 0, "access.h relies on it");

static uint32_t
now_of(const struct keyspace *ks)
{
    return atomic_load_explicit(&ks->clock.now_s, memory_order_relaxed);
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

/* What access_note compares. While it is paused no use is news, while uses are
 * counted every one is, else the first of a second. */
static void
publish(struct keyspace *ks)
{
    uint32_t mask = SECONDS_MASK;
    uint32_t expected = now_of(ks) << ACCESS_FREQUENCY_BITS;

    if (atomic_load_explicit(&ks->access_paused, memory_order_relaxed)) {
        mask = 0;
        expected = 0;
    } else if (atomic_load_explicit(&ks->access_counts, memory_order_relaxed)) {
        mask = 0;
        expected = 1;
    }
    atomic_store_explicit(&ks->clock.mask, mask, memory_order_relaxed);
    atomic_store_explicit(&ks->clock.expected, expected, memory_order_relaxed);
}

void
access_init(struct keyspace *ks, uint64_t now_ms)
{
    ks->access_policy =
        (struct access_policy){ .log_factor = 10, .decay_minutes = 1 };
    ks->wall_ms = ks->access_ms = now_ms;
    access_tick(ks, now_ms);
}

void
access_tick(struct keyspace *ks, uint64_t now_ms)
{
    ks->access_ms += now_ms > ks->wall_ms ? now_ms - ks->wall_ms : 0;
    ks->wall_ms = now_ms;
    atomic_store_explicit(&ks->clock.now_s, (uint32_t)(ks->access_ms / 1000),
                          memory_order_relaxed);
    publish(ks);
}

void
access_set_policy(struct keyspace *ks, const struct access_policy *policy)
{
    ks->access_policy = *policy;
    atomic_store_explicit(&ks->access_counts, policy->counts,
                          memory_order_relaxed);
    publish(ks);
}

void
access_pause(struct keyspace *ks, bool on)
{
    atomic_store_explicit(&ks->access_paused, on, memory_order_relaxed);
    publish(ks);
}

void
access_begin(const struct keyspace *ks, struct entry *entry)
{
    store(entry, now_of(ks), ACCESS_FREQUENCY_NEW);
}

void
access_inherit(struct entry *entry, const struct entry *from)
{
    atomic_store_explicit(&entry->access, load(from), memory_order_relaxed);
}

/* The clocks that the entries' words go by; the settings stay. */
void
access_exchange(struct keyspace *a, struct keyspace *b)
{
    uint64_t wall_ms = a->wall_ms;
    uint64_t access_ms = a->access_ms;
    uint32_t now_s = now_of(a);

    a->wall_ms = b->wall_ms;
    b->wall_ms = wall_ms;
    a->access_ms = b->access_ms;
    b->access_ms = access_ms;
    atomic_store_explicit(&a->clock.now_s, now_of(b), memory_order_relaxed);
    atomic_store_explicit(&b->clock.now_s, now_s, memory_order_relaxed);
    publish(a);
    publish(b);
}

/* ---- reading it ---------------------------------------------------------- */

uint32_t
access_idle_s(const struct keyspace *ks, const struct entry *entry)
{
    uint32_t used_s = load(entry) >> ACCESS_FREQUENCY_BITS;

    return (now_of(ks) - used_s) & ACCESS_SECONDS_MAX;
}

/* Minutes are counted by the turns of the clock, so that one who comes every
 * half a minute does not keep the number up for ever. */
unsigned
access_frequency(const struct keyspace *ks, const struct entry *entry)
{
    unsigned frequency = load(entry) & ACCESS_FREQUENCY_MAX;
    uint32_t now_s = now_of(ks);
    uint32_t used_s = now_s - access_idle_s(ks, entry);
    uint32_t spans;

    if (ks->access_policy.decay_minutes == 0) {
        return frequency;
    }
    spans = (now_s / MINUTE_S - used_s / MINUTE_S) /
            ks->access_policy.decay_minutes;
    return spans < frequency ? frequency - spans : 0;
}

/* ---- writing it ---------------------------------------------------------- */

static bool
chance(const struct keyspace *ks, unsigned frequency)
{
    unsigned above =
        frequency > ACCESS_FREQUENCY_NEW ? frequency - ACCESS_FREQUENCY_NEW : 0;
    uint64_t against = (uint64_t)above * ks->access_policy.log_factor + 1;

    return frequency < ACCESS_FREQUENCY_MAX &&
           random_below(CHANCES) < CHANCES / against;
}

void
access_note_told(struct keyspace *ks, struct entry *entry)
{
    unsigned frequency = load(entry) & ACCESS_FREQUENCY_MAX;

    if (ks->access_policy.counts) {
        frequency = access_frequency(ks, entry);
        frequency += chance(ks, frequency) ? 1 : 0;
    }
    store(entry, now_of(ks), frequency);
}

void
access_set_idle(struct keyspace *ks, struct entry *entry, uint64_t idle_s)
{
    uint32_t idle =
        idle_s < ACCESS_SECONDS_MAX ? (uint32_t)idle_s : ACCESS_SECONDS_MAX;

    store(entry, now_of(ks) - idle, load(entry) & ACCESS_FREQUENCY_MAX);
}

void
access_set_frequency(struct entry *entry, unsigned frequency)
{
    store(entry, load(entry) >> ACCESS_FREQUENCY_BITS, frequency);
}
