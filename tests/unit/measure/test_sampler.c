/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rates over the latest samples, counters that were reset, the peak.
 */
#include "measure/sampler.h"

#include "../test.h"

static const uint64_t TICK_NS = 100000000;

static void
assert_rate(const struct sampler *sampler, double expected)
{
    assert_true(sampler_per_second(sampler, SAMPLER_COMMANDS) >
                expected - 0.01);
    assert_true(sampler_per_second(sampler, SAMPLER_COMMANDS) <
                expected + 0.01);
}

static void
take(struct sampler *sampler, uint64_t now_ns, uint64_t commands)
{
    const uint64_t counters[SAMPLER_RATES] = { commands, 2 * commands, 0 };

    sampler_take(sampler, now_ns, counters, 0);
}

TEST(sampler_rates_are_those_of_the_last_looks)
{
    struct sampler *sampler = sampler_new();
    uint64_t now_ns = 5;
    uint64_t commands = 0;

    assert_rate(sampler, 0);
    take(sampler, now_ns, commands);
    assert_rate(sampler, 0); /* one sample is no interval */
    for (unsigned i = 0; i < 100; i++) {
        take(sampler, now_ns += TICK_NS, commands += 50);
        assert_rate(sampler, 500);
    }
    assert_true(sampler_per_second(sampler, SAMPLER_NET_INPUT) > 999);
    assert_true(sampler_per_second(sampler, SAMPLER_NET_OUTPUT) < 0.01);
    for (unsigned i = 0; i < SAMPLER_SAMPLES / 2; i++) {
        take(sampler, now_ns += TICK_NS, commands);
    }
    assert_rate(sampler, 250);
    for (unsigned i = 0; i < SAMPLER_SAMPLES / 2; i++) {
        take(sampler, now_ns += TICK_NS, commands);
    }
    assert_rate(sampler, 0);
    sampler_free(sampler);
}

TEST(sampler_knows_how_long_an_interval_really_was)
{
    struct sampler *sampler = sampler_new();

    take(sampler, 0, 1000);
    take(sampler, 4 * TICK_NS, 1100);
    assert_rate(sampler, 250);
    sampler_free(sampler);
}

TEST(sampler_begins_anew_when_a_counter_was_reset)
{
    struct sampler *sampler = sampler_new();

    take(sampler, 0, 1000000);
    take(sampler, TICK_NS, 2000000);
    take(sampler, 2 * TICK_NS, 3);
    assert_rate(sampler, 0);
    take(sampler, 3 * TICK_NS, 5);
    assert_rate(sampler, 20);
    sampler_free(sampler);
}

TEST(sampler_keeps_the_peak)
{
    struct sampler *sampler = sampler_new();
    const uint64_t counters[SAMPLER_RATES] = { 0 };

    assert_int_equal(sampler_peak_bytes(sampler, 10), 10);
    sampler_take(sampler, 1, counters, 500);
    sampler_take(sampler, 2, counters, 20);
    assert_int_equal(sampler_peak_bytes(sampler, 30), 500);
    assert_int_equal(sampler_peak_bytes(sampler, 501), 501);
    assert_int_equal(sampler_peak_bytes(sampler, 0), 501);
    sampler_free(sampler);
}

TEST(sampler_looks_at_the_metrics_and_the_main_thread)
{
    struct sampler *sampler = sampler_new();
    struct sampler_cpu before = sampler_main_thread(sampler);
    volatile unsigned work = 0;

    assert_int_equal(before.user_us + before.system_us, 0);
    for (unsigned i = 0; i < 50000000; i++) {
        work += i;
    }
    sampler_run(sampler, 1);
    before = sampler_main_thread(sampler);
    assert_true(before.user_us + before.system_us > 0);
    sampler_free(sampler);
}
