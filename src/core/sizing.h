/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The size of a layer for an error rate, and the error rate of a size. Pure
 * arithmetic, any thread.
 *
 * A layer consists of stripes of lines (core/layer.h; stripes of the keyspace
 * are something else). An item sets 8 bits in one line of each stripe. A stripe
 * at load lambda (items a line, Poisson distributed over the lines)
 * answers yes for an absent item with probability
 *     sum_{i=0..8} (-1)^i C(8,i) exp(-lambda (1 - (63/64)^i)),
 * which is E[(1 - (63/64)^J)^8] for J ~ Poisson(lambda), expanded. Stripes are
 * independent, so a layer's rate is this probability to the power of the number
 * of stripes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The bits of one layer: stripes x lines x 64 bytes. */
struct geometry {
    uint64_t lines; /* in each stripe */
    uint32_t stripes;
    uint32_t log2; /* kind deletable: log2 of the number of words in a region;
                      else 0 */
};

/* Returns the number of stripes for an error rate in (0, 1): so many that no
 * stripe needs a rate below 1e-3. Down to that rate, 8 bits per item and stripe
 * are near the optimum. */
uint32_t sizing_stripes(double rate);

/* Returns the load lambda* at which a stripe has STRIPE_RATE, in [1e-4, 0.999];
 * exact to the last digit of a double. */
long double sizing_load(double stripe_rate);

/* Returns the native geometry for CAPACITY items (1..INT64_MAX) at RATE in
 * (0, 1): lambda* for a stripe rate of (0.95 RATE)^(1/stripes). The 5 % keep
 * the measured rate of filters of 10^5 items or more below RATE. It takes a
 * microsecond, so each thread remembers the last results: most filters of a
 * server are alike. */
struct geometry sizing_geometry(uint64_t capacity, double rate);

/* Returns the bytes of a classic Bloom filter for CAPACITY items at RATE, as
 * valkey-bloom makes it: n ln(p) / (-8 ln(2)^2), rounded up; at most
 * INT64_MAX. */
uint64_t sizing_classic_bytes(uint64_t capacity, double rate);

/* Computes the bytes of the lines. False if they exceed INT64_MAX. */
bool sizing_bytes(struct geometry geometry, uint64_t *ret_bytes);

/* Returns the expected error rate of a layer with ITEMS items, by the binomial
 * distribution, so that it is exact for few lines too. */
double sizing_exact_rate(uint64_t items, struct geometry geometry);

/* Returns whether a stored geometry may be used for CAPACITY items at RATE: it
 * keeps the rate, and is at most one line a stripe larger than the formula's,
 * since mathematical libraries differ by no more than that. */
bool sizing_acceptable(uint64_t capacity, double rate,
                       struct geometry geometry);

/* Returns the rate of layer INDEX of a chain: RATE x TIGHTENING^INDEX. The
 * power is made by multiplications, so that it is the same double everywhere.
 */
double sizing_layer_rate(double rate, double tightening, uint32_t index);
