/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sizes and rates of layers; sizing.h has the formulas.
 */
#include "core/sizing.h"

#include <math.h>
#include <string.h>

enum { TERMS = 9, NEWTON_ROUNDS_MAX = 40, LINE_BYTES = 64, MEMO_BITS = 4 };

/* (-1)^i C(8,i), and 1 - (63/64)^i, which is exact in a double up to i = 8. */
static const double weight[TERMS] = { 1, -8, 28, -56, 70, -56, 28, -8, 1 };
static const double decay[TERMS] = { 0.0,
                                     1.0 / 64,
                                     127.0 / 4096,
                                     12097.0 / 262144,
                                     1024255.0 / 16777216,
                                     81305281.0 / 1073741824,
                                     6195974527.0 / 68719476736,
                                     459065871937.0 / 4398046511104,
                                     33319196443135.0 / 281474976710656 };

uint32_t
sizing_stripes(double rate)
{
    /* With 1e-9 less, powers of 1e-3 get the lower count in any libm. */
    double stripes = ceil(log(rate) / log(1e-3) - 1e-9);

    return stripes > 1 ? (uint32_t)stripes : 1;
}

static double
stripe_rate_and_slope(double load, double *ret_slope)
{
    double rate = 0;
    double slope = 0;

    for (int i = TERMS - 1; i >= 0; i--) {
        double term = weight[i] * exp(-load * decay[i]);

        rate += term;
        slope -= term * decay[i];
    }
    *ret_slope = slope;
    return rate;
}

/* The alternating sum loses up to four digits: with doubles that moves the root
 * by 1e-13, a line in 10^13. With long doubles all digits of a double stay. */
static long double
stripe_rate_fine(double load)
{
    long double rate = 0;

    for (int i = TERMS - 1; i >= 0; i--) {
        rate += (long double)weight[i] *
                expl(-(long double)load * (long double)decay[i]);
    }
    return rate;
}

long double
sizing_load(double stripe_rate)
{
    /* If words were independent the load would be this, within a few percent.
     * From there Newton's method on the logarithm needs three or four rounds.
     * The bracket guards against rounding. */
    double load = -64 * log1p(-sqrt(sqrt(sqrt(stripe_rate))));
    double low = 1e-3;
    double high = 4096;
    double slope = 1;

    for (int i = 0; i < NEWTON_ROUNDS_MAX; i++) {
        double rate = stripe_rate_and_slope(load, &slope);
        double next = load - rate / slope * log(rate / stripe_rate);

        if (rate <= stripe_rate) {
            low = load;
        } else {
            high = load;
        }
        if (!(next > low && next < high)) {
            next = low + (high - low) / 2;
        }
        if (fabs(next - load) <= 1e-7 * load) {
            load = next;
            break;
        }
        load = next;
    }
    return (long double)load -
           (stripe_rate_fine(load) - (long double)stripe_rate) /
               (long double)slope;
}

static struct geometry
compute_geometry(uint64_t capacity, double rate)
{
    struct geometry geometry = { .stripes = sizing_stripes(rate) };
    long double load = sizing_load(pow(0.95 * rate, 1.0 / geometry.stripes));

    geometry.lines = (uint64_t)ceill((long double)capacity / load);
    return geometry;
}

/* No capacity is 0, so an empty slot never equals a layer. */
struct geometry
sizing_geometry(uint64_t capacity, double rate)
{
    static _Thread_local struct memo {
        uint64_t capacity, rate; /* the bits of the double */
        struct geometry geometry;
    } memos[1 << MEMO_BITS];
    struct memo *memo;
    uint64_t bits;

    memcpy(&bits, &rate, sizeof(bits));
    memo =
        &memos[((capacity ^ bits) * 0x9E3779B97F4A7C15U) >> (64 - MEMO_BITS)];
    if (capacity == 0 || memo->capacity != capacity || memo->rate != bits) {
        *memo =
            (struct memo){ capacity, bits, compute_geometry(capacity, rate) };
    }
    return memo->geometry;
}

uint64_t
sizing_classic_bytes(uint64_t capacity, double rate)
{
    static const double ln2 = 0.69314718055994530942;
    double bytes = ceil((double)capacity * log(rate) / (-8 * ln2 * ln2));

    return bytes < 0x1p63 ? (uint64_t)bytes : INT64_MAX;
}

bool
sizing_bytes(struct geometry geometry, uint64_t *ret_bytes)
{
    uint64_t most = INT64_MAX / LINE_BYTES;

    if (geometry.stripes == 0 || geometry.lines > most / geometry.stripes) {
        return false;
    }
    *ret_bytes = geometry.lines * geometry.stripes * LINE_BYTES;
    return true;
}

double
sizing_exact_rate(uint64_t items, struct geometry geometry)
{
    double rate = 0;

    for (int i = TERMS - 1; i >= 0; i--) {
        double survive = log1p(-decay[i] / (double)geometry.lines);

        rate += weight[i] * exp((double)items * survive);
    }
    /* Below 1e-15 the sum is only rounding, and may be negative. */
    return rate > 0 ? pow(rate, geometry.stripes) : 0;
}

bool
sizing_acceptable(uint64_t capacity, double rate, struct geometry geometry)
{
    struct geometry formula = sizing_geometry(capacity, rate);

    return geometry.stripes == formula.stripes && geometry.lines > 0 &&
           geometry.lines <= formula.lines + 1 &&
           sizing_exact_rate(capacity, geometry) <= rate;
}

double
sizing_layer_rate(double rate, double tightening, uint32_t index)
{
    double power = 1;

    for (; index != 0; index /= 2) {
        if (index % 2 != 0) {
            power *= tightening;
        }
        tightening *= tightening;
    }
    return rate * power;
}
