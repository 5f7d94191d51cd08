/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The null server's substitute for a Bloom filter: 128 KB of bits, which stay
 * in the second-level cache. Each item has one bit, found with one
 * multiplication. It answers as a filter does (an added item is found), at
 * about the least possible cost. It allocates nothing, and one thread uses it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "null_scan.h"

enum { NULL_FILTER_BITS = 20 }; /* log2 */

struct null_filter {
    uint64_t bits[(1U << NULL_FILTER_BITS) / 64];
};

static inline uint64_t
load_word(const char *data)
{
    uint64_t word;

    memcpy(&word, data, sizeof(word));
    return word;
}

/* Returns the bit of ITEM. Up to 16 bytes, the first and last word, which may
 * overlap, are enough, and one multiplication mixes them. Longer items take one
 * more for each further word. */
static inline size_t
item_bit(const struct arg *item)
{
    const uint64_t odd = 0x9e3779b97f4a7c15U;
    uint64_t word = 0;

    if (item->len >= 8) {
        word = load_word(item->data);
        for (size_t i = 8; i + 8 < item->len; i += 8) {
            word = (word ^ word >> 32) * odd ^ load_word(item->data + i);
        }
        word =
            (word << 32 | word >> 32) ^ load_word(item->data + item->len - 8);
    } else {
        for (size_t i = 0; i < item->len; i++) {
            word = word << 8 | (unsigned char)item->data[i];
        }
    }
    return (size_t)((word * odd) >> (64 - NULL_FILTER_BITS));
}

static inline uint64_t
filter_add(struct null_filter *filter, const struct arg *item)
{
    size_t bit = item_bit(item);
    uint64_t old = filter->bits[bit / 64];

    filter->bits[bit / 64] = old | UINT64_C(1) << (bit % 64);
    return ~old >> (bit % 64) & 1;
}

static inline uint64_t
filter_contains(const struct null_filter *filter, const struct arg *item)
{
    size_t bit = item_bit(item);

    return filter->bits[bit / 64] >> (bit % 64) & 1;
}
