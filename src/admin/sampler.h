/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is only known by looking again and again: rates, the peak of the used
 * memory, the processor time of the main thread. Loop 0 looks, from its timer;
 * any thread reads.
 */
#pragma once

#include <stdint.h>

/* Rates of which counters, of base/metrics. */
enum sampler_rate {
    SAMPLER_COMMANDS,
    SAMPLER_NET_INPUT,
    SAMPLER_NET_OUTPUT,
    SAMPLER_NET_REPL_INPUT,
    SAMPLER_NET_REPL_OUTPUT,
    SAMPLER_RATES
};

/* A rate is that of the last so many looks: of 1.6 seconds, if there is one
 * every 100 ms. */
enum { SAMPLER_LOOKS = 16 };

struct sampler;

struct sampler *sampler_new(void);
void sampler_free(struct sampler *sampler);

/* Loop 0, on the main thread. */
void sampler_look(struct sampler *sampler, uint64_t now_ns);

/* The same with figures of the caller's instead of the metrics. */
void sampler_take(struct sampler *sampler, uint64_t now_ns,
                  const uint64_t counters[SAMPLER_RATES], uint64_t used_bytes);

double sampler_per_second(const struct sampler *sampler,
                          enum sampler_rate rate);

/* The highest of what was seen, and of `used_bytes`, which is the use now. */
uint64_t sampler_peak_bytes(struct sampler *sampler, uint64_t used_bytes);

struct sampler_cpu {
    uint64_t user_us, system_us;
};
struct sampler_cpu sampler_main_thread(const struct sampler *sampler);
