/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the bits of a filter tell about it: how full it is and how often it is
 * wrong now, and how many items it can still take. Pure reads: any number of
 * threads, while none writes.
 */
#pragma once

#include "core/bloom.h"
#include "core/plan.h"

/* One layer, on all lines or on a sample of them. */
struct measured {
    uint64_t bits;  /* bits that items can set */
    double ones;    /* how many of these are set, estimated from the sample */
    double rate;    /* the present rate of false positives */
    uint64_t lines; /* 64 bytes each */
    uint64_t lines_read; /* fewer if only a sample was read */
};

/* Measures one layer on about lines_max lines of each of its stripes, in small
 * blocks at equal distances: items fall on lines at random, so any lines are a
 * fair sample. False: there is no such layer.
 *
 * The rate of a stripe is the mean over its lines of the product of the fills
 * of their words; the mean fill to the power of 8 is 20 to 40 % too low, since
 * full lines count more. The stripes of a layer are independent. In a foreign
 * layer, each of the hashes meets a set bit with the chance of the fill. */
bool measure_layer(const struct bloom *bloom, uint32_t index,
                   uint64_t lines_max, struct measured *ret_measured);

/* Returns the lines_max with which measure_layer() reads about LINES lines in
 * all layers together. */
uint64_t measure_share(const struct bloom *bloom, uint64_t lines);

/* Returns how many more items the newest layer can take. */
uint64_t measure_layer_room(const struct bloom *bloom);

/* Computes how many more items fit before the filter is full or would exceed
 * the limit; at most BLOOM_CAPACITY_MAX. A step computes one layer, in a few
 * microseconds, and does not need the filter. It returns false when there is no
 * further layer. */
struct measure_room {
    struct bloom_params params;
    struct plan plan;
    uint64_t limit_bytes;
    uint64_t room; /* of the layers so far */
};
void measure_room_begin(struct measure_room *room, const struct bloom *bloom,
                        uint64_t limit_bytes);
bool measure_room_step(struct measure_room *room);
