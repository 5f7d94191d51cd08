/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The structs of a layer, and how the line and the bits of an item are found in
 * a striped one. For layer.h, which draws the layout, and for the files that
 * implement its kinds.
 */
#pragma once

#include <bloomery/bloom.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Hashes are multiplied by this from stripe to stripe. */
#define LINE_STEP 0x9E3779B97F4A7C15U

struct line {
    _Alignas(64) uint64_t words[8];
};

_Static_assert(sizeof(struct line) == BLOOM_LINE_BYTES, "one cache line");

struct layer {
    struct line *lines;
    uint64_t line_count; /* of a stripe; in foreign kinds: bits */
    uint64_t capacity;
    uint64_t items;   /* counted by the owner */
    uint32_t stripes; /* in foreign kinds: hashes */
    uint8_t kind;     /* enum bloom_kind */
    uint8_t log2;     /* in kind redisbloom of the modulus (core/foreign.h), in
                         kind deletable of a region's words */
    union {
        uint16_t refund; /* of kind deletable: core/deletable.h */
        uint16_t age;    /* of kind ageing: core/ageing.h */
    };
};

struct layer_ops {
    bool (*contains)(const struct layer *layer, struct bloom_hash hash);
    /* Returns whether a bit was clear before. If all bits were set, writes
     * nothing, except that kind deletable marks collisions. */
    bool (*add)(struct layer *layer, struct bloom_hash hash);
    /* Fetches the lines that the first STRIPES steps of a lookup read. */
    void (*prefetch)(const struct layer *layer, struct bloom_hash hash,
                     uint32_t stripes);
    /* Makes the kernel clear the pages that an add of the item will write to.
     */
    void (*touch)(const struct layer *layer, struct bloom_hash hash);
    /* Do what contains, add and prefetch do, for COUNT hashes in order, without
     * a call for each. add_many returns how many of its answers are true. */
    void (*contains_many)(const struct layer *layer,
                          const struct bloom_hash *hashes, size_t count,
                          bool *ret_found);
    size_t (*add_many)(struct layer *layer, const struct bloom_hash *hashes,
                       size_t count, bool *ret_added);
    void (*prefetch_many)(const struct layer *layer,
                          const struct bloom_hash *hashes, size_t count,
                          uint32_t stripes);
    uint64_t (*bytes)(const struct layer *layer);             /* of all lines */
    uint64_t (*ones)(const struct line *lines, size_t count); /* bits set */
    /* Returns the sum, over the lines, of the product of the fills of a line's
     * words. This product is the probability that the line has all bits of an
     * absent item. */
    double (*products)(const struct line *lines, size_t count);
};

/* Returns (a x b) / 2^64, which maps a hash to 0..b-1 without a division. */
static inline uint64_t
mulhi64(uint64_t a, uint64_t b)
{
#if defined(__SIZEOF_INT128__)
    __extension__ typedef unsigned __int128 wide;

    return (uint64_t)(((wide)a * b) >> 64);
#else
    uint64_t al = a & UINT32_MAX;
    uint64_t ah = a >> 32;
    uint64_t bl = b & UINT32_MAX;
    uint64_t bh = b >> 32;
    uint64_t mid = ah * bl + ((al * bl) >> 32);
    uint64_t low = al * bh + (mid & UINT32_MAX);

    return ah * bh + (mid >> 32) + (low >> 32);
#endif
}

static inline struct bloom_hash
next_stripe(struct bloom_hash hash)
{
    hash.high *= LINE_STEP;
    hash.low *= LINE_STEP;
    return hash;
}

/* Returns the bit of an item in word I of its line. */
static inline uint64_t
line_bit(uint64_t low, unsigned i)
{
    return (uint64_t)1 << ((low >> (16 + 6 * i)) & 63);
}

/* Writes a zero if the word is zero, else nothing. The first access to a page
 * of a new mapping must be a write: after a read, which maps the page of zeros,
 * a write is a second page fault. */
static inline void
line_touch(uint64_t *word)
{
    (void)__sync_bool_compare_and_swap(word, 0, 0);
}

#ifdef __has_feature
#define LINE_HAS_FEATURE(x) __has_feature(x)
#else
#define LINE_HAS_FEATURE(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || LINE_HAS_FEATURE(thread_sanitizer)
enum { LINE_SEES_RACES = 1 };
#else
enum { LINE_SEES_RACES = 0 };
#endif

/* Read a word, and set bits in it. In a library any number of threads may read
 * while one adds (layer_select_shared()), so there the accesses are atomic. In
 * the server readers have locks, and plain accesses save a few instructions. */
static inline uint64_t
line_word(const uint64_t *word)
{
#ifndef BLOOMERY_LIBRARY
    if (!LINE_SEES_RACES) {
        return *word;
    }
#endif
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline void
line_set(uint64_t *word, uint64_t bits)
{
#ifndef BLOOMERY_LIBRARY
    if (!LINE_SEES_RACES) {
        *word |= bits;
        return;
    }
#endif
    __atomic_store_n(word, *word | bits, __ATOMIC_RELAXED);
}

static inline bool
line_contains(const struct line *line, uint64_t low)
{
    const uint64_t *word = line->words;
    uint64_t all = line_word(&word[0]) >> ((low >> 16) & 63);

    all &= line_word(&word[1]) >> ((low >> 22) & 63);
    all &= line_word(&word[2]) >> ((low >> 28) & 63);
    all &= line_word(&word[3]) >> ((low >> 34) & 63);
    all &= line_word(&word[4]) >> ((low >> 40) & 63);
    all &= line_word(&word[5]) >> ((low >> 46) & 63);
    all &= line_word(&word[6]) >> ((low >> 52) & 63);
    all &= line_word(&word[7]) >> (low >> 58);
    return (all & 1) != 0;
}
