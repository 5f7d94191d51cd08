/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Only the sampling thread uses the rings. It publishes the results in atomics.
 * A counter that has fallen was reset, so its ring starts again.
 */
#include "measure/sampler.h"

#include "base/mem.h"
#include "base/metrics.h"

#include <stdatomic.h>
#include <sys/resource.h>

static const double SECOND_NS = 1e9;

struct ring {
    struct reading {
        uint64_t at_ns, counter;
    } reading[SAMPLER_SAMPLES + 1]; /* one more than the intervals */
    unsigned count, next;
    _Atomic uint64_t per_second_x1000;
};

struct sampler {
    struct ring ring[SAMPLER_RATES];
    _Atomic uint64_t peak_bytes, user_us, system_us;
};

struct sampler *
sampler_new(void)
{
    return mem_zalloc(sizeof(struct sampler));
}

void
sampler_free(struct sampler *sampler)
{
    mem_free(sampler);
}

static void
add_reading(struct ring *ring, uint64_t now_ns, uint64_t counter)
{
    const unsigned size = SAMPLER_SAMPLES + 1;
    const struct reading *oldest;
    double rate = 0;

    if (ring->count > 0 &&
        counter < ring->reading[(ring->next + size - 1) % size].counter) {
        ring->count = 0;
    }
    ring->reading[ring->next] = (struct reading){ now_ns, counter };
    ring->next = (ring->next + 1) % size;
    if (ring->count < size) {
        ring->count++;
    }
    oldest = &ring->reading[(ring->next + size - ring->count) % size];
    if (now_ns > oldest->at_ns) {
        rate = (double)(counter - oldest->counter) * SECOND_NS /
               (double)(now_ns - oldest->at_ns);
    }
    atomic_store(&ring->per_second_x1000, (uint64_t)(rate * 1000 + 0.5));
}

void
sampler_take(struct sampler *sampler, uint64_t now_ns,
             const uint64_t counters[SAMPLER_RATES], uint64_t used_bytes)
{
    for (unsigned i = 0; i < SAMPLER_RATES; i++) {
        add_reading(&sampler->ring[i], now_ns, counters[i]);
    }
    (void)sampler_peak_bytes(sampler, used_bytes);
}

static uint64_t
read_counter(enum metric metric)
{
    int64_t sum = metric_sum(metric);

    return sum > 0 ? (uint64_t)sum : 0;
}

static uint64_t
in_us(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

void
sampler_run(struct sampler *sampler, uint64_t now_ns)
{
    const uint64_t counters[SAMPLER_RATES] = {
        [SAMPLER_COMMANDS] = read_counter(METRIC_COMMANDS),
        [SAMPLER_NET_INPUT] = read_counter(METRIC_NET_INPUT),
        [SAMPLER_NET_OUTPUT] = read_counter(METRIC_NET_OUTPUT),
        [SAMPLER_NET_REPL_INPUT] = read_counter(METRIC_NET_REPL_INPUT),
        [SAMPLER_NET_REPL_OUTPUT] = read_counter(METRIC_NET_REPL_OUTPUT),
    };
    struct rusage usage;

    sampler_take(sampler, now_ns, counters, mem_used());
    if (getrusage(RUSAGE_THREAD, &usage) == 0) {
        atomic_store(&sampler->user_us, in_us(usage.ru_utime));
        atomic_store(&sampler->system_us, in_us(usage.ru_stime));
    }
}

double
sampler_per_second(const struct sampler *sampler, enum sampler_rate rate)
{
    return (double)atomic_load(&sampler->ring[rate].per_second_x1000) / 1000;
}

uint64_t
sampler_peak_bytes(struct sampler *sampler, uint64_t used_bytes)
{
    uint64_t peak = atomic_load(&sampler->peak_bytes);

    while (used_bytes > peak && !atomic_compare_exchange_weak(
                                    &sampler->peak_bytes, &peak, used_bytes)) {
    }
    return used_bytes > peak ? used_bytes : peak;
}

struct sampler_cpu
sampler_main_thread(const struct sampler *sampler)
{
    return (struct sampler_cpu){ atomic_load(&sampler->user_us),
                                 atomic_load(&sampler->system_us) };
}
