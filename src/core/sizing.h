/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How large a layer has to be, and what rate a given size has. Pure
 * arithmetic, any thread.
 *
 * A stripe at load lambda (items a line, Poisson distributed over the lines)
 * passes a stranger with probability
 *     sum_{i=0..8} (-1)^i C(8,i) exp(-lambda (1 - (63/64)^i)),
 * which is E[(1 - (63/64)^J)^8] for J ~ Poisson(lambda), expanded. Stripes are
 * independent, so a layer's rate is that to the power of its stripes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What one layer allocates for its bits: stripes x lines x 64 bytes. */
struct geometry {
    uint64_t lines; /* a stripe */
    uint32_t stripes;
};

/* Stripes for an error rate in (0, 1): each stripe has to reach 1e-3 at most,
 * the range in which 8 bits an item are near the optimum. */
uint32_t sizing_stripes(double rate);

/* The sum above for LOAD items a line. */
double sizing_stripe_rate(double load);

/* The load lambda* at which a stripe has STRIPE_RATE, in [1e-4, 0.999]; good
 * to a double's last digit and a little beyond. */
long double sizing_load(double stripe_rate);

/* The native geometry for CAPACITY items (1..INT64_MAX) at RATE in (0, 1):
 * lambda* for a stripe rate of (0.95 RATE)^(1/stripes). The 5 % keep filters
 * of 10^5 items and more below the asked rate when measured. A microsecond, so
 * each thread remembers some of those that it computed last: most filters of a
 * server are alike. */
struct geometry sizing_geometry(uint64_t capacity, double rate);

/* What CAPACITY items at RATE take in a classic Bloom filter of whole bytes, as
 * valkey-bloom makes it: n ln(p) / (-8 ln(2)^2), rounded up. At most
 * INT64_MAX. */
uint64_t sizing_classic_bytes(uint64_t capacity, double rate);

/* Bytes of the lines. False if they exceed INT64_MAX. */
bool sizing_bytes(struct geometry geometry, uint64_t *ret_bytes);

/* The expected rate of a layer that holds ITEMS items: binomial, so exact for
 * few lines too. */
double sizing_exact_rate(uint64_t items, struct geometry geometry);

/* Whether a stored geometry may be used for CAPACITY items at RATE: it keeps
 * the rate and is at most one line a stripe larger than the formula's, which
 * is as far apart as two mathematical libraries get. */
bool sizing_acceptable(uint64_t capacity, double rate,
                       struct geometry geometry);

/* The rate of layer INDEX of a chain: RATE x TIGHTENING^INDEX, the power by
 * square and multiply, so that it is the same double everywhere. */
double sizing_layer_rate(double rate, double tightening, uint32_t index);
