/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Unit tests: TEST(name) { ... } is all it takes; a case registers itself and
 * main.c runs what it finds. Names read as sentences.
 */
#pragma once

/* cmocka.h wants these four before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void test_register(const char *name, CMUnitTestFunction function);

#define TEST(name)                                                             \
    static void name(void **state);                                            \
    __attribute__((constructor)) static void register_##name(void)             \
    {                                                                          \
        test_register(#name, name);                                            \
    }                                                                          \
    static void name(void **state __attribute__((unused)))

/* The seed of this run: BLOOMERY_SEED or random; printed by main. */
uint64_t test_seed(void);

/* Multiplier for how long randomised tests run: BLOOMERY_ROUNDS or 1. */
unsigned test_rounds(void);

/* Multiplies a number of rounds by BLOOMERY_ROUNDS, which may be a fraction, as
 * in 1/20: an emulator needs minutes for long tests. Returns at least 1. */
unsigned test_times(unsigned count);

/* Returns n if BLOOMERY_ROUNDS is 1/n, otherwise 1: tests that look at every
 * case look at each n-th. */
unsigned test_stride(void);

/* Random numbers by splitmix64: of 64 bits, below a bound, and in [0, 1). Any
 * state begins a good sequence. */
uint64_t test_random(uint64_t *state);
uint64_t test_random_below(uint64_t *state, uint64_t bound);
double test_random_unit(uint64_t *state);

/* Initialises a struct bloom_params: items and error rate of layer 0,
 * tightening, expansion. */
#define PARAMS(items, rate, ratio, growth)                                     \
    {                                                                          \
        .struct_size = sizeof(struct bloom_params), .capacity = (items),       \
        .error_rate = (rate), .tightening = (ratio), .expansion = (growth)     \
    }
