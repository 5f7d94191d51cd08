/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Samples figures: rates, the peak of the used memory, the processor time of
 * the main thread. The timer of loop 0 takes the samples; any thread reads the
 * results.
 */
#pragma once

#include <stdint.h>

/* The counters of base/metrics that have a rate. */
enum sampler_rate {
    SAMPLER_COMMANDS,
    SAMPLER_NET_INPUT,
    SAMPLER_NET_OUTPUT,
    SAMPLER_NET_REPL_INPUT,
    SAMPLER_NET_REPL_OUTPUT,
    SAMPLER_RATES
};

/* A rate is the average over so many samples, which is 1.6 seconds if the timer
 * runs every 100 ms. */
enum { SAMPLER_SAMPLES = 16 };

struct sampler;

struct sampler *sampler_new(void);
void sampler_free(struct sampler *sampler);

/* Takes a sample of the metrics. On the main thread. */
void sampler_run(struct sampler *sampler, uint64_t now_ns);

/* Takes a sample of the caller's figures. */
void sampler_take(struct sampler *sampler, uint64_t now_ns,
                  const uint64_t counters[SAMPLER_RATES], uint64_t used_bytes);

double sampler_per_second(const struct sampler *sampler,
                          enum sampler_rate rate);

/* Raises the peak to used_bytes, the memory used now, if that is higher, and
 * returns it. */
uint64_t sampler_peak_bytes(struct sampler *sampler, uint64_t used_bytes);

struct sampler_cpu {
    uint64_t user_us, system_us;
};
struct sampler_cpu sampler_main_thread(const struct sampler *sampler);
